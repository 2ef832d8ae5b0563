/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tree of clusters, made level by level: the particles of each cluster are sorted into its parts. */
#include "fmm/treecode/clusters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/treecode/boxes.h"

/* Particles on their way to another order. */
typedef struct
{
    int64_t* order;
    double*  x[3];
} buffer;

enum
{
    c_parts = 8
};

double treecode_box(const treecode_clusters* c, int cluster, double centre[3], double half[3])
{
    for (int d = 0; d < 3; d++)
    {
        const double low = c->low[3 * (size_t)cluster + (size_t)d], high = c->high[3 * (size_t)cluster + (size_t)d];
        half[d]   = 0.5 * (high - low);
        centre[d] = low + half[d];
    }
    return treecode_radius(half, 0);
}

void treecode_clusters_free(treecode_clusters* c)
{
    free(c->level);
    free(c->leaf);
    free(c->begin);
    free(c->end);
    free(c->child);
    free(c->num_children);
    free(c->low);
    free(c->high);
    free(c->order);
    for (int d = 0; d < 3; d++)
    {
        free(c->x[d]);
    }
    memset(c, 0, sizeof(*c));
}

size_t treecode_clusters_bytes(const treecode_clusters* c)
{
    return (size_t)c->n * (sizeof(int64_t) + 3 * sizeof(double)) +
           (size_t)c->capacity * (2 * sizeof(int64_t) + 2 * sizeof(int) + 6 * sizeof(double));
}

/* *array becomes num elements of that size; 0 if there is no memory, and then it is as before. */
static int resize(void** array, size_t num, size_t size)
{
    void* memory = realloc(*array, (num > 0 ? num : 1) * size);
    if (memory == NULL)
    {
        return 0;
    }
    *array = memory;
    return 1;
}

static int reserve(treecode_clusters* c, int64_t num)
{
    if (num <= c->capacity)
    {
        return 1;
    }
    if (num > INT32_MAX / 2)
    {
        return 0;
    }
    const size_t more = (size_t)num + (size_t)num / 2;
    if (!resize((void**)&c->begin, more, sizeof(int64_t)) || !resize((void**)&c->end, more, sizeof(int64_t)) ||
        !resize((void**)&c->child, more, sizeof(int)) || !resize((void**)&c->num_children, more, sizeof(int)) ||
        !resize((void**)&c->low, 3 * more, sizeof(double)) || !resize((void**)&c->high, 3 * more, sizeof(double)))
    {
        return 0;
    }
    c->capacity = (int)more;
    return 1;
}

static void particles_box(const treecode_clusters* c, int cluster)
{
    for (int d = 0; d < 3; d++)
    {
        const double* x   = c->x[d];
        double        low = x[c->begin[cluster]], high = low;
        for (int64_t s = c->begin[cluster]; s < c->end[cluster]; s++)
        {
            low  = x[s] < low ? x[s] : low;
            high = x[s] > high ? x[s] : high;
        }
        c->low[3 * (size_t)cluster + (size_t)d]  = low;
        c->high[3 * (size_t)cluster + (size_t)d] = high;
    }
}

/* Part of a particle: a bit for each dimension in which it is above the middle. */
static inline int part_of(const treecode_clusters* c, int64_t s, const double middle[3])
{
    return (c->x[0][s] > middle[0]) + 2 * (c->x[1][s] > middle[1]) + 4 * (c->x[2][s] > middle[2]);
}

/* Sorts the particles of a cluster into parts; count[part] is how many there are. */
static void split(treecode_clusters* c, int cluster, const buffer* b, int64_t count[c_parts])
{
    const int64_t begin = c->begin[cluster], end = c->end[cluster];
    const double *low = c->low + 3 * (size_t)cluster, *high = c->high + 3 * (size_t)cluster;
    double        middle[3], longest                        = 0;
    int64_t       next[c_parts];
    for (int d = 0; d < 3; d++)
    {
        longest = fmax(longest, high[d] - low[d]);
    }
    for (int d = 0; d < 3; d++)
    {
        middle[d] = treecode_split_at(low[d], high[d], longest);
    }
    for (int64_t s = begin; s < end; s++)
    {
        count[part_of(c, s, middle)]++;
    }
    next[0] = begin;
    for (int p = 1; p < c_parts; p++)
    {
        next[p] = next[p - 1] + count[p - 1];
    }
    for (int64_t s = begin; s < end; s++)
    {
        const int64_t to = next[part_of(c, s, middle)]++;
        b->order[to]     = c->order[s];
        for (int d = 0; d < 3; d++)
        {
            b->x[d][to] = c->x[d][s];
        }
    }
    memcpy(c->order + begin, b->order + begin, (size_t)(end - begin) * sizeof(int64_t));
    for (int d = 0; d < 3; d++)
    {
        memcpy(c->x[d] + begin, b->x[d] + begin, (size_t)(end - begin) * sizeof(double));
    }
}

/* Boxes of the clusters of the last level, and their parts; returns whether there is another level, -1 without memory.
 */
