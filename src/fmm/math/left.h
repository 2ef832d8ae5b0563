/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Particles that have left the cells that they were assigned to. An expansion of order p about the centre of a cell
 * errs by the power p + 1 of a particle's distance |y| from it. So the sum of q^2 w over the particles, w = (|y| /
 * a)^(2 p + 2), over the same sum at assign is the square of what errors have grown by, as far as the particles of a
 * pair of cells are independent of each other. They are not where all move: tests/library/left_cells.cpp.
 */
#ifndef FMM_LEFT_MATH_H
#define FMM_LEFT_MATH_H

#include <math.h>

#include "fmm/math/host_device.h"

/* Square of a in edges: half the diagonal of a cube; and the largest |y|^2 / a^2 that is told from larger ones: such a
 * particle is beyond all limits, and its powers are numbers. */
#define FMM_LEFT_A2 0.75
#define FMM_LEFT_MOST 8.0

enum
{
    FMM_LEFT_BITS = 6 /* of an exponent p + 1 */
};

/* w from |y|^2 / a^2. The number of squarings is fixed, so that vectors of particles go through them together. */
static inline FMM_HD double fmm_left_weight(double ratio, int exponent)
{
    double base = ratio < FMM_LEFT_MOST ? ratio : FMM_LEFT_MOST, w = 1;
    for (int bit = 0; bit < FMM_LEFT_BITS; bit++)
    {
        w *= exponent >> bit & 1 ? base : 1;
        base *= base;
    }
    return w;
}

/* What a step finds. */
typedef struct
{
    double now, then; /* sums of q^2 w, as positions are and as they were at assign */
    double charge2;   /* sum of q^2 */
    double outside;   /* of the worst particle from its cell, in cells; 0: none is outside */
} fmm_left;

/* What is allowed. */
typedef struct
{
    double even;         /* mean of w of particles that are spread evenly: chance may have put few of them at centres */
    double bend;         /* of the growth of errors over that of the sums, where all particles move */
    double most_growth;  /* of errors */
    double most_outside; /* in cells: beyond it near cells do not hold all close pairs */
} fmm_left_limits;

/* What errors are over those after the assignment, by measurement from 0.5 times to about 2 times too large. Charges
 * whose squares are too large for a number have errors of their own. */
static inline FMM_HD double fmm_left_growth(const fmm_left_limits* limits, const fmm_left* left)
{
    const double even = limits->even * left->charge2, before = left->then > even ? left->then : even;
    const double grown = before > 0 && before < INFINITY ? sqrt(left->now / before) : 1;
    return grown > 1 ? grown + limits->bend * (grown - 1) * (grown - 1) : grown;
}

/* Whether results may be worse than promised. */
static inline FMM_HD int fmm_has_left(const fmm_left_limits* limits, const fmm_left* left)
{
    return !(left->outside <= limits->most_outside && fmm_left_growth(limits, left) <= limits->most_growth);
}

/* Distance outside from the largest coordinate in the cell, whose faces are at 1/2: what rounding puts beyond a face is
 * on it. */
static inline FMM_HD double fmm_left_outside(double largest)
{
    return largest > 0.5 + 1e-6 ? largest - 0.5 : 0;
}

#endif
