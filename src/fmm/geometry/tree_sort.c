/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A radix sort of the keys of cells, by several threads; and what is near to a cell in keys that are sorted. */
#include "fmm/geometry/tree_sort.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/math/threads.h"

enum
{
    c_digit      = 8, /* bits of a pass */
    c_bits       = 96,
    c_values     = 1 << c_digit,
    c_maxThreads = 64
};

/* Counts of each value by each thread become the places where each puts its first one. */
static void counts_to_places(size_t count[][c_values], int threads)
{
    size_t sum = 0;
    for (int v = 0; v < c_values; v++)
    {
        for (int t = 0; t < threads; t++)
        {
            const size_t c = count[t][v];
            count[t][v]    = sum;
            sum += c;
        }
    }
}

/* The digit of a key from bit `shift` on. */
static inline size_t digit_of(const fmm_keyed* item, int shift)
{
    return (shift < 64 ? item->lower >> shift : item->upper >> (shift - 64)) & (c_values - 1);
}

static void count_part(const fmm_keyed* from, size_t begin, size_t end, int shift, size_t* count)
{
    memset(count, 0, c_values * sizeof(*count));
    for (size_t i = begin; i < end; i++)
    {
        count[digit_of(&from[i], shift)]++;
    }
}

static void move_part(const fmm_keyed* from, fmm_keyed* to, size_t begin, size_t end, int shift, size_t* place)
{
    for (size_t i = begin; i < end; i++)
    {
        to[place[digit_of(&from[i], shift)]++] = from[i];
    }
}

/* One pass: each thread counts its part, then moves it to the places that follow from the counts of all. */
static void sort_pass(const fmm_keyed* from, fmm_keyed* to, size_t n, int shift, size_t count[][c_values], int threads)
{
    if (threads == 1) /* a team of its own would be allocated for it */
    {
        count_part(from, 0, n, shift, count[0]);
        counts_to_places(count, 1);
        move_part(from, to, 0, n, shift, count[0]);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        const int    t     = omp_get_thread_num();
        const int    num   = omp_get_num_threads();
        const size_t begin = n * (size_t)t / (size_t)num;
        const size_t end   = n * (size_t)(t + 1) / (size_t)num;
        count_part(from, begin, end, shift, count[t]);
#pragma omp barrier
        if (t == 0)
        {
            counts_to_places(count, num);
        }
#pragma omp barrier
        move_part(from, to, begin, end, shift, count[t]);
    }
}

/* Radix sort, least digit first; digits that all keys share are passed over. */
void fmm_sort_keys(fmm_keyed* items, fmm_keyed* buffer, size_t n, int num_threads)
{
    fmm_key any = 0, all = ~(fmm_key)0;
    for (size_t i = 0; i < n; i++)
    {
        any |= fmm_key_of(&items[i]);
        all &= fmm_key_of(&items[i]);
    }
    size_t own[1][c_values], (*count)[c_values] = own;
    int    threads = n < FMM_FEW_PARTICLES ? 1 : num_threads < c_maxThreads ? num_threads : c_maxThreads;
    if (threads > 1)
    {
        count = malloc((size_t)threads * sizeof(*count));
    }
    if (count == NULL) /* one thread does it, too */
    {
        count   = own;
        threads = 1;
    }
    fmm_keyed *from = items, *to = buffer;
    for (int shift = 0; shift < c_bits; shift += c_digit)
    {
        if (n > 0 && ((any ^ all) >> shift & (c_values - 1)) != 0)
        {
            sort_pass(from, to, n, shift, count, threads);
            fmm_keyed* swap = from;
            from            = to;
            to              = swap;
        }
    }
    if (from != items)
    {
        memcpy(items, from, n * sizeof(*items));
    }
    if (count != own)
    {
        free(count);
    }
}

void fmm_split_block(const fmm_keyed* sorted, const fmm_key_block* block, int shift, size_t split[27][9])
{
    for (int k = 0; k < 27; k++)
    {
        const size_t begin = block->begin[k], end = block->end[k];
        /* of child 0 */
        const fmm_key first = begin < end ? fmm_key_of(&sorted[begin]) >> (shift + 3) << (shift + 3) : 0;
        split[k][0]         = begin;
        for (int c = 1; c < 9; c++)
        {
            split[k][c] = c == 8 || begin == end
                              ? end
                              : fmm_find_key(sorted, split[k][c - 1], end, first + ((fmm_key)c << shift));
        }
    }
}

fmm_key_block fmm_child_block(size_t split[27][9], int octant)
{
    fmm_key_block block;
    for (int k = 0; k < 27; k++)
    {
        int       child;
        const int above = fmm_block_above(octant, k, &child);
        block.begin[k]  = split[above][child];
        block.end[k]    = split[above][child + 1];
    }
    return block;
}

size_t fmm_in_block(const fmm_key_block* block)
{
    size_t sum = 0;
    for (int k = 0; k < 27; k++)
    {
        sum += block->end[k] - block->begin[k];
    }
    return sum;
}
