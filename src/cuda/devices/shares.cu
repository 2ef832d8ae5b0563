/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shares of several devices: searched by times of steps, and set by the caller. */
#include <algorithm>

#include "cuda/device.h"
#include "cuda/devices/devices.h"

enum
{
    c_timedSteps    = 3,  /* in a row, of which the last is timed */
    c_triedShares   = 4,  /* shares of several devices that are tried, one after the other */
    c_comparedSteps = 10, /* with the far field on one device and on all */
    c_bisections    = 60,
    c_leastOfRate   = 20 /* a device is not taken to be more than 20 times as fast as the slowest */
};

/* A far field on several devices has to be faster by more than times differ by chance. */
static const double c_leastGain = 0.98;

/* Shares of the first device that are tried, over equal ones: others have to fetch positions first. Of an octree it has
 * all but M2L of the leaves in any case; and where there are pair kernels of others these are on the first. */
static const double c_firstFarShares[] = {1, 1.2}, c_firstSmallShares[] = {1, 0.5};

/* Shares with which all devices take equally long: ms[k] is what device k took with its present share, base[k] what it
 * takes without any. */
static void balance(DeviceGroup* group, const double* ms, const double* base)
{
    double rate[GMXFMM_MAX_DEVICES], slowest = 0, most = 0;
    for (int k = 0; k < group->num; k++)
    {
        rate[k] = group->share.near[k] > 0 ? (ms[k] - base[k]) / group->share.near[k] : 0;
        slowest = std::max(slowest, rate[k]);
        most    = std::max(most, base[k]);
    }
    double low = 0, high = most + slowest, sum = 0; /* at which time the shares add up to all of it */
    for (int i = 0; i < c_bisections && slowest > 0; i++)
    {
        const double time = 0.5 * (low + high);
        sum               = 0;
        for (int k = 0; k < group->num; k++)
        {
            /* noise must not make a device look as fast as nothing; one without a share is taken for a slow one */
            const double r       = rate[k] > 0 ? std::max(rate[k], slowest / c_leastOfRate) : slowest;
            group->share.near[k] = std::max(time - base[k], 0.0) / r;
            sum += group->share.near[k];
        }
        (sum > 1 ? high : low) = time;
    }
    for (int k = 0; k < group->num && slowest > 0; k++)
    {
        group->share.near[k] /= sum;
    }
}

/* Times of the devices in ms. */
static gmxfmm_status time_devices(gmxfmm_plan* plan, const TimedStep& step, const void* x, unsigned stages, double* ms)
{
    const fmm_device* d = plan->device;
    for (int i = 0; i < c_timedSteps; i++)
    {
        FMM_CUDA(plan, cudaEventRecord(d->schedule.begin, d->schedule.own));
        FMM_TRY(step.fields(plan, x, stages, {0, 0, 0, 0}, d->schedule.own));
    }
    FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.own));
    for (int k = 0; k < num_devices(d); k++)
    {
        const DeviceSchedule& timed = d[k].schedule;
        float                 taken = 0;
        DeviceScope           scope(d[k].id);
        if (k == 0 || has_work(&d[k], (stages & GMXFMM_STAGE_NEAR) != 0, true))
        {
            FMM_CUDA(plan, cudaEventElapsedTime(&taken, timed.begin, timed.end));
        }
        ms[k] = static_cast<double>(taken);
    }
    return GMXFMM_OK;
}

/* Tries shares of the near field, each from the times with those before, and keeps those with which the slowest device
 * took least. */
static gmxfmm_status balance_near(gmxfmm_plan* plan, const TimedStep& step, const void* x)
{
    fmm_device*  d     = plan->device;
    DeviceGroup* group = d->group;
    double       base[GMXFMM_MAX_DEVICES], ms[GMXFMM_MAX_DEVICES], best[GMXFMM_MAX_DEVICES], least = 0;
    FMM_TRY(fmm_cuda_permute(plan, x, fmm_cuda_position_copies(plan), true, d->schedule.own));
    FMM_TRY(fmm_cuda_copy_assignment(plan, d->schedule.own));
    FMM_TRY(time_devices(plan, step, x, GMXFMM_STAGE_FAR, base));
    for (int round = 0; round < c_triedShares; round++)
    {
        FMM_TRY(fmm_cuda_copy_assignment(plan, d->schedule.own));
        FMM_TRY(time_devices(plan, step, x, GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR, ms));
        const double slowest = *std::max_element(ms, ms + group->num);
        if (round == 0 || slowest < least)
        {
            least = slowest;
            std::copy(group->share.near, group->share.near + group->num, best);
        }
        balance(group, ms, base);
        fmm_cuda_set_warps(d);
    }
    std::copy(best, best + group->num, group->share.near);
    fmm_cuda_set_warps(d);
    return fmm_cuda_copy_assignment(plan, d->schedule.own);
}

