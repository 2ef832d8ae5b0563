/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fmm/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fftw3.h>

#include "fmm/cpu/assign.h"
#include "cuda/device.h"
#include "fmm/math/harmonics.h"
#include "fmm/cpu/operators/operators.h"
#include "fmm/math/portable.h"
#include "fmm/tuning/tune.h"

#ifdef _OPENMP
#    include <omp.h>
#endif

double fmm_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sets memory to zero by all threads: where there are gigabytes of it, for a box with a million roots, say, most of the
 * time that a plan takes goes into this first touch. */
static void clear(char* memory, size_t bytes, int num_threads)
{
    const size_t part = (size_t)1 << 24;
    const int    num  = (int)((bytes + part - 1) / part);
#pragma omp parallel for num_threads(num_threads) schedule(static) if (num > 1)
    for (int i = 0; i < num; i++)
    {
        const size_t begin = (size_t)i * part;
        memset(memory + begin, 0, bytes - begin < part ? bytes - begin : part);
    }
    (void)num_threads; /* without OpenMP */
}

void* fmm_alloc(gmxfmm_plan* plan, size_t bytes)
{
    const size_t rounded = (bytes + FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN + FMM_ALIGN;
    void*        memory  = aligned_alloc(FMM_ALIGN, rounded);
    if (memory != NULL)
    {
        clear(memory, rounded, plan->num_threads); /* padding must hold finite numbers */
        plan->bytes += rounded;
    }
    return memory;
}

static int is_double(const gmxfmm_plan* plan)
{
    return plan->options.precision == GMXFMM_DOUBLE;
}

/* Everything that belongs to the charges. */
static void free_charges(gmxfmm_plan* plan)
{
    fmm_particles_free(plan, &plan->p);
    free(plan->charge);
    plan->bytes -= plan->charge_bytes;
    plan->charge       = NULL;
    plan->charge_bytes = 0;
}

static void free_receivers(gmxfmm_plan* plan)
{
    fmm_particles_free(plan, &plan->receivers);
    free(plan->receiver_x);
    plan->bytes -= plan->receiver_bytes;
    plan->receiver_x     = NULL;
    plan->receiver_bytes = 0;
}

static void free_grid(gmxfmm_plan* plan)
{
    fmm_conv_destroy_f(plan->conv_f);
    fmm_conv_destroy_d(plan->conv_d);
    fmm_operators_destroy_f(plan->ops_f);
    fmm_operators_destroy_d(plan->ops_d);
    free(plan->partial);
    plan->conv_f  = NULL;
    plan->conv_d  = NULL;
    plan->ops_f   = NULL;
    plan->ops_d   = NULL;
    plan->partial = NULL;
    plan->bytes -= plan->grid_bytes;
    plan->grid_bytes     = 0;
    plan->spectra_valid  = 0;
    plan->geometry_valid = 0;
}

void gmxfmm_destroy(gmxfmm_plan* plan)
{
    if (plan != NULL)
    {
        free_charges(plan);
        free_receivers(plan);
        fmm_free_exclusions(plan);
        free_grid(plan);
        fmm_tree_free(plan);
        fmm_device_destroy(plan);
        fmm_cells_free(&plan->cells);
        fmm_cells_free(&plan->root_cells);
        free(plan->scratch);
        free(plan->cache_dir);
        free(plan);
    }
}

static double row_length(const double* row)
{
    return sqrt(row[0] * row[0] + row[1] * row[1] + row[2] * row[2]);
}

static gmxfmm_status check_box(const double* box, char* message, size_t size)
{
    double longest = 0;
    for (int i = 0; i < 9; i++)
    {
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
    const double det = fmm_determinant(box);
    if (!(det > 1e-9 * row_length(box) * row_length(box + 3) * row_length(box + 6)))
    {
        snprintf(message, size, "box (%g %g %g) (%g %g %g) (%g %g %g) has volume %g: it must be positive", box[0],
                 box[1], box[2], box[3], box[4], box[5], box[6], box[7], box[8], det);
        return GMXFMM_ERROR_BOX;
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_add_tree(gmxfmm_plan* plan)
{
    plan->tree = calloc(1, sizeof(*plan->tree));
    if (plan->tree == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->bytes += sizeof(*plan->tree);
    return GMXFMM_OK;
}

/* Order, cells and ws for the box. Where a convolution over all of a long or flat box cannot be had, or not as exact,
 * an octree can: its cells are cubes, or nearly. */
static gmxfmm_status choose_periodic(gmxfmm_plan* plan)
{
    const gmxfmm_options* o = &plan->options;
    if (plan->tree != NULL)
    {
        return fmm_tune_tree(plan, plan->expected, plan->box);
    }
    gmxfmm_status status = fmm_tune(plan, plan->expected, plan->box);
    const int     failed = status == GMXFMM_ERROR_UNSUPPORTED || status == GMXFMM_ERROR_OPTION;
    if (failed && o->m2l == GMXFMM_M2L_AUTO && o->grid[0] == 0 && fmm_is_aligned(plan->box))
    {
        status = fmm_add_tree(plan);
        status = status == GMXFMM_OK ? fmm_tune_tree(plan, plan->expected, plan->box) : status;
        if (status == GMXFMM_OK)
        {
            plan->message[0] = '\0'; /* of the convolution, which is not taken */
        }
    }
    return status;
}

gmxfmm_status gmxfmm_create(gmxfmm_plan**         plan,
                            const gmxfmm_options* options,
                            int64_t               num_particles,
                            const double*         box,
                            char*                 message,
                            size_t                message_size)
{
    char  own[256];
    char* text = message != NULL && message_size > 0 ? message : own;
    if (text == own)
    {
        message_size = sizeof(own);
    }
    text[0] = '\0';
    if (plan == NULL || options == NULL)
    {
        snprintf(text, message_size, "plan and options must not be NULL");
        return GMXFMM_ERROR_NULL;
    }
    *plan                = NULL;
    gmxfmm_status status = fmm_check_options(options, text, message_size);
    if (status == GMXFMM_OK && num_particles < 0)
    {
        snprintf(text, message_size, "number of particles is %lld, it must not be negative", (long long)num_particles);
        status = GMXFMM_ERROR_OPTION;
    }
    if (status == GMXFMM_OK && box == NULL && options->boundary != GMXFMM_OPEN)
    {
        snprintf(text, message_size, "a periodic system needs a box");
        status = GMXFMM_ERROR_NULL;
    }
    if (status == GMXFMM_OK && options->boundary != GMXFMM_OPEN)
    {
        status = check_box(box, text, message_size);
    }
    if (status != GMXFMM_OK)
    {
        return status;
    }
    gmxfmm_plan* p = calloc(1, sizeof(*p));
    if (p == NULL)
    {
        snprintf(text, message_size, "out of memory");
        return GMXFMM_ERROR_MEMORY;
    }
    p->options  = *options;
    p->bytes    = sizeof(*p);
    p->periodic = options->boundary != GMXFMM_OPEN;
    p->expected = num_particles;
    p->m2l      = options->m2l == GMXFMM_M2L_AUTO ? GMXFMM_M2L_FFT : options->m2l;
#ifdef _OPENMP
    p->num_threads = options->num_threads > 0 ? options->num_threads : omp_get_max_threads();
#else
    p->num_threads = 1;
#endif
    /* The planner is the one part of FFTW that several threads may not enter at once by itself. */
    fftw_make_planner_thread_safe();
    fftwf_make_planner_thread_safe();
    p->options.cache_dir = NULL;
    if (options->cache_dir != NULL)
    {
        p->options.cache_dir = p->cache_dir = strdup(options->cache_dir);
        status = p->cache_dir != NULL ? GMXFMM_OK : fmm_fail(p, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    if (status == GMXFMM_OK && options->device != GMXFMM_CPU)
    {
        status = fmm_device_create(p);
    }
    if (status == GMXFMM_OK && p->m2l != GMXFMM_M2L_FFT)
    {
        status = fmm_add_tree(p);
    }
    if (p->periodic && status == GMXFMM_OK)
    {
        memcpy(p->box, box, sizeof(p->box));
        status = choose_periodic(p);
        status = status == GMXFMM_OK ? fmm_update_geometry(p) : status;
    }
    if (status != GMXFMM_OK)
    {
        snprintf(text, message_size, "%s", p->message);
        gmxfmm_destroy(p);
        return status;
    }
    *plan = p;
    return GMXFMM_OK;
}

static gmxfmm_status shape_changed(gmxfmm_plan* plan);

gmxfmm_status gmxfmm_set_box(gmxfmm_plan* plan, const double* box)
{
    if (plan == NULL || box == NULL)
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "box is NULL");
    }
    gmxfmm_status status = check_box(box, plan->message, sizeof(plan->message));
    if (status == GMXFMM_OK && plan->tree != NULL && plan->periodic)
    {
        status = fmm_tree_check_box(plan, box);
    }
    if (status == GMXFMM_OK && plan->periodic && memcmp(plan->box, box, sizeof(plan->box)) != 0)
    {
        memcpy(plan->box, box, sizeof(plan->box));
        plan->geometry_valid = 0; /* for the next assign, which may choose another near set */
        plan->near_valid     = 0;
        if (plan->assigned)
        {
            double before[9], change = 0;
            memcpy(before, plan->cells.cell, sizeof(before));
            fmm_cells_deform(&plan->cells, box);
            if (plan->tree != NULL)
            {
                fmm_cells_deform(&plan->root_cells, box);
            }
            for (int i = 0; i < 9; i++)
            {
                change = fmax(change, fabs(plan->cells.cell[i] - before[i]) / plan->cells.lambda);
            }
            /* other vectors of the same lattice, say: particles and near vectors no longer belong to these cells */
            plan->assigned = change < 0.2;
            return shape_changed(plan);
        }
    }
    return status;
}

gmxfmm_status gmxfmm_set_charges(gmxfmm_plan* plan, int64_t n, const void* q)
{
    if (plan == NULL || (q == NULL && n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "charges are NULL");
    }
    if (n < 0 || n > INT32_MAX / 4)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "number of particles is %lld, allowed is 0 to %d", (long long)n,
                        INT32_MAX / 4);
    }
    if (plan->device != NULL)
    {
        const gmxfmm_status status = fmm_device_on_host(plan, &q, (size_t)n);
        if (status != GMXFMM_OK)
        {
            return status;
        }
    }
    for (int64_t i = 0; i < n; i++)
    {
        const double qi =
            plan->options.array_type == GMXFMM_DOUBLE ? ((const double*)q)[i] : (double)((const float*)q)[i];
        if (!isfinite(qi))
        {
            return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "charge of particle %lld is %g: not finite", (long long)i, qi);
        }
    }
    if (n != plan->p.n || plan->charge == NULL)
    {
        free_charges(plan);
        fmm_free_exclusions(plan);
        plan->near_particles       = 0;
        const gmxfmm_status status = fmm_particles_alloc(plan, &plan->p, n);
        if (status != GMXFMM_OK)
        {
            return status;
        }
        const size_t before = plan->bytes;
        plan->charge        = fmm_alloc(plan, (size_t)n * sizeof(double));
        plan->charge_bytes  = plan->bytes - before;
        if (plan->charge == NULL)
        {
            free_charges(plan);
            return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)n);
        }
    }
    plan->total_charge = 0;
    for (int64_t i = 0; i < n; i++)
    {
        plan->charge[i] =
            plan->options.array_type == GMXFMM_DOUBLE ? ((const double*)q)[i] : (double)((const float*)q)[i];
        plan->total_charge += plan->charge[i];
    }
    if (plan->device != NULL)
    {
        const gmxfmm_status status = fmm_device_set_charges(plan);
        if (status != GMXFMM_OK)
        {
            return status;
        }
    }
    return plan->mask_start == NULL ? gmxfmm_set_exclusions(plan, NULL, NULL) : GMXFMM_OK;
}

