/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One of the two kernels of rotation_kernels.h for one order and precision: compiled with FMM_ORDER, FMM_REAL and
 * FMM_KERNEL, rotate_sources or translate, by nvcc or, when a plan asks for the order, by NVRTC. The two are compiled
 * separately, since constant memory has no room for the matrix elements of both. */
#include "cuda/octree/rotation_kernels.h"

namespace rotation
{

#define KINDS_rotate_sources ROT_FLIP, 1
#define KINDS_translate ROT_FLIP_TURNED, 2
#define KINDS_OF(kernel) KINDS_##kernel
#define KINDS(kernel) KINDS_OF(kernel)

/* The compiler makes elements operands of instructions or, in double precision, leaves them in constant memory, which
 * has 64 KB. Tables larger than that are in global memory. */
constexpr bool c_isLoaded = sizeof(FMM_REAL) == sizeof(double) && FMM_ORDER > 20;
template <int P>
using TablesTo = Tables<FMM_REAL, P, KINDS(FMM_KERNEL)>;
template <int P>
constexpr TablesTo<P> tables_to()
{
    return make_tables<FMM_REAL, P, KINDS(FMM_KERNEL)>();
}
static __constant__ const TablesTo<c_isLoaded ? 0 : FMM_ORDER> c_tables = tables_to < c_isLoaded ? 0 : FMM_ORDER > ();
static __device__ TablesTo<c_isLoaded ? FMM_ORDER : 0> g_tables         = tables_to < c_isLoaded ? FMM_ORDER : 0 > ();

constexpr __host__ __device__ int first_kind(int first, int)
{
    return first;
}

template <>
__device__ __forceinline__ const FMM_REAL* flips<FMM_REAL, FMM_ORDER>(int kind)
{
    constexpr int first = first_kind(KINDS(FMM_KERNEL));
    return c_isLoaded ? g_tables.flip[kind - first] : c_tables.flip[kind - first];
}

template <>
__device__ __forceinline__ FMM_REAL binomial<FMM_REAL, FMM_ORDER>(int k, int n)
{
    return c_isLoaded ? g_tables.binomial[k][n] : c_tables.binomial[k][n];
}

#ifdef __CUDACC_RTC__
template __global__ void FMM_KERNEL<FMM_REAL, FMM_ORDER>(Arguments<FMM_REAL>);
#else
#    define NAME_OF(kernel, real, order) kernel##_##real##_##order
#    define NAME(kernel, real, order) NAME_OF(kernel, real, order)
const void* NAME(FMM_KERNEL, FMM_REAL, FMM_ORDER)()
{
    return reinterpret_cast<const void*>(&FMM_KERNEL<FMM_REAL, FMM_ORDER>);
}
#endif

} // namespace rotation
