/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading of a file of charges, or of places, in the format of its ending. */
#ifndef GMXFMM_CHARGE_READ_H
#define GMXFMM_CHARGE_READ_H

#include "charge_file.h"

/* Reads and checks a file, or standard input if name is "-"; name must outlive *file, which can be given to
 * charge_file_free in any case. *rows, for another thread: how many are read by now; NULL: nobody asks. */
int charge_read(const char* name, charge_file* file, atomic_llong* rows);

/* The same for places alone: rows x y z, of which what follows is not read; a box has no meaning. */
int charge_read_places(const char* name, charge_file* file, atomic_llong* rows);

#endif
