/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many threads a plan has. GCC's OpenMP keeps its threads for the next parallel region. A child has none of them
 * after fork(), and would wait for them for ever. That a process is such a child is the one thing that this library
 * keeps beside its plans.
 */
#include "fmm/process.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "fmm/options.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* Microseconds that a thread is to have to do in a step: its some ten parallel regions cost as much on two threads
 * (busy.json of benchmarks/results). */
static const double c_least = 15;

/* The same where processors are shared: a region then waits for a time slice, some milliseconds, again and again. */
static const double c_leastCrowded = 2e4;

/* Processors are shared if threads that want them lose them more often than after so many seconds on them. Where others
 * want them all the time that is after 3 to 10 ms; the system itself takes one a few times a second. */
static const double c_slice = 0.02;

/* Microseconds of a step on one thread, in single precision: for a particle and a digit of accuracy, which takes two
 * orders, of the FMM; for a particle of the treecode, where few are summed directly. */
static const double c_digit = 0.1, c_direct = 0.2;

/* What double precision takes of these. */
static const double c_double = 3;

static atomic_int     had_threads, lost_threads;
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char fmm_threads_lost[] =
    "this process is a fork of one whose plans had several threads, which a fork loses: take num_threads = 1, make a "
    "plan here, or start the process by spawn";

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

/* Microseconds of a step on one thread. */
static double step_of(const gmxfmm_options* options, int64_t n)
{
    const double digits    = fmm_is_auto(options->order) ? -log10(options->accuracy) : 0.5 * options->order;
    const double precision = options->precision == GMXFMM_DOUBLE ? c_double : 1;
    const double particle  = options->method == GMXFMM_TREECODE ? c_direct : c_digit * fmax(1, digits) * precision;
    return (double)n * particle;
}

int fmm_useful_threads(const gmxfmm_options* options, int most, int64_t n)
{
    if (n == 0 || !fmm_is_auto(options->num_threads))
    {
        return most;
    }
    return (int)fmax(1, fmin(most, step_of(options, n) / c_least));
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

fmm_watch fmm_watch_begin(void)
{
    struct rusage usage;
    fmm_watch     now = {0, 0};
    if (getrusage(RUSAGE_SELF, &usage) == 0)
    {
        now.seconds  = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
        now.switches = usage.ru_nivcsw;
    }
    return now;
}

int fmm_crowded_threads(const fmm_watch* watch, const gmxfmm_options* options, int most, int64_t n)
{
    const fmm_watch now     = fmm_watch_begin();
    const int       is_soon = now.seconds - watch->seconds < c_slice;
    const double    seconds = is_soon ? now.seconds : now.seconds - watch->seconds;
    const long      num     = is_soon ? now.switches : now.switches - watch->switches;
    return c_slice * (double)num > seconds ? (int)fmax(1, fmin(most, step_of(options, n) / c_leastCrowded)) : most;
}
