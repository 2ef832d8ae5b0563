/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cells, and what is made for them, fitted to the box or to the particles. */
#include "fmm/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/math/harmonics.h"
#include "fmm/tuning/tune.h"

void fmm_free_grid(gmxfmm_plan* plan)
{
    if (plan->backend->set_grid != NULL)
    {
        plan->backend->free_grid(plan);
    }
    free(plan->partial);
    plan->partial = NULL;
    plan->bytes -= plan->grid_bytes;
    plan->grid_bytes     = 0;
    plan->spectra_valid  = 0;
    plan->geometry_valid = 0;
}

/* What an octree needs beside its levels, which follow the particles. */
static gmxfmm_status make_tree(gmxfmm_plan* plan)
{
    fmm_tree* tree = plan->tree;
    tree->num_coef = harm_size(plan->order);
    tree->num_near = plan->cells.num_near;
    fmm_tree_lists_free(tree);
    const gmxfmm_status status = fmm_tree_lists(tree, &plan->cells, plan->separation, plan->options.m2l_to_parent,
                                                plan->options.m2l_truncate, plan->order);
    return status == GMXFMM_OK ? status : fmm_fail(plan, status, "out of memory for interaction lists");
}

static gmxfmm_status make_grid(gmxfmm_plan* plan)
{
    const size_t before = plan->bytes;
    const int    cells  = plan->tree != NULL ? 256 : plan->cells.num_cells;
    /* enough slabs to share out, few enough to add up */
    plan->partial_rows   = cells < 256 ? cells : 256;
    plan->partial        = fmm_alloc(plan, (size_t)plan->partial_rows * FMM_PARTIAL * sizeof(double));
    gmxfmm_status status = GMXFMM_OK;
    if (plan->partial == NULL)
    {
        status = fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d cells", cells);
    }
    if (status == GMXFMM_OK && plan->tree != NULL)
    {
        status = make_tree(plan);
    }
    status           = status == GMXFMM_OK ? plan->backend->set_grid(plan) : status;
    plan->grid_bytes = plan->bytes - before;
    return status;
}

/* How far the shape of the box may be from the one the spectra belong to. Boxes in single precision are scaled
 * isotropically only to rounding; the error made is of the same relative size, far below the asked accuracy. */
static double shape_tolerance(const gmxfmm_plan* plan)
{
    return plan->options.precision == GMXFMM_DOUBLE ? 1e-13 : fmin(1e-6, 0.01 * plan->options.accuracy);
}

gmxfmm_status fmm_shape_changed(gmxfmm_plan* plan)
{
    const fmm_cells* c      = plan->tree != NULL ? &plan->root_cells : &plan->cells;
    double           change = 0;
    uint64_t         near   = 0; /* a checksum of the near set */
    for (int i = 0; i < 9; i++)
    {
        change = fmax(change, fabs(c->cell[i] - plan->spectra_cell[i]) / c->lambda);
    }
    for (int i = 0; i < c->num_near; i++)
    {
        near = near * 6364136223846793005U + (uint64_t)((c->near[i][0] * 64 + c->near[i][1]) * 64 + c->near[i][2]);
    }
    if (plan->spectra_valid && change <= shape_tolerance(plan) && near == plan->spectra_near)
    {
        return GMXFMM_OK;
    }
    plan->spectra_valid = 0;
    plan->spectra_near  = near;
    memcpy(plan->spectra_cell, c->cell, sizeof(plan->spectra_cell));
    return plan->backend->set_shape(plan);
}

/* What the arrays of the grid, or the operators of the octree, were made for. */
static int grid_fits(const gmxfmm_plan* plan)
{
    const int* n = plan->tree != NULL ? plan->root_cells.n : plan->cells.n;
    return plan->partial != NULL && plan->grid_order == plan->order && plan->grid_separation == plan->separation &&
           memcmp(plan->grid_n, n, sizeof(plan->grid_n)) == 0;
}

static gmxfmm_status set_cells(gmxfmm_plan* plan)
{
    if (plan->tree == NULL)
    {
        return fmm_cells_set(&plan->cells, plan->box, plan->inner, plan->periodic, plan->separation, plan->order);
    }
    const gmxfmm_status status = fmm_cells_set_octree(&plan->root_cells, plan->box, plan->tree->roots, plan->periodic,
                                                      plan->separation, plan->order);
    return status != GMXFMM_OK ? status
                               : fmm_cells_set_octree(&plan->cells, plan->box, plan->inner, plan->periodic,
                                                      plan->separation, plan->order);
}