/* How far the shape of the box may be from the one the spectra belong to. Boxes in single precision are scaled
 * isotropically only to rounding; the error made is of the same relative size, far below the asked accuracy. */
static double shape_tolerance(const gmxfmm_plan* plan)
{
    return is_double(plan) ? 1e-13 : fmin(1e-6, 0.01 * plan->options.accuracy);
}

/* On the CPU, receivers are kept in double precision. */
static gmxfmm_status copy_receivers(gmxfmm_plan* plan, const void* x)
{
    const size_t num = 3 * (size_t)plan->receivers.n;
    if (plan->receiver_x == NULL)
    {
        const size_t before  = plan->bytes;
        plan->receiver_x     = fmm_alloc(plan, num * sizeof(double));
        plan->receiver_bytes = plan->bytes - before;
    }
    if (plan->receiver_x == NULL)
    {
        const long long n = plan->receivers.n;
        free_receivers(plan);
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld receivers", n);
    }
    for (size_t i = 0; i < num; i++)
    {
        plan->receiver_x[i] =
            plan->options.array_type == GMXFMM_DOUBLE ? ((const double*)x)[i] : (double)((const float*)x)[i];
    }
    return GMXFMM_OK;
}

gmxfmm_status gmxfmm_set_receivers(gmxfmm_plan* plan, int64_t n, const void* x)
{
    if (plan == NULL || (x == NULL && n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (n < 0 || n > INT32_MAX / 4)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "number of receivers is %lld, allowed is 0 to %d", (long long)n,
                        INT32_MAX / 4);
    }
    plan->assigned = 0;
    if (n != plan->receivers.n)
    {
        free_receivers(plan);
        const gmxfmm_status status = n > 0 ? fmm_particles_alloc(plan, &plan->receivers, n) : GMXFMM_OK;
        if (status != GMXFMM_OK)
        {
            return status;
        }
    }
    return plan->device != NULL ? fmm_device_set_receivers(plan, x) : copy_receivers(plan, x);
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
    if (status != GMXFMM_OK)
    {
        return fmm_fail(plan, status, "out of memory for interaction lists");
    }
    if (plan->device != NULL)
    {
        return GMXFMM_OK; /* it has its own */
    }
    return is_double(plan) ? fmm_operators_create_d(plan) : fmm_operators_create_f(plan);
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
    if (status == GMXFMM_OK && plan->device != NULL)
    {
        status = fmm_device_set_grid(plan);
    }
    else if (status == GMXFMM_OK && (plan->tree == NULL || plan->periodic))
    {
        status = is_double(plan) ? fmm_conv_create_d(plan) : fmm_conv_create_f(plan);
    }
    plan->grid_bytes = plan->bytes - before;
    return status;
}

