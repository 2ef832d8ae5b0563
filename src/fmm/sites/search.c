/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The order of sites, and lists of pairs. Sites are sorted into columns along z, and in a column by z, up and down by
 * turns: so blocks of consecutive sites are compact. A block looks for others in all columns, and all images of these,
 * that are within reach of the brick about its sites, and keeps each site that is within reach of any of its own, if it
 * is the one of both blocks that computes their pairs.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/sites/cpu.h"

#ifdef __AVX__
#    include <immintrin.h>
#endif

/* Pairs at the very reach are found whatever the rounding. */
static const double c_slack = 1e-5;

typedef struct
{
    double  low[3], high[3]; /* of all sites */
    int     num[2];          /* columns along x and y */
    double  edge[2];
    int*    start; /* [num[0] num[1] + 1]: first site of each column, by rank */
    double* z;     /* of sites in their order */
} columns;

/* Columns in the order of sites: along y up and down by turns. */
static inline int rank_of(const columns* c, int i, int j)
{
    return i * c->num[1] + (i % 2 == 0 ? j : c->num[1] - 1 - j);
}

static inline int column_along(const columns* c, int d, double x)
{
    const double i = floor((x - c->low[d]) / c->edge[d]);
    return i <= 0 ? 0 : i >= c->num[d] ? c->num[d] - 1 : (int)i;
}

/* Columns in which VLEN sites fill a cube, if sites are everywhere alike. */
static void choose_columns(columns* c, int n, const double* R, double reach)
{
    double volume = 1, extent[3];
    for (int d = 0; d < 3; d++)
    {
        c->low[d]  = R[d];
        c->high[d] = R[d];
        for (int i = 1; i < n; i++)
        {
            c->low[d]  = fmin(c->low[d], R[3 * (size_t)i + (size_t)d]);
            c->high[d] = fmax(c->high[d], R[3 * (size_t)i + (size_t)d]);
        }
        extent[d] = fmax(c->high[d] - c->low[d], 0.1 * reach);
        volume *= extent[d];
    }
    const double cube = cbrt(volume * VLEN / n), most = sqrt(n);
    for (int d = 0; d < 2; d++)
    {
        c->num[d]  = (int)fmax(1, fmin(most, rint(extent[d] / cube)));
        c->edge[d] = extent[d] / c->num[d];
    }
}

typedef struct
{
    double z;
    int    group;
} height;

static int compare_heights(const void* a, const void* b)
{
    const height *one = a, *other = b;
    return one->z != other->z ? (one->z < other->z ? -1 : 1)
                              : (one->group > other->group) - (one->group < other->group);
}

static void sort_sites(const columns* c, int n, const double* R, height* all, int* order, int* fill)
{
    const int num = c->num[0] * c->num[1];
    memset(c->start, 0, ((size_t)num + 1) * sizeof(int));
    for (int g = 0; g < n; g++)
    {
        const double* r = R + 3 * (size_t)g;
        c->start[rank_of(c, column_along(c, 0, r[0]), column_along(c, 1, r[1])) + 1]++;
    }
    for (int i = 0; i < num; i++)
    {
        c->start[i + 1] += c->start[i];
        fill[i] = c->start[i];
    }
    for (int g = 0; g < n; g++)
    {
        const double* r                                                             = R + 3 * (size_t)g;
        const height  one                                                           = {r[2], g};
        all[fill[rank_of(c, column_along(c, 0, r[0]), column_along(c, 1, r[1]))]++] = one;
    }
    for (int i = 0; i < num; i++)
    {
        const int begin = c->start[i], end = c->start[i + 1];
        qsort(all + begin, (size_t)(end - begin), sizeof(*all), compare_heights);
        for (int s = begin; s < end; s++)
        {
            const height* one = &all[i % 2 == 0 ? s : begin + end - 1 - s];
            order[s]          = one->group;
            c->z[s]           = one->z;
        }
    }
}