gmxfmm_status fmm_update_geometry(gmxfmm_plan* plan)
{
    if (plan->geometry_valid)
    {
        return GMXFMM_OK;
    }
    plan->assigned       = 0;
    gmxfmm_status status = set_cells(plan);
    if (status != GMXFMM_OK)
    {
        return status == GMXFMM_ERROR_MEMORY ? fmm_fail(plan, status, "out of memory")
                                             : fmm_fail(plan, status,
                                                        "the cells of a grid of %d x %d x %d would be too long or too "
                                                        "skewed in this box: choose a more even grid",
                                                        plan->inner[0], plan->inner[1], plan->inner[2]);
    }
    if (!grid_fits(plan))
    {
        fmm_free_grid(plan);
        status                = make_grid(plan);
        plan->grid_order      = plan->order;
        plan->grid_separation = plan->separation;
        memcpy(plan->grid_n, plan->tree != NULL ? plan->root_cells.n : plan->cells.n, sizeof(plan->grid_n));
        if (status != GMXFMM_OK)
        {
            fmm_free_grid(plan);
            return status;
        }
    }
    status               = fmm_shape_changed(plan);
    plan->geometry_valid = status == GMXFMM_OK;
    return status;
}

/* The corners of what particles, at *x, and receivers fill; infinities without any. *x: see backend.h. */
static gmxfmm_status extent(gmxfmm_plan* plan, const void** x, double* low, double* high)
{
    for (int d = 0; d < 3; d++)
    {
        low[d]  = INFINITY;
        high[d] = -INFINITY;
    }
    return plan->backend->extent(plan, x, low, high);
}

/* Fits the grid of an open system to its particles: cubes of one edge from the lowest corner. host: x on the host, for
 * what counts there. */
static gmxfmm_status fit_open(gmxfmm_plan* plan, const void** x, const void* host)
{
    double        low[3], high[3], box[9] = {0};
    gmxfmm_status status = extent(plan, x, low, high);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int d = 0; d < 3 && !(low[d] <= high[d]); d++)
    {
        low[d] = high[d] = 0; /* no particles */
    }
    const double longest = fmax(high[0] - low[0], fmax(high[1] - low[1], high[2] - low[2]));
    if (longest > 0 && !fmm_in_range(longest))
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "the particles are up to %g apart: choose another unit of length",
                        longest);
    }
    status = fmm_consider_tree(plan, host, low, high);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    status = plan->tree != NULL ? fmm_tune_tree_open(plan, host, low, high) : fmm_tune_open(plan, low, high);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int d = 0; d < 3; d++)
    {
        const double width    = plan->inner[d] * plan->target_edge;
        box[4 * d]            = width;
        plan->cells.origin[d] = 0.5 * (low[d] + high[d] - width);
    }
    /* fmm_shape_changed's comparison of shapes decides whether the convolution is made anew */
    memcpy(plan->box, box, sizeof(box));
    plan->geometry_valid = 0;
    return GMXFMM_OK;
}

/* Whether method or depth are yet to be chosen by counts of particles in the cells of every depth, once a plan. */
static int counts_particles(const gmxfmm_plan* plan)
{
    return fmm_considers_tree(plan) ||
           (plan->tree != NULL && !plan->tuned && !(plan->periodic && fmm_given_depth(&plan->options) > 0));
}

gmxfmm_status fmm_fit_particles(gmxfmm_plan* plan, const void** x)
{
    const void*   host   = *x;
    gmxfmm_status status = GMXFMM_OK;
    plan->assigned       = 0;
    if (plan->backend->set_grid == NULL)
    {
        return GMXFMM_OK;
    }
    if (counts_particles(plan))
    {
        status = plan->backend->on_host(plan, &host, 3 * (size_t)plan->p.n);
    }
    if (status == GMXFMM_OK && !plan->periodic)
    {
        status = fit_open(plan, x, host);
    }
    else if (status == GMXFMM_OK)
    {
        const double low[3] = {0, 0, 0};
        status              = fmm_consider_tree(plan, host, low, low);
        status              = status == GMXFMM_OK && plan->tree != NULL ? fmm_tune_tree_particles(plan, host) : status;
    }
    status          = status == GMXFMM_OK ? fmm_update_geometry(plan) : status;
    plan->num_cells = plan->cells.num_cells;
    return status;
}
