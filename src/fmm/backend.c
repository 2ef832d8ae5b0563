/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The backends of this build. */
#include "fmm/backend.h"

#include "fmm/simd_level.h"

/* cpu/backend.c, compiled once per precision and level */
#ifdef FMM_LEVELS
extern const fmm_backend fmm_backend_cpu_f_v2, fmm_backend_cpu_d_v2;
extern const fmm_backend fmm_backend_cpu_f_v3, fmm_backend_cpu_d_v3;
extern const fmm_backend fmm_backend_cpu_f_v4, fmm_backend_cpu_d_v4;
#else
extern const fmm_backend fmm_backend_cpu_f, fmm_backend_cpu_d;
#endif
extern const fmm_backend fmm_backend_treecode; /* treecode/backend.c */
#ifdef FMM_WITH_CUDA
extern const fmm_backend fmm_backend_cuda;          /* src/cuda/backend.c */
extern const fmm_backend fmm_backend_treecode_cuda; /* src/cuda/treecode/backend.c */
#endif

static const fmm_backend* const c_backends[] = {
#ifdef FMM_LEVELS
    &fmm_backend_cpu_f_v2, &fmm_backend_cpu_d_v2,      &fmm_backend_cpu_f_v3,
    &fmm_backend_cpu_d_v3, &fmm_backend_cpu_f_v4,      &fmm_backend_cpu_d_v4,
#else
    &fmm_backend_cpu_f,
    &fmm_backend_cpu_d,
#endif
    &fmm_backend_treecode,
#ifdef FMM_WITH_CUDA
    &fmm_backend_cuda,     &fmm_backend_treecode_cuda,
#endif
};

const fmm_backend*
fmm_find_backend(gmxfmm_method method, gmxfmm_device device, gmxfmm_precision precision, gmxfmm_m2l m2l)
{
    const fmm_backend* found = NULL;
    const int          level = fmm_simd_level();
    for (size_t i = 0; i < sizeof(c_backends) / sizeof(c_backends[0]); i++)
    {
        const fmm_backend* row    = c_backends[i];
        const int          offers = m2l == GMXFMM_M2L_AUTO || (row->m2l >> m2l & 1) != 0;
        if ((row->level == 0 || row->level == level) && row->method == method && row->device == device &&
            (row->precisions >> precision & 1) != 0 && (found == NULL || offers))
        {
            found = row;
            if (offers)
            {
                break;
            }
        }
    }
    return found;
}
