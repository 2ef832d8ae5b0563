/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Interaction lists of batches: one traversal of the tree of sources for each. */
#include "fmm/treecode/lists.h"

#include <stdlib.h>
#include <string.h>

#include "fmm/treecode/boxes.h"

/* Numbers of list entries of a batch, and of the particles and points in them. */
typedef struct
{
    int64_t approximated, direct, num_sources;
} tally;

/* What a traversal needs to know of the sources. */
typedef struct
{
    const treecode_clusters* sources;
    const double*            ball; /* 4 sources->num: centre and radius */
    double                   theta;
    int64_t                  points; /* (n + 1)^3 */
} traversal;

/* Lists of the batch at ball, which go where the pointers say unless they are NULL; stack has room for all that can
 * wait. A cluster of no more particles than points interacts through its particles wherever it is.
 */
static tally traverse(const traversal* c, const double* ball, int* stack, int* approximated, int* direct)
{
    const treecode_clusters* s   = c->sources;
    tally                    sum = {0};
    int                      top = 0;
    if (s->num > 0)
    {
        stack[top++] = 0;
    }
    while (top > 0)
    {
        const int     cluster = stack[--top];
        const int64_t num     = s->end[cluster] - s->begin[cluster];
        const double* other   = c->ball + 4 * (size_t)cluster;
        const int     large   = num > c->points;
        if (large && treecode_is_far(c->theta, ball, ball[3], other, other[3]))
        {
            if (approximated != NULL)
            {
                approximated[sum.approximated] = cluster;
            }
            sum.approximated++;
            sum.num_sources += c->points;
        }
        else if (!large || s->num_children[cluster] == 0)
        {
            if (direct != NULL)
            {
                direct[sum.direct] = cluster;
            }
            sum.direct++;
            sum.num_sources += num;
        }
        else
        {
            /* the first child comes off the stack first: lists are in the order of particles */
            for (int k = s->num_children[cluster] - 1; k >= 0; k--)
            {
                stack[top++] = s->child[cluster] + k;
            }
        }
    }
    return sum;
}

/* Centres and radii of all clusters. */
static double* balls(const treecode_clusters* c, int widened, int num_threads)
{
    double* ball = malloc(4 * ((size_t)c->num + 1) * sizeof(double));
    if (ball != NULL)
    {
#pragma omp parallel for num_threads(num_threads)
        for (int i = 0; i < c->num; i++)
        {
            double half[3];
            treecode_box(c, i, ball + 4 * (size_t)i, half);
            ball[4 * (size_t)i + 3] = treecode_radius(half, widened);
        }
    }
    return ball;
}

/* All batches: numbers into the starts if `fill` is 0, otherwise the lists. 0 or -1. */
static int all_batches(treecode_lists* lists, const treecode_criterion* c, const traversal* t, int fill)
{
    int    failed = 0;
    double pairs  = 0;
#pragma omp parallel num_threads(c->num_threads) reduction(+ : failed, pairs)
    {
        int* stack = malloc((8 * (size_t)c->sources->num_levels + 8) * sizeof(int));
        failed += stack == NULL;
#pragma omp for schedule(dynamic, 16)
        for (int b = 0; b < lists->num; b++)
        {
            double ball[4], half[3];
            ball[3] = treecode_box(c->targets, lists->cluster[b], ball, half);
            if (stack != NULL && fill)
            {
                traverse(t, ball, stack, lists->approximated + lists->approximated_start[b],
                         lists->direct + lists->direct_start[b]);
            }
            else if (stack != NULL)
            {
                const tally sum                  = traverse(t, ball, stack, NULL, NULL);
                lists->approximated_start[b + 1] = sum.approximated;
                lists->direct_start[b + 1]       = sum.direct;
                pairs += (double)sum.num_sources * (double)(lists->end[b] - lists->begin[b]);
            }
        }
        free(stack);
    }
    lists->pairs = fill ? lists->pairs : pairs;
    return failed ? -1 : 0;
}

