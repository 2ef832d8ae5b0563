/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stages of an assignment in order: particles into cells, excluded pairs, levels of an octree (search steps). One
 * in parts goes into arrays of its own, beside steps that use the last one, and is copied where they read it at its
 * end: graphs of steps have the addresses of one place. */
#include <algorithm>

#include "cuda/device.h"
#include "cuda/near/near.h"
#include "cuda/devices/devices.h"
#include "cuda/tree/leaves.h"
#include "cuda/particles/particles.h"
#include "cuda/runtime/recording.h"
#include "cuda/timing.h"

/* The arrays of an assignment that steps read, but for what other devices copy of it: those of
 * fmm_cuda_assigned_particles and, after them, of fmm_cuda_assigned_pairs. */
enum
{
    c_sorted,
    c_position,
    c_cellOf,
    c_anchor,
    c_cellStart,
    c_tileStart,
    c_tiles,
    c_results,
    c_specialStart,
    c_farStart,
    c_specials,
    c_farPairs,
    c_end
};
static_assert(static_cast<int>(c_specialStart) == static_cast<int>(c_nextParticles) &&
                  static_cast<int>(c_end) == c_nextParticles + c_nextPairs,
              "in the order of both");

/* While it lives, what assigns has the arrays of the next assignment in place of those that steps read; and a box that
 * does not change beside it. */
class UsesNext
{
  public:
    explicit UsesNext(fmm_device* d) : d_(d)
    {
        swap();
    }
    ~UsesNext()
    {
        swap();
    }
    UsesNext(const UsesNext&)            = delete;
    UsesNext& operator=(const UsesNext&) = delete;

  private:
    void swap()
    {
        fmm_cuda_swap_particles(d_);
        fmm_cuda_swap_pairs(d_);
        fmm_cuda_swap_box(d_);
    }
    fmm_device* d_;
};

enum
{
    c_threads    = 256,
    c_blocksEach = 8, /* of end_assign, on a multiprocessor */
};

struct EndArgs
{
    int           n, num_cells;
    const void*   from[c_end];
    void*         to[c_end];
    const double* charge; /* caller's order */
};

static __device__ void copy_words(const EndArgs& a, int array, int num)
{
    const int* from = static_cast<const int*>(a.from[array]);
    int*       to   = static_cast<int*>(a.to[array]);
    for (int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); i < num;
         i += static_cast<int>(gridDim.x) * c_threads)
    {
        to[i] = from[i];
    }
}

/* Charges may have changed since particles were sorted. */
__global__ void __launch_bounds__(c_threads) end_assign(const __grid_constant__ EndArgs a)
{
    const AssignResults* found       = static_cast<const AssignResults*>(a.from[c_results]);
    const int            num_special = static_cast<const int*>(a.from[c_specialStart])[a.n];
    const int*           sorted      = static_cast<const int*>(a.from[c_sorted]);
    const Anchor*        from        = static_cast<const Anchor*>(a.from[c_anchor]);
    for (int s = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); s < a.n;
         s += static_cast<int>(gridDim.x) * c_threads)
    {
        Anchor anchor                           = from[s];
        anchor.charge                           = a.charge[sorted[s]];
        static_cast<Anchor*>(a.to[c_anchor])[s] = anchor;
    }
    copy_words(a, c_sorted, a.n);
    copy_words(a, c_position, a.n);
    copy_words(a, c_cellOf, a.n);
    copy_words(a, c_cellStart, a.num_cells + 1);
    copy_words(a, c_tileStart, a.num_cells + 1);
    copy_words(a, c_tiles, static_cast<int>(sizeof(Tile) / sizeof(int)) * found->num_tiles);
    copy_words(a, c_specialStart, a.n + 1);
    copy_words(a, c_farStart, a.n + 1);
    copy_words(a, c_specials, static_cast<int>(sizeof(Special) / sizeof(int)) * num_special);
    copy_words(a, c_farPairs, static_cast<int>(sizeof(FarPair) / sizeof(int)) * found->num_far);
    if (blockIdx.x == 0 && threadIdx.x == 0)
    {
        AssignResults* results = static_cast<AssignResults*>(a.to[c_results]);
        results->bad           = found->bad;
        results->num_tiles     = found->num_tiles;
        results->num_far       = found->num_far;
    }
}

static gmxfmm_status end_assignment(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    EndArgs     a;
    a.n         = d->particles.sources.n;
    a.num_cells = make_geometry(plan).num_cells;
    a.charge    = d->charges.value.as<double>();
    for (int i = 0; i < c_end; i++)
    {
        const bool pairs = i >= c_nextParticles;
        const int  k     = pairs ? i - c_nextParticles : i;
        a.from[i]        = (pairs ? d->near.next : d->particles.next)[k].memory;
        a.to[i]          = (pairs ? fmm_cuda_assigned_pairs(d, k) : fmm_cuda_assigned_particles(d, k))->memory;
    }
    const int most = c_blocksEach * d->limits.processors;
    end_assign<<<std::min(most, blocks_for(a.n + 1, c_threads)), c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return fmm_cuda_copy_assignment(plan, stream);
}

