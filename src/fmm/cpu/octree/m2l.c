/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L of the octree: the interaction lists of a level, translated by one of the variants in the table below. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "fmm/cpu/octree/octree.h"
#include "fmm/cpu/octree/m2l_job.h"
#include "fmm/cpu/octree/operators.h"
#include "fmm/math/fold.h"
#include "fmm/cpu/simd/lanes.h"
#include "fmm/cpu/octree/shift.h"

static const struct
{
    gmxfmm_m2l     m2l;
    fmm_m2l_block* block;
} c_variants[] = {{GMXFMM_M2L_ROTATION, fmm_m2l_rotation},
                  {GMXFMM_M2L_SYMMETRIC, fmm_m2l_symmetric},
                  {GMXFMM_M2L_NAIVE, fmm_m2l_naive}};

static fmm_m2l_block* variant(gmxfmm_m2l m2l)
{
    for (size_t i = 0; i < sizeof(c_variants) / sizeof(c_variants[0]); i++)
    {
        if (c_variants[i].m2l == m2l)
        {
            return c_variants[i].block;
        }
    }
    return fmm_m2l_naive;
}

/* Copies multipoles to rows, a row a cell, the empty cell's last. */
static void make_rows(const gmxfmm_plan* plan, const fmm_level* level, const fmm_row_layout* layout)
{
    real* rows = plan->cpu->ops->rows;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int first = 0; first <= level->num; first += VLEN)
    {
        const int lanes = level->num + 1 - first < VLEN ? level->num + 1 - first : VLEN;
        for (int f = 0; f < layout->row; f += VLEN)
        {
            vreal v[VLEN];
            for (int i = 0; i < VLEN; i++)
            {
                const int place = f + i < layout->num ? layout->level[f + i] : -1;
                v[i]            = (vreal){0};
                if (place >= 0)
                {
                    /* strides are whole vectors, so that the last block may be read to its end */
                    v[i] = *(const vreal*)((const real*)level->multipole + (size_t)place * level->stride + first);
                }
            }
            lanes_transpose(v);
            for (int lane = 0; lane < lanes; lane++)
            {
                *(vreal*)(rows + (size_t)(first + lane) * (size_t)layout->row + f) = v[lane];
            }
        }
    }
}

/* Multipoles of targets first .. first+lanes-1, zero in other lanes. */
static void load_targets(const fmm_level* level, int num_coef, int first, int lanes, vreal* m)
{
    for (int f = 0; f < num_coef; f++)
    {
        const real* multipole = (const real*)level->multipole + (size_t)f * level->stride + first;
        for (int lane = 0; lane < VLEN; lane++)
        {
            m[f][lane] = lane < lanes ? multipole[lane] : 0;
        }
    }
}

/*
 * Adds -1/2 sum R (x) F of a block, sum R L being in s->sum[1..3].
 * L2L, later, adds -sum s (x) F for children at s of the targets: for the pair at hand and, since a force is minus the
 * one on the other side, for the pair with target and source exchanged. If translations go to parents, that other pair
 * has a parent in place of the other cell, not in place of this one: half of it is taken back.
 */
static void
add_strain(const fmm_m2l_job* job, const fmm_level* target, int first, int lanes, const fmm_scratch* s, double* strain)
{
    const double scale = job->to_parent ? 0.5 : 1; /* displacements are in the sources' unit */
    load_targets(target, job->ops->num_coef, first, lanes, s->in);
    for (int d = 0; d < 3; d++)
    {
        vreal  force[3];
        double r[3] = {0, 0, 0}, f[3] = {0, 0, 0};
        fmm_expansion_force(job->ops->order, s->in, job->layout->order, s->sum[1 + d], force);
        for (int lane = 0; lane < lanes; lane++)
        {
            for (int e = 0; e < 3; e++)
            {
                f[e] += (double)force[e][lane];
            }
        }
        r[d] = scale;
        fmm_add_symmetric(-0.5, r, f, strain);
    }
    if (job->to_parent)
    {
        /* 2: from the children's unit of energy to the targets' */
        fmm_l2l_strain(job->plan, job->level - 1, first, lanes, job->layout->order, s->sum[0], 0.5 * 2, s, strain);
    }
}

