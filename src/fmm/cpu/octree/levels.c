/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree of a set of particles with leaves of one level: these from sorted keys, levels above from those below,
 * neighbours from above. */
#include <stdlib.h>
#include <string.h>

#include "fmm/cpu/octree/octree.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/math/harmonics.h"
#include "fmm/math/portable.h"
#include "fmm/geometry/tree_sort.h"
#include "fmm/numbers.h"

static gmxfmm_status out_of_memory(gmxfmm_plan* plan, int num)
{
    return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d cells of an octree", num);
}

/* Room for the lists and expansions of num cells of level l. */
static gmxfmm_status reserve(gmxfmm_plan* plan, int l, int num)
{
    const fmm_tree* tree  = plan->domain.tree;
    fmm_level*      level = &plan->cpu->level[l];
    const size_t    cells = (size_t)num + 1, near = (size_t)tree->num_near;
    const size_t    real_size = fmm_word_of(plan->options.precision);
    const size_t    vector    = FMM_ALIGN / real_size;
    /* an odd number of vectors: columns of a power-of-two stride would share a few cache sets */
    level->num              = num;
    level->stride           = ((cells + vector - 1) / vector | 1) * vector;
    const size_t expansions = (size_t)harm_size(plan->far.order) * level->stride * real_size;
    const int    ok =
        fmm_grow(plan, (void**)&level->at, &level->capacity[0], cells * sizeof(*level->at)) &&
        fmm_grow(plan, (void**)&level->parent, &level->capacity[1], cells * sizeof(int)) &&
        fmm_grow(plan, (void**)&level->child, &level->capacity[2], l < tree->depth ? cells * 8 * sizeof(int) : 0) &&
        fmm_grow(plan, (void**)&level->near, &level->capacity[3], cells * near * sizeof(int)) &&
        fmm_grow(plan, &level->multipole, &level->capacity[4], expansions) &&
        fmm_grow(plan, &level->local, &level->capacity[5], expansions) &&
        fmm_grow(plan, (void**)&level->leaves, &level->capacity[6],
                 tree->most > 0 ? cells * sizeof(*level->leaves) : 0);
    if (!ok)
    {
        return out_of_memory(plan, num);
    }
    /* reads past the last cell give the empty cell */
    memset(level->multipole, 0, expansions);
    memset(level->local, 0, expansions);
    memset(level->at[num], 0, sizeof(*level->at));
    return GMXFMM_OK;
}

/* Number of different keys among items[n], sorted; first[k]: where the k-th begins (first may be NULL). */
static int count_runs(const fmm_keyed* items, size_t n)
{
    int runs = 0;
    for (size_t i = 0; i < n; i++)
    {
        runs += i == 0 || fmm_key_of(&items[i]) != fmm_key_of(&items[i - 1]);
    }
    return runs;
}

/* Level l - 1 from the places of the cells of level l. items and buffer have room for its cells. */
static gmxfmm_status make_parents(gmxfmm_plan* plan, int l, fmm_keyed* items, fmm_keyed* buffer)
{
    fmm_level *lower = &plan->cpu->level[l], *upper = &plan->cpu->level[l - 1];
    for (int c = 0; c < lower->num; c++)
    {
        const int at[3] = {lower->at[c][0] >> 1, lower->at[c][1] >> 1, lower->at[c][2] >> 1};
        items[c]        = fmm_with_key(l == 1 ? fmm_row_key(at) : fmm_cell_key(at), c);
    }
    fmm_sort_keys(items, buffer, (size_t)lower->num, plan->num_threads);
    const gmxfmm_status status = reserve(plan, l - 1, count_runs(items, (size_t)lower->num));
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int i = 0; i < 8 * (upper->num + 1); i++)
    {
        upper->child[i] = lower->num;
    }
    int parent = -1;
    memset(upper->slab, 0, sizeof(upper->slab));
    for (int i = 0; i < lower->num; i++)
    {
        const int     c   = items[i].index;
        const fmm_key key = fmm_key_of(&items[i]);
        if (i == 0 || key != fmm_key_of(&items[i - 1]))
        {
            parent++;
            int octant = 0;
            if (l == 1)
            {
                fmm_row_place(key, upper->at[parent]);
            }
            else
            {
                octant = fmm_cell_place_of(key, upper->at[parent]);
            }
            upper->slab[octant + 1]++;
        }
        const int* at                                    = lower->at[c];
        const int  child                                 = (at[0] & 1) * 4 + (at[1] & 1) * 2 + (at[2] & 1);
        lower->parent[c]                                 = parent;
        upper->child[8 * (size_t)parent + (size_t)child] = c;
    }
    for (int o = 0; o < 8; o++)
    {
        upper->slab[o + 1] += upper->slab[o];
    }
    return GMXFMM_OK;
}

