/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leaves of several levels (tree.h) from sorted keys, those of all levels at once. Each function finds something of one
 * particle or cell alone, so that every thread of a GPU can have one. A cell that is divided has more pairs than any in
 * it, so that the level of a particle's leaf, found by bisection, tells which cells there are. The cells are those of
 * cpu/octree/adaptive.c, in another order.
 */
#ifndef FMM_TREE_LEAVES_H
#define FMM_TREE_LEAVES_H

#include "fmm/geometry/tree.h"
#include "fmm/geometry/tree_sort.h"

/* Keys of particles [0] and targets [1] along Morton's curve (fmm_morton_key) at the last level, sorted; and of both,
 * the items. Where there is neither, there is one item, with key 0. */
typedef struct
{
    const fmm_key* key[2];
    const fmm_key* item;
    int            num[2], num_items, depth, most; /* depth, most: of fmm_tree */
} fmm_sorted_keys;

/* What a cell holds of the sorted particles [0] and targets [1]. */
typedef struct
{
    int begin[2], end[2];
} fmm_key_range;

/* What is found of the items. A cell belongs to its first item; those of an item are of consecutive levels, down to its
 * leaf. */
typedef struct
{
    const int*      leaf_level; /* of the leaf that the item is in */
    const uint64_t* before;     /* fmm_count_cells of the items before each one, added up */
} fmm_found_items;

/* The cells of all levels, as near lists are made from them: root first; num is the empty cell. */
typedef struct
{
    int                  num;
    const fmm_key_range* range;
    const int*           leaf; /* number of the leaf that the cell is, or -1 */
    const int *          parent, *near;
} fmm_leaf_cells;

/* Centre of a leaf, caller's unit, and its edge in cells of the last level. */
typedef struct
{
    double centre[3], edge;
} fmm_leaf_place;

