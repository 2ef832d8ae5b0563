/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L over a periodic grid of cells by transforms and a product with spectra of lattice sums (THEORY section 5). */
#ifndef FMM_CUDA_CONVOLUTION_H
#define FMM_CUDA_CONVOLUTION_H

#include "cuda/expansions/far_range.h"
#include "cuda/geometry.h"
#include "cuda/resources.h"

/* fft.cu: sets own_transforms, whether it has transforms for the grid, and makes their tables; sets device->has_chains.
 */
gmxfmm_status fmm_cuda_fft_prepare(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_find_chains(gmxfmm_plan* plan);

/* fft.cu: device->far.cells.field to or from a spectrum in two halves, of a range on the current device: planes of its
 * layers, and the first dimension in its columns; without own_transforms planes are all of it. chained: the kernel
 * before in the stream is the one whose results it reads, and the stream waits for no other device in between. */
gmxfmm_status fmm_cuda_planes(
    gmxfmm_plan* plan, const FarRange& far, bool forward, const Spectra& spectra, bool chained, cudaStream_t stream);
gmxfmm_status fmm_cuda_lines(
    gmxfmm_plan* plan, const FarRange& far, bool forward, const Spectra& spectra, bool chained, cudaStream_t stream);

/* m2l_fft.cu: the table of work items of the product; the product in the columns of a range on the current device, from
 * a spectrum to one that may be the same with one block for the same frequencies. */
gmxfmm_status fmm_cuda_product_items(gmxfmm_plan* plan);
gmxfmm_status
fmm_cuda_product(gmxfmm_plan* plan, const FarRange& far, const void* from, void* to, bool chained, cudaStream_t stream);

/* m2l_fft_virial.cu: the strain derivative; its blocks are rows of device->far.cells.virial. */
int           fmm_cuda_virial_blocks(const gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_m2l_virial(gmxfmm_plan* plan, cudaStream_t stream);

/* spectra.cu: prepares lattice sums for the present shape; computes its spectra, with_virial those of Z, too, of
 * which a graph that is captured has none until it is launched; interpolates them instead (plan->far.line.active), and
 * copies *box to *to. */
gmxfmm_status fmm_cuda_set_lattice(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_spectra(gmxfmm_plan* plan, bool with_virial, cudaStream_t stream);
gmxfmm_status
fmm_cuda_interpolate(gmxfmm_plan* plan, bool with_virial, const BoxValues* box, BoxValues* to, cudaStream_t stream);

/* far.cu: arrays and transforms for the grid of fmm_convolved; spectra of nodes where boxes follow a line; from
 * multipoles to locals, by each device of its range on its stream for the far field, `ready` being the event after
 * which spectra can be used, or NULL; the functions of a far field by cells of one level. */
gmxfmm_status           fmm_cuda_set_transforms(gmxfmm_plan* plan);
gmxfmm_status           fmm_cuda_reserve_nodes(gmxfmm_plan* plan);
void                    fmm_cuda_free_transforms(fmm_device* device);
gmxfmm_status           fmm_cuda_convolve(gmxfmm_plan* plan, bool virial, cudaEvent_t ready);
extern const DevicePath fmm_cuda_by_cells;

#endif