/* One block of targets: their sums to their locals. */
static void do_block(const fmm_m2l_job* job,
                     const fmm_level*   target,
                     int                first,
                     int                lanes,
                     fmm_m2l_block*     block,
                     const fmm_scratch* s,
                     double*            strain)
{
    const fmm_row_layout* layout = job->layout;
    block(job, first, lanes, s);
    for (int i = 0; i < layout->num; i++)
    {
        const int harm = layout->harm[i], place = layout->level[i];
        if (job->to_parent) /* from the children's unit to the parents' */
        {
            for (int t = 0; t < (job->strain ? 4 : 1); t++)
            {
                s->sum[t][harm] *= (real)ldexp(1.0, layout->degree[i] + 1);
            }
        }
        if (place >= 0)
        {
            real* local = (real*)target->local + (size_t)place * target->stride + first;
            for (int lane = 0; lane < lanes; lane++)
            {
                local[lane] += s->sum[0][harm][lane];
            }
        }
    }
    if (strain != NULL)
    {
        add_strain(job, target, first, lanes, s, strain);
    }
}

/* All blocks of up to eight slabs of targets with a job each. */
static void do_jobs(
    gmxfmm_plan* plan, const fmm_m2l_job* jobs, int num_jobs, const fmm_level* target, const int* slab, double* strain)
{
    struct fmm_operators* ops      = plan->cpu->ops;
    fmm_m2l_block* const  block    = variant(plan->far.m2l);
    int                   start[9] = {0};
    for (int c = 0; c < num_jobs; c++)
    {
        start[c + 1] = start[c] + (jobs[c].num_list > 0 ? (slab[c + 1] - slab[c] + VLEN - 1) / VLEN : 0);
    }
    const size_t blocks = (size_t)start[num_jobs];
    memset(ops->partial, 0, FMM_SHARES * sizeof(*ops->partial));
#pragma omp parallel num_threads(plan->num_threads)
    {
        const int         thread = omp_get_thread_num();
        const fmm_scratch s      = fmm_scratch_of(ops, thread);
#pragma omp for schedule(dynamic, 1)
        for (size_t share = 0; share < FMM_SHARES; share++)
        {
            for (size_t b = blocks * share / FMM_SHARES; b < blocks * (share + 1) / FMM_SHARES; b++)
            {
                int c = 0;
                while ((int)b >= start[c + 1])
                {
                    c++;
                }
                const int first = slab[c] + ((int)b - start[c]) * VLEN;
                const int lanes = slab[c + 1] - first < VLEN ? slab[c + 1] - first : VLEN;
                do_block(&jobs[c], target, first, lanes, block, &s, strain != NULL ? ops->partial[share] : NULL);
            }
        }
    }
}

void fmm_m2l(gmxfmm_plan* plan, int level, double* strain)
{
    struct fmm_operators* ops   = plan->cpu->ops;
    const fmm_tree*       tree  = plan->domain.tree;
    const fmm_level *     upper = &plan->cpu->level[level - 1], *lower = &plan->cpu->level[level];
    fmm_m2l_job           jobs[8];
    make_rows(plan, lower, &ops->layout[strain != NULL]);
    memset(jobs, 0, sizeof(jobs));
    for (int c = 0; c < 8; c++)
    {
        fmm_m2l_job* job = &jobs[c];
        job->plan        = plan;
        job->level       = level;
        job->ops         = ops;
        job->upper       = upper;
        job->empty       = lower->num;
        job->parent      = lower->parent;
        job->list        = tree->list[c];
        job->num_list    = tree->num_list[c];
        job->group       = tree->group[c];
        job->num_groups  = tree->num_groups[c];
        job->strain      = strain != NULL;
        job->layout      = &ops->layout[strain != NULL];
    }
    do_jobs(plan, jobs, 8, lower, lower->slab, strain);
    if (strain != NULL)
    {
        fmm_sum_strain(ops, ldexp(1.0, level - tree->depth), strain);
    }
    if (tree->num_to_parent > 0)
    {
        const int slab[2]    = {0, upper->num};
        jobs[0].parent       = NULL;
        jobs[0].to_parent    = 1;
        jobs[0].list         = tree->to_parent;
        jobs[0].num_list     = tree->num_to_parent;
        jobs[0].group        = tree->parent_group;
        jobs[0].num_groups   = tree->num_parent_groups;
        jobs[0].first_vector = tree->num_vectors;
        do_jobs(plan, jobs, 1, upper, slab, strain);
        if (strain != NULL)
        {
            fmm_sum_strain(ops, ldexp(1.0, level - 1 - tree->depth), strain);
        }
    }
}
