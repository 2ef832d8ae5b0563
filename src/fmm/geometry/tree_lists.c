/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Interaction lists of the octree, the same for all levels: a target's sources are the children of its parent's near
 * cells that are not near to itself (Greengard & Rokhlin 1987), sorted by reference operator (Kohnke et al. 2020).
 */
#include <math.h>
#include <stdlib.h>

#include "fmm/geometry/tree.h"

/* A translation with what it is sorted by. */
typedef struct
{
    fmm_translation t;
    int             truncation, reference;
} sortable;

/* Index of k in table, which holds *num vectors; appended if it is new. */
static int find_vector(int (*table)[3], int* num, const int* k)
{
    for (int v = 0; v < *num; v++)
    {
        if (table[v][0] == k[0] && table[v][1] == k[1] && table[v][2] == k[2])
        {
            return v;
        }
    }
    for (int d = 0; d < 3; d++)
    {
        table[*num][d] = k[d];
    }
    return (*num)++;
}

static void take_signs_off(const int* k, int* reference)
{
    for (int d = 0; d < 3; d++)
    {
        reference[d] = abs(k[d]);
    }
}

/* Displacement in cells from child `source` of the cell at near vector `near` to child `target`. */
static void displacement(const int* near, int source, int target, int* k)
{
    for (int d = 0; d < 3; d++)
    {
        k[d] = (target >> (2 - d) & 1) - (source >> (2 - d) & 1) - 2 * near[d];
    }
}

/* Displacement in half cells from the centre of the same source to the parent's. */
static void parent_displacement(const int* near, int source, int* k)
{
    for (int d = 0; d < 3; d++)
    {
        k[d] = 1 - 2 * (source >> (2 - d) & 1) - 4 * near[d];
    }
}

/* All displacements, in the order in which targets 0..7 have them. */
static void make_vectors(fmm_tree* tree, const fmm_cells* cells)
{
    tree->num_vectors = 0;
    for (int target = 0; target < 8; target++)
    {
        for (int o = 0; o < 8 * tree->num_near; o++)
        {
            int k[3];
            displacement(cells->near[o / 8], o % 8, target, k);
            if (fmm_near_index(cells, k) < 0)
            {
                find_vector(tree->vector, &tree->num_vectors, k);
            }
        }
    }
}

/* Whether child `source` of the cell at near[o] is far from all children of the target's parent, and far enough from
 * the parent itself (eq. 23). */
static int goes_to_parent(const fmm_cells* cells, const int* near, int source, double largest)
{
    int k[3];
    for (int target = 0; target < 8; target++)
    {
        displacement(near, source, target, k);
        if (fmm_near_index(cells, k) >= 0)
        {
            return 0;
        }
    }
    parent_displacement(near, source, k);
    return fmm_bound_ratio(cells, k, 1) <= largest * (1 + 1e-9);
}

static int by_operator(const void* a, const void* b)
{
    const sortable *x = a, *y = b;
    if (x->truncation != y->truncation)
    {
        return y->truncation - x->truncation;
    }
    if (x->reference != y->reference)
    {
        return x->reference - y->reference;
    }
    return x->t.vector != y->t.vector ? x->t.vector - y->t.vector : x->t.near - y->t.near;
}

