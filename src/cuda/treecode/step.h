/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A step of the treecode on the caller's stream, for backend.c. */
#ifndef CUDA_TREECODE_STEP_H
#define CUDA_TREECODE_STEP_H

#include "fmm/treecode/state.h"

#ifdef __cplusplus
extern "C"
{
#endif

    /* Memory of the device, of the array type; NULL leaves a thing out. */
    typedef struct
    {
        void *  potential, *field, *force;
        double* energy; /* 2: zero, since near and far are not told apart, and all of it */
        int*    status; /* a gmxfmm_status: OK, POSITION or COINCIDENT */
        void*   stream;
        void*   arrays_done; /* a cudaEvent_t, or NULL */
    } TreecodeStep;

    /* Makes *x, that many bytes, an address of the host, if it is not: memory of t, until the next call. Errors:
     * MEMORY, DEVICE. */
    gmxfmm_status treecode_device_on_host(treecode* t, const void** x, size_t bytes);

    /* All stages for positions x[3n] of the device: nothing is allocated, and nobody waits. Errors: DEVICE. */
    gmxfmm_status treecode_device_enqueue(treecode* t, const void* x, const TreecodeStep* step);

#ifdef __cplusplus
}
#endif

#endif
