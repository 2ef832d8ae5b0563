/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gaussian charges: a pair with widths s_i, s_j has the potential erf(r/g)/r, g^2 = 2 (s_i^2 + s_j^2), in place of 1/r
 * (THEORY (53)). The difference is short-ranged. It is summed here over pairs within a cut-off, whatever the cells are:
 * particles are put into bins about half as long in each step, and those of a bin meet those of all bins and images
 * within reach.
 *
 * 1/r of a close pair would be most of both sums, and is no number at r = 0. P2P softens it (soften.h), and what is
 * added here is erf(r/g)/r less the softened 1/r. Two points closer than that are made whole again.
 */
#include "fmm/cpu/near/widths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/cpu/near/gaussians.h"
#include "fmm/geometry/tree_sort.h"

/* P2P softens pairs closer than this share of the largest width. Larger ones lose at most a digit in the difference. */
static const double c_softened = 0.25;

/* Terms that are left out beyond the cut-off, relative to 1/r^2, over the error of the rest. */
static const double c_leftOut = 0.02;

/* Images within the cut-off along each box vector, at most: more would take a step too long. */
static const double c_mostImages = 16;

enum
{
    c_chunk    = 1024,   /* sources that a bin meets at a time */
    c_mostBins = 1 << 27 /* along a direction, which keys have room for */
};

/* A particle or target in the order of cells, in the unit of `bins`. */
typedef struct
{
    double place[3]; /* in the box */
    double twice;    /* 2 s^2 */
    double q;
    int    wrapped[3]; /* box vectors that were taken off */
    int    rank;       /* in the order of bins */
} binned;

typedef struct
{
    const fmm_particle_set* particles;
    int                     n;
    binned*                 item;
    fmm_keyed*              key; /* n, sorted by bins */
} binned_set;

/* Bins are along box vectors, or along x, y and z where there are no images. */
typedef struct
{
    double basis[9], inverse[9];
    double low[3], per[3]; /* coordinates of the first bin, and bins of a unit of coordinates */
    int    num[3];         /* of bins to the next image; 0: there is none */
    int    reach[3];       /* bins that the cut-off reaches */
    int    given;          /* whether places are the caller's own numbers (fmm_has_given) */
    double one;            /* u in the unit of places */
    double width_unit;     /* the caller's unit in it */
    double cutoff2;        /* over 2 (s_i^2 + s_j^2) */
    double soften2;
} bins;

/* Sources that meet a bin, and where they come from. */
typedef struct
{
    int first, count, at, image[3]; /* ranks first .. first + count - 1 are at `at` and further on in the list */
} source_run;

typedef struct
{
    real *        x, *y, *z, *q, *twice;
    lane_integer* kept; /* all bits set, or 0: has no charge, or is excluded */
    source_run*   run;
    int           num, num_runs;
} source_list;

size_t fmm_widths_scratch(const gmxfmm_plan* plan)
{
    return fmm_has_widths(plan) ? 6 * c_chunk * sizeof(real) + c_chunk * sizeof(source_run) : 0;
}

static source_list list_in(real* memory)
{
    source_list list = {memory,
                        memory + c_chunk,
                        memory + 2 * c_chunk,
                        memory + 3 * c_chunk,
                        memory + 4 * c_chunk,
                        (lane_integer*)(memory + 5 * c_chunk),
                        (source_run*)(memory + 6 * c_chunk),
                        0,
                        0};
    return list;
}

static double height_of(const bins* b, int d)
{
    return 1 / sqrt(b->inverse[d] * b->inverse[d] + b->inverse[3 + d] * b->inverse[3 + d] +
                    b->inverse[6 + d] * b->inverse[6 + d]);
}

/* The distance that pairs are looked for within, in the caller's unit. */
static double range_of(const gmxfmm_plan* plan)
{
    return fmax(2 * plan->cpu->widths.cutoff * plan->charges.widest, plan->cpu->widths.soften);
}

/* Vectors and units; bins come later. */
static bins basis_of(const gmxfmm_plan* plan)
{
    const fmm_cells* c     = &plan->domain.cells;
    const int        given = fmm_has_given(plan);
    const double     scale = given ? fmm_given_scale(plan) : 1 / c->u, soften = plan->cpu->widths.soften * scale;
    bins             b = {.given      = given,
                          .one        = given ? scale * c->u : 1,
                          .width_unit = scale,
                          .cutoff2    = plan->cpu->widths.cutoff * plan->cpu->widths.cutoff,
                          .soften2    = soften * soften};
    for (int i = 0; i < 9; i++)
    {
        b.basis[i] = c->periodic[i / 3] ? c->n[i / 3] * c->cell[i] : i % 4 == 0;
    }
    fmm_inverse(b.basis, fmm_determinant(b.basis), b.inverse);
    return b;
}

