/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Point-charge files: text, plain or gzipped, ASCII or UTF-8 with or without a byte order mark.
 *
 *   # box: ax ay az bx by bz cx cy cz     row vectors; without it the system is open
 *   # periodic: 1 1 1                     or 0 0 0: open, whatever the box
 *   # boundary: tinfoil                   or vacuum
 *   # kernel: yukawa 0.5                   and its kappa; or coulomb
 *   # any other line that starts with # is a comment, unless it looks like a misspelt header: that is refused
 *   x y z q                               one row a particle; in all rows or in none followed by
 *   x y z q potential fx fy fz            reference values, the field being -grad potential, unit 1/r
 *
 * All functions that can fail return 0, or -1 after exactly one line on stderr that names file, line and cause.
 */
#ifndef GMXFMM_CHARGE_FILE_H
#define GMXFMM_CHARGE_FILE_H

#include <stdatomic.h>
#include <stdint.h>

#include "gmxfmm.h"

typedef struct
{
    const char*     name; /* for messages */
    int64_t         n;
    double*         x;         /* 3 n, as in the file */
    double*         q;         /* n */
    double*         potential; /* n, reference; NULL without */
    double*         field;     /* 3 n, reference; NULL without */
    int64_t*        line;      /* n, line of each particle in the file */
    double          box[9];
    int64_t         box_line;      /* 0: no box in the file */
    int             periodic;      /* 1: in all three directions, 0: open */
    int64_t         periodic_line; /* 0: not in the file */
    gmxfmm_boundary boundary;
    int64_t         boundary_line; /* 0: not in the file */
    gmxfmm_kernel   kernel;
    double          kappa;
    int64_t         kernel_line; /* 0: not in the file */
    char*           comments;    /* the other header lines, each with its newline; NULL without */
} charge_file;

/* Reads and checks a file, or standard input if name is "-"; name must outlive *file, which can be given to
 * charge_file_free in any case. *rows, for another thread: how many are read by now; NULL: nobody asks. */
int charge_file_read(const char* name, charge_file* file, atomic_llong* rows);

/* Refuses two particles at one place, in a periodic system also through images. O(n log n). */
int charge_file_check_places(const charge_file* file);

/* Whether charge_file_write could begin now: what fails is better known before a long solve. Changes nothing. */
int charge_file_check_output(const char* name);

/* Writes header and rows x y z q potential fx fy fz, 17 digits, so that the output is a valid input; boundary is the
 * one computed with. A regular file is written under another name and renamed when complete: a failure or a signal
 * that ends the program leaves what was there before. *rows, for another thread: how many are written by now; NULL:
 * nobody asks. */
int charge_file_write(const char*        name,
                      const charge_file* file,
                      gmxfmm_boundary    boundary,
                      gmxfmm_kernel      kernel,
                      double             kappa,
                      const double*      potential,
                      const double*      field,
                      atomic_llong*      rows);

void charge_file_free(charge_file* file);

#endif
