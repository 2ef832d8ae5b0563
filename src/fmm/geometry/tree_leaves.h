/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leaves of several levels (tree.h) from sorted keys, level by level. Each function finds something of one cell alone,
 * so that every thread of a GPU can have one. The cells are those of cpu/octree/adaptive.c, in another order within a
 * child slab: that of their parents in the level above.
 */
#ifndef FMM_TREE_LEAVES_H
#define FMM_TREE_LEAVES_H

#include "fmm/geometry/tree.h"
#include "fmm/geometry/tree_sort.h"

/* Keys of particles [0] and targets [1] along Morton's curve (fmm_morton_key) at the last level, sorted. */
typedef struct
{
    const uint64_t* key[2];
    int             num[2], depth, most; /* depth, most: of fmm_tree */
} fmm_sorted_keys;

/* What a cell holds of the sorted particles [0] and targets [1]. */
typedef struct
{
    int begin[2], end[2];
} fmm_key_range;

/* A level's cells, as near lists are made from them. */
typedef struct
{
    int                  num;
    const fmm_key_range* range;
    const int*           divided; /* whether the cell is not a leaf */
    const int *          parent, *child, *near;
} fmm_leaf_level;

/* Centre of a leaf, in coordinates of fmm_in_cells, and its edge in cells of the last level. */
typedef struct
{
    double centre[3], edge;
} fmm_leaf_place;

/* The first of the sorted keys begin .. end - 1 that is at least `key`; end if there is none. */
static inline FMM_HD int fmm_first_key(const uint64_t* sorted, int begin, int end, uint64_t key)
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

/* Particles and targets in cell k of the 27 about a cell of a level, in the order of fmm_key_block. */
static inline FMM_HD int fmm_count_near_keys(const fmm_sorted_keys* s, int level, uint64_t cell, int k)
{
    const int step[3] = {k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1}, shift = 3 * (s->depth - level);
    int       at[3], sum                                             = 0;
    fmm_morton_place(cell, at);
    for (int d = 0; d < 3; d++)
    {
        at[d] += step[d];
        if (at[d] < 0 || at[d] >= 1 << level)
        {
            return 0;
        }
    }
    const uint64_t first = fmm_morton_key(at) << shift, end = first + ((uint64_t)1 << shift);
    for (int set = 0; set < 2; set++)
    {
        const int begin = fmm_first_key(s->key[set], 0, s->num[set], first);
        sum += fmm_first_key(s->key[set], begin, s->num[set], end) - begin;
    }
    return sum;
}

/* Whether a cell is divided; near: the sum of fmm_count_near_keys. */
static inline FMM_HD int fmm_divides(const fmm_sorted_keys* s, int level, const fmm_key_range* range, int near)
{
    const int here = range->end[0] - range->begin[0] + range->end[1] - range->begin[1];
    return level == 0 || (level < s->depth && fmm_is_divided((size_t)here, (size_t)near, s->most));
}

/* What a child of a cell holds. */
static inline FMM_HD fmm_key_range
fmm_range_of_child(const fmm_sorted_keys* s, int level, uint64_t cell, const fmm_key_range* range, int octant)
{
    const int      shift = 3 * (s->depth - level - 1);
    const uint64_t first = (cell << 3 | (uint64_t)octant) << shift, end = first + ((uint64_t)1 << shift);
    fmm_key_range  child;
    for (int set = 0; set < 2; set++)
    {
        child.begin[set] = fmm_first_key(s->key[set], range->begin[set], range->end[set], first);
        child.end[set]   = fmm_first_key(s->key[set], child.begin[set], range->end[set], end);
    }
    return child;
}

/* Whether a child exists: it holds something or, where nothing is to be held, is the root's first, so that there is a
 * leaf. */
static inline FMM_HD int fmm_has_child(const fmm_sorted_keys* s, const fmm_key_range* child, int level, int octant)
{
    return child->end[0] > child->begin[0] || child->end[1] > child->begin[1] ||
           (s->num[0] + s->num[1] == 0 && level == 0 && octant == 0);
}

/* A number of each leaf that grows along Morton's curve: those of the particles and targets before it. */
static inline FMM_HD int fmm_leaf_mark(const fmm_key_range* range)
{
    return range->begin[0] + range->begin[1];
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

static inline FMM_HD fmm_leaf_place fmm_place_of_leaf(uint64_t cell, int level, int depth)
{
    fmm_leaf_place place;
    int            at[3];
    fmm_morton_place(cell, at);
    place.edge = (double)(1 << (depth - level));
    for (int d = 0; d < 3; d++)
    {
        place.centre[d] = (at[d] + 0.5) * place.edge - 0.5;
    }
    return place;
}

/* Whether a cell near to a leaf, or to a cell that the leaf is in (own = 0), is on the leaf's list: all that is in
 * cells near to its own; and leaves near to the cells that it is in. Without particles it is not. */
static inline FMM_HD int fmm_is_on_list(const fmm_leaf_level* level, int own, int cell)
{
    return cell < level->num && (own || !level->divided[cell]) &&
           level->range[cell].end[0] > level->range[cell].begin[0];
}

/* Whether a cell has an interaction list: of the children of what is near to its parent some are not near to itself. */
static inline FMM_HD int fmm_has_list(const fmm_leaf_level* upper, const fmm_leaf_level* level, int num_near, int cell)
{
    const size_t vectors = (size_t)num_near;
    const int*   above   = upper->near + (size_t)level->parent[cell] * vectors;
    int          sum     = 0;
    for (size_t o = 0; o < vectors; o++)
    {
        for (size_t octant = 0; octant < 8; octant++)
        {
            sum += upper->child[8 * (size_t)above[o] + octant] < level->num;
        }
        sum -= level->near[(size_t)cell * vectors + o] < level->num;
    }
    return sum > 0;
}

#endif