/* Near cells of the roots, by their places. */
static gmxfmm_status root_neighbours(gmxfmm_plan* plan)
{
    const fmm_tree*  tree  = plan->domain.tree;
    fmm_level*       level = &plan->cpu->level[0];
    const int*       n     = tree->roots;
    const fmm_cells* cells = &plan->domain.cells;
    int*             grid  = malloc((size_t)n[0] * (size_t)n[1] * (size_t)n[2] * sizeof(int));
    if (grid == NULL)
    {
        return out_of_memory(plan, n[0] * n[1] * n[2]);
    }
    for (int i = 0; i < n[0] * n[1] * n[2]; i++)
    {
        grid[i] = level->num;
    }
    for (int c = 0; c < level->num; c++)
    {
        grid[(level->at[c][0] * n[1] + level->at[c][1]) * n[2] + level->at[c][2]] = c;
    }
    for (int c = 0; c <= level->num; c++)
    {
        for (int o = 0; o < tree->num_near; o++)
        {
            int k[3], inside = c < level->num;
            for (int d = 0; d < 3; d++)
            {
                k[d] = level->at[c][d] + cells->near[o][d];
                if (plan->domain.periodic[d])
                {
                    k[d] = (k[d] % n[d] + n[d]) % n[d];
                }
                inside = inside && k[d] >= 0 && k[d] < n[d];
            }
            level->near[(size_t)c * (size_t)tree->num_near + (size_t)o] =
                inside ? grid[(k[0] * n[1] + k[1]) * n[2] + k[2]] : level->num;
        }
    }
    free(grid);
    return GMXFMM_OK;
}

/* Near cells of level l >= 1: children of the parent's near cells. */
static void neighbours(gmxfmm_plan* plan, int l)
{
    fmm_level *      level = &plan->cpu->level[l], *upper = &plan->cpu->level[l - 1];
    const fmm_cells* cells = &plan->domain.cells;
    const int        num   = plan->domain.tree->num_near;
    short            from[8][FMM_MAX_NEAR], child[8][FMM_MAX_NEAR];
    for (int octant = 0; octant < 8; octant++)
    {
        for (int o = 0; o < num; o++)
        {
            int up[3];
            child[octant][o] = (short)fmm_near_above(octant, cells->near[o], up);
            from[octant][o]  = (short)fmm_near_index(cells, up);
        }
    }
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int c = 0; c <= level->num; c++)
    {
        const int* at     = level->at[c];
        const int  octant = (at[0] & 1) * 4 + (at[1] & 1) * 2 + (at[2] & 1);
        int*       near   = level->near + (size_t)c * (size_t)num;
        for (int o = 0; o < num; o++)
        {
            near[o] = level->num;
            if (c < level->num)
            {
                const int q = upper->near[(size_t)level->parent[c] * (size_t)num + (size_t)from[octant][o]];
                near[o]     = upper->child[8 * (size_t)q + (size_t)child[octant][o]];
            }
        }
    }
}

gmxfmm_status fmm_level_neighbours(gmxfmm_plan* plan)
{
    const gmxfmm_status status = root_neighbours(plan);
    for (int l = 1; l <= plan->domain.tree->depth && status == GMXFMM_OK; l++)
    {
        neighbours(plan, l);
    }
    return status;
}

gmxfmm_status fmm_level_make(gmxfmm_plan*    plan,
                             int             l,
                             int             num,
                             const fmm_node* nodes,
                             int             below,
                             fmm_keyed*      items,
                             fmm_keyed*      buffer,
                             const int*      above,
                             int*            place)
{
    fmm_level*          level  = &plan->cpu->level[l];
    const gmxfmm_status status = reserve(plan, l, num);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int k = 0; k < num; k++)
    {
        items[k] = fmm_with_key(l == 0 ? 0 : fmm_cell_key(nodes[k].at), k);
    }
    fmm_sort_keys(items, buffer, (size_t)num, plan->num_threads);
    memset(level->slab, 0, sizeof(level->slab));
    for (int i = 0; l < plan->domain.tree->depth && i < 8 * (num + 1); i++)
    {
        level->child[i] = below;
    }
    for (int i = 0; i < num; i++)
    {
        const fmm_node* from   = &nodes[items[i].index];
        const int       octant = l == 0 ? 0 : (from->at[0] & 1) * 4 + (from->at[1] & 1) * 2 + (from->at[2] & 1);
        memcpy(level->at[i], from->at, sizeof(from->at));
        memcpy(level->leaves[i], from->leaves, sizeof(from->leaves));
        level->slab[octant + 1]++;
        place[items[i].index] = i;
        if (l > 0)
        {
            level->parent[i]                                                             = above[from->parent];
            plan->cpu->level[l - 1].child[8 * (size_t)level->parent[i] + (size_t)octant] = i;
        }
    }
    for (int o = 0; o < 8; o++)
    {
        level->slab[o + 1] += level->slab[o];
    }
    return GMXFMM_OK;
}

