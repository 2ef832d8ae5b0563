/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Excluded pairs, at search steps: those of near cells are masked in P2P, others are listed. A molecule may exclude
 * thousands of atoms from one another, so that each entry of the lists is looked at once, in one place of memory.
 */
#include "fmm/cpu/near/excluded_pairs.h"

#include "fmm/math/portable.h"
#include "fmm/math/threads.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

/* What is asked of a particle, in the caller's order. */
typedef struct
{
    float at[3];    /* in its cell, in cells */
    int   place[3]; /* of its cell; not where leaves are of several levels */
    int   cell;
    int   own; /* place among the particles of its cell */
} spot;

/* Particles from one on whose places in memory are asked for, and when what says where the rest is has come. */
enum
{
    c_far  = 16,
    c_near = 8
};

/* Memory of one thread. */
typedef struct
{
    int* prefix;  /* of each near cell: place of its first particle in the list that P2P gathers */
    int* of_leaf; /* leaves of several levels: of each leaf the same, or -1 where it is not near */
} near_list;

static const fmm_particle_set* charges_of(const gmxfmm_plan* plan)
{
    return &plan->cpu->sources;
}

/* Targets that are not the charges exclude nothing. */
static int has_pairs(const gmxfmm_plan* plan)
{
    return plan->particles.excl_start != NULL && plan->particles.num_targets == 0;
}

static int num_excluded(const gmxfmm_plan* plan, int i)
{
    return has_pairs(plan) ? plan->particles.excl_start[i + 1] - plan->particles.excl_start[i] : 0;
}

/* Cell of particle i minus cell of the nearest image of particle j, in cells, and the box vectors k[3] to that image.
 * Of a pair just half a box apart both have to mean the same image: it is that of the one with the larger index. */
static inline void nearest_offset(const fmm_cells* c, const spot* a, const spot* b, int sign, int* offset, int* k)
{
    double t[3];
    int    other[3] = {0, 0, 0};
    for (int d = 0; d < 3; d++)
    {
        offset[d] = a->place[d] - b->place[d];
        t[d]      = sign * (offset[d] + (double)a->at[d] - (double)b->at[d]);
        k[d]      = 0;
    }
    if (fmm_has_images(c->periodic))
    {
        fmm_nearest_image(c->period, c->cell, c->rectangular ? NULL : c->box_voronoi, c->box_voronoi_int, t, other);
        for (int d = 0; d < 3; d++)
        {
            k[d] = -sign * (other[d] / c->period[d]);
            offset[d] -= k[d] * c->period[d];
        }
    }
}

/* The same in a periodic box with right angles of n[3] cells. Particles are in their bricks, so that the image is this
 * one or a neighbour: no division, and no branch that is taken now and then. */
static inline void nearest_brick(const int* n, const spot* a, const spot* b, int sign, int* offset, int* k)
{
    for (int d = 0; d < 3; d++)
    {
        const int    apart = a->place[d] - b->place[d];
        const double half  = 0.5 * n[d];
        const double t     = fmm_untie(sign * (apart + (double)a->at[d] - (double)b->at[d]), n[d], d);
        k[d]               = sign * ((t >= half) - (t < -half));
        offset[d]          = apart - k[d] * n[d];
    }
}

/* prefix[o]: place of the first particle of near cell o in the list that P2P gathers. Returns the list's length. */
static int near_prefix(const gmxfmm_plan* plan, int cell, const int* place, int* prefix)
{
    int num = 0;
    for (int o = 0; o < plan->domain.cells.num_near; o++)
    {
        const int at = fmm_near_of(plan, cell, place, o);
        prefix[o]    = num;
        num += charges_of(plan)->cell_start[at + 1] - charges_of(plan)->cell_start[at];
    }
    return num;
}

/* The same of the leaves near to a leaf: of_leaf. */
static int near_of_leaf(const gmxfmm_plan* plan, int leaf, int* of_leaf)
{
    const fmm_leaves* leaves = &plan->cpu->leaves;
    const int*        start  = charges_of(plan)->cell_start;
    int               num    = 0;
    for (int k = leaves->near_start[leaf]; k < leaves->near_start[leaf + 1]; k++)
    {
        const int begin = leaves->near[k][0], end = leaves->near[k][1];
        for (int other = begin; other < end && of_leaf != NULL; other++)
        {
            of_leaf[other] = num + start[other] - start[begin];
        }
        num += start[end] - start[begin];
    }
    return num;
}

static void forget_leaves(const gmxfmm_plan* plan, int leaf, int* of_leaf)
{
    const fmm_leaves* leaves = &plan->cpu->leaves;
    for (int k = leaves->near_start[leaf]; k < leaves->near_start[leaf + 1] && of_leaf != NULL; k++)
    {
        for (int other = leaves->near[k][0]; other < leaves->near[k][1]; other++)
        {
            of_leaf[other] = -1;
        }
    }
}