/* Where erfc(x) + 2 x / sqrt(pi) exp(-x^2), the share of a pair's force that a cut-off at x leaves out, is this small.
 */
static double cutoff_for(double share)
{
    double low = 0, high = 8;
    for (int i = 0; i < 40; i++)
    {
        const double x = 0.5 * (low + high), left_out = erfc(x) + 2 * x / sqrt(FMM_PI) * exp(-x * x);
        low  = left_out > share ? x : low;
        high = left_out > share ? high : x;
    }
    return high;
}

/* Gives the memory of widths that there are no more back. */
static void release(gmxfmm_plan* plan)
{
    fmm_widths_state*      w      = &plan->cpu->widths;
    const fmm_widths_state c_none = {0};
    free(w->memory);
    free(w->images);
    plan->bytes -= w->capacity + w->images_capacity;
    *w = c_none;
}

gmxfmm_status fmm_widths_assign(gmxfmm_plan* plan)
{
    fmm_widths_state* w = &plan->cpu->widths;
    if (!fmm_has_widths(plan))
    {
        release(plan);
        return GMXFMM_OK;
    }
    const fmm_cells* c        = &plan->domain.cells;
    const double     near     = c->edge * fmm_near_range(c, plan->domain.separation);
    const double     error    = fmin(plan->options.accuracy, plan->far.predicted_error);
    const double     rounding = sizeof(real) == sizeof(double) ? 1e-15 : 1e-7;
    w->soften                 = fmin(c_softened * plan->charges.widest, 0.5 * near);
    w->soften                 = w->soften > 1e-10 * near ? w->soften : 0; /* its powers would be no numbers */
    w->cutoff                 = cutoff_for(c_leftOut * fmax(error, rounding));
    const bins   b            = basis_of(plan);
    const double range        = range_of(plan) * b.width_unit;
    for (int d = 0; d < 3; d++)
    {
        if (c->periodic[d] && range > c_mostImages * height_of(&b, d))
        {
            return fmm_fail(plan, GMXFMM_ERROR_OPTION,
                            "widths of up to %g reach %g, more than %g times the height of the box: choose smaller "
                            "widths, or a box that has several of this one",
                            plan->charges.widest, range_of(plan), c_mostImages);
        }
    }
    const size_t n = (size_t)plan->particles.n, m = (size_t)plan->particles.num_targets;
    const size_t bytes = (n + m) * (sizeof(binned) + sizeof(fmm_keyed)) + (n > m ? n : m) * sizeof(fmm_keyed);
    return fmm_grow(plan, &w->memory, &w->capacity, bytes)
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for widths");
}

/* Coordinates of particle s, which is moved into the box. */
static void set_item(const gmxfmm_plan* plan, const bins* b, const binned_set* set, int s, double* t)
{
    const fmm_particle_set* p  = set->particles;
    const fmm_arrays        a  = fmm_arrays_of(p);
    binned*                 to = set->item + s;
    const int               i  = p->sorted[s];
    double                  centre[3], y[3] = {0, 0, 0};
    if (!b->given)
    {
        fmm_cell_centre(plan, p->cell_of[i], centre);
        fmm_cartesian(plan->domain.cells.cell, centre, y);
    }
    to->place[0] = b->given ? (double)((const real*)p->given[0])[s] : y[0] + (double)a.x[s];
    to->place[1] = b->given ? (double)((const real*)p->given[1])[s] : y[1] + (double)a.y[s];
    to->place[2] = b->given ? (double)((const real*)p->given[2])[s] : y[2] + (double)a.z[s];
    for (int d = 0; d < 3; d++)
    {
        t[d] = to->place[0] * b->inverse[d] + to->place[1] * b->inverse[3 + d] + to->place[2] * b->inverse[6 + d];
        const double k = plan->domain.periodic[d] ? floor(t[d]) : 0;
        to->wrapped[d] = (int)k;
        t[d] -= k;
    }
    for (int d = 0; d < 9; d++)
    {
        to->place[d % 3] -= to->wrapped[d / 3] * b->basis[d];
    }
    const int    charged = p == &plan->cpu->sources;
    const double width   = charged ? plan->charges.width[i] * b->width_unit : 0;
    to->twice            = 2 * width * width;
    to->q                = charged ? (double)a.q[s] : 1;
}

