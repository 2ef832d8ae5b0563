/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* memcpy by several threads. */
#include "fmm/parallel/copy.h"

#include <omp.h>
#include <string.h>

enum
{
    c_piece = 1 << 20, /* bytes */
    c_few   = 8        /* pieces that one thread copies */
};

void fmm_ranks_copy(void* to, const void* from, size_t bytes, int num_ranks)
{
    const int share = omp_get_num_procs() / num_ranks, most = omp_get_max_threads();
    const int threads = share < most ? share : most;
    if (threads <= 1 || bytes < (size_t)c_few * c_piece)
    {
        memcpy(to, from, bytes);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t begin = 0; begin < bytes; begin += c_piece)
    {
        memcpy((char*)to + begin, (const char*)from + begin, bytes - begin < c_piece ? bytes - begin : c_piece);
    }
}
