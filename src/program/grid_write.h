/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Potentials on a grid, for programs that draw them. */
#ifndef GMXFMM_GRID_WRITE_H
#define GMXFMM_GRID_WRITE_H

#include "charge_results.h"
#include "target_grid.h"

/* Whether a name ends with .dx, an OpenDX scalar field as APBS writes it, or .cube, Gaussian's format; with .gz or
 * without. */
int grid_write_is_grid(const char* name);

/* Writes the potential in the format of the name's ending. r->at and its potential are of the points without charges;
 * `at_charges` is the potential at the charges, which the points there get. unit: of energies in which lengths are in
 * Angstrom and charges in e, or NULL. *rows: as charge_write. 0, or -1 after a complaint. */
int grid_write(const char*           name,
               int                   overwrite,
               const target_grid*    grid,
               const charge_results* r,
               const double*         at_charges,
               const char*           unit,
               atomic_llong*         rows);

#endif
