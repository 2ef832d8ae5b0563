/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that a plan counts: in general, and arrays that grow with the charges or the receivers. */
#include <stdlib.h>
#include <string.h>

#include "fmm/plan.h"
#include "fmm/math/portable.h"

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

int fmm_grow(gmxfmm_plan* plan, void** memory, size_t* capacity, size_t bytes)
{
    if (*memory != NULL && *capacity >= bytes)
    {
        return 1;
    }
    free(*memory);
    plan->bytes -= *capacity;
    const size_t before = plan->bytes;
    *memory             = fmm_alloc(plan, bytes + bytes / 8); /* numbers fluctuate from search to search */
    *capacity           = plan->bytes - before;
    return *memory != NULL;
}

void fmm_particles_free(gmxfmm_plan* plan, fmm_particles* p)
{
    void* pointers[] = {p->sorted, p->position, p->cell_of, p->cell_start, p->x,  p->y,  p->z,
                        p->q,      p->near_phi, p->far_phi, p->ex,         p->ey, p->ez, p->reference};
    for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++)
    {
        free(pointers[i]);
    }
    plan->bytes -= p->bytes;
    memset(p, 0, sizeof(*p));
    plan->assigned = 0;
}

gmxfmm_status fmm_particles_alloc(gmxfmm_plan* plan, fmm_particles* p, int64_t n, int sorted)
{
    fmm_particles_free(plan, p);
    const size_t before = plan->bytes, count = sorted ? (size_t)n : 0;
    const size_t size       = plan->options.precision == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float);
    const size_t real_bytes = sorted ? size * (count + FMM_ALIGN) : 0; /* padded by a vector */
    void**       arrays[]   = {&p->x, &p->y, &p->z, &p->q, &p->near_phi, &p->far_phi, &p->ex, &p->ey, &p->ez};
    int          ok         = 1;
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
    {
        *arrays[i] = fmm_alloc(plan, real_bytes);
        ok         = ok && *arrays[i] != NULL;
    }
    p->sorted    = fmm_alloc(plan, count * sizeof(int));
    p->position  = fmm_alloc(plan, count * sizeof(int));
    p->cell_of   = fmm_alloc(plan, count * sizeof(int));
    p->reference = fmm_alloc(plan, count * sizeof(*p->reference));
    p->bytes     = plan->bytes - before;
    if (!ok || !p->sorted || !p->position || !p->cell_of || !p->reference)
    {
        fmm_particles_free(plan, p);
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)n);
    }
    p->n = n;
    return GMXFMM_OK;
}

gmxfmm_status fmm_particles_reserve_cells(gmxfmm_plan* plan, fmm_particles* p, int num_cells)
{
    const size_t before = plan->bytes;
    const int    ok =
        fmm_grow(plan, (void**)&p->cell_start, &p->start_capacity, ((size_t)num_cells + 2) * sizeof(*p->cell_start));
    p->bytes += plan->bytes - before;
    return ok ? GMXFMM_OK : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d cells", num_cells);
}

gmxfmm_status fmm_keep_receivers(gmxfmm_plan* plan, const void* x)
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
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld receivers", (long long)plan->receivers.n);
    }
    for (size_t i = 0; i < num; i++)
    {
        plan->receiver_x[i] =
            plan->options.array_type == GMXFMM_DOUBLE ? ((const double*)x)[i] : (double)((const float*)x)[i];
    }
    return GMXFMM_OK;
}