/* Merges the keys of two sorted sets into the leaves of the tree. */
static gmxfmm_status make_leaves(gmxfmm_plan* plan, const fmm_keyed* a, size_t na, const fmm_keyed* b, size_t nb)
{
    const int  depth  = plan->domain.tree->depth;
    fmm_level* leaves = &plan->cpu->level[depth];
    for (int pass = 0; pass < 2; pass++)
    {
        int     num = 0;
        size_t  i = 0, j = 0;
        fmm_key last = ~(fmm_key)0;
        while (i < na || j < nb)
        {
            const int     from_a = j >= nb || (i < na && fmm_key_of(&a[i]) <= fmm_key_of(&b[j]));
            const fmm_key key    = fmm_key_of(from_a ? &a[i++] : &b[j++]);
            if (key != last && pass == 1)
            {
                leaves->slab[fmm_cell_place_of(key, leaves->at[num]) + 1]++;
            }
            num += key != last;
            last = key;
        }
        if (pass == 0)
        {
            const gmxfmm_status status = reserve(plan, depth, num);
            if (status != GMXFMM_OK)
            {
                return status;
            }
            memset(leaves->slab, 0, sizeof(leaves->slab));
        }
    }
    for (int o = 0; o < 8; o++)
    {
        leaves->slab[o + 1] += leaves->slab[o];
    }
    return GMXFMM_OK;
}

/* Puts sorted particles into the leaves. */
static gmxfmm_status fill_leaves(gmxfmm_plan* plan, fmm_particle_set* p, const fmm_keyed* items)
{
    const fmm_level*    leaves = fmm_last_level(plan);
    const gmxfmm_status status = fmm_particle_set_reserve_cells(plan, p, leaves->num);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    int64_t s = 0;
    for (int c = 0; c < leaves->num; c++)
    {
        p->cell_start[c]  = (int)s;
        const fmm_key key = fmm_cell_key(leaves->at[c]);
        for (; s < p->n && fmm_key_of(&items[s]) == key; s++)
        {
            const int i    = items[s].index;
            p->sorted[s]   = i;
            p->position[i] = (int)s;
            p->cell_of[i]  = c;
        }
    }
    p->cell_start[leaves->num]     = (int)p->n;
    p->cell_start[leaves->num + 1] = (int)p->n;
    return GMXFMM_OK;
}

static gmxfmm_status make_levels(gmxfmm_plan* plan, fmm_keyed* items, fmm_keyed* buffer)
{
    gmxfmm_status status = GMXFMM_OK;
    for (int l = plan->domain.tree->depth; l > 0 && status == GMXFMM_OK; l--)
    {
        status = make_parents(plan, l, items, buffer);
    }
    return status == GMXFMM_OK ? fmm_level_neighbours(plan) : status;
}

gmxfmm_status fmm_even_levels(gmxfmm_plan* plan, fmm_keyed* particles, fmm_keyed* targets, fmm_keyed* buffer)
{
    const size_t  na = (size_t)plan->particles.n, nb = (size_t)plan->particles.num_targets;
    gmxfmm_status status = make_leaves(plan, particles, na, targets, nb);
    status               = status == GMXFMM_OK ? fill_leaves(plan, &plan->cpu->sources, particles) : status;
    status               = status == GMXFMM_OK && nb > 0 ? fill_leaves(plan, &plan->cpu->targets, targets) : status;
    /* the keys have served: there are no more cells than particles */
    return status == GMXFMM_OK ? make_levels(plan, particles, buffer) : status;
}

void fmm_levels_free(gmxfmm_plan* plan)
{
    for (int l = 0; l <= FMM_MAX_LEVEL; l++)
    {
        fmm_level* level     = &plan->cpu->level[l];
        void*      pointer[] = {level->at,        level->parent, level->child, level->near,
                                level->multipole, level->local,  level->leaves};
        for (size_t i = 0; i < sizeof(pointer) / sizeof(pointer[0]); i++)
        {
            free(pointer[i]);
            plan->bytes -= level->capacity[i];
        }
    }
}
