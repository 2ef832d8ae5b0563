/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field by an octree: up (P2M, M2M), across (M2L), down (L2L). */
#include <string.h>

#include "fmm/cpu/octree/octree.h"

#include "fmm/cpu/convolution/convolution.h"
#include "fmm/cpu/expansions/expansions.h"
#include "fmm/math/strain.h"

/* Adds the time since *from to *sum and starts anew. */
static void lap(double* from, double* sum)
{
    const double now = fmm_time();
    *sum += now - *from;
    *from = now;
}

/* Adds the strain derivative of the lattice part to strain (xx, yy, zz, xy, xz, yz; traceless) from w of the
 * convolution, times scale. */
static void unpack_strain(const double* w, double scale, double* strain)
{
    for (int i = 0; i < 6; i++)
    {
        strain[i] += scale * 0.5 * fmm_twice_traceless(w, i);
    }
}

/* M2L between roots and all their images: the convolution over the grid of roots. */
static void root_m2l(gmxfmm_plan* plan, double* strain)
{
    struct fmm_convolution* conv  = plan->cpu->conv;
    const fmm_level*        roots = &plan->domain.tree->level[0];
    const int*              n     = plan->domain.tree->roots;
    double                  w[5]  = {0};
    for (int dir = 0; dir < 2; dir++)
    {
        if (dir == 0)
        {
            memset(conv->field, 0, (size_t)conv->fft.num_fields * conv->fft.field_stride * sizeof(real));
        }
        for (int i = 0; i < conv->fft.num_fields; i++)
        {
            for (int c = 0; c < roots->num; c++)
            {
                const int* at = roots->at[c];
                real* grid = conv->field + (size_t)i * conv->fft.field_stride + (at[0] * n[1] + at[1]) * n[2] + at[2];
                const size_t k = (size_t)i * roots->stride + (size_t)c;
                if (dir == 0)
                {
                    *grid = ((const real*)roots->multipole)[k];
                }
                else
                {
                    ((real*)roots->local)[k] += *grid;
                }
            }
        }
        if (dir == 0 && strain != NULL)
        {
            fmm_m2l_fft_virial(plan, conv, w);
            unpack_strain(w, 1.0 / (1 << plan->domain.tree->depth), strain);
        }
        else if (dir == 0)
        {
            fmm_m2l_fft(plan, conv);
        }
    }
}

static void zero_locals(const gmxfmm_plan* plan)
{
    for (int l = 0; l <= plan->domain.tree->depth; l++)
    {
        const fmm_level* level = &plan->domain.tree->level[l];
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
        for (int i = 0; i < plan->domain.tree->num_coef; i++)
        {
            memset((real*)level->local + (size_t)i * level->stride, 0, level->stride * sizeof(real));
        }
    }
}

/* The same by an octree: up, across, down. */
static void far_by_octree(gmxfmm_plan* plan, double* strain)
{
    const fmm_tree*  tree   = plan->domain.tree;
    const fmm_level* leaves = &tree->level[tree->depth];
    gmxfmm_info*     info   = &plan->info;
    double           clock  = fmm_time();
    fmm_p2m(plan, leaves->multipole, leaves->stride);
    lap(&clock, &info->time_p2m);
    for (int l = tree->depth - 1; l >= 0; l--)
    {
        fmm_m2m(plan, l);
    }
    lap(&clock, &info->time_m2m);
    zero_locals(plan);
    if (fmm_is_periodic(plan))
    {
        root_m2l(plan, strain);
    }
    for (int l = 1; l <= tree->depth; l++)
    {
        fmm_m2l(plan, l, strain);
    }
    lap(&clock, &info->time_m2l);
    for (int l = 0; l < tree->depth; l++)
    {
        fmm_l2l(plan, l, strain);
    }
    lap(&clock, &info->time_l2l);
}

static const void* locals_of_leaves(const gmxfmm_plan* plan, size_t* stride)
{
    const fmm_level* leaves = &plan->domain.tree->level[plan->domain.tree->depth];
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
