/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The exchanges of a convolution on several ranks. */
#include "fmm/cpu/convolution/exchange.h"

#include <string.h>

#include "fmm/cpu/ranks.h"

typedef struct fmm_convolution convolution;

void fmm_conv_share(gmxfmm_plan* plan, int units, int columns)
{
    fmm_shares* s = &plan->cpu->shares;
    for (int r = 0; r <= s->num && s->ranks != NULL; r++)
    {
        s->units[r]   = (int)((int64_t)units * r / s->num);
        s->columns[r] = (int)((int64_t)columns * r / s->num);
    }
}

static int length(fmm_range range)
{
    return range.end - range.begin;
}

static fmm_range own_units(const gmxfmm_plan* plan)
{
    return fmm_range_of(plan->cpu->shares.units, plan->cpu->shares.rank);
}

static fmm_range own_columns(const gmxfmm_plan* plan)
{
    return fmm_range_of(plan->cpu->shares.columns, plan->cpu->shares.rank);
}

/* Complex vectors of a plane's spectra. */
static size_t plane_size(const convolution* conv)
{
    return (size_t)(conv->cells->n[1] * (conv->cells->n[2] / 2 + 1));
}

int fmm_conv_reserve(gmxfmm_plan* plan)
{
    convolution* conv = plan->cpu->conv;
    if (plan->cpu->shares.ranks == NULL)
    {
        return 1;
    }
    const size_t units = (size_t)(conv->cells->n[0] * conv->fft.num_groups);
    conv->packed       = fmm_alloc(plan, (size_t)length(own_units(plan)) * plane_size(conv) * sizeof(fmm_complex));
    conv->own_columns =
        conv->packed != NULL ? fmm_alloc(plan, units * (size_t)length(own_columns(plan)) * sizeof(fmm_complex)) : NULL;
    return conv->own_columns != NULL;
}

/* Units follow each other, each with the own columns. */
fmm_columns fmm_conv_own_columns(const gmxfmm_plan* plan)
{
    const convolution* conv = plan->cpu->conv;
    const fmm_range    own  = own_columns(plan);
    const size_t       num  = (size_t)length(own);
    return (fmm_columns){conv->own_columns, own.begin, length(own), num * (size_t)conv->fft.num_groups, num};
}

/* Those of the own units at these columns, to or from packed. */
static void copy_spectra(const gmxfmm_plan* plan, fmm_range columns, fmm_complex* packed, int back)
{
    const convolution* conv  = plan->cpu->conv;
    const int          units = length(own_units(plan));
    const size_t       size = plane_size(conv), num = (size_t)length(columns);
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int unit = 0; unit < units; unit++)
    {
        fmm_complex* const spectrum = conv->spectrum + (size_t)unit * size + (size_t)columns.begin;
        fmm_complex* const to       = packed + (size_t)unit * num;
        memcpy(back ? spectrum : to, back ? to : spectrum, num * sizeof(*to));
    }
}

/* Spectra of own units to own columns (back: 0), or from them. */
static void travel(gmxfmm_plan* plan, int back)
{
    fmm_shares*        s     = &plan->cpu->shares;
    const convolution* conv  = plan->cpu->conv;
    const size_t       units = (size_t)length(own_units(plan)), columns = (size_t)length(own_columns(plan));
    int                num = 0;
    for (int r = 0; r < s->num; r++)
    {
        const fmm_range    its_columns = fmm_range_of(s->columns, r), its_units = fmm_range_of(s->units, r);
        fmm_complex* const in_planes  = conv->packed + units * (size_t)its_columns.begin;
        fmm_complex* const in_columns = conv->own_columns + columns * (size_t)its_units.begin;
        const size_t       there      = units * (size_t)length(its_columns) * sizeof(fmm_complex);
        const size_t       here       = columns * (size_t)length(its_units) * sizeof(fmm_complex);
        if (r == s->rank)
        {
            copy_spectra(plan, its_columns, in_columns, back);
        }
        else if (there + here > 0)
        {
            if (!back)
            {
                copy_spectra(plan, its_columns, in_planes, 0);
            }
            s->ranks->parcels[num++] = back ? (gmxfmm_parcel){r, in_columns, here, in_planes, there}
                                            : (gmxfmm_parcel){r, in_planes, there, in_columns, here};
        }
    }
    fmm_shares_send(plan, num, &s->time_spectra);
    for (int r = 0; r < s->num && back; r++)
    {
        const fmm_range its_columns = fmm_range_of(s->columns, r);
        if (r != s->rank)
        {
            copy_spectra(plan, its_columns, conv->packed + units * (size_t)its_columns.begin, 1);
        }
    }
}

void fmm_conv_to_columns(gmxfmm_plan* plan)
{
    travel(plan, 0);
}

void fmm_conv_to_planes(gmxfmm_plan* plan)
{
    travel(plan, 1);
}

/* What is done with coefficients of cells in units. */
typedef enum
{
    COUNT,
    PACK,
    UNPACK
} walk_mode;

