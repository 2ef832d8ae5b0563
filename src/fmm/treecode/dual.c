/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Interaction lists by dual traversal: pairs of a target cluster and a source cluster, opened until they are far. */
#include "fmm/treecode/dual.h"

#include <stdlib.h>
#include <string.h>

#include "fmm/treecode/boxes.h"

/* Clusters that interact, in the order in which pairs are found. */
typedef struct
{
    int target, source;
} pair;

typedef struct
{
    pair*   pairs;
    int64_t num, room;
} pair_list;

static int push(pair_list* list, int target, int source)
{
    if (list->num == list->room)
    {
        const int64_t room   = 2 * list->room + 1024;
        pair*         memory = realloc(list->pairs, (size_t)room * sizeof(*memory));
        if (memory == NULL)
        {
            return 0;
        }
        list->pairs = memory;
        list->room  = room;
    }
    const pair p             = {target, source};
    list->pairs[list->num++] = p;
    return 1;
}

/* What becomes of a pair. A cluster of no more particles than points takes part with its particles. */
static treecode_decision decide(const treecode_criterion* c, pair p, int64_t points)
{
    const treecode_clusters *t = c->targets, *s = c->sources;
    double                   x[3], y[3], half[3];
    treecode_box(t, p.target, x, half);
    const double rx = treecode_radius(half, c->widened);
    treecode_box(s, p.source, y, half);
    const double ry = treecode_radius(half, c->widened);
    return treecode_decide(
        treecode_is_far(c->theta, x, rx, y, ry), rx >= ry, t->end[p.target] - t->begin[p.target] <= points,
        s->end[p.source] - s->begin[p.source] <= points, t->num_children[p.target] > 0, s->num_children[p.source] > 0);
}

/* All pairs of clusters by what becomes of them. 0 or -1. */
static int traverse(const treecode_criterion* c, pair_list found[TREECODE_NUM_LISTS])
{
    const treecode_clusters *t = c->targets, *s = c->sources;
    const int64_t            edge = c->degree + 1, points = edge * edge * edge;
    pair_list                stack = {0};
    int                      made  = t->num == 0 || s->num == 0 || push(&stack, 0, 0);
    while (stack.num > 0 && made)
    {
        const pair              p    = stack.pairs[--stack.num];
        const treecode_decision kind = decide(c, p, points);
        if (kind < TREECODE_NUM_LISTS)
        {
            made = push(&found[kind], p.target, p.source);
        }
        else if (kind == TREECODE_OPEN_TARGETS)
        {
            for (int k = t->num_children[p.target] - 1; k >= 0 && made; k--)
            {
                made = push(&stack, t->child[p.target] + k, p.source);
            }
        }
        else
        {
            for (int k = s->num_children[p.source] - 1; k >= 0 && made; k--)
            {
                made = push(&stack, p.target, s->child[p.source] + k);
            }
        }
    }
    free(stack.pairs);
    return made ? 0 : -1;
}

/* Pairs as rows of sources, one for each target cluster: start[num + 1], *list; 0 or -1. */
static int to_rows(const pair_list* found, int num, int64_t* start, int** list)
{
    *list = malloc(((size_t)found->num + 1) * sizeof(int));
    memset(start, 0, ((size_t)num + 1) * sizeof(int64_t));
    if (*list == NULL)
    {
        return -1;
    }
    for (int64_t i = 0; i < found->num; i++)
    {
        start[found->pairs[i].target + 1]++;
    }
    for (int t = 0; t < num; t++)
    {
        start[t + 1] += start[t];
    }
    /* from the end, so that starts come out right and rows in order */
    for (int64_t i = found->num - 1; i >= 0; i--)
    {
        (*list)[--start[found->pairs[i].target + 1]] = found->pairs[i].source;
    }
    memmove(start, start + 1, (size_t)num * sizeof(int64_t));
    start[num] = found->num;
    return 0;
}

/* The lists of batches: rows of the batch's own cluster and, with `up`, of those above it. 0 or -1. */
static int collect(
    const treecode_lists* lists, const int* up, const int64_t* row_start, const int* row, int64_t* start, int** list)
{
    start[0] = 0;
    for (int b = 0; b < lists->num; b++)
    {
        start[b + 1] = start[b];
        for (int t = lists->cluster[b]; t >= 0; t = up != NULL ? up[t] : -1)
        {
            start[b + 1] += row_start[t + 1] - row_start[t];
        }
    }
    *list = malloc(((size_t)start[lists->num] + 1) * sizeof(int));
    for (int b = 0; b < lists->num && *list != NULL; b++)
    {
        int64_t to = start[b];
        for (int t = lists->cluster[b]; t >= 0; t = up != NULL ? up[t] : -1)
        {
            const int64_t num = row_start[t + 1] - row_start[t];
            memcpy(*list + to, row + row_start[t], (size_t)num * sizeof(int));
            to += num;
        }
    }
    return *list != NULL ? 0 : -1;
}

