/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fftw3.h>

#include "assign.h"
#include "portable.h"

#ifdef _OPENMP
#    include <omp.h>
#endif

double fmm_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void* fmm_alloc(gmxfmm_plan* plan, size_t bytes)
{
    const size_t rounded = (bytes + FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN + FMM_ALIGN;
    void*        memory  = aligned_alloc(FMM_ALIGN, rounded);
    if (memory != NULL)
    {
        memset(memory, 0, rounded); /* padding must hold finite numbers */
        plan->bytes += rounded;
    }
    return memory;
}

static int is_double(const gmxfmm_plan* plan)
{
    return plan->options.precision == GMXFMM_DOUBLE;
}

/* Frees the arrays that grow with particles; the counter of bytes starts anew from the convolution's. */
static void free_particles(gmxfmm_plan* plan)
{
    void** pointers[] = {(void**)&plan->charge,
                         (void**)&plan->sorted,
                         (void**)&plan->position,
                         (void**)&plan->cell_of,
                         &plan->p.x,
                         &plan->p.y,
                         &plan->p.z,
                         &plan->p.q,
                         &plan->p.near_phi,
                         &plan->p.far_phi,
                         &plan->p.ex,
                         &plan->p.ey,
                         &plan->p.ez,
                         (void**)&plan->p.reference};
    for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++)
    {
        free(*pointers[i]);
        *pointers[i] = NULL;
    }
    plan->bytes -= plan->particle_bytes;
    plan->particle_bytes = 0;
    plan->n              = 0;
    plan->assigned       = 0;
}

static void free_grid(gmxfmm_plan* plan)
{
    fmm_conv_destroy_f(plan->conv_f);
    fmm_conv_destroy_d(plan->conv_d);
    free(plan->cell_start);
    free(plan->partial);
    plan->conv_f     = NULL;
    plan->conv_d     = NULL;
    plan->cell_start = NULL;
    plan->partial    = NULL;
    plan->bytes -= plan->grid_bytes;
    plan->grid_bytes     = 0;
    plan->spectra_valid  = 0;
    plan->geometry_valid = 0;
}

void gmxfmm_destroy(gmxfmm_plan* plan)
{
    if (plan != NULL)
    {
        free_particles(plan);
        fmm_free_exclusions(plan);
        free_grid(plan);
        fmm_cells_free(&plan->cells);
        free(plan->scratch);
        free(plan);
    }
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
    const double det = fmm_determinant(box);
    if (!(det > 1e-9 * longest * longest * longest))
    {
        snprintf(message, size, "box (%g %g %g) (%g %g %g) (%g %g %g) has volume %g: it must be positive", box[0],
                 box[1], box[2], box[3], box[4], box[5], box[6], box[7], box[8], det);
        return GMXFMM_ERROR_BOX;
    }
    return GMXFMM_OK;
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
#ifdef _OPENMP
    p->num_threads = options->num_threads > 0 ? options->num_threads : omp_get_max_threads();
#else
    p->num_threads = 1;
#endif
    /* The planner is the one part of FFTW that several threads may not enter at once by itself. */
    fftw_make_planner_thread_safe();
    fftwf_make_planner_thread_safe();
    if (p->periodic)
    {
        memcpy(p->box, box, sizeof(p->box));
        status = fmm_tune(p, num_particles, box);
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
    const gmxfmm_status status = check_box(box, plan->message, sizeof(plan->message));
    if (status == GMXFMM_OK && plan->periodic && memcmp(plan->box, box, sizeof(plan->box)) != 0)
    {
        memcpy(plan->box, box, sizeof(plan->box));
        plan->geometry_valid = 0; /* for the next assign, which may choose another near set */
        if (plan->assigned)
        {
            double before[9], change = 0;
            memcpy(before, plan->cells.cell, sizeof(before));
            fmm_cells_deform(&plan->cells, box);
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
    for (int64_t i = 0; i < n; i++)
    {
        const double qi =
            plan->options.array_type == GMXFMM_DOUBLE ? ((const double*)q)[i] : (double)((const float*)q)[i];
        if (!isfinite(qi))
        {
            return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "charge of particle %lld is %g: not finite", (long long)i, qi);
        }
    }
    if (n != plan->n || plan->charge == NULL)
    {
        free_particles(plan);
        fmm_free_exclusions(plan);
        const size_t before = plan->bytes, count = (size_t)n;
        const size_t real_bytes = (is_double(plan) ? sizeof(double) : sizeof(float)) * (count + FMM_ALIGN);
        void**       arrays[]   = {&plan->p.x,       &plan->p.y,  &plan->p.z,  &plan->p.q, &plan->p.near_phi,
                                   &plan->p.far_phi, &plan->p.ex, &plan->p.ey, &plan->p.ez};
        int          ok         = 1;
        for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        {
            *arrays[i] = fmm_alloc(plan, real_bytes);
            ok         = ok && *arrays[i] != NULL;
        }
        plan->charge         = fmm_alloc(plan, count * sizeof(double));
        plan->sorted         = fmm_alloc(plan, count * sizeof(int));
        plan->position       = fmm_alloc(plan, count * sizeof(int));
        plan->cell_of        = fmm_alloc(plan, count * sizeof(int));
        plan->p.reference    = fmm_alloc(plan, count * sizeof(*plan->p.reference));
        plan->particle_bytes = plan->bytes - before;
        if (!ok || !plan->charge || !plan->sorted || !plan->position || !plan->cell_of || !plan->p.reference)
        {
            free_particles(plan);
            return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)n);
        }
        plan->n = n;
    }
    plan->total_charge = 0;
    for (int64_t i = 0; i < n; i++)
    {
        plan->charge[i] =
            plan->options.array_type == GMXFMM_DOUBLE ? ((const double*)q)[i] : (double)((const float*)q)[i];
        plan->total_charge += plan->charge[i];
    }
    return plan->mask_start == NULL ? gmxfmm_set_exclusions(plan, NULL, NULL) : GMXFMM_OK;
}

