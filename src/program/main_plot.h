/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A picture of measured errors and times, as SVG. */
#ifndef GMXFMM_MAIN_PLOT_H
#define GMXFMM_MAIN_PLOT_H

typedef struct
{
    char   name[64]; /* cells; points with equal names are one line, and stand together */
    int    order;
    double error; /* relative, > 0 */
    double ms;    /* a step, > 0 */
    int    is_best;
} plot_point;

/* Writes errors, with the accuracy asked for as a line, and times over the order, num > 0 of them, to the file `name`.
 * 0, or -1 after one line on stderr. */
int plot_write(const char* name, int overwrite, const char* title, const plot_point* points, int num, double asked);

#endif
