/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Modified charges. At leaves by the sum over particles (12); a Lagrange polynomial of a parent has degree n in each
 * coordinate, so that interpolation at the points of a child reproduces it: parents add up what their children have,
 * q_k = sum_j L_k(s_j) q_j, one dimension after the other (Wilson, Vaughn & Krasny 2021).
 */
#include "fmm/treecode/charges.h"

#include <omp.h>
#include <string.h>

#include "fmm/treecode/chebyshev.h"

enum
{
    c_edge = TREECODE_MAX_EDGE
};

void treecode_charges_of(const treecode_clusters* c, int cluster, const double* q, int degree, double* charge)
{
    const int edge = degree + 1;
    double    centre[3], half[3], s[c_edge], l[3][c_edge];
    treecode_box(c, cluster, centre, half);
    chebyshev_points(degree, s);
    memset(charge, 0, (size_t)(edge * edge * edge) * sizeof(double));
    for (int64_t i = c->begin[cluster]; i < c->end[cluster]; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            chebyshev_lagrange(degree, s, chebyshev_place(c->x[d][i], centre[d], half[d]), l[d]);
        }
        double* out = charge;
        for (int k1 = 0; k1 < edge; k1++)
        {
            for (int k2 = 0; k2 < edge; k2++, out += edge)
            {
                const double plane = q[i] * l[0][k1] * l[1][k2];
                for (int k3 = 0; k3 < edge; k3++)
                {
                    out[k3] += plane * l[2][k3];
                }
            }
        }
    }
}

/* l[k][j] = L_k of the parent at point j of the child. */
static void between(int           degree,
                    const double* s,
                    double        centre,
                    double        half,
                    double        child_centre,
                    double        child_half,
                    double        l[c_edge][c_edge])
{
    for (int j = 0; j <= degree; j++)
    {
        double at[c_edge];
        chebyshev_lagrange(degree, s, chebyshev_place(child_centre + child_half * s[j], centre, half), at);
        for (int k = 0; k <= degree; k++)
        {
            l[k][j] = at[k];
        }
    }
}

static void
add_child(const treecode_clusters* c, int parent, int child, int degree, const double* s, double* work, double* charge)
{
    const int    edge = degree + 1;
    const size_t size = (size_t)(edge * edge * edge);
    double       centre[3], half[3], child_centre[3], child_half[3], l[c_edge][c_edge];
    treecode_box(c, parent, centre, half);
    treecode_box(c, child, child_centre, child_half);
    const double* in = charge + (size_t)child * size;
    for (int d = 2; d >= 0; d--)
    {
        double* out = d == 1 ? work + size : work;
        between(degree, s, centre[d], half[d], child_centre[d], child_half[d], l);
        chebyshev_contract(edge, l, in, out);
        in = out;
    }
    double* sum = charge + (size_t)parent * size;
    for (size_t k = 0; k < size; k++)
    {
        sum[k] += in[k];
    }
}

void treecode_charges(const treecode_clusters* c,
                      const double*            q,
                      int                      degree,
                      double*                  charge,
                      double*                  work,
                      size_t                   stride,
                      int                      num_threads)
{
    const int    edge = degree + 1;
    const size_t size = (size_t)(edge * edge * edge);
    double       s[c_edge];
    chebyshev_points(degree, s);
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
    for (int i = 0; i < c->num_leaves; i++)
    {
        treecode_charges_of(c, c->leaf[i], q, degree, charge + (size_t)c->leaf[i] * size);
    }
    for (int l = c->num_levels - 1; l >= 0; l--)
    {
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
        for (int cluster = c->level[l]; cluster < c->level[l + 1]; cluster++)
        {
            double* const mine = work + (size_t)omp_get_thread_num() * stride;
            if (c->num_children[cluster] > 0)
            {
                memset(charge + (size_t)cluster * size, 0, size * sizeof(double));
            }
            for (int k = 0; k < c->num_children[cluster]; k++)
            {
                add_child(c, cluster, c->child[cluster] + k, degree, s, mine, charge);
            }
        }
    }
}
