/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cells, and what is made for them, fitted to the box or to the particles. */
#include "fmm/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/math/harmonics.h"
#include "fmm/model/tune.h"

/* By how much the number of cells may grow before the octree is considered again. */
static const double c_spread = 4;

static fmm_problem problem_of(gmxfmm_plan* plan, int64_t n)
{
    const fmm_problem problem = {&plan->options, plan->periodic, plan->num_threads,     plan->level,       n,
                                 plan->box,      plan->message,  sizeof(plan->message), plan->known_errors};
    return problem;
}

/* Takes a choice for cells of one level, or if there is one for the octree. Errors: OPTION (not exact enough). */
static gmxfmm_status adopt(gmxfmm_plan* plan, const fmm_problem* problem, const fmm_choice* chosen)
{
    plan->m2l             = chosen->m2l;
    plan->order           = chosen->order;
    plan->separation      = chosen->separation;
    plan->predicted_error = chosen->error;
    memcpy(plan->inner, chosen->grid, sizeof(plan->inner));
    if (plan->tree != NULL)
    {
        plan->tree->depth = chosen->depth;
        memcpy(plan->tree->roots, chosen->roots, sizeof(plan->tree->roots));
    }
    return fmm_check_reach(problem, chosen);
}

static gmxfmm_status choose_tree(gmxfmm_plan* plan, const fmm_problem* problem)
{
    fmm_choice    chosen;
    gmxfmm_status status = fmm_tree_check_box(plan, plan->box);
    status               = status == GMXFMM_OK ? fmm_tune_tree(problem, &chosen) : status;
    return status == GMXFMM_OK ? adopt(plan, problem, &chosen) : status;
}

static gmxfmm_status choose_cells(gmxfmm_plan* plan, const fmm_problem* problem)
{
    fmm_choice          chosen;
    const gmxfmm_status status = fmm_tune(problem, &chosen);
    return status == GMXFMM_OK ? adopt(plan, problem, &chosen) : status;
}

static double num_cells(const gmxfmm_plan* plan)
{
    return (double)plan->inner[0] * plan->inner[1] * plan->inner[2];
}

/* In an open system some particles may leave the others until most cells are empty, which cost a convolution as much as
 * others: then the octree, which has none, is considered again. Not where results must not depend on earlier positions,
 * which a continued run does not have. */
static void consider_again_if_spread(gmxfmm_plan* plan, const double* low, const double* high)
{
    if (plan->tree != NULL || !plan->tuned || plan->target_edge == 0 || plan->options.reproducible)
    {
        return;
    }
    double edge = plan->target_edge;
    fmm_cover(plan->num_charges, low, high, &edge, plan->inner);
    if (num_cells(plan) > fmax((double)plan->num_charges, c_spread * plan->considered_cells))
    {
        plan->considered_cells = num_cells(plan);
        plan->tuned            = 0;
    }
}

/* Whether fmm_consider_tree has something to choose. */
static int considers_tree(const gmxfmm_plan* plan)
{
    const int open = plan->tree == NULL && plan->options.m2l == GMXFMM_M2L_AUTO && plan->options.grid[0] == 0;
    return open && !plan->tuned && plan->num_charges > 0 && (!plan->periodic || fmm_is_aligned(plan->box));
}

gmxfmm_status fmm_consider_tree(gmxfmm_plan* plan, const void* x, const double* low, const double* high)
{
    const fmm_problem problem = problem_of(plan, plan->num_charges);
    fmm_choice        tree, cells = {.order = plan->order, .separation = plan->separation};
    int               better;
    if (!considers_tree(plan))
    {
        return GMXFMM_OK;
    }
    plan->tuned = 1;
    memcpy(cells.grid, plan->inner, sizeof(cells.grid));
    gmxfmm_status status = fmm_compare_tree(&problem, x, low, high, &cells, &plan->tree_gain, &better, &tree);
    if (status != GMXFMM_OK || !better)
    {
        return status;
    }
    status = fmm_add_tree(plan);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    plan->geometry_valid = 0;
    plan->grid_order     = -1; /* the convolution is now one of roots */
    plan->target_edge    = tree.edge;
    return adopt(plan, &problem, &tree);
}

