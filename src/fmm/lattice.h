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

#include "cells.h"

typedef enum
{
    FMM_SUM_S = 0,
    FMM_SUM_Z
} fmm_sum;

typedef struct
{
    double alpha; /* splitting, unit 1/u; 0: open, no reciprocal part */
    double r_max; /* unit u */
    double k_max; /* unit 1/u */
} fmm_ewald;

/* Splitting and cut-offs for sums of degree <= degree with relative truncation error tolerance. */
fmm_ewald fmm_ewald_choose(const fmm_cells* cells, int degree, double tolerance);

/* Lattice vectors (components in cells) of the real-space part, one of each pair k, -k: *k[*count], to be freed. The
 * value at -k is (-1)^n times that at k; k = 0 comes once and counts half. Errors: MEMORY. */
gmxfmm_status fmm_real_vectors(const fmm_cells* cells, const fmm_ewald* ewald, int (**k)[3], int* count);

/* Weights of Upsilon_n^m at lattice vector k in the real-space part, without (n-m)!(n+m)!: weight[n], n <= degree. */
void fmm_real_weights(
    const fmm_cells* cells, const fmm_ewald* ewald, fmm_sum sum, int degree, const int* k, double* weight);

/* Real-space part of column m (n = m..degree) at lattice vector k from its weights: re[n-m], and im[n-m] for m > 0. */
void fmm_real_column(
    const fmm_cells* cells, int degree, int m, const int* k, const double* weight, double* re, double* im);

/* Frequencies that fmm_reciprocal_block does at once. */
int fmm_reciprocal_lanes(void);

/* Tables for fmm_reciprocal_block, (degree+1)^2 each. */
void fmm_reciprocal_tables(fmm_sum sum, int degree, double* inverse, double* factor);

/* Reciprocal part of all coefficients at frequencies first, first+1, ... (row-major over n0, n1, n2/2+1), the phase
 * (-i)^n taken off: out[(degree+1)^2][lanes], aligned to FMM_ALIGN. */
void fmm_reciprocal_block(const fmm_cells* cells,
                          const fmm_ewald* ewald,
                          fmm_sum          sum,
                          int              degree,
                          const double*    inverse,
                          const double*    factor,
                          int              first,
                          double*          out);

/* Weight of wave vector k^2 = k2 in the reciprocal part, per cell of the grid. */
static inline double fmm_reciprocal_weight(fmm_sum sum, double k2, double alpha, double cell_volume, double gauss)
{
    const double w = 4 * 3.14159265358979323846 / (cell_volume * k2) * gauss;
    return sum == FMM_SUM_S ? w : w * 2 * (1 / k2 + 1 / (4 * alpha * alpha));
}

#endif
