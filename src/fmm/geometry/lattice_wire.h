/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lattice sums of a wire, periodic along z alone, in double precision: THEORY (45) to (48). */
#ifndef FMM_LATTICE_WIRE_H
#define FMM_LATTICE_WIRE_H

#include "fmm/geometry/cells.h"
#include "fmm/geometry/lattice.h"
#include "fmm/geometry/lattice_weights.h"

enum
{
    FMM_WIRE_WORK = 2 * (FMM_MAX_SUM_DEGREE + 61) * (FMM_MAX_SUM_DEGREE + 61) +
                    2 * (FMM_MAX_SUM_DEGREE + 1) * (FMM_MAX_SUM_DEGREE + 1)
};

/* S_n^m or Z_n^m, n <= degree, at the vector k of the lattice of cells, over all images along z that are not near:
 * out[(degree+1)^2], unit of length u. Z of degrees 0 and 1 is 0, as it is of no use. Takes some 0.1 ms at degree 40,
 * as few images one by one and the others by an expansion about the axis (Hurwitz' zeta function; Lekner 1991, Physica
 * A 176, 485 has the potential). work: room for FMM_WIRE_WORK. */
void fmm_wire_sums(const fmm_cells* cells, fmm_sum sum, int degree, const int* k, double* work, double* out);

#endif
