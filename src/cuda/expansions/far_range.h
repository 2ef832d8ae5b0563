/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a device computes of the far field, by its range, and with which arrays. */
#ifndef FMM_CUDA_FAR_RANGE_H
#define FMM_CUDA_FAR_RANGE_H

#include "cuda/near/range.h"
#include "cuda/state.h"

enum
{
    c_background = 7 /* numbers that L2P needs of the background: moments (6), sum q */
};

/* The spectra of all devices, each as large as that of one alone. Of its own a device uses all columns of its layers,
 * and all layers of its columns; kernels store what another device goes on with there. */
struct Spectra
{
    int   num, own; /* own: of the device that a kernel is for */
    void* array[GMXFMM_MAX_DEVICES];
    int   end_layer[GMXFMM_MAX_DEVICES], end_column[GMXFMM_MAX_DEVICES];
};

struct FarRange
{
    AllowedKernels* allowed;
    bool            has_chains;
    bool            shared; /* there are other parts */
    GridRange       range;  /* of the grid of transforms */
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

/* What device k computes of the far field. */
static inline FarRange far_range(const gmxfmm_plan* plan, int k)
{
    fmm_device*        d       = &plan->device[k];
    const ParticleSet *sources = &d->particles.sources, *targets = k > 0 ? sources : targets_of(d);
    const Expansions   all    = plan->device->far.path->expansions(plan);
    const int*         n      = fmm_convolved(plan)->n;
    const bool         octree = plan->domain.tree != NULL;
    const GridRange&   range  = d->range.grid;
    FarRange           far;
    far.allowed      = &d->allowed;
    far.has_chains   = d->has_chains;
    far.shared       = shares_cells(plan);
    far.range        = range;
    far.first_cell   = octree ? 0 : range.first_layer * n[1] * n[2];
    far.end_cell     = octree ? all.leaves.num : range.end_layer * n[1] * n[2];
    far.cell_start   = sources->cell_start.as<int>();
    far.target_start = targets->cell_start.as<int>();
    far.xq           = fmm_is_adaptive(plan) ? sources->scaled.memory : sources->xq.memory;
    far.target_xq    = fmm_is_adaptive(plan) ? targets->scaled.memory : targets->xq.memory;
    far.multipole    = k > 0 ? d->far.cells.field.memory : all.multipole;
    far.local        = k > 0 ? d->far.cells.field.memory : all.local;
    far.field        = d->far.cells.field.memory;
    far.twiddles     = d->far.cells.twiddles.memory;
    far.s            = d->far.cells.s.memory;
    far.work_items   = d->far.cells.work_items.memory;
    far.moments      = k > 0 ? d->far.moments.background.as<double>() : d->output.results.as<StepResults>()->moments;
    far.total_charge = k > 0 ? far.moments + c_background - 1 : d->charges.results.as<ChargeResults>()->total;
    return far;
}

#endif