/* Makes ready for new spectra if those that exist are not of the present shape and near set. */
static gmxfmm_status shape_changed(gmxfmm_plan* plan)
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
    if (plan->device != NULL)
    {
        plan->spectra_near = near;
        memcpy(plan->spectra_cell, c->cell, sizeof(plan->spectra_cell));
        const gmxfmm_status status = fmm_device_set_shape(plan);
        plan->spectra_valid        = status == GMXFMM_OK; /* as far as the host is concerned */
        return status;
    }
    plan->spectra_valid = 0;
    plan->spectra_near  = near;
    memcpy(plan->spectra_cell, c->cell, sizeof(plan->spectra_cell));
    if (plan->tree != NULL)
    {
        is_double(plan) ? fmm_operators_set_shape_d(plan) : fmm_operators_set_shape_f(plan);
    }
    if (plan->tree != NULL && !plan->periodic)
    {
        plan->spectra_valid = plan->virial_spectra_valid = 1; /* no root is far from another: there are no sums */
        return GMXFMM_OK;
    }
    return is_double(plan) ? fmm_conv_set_shape_d(plan) : fmm_conv_set_shape_f(plan);
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

/* Cells from scratch, at create and assign. */
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
        free_grid(plan);
        status                = make_grid(plan);
        plan->grid_order      = plan->order;
        plan->grid_separation = plan->separation;
        memcpy(plan->grid_n, plan->tree != NULL ? plan->root_cells.n : plan->cells.n, sizeof(plan->grid_n));
        if (status != GMXFMM_OK)
        {
            free_grid(plan);
            return status;
        }
    }
    status               = shape_changed(plan);
    plan->geometry_valid = status == GMXFMM_OK;
    return status;
}

