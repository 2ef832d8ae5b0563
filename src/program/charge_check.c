/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two charges at one place, found by sorting. Particles without charge may stand anywhere. */
#include "charge_file.h"

#include <math.h>
#include <stdlib.h>

#include "text_lines.h"

/* Periodic places are compared as cells of a grid this many times finer than the box: coarser than the rounding of a
 * position that stands some images away, finer than any distance at which two charges could stand in a real system. */
#define FINENESS 1099511627776.0 /* 2^40 */

/* Share of a grid cell within which a particle counts as being in the next cell too: rounding of an image must not put
 * two equal places on two sides of a cell face. 2^-40 * 0.02 = 2e-14, some hundred roundings of a fractional
 * coordinate. */
#define MARGIN 0.02

/* Where the grid starts, in grid cells, so that no lattice point of a crystal lies on a cell face. */
#define SHIFT 0.38196601125010515

typedef struct
{
    double  place[3];
    int64_t particle;
} entry;

static int compare(const void* first, const void* second)
{
    const entry* a = (const entry*)first;
    const entry* b = (const entry*)second;

    for (int d = 0; d < 3; d++)
    {
        if (a->place[d] != b->place[d])
        {
            return a->place[d] < b->place[d] ? -1 : 1;
        }
    }
    return (a->particle > b->particle) - (a->particle < b->particle);
}

static void invert(const double b[9], double inverse[9])
{
    const double cofactor[9] = {b[4] * b[8] - b[5] * b[7], b[2] * b[7] - b[1] * b[8], b[1] * b[5] - b[2] * b[4],
                                b[5] * b[6] - b[3] * b[8], b[0] * b[8] - b[2] * b[6], b[2] * b[3] - b[0] * b[5],
                                b[3] * b[7] - b[4] * b[6], b[1] * b[6] - b[0] * b[7], b[0] * b[4] - b[1] * b[3]};
    const double volume      = b[0] * cofactor[0] + b[1] * cofactor[3] + b[2] * cofactor[6];

    for (int i = 0; i < 9; i++)
    {
        inverse[i] = cofactor[i] / volume;
    }
}

/* The one or two grid cells along one axis for a fractional coordinate: their number. */
static int grid_cells(double fraction, double cell[2])
{
    const double place = (fraction - floor(fraction)) * FINENESS + SHIFT;

    cell[0]        = floor(place - MARGIN);
    cell[1]        = floor(place + MARGIN);
    const int both = cell[0] != cell[1];
    for (int i = 0; i < 2; i++)
    {
        cell[i] = cell[i] >= FINENESS ? cell[i] - FINENESS : cell[i] < 0 ? cell[i] + FINENESS : cell[i];
    }
    return 1 + both;
}

static int64_t periodic_entries(const charge_file* file, entry* entries)
{
    double  inverse[9];
    int64_t n = 0;

    invert(file->box, inverse);
    for (int64_t i = 0; i < file->n; i++)
    {
        const double* x = file->x + 3 * i;
        double        cell[3][2];
        int           count[3];
        if (file->q[i] == 0)
        {
            continue;
        }
        for (int d = 0; d < 3; d++)
        {
            count[d] = grid_cells(x[0] * inverse[d] + x[1] * inverse[3 + d] + x[2] * inverse[6 + d], cell[d]);
        }
        for (int k = 0; k < count[0] * count[1] * count[2]; k++)
        {
            const int which[3] = {k % count[0], k / count[0] % count[1], k / (count[0] * count[1])};
            if (entries)
            {
                for (int d = 0; d < 3; d++)
                {
                    entries[n].place[d] = cell[d][which[d]];
                }
                entries[n].particle = i;
            }
            n++;
        }
    }
    return n;
}

/* Without images a place is its three numbers; adding 0 turns -0 into 0. */
static int64_t open_entries(const charge_file* file, entry* entries)
{
    int64_t n = 0;

    for (int64_t i = 0; i < file->n; i++)
    {
        if (file->q[i] == 0)
        {
            continue;
        }
        for (int d = 0; entries && d < 3; d++)
        {
            entries[n].place[d] = file->x[3 * i + d] + 0.0;
        }
        if (entries)
        {
            entries[n].particle = i;
        }
        n++;
    }
    return n;
}

int charge_file_check_places(const charge_file* file)
{
    int64_t (*const list)(const charge_file*, entry*) = file->periodic ? periodic_entries : open_entries;
    const int64_t n                                   = list(file, NULL);
    entry*        entries                             = (entry*)malloc((size_t)(n > 0 ? n : 1) * sizeof(*entries));

    if (!entries)
    {
        complain(file->name, 0, "out of memory");
        return -1;
    }
    list(file, entries);
    qsort(entries, (size_t)n, sizeof(*entries), compare);

    int64_t first = -1, second = -1; /* of all such pairs the one that a reader of the file meets first */
    for (int64_t k = 1; k < n; k++)
    {
        const entry* a = entries + k - 1;
        const entry* b = entries + k;
        if (a->place[0] == b->place[0] && a->place[1] == b->place[1] && a->place[2] == b->place[2] &&
            (second < 0 || b->particle < second))
        {
            first  = a->particle;
            second = b->particle;
        }
    }
    free(entries);
    if (second >= 0)
    {
        complain(file->name, file->line[second], "two charges at one place: this one and that of line %lld%s",
                 (long long)file->line[first], file->periodic ? ", or an image of it" : "");
        return -1;
    }
    return 0;
}
