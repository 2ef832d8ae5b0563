/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* memcpy by several threads of the host. */
#ifndef CUDA_TREECODE_COPY_H
#define CUDA_TREECODE_COPY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C"
{
#endif

    /* One thread alone has a sixth of the bandwidth of the bus. */
    void treecode_copy(void* to, const void* from, size_t bytes, int num_threads);

#ifdef __cplusplus
}
#endif

#endif