/* Places of a set, and what they reach along open directions. */
static void set_items(const gmxfmm_plan* plan, const bins* b, const binned_set* set, double* low, double* high)
{
    double l0 = low[0], l1 = low[1], l2 = low[2], h0 = high[0], h1 = high[1], h2 = high[2];
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(min                                 \
                                                                                   : l0, l1, l2)                       \
    reduction(max                                                                                                      \
              : h0, h1, h2)
    for (int s = 0; s < set->n; s++)
    {
        double t[3];
        set_item(plan, b, set, s, t);
        l0 = fmin(l0, t[0]);
        l1 = fmin(l1, t[1]);
        l2 = fmin(l2, t[2]);
        h0 = fmax(h0, t[0]);
        h1 = fmax(h1, t[1]);
        h2 = fmax(h2, t[2]);
    }
    const double lows[3] = {l0, l1, l2}, highs[3] = {h0, h1, h2};
    memcpy(low, lows, sizeof(lows));
    memcpy(high, highs, sizeof(highs));
}

/* Bins of half the range, or of the whole range where some sources would be too few in them, or as many as there is
 * room for. n: sources. */
static void set_bins(const gmxfmm_plan* plan, bins* b, int n, const double* low, const double* high)
{
    enum
    {
        c_some = 8
    };
    const double range  = range_of(plan) * b->width_unit;
    double       volume = fabs(fmm_determinant(b->basis));
    for (int d = 0; d < 3; d++)
    {
        volume *= plan->domain.periodic[d] ? 1 : high[d] - low[d];
    }
    const double wanted = fmin(range, fmax(0.5 * range, cbrt(c_some * volume / n)));
    for (int d = 0; d < 3; d++)
    {
        const int    images = plan->domain.periodic[d];
        const double length = images ? height_of(b, d) : high[d] - low[d];
        const double most   = fmin(c_mostBins, fmax(1, floor(length / wanted)));
        const double edge   = images ? length / most : fmax(wanted, length / most);
        b->low[d]           = images ? 0 : low[d];
        b->per[d]           = images ? most : 1 / edge;
        b->num[d]           = images ? (int)most : 0;
        b->reach[d]         = (int)ceil((1 + 1e-6) * range / edge); /* and what rounding takes out of reach */
    }
}

/* Sorts a set by bins. */
static void sort_set(const gmxfmm_plan* plan, const bins* b, const binned_set* set, fmm_keyed* buffer)
{
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int s = 0; s < set->n; s++)
    {
        const double* x = set->item[s].place;
        int           at[3];
        for (int d = 0; d < 3; d++)
        {
            const double t = x[0] * b->inverse[d] + x[1] * b->inverse[3 + d] + x[2] * b->inverse[6 + d];
            const double k = fmax(0, floor((t - b->low[d]) * b->per[d]));
            at[d]          = b->num[d] > 0 && k >= b->num[d] ? b->num[d] - 1 : (int)k;
        }
        set->key[s] = fmm_with_key(fmm_row_key(at), s);
    }
    fmm_sort_keys(set->key, buffer, (size_t)set->n, 1); /* which allocates nothing */
    for (int k = 0; k < set->n; k++)
    {
        set->item[set->key[k].index].rank = k;
    }
}

static inline int any_lane(vinteger lanes)
{
    lane_integer any = 0;
    for (int l = 0; l < VLEN; l++)
    {
        any |= lanes[l];
    }
    return any != 0;
}

/* Sums of one target: phi, field, q r r^T f (xx, yy, zz, xy, xz, yz). */
enum
{
    c_phi,
    c_field,
    c_square = 4,
    c_sums   = 10
};

