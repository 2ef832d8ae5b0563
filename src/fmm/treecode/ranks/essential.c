/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The locally essential tree: lists of the own batches with each remote tree, from its root, by what makes the own
 * ones; the clusters that they name get numbers behind the own ones, and their ranks are told. What is named travels
 * once a step, whatever the number of lists that it is in: particles of a cluster that is part of another one come with
 * that.
 */
#include <stdlib.h>
#include <string.h>

#include "fmm/treecode/ranks/state.h"

enum
{
    c_points    = 1, /* marks: named for its modified charges, */
    c_particles = 2, /* for its particles */
    c_kinds     = 2  /* of lists: of particles, and of points in dual traversal */
};

/* While names are given. Arrays are of all clusters of all remote trees, one after the other. */
typedef struct
{
    treecode*       t;
    treecode_ranks* r;
    int             num_ranks, rank;
    treecode_lists* found;  /* c_kinds num_ranks: with the tree of each rank */
    int64_t*        first;  /* num_ranks + 1: the first cluster of a rank */
    unsigned char*  marks;  /* named for what */
    int*            number; /* in t->sources */
    int*            within; /* the cluster with whose particles the own ones travel, of the same tree; -1: none */
    int64_t*        begin;  /* first particle in t->sources */
    int64_t         imported, num_points, num_clusters;
} naming;

/* Lists of the own batches with all remote trees. 0 or -1. */
static int make_lists(naming* w)
{
    treecode_criterion c      = treecode_criterion_of(w->t);
    int                failed = 0;
    for (int i = 0; i < w->num_ranks && !failed; i++)
    {
        treecode_lists* lists = w->found + c_kinds * i;
        c.sources             = &w->r->tree[i];
        failed                = i != w->rank && (w->t->options.dual ? treecode_dual_build(lists, lists + 1, &c)
                                                                    : treecode_lists_build(lists, &c)) != 0;
    }
    return failed ? -1 : 0;
}

static int make_room(naming* w)
{
    w->first = calloc((size_t)w->num_ranks + 1, sizeof(*w->first));
    for (int i = 0; i < w->num_ranks && w->first != NULL; i++)
    {
        w->first[i + 1] = w->first[i] + w->r->tree[i].num;
    }
    const size_t num = w->first != NULL ? (size_t)w->first[w->num_ranks] + 1 : 1;
    w->marks         = calloc(num, sizeof(*w->marks));
    w->number        = malloc(num * sizeof(*w->number));
    w->within        = malloc(num * sizeof(*w->within));
    w->begin         = malloc(num * sizeof(*w->begin));
    return w->first != NULL && w->marks != NULL && w->number != NULL && w->within != NULL && w->begin != NULL ? 0 : -1;
}

static void mark(naming* w)
{
    for (int k = 0; k < c_kinds * w->num_ranks; k++)
    {
        const treecode_lists* lists = &w->found[k];
        unsigned char*        marks = w->marks + w->first[k / c_kinds];
        for (int64_t i = 0; lists->num > 0 && i < lists->approximated_start[lists->num]; i++)
        {
            marks[lists->approximated[i]] |= c_points;
        }
        for (int64_t i = 0; lists->num > 0 && i < lists->direct_start[lists->num]; i++)
        {
            marks[lists->direct[i]] |= c_particles;
        }
    }
}

/* Clusters of rank i with particles: which travel, and where the particles of each will be. Parents have lower numbers
 * than their children. */
static void place_particles(naming* w, int i)
{
    const treecode_clusters* tree   = &w->r->tree[i];
    const int64_t            first  = w->first[i];
    int*                     within = w->within + first;
    for (int c = 0; c < tree->num; c++)
    {
        within[c] = -1;
    }
    for (int c = 0; c < tree->num; c++)
    {
        if (within[c] < 0 && (w->marks[first + c] & c_particles))
        {
            within[c]           = c;
            w->begin[first + c] = w->t->n + w->imported;
            w->imported += tree->end[c] - tree->begin[c];
            w->r->take[i].whole++;
        }
        else if (within[c] >= 0)
        {
            w->begin[first + c] = w->begin[first + within[c]] + tree->begin[c] - tree->begin[within[c]];
        }
        for (int k = 0; k < tree->num_children[c]; k++)
        {
            within[tree->child[c] + k] = within[c];
        }
    }
    w->r->particles_start[i + 1] = w->imported;
}

