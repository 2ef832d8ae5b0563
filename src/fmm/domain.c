/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Box, cells and near cells of a plan, and the octree that it may have. */
#include "fmm/domain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/geometry/reduce.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* A cell's vector that has moved by this share of an edge belongs to another choice of lattice vectors: those of
 * pressure coupling move by 1e-5 of it, other vectors of the same lattice by a whole one. Particles and near vectors no
 * longer belong to such cells. */
static const double c_otherShape = 0.2;

/* Volume over the product of edges below which a box is flat. */
static const double c_flat = 1e-9;

/* Box vectors are taken as they are while the product of their lengths is not above so many times their volume: of
 * cubes it is 1, of dodecahedra 1.42. Later boxes are combined as the first one while it is not above the other: room
 * for pressure coupling and shear without other vectors. An octree needs right angles. */
static const double c_skewed = 3, c_moreSkewed = 4, c_rightAngles = 1 + 1e-9;

static double row_length(const double* row)
{
    return sqrt(row[0] * row[0] + row[1] * row[1] + row[2] * row[2]);
}

/* Whether a vector is one. */
static gmxfmm_status check_line(const double* a, char* message, size_t size)
{
    if (!(row_length(a) > 0))
    {
        snprintf(message, size, "the periodic vector of the box is (%g %g %g)", a[0], a[1], a[2]);
        return GMXFMM_ERROR_BOX;
    }
    return GMXFMM_OK;
}

