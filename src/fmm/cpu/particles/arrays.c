/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays of the particles in sorted order, of the charges or the targets. */
#include <stdlib.h>
#include <string.h>

#include "fmm/cpu/particles/particles.h"
#include "fmm/math/portable.h"
#include "fmm/numbers.h"

static void free_dipoles(gmxfmm_plan* plan, fmm_particle_set* p)
{
    free(p->dipole);
    p->dipole = NULL;
    for (int d = 0; d < 3; d++)
    {
        free(p->mu[d]);
        p->mu[d] = NULL;
    }
    for (int i = 0; i < 6; i++)
    {
        free(p->gradient[i]);
        p->gradient[i] = NULL;
    }
    plan->bytes -= p->dipole_bytes;
    p->dipole_bytes = 0;
}

/* Bytes of a sorted array, which is padded by a vector. */
static size_t bytes_of(const gmxfmm_plan* plan, int64_t n)
{
    const size_t size = fmm_word_of(plan->options.precision);
    return size * ((size_t)n + FMM_ALIGN);
}

void fmm_particle_set_free(gmxfmm_plan* plan, fmm_particle_set* p)
{
    free_dipoles(plan, p);
    void* pointers[] = {p->sorted, p->position,  p->cell_of,  p->cell_start, p->x,        p->y,
                        p->z,      p->q,         p->near_phi, p->far_phi,    p->ex,       p->ey,
                        p->ez,     p->reference, p->charge,   p->given[0],   p->given[1], p->given[2]};
    for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++)
    {
        free(pointers[i]);
    }
    plan->bytes -= p->bytes;
    memset(p, 0, sizeof(*p));
}

/* Behind the last particle numbers must be finite. */
static void clear_padding(const gmxfmm_plan* plan, const fmm_particle_set* p)
{
    const size_t word     = fmm_word_of(plan->options.precision);
    void* const  arrays[] = {p->x,  p->y,  p->z,  p->q,        p->near_phi, p->far_phi,
                             p->ex, p->ey, p->ez, p->given[0], p->given[1], p->given[2]};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
    {
        if (arrays[i] != NULL)
        {
            memset((char*)arrays[i] + (size_t)p->n * word, 0, FMM_ALIGN * word);
        }
    }
}

gmxfmm_status fmm_particle_set_alloc(gmxfmm_plan* plan, fmm_particle_set* p, int64_t n)
{
    const int fluctuates = plan->shared != NULL; /* what a rank meets is another number in each assignment */
    if (fluctuates && p->sorted != NULL && n <= p->room && n >= p->room / 2)
    {
        p->n = n;
        clear_padding(plan, p);
        return GMXFMM_OK;
    }
    fmm_particle_set_free(plan, p);
    const int64_t room   = fluctuates ? n + n / 8 : n;
    const size_t  before = plan->bytes, count = (size_t)room, real_bytes = bytes_of(plan, room);
    void**        arrays[] = {&p->x, &p->y, &p->z, &p->q, &p->near_phi, &p->far_phi, &p->ex, &p->ey, &p->ez};
    int           ok       = 1;
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
    {
        *arrays[i] = fmm_alloc(plan, real_bytes);
        ok         = ok && *arrays[i] != NULL;
    }
    for (int d = 0; d < 3 && fmm_has_given(plan); d++)
    {
        p->given[d] = fmm_alloc(plan, real_bytes);
        ok          = ok && p->given[d] != NULL;
    }
    p->sorted    = fmm_alloc(plan, count * sizeof(int));
    p->position  = fmm_alloc(plan, count * sizeof(int));
    p->cell_of   = fmm_alloc(plan, count * sizeof(int));
    p->reference = fmm_alloc(plan, count * sizeof(*p->reference));
    p->bytes     = plan->bytes - before;
    if (!ok || !p->sorted || !p->position || !p->cell_of || !p->reference)
    {
        fmm_particle_set_free(plan, p);
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)n);
    }
    p->n    = n;
    p->room = room;
    return GMXFMM_OK;
}

gmxfmm_status fmm_particle_set_dipoles(gmxfmm_plan* plan, fmm_particle_set* p, int of_charges)
{
    free_dipoles(plan, p);
    if (!fmm_has_dipoles(plan))
    {
        return GMXFMM_OK;
    }
    const size_t before = plan->bytes, real_bytes = bytes_of(plan, p->n);
    int          ok = 1;
    for (int d = 0; d < 3 && of_charges; d++)
    {
        p->mu[d] = fmm_alloc(plan, real_bytes);
        ok       = ok && p->mu[d] != NULL;
    }
    for (int i = 0; i < 6; i++)
    {
        p->gradient[i] = fmm_alloc(plan, real_bytes);
        ok             = ok && p->gradient[i] != NULL;
    }
    p->dipole       = of_charges ? fmm_alloc(plan, 3 * (size_t)p->n * sizeof(double)) : NULL;
    p->dipole_bytes = plan->bytes - before;
    if (!ok || (of_charges && p->dipole == NULL))
    {
        free_dipoles(plan, p);
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld dipoles", (long long)p->n);
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_particle_set_reserve_cells(gmxfmm_plan* plan, fmm_particle_set* p, int num_cells)
{
    const size_t before = plan->bytes;
    const int    ok =
        fmm_grow(plan, (void**)&p->cell_start, &p->start_capacity, ((size_t)num_cells + 2) * sizeof(*p->cell_start));
    p->bytes += plan->bytes - before;
    return ok ? GMXFMM_OK : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d cells", num_cells);
}
