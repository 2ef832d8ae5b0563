/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fmm/geometry/tree_sort.h"

#include <omp.h>
#include <string.h>

enum
{
    c_digit      = 8, /* bits of a pass */
    c_values     = 1 << c_digit,
    c_maxThreads = 64
};

/* One pass: each thread counts its part, then moves it to where the counts of all say. */
static void sort_pass(const fmm_keyed* from, fmm_keyed* to, size_t n, int shift, int threads)
{
    size_t         count[c_maxThreads][c_values];
    const uint64_t mask = c_values - 1;
#pragma omp parallel num_threads(threads)
    {
        const int    t = omp_get_thread_num(), num = omp_get_num_threads();
        const size_t begin = n * (size_t)t / (size_t)num, end = n * (size_t)(t + 1) / (size_t)num;
        size_t*      mine = count[t];
        memset(mine, 0, sizeof(count[t]));
        for (size_t i = begin; i < end; i++)
        {
            mine[from[i].key >> shift & mask]++;
        }
#pragma omp barrier
#pragma omp          single
        {
            size_t sum = 0;
            for (int v = 0; v < c_values; v++)
            {
                         for (int u = 0; u < num; u++)
                         {
                             const size_t c = count[u][v];
                             count[u][v]    = sum;
                             sum += c;
                }
            }
        }
        for (size_t i = begin; i < end; i++)
        {
                     to[mine[from[i].key >> shift & mask]++] = from[i];
        }
    }
}

/* Radix sort, least digit first; digits that all keys share are passed over. */
void fmm_sort_keys(fmm_keyed* items, fmm_keyed* buffer, size_t n, int num_threads)
{
    uint64_t any = 0, all = ~(uint64_t)0;
    for (size_t i = 0; i < n; i++)
    {
        any |= items[i].key;
        all &= items[i].key;
    }
    const int  threads = n < 10000 ? 1 : num_threads < c_maxThreads ? num_threads : c_maxThreads;
    fmm_keyed *from = items, *to = buffer;
    for (int shift = 0; shift < 64; shift += c_digit)
    {
        if (n > 0 && ((any ^ all) >> shift & (c_values - 1)) != 0)
        {
            sort_pass(from, to, n, shift, threads);
            fmm_keyed* swap = from;
            from            = to;
            to              = swap;
        }
    }
    if (from != items)
    {
        memcpy(items, from, n * sizeof(*items));
    }
}
