/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The range of positions along each axis, by several threads. */
#include "fmm/geometry/extent.h"

#include <math.h>
#include <string.h>

int64_t
fmm_widen_extent(const void* x, gmxfmm_precision type, int64_t n, int num_threads, double low[3], double high[3])
{
    double  least[3] = {low[0], low[1], low[2]}, most[3] = {high[0], high[1], high[2]};
    int64_t bad = n;
#pragma omp parallel for num_threads(num_threads) reduction(min : bad, least) reduction(max : most)
    for (int64_t i = 0; i < n; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            const double at =
                type == GMXFMM_DOUBLE ? ((const double*)x)[3 * i + d] : (double)((const float*)x)[3 * i + d];
            bad      = !isfinite(at) && i < bad ? i : bad;
            least[d] = fmin(least[d], at);
            most[d]  = fmax(most[d], at);
        }
    }
    memcpy(low, least, sizeof(least));
    memcpy(high, most, sizeof(most));
    return bad < n ? bad : -1;
}
