/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each rank has of a step that several compute together, and sums over all. */
#include "fmm/cpu/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "fmm/cpu/particles/particles.h"

gmxfmm_status fmm_shares_create(gmxfmm_plan* plan)
{
    fmm_shares* s = &plan->cpu->shares;
    if (plan->shared == NULL)
    {
        return GMXFMM_OK;
    }
    const size_t num = (size_t)plan->shared->comm.size + 1;
    s->ranks         = plan->shared;
    s->rank          = plan->shared->comm.rank;
    s->num           = plan->shared->comm.size;
    s->rows          = calloc(num, sizeof(int));
    s->units         = calloc(num, sizeof(int));
    s->columns       = calloc(num, sizeof(int));
    s->room          = calloc(num, FMM_PARTIAL * sizeof(double));
    return s->rows && s->units && s->columns && s->room ? GMXFMM_OK
                                                        : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
}

void fmm_shares_free(gmxfmm_plan* plan)
{
    fmm_shares* s = &plan->cpu->shares;
    free(s->rows);
    free(s->units);
    free(s->columns);
    free(s->room);
}

void fmm_shares_even(gmxfmm_plan* plan)
{
    fmm_shares* s    = &plan->cpu->shares;
    const int   each = plan->cpu->block_rows, blocks = plan->cpu->partial_rows / each;
    for (int r = 0; r <= s->num && s->ranks != NULL; r++)
    {
        s->rows[r] = (int)((int64_t)blocks * r / s->num) * each;
    }
}

void fmm_shares_by_work(gmxfmm_plan* plan, const double* of_row, const double* speed, const double* extra)
{
    fmm_shares* s    = &plan->cpu->shares;
    const int   each = plan->cpu->block_rows, rows = plan->cpu->partial_rows;
    double      all = 0, fast = 0, slow = 0, target = 0, done = 0;
    int         row = 0;
    for (int i = 0; i < rows; i++)
    {
        all += of_row[i];
    }
    for (int r = 0; r < s->num; r++)
    {
        fast += speed[r];
        slow += speed[r] * extra[r];
    }
    if (!(all > 0 && fast > 0))
    {
        fmm_shares_even(plan);
        return;
    }
    const double time = (all + slow) / fast; /* of each, if nobody has to do less than nothing */
    for (int r = 0; r < s->num; r++)
    {
        const double work = speed[r] * (time - extra[r]);
        s->rows[r]        = row;
        target += work > 0 ? work : 0;
        for (double block = 0; row < rows; row += each)
        {
            block = 0;
            for (int i = row; i < row + each; i++)
            {
                block += of_row[i];
            }
            if (done + 0.5 * block > target)
            {
                break;
            }
            done += block;
        }
    }
    s->rows[s->num] = rows;
}

void fmm_shares_send(gmxfmm_plan* plan, int num, double* seconds)
{
    fmm_shares*  s     = &plan->cpu->shares;
    const double begin = fmm_time();
    for (int i = 0; i < num; i++)
    {
        s->sent += s->ranks->parcels[i].send_bytes;
        s->received += s->ranks->parcels[i].receive_bytes;
        s->messages += s->ranks->parcels[i].send_bytes > 0;
    }
    s->failed |= fmm_ranks_send_parcels(s->ranks, num) != GMXFMM_OK;
    const double time = fmm_time() - begin;
    s->waited += time;
    *seconds += time;
}

void fmm_gather_parts(gmxfmm_plan* plan, void* items, size_t bytes, const int* starts)
{
    fmm_shares* s       = &plan->cpu->shares;
    int         parcels = 0;
    if (s->ranks == NULL)
    {
        return;
    }
    const fmm_range own = fmm_range_of(starts, s->rank);
    for (int r = 0; r < s->num; r++)
    {
        const fmm_range its  = fmm_range_of(starts, r);
        const size_t    sent = (size_t)(own.end - own.begin) * bytes, received = (size_t)(its.end - its.begin) * bytes;
        if (r != s->rank && sent + received > 0)
        {
            s->ranks->parcels[parcels++] = (gmxfmm_parcel){r, (char*)items + (size_t)own.begin * bytes, sent,
                                                           (char*)items + (size_t)its.begin * bytes, received};
        }
    }
    fmm_shares_send(plan, parcels, &s->time_sums);
}

void fmm_gather_rows(gmxfmm_plan* plan)
{
    fmm_gather_parts(plan, plan->cpu->partial, FMM_PARTIAL * sizeof(double), plan->cpu->shares.rows);
}

void fmm_sum_over_ranks(gmxfmm_plan* plan, double* v, int num)
{
    fmm_shares* s = &plan->cpu->shares;
    if (s->ranks == NULL)
    {
        return;
    }
    const double begin = fmm_time();
    s->failed |= fmm_ranks_all_gather(&s->ranks->comm, v, (size_t)num * sizeof(*v), s->room) != GMXFMM_OK;
    memset(v, 0, (size_t)num * sizeof(*v));
    for (int r = 0; r < s->num; r++)
    {
        for (int i = 0; i < num; i++)
        {
            v[i] += s->room[r * num + i];
        }
    }
    const double time = fmm_time() - begin;
    s->waited += time;
    s->time_sums += time;
}
