/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A steady clock, by POSIX. */
#include "fmm/clock.h"

#include <time.h>

double fmm_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
