/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Positions, cells and images on the device; the counterparts of those in cpu/particles. */
#ifndef FMM_CUDA_GEOMETRY_H
#define FMM_CUDA_GEOMETRY_H

#include "cuda/state.h"
#include "fmm/math/images.h"

/* The grid of near cells. Neighbours outside the grid are looked up at its opposite edge. An octree's grid therefore
 * gets a margin of empty cells where it is not periodic; that of a convolution has one in its padding. Leaves of
 * several levels are a row of cells, what is near to them is on lists. */
static inline Geometry make_geometry(const gmxfmm_plan* plan)
{
    const fmm_cells* c = &plan->domain.cells;
    Geometry         g;
    for (int i = 0; i < 9; i++)
    {
        g.to_cells[i] = c->to_cells[i];
        g.cell[i]     = c->cell[i];
    }
    for (int d = 0; d < 3; d++)
    {
        g.origin[d]   = c->origin[d];
        g.n[d]        = c->octree && !c->periodic[d] ? c->n[d] + c->near_reach : c->n[d];
        g.inner[d]    = c->inner[d];
        g.periodic[d] = c->periodic[d];
        g.period[d]   = c->period[d];
    }
    g.rectangular = c->rectangular;
    if (fmm_is_adaptive(plan))
    {
        g.n[0] = g.n[1] = 1;
        g.n[2]          = plan->device->far.tree.leaves.num;
    }
    g.num_cells = c->num_cells > 0 || fmm_is_adaptive(plan) ? g.n[0] * g.n[1] * g.n[2] : 0; /* 0: too many */
    g.num_near  = c->num_near;
    g.far_away  = 100 * c->lambda;
    return g;
}

static inline VoronoiVectors make_voronoi(const double (*vectors)[3], const int (*coordinates)[3])
{
    VoronoiVectors v;
    for (int i = 0; i < FMM_VORONOI; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            v.vectors[i][d]     = vectors[i][d];
            v.coordinates[i][d] = coordinates[i][d];
        }
    }
    return v;
}

/* Rows of from[9] in the caller's axes; axes[9]: rows are the plan's in these. */
static inline void rows_in_caller_axes(const double* axes, const double* from, double* to)
{
    for (int i = 0; i < 9; i++)
    {
        const double* row = from + i / 3 * 3;
        to[i]             = row[0] * axes[i % 3] + row[1] * axes[3 + i % 3] + row[2] * axes[6 + i % 3];
    }
}

/* What makes coordinates in cells of positions, for those in the caller's axes: only positions and results are in
 * these. */
static inline void take_caller_axes(const double* axes, BoxValues* b)
{
    const BoxValues own = *b;
    for (int i = 0; i < 3; i++)
    {
        b->origin[i] = own.origin[0] * axes[i] + own.origin[1] * axes[3 + i] + own.origin[2] * axes[6 + i];
        for (int d = 0; d < 3; d++)
        {
            b->to_cells[3 * i + d] =
                axes[i] * own.to_cells[d] + axes[3 + i] * own.to_cells[3 + d] + axes[6 + i] * own.to_cells[6 + d];
        }
    }
}

static inline BoxValues make_box(const gmxfmm_plan* plan)
{
    const fmm_cells* c = &plan->domain.cells;
    const Geometry   g = make_geometry(plan);
    BoxValues        b;
    double           box[9];
    for (int i = 0; i < 9; i++)
    {
        b.to_cells[i]   = g.to_cells[i];
        b.cell[i]       = g.cell[i];
        b.axes[i]       = plan->frame.axes[i];
        b.given[i]      = plan->domain.given[i];
        b.in_basis[i]   = plan->domain.in_basis[i];
        box[i]          = plan->domain.box[i];
        b.origin[i % 3] = g.origin[i % 3];
    }
    if (plan->frame.turned)
    {
        take_caller_axes(plan->frame.axes, &b);
        rows_in_caller_axes(plan->frame.axes, plan->domain.given, b.given);
        rows_in_caller_axes(plan->frame.axes, plan->domain.box, box);
    }
    fmm_few_images(box, g.periodic, b.reach);
    b.inverse_u    = 1 / c->u;
    b.surface      = 4 * FMM_PI / 3 / (fmm_is_bulk(plan) ? fmm_determinant(plan->domain.box) : 1);
    b.cell_voronoi = make_voronoi(c->voronoi, c->voronoi_int);
    b.box_voronoi  = make_voronoi(c->box_voronoi, c->box_voronoi_int);
    return b;
}

static __device__ inline bool has_images(const Geometry& g)
{
    return g.periodic[0] || g.periodic[1] || g.periodic[2];
}

static __device__ inline int wrapped(int k, int n)
{
    while (k < 0)
    {
        k += n;
    }
    while (k >= n)
    {
        k -= n;
    }
    return k;
}

static __device__ inline int cell_at(const Geometry& g, int cx, int cy, int cz)
{
    return (cx * g.n[1] + cy) * g.n[2] + cz;
}

static __device__ inline void cell_place(const Geometry& g, int cell, int* c)
{
    c[2] = cell % g.n[2];
    cell /= g.n[2];
    c[1] = cell % g.n[1];
    c[0] = cell / g.n[1];
}

/* Centre of a leaf minus that of its root, whose edge is `edge` leaves, unit u; a rectangular box. */
template <class R>
static __device__ inline void root_offset(const Geometry& g, int edge, int cell, R* offset)
{
    int c[3];
    cell_place(g, cell, c);
    for (int d = 0; d < 3; d++)
    {
        offset[d] = static_cast<R>(fmm_root_offset(c[d], edge, g.cell[4 * d]));
    }
}

#endif
