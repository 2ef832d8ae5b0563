/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of results, in all formats. */
#include "charge_write.h"

#include <string.h>

#include "charge_write_header.h"
#include "words.h"

/* Where the next label begins; NULL without labels. */
typedef struct
{
    const char* next;
} label_list;

static const char* take_label(label_list* labels)
{
    const char* label = labels->next;

    labels->next = label ? label + strlen(label) + 1 : NULL;
    return label;
}

static void put_word(out_file* out, const char* word, size_t length)
{
    out_file_put(out, word, length);
    out_file_put(out, " ", 1);
}

/* The species of an .xyz; of a .pqr the name of the atom, its third word. */
static const char* species(const charge_file* at, const char* label, size_t* length)
{
    if (label && at->format == CHARGE_PQR)
    {
        for (int i = 0; i < 2; i++)
        {
            label += strcspn(label, " ");
            label += *label == ' ';
        }
    }
    label   = label && *label ? label : "X";
    *length = strcspn(label, " ");
    return label;
}

static void put_xyz_row(out_file* out, const charge_file* at, const char* label, const double* value, double q)
{
    size_t       length;
    const char*  name     = species(at, label, &length);
    const int    n        = at->q ? 8 : 7;
    const double force[3] = {q * value[n - 3], q * value[n - 2], q * value[n - 1]};

    put_word(out, name, length);
    out_file_numbers(out, value, n, at->q ? ' ' : '\n');
    if (at->q)
    {
        out_file_numbers(out, force, 3, '\n');
    }
}

/* The words of a .pqr as they were; of another file such as a reader of these takes. */
static void
put_pqr_row(out_file* out, const charge_file* at, int64_t i, const char* label, const double* value, double q)
{
    const int   n      = at->q ? 8 : 7;
    const char* radius = label && at->format == CHARGE_PQR ? strrchr(label, ' ') : NULL;

    if (radius)
    {
        put_word(out, label, (size_t)(radius - label));
    }
    else
    {
        size_t      length;
        const char* name = species(at, label, &length);
        out_file_print(out, "ATOM %lld %.*s MOL 1 ", (long long)i + 1, length < 40 ? (int)length : 40, name);
    }
    out_file_numbers(out, value, 3, ' ');
    out_file_numbers(out, &q, 1, ' ');
    put_word(out, radius ? radius + 1 : "0", radius ? strlen(radius + 1) : 1);
    out_file_numbers(out, value + n - 4, 4, '\n');
}

static void write_rows(out_file* out, charge_format format, const charge_results* r, atomic_llong* rows)
{
    const charge_file* at     = r->at;
    const int          n      = at->q ? 8 : 7;
    label_list         labels = {at->labels};

    for (int64_t i = 0; i < at->n && !out_file_is_over(out); i++)
    {
        const char*  label = take_label(&labels);
        const double q     = at->q ? at->q[i] : 0;
        double       value[8];
        memcpy(value, at->x + 3 * i, 3 * sizeof(double));
        value[3]     = q;
        value[n - 4] = r->potential[i];
        memcpy(value + n - 3, r->field + 3 * i, 3 * sizeof(double));
        switch (format)
        {
        case CHARGE_NPY:
            out_file_put(out, value, (size_t)n * sizeof(double));
            break;
        case CHARGE_XYZ:
            put_xyz_row(out, at, label, value, q);
            break;
        case CHARGE_PQR:
            put_pqr_row(out, at, i, label, value, q);
            break;
        default:
            out_file_numbers(out, value, n, '\n');
        }
        if (rows)
        {
            atomic_store_explicit(rows, i + 1, memory_order_relaxed);
        }
    }
}

/* Whether the name has the ending of a format that is written, or of text, or none. A file of another format would be
 * text that its readers do not know. */
static int has_known_ending(const char* name)
{
    static const char* const known[] = {".npy", ".xyz", ".extxyz", ".pqr", ".txt", ".dat", ".out"};
    const size_t             whole   = strlen(name);
    const size_t             length  = words_end_with(name, whole, ".gz") ? whole - 3 : whole;
    const char*              folder  = strrchr(name, '/');
    const char*              base    = folder ? folder + 1 : name;

    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
    {
        if (words_end_with(name, length, known[k]))
        {
            return 1;
        }
    }
    /* a dot at its beginning hides a file */
    return length <= (size_t)(base - name) + 1 || !memchr(base + 1, '.', length - (size_t)(base - name) - 1);
}

int charge_write_check(const char* name, int overwrite, const charge_file* system)
{
    if (charge_format_of(name) == CHARGE_PQR && charge_file_is_partly(system))
    {
        complain(name, 0, "a .pqr has no place for a %s: its box is periodic along all vectors",
                 charge_file_kind(system));
        return -1;
    }
    if (charge_format_of(name) == CHARGE_PQR && system->periodic && !charge_write_is_cell(system->box))
    {
        complain(name, 0, "a .pqr has no place for this box: only for a along x and b in the plane of x and y");
        return -1;
    }
    if (charge_format_of(name) == CHARGE_NPY && words_end_with(name, strlen(name), ".gz"))
    {
        complain(name, 0, "a .npy is not gzipped");
        return -1;
    }
    if (!has_known_ending(name))
    {
        complain(
            name, 0,
            "no format has this ending: .npy, .xyz, .extxyz, .pqr, .dx or .cube, or for text .txt, .dat, .out or none");
        return -1;
    }
    return out_file_check(name, overwrite);
}

int charge_write(const char* name, int overwrite, const charge_results* r, atomic_llong* rows)
{
    static void (*const write_header[])(out_file*, const charge_results*) = {
        charge_write_text_header, charge_write_npy_header, charge_write_xyz_header, charge_write_pqr_header};
    const charge_format format = charge_format_of(name);
    out_file            out;

    if (out_file_open(&out, name, overwrite))
    {
        return -1;
    }
    write_header[format](&out, r);
    write_rows(&out, format, r, rows);
    return out_file_close(&out);
}
