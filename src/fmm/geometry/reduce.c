/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reduction of the vectors of a box. */
#include "fmm/geometry/reduce.h"

#include <math.h>
#include <string.h>

#include "fmm/geometry/cells.h"

enum
{
    c_mostSteps = 10000 /* of pairs; each shortens a vector, 50 do for components of a million */
};

/* Lengths are the same that differ by less, in relation: which of two is taken is then not for rounding to say. */
static const double c_same = 1e-9;

static double dot(const double* a, const double* b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

double fmm_orthogonality_defect(const double* box)
{
    const double volume = fmm_determinant(box);
    return volume > 0 ? sqrt(dot(box, box) * dot(box + 3, box + 3)) * sqrt(dot(box + 6, box + 6)) / volume : INFINITY;
}

void fmm_in_basis(const double* t, const double* box, double* out)
{
    for (int i = 0; i < 3; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            out[3 * i + d] = t[3 * i] * box[d] + t[3 * i + 1] * box[3 + d] + t[3 * i + 2] * box[6 + d];
        }
    }
}

/* Subtracts the shorter row of the pair that overlaps most from the other, as often as it makes it shorter; 0: none
 * does. */
static int shorten(const double* box, double* t)
{
    double now[9], largest = 0.5 * (1 + c_same), times = 0;
    int    from = -1, taken = -1;
    fmm_in_basis(t, box, now);
    for (int i = 0; i < 3; i++)
    {
        const int    j = (i + 1) % 3;
        const double a = dot(now + 3 * i, now + 3 * i), b = dot(now + 3 * j, now + 3 * j);
        const double share = dot(now + 3 * i, now + 3 * j) / fmin(a, b);
        if (fabs(share) > largest)
        {
            largest = fabs(share);
            times   = floor(share + 0.5);
            taken   = b < a ? j : i;
            from    = b < a ? i : j;
        }
    }
    for (int k = 0; k < 3 && from >= 0; k++)
    {
        t[3 * from + k] -= times * t[3 * taken + k];
    }
    return from >= 0;
}

/* Whether the vectors with these coordinates, the first num of chosen, span a part of the lattice without gaps. */
static int spans(int (*c)[3], const int* chosen, int num)
{
    const int *a = c[chosen[0]], *b = c[chosen[1]], *v = num == 3 ? c[chosen[2]] : NULL;
    const int  n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    const int  det  = v != NULL ? v[0] * n[0] + v[1] * n[1] + v[2] * n[2] : 0;
    return num == 2 ? n[0] != 0 || n[1] != 0 || n[2] != 0 : det == 1 || det == -1;
}

/* The three shortest vectors: they are among those of the Voronoi region's faces. */
static void take_shortest(const double* box, double* t)
{
    double now[9], vectors[FMM_VORONOI][3], shortest[9];
    int    c[FMM_VORONOI][3], chosen[3];
    fmm_in_basis(t, box, now);
    fmm_voronoi(now, vectors, c);
    for (int num = 0; num < 3; num++)
    {
        double best  = INFINITY;
        int    found = 0;
        for (int v = 0; v < FMM_VORONOI; v++)
        {
            const double length2 = dot(vectors[v], vectors[v]);
            chosen[num]          = v;
            if (length2 < best * (1 - c_same) && (num == 0 || spans(c, chosen, num + 1)))
            {
                best  = length2;
                found = v;
            }
        }
        chosen[num] = found;
    }
    for (int i = 0; i < 3; i++)
    {
        for (int k = 0; k < 3; k++)
        {
            shortest[3 * i + k] = c[chosen[i]][0] * t[k] + c[chosen[i]][1] * t[3 + k] + c[chosen[i]][2] * t[6 + k];
        }
    }
    memcpy(t, shortest, sizeof(shortest));
}

static void swap_rows(double* t, int i, int j)
{
    double row[3];
    memcpy(row, t + 3 * i, sizeof(row));
    memcpy(t + 3 * i, t + 3 * j, sizeof(row));
    memcpy(t + 3 * j, row, sizeof(row));
}

static void turn_row(double* t, int i)
{
    for (int k = 0; k < 3; k++)
    {
        t[3 * i + k] = -t[3 * i + k];
    }
}

/* Rows into the order and the directions of the axes, right-handed. */
static void align(const double* box, double* t)
{
    double now[9];
    for (int d = 0; d < 3; d++)
    {
        fmm_in_basis(t, box, now);
        int best = d;
        for (int i = d + 1; i < 3; i++)
        {
            best = fabs(now[3 * i + d]) > fabs(now[3 * best + d]) * (1 + c_same) ? i : best;
        }
        swap_rows(t, d, best);
        if (now[3 * best + d] < 0)
        {
            turn_row(t, d);
        }
    }
    fmm_in_basis(t, box, now);
    if (fmm_determinant(now) < 0)
    {
        turn_row(t, 2);
    }
}

void fmm_reduce_basis(const double* box, double* t)
{
    for (int i = 0; i < 9; i++)
    {
        t[i] = i % 4 == 0;
    }
    for (int step = 0; step < c_mostSteps && shorten(box, t); step++)
    {
    }
    take_shortest(box, t);
    align(box, t);
}

void fmm_reduce_plane(const double* box, double* t)
{
    double now[9];
    for (int i = 0; i < 9; i++)
    {
        t[i] = i % 4 == 0;
    }
    for (int step = 0; step < c_mostSteps && shorten(box, t); step++)
    {
    }
    fmm_in_basis(t, box, now);
    if (fabs(now[3]) > fabs(now[0]) * (1 + c_same))
    {
        swap_rows(t, 0, 1);
    }
    for (int d = 0; d < 2; d++)
    {
        fmm_in_basis(t, box, now);
        if (now[4 * d] < 0)
        {
            turn_row(t, d);
        }
    }
    fmm_in_basis(t, box, now);
    if (now[0] * now[4] < now[1] * now[3])
    {
        turn_row(t, 1);
    }
}
