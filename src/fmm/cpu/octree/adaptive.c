/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An octree with leaves of several levels: cells from the root down, along Morton's curve, divided while they have too
 * many near pairs; then each level in its own order, and the runs of leaves that are near to each leaf. */
#include <stdlib.h>
#include <string.h>

#include "fmm/cpu/octree/octree.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/geometry/tree_sort.h"

/* What the children of a cell are found in. A tree may have so many levels that they are not to be on the stack. */
typedef struct
{
    size_t        split[2][27][9];
    fmm_key_block child[2];
} level_room;

/* Keys of the particles and of the targets, and what has been found in them: at first numbers, then all. */
typedef struct
{
    const fmm_keyed*  items[2];
    fmm_particle_set* set[2];
    const fmm_tree*   tree;
    fmm_leaves*       leaves;
    int               num[FMM_MAX_LEVEL + 1], num_leaves;
    fmm_node*         nodes[FMM_MAX_LEVEL + 1]; /* along Morton's curve; NULL: only numbers */
    level_room*       rooms;                    /* one a level */
} finder;

static void add_leaf(finder* f, int level, int which, const fmm_key_block block[2])
{
    if (f->nodes[0] != NULL)
    {
        f->leaves->level[f->num_leaves] = level;
        f->leaves->cell[f->num_leaves]  = which;
        for (int set = 0; set < 2; set++)
        {
            if (f->set[set] != NULL)
            {
                f->set[set]->cell_start[f->num_leaves] = (int)block[set].begin[FMM_BLOCK_MIDDLE];
            }
        }
    }
    f->num_leaves++;
}

/* The cell at a place of a level, with its particles and those near to it, and all below it. */
static void visit(finder* f, int level, const int* at, int parent, const fmm_key_block block[2])
{
    const int    which = f->num[level]++, first_leaf = f->num_leaves;
    const size_t here = fmm_in_middle(&block[0]) + fmm_in_middle(&block[1]);
    const size_t near = fmm_in_block(&block[0]) + fmm_in_block(&block[1]);
    if (level > 0 && (level == f->tree->depth || !fmm_is_divided(here, near, f->tree->most)))
    {
        add_leaf(f, level, which, block);
    }
    else
    {
        level_room* room = &f->rooms[level];
        for (int set = 0; set < 2; set++)
        {
            fmm_split_block(f->items[set], &block[set], 3 * (f->tree->depth - level - 1), room->split[set]);
        }
        for (int octant = 0; octant < 8; octant++)
        {
            int place[3];
            room->child[0] = fmm_child_block(room->split[0], octant);
            room->child[1] = fmm_child_block(room->split[1], octant);
            for (int d = 0; d < 3; d++)
            {
                place[d] = 2 * at[d] + (octant >> (2 - d) & 1);
            }
            if (fmm_in_middle(&room->child[0]) + fmm_in_middle(&room->child[1]) > 0)
            {
                visit(f, level + 1, place, which, room->child);
            }
        }
    }
    if (f->nodes[0] != NULL)
    {
        const fmm_node found   = {{at[0], at[1], at[2]}, parent, {first_leaf, f->num_leaves}};
        f->nodes[level][which] = found;
    }
}

static void find(finder* f, const gmxfmm_plan* plan)
{
    const int     root[3]          = {0, 0, 0};
    fmm_key_block block[2]         = {{{0}, {0}}, {{0}, {0}}};
    block[0].end[FMM_BLOCK_MIDDLE] = (size_t)plan->particles.n;
    block[1].end[FMM_BLOCK_MIDDLE] = (size_t)plan->particles.num_targets;
    memset(f->num, 0, sizeof(f->num));
    f->num_leaves = 0;
    if (plan->particles.n + plan->particles.num_targets > 0)
    {
        visit(f, 0, root, 0, block);
    }
}

/* Leaves of level l are told their cells' indices, and sorted by level. */
static void number_leaves(fmm_leaves* leaves, int l, const int* place, int* next)
{
    leaves->start[l] = *next;
    for (int c = 0; c < leaves->num; c++)
    {
        if (leaves->level[c] == l)
        {
            leaves->cell[c]             = place[leaves->cell[c]];
            leaves->by_level[(*next)++] = c;
        }
    }
    leaves->start[l + 1] = *next;
}

static int is_leaf(const fmm_level* level, int cell, int l, const fmm_leaves* leaves)
{
    return level->leaves[cell][1] == level->leaves[cell][0] + 1 && leaves->level[level->leaves[cell][0]] == l;
}

/* Runs of leaves near to leaf c, counted or, with runs, listed: all that is in cells near to its own; and leaves near
 * to the cells that it is in. */
static int near_runs(const gmxfmm_plan* plan, int c, int (*runs)[2])
{
    const fmm_leaves* leaves   = &plan->cpu->leaves;
    const int         num_near = plan->domain.tree->num_near;
    int               num = 0, cell = leaves->cell[c];
    for (int l = leaves->level[c]; l > 0; l--)
    {
        const fmm_level* level = &plan->cpu->level[l];
        for (int o = 0; o < num_near; o++)
        {
            const int other = level->near[(size_t)cell * (size_t)num_near + (size_t)o];
            if (other < level->num && (l == leaves->level[c] || is_leaf(level, other, l, leaves)))
            {
                if (runs != NULL)
                {
                    memcpy(runs[num], level->leaves[other], sizeof(runs[num]));
                }
                num++;
            }
        }
        cell = level->parent[cell];
    }
    return num;
}

