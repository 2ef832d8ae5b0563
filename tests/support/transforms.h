/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The library's transforms of many fields (fmm/cpu/convolution/fft.h) with ordinary arrays, in each precision. */
#ifndef FMMTEST_TRANSFORMS_H
#define FMMTEST_TRANSFORMS_H

#ifdef __cplusplus
extern "C"
{
#endif

    /* field[fields][n0 n1 n2], zero beyond used[2] planes and rows, to spectrum[fields][n0 n1 (n2/2+1)][re, im], and
     * from there to back, unnormalised. Returns a gmxfmm_status, or -1 if what is between the fields was written to. */
    int transforms_single(
        const int* n, const int* used, int fields, int threads, const double* field, double* spectrum, double* back);
    int transforms_double(
        const int* n, const int* used, int fields, int threads, const double* field, double* spectrum, double* back);

#ifdef __cplusplus
}
#endif

#endif