/* Whether two vectors span a plane. */
static gmxfmm_status check_plane(const double* a, const double* b, char* message, size_t size)
{
    const double n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    if (!(row_length(n) > c_flat * row_length(a) * row_length(b)))
    {
        snprintf(message, size, "the periodic vectors (%g %g %g) and (%g %g %g) are on one line, or nearly", a[0], a[1],
                 a[2], b[0], b[1], b[2]);
        return GMXFMM_ERROR_BOX;
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_check_box(const double* box, const int* periodic, char* message, size_t size)
{
    double longest = 0;
    for (int i = 0; i < 9; i++)
    {
        if (!periodic[i / 3])
        {
            continue;
        }
        if (!isfinite(box[i]))
        {
            snprintf(message, size, "box element %d is %g: not finite", i, box[i]);
            return GMXFMM_ERROR_BOX;
        }
        longest = fmax(longest, fabs(box[i]));
    }
    if (longest > 0 && !fmm_in_range(longest))
    {
        snprintf(message, size, "the box is %g long: choose another unit of length", longest);
        return GMXFMM_ERROR_BOX;
    }
    if (fmm_is_wire(periodic))
    {
        return check_line(box + (periodic[0] ? 0 : periodic[1] ? 3 : 6), message, size);
    }
    if (fmm_is_slab(periodic))
    {
        const int open = !periodic[0] ? 0 : !periodic[1] ? 1 : 2;
        return check_plane(box + 3 * ((open + 1) % 3), box + 3 * ((open + 2) % 3), message, size);
    }
    const double volume = fabs(fmm_determinant(box));
    if (!(volume > c_flat * row_length(box) * row_length(box + 3) * row_length(box + 6)))
    {
        snprintf(message, size,
                 "box (%g %g %g) (%g %g %g) (%g %g %g) has volume %g: its vectors must not be in one plane, or nearly",
                 box[0], box[1], box[2], box[3], box[4], box[5], box[6], box[7], box[8], volume);
        return GMXFMM_ERROR_BOX;
    }
    return GMXFMM_OK;
}

/* Whether an octree was asked for, which the domain may not have yet. */
static int wants_tree(const gmxfmm_options* options)
{
    return options->m2l != GMXFMM_M2L_AUTO && options->m2l != GMXFMM_M2L_FFT;
}

/* The box for the caller's, and the integers t that make it: those of before while they give short vectors, or else the
 * caller's own vectors, or the shortest. before: NULL for none. */
static void reduce_box(const gmxfmm_options* options,
                       const int*            periodic,
                       const double*         before,
                       const double*         box,
                       double*               t,
                       double*               reduced)
{
    static const double c_same[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const int           anew      = before == NULL || options->reproducible; /* whatever boxes came before */
    const double        most      = wants_tree(options) ? c_rightAngles : anew ? c_skewed : c_moreSkewed;
    memcpy(t, anew ? c_same : before, sizeof(c_same));
    fmm_in_basis(t, box, reduced);
    if (fmm_orthogonality_defect(reduced) > most)
    {
        fmm_is_slab(periodic) ? fmm_reduce_plane(box, t) : fmm_reduce_basis(box, t);
        fmm_in_basis(t, box, reduced);
    }
}

void fmm_domain_reduced_box(const gmxfmm_options* options, const double* box, double* reduced)
{
    static const int c_all[3] = {1, 1, 1};
    double           t[9];
    reduce_box(options, c_all, NULL, box, t, reduced);
}

static void set_box(fmm_domain* domain, const double* box)
{
    memcpy(domain->box, box, sizeof(domain->box));
    domain->version++;
}

void fmm_domain_create(gmxfmm_plan* plan, const int* periodic, const double* box)
{
    double own[9] = {0};
    memcpy(plan->domain.periodic, periodic, sizeof(plan->domain.periodic));
    if (box != NULL)
    {
        memcpy(plan->domain.given, box, sizeof(plan->domain.given));
        reduce_box(&plan->options, periodic, NULL, box, plan->domain.in_basis, own);
    }
    set_box(&plan->domain, own);
}

gmxfmm_status fmm_domain_set_box(gmxfmm_plan* plan, const double* box, double stretch)
{
    fmm_domain* domain = &plan->domain;
    double      before[9], t[9], own[9], change = 0;
    reduce_box(&plan->options, domain->periodic, domain->in_basis, box, t, own);
    for (int d = 0; d < 3; d++)
    {
        const int kept = !domain->periodic[d] && domain->cells_version != 0;
        own[4 * d]     = kept ? stretch * domain->box[4 * d] : own[4 * d];
    }
    const gmxfmm_status status = domain->tree != NULL ? fmm_domain_check_tree(plan, own) : GMXFMM_OK;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    memcpy(domain->given, box, sizeof(domain->given));
    memcpy(domain->in_basis, t, sizeof(t));
    if (memcmp(domain->box, own, sizeof(own)) == 0)
    {
        return GMXFMM_OK;
    }
    set_box(domain, own);
    if (domain->cells_version == 0 || domain->cells.num_cells == 0)
    {
        return GMXFMM_OK;
    }
    domain->cells.origin[2] *= stretch;
    domain->root_cells.origin[2] *= stretch;
    memcpy(before, domain->cells.cell, sizeof(before));
    fmm_cells_deform(&domain->cells, own);
    if (domain->tree != NULL)
    {
        fmm_cells_deform(&domain->root_cells, own);
    }
    for (int i = 0; i < 9; i++)
    {
        change = fmax(change, fabs(domain->cells.cell[i] - before[i]) / domain->cells.lambda);
    }
    domain->cells_version = change < c_otherShape ? domain->cells_version : 0;
    return GMXFMM_OK;
}

void fmm_domain_set_grid(gmxfmm_plan* plan, const int* grid, int separation)
{
    memcpy(plan->domain.grid, grid, sizeof(plan->domain.grid));
    plan->domain.separation = separation;
    plan->domain.version++;
}

void fmm_domain_set_depth(gmxfmm_plan* plan, int depth, int most, const int* roots)
{
    plan->domain.tree->depth = depth;
    plan->domain.tree->most  = most;
    memcpy(plan->domain.tree->roots, roots, sizeof(plan->domain.tree->roots));
    plan->domain.version++;
}

/* Moves the corner of the first cell; lengths of cells, and which of them are near, stay. */
static void set_origin(fmm_domain* domain, const double* origin)
{
    if (memcmp(domain->cells.origin, origin, sizeof(domain->cells.origin)) != 0)
    {
        memcpy(domain->cells.origin, origin, sizeof(domain->cells.origin));
        memcpy(domain->root_cells.origin, origin, sizeof(domain->root_cells.origin));
        domain->origin_version++;
    }
}

void fmm_domain_set_extent(gmxfmm_plan* plan, const double* low, const double* high, double edge)
{
    fmm_domain* domain = &plan->domain;
    double      box[9] = {0}, origin[3];
    for (int d = 0; d < 3; d++)
    {
        box[4 * d] = domain->grid[d] * edge;
        origin[d]  = 0.5 * (low[d] + high[d] - box[4 * d]);
    }
    set_origin(domain, origin);
    set_box(domain, box);
}

void fmm_domain_set_open(gmxfmm_plan* plan, const double* low, const double* high, double edge)
{
    fmm_domain* domain = &plan->domain;
    double      box[9], origin[3];
    memcpy(box, domain->box, sizeof(box));
    memcpy(origin, domain->cells.origin, sizeof(origin));
    for (int d = 0; d < 3; d++)
    {
        if (!domain->periodic[d])
        {
            box[4 * d] = domain->grid[d] * edge;
            origin[d]  = 0.5 * (low[d] + high[d] - box[4 * d]);
        }
    }
    set_origin(domain, origin);
    if (memcmp(box, domain->box, sizeof(box)) != 0)
    {
        set_box(domain, box);
    }
}

void fmm_domain_shift_cells(gmxfmm_plan* plan, const double* shift)
{
    fmm_domain* domain = &plan->domain;
    double      origin[3];
    for (int e = 0; e < 3; e++)
    {
        double by = 0;
        for (int d = 0; d < 3; d++)
        {
            by += domain->periodic[d] ? shift[d] / domain->grid[d] * domain->box[3 * d + e] : 0;
        }
        origin[e] = domain->periodic[e] ? by : domain->cells.origin[e];
    }
    set_origin(domain, origin);
}

gmxfmm_status fmm_domain_add_tree(gmxfmm_plan* plan)
{
    plan->domain.tree = calloc(1, sizeof(*plan->domain.tree));
    if (plan->domain.tree == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->bytes += sizeof(*plan->domain.tree);
    plan->domain.version++;
    return GMXFMM_OK;
}

gmxfmm_status fmm_domain_check_tree(gmxfmm_plan* plan, const double* box)
{
    return fmm_is_aligned(box) ? GMXFMM_OK
                               : fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                                          "an octree (m2l = rotation, symmetric, dynamic or naive) needs a "
                                          "rectangular box with its vectors along x, y and z: for this box use "
                                          "m2l = fft");
}

static gmxfmm_status set_cells(fmm_domain* d, int order)
{
    if (d->tree == NULL)
    {
        return fmm_cells_set(&d->cells, d->box, d->grid, d->periodic, d->separation, order);
    }
    const gmxfmm_status status =
        fmm_cells_set_roots(&d->root_cells, d->box, d->tree->roots, d->periodic, d->separation, order);
    return status != GMXFMM_OK ? status
                               : fmm_cells_set_octree(&d->cells, d->box, d->grid, d->periodic, d->separation, order);
}

gmxfmm_status fmm_domain_make_cells(gmxfmm_plan* plan, int order)
{
    fmm_domain* d = &plan->domain;
    if (d->cells_version == d->version)
    {
        return GMXFMM_OK;
    }
    const gmxfmm_status status = set_cells(d, order);
    d->cells_version = d->near_version = status == GMXFMM_OK ? d->version : 0;
    return status == GMXFMM_OK             ? GMXFMM_OK
           : status == GMXFMM_ERROR_MEMORY ? fmm_fail(plan, status, "out of memory")
                                           : fmm_fail(plan, status,
                                                      "the cells of a grid of %d x %d x %d would be too long or too "
                                                      "skewed in this box: choose a more even grid",
                                                      d->grid[0], d->grid[1], d->grid[2]);
}

gmxfmm_status fmm_domain_make_lists(gmxfmm_plan* plan, int to_parent, int truncate, int order)
{
    const gmxfmm_status status = fmm_tree_lists(plan->domain.tree, &plan->domain.cells, to_parent, truncate, order);
    return status == GMXFMM_OK ? status : fmm_fail(plan, status, "out of memory for interaction lists");
}

void fmm_domain_without_cells(gmxfmm_plan* plan)
{
    plan->domain.cells_version = plan->domain.near_version = plan->domain.version;
}

int fmm_domain_near_holds(const gmxfmm_plan* plan)
{
    const fmm_domain* d = &plan->domain;
    return d->near_version == d->version || fmm_cells_near_holds(&d->cells, d->separation);
}

int fmm_domain_keep_near(gmxfmm_plan* plan)
{
    fmm_domain* d = &plan->domain;
    if (d->near_version != d->version && fmm_cells_keep_near(&d->cells, d->separation))
    {
        d->near_version = d->version;
    }
    return d->near_version == d->version;
}

void fmm_domain_free(gmxfmm_plan* plan)
{
    fmm_domain* d = &plan->domain;
    if (d->tree != NULL)
    {
        fmm_tree_lists_free(d->tree);
        free(d->tree);
        d->tree = NULL;
    }
    fmm_cells_free(&d->cells);
    fmm_cells_free(&d->root_cells);
}
