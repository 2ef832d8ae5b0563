/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Second derivatives of the energy of charges along a way, THEORY (52), by two steps: of the charges, with the gradient
 * of the field, and of the sources that are their derivative along the way. A backend that can has one near field for
 * both, in which a pair counts with the difference of its ways. With arrays of a device both are put on a stream.
 */
#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/charges.h"
#include "fmm/gmxfmm.h"
#include "fmm/math/along.h"
#include "fmm/numbers.h"
#include "fmm/particles.h"
#include "fmm/sizes.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* In the array type, but for the near field's. */
typedef struct
{
    char *    q, *mu, *phi[2], *field[2], *gradient;
    fmm_along near;
    char*     memory;
} along_room;

static double get(const gmxfmm_plan* plan, const void* array, size_t i)
{
    return fmm_number_of(array, plan->options.array_type, (int64_t)i);
}

static void put(const gmxfmm_plan* plan, void* array, size_t i, double value)
{
    if (plan->options.array_type == GMXFMM_DOUBLE)
    {
        ((double*)array)[i] = value;
    }
    else
    {
        ((float*)array)[i] = (float)value;
    }
}

static int make_room(const gmxfmm_plan* plan, along_room* room)
{
    const size_t n = (size_t)plan->particles.n, word = fmm_word_of(plan->options.array_type),
                 padded = n + FMM_ALONG_PADDING;
    memset(room, 0, sizeof(*room));
    room->memory = calloc(1, (8 * n + 4 * padded) * sizeof(double) + 18 * n * word);
    if (room->memory == NULL)
    {
        return 0;
    }
    double* numbers        = (double*)room->memory;
    room->near.q           = numbers;
    room->near.u           = numbers + n;
    room->near.phi         = numbers + 4 * n;
    room->near.field       = numbers + 5 * n;
    room->near.room        = numbers + 8 * n;
    char*        next      = (char*)(numbers + 8 * n + 4 * padded);
    char** const arrays[]  = {&room->q,        &room->mu,       &room->phi[0],  &room->phi[1],
                              &room->field[0], &room->field[1], &room->gradient};
    const size_t columns[] = {1, 3, 1, 1, 3, 3, 6};
    for (int k = 0; k < 7; k++)
    {
        *arrays[k] = next;
        next += columns[k] * n * word;
    }
    return 1;
}

/* Components along the plan's axes, or with back = 1 the vector that has these. */
static void turn(const gmxfmm_plan* plan, int back, const double* from, double* to)
{
    const double* a = plan->frame.axes;
    for (int d = 0; d < 3; d++)
    {
        const int first = back ? d : 3 * d, step = back ? 3 : 1;
        to[d] = plan->frame.turned ? a[first] * from[0] + a[first + step] * from[1] + a[first + 2 * step] * from[2]
                                   : from[d];
    }
}

static void take_way(const gmxfmm_plan* plan, const gmxfmm_along* along, along_room* room)
{
    for (size_t i = 0; i < (size_t)plan->particles.n; i++)
    {
        const double q    = plan->charges.q[i];
        const double u[3] = {get(plan, along->u, 3 * i), get(plan, along->u, 3 * i + 1),
                             get(plan, along->u, 3 * i + 2)};
        put(plan, room->q, i, q);
        room->near.q[i] = q;
        turn(plan, 0, u, room->near.u + 3 * i);
    }
}

/* The first of two steps; the second, where x keeps its cells. */
static gmxfmm_status step(gmxfmm_plan* plan, const void* x, along_room* room, int second, double* outside)
{
    gmxfmm_output output = {.size = sizeof(output), .potential = room->phi[second], .field = room->field[second]};
    if (!second)
    {
        output.field_gradient = room->gradient;
    }
    room->near.second          = second;
    const gmxfmm_status status = gmxfmm_execute(plan, x, &output);
    *outside                   = output.outside;
    return status;
}

static gmxfmm_status
two_steps(gmxfmm_plan* plan, const void* x, const gmxfmm_along* along, along_room* room, double* outside)
{
    const int64_t n      = plan->particles.n;
    gmxfmm_status status = gmxfmm_set_dipoles(plan, n, room->mu); /* zeros */
    plan->along          = plan->backend->has_along ? &room->near : NULL;
    status               = status == GMXFMM_OK ? gmxfmm_assign(plan, x) : status;
    status               = status == GMXFMM_OK ? step(plan, x, room, 0, outside) : status;
    for (size_t k = 0; k < 3 * (size_t)n && status == GMXFMM_OK; k++)
    {
        put(plan, room->mu, k, room->near.q[k / 3] * get(plan, along->u, k));
    }
    status = status == GMXFMM_OK ? gmxfmm_set_charges(plan, n, along->w) : status;
    status = status == GMXFMM_OK ? gmxfmm_set_dipoles(plan, n, room->mu) : status;
    return status == GMXFMM_OK ? step(plan, x, room, 1, outside) : status;
}