/* Places of all sites in their order, and which are targets. */
static void fill_blocks(gmxfmm_sites* sites, const double* R, const char* chosen)
{
    struct sites_cpu_memory* m = sites->memory;
    memset(m->sums, 0, (size_t)m->num_blocks * SITES_SUMS * sizeof(double));
    for (int b = 0; b < m->num_blocks; b++)
    {
        m->block[b].num_targets = 0;
    }
    for (int s = 0; s < m->num; s++)
    {
        const int g     = m->order[s];
        m->is_target[s] = chosen == NULL ? SITES_COUNTED : chosen[g];
        m->block[s / VLEN].num_targets += m->is_target[s] != 0;
        m->site[g]      = s;
        m->place[s].row = sites->type[g] * 2 * VLEN;
        for (int d = 0; d < 3; d++)
        {
            m->near[3 * (size_t)g + (size_t)d] = R[3 * (size_t)g + (size_t)d];
            m->place[s].x[d]                   = (real)R[3 * (size_t)g + (size_t)d];
        }
    }
}

/* Room for num elements, which keeps those that there are; 0: there is none. */
static int grow(void** array, size_t* capacity, size_t num, size_t size)
{
    if (num > *capacity)
    {
        const size_t more = num + num / 2 + 64;
        void*        room = realloc(*array, more * size);
        if (room == NULL)
        {
            return 0;
        }
        *array    = room;
        *capacity = more;
    }
    return 1;
}

/* The same, aligned, which keeps nothing. */
static int grow_aligned(void** array, size_t* capacity, size_t num, size_t size)
{
    if (num > *capacity)
    {
        const size_t more = (num + num / 4) / FMM_ALIGN * FMM_ALIGN + FMM_ALIGN;
        free(*array);
        *capacity = 0;
        *array    = aligned_alloc(FMM_ALIGN, more * size);
        if (*array == NULL)
        {
            return 0;
        }
        *capacity = more;
    }
    return 1;
}

typedef struct
{
    int*   at;
    size_t num, capacity;
} numbers;

/* A block that looks for sites, with memory of its thread. */
typedef struct
{
    const struct sites_cpu_memory* m;
    const columns*                 c;
    struct sites_domain*           domain;
    int                            block, first, num; /* its sites */
    double                         low[3], high[3], reach;
    real                           reach2, near2, cutoff2; /* near2: within this a pair may come into the inner range */
    vreal                          x[3];
    vinteger                       counts[2]; /* less how often a pair with a site counts, which is a target or not */
    vinteger                       within;    /* less what was found within the cut-off */
    numbers                        found;     /* sites of one image, twice, plus 1 if it is near */
    numbers                        near, far, masked; /* its list, the last in pairs */
    numbers                        renamed;           /* places of the domain's halo */
    char*                          touched;           /* blocks: whether any of its sites is in the domain's halo */
    int                            first_touched, last_touched;
    int*                           mark;   /* of groups: the lanes that exclude it; NULL: no exclusions */
    int*                           head;   /* of sites: the first place in the domain's halo; -1: none */
    int                            failed; /* out of memory */
} seeker;

/* Whether any lane is true. */
static inline int any_lane(vinteger lanes)
{
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)lanes, (__m512i)lanes) != 0;
#elif defined(__AVX__)
    return !_mm256_testz_si256((__m256i)lanes, (__m256i)lanes);
#else
    lane_integer any = 0;
    for (int l = 0; l < VLEN; l++)
    {
        any |= lanes[l];
    }
    return any != 0;
#endif
}

/* Adds sites [begin, end) that are within reach, where x are the block's places less the shift; there is room. (Not
 * inline: one loop at a time has enough registers.) */
