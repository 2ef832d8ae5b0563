/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lock by which records and waits take turns. */
#include "cuda/runtime/recording.h"

#include <pthread.h>

/* What it guards is the process's, too: plans know nothing of each other. */
static pthread_rwlock_t s_records = PTHREAD_RWLOCK_INITIALIZER;

cudaError_t fmm_cuda_wait_for_device(void)
{
    /* a thread that records is refused the lock, and CUDA says what is wrong */
    const bool        locked = pthread_rwlock_rdlock(&s_records) == 0;
    const cudaError_t error  = cudaDeviceSynchronize();
    if (locked)
    {
        pthread_rwlock_unlock(&s_records);
    }
    return error;
}

Recording::Recording()
{
    pthread_rwlock_wrlock(&s_records);
}

Recording::~Recording()
{
    pthread_rwlock_unlock(&s_records);
}
