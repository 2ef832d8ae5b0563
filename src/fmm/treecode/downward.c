/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The downward pass of dual traversal: potentials at the Chebyshev points of a cluster are those of a polynomial, which
 * is evaluated at the points of children and at particles, and differentiated for the field: that is then the exact
 * gradient.
 */
#include "fmm/treecode/dual.h"

#include <omp.h>
#include <string.h>

#include "fmm/treecode/chebyshev.h"

enum
{
    c_edge = TREECODE_MAX_EDGE
};

static void to_child(const treecode_clusters* c,
                     int                      parent,
                     int                      child,
                     int                      degree,
                     const double*            s,
                     const double*            from,
                     double*                  work,
                     double*                  to)
{
    const int edge = degree + 1, size = edge * edge * edge;
    double    centre[3], half[3], child_centre[3], child_half[3], l[c_edge][c_edge];
    treecode_box(c, parent, centre, half);
    treecode_box(c, child, child_centre, child_half);
    for (int d = 2; d >= 0; d--)
    {
        double* out = d == 1 ? work + size : work;
        for (int j = 0; j < edge; j++)
        {
            chebyshev_lagrange(degree, s, chebyshev_place(child_centre[d] + child_half[d] * s[j], centre[d], half[d]),
                               l[j]);
        }
        chebyshev_contract(edge, l, from, out);
        from = out;
    }
    for (int k = 0; k < size; k++)
    {
        to[k] += from[k];
    }
}

/* Minus the derivative along dimension d at the points, in units of the cluster's coordinates. */
static void derivative(int edge, int d, double scale, double l[c_edge][c_edge], const double* in, double* out)
{
    const int stride = d == 2 ? 1 : d == 1 ? edge : edge * edge, size = edge * edge * edge;
    for (int o = 0; o < size; o++)
    {
        const int j = o / stride % edge, first = o - j * stride;
        double    sum = 0;
        for (int k = 0; k < edge; k++)
        {
            sum += l[j][k] * in[first + k * stride];
        }
        out[o] = -scale * sum;
    }
}

static double value(int edge, double l[3][c_edge], const double* in)
{
    double sum = 0;
    for (int k1 = 0; k1 < edge; k1++)
    {
        double plane = 0;
        for (int k2 = 0; k2 < edge; k2++, in += edge)
        {
            double row = 0;
            for (int k3 = 0; k3 < edge; k3++)
            {
                row += in[k3] * l[2][k3];
            }
            plane += row * l[1][k2];
        }
        sum += plane * l[0][k1];
    }
    return sum;
}

/* Particles begin .. end - 1 of a cluster from its points. */
static void to_particles(const treecode_clusters* c,
                         int                      cluster,
                         int64_t                  begin,
                         int64_t                  end,
                         int                      degree,
                         const double*            s,
                         const double*            from,
                         double*                  work,
                         double*                  phi,
                         double* const*           slope)
{
    const int     edge = degree + 1, size = edge * edge * edge;
    double* const gradient[3] = {work, work + size, work + 2 * size};
    double        centre[3], half[3];
    treecode_box(c, cluster, centre, half);
    if (slope != NULL)
    {
        double l[c_edge][c_edge];
        for (int j = 0; j < edge; j++)
        {
            chebyshev_differentiate(degree, s, j, l[j]);
        }
        for (int d = 0; d < 3; d++)
        {
            derivative(edge, d, half[d] > 0 ? 1 / half[d] : 0, l, from, gradient[d]);
        }
    }
    for (int64_t i = begin; i < end; i++)
    {
        double l[3][c_edge];
        for (int d = 0; d < 3; d++)
        {
            chebyshev_lagrange(degree, s, chebyshev_place(c->x[d][i], centre[d], half[d]), l[d]);
        }
        phi[i] += value(edge, l, from);
        for (int d = 0; d < 3 && slope != NULL; d++)
        {
            slope[d][i] += value(edge, l, gradient[d]);
        }
    }
}

void treecode_downward(const treecode_clusters* targets,
                       int                      degree,
                       double*                  point,
                       double*                  phi,
                       double* const*           slope,
                       double*                  work,
                       size_t                   stride,
                       int                      num_threads)
{
    const int64_t edge = degree + 1, size = edge * edge * edge;
    double        s[c_edge];
    chebyshev_points(degree, s);
    for (int l = 0; l < targets->num_levels; l++)
    {
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
        for (int k = targets->level[l]; k < targets->level[l + 1]; k++)
        {
            const double* from = point + (size_t)k * (size_t)size;
            double* const mine = work + (size_t)omp_get_thread_num() * stride;
            if (targets->end[k] - targets->begin[k] <= size)
            {
                continue; /* has no points: one above it has seen to its particles */
            }
            if (targets->num_children[k] == 0)
            {
                to_particles(targets, k, targets->begin[k], targets->end[k], degree, s, from, mine, phi, slope);
            }
            for (int j = targets->child[k]; j < targets->child[k] + targets->num_children[k]; j++)
            {
                if (targets->end[j] - targets->begin[j] > size)
                {
                    to_child(targets, k, j, degree, s, from, mine, point + (size_t)j * (size_t)size);
                }
                else
                {
                    to_particles(targets, k, targets->begin[j], targets->end[j], degree, s, from, mine, phi, slope);
                }
            }
        }
    }
}
