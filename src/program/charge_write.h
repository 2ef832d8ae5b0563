/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writing of results at particles, or at other points, in the formats of charge_file.h. */
#ifndef GMXFMM_CHARGE_WRITE_H
#define GMXFMM_CHARGE_WRITE_H

#include "charge_results.h"

/* Whether the format of the name's ending has a place for the system's box, and the file could be written now. 0, or -1
 * after a complaint. */
int charge_write_check(const char* name, int overwrite, const charge_file* system);

/* Writes all of it in the format of the name's ending ("-": text to standard output), numbers to the last bit, so that
 * results at particles are a valid input with these values as a reference. *rows, for another thread: how many are
 * written by now; NULL: nobody asks. 0, or -1 after a complaint. */
int charge_write(const char* name, int overwrite, const charge_results* r, atomic_llong* rows);

#endif