double fmm_tree_gain(const gmxfmm_plan* plan)
{
    return plan->tree_gain;
}

/* The octree of a periodic system anew, for the particles at x on the host; once a plan. */
static gmxfmm_status fit_tree(gmxfmm_plan* plan, const void* x)
{
    const fmm_problem problem = problem_of(plan, plan->num_charges);
    fmm_choice        chosen;
    if (plan->tuned || fmm_given_depth(&plan->options) > 0 || plan->num_charges == 0)
    {
        return GMXFMM_OK;
    }
    memcpy(chosen.roots, plan->tree->roots, sizeof(chosen.roots));
    gmxfmm_status status = fmm_tune_tree_particles(&problem, x, &chosen);
    status               = status == GMXFMM_OK ? adopt(plan, &problem, &chosen) : status;
    plan->tuned          = status == GMXFMM_OK;
    plan->geometry_valid = 0;
    return status;
}

/* The octree of an open system: chosen once a plan, and then as large as the particles want it. */
static gmxfmm_status fit_tree_open(gmxfmm_plan* plan, const void* x, const double* low, const double* high)
{
    const fmm_problem problem = problem_of(plan, plan->num_charges);
    fmm_choice        chosen;
    if (plan->tuned)
    {
        plan->edge        = plan->target_edge;
        plan->tree->depth = fmm_cover_by_tree(low, high, plan->options.depth, &plan->edge);
        plan->inner[0] = plan->inner[1] = plan->inner[2] = 1 << plan->tree->depth;
        return GMXFMM_OK;
    }
    gmxfmm_status status = fmm_tune_tree_open(&problem, x, low, high, &chosen);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    status            = adopt(plan, &problem, &chosen);
    plan->target_edge = plan->edge = chosen.edge;
    plan->tuned                    = status == GMXFMM_OK;
    return status;
}

/* The same of cells of one level. */
static gmxfmm_status fit_cells_open(gmxfmm_plan* plan, const void* x, const double* low, const double* high)
{
    (void)x;
    const fmm_problem problem = problem_of(plan, plan->num_charges);
    fmm_choice        chosen;
    if (plan->target_edge == 0)
    {
        gmxfmm_status status = fmm_tune_open(&problem, low, high, &chosen);
        status               = status == GMXFMM_OK ? adopt(plan, &problem, &chosen) : status;
        if (status != GMXFMM_OK)
        {
            return status;
        }
        plan->target_edge = chosen.edge;
    }
    plan->edge = plan->target_edge;
    fmm_cover(plan->num_charges, low, high, &plan->edge, plan->inner);
    plan->considered_cells = plan->considered_cells > 0 ? plan->considered_cells : num_cells(plan);
    return GMXFMM_OK;
}

void fmm_free_grid(gmxfmm_plan* plan)
{
    if (plan->backend->set_grid != NULL)
    {
        plan->backend->free_grid(plan);
    }
    plan->has_grid = 0;
    plan->bytes -= plan->grid_bytes;
    plan->grid_bytes     = 0;
    plan->spectra_valid  = 0;
    plan->line.spacing   = 0;
    plan->geometry_valid = 0;
}

/* What an octree needs beside its levels, which follow the particles. */
static gmxfmm_status make_lists(gmxfmm_plan* plan)
{
    fmm_tree* tree     = plan->tree;
    tree->num_coef     = harm_size(plan->order);
    tree->num_near     = plan->cells.num_near;
    const int given    = plan->options.m2l_truncate;
    const int truncate = given != GMXFMM_AUTO ? given : plan->m2l == GMXFMM_M2L_ROTATION;
    fmm_tree_lists_free(tree);
    const gmxfmm_status status =
        fmm_tree_lists(tree, &plan->cells, plan->separation, plan->options.m2l_to_parent, truncate, plan->order);
    return status == GMXFMM_OK ? status : fmm_fail(plan, status, "out of memory for interaction lists");
}

