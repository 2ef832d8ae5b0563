/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two charges at one place, found by a table of places. Particles without charge may stand anywhere. */
#include "charge_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Periodic places are compared as cells of a grid this many times finer than the box: coarser than the rounding of a
 * position that stands some images away, finer than any distance at which two charges could stand in a real system. */
#define FINENESS 1099511627776.0 /* 2^40 */

/* Share of a grid cell within which a particle counts as being in the next cell too: rounding of an image must not put
 * two equal places on two sides of a cell face. 2^-40 * 0.02 = 2e-14, some hundred roundings of a fractional
 * coordinate. */
#define MARGIN 0.02

/* Where the grid starts, in grid cells, so that no lattice point of a crystal lies on a cell face. */
#define SHIFT 0.38196601125010515

enum
{
    c_mostPlaces = 8, /* of a particle near a corner of a grid cell */
    c_batch      = 32 /* particles whose slots are fetched from memory at once */
};

/* A place is three numbers: of the cell in the grid of a periodic box, along the normal of a slab the coordinate, or of
 * an open system the position itself. */
typedef struct
{
    const charge_file* file;
    const exclusions*  excluded;
    double             inverse[9]; /* of the box */
    uint64_t*          slots;      /* particle + 1 in the lower 40 bits, above it a part of the place's hash; 0: free */
    uint64_t           mask;       /* number of slots, a power of two, less one */
} place_table;

#define PARTICLE_BITS 40

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

/* The places of a particle: how many, none without a charge. Adding 0 turns -0 into 0. */
static int places_of(const place_table* t, int64_t i, double place[c_mostPlaces][3])
{
    const double* x = t->file->x + 3 * i;
    const double* v = t->inverse;
    double        cell[3][2];
    int           count[3];

    if (t->file->q[i] == 0)
    {
        return 0;
    }
    for (int d = 0; d < 3; d++)
    {
        const double fraction = x[0] * v[d] + x[1] * v[3 + d] + x[2] * v[6 + d];
        count[d]              = t->file->along[d] ? grid_cells(fraction, cell[d]) : 1;
        cell[d][0]            = t->file->along[d] ? cell[d][0] : fraction + 0.0;
        place[0][d]           = x[d] + 0.0;
    }
    const int num = count[0] * count[1] * count[2];
    for (int k = 0; k < num && t->file->periodic; k++)
    {
        place[k][0] = cell[0][k % count[0]];
        place[k][1] = cell[1][k / count[0] % count[1]];
        place[k][2] = cell[2][k / (count[0] * count[1])];
    }
    return num;
}

static uint64_t hash(const double place[3])
{
    uint64_t mixed = 0;

    for (int d = 0; d < 3; d++)
    {
        uint64_t bits;
        memcpy(&bits, &place[d], sizeof(bits));
        mixed = (mixed ^ bits) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 over the golden ratio: Knuth's */
        mixed ^= mixed >> 32;
    }
    return mixed;
}

/* Whether a particle has this place. */
static int has_place(const place_table* t, int64_t i, const double place[3])
{
    double    other[c_mostPlaces][3];
    const int num = places_of(t, i, other);

    for (int k = 0; k < num; k++)
    {
        if (memcmp(other[k], place, sizeof(other[k])) == 0)
        {
            return 1;
        }
    }
    return 0;
}

/* Puts a place of particle i into the table. The last one before it that stands there and is not excluded, or -1. */
static int64_t insert(place_table* t, int64_t i, const double place[3], uint64_t h)
{
    const uint64_t particles = (UINT64_C(1) << PARTICLE_BITS) - 1;
    int64_t        found     = -1;
    uint64_t       k         = h & t->mask;

    for (; t->slots[k] != 0; k = (k + 1) & t->mask)
    {
        const int64_t j = (int64_t)(t->slots[k] & particles) - 1;
        if (((t->slots[k] ^ h) & ~particles) == 0 && j != i && j > found && has_place(t, j, place) &&
            !exclusions_have(t->excluded, i, j))
        {
            found = j;
        }
    }
    t->slots[k] = (h & ~particles) | (uint64_t)(i + 1);
    return found;
}

/* An empty table with room for all places. */
static int make_slots(place_table* t)
{
    double   place[c_mostPlaces][3];
    uint64_t num = 0, size = 16;

    for (int64_t i = 0; i < t->file->n; i++)
    {
        num += (uint64_t)places_of(t, i, place);
    }
    while (size < num + num / 2)
    {
        size *= 2;
    }
    t->mask  = size - 1;
    t->slots = (uint64_t*)calloc(size, sizeof(*t->slots));
    return t->slots ? 0 : -1;
}

/* Puts particles begin to end - 1 into the table, up to the first that stands where an earlier one does. */
static void insert_batch(place_table* t, int64_t begin, int64_t end, int64_t* first, int64_t* second)
{
    double   place[c_batch][c_mostPlaces][3];
    uint64_t h[c_batch][c_mostPlaces];
    int      num[c_batch];

    for (int64_t i = begin; i < end; i++)
    {
        num[i - begin] = places_of(t, i, place[i - begin]);
        for (int k = 0; k < num[i - begin]; k++)
        {
            h[i - begin][k] = hash(place[i - begin][k]);
            __builtin_prefetch(&t->slots[h[i - begin][k] & t->mask], 1);
        }
    }
    for (int64_t i = begin; i < end && *first < 0; i++)
    {
        for (int k = 0; k < num[i - begin]; k++)
        {
            const int64_t before = insert(t, i, place[i - begin][k], h[i - begin][k]);
            *first               = before > *first ? before : *first;
        }
        *second = i;
    }
}

int charge_file_check_places(const charge_file* file, const exclusions* excluded)
{
    place_table t     = {.file = file, .excluded = excluded};
    int64_t     first = -1, second = -1; /* of all such pairs the one that a reader of the file meets first */

    if (file->periodic)
    {
        double lattice[9];
        charge_file_lattice(file, lattice);
        invert(lattice, t.inverse);
    }
    if (make_slots(&t))
    {
        complain(file->name, 0, "out of memory");
        return -1;
    }
    for (int64_t begin = 0; begin < file->n && first < 0; begin += c_batch)
    {
        const int64_t end = begin + c_batch < file->n ? begin + c_batch : file->n;
        insert_batch(&t, begin, end, &first, &second);
    }
    free(t.slots);
    if (first >= 0)
    {
        complain(file->name, charge_file_line(file, second), "two charges at one place: this one and that of %s %lld%s",
                 file->line ? "line" : "row", (long long)charge_file_line(file, first),
                 file->periodic ? ", or an image of it" : "");
        return -1;
    }
    return 0;
}
