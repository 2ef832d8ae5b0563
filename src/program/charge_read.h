/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Readers of the formats of charge_file.h, and what they share. All return 0, or -1 after a complaint. */
#ifndef GMXFMM_CHARGE_READ_H
#define GMXFMM_CHARGE_READ_H

#include "charge_file.h"

int charge_read_text(text_lines* in, charge_file* file, atomic_llong* rows);
int charge_read_xyz(text_lines* in, charge_file* file, atomic_llong* rows);
int charge_read_pqr(text_lines* in, charge_file* file, atomic_llong* rows);
int charge_read_npy(const char* name, charge_file* file, atomic_llong* rows);

/* Adds the particle of the line at hand: x y z and, unless places alone are read, q; with 8 numbers reference values.
 */
int charge_file_append(charge_file* file, const text_lines* in, const double* value, int n, atomic_llong* rows);

/* Room for `capacity` particles. 0, or -1 without a complaint. */
int charge_file_reserve(charge_file* file, int64_t capacity, int has_lines, int has_references);

/* Adds a label. */
int charge_file_label(charge_file* file, const text_lines* in, const char* label);

#endif
