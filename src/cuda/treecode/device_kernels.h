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

/* Without the special function units, whose rate is what bounds single precision: some pairs by these let them and the
 * arithmetic units work side by side. 1/sqrt from the bits of x, y to 3.5 %, and a polynomial of w = x y^2 that is near
 * 1/sqrt(w) there, to 2.5e-7, 7e-8 in the mean (interpolation at Chebyshev points). */
namespace arithmetic
{
typedef float                    real;
typedef float                    number;
__device__ __forceinline__ float kernel_rsqrt(float x)
{
    const float y = __int_as_float(0x5f376908 - (__float_as_int(x) >> 1)), w = x * (y * y);
    float       p = 0.2730771303F;
    p             = fmaf(p, w, -1.406248450F);
    p             = fmaf(p, w, 2.955286980F);
    p             = fmaf(p, w, -3.284135342F);
    p             = fmaf(p, w, 2.462019682F);
    return p * y;
}
__device__ __forceinline__ float kernel_exp(float x)
{
    return __expf(x);
}
#include "fmm/treecode/kernels.h"
} // namespace arithmetic

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
enum
{
    c_powers = 16 /* of 2^(1/16): as many doubles as shared memory has banks for, so that lanes never wait */
};

/* Powers j / 16 of two, for kernel_exp: of a block, which calls fillPowers before. */
__device__ __forceinline__ double* powersOfTwo()
{
    __shared__ double sm_power[c_powers];
    return sm_power;
}

__device__ __forceinline__ void fillPowers()
{
    if (threadIdx.x < c_powers)
    {
        powersOfTwo()[threadIdx.x] = exp2((double)threadIdx.x / c_powers);
    }
    __syncthreads();
}

/* Of x <= 0: 2^(k/16) exp(r), k the integer next to 16 x / log 2 and |r| <= log 2 / 32, exp(r) by its series to a
 * remainder of 4e-16 at most; zero where it is no normal number. */
__device__ __forceinline__ double kernel_exp(double x)
{
    const double shifted = fma(x, 16 * 1.4426950408889634, 6755399441055744.0), k = shifted - 6755399441055744.0;
    const double r       = fma(k, -0x1.62e42fefa39efp-5, x);
    const int    integer = __double2loint(shifted);
    double       sum     = 1.0 / 720;
    sum                  = fma(sum, r, 1.0 / 120);
    sum                  = fma(sum, r, 1.0 / 24);
    sum                  = fma(sum, r, 1.0 / 6);
    sum                  = fma(sum, r, 0.5);
    sum                  = fma(sum, r, 1.0);
    sum                  = fma(sum, r, 1.0) * powersOfTwo()[integer & (c_powers - 1)];
    const int  high      = __double2hiint(sum) + (int)((unsigned)(integer >> 4) << 20);
    const bool normal    = (unsigned)__double2hiint(x) < 0xc0862000U; /* x > -708 */
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

/* The kernel at point number `which`, a constant after loops are unrolled. In single precision every fourth point, or
 * second, has its 1/sqrt by arithmetic, so that the special function units are not the only ones that are busy. */
template <treecode_kernel kernel>
__device__ __forceinline__ void
evaluateInTurn(int which, float r2, const single::kernel_parameters& k, float* g, float* slope)
{
    constexpr int turn = kernel == treecode_yukawa ? 2 : 4; /* exp is of the special function units, too */
    if (which % turn == turn - 1)
    {
        arithmetic::kernel_parameters same;
        for (int i = 0; i < TREECODE_PARAMETERS; i++)
        {
            same.p[i] = k.p[i];
        }
        arithmetic::kernel_evaluate(kernel, r2, same, g, slope);
    }
    else
    {
        single::kernel_evaluate(kernel, r2, k, g, slope);
    }
}

template <treecode_kernel kernel>
__device__ __forceinline__ void
evaluateInTurn(int, double r2, const twice::kernel_parameters& k, double* g, double* slope)
{
    twice::kernel_evaluate(kernel, r2, k, g, slope);
}

template <treecode_kernel kernel>
__device__ __forceinline__ void evaluate(double r2, const twice::kernel_parameters& k, double* g, double* slope)
{
    twice::kernel_evaluate(kernel, r2, k, g, slope);
}

#endif
