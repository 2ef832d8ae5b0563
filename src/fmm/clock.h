/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock that times in gmxfmm_info, and those of a choice, are read from. */
#ifndef FMM_CLOCK_H
#define FMM_CLOCK_H

/* Seconds of a steady clock. */
double fmm_time(void);

#endif
