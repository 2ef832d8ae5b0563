/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options: defaults, ranges and contradictions, from the rows of options.def. */
#include "fmm/options.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/geometry/tree.h"
#include "fmm/simd_level.h"

/* Rounding of single precision, measured on water (benchmarks/accuracy): asking for less would ask for noise. */
static const double c_bestSingle = 1e-6;

/* The numbers of options.def, which includes nothing, are those that arrays are made for. */
#define AUTOMATIC(name, text, lowest, highest, help) c_##name##_highest = (int)highest,
#define INTEGER(name, standard, lowest, highest, help) c_##name##_highest = highest,
#define IN_SINGLE(name, highest) c_##name##_single = highest,
enum
{
#include "fmm/options.def"
};
_Static_assert(c_order_highest == GMXFMM_MAX_ORDER && c_order_single == GMXFMM_MAX_ORDER_SINGLE &&
                   (int)c_depth_highest == FMM_MAX_DEPTH && c_degree_highest == GMXFMM_MAX_DEGREE,
               "options.def has other limits than gmxfmm.h and geometry/tree.h");
_Static_assert((int)c_num_devices_highest == GMXFMM_MAX_DEVICES &&
                   sizeof(((gmxfmm_options*)NULL)->devices) == GMXFMM_MAX_DEVICES * sizeof(int) &&
                   sizeof(((gmxfmm_options*)NULL)->shares) == GMXFMM_MAX_DEVICES * sizeof(double) &&
                   sizeof(((gmxfmm_options*)NULL)->far_shares) == GMXFMM_MAX_DEVICES * sizeof(double),
               "arrays of devices are of another length than GMXFMM_MAX_DEVICES");

/* Sizes of gmxfmm_options that a program may have: that of the first version, up to what no later one will need. */
static const size_t c_firstSize   = offsetof(gmxfmm_options, traversal) + sizeof(gmxfmm_traversal);
static const size_t c_largestSize = 4096;

static void set_defaults(gmxfmm_options* options)
{
    memset(options, 0, sizeof(*options));
#define REAL(name, standard, lowest, highest, help) options->name = standard;
#define INTEGER(name, standard, lowest, highest, help) options->name = standard;
#define AUTOMATIC(name, text, lowest, highest, help) options->name = GMXFMM_AUTO;
#define GRID(name, text, lowest, highest, help) options->name[0] = options->name[1] = options->name[2] = GMXFMM_AUTO;
#define CHOICE(name, standard, text, last, names, help) options->name = standard;
#include "fmm/options.def"
    options->size      = sizeof(*options);
    options->prefactor = 1.0;
}

void gmxfmm_default_options_of_size(gmxfmm_options* options, size_t size)
{
    gmxfmm_options own;
    if (options != NULL)
    {
        set_defaults(&own);
        own.size = size;
        memset(options, 0, size);
        memcpy(options, &own, size < sizeof(own) ? size : sizeof(own));
    }
}

double fmm_default_accuracy(void)
{
    gmxfmm_options standard;
    set_defaults(&standard);
    return standard.accuracy;
}

gmxfmm_status fmm_take_options(gmxfmm_options* own, const gmxfmm_options* given, char* message, size_t size)
{
    set_defaults(own);
    if (given->size < c_firstSize || given->size > c_largestSize)
    {
        snprintf(message, size, "the options have no valid size: fill them by gmxfmm_default_options first");
        return GMXFMM_ERROR_OPTION;
    }
    /* of a program compiled with a later version: its new options are zero where this library filled them */
    for (size_t i = sizeof(*own); i < given->size; i++)
    {
        if (((const char*)given)[i] != 0)
        {
            snprintf(message, size,
                     "an option is set that version %s of the library does not know: leave it out, or "
                     "install the version that the program was compiled with",
                     GMXFMM_VERSION);
            return GMXFMM_ERROR_OPTION;
        }
    }
    memcpy(own, given, given->size < sizeof(*own) ? given->size : sizeof(*own));
    own->size      = sizeof(*own);
    own->device_id = own->num_devices > 0 ? own->devices[0] : own->device_id;
    return GMXFMM_OK;
}

void fmm_give_options(gmxfmm_options* given, const gmxfmm_options* own)
{
    const size_t size = given->size;
    memcpy(given, own, size < sizeof(*own) ? size : sizeof(*own));
    given->size = size;
}