/* Sorts items[count] and stores them as a list and its groups, both to be freed. */
static gmxfmm_status
store_list(sortable* items, int count, fmm_translation** list, fmm_operator_group** groups, int* num_groups)
{
    qsort(items, (size_t)count, sizeof(*items), by_operator);
    *list       = malloc(((size_t)count + 1) * sizeof(**list));
    *groups     = malloc(((size_t)count + 1) * sizeof(**groups));
    *num_groups = 0;
    if (*list == NULL || *groups == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    for (int i = 0; i < count; i++)
    {
        (*list)[i] = items[i].t;
        if (i == 0 || items[i].reference != items[i - 1].reference)
        {
            const fmm_operator_group group = {i, 0, items[i].reference};
            (*groups)[(*num_groups)++]     = group;
        }
        (*groups)[*num_groups - 1].count++;
    }
    return GMXFMM_OK;
}

/* The list of targets with child index `target`. */
static gmxfmm_status
make_list(fmm_tree* tree, const fmm_cells* cells, int target, int to_parent, double largest, sortable* items)
{
    int count = 0;
    for (int o = 0; o < 8 * tree->num_near; o++)
    {
        int k[3], reference[3];
        displacement(cells->near[o / 8], o % 8, target, k);
        if (fmm_near_index(cells, k) >= 0 || (to_parent && goes_to_parent(cells, cells->near[o / 8], o % 8, largest)))
        {
            continue;
        }
        take_signs_off(k, reference);
        sortable* item   = &items[count++];
        item->t.near     = (short)(o / 8);
        item->t.octant   = (short)(o % 8);
        item->t.vector   = (short)find_vector(tree->vector, &tree->num_vectors, k);
        item->reference  = find_vector(tree->vector, &tree->num_vectors, reference);
        item->truncation = tree->truncation != NULL ? tree->truncation[item->t.vector] : 0;
    }
    tree->num_list[target] = count;
    return store_list(items, count, &tree->list[target], &tree->group[target], &tree->num_groups[target]);
}

/* The list of translations to parents. */
static gmxfmm_status make_parent_list(
    fmm_tree* tree, const fmm_cells* cells, int order, double largest, const fmm_truncation* rule, sortable* items)
{
    int count = 0, vectors = 0;
    for (int o = 0; o < 8 * tree->num_near; o++)
    {
        if (goes_to_parent(cells, cells->near[o / 8], o % 8, largest))
        {
            int k[3], reference[3];
            parent_displacement(cells->near[o / 8], o % 8, k);
            take_signs_off(k, reference);
            sortable* item   = &items[count++];
            item->t.near     = (short)(o / 8);
            item->t.octant   = (short)(o % 8);
            item->t.vector   = (short)find_vector(tree->parent_vector, &vectors, k);
            item->reference  = find_vector(tree->parent_vector, &vectors, reference);
            item->truncation = 0;
            if (tree->truncation != NULL)
            {
                item->truncation = fmm_truncated_order(cells, reference, 1, order, rule);
                tree->truncation[tree->num_vectors + item->t.vector] = (signed char)item->truncation;
            }
        }
    }
    tree->num_to_parent      = count;
    tree->num_parent_vectors = vectors;
    return store_list(items, count, &tree->to_parent, &tree->parent_group, &tree->num_parent_groups);
}

/* Orders of all displacements, mirror images alike. */
static gmxfmm_status make_truncation(fmm_tree* tree, const fmm_cells* cells, int order, const fmm_truncation* rule)
{
    const size_t room = (size_t)tree->num_vectors + 8 * (size_t)tree->num_near;
    tree->truncation  = malloc(room);
    if (tree->truncation == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    for (int pass = 0; pass < 2; pass++)
    {
        for (int v = 0; v < tree->num_vectors; v++)
        {
            int reference[3];
            take_signs_off(tree->vector[v], reference);
            const int r = find_vector(tree->vector, &tree->num_vectors, reference);
            if ((r == v) == (pass == 0))
            {
                tree->truncation[v] = pass == 1 ? tree->truncation[r]
                                                : (signed char)fmm_truncated_order(cells, reference, 0, order, rule);
            }
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_tree_lists(fmm_tree* tree, const fmm_cells* cells, int to_parent, int truncate, int order)
{
    fmm_tree_lists_free(tree);
    tree->num_near    = cells->num_near;
    const size_t most = 8 * (size_t)tree->num_near; /* sources in a parent's neighbourhood */
    make_vectors(tree, cells);
    double largest = 0;
    for (int v = 0; v < tree->num_vectors; v++)
    {
        largest = fmax(largest, fmm_bound_ratio(cells, tree->vector[v], 0));
    }
    const fmm_truncation rule   = {truncate == 2, truncate == 1 ? fmm_worst_error(tree, cells, order) : largest};
    sortable*            items  = malloc((most + 1) * sizeof(*items));
    gmxfmm_status        status = items == NULL ? GMXFMM_ERROR_MEMORY : GMXFMM_OK;
    if (status == GMXFMM_OK && truncate)
    {
        status = make_truncation(tree, cells, order, &rule);
    }
    if (status == GMXFMM_OK && to_parent)
    {
        tree->parent_vector = malloc((most + 1) * sizeof(*tree->parent_vector));
        status              = tree->parent_vector == NULL ? GMXFMM_ERROR_MEMORY
                                                          : make_parent_list(tree, cells, order, largest, &rule, items);
    }
    for (int target = 0; target < 8 && status == GMXFMM_OK; target++)
    {
        status = make_list(tree, cells, target, to_parent, largest, items);
    }
    free(items);
    return status;
}

void fmm_tree_lists_free(fmm_tree* tree)
{
    for (int c = 0; c < 8; c++)
    {
        free(tree->list[c]);
        free(tree->group[c]);
        tree->list[c]       = NULL;
        tree->group[c]      = NULL;
        tree->num_list[c]   = 0;
        tree->num_groups[c] = 0;
    }
    free(tree->to_parent);
    free(tree->parent_vector);
    free(tree->parent_group);
    free(tree->truncation);
    tree->to_parent          = NULL;
    tree->parent_vector      = NULL;
    tree->parent_group       = NULL;
    tree->truncation         = NULL;
    tree->num_to_parent      = 0;
    tree->num_parent_groups  = 0;
    tree->num_parent_vectors = 0;
}
