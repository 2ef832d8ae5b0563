/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The error of potentials and fields at a sample of targets. */
#ifndef TREECODE_ERROR_H
#define TREECODE_ERROR_H

#include <stdint.h>

/* RMS difference over RMS of the exact numbers, the larger one of potentials and fields, which are 4 numbers a target
 * in values and exact; once more with targets whose square is above 100 times the median as if they had the median, as
 * two charges that almost touch would otherwise hide the error of all others. 0 where all exact numbers are; NAN where
 * some are not finite. room: num numbers. */
double treecode_error_of(int64_t num, const double* values, const double* exact, double* room);

#endif
