/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Readers of the formats of charge_file.h. They fill an empty *file, of which name, format and is_places are set, and
 * return 0, or -1 after a complaint. */
#ifndef GMXFMM_CHARGE_FORMATS_H
#define GMXFMM_CHARGE_FORMATS_H

#include "charge_file.h"

int charge_read_text(text_lines* in, charge_file* file, atomic_llong* rows);
int charge_read_xyz(text_lines* in, charge_file* file, atomic_llong* rows);
int charge_read_pqr(text_lines* in, charge_file* file, atomic_llong* rows);
int charge_read_npy(const char* name, charge_file* file, atomic_llong* rows);

#endif
