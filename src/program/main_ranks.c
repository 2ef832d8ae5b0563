/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the first rank tells the others, and what these do. */
#include "main_ranks.h"

#include <stdlib.h>
#include <string.h>

/* The first rank's task, on all ranks. Errors: MEMORY, COMM. */
static gmxfmm_status share(main_ranks* ranks, main_task* task)
{
    main_task* all = calloc((size_t)ranks->comm.size, sizeof(*all));
    if (all == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    const int failed = ranks->comm.all_gather(ranks->comm.context, task, sizeof(*task), all);
    *task            = all[0];
    free(all);
    return failed ? GMXFMM_ERROR_COMM : GMXFMM_OK;
}

gmxfmm_status main_ranks_tell(main_ranks* ranks, const main_task* task)
{
    main_task own         = *task;
    own.options.cache_dir = NULL; /* an address of this process; the treecode keeps no files */
    ranks->told           = 1;
    return share(ranks, &own);
}

static const int    c_none[1]    = {0};
static const double c_nowhere[3] = {0, 0, 0};

/* The plan without particles, ready for execute. */
static gmxfmm_status make_plan(const main_ranks* ranks, const main_task* task, gmxfmm_plan** plan)
{
    const int*    excluded = task->excludes ? c_none : NULL;
    const double* box      = task->has_box ? task->box : NULL;
    if (task->measures)
    {
        const gmxfmm_system system = {.size       = sizeof(system),
                                      .box        = box,
                                      .x          = c_nowhere,
                                      .q          = c_nowhere,
                                      .excl_start = excluded,
                                      .excl_list  = excluded};
        return gmxfmm_create_parallel_measured(plan, &task->options, &ranks->comm, &system, NULL, NULL, 0);
    }
    gmxfmm_status status = gmxfmm_create_parallel(plan, &task->options, &ranks->comm, 0, box, NULL, 0);
    status               = status == GMXFMM_OK ? gmxfmm_set_charges(*plan, 0, c_nowhere) : status;
    if (status == GMXFMM_OK && task->excludes)
    {
        status = gmxfmm_set_exclusions(*plan, excluded, excluded);
    }
    status = status == GMXFMM_OK && task->has_targets ? gmxfmm_set_targets(*plan, 0, c_nowhere) : status;
    return status == GMXFMM_OK ? gmxfmm_assign(*plan, c_nowhere) : status;
}

/* The calls of main_solve.c without particles. What fails here fails on the first rank, too, which tells it. */
static void solve(const main_ranks* ranks, const main_task* task)
{
    gmxfmm_plan*  plan   = NULL;
    gmxfmm_output output = {.size = sizeof(output)};
    gmxfmm_status status = make_plan(ranks, task, &plan);
    status               = status == GMXFMM_OK ? gmxfmm_execute(plan, c_nowhere, &output) : status;
    if (status == GMXFMM_OK && task->has_targets)
    {
        status = gmxfmm_set_targets(plan, 0, NULL);
        status = status == GMXFMM_OK ? gmxfmm_assign(plan, c_nowhere) : status;
        status = status == GMXFMM_OK ? gmxfmm_execute(plan, c_nowhere, &output) : status;
    }
    gmxfmm_destroy(plan);
}

void main_ranks_follow(main_ranks* ranks)
{
    main_task task;
    memset(&task, 0, sizeof(task));
    if (share(ranks, &task) == GMXFMM_OK && task.solves)
    {
        solve(ranks, &task);
    }
}
