/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The interface between M2L of a level (m2l.c) and its variants (m2l_*.c): a job of translations, and what does it. */
#ifndef FMM_M2L_JOB_H
#define FMM_M2L_JOB_H

#include "fmm/cpu/octree/operators.h"

/* The translations to some of the cells of a level, as a variant of M2L sees them. */
typedef struct
{
    const gmxfmm_plan*          plan;
    const struct fmm_operators* ops;
    int                         level;     /* of the sources */
    const fmm_level*            upper;     /* whose near cells' children are the sources */
    int                         empty;     /* the sources' level's empty cell */
    int                         to_parent; /* targets are cells of `upper`, else of the level below */
    const int*                  parent;    /* of a target; NULL: itself */
    const fmm_translation*      list;
    int                         num_list;
    const fmm_operator_group*   group;
    int                         num_groups;
    int                         first_vector; /* of the tables in ops, which list->vector = 0 stands for */
    int                         strain;       /* locals of one degree more */
    const fmm_row_layout*       layout;
} fmm_m2l_job;

/* A variant of M2L: sums of the translations to targets first .. first+lanes-1 <= VLEN to scratch->sum. */
typedef void fmm_m2l_block(const fmm_m2l_job* job, int first, int lanes, const fmm_scratch* scratch);

fmm_m2l_block fmm_m2l_naive, fmm_m2l_symmetric, fmm_m2l_rotation;

/* Adds the translations of the multipoles scratch->in along vector[VLEN], degrees <= order, to degrees <= order +
 * job->strain of out; one lane is one translation. */
typedef void
fmm_m2l_kernel(const fmm_m2l_job* job, const fmm_scratch* scratch, const int* vector, int order, vreal* out);

/* A variant made of a kernel: target by target, over the occupied cells of its list. */
void fmm_m2l_by_target(
    const fmm_m2l_job* job, int first, int lanes, const fmm_scratch* scratch, fmm_m2l_kernel* kernel);

/* Source of a target in one translation, job->empty if there is none. */
int fmm_m2l_source(const fmm_m2l_job* job, int target, const fmm_translation* t);

/* Order of translations along displacement v of the tables. */
static inline int fmm_job_order(const fmm_m2l_job* job, int v)
{
    return job->plan->domain.tree->truncation != NULL ? job->plan->domain.tree->truncation[v] : job->ops->order;
}

#endif