/* How the image of a particle is found. */
typedef enum
{
    IMAGE_OF_LEAF, /* leaves of several levels, in open systems */
    IMAGE_IN_BRICKS,
    IMAGE_NEAREST
} image_kind;

static image_kind kind_of(const gmxfmm_plan* plan)
{
    const fmm_cells* c = &plan->domain.cells;
    return fmm_is_adaptive(plan)                                                  ? IMAGE_OF_LEAF
           : c->rectangular && c->periodic[0] && c->periodic[1] && c->periodic[2] ? IMAGE_IN_BRICKS
                                                                                  : IMAGE_NEAREST;
}

/* Place in P2P's list of the image of b that a excludes, or -1 for a far one, with its box vectors. */
static inline int
place_of(const fmm_cells* c, image_kind kind, const near_list* near, const spot* a, const spot* b, int sign, int* image)
{
    int offset[3];
    if (kind == IMAGE_OF_LEAF)
    {
        const int first = near->of_leaf[b->cell];
        image[0] = image[1] = image[2] = 0;
        return first < 0 ? -1 : first + b->own;
    }
    if (kind == IMAGE_IN_BRICKS)
    {
        nearest_brick(c->n, a, b, sign, offset, image);
    }
    else
    {
        nearest_offset(c, a, b, sign, offset, image);
    }
    const int source[3] = {-offset[0], -offset[1], -offset[2]};
    const int o         = fmm_near_index(c, source);
    const int place     = near->prefix[o < 0 ? 0 : o] + b->own; /* a branch would be taken every now and then */
    return o < 0 ? -1 : place;
}

/* Excluded particles list[num] of particle i to its row: near ones from its front on, far ones from its end, each
 * written to both places, of which one is kept. Returns the number of near ones, or -1 if an image cannot be told. */
static inline int fill_row(const fmm_cells* c,
                           image_kind       kind,
                           const near_list* near,
                           const spot*      spots,
                           const int*       start,
                           int              i,
                           const int*       list,
                           int              num,
                           int* restrict row,
                           unsigned* restrict images)
{
    const spot here  = spots[i];
    int        front = 0, end = num - 1, good = 1;
    for (int e = 0; e < num; e++)
    {
        const spot* other = &spots[list[e]];
        int         image[3];
        const int   place   = place_of(c, kind, near, &here, other, i < list[e] ? 1 : -1, image);
        const int   is_near = place >= 0;
        for (int d = 0; d < 3 && kind == IMAGE_NEAREST; d++)
        {
            good &= is_near | (abs(image[d]) <= FMM_MOST_IMAGE);
        }
        row[end]    = start[other->cell] + other->own;
        images[end] = fmm_pack_image(image);
        end -= !is_near;
        row[front] = is_near ? place : row[front];
        front += is_near;
    }
    return good ? front : -1;
}

/* Images of the particles list[num] that i excludes, for widths.c. Returns whether all can be told. */
static int set_images(const fmm_cells* c,
                      image_kind       kind,
                      const near_list* near,
                      const spot*      spots,
                      int              i,
                      const int*       list,
                      int              num,
                      unsigned*        to)
{
    int good = 1;
    for (int e = 0; e < num; e++)
    {
        int image[3];
        place_of(c, kind, near, &spots[i], &spots[list[e]], i < list[e] ? 1 : -1, image);
        for (int d = 0; d < 3; d++)
        {
            good &= abs(image[d]) <= FMM_MOST_IMAGE;
        }
        to[e] = fmm_pack_image(image);
    }
    return good;
}

/* The row of particle s, which is in a cell. Returns whether all images can be told. */
static int set_row(const gmxfmm_plan* plan, const spot* spots, const near_list* near, image_kind kind, int cell, int s)
{
    const fmm_cpu*   cpu   = plan->cpu;
    const int* const of    = charges_of(plan)->cell_start;
    const int        i     = charges_of(plan)->sorted[s];
    const int        first = cpu->mask_start[s];
    cpu->mask[first]       = s - of[cell];
    cpu->mask_far[s]       = first + 1;
    if (!has_pairs(plan))
    {
        return 1;
    }
    const fmm_cells* c      = &plan->domain.cells;
    const int*       list   = plan->particles.excl_list + plan->particles.excl_start[i];
    const int        num    = num_excluded(plan, i);
    int*             row    = cpu->mask + first + 1;
    unsigned*        images = cpu->images + first + 1;
    const int front = kind == IMAGE_IN_BRICKS ? fill_row(c, IMAGE_IN_BRICKS, near, spots, of, i, list, num, row, images)
                      : kind == IMAGE_OF_LEAF ? fill_row(c, IMAGE_OF_LEAF, near, spots, of, i, list, num, row, images)
                                              : fill_row(c, IMAGE_NEAREST, near, spots, of, i, list, num, row, images);
    cpu->mask_far[s] += front < 0 ? 0 : front;
    return front >= 0 &&
           (!fmm_has_widths(plan) || set_images(c, kind, near, spots, i, list, num, cpu->widths.images + first + 1));
}

