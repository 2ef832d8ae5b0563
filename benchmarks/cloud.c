/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cloud.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
    c_chunk = 1024 /* charges that stay in the first cache while all places are gone through */
};

static void* numbers(size_t n, gmxfmm_precision type)
{
    void* memory = malloc((n > 0 ? n : 1) * (type == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float)));
    if (memory == NULL)
    {
        fprintf(stderr, "out of memory for %zu numbers\n", n);
        exit(1);
    }
    return memory;
}

static void set(const cloud* c, void* array, size_t i, double value)
{
    if (c->type == GMXFMM_DOUBLE)
    {
        ((double*)array)[i] = value;
    }
    else
    {
        ((float*)array)[i] = (float)value;
    }
}

cloud cloud_make(size_t n, gmxfmm_precision type, double low, unsigned long long seed)
{
    unsigned long long state = seed;
    const cloud        c     = {n, type, numbers(3 * n, type), numbers(n, type)};
    for (size_t i = 0; i < n; i++)
    {
        for (size_t d = 0; d < 3; d++)
        {
            set(&c, c.x, 3 * i + d, bench_random(&state));
        }
        set(&c, c.q, i, low + (1 - low) * bench_random(&state));
    }
    return c;
}

void cloud_free(cloud* c)
{
    free(c->x);
    free(c->q);
    memset(c, 0, sizeof(*c));
}

typedef struct
{
    size_t n;
    double x[c_chunk], y[c_chunk], z[c_chunk], q[c_chunk];
} chunk;

static void load(const cloud* c, size_t first, chunk* out)
{
    out->n = c->n - first < c_chunk ? c->n - first : c_chunk;
    for (size_t i = 0; i < out->n; i++)
    {
        out->x[i] = cloud_number(c, c->x, 3 * (first + i));
        out->y[i] = cloud_number(c, c->x, 3 * (first + i) + 1);
        out->z[i] = cloud_number(c, c->x, 3 * (first + i) + 2);
        out->q[i] = cloud_number(c, c->q, first + i);
    }
}

static void add(const chunk* c, const double* place, double* out)
{
    double phi = 0, ex = 0, ey = 0, ez = 0;
    for (size_t j = 0; j < c->n; j++)
    {
        const double x = place[0] - c->x[j], y = place[1] - c->y[j], z = place[2] - c->z[j];
        const double r2      = x * x + y * y + z * z;
        const double inverse = r2 > 0 ? 1 / sqrt(r2) : 0;
        const double u = c->q[j] * inverse, e = u * inverse * inverse;
        phi += u;
        ex += e * x;
        ey += e * y;
        ez += e * z;
    }
    out[0] += phi;
    out[1] += ex;
    out[2] += ey;
    out[3] += ez;
}

void cloud_direct(const cloud* c, size_t num, const double* places, double* out)
{
    memset(out, 0, 4 * num * sizeof(double));
#pragma omp parallel
    {
        double* mine = bench_numbers(4 * num);
        chunk   charges;
        memset(mine, 0, 4 * num * sizeof(double));
#pragma omp for schedule(static)
        for (size_t first = 0; first < c->n; first += c_chunk)
        {
            load(c, first, &charges);
            for (size_t k = 0; k < num; k++)
            {
                add(&charges, places + 3 * k, mine + 4 * k);
            }
        }
#pragma omp critical
        for (size_t k = 0; k < 4 * num; k++)
        {
            out[k] += mine[k];
        }
        free(mine);
    }
}

void cloud_errors(size_t num, const double* values, const double* exact, double* potential, double* field)
{
    double difference[2] = {0, 0}, norm[2] = {0, 0};
    for (size_t k = 0; k < 4 * num; k++)
    {
        difference[k % 4 > 0] += (values[k] - exact[k]) * (values[k] - exact[k]);
        norm[k % 4 > 0] += exact[k] * exact[k];
    }
    *potential = sqrt(difference[0] / norm[0]);
    *field     = sqrt(difference[1] / norm[1]);
}
