/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernels of sums are given; those of each precision are compiled on their own. */
#ifndef CUDA_TREECODE_SUMS_H
#define CUDA_TREECODE_SUMS_H

#include "cuda/treecode/state.h"

struct SumsArguments
{
    TreecodeTree        sources, targets;
    TreecodeBatches     lists;
    const double *      q, *charge;
    const TreecodeTile* tile;
    int                 separate, degree;
    TreecodePoints      points;
    double              parameter[TREECODE_PARAMETERS];
    double* sum[4]; /* potential and field: of targets, or, where lists have parts, of part, tile and place in it */
    int     adds;   /* 1: to what is in sum */
};

/* A block a tile and part: grid (num_tiles, parts). Errors: OPTION (no such kernel), DEVICE. */
gmxfmm_status treecode_sums_single(
    treecode* t, const DeviceLists* lists, const SumsArguments& a, bool withField, cudaStream_t stream);
gmxfmm_status treecode_sums_double(
    treecode* t, const DeviceLists* lists, const SumsArguments& a, bool withField, cudaStream_t stream);

/* Sums of particles without charge at the place of a charge, where those in a.sum, of targets, are not finite; values:
 * 1 or, with the field, 4. before: other lists of the same batches whose sums are in a.sum, or NULL. Errors: DEVICE. */
gmxfmm_status treecode_sums_of_sites(treecode*            t,
                                     const DeviceLists*   lists,
                                     const DeviceLists*   before,
                                     const SumsArguments& a,
                                     int                  values,
                                     cudaStream_t         stream);

#endif
