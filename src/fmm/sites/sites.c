/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The calls of gmxfmm_sites.h, of either device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/process.h"
#include "fmm/simd_level.h"
#include "fmm/sites/state.h"
#include "fmm/sizes.h"

/* cpu.c, compiled once per precision and level */
#ifdef FMM_LEVELS
extern const struct sites_backend sites_cpu_f_v2, sites_cpu_d_v2, sites_cpu_f_v3, sites_cpu_d_v3, sites_cpu_f_v4,
    sites_cpu_d_v4;

static const struct sites_backend* cpu_of(gmxfmm_precision precision)
{
    static const struct sites_backend* const all[][2] = {
        {&sites_cpu_f_v2, &sites_cpu_d_v2}, {&sites_cpu_f_v3, &sites_cpu_d_v3}, {&sites_cpu_f_v4, &sites_cpu_d_v4}};
    return all[fmm_simd_level() - 2][precision == GMXFMM_DOUBLE];
}
#else
extern const struct sites_backend sites_cpu_f, sites_cpu_d;

static const struct sites_backend* cpu_of(gmxfmm_precision precision)
{
    return precision == GMXFMM_DOUBLE ? &sites_cpu_d : &sites_cpu_f;
}
#endif

static const struct sites_backend* backend_of(const gmxfmm_sites_system* system)
{
#ifdef FMM_WITH_CUDA
    if (system->device == GMXFMM_CUDA)
    {
        return &sites_cuda;
    }
#endif
    return cpu_of(system->precision);
}

static struct lj_range range_of(const gmxfmm_lj_range* range)
{
    switch (range->modifier)
    {
    case GMXFMM_LJ_POTENTIAL_SHIFT:
        return lj_shifted(range->cutoff);
    case GMXFMM_LJ_FORCE_SWITCH:
        return lj_force_switch(range->start, range->cutoff);
    case GMXFMM_LJ_POTENTIAL_SWITCH:
        return lj_potential_switch(range->start, range->cutoff);
    default:
        return lj_cut(range->cutoff);
    }
}

static struct lj_pair pair_of(const gmxfmm_sites_system* system)
{
    const gmxfmm_lj_modifier outer = system->outer.modifier;
    struct lj_pair           pair  = {range_of(&system->outer), lj_cut(0), LJ_SHIFTED_ALONE};
    if (sites_has_inner(system))
    {
        pair.inner = range_of(&system->inner);
        pair.kind  = outer == GMXFMM_LJ_FORCE_SWITCH       ? LJ_FORCE_SWITCH
                     : outer == GMXFMM_LJ_POTENTIAL_SWITCH ? LJ_POTENTIAL_SWITCH
                                                           : LJ_SHIFTED;
    }
    else
    {
        pair.kind = outer == GMXFMM_LJ_FORCE_SWITCH       ? LJ_FORCE_SWITCH_ALONE
                    : outer == GMXFMM_LJ_POTENTIAL_SWITCH ? LJ_POTENTIAL_SWITCH_ALONE
                                                          : LJ_SHIFTED_ALONE;
    }
    return pair;
}

/* A copy of num elements, counted in *bytes; NULL: no memory. */
static void* copy_of(const void* from, size_t num, size_t size, int64_t* bytes)
{
    void* to = malloc(num * size + 1);
    if (to != NULL && num > 0)
    {
        memcpy(to, from, num * size);
    }
    *bytes += (int64_t)(num * size);
    return to;
}

/* A table that is symmetric but for rounding becomes so: both sites of a pair have the same force. */
static void make_symmetric(double* c, int num)
{
    for (int a = 0; a < num; a++)
    {
        for (int b = 0; b < a; b++)
        {
            c[(size_t)b * (size_t)num + (size_t)a] = c[(size_t)a * (size_t)num + (size_t)b];
        }
    }
}

