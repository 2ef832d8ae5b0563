/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiled for each precision, with a copy of the transforms under names of its own. */
#include "support/transforms.h"

#include "fmm/cpu/convolution/fft.c"

#ifdef FMM_DOUBLE
#    define TRANSFORMS transforms_double
#else
#    define TRANSFORMS transforms_single
#endif

/* In places that are not of a field, or beyond what is used of it: these have no part in anything. */
static const real c_unused = (real)1e10;

static int is_used(const int* n, const int* used, size_t point)
{
    const int row = (int)point / n[2];
    return row / n[1] < used[0] && row % n[1] < used[1];
}

int TRANSFORMS(
    const int* n, const int* used, int fields, int threads, const double* field, double* spectrum, double* back)
{
    gmxfmm_plan*  plan        = calloc(1, sizeof(*plan));
    fmm_fft       fft         = {0};
    gmxfmm_status status      = GMXFMM_ERROR_MEMORY;
    real*         x           = NULL;
    fmm_complex*  f           = NULL;
    int           overwritten = 0;
    if (plan != NULL)
    {
        plan->most_threads = plan->num_threads = threads;
        status                                 = fmm_fft_create(plan, n, fields, &fft);
    }
    if (status == GMXFMM_OK)
    {
        x      = fmm_alloc(plan, ((size_t)fields * fft.field_stride + VLEN) * sizeof(real));
        f      = fmm_alloc(plan, (size_t)fft.num_groups * fft.spectrum_stride * sizeof(fmm_complex));
        status = x != NULL && f != NULL ? GMXFMM_OK : GMXFMM_ERROR_MEMORY;
    }
    if (status == GMXFMM_OK)
    {
        const size_t points = (size_t)fft.num_points, freqs = (size_t)fft.num_freq;
        for (size_t i = 0; i < (size_t)fields * fft.field_stride + VLEN; i++)
        {
            const size_t k = i / fft.field_stride, at = i % fft.field_stride;
            x[i] = k < (size_t)fields && is_used(n, used, at) ? (real)field[k * points + at] : c_unused;
        }
        const fmm_columns columns = fmm_fft_all_columns(&fft, f);
        fmm_fft_planes(&fft, threads, 0, used, x, f);
        fmm_fft_columns(&fft, threads, 0, &columns);
        for (size_t i = 0; i < (size_t)fields * freqs; i++)
        {
            const size_t       k = i / freqs, l = k % VLEN;
            const fmm_complex* at = f + k / VLEN * fft.spectrum_stride + i % freqs;
            spectrum[2 * i]       = (double)at->re[l];
            spectrum[2 * i + 1]   = (double)at->im[l];
        }
        fmm_fft_columns(&fft, threads, 1, &columns);
        fmm_fft_planes(&fft, threads, 1, used, x, f);
        for (size_t i = 0; i < (size_t)fields * points; i++)
        {
            const real v = x[i / points * fft.field_stride + i % points];
            back[i]      = is_used(n, used, i % points) ? (double)v : 0;
        }
        for (size_t i = 0; i < (size_t)fields * fft.field_stride; i++)
        {
            const size_t at = i % fft.field_stride;
            overwritten |= !is_used(n, used, at) && x[i] != c_unused;
        }
    }
    fmm_fft_destroy(&fft);
    free(x);
    free(f);
    free(plan);
    return overwritten ? -1 : (int)status;
}
