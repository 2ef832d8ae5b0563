/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors measured on the system itself, and settings chosen by them. */
#ifndef GMXFMM_MAIN_MEASURE_H
#define GMXFMM_MAIN_MEASURE_H

#include "charge_file.h"
#include "gmxfmm_measure.h"
#include "main_options.h"
#include "main_progress.h"

/* Where order and cells are left automatic, chooses them, or the accuracy to ask of the library's model, so that what
 * was asked is just reached on the system of a file. *chosen: what they reach; error NaN: nothing was
 * measured. 0, or -1 after one line on stderr: nothing reaches it. */
int main_measure(const charge_file* file, main_options* options, progress* p, gmxfmm_measurement* chosen);

#endif
