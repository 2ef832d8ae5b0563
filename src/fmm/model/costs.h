/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Costs of the stages of a step on a backend, for the choice of order and cells; only ratios matter. */
#ifndef FMM_COSTS_H
#define FMM_COSTS_H

#include "fmm/gmxfmm.h"

/* In single precision unless said otherwise; unit: any time, the same for all. Coefficient: one of the (p + 1)^2 of an
 * expansion. */
typedef struct fmm_costs
{
    double pair;        /* of P2P */
    double pair_double; /* times this in double precision; other costs times 2 */
    double gather;      /* per pair of near cells */
    double cell;        /* of P2P, per cell with targets */
    double coefficient; /* P2M and L2P: per particle and coefficient */
    /* Both transforms, per cell and coefficient: a part that is multiplied by log2(cells) and the slowness of the
     * grid's lengths, and a part independent of these, for lengths that are products of two small factors and for
     * others. */
    double fft_log2, fft_two_steps, fft_other;
    double point;          /* the product: per cell and pair of coefficients */
    double translation[6]; /* one of an octree, relative to its cost on the CPU, by gmxfmm_m2l */
    double level;          /* per level of an octree, however few its cells */
    double most_places;    /* most places, occupied or not, in a grid of leaves that may be chosen */
    int    last_order[2];  /* highest order that is chosen, by precision */
    /* A choice by measurement ends after the time of choice_steps steps with the best settings so far, plus
     * choice_seconds, plus choice_particle for each particle (s). It is to take less than 100 steps or, where making a
     * plan takes longer than these, less than 2 s for a million particles. */
    double choice_steps, choice_seconds, choice_particle;
    int    adapts;       /* leaves of an open octree may be of several levels */
    int    skips_far;    /* an open system of one cell has no far field. In single precision it is chosen as if it had:
                          * in long systems the cell is long, and positions in it are rounded */
    int compiles_orders; /* kernels of an octree are compiled for each order, so that trying an order costs seconds */
} fmm_costs;

#endif
