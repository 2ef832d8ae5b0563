/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that record a graph, and threads that wait for a whole device. CUDA refuses to wait while any thread of the
 * process records there, and spoils the record. So they take turns; any number may wait at once. */
#ifndef FMM_CUDA_RECORDING_H
#define FMM_CUDA_RECORDING_H

#include <cuda_runtime.h>

/* Waits for all that is enqueued on the current device. */
cudaError_t fmm_cuda_wait_for_device(void);

/* What a thread enqueues until the end of a scope may be a record: no thread of the library waits for a device. */
class Recording
{
  public:
    Recording();
    ~Recording();
    Recording(const Recording&)            = delete;
    Recording& operator=(const Recording&) = delete;
};

#endif
