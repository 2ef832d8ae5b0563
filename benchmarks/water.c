/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "water.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char* what, const char* file)
{
    fprintf(stderr, "%s: %s\n", file, what);
    exit(2);
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
    water w      = {0};
    w.n          = atoms * copies * copies * copies;
    w.x          = malloc((size_t)w.n * 3 * sizeof(double));
    w.q          = malloc((size_t)w.n * sizeof(double));
    w.excl_start = malloc(((size_t)w.n + 1) * sizeof(int));
    w.excl_list  = malloc((size_t)w.n * 2 * sizeof(int));
    for (int i = 0; i < w.n; i++)
    {
        const int copy = i / atoms, at[3] = {copy / (copies * copies), copy / copies % copies, copy % copies};
        for (int d = 0; d < 3; d++)
        {
            w.x[3 * i + d] = unit[3 * (i % atoms) + d] + at[d] * edge[d];
        }
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
    w.excl_start[w.n] = 2 * w.n;
    for (int d = 0; d < 3; d++)
    {
        w.box[4 * d] = edge[d] * copies;
    }
    free(unit);
    return w;
}

void water_free(water* w)
{
    free(w->x);
    free(w->q);
    free(w->excl_start);
    free(w->excl_list);
    memset(w, 0, sizeof(*w));
}
