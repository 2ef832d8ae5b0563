/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Steps on several devices of the process, whose ranges of it are in DeviceRange (state.h): what each copies and waits
 * for, and the shares that ranges follow.
 *
 * Tiles of P2P are in the order of cells, x slowest, so a range of them is made of layers of the system. Other devices
 * than the first copy in each step the positions of these layers and of those that are near, and P2P stores its sums
 * straight into the first device's arrays. Kernels of theirs read and write its memory, not the other way round.
 *
 * For the far field of cells the first device stores positions on those that need them. In between all devices store
 * what another one goes on with straight into its spectrum: columns after the planes, planes after the product. Lattice
 * sums and the virial stay on the first: it sends others the spectrum of S for their columns when the box changes
 * shape, and gets the multipoles' spectrum of those columns in a step with a virial. Of an octree M2L of the leaves is
 * shared (tree/far.cu).
 *
 * Nothing about a tile, a cell, a line or a frequency depends on where it is computed; so bits do not, either. With one
 * device the loops over others are empty.
 */
#ifndef FMM_CUDA_DEVICES_H
#define FMM_CUDA_DEVICES_H

#include "cuda/near/range.h"
#include "cuda/particles/particles.h"
#include "cuda/resources.h"

/* near.cu: the devices of the options that can reach the first one's memory, and access of all to all as far as there
 * is; others than the first have numbers, but no streams yet. Errors: DEVICE, MEMORY. */
gmxfmm_status fmm_cuda_create_group(gmxfmm_plan* plan);
void          fmm_cuda_destroy_group(gmxfmm_plan* plan);

/* near.cu: adds a sentence to what users are told of the devices, once. */
__attribute__((format(printf, 2, 3))) void fmm_cuda_add_note(DeviceGroup* group, const char* format, ...);

/* near.cu: room on the other devices for any assignment to the present cells. Waits for them. Errors: DEVICE, MEMORY.
 */
gmxfmm_status fmm_cuda_reserve_copies(gmxfmm_plan* plan);

/* near.cu: tiles and warps of each, from the shares and the number of tiles launched on the first device. */
void fmm_cuda_set_warps(fmm_device* first);

/* near.cu: copies an assignment to the other devices, behind what is in the stream and before what follows. */
gmxfmm_status fmm_cuda_copy_assignment(gmxfmm_plan* plan, cudaStream_t stream);

/* near.cu: the stages of a step on other devices, behind `fork` of the plan's: near field, and positions for their far
 * field; and what follows their transforms, all before what follows in the stream. */
gmxfmm_status fmm_cuda_begin_others(gmxfmm_plan* plan, const StepWanted& wanted, unsigned stages);
gmxfmm_status fmm_cuda_end_others(gmxfmm_plan* plan, const StepWanted& wanted, unsigned stages, cudaStream_t stream);

/* near.cu: whether shares are wanted anew for the particles and settings as they are. */
bool fmm_cuda_shares_are_old(const gmxfmm_plan* plan);

/* far.cu: whether the far field as it was assigned can be shared. */
bool fmm_cuda_can_share_far(const gmxfmm_plan* plan);

/* far.cu: room on the other devices for their ranges of a far field that can be shared, if it is shared or that is
 * still to be measured. Otherwise, and where a device has none, which the note then names, what there is is given back.
 * Waits. Errors: DEVICE, and as fmm_rotation_create. */
gmxfmm_status fmm_cuda_reserve_far(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_release_far(gmxfmm_plan* plan);

/* far.cu: ranges of the far field, which assignments copied from now on follow; spectra that there are go to the
 * devices on the stream. Without room on others all is the first one's. */
gmxfmm_status fmm_cuda_divide_far(gmxfmm_plan* plan, const double* share, cudaStream_t stream);

/* far.cu: after S was computed: what other devices need of it. */
gmxfmm_status fmm_cuda_share_spectra(gmxfmm_plan* plan, cudaStream_t stream);

/* far.cu: the particles whose positions other devices' far field needs: permute stores them there, so that no device
 * waits for another one's kernel to copy them. */
PositionCopies fmm_cuda_position_copies(const gmxfmm_plan* plan);

/* far.cu: to other devices the moments for the background, which are added up if `sum`; after L2P what the first
 * device waits for, with a virial their spectra, too; and that wait. */
gmxfmm_status fmm_cuda_send_moments(gmxfmm_plan* plan, bool sum, cudaStream_t stream);
gmxfmm_status fmm_cuda_end_far(gmxfmm_plan* plan, bool virial);
gmxfmm_status fmm_cuda_wait_gathered(gmxfmm_plan* plan, cudaStream_t stream);

/* What is timed: near and far field of a step on a stream, and how long one of num steps takes, in s. */
struct TimedStep
{
    gmxfmm_status (*fields)(
        gmxfmm_plan* plan, const void* x, unsigned stages, const StepWanted& wanted, cudaStream_t stream);
    gmxfmm_status (*time)(
        gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, int num, double* seconds);
};

/* shares.cu: shares with which all devices are done at once, from the times of a few steps; x on the device. The other
 * devices then need the assignment anew. Errors: DEVICE. */
gmxfmm_status fmm_cuda_find_shares(gmxfmm_plan* plan, const void* x, const TimedStep& step);

#endif
