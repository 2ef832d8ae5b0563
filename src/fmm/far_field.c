/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a far field is made for: order, grid and shape; when arrays and lattice sums are to be made anew. */
#include "fmm/far_field.h"

#include <math.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/domain.h"
#include "fmm/state.h"
#include "fmm/status.h"

void fmm_far_set(gmxfmm_plan* plan, gmxfmm_m2l m2l, int order, double predicted_error)
{
    plan->far.m2l             = m2l;
    plan->far.order           = order;
    plan->far.predicted_error = predicted_error;
}

void fmm_far_free(gmxfmm_plan* plan)
{
    if (plan->backend->set_grid != NULL)
    {
        plan->backend->free_grid(plan);
    }
    memset(&plan->far.shape, 0, sizeof(plan->far.shape)); /* no cells have this one */
    plan->far.line.spacing = 0;
    plan->far.arrays       = 0;
}

static fmm_far_key key_of(const gmxfmm_plan* plan)
{
    const int*        n   = fmm_convolved(plan)->n;
    const fmm_far_key key = {{n[0], n[1], n[2]}, plan->far.order, plan->domain.separation, plan->domain.tree != NULL};
    return key;
}

static int same_key(const fmm_far_key* a, const fmm_far_key* b)
{
    return a->order == b->order && a->separation == b->separation && a->octree == b->octree &&
           memcmp(a->n, b->n, sizeof(a->n)) == 0;
}

/* Arrays of the grid, or the operators of the octree. */
static gmxfmm_status make_arrays(gmxfmm_plan* plan, const fmm_far_key* key)
{
    const gmxfmm_options* o        = &plan->options;
    const int             auto_cut = plan->far.m2l == GMXFMM_M2L_ROTATION;
    gmxfmm_status         status   = GMXFMM_OK;
    fmm_far_free(plan);
    if (plan->domain.tree != NULL)
    {
        const int truncate = o->m2l_truncate != GMXFMM_AUTO ? o->m2l_truncate : auto_cut;
        status             = fmm_domain_make_lists(plan, o->m2l_to_parent, truncate, plan->far.order);
    }
    status = status == GMXFMM_OK ? plan->backend->set_grid(plan) : status;
    if (status != GMXFMM_OK)
    {
        fmm_far_free(plan);
        return status;
    }
    plan->far.arrays = ++plan->far.version;
    plan->far.key    = *key;
    return GMXFMM_OK;
}

/* How far the shape of the box may be from the one the spectra belong to. Boxes in single precision are scaled
 * isotropically only to rounding; the error made is of the same relative size, far below the asked accuracy. But the
 * forces in a box then depend on the boxes that came before it, by some roundings. */
static double shape_tolerance(const gmxfmm_plan* plan)
{
    if (plan->options.reproducible)
    {
        return 0;
    }
    return plan->options.precision == GMXFMM_DOUBLE ? 1e-13 : fmin(1e-6, 0.01 * plan->options.accuracy);
}

/* Distance h of the nodes between which spectra are interpolated; 0 where results may depend on the present box alone.
 * Forces differ from those with the shape's own sums by 2 h^3 at most (tests/library/shape_line.cpp): that is to be
 * 5e-3 of their error. */
static double node_spacing(const gmxfmm_plan* plan)
{
    const double error = fmin(plan->options.accuracy, plan->far.predicted_error);
    return !fmm_is_periodic(plan) || plan->options.reproducible || !(error > 0) ? 0
                                                                                : fmin(0.01, cbrt(5e-3 * error / 2));
}

static fmm_far_shape shape_of(const fmm_cells* c)
{
    fmm_far_shape shape = {.far_distance = c->far_distance};
    memcpy(shape.cell, c->cell, sizeof(shape.cell));
    for (int i = 0; i < c->num_near; i++)
    {
        shape.near_set = shape.near_set * 6364136223846793005U +
                         (uint64_t)((c->near[i][0] * 64 + c->near[i][1]) * 64 + c->near[i][2]);
    }
    return shape;
}

gmxfmm_status fmm_far_set_shape(gmxfmm_plan* plan)
{
    fmm_far_field*      far    = &plan->far;
    const fmm_cells*    c      = fmm_convolved(plan);
    const fmm_far_shape now    = shape_of(c);
    double              change = 0;
    for (int i = 0; i < 9; i++)
    {
        change = fmax(change, fabs(now.cell[i] - far->shape.cell[i]) / c->lambda);
    }
    /* The ranges of Ewald's sums follow the shortest far vector, which is that in the box of the last assign. */
    const int same_sums = !plan->options.reproducible || now.far_distance == far->shape.far_distance;
    if (change <= shape_tolerance(plan) && now.near_set == far->shape.near_set && same_sums)
    {
        return GMXFMM_OK;
    }
    if (now.near_set != far->shape.near_set || !fmm_line_follow(&far->line, c, shape_tolerance(plan)))
    {
        fmm_line_begin(&far->line, c, node_spacing(plan));
    }
    far->shape = now;
    far->version++;
    return plan->backend->set_shape(plan);
}

gmxfmm_status fmm_far_follow(gmxfmm_plan* plan)
{
    const fmm_far_key key    = key_of(plan);
    gmxfmm_status     status = GMXFMM_OK;
    if (plan->far.arrays == 0 || !same_key(&plan->far.key, &key))
    {
        status = make_arrays(plan, &key);
    }
    return status == GMXFMM_OK ? fmm_far_set_shape(plan) : status;
}