/* 0: no memory. Exclusions come later. */
static int copy_arrays(gmxfmm_sites* sites)
{
    gmxfmm_sites_system* s      = &sites->system;
    const size_t         groups = (size_t)s->num_groups, starts = groups > 0 ? groups + 1 : 0;
    const size_t         atoms = groups > 0 ? (size_t)s->start[groups] : 0;
    const size_t         pairs = groups > 0 ? (size_t)s->num_types * (size_t)s->num_types : 0;
    int64_t*             bytes = &sites->bytes;
    s->start = sites->start = copy_of(s->start, starts, sizeof(int), bytes);
    s->atom = sites->atom = copy_of(s->atom, atoms, sizeof(int), bytes);
    s->weight = sites->weight = copy_of(s->weight, atoms, sizeof(double), bytes);
    s->type = sites->type = copy_of(s->type, groups, sizeof(int), bytes);
    s->c6 = sites->c6 = copy_of(s->c6, pairs, sizeof(double), bytes);
    s->c12 = sites->c12 = copy_of(s->c12, pairs, sizeof(double), bytes);
    if (s->start == NULL || s->atom == NULL || s->weight == NULL || s->type == NULL || s->c6 == NULL || s->c12 == NULL)
    {
        return 0;
    }
    make_symmetric(sites->c6, pairs > 0 ? s->num_types : 0);
    make_symmetric(sites->c12, pairs > 0 ? s->num_types : 0);
    return 1;
}

gmxfmm_status
gmxfmm_sites_create(gmxfmm_sites** sites, const gmxfmm_sites_system* system, char* message, size_t message_size)
{
    char          none[1];
    char*         text = message != NULL && message_size > 0 ? message : none;
    const size_t  room = text == none ? 1 : message_size;
    gmxfmm_status status;
    text[0] = '\0';
    if (sites == NULL || system == NULL)
    {
        snprintf(text, room, "%s is NULL", sites == NULL ? "sites" : "system");
        return GMXFMM_ERROR_NULL;
    }
    *sites = NULL;
    status = fmm_check_members(system, sizeof(*system), "gmxfmm_sites_system", text, room);
    status = status == GMXFMM_OK ? sites_check_system(system, text, room) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    gmxfmm_sites* made = calloc(1, sizeof(*made));
    if (made == NULL)
    {
        snprintf(text, room, "out of memory");
        return GMXFMM_ERROR_MEMORY;
    }
    made->system             = *system;
    made->bytes              = (int64_t)sizeof(*made);
    made->system.num_threads = fmm_num_threads(system->num_threads);
    made->lj                 = pair_of(system);
    made->num_targets        = system->num_groups;
    made->num_counted        = system->num_groups;
    made->backend            = backend_of(system);
    status = copy_arrays(made) ? sites_copy_exclusions(made) : sites_fail(made, GMXFMM_ERROR_MEMORY, "out of memory");
    status = status == GMXFMM_OK ? made->backend->create(made) : status;
    if (status != GMXFMM_OK)
    {
        snprintf(text, room, "%s", made->message);
        gmxfmm_sites_destroy(made);
        return status;
    }
    *sites = made;
    return GMXFMM_OK;
}

/* Whether these are different groups; seen: a mark for each, all zero. */
static gmxfmm_status check_targets(gmxfmm_sites* sites, int num, const int* groups, char* seen)
{
    for (int i = 0; i < num; i++)
    {
        if (groups[i] < 0 || groups[i] >= sites->system.num_groups)
        {
            return sites_fail(sites, GMXFMM_ERROR_OPTION, "groups[%d] is %d: groups count from 0 to %d", i, groups[i],
                              sites->system.num_groups - 1);
        }
        if (seen[groups[i]])
        {
            return sites_fail(sites, GMXFMM_ERROR_OPTION, "groups[%d]: group %d is there for the second time", i,
                              groups[i]);
        }
        seen[groups[i]] = 1;
    }
    return GMXFMM_OK;
}

