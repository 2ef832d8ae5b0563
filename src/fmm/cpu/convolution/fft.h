/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Discrete Fourier transforms of many real fields on one periodic grid, side by side: one lane is one field. Each
 * direction is transformed in stages of short transforms that leave their results in order (Stockham's; Van Loan 1992,
 * section 1.7). Transforms of one field after the other, as libraries have them, use lanes badly on grids of some ten
 * points a side.
 */
#ifndef FMM_FFT_H
#define FMM_FFT_H

#include "fmm/cpu/state.h"
#include "fmm/math/portable.h"

/* VLEN complex numbers. */
typedef struct
{
    vreal re, im;
} fmm_complex;

enum
{
    FMM_MAX_STAGES = 16
};

typedef struct
{
    int   n, num_stages;
    int   radix[FMM_MAX_STAGES]; /* their product is n */
    real* roots[2];              /* n pairs: cos(2 pi k / n) and -sin of it, forward, or sin, backward */
} fmm_fft_line;

typedef struct
{
    fmm_fft_line direction[3];
    int          used[2];              /* planes, and rows of a plane, from which on fields are zero */
    int          num_points, num_freq; /* n0 n1 n2 and n0 n1 (n2/2+1): of mirror images one frequency is kept */
    int          num_fields, num_groups;
    size_t       field_stride;    /* reals from a field to the next, at least num_points */
    size_t       spectrum_stride; /* complex vectors from a group's spectra to the next's, at least num_freq */
    fmm_complex* scratch;
    size_t       thread_size; /* of scratch for each thread */
} fmm_fft;

/* Spectra at some frequencies f_1, f_2, column first + i of all n_1 (n_2/2 + 1) at i, and at all x_0 or f_0: element
 * group group_stride + x_0 x_stride + i. */
typedef struct
{
    fmm_complex* at;
    int          first, num;
    size_t       x_stride, group_stride;
} fmm_columns;

/* For num_fields fields on a grid of n[3] points, stored one behind the other. Arrays of fields must have room for VLEN
 * reals more. Errors: MEMORY; free with fmm_fft_destroy in any case. */
gmxfmm_status fmm_fft_create(gmxfmm_plan* plan, const int* n, int num_fields, fmm_fft* fft);
void          fmm_fft_destroy(fmm_fft* fft);

/* spectrum[group][frequency], lane l of a group for field VLEN group + l: sum over points x of field(x)
 * e^(-2 pi i sum_d f_d x_d / n_d). Lanes without a field are finite. Fields are not read, but taken as zero, where x_0
 * >= used[0] or x_1 >= used[1], as in the padding of an open system.
 *
 * Forward these are planes along the last two directions, at x_0 = 0 .. n_0 - 1, and then columns along the first, at
 * all frequencies of these two; backward columns and then planes: the unnormalised inverse, num_points times the field,
 * written where it is used. Backward columns and planes overwrite the spectrum. */
void fmm_fft_planes(const fmm_fft* fft, int num_threads, int back, const int* used, real* field, fmm_complex* spectrum);
void fmm_fft_columns(const fmm_fft* fft, int num_threads, int back, const fmm_columns* columns);

/* The planes of units begin .. end - 1: unit num_groups x + group is a group's plane at x. Their spectra are one behind
 * the other from `spectrum` on. */
void fmm_fft_units(const fmm_fft* fft,
                   int            num_threads,
                   int            back,
                   const int*     used,
                   int            begin,
                   int            end,
                   real*          field,
                   fmm_complex*   spectrum);

/* Where all columns are in the spectra of one rank. */
static inline fmm_columns fmm_fft_all_columns(const fmm_fft* fft, fmm_complex* spectrum)
{
    const int num = fft->direction[1].n * (fft->direction[2].n / 2 + 1);
    return (fmm_columns){spectrum, 0, num, (size_t)num, fft->spectrum_stride};
}

#endif