static __attribute__((noinline)) void look_at(seeker* s, const vreal* x, int begin, int end)
{
    const vreal        x0 = x[0], x1 = x[1], x2 = x[2], zero = {0};
    const vreal        reach2 = zero + s->reach2, near2 = zero + s->near2, cutoff2 = zero + s->cutoff2;
    const sites_place* place     = s->m->place;
    const int*         is_target = s->m->is_target;
    const vinteger     counts[2] = {s->counts[0], s->counts[1]};
    vinteger           within    = s->within;
    int*               found     = s->found.at + s->found.num;
    int                num       = 0;
    for (int j = begin; j < end; j++)
    {
        const vreal d0 = x0 - place[j].x[0], d1 = x1 - place[j].x[1], d2 = x2 - place[j].x[2];
        const vreal r2 = d0 * d0 + d1 * d1 + d2 * d2;
        found[num]     = 2 * j + any_lane(r2 <= near2); /* the next one takes its place if it is far */
        num += any_lane(r2 <= reach2);
        within += (r2 < cutoff2) & counts[is_target[j] != 0];
    }
    s->found.num += (size_t)num;
    s->within = within;
}

/* Sites whose pairs with those of a block this one computes: [from[0], to[0]) and [from[1], to[1]). Of two blocks it is
 * the one that comes first, where they are nearest in a circle of all. So a block has half of those about it, on one
 * side. Of two images of the own block it has the later one. */
typedef struct
{
    int from[2], to[2];
} site_ranges;

static site_ranges later_sites(const seeker* s, int is_later_image)
{
    const int         num = s->m->num_blocks, b = s->block, half = num / 2 - (num % 2 == 0 && b >= num / 2);
    const site_ranges all = {{(is_later_image ? b : b + 1) * VLEN, 0},
                             {(b + half + 1) * VLEN, (b + half + 1 - num) * VLEN}};
    return all;
}

/* What is of [begin, end) in range i; none if it ends before it begins. */
static inline void clip(const site_ranges* of, int i, int* begin, int* end)
{
    *begin = of->from[i] > *begin ? of->from[i] : *begin;
    *end   = of->to[i] < *end ? of->to[i] : *end;
}

