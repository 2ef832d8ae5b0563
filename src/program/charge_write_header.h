/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What comes before the rows of results, in each of the formats. */
#ifndef GMXFMM_CHARGE_WRITE_HEADER_H
#define GMXFMM_CHARGE_WRITE_HEADER_H

#include "charge_results.h"
#include "out_file.h"

void charge_write_text_header(out_file* out, const charge_results* r);
void charge_write_npy_header(out_file* out, const charge_results* r);
void charge_write_xyz_header(out_file* out, const charge_results* r);
void charge_write_pqr_header(out_file* out, const charge_results* r);

/* Whether a CRYST1 record can hold a box: a along x, b in the plane of x and y, all of them forwards. */
int charge_write_is_cell(const double box[9]);

#endif