/* A target at x with all of the list. */
static void meet(const bins* b, const source_list* list, const real* x, const binned* own, int with_square, double* out)
{
    const vreal    zero = {0}, vx = zero + x[0], vy = zero + x[1], vz = zero + x[2], twice = zero + (real)own->twice;
    const vreal    soften2 = zero + (real)b->soften2, cutoff2 = zero + (real)b->cutoff2;
    const vinteger uncharged = {0}, all = ~uncharged;
    vreal          sum[c_sums];
    for (int i = 0; i < c_sums; i++)
    {
        sum[i] = zero;
    }
    for (int j = 0; j < list->num; j += VLEN)
    {
        const vreal    dx = vx - *(const vreal*)(list->x + j), dy = vy - *(const vreal*)(list->y + j);
        const vreal    dz = vz - *(const vreal*)(list->z + j), g2 = twice + *(const vreal*)(list->twice + j);
        const vreal    r2     = dx * dx + dy * dy + dz * dz;
        const vinteger within = ((r2 < cutoff2 * g2) | (r2 < soften2)) & *(const vinteger*)(list->kept + j);
        if (!any_lane(within))
        {
            continue;
        }
        /* a point without charge may stand where another one is */
        const vinteger      bare = (r2 == zero) & (g2 == zero) & (own->q == 0 ? all : uncharged);
        const gaussian_pair d    = gaussian_differ(r2, g2, soften2, bare);
        const vreal         q    = *(const vreal*)(list->q + j);
        const vreal         f    = gaussian_choose(within, q * d.force, zero);
        const vreal         fx = f * dx, fy = f * dy, fz = f * dz;
        sum[c_phi] += gaussian_choose(within, q * d.potential, zero);
        sum[c_field] += fx;
        sum[c_field + 1] += fy;
        sum[c_field + 2] += fz;
        if (with_square)
        {
            sum[c_square] += fx * dx;
            sum[c_square + 1] += fy * dy;
            sum[c_square + 2] += fz * dz;
            sum[c_square + 3] += fx * dy;
            sum[c_square + 4] += fx * dz;
            sum[c_square + 5] += fy * dz;
        }
    }
    for (int i = 0; i < c_sums; i++)
    {
        out[i] = 0;
        for (int l = 0; l < VLEN; l++)
        {
            out[i] += (double)sum[i][l];
        }
    }
}

/* Leaves the image k[3] of a source out of the list, or takes it in again; it need not be there. */
static void keep(const source_list* list, const binned* other, const int* k, int kept)
{
    for (int r = 0; r < list->num_runs; r++)
    {
        const source_run* run = list->run + r;
        const int         at  = other->rank - run->first;
        if (at >= 0 && at < run->count && k[0] == run->image[0] && k[1] == run->image[1] && k[2] == run->image[2])
        {
            list->kept[run->at + at] = kept && other->q != 0 ? -1 : 0;
        }
    }
}

/* The same of what source s excludes, itself the first. */
static void keep_excluded(const gmxfmm_plan* plan, const source_list* list, const binned_set* sources, int s, int kept)
{
    static const int        c_none[3] = {0, 0, 0};
    const fmm_cpu*          cpu       = plan->cpu;
    const fmm_particle_set* p         = sources->particles;
    const binned*           own       = sources->item + s;
    const int *             start = plan->particles.excl_start, i = p->sorted[s];
    const int               num = start != NULL ? start[i + 1] - start[i] : 0;
    keep(list, own, c_none, kept);
    for (int e = 0; e < num; e++)
    {
        const binned*  other = sources->item + p->position[plan->particles.excl_list[start[i] + e]];
        const unsigned image = cpu->widths.images[cpu->mask_start[s] + 1 + e];
        int            k[3];
        for (int d = 0; d < 3; d++)
        {
            k[d] = fmm_image(image, d) + other->wrapped[d] - own->wrapped[d];
        }
        keep(list, other, k, kept);
    }
}

/* What the stages of a step have in common. */
typedef struct
{
    const gmxfmm_plan* plan;
    bins               b;
    binned_set         sources, targets;
    fmm_wanted         wanted;
} widths_step;

