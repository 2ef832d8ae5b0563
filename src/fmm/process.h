/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How many threads a plan has, and threads in a child after fork(). */
#ifndef FMM_PROCESS_H
#define FMM_PROCESS_H

#include "fmm/gmxfmm.h"

/* The most threads that a plan takes: what is asked for, or by itself as many as OpenMP gives. In a child whose
 * parent had plans of several threads it is 1, whatever is asked for. */
int fmm_num_threads(int asked);

/* Of at most so many threads those that a step of n particles and targets keeps at work, by what it takes to start and
 * to wait for one. All of them where options say how many, or n is 0: nothing was said. */
int fmm_useful_threads(const gmxfmm_options* options, int most, int64_t n);

/* What fmm_crowded_threads goes by: time that threads of this process had on a processor, s, and how often they were
 * taken off one that they still wanted. */
typedef struct
{
    double seconds;
    long   switches;
} fmm_watch;

fmm_watch fmm_watch_begin(void);

/* Of `most` threads those that pay for a step of n particles by what has happened since: all of them, unless others
 * share the processors. There each of the many parallel regions waits until all its threads have had a processor. Soon
 * after the beginning all that has happened to the process counts. */
int fmm_crowded_threads(const fmm_watch* watch, const gmxfmm_options* options, int most, int64_t n);

/* Whether OpenMP has no threads here though it believes it has: after a fork they exist in the parent alone. Then only
 * plans of one thread work. */
int fmm_threads_are_lost(void);

/* What a plan of several threads is refused with there. */
extern const char fmm_threads_lost[];

/* Refuses a plan of the parent there. Errors: OPTION. */
gmxfmm_status fmm_check_threads(gmxfmm_plan* plan);

#endif
