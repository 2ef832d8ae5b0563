/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of the device part of a treecode, and copies between host and device. */
#ifndef CUDA_TREECODE_MEMORY_H
#define CUDA_TREECODE_MEMORY_H

#include "cuda/treecode/state.h"

/* Room for that many bytes, contents lost if it grows, or kept. Errors: MEMORY. */
gmxfmm_status treecode_grow(treecode* t, DeviceBuffer* buffer, size_t bytes);
gmxfmm_status treecode_grow_keep(treecode* t, DeviceBuffer* buffer, size_t bytes);

/* Room, and a copy of the host's, on the stream. Errors: MEMORY, DEVICE. */
gmxfmm_status treecode_upload(treecode* t, DeviceBuffer* buffer, const void* from, size_t bytes);

/* Copies from the device, and waits; large ones of arrays of the caller's by way of pinned memory. Errors: DEVICE. */
gmxfmm_status treecode_download(treecode* t, void* to, const void* from, size_t bytes);

/* *x, an array of either side, becomes its address on the device: its own, or that of a copy in the buffer. Errors:
 * MEMORY, DEVICE. */
gmxfmm_status treecode_on_device(treecode* t, const void** x, DeviceBuffer* copy, size_t bytes);

#endif
