/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the stages of the treecode keep for several ranks. A rank has the particles of its part of space, their tree and
 * modified charges, as one rank has all; and of the trees of others what its interaction lists name: the locally
 * essential tree (Warren & Salmon, Supercomputing 1993; Vaughn, Wilson & Krasny 2020, section 3.2). This stands in the
 * arrays of the sources behind what is the rank's own, so that sums know of no ranks. Of t->sources:
 *
 *   clusters   num own ones | num_points of others with modified charges | others, named for their particles alone
 *   particles  n own ones   | imported
 *
 * in the order of ranks, of a rank's in the order of its tree.
 */
#ifndef TREECODE_RANKS_STATE_H
#define TREECODE_RANKS_STATE_H

#include "fmm/parallel/ranks.h"
#include "fmm/treecode/state.h"

/* How many clusters one rank's lists name of another's: for their modified charges; for their particles alone; and of
 * those with particles, which may be parts of each other, those that travel. */
typedef struct
{
    int64_t points, others, whole;
} treecode_named;

/* What a device does in its own way, beside its stages for one rank. */
typedef struct
{
    /* Takes what naming has made: the named clusters, behind the own ones of t->sources, which is a mirror without
     * particles, and t->lists and t->point_lists of the own batches with them alone. Errors: MEMORY, DEVICE. */
    gmxfmm_status (*take_named)(treecode* t);
    /* Whether that is an address of the host. */
    int (*is_on_host)(const treecode* t, const void* array);
} treecode_ranks_device;

typedef struct treecode_ranks
{
    const fmm_ranks*              ranks;
    const treecode_stages*        local;       /* of one rank, which the ones here are made of */
    const treecode_ranks_device*  on_device;   /* NULL: the CPU */
    struct treecode_ranks_memory* memory;      /* of the device */
    treecode_clusters*            tree;        /* size: of the others, without particles, while lists are made */
    treecode_named *              take, *give; /* size: of the others' clusters; of the own ones by them */
    int *    take_cluster, *give_cluster;      /* their numbers on the rank that has them, each rank's as named */
    int64_t *take_start, *give_start;          /* size + 1, in these */
    int64_t* particles_start;                  /* size + 1: imported ones of a rank */
    int64_t *receive_start, *send_start;       /* size + 1, numbers a step */
    double * receive, *send;                   /* of the CPU */
    double   bad_place[3];                     /* of the last COINCIDENT, in the unit; NAN: not known */
    double   time_exchange;                    /* seconds of the last step */
    int      num_reached;                      /* ranks whose devices this one reads, and they its */
    char     note[256];                        /* why a rank of this machine is none of them; or "" */
    size_t   bytes;
} treecode_ranks;

/* Memory of what lists name, and of a step's numbers. */
void treecode_ranks_free_named(treecode_ranks* r);
void treecode_ranks_free_trees(treecode_ranks* r);

/* As fmm_ranks_agree, with the message of t. */
gmxfmm_status treecode_ranks_agree(treecode* t, gmxfmm_status status);

/* trees.c: the trees of the others, at t->ranks->tree. Collective. Errors: MEMORY. */
gmxfmm_status treecode_ranks_share_trees(treecode* t);

/* essential.c: lists of the own batches with the trees of the others behind those with the own one, and who needs what
 * for them. Collective. Errors: MEMORY. */
gmxfmm_status treecode_ranks_name(treecode* t);

/* parcels.c: how many numbers travel in a step, and how many particles are in the clusters that are sent to rank i;
 * memory for them; and what lists name, from the ranks that have it. The last is collective. Errors: MEMORY (the
 * second), COMM. */
void          treecode_ranks_count(treecode* t);
int64_t       treecode_ranks_particles_for(const treecode* t, int i);
gmxfmm_status treecode_ranks_reserve(treecode* t);
gmxfmm_status treecode_ranks_exchange(treecode* t);

/* measure.c: the error, as treecode_error_of has it, of what the lists give at a sample of up to some 2000 targets of
 * all ranks, for sources x[3 t->n] with charges q and targets y[3 m], NULL: the sources, that were assigned. It is the
 * same on all ranks; NAN: charges are at one place, or some rank's targets at charges. Takes a step, and the sums of
 * all sources at the sample. Collective. Errors: MEMORY, those of a device. */
gmxfmm_status
treecode_ranks_measure(treecode* t, const double* x, const double* q, int64_t m, const double* y, double* error);

/* choose.c: treecode_assign of such sources and targets, with what options leave automatic chosen before, and the error
 * measured where that was so or options.measures asks for it. Collective. Errors: as treecode_assign and
 * treecode_ranks_measure. */
gmxfmm_status treecode_ranks_assign(treecode* t, const double* x, const double* q, int64_t m, const double* y);

/* stages.c: those that the CPU and devices have in common, on the stages of one rank: create makes t->ranks, and calls
 * theirs. */
gmxfmm_status treecode_ranks_create(treecode* t, const treecode_stages* local, const treecode_ranks_device* on_device);
void          treecode_ranks_destroy(treecode* t);
gmxfmm_status treecode_ranks_take_charges(treecode* t, const double* q);
gmxfmm_status treecode_ranks_extent(treecode* t, double low[3], double high[3]);
gmxfmm_status treecode_ranks_trees(treecode* t);
gmxfmm_status treecode_ranks_lists(treecode* t);

extern const treecode_stages treecode_on_ranks; /* stages.c: the CPU's */

#endif
