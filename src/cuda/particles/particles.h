/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles of a plan on the device: arrays of a caller, charges, sorting into cells, positions in the cells' frames.
 */
#ifndef FMM_CUDA_PARTICLES_H
#define FMM_CUDA_PARTICLES_H

#include "cuda/geometry.h"
#include "cuda/resources.h"

/* arrays.cu, box.cu, charges.cu: the memory that depends on options alone. */
gmxfmm_status fmm_cuda_create_particles(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_create_domain(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_create_charges(gmxfmm_plan* plan);
void          fmm_cuda_destroy_particles(fmm_device* device);

/* arrays.cu: room for the plan's sources, unless there is; the same before an assignment, with no particle found beyond
 * the cells; and room for positions in the units of leaves of several levels. */
gmxfmm_status fmm_cuda_reserve_sources(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_ready_particles(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_reserve_scaled(gmxfmm_plan* plan);

/* charges.cu: a way of the charges q (cuda/along.cu), in memory of the device. Room for it; dipoles of zero; charges w
 * and dipoles q u in place of q; and these again. The particles are assigned. */
bool          fmm_cuda_has_way_room(const gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_reserve_way(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_begin_way(gmxfmm_plan* plan, cudaStream_t stream);
gmxfmm_status fmm_cuda_take_way(gmxfmm_plan* plan, const void* u, const void* w, cudaStream_t stream);
gmxfmm_status fmm_cuda_end_way(gmxfmm_plan* plan, cudaStream_t stream);

/* arrays.cu: room for dipoles of the sources and gradients at the targets, where the plan has dipoles; its release. */
gmxfmm_status fmm_cuda_reserve_dipoles(gmxfmm_plan* plan);
void          fmm_cuda_release_dipoles(gmxfmm_plan* plan);

/* arrays.cu, box.cu: room on another device for copies of what P2P reads. */
gmxfmm_status fmm_cuda_reserve_particle_copies(gmxfmm_plan* plan, fmm_device* to);
gmxfmm_status fmm_cuda_reserve_box_copy(gmxfmm_plan* plan, fmm_device* to);

/* arrays.cu: an assignment in parts has arrays of its own. Array i of the sources that steps read, or AssignResults;
 * room for the next ones; these in their place, or back again. */
DeviceBuffer* fmm_cuda_assigned_particles(fmm_device* device, int i);
gmxfmm_status fmm_cuda_reserve_next_particles(gmxfmm_plan* plan);
void          fmm_cuda_swap_particles(fmm_device* device);

/* arrays.cu: makes *x, positions of all particles on the host or a device, an address on the plan's device, copying
 * them if need be. */
gmxfmm_status fmm_cuda_on_device(gmxfmm_plan* plan, const void** x);

/* box.cu: writes the box to the device for what follows in the stream, unless it is there already; or the box that
 * another kernel is to write there. */
gmxfmm_status fmm_cuda_store_box(gmxfmm_plan* plan, cudaStream_t stream);
BoxValues     fmm_cuda_take_box(gmxfmm_plan* plan);

/* box.cu: a copy of the box for an assignment in parts; this in its place, or back again. */
gmxfmm_status fmm_cuda_begin_next_box(gmxfmm_plan* plan, cudaStream_t stream);
void          fmm_cuda_swap_box(fmm_device* device);

/* sort.cu: exclusive prefix sums of `num` numbers, at most one more than there are cells or particles. */
gmxfmm_status fmm_cuda_scan(gmxfmm_plan* plan, const int* in, int* out, int num, cudaStream_t stream);
gmxfmm_status fmm_cuda_scan(gmxfmm_plan* plan, const uint64_t* in, uint64_t* out, int num, cudaStream_t stream);

/* sort.cu: memory for any assignment to the present cells, so that later ones on a stream allocate nothing; and the
 * largest number of tiles that a set can then have. */
gmxfmm_status fmm_cuda_reserve_sort(gmxfmm_plan* plan);
int           fmm_cuda_most_tiles(const gmxfmm_plan* plan, const ParticleSet* set);

/* sort.cu: room in `counts` for num numbers. */
gmxfmm_status fmm_cuda_reserve_counts(gmxfmm_plan* plan, size_t num);

/* sort.cu: no counts and findings of an assignment (AssignResults). */
gmxfmm_status fmm_cuda_begin_assign(gmxfmm_plan* plan, cudaStream_t stream);

/* sort.cu: finds the cells of sources, at x on the device, and sorts these into cells and tiles, on a stream; or
 * sources and targets, waiting for the number of tiles, from which launches of P2P get their size. In leaves of several
 * levels they are found and sorted already (tree/leaves.h). Errors: POSITION, DEVICE. */
gmxfmm_status fmm_cuda_find_cells(gmxfmm_plan* plan, const void* x, cudaStream_t stream);
gmxfmm_status fmm_cuda_sort_sources(gmxfmm_plan* plan, cudaStream_t stream);
gmxfmm_status fmm_cuda_sort_and_wait(gmxfmm_plan* plan, const void* x);

/* Where positions of the sources in a range of cells are wanted, too: on another device, at the same places of an array
 * like ParticleSet.xq. */
struct PositionCopy
{
    int   begin_cell, end_cell;
    void* xq;
};

struct PositionCopies
{
    int          num;
    PositionCopy copy[GMXFMM_MAX_DEVICES];
};

/* permute.cu: positions into cells' frames, and whether particles have left their cells; the latter alone, of charges
 * without dipoles; the moments that a virial or vacuum around the box needs, and where P2M does not compute them. */
gmxfmm_status
fmm_cuda_permute(gmxfmm_plan* plan, const void* x, const PositionCopies& copies, bool looks, cudaStream_t stream);
gmxfmm_status fmm_cuda_look(gmxfmm_plan* plan, const void* x, cudaStream_t stream);
gmxfmm_status fmm_cuda_moments(gmxfmm_plan* plan, const void* x, cudaStream_t stream);

#endif
