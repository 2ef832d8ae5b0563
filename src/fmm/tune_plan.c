/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Automatic settings of a plan, by the model: at create for a box, at an assignment for the particles. */
#include "fmm/tune_plan.h"

#include <math.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/domain.h"
#include "fmm/far_field.h"
#include "fmm/frame.h"
#include "fmm/model/layouts.h"
#include "fmm/model/tune.h"
#include "fmm/options.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* By how much the number of cells may grow before the octree is compared again; in an open system until there is one
 * for so many particles, as many as fill a cell. */
static const double c_spread = 4, c_inCell = 8;

static fmm_problem problem_of(gmxfmm_plan* plan, int64_t n)
{
    const fmm_problem problem = {
        .options      = &plan->options,
        .costs        = plan->backend->costs,
        .periodic     = {plan->domain.periodic[0], plan->domain.periodic[1], plan->domain.periodic[2]},
        .num_threads  = plan->num_threads,
        .level        = plan->level,
        .n            = n,
        .box          = plan->domain.box,
        .message      = plan->message,
        .message_size = sizeof(plan->message),
        .known        = plan->known_errors,
        .is_sampled   = plan->measures == FMM_SAMPLED};
    return problem;
}

/* Takes a choice for cells of one level, or if there is one for the octree. Errors: OPTION (not exact enough). */
static gmxfmm_status take(gmxfmm_plan* plan, const fmm_problem* problem, const fmm_choice* chosen)
{
    fmm_far_set(plan, chosen->m2l, chosen->order, chosen->error);
    fmm_domain_set_grid(plan, chosen->grid, chosen->separation);
    if (plan->domain.tree != NULL)
    {
        fmm_domain_set_depth(plan, chosen->depth, chosen->most, chosen->roots);
    }
    return fmm_check_reach(problem, chosen);
}

/* Chooses cells of one level or, if the domain has one, an octree for n particles at x, as fmm_tune and fmm_tune_tree,
 * and takes them. *edge: of these; NULL: not wanted. Errors: those; UNSUPPORTED; OPTION. */
static gmxfmm_status
tune(gmxfmm_plan* plan, int64_t n, const void* x, const double* low, const double* high, const int* roots, double* edge)
{
    const fmm_problem problem  = problem_of(plan, n);
    const int         has_tree = plan->domain.tree != NULL;
    fmm_choice        chosen;
    gmxfmm_status     status =
        has_tree && fmm_is_periodic(plan) ? fmm_domain_check_tree(plan, plan->domain.box) : GMXFMM_OK;
    if (status == GMXFMM_OK)
    {
        status =
            has_tree ? fmm_tune_tree(&problem, x, low, high, roots, &chosen) : fmm_tune(&problem, low, high, &chosen);
    }
    status = status == GMXFMM_OK ? take(plan, &problem, &chosen) : status;
    if (status == GMXFMM_OK && edge != NULL)
    {
        *edge = chosen.edge;
    }
    return status;
}

/* Where a convolution over all of a long or flat box cannot be had, or not as exact, an octree can: its cells are
 * cubes, or nearly. */
gmxfmm_status fmm_tune_periodic(gmxfmm_plan* plan)
{
    const gmxfmm_options* o      = &plan->options;
    gmxfmm_status         status = tune(plan, plan->expected, NULL, NULL, NULL, NULL, NULL);
    const int             failed =
        plan->domain.tree == NULL && (status == GMXFMM_ERROR_UNSUPPORTED || status == GMXFMM_ERROR_OPTION);
    if (failed && o->m2l == GMXFMM_M2L_AUTO && fmm_is_auto(o->grid[0]) && fmm_is_aligned(plan->domain.box))
    {
        status = fmm_domain_add_tree(plan);
        status = status == GMXFMM_OK ? tune(plan, plan->expected, NULL, NULL, NULL, NULL, NULL) : status;
        if (status == GMXFMM_OK)
        {
            plan->message[0] = '\0'; /* of the convolution, which is not taken */
        }
    }
    return status;
}

static double num_cells(const int* grid)
{
    return (double)grid[0] * grid[1] * grid[2];
}

/* Whether an octree is to be compared with cells of one level. */
static int compares_tree(const gmxfmm_plan* plan)
{
    const int open =
        plan->domain.tree == NULL && plan->options.m2l == GMXFMM_M2L_AUTO && fmm_is_auto(plan->options.grid[0]);
    return open && !plan->tuning.done && plan->particles.n > 0 &&
           (!fmm_is_periodic(plan) || fmm_is_aligned(plan->domain.box));
}

