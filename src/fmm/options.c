/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/plan.h"

/* Rounding of single precision, measured on water (benchmarks/accuracy): asking for less would ask for noise. */
static const double c_bestSingle = 1e-6;

void gmxfmm_default_options(gmxfmm_options* options)
{
    memset(options, 0, sizeof(*options));
    options->accuracy       = 4e-4;
    options->order          = -1;
    options->depth          = -1;
    options->m2l            = GMXFMM_M2L_AUTO;
    options->boundary       = GMXFMM_TINFOIL;
    options->precision      = GMXFMM_SINGLE;
    options->array_type     = GMXFMM_DOUBLE;
    options->device         = GMXFMM_CPU;
    options->prefactor      = 1.0;
    options->measured_error = NAN;
    options->measured_time  = NAN;
}

static gmxfmm_status check_ranges(const gmxfmm_options* o, char* message, size_t size)
{
    const struct
    {
        const char* name;
        double      value, low, high;
    } range[] = {
        {"order", o->order, -1, GMXFMM_MAX_ORDER},
        {"grid[0]", o->grid[0], 0, 1024},
        {"grid[1]", o->grid[1], 0, 1024},
        {"grid[2]", o->grid[2], 0, 1024},
        {"depth", o->depth, -1, 9},
        {"separation", o->separation, 0, 2},
        {"m2l", (double)o->m2l, GMXFMM_M2L_AUTO, GMXFMM_M2L_NAIVE},
        {"boundary", (double)o->boundary, GMXFMM_TINFOIL, GMXFMM_OPEN},
        {"precision", (double)o->precision, GMXFMM_SINGLE, GMXFMM_DOUBLE},
        {"array_type", (double)o->array_type, GMXFMM_SINGLE, GMXFMM_DOUBLE},
        {"device", (double)o->device, GMXFMM_CPU, GMXFMM_CUDA},
        {"m2l_to_parent", o->m2l_to_parent, 0, 1},
        {"m2l_truncate", o->m2l_truncate, 0, 2},
        {"vertical_rotation", o->vertical_rotation, 0, 1},
        {"device_id", o->device_id, 0, 255},
        {"num_threads", o->num_threads, 0, 4096},
        {"reproducible", o->reproducible, 0, 1},
    };
    for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++)
    {
        if (range[i].value < range[i].low || range[i].value > range[i].high)
        {
            snprintf(message, size, "option %s is %g, allowed is %g to %g", range[i].name, range[i].value, range[i].low,
                     range[i].high);
            return GMXFMM_ERROR_OPTION;
        }
    }
    if (o->depth == 0)
    {
        snprintf(message, size, "option depth is 0, allowed is 1 to 9, or -1 for automatic");
        return GMXFMM_ERROR_OPTION;
    }
    if (!(o->accuracy >= 1e-12 && o->accuracy <= 0.1))
    {
        snprintf(message, size, "option accuracy is %g, allowed is 1e-12 to 0.1", o->accuracy);
        return GMXFMM_ERROR_OPTION;
    }
    if (!isfinite(o->prefactor) || o->prefactor == 0)
    {
        snprintf(message, size, "option prefactor is %g, it must be finite and not zero", o->prefactor);
        return GMXFMM_ERROR_OPTION;
    }
    return GMXFMM_OK;
}

static gmxfmm_status no_backend(char* message, size_t size)
{
    snprintf(message, size, "this build has no device support: use the CPU");
    return GMXFMM_ERROR_UNSUPPORTED;
}