/* How far the shape of the box may be from the one the spectra belong to. Boxes in single precision are scaled
 * isotropically only to rounding; the error made is of the same relative size, far below the asked accuracy. */
static double shape_tolerance(const gmxfmm_plan* plan)
{
    return is_double(plan) ? 1e-13 : fmin(1e-6, 0.01 * plan->options.accuracy);
}

static gmxfmm_status make_grid(gmxfmm_plan* plan)
{
    const size_t before = plan->bytes;
    const int    cells  = plan->cells.num_cells;
    /* enough slabs to share out, few enough to add up */
    plan->partial_rows   = cells < 256 ? cells : 256;
    plan->cell_start     = fmm_alloc(plan, ((size_t)cells + 1) * sizeof(int));
    plan->partial        = fmm_alloc(plan, (size_t)plan->partial_rows * FMM_PARTIAL * sizeof(double));
    gmxfmm_status status = GMXFMM_OK;
    if (!plan->cell_start || !plan->partial)
    {
        status = fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d cells", cells);
    }
    status = status == GMXFMM_OK ? (is_double(plan) ? fmm_conv_create_d(plan) : fmm_conv_create_f(plan)) : status;
    plan->grid_bytes = plan->bytes - before;
    return status;
}

/* Makes ready for new spectra if those that exist are not of the present shape and near set. */
static gmxfmm_status shape_changed(gmxfmm_plan* plan)
{
    const fmm_cells* c      = &plan->cells;
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
    return is_double(plan) ? fmm_conv_set_shape_d(plan) : fmm_conv_set_shape_f(plan);
}

/* Cells from scratch, at create and assign. */
gmxfmm_status fmm_update_geometry(gmxfmm_plan* plan)
{
    if (plan->geometry_valid)
    {
        return GMXFMM_OK;
    }
    int before[3];
    memcpy(before, plan->cells.n, sizeof(before));
    plan->assigned = 0;
    gmxfmm_status status =
        fmm_cells_set(&plan->cells, plan->box, plan->inner, plan->periodic, plan->separation, plan->order);
    if (status != GMXFMM_OK)
    {
        return status == GMXFMM_ERROR_MEMORY ? fmm_fail(plan, status, "out of memory")
                                             : fmm_fail(plan, status,
                                                        "the cells of a grid of %d x %d x %d would be too long or too "
                                                        "skewed in this box: choose a more even grid",
                                                        plan->inner[0], plan->inner[1], plan->inner[2]);
    }
    if (plan->cell_start == NULL || memcmp(before, plan->cells.n, sizeof(before)) != 0)
    {
        free_grid(plan);
        status = make_grid(plan);
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
    if (plan == NULL || (x == NULL && plan->n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (plan->charge == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before assign");
    }
    gmxfmm_status status = fmm_assign_particles(plan, x);
    if (status == GMXFMM_OK)
    {
        status = is_double(plan) ? fmm_step_reserve_d(plan) : fmm_step_reserve_f(plan);
    }
    plan->assigned = status == GMXFMM_OK;
    plan->info.time_assign += fmm_time() - begin;
    return status;
}

gmxfmm_status gmxfmm_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    if (plan == NULL || output == NULL || (x == NULL && plan->n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL
                            : fmm_fail(plan, GMXFMM_ERROR_NULL, "%s is NULL", output == NULL ? "output" : "x");
    }
    if (!plan->assigned)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                        "assign must come before execute, and after another number of particles, new exclusions or a "
                        "box of quite another shape");
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

gmxfmm_status gmxfmm_get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    if (plan == NULL || info == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    *info                = plan->info;
    info->num_particles  = plan->n;
    info->m2l            = GMXFMM_M2L_FFT;
    info->precision      = plan->options.precision;
    info->order          = plan->order;
    info->depth          = -1;
    info->separation     = plan->separation;
    info->num_near_cells = plan->cells.num_near;
    info->num_threads    = plan->num_threads;
    info->bytes          = plan->bytes;
    int used             = 1;
    for (int d = 0; d < 3; d++)
    {
        info->grid[d] = plan->inner[d];
        used *= plan->inner[d];
    }
    const int64_t n      = plan->charge != NULL ? plan->n : plan->expected;
    info->near_particles = used > 0 ? (double)n / used * plan->cells.num_near : 0;
    info->predicted_error = plan->predicted_error;
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
