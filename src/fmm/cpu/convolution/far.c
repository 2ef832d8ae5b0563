/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field by cells of one level: P2M, and one convolution over the grid of cells. */
#include "fmm/cpu/convolution/convolution.h"

#include "fmm/cpu/convolution/exchange.h"
#include "fmm/cpu/expansions/expansions.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/ranks.h"
#include "fmm/math/strain.h"

void fmm_convolve(gmxfmm_plan* plan, double scale, double* strain)
{
    double w[5] = {0};
    if (strain == NULL)
    {
        fmm_m2l_fft(plan, plan->cpu->conv);
        return;
    }
    fmm_m2l_fft_virial(plan, plan->cpu->conv, w);
    for (int i = 0; i < 6; i++)
    {
        strain[i] += scale * 0.5 * fmm_twice_traceless(w, i);
    }
}

static void far_by_cells(gmxfmm_plan* plan, double* strain)
{
    const struct fmm_convolution* conv  = plan->cpu->conv;
    double                        clock = fmm_time();
    fmm_p2m(plan, conv->field, conv->fft.field_stride);
    fmm_lap_alone(plan, &clock, &plan->info.time_p2m);
    fmm_convolve(plan, 1, strain);
    fmm_lap_alone(plan, &clock, &plan->info.time_m2l);
}

static const void* locals_of_cells(const gmxfmm_plan* plan, size_t* stride)
{
    *stride = plan->cpu->conv->fft.field_stride;
    return plan->cpu->conv->field;
}

const fmm_cpu_path fmm_cells_path = {
    .create    = fmm_conv_create,
    .set_shape = fmm_conv_set_shape,
    .assign    = fmm_bin,
    .reserve   = fmm_conv_reserve_cells,
    .far       = far_by_cells,
    .locals    = locals_of_cells,
};
