/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* memcpy by several threads of the host. */
#include "cuda/treecode/copy.h"

#include <string.h>

void treecode_copy(void* to, const void* from, size_t bytes, int num_threads)
{
    const size_t piece = 1 << 18;
#pragma omp parallel for num_threads(num_threads) schedule(static)
    for (size_t begin = 0; begin < bytes; begin += piece)
    {
        memcpy((char*)to + begin, (const char*)from + begin, bytes - begin < piece ? bytes - begin : piece);
    }
}