/* The first of the sorted keys begin .. end - 1 that is at least `key`; end if there is none. */
static inline FMM_HD int fmm_first_key(const fmm_key* sorted, int begin, int end, fmm_key key)
{
    while (begin < end)
    {
        const int middle = begin + (end - begin) / 2;
        if (sorted[middle] < key)
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

/* Key of the cell of a level that an item is in. */
static inline FMM_HD fmm_key fmm_cell_of_item(const fmm_sorted_keys* s, int level, int item)
{
    return s->item[item] >> (3 * (s->depth - level));
}

/* Items in cell k of the 27 about a cell of a level, in the order of fmm_key_block. */
static inline FMM_HD int fmm_count_near_keys(const fmm_sorted_keys* s, int level, fmm_key cell, int k)
{
    const int step[3] = {k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1}, shift = 3 * (s->depth - level);
    int       at[3];
    fmm_morton_place(cell, at);
    for (int d = 0; d < 3; d++)
    {
        at[d] += step[d];
        if (at[d] < 0 || at[d] >= 1 << level)
        {
            return 0;
        }
    }
    const fmm_key first = fmm_morton_key(at) << shift, end = first + ((fmm_key)1 << shift);
    const int     begin = fmm_first_key(s->item, 0, s->num_items, first);
    return fmm_first_key(s->item, begin, s->num_items, end) - begin;
}

/* Whether a cell is divided; here, near: items in it, and the sum of fmm_count_near_keys. */
static inline FMM_HD int fmm_divides(const fmm_sorted_keys* s, int level, int here, int near)
{
    return level == 0 || (level < s->depth && fmm_is_divided((size_t)here, (size_t)near, s->most));
}

/* The first level whose cells have the item as their first one; depth + 1 if there is none. */
static inline FMM_HD int fmm_first_level(const fmm_sorted_keys* s, int item)
{
    int level = 0;
    if (item > 0)
    {
        level = s->depth + 1;
        for (fmm_key differ = s->item[item - 1] ^ s->item[item]; differ != 0; differ >>= 3)
        {
            level--;
        }
    }
    return level;
}

/* The cells that belong to an item and, above them, the leaf that is one of these, if there are any. */
static inline FMM_HD uint64_t fmm_count_cells(const fmm_sorted_keys* s, int item, int leaf_level)
{
    const int num = leaf_level + 1 - fmm_first_level(s, item);
    return num > 0 ? (uint64_t)1 << 32 | (uint64_t)num : 0;
}

static inline FMM_HD int fmm_cells_of(uint64_t count)
{
    return (int)(count & 0x7fffffff);
}

static inline FMM_HD int fmm_leaves_of(uint64_t count)
{
    return (int)(count >> 32);
}

/* Number of a cell as cells are found: item by item, each one's from the upper to the lower. -1: no such cell. */
static inline FMM_HD int fmm_find_cell(const fmm_sorted_keys* s, const fmm_found_items* found, int level, fmm_key cell)
{
    const int item = fmm_first_key(s->item, 0, s->num_items, cell << (3 * (s->depth - level)));
    if (item == s->num_items || fmm_cell_of_item(s, level, item) != cell || found->leaf_level[item] < level)
    {
        return -1;
    }
    return fmm_cells_of(found->before[item]) + level - fmm_first_level(s, item);
}

/* The same of the cell at a near vector from one. */
static inline FMM_HD int
fmm_find_near_cell(const fmm_sorted_keys* s, const fmm_found_items* found, int level, fmm_key cell, const int* vector)
{
    int at[3];
    fmm_morton_place(cell, at);
    for (int d = 0; d < 3; d++)
    {
        at[d] += vector[d];
        if (at[d] < 0 || at[d] >= 1 << level)
        {
            return -1;
        }
    }
    return fmm_find_cell(s, found, level, fmm_morton_key(at));
}

/* What a cell holds. */
static inline FMM_HD fmm_key_range fmm_range_of_cell(const fmm_sorted_keys* s, int level, fmm_key cell)
{
    const int     shift = 3 * (s->depth - level);
    const fmm_key first = cell << shift, end = first + ((fmm_key)1 << shift);
    fmm_key_range range;
    for (int set = 0; set < 2; set++)
    {
        range.begin[set] = fmm_first_key(s->key[set], 0, s->num[set], first);
        range.end[set]   = fmm_first_key(s->key[set], range.begin[set], s->num[set], end);
    }
    return range;
}

/* Cells are sorted by these numbers: by child index, then leaves behind the others, then by level; the root comes
 * first. */
enum
{
    FMM_CELL_LEVELS = FMM_MAX_LEVEL + 2, /* places for levels */
    FMM_CELL_ORDERS = 8 * 2 * FMM_CELL_LEVELS
};

static inline FMM_HD int fmm_cell_order(int octant, int is_leaf, int level)
{
    return (2 * octant + is_leaf) * FMM_CELL_LEVELS + level;
}

static inline FMM_HD int fmm_order_of_cell(int level, fmm_key cell, int leaf_level)
{
    return fmm_cell_order(level > 0 ? (int)(cell & 7) : 0, level == leaf_level, level);
}

/* The leaf of a sorted particle, or target (set 1); range: of all leaves along Morton's curve. Of those that begin
 * where it does the last one alone holds something. */
static inline FMM_HD int fmm_leaf_of(const fmm_key_range* range, int num, int set, int s)
{
    int begin = 0, end = num; /* the first that begins behind it */
    while (begin < end)
    {
        const int middle = begin + (end - begin) / 2;
        if (range[middle].begin[set] <= s)
        {
            begin = middle + 1;
        }
        else
        {
            end = middle;
        }
    }
    return begin - 1;
}

static inline FMM_HD fmm_leaf_place
fmm_place_of_leaf(fmm_key cell, int level, int depth, const double* origin, const double* to_cells)
{
    fmm_leaf_place place;
    double         centre[3];
    int            at[3];
    fmm_morton_place(cell, at);
    place.edge = (double)(1 << (depth - level));
    for (int d = 0; d < 3; d++)
    {
        centre[d] = (at[d] + 0.5) * place.edge;
    }
    fmm_from_cells(origin, to_cells, centre, place.centre);
    return place;
}

/* Whether a cell near to a leaf, or to a cell that the leaf is in (own = 0), is on the leaf's list: all that is in
 * cells near to its own; and leaves near to the cells that it is in. Without particles it is not. */
static inline FMM_HD int fmm_is_on_list(const fmm_leaf_cells* cells, int own, int cell)
{
    return cell < cells->num && (own || cells->leaf[cell] >= 0) &&
           cells->range[cell].end[0] > cells->range[cell].begin[0];
}

#endif