const gmxfmm_option* gmxfmm_find_option(const char* name)
{
    static const gmxfmm_option c_options[] = {
#define REAL(name, standard, lowest, highest, help) {#name, help, #standard, NULL, lowest, highest},
#define INTEGER(name, standard, lowest, highest, help) {#name, help, #standard, NULL, lowest, highest},
#define AUTOMATIC(name, text, lowest, highest, help) {#name, help, text, NULL, lowest, highest},
#define GRID(name, text, lowest, highest, help) {#name, help, text, NULL, lowest, highest},
#define FLAGS(name, text, help) {#name, help, text, NULL, 0, 1},
#define CHOICE(name, standard, text, last, names, help) {#name, help, text, names, 0, last},
#include "fmm/options.def"
    };
    for (size_t i = 0; name != NULL && i < sizeof(c_options) / sizeof(c_options[0]); i++)
    {
        if (strcmp(c_options[i].name, name) == 0)
        {
            return &c_options[i];
        }
    }
    return NULL;
}

/* Whether a value is in its range, otherwise the message; automatic: that there is another choice. */
static int
in_range(const char* name, double value, double lowest, double highest, int automatic, char* message, size_t size)
{
    if (value >= lowest && value <= highest)
    {
        return 1;
    }
    snprintf(message, size, "option %s is %g, allowed is %g to %g%s", name, value, lowest, highest,
             automatic ? ", or -1 for automatic" : "");
    return 0;
}