/* Numbers of all that is named. */
static void number(naming* w)
{
    treecode_ranks* r = w->r;
    memset(r->take, 0, (size_t)w->num_ranks * sizeof(*r->take));
    r->particles_start[0] = 0;
    for (int i = 0; i < w->num_ranks; i++)
    {
        for (int64_t c = w->first[i]; c < w->first[i + 1]; c++)
        {
            w->number[c] = w->t->sources.num + (int)w->num_points;
            w->num_points += (w->marks[c] & c_points) != 0;
            r->take[i].points += (w->marks[c] & c_points) != 0;
        }
        place_particles(w, i);
    }
    w->num_clusters = w->num_points;
    for (int i = 0; i < w->num_ranks; i++)
    {
        for (int64_t c = w->first[i]; c < w->first[i + 1]; c++)
        {
            if (w->marks[c] == c_particles)
            {
                w->number[c] = w->t->sources.num + (int)w->num_clusters++;
                r->take[i].others++;
            }
        }
        r->take_start[i + 1] = r->take_start[i] + r->take[i].points + r->take[i].others + r->take[i].whole;
    }
}

/* The names in the order in which they are asked for. 0 or -1. */
static int list_names(naming* w)
{
    treecode_ranks* r   = w->r;
    int64_t         num = 0;
    r->take_cluster     = malloc(((size_t)r->take_start[w->num_ranks] + 1) * sizeof(*r->take_cluster));
    for (int i = 0; i < w->num_ranks && r->take_cluster != NULL; i++)
    {
        const unsigned char* marks  = w->marks + w->first[i];
        const int*           within = w->within + w->first[i];
        const int            all    = r->tree[i].num;
        for (int c = 0; c < all; c++)
        {
            r->take_cluster[num] = c;
            num += (marks[c] & c_points) != 0;
        }
        for (int c = 0; c < all; c++)
        {
            r->take_cluster[num] = c;
            num += marks[c] == c_particles;
        }
        for (int c = 0; c < all; c++)
        {
            r->take_cluster[num] = c;
            num += within[c] == c;
        }
    }
    return r->take_cluster != NULL ? 0 : -1;
}

/* The named clusters behind the own ones; on a device particles are not here. 0 or -1. */
static int import(naming* w)
{
    treecode_clusters* s         = &w->t->sources;
    const int64_t      particles = w->r->on_device == NULL ? s->n + w->imported : 0;
    if (treecode_clusters_reserve(s, particles, s->num + (int)w->num_clusters, s->num_levels, s->num_leaves))
    {
        return -1;
    }
    for (int i = 0; i < w->num_ranks; i++)
    {
        const treecode_clusters* tree = &w->r->tree[i];
        for (size_t c = 0; c < (size_t)tree->num; c++)
        {
            const int64_t from = w->first[i] + (int64_t)c;
            const size_t  to   = (size_t)w->number[from];
            if (w->marks[from] == 0)
            {
                continue;
            }
            memcpy(s->low + 3 * to, tree->low + 3 * c, 3 * sizeof(double));
            memcpy(s->high + 3 * to, tree->high + 3 * c, 3 * sizeof(double));
            s->begin[to]        = w->marks[from] & c_particles ? w->begin[from] : s->n;
            s->end[to]          = s->begin[to] + (w->marks[from] & c_particles ? tree->end[c] - tree->begin[c] : 0);
            s->child[to]        = 0;
            s->num_children[to] = 0;
        }
    }
    w->t->imported   = w->imported;
    w->t->num_points = (int)w->num_points;
    return 0;
}

/* Rows of each batch, approximated or direct ones. */
static const int64_t* starts(const treecode_lists* l, int direct)
{
    return direct ? l->direct_start : l->approximated_start;
}

/* The own rows and those of all ranks, each batch's one after the other. 0 or -1. */
static int join(const naming* w, int kind, int direct, int64_t** start, int** list)
{
    const treecode_lists* own = kind == 0 ? &w->t->lists : &w->t->point_lists;
    int64_t               num = own->num > 0 ? starts(own, direct)[own->num] : 0;
    for (int i = 0; i < w->num_ranks; i++)
    {
        const treecode_lists* more = &w->found[c_kinds * i + kind];
        num += more->num > 0 ? starts(more, direct)[more->num] : 0;
    }
    *start = calloc((size_t)own->num + 1, sizeof(**start));
    *list  = malloc(((size_t)num + 1) * sizeof(**list));
    if (*start == NULL || *list == NULL)
    {
        return -1;
    }
    num = 0;
    for (int b = 0; b < own->num; b++)
    {
        const int64_t *from = starts(own, direct), size = from[b + 1] - from[b];
        if (size > 0)
        {
            memcpy(*list + num, (direct ? own->direct : own->approximated) + from[b], (size_t)size * sizeof(**list));
        }
        num += size;
        for (int i = 0; i < w->num_ranks; i++)
        {
            const treecode_lists* more   = &w->found[c_kinds * i + kind];
            const int*            row    = direct ? more->direct : more->approximated;
            const int*            number = w->number + w->first[i];
            for (int64_t e = more->num > 0 ? starts(more, direct)[b] : 0;
                 more->num > 0 && e < starts(more, direct)[b + 1]; e++)
            {
                (*list)[num++] = number[row[e]];
            }
        }
        (*start)[b + 1] = num;
    }
    return 0;
}

