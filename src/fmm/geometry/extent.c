/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The range of positions along each axis, by several threads. */
#include "fmm/geometry/extent.h"
#include "fmm/numbers.h"

#include <math.h>
#include <string.h>

enum
{
    c_lanes = 24,  /* numbers of whole particles that are looked at together: whole vectors of any processor */
    c_block = 1024 /* particles of a thread at a time */
};

/* Numbers of lanes as far as they have been looked at; `zero` is NaN behind a number that is not finite. */
typedef struct
{
    double least[c_lanes], most[c_lanes], zero[c_lanes];
} range;

static inline void look(range* r, int lane, double at)
{
    r->least[lane] = at < r->least[lane] ? at : r->least[lane];
    r->most[lane]  = at > r->most[lane] ? at : r->most[lane];
    r->zero[lane] += 0 * at;
}

/* Numbers begin .. end - 1 of whole particles. */
static inline void look_at(range* r, const void* x, gmxfmm_precision type, int64_t begin, int64_t end)
{
    int64_t i = begin;
    for (; i + c_lanes <= end; i += c_lanes)
    {
        for (int lane = 0; lane < c_lanes; lane++)
        {
            look(r, lane, fmm_number_of(x, type, i + lane));
        }
    }
    for (int lane = 0; i < end; i++, lane++)
    {
        look(r, lane, fmm_number_of(x, type, i));
    }
}

static int is_finite(const range* r)
{
    double sum = 0;
    for (int lane = 0; lane < c_lanes; lane++)
    {
        sum += r->zero[lane];
    }
    return sum == 0;
}

/* The first of numbers begin .. end - 1 that is not finite; `end`: all are. */
static int64_t first_bad(const void* x, gmxfmm_precision type, int64_t begin, int64_t end)
{
    while (begin < end && isfinite(fmm_number_of(x, type, begin)))
    {
        begin++;
    }
    return begin;
}

int64_t
fmm_widen_extent(const void* x, gmxfmm_precision type, int64_t n, int num_threads, double low[3], double high[3])
{
    double  least[3] = {low[0], low[1], low[2]}, most[3] = {high[0], high[1], high[2]};
    int64_t bad = n;
#pragma omp parallel num_threads(num_threads) reduction(min : bad, least) reduction(max : most)
    {
        range   r;
        int64_t found = n;
        for (int lane = 0; lane < c_lanes; lane++)
        {
            r.least[lane] = least[lane % 3];
            r.most[lane]  = most[lane % 3];
            r.zero[lane]  = 0;
        }
#pragma omp for schedule(static)
        for (int64_t block = 0; block < (n + c_block - 1) / c_block; block++)
        {
            const int64_t begin = 3 * c_block * block;
            const int64_t end   = 3 * n < begin + 3 * c_block ? 3 * n : begin + 3 * c_block;
            if (type == GMXFMM_DOUBLE) /* each a loop of its own, by vectors */
            {
                look_at(&r, x, GMXFMM_DOUBLE, begin, end);
            }
            else
            {
                look_at(&r, x, GMXFMM_SINGLE, begin, end);
            }
            if (found == n && !is_finite(&r))
            {
                found = first_bad(x, type, begin, end) / 3;
            }
        }
        bad = found < bad ? found : bad;
        for (int lane = 0; lane < c_lanes; lane++)
        {
            least[lane % 3] = r.least[lane] < least[lane % 3] ? r.least[lane] : least[lane % 3];
            most[lane % 3]  = r.most[lane] > most[lane % 3] ? r.most[lane] : most[lane % 3];
        }
    }
    memcpy(low, least, sizeof(least));
    memcpy(high, most, sizeof(most));
    return bad < n ? bad : -1;
}
