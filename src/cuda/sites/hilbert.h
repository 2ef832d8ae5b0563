/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hilbert's curve in three dimensions, by J. Skilling, AIP Conf. Proc. 707, 381 (2004). */
#ifndef CUDA_SITES_HILBERT_H
#define CUDA_SITES_HILBERT_H

/* The place along the curve of a cell among 2^bits in each dimension, bits <= 10. */
static __device__ __forceinline__ unsigned hilbert_key(unsigned x, unsigned y, unsigned z, int bits)
{
    unsigned at[3] = {x, y, z};
    for (unsigned q = 1u << (bits - 1); q > 1; q >>= 1)
    {
        const unsigned p = q - 1;
#pragma unroll
        for (int i = 0; i < 3; i++)
        {
            const unsigned t = at[i] & q ? 0 : (at[0] ^ at[i]) & p;
            at[0] ^= at[i] & q ? p : t;
            at[i] ^= t;
        }
    }
    at[1] ^= at[0];
    at[2] ^= at[1];
    unsigned t = 0;
    for (unsigned q = 1u << (bits - 1); q > 1; q >>= 1)
    {
        t ^= at[2] & q ? q - 1 : 0;
    }
    unsigned key = 0;
    for (int b = bits - 1; b >= 0; b--)
    {
#pragma unroll
        for (int i = 0; i < 3; i++)
        {
            key = key << 1 | ((at[i] ^ t) >> b & 1u);
        }
    }
    return key;
}

#endif
