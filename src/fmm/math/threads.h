/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The number of particles from which on several threads are worth their start. */
#ifndef FMM_MATH_THREADS_H
#define FMM_MATH_THREADS_H

enum
{
    FMM_FEW_PARTICLES = 10000 /* one thread is done with fewer before others have begun */
};

#endif
