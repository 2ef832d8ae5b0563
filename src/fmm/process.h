/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads in a child after fork(). */
#ifndef FMM_PROCESS_H
#define FMM_PROCESS_H

#include "fmm/gmxfmm.h"

/* The number of threads that a plan has: what is asked for, or by itself as many as OpenMP gives. In a child whose
 * parent had plans of several threads it is 1, whatever is asked for. */
int fmm_num_threads(int asked);

/* Whether OpenMP has no threads here though it believes it has: after a fork they exist in the parent alone. Then only
 * plans of one thread work. */
int fmm_threads_are_lost(void);

/* What a plan of several threads is refused with there. */
extern const char fmm_threads_lost[];

/* Refuses a plan of the parent there. Errors: OPTION. */
gmxfmm_status fmm_check_threads(gmxfmm_plan* plan);

#endif
