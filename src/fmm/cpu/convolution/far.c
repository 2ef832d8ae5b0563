/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field by cells of one level: P2M, and one convolution over the grid of cells. */
#include "fmm/cpu/convolution/convolution.h"

#include "fmm/cpu/expansions/expansions.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/math/strain.h"

/* Adds the time since *from to *sum and starts anew. */
static void lap(double* from, double* sum)
{
    const double now = fmm_time();
    *sum += now - *from;
    *from = now;
}

/* Adds the strain derivative of the lattice part to strain (xx, yy, zz, xy, xz, yz; traceless) from w of the
 * convolution, times scale. */
static void unpack_strain(const double* w, double scale, double* strain)
{
    for (int i = 0; i < 6; i++)
    {
        strain[i] += scale * 0.5 * fmm_twice_traceless(w, i);
    }
}

/* Multipoles of the cells to locals, by one convolution over the grid. Adds to strain, for a virial. */
static void far_by_cells(gmxfmm_plan* plan, double* strain)
{
    struct fmm_convolution* conv  = plan->cpu->conv;
    gmxfmm_info*            info  = &plan->info;
    double                  clock = fmm_time(), w[5] = {0};
    fmm_p2m(plan, conv->field, conv->fft.field_stride);
    lap(&clock, &info->time_p2m);
    if (strain != NULL)
    {
        fmm_m2l_fft_virial(plan, conv, w);
        unpack_strain(w, 1, strain);
    }
    else
    {
        fmm_m2l_fft(plan, conv);
    }
    lap(&clock, &info->time_m2l);
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
    .far       = far_by_cells,
    .locals    = locals_of_cells,
};
