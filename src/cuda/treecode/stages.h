/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stages of a treecode on a device: trees, lists, modified charges and sums are all made there, by kernels on
 * d->stream or another one. Stages of an assign (extent, trees, lists) get memory and wait; those of a step do neither.
 */
#ifndef CUDA_TREECODE_STAGES_H
#define CUDA_TREECODE_STAGES_H

#include "cuda/treecode/state.h"

/* tree.cu: see fmm/treecode/state.h. */
gmxfmm_status treecode_device_extent(treecode* t, double low[3], double high[3]);
gmxfmm_status treecode_device_trees(treecode* t);
gmxfmm_status treecode_device_mirror(treecode* t, int with_particles);
/* Room for so many clusters; those that there are stay. */
gmxfmm_status treecode_device_reserve_clusters(treecode* t, DeviceClusters* tree, int num);

/* gather.cu: x on the device. */
gmxfmm_status treecode_device_gather(treecode* t, const void* x, cudaStream_t stream);

/* lists.cu and dual.cu */
gmxfmm_status treecode_device_lists(treecode* t);
gmxfmm_status treecode_device_dual_lists(treecode* t);
gmxfmm_status treecode_device_upload_lists(treecode* t, DeviceLists* to, const treecode_lists* lists);
/* Room for so many batches; starts that have numbers of entries at [b + 1] become starts, and their totals are read. */
gmxfmm_status treecode_device_begin_lists(treecode* t, DeviceLists* lists, int num);
gmxfmm_status treecode_device_add_starts(treecode* t, DeviceLists* lists, int64_t totals[2]);
/* Leaves of a tree as batches. */
gmxfmm_status treecode_device_leaf_batches(treecode* t, DeviceLists* lists, const DeviceClusters* tree);
/* The pairs of lists, and tiles of their batches, which have num_targets targets in all. */
gmxfmm_status treecode_device_finish_lists(treecode* t, DeviceLists* lists, int64_t num_targets);

/* charges.cu: of the gathered sources, boxes of parents included. Bytes of shared memory that its kernels need at this
 * degree, at most. */
gmxfmm_status treecode_device_charges(treecode* t, cudaStream_t stream);
size_t        treecode_device_charges_shared(int degree);

/* device.cu: sums of t's lists, up to the downward pass; and that, where there is one. */
gmxfmm_status treecode_device_begin_sums(treecode* t, int with_field, cudaStream_t stream);
gmxfmm_status treecode_device_end_sums(treecode* t, int with_field, cudaStream_t stream);

/* sums.cu: sums of lists into phi and slope, or those of points into point. */
gmxfmm_status treecode_device_sums(
    treecode* t, const DeviceLists* lists, gmxfmm_precision precision, int with_field, cudaStream_t stream);
/* Adds those of more lists of the same batches to what `lists`, which may have no batches, have given. */
gmxfmm_status treecode_device_add_sums(treecode*          t,
                                       const DeviceLists* lists,
                                       const DeviceLists* more,
                                       gmxfmm_precision   precision,
                                       int                with_field,
                                       cudaStream_t       stream);

/* downward.cu: from point to phi and slope. */
gmxfmm_status treecode_device_downward(treecode* t, int with_field, cudaStream_t stream);
size_t        treecode_device_downward_shared(int degree);

/* output.cu: results in the caller's order and units, at addresses of the device. NULL leaves a thing out. */
struct TreecodeOutput
{
    void *  potential, *field, *force;
    double* energy; /* 2: zero, and all of it */
    int*    status;
};
gmxfmm_status treecode_device_output(treecode* t, const TreecodeOutput& output, cudaStream_t stream);

#endif
