/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FMM_MATH_THREADS_H
#define FMM_MATH_THREADS_H

enum
{
    FMM_FEW_PARTICLES = 10000 /* which one thread has gone through before others have begun */
};

#endif