static gmxfmm_status make_near(gmxfmm_plan* plan)
{
    fmm_leaves*  leaves = &plan->cpu->leaves;
    const size_t starts = ((size_t)leaves->num + 1) * sizeof(int);
    if (!fmm_grow(plan, (void**)&leaves->near_start, &leaves->capacity[3], starts))
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d leaves", leaves->num);
    }
    leaves->near_start[0] = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int c = 0; c < leaves->num; c++)
    {
        leaves->near_start[c + 1] = near_runs(plan, c, NULL);
    }
    for (int c = 0; c < leaves->num; c++)
    {
        leaves->near_start[c + 1] += leaves->near_start[c];
    }
    if (!fmm_grow(plan, (void**)&leaves->near, &leaves->capacity[4],
                  (size_t)leaves->near_start[leaves->num] * sizeof(*leaves->near)))
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for the near lists of %d leaves", leaves->num);
    }
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int c = 0; c < leaves->num; c++)
    {
        near_runs(plan, c, leaves->near + leaves->near_start[c]);
    }
    return GMXFMM_OK;
}

/* Sorted particles and where their leaves end; where these begin is there already. */
static void fill_set(const fmm_keyed* items, int num_leaves, fmm_particle_set* p)
{
    p->cell_start[num_leaves] = p->cell_start[num_leaves + 1] = (int)p->n;
    for (int c = 0; c < num_leaves; c++)
    {
        for (int s = p->cell_start[c]; s < p->cell_start[c + 1]; s++)
        {
            const int i    = items[s].index;
            p->sorted[s]   = i;
            p->position[i] = s;
            p->cell_of[i]  = c;
        }
    }
}

static gmxfmm_status reserve_leaves(gmxfmm_plan* plan, finder* f)
{
    fmm_leaves*  leaves = f->leaves;
    const size_t bytes  = ((size_t)f->num_leaves + 1) * sizeof(int);
    leaves->num         = f->num_leaves;
    int ok              = fmm_grow(plan, (void**)&leaves->level, &leaves->capacity[0], bytes) &&
             fmm_grow(plan, (void**)&leaves->cell, &leaves->capacity[1], bytes) &&
             fmm_grow(plan, (void**)&leaves->by_level, &leaves->capacity[2], bytes);
    gmxfmm_status status = ok ? GMXFMM_OK : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for leaves");
    for (int set = 0; set < 2 && status == GMXFMM_OK; set++)
    {
        status = f->set[set] != NULL ? fmm_particle_set_reserve_cells(plan, f->set[set], f->num_leaves) : GMXFMM_OK;
    }
    return status;
}

/* All levels of what was found the second time; memory: rooms for the nodes, keys and places of any level. */
static gmxfmm_status
make_levels(gmxfmm_plan* plan, finder* f, fmm_node* nodes, fmm_keyed* items, fmm_keyed* buffer, int* places, int most)
{
    const int     depth  = f->tree->depth;
    gmxfmm_status status = reserve_leaves(plan, f);
    int           next   = 0;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int l = 0; l <= depth; l++)
    {
        f->nodes[l] = nodes;
        nodes += f->num[l];
    }
    find(f, plan);
    for (int set = 0; set < 2; set++)
    {
        if (f->set[set] != NULL)
        {
            fill_set(f->items[set], f->num_leaves, f->set[set]);
        }
    }
    for (int l = 0; l <= depth && status == GMXFMM_OK; l++)
    {
        int *     place = places + (l & 1 ? most : 0), *above = places + (l & 1 ? 0 : most);
        const int below = l < depth ? f->num[l + 1] : 0;
        status          = fmm_level_make(plan, l, f->num[l], f->nodes[l], below, items, buffer, above, place);
        number_leaves(f->leaves, l, place, &next);
    }
    status = status == GMXFMM_OK ? fmm_level_neighbours(plan) : status;
    return status == GMXFMM_OK ? make_near(plan) : status;
}

gmxfmm_status fmm_adaptive_levels(gmxfmm_plan* plan, const fmm_keyed* particles, const fmm_keyed* targets)
{
    finder f   = {.items  = {particles, targets},
                  .set    = {&plan->cpu->sources, plan->particles.num_targets > 0 ? &plan->cpu->targets : NULL},
                  .tree   = plan->domain.tree,
                  .leaves = &plan->cpu->leaves};
    size_t all = 1, most = 1;
    f.rooms = malloc((size_t)(f.tree->depth + 1) * sizeof(*f.rooms));
    if (f.rooms == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for the levels of an octree");
    }
    find(&f, plan);
    for (int l = 0; l <= f.tree->depth; l++)
    {
        all += (size_t)f.num[l];
        most = (size_t)f.num[l] > most ? (size_t)f.num[l] : most;
    }
    fmm_node*     nodes  = malloc(all * sizeof(*nodes));
    fmm_keyed*    items  = malloc(2 * most * sizeof(*items));
    int*          places = malloc(2 * most * sizeof(*places));
    gmxfmm_status status = nodes == NULL || items == NULL || places == NULL
                               ? fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %zu cells", all)
                               : make_levels(plan, &f, nodes, items, items + most, places, (int)most);
    free(f.rooms);
    free(nodes);
    free(items);
    free(places);
    return status;
}

void fmm_leaves_free(gmxfmm_plan* plan)
{
    fmm_leaves* leaves    = &plan->cpu->leaves;
    void*       pointer[] = {leaves->level, leaves->cell, leaves->by_level, leaves->near_start, leaves->near};
    for (size_t i = 0; i < sizeof(pointer) / sizeof(pointer[0]); i++)
    {
        free(pointer[i]);
        plan->bytes -= leaves->capacity[i];
    }
}
