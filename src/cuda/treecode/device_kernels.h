/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernels of src/fmm/treecode/kernels.h for a thread, in both precisions. */
#ifndef CUDA_TREECODE_DEVICE_KERNELS_H
#define CUDA_TREECODE_DEVICE_KERNELS_H

#include "fmm/treecode/kernels.h"

#define TREECODE_FUNCTION __device__ __forceinline__

namespace single
{
typedef float                    real;
typedef float                    number;
__device__ __forceinline__ float kernel_rsqrt(float x)
{
    return rsqrtf(x);
}
__device__ __forceinline__ float kernel_exp(float x)
{
    return __expf(x);
}
#include "fmm/treecode/kernels.h"
} // namespace single

#undef TREECODE_KERNEL_FUNCTIONS

namespace twice
{
typedef double real;
typedef double number;
/* An estimate to 2^-20 and, with e = 1 - x y^2, the step y (1 + e/2 + 3/8 e^2), which leaves 5/16 e^3. */
__device__ __forceinline__ double kernel_rsqrt(double x)
{
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fma(-x, y * y, 1.0);
    return fma(y * e, fma(e, 0.375, 0.5), y);
}
/* Of x <= 0: 2^k exp(r), k the integer next to x / log 2, as in vector_math.h; zero where that is no normal number.
 * Without the cases of exp that cannot be here. */
__device__ __forceinline__ double kernel_exp(double x)
{
    const double shifted = fma(x, 1.4426950408889634, 6755399441055744.0), k = shifted - 6755399441055744.0;
    const double r    = fma(k, -0x1.abc9e3b39803fp-56, fma(k, -0x1.62e42fefa39efp-1, x));
    double       sum  = 1.0 / 39916800;
    sum               = fma(sum, r, 1.0 / 3628800);
    sum               = fma(sum, r, 1.0 / 362880);
    sum               = fma(sum, r, 1.0 / 40320);
    sum               = fma(sum, r, 1.0 / 5040);
    sum               = fma(sum, r, 1.0 / 720);
    sum               = fma(sum, r, 1.0 / 120);
    sum               = fma(sum, r, 1.0 / 24);
    sum               = fma(sum, r, 1.0 / 6);
    sum               = fma(sum, r, 0.5);
    sum               = fma(sum, r, 1.0);
    sum               = fma(sum, r, 1.0);
    const int  high   = __double2hiint(sum) + (int)((unsigned)__double2loint(shifted) << 20);
    const bool normal = (unsigned)__double2hiint(x) < 0xc0862000U; /* x > -708 */
    return __hiloint2double(normal ? high : 0, normal ? __double2loint(sum) : 0);
}
#include "fmm/treecode/kernels.h"
} // namespace twice

/* Parameters in the precision of the sums. */
template <class R>
struct KernelParameters;
template <>
struct KernelParameters<float> : single::kernel_parameters
{
};
template <>
struct KernelParameters<double> : twice::kernel_parameters
{
};

template <treecode_kernel kernel>
__device__ __forceinline__ void evaluate(float r2, const single::kernel_parameters& k, float* g, float* slope)
{
    single::kernel_evaluate(kernel, r2, k, g, slope);
}

template <treecode_kernel kernel>
__device__ __forceinline__ void evaluate(double r2, const twice::kernel_parameters& k, double* g, double* slope)
{
    twice::kernel_evaluate(kernel, r2, k, g, slope);
}

#endif
