/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keys of cells in the order of their level, and sorting by them. */
#ifndef FMM_TREE_SORT_H
#define FMM_TREE_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "fmm/math/host_device.h"

enum
{
    FMM_KEY_BITS   = 30, /* of a coordinate: a level may be 2^30 cells long */
    FMM_LOWER_BITS = 20, /* of these, which are spread at once */
    FMM_ROW_BITS   = 32, /* from one coordinate to the next in keys row by row: whole digits of the sort */
    FMM_OCTANT_BIT = 93  /* of child indices there, above the places of parents, which have 29 bits */
};

/* Keys have 96 bits. */
__extension__ typedef unsigned __int128 fmm_key;

typedef struct fmm_keyed
{
    uint64_t lower; /* bits of the key */
    uint32_t upper;
    int      index;
} fmm_keyed;

static inline fmm_keyed fmm_with_key(fmm_key key, int index)
{
    const fmm_keyed item = {(uint64_t)key, (uint32_t)(key >> 64), index};
    return item;
}

static inline fmm_key fmm_key_of(const fmm_keyed* item)
{
    return (fmm_key)item->upper << 64 | item->lower;
}

static inline fmm_key fmm_row_key(const int* at)
{
    return (fmm_key)at[0] << (2 * FMM_ROW_BITS) | (fmm_key)at[1] << FMM_ROW_BITS | (fmm_key)at[2];
}

/* Child index, then the place of the parent row by row. */
static inline fmm_key fmm_cell_key(const int* at)
{
    const int parent[3] = {at[0] >> 1, at[1] >> 1, at[2] >> 1};
    const int octant    = (at[0] & 1) * 4 + (at[1] & 1) * 2 + (at[2] & 1);
    return (fmm_key)octant << FMM_OCTANT_BIT | fmm_row_key(parent);
}

static inline void fmm_row_place(fmm_key key, int* at)
{
    const int mask = (1 << FMM_KEY_BITS) - 1;
    at[0]          = (int)(key >> (2 * FMM_ROW_BITS)) & ((1 << (FMM_OCTANT_BIT - 2 * FMM_ROW_BITS)) - 1);
    at[1]          = (int)(key >> FMM_ROW_BITS) & mask;
    at[2]          = (int)key & mask;
}

/* Spreads the FMM_LOWER_BITS bits of k to every third place. Each line moves the upper half of each group of bits away
 * from the lower half. */
static inline FMM_HD uint64_t fmm_spread_bits(uint64_t k)
{
    k = (k | k << 32) & 0x001f00000000ffff;
    k = (k | k << 16) & 0x001f0000ff0000ff;
    k = (k | k << 8) & 0x100f00f00f00f00f;
    k = (k | k << 4) & 0x10c30c30c30c30c3;
    return (k | k << 2) & 0x1249249249249249;
}

/* What fmm_spread_bits has spread; other bits are passed over. */
static inline FMM_HD uint64_t fmm_gather_bits(uint64_t k)
{
    k &= 0x1249249249249249;
    k = (k | k >> 2) & 0x10c30c30c30c30c3;
    k = (k | k >> 4) & 0x100f00f00f00f00f;
    k = (k | k >> 8) & 0x001f0000ff0000ff;
    k = (k | k >> 16) & 0x001f00000000ffff;
    return (k | k >> 32) & 0x1fffff;
}

/* FMM_LOWER_BITS bits of each coordinate, from bit `shift` on. */
static inline FMM_HD uint64_t fmm_morton_bits(const int* at, int shift)
{
    const int mask = (1 << FMM_LOWER_BITS) - 1;
    return fmm_spread_bits((uint64_t)(at[0] >> shift & mask)) << 2 |
           fmm_spread_bits((uint64_t)(at[1] >> shift & mask)) << 1 | fmm_spread_bits((uint64_t)(at[2] >> shift & mask));
}

/* Order along Morton's curve. */
static inline FMM_HD fmm_key fmm_morton_key(const int* at)
{
    return (fmm_key)fmm_morton_bits(at, FMM_LOWER_BITS) << (3 * FMM_LOWER_BITS) | fmm_morton_bits(at, 0);
}

/* Place of a cell from its key along Morton's curve. */
static inline FMM_HD void fmm_morton_place(fmm_key key, int* at)
{
    const uint64_t mask  = ((uint64_t)1 << (3 * FMM_LOWER_BITS)) - 1;
    const uint64_t lower = (uint64_t)key & mask, upper = (uint64_t)(key >> (3 * FMM_LOWER_BITS));
    for (int d = 0; d < 3; d++)
    {
        at[d] = (int)(fmm_gather_bits(upper >> (2 - d)) << FMM_LOWER_BITS | fmm_gather_bits(lower >> (2 - d)));
    }
}

/* The first of the sorted keys begin .. end - 1 that is at least `key`; end if there is none. */
static inline size_t fmm_find_key(const fmm_keyed* sorted, size_t begin, size_t end, fmm_key key)
{
    while (begin < end)
    {
        const size_t middle = begin + (end - begin) / 2;
        if (fmm_key_of(&sorted[middle]) < key)
        {
            begin = middle + 1;
        }
        else
        {
            end = middle;
        }
    }
    return begin;
}

/* Sorted keys in the 27 cells about one, row by row, itself in the middle: in cell k those begin[k] .. end[k] - 1. */
typedef struct
{
    size_t begin[27], end[27];
} fmm_key_block;

enum
{
    FMM_BLOCK_MIDDLE = 13
};

/* Where cell k of the block about child `octant` is in the block about its parent; *child: which child it is there. */
static inline int fmm_block_above(int octant, int k, int* child)
{
    const int step[3] = {k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1};
    int       above   = 0;
    *child            = 0;
    for (int d = 0; d < 3; d++)
    {
        const int at = (octant >> (2 - d) & 1) + step[d]; /* -1 to 2 */
        above        = 3 * above + (at + 2) / 2;
        *child       = 2 * *child + (at & 1);
    }
    return above;
}

/* The keys in each cell of a block by their children, whose index is in the three bits from `shift` on: in child c of
 * cell k split[k][c] .. split[k][c + 1] - 1. */
void fmm_split_block(const fmm_keyed* sorted, const fmm_key_block* block, int shift, size_t split[27][9]);

/* The block about child `octant` of the cell in the middle. */
fmm_key_block fmm_child_block(size_t split[27][9], int octant);

/* Keys in the cell in the middle, and in all. */
static inline size_t fmm_in_middle(const fmm_key_block* block)
{
    return block->end[FMM_BLOCK_MIDDLE] - block->begin[FMM_BLOCK_MIDDLE];
}

size_t fmm_in_block(const fmm_key_block* block);

/* Place of a cell from its key; returns its child index. */
static inline int fmm_cell_place_of(fmm_key key, int* at)
{
    const int octant = (int)(key >> FMM_OCTANT_BIT);
    fmm_row_place(key, at);
    for (int d = 0; d < 3; d++)
    {
        at[d] = 2 * at[d] + (octant >> (2 - d) & 1);
    }
    return octant;
}

/* Sorts items[n] by key, equal keys in their order, in buffer[n] too. */
void fmm_sort_keys(fmm_keyed* items, fmm_keyed* buffer, size_t n, int num_threads);

#endif
