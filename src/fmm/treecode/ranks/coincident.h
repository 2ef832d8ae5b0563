/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who stands at a place where sums are not finite, on several ranks. */
#ifndef TREECODE_RANKS_COINCIDENT_H
#define TREECODE_RANKS_COINCIDENT_H

#include "fmm/treecode/ranks/state.h"

/* The particles that a rank has given, in its order. */
typedef struct
{
    int64_t          n, num_targets;
    const void*      x;    /* 3 n */
    gmxfmm_precision type; /* of x */
    const double*    q;    /* n */
    const double*    target_x;
} treecode_given;

/* The message of an error that was found at a target of rank `who`, t->bad_target there: it names the particles nearest
 * to it. room: 6 numbers a rank. Collective; nothing is allocated. Returns COINCIDENT. */
gmxfmm_status
treecode_ranks_coincident(treecode* t, int who, const treecode_given* given, double* room, char* message, size_t size);

#endif
