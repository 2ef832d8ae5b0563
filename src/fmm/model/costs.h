/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the stages of a step cost on a backend, for the choice of order and cells: only ratios matter. */
#ifndef FMM_COSTS_H
#define FMM_COSTS_H

#include "fmm/gmxfmm.h"

/* In single precision unless said otherwise; unit: any time, the same for all. Coefficient: one of the (p + 1)^2 of an
 * expansion. */
typedef struct fmm_costs
{
    double pair;        /* of P2P, */
    double pair_double; /* and in double precision over that; of leaves of an octree, as all others, 2 */
    double gather;      /* a pair of near cells */
    double cell;        /* the targets of a cell, of P2P */
    double coefficient; /* P2M and L2P: a particle's coefficient */
    /* Transforms both ways: a coefficient of a cell, times log2(cells) and the slowness of their lengths; or whatever
     * these are, with lengths that are a product of two small factors, and with others. */
    double fft_log2, fft_two_steps, fft_other;
    double point;          /* the product: a pair of coefficients of a cell */
    double translation[6]; /* one of an octree over what it costs on the CPU, by gmxfmm_m2l */
    double level;          /* a level of an octree, however few its cells */
    double most_places;    /* in the grid of leaves that may be chosen, occupied or not */
    int    last_order[2];  /* largest order that is chosen, by precision */
    /* A choice by measurement ends after so many steps of the best so far, and so many seconds with so many a particle:
     * it is to cost less than 100 steps, and where making a plan takes longer than that, less than 2 s for a million
     * particles. */
    double choice_steps, choice_seconds, choice_particle;
    int    compiles_orders; /* kernels of an octree are compiled for each order, so that trying one costs seconds */
} fmm_costs;

#endif
