/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of point charges: what their formats share. */
#include "charge_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

charge_format charge_format_of(const char* name)
{
    const size_t whole  = strlen(name);
    const size_t length = words_end_with(name, whole, ".gz") ? whole - 3 : whole;

    return words_end_with(name, length, ".npy")      ? CHARGE_NPY
           : words_end_with(name, length, ".xyz")    ? CHARGE_XYZ
           : words_end_with(name, length, ".extxyz") ? CHARGE_XYZ
           : words_end_with(name, length, ".pqr")    ? CHARGE_PQR
                                                     : CHARGE_TEXT;
}

/* Makes *array one of n times `each` bytes; 1 if that is possible. */
static int resize(void** array, int64_t n, size_t each)
{
    void* grown = (uint64_t)n > SIZE_MAX / each ? NULL : realloc(*array, (size_t)n * each);

    *array = grown ? grown : *array;
    return grown != NULL;
}

int charge_file_reserve(charge_file* file, int64_t capacity, int has_lines, int has_references)
{
    void *x = file->x, *q = file->q, *line = file->line, *potential = file->potential, *field = file->field;
    int   done = resize(&x, capacity, 3 * sizeof(double));

    done            = done && (file->is_places || resize(&q, capacity, sizeof(double)));
    done            = done && (!has_lines || resize(&line, capacity, sizeof(int64_t)));
    done            = done && (!has_references || resize(&potential, capacity, sizeof(double)));
    done            = done && (!has_references || resize(&field, capacity, 3 * sizeof(double)));
    file->x         = (double*)x;
    file->q         = (double*)q;
    file->line      = (int64_t*)line;
    file->potential = (double*)potential;
    file->field     = (double*)field;
    file->capacity  = done ? capacity : file->capacity;
    return done ? 0 : -1;
}

int charge_file_append(charge_file* file, const text_lines* in, const double* value, int n, atomic_llong* rows)
{
    const int     has_references = n == 8 && !file->is_places;
    const int64_t i              = file->n;

    if (i == file->capacity && charge_file_reserve(file, 2 * i + 1024, 1, has_references))
    {
        return text_lines_no_memory(in);
    }
    memcpy(file->x + 3 * i, value, 3 * sizeof(double));
    file->line[i] = in->line;
    if (!file->is_places)
    {
        file->q[i] = value[3];
    }
    if (has_references)
    {
        file->potential[i] = value[4];
        memcpy(file->field + 3 * i, value + 5, 3 * sizeof(double));
    }
    file->n = i + 1;
    if (rows)
    {
        atomic_store_explicit(rows, file->n, memory_order_relaxed);
    }
    return 0;
}

int charge_file_label(charge_file* file, const text_lines* in, const char* label)
{
    const size_t size = strlen(label) + 1;

    if (file->labels_capacity - file->labels_length < size)
    {
        const size_t capacity = 2 * file->labels_capacity + size + 1024;
        char*        labels   = (char*)realloc(file->labels, capacity);
        if (!labels)
        {
            return text_lines_no_memory(in);
        }
        file->labels          = labels;
        file->labels_capacity = capacity;
    }
    memcpy(file->labels + file->labels_length, label, size);
    file->labels_length += size;
    return 0;
}

int64_t charge_file_line(const charge_file* file, int64_t i)
{
    return file->line ? file->line[i] : i + 1;
}

void charge_file_set_periodic(charge_file* file, const int* along)
{
    memcpy(file->along, along, sizeof(file->along));
    file->periodic = along[0] || along[1] || along[2];
}

int charge_file_is_partly(const charge_file* file)
{
    return file->periodic && !(file->along[0] && file->along[1] && file->along[2]);
}

const char* charge_file_kind(const charge_file* file)
{
    const int num = file->along[0] + file->along[1] + file->along[2];

    return num == 3 ? "periodic" : num == 2 ? "slab" : num == 1 ? "wire" : "open";
}

/* The unit vector of a x b. */
static void normal(const double* a, const double* b, double* n)
{
    double length = 0;

    for (int d = 0; d < 3; d++)
    {
        n[d] = a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3];
        length += n[d] * n[d];
    }
    for (int d = 0; d < 3; d++)
    {
        n[d] /= sqrt(length);
    }
}

void charge_file_lattice(const charge_file* file, double lattice[9])
{
    memcpy(lattice, file->box, sizeof(file->box));
    if (!charge_file_is_partly(file))
    {
        return;
    }
    for (int d = 0; d < 3; d++)
    {
        double *a = lattice + 3 * d, *b = lattice + 3 * ((d + 1) % 3), *c = lattice + 3 * ((d + 2) % 3);
        if (file->along[d] && !file->along[(d + 1) % 3] && !file->along[(d + 2) % 3])
        {
            /* the axis that a is least along: normals to a vector along an axis are axes themselves */
            const int first = fabs(a[1]) < fabs(a[0]) ? 1 : 0, least = fabs(a[2]) < fabs(a[first]) ? 2 : first;
            double    axis[3] = {0, 0, 0};
            axis[least]       = 1;
            normal(a, axis, b);
            normal(a, b, c);
        }
        else if (!file->along[d] && file->along[(d + 1) % 3] && file->along[(d + 2) % 3])
        {
            normal(b, c, a);
        }
    }
}

double charge_file_volume(const charge_file* file)
{
    const double* b = file->box;

    return b[0] * (b[4] * b[8] - b[5] * b[7]) - b[1] * (b[3] * b[8] - b[5] * b[6]) + b[2] * (b[3] * b[7] - b[4] * b[6]);
}

/* Whether the periodic vectors of a slab span a plane, or that of a wire has a length. */
static int check_partly(const charge_file* file)
{
    double lattice[9];

    charge_file_lattice(file, lattice);
    for (int i = 0; i < 9; i++)
    {
        if (!isfinite(lattice[i]))
        {
            complain(file->name, file->box_line, "the periodic vectors of the box are zero, or on one line");
            return -1;
        }
    }
    return 0;
}

int charge_file_check_box(const charge_file* file)
{
    const double* b = file->box;

    if (!file->periodic)
    {
        return 0;
    }
    if (!file->has_box)
    {
        complain(file->name, file->periodic_line, "periodic: %d %d %d needs a box", file->along[0], file->along[1],
                 file->along[2]);
        return -1;
    }
    if (charge_file_is_partly(file))
    {
        return check_partly(file);
    }
    const double volume = charge_file_volume(file);
    const double edges = sqrt(b[0] * b[0] + b[1] * b[1] + b[2] * b[2]) * sqrt(b[3] * b[3] + b[4] * b[4] + b[5] * b[5]) *
                         sqrt(b[6] * b[6] + b[7] * b[7] + b[8] * b[8]);
    /* Below 1e-12 of the brick with the same edges the volume is rounding error. Written so that NaN fails too. */
    if (!(fabs(volume) > 1e-12 * edges && isfinite(edges)))
    {
        complain(file->name, file->box_line, "the box is singular: its volume is %g", volume);
        return -1;
    }
    return 0;
}

void charge_file_free(charge_file* file)
{
    free(file->x);
    free(file->q);
    free(file->potential);
    free(file->field);
    free(file->line);
    free(file->comments);
    free(file->labels);
    memset(file, 0, sizeof(*file));
}