/* What cells of one level and an octree do in different ways. */
typedef struct
{
    gmxfmm_status (*choose)(gmxfmm_plan* plan, const fmm_problem* problem); /* periodic, at create */
    gmxfmm_status (*fit_open)(gmxfmm_plan* plan, const void* x, const double* low, const double* high);
    gmxfmm_status (*fit)(gmxfmm_plan* plan, const void* x); /* periodic, at assign; NULL: nothing */
    gmxfmm_status (*set_cells)(gmxfmm_plan* plan);
    gmxfmm_status (*make_lists)(gmxfmm_plan* plan); /* NULL: none */
} layout;

static gmxfmm_status set_cells(gmxfmm_plan* plan)
{
    return fmm_cells_set(&plan->cells, plan->box, plan->inner, plan->periodic, plan->separation, plan->order);
}

static gmxfmm_status set_leaves(gmxfmm_plan* plan)
{
    const gmxfmm_status status = fmm_cells_set_octree(&plan->root_cells, plan->box, plan->tree->roots, plan->periodic,
                                                      plan->separation, plan->order);
    return status != GMXFMM_OK ? status
                               : fmm_cells_set_octree(&plan->cells, plan->box, plan->inner, plan->periodic,
                                                      plan->separation, plan->order);
}

static const layout c_cells  = {choose_cells, fit_cells_open, NULL, set_cells, NULL};
static const layout c_octree = {choose_tree, fit_tree_open, fit_tree, set_leaves, make_lists};

static const layout* layout_of(const gmxfmm_plan* plan)
{
    return plan->tree != NULL ? &c_octree : &c_cells;
}

/* Where a convolution over all of a long or flat box cannot be had, or not as exact, an octree can: its cells are
 * cubes, or nearly. */
gmxfmm_status fmm_choose_periodic(gmxfmm_plan* plan)
{
    const gmxfmm_options* o       = &plan->options;
    const fmm_problem     problem = problem_of(plan, plan->expected);
    const layout* const   first   = layout_of(plan);
    gmxfmm_status         status  = first->choose(plan, &problem);
    const int             failed  = status == GMXFMM_ERROR_UNSUPPORTED || status == GMXFMM_ERROR_OPTION;
    if (failed && first == &c_cells && o->m2l == GMXFMM_M2L_AUTO && o->grid[0] == 0 && fmm_is_aligned(plan->box))
    {
        status = fmm_add_tree(plan);
        status = status == GMXFMM_OK ? choose_tree(plan, &problem) : status;
        if (status == GMXFMM_OK)
        {
            plan->message[0] = '\0'; /* of the convolution, which is not taken */
        }
    }
    return status;
}

static gmxfmm_status make_grid(gmxfmm_plan* plan)
{
    const size_t        before = plan->bytes;
    const layout* const l      = layout_of(plan);
    gmxfmm_status       status = l->make_lists != NULL ? l->make_lists(plan) : GMXFMM_OK;
    status                     = status == GMXFMM_OK ? plan->backend->set_grid(plan) : status;
    plan->has_grid             = 1;
    plan->grid_bytes           = plan->bytes - before;
    return status;
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
    const double error = fmin(plan->options.accuracy, plan->predicted_error);
    return !plan->periodic || plan->options.reproducible || !(error > 0) ? 0 : fmin(0.01, cbrt(5e-3 * error / 2));
}

