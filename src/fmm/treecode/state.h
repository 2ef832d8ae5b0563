/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The treecode's parts, and what its stages see of each other. */
#ifndef TREECODE_STATE_H
#define TREECODE_STATE_H

#include "fmm/treecode/clusters.h"
#include "fmm/treecode/dual.h"
#include "fmm/treecode/lists.h"
#include "fmm/treecode/treecode.h"

struct treecode
{
    treecode_options options; /* as chosen, once they were */
    char             message[256];
    int64_t          n; /* sources */
    double*          q; /* n, caller's order */

    int                     level;                          /* of x86-64, whose sums are called (fmm/simd_level.h) */
    int                     assigned, separate;             /* separate: targets are not the sources */
    double                  unit;                           /* length, a power of two: positions below are in it */
    double                  parameter[TREECODE_PARAMETERS]; /* in that unit */
    treecode_clusters       sources, own_targets;
    treecode_lists          lists;
    treecode_lists          point_lists; /* dual traversal */
    double*                 sorted_q;    /* n, order of the sources */
    double*                 charge;      /* modified charges */
    double*                 point;       /* dual traversal: potentials at Chebyshev points of target clusters */
    int64_t                 num_targets;
    double*                 phi;      /* num_targets, order of the targets */
    double*                 slope[3]; /* the field, likewise */
    void*                   scratch;  /* of all threads */
    size_t                  scratch_bytes, charge_bytes;
    treecode_info           info;
    struct treecode_device* device; /* what the stages keep, if anything */
};

static inline const treecode_clusters* treecode_targets(const treecode* t)
{
    return t->separate ? &t->own_targets : &t->sources;
}

/* treecode.c: the stages, for choose.c too. Status as a call's; the message is in t. */
gmxfmm_status treecode_fail(treecode* t, gmxfmm_status status, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
gmxfmm_status      treecode_no_memory(treecode* t);
gmxfmm_status      treecode_trees(treecode* t, const double* x, const double* y); /* for options.leaf */
gmxfmm_status      treecode_reserve(treecode* t);                                 /* for options.degree and the trees */
gmxfmm_status      treecode_gather(treecode* t, const double* x);                 /* sources and their boxes */
gmxfmm_status      treecode_make_lists(treecode* t);               /* for options and trees as they are */
gmxfmm_status      treecode_all_sums(treecode* t, int with_field); /* of all lists */
treecode_criterion treecode_criterion_of(const treecode* t);

/* What a device does in its own way; trees and lists are made on the host. Status as a call's; the message is in t. */
typedef struct treecode_stages
{
    int has_dual; /* dual traversal */

    /* What lasts as long as t, at t->device; destroy is called at any stage. Both NULL: nothing. Errors: MEMORY,
     * DEVICE. */
    gmxfmm_status (*create)(treecode* t);
    void (*destroy)(treecode* t);
    /* Memory for options, trees and lists as they are; NULL: none. Errors: MEMORY, DEVICE, UNSUPPORTED. */
    gmxfmm_status (*reserve)(treecode* t);
    /* Modified charges of the gathered sources, which are taken over, too. Errors: DEVICE. */
    gmxfmm_status (*charges)(treecode* t);
    /* Sums of these lists, into phi and slope. Errors: DEVICE. */
    gmxfmm_status (*sums)(treecode* t, const treecode_lists* lists, gmxfmm_precision precision, int with_field);
} treecode_stages;

extern const treecode_stages treecode_on_cpu; /* treecode.c */

/* choose.c: the error of a model for random charges in a cube; sets what options leave automatic. */
double        treecode_predicted_error(double theta, int degree);
gmxfmm_status treecode_choose(treecode* t, const double* x, const double* y);

/* sums.c, both precisions: bytes of scratch a thread; potentials, and fields if wanted, of all targets into phi and
 * slope, in the unit. No allocation. */
size_t treecode_sums_scratch_f(const treecode* t);
size_t treecode_sums_scratch_d(const treecode* t);
void   treecode_sums_f(treecode* t, const treecode_lists* lists, int with_field);
void   treecode_sums_d(treecode* t, const treecode_lists* lists, int with_field);

#endif
