/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The error of potentials and fields at a sample of targets. */
#include "fmm/treecode/error.h"

#include <math.h>
#include <stdlib.h>

/* As measure/norm.c does for the FMM: targets with more than this times what is usual count as usual ones. */
static const double c_limit = 10;

/* The square of the potential (from = 0, to = 1) or the field (1, 4) of a target, or, of other numbers than exact, of
 * their difference from these. */
static double square(const double* values, const double* exact, int64_t target, int from, int to)
{
    double sum = 0;
    for (int64_t i = 4 * target + from; i < 4 * target + to; i++)
    {
        const double x = values == exact ? exact[i] : values[i] - exact[i];
        sum += x * x;
    }
    return sum;
}

static int compare(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

/* The error of potentials or fields, the larger of the two. */
static double error_of(int64_t num, const double* values, const double* exact, int from, int to, double* room)
{
    double difference[2] = {0}, norm[2] = {0};
    for (int64_t i = 0; i < num; i++)
    {
        room[i] = square(exact, exact, i, from, to);
    }
    qsort(room, (size_t)num, sizeof(*room), compare);
    const double usual = num > 0 ? room[num / 2] : 0, limit = usual > 0 ? c_limit * c_limit * usual : INFINITY;
    for (int64_t i = 0; i < num; i++)
    {
        const double this = square(exact, exact, i, from, to), apart = square(values, exact, i, from, to);
        const double share = this > limit ? usual / this : 1;
        difference[0] += apart;
        norm[0] += this;
        difference[1] += share * apart;
        norm[1] += share * this;
    }
    const double plain   = norm[0] > 0 ? sqrt(difference[0] / norm[0]) : 0;
    const double limited = norm[1] > 0 ? sqrt(difference[1] / norm[1]) : 0;
    return plain > limited ? plain : limited;
}

double treecode_error_of(int64_t num, const double* values, const double* exact, double* room)
{
    const double potential = error_of(num, values, exact, 0, 1, room), field = error_of(num, values, exact, 1, 4, room);
    return isfinite(potential) && isfinite(field) ? fmax(potential, field) : NAN;
}
