/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers as text with 17 digits, written several times as fast as by printf and to the same characters. */
#ifndef GMXFMM_NUMBER_WRITE_H
#define GMXFMM_NUMBER_WRITE_H

enum
{
    NUMBER_LONGEST = 32 /* characters of one number, and some more */
};

/* Writes what printf writes for %.17g to text[NUMBER_LONGEST], without a NUL; the end of it. */
char* number_write(char* text, double value);

#endif