/* Particles from which on none is asked for ahead: few are in the cache. */
static int64_t fetched_to(const gmxfmm_plan* plan)
{
    return plan->particles.n > FMM_FEW_PARTICLES ? plan->particles.n - c_far : 0;
}

static void set_spots(const gmxfmm_plan* plan, spot* spots)
{
    const fmm_particle_set* p       = charges_of(plan);
    const int64_t           fetched = fetched_to(plan);
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int i = 0; i < plan->particles.n; i++)
    {
        const int s  = p->position[i];
        spot*     to = &spots[i];
        if (i < fetched)
        {
            __builtin_prefetch(p->reference[p->position[i + c_far]]);
        }
        to->cell = p->cell_of[i];
        to->own  = s - p->cell_start[to->cell];
        for (int d = 0; d < 3; d++)
        {
            to->at[d] = p->reference[s][d];
        }
        if (!fmm_is_adaptive(plan))
        {
            fmm_cell_place(plan, to->cell, to->place);
        }
    }
}

/* Asks for what rows of later particles need: those of a cell are anywhere in memory. (A function that does nothing
 * else is left out by gcc, unless it has to be inlined.) */
INLINE void fetch_ahead(const gmxfmm_plan* plan, const spot* spots, int s)
{
    const int* const sorted = charges_of(plan)->sorted;
    __builtin_prefetch(&plan->particles.excl_start[sorted[s + c_far]]);
    __builtin_prefetch(&spots[sorted[s + c_far]]);
    __builtin_prefetch(&plan->particles.excl_list[plan->particles.excl_start[sorted[s + c_near]]]);
}

/* Number of particles near to a cell, and the rows of those in it. */
static int fill_cell(const gmxfmm_plan* plan, const spot* spots, const near_list* near, int cell, int* good)
{
    const int* start = charges_of(plan)->cell_start;
    int        place[3], num;
    if (fmm_is_adaptive(plan))
    {
        num = near_of_leaf(plan, cell, near->of_leaf);
    }
    else
    {
        fmm_cell_place(plan, cell, place);
        num = near_prefix(plan, cell, place, near->prefix);
    }
    const image_kind kind    = kind_of(plan);
    const int64_t    fetched = has_pairs(plan) ? fetched_to(plan) : 0;
    for (int s = start[cell]; s < start[cell + 1]; s++)
    {
        if (s < fetched)
        {
            fetch_ahead(plan, spots, s);
        }
        *good &= set_row(plan, spots, near, kind, cell, s);
    }
    if (fmm_is_adaptive(plan))
    {
        forget_leaves(plan, cell, near->of_leaf);
    }
    return num;
}

/* Where the rows of particles begin .. end - 1 end, if the first begins at 0. Returns that of the last. */
static int set_ends(gmxfmm_plan* plan, int64_t begin, int64_t end)
{
    int at = 0;
    for (int64_t s = begin; s < end; s++)
    {
        at += 1 + num_excluded(plan, charges_of(plan)->sorted[s]);
        plan->cpu->mask_start[s + 1] = at;
    }
    return at;
}

/* Where rows begin. */
static void set_starts(gmxfmm_plan* plan)
{
    enum
    {
        c_most = 256
    };
    int           ends[c_most] = {0};
    int* const    start        = plan->cpu->mask_start;
    const int     num          = plan->num_threads < c_most ? plan->num_threads : c_most; /* chunks of particles */
    const int64_t n            = plan->particles.n;
    start[0]                   = 0;
    if (n <= FMM_FEW_PARTICLES)
    {
        set_ends(plan, 0, n);
        return;
    }
#pragma omp parallel for schedule(static, 1) num_threads(num)
    for (int c = 0; c < num; c++)
    {
        ends[c] = set_ends(plan, n * c / num, n * (c + 1) / num);
    }
    for (int c = 1; c < num; c++)
    {
        ends[c] += ends[c - 1];
    }
#pragma omp parallel for schedule(static, 1) num_threads(num)
    for (int c = 1; c < num; c++)
    {
        for (int64_t s = n * c / num; s < n * (c + 1) / num; s++)
        {
            start[s + 1] += ends[c - 1];
        }
    }
}

static int excludes_far(const gmxfmm_plan* plan, int s)
{
    return plan->cpu->mask_far[s] < plan->cpu->mask_start[s + 1];
}

