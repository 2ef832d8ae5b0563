/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GCC's OpenMP keeps its threads for the next parallel region. A child has none of them after fork(), and would wait
 * for them for ever. That a process is such a child is the one thing that this library keeps beside its plans.
 */
#include "fmm/process.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fmm/state.h"
#include "fmm/status.h"

static atomic_int     had_threads, lost_threads;
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char fmm_threads_lost[] =
    "this process is a fork of one whose plans had several threads, and these are not here: take "
    "num_threads = 1, make a plan of its own, or start the process by spawn";

static void in_child(void)
{
    if (atomic_load(&had_threads))
    {
        atomic_store(&lost_threads, 1);
    }
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

int fmm_threads_are_lost(void)
{
    return atomic_load(&lost_threads);
}

gmxfmm_status fmm_check_threads(gmxfmm_plan* plan)
{
    return plan->num_threads > 1 && fmm_threads_are_lost() ? fmm_fail(plan, GMXFMM_ERROR_OPTION, "%s", fmm_threads_lost)
                                                           : GMXFMM_OK;
}

int fmm_num_threads(int asked)
{
    if (fmm_threads_are_lost())
    {
        return 1;
    }
    const int num = asked > 0 ? asked : omp_get_max_threads();
    if (num > 1)
    {
        pthread_once(&once, watch_forks);
        atomic_store(&had_threads, 1);
    }
    return num;
}
