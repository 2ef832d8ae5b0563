/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a device computes of the far field, and with which arrays: all of it, or on several devices a part
 * (devices/slabs.h). */
#ifndef FMM_CUDA_FAR_PART_H
#define FMM_CUDA_FAR_PART_H

#include "cuda/state.h"

/* The spectra of all devices, each as large as that of one alone. Of its own a device uses all columns of its layers,
 * and all layers of its columns; kernels store what another device goes on with there. */
struct Spectra
{
    int   num, own; /* own: of the device that a kernel is for */
    void* array[GMXFMM_MAX_DEVICES];
    int   end_layer[GMXFMM_MAX_DEVICES], end_column[GMXFMM_MAX_DEVICES];
};

struct FarPart
{
    AllowedKernels* allowed;
    bool            has_chains;
    bool            shared; /* there are other parts */
    Slab            slab;   /* of the grid of transforms */
    int             first_cell, end_cell;
    const int *     cell_start, *target_start;
    const void *    xq, *target_xq;
    void *          multipole, *local; /* of the leaves */
    void*           field;             /* what is transformed */
    const void *    twiddles, *s, *work_items;
    const double *  moments, *total_charge;
};

/* Columns of frequencies of the plan's grid. */
static inline int num_columns(const gmxfmm_plan* plan)
{
    const int* n = fmm_convolved(plan)->n;
    return n[1] * (n[2] / 2 + 1);
}

/* All of the far field, on the plan's device. */
static inline FarPart whole_far_field(const gmxfmm_plan* plan)
{
    fmm_device*        d       = plan->device;
    const ParticleSet* targets = targets_of(d);
    const Expansions   leaves  = d->far.path->expansions(plan);
    FarPart            far;
    far.allowed      = &d->allowed;
    far.has_chains   = d->has_chains;
    far.shared       = false;
    far.slab         = {0, fmm_convolved(plan)->n[0], 0, num_columns(plan)};
    far.first_cell   = 0;
    far.end_cell     = leaves.leaves.num;
    far.cell_start   = d->particles.sources.cell_start.as<int>();
    far.target_start = targets->cell_start.as<int>();
    far.xq           = fmm_is_adaptive(plan) ? d->particles.sources.scaled.memory : d->particles.sources.xq.memory;
    far.target_xq    = fmm_is_adaptive(plan) ? targets->scaled.memory : targets->xq.memory;
    far.multipole    = leaves.multipole;
    far.local        = leaves.local;
    far.field        = d->far.cells.field.memory;
    far.twiddles     = d->far.cells.twiddles.memory;
    far.s            = d->far.cells.s.memory;
    far.work_items   = d->far.cells.work_items.memory;
    far.moments      = d->output.results.as<StepResults>()->moments;
    far.total_charge = d->charges.results.as<ChargeResults>()->total;
    return far;
}

/* One array of spectra, of the plan's device. */
static inline Spectra whole_spectrum(const gmxfmm_plan* plan, const DeviceBuffer& spectrum)
{
    return {1, 0, {spectrum.memory}, {fmm_convolved(plan)->n[0]}, {num_columns(plan)}};
}

#endif
