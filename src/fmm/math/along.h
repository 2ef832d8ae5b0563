/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Second derivatives of the energy of charges q along a way, positions u and charges w, of one particle: THEORY (52),
 * from the fields of the charges and those of their derivative along the way, charges w and dipoles q u. */
#ifndef FMM_ALONG_H
#define FMM_ALONG_H

#include "fmm/math/host_device.h"

/* In the caller's unit and axes. */
typedef struct
{
    double q, w, u[3];
    double phi, field[3];         /* of the charges */
    double apart[3], gradient[6]; /* the part of this field that acts on u here, and its gradient: all of it, unless
                                   * the fields of the way have some of it already */
    double way_phi, way_field[3]; /* of the way */
} fmm_along_fields;

typedef struct
{
    double force[3];  /* less the derivative by the position */
    double potential; /* by the charge */
    double energy;    /* the particle's part of the first derivative along the way */
} fmm_along_derivatives;

static inline FMM_HD fmm_along_derivatives fmm_along_of(const fmm_along_fields* a)
{
    fmm_along_derivatives to   = {{0, 0, 0}, a->way_phi, 0};
    double                work = 0;
    for (int d = 0; d < 3; d++)
    {
        double along_u = 0;
        for (int k = 0; k < 3; k++)
        {
            along_u += a->u[k] * a->gradient[k == d ? k : k + d + 2];
        }
        to.force[d] = a->q * (a->way_field[d] + along_u) + a->w * a->field[d];
        to.potential -= a->u[d] * a->apart[d];
        work += a->u[d] * a->field[d];
    }
    to.energy = a->w * a->phi - a->q * work;
    return to;
}

#endif