/* In an open system some particles may leave the others until most cells are empty, which cost a convolution as much as
 * others: then the octree, which has none, is compared again. Not where results must not depend on earlier positions,
 * which a continued run does not have. */
static void compare_again_if_spread(gmxfmm_plan* plan, const double* low, const double* high)
{
    double edge = plan->tuning.target_edge;
    int    grid[3];
    if (plan->domain.tree != NULL || !plan->tuning.done || edge == 0 || plan->options.reproducible)
    {
        return;
    }
    fmm_open_grid(plan->particles.n, low, high, &edge, grid);
    fmm_domain_set_grid(plan, grid, plan->domain.separation); /* which the octree is compared with */
    if (num_cells(grid) > fmax((double)plan->particles.n / c_inCell, c_spread * plan->tuning.compared_cells))
    {
        plan->tuning.compared_cells = num_cells(grid);
        plan->tuning.done           = 0;
    }
}

/* An octree in place of cells of one level if particles at x, on the host, leave much of their box (open: of low..high)
 * empty. Errors: OPTION, MEMORY. */
static gmxfmm_status compare_tree(gmxfmm_plan* plan, const void* x, const double* low, const double* high)
{
    const fmm_problem problem = problem_of(plan, plan->particles.n);
    fmm_choice        tree, cells = {.order = plan->far.order, .separation = plan->domain.separation};
    int               better;
    if (!compares_tree(plan))
    {
        return GMXFMM_OK;
    }
    plan->tuning.done = 1;
    memcpy(cells.grid, plan->domain.grid, sizeof(cells.grid));
    gmxfmm_status status = fmm_compare_tree(&problem, x, low, high, &cells, &plan->tuning.tree_gain, &better, &tree);
    if (status != GMXFMM_OK || !better)
    {
        return status;
    }
    status                   = fmm_domain_add_tree(plan);
    plan->tuning.target_edge = tree.edge;
    return status == GMXFMM_OK ? take(plan, &problem, &tree) : status;
}

/* The octree of a periodic system anew, for the particles at x on the host; once a plan. */
static gmxfmm_status tune_tree_particles(gmxfmm_plan* plan, const void* x)
{
    if (plan->tuning.done || fmm_given_depth(&plan->options) > 0 || plan->particles.n == 0)
    {
        return GMXFMM_OK;
    }
    const gmxfmm_status status = tune(plan, plan->particles.n, x, NULL, NULL, plan->domain.tree->roots, NULL);
    plan->tuning.done          = status == GMXFMM_OK;
    return status;
}

/* The octree of an open system: chosen once a plan, and then as large as the particles want it. */
static gmxfmm_status
tune_tree_open(gmxfmm_plan* plan, const void* x, const double* low, const double* high, double* edge)
{
    if (plan->tuning.done)
    {
        static const int c_root[3] = {1, 1, 1};
        *edge                      = plan->tuning.target_edge;
        const int most             = plan->domain.tree->most;
        const int depth =
            fmm_open_depth(low, high, plan->options.depth, most > 0 ? FMM_MAX_LEVEL : FMM_MAX_DEPTH, edge);
        const int leaves[3] = {1 << depth, 1 << depth, 1 << depth};
        fmm_domain_set_grid(plan, leaves, plan->domain.separation);
        fmm_domain_set_depth(plan, depth, most, c_root);
        return GMXFMM_OK;
    }
    const gmxfmm_status status = tune(plan, plan->particles.n, x, low, high, NULL, edge);
    plan->tuning.target_edge   = *edge;
    plan->tuning.done          = status == GMXFMM_OK;
    return status;
}

/* The same of cells of one level. */
static gmxfmm_status tune_cells_open(gmxfmm_plan* plan, const double* low, const double* high, double* edge)
{
    int grid[3];
    if (plan->tuning.target_edge == 0)
    {
        const gmxfmm_status status = tune(plan, plan->particles.n, NULL, low, high, NULL, &plan->tuning.target_edge);
        if (status != GMXFMM_OK)
        {
            return status;
        }
    }
    *edge = plan->tuning.target_edge;
    fmm_open_grid(plan->particles.n, low, high, edge, grid);
    fmm_domain_set_grid(plan, grid, plan->domain.separation);
    plan->tuning.compared_cells = plan->tuning.compared_cells > 0 ? plan->tuning.compared_cells : num_cells(grid);
    return GMXFMM_OK;
}

