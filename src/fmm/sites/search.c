/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The order of sites, and lists of pairs. Sites are sorted into columns along z, and in a column by z, up and down by
 * turns: so blocks of consecutive sites are compact. A block looks for others in all columns, and all images of these,
 * that are within reach of the brick about its sites, and keeps each site that is within reach of any of its own.
 */
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
    double low[3], high[3]; /* of all sites */
    int    num[2];          /* columns along x and y */
    double edge[2];
    int*   start; /* [num[0] num[1] + 1]: first site of each column, by rank */
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
            order[s] = all[i % 2 == 0 ? s : begin + end - 1 - s].group;
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
        m->place[s].row = sites->type[g] * 2 * VLEN;
        for (int d = 0; d < 3; d++)
        {
            m->near[3 * (size_t)s + (size_t)d] = R[3 * (size_t)g + (size_t)d];
            m->place[s].x[d]                   = (real)R[3 * (size_t)g + (size_t)d];
        }
    }
}

/* Room for num elements; 0: there is none. */
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

/* A block that looks for sites. */
typedef struct
{
    const struct sites_cpu_memory* m;
    const columns*                 c;
    struct sites_part*             lists;
    int                            first, num; /* its sites */
    double                         low[3], high[3], reach;
    real                           reach2, cutoff2;
    vreal                          x[3];
    vinteger                       is_target; /* all bits set */
    vinteger                       within;    /* less what was found within the cut-off */
    int*                           mark;      /* of groups: the lanes that exclude it; NULL: no exclusions */
    size_t                         num_masks; /* in the list */
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

/* Adds sites [begin, end) that are within reach, where x are the block's places less the shift; there is room. */
static void look_at(seeker* s, const vreal* x, int begin, int end)
{
    const vreal    x0 = x[0], x1 = x[1], x2 = x[2];
    const vinteger is_target = s->is_target;
    vinteger       within    = s->within;
    int*           list      = s->lists->list + s->lists->num;
    int            num       = 0;
    for (int j = begin; j < end; j++)
    {
        const sites_place* at = s->m->place + j;
        const vreal        d0 = x0 - at->x[0], d1 = x1 - at->x[1], d2 = x2 - at->x[2];
        const vreal        r2 = d0 * d0 + d1 * d1 + d2 * d2;
        list[num]             = j; /* the next one takes its place if it is far */
        num += any_lane(r2 <= s->reach2);
        within += (r2 < s->cutoff2) & is_target;
    }
    s->lists->num += (size_t)num;
    s->within = within;
}

/* The same without the block's own sites. */
static void look_beside(seeker* s, const vreal* x, int begin, int end)
{
    const int from = s->first, to = s->first + s->num;
    look_at(s, x, begin, end < from ? end : from);
    look_at(s, x, begin > to ? begin : to, end);
}

/* The first site of a column, [begin, end) in ascending or descending order of z, that is not before z. */
static int find_height(const struct sites_cpu_memory* m, int begin, int end, int descends, double z)
{
    while (begin < end)
    {
        const int    middle = begin + (end - begin) / 2;
        const double at     = m->near[3 * (size_t)middle + 2];
        if (descends ? at > z : at < z)
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
static double gap(double low, double high, double from, double to)
{
    return fmax(0, fmax(low - to, from - high));
}

/* Puts the sites of a run that lanes exclude behind the others, each with its mask. */
static void mask_run(seeker* s, struct sites_run* run)
{
    struct sites_part* part  = s->lists;
    const size_t       found = part->num - run->place;
    if (!grow((void**)&part->list, &part->list_capacity, part->num + 2 * found, sizeof(int)))
    {
        part->failed = 1;
        return;
    }
    int *  list = part->list + run->place, *masked = list + found;
    size_t kept = 0, num = 0;
    for (size_t i = 0; i < found; i++)
    {
        const int mask = s->mark[s->m->order[list[i]]];
        if (mask == 0)
        {
            list[kept++] = list[i];
        }
        else
        {
            masked[2 * num]       = list[i];
            masked[2 * num++ + 1] = mask;
        }
    }
    memmove(list + kept, masked, 2 * num * sizeof(int));
    run->num        = (int)kept;
    run->num_masked = (int)num;
    part->num += num;
    s->num_masks += num;
}

/* All sites of the image k within reach. */
static void look_into_image(seeker* s, const double* shift, const int* k)
{
    const columns*    c = s->c;
    int               from[2], to[2];
    vreal             x[3];
    struct sites_run* run = s->lists->run + s->lists->num_runs;
    const int         own = k[0] == 0 && k[1] == 0 && k[2] == 0;
    run->place            = s->lists->num;
    memcpy(run->k, k, sizeof(run->k));
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
            const double front = c->low[1] + j * c->edge[1];
            const double dy    = gap(s->low[1] - shift[1], s->high[1] - shift[1], front, front + c->edge[1]);
            const double rest  = s->reach * s->reach - dx * dx - dy * dy;
            const int    rank = rank_of(c, i, j), begin = c->start[rank], end = c->start[rank + 1];
            if (rest < 0 || begin == end)
            {
                continue;
            }
            const double low = s->low[2] - shift[2] - sqrt(rest), high = s->high[2] - shift[2] + sqrt(rest);
            const int    down  = rank % 2;
            const int    first = find_height(s->m, begin, end, down, down ? high : low);
            const int    last  = find_height(s->m, first, end, down, down ? low : high);
            const size_t room  = s->lists->num + (size_t)(last - first);
            if (!grow((void**)&s->lists->list, &s->lists->list_capacity, room, sizeof(int)))
            {
                s->lists->failed = 1;
                return;
            }
            own ? look_beside(s, x, first, last) : look_at(s, x, first, last);
        }
    }
    run->num        = (int)(s->lists->num - run->place);
    run->num_masked = 0;
    s->lists->num_runs += run->num > 0;
    if (s->mark != NULL && run->num > 0)
    {
        mask_run(s, run);
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
            for (k[0] = from[0]; k[0] <= to[0]; k[0]++)
            {
                double shift[3];
                for (int d = 0; d < 3; d++)
                {
                    shift[d] = k[0] * box[d] + k[1] * box[3 + d] + k[2] * box[6 + d];
                }
                if (!grow((void**)&s->lists->run, &s->lists->run_capacity, s->lists->num_runs + 1,
                          sizeof(struct sites_run)))
                {
                    s->lists->failed = 1;
                    return;
                }
                look_into_image(s, shift, k);
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
            within += i != j && s->is_target[i] != 0 && d0 * d0 + d1 * d1 + d2 * d2 < s->cutoff2;
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

static void find_pairs(gmxfmm_sites* sites, const columns* c, double reach, int b, struct sites_part* part, int* mark)
{
    const struct sites_cpu_memory* m      = sites->memory;
    struct sites_block*            block  = &m->block[b];
    const double                   cutoff = sites->system.outer.cutoff;
    const vinteger                 none   = {0};
    seeker                         s = {.m = m, .c = c, .lists = part, .first = b * VLEN, .reach = reach, .mark = mark};
    const size_t                   before = part->num;
    s.num                                 = m->num - s.first < VLEN ? m->num - s.first : VLEN;
    s.reach2                              = (real)(reach * reach);
    s.cutoff2                             = (real)(cutoff * cutoff);
    s.is_target = s.within = none;
    for (int l = 0; l < VLEN; l++)
    {
        const int at   = s.first + (l < s.num ? l : s.num - 1);
        s.is_target[l] = l < s.num && m->is_target[at] ? -1 : 0;
        for (int d = 0; d < 3; d++)
        {
            const double x = m->near[3 * (size_t)at + (size_t)d];
            s.x[d][l]      = m->place[at].x[d];
            s.low[d]       = l == 0 ? x : fmin(s.low[d], x);
            s.high[d]      = l == 0 ? x : fmax(s.high[d], x);
        }
    }
    if (mark != NULL)
    {
        mark_excluded(sites, &s, 1);
    }
    block->run = part->num_runs;
    look_into_images(&s, sites->box, sites->system.num_periodic);
    block->num_runs = (int)(part->num_runs - block->run);
    if (mark != NULL)
    {
        mark_excluded(sites, &s, 0);
    }
    part->pairs += (int64_t)block->num_targets * (int64_t)(part->num - s.num_masks - before + (size_t)s.num - 1);
    part->within += own_within(&s);
    for (int l = 0; l < VLEN; l++)
    {
        part->within -= s.within[l];
    }
}

/* Lists of the blocks of part p that have targets. */
static void fill_part(gmxfmm_sites* sites, const columns* c, double reach, int p)
{
    const struct sites_cpu_memory* m     = sites->memory;
    struct sites_part*             part  = &m->lists[p];
    const int                      begin = (int)((int64_t)m->num_blocks * p / m->num_parts);
    const int                      end   = (int)((int64_t)m->num_blocks * (p + 1) / m->num_parts);
    int*                           mark  = sites->exclusion_start != NULL ? calloc((size_t)m->num, sizeof(int)) : NULL;
    part->num = part->num_runs = 0;
    part->pairs = part->within = 0;
    part->failed               = sites->exclusion_start != NULL && mark == NULL;
    for (int b = begin; b < end && !part->failed; b++)
    {
        m->block[b].lists    = p;
        m->block[b].num_runs = 0;
        if (m->block[b].num_targets > 0)
        {
            find_pairs(sites, c, reach, b, part, mark);
        }
    }
    free(mark);
}

static void mark_used(const gmxfmm_sites* sites)
{
    const struct sites_cpu_memory* m = sites->memory;
    memset(m->is_used, sites->target == NULL, (size_t)m->num);
    for (int p = 0; p < m->num_parts && sites->target != NULL; p++)
    {
        for (size_t r = 0; r < m->lists[p].num_runs; r++)
        {
            const struct sites_run* run  = m->lists[p].run + r;
            const int*              list = m->lists[p].list + run->place;
            for (int i = 0; i < run->num + run->num_masked; i++)
            {
                m->is_used[i < run->num ? list[i] : list[2 * i - run->num]] = 1;
            }
        }
    }
    for (int s = 0; s < m->num && sites->target != NULL; s++)
    {
        m->is_used[s] |= m->block[s / VLEN].num_targets > 0;
    }
}

static int64_t part_bytes(const struct sites_cpu_memory* m)
{
    int64_t bytes = 0;
    for (int p = 0; p < m->num_parts; p++)
    {
        bytes +=
            (int64_t)(m->lists[p].list_capacity * sizeof(int) + m->lists[p].run_capacity * sizeof(struct sites_run));
    }
    return bytes;
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
    int           failed = c.start == NULL || !order_sites(sites, &c, R);
    const int64_t before = part_bytes(m);
    if (!failed)
    {
#pragma omp parallel for num_threads(sites->system.num_threads) schedule(dynamic)
        for (int p = 0; p < m->num_parts; p++)
        {
            fill_part(sites, &c, reach * (1 + c_slack), p);
        }
    }
    free(c.start);
    sites->bytes += part_bytes(m) - before;
    for (int p = 0; p < m->num_parts && !failed; p++)
    {
        failed = m->lists[p].failed;
        sites->num_pairs += m->lists[p].pairs;
        sites->num_within += m->lists[p].within;
    }
    if (failed)
    {
        return sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory for pairs of %d sites", m->num);
    }
    mark_used(sites);
    return GMXFMM_OK;
}
