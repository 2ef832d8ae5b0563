/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The FMM's row for the CPU in the table of backends, in each precision. */
#include <stdlib.h>

#include "fmm/backend.h"
#include "fmm/cpu/costs.h"
#include "fmm/particles.h"
#include "fmm/cpu/assign.h"
#include "fmm/cpu/execute.h"
#include "fmm/cpu/ranks.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/convolution/convolution.h"
#include "fmm/cpu/octree/octree.h"

static gmxfmm_status check(int id, char* message, size_t size)
{
    (void)id;
    (void)message;
    (void)size;
    return GMXFMM_OK;
}

static gmxfmm_status create(gmxfmm_plan* plan)
{
    plan->cpu = calloc(1, sizeof(*plan->cpu));
    return plan->cpu != NULL ? fmm_shares_create(plan) : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
}

/* Room for them: the next step sorts them. */
static gmxfmm_status set_charges(gmxfmm_plan* plan)
{
    fmm_particle_set* p = &plan->cpu->sources;
    if (p->sorted != NULL && p->n == plan->particles.n)
    {
        return GMXFMM_OK;
    }
    const size_t  before      = plan->bytes;
    gmxfmm_status status      = fmm_particle_set_alloc(plan, p, plan->particles.n);
    plan->cpu->near_particles = 0;
    if (status == GMXFMM_OK && p->charge == NULL)
    {
        p->charge = fmm_alloc(plan, (size_t)p->room * sizeof(double));
        p->bytes  = plan->bytes - before;
        status    = p->charge != NULL ? GMXFMM_OK : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for charges");
    }
    return status;
}

/* The same for dipoles, and for what targets get of them. */
static gmxfmm_status set_dipoles(gmxfmm_plan* plan)
{
    const gmxfmm_status status = fmm_particle_set_dipoles(plan, &plan->cpu->sources, 1);
    return status == GMXFMM_OK ? fmm_particle_set_dipoles(plan, &plan->cpu->targets, 0) : status;
}

static gmxfmm_status set_targets(gmxfmm_plan* plan, const void* x)
{
    fmm_particle_set* p      = &plan->cpu->targets;
    gmxfmm_status     status = GMXFMM_OK;
    if (p->n != plan->particles.num_targets)
    {
        status = fmm_particle_set_alloc(plan, p, plan->particles.num_targets);
        status = status == GMXFMM_OK ? fmm_particle_set_dipoles(plan, p, 0) : status;
    }
    status = status == GMXFMM_OK ? fmm_particles_keep_targets(plan, x) : status;
    if (status != GMXFMM_OK || plan->particles.num_targets == 0)
    {
        fmm_particle_set_free(plan, p);
    }
    return status;
}

static void free_exclusions(gmxfmm_plan* plan)
{
    fmm_cpu* cpu = plan->cpu;
    if (cpu != NULL)
    {
        free(cpu->mask_start); /* and the arrays behind it */
        free(cpu->far_places);
        cpu->mask_start = cpu->mask_far = cpu->mask = NULL;
        cpu->images                                 = NULL;
        cpu->far_places                             = NULL;
        plan->bytes -= cpu->exclusion_bytes + cpu->far_capacity;
        cpu->exclusion_bytes = cpu->far_capacity = 0;
    }
}

/* Room for what assign makes of them. That of others is kept where it is not much more. */
static gmxfmm_status set_exclusions(gmxfmm_plan* plan, const int* start, const int* list, int64_t n)
{
    fmm_cpu*     cpu          = plan->cpu;
    const size_t of_particles = (size_t)n, num = start != NULL ? (size_t)start[n] : 0, rows = of_particles + num;
    const size_t bytes = (2 * of_particles + 1 + rows + (num > 0 ? rows : 0)) * sizeof(int);
    (void)list;
    if (cpu->mask_start == NULL || cpu->exclusion_bytes < bytes || cpu->exclusion_bytes / 2 > bytes)
    {
        free_exclusions(plan);
        const size_t before  = plan->bytes;
        cpu->mask_start      = fmm_alloc(plan, plan->shared ? bytes + bytes / 8 : bytes); /* particles come and go */
        cpu->exclusion_bytes = plan->bytes - before;
    }
    if (cpu->mask_start == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %zu exclusions", num);
    }
    cpu->mask_far = cpu->mask_start + of_particles + 1;
    cpu->mask     = cpu->mask_far + of_particles;
    cpu->images   = num > 0 ? (unsigned*)(cpu->mask + rows) : NULL;
    return GMXFMM_OK;
}

static void free_grid(gmxfmm_plan* plan)
{
    fmm_cpu* cpu = plan->cpu;
    if (cpu != NULL)
    {
        fmm_conv_destroy(cpu->conv);
        fmm_operators_destroy(cpu->ops);
        free(cpu->partial);
        cpu->conv    = NULL;
        cpu->ops     = NULL;
        cpu->partial = NULL;
        plan->bytes -= cpu->grid_bytes;
        cpu->grid_bytes = 0;
    }
}