static int add_level(treecode_clusters* c, const buffer* b, int64_t leaf, int num_threads)
{
    const int first = c->level[c->num_levels - 1], last = c->num;
    int64_t(*count)[c_parts] = calloc((size_t)(last - first), sizeof(*count));
    if (count == NULL)
    {
        return -1;
    }
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
    for (int cluster = first; cluster < last; cluster++)
    {
        particles_box(c, cluster);
        const double *low = c->low + 3 * (size_t)cluster, *high = c->high + 3 * (size_t)cluster;
        const int     extended = low[0] < high[0] || low[1] < high[1] || low[2] < high[2];
        if (c->end[cluster] - c->begin[cluster] > leaf && extended)
        {
            split(c, cluster, b, count[cluster - first]);
        }
    }
    int64_t children = 0;
    for (int i = 0; i < last - first; i++)
    {
        for (int p = 0; p < c_parts; p++)
        {
            children += count[i][p] > 0;
        }
    }
    const int room = reserve(c, last + children);
    for (int cluster = first; cluster < last && room; cluster++)
    {
        int64_t begin            = c->begin[cluster];
        c->child[cluster]        = c->num;
        c->num_children[cluster] = 0;
        for (int p = 0; p < c_parts; p++)
        {
            const int64_t num = count[cluster - first][p];
            if (num > 0)
            {
                c->begin[c->num] = begin;
                c->end[c->num]   = begin += num;
                c->num++;
                c->num_children[cluster]++;
            }
        }
    }
    free(count);
    if (!room || !resize((void**)&c->level, (size_t)c->num_levels + 2, sizeof(int)))
    {
        return -1;
    }
    c->level[c->num_levels] = last;
    c->num_levels += children > 0;
    c->level[c->num_levels] = c->num;
    return children > 0;
}

static int list_leaves(treecode_clusters* c)
{
    int num = 0;
    for (int cluster = 0; cluster < c->num; cluster++)
    {
        num += c->num_children[cluster] == 0;
    }
    c->num_leaves = 0;
    if (!resize((void**)&c->leaf, (size_t)num, sizeof(int)))
    {
        return 0;
    }
    for (int cluster = 0; cluster < c->num; cluster++)
    {
        if (c->num_children[cluster] == 0)
        {
            c->leaf[c->num_leaves++] = cluster;
        }
    }
    return 1;
}

static int build(treecode_clusters* c, const buffer* b, const double* x, int64_t leaf, int num_threads)
{
#pragma omp parallel for num_threads(num_threads)
    for (int64_t i = 0; i < c->n; i++)
    {
        c->order[i] = i;
        for (int d = 0; d < 3; d++)
        {
            c->x[d][i] = x[3 * i + d];
        }
    }
    c->num        = 1;
    c->num_levels = 1;
    c->level[0]   = 0;
    c->begin[0]   = 0;
    c->end[0]     = c->n;
    int more      = 1;
    while (more > 0)
    {
        more = add_level(c, b, leaf, num_threads);
    }
    return more == 0 && list_leaves(c);
}

int treecode_clusters_build(treecode_clusters* c, int64_t n, const double* x, int64_t leaf, int num_threads)
{
    const size_t num = (size_t)n;
    buffer       b   = {0};
    c->num = c->num_levels = c->num_leaves = 0;
    c->n                                   = n;
    if (n == 0)
    {
        return 0;
    }
    int made = reserve(c, 1) && resize((void**)&c->level, 2, sizeof(int)) &&
               resize((void**)&c->order, num, sizeof(int64_t)) && resize((void**)&b.order, num, sizeof(int64_t));
    for (int d = 0; d < 3; d++)
    {
        made = made && resize((void**)&c->x[d], num, sizeof(double)) && resize((void**)&b.x[d], num, sizeof(double));
    }
    made = made && build(c, &b, x, leaf, num_threads);
    free(b.order);
    for (int d = 0; d < 3; d++)
    {
        free(b.x[d]);
    }
    if (!made)
    {
        treecode_clusters_free(c);
    }
    return made ? 0 : -1;
}

int treecode_clusters_reserve(treecode_clusters* c, int64_t n, int num, int num_levels, int num_leaves)
{
    const size_t particles = (size_t)n;
    int          made      = reserve(c, num) && resize((void**)&c->level, (size_t)num_levels + 1, sizeof(int)) &&
               resize((void**)&c->leaf, (size_t)num_leaves, sizeof(int)) &&
               resize((void**)&c->order, particles, sizeof(int64_t));
    for (int d = 0; d < 3; d++)
    {
        made = made && resize((void**)&c->x[d], particles, sizeof(double));
    }
    if (!made)
    {
        treecode_clusters_free(c);
    }
    return made ? 0 : -1;
}

static void children_box(const treecode_clusters* c, int cluster)
{
    const size_t first = 3 * (size_t)c->child[cluster], num = 3 * (size_t)c->num_children[cluster];
    for (size_t d = 0; d < 3; d++)
    {
        double low = c->low[first + d], high = c->high[first + d];
        for (size_t k = 3; k < num; k += 3)
        {
            low  = fmin(low, c->low[first + k + d]);
            high = fmax(high, c->high[first + k + d]);
        }
        c->low[3 * (size_t)cluster + d]  = low;
        c->high[3 * (size_t)cluster + d] = high;
    }
}

void treecode_clusters_update(treecode_clusters* c, int num_threads)
{
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
    for (int i = 0; i < c->num_leaves; i++)
    {
        particles_box(c, c->leaf[i]);
    }
    for (int cluster = c->num - 1; cluster >= 0; cluster--)
    {
        if (c->num_children[cluster] > 0)
        {
            children_box(c, cluster);
        }
    }
}
