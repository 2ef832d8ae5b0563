/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What steps compare with to find particles that have left their cells: sums of fmm_left over the positions at assign.
 */
#include "cuda/particles/left.h"

#include "cuda/geometry.h"
#include "cuda/particles/particles.h"
#include "cuda/resources.h"
#include "cuda/runtime/sums.h"

struct SumArgs
{
    int                   n;
    LeftArgs              left;
    const BoxValues*      box;
    const Anchor*         anchor;
    const int*            cell_of;
    const fmm_leaf_place* leaves; /* of several levels, or NULL */
    AssignResults*        to;
};

__global__ void begin_sums(AssignResults* to)
{
    to->left_then = to->left_charge2 = 0;
}

__global__ void __launch_bounds__(c_leftThreads) sum_left(const __grid_constant__ SumArgs a)
{
    const int s    = static_cast<int>(blockIdx.x * c_leftThreads + threadIdx.x);
    double    then = 0, charge2 = 0;
    if (!is_in_left_sums(a.n, static_cast<int>(blockIdx.x)))
    {
        return;
    }
    if (s < a.n)
    {
        const Anchor anchor  = a.anchor[s];
        const double inverse = a.leaves != NULL ? 1 / a.leaves[a.cell_of[s]].edge : 1;
        const double at[3]   = {static_cast<double>(anchor.reference[0]), static_cast<double>(anchor.reference[1]),
                                static_cast<double>(anchor.reference[2])};
        double       y[3];
        fmm_cartesian(a.box->cell, at, y);
        charge2 = anchor.charge * anchor.charge;
        then    = charge2 * left_weight(a.left, y, inverse);
    }
    then    = block_sum<c_leftThreads>(then);
    charge2 = block_sum<c_leftThreads>(charge2);
    if (threadIdx.x == 0)
    {
        atomicAdd(&a.to->left_then, then);
        atomicAdd(&a.to->left_charge2, charge2);
    }
}

LeftArgs fmm_cuda_left_args(const gmxfmm_plan* plan)
{
    const fmm_cells* c = &plan->domain.cells;
    LeftArgs         a;
    a.exponent = plan->options.check != GMXFMM_CHECK_OFF ? plan->far.order + 1 : 0;
    a.scale    = 1 / (FMM_LEFT_A2 * c->lambda * c->lambda);
    a.skewed   = !c->rectangular;
    return a;
}

gmxfmm_status fmm_cuda_sum_left(gmxfmm_plan* plan, cudaStream_t stream)
{
    const fmm_device*  d   = plan->device;
    const ParticleSet* set = &d->particles.sources;
    SumArgs            a;
    a.n       = set->n;
    a.left    = fmm_cuda_left_args(plan);
    a.box     = d->domain.box.as<BoxValues>();
    a.anchor  = set->anchor.as<Anchor>();
    a.cell_of = set->cell_of.as<int>();
    a.leaves  = fmm_is_adaptive(plan) ? d->far.tree.leaves.place.as<fmm_leaf_place>() : NULL;
    a.to      = d->particles.assign_results.as<AssignResults>();
    if (a.left.exponent == 0 || a.n == 0)
    {
        return GMXFMM_OK;
    }
    begin_sums<<<1, 1, 0, stream>>>(a.to);
    FMM_CUDA(plan, cudaGetLastError());
    sum_left<<<blocks_for(a.n, c_leftThreads), c_leftThreads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}