gmxfmm_status gmxfmm_assign(gmxfmm_plan* plan, const void* x)
{
    const double begin = fmm_time();
    if (plan == NULL || (x == NULL && plan->p.n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (plan->charge == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before assign");
    }
    if (plan->receivers.n > 0 && plan->excl_start != NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "exclusions are of no use with receivers: set one or the other");
    }
    gmxfmm_status status = fmm_assign_particles(plan, x);
    if (status == GMXFMM_OK && plan->device == NULL)
    {
        status = is_double(plan) ? fmm_step_reserve_d(plan) : fmm_step_reserve_f(plan);
    }
    if (status == GMXFMM_OK && plan->tree != NULL && plan->device == NULL)
    {
        const size_t before = plan->bytes;
        status              = is_double(plan) ? fmm_operators_reserve_d(plan) : fmm_operators_reserve_f(plan);
        plan->grid_bytes += plan->bytes - before;
    }
    plan->assigned = status == GMXFMM_OK;
    plan->info.time_assign += fmm_time() - begin;
    return status;
}

static gmxfmm_status not_assigned(gmxfmm_plan* plan)
{
    return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                    "assign must come before execute, and after another number of particles, new exclusions or a "
                    "box of quite another shape");
}

gmxfmm_status gmxfmm_enqueue_box(gmxfmm_plan* plan, const double* box, void* stream)
{
    const gmxfmm_status status = gmxfmm_set_box(plan, box);
    return status == GMXFMM_OK && plan->assigned && plan->options.device == GMXFMM_CUDA
               ? fmm_device_enqueue_spectra(plan, stream)
               : status;
}