/* Near and far field of a step, in s, and what sends positions to the devices. */
static gmxfmm_status time_fields(gmxfmm_plan* plan, const TimedStep& step, const void* x, double* seconds)
{
    gmxfmm_device_output fields = {};
    fields.stages               = GMXFMM_STAGE_PERMUTE | GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR;
    plan->device->group->timed  = false;
    FMM_TRY(step.time(plan, x, &fields, c_comparedSteps, seconds));
    plan->device->group->timed = true;
    return GMXFMM_OK;
}

static gmxfmm_status set_shares(gmxfmm_plan* plan, const DeviceShares& s)
{
    plan->device->group->share = s;
    fmm_cuda_set_warps(plan->device);
    return fmm_cuda_divide_far(plan, s.far, plan->device->schedule.own);
}

/* Makes the present shares the best if with them the fields take less than *least. */
static gmxfmm_status
compare_shares(gmxfmm_plan* plan, const TimedStep& step, const void* x, double* least, DeviceShares* best)
{
    double seconds = 0;
    FMM_TRY(time_fields(plan, step, x, &seconds));
    if (seconds < *least)
    {
        *least = seconds;
        *best  = plan->device->group->share;
    }
    return GMXFMM_OK;
}

/* The far field on all devices, if that is faster than on the first alone; equal shares of the near field, or balanced
 * ones: where steps are shorter than the host takes to launch them, times of devices tell little. */
static gmxfmm_status try_far_shares(gmxfmm_plan* plan, const TimedStep& step, const void* x)
{
    const DeviceGroup* group = plan->device->group;
    DeviceShares       best = group->share, s = best;
    double             least = 0;
    FMM_TRY(time_fields(plan, step, x, &least));
    least *= c_leastGain;
    for (const double times_equal :
         plan->domain.tree != NULL || group->pairs_beside ? c_firstSmallShares : c_firstFarShares)
    {
        std::fill_n(s.near, group->num, 1.0 / group->num);
        s.far[0] = times_equal / group->num;
        std::fill_n(s.far + 1, group->num - 1, (1 - s.far[0]) / (group->num - 1));
        FMM_TRY(set_shares(plan, s));
        FMM_TRY(balance_near(plan, step, x)); /* before graphs, which cannot load kernels */
        FMM_TRY(compare_shares(plan, step, x, &least, &best));
        FMM_TRY(set_shares(plan, s));
        FMM_TRY(fmm_cuda_copy_assignment(plan, plan->device->schedule.own));
        FMM_TRY(compare_shares(plan, step, x, &least, &best));
    }
    return set_shares(plan, best);
}

/* Chooses shares, by times of near and far field at these positions. */
static gmxfmm_status try_shares(gmxfmm_plan* plan, const TimedStep& step, const void* x)
{
    fmm_device*  d                         = plan->device;
    DeviceGroup* group                     = d->group;
    const double first[GMXFMM_MAX_DEVICES] = {1};
    FMM_TRY(fmm_cuda_store_box(plan, d->schedule.own));
    if (!group->far_given)
    {
        FMM_TRY(fmm_cuda_divide_far(plan, first, d->schedule.own));
    }
    FMM_TRY(balance_near(plan, step, x));
    if (!group->far_given && fmm_cuda_can_share_far(plan))
    {
        FMM_TRY(try_far_shares(plan, step, x));
        FMM_TRY(shares_far(plan) ? GMXFMM_OK : fmm_cuda_release_far(plan));
    }
    group->measured_n       = d->particles.sources.n;
    group->measured_targets = d->particles.targets.n;
    group->measured_order   = plan->far.order;
    group->measured_near    = plan->domain.cells.num_near;
    group->measured_tiles   = targets_of(d)->launched_tiles;
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_find_shares(gmxfmm_plan* plan, const void* x, const TimedStep& step)
{
    DeviceGroup* group         = plan->device->group;
    group->timed               = true;
    group->pairs_beside        = plan->options.pairs_beside != 0;
    const gmxfmm_status status = try_shares(plan, step, x);
    group->timed = group->pairs_beside = false;
    return status;
}

gmxfmm_status fmm_device_set_first_share(gmxfmm_plan* plan, double share)
{
    DeviceGroup* group  = plan->device->group;
    double*      near   = group->share.near;
    const double others = 1 - near[0];
    if (!has_others(plan->device))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "one device is used");
    }
    for (int k = 1; k < group->num; k++)
    {
        near[k] = (1 - share) * (others > 0 ? near[k] / others : 1.0 / (group->num - 1));
    }
    near[0] = share;
    fmm_cuda_set_warps(plan->device);
    return GMXFMM_OK;
}