/* x on the host, if particles are to be counted in the cells of every depth; elsewhere nobody looks at it. */
static gmxfmm_status bring_to_host(gmxfmm_plan* plan, const void** x)
{
    const int counts = compares_tree(plan) || (plan->domain.tree != NULL && !plan->tuning.done &&
                                               !(fmm_is_periodic(plan) && fmm_given_depth(&plan->options) > 0));
    return counts ? plan->backend->on_host(plan, x, 3 * (size_t)plan->particles.n) : GMXFMM_OK;
}

/* The corners of what particles, at *x, and targets fill; zeros without any. *x: see backend.h. */
static gmxfmm_status find_extent(gmxfmm_plan* plan, const void** x, double* low, double* high)
{
    for (int d = 0; d < 3; d++)
    {
        low[d]  = INFINITY;
        high[d] = -INFINITY;
    }
    const gmxfmm_status status = plan->backend->extent(plan, x, low, high);
    for (int d = 0; d < 3 && !(low[d] <= high[d]); d++)
    {
        low[d] = high[d] = 0;
    }
    for (int d = 0; d < 3; d++)
    {
        plan->tuning.extent[d] = plan->domain.periodic[d] ? 0 : high[d] - low[d];
    }
    return status;
}

/* The edge of cubes below which near cells would not hold all pairs that min_distance concerns, or that widths soften;
 * a little more, as the edge of cells is computed from their volume. */
static double least_edge(const gmxfmm_plan* plan)
{
    return (1 + 1e-9) * fmax(plan->options.min_distance, 0.5 * plan->charges.widest) / plan->domain.separation;
}

/* The domain of an open system: cubes of one edge around its particles, which need not fill it. */
static gmxfmm_status tune_open(gmxfmm_plan* plan, const void** x)
{
    const void*   host = *x;
    double        low[3], high[3], edge = 0;
    gmxfmm_status status = find_extent(plan, x, low, high);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const double longest = fmax(high[0] - low[0], fmax(high[1] - low[1], high[2] - low[2]));
    if (longest > 0 && !fmm_in_range(longest))
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "the particles are up to %g apart: choose another unit of length",
                        longest);
    }
    compare_again_if_spread(plan, low, high);
    status = bring_to_host(plan, &host);
    status = status == GMXFMM_OK ? compare_tree(plan, host, low, high) : status;
    if (status == GMXFMM_OK)
    {
        status = plan->domain.tree != NULL ? tune_tree_open(plan, host, low, high, &edge)
                                           : tune_cells_open(plan, low, high, &edge);
    }
    if (status == GMXFMM_OK)
    {
        fmm_domain_set_extent(plan, low, high, fmax(edge, least_edge(plan)));
    }
    return status;
}

/* Whether cells of a slab are compared with an octree. */
static int compares_slab_tree(const gmxfmm_plan* plan)
{
    const gmxfmm_options* o = &plan->options;
    return plan->domain.tree == NULL && fmm_is_slab(plan->domain.periodic) && o->m2l == GMXFMM_M2L_AUTO &&
           fmm_is_auto(o->grid[0]) && plan->particles.n > 0 && fmm_is_aligned(plan->domain.box);
}

/* Cells of a wire, or of a slab or, where particles at x leave much of that empty or no cells serve, an octree. */
static gmxfmm_status
choose_cells(gmxfmm_plan* plan, const void* x, const double* low, const double* high, fmm_choice* chosen)
{
    const fmm_problem   problem = problem_of(plan, plan->particles.n);
    const gmxfmm_status cells   = fmm_tune(&problem, low, high, chosen);
    const int           serves  = cells == GMXFMM_OK && fmm_check_reach(&problem, chosen) == GMXFMM_OK;
    fmm_choice          tree;
    int                 better;
    if (!compares_slab_tree(plan) || (cells != GMXFMM_OK && cells != GMXFMM_ERROR_UNSUPPORTED))
    {
        return cells;
    }
    gmxfmm_status status =
        fmm_compare_tree(&problem, x, low, high, serves ? chosen : NULL, &plan->tuning.tree_gain, &better, &tree);
    if (status != GMXFMM_OK || !better)
    {
        return status != GMXFMM_OK ? status : cells;
    }
    plan->message[0] = '\0'; /* of the cells, which are not taken */
    *chosen          = tree;
    return fmm_domain_add_tree(plan);
}

