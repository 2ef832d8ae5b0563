/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field by an octree: up (P2M, M2M), across (M2L), down (L2L). */
#include "fmm/cpu/octree/octree.h"

#include <string.h>

#include "fmm/cpu/convolution/convolution.h"
#include "fmm/cpu/expansions/expansions.h"
#include "fmm/math/harmonics.h"

/* Place of root c in the grid of the convolution. */
static size_t place_of(const fmm_level* roots, const int* n, int c)
{
    const int* at = roots->at[c];
    return (size_t)((at[0] * n[1] + at[1]) * n[2] + at[2]);
}

/* M2L between roots and all their images: the convolution over the grid of roots. */
static void root_m2l(gmxfmm_plan* plan, double* strain)
{
    const struct fmm_convolution* conv   = plan->cpu->conv;
    const fmm_level*              roots  = &plan->cpu->level[0];
    const size_t                  fields = (size_t)conv->fft.num_fields, stride = conv->fft.field_stride;
    memset(conv->field, 0, fields * stride * sizeof(real));
    for (size_t i = 0; i < fields; i++)
    {
        for (int c = 0; c < roots->num; c++)
        {
            conv->field[i * stride + place_of(roots, conv->cells->n, c)] =
                ((const real*)roots->multipole)[i * roots->stride + (size_t)c];
        }
    }
    fmm_convolve(plan, 1.0 / (1 << plan->domain.tree->depth), strain);
    for (size_t i = 0; i < fields; i++)
    {
        for (int c = 0; c < roots->num; c++)
        {
            ((real*)roots->local)[i * roots->stride + (size_t)c] +=
                conv->field[i * stride + place_of(roots, conv->cells->n, c)];
        }
    }
}

static void zero_locals(const gmxfmm_plan* plan)
{
    for (int l = 0; l <= plan->domain.tree->depth; l++)
    {
        const fmm_level* level = &plan->cpu->level[l];
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
        for (int i = 0; i < harm_size(plan->far.order); i++)
        {
            memset((real*)level->local + (size_t)i * level->stride, 0, level->stride * sizeof(real));
        }
    }
}

static void far_by_octree(gmxfmm_plan* plan, double* strain)
{
    const fmm_tree*  tree   = plan->domain.tree;
    const fmm_level* leaves = fmm_last_level(plan);
    gmxfmm_info*     info   = &plan->info;
    double           clock  = fmm_time();
    if (!fmm_is_adaptive(plan))
    {
        fmm_p2m(plan, leaves->multipole, leaves->stride);
        fmm_lap(&clock, &info->time_p2m);
    }
    for (int l = tree->depth; l >= 0; l--)
    {
        if (l < tree->depth)
        {
            fmm_m2m(plan, l); /* sets all cells, those without children to zero */
            fmm_lap(&clock, &info->time_m2m);
        }
        if (fmm_is_adaptive(plan))
        {
            fmm_p2m_leaves(plan, l);
            fmm_lap(&clock, &info->time_p2m);
        }
    }
    zero_locals(plan);
    if (fmm_is_periodic(plan))
    {
        root_m2l(plan, strain);
    }
    for (int l = 1; l <= tree->depth; l++)
    {
        fmm_m2l(plan, l, strain);
    }
    fmm_lap(&clock, &info->time_m2l);
    for (int l = 0; l < tree->depth; l++)
    {
        fmm_l2l(plan, l, strain);
    }
    fmm_lap(&clock, &info->time_l2l);
}

static const void* locals_of_leaves(const gmxfmm_plan* plan, size_t* stride)
{
    const fmm_level* leaves = fmm_last_level(plan);
    *stride                 = leaves->stride;
    return leaves->local;
}

static gmxfmm_status create_octree(gmxfmm_plan* plan)
{
    const gmxfmm_status status = fmm_operators_create(plan);
    return status == GMXFMM_OK && fmm_has_lattice_sums(plan) ? fmm_conv_create(plan) : status;
}

static gmxfmm_status set_shape_of_octree(gmxfmm_plan* plan)
{
    fmm_operators_set_shape(plan);
    return fmm_has_lattice_sums(plan) ? fmm_conv_set_shape(plan) : GMXFMM_OK;
}

static gmxfmm_status reserve_octree(gmxfmm_plan* plan)
{
    const size_t        before = plan->bytes;
    const gmxfmm_status status = fmm_operators_reserve(plan);
    plan->cpu->grid_bytes += plan->bytes - before;
    return status;
}

const fmm_cpu_path fmm_octree_path = {
    .create    = create_octree,
    .set_shape = set_shape_of_octree,
    .assign    = fmm_tree_assign,
    .reserve   = reserve_octree,
    .far       = far_by_octree,
    .locals    = locals_of_leaves,
};