/* Whether any of these particles excludes a far one. */
static int is_any_far(const gmxfmm_plan* plan, fmm_range particles)
{
    int any = 0;
    if (particles.end - particles.begin <= FMM_FEW_PARTICLES)
    {
        for (int s = particles.begin; s < particles.end && !any; s++)
        {
            any = excludes_far(plan, s);
        }
        return any;
    }
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(| : any)
    for (int s = particles.begin; s < particles.end; s++)
    {
        any |= excludes_far(plan, s);
    }
    return any;
}

/* All rows; memory: of_leaf and prefix of each thread. Returns whether all images can be told. */
static int fill_rows(gmxfmm_plan* plan, const spot* spots, int* prefixes, int* of_leaf)
{
    const fmm_particle_set* targets = fmm_targets(plan);
    const fmm_range         own     = fmm_own_cells(plan);
    const int               cells = fmm_num_cells(plan), share = (own.end - own.begin) / (8 * plan->num_threads);
    const int               chunk = share < 1 ? 1 : share < 64 ? share : 64; /* few cells may have most of the pairs */
    int                     capacity = 0, good = 1;
    double                  sum = 0; /* over targets, of the particles near them */
#pragma omp parallel for schedule(dynamic, chunk) num_threads(plan->num_threads) reduction(max : capacity)         \
    reduction(+ : sum) reduction(& : good)
    for (int cell = own.begin; cell < own.end; cell++)
    {
        const int here = targets->cell_start[cell + 1] - targets->cell_start[cell];
        if (here > 0)
        {
            const size_t    thread = (size_t)omp_get_thread_num();
            const near_list near   = {prefixes + thread * (size_t)plan->domain.cells.num_near,
                                    of_leaf != NULL ? of_leaf + thread * (size_t)cells : NULL};
            const int       num    = fill_cell(plan, spots, &near, cell, &good);
            capacity               = num > capacity ? num : capacity;
            sum += (double)num * here;
        }
    }
    const fmm_range particles = fmm_own_particles(plan, targets);
    plan->cpu->near_capacity  = capacity;
    plan->cpu->near_particles = particles.end > particles.begin ? sum / (double)(particles.end - particles.begin) : 0;
    plan->cpu->any_far        = has_pairs(plan) && is_any_far(plan, particles);
    return good;
}

/* Room for spots is that of far places, which steps make. */
static spot* reserve_spots(gmxfmm_plan* plan, size_t n)
{
    fmm_cpu* cpu = plan->cpu;
    _Static_assert(sizeof(spot) <= sizeof(*cpu->far_places), "a spot has the room of a far place");
    return fmm_grow(plan, (void**)&cpu->far_places, &cpu->far_capacity, n * sizeof(*cpu->far_places))
               ? (spot*)cpu->far_places
               : NULL;
}

gmxfmm_status fmm_excluded_pairs(gmxfmm_plan* plan)
{
    fmm_cpu*     cpu     = plan->cpu;
    const size_t threads = (size_t)plan->num_threads, leaves = (size_t)fmm_num_cells(plan);
    const size_t n           = (size_t)plan->particles.n;
    const int    pairs       = has_pairs(plan);
    const int    with_leaves = pairs && fmm_is_adaptive(plan);
    int*         prefixes    = malloc((threads * (size_t)plan->domain.cells.num_near + 1) * sizeof(int));
    int*         of_leaf     = with_leaves ? malloc((threads * leaves + 1) * sizeof(int)) : NULL;
    spot*        spots       = pairs ? reserve_spots(plan, n) : NULL;
    int          good        = 1;
    const size_t images      = (n + (pairs ? (size_t)plan->particles.excl_start[n] : 0)) * sizeof(*cpu->widths.images);
    const int    enough      = prefixes != NULL && (of_leaf != NULL || !with_leaves) && (spots != NULL || !pairs) &&
                       (!pairs || !fmm_has_widths(plan) ||
                        fmm_grow(plan, (void**)&cpu->widths.images, &cpu->widths.images_capacity, images));
    if (enough)
    {
        for (size_t i = 0; i < threads * leaves && of_leaf != NULL; i++)
        {
            of_leaf[i] = -1;
        }
        if (pairs)
        {
            set_spots(plan, spots);
        }
        set_starts(plan);
        good = fill_rows(plan, spots, prefixes, of_leaf);
    }
    free(prefixes);
    free(of_leaf);
    if (!enough)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for excluded pairs");
    }
    return good ? GMXFMM_OK
                : fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                           "the nearest image of an excluded pair is more than %d box vectors away: choose shorter box "
                           "vectors of the same lattice",
                           FMM_MOST_IMAGE);
}
