/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The trees of all ranks on each: what lists are made of, some 70 bytes a cluster. */
#include <stdlib.h>
#include <string.h>

#include "fmm/treecode/ranks/state.h"

/* A cluster on its way. */
typedef struct
{
    double  low[3], high[3];
    int64_t begin, end;
    int     child, num_children;
} record;

/* How large a tree is. */
typedef struct
{
    int num, num_levels;
} tree_size;

static void pack(const treecode_clusters* c, record* records)
{
    for (size_t i = 0; i < (size_t)c->num; i++)
    {
        memcpy(records[i].low, c->low + 3 * i, sizeof(records[i].low));
        memcpy(records[i].high, c->high + 3 * i, sizeof(records[i].high));
        records[i].begin        = c->begin[i];
        records[i].end          = c->end[i];
        records[i].child        = c->child[i];
        records[i].num_children = c->num_children[i];
    }
}

static void unpack(treecode_clusters* c, tree_size size, const record* records)
{
    c->num        = size.num;
    c->num_levels = size.num_levels;
    for (size_t i = 0; i < (size_t)c->num; i++)
    {
        memcpy(c->low + 3 * i, records[i].low, sizeof(records[i].low));
        memcpy(c->high + 3 * i, records[i].high, sizeof(records[i].high));
        c->begin[i]        = records[i].begin;
        c->end[i]          = records[i].end;
        c->child[i]        = records[i].child;
        c->num_children[i] = records[i].num_children;
    }
}

/* Trees of those sizes; records: room for the own one. */
static gmxfmm_status share(treecode* t, const tree_size* sizes, record* own)
{
    treecode_ranks* r         = t->ranks;
    const int       num_ranks = r->ranks->comm.size, rank = r->ranks->comm.rank;
    int64_t*        start = calloc((size_t)num_ranks + 1, sizeof(*start));
    record*         others;
    int             made = start != NULL && own != NULL;
    for (int i = 0; i < num_ranks && made; i++)
    {
        start[i + 1] = start[i] + (i == rank ? 0 : sizes[i].num);
        made         = sizes[i].num == 0 || i == rank ||
               treecode_clusters_reserve(&r->tree[i], 0, sizes[i].num, sizes[i].num_levels, 0) == 0;
    }
    others               = made ? malloc(((size_t)start[num_ranks] + 1) * sizeof(*others)) : NULL;
    gmxfmm_status status = treecode_ranks_agree(t, others != NULL ? GMXFMM_OK : treecode_no_memory(t));
    if (status == GMXFMM_OK)
    {
        pack(&t->sources, own);
        status = fmm_ranks_same_to_all(r->ranks, sizeof(*own), own, t->sources.num, others, start);
    }
    for (int i = 0; i < num_ranks && status == GMXFMM_OK; i++)
    {
        if (i != rank)
        {
            unpack(&r->tree[i], sizes[i], others + start[i]);
        }
    }
    free(start);
    free(others);
    return status;
}

gmxfmm_status treecode_ranks_share_trees(treecode* t)
{
    const fmm_ranks* ranks  = t->ranks->ranks;
    const tree_size  own    = {t->sources.num, t->sources.num_levels};
    tree_size*       sizes  = malloc((size_t)ranks->comm.size * sizeof(*sizes));
    gmxfmm_status    status = treecode_ranks_agree(t, sizes != NULL ? GMXFMM_OK : treecode_no_memory(t));
    status = status == GMXFMM_OK ? fmm_ranks_all_gather(&ranks->comm, &own, sizeof(own), sizes) : status;
    if (status == GMXFMM_OK)
    {
        record* records = malloc(((size_t)own.num + 1) * sizeof(*records));
        status          = share(t, sizes, records);
        free(records);
    }
    free(sizes);
    return status;
}
