/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The second line of an extended XYZ file. */
#ifndef GMXFMM_XYZ_HEADER_H
#define GMXFMM_XYZ_HEADER_H

#include "charge_file.h"

/* Where columns stand, from 0 on; -1: not there. */
typedef struct
{
    int num;
    int species, position, charge, potential, field;
} xyz_columns;

/* Reads Lattice, pbc, Properties and what gmxfmm writes, and changes the text. 0, or -1 after a complaint. */
int xyz_header_read(text_lines* in, charge_file* file, char* text, xyz_columns* columns);

#endif