gmxfmm_status gmxfmm_sites_set_targets(gmxfmm_sites* sites, int num, int num_counted, const int* groups)
{
    if (sites == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    sites->message[0] = '\0';
    if (sites->system.device != GMXFMM_CPU)
    {
        return sites_fail(sites, GMXFMM_ERROR_UNSUPPORTED, "a GPU computes the forces of all groups");
    }
    if (groups != NULL && (num < 0 || num > sites->system.num_groups))
    {
        return sites_fail(sites, GMXFMM_ERROR_OPTION, "num is %d: set it to a number from 0 to that of groups, %d", num,
                          sites->system.num_groups);
    }
    if (groups != NULL && (num_counted < 0 || num_counted > num))
    {
        return sites_fail(sites, GMXFMM_ERROR_OPTION, "num_counted is %d: set it to a number from 0 to num, %d",
                          num_counted, num);
    }
    int* target = NULL;
    if (groups != NULL)
    {
        char*         seen   = calloc((size_t)sites->system.num_groups + 1, 1);
        gmxfmm_status status = GMXFMM_OK;
        target               = malloc(((size_t)num + 1) * sizeof(int));
        status = target == NULL || seen == NULL ? sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory for targets")
                                                : check_targets(sites, num, groups, seen);
        free(seen);
        if (status != GMXFMM_OK)
        {
            free(target);
            return status;
        }
        for (int i = 0; i < num; i++)
        {
            target[i] = groups[i];
        }
    }
    free(sites->target);
    sites->bytes +=
        (int64_t)sizeof(int) * ((target != NULL ? num : 0) - (sites->target != NULL ? sites->num_targets : 0));
    sites->target      = target;
    sites->num_targets = target != NULL ? num : sites->system.num_groups;
    sites->num_counted = target != NULL ? num_counted : sites->system.num_groups;
    sites->has_search  = 0;
    return GMXFMM_OK;
}

/* Whether there are the threads of the CPU's sites. Errors: OPTION. */
static gmxfmm_status check_threads(gmxfmm_sites* sites)
{
    const int lost = sites->system.device == GMXFMM_CPU && sites->system.num_threads > 1 && fmm_threads_are_lost();
    return lost ? sites_fail(sites, GMXFMM_ERROR_OPTION, "%s", fmm_threads_lost) : GMXFMM_OK;
}

/* The box of a call, for pairs up to `reach`. Errors: NULL, BOX. */
static gmxfmm_status take_box(gmxfmm_sites* sites, const double* box, double reach)
{
    if (box == NULL && sites->system.num_periodic > 0)
    {
        return sites_fail(sites, GMXFMM_ERROR_NULL, "box is NULL");
    }
    const gmxfmm_status status = sites_check_box(sites, box, reach);
    if (status == GMXFMM_OK && box != NULL)
    {
        memcpy(sites->box, box, (size_t)sites->system.num_periodic * 3 * sizeof(*box)); /* the others stay zero */
    }
    return status;
}

gmxfmm_status gmxfmm_sites_search(gmxfmm_sites* sites, const double* box, const void* x, double reach, void* stream)
{
    if (sites == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    sites->message[0] = '\0';
    if (x == NULL && sites->system.num_atoms > 0)
    {
        return sites_fail(sites, GMXFMM_ERROR_NULL, "x is NULL");
    }
    if (!isfinite(reach) || reach < sites->system.outer.cutoff)
    {
        return sites_fail(sites, GMXFMM_ERROR_OPTION, "reach is %g: set it to the cut-off, %g, or more", reach,
                          sites->system.outer.cutoff);
    }
    gmxfmm_status status = check_threads(sites);
    status               = status == GMXFMM_OK ? take_box(sites, box, reach) : status;
    if (status == GMXFMM_OK)
    {
        sites->has_search = 0;
        status            = sites->backend->search(sites, x, reach, stream);
        sites->has_search = status == GMXFMM_OK;
    }
    return status;
}

/* Whether a step can follow on this device. */
static gmxfmm_status check_step(gmxfmm_sites* sites, gmxfmm_device device)
{
    sites->message[0] = '\0';
    if (sites->system.device != device)
    {
        return sites_fail(sites, GMXFMM_ERROR_UNSUPPORTED, "sites were made for %s: use the calls for it",
                          device == GMXFMM_CPU ? "a GPU" : "the CPU");
    }
    if (!sites->has_search)
    {
        return sites_fail(sites, GMXFMM_ERROR_ORDER, "no search has found the pairs: call gmxfmm_sites_search first");
    }
    return GMXFMM_OK;
}

/* The same, with an array that must be there. */
static gmxfmm_status check_array(gmxfmm_sites* sites, gmxfmm_device device, const void* array, const char* name)
{
    const gmxfmm_status status = check_step(sites, device);
    return status == GMXFMM_OK && array == NULL && sites->system.num_atoms > 0
               ? sites_fail(sites, GMXFMM_ERROR_NULL, "%s is NULL", name)
               : status;
}

gmxfmm_status
gmxfmm_sites_execute(gmxfmm_sites* sites, const double* box, const void* x, void* f, double* energy, double* virial)
{
    if (sites == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    gmxfmm_status status = check_array(sites, GMXFMM_CPU, x, "x");
    status               = status == GMXFMM_OK ? check_array(sites, GMXFMM_CPU, f, "f") : status;
    status               = status == GMXFMM_OK ? check_threads(sites) : status;
    status               = status == GMXFMM_OK ? take_box(sites, box, sites->system.outer.cutoff) : status;
    return status == GMXFMM_OK ? sites->backend->execute(sites, x, f, energy, virial) : status;
}

gmxfmm_status gmxfmm_sites_enqueue_box(gmxfmm_sites* sites, const double* box, void* stream)
{
    if (sites == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    gmxfmm_status status = check_step(sites, GMXFMM_CUDA);
    status               = status == GMXFMM_OK ? take_box(sites, box, sites->system.outer.cutoff) : status;
    return status == GMXFMM_OK ? sites->backend->enqueue_box(sites, stream) : status;
}

gmxfmm_status gmxfmm_sites_enqueue(gmxfmm_sites* sites, const void* x, double* sums, void* stream)
{
    if (sites == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    const gmxfmm_status status = check_array(sites, GMXFMM_CUDA, x, "x");
    return status == GMXFMM_OK ? sites->backend->enqueue(sites, x, sums, stream) : status;
}

gmxfmm_status gmxfmm_sites_enqueue_forces(gmxfmm_sites* sites, void* f, void* stream)
{
    if (sites == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    const gmxfmm_status status = check_array(sites, GMXFMM_CUDA, f, "f");
    return status == GMXFMM_OK ? sites->backend->enqueue_forces(sites, f, stream) : status;
}

double gmxfmm_sites_constant(const gmxfmm_sites* sites, int type_a, int type_b)
{
    const int num = sites != NULL ? sites->system.num_types : 0;
    if (type_a < 0 || type_b < 0 || type_a >= num || type_b >= num || sites->system.num_groups == 0 ||
        !sites_has_inner(&sites->system))
    {
        return NAN;
    }
    const struct lj_range *outer = &sites->lj.outer, *inner = &sites->lj.inner;
    const size_t           pair = (size_t)type_a * (size_t)num + (size_t)type_b;
    return sites->c12[pair] * (outer->shift[1] - inner->shift[1]) -
           sites->c6[pair] * (outer->shift[0] - inner->shift[0]);
}

int gmxfmm_sites_graph_version(const gmxfmm_sites* sites)
{
    return sites != NULL ? sites->graph_version : 0;
}

gmxfmm_status gmxfmm_sites_get_info(const gmxfmm_sites* sites, gmxfmm_sites_info* info)
{
    if (sites == NULL || info == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    const size_t size = info->size;
    if (!fmm_is_size(size, sizeof(*info)))
    {
        return GMXFMM_ERROR_OPTION;
    }
    memset(info, 0, size);
    info->size         = size;
    info->num_pairs    = sites->num_pairs;
    info->num_within   = sites->num_within;
    info->bytes        = sites->bytes;
    info->device_bytes = sites->device_bytes;
    return GMXFMM_OK;
}

const char* gmxfmm_sites_message(const gmxfmm_sites* sites)
{
    return sites != NULL ? sites->message : "";
}

void gmxfmm_sites_destroy(gmxfmm_sites* sites)
{
    if (sites == NULL)
    {
        return;
    }
    if (sites->memory != NULL)
    {
        sites->backend->destroy(sites);
    }
    free(sites->start);
    free(sites->atom);
    free(sites->weight);
    free(sites->type);
    free(sites->c6);
    free(sites->c12);
    free(sites->exclusion_start);
    free(sites->exclusion);
    free(sites->target);
    free(sites);
}