/* The own batches without rows, where a device has these: as they are with the tree of another rank. 0 or -1. */
static int copy_batches(const naming* w, int kind)
{
    treecode_lists*       own  = kind == 0 ? &w->t->lists : &w->t->point_lists;
    const treecode_lists* like = &w->found[c_kinds * (w->rank == 0 ? 1 : 0) + kind];
    const size_t          num  = (size_t)like->num;
    if (treecode_lists_begin(own, like->num))
    {
        return -1;
    }
    own->points  = like->points;
    own->targets = like->targets;
    memcpy(own->cluster, like->cluster, num * sizeof(*own->cluster));
    memcpy(own->begin, like->begin, num * sizeof(*own->begin));
    memcpy(own->end, like->end, num * sizeof(*own->end));
    return 0;
}

/* 0 or -1. */
static int join_lists(const naming* w, int kind)
{
    if (w->r->on_device != NULL && copy_batches(w, kind))
    {
        return -1;
    }
    treecode_lists* own                = kind == 0 ? &w->t->lists : &w->t->point_lists;
    int64_t *       approximated_start = NULL, *direct_start = NULL;
    int *           approximated = NULL, *direct = NULL;
    const int failed = join(w, kind, 0, &approximated_start, &approximated) || join(w, kind, 1, &direct_start, &direct);
    if (failed)
    {
        free(approximated_start);
        free(approximated);
        free(direct_start);
        free(direct);
        return -1;
    }
    free(own->approximated_start);
    free(own->approximated);
    free(own->direct_start);
    free(own->direct);
    own->approximated_start = approximated_start;
    own->approximated       = approximated;
    own->direct_start       = direct_start;
    own->direct             = direct;
    for (int i = 0; i < w->num_ranks; i++)
    {
        own->pairs += w->found[c_kinds * i + kind].pairs;
    }
    return 0;
}

static void free_naming(naming* w)
{
    for (int k = 0; w->found != NULL && k < c_kinds * w->num_ranks; k++)
    {
        treecode_lists_free(&w->found[k]);
    }
    free(w->found);
    free(w->first);
    free(w->marks);
    free(w->number);
    free(w->within);
    free(w->begin);
}

/* All of it on this rank. 0 or -1. */
static int name(treecode* t)
{
    const gmxfmm_comm* comm = &t->ranks->ranks->comm;
    naming             w    = {.t = t, .r = t->ranks, .num_ranks = comm->size, .rank = comm->rank};
    w.found                 = calloc((size_t)(c_kinds * comm->size), sizeof(*w.found));
    int failed              = w.found == NULL || make_lists(&w) || make_room(&w);
    if (!failed)
    {
        mark(&w);
        number(&w);
        failed = list_names(&w) || import(&w) || join_lists(&w, 0) || (t->options.dual && join_lists(&w, 1));
    }
    free_naming(&w);
    return failed ? -1 : 0;
}

/* Tells ranks what is named of them, and hears what they name. */
static gmxfmm_status tell(treecode* t)
{
    treecode_ranks*  r      = t->ranks;
    const fmm_ranks* ranks  = r->ranks;
    const int        num    = ranks->comm.size;
    gmxfmm_status    status = fmm_ranks_one_each(ranks, sizeof(*r->take), r->take, r->give);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int i = 0; i < num; i++)
    {
        r->give_start[i + 1] = r->give_start[i] + r->give[i].points + r->give[i].others + r->give[i].whole;
    }
    r->give_cluster = malloc(((size_t)r->give_start[num] + 1) * sizeof(*r->give_cluster));
    status          = treecode_ranks_agree(t, r->give_cluster != NULL ? GMXFMM_OK : treecode_no_memory(t));
    return status == GMXFMM_OK ? fmm_ranks_some_each(ranks, sizeof(*r->take_cluster), r->take_cluster, r->take_start,
                                                     r->give_cluster, r->give_start)
                               : status;
}

gmxfmm_status treecode_ranks_name(treecode* t)
{
    const gmxfmm_status status = treecode_ranks_agree(t, name(t) == 0 ? GMXFMM_OK : treecode_no_memory(t));
    return status == GMXFMM_OK ? tell(t) : status;
}
