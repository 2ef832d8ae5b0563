/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Irregular harmonics in double, for tables. */
#ifndef FMM_THETA_H
#define FMM_THETA_H

#include <math.h>

#include "fmm/math/harmonics.h"

/* Theta_n^m(r), n <= top, in the order of harmonics.h, by recurrences that stay in range where THEORY (2) does not:
 * those of (1) for Theta. */
static inline void theta_fill(int top, const double* r, double* theta)
{
    const double inverse2 = 1 / (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    const double x = r[0] * inverse2, y = r[1] * inverse2, z = r[2] * inverse2;
    double       re0 = sqrt(inverse2), im0 = 0;
    for (int m = 0; m <= top; m++)
    {
        if (m > 0)
        {
            const double t = (2 * m - 1) * (re0 * x - im0 * y);
            im0            = (2 * m - 1) * (re0 * y + im0 * x);
            re0            = t;
        }
        double re = re0, im = im0, re_below = 0, im_below = 0;
        for (int n = m; n <= top; n++)
        {
            if (n > m)
            {
                const double a = (2 * n - 1) * z, b = ((n - 1) * (n - 1) - m * m) * inverse2;
                const double re_next = a * re - b * re_below, im_next = a * im - b * im_below;
                re_below = re;
                im_below = im;
                re       = re_next;
                im       = im_next;
            }
            theta[harm_re(top, n, m)] = re;
            if (m > 0)
            {
                theta[harm_im(top, n, m)] = im;
            }
        }
    }
}

#endif