gmxfmm_status fmm_shape_changed(gmxfmm_plan* plan)
{
    const fmm_cells* c      = plan->convolved;
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
    /* The ranges of Ewald's sums follow the shortest far vector, which is that in the box of the last assign. */
    const int same_sums = !plan->options.reproducible || c->far_distance == plan->spectra_distance;
    if (plan->spectra_valid && change <= shape_tolerance(plan) && near == plan->spectra_near && same_sums)
    {
        return GMXFMM_OK;
    }
    if (near != plan->spectra_near || !fmm_line_follow(&plan->line, c, shape_tolerance(plan)))
    {
        fmm_line_begin(&plan->line, c, node_spacing(plan));
    }
    plan->spectra_valid    = 0;
    plan->spectra_near     = near;
    plan->spectra_distance = c->far_distance;
    memcpy(plan->spectra_cell, c->cell, sizeof(plan->spectra_cell));
    return plan->backend->set_shape(plan);
}

/* What the arrays of the grid, or the operators of the octree, were made for. */
static int grid_fits(const gmxfmm_plan* plan)
{
    return plan->has_grid && plan->grid_order == plan->order && plan->grid_separation == plan->separation &&
           memcmp(plan->grid_n, plan->convolved->n, sizeof(plan->grid_n)) == 0;
}

gmxfmm_status fmm_update_geometry(gmxfmm_plan* plan)
{
    if (plan->geometry_valid)
    {
        return GMXFMM_OK;
    }
    plan->assigned       = 0;
    gmxfmm_status status = layout_of(plan)->set_cells(plan);
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
        memcpy(plan->grid_n, plan->convolved->n, sizeof(plan->grid_n));
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

/* The corners of what particles, at *x, and targets fill; infinities without any. *x: see backend.h. */
static gmxfmm_status extent(gmxfmm_plan* plan, const void** x, double* low, double* high)
{
    for (int d = 0; d < 3; d++)
    {
        low[d]  = INFINITY;
        high[d] = -INFINITY;
    }
    return plan->backend->extent(plan, x, low, high);
}

/* Whether method or depth are yet to be chosen by counts of particles in the cells of every depth. */
static int counts_particles(const gmxfmm_plan* plan)
{
    return considers_tree(plan) ||
           (plan->tree != NULL && !plan->tuned && !(plan->periodic && fmm_given_depth(&plan->options) > 0));
}

/* x on the host, where particles are counted; elsewhere nobody looks at it. */
static gmxfmm_status bring_to_host(gmxfmm_plan* plan, const void** x)
{
    return counts_particles(plan) ? plan->backend->on_host(plan, x, 3 * (size_t)plan->num_charges) : GMXFMM_OK;
}

/* Fits the grid of an open system to its particles: cubes of one edge from the lowest corner. */
static gmxfmm_status fit_open(gmxfmm_plan* plan, const void** x)
{
    const void*   host = *x;
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
    consider_again_if_spread(plan, low, high);
    status = bring_to_host(plan, &host);
    status = status == GMXFMM_OK ? fmm_consider_tree(plan, host, low, high) : status;
    status = status == GMXFMM_OK ? layout_of(plan)->fit_open(plan, host, low, high) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int d = 0; d < 3; d++)
    {
        const double width    = plan->inner[d] * plan->edge;
        box[4 * d]            = width;
        plan->cells.origin[d] = 0.5 * (low[d] + high[d] - width);
    }
    /* fmm_shape_changed's comparison of shapes decides whether the convolution is made anew */
    memcpy(plan->box, box, sizeof(box));
    plan->geometry_valid = 0;
    return GMXFMM_OK;
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
    if (!plan->periodic)
    {
        status = fit_open(plan, x);
    }
    else
    {
        const double low[3] = {0, 0, 0};
        status              = bring_to_host(plan, &host);
        status              = status == GMXFMM_OK ? fmm_consider_tree(plan, host, low, low) : status;
        status = status == GMXFMM_OK && layout_of(plan)->fit != NULL ? layout_of(plan)->fit(plan, host) : status;
    }
    status          = status == GMXFMM_OK ? fmm_update_geometry(plan) : status;
    plan->num_cells = plan->cells.num_cells;
    return status;
}