static gmxfmm_status check_ranges(const gmxfmm_options* o, char* message, size_t size)
{
    int good = 1;
#define REAL(name, standard, lowest, highest, help)                                                                    \
    good = good && in_range(#name, o->name, lowest, highest, 0, message, size);
#define INTEGER(name, standard, lowest, highest, help)                                                                 \
    good = good && in_range(#name, o->name, lowest, highest, 0, message, size);
#define AUTOMATIC(name, text, lowest, highest, help)                                                                   \
    good = good && (fmm_is_auto(o->name) || in_range(#name, o->name, lowest, highest, 1, message, size));
#define GRID(name, text, lowest, highest, help)                                                                        \
    for (int d = 0; d < 3; d++)                                                                                        \
    {                                                                                                                  \
        static const char* const c_element[3] = {#name "[0]", #name "[1]", #name "[2]"};                               \
        good                                  = good &&                                                                \
               (fmm_is_auto(o->name[d]) || in_range(c_element[d], o->name[d], lowest, highest, 1, message, size));     \
    }
#define FLAGS(name, text, help)                                                                                        \
    for (int d = 0; d < 3; d++)                                                                                        \
    {                                                                                                                  \
        static const char* const c_element[3] = {#name "[0]", #name "[1]", #name "[2]"};                               \
        good                                  = good && in_range(c_element[d], o->name[d], 0, 1, 0, message, size);    \
    }
#define CHOICE(name, standard, text, last, names, help)                                                                \
    good = good && in_range(#name, (double)o->name, 0, (double)(last), 0, message, size);
#include "fmm/options.def"
    if (!good)
    {
        return GMXFMM_ERROR_OPTION;
    }
    if (!isfinite(o->prefactor) || o->prefactor == 0)
    {
        snprintf(message, size, "option prefactor is %g, it must be finite and not zero", o->prefactor);
        return GMXFMM_ERROR_OPTION;
    }
    return GMXFMM_OK;
}

/* The devices that share a step. */
static gmxfmm_status check_devices(const gmxfmm_options* o, char* message, size_t size)
{
    const double highest = gmxfmm_find_option("device_id")->highest;
    if (o->num_devices > 0 && o->device == GMXFMM_CPU)
    {
        snprintf(message, size, "devices are GPUs: choose device = cuda, or leave them out");
        return GMXFMM_ERROR_OPTION;
    }
    for (int i = 0; i < o->num_devices; i++)
    {
        if (o->devices[i] < 0 || o->devices[i] > highest)
        {
            snprintf(message, size, "devices[%d] is %d, allowed is 0 to %g", i, o->devices[i], highest);
            return GMXFMM_ERROR_OPTION;
        }
        if (!(o->shares[i] >= 0 && isfinite(o->shares[i])))
        {
            snprintf(message, size, "shares[%d] is %g, it must be finite and not negative", i, o->shares[i]);
            return GMXFMM_ERROR_OPTION;
        }
        if (!(o->far_shares[i] >= 0 && isfinite(o->far_shares[i])))
        {
            snprintf(message, size, "far_shares[%d] is %g, it must be finite and not negative", i, o->far_shares[i]);
            return GMXFMM_ERROR_OPTION;
        }
    }
    return GMXFMM_OK;
}

void fmm_periodic_of(const gmxfmm_options* o, int periodic[3])
{
    const int none = !o->periodic[0] && !o->periodic[1] && !o->periodic[2];
    for (int d = 0; d < 3; d++)
    {
        periodic[d] = none ? o->boundary != GMXFMM_OPEN : o->periodic[d];
    }
}

/* Which vectors there are images along, against the other options. */
static gmxfmm_status check_periodic(const gmxfmm_options* o, char* message, size_t size)
{
    const int* p   = o->periodic;
    const int  num = p[0] + p[1] + p[2];
    if (num > 0 && o->boundary == GMXFMM_OPEN)
    {
        snprintf(message, size, "periodic is %d %d %d, but boundary = open: leave one of them out", p[0], p[1], p[2]);
        return GMXFMM_ERROR_OPTION;
    }
    if (num > 0 && num < 3 && o->boundary == GMXFMM_VACUUM)
    {
        snprintf(message, size,
                 "boundary = vacuum needs a system that is periodic along all vectors, periodic is %d %d %d: leave "
                 "boundary out",
                 p[0], p[1], p[2]);
        return GMXFMM_ERROR_OPTION;
    }
    if (num == 1 && o->m2l != GMXFMM_M2L_AUTO && o->m2l != GMXFMM_M2L_FFT)
    {
        snprintf(message, size, "m2l = %s is not offered with one periodic vector (a wire) yet: use m2l = fft",
                 gmxfmm_m2l_name(o->m2l));
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    if (num == 1 && o->device != GMXFMM_CPU)
    {
        snprintf(message, size, "periodic is %d %d %d: a wire is not offered on a GPU, use the CPU", p[0], p[1], p[2]);
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    return GMXFMM_OK;
}

const char* fmm_option_of(gmxfmm_method method, const gmxfmm_options* o)
{
    gmxfmm_options standard;
    set_defaults(&standard);
#define OF_FMM(name)                                                                                                   \
    if (method == GMXFMM_FMM && o->name != standard.name)                                                              \
    {                                                                                                                  \
        return #name;                                                                                                  \
    }
#define OF_TREECODE(name)                                                                                              \
    if (method == GMXFMM_TREECODE && o->name != standard.name)                                                         \
    {                                                                                                                  \
        return #name;                                                                                                  \
    }
#include "fmm/options.def"
    return NULL;
}

/* Options of one method with the other, and what the treecode does not have. */
static gmxfmm_status check_method(const gmxfmm_options* o, char* message, size_t size)
{
    const int   treecode = o->method == GMXFMM_TREECODE;
    const char* other    = fmm_option_of(treecode ? GMXFMM_FMM : GMXFMM_TREECODE, o);
    message[0]           = '\0';
    if (o->method == GMXFMM_METHOD_AUTO)
    {
        snprintf(message, size,
                 "method = auto takes the method that is measured to be faster: measure when the plan is made "
                 "(gmxfmm_create_measured), or use method = fmm or treecode");
    }
    else if (other != NULL)
    {
        snprintf(message, size,
                 treecode ? "%.*s belongs to the FMM: leave it out with method = treecode"
                          : "%.*s belongs to the treecode: choose method = treecode, or leave it out",
                 (int)strcspn(other, "["), other);
    }
    else if (treecode && (o->boundary != GMXFMM_OPEN || o->periodic[0] || o->periodic[1] || o->periodic[2]))
    {
        snprintf(message, size, "the treecode has no periodic boundaries: leave the box out, or use method = fmm");
    }
    else if (o->kappa > 0 && o->kernel != GMXFMM_YUKAWA)
    {
        snprintf(message, size, "kappa belongs to kernel = yukawa: choose it, or leave kappa out");
    }
    return message[0] == '\0' ? GMXFMM_OK : GMXFMM_ERROR_OPTION;
}

/* Whether the accuracy has something to choose. */
static int uses_accuracy(const gmxfmm_options* o)
{
    return o->method == GMXFMM_TREECODE ? fmm_is_auto(o->theta) || fmm_is_auto(o->degree)
                                        : fmm_is_auto(o->order) || (fmm_is_auto(o->grid[0]) && fmm_is_auto(o->depth));
}

static gmxfmm_status no_backend(char* message, size_t size)
{
    snprintf(message, size, "this build has no device support: use the CPU");
    return GMXFMM_ERROR_UNSUPPORTED;
}

/* What a backend does not offer. */
static gmxfmm_status check_backend(const fmm_backend* backend, const gmxfmm_options* o, char* message, size_t size)
{
    if (o->m2l != GMXFMM_M2L_AUTO && !(backend->m2l >> o->m2l & 1))
    {
        snprintf(message, size, "m2l = %s needs a GPU: on the CPU use rotation, symmetric or naive",
                 gmxfmm_m2l_name(o->m2l));
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    const int truncates = o->m2l_truncate > (o->m2l == GMXFMM_M2L_ROTATION ? 1 : 0);
    if (!backend->has_octree_options && (o->m2l_to_parent || truncates || o->vertical_rotation))
    {
        snprintf(message, size, "%s is not offered on a GPU: leave it out, or use the CPU",
                 o->m2l_to_parent ? "m2l_to_parent"
                 : truncates      ? "m2l_truncate but for 1 with m2l = rotation"
                                  : "vertical_rotation");
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    if (o->order > (o->m2l == GMXFMM_M2L_ROTATION ? backend->max_rotation_order : backend->max_order))
    {
        snprintf(message, size, "order %d is not offered on a GPU, which goes to %d (%d with m2l = rotation)", o->order,
                 backend->max_order, backend->max_rotation_order);
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    gmxfmm_status status = GMXFMM_OK;
    char          cause[256];
    for (int i = 0; status == GMXFMM_OK && i < o->num_devices; i++)
    {
        status = gmxfmm_check_device(o->device, o->devices[i], cause, sizeof(cause));
        if (status != GMXFMM_OK)
        {
            snprintf(message, size, "devices[%d]: %s", i, cause);
        }
    }
    return o->num_devices > 0 ? status : gmxfmm_check_device(o->device, o->device_id, message, size);
}

gmxfmm_status fmm_check_options(const gmxfmm_options* o, char* message, size_t size)
{
    gmxfmm_status status = check_ranges(o, message, size);
    status               = status == GMXFMM_OK ? check_method(o, message, size) : status;
    status               = status == GMXFMM_OK ? check_periodic(o, message, size) : status;
    status               = status == GMXFMM_OK ? check_devices(o, message, size) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const int set = (o->grid[0] > 0) + (o->grid[1] > 0) + (o->grid[2] > 0);
    if (set != 0 && set != 3)
    {
        snprintf(message, size, "option grid is %d %d %d: give three numbers of cells, or -1 -1 -1 for automatic",
                 o->grid[0], o->grid[1], o->grid[2]);
        return GMXFMM_ERROR_OPTION;
    }
    if (o->precision == GMXFMM_SINGLE && o->accuracy < c_bestSingle && uses_accuracy(o))
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
    if (octree && set != 0 && (o->grid[0] % part != 0 || o->grid[1] % part != 0 || o->grid[2] % part != 0))
    {
        snprintf(message, size,
                 "grid is %d %d %d: with m2l = %s it counts leaves, so give three multiples of %d (of 2^depth)",
                 o->grid[0], o->grid[1], o->grid[2], gmxfmm_m2l_name(o->m2l), part);
        return GMXFMM_ERROR_OPTION;
    }
    if (!octree && (o->depth > 0 || o->m2l_to_parent || o->m2l_truncate > 0 || o->vertical_rotation))
    {
        snprintf(message, size, "%s belongs to the octree methods: choose m2l = rotation, or use grid with m2l = fft",
                 o->depth > 0          ? "depth"
                 : o->m2l_to_parent    ? "m2l_to_parent"
                 : o->m2l_truncate > 0 ? "m2l_truncate"
                                       : "vertical_rotation");
        return GMXFMM_ERROR_OPTION;
    }
    status = o->device == GMXFMM_CPU ? fmm_check_simd_level(message, size) : GMXFMM_OK;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const fmm_backend* backend = fmm_find_backend(o->method, o->device, o->precision, o->m2l);
    return backend == NULL ? no_backend(message, size) : check_backend(backend, o, message, size);
}

gmxfmm_status gmxfmm_check_device(gmxfmm_device device, int device_id, char* message, size_t message_size)
{
    char  none[1];
    char* text                 = message != NULL && message_size > 0 ? message : none;
    text[0]                    = '\0';
    const size_t       room    = text == none ? 1 : message_size;
    const fmm_backend* backend = fmm_find_backend(GMXFMM_FMM, device, GMXFMM_SINGLE, GMXFMM_M2L_AUTO);
    return backend == NULL ? no_backend(text, room) : backend->check(device_id, text, room);
}
