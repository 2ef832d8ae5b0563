/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Headers of .npy files, versions 1 to 3 of the format. */
#ifndef GMXFMM_NPY_HEADER_H
#define GMXFMM_NPY_HEADER_H

#include <stdint.h>
#include <stdio.h>

typedef struct
{
    int     bytes; /* of a number: 4 or 8 */
    int     is_big_endian;
    int     is_by_columns; /* Fortran's order */
    int64_t rows, columns;
} npy_header;

/* Reads the header and leaves `in` at the first number. NULL, or what is wrong: text in message[size], or a constant.
 */
const char* npy_header_read(FILE* in, npy_header* header, char* message, size_t size);

/* Whether this machine is big-endian. */
int npy_is_big_endian(void);

#endif