/* What a backend does not offer. */
static gmxfmm_status check_backend(const fmm_backend* backend, const gmxfmm_options* o, char* message, size_t size)
{
    if (o->m2l != GMXFMM_M2L_AUTO && !(backend->methods >> o->m2l & 1))
    {
        snprintf(message, size, "m2l = %s needs a GPU: on the CPU use rotation, symmetric or naive",
                 gmxfmm_m2l_name(o->m2l));
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    if (!backend->has_octree_options && (o->m2l_to_parent || o->m2l_truncate || o->vertical_rotation))
    {
        snprintf(message, size, "%s is not offered on a GPU: leave it out, or use the CPU",
                 o->m2l_to_parent  ? "m2l_to_parent"
                 : o->m2l_truncate ? "m2l_truncate"
                                   : "vertical_rotation");
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    if (o->order > (o->m2l == GMXFMM_M2L_ROTATION ? backend->max_rotation_order : backend->max_order))
    {
        snprintf(message, size, "order %d is not offered on a GPU, which goes to %d (%d with m2l = rotation)", o->order,
                 backend->max_order, backend->max_rotation_order);
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    return gmxfmm_check_device(o->device, o->device_id, message, size);
}

gmxfmm_status fmm_check_options(const gmxfmm_options* o, char* message, size_t size)
{
    const gmxfmm_status status = check_ranges(o, message, size);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const int set = (o->grid[0] > 0) + (o->grid[1] > 0) + (o->grid[2] > 0);
    if (set != 0 && set != 3)
    {
        snprintf(message, size, "option grid is %d %d %d: give three numbers of cells, or 0 0 0 for automatic",
                 o->grid[0], o->grid[1], o->grid[2]);
        return GMXFMM_ERROR_OPTION;
    }
    if (o->precision == GMXFMM_SINGLE && o->accuracy < c_bestSingle && (o->order < 0 || (set == 0 && o->depth < 0)))
    {
        snprintf(message, size,
                 "accuracy %g is out of reach in single precision: ask for %g or more, or use double precision",
                 o->accuracy, c_bestSingle);
        return GMXFMM_ERROR_OPTION;
    }
    if (o->precision == GMXFMM_SINGLE && o->order > GMXFMM_MAX_ORDER_SINGLE)
    {
        snprintf(message, size, "order %d needs double precision: single precision goes to %d", o->order,
                 GMXFMM_MAX_ORDER_SINGLE);
        return GMXFMM_ERROR_OPTION;
    }
    const int octree = o->m2l != GMXFMM_M2L_AUTO && o->m2l != GMXFMM_M2L_FFT;
    if (octree && set != 0 && o->boundary == GMXFMM_OPEN)
    {
        snprintf(message, size, "the leaves of an open octree follow the particles: with m2l = %s use depth, not grid",
                 gmxfmm_m2l_name(o->m2l));
        return GMXFMM_ERROR_OPTION;
    }
    const int part = 1 << (o->depth > 0 ? o->depth : 1);
    if (octree && (o->grid[0] % part != 0 || o->grid[1] % part != 0 || o->grid[2] % part != 0))
    {
        snprintf(message, size,
                 "grid is %d %d %d: with m2l = %s it counts leaves, so give three multiples of %d (of 2^depth)",
                 o->grid[0], o->grid[1], o->grid[2], gmxfmm_m2l_name(o->m2l), part);
        return GMXFMM_ERROR_OPTION;
    }
    if (!octree && (o->depth > 0 || o->m2l_to_parent || o->m2l_truncate || o->vertical_rotation))
    {
        snprintf(message, size, "%s belongs to the octree methods: choose m2l = rotation, or use grid with m2l = fft",
                 o->depth > 0       ? "depth"
                 : o->m2l_to_parent ? "m2l_to_parent"
                 : o->m2l_truncate  ? "m2l_truncate"
                                    : "vertical_rotation");
        return GMXFMM_ERROR_OPTION;
    }
    const fmm_backend* backend = fmm_find_backend(o->device, o->precision, o->m2l);
    return backend == NULL ? no_backend(message, size) : check_backend(backend, o, message, size);
}

gmxfmm_status gmxfmm_check_device(gmxfmm_device device, int device_id, char* message, size_t message_size)
{
    char  none[1];
    char* text                 = message != NULL && message_size > 0 ? message : none;
    text[0]                    = '\0';
    const size_t       room    = text == none ? 1 : message_size;
    const fmm_backend* backend = fmm_find_backend(device, GMXFMM_SINGLE, GMXFMM_M2L_AUTO);
    return backend == NULL ? no_backend(text, room) : backend->check(device_id, text, room);
}