/* Rows of partial sums: enough for all threads and ranks, and few enough to add up. */
static void set_rows(gmxfmm_plan* plan)
{
    enum
    {
        c_least = 256,
        c_most  = 1024
    };
    fmm_cpu*  cpu    = plan->cpu;
    const int blocks = (plan->domain.cells.num_cells + FMM_BLOCK - 1) / FMM_BLOCK;
    cpu->block_rows  = 1;
    if (plan->domain.tree != NULL)
    {
        cpu->partial_rows = c_least;
        return;
    }
    while (cpu->block_rows < FMM_BLOCK && cpu->block_rows * blocks < c_least)
    {
        cpu->block_rows *= 2;
    }
    cpu->partial_rows = cpu->block_rows > 1 || blocks < c_most ? cpu->block_rows * blocks : c_most;
}

static gmxfmm_status set_grid(gmxfmm_plan* plan)
{
    fmm_cpu*     cpu    = plan->cpu;
    const size_t before = plan->bytes;
    set_rows(plan);
    fmm_shares_even(plan);
    cpu->partial = fmm_alloc(plan, (size_t)cpu->partial_rows * FMM_PARTIAL * sizeof(double));
    cpu->path    = plan->domain.tree != NULL ? &fmm_octree_path : &fmm_cells_path;
    const gmxfmm_status status =
        cpu->partial != NULL
            ? cpu->path->create(plan)
            : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d cells", plan->domain.cells.num_cells);
    cpu->grid_bytes = plan->bytes - before;
    return status;
}

static gmxfmm_status set_shape(gmxfmm_plan* plan)
{
    return plan->cpu->path->set_shape(plan);
}

static void destroy(gmxfmm_plan* plan)
{
    if (plan->cpu != NULL)
    {
        fmm_particle_set_free(plan, &plan->cpu->sources);
        fmm_particle_set_free(plan, &plan->cpu->targets);
        fmm_levels_free(plan);
        fmm_leaves_free(plan);
        fmm_shares_free(plan);
        free(plan->cpu->widths.memory);
        free(plan->cpu->widths.images);
        free(plan->cpu->scratch);
        free(plan->cpu);
        plan->cpu = NULL;
    }
}

static gmxfmm_status on_host(gmxfmm_plan* plan, const void** x, size_t num)
{
    (void)plan; /* it is there */
    (void)x;
    (void)num;
    return GMXFMM_OK;
}

static unsigned capabilities(const gmxfmm_plan* plan)
{
    const unsigned of_charges = GMXFMM_CAN_VIRIAL | GMXFMM_CAN_CHARGE_GRADIENT;
    const unsigned always     = GMXFMM_CAN_EXCLUDE | GMXFMM_CAN_TARGETS;
    return (plan->particles.num_targets == 0 ? of_charges : 0) |
           (plan->charges.width == NULL ? GMXFMM_CAN_DIPOLES : 0) | (fmm_has_dipoles(plan) ? 0 : GMXFMM_CAN_WIDTHS) |
           always;
}

static void get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    info->num_cells = fmm_num_cells(plan);
    if (plan->cpu->near_particles > 0)
    {
        info->near_particles = plan->cpu->near_particles;
    }
}

#define NEEDS_CUDA "steps on a stream need a plan with device = cuda"

extern const fmm_backend fmm_backend_divided; /* ranks/backend.c */
extern const fmm_backend fmm_backend_cpu;
const fmm_backend        fmm_backend_cpu = {
           .method     = GMXFMM_FMM,
           .device     = GMXFMM_CPU,
           .level      = FMM_LEVEL,
           .precisions = 1U << (sizeof(real) == sizeof(double) ? GMXFMM_DOUBLE : GMXFMM_SINGLE),
           .m2l = 1U << GMXFMM_M2L_FFT | 1U << GMXFMM_M2L_ROTATION | 1U << GMXFMM_M2L_SYMMETRIC | 1U << GMXFMM_M2L_NAIVE,
           .max_order          = GMXFMM_MAX_ORDER,
           .max_rotation_order = GMXFMM_MAX_ORDER,
           .has_octree_options = 1,
           .has_along          = 1,
           .has_widths         = 1,
           .costs              = &fmm_costs_cpu,
           .no_enqueue         = NEEDS_CUDA,
           .no_enqueue_assign  = NEEDS_CUDA,
           .no_enqueue_charges = NEEDS_CUDA,
           .no_time_stages     = NEEDS_CUDA,

           .capabilities    = capabilities,
           .check           = check,
           .create          = create,
           .destroy         = destroy,
           .set_charges     = set_charges,
           .set_dipoles     = set_dipoles,
           .set_targets     = set_targets,
           .set_exclusions  = set_exclusions,
           .free_exclusions = free_exclusions,
           .set_grid        = set_grid,
           .free_grid       = free_grid,
           .set_shape       = set_shape,
           .on_host         = on_host,
           .extent          = fmm_cpu_extent,
           .assign          = fmm_cpu_assign,
           .execute         = fmm_step,
           .get_info        = get_info,

           .on_ranks = &fmm_backend_divided,
};
