/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of point charges, in the format that the ending of their name says:
 *
 *   .npy          array of numpy: rows x y z q, or x y z q potential fx fy fz, of float32 or float64
 *   .xyz          extended XYZ: Lattice, Properties and pbc; a column charge, charges, initial_charges or q
 *   .pqr          ATOM and HETATM records with charge and radius; CRYST1
 *   all others    text, ASCII or UTF-8 with or without a byte order mark:
 *
 *   # box: ax ay az bx by bz cx cy cz     row vectors; without it the system is open
 *   # periodic: 1 1 1                     1 1 0, any two: a slab; 0 0 1, any: a wire; 0 0 0: open
 *   # boundary: tinfoil                   or vacuum
 *   # kernel: yukawa 0.5                  and its kappa; or coulomb
 *   # prefactor: 1                        of the reference values
 *   # any other line that starts with # is a comment, unless it looks like a misspelt header: that is refused
 *   x y z q                               one row a particle; in all rows or in none followed by
 *   x y z q potential fx fy fz            reference values, the field being -grad potential, unit 1/r
 *
 * All but .npy may be gzipped. No format has units here: numbers are taken as they are.
 *
 * All functions that can fail return 0, or -1 after exactly one line on stderr that names file, line and cause.
 */
#ifndef GMXFMM_CHARGE_FILE_H
#define GMXFMM_CHARGE_FILE_H

#include <stdatomic.h>
#include <stdint.h>

#include "exclusions.h"
#include "gmxfmm.h"
#include "text_lines.h"

typedef enum
{
    CHARGE_TEXT = 0,
    CHARGE_NPY,
    CHARGE_XYZ,
    CHARGE_PQR
} charge_format;

typedef struct
{
    const char*     name; /* for messages */
    charge_format   format;
    int             is_places; /* places alone are read: q is NULL */
    int64_t         n;
    int64_t         capacity;
    double*         x;         /* 3 n, as in the file */
    double*         q;         /* n */
    double*         potential; /* n, reference; NULL without */
    double*         field;     /* 3 n, reference; NULL without */
    int64_t*        line;      /* n, line of each particle in the file; NULL: row after row */
    double          box[9];
    int             has_box;
    int64_t         box_line;      /* 0: has no line of its own */
    int             periodic;      /* 1: along some box vectors, 0: open */
    int             along[3];      /* which */
    int64_t         periodic_line; /* 0: not in the file */
    gmxfmm_boundary boundary;
    int64_t         boundary_line; /* 0: not in the file */
    gmxfmm_kernel   kernel;
    double          kappa;
    int64_t         kernel_line; /* 0: not in the file */
    double          prefactor;   /* of the reference values */
    int64_t         prefactor_line;
    char*           comments; /* the other header lines, each with its newline; NULL without */
    char*           labels; /* of .xyz and .pqr, one after the other, each with its NUL: species, or words and radius */
    size_t          labels_length, labels_capacity;
} charge_file;

/* The format that a name ends with. */
charge_format charge_format_of(const char* name);

/* Adds the particle of the line at hand: x y z and, unless places alone are read, q; with 8 numbers reference values.
 */
int charge_file_append(charge_file* file, const text_lines* in, const double* value, int n, atomic_llong* rows);

/* Room for `capacity` particles. 0, or -1 without a complaint. */
int charge_file_reserve(charge_file* file, int64_t capacity, int has_lines, int has_references);

/* Adds a label. */
int charge_file_label(charge_file* file, const text_lines* in, const char* label);

/* Which box vectors have images; whether not all do, two of a slab or one of a wire; and what that is called. */
void        charge_file_set_periodic(charge_file* file, const int* along);
int         charge_file_is_partly(const charge_file* file);
const char* charge_file_kind(const charge_file* file);

/* The vectors of the box, with unit vectors normal to the periodic ones in place of those that have no images. */
void charge_file_lattice(const charge_file* file, double lattice[9]);

/* Of the box; negative where it is left-handed. */
double charge_file_volume(const charge_file* file);

/* What only the whole file, with what the command line adds, shows: a box where one is needed, and a box with a volume.
 */
int charge_file_check_box(const charge_file* file);

/* Refuses two particles at one place that do not exclude each other, in a periodic system also through images. O(n). */
int charge_file_check_places(const charge_file* file, const exclusions* excluded);

/* Line of a particle, from 1; of a file without lines its row. */
int64_t charge_file_line(const charge_file* file, int64_t i);

void charge_file_free(charge_file* file);

#endif