/* Coefficients of these cells in these units, in the order of units; returns their number. */
static size_t walk_cells(const gmxfmm_plan* plan, fmm_range cells, fmm_range units, walk_mode mode, real* packed)
{
    const convolution* conv   = plan->cpu->conv;
    const int          groups = conv->fft.num_groups, layer = conv->cells->n[1] * conv->cells->n[2];
    const int          first = cells.begin / layer * groups, last = (cells.end + layer - 1) / layer * groups;
    size_t             num = 0;
    if (cells.begin == cells.end)
    {
        return 0;
    }
    for (int unit = units.begin > first ? units.begin : first; unit < units.end && unit < last; unit++)
    {
        const int    x = unit / groups, from = unit % groups * VLEN;
        const int    begin = x * layer > cells.begin ? x * layer : cells.begin;
        const int    end   = (x + 1) * layer < cells.end ? (x + 1) * layer : cells.end;
        const int    to    = from + VLEN < conv->fft.num_fields ? from + VLEN : conv->fft.num_fields;
        const size_t each  = (size_t)(end - begin);
        for (int i = from; i < to && mode != COUNT; i++)
        {
            real* const field = conv->field + (size_t)i * conv->fft.field_stride + begin;
            real* const at    = packed + num + (size_t)(i - from) * each;
            memcpy(mode == PACK ? at : field, mode == PACK ? field : at, each * sizeof(*at));
        }
        num += each * (size_t)(to - from);
    }
    return num;
}

/* Coefficients that go from this rank's cells to the units of rank r, and from the cells of that to the own units. */
static void count_cells(const gmxfmm_plan* plan, int r, size_t* to_units, size_t* to_own)
{
    const fmm_shares* s = &plan->cpu->shares;
    *to_units           = walk_cells(plan, fmm_own_cells(plan), fmm_range_of(s->units, r), COUNT, NULL);
    *to_own             = walk_cells(plan, fmm_cells_of_rank(plan, r), own_units(plan), COUNT, NULL);
}

gmxfmm_status fmm_conv_reserve_cells(gmxfmm_plan* plan)
{
    convolution*      conv = plan->cpu->conv;
    const fmm_shares* s    = &plan->cpu->shares;
    size_t            all  = 0;
    for (int r = 0; r < s->num && s->ranks != NULL; r++)
    {
        size_t to_units, to_own;
        count_cells(plan, r, &to_units, &to_own);
        all += r != s->rank ? to_units + to_own : 0;
    }
    if (all == 0)
    {
        return GMXFMM_OK;
    }
    const size_t before = plan->bytes;
    const int    there  = fmm_grow(plan, (void**)&conv->cells_packed, &conv->cells_capacity, all * sizeof(real));
    plan->cpu->grid_bytes += plan->bytes - before;
    return there ? GMXFMM_OK : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for cells of %d ranks", s->num);
}

/* Multipoles to units (back: 0), or locals from them. */
static void move_cells(gmxfmm_plan* plan, int back)
{
    fmm_shares*     s   = &plan->cpu->shares;
    real*           at  = plan->cpu->conv->cells_packed;
    const fmm_range own = fmm_own_cells(plan);
    int             num = 0;
    for (int r = 0; r < s->num; r++)
    {
        size_t to_units, to_own;
        count_cells(plan, r, &to_units, &to_own);
        if (r == s->rank || to_units + to_own == 0)
        {
            continue;
        }
        const size_t cells = to_units * sizeof(real), units = to_own * sizeof(real);
        real* const  of_cells = at;
        real* const  of_units = at + to_units;
        at += to_units + to_own;
        if (back)
        {
            walk_cells(plan, fmm_cells_of_rank(plan, r), own_units(plan), PACK, of_units);
        }
        else
        {
            walk_cells(plan, own, fmm_range_of(s->units, r), PACK, of_cells);
        }
        s->ranks->parcels[num++] = back ? (gmxfmm_parcel){r, of_units, units, of_cells, cells}
                                        : (gmxfmm_parcel){r, of_cells, cells, of_units, units};
    }
    fmm_shares_send(plan, num, &s->time_expansions);
    at = plan->cpu->conv->cells_packed;
    for (int r = 0; r < s->num; r++)
    {
        size_t to_units, to_own;
        count_cells(plan, r, &to_units, &to_own);
        if (r == s->rank || to_units + to_own == 0)
        {
            continue;
        }
        if (back)
        {
            walk_cells(plan, own, fmm_range_of(s->units, r), UNPACK, at);
        }
        else
        {
            walk_cells(plan, fmm_cells_of_rank(plan, r), own_units(plan), UNPACK, at + to_units);
        }
        at += to_units + to_own;
    }
}

void fmm_conv_multipoles_to_units(gmxfmm_plan* plan)
{
    move_cells(plan, 0);
}

void fmm_conv_locals_to_cells(gmxfmm_plan* plan)
{
    move_cells(plan, 1);
}