/* What acts on a particle; what the near field has of the charges is added to theirs. */
static fmm_along_fields fields_of(const gmxfmm_plan* plan, const gmxfmm_along* along, const along_room* room, size_t i)
{
    const double     f  = plan->options.prefactor;
    fmm_along_fields to = {.q       = room->near.q[i],
                           .w       = get(plan, along->w, i),
                           .phi     = get(plan, room->phi[0], i) + f * room->near.phi[i],
                           .way_phi = get(plan, room->phi[1], i)};
    double           near[3];
    turn(plan, 1, room->near.field + 3 * i, near);
    for (size_t d = 0; d < 3; d++)
    {
        to.u[d]         = get(plan, along->u, 3 * i + d);
        to.apart[d]     = get(plan, room->field[0], 3 * i + d);
        to.field[d]     = to.apart[d] + f * near[d];
        to.way_field[d] = get(plan, room->field[1], 3 * i + d);
    }
    for (size_t k = 0; k < 6; k++)
    {
        to.gradient[k] = get(plan, room->gradient, 6 * i + k);
    }
    return to;
}

static void put_together(const gmxfmm_plan* plan, gmxfmm_along* along, const along_room* room)
{
    along->energy = 0;
    for (size_t i = 0; i < (size_t)plan->particles.n; i++)
    {
        const fmm_along_fields      fields = fields_of(plan, along, room, i);
        const fmm_along_derivatives by     = fmm_along_of(&fields);
        for (size_t d = 0; d < 3; d++)
        {
            put(plan, along->force, 3 * i + d, by.force[d]);
            if (along->felt != NULL)
            {
                put(plan, along->felt, 3 * i + d, fields.q * fields.field[d]);
            }
        }
        put(plan, along->potential, i, by.potential);
        along->energy += by.energy;
    }
}

/* has_arrays: whether all that must be there are. */
static gmxfmm_status check_along(gmxfmm_plan* plan, int has_arrays)
{
    if (plan->particles.n > 0 && !has_arrays)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "x, u, w, force or potential is NULL");
    }
    if (plan->particles.num_targets > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "the plan has targets, and derivatives are of charges: set none");
    }
    return fmm_has_dipoles(plan)
               ? fmm_fail(plan, GMXFMM_ERROR_OPTION, "the plan has dipoles, and derivatives are of charges: set none")
               : GMXFMM_OK;
}

gmxfmm_status gmxfmm_execute_along(gmxfmm_plan* plan, const void* x, gmxfmm_along* along)
{
    if (plan == NULL || along == NULL)
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "along is NULL");
    }
    gmxfmm_status status = fmm_check_size(plan, along, sizeof(*along), "gmxfmm_along");
    status               = status == GMXFMM_OK ? check_along(plan, x != NULL && along->u != NULL && along->w != NULL &&
                                                                       along->force != NULL && along->potential != NULL)
                                               : status;
    along_room room;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (!make_room(plan, &room))
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)plan->particles.n);
    }
    take_way(plan, along, &room);
    status      = two_steps(plan, x, along, &room, &along->outside);
    plan->along = NULL;
    if (status == GMXFMM_OK)
    {
        put_together(plan, along, &room);
    }
    const gmxfmm_status none = gmxfmm_set_dipoles(plan, plan->particles.n, NULL);
    const gmxfmm_status back = gmxfmm_set_charges(plan, plan->particles.n, room.q);
    free(room.memory);
    return status != GMXFMM_OK ? status : none != GMXFMM_OK ? none : back;
}

static gmxfmm_status check_enqueue_along(gmxfmm_plan* plan, const void* x, const gmxfmm_device_along* along)
{
    if (plan->backend->enqueue_along == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "derivatives along a way are enqueued by the FMM on one GPU: use device = cuda, method = fmm "
                        "and gmxfmm_create");
    }
    gmxfmm_status status = fmm_check_size(plan, along, sizeof(*along), "gmxfmm_device_along");
    status               = status == GMXFMM_OK ? check_along(plan, x != NULL && along->u != NULL && along->w != NULL &&
                                                                       along->force != NULL && along->potential != NULL)
                                               : status;
    status               = status == GMXFMM_OK ? fmm_charges_check_dipoles(plan, plan->particles.n) : status;
    status               = status == GMXFMM_OK ? fmm_particles_check_assigned(plan) : status;
    return status == GMXFMM_OK && plan->particles.assign_begun
               ? fmm_fail(plan, GMXFMM_ERROR_ORDER,
                          "an assignment in parts has begun, which would take the charges of the way: end it first")
               : status;
}

gmxfmm_status gmxfmm_enqueue_along(gmxfmm_plan* plan, const void* x, const gmxfmm_device_along* along, void* stream)
{
    if (plan == NULL || along == NULL)
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "along is NULL");
    }
    gmxfmm_status status = check_enqueue_along(plan, x, along);
    if (status == GMXFMM_OK)
    {
        plan->info.num_executes += 2;
        plan->has_way = 1;
        status        = plan->backend->enqueue_along(plan, x, along, stream);
        plan->has_way = 0;
    }
    return status;
}