/* Targets first .. end - 1 of a bin meet the list, which is empty then. centre: what places in it are relative to. */
static void meet_bin(const widths_step* w, source_list* list, int first, int end, const double* centre, double* virial)
{
    const fmm_arrays a    = fmm_arrays_of(w->targets.particles);
    const int        own  = w->targets.particles == w->sources.particles;
    const double     to_u = w->b.one, to_u2 = to_u * to_u;
    while (list->num % VLEN != 0)
    {
        list->x[list->num] = list->y[list->num] = list->z[list->num] = 0;
        list->q[list->num] = list->twice[list->num] = 0;
        list->kept[list->num++]                     = 0;
    }
    for (int k = first; k < end; k++)
    {
        const int     s    = w->targets.key[k].index;
        const binned* item = w->targets.item + s;
        const real    x[3] = {(real)(item->place[0] - centre[0]), (real)(item->place[1] - centre[1]),
                              (real)(item->place[2] - centre[2])};
        double        out[c_sums];
        if (own)
        {
            keep_excluded(w->plan, list, &w->sources, s, 0);
        }
        meet(&w->b, list, x, item, w->wanted == FMM_VIRIAL, out);
        if (own)
        {
            keep_excluded(w->plan, list, &w->sources, s, 1);
        }
        if (w->wanted != FMM_FIELD)
        {
            a.near_phi[s] += (real)(out[c_phi] * to_u);
        }
        if (w->wanted != FMM_POTENTIAL)
        {
            a.ex[s] += (real)(out[c_field] * to_u2);
            a.ey[s] += (real)(out[c_field + 1] * to_u2);
            a.ez[s] += (real)(out[c_field + 2] * to_u2);
        }
        for (int i = 0; i < 6 && w->wanted == FMM_VIRIAL; i++)
        {
            virial[i] -= 0.25 * item->q * out[c_square + i] * to_u; /* every pair is counted twice */
        }
    }
    list->num = list->num_runs = 0;
}

/* A bin of targets, first .. end - 1, and the list of what meets it. */
typedef struct
{
    const widths_step* w;
    source_list        list;
    int                first, end;
    double             centre[3], *virial;
} target_bin;

/* Adds sources of ranks first .. end - 1 in an image. */
static void add_run(target_bin* bin, int first, int end, const int* image)
{
    const widths_step* w    = bin->w;
    source_list*       list = &bin->list;
    double             shift[3];
    for (int d = 0; d < 3; d++)
    {
        shift[d] =
            image[0] * w->b.basis[d] + image[1] * w->b.basis[3 + d] + image[2] * w->b.basis[6 + d] - bin->centre[d];
    }
    while (first < end)
    {
        const int        room = c_chunk - list->num, count = end - first < room ? end - first : room;
        const source_run run        = {first, count, list->num, {image[0], image[1], image[2]}};
        list->run[list->num_runs++] = run;
        for (int k = first; k < first + count; k++)
        {
            const binned* item      = w->sources.item + w->sources.key[k].index;
            list->x[list->num]      = (real)(item->place[0] + shift[0]);
            list->y[list->num]      = (real)(item->place[1] + shift[1]);
            list->z[list->num]      = (real)(item->place[2] + shift[2]);
            list->q[list->num]      = (real)item->q;
            list->twice[list->num]  = (real)item->twice;
            list->kept[list->num++] = item->q != 0 ? -1 : 0;
        }
        first += count;
        if (list->num == c_chunk)
        {
            meet_bin(w, list, bin->first, bin->end, bin->centre, bin->virial);
        }
    }
}

/* Bin `at` in the grid: its place there, and in which image. */
static int into_grid(int at, int num, int* image)
{
    *image = num > 0 ? (int)floor((double)at / num) : 0;
    return at - *image * num;
}

/* Sources of a row of bins along the third direction. */
static void add_row(target_bin* bin, const int* at, int* image)
{
    const bins*      b    = &bin->w->b;
    const fmm_keyed* key  = bin->w->sources.key;
    const size_t     n    = (size_t)bin->w->sources.n;
    const int        last = at[2] + b->reach[2];
    for (int z = at[2] - b->reach[2]; z <= last;)
    {
        const int    from    = into_grid(z, b->num[2], &image[2]);
        const int    end     = b->num[2] > 0 && last - z >= b->num[2] - from ? b->num[2] : from + last - z + 1;
        const int    low[3]  = {at[0], at[1], from > 0 ? from : 0};
        const int    high[3] = {at[0], at[1], end > 0 ? end : 0};
        const size_t first   = fmm_find_key(key, 0, n, fmm_row_key(low));
        add_run(bin, (int)first, (int)fmm_find_key(key, first, n, fmm_row_key(high)), image);
        z += end - from;
    }
}

