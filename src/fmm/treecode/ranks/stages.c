/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stages of the treecode on several ranks: those of one, and what ranks tell each other between them. In an assign
 * all ranks call the same stages, so each stage that may fail ends with agreement about that; in a step only output may
 * fail, behind all that ranks send. */
#include <math.h>
#include <stdlib.h>

#include "fmm/clock.h"
#include "fmm/treecode/ranks/state.h"

gmxfmm_status treecode_ranks_create(treecode* t, const treecode_stages* local, const treecode_ranks_device* on_device)
{
    const size_t    num = (size_t)t->options.ranks->comm.size;
    treecode_ranks* r   = calloc(1, sizeof(*r));
    if (r == NULL)
    {
        return treecode_no_memory(t);
    }
    t->ranks           = r;
    r->ranks           = t->options.ranks;
    r->local           = local;
    r->on_device       = on_device;
    r->tree            = calloc(num, sizeof(*r->tree));
    r->take            = calloc(num, sizeof(*r->take));
    r->give            = calloc(num, sizeof(*r->give));
    r->take_start      = calloc(num + 1, sizeof(int64_t));
    r->give_start      = calloc(num + 1, sizeof(int64_t));
    r->particles_start = calloc(num + 1, sizeof(int64_t));
    r->receive_start   = calloc(num + 1, sizeof(int64_t));
    r->send_start      = calloc(num + 1, sizeof(int64_t));
    if (r->tree == NULL || r->take == NULL || r->give == NULL || r->take_start == NULL || r->give_start == NULL ||
        r->particles_start == NULL || r->receive_start == NULL || r->send_start == NULL)
    {
        return treecode_no_memory(t);
    }
    return local->create != NULL ? local->create(t) : GMXFMM_OK;
}

void treecode_ranks_destroy(treecode* t)
{
    treecode_ranks* r = t->ranks;
    if (r != NULL)
    {
        if (r->local->destroy != NULL)
        {
            r->local->destroy(t);
        }
        treecode_ranks_free_named(r);
        treecode_ranks_free_trees(r);
        free(r->tree);
        free(r->take);
        free(r->give);
        free(r->take_start);
        free(r->give_start);
        free(r->particles_start);
        free(r->receive_start);
        free(r->send_start);
        free(r);
        t->ranks = NULL;
    }
}

gmxfmm_status treecode_ranks_take_charges(treecode* t, const double* q)
{
    return t->ranks->local->take_charges(t, q);
}

/* The range of all ranks' particles, and how many there are. */
gmxfmm_status treecode_ranks_extent(treecode* t, double low[3], double high[3])
{
    const gmxfmm_comm* comm   = &t->ranks->ranks->comm;
    gmxfmm_status      status = treecode_ranks_agree(t, t->ranks->local->extent(t, low, high));
    double             range[6], all = (double)t->n, room[6];
    for (int d = 0; d < 3; d++)
    {
        range[d]     = -low[d];
        range[3 + d] = high[d];
    }
    status = status == GMXFMM_OK ? fmm_ranks_reduce(comm, FMM_RANKS_MAX, range, room, 6) : status;
    status = status == GMXFMM_OK ? fmm_ranks_reduce(comm, FMM_RANKS_SUM, &all, room, 1) : status;
    for (int d = 0; d < 3; d++)
    {
        low[d]  = -range[d];
        high[d] = range[3 + d];
    }
    t->all = (int64_t)all;
    return status;
}

gmxfmm_status treecode_ranks_trees(treecode* t)
{
    treecode_ranks_free_named(t->ranks);
    return treecode_ranks_agree(t, t->ranks->local->trees(t));
}

/* Mean evaluations of the kernel a target, of all. */
static gmxfmm_status count_pairs(treecode* t)
{
    double              sum[2] = {t->lists.pairs + t->point_lists.pairs, (double)t->num_targets}, room[2];
    const gmxfmm_status status = fmm_ranks_reduce(&t->ranks->ranks->comm, FMM_RANKS_SUM, sum, room, 2);
    t->info.pairs_per_target   = sum[1] > 0 ? sum[0] / sum[1] : 0;
    return status;
}

/* Lists of the own batches with the own tree, which a device shows to the host. */
static gmxfmm_status own_lists(treecode* t)
{
    const treecode_stages* local  = t->ranks->local;
    gmxfmm_status          status = local->lists(t);
    return status == GMXFMM_OK && local->mirror != NULL ? local->mirror(t, 0) : status;
}

gmxfmm_status treecode_ranks_lists(treecode* t)
{
    const treecode_ranks_device* device = t->ranks->on_device;
    gmxfmm_status                status = treecode_ranks_agree(t, own_lists(t));
    status                              = status == GMXFMM_OK ? treecode_ranks_share_trees(t) : status;
    status                              = status == GMXFMM_OK ? treecode_ranks_name(t) : status;
    status = status == GMXFMM_OK && device != NULL ? treecode_ranks_agree(t, device->take_named(t)) : status;
    treecode_ranks_free_trees(t->ranks);
    return status == GMXFMM_OK ? count_pairs(t) : status;
}

static gmxfmm_status create(treecode* t)
{
    return treecode_ranks_create(t, &treecode_on_cpu, NULL);
}

static gmxfmm_status reserve(treecode* t)
{
    gmxfmm_status status = treecode_on_cpu.reserve(t);
    status               = status == GMXFMM_OK ? treecode_ranks_reserve(t) : status;
    t->info.bytes += t->ranks->bytes;
    return treecode_ranks_agree(t, status);
}

static gmxfmm_status gather(treecode* t, const void* x)
{
    return treecode_on_cpu.gather(t, x);
}

static gmxfmm_status charges(treecode* t)
{
    gmxfmm_status status    = treecode_on_cpu.charges(t);
    const double  begin     = fmm_time();
    status                  = status == GMXFMM_OK ? treecode_ranks_exchange(t) : status;
    t->ranks->time_exchange = fmm_time() - begin;
    return status;
}

static gmxfmm_status all_sums(treecode* t, int with_field)
{
    return treecode_on_cpu.all_sums(t, with_field);
}

static gmxfmm_status output(treecode* t, treecode_output* output)
{
    const gmxfmm_status status = treecode_on_cpu.output(t, output);
    for (int d = 0; d < 3 && status == GMXFMM_ERROR_COINCIDENT; d++)
    {
        t->ranks->bad_place[d] = t->bad_target >= 0 ? treecode_targets(t)->x[d][t->bad_target] : NAN;
    }
    return status;
}

const treecode_stages treecode_on_ranks = {
    .create       = create,
    .destroy      = treecode_ranks_destroy,
    .take_charges = treecode_ranks_take_charges,
    .extent       = treecode_ranks_extent,
    .trees        = treecode_ranks_trees,
    .lists        = treecode_ranks_lists,
    .reserve      = reserve,
    .gather       = gather,
    .charges      = charges,
    .all_sums     = all_sums,
    .output       = output,
};
