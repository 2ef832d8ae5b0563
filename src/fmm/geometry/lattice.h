/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lattice sums by Ewald's method for any cell (THEORY section 4), in double precision.
 *
 *   S_n^m(R) = sum_t Theta_n^m(R + t),   Z_n^m(R) = sum_t |R + t|^2 Theta_n^m(R + t),
 *
 * over lattice translations t of the box, without those R + t that are near vectors. Z gives the strain derivative of S
 * (virial). Both are wanted as spectra over the grid of cells: with the phase (-i)^n taken off they are real pairs.
 */
#ifndef FMM_LATTICE_H
#define FMM_LATTICE_H

#include "fmm/geometry/cells.h"
#include "fmm/geometry/lattice_weights.h"
#include "fmm/math/level.h"

enum
{
    FMM_MAX_SUM_DEGREE = 2 * GMXFMM_MAX_ORDER + 2 /* of Z, for a virial */
};

typedef struct
{
    double alpha; /* splitting, unit 1/u; 0: open, no reciprocal part */
    double r_max; /* unit u */
    double k_max; /* unit 1/u */
} fmm_ewald;

/* Splitting and cut-offs for sums of degree <= degree with relative truncation error tolerance. */
fmm_ewald fmm_ewald_choose(const fmm_cells* cells, int degree, double tolerance);

/* Lattice vectors (components in cells) of the real-space part, one of each pair k, -k, with k[0] >= 0: *k[*count], to
 * be freed. The value at -k is (-1)^n times that at k; k = 0 comes once and counts half. Errors: MEMORY. */
gmxfmm_status fmm_real_vectors(const fmm_cells* cells, const fmm_ewald* ewald, int (**k)[3], int* count);

/* Weights of Upsilon_n^m at lattice vector k in the real-space part, without (n-m)!(n+m)!: weight[n], n <= degree. */
void fmm_real_weights(
    const fmm_cells* cells, const fmm_ewald* ewald, fmm_sum sum, int degree, const int* k, double* weight);

/* Lattice vectors that fmm_real_block, and frequencies that fmm_reciprocal_block do at once. */
int LEVEL(fmm_lattice_lanes)(void);

/* Real-space part of columns m = columns[0] .. columns[1] - 1 at lattice vectors k[count], at most lanes:
 * out[coefficients of these columns][lanes], aligned to FMM_ALIGN; lanes from count on are zero. inverse: as for
 * fmm_reciprocal_block. */
void LEVEL(fmm_real_block)(const fmm_cells* cells,
                           const fmm_ewald* ewald,
                           fmm_sum          sum,
                           int              degree,
                           const int*       columns,
                           const double*    inverse,
                           const int (*k)[3],
                           int     count,
                           double* out);

/* Bounds of the components of the real-space part's lattice vectors: those within r_max and the near ones are in
 * -range[d] .. range[d]. */
void fmm_real_range(const fmm_cells* cells, const fmm_ewald* ewald, int* range);

/* Of the wave vectors congruent to a frequency, which is taken nearest to zero, those within k_max are at most range[d]
 * reciprocal vectors of the cells from it. */
void fmm_reciprocal_range(const fmm_cells* cells, const fmm_ewald* ewald, int* range);

/* Tables for fmm_reciprocal_block, (degree+1)^2 each. */
void LEVEL(fmm_reciprocal_tables)(fmm_sum sum, int degree, double* inverse, double* factor);

/* Reciprocal part of all coefficients at frequencies[lanes] (numbered row-major over n0, n1, n2/2+1), the phase (-i)^n
 * taken off: out[(degree+1)^2][lanes], aligned to FMM_ALIGN. */
void LEVEL(fmm_reciprocal_block)(const fmm_cells* cells,
                                 const fmm_ewald* ewald,
                                 fmm_sum          sum,
                                 int              degree,
                                 const double*    inverse,
                                 const double*    factor,
                                 const int*       frequencies,
                                 double*          out);

#endif