/* Cells or octree of a slab, or cells of a wire, chosen once a plan. */
static gmxfmm_status choose_partly(gmxfmm_plan* plan, const void* x, const double* low, const double* high)
{
    const fmm_problem problem  = problem_of(plan, plan->particles.n);
    const int         has_tree = plan->domain.tree != NULL;
    fmm_choice        chosen;
    gmxfmm_status     status = has_tree ? fmm_domain_check_tree(plan, plan->domain.box) : GMXFMM_OK;
    if (status == GMXFMM_OK)
    {
        status =
            has_tree ? fmm_tune_tree(&problem, x, low, high, NULL, &chosen) : choose_cells(plan, x, low, high, &chosen);
    }
    status                      = status == GMXFMM_OK ? take(plan, &problem, &chosen) : status;
    plan->tuning.target_edge    = status == GMXFMM_OK ? chosen.edge : 0;
    plan->tuning.compared_cells = status == GMXFMM_OK ? num_cells(chosen.grid) : 0;
    return status;
}

/* As compare_again_if_spread, of a slab whose particles have left it along z: cells are chosen again. */
static void choose_again_if_spread(gmxfmm_plan* plan, double thickness)
{
    const double edge = plan->tuning.target_edge;
    if (edge > 0 && compares_slab_tree(plan) && !plan->options.reproducible)
    {
        const double layers      = fmm_slab_layers_of(thickness, edge);
        const double cells       = (double)plan->domain.grid[0] * plan->domain.grid[1] * layers;
        const int    spread      = cells > fmax((double)plan->particles.n, c_spread * plan->tuning.compared_cells);
        plan->tuning.target_edge = spread ? 0 : edge;
    }
}

/* As many cells, or roots, along open directions as the particles take. */
static void fill_partly(gmxfmm_plan* plan, const double* low, const double* high)
{
    const fmm_domain* d        = &plan->domain;
    const int         leaves   = d->tree != NULL ? 1 << d->tree->depth : 1;
    int               roots[3] = {d->grid[0] / leaves, d->grid[1] / leaves, d->grid[2] / leaves}, changed = 0;
    for (int e = 0; e < 3; e++)
    {
        const int num =
            d->periodic[e] ? roots[e] : fmm_slab_layers_of(high[e] - low[e], plan->tuning.target_edge * leaves);
        changed  = changed || num != roots[e];
        roots[e] = num;
    }
    if (changed)
    {
        const int grid[3] = {roots[0] * leaves, roots[1] * leaves, roots[2] * leaves};
        fmm_domain_set_grid(plan, grid, d->separation);
    }
    if (changed && d->tree != NULL)
    {
        fmm_domain_set_depth(plan, d->tree->depth, d->tree->most, roots);
    }
    fmm_domain_set_open(plan, low, high, plan->tuning.target_edge);
}

/* The domain of a slab or a wire: cells around its particles. */
static gmxfmm_status tune_partly(gmxfmm_plan* plan, const void** x)
{
    double        low[3], high[3];
    gmxfmm_status status = find_extent(plan, x, low, high);
    for (int d = 0; d < 3 && status == GMXFMM_OK; d++)
    {
        const double width = high[d] - low[d];
        if (!plan->domain.periodic[d] && width > 0 && !fmm_in_range(width))
        {
            status = fmm_fail(plan, GMXFMM_ERROR_POSITION,
                              "the particles are up to %g apart where there is no image: choose another unit of length",
                              width);
        }
    }
    if (status == GMXFMM_OK)
    {
        choose_again_if_spread(plan, high[2] - low[2]);
    }
    if (status == GMXFMM_OK && plan->tuning.target_edge == 0)
    {
        const void*  host = *x;
        const size_t num  = (size_t)plan->particles.n;
        status            = plan->backend->on_host(plan, &host, 3 * num);
        if (status == GMXFMM_OK && plan->backend->turns_axes)
        {
            status = fmm_frame_positions(plan, &host, num);
        }
        status = status == GMXFMM_OK ? choose_partly(plan, host, low, high) : status;
    }
    if (status == GMXFMM_OK)
    {
        fill_partly(plan, low, high);
    }
    return status;
}

gmxfmm_status fmm_tune_particles(gmxfmm_plan* plan, const void** x)
{
    const void* host = *x;
    if (plan->backend->set_grid == NULL)
    {
        return GMXFMM_OK;
    }
    if (!fmm_is_periodic(plan))
    {
        return tune_open(plan, x);
    }
    if (!fmm_is_bulk(plan))
    {
        return tune_partly(plan, x);
    }
    gmxfmm_status status = bring_to_host(plan, &host);
    status               = status == GMXFMM_OK ? compare_tree(plan, host, NULL, NULL) : status;
    return status == GMXFMM_OK && plan->domain.tree != NULL ? tune_tree_particles(plan, host) : status;
}
