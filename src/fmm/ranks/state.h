/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The FMM on several ranks. A rank is given particles, and owns cells (cpu/state.h, fmm_shares), whose particles'
 * results it computes. Its own plan has the particles of its cells and of those near to them, and particles that those
 * of its cells exclude, all of which ranks send it that were given them: in an assignment with charges and exclusions,
 * in each step positions. Results go back to these ranks.
 */
#ifndef FMM_RANKS_STATE_H
#define FMM_RANKS_STATE_H

#include <stddef.h>

#include "fmm/gmxfmm.h"
#include "fmm/gmxfmm_parallel.h"

/* An array that grows. */
typedef struct
{
    void*  at;
    size_t bytes;
} fmm_room;

/* What a step gives of each particle. */
enum
{
    FMM_RESULT_FORCE,
    FMM_RESULT_FIELD,
    FMM_RESULT_POTENTIAL,
    FMM_RESULTS
};

/* Items that a rank has for each other one and gets of it, in their order: those for rank r are at list[s], s =
 * start[r] .. start[r + 1] - 1. */
typedef struct
{
    int64_t* start; /* size + 1 */
    fmm_room list;  /* int */
} fmm_lists;

/* Memory of an assignment that the next one has again: that of new pages costs more than what is done with it. */
typedef enum
{
    FMM_KEPT_CELLS,
    FMM_KEPT_SENT,
    FMM_KEPT_RECEIVED,
    FMM_KEPT_LIST,
    FMM_KEPT_LIST_RECEIVED,
    FMM_KEPT_ORDER,
    FMM_KEPT_ROWS,
    FMM_KEPT_PARTNERS,
    FMM_KEPT_CHARGES,
    FMM_KEPT
} fmm_kept;

struct fmm_divided
{
    gmxfmm_plan* own;    /* of the particles that this rank meets, in the order of their numbers */
    int64_t      total;  /* particles of all ranks */
    int64_t*     before; /* size + 1: particles given to the ranks before each */
    int*         id;     /* as set, num_ids; NULL: in the order of ranks */
    int64_t      num_ids;
    int *        excl_start, *excl_list;       /* as set, or NULL */
    int          checks;                       /* numbers or exclusions are new: they are to be checked */
    int64_t      charges_version, box_version; /* that the own plan has */

    /* Of the assignment: given particles that go to each rank, and where those are in the own plan that come of each;
     * given particles whose results come of each, and own ones whose results go to each. */
    fmm_lists gives, meets, waits, returns;
    fmm_room  ids;      /* of the particles in the own plan */
    fmm_room  index_of; /* in the own plan, of each number that is there */
    fmm_room  kept[FMM_KEPT];
    int64_t   num_own; /* particles in own cells */
    double    near_particles;

    /* Of a step */
    fmm_room  x, packed, received, result[FMM_RESULTS];
    uint64_t* asked; /* size: what each rank wants */

    /* Work of the own cells, and the least seconds that it and the rest took in a step since the assignment: in others
     * something else had the core. What is known of the rank from these, for ranges that follow it; 0: nothing. */
    double            work, time_cells, time_rest;
    int64_t           steps;
    double            speed, extra;
    int               learned; /* from so many assignments */
    gmxfmm_ranks_info info;    /* times */
};

/* Makes *room hold num items of `bytes`, contents lost; 0 if there is no memory. */
int fmm_room_renew(fmm_room* room, size_t num, size_t bytes);

gmxfmm_status fmm_no_memory(gmxfmm_plan* plan);

/* The status of the own plan, with its message, as all ranks have it. */
gmxfmm_status fmm_agree_on_own(gmxfmm_plan* plan, gmxfmm_status status);

/* Passes on the box, which is the same on all ranks, to the own plan. Collective. */
gmxfmm_status fmm_follow_box(gmxfmm_plan* plan);

/* Items of `bytes` from packed, as sent has them, to received; those for the rank itself are copied. Counts bytes, and
 * seconds. Collective. */
gmxfmm_status fmm_travel(gmxfmm_plan*   plan,
                         size_t         bytes,
                         const void*    packed,
                         const int64_t* sent,
                         void*          received,
                         const int64_t* comes,
                         double*        seconds);

/* The same without those for the rank itself. */
gmxfmm_status fmm_travel_to_others(gmxfmm_plan*   plan,
                                   size_t         bytes,
                                   const void*    packed,
                                   const int64_t* sent,
                                   void*          received,
                                   const int64_t* comes,
                                   double*        seconds);

/* The assignment of the particles given at x, for which a message of COMM may be missing. Collective. */
gmxfmm_status fmm_ranks_assign(gmxfmm_plan* plan, const void* x);

/* Charges of the given particles to those that meet them. Collective. */
gmxfmm_status fmm_ranks_charges(gmxfmm_plan* plan);

/* Numbers and exclusions of all particles, where they are new. Collective. Errors: OPTION, EXCLUSION, MEMORY. */
gmxfmm_status fmm_ranks_check(gmxfmm_plan* plan);

/* The number of given particle i. */
int fmm_given_id(const gmxfmm_plan* plan, int64_t i);

#endif
