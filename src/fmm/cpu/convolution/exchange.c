/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two exchanges of a convolution on several ranks, with all other ranks each. */
#include "fmm/cpu/convolution/exchange.h"

#include <string.h>

#include "fmm/cpu/ranks.h"

/* Complex vectors of a row y of a plane. */
static size_t row_length(const fmm_fft* fft)
{
    return (size_t)(fft->direction[2].n / 2 + 1);
}

gmxfmm_status fmm_conv_reserve(gmxfmm_plan* plan)
{
    struct fmm_convolution* conv = plan->cpu->conv;
    if (plan->cpu->ranks == NULL || conv->in_columns != NULL)
    {
        return GMXFMM_OK;
    }
    const fmm_fft*  fft = &conv->fft;
    const int       n0 = fft->direction[0].n, n1 = fft->direction[1].n;
    const fmm_range layers = fmm_own_of(plan, n0), rows = fmm_own_of(plan, n1);
    const size_t    row    = (size_t)fft->num_groups * row_length(fft) * sizeof(fmm_complex);
    const size_t    before = plan->bytes;
    conv->in_planes        = fmm_alloc(plan, row * (size_t)(layers.end - layers.begin) * (size_t)n1);
    conv->in_columns       = fmm_alloc(plan, row * (size_t)n0 * (size_t)(rows.end - rows.begin));
    plan->cpu->grid_bytes += plan->bytes - before;
    return conv->in_planes != NULL && conv->in_columns != NULL
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for spectra of %d ranks", plan->cpu->num_ranks);
}

/* The spectra at layers x and rows y, to or from buffer, [group][layer][row]. */
static void copy(const gmxfmm_plan* plan, fmm_range x, fmm_range y, fmm_complex* buffer, int from_buffer)
{
    const struct fmm_convolution* conv   = plan->cpu->conv;
    const size_t                  length = row_length(&conv->fft);
    const size_t                  rows = (size_t)(y.end - y.begin), n1 = (size_t)conv->fft.direction[1].n;
#pragma omp parallel for collapse(2) schedule(static) num_threads(plan->num_threads)
    for (int group = 0; group < conv->fft.num_groups; group++)
    {
        for (int layer = x.begin; layer < x.end; layer++)
        {
            const size_t at       = (size_t)group * (size_t)(x.end - x.begin) + (size_t)(layer - x.begin);
            fmm_complex* spectrum = conv->spectrum + (size_t)group * conv->fft.spectrum_stride +
                                    ((size_t)layer * n1 + (size_t)y.begin) * length;
            fmm_complex* packed = buffer + at * rows * length;
            memcpy(from_buffer ? spectrum : packed, from_buffer ? packed : spectrum, rows * length * sizeof(*packed));
        }
    }
}

/* The part of in_planes (of_planes) or in_columns that rank r has the other end of: rows of the own layers, or layers
 * of the own rows. */
typedef struct
{
    fmm_range    x, y;
    fmm_complex* at;
    size_t       bytes;
} part;

static part part_of(const gmxfmm_plan* plan, int of_planes, int r)
{
    const struct fmm_convolution* conv = plan->cpu->conv;
    const int                     n0 = conv->fft.direction[0].n, n1 = conv->fft.direction[1].n;
    const size_t                  row   = (size_t)conv->fft.num_groups * row_length(&conv->fft);
    const fmm_range               other = fmm_share_of(plan, of_planes ? n1 : n0, r);
    part                          p;
    p.x                = of_planes ? fmm_own_of(plan, n0) : other;
    p.y                = of_planes ? other : fmm_own_of(plan, n1);
    const size_t whole = (size_t)(of_planes ? p.x.end - p.x.begin : p.y.end - p.y.begin);
    p.at               = (of_planes ? conv->in_planes : conv->in_columns) + row * whole * (size_t)other.begin;
    p.bytes            = row * whole * (size_t)(other.end - other.begin) * sizeof(fmm_complex);
    return p;
}

static void travel(gmxfmm_plan* plan, int from_planes)
{
    fmm_cpu* cpu = plan->cpu;
    int      num = 0;
    if (cpu->ranks == NULL)
    {
        return;
    }
    for (int r = 0; r < cpu->num_ranks; r++)
    {
        const part sent = part_of(plan, from_planes, r), received = part_of(plan, !from_planes, r);
        if (r != cpu->rank && sent.bytes + received.bytes > 0)
        {
            copy(plan, sent.x, sent.y, sent.at, 0);
            cpu->ranks->parcels[num++] = (gmxfmm_parcel){r, sent.at, sent.bytes, received.at, received.bytes};
        }
    }
    cpu->comm_failed |= fmm_ranks_send_parcels(cpu->ranks, num) != GMXFMM_OK;
    for (int r = 0; r < cpu->num_ranks; r++)
    {
        const part received = part_of(plan, !from_planes, r);
        if (r != cpu->rank)
        {
            copy(plan, received.x, received.y, received.at, 1);
        }
    }
}

void fmm_conv_to_columns(gmxfmm_plan* plan)
{
    travel(plan, 1);
}

void fmm_conv_to_planes(gmxfmm_plan* plan)
{
    travel(plan, 0);
}