static int build(treecode_lists* lists, const treecode_criterion* c)
{
    const size_t    num  = (size_t)lists->num;
    const int64_t   edge = c->degree + 1;
    double*         ball = balls(c->sources, c->widened, c->num_threads);
    const traversal t    = {c->sources, ball, c->theta, edge * edge * edge};
    int             made = ball != NULL && all_batches(lists, c, &t, 0) == 0;
    for (size_t b = 0; b < num && made; b++)
    {
        lists->approximated_start[b + 1] += lists->approximated_start[b];
        lists->direct_start[b + 1] += lists->direct_start[b];
        lists->targets += lists->end[b] - lists->begin[b];
    }
    if (made)
    {
        lists->approximated = malloc(((size_t)lists->approximated_start[num] + 1) * sizeof(int));
        lists->direct       = malloc(((size_t)lists->direct_start[num] + 1) * sizeof(int));
        made                = lists->approximated != NULL && lists->direct != NULL && all_batches(lists, c, &t, 1) == 0;
    }
    free(ball);
    if (!made)
    {
        treecode_lists_free(lists);
    }
    return made ? 0 : -1;
}

int treecode_lists_begin(treecode_lists* lists, int num)
{
    const size_t room = (size_t)num + 1;
    treecode_lists_free(lists);
    lists->num                = num;
    lists->cluster            = malloc(room * sizeof(int));
    lists->begin              = malloc(room * sizeof(int64_t));
    lists->end                = malloc(room * sizeof(int64_t));
    lists->approximated_start = calloc(room, sizeof(int64_t));
    lists->direct_start       = calloc(room, sizeof(int64_t));
    if (!lists->cluster || !lists->begin || !lists->end || !lists->approximated_start || !lists->direct_start)
    {
        treecode_lists_free(lists);
        return -1;
    }
    return 0;
}

int treecode_lists_build(treecode_lists* lists, const treecode_criterion* c)
{
    const treecode_clusters* targets = c->targets;
    if (treecode_lists_begin(lists, targets->num_leaves))
    {
        return -1;
    }
    for (int b = 0; b < lists->num; b++)
    {
        lists->cluster[b] = targets->leaf[b];
        lists->begin[b]   = targets->begin[targets->leaf[b]];
        lists->end[b]     = targets->end[targets->leaf[b]];
    }
    return build(lists, c);
}

int treecode_lists_sample(treecode_lists* lists, const treecode_criterion* c, int num, int64_t size)
{
    const treecode_clusters* targets = c->targets;
    int64_t                  taken   = 0; /* no target twice */
    if (treecode_lists_begin(lists, targets->n == 0 ? 0 : num))
    {
        return -1;
    }
    for (int b = 0; b < lists->num; b++)
    {
        const int64_t even = (int64_t)((double)targets->n / num * b), first = even > taken ? even : taken;
        int           k = 0;
        while (targets->num_children[k] > 0)
        {
            k = targets->child[k];
            while (targets->end[k] <= first && first < targets->n)
            {
                k++;
            }
        }
        lists->cluster[b] = k;
        lists->begin[b]   = first;
        lists->end[b]     = first + size < targets->end[k] ? first + size
                            : first < targets->end[k]      ? targets->end[k]
                                                           : first;
        taken             = lists->end[b];
    }
    return build(lists, c);
}

size_t treecode_lists_bytes(const treecode_lists* lists)
{
    return lists->num == 0
               ? 0
               : ((size_t)lists->num + 1) * (4 * sizeof(int64_t) + sizeof(int)) +
                     (size_t)(lists->approximated_start[lists->num] + lists->direct_start[lists->num]) * sizeof(int);
}

void treecode_lists_free(treecode_lists* lists)
{
    free(lists->cluster);
    free(lists->begin);
    free(lists->end);
    free(lists->approximated_start);
    free(lists->direct_start);
    free(lists->approximated);
    free(lists->direct);
    memset(lists, 0, sizeof(*lists));
}