/* The first site of [begin, end), in ascending or descending order of z, that is not before z. */
static int find_height(const columns* c, int begin, int end, int descends, double z)
{
    while (begin < end)
    {
        const int middle = begin + (end - begin) / 2;
        if (descends ? c->z[middle] > z : c->z[middle] < z)
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

/* How far [low, high] is from [from, to]. */
static inline double gap(double low, double high, double from, double to)
{
    const double below = low - to, above = from - high, most = below > above ? below : above;
    return most > 0 ? most : 0;
}

/* The place of a site in the domain's halo, which has room. */
static inline int place_in_halo(seeker* s, struct sites_halo* halo, int site, int image)
{
    for (int i = s->head[site]; i >= 0; i = halo[i].next)
    {
        if (halo[i].image == image)
        {
            return i;
        }
    }
    const int               place = s->domain->num_halo++, block = site / VLEN;
    const struct sites_halo one = {site, image, s->head[site]};
    halo[place]                 = one;
    s->head[site]               = place;
    s->touched[block]           = 1;
    s->first_touched            = block < s->first_touched ? block : s->first_touched;
    s->last_touched             = block > s->last_touched ? block : s->last_touched;
    return place;
}

/* Room for what was found in an image. 0: no memory. */
static int grow_for_found(seeker* s)
{
    struct sites_domain* domain = s->domain;
    const size_t         num    = s->found.num;
    return grow((void**)&domain->halo, &domain->halo_capacity, (size_t)domain->num_halo + num, sizeof(*domain->halo)) &&
           grow((void**)&s->near.at, &s->near.capacity, s->near.num + num, sizeof(int)) &&
           grow((void**)&s->far.at, &s->far.capacity, s->far.num + num, sizeof(int)) &&
           grow((void**)&s->masked.at, &s->masked.capacity, s->masked.num + 2 * num, sizeof(int));
}

/* Adds what was found in an image to the lists, as places in the halo. (Not inline, as above.) */
static __attribute__((noinline)) void take_found(seeker* s, int image)
{
    const int *        order = s->m->order, *is_target = s->m->is_target, *mark = s->mark, *found = s->found.at;
    struct sites_halo* halo = s->domain->halo;
    int *              near = s->near.at, *far = s->far.at, *masked = s->masked.at;
    size_t             num_near = s->near.num, num_far = s->far.num, num_masked = s->masked.num;
    const int          targets = s->m->block[s->block].num_targets, num = s->num;
    int64_t            pairs = 0;
    for (size_t i = 0; i < s->found.num; i++)
    {
        const int site = found[i] / 2, more = is_target[site] != 0 ? num : 0;
        if (targets + more == 0)
        {
            continue;
        }
        const int place = place_in_halo(s, halo, site, image), mask = mark != NULL ? mark[order[site]] : 0;
        pairs += targets + more;
        if (mask != 0)
        {
            masked[num_masked++] = place;
            masked[num_masked++] = mask;
        }
        else if (found[i] % 2 != 0)
        {
            near[num_near++] = place;
        }
        else
        {
            far[num_far++] = place;
        }
    }
    s->domain->pairs += pairs;
    s->near.num   = num_near;
    s->far.num    = num_far;
    s->masked.num = num_masked;
}

/* The number of the image among those of the domain; -1: there is no memory. */
static int number_of_image(seeker* s, const int* k)
{
    struct sites_domain* domain = s->domain;
    for (int i = 0; i < domain->num_images; i++)
    {
        if (memcmp(domain->image[i].k, k, sizeof(domain->image[i].k)) == 0)
        {
            return i;
        }
    }
    if (!grow((void**)&domain->image, &domain->image_capacity, (size_t)domain->num_images + 1, sizeof(*domain->image)))
    {
        return -1;
    }
    memcpy(domain->image[domain->num_images].k, k, sizeof(domain->image->k));
    return domain->num_images++;
}

/* Looks at sites [begin, end) of a column whose z is from low to high. 0: no memory. */
static int look_along(seeker* s, const vreal* x, int descends, int begin, int end, double low, double high)
{
    const int first = find_height(s->c, begin, end, descends, descends ? high : low);
    const int last  = find_height(s->c, first, end, descends, descends ? low : high);
    if (!grow((void**)&s->found.at, &s->found.capacity, s->found.num + (size_t)(last - first) + 1, sizeof(int)))
    {
        return 0;
    }
    look_at(s, x, first, last);
    return 1;
}

/* Finds all sites of the image k within reach. */
static void look_into_image(seeker* s, const double* shift, const int* k)
{
    const columns*    c        = s->c;
    const int         is_later = k[2] != 0 ? k[2] > 0 : k[1] != 0 ? k[1] > 0 : k[0] > 0;
    const site_ranges later    = later_sites(s, is_later);
    int               from[2], to[2];
    vreal             x[3];
    s->found.num = 0;
    for (int d = 0; d < 3; d++)
    {
        x[d] = s->x[d] - (real)shift[d];
    }
    for (int d = 0; d < 2; d++)
    {
        from[d] = column_along(c, d, s->low[d] - shift[d] - s->reach);
        to[d]   = column_along(c, d, s->high[d] - shift[d] + s->reach);
    }
    for (int i = from[0]; i <= to[0]; i++)
    {
        const double left = c->low[0] + i * c->edge[0];
        const double dx   = gap(s->low[0] - shift[0], s->high[0] - shift[0], left, left + c->edge[0]);
        for (int j = from[1]; j <= to[1]; j++)
        {
            const int    rank  = rank_of(c, i, j);
            const double front = c->low[1] + j * c->edge[1];
            const double dy    = gap(s->low[1] - shift[1], s->high[1] - shift[1], front, front + c->edge[1]);
            const double rest  = s->reach * s->reach - dx * dx - dy * dy;
            for (int r = 0; r < 2 && rest >= 0; r++)
            {
                int begin = c->start[rank], end = c->start[rank + 1];
                clip(&later, r, &begin, &end);
                if (begin < end && !look_along(s, x, rank % 2, begin, end, s->low[2] - shift[2] - sqrt(rest),
                                               s->high[2] - shift[2] + sqrt(rest)))
                {
                    s->failed = 1;
                    return;
                }
            }
        }
    }
}

/* Takes what was found in the image k. */
static void take_image(seeker* s, const int* k)
{
    if (s->found.num > 0)
    {
        const int image = number_of_image(s, k);
        s->failed       = image < 0 || !grow_for_found(s);
        if (!s->failed)
        {
            take_found(s, image);
        }
    }
}

/* Images along vector i, whose component is `length`, that bring sites within reach: from, to. */
static void images_along(const seeker* s, int i, double offset, double length, int* from, int* to)
{
    *from = (int)ceil((s->low[i] - s->reach - offset - s->c->high[i]) / length);
    *to   = (int)floor((s->high[i] + s->reach - offset - s->c->low[i]) / length);
}

static void look_into_images(seeker* s, const double* box, int num_periodic)
{
    int from[3] = {0, 0, 0}, to[3] = {0, 0, 0}, k[3];
    if (num_periodic == 3)
    {
        images_along(s, 2, 0, box[8], &from[2], &to[2]);
    }
    for (k[2] = from[2]; k[2] <= to[2]; k[2]++)
    {
        if (num_periodic > 0)
        {
            images_along(s, 1, k[2] * box[7], box[4], &from[1], &to[1]);
        }
        for (k[1] = from[1]; k[1] <= to[1]; k[1]++)
        {
            if (num_periodic > 0)
            {
                images_along(s, 0, k[2] * box[6] + k[1] * box[3], box[0], &from[0], &to[0]);
            }
            for (k[0] = from[0]; k[0] <= to[0] && !s->failed; k[0]++)
            {
                double shift[3];
                for (int d = 0; d < 3; d++)
                {
                    shift[d] = k[0] * box[d] + k[1] * box[3 + d] + k[2] * box[6 + d];
                }
                look_into_image(s, shift, k);
                if (!s->failed)
                {
                    take_image(s, k);
                }
            }
        }
    }
}

/* Pairs of a block's own sites within the cut-off, counted once for each that is a target. */
static int64_t own_within(const seeker* s)
{
    int64_t within = 0;
    for (int i = 0; i < s->num; i++)
    {
        for (int j = 0; j < s->num; j++)
        {
            const real d0 = s->x[0][i] - s->x[0][j], d1 = s->x[1][i] - s->x[1][j], d2 = s->x[2][i] - s->x[2][j];
            within += i != j && s->counts[0][i] != 0 && d0 * d0 + d1 * d1 + d2 * d2 < s->cutoff2;
        }
    }
    return within;
}

/* Sets the marks of groups that the block's sites exclude, or takes them away. */
static void mark_excluded(const gmxfmm_sites* sites, const seeker* s, int is_set)
{
    for (int l = 0; l < s->num; l++)
    {
        const int g = s->m->order[s->first + l];
        for (int k = sites->exclusion_start[g]; k < sites->exclusion_start[g + 1]; k++)
        {
            int* mark = s->mark + sites->exclusion[k];
            *mark     = is_set ? *mark | 1 << l : 0;
        }
    }
    for (int l = 0; l < s->num && is_set; l++)
    {
        s->m->excluded[s->first + l] = s->mark[s->m->order[s->first + l]];
    }
}

/* Sets the block's list in the domain from what was found. 0: no memory. */
static int take_list(seeker* s, struct sites_block* block)
{
    struct sites_domain* domain = s->domain;
    const size_t         num    = s->near.num + s->far.num + s->masked.num;
    if (!grow((void**)&domain->list, &domain->list_capacity, domain->num + num + 1, sizeof(int)))
    {
        return 0;
    }
    block->list            = domain->num;
    const numbers* lists[] = {&s->near, &s->far, &s->masked};
    for (int i = 0; i < 3; i++)
    {
        if (lists[i]->num > 0)
        {
            memcpy(domain->list + domain->num, lists[i]->at, lists[i]->num * sizeof(int));
            domain->num += lists[i]->num;
        }
    }
    block->num_near    = (int)s->near.num;
    block->num_far     = (int)s->far.num;
    block->num_masked  = (int)(s->masked.num / 2);
    block->is_computed = block->num_targets > 0 || num > 0;
    return 1;
}

static void find_pairs(gmxfmm_sites* sites, seeker* s, int b)
{
    const struct sites_cpu_memory* m     = sites->memory;
    struct sites_block*            block = &m->block[b];
    const vinteger                 none  = {0};
    s->block                             = b;
    s->first                             = b * VLEN;
    s->num                               = m->num - s->first < VLEN ? m->num - s->first : VLEN;
    s->near.num = s->far.num = s->masked.num = 0;
    s->counts[0] = s->counts[1] = s->within = none;
    for (int l = 0; l < VLEN; l++)
    {
        const int at    = s->first + (l < s->num ? l : s->num - 1);
        s->counts[0][l] = l < s->num && m->is_target[at] ? -1 : 0;
        s->counts[1][l] = s->counts[0][l] - (l < s->num);
        for (int d = 0; d < 3; d++)
        {
            const double x = m->near[3 * (size_t)m->order[at] + (size_t)d];
            s->x[d][l]     = m->place[at].x[d];
            s->low[d]      = l == 0 ? x : fmin(s->low[d], x);
            s->high[d]     = l == 0 ? x : fmax(s->high[d], x);
        }
    }
    if (s->mark != NULL)
    {
        mark_excluded(sites, s, 1);
    }
    look_into_images(s, sites->box, sites->system.num_periodic);
    if (s->mark != NULL)
    {
        mark_excluded(sites, s, 0);
    }
    s->failed |= !take_list(s, block);
    s->domain->pairs += (int64_t)block->num_targets * (s->num - 1);
    s->domain->within += own_within(s);
    for (int l = 0; l < VLEN; l++)
    {
        s->domain->within -= s->within[l];
    }
}

/* Brings the domain's halo into the order of sites, and empties the thread's marks of it. 0: no memory. */
static int sort_halo(seeker* s)
{
    struct sites_domain* domain = s->domain;
    struct sites_halo*   old    = domain->halo;
    size_t               room   = 0;
    int                  num    = 0;
    if (domain->num_halo == 0)
    {
        return 1;
    }
    domain->halo          = NULL;
    domain->halo_capacity = 0;
    const int made        = grow((void**)&domain->halo, &room, (size_t)domain->num_halo, sizeof(*old)) &&
                     grow((void**)&s->renamed.at, &s->renamed.capacity, (size_t)domain->num_halo, sizeof(int));
    domain->halo_capacity = room;
    for (int b = s->first_touched; b <= s->last_touched; b++)
    {
        for (int site = b * VLEN; s->touched[b] && site < (b + 1) * VLEN && site < s->m->num; site++)
        {
            for (int i = s->head[site]; i >= 0; i = old[i].next)
            {
                if (made)
                {
                    s->renamed.at[i]    = num;
                    domain->halo[num++] = old[i];
                }
            }
            s->head[site] = -1;
        }
        s->touched[b] = 0;
    }
    free(old);
    return made;
}

/* Replaces places in the halo of the domain's lists. */
static void rename_places(const seeker* s)
{
    for (int b = s->domain->begin; b < s->domain->end; b++)
    {
        const struct sites_block* block = s->m->block + b;
        int*                      list  = s->domain->list + block->list;
        for (int i = 0; i < block->num_near + block->num_far; i++)
        {
            list[i] = s->renamed.at[list[i]];
        }
        list += block->num_near + block->num_far;
        for (int i = 0; i < block->num_masked; i++)
        {
            list[2 * i] = s->renamed.at[list[2 * i]];
        }
    }
}

/* Lists of the blocks of domain p. */
static void fill_domain(gmxfmm_sites* sites, seeker* s, int p)
{
    const struct sites_cpu_memory* m      = sites->memory;
    struct sites_domain*           domain = &m->domain[p];
    domain->num                           = 0;
    domain->num_halo = domain->num_images = 0;
    domain->pairs = domain->within = 0;
    s->domain                      = domain;
    s->first_touched               = m->num_blocks;
    s->last_touched                = -1;
    for (int b = domain->begin; b < domain->end && !s->failed; b++)
    {
        find_pairs(sites, s, b);
    }
    if (!s->failed && sort_halo(s))
    {
        rename_places(s);
    }
    else
    {
        s->failed = 1;
    }
    domain->failed = s->failed;
}

/* Lists of all domains. */
static void fill_domains(gmxfmm_sites* sites, const columns* c, double reach)
{
    const struct sites_cpu_memory* m      = sites->memory;
    const gmxfmm_sites_system*     system = &sites->system;
    const double near = system->inner.cutoff + reach - system->outer.cutoff, cutoff = system->outer.cutoff;
    const size_t num = (size_t)m->num;
#pragma omp parallel num_threads(sites->system.num_threads)
    {
        const int masks = sites->exclusion_start != NULL;
        seeker    s     = {.m = m, .c = c, .reach = reach};
        s.reach2        = (real)(reach * reach);
        s.cutoff2       = (real)(cutoff * cutoff);
        s.near2         = sites_has_inner(system) ? (real)(near * near) : -1;
        s.mark          = masks ? calloc(num, sizeof(int)) : NULL;
        s.head          = malloc(num * sizeof(int));
        s.touched       = calloc((size_t)m->num_blocks, 1);
        s.failed        = s.head == NULL || s.touched == NULL || (masks && s.mark == NULL);
        if (s.head != NULL)
        {
            memset(s.head, 0xff, num * sizeof(int));
        }
#pragma omp for schedule(dynamic)
        for (int p = 0; p < m->num_domains; p++)
        {
            fill_domain(sites, &s, p);
        }
        free(s.found.at);
        free(s.renamed.at);
        free(s.touched);
        free(s.near.at);
        free(s.far.at);
        free(s.masked.at);
        free(s.mark);
        free(s.head);
    }
}

/* Where the halos of domains are in all of them, and of each site its places there. 0: no memory. */
static int join_halos(struct sites_cpu_memory* m, int num_threads)
{
    size_t all      = 0;
    m->longest_halo = 0;
    for (int p = 0; p < m->num_domains; p++)
    {
        const size_t num   = (size_t)m->domain[p].num_halo;
        m->domain[p].first = all;
        all += num;
        m->longest_halo = num > m->longest_halo ? num : m->longest_halo;
    }
    if (all > INT_MAX || !grow((void**)&m->halo_of, &m->halo_of_capacity, all, sizeof(int)) ||
        !grow_aligned((void**)&m->halo_force, &m->halo_force_capacity, all, SITES_STRIDE * sizeof(real)) ||
        !grow_aligned((void**)&m->halo_place, &m->halo_place_capacity, (size_t)num_threads * m->longest_halo,
                      sizeof(sites_place)))
    {
        return 0;
    }
    memset(m->halo_start, 0, ((size_t)m->num + 1) * sizeof(int));
    for (int pass = 0; pass < 2; pass++)
    {
        for (int p = 0; p < m->num_domains; p++)
        {
            const struct sites_domain* domain = &m->domain[p];
            for (int i = 0; i < domain->num_halo; i++)
            {
                int* start = m->halo_start + domain->halo[i].site;
                if (pass == 0)
                {
                    start[1]++;
                }
                else
                {
                    m->halo_of[(*start)++] = (int)domain->first + i;
                }
            }
        }
        for (int s = 0; s < m->num && pass == 0; s++)
        {
            m->halo_start[s + 1] += m->halo_start[s];
        }
    }
    /* each start was moved to its end */
    memmove(m->halo_start + 1, m->halo_start, (size_t)m->num * sizeof(int));
    m->halo_start[0] = 0;
    return 1;
}

static void mark_used(const gmxfmm_sites* sites)
{
    const struct sites_cpu_memory* m = sites->memory;
    for (int s = 0; s < m->num; s++)
    {
        m->is_used[s] = m->block[s / VLEN].is_computed || m->halo_start[s + 1] > m->halo_start[s];
    }
}

/* Of memory that grows. */
static int64_t domain_bytes(const struct sites_cpu_memory* m)
{
    int64_t bytes = 0;
    for (int p = 0; p < m->num_domains; p++)
    {
        const struct sites_domain* domain = &m->domain[p];
        bytes += (int64_t)(domain->list_capacity * sizeof(int) + domain->halo_capacity * sizeof(*domain->halo) +
                           domain->image_capacity * sizeof(*domain->image));
    }
    return bytes + (int64_t)(m->halo_of_capacity * sizeof(int) + m->halo_place_capacity * sizeof(sites_place) +
                             m->halo_force_capacity * SITES_STRIDE * sizeof(real));
}

/* The order of sites in memory for it: columns have start, which is as long as fill. 0: no memory. */
static int order_sites(gmxfmm_sites* sites, columns* c, const double* R)
{
    struct sites_cpu_memory* m      = sites->memory;
    const size_t             num    = (size_t)c->num[0] * (size_t)c->num[1];
    height*                  all    = malloc((size_t)m->num * sizeof(*all));
    int*                     fill   = malloc(num * sizeof(int));
    char*                    chosen = sites->target != NULL ? calloc((size_t)m->num, 1) : NULL;
    const int                made   = all != NULL && fill != NULL && (chosen != NULL || sites->target == NULL);
    for (int i = 0; i < sites->num_targets && made && chosen != NULL; i++)
    {
        chosen[sites->target[i]] = i < sites->num_counted ? SITES_COUNTED : 1;
    }
    if (made)
    {
        sort_sites(c, m->num, R, all, m->order, fill);
        fill_blocks(sites, R, chosen);
    }
    free(all);
    free(fill);
    free(chosen);
    return made;
}

gmxfmm_status sites_cpu_make_lists(gmxfmm_sites* sites, const double* R, double reach)
{
    struct sites_cpu_memory* m = sites->memory;
    columns                  c;
    sites->num_pairs = sites->num_within = 0;
    if (m->num == 0)
    {
        return GMXFMM_OK;
    }
    choose_columns(&c, m->num, R, reach);
    c.start              = malloc(((size_t)c.num[0] * (size_t)c.num[1] + 1) * sizeof(int));
    c.z                  = malloc((size_t)m->num * sizeof(double));
    int           failed = c.start == NULL || c.z == NULL || !order_sites(sites, &c, R);
    const int64_t before = domain_bytes(m);
    if (!failed)
    {
        fill_domains(sites, &c, reach * (1 + c_slack));
    }
    free(c.start);
    free(c.z);
    for (int p = 0; p < m->num_domains && !failed; p++)
    {
        failed = m->domain[p].failed;
        sites->num_pairs += m->domain[p].pairs;
        sites->num_within += m->domain[p].within;
    }
    failed = failed || !join_halos(m, sites->system.num_threads);
    sites->bytes += domain_bytes(m) - before;
    if (failed)
    {
        return sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory for pairs of %d sites", m->num);
    }
    mark_used(sites);
    return GMXFMM_OK;
}