/* Evaluations of the kernel: points a source where approximated. */
static double count_pairs(const treecode_lists* lists, const treecode_clusters* sources, int64_t points)
{
    double pairs = 0;
    for (int b = 0; b < lists->num; b++)
    {
        double num_sources = (double)(lists->approximated_start[b + 1] - lists->approximated_start[b]) * (double)points;
        for (int64_t i = lists->direct_start[b]; i < lists->direct_start[b + 1]; i++)
        {
            num_sources += (double)(sources->end[lists->direct[i]] - sources->begin[lists->direct[i]]);
        }
        pairs += num_sources * (double)(lists->end[b] - lists->begin[b]);
    }
    return pairs;
}

/* Lists of the clusters in batches->cluster from the rows of two kinds. */
static int fill(treecode_lists*           lists,
                const treecode_criterion* c,
                const pair_list*          direct,
                const pair_list*          approximated,
                const int*                up)
{
    const size_t  num    = (size_t)c->targets->num;
    int64_t*      start  = malloc((num + 1) * sizeof(int64_t));
    int*          row    = NULL;
    const int64_t edge   = c->degree + 1;
    int           failed = start == NULL || to_rows(direct, c->targets->num, start, &row) ||
                 collect(lists, up, start, row, lists->direct_start, &lists->direct);
    free(row);
    row    = NULL;
    failed = failed || to_rows(approximated, c->targets->num, start, &row) ||
             collect(lists, up, start, row, lists->approximated_start, &lists->approximated);
    free(row);
    free(start);
    for (int b = 0; b < lists->num && !failed; b++)
    {
        lists->targets += lists->end[b] - lists->begin[b];
    }
    lists->pairs = failed ? 0 : count_pairs(lists, c->sources, edge * edge * edge);
    return failed ? -1 : 0;
}

static int build(treecode_lists*           particles,
                 treecode_lists*           points,
                 const treecode_criterion* c,
                 pair_list                 found[TREECODE_NUM_LISTS],
                 int*                      up)
{
    const treecode_clusters* t    = c->targets;
    const int64_t            edge = c->degree + 1, size = edge * edge * edge;
    int                      num = 0;
    for (int k = 0; k < t->num; k++)
    {
        num += t->end[k] - t->begin[k] > size;
        for (int j = 0; j < t->num_children[k]; j++)
        {
            up[t->child[k] + j] = k;
        }
    }
    if (traverse(c, found) || treecode_lists_begin(particles, t->num_leaves) || treecode_lists_begin(points, num))
    {
        return -1;
    }
    for (int b = 0; b < t->num_leaves; b++)
    {
        particles->cluster[b] = t->leaf[b];
        particles->begin[b]   = t->begin[t->leaf[b]];
        particles->end[b]     = t->end[t->leaf[b]];
    }
    points->points = 1;
    for (int k = 0, b = 0; k < t->num; k++)
    {
        if (t->end[k] - t->begin[k] > size)
        {
            points->cluster[b] = k;
            points->begin[b]   = (int64_t)k * size;
            points->end[b++]   = (int64_t)(k + 1) * size;
        }
    }
    return fill(particles, c, &found[TREECODE_DIRECT], &found[TREECODE_PARTICLE_CLUSTER], up) ||
           fill(points, c, &found[TREECODE_CLUSTER_PARTICLE], &found[TREECODE_CLUSTER_CLUSTER], NULL);
}

int treecode_dual_build(treecode_lists* particles, treecode_lists* points, const treecode_criterion* c)
{
    pair_list found[TREECODE_NUM_LISTS] = {{0}};
    int*      up                        = malloc(((size_t)c->targets->num + 1) * sizeof(int));
    if (up != NULL)
    {
        up[0] = -1;
    }
    const int failed = up == NULL || build(particles, points, c, found, up);
    free(up);
    for (int k = 0; k < TREECODE_NUM_LISTS; k++)
    {
        free(found[k].pairs);
    }
    if (failed)
    {
        treecode_lists_free(particles);
        treecode_lists_free(points);
    }
    return failed ? -1 : 0;
}
