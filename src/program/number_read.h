/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decimal numbers in text, read several times as fast as by strtod and to the same bits. */
#ifndef GMXFMM_NUMBER_READ_H
#define GMXFMM_NUMBER_READ_H

/* Reads the decimal number that text begins with, without blanks before it. What follows it, or NULL where strtod has
 * to be asked: more than 19 digits, powers of ten beyond 27, nan, hexadecimal digits, or no number at all. */
const char* number_read(const char* text, double* value);

#endif
