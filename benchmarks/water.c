/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "water.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static void die(const char* what, const char* file)
{
    fprintf(stderr, "%s: %s\n", file, what);
    exit(2);
}

/* Water of n atoms, with charges and exclusions, and positions still to be set. */
static water make_water(int n)
{
    water w      = {0};
    w.n          = n;
    w.x          = malloc((size_t)n * 3 * sizeof(double));
    w.q          = malloc((size_t)n * sizeof(double));
    w.excl_start = malloc(((size_t)n + 1) * sizeof(int));
    w.excl_list  = malloc((size_t)n * 2 * sizeof(int));
    for (int i = 0; i < n; i++)
    {
        w.q[i]          = i % 3 == 0 ? -0.82 : 0.41;
        w.excl_start[i] = 2 * i;
        int e           = 2 * i;
        for (int j = i - i % 3; j < i - i % 3 + 3; j++)
        {
            if (j != i)
            {
                w.excl_list[e++] = j;
            }
        }
    }
    w.excl_start[n] = 2 * n;
    return w;
}

water water_read(const char* gro_file, int copies)
{
    FILE* f = fopen(gro_file, "r");
    char  line[256];
    int   atoms = 0;
    if (f == NULL)
    {
        die("cannot be read", gro_file);
    }
    if (!fgets(line, sizeof(line), f) || fscanf(f, "%d\n", &atoms) != 1 || atoms < 3 || atoms % 3 != 0)
    {
        die("is no .gro file of three-site water", gro_file);
    }
    double* unit = malloc((size_t)atoms * 3 * sizeof(double));
    double  edge[3];
    for (int i = 0; i < atoms; i++)
    {
        if (!fgets(line, sizeof(line), f) ||
            sscanf(line + 20, "%8lf%8lf%8lf", unit + 3 * i, unit + 3 * i + 1, unit + 3 * i + 2) != 3)
        {
            die("ends early", gro_file);
        }
    }
    if (fscanf(f, "%lf %lf %lf", edge, edge + 1, edge + 2) != 3)
    {
        die("has no box", gro_file);
    }
    fclose(f);
    water w = make_water(atoms * copies * copies * copies);
    for (int i = 0; i < w.n; i++)
    {
        const int copy = i / atoms, at[3] = {copy / (copies * copies), copy / copies % copies, copy % copies};
        for (int d = 0; d < 3; d++)
        {
            w.x[3 * i + d] = unit[3 * (i % atoms) + d] + at[d] * edge[d];
        }
    }
    for (int d = 0; d < 3; d++)
    {
        w.box[4 * d] = edge[d] * copies;
    }
    free(unit);
    return w;
}

/* Where a molecule is. */
typedef struct
{
    double squared; /* distance of its oxygen from the middle */
    int    first;   /* atom */
} distance;

static int by_distance(const void* a, const void* b)
{
    const distance *p = a, *q = b;
    return p->squared != q->squared ? (p->squared > q->squared) - (p->squared < q->squared) : p->first - q->first;
}

water water_droplets(const char* gro_file, int along, int atoms, double edge)
{
    const double pi  = 3.14159265358979323846;
    water        box = water_read(gro_file, 1);
    /* a ball of so many molecules, and half a nanometre more on each side */
    const double volume = box.box[0] * box.box[0] * box.box[0] * atoms / box.n;
    const int    copies = (int)ceil(2 * (cbrt(0.75 / pi * volume) + 0.5) / box.box[0]);
    water        block  = water_read(gro_file, copies);
    const double middle = 0.5 * block.box[0];
    const int    all = block.n / 3, count = atoms / 3, droplets = along * along * along;
    distance*    molecule = malloc((size_t)all * sizeof(distance));
    for (int m = 0; m < all; m++)
    {
        molecule[m] = (distance){0, 3 * m};
        for (int d = 0; d < 3; d++)
        {
            const double r = block.x[9 * m + d] - middle;
            molecule[m].squared += r * r;
        }
    }
    qsort(molecule, (size_t)all, sizeof(distance), by_distance);
    /* so far may a centre move without droplets coming within 1 nm of one another */
    const double room = 0.5 * edge - sqrt(molecule[count - 1].squared) - 0.6;
    if (count > all || room <= 0)
    {
        die("its droplets have no room in such cubes", gro_file);
    }
    water              w     = make_water(3 * count * droplets);
    unsigned long long state = 2022;
    for (int k = 0; k < droplets; k++)
    {
        const int at[3] = {k / (along * along), k / along % along, k % along};
        for (int d = 0; d < 3; d++)
        {
            const double centre = (at[d] + 0.5) * edge + room * (2 * bench_random(&state) - 1);
            const double sign   = bench_random(&state) < 0.5 ? -1 : 1;
            for (int i = 0; i < 3 * count; i++)
            {
                const double x                   = block.x[3 * (molecule[i / 3].first + i % 3) + d] - middle;
                w.x[3 * (3 * count * k + i) + d] = centre + sign * x;
            }
        }
    }
    for (int d = 0; d < 3; d++)
    {
        w.box[4 * d] = edge * along;
    }
    free(molecule);
    water_free(&block);
    water_free(&box);
    return w;
}

gmxfmm_plan* water_plan(const water* w, const gmxfmm_options* options, const double* box)
{
    gmxfmm_plan* plan;
    char         message[512];
    float*       q = options->array_type == GMXFMM_SINGLE ? bench_floats((size_t)w->n, w->q) : NULL;
    bench_check(gmxfmm_create(&plan, options, w->n, box, message, sizeof(message)), message);
    bench_check(gmxfmm_set_charges(plan, w->n, q != NULL ? (const void*)q : w->q), gmxfmm_message(plan));
    bench_check(gmxfmm_set_exclusions(plan, w->excl_start, w->excl_list), gmxfmm_message(plan));
    free(q);
    return plan;
}

void water_free(water* w)
{
    free(w->x);
    free(w->q);
    free(w->excl_start);
    free(w->excl_list);
    memset(w, 0, sizeof(*w));
}