static void compute_bin(target_bin* bin)
{
    const bins* b = &bin->w->b;
    int         middle[3], image[3] = {0, 0, 0};
    fmm_row_place(fmm_key_of(&bin->w->targets.key[bin->first]), middle);
    for (int d = 0; d < 3; d++)
    {
        bin->centre[d] = b->given ? 0 : bin->w->targets.item[bin->w->targets.key[bin->first].index].place[d];
    }
    for (int x = middle[0] - b->reach[0]; x <= middle[0] + b->reach[0]; x++)
    {
        for (int y = middle[1] - b->reach[1]; y <= middle[1] + b->reach[1]; y++)
        {
            const int at[3] = {into_grid(x, b->num[0], &image[0]), into_grid(y, b->num[1], &image[1]), middle[2]};
            if (at[0] >= 0 && at[1] >= 0)
            {
                add_row(bin, at, image);
            }
        }
    }
    meet_bin(bin->w, &bin->list, bin->first, bin->end, bin->centre, bin->virial);
}

/* The first of the sorted keys, from k on, that begins a bin. */
static int begin_of_bin(const binned_set* set, int k)
{
    while (k > 0 && k < set->n && fmm_key_of(&set->key[k]) == fmm_key_of(&set->key[k - 1]))
    {
        k++;
    }
    return k;
}

/* Row p of num of the targets. */
static void compute_row(const widths_step* w, int p, int num, double* virial)
{
    const int64_t n   = w->targets.n;
    const int     end = begin_of_bin(&w->targets, (int)(n * (p + 1) / num));
    for (int k = begin_of_bin(&w->targets, (int)(n * p / num)); k < end;)
    {
        const int  next = begin_of_bin(&w->targets, k + 1);
        target_bin bin  = {w, list_in(fmm_thread_scratch(w->plan)), k, next, {0, 0, 0}, virial};
        compute_bin(&bin);
        k = next;
    }
}

/* The sum over images has a mean, and potentials beside a background have none: THEORY (54). */
static void add_mean(const widths_step* w, double* virial)
{
    const gmxfmm_plan* plan = w->plan;
    const fmm_arrays   a    = fmm_arrays_of(w->targets.particles);
    const double       c    = FMM_PI / plan->domain.cells.box_volume;
    double             sum  = 0;
    for (int s = 0; s < w->sources.n; s++)
    {
        sum += w->sources.item[s].q * w->sources.item[s].twice;
    }
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int s = 0; s < (w->wanted != FMM_FIELD ? w->targets.n : 0); s++)
    {
        a.near_phi[s] += (real)(c * (plan->charges.total[0] * w->targets.item[s].twice + sum));
    }
    for (int d = 0; d < 3 && w->wanted == FMM_VIRIAL; d++)
    {
        virial[d] -= 0.5 * c * plan->charges.total[0] * sum; /* half of the energy, which is of 1/V */
    }
}

void fmm_widths(gmxfmm_plan* plan, fmm_wanted wanted, double* virial)
{
    const int  apart = plan->particles.num_targets > 0, n = (int)plan->cpu->sources.n, rows = plan->cpu->partial_rows;
    const int  m       = apart ? (int)plan->cpu->targets.n : 0;
    binned*    items   = plan->cpu->widths.memory;
    fmm_keyed* keys    = (fmm_keyed*)(items + n + m);
    double     low[3]  = {INFINITY, INFINITY, INFINITY};
    double     high[3] = {-INFINITY, -INFINITY, -INFINITY};

    widths_step w = {plan, basis_of(plan), {&plan->cpu->sources, n, items, keys}, {NULL, 0, NULL, NULL}, wanted};
    w.targets     = w.sources;
    set_items(plan, &w.b, &w.sources, low, high);
    if (apart)
    {
        const binned_set targets = {&plan->cpu->targets, m, items + n, keys + n};
        w.targets                = targets;
        set_items(plan, &w.b, &w.targets, low, high);
    }
    set_bins(plan, &w.b, n, low, high);
    sort_set(plan, &w.b, &w.sources, keys + n + m);
    if (apart)
    {
        sort_set(plan, &w.b, &w.targets, keys + n + m);
    }
#pragma omp parallel for schedule(dynamic) num_threads(plan->num_threads)
    for (int row = 0; row < rows; row++)
    {
        double sums[6] = {0};
        compute_row(&w, row, rows, sums);
        memcpy(plan->cpu->partial + (size_t)row * FMM_PARTIAL, sums, sizeof(sums));
    }
    for (int row = 0; row < rows && wanted == FMM_VIRIAL; row++)
    {
        for (int i = 0; i < 6; i++)
        {
            virial[i] += plan->cpu->partial[row * FMM_PARTIAL + i];
        }
    }
    if (fmm_is_bulk(plan))
    {
        add_mean(&w, virial);
    }
}
