/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of the FMM on several ranks, and what they send each other. */
#include "fmm/ranks/state.h"

#include <stdlib.h>
#include <string.h>

#include "fmm/clock.h"
#include "fmm/parallel/ranks.h"
#include "fmm/state.h"
#include "fmm/status.h"

int fmm_room_renew(fmm_room* room, size_t num, size_t bytes)
{
    if (room->at == NULL || num * bytes > room->bytes)
    {
        const size_t wanted = num * bytes + num * bytes / 8; /* numbers fluctuate from search to search */
        free(room->at);
        room->at    = malloc(wanted + 1);
        room->bytes = room->at != NULL ? wanted : 0;
    }
    return room->at != NULL;
}

gmxfmm_status fmm_no_memory(gmxfmm_plan* plan)
{
    return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for the particles of %d ranks", plan->ranks->comm.size);
}

gmxfmm_status fmm_agree_on_own(gmxfmm_plan* plan, gmxfmm_status status)
{
    const char* const text = gmxfmm_message(plan->divided->own);
    if (status == GMXFMM_OK || status == GMXFMM_ERROR_COMM || text[0] == '\0')
    {
        return fmm_agree(plan, status == GMXFMM_ERROR_COMM ? status : GMXFMM_OK); /* without a text: another rank's */
    }
    return fmm_agree(plan, fmm_fail(plan, status, "%s", text));
}

gmxfmm_status fmm_follow_box(gmxfmm_plan* plan)
{
    struct fmm_divided* d = plan->divided;
    if (d->box_version == plan->domain.version)
    {
        return GMXFMM_OK;
    }
    d->box_version = plan->domain.version;
    return fmm_agree_on_own(plan, gmxfmm_set_box(d->own, plan->domain.given));
}

gmxfmm_status fmm_travel_to_others(gmxfmm_plan*   plan,
                                   size_t         bytes,
                                   const void*    packed,
                                   const int64_t* sent,
                                   void*          received,
                                   const int64_t* comes,
                                   double*        seconds)
{
    struct fmm_divided* d    = plan->divided;
    const int           rank = plan->ranks->comm.rank, size = plan->ranks->comm.size;
    const double        begin  = fmm_time();
    const gmxfmm_status status = fmm_ranks_some_each(plan->ranks, bytes, packed, sent, received, comes);
    for (int r = 0; r < size; r++)
    {
        d->info.messages += r != rank && sent[r + 1] > sent[r];
    }
    d->info.bytes_sent += (size_t)(sent[size] - sent[rank + 1] + sent[rank]) * bytes;
    d->info.bytes_received += (size_t)(comes[size] - comes[rank + 1] + comes[rank]) * bytes;
    *seconds += fmm_time() - begin;
    return status;
}

gmxfmm_status fmm_travel(gmxfmm_plan*   plan,
                         size_t         bytes,
                         const void*    packed,
                         const int64_t* sent,
                         void*          received,
                         const int64_t* comes,
                         double*        seconds)
{
    const int    rank = plan->ranks->comm.rank;
    const size_t own  = (size_t)(sent[rank + 1] - sent[rank]) * bytes;
    if (own > 0)
    {
        memcpy((char*)received + (size_t)comes[rank] * bytes, (const char*)packed + (size_t)sent[rank] * bytes, own);
    }
    return fmm_travel_to_others(plan, bytes, packed, sent, received, comes, seconds);
}

int fmm_given_id(const gmxfmm_plan* plan, int64_t i)
{
    const struct fmm_divided* d = plan->divided;
    return d->id != NULL ? d->id[i] : (int)(d->before[plan->ranks->comm.rank] + i);
}