gmxfmm_status gmxfmm_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream)
{
    if (plan == NULL || (x == NULL && plan->p.n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (plan->device == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "enqueue_assign needs a plan with device = cuda");
    }
    if (!fmm_enqueues_assign(plan))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "enqueue_assign does not take %s: call gmxfmm_assign",
                        plan->receivers.n > 0 ? "receivers"
                        : plan->periodic      ? "the cells of an octree"
                                              : "an open system");
    }
    if (!plan->assigned)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                        "gmxfmm_assign must come before enqueue_assign, and after another number of particles, new "
                        "exclusions or a box of quite another shape");
    }
    if (!plan->geometry_valid && !plan->near_valid)
    {
        if (!fmm_cells_keep_near(&plan->cells, plan->separation))
        {
            return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                            "other cells are near each other in the box as it is now: call gmxfmm_assign");
        }
        plan->near_valid = 1;
    }
    return fmm_device_enqueue_assign(plan, x, stream);
}

static gmxfmm_status check_wanted(gmxfmm_plan* plan, const void* force, int energy, int virial)
{
    if (plan->receivers.n > 0 && (force != NULL || energy || virial))
    {
        return fmm_fail(
            plan, GMXFMM_ERROR_OPTION,
            "with receivers there are a potential and a field, no forces, energies or virial of the charges");
    }
    return GMXFMM_OK;
}

gmxfmm_status gmxfmm_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    if (plan == NULL || output == NULL || (x == NULL && plan->p.n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL
                            : fmm_fail(plan, GMXFMM_ERROR_NULL, "%s is NULL", output == NULL ? "output" : "x");
    }
    if (!plan->assigned)
    {
        return not_assigned(plan);
    }
    gmxfmm_status status = check_wanted(plan, output->force, output->want_energy, output->want_virial);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (plan->device != NULL)
    {
        plan->info.num_executes++;
        return fmm_device_execute(plan, x, output);
    }
    if (!plan->spectra_valid || (output->want_virial && !plan->virial_spectra_valid))
    {
        const double begin = fmm_time();
        is_double(plan) ? fmm_conv_spectra_d(plan, output->want_virial) : fmm_conv_spectra_f(plan, output->want_virial);
        plan->info.time_spectra += fmm_time() - begin;
    }
    plan->info.num_executes++;
    return is_double(plan) ? fmm_step_d(plan, x, output) : fmm_step_f(plan, x, output);
}

gmxfmm_status gmxfmm_enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, void* stream)
{
    if (plan == NULL || output == NULL || (x == NULL && plan->p.n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL
                            : fmm_fail(plan, GMXFMM_ERROR_NULL, "%s is NULL", output == NULL ? "output" : "x");
    }
    if (plan->device == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "enqueue needs a plan with device = cuda");
    }
    if (!plan->assigned)
    {
        return not_assigned(plan);
    }
    const gmxfmm_status status = check_wanted(plan, output->force, output->energy != NULL, output->virial != NULL);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    plan->info.num_executes++;
    return fmm_device_enqueue(plan, x, output, stream);
}

gmxfmm_status gmxfmm_get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    if (plan == NULL || info == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    *info                = plan->info;
    info->num_particles  = plan->p.n;
    info->m2l            = plan->m2l;
    info->precision      = plan->options.precision;
    info->order          = plan->order;
    info->depth          = plan->tree != NULL ? plan->tree->depth : -1;
    info->num_cells      = plan->num_cells;
    info->separation     = plan->separation;
    info->num_near_cells = plan->cells.num_near;
    info->num_threads    = plan->num_threads;
    info->bytes          = plan->bytes;
    double used          = plan->tree != NULL && plan->assigned ? plan->num_cells : 1;
    for (int d = 0; d < 3; d++)
    {
        info->grid[d] = plan->inner[d];
        used *= plan->tree != NULL && plan->assigned ? 1 : plan->inner[d];
    }
    const int64_t n       = plan->charge != NULL ? plan->p.n : plan->expected;
    const double  near    = used > 0 ? (double)n / used * plan->cells.num_near : 0;
    info->near_particles  = plan->near_particles > 0 ? plan->near_particles
                            : plan->periodic         ? near
                                             : fmin(near, (double)n); /* near sets reach beyond an open system */
    info->predicted_error = plan->predicted_error;
    info->measured_error  = plan->options.measured_error;
    info->measured_time   = plan->options.measured_time;
    info->near_range      = plan->cells.near_range * plan->cells.edge;
    return GMXFMM_OK;
}

void gmxfmm_reset_times(gmxfmm_plan* plan)
{
    if (plan != NULL)
    {
        memset(&plan->info, 0, sizeof(plan->info));
    }
}
