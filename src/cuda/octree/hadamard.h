/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of eight mirror images, or children, by character (THEORY (33)). */
#ifndef FMM_CUDA_HADAMARD_H
#define FMM_CUDA_HADAMARD_H

/* Walsh-Hadamard transform. */
template <class R>
static __device__ __forceinline__ void hadamard(R (&v)[8])
{
#pragma unroll
    for (int step = 1; step < 8; step *= 2)
    {
#pragma unroll
        for (int i = 0; i < 8; i++)
        {
            if (!(i & step))
            {
                const R x = v[i], y = v[i + step];
                v[i]        = x + y;
                v[i + step] = x - y;
            }
        }
    }
}

#endif