/* Ranges of the devices, and what others have of the assignment. */
static gmxfmm_status assign_ranges(gmxfmm_plan* plan, const void* x)
{
    fmm_device* d = plan->device;
    FMM_TRY(fmm_cuda_reserve_copies(plan));
    FMM_TRY(fmm_cuda_reserve_far(plan));
    fmm_cuda_set_warps(d);
    FMM_TRY(fmm_cuda_divide_far(plan, d->group->share.far, d->schedule.own));
    FMM_TRY(fmm_cuda_shares_are_old(plan) ? fmm_cuda_measure_shares(plan, x) : GMXFMM_OK);
    return fmm_cuda_copy_assignment(plan, d->schedule.own);
}

gmxfmm_status fmm_device_assign(gmxfmm_plan* plan, const void* x)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    if (make_geometry(plan).num_cells <= 0 && !fmm_is_adaptive(plan))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%d x %d x %d cells are too many for a GPU: use less depth",
                        plan->domain.grid[0], plan->domain.grid[1], plan->domain.grid[2]);
    }
    FMM_CUDA(plan, fmm_cuda_wait_for_device()); /* steps still running use what is replaced here */
    FMM_TRY(fmm_cuda_ready_particles(plan));
    FMM_TRY(fmm_cuda_upload_near_set(plan));
    FMM_TRY(fmm_cuda_on_device(plan, &x));
    FMM_TRY(fmm_cuda_store_box(plan, d->schedule.own));
    FMM_TRY(fmm_is_adaptive(plan) ? fmm_cuda_find_leaves(plan, x, d->schedule.own) : GMXFMM_OK);
    FMM_TRY(fmm_cuda_reserve_sort(plan));
    FMM_TRY(fmm_cuda_reserve_excluded_pairs(plan));
    FMM_TRY(fmm_cuda_sort_and_wait(plan, x));
    FMM_TRY(fmm_cuda_excluded_pairs(plan, d->schedule.own));
    if (d->far.path->assign != NULL)
    {
        FMM_TRY(d->far.path->assign(plan, d->schedule.own));
    }
    FMM_TRY(fmm_cuda_reserve_near_virial(plan));
    FMM_TRY(assign_ranges(plan, x));
    FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.own));
    return GMXFMM_OK;
}

int fmm_device_cells_hold(const gmxfmm_plan* plan)
{
    const fmm_device* d = plan->device;
    return fmm_is_bulk(plan) ||
           (cudaEventSynchronize(d->schedule.cells_found) == cudaSuccess && *d->particles.beyond == 0);
}

/* Whether the cells of a slab can stay. The call waits, which a graph could not stand for. */
static gmxfmm_status check_cells(gmxfmm_plan* plan, cudaStream_t stream)
{
    bool capturing = false;
    if (fmm_is_bulk(plan))
    {
        return GMXFMM_OK;
    }
    FMM_TRY(fmm_cuda_is_capturing(plan, stream, &capturing));
    if (capturing)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "an assignment of a slab cannot be captured: it waits for the one before");
    }
    return fmm_device_cells_hold(plan)
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_ORDER, "particles have left the cells of the slab: call gmxfmm_assign");
}

/* Finds the cells of particles, and lets the host know when that is done. */
static gmxfmm_status find_cells(gmxfmm_plan* plan, const void* x, cudaStream_t stream)
{
    FMM_TRY(fmm_cuda_find_cells(plan, x, stream));
    FMM_CUDA(plan, fmm_is_bulk(plan) ? cudaSuccess : cudaEventRecord(plan->device->schedule.cells_found, stream));
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream)
{
    const cudaStream_t on = static_cast<cudaStream_t>(stream);
    DeviceScope        scope(plan->device->id);
    FMM_TRY(check_cells(plan, on));
    FMM_TRY(fmm_cuda_store_box(plan, on));
    FMM_TRY(find_cells(plan, x, on));
    FMM_TRY(fmm_cuda_sort_sources(plan, on));
    FMM_TRY(fmm_cuda_excluded_pairs(plan, on));
    return fmm_cuda_copy_assignment(plan, on);
}

gmxfmm_status fmm_device_enqueue_assign_part(gmxfmm_plan* plan, gmxfmm_assign_part part, const void* x, void* stream)
{
    fmm_device*        d  = plan->device;
    const cudaStream_t on = static_cast<cudaStream_t>(stream);
    DeviceScope        scope(d->id);
    if (part == GMXFMM_ASSIGN_END)
    {
        return end_assignment(plan, on);
    }
    if (part == GMXFMM_ASSIGN_BEGIN)
    {
        FMM_TRY(check_cells(plan, on));
        FMM_TRY(fmm_cuda_store_box(plan, on));
        FMM_TRY(fmm_cuda_reserve_next_particles(plan));
        FMM_TRY(fmm_cuda_reserve_next_pairs(plan));
        FMM_TRY(fmm_cuda_begin_next_box(plan, on));
    }
    UsesNext next(d);
    if (part == GMXFMM_ASSIGN_BEGIN)
    {
        return find_cells(plan, x, on);
    }
    FMM_TRY(fmm_cuda_sort_sources(plan, on));
    return fmm_cuda_excluded_pairs(plan, on);
}
