/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan on a communicator, whose options are the same on all ranks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fmm/measure/measure.h"
#include "fmm/options.h"
#include "fmm/parallel/ranks.h"
#include "fmm/plan.h"
#include "fmm/state.h"

/* An option of options.def. */
typedef struct
{
    const char* name;
    double      value;
} option_value;

enum
{
    c_mostOptions = 64
};

/* Those that ranks may not differ in; their number. */
static size_t same_options(const gmxfmm_options* o, option_value same[c_mostOptions])
{
    const option_value all[] = {
#define REAL(name, standard, lowest, highest, help) {#name, o->name},
#define INTEGER(name, standard, lowest, highest, help) {#name, o->name},
#define AUTOMATIC(name, text, lowest, highest, help) {#name, o->name},
#define GRID(name, text, lowest, highest, help)                                                                        \
    {#name "[0]", o->name[0]}, {#name "[1]", o->name[1]}, {#name "[2]", o->name[2]},
#define FLAGS(name, text, help) GRID(name, text, 0, 1, help)
#define CHOICE(name, standard, text, last, names, help) {#name, (double)o->name},
#include "fmm/options.def"
        {"prefactor", o->prefactor},
    };
    static const char* const c_own[] = {"num_threads", "device_id", "num_devices"};
    size_t                   num     = 0;
    _Static_assert(sizeof(all) / sizeof(all[0]) <= c_mostOptions, "there are more options");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    {
        int is_own = 0;
        for (size_t j = 0; j < sizeof(c_own) / sizeof(c_own[0]); j++)
        {
            is_own |= strcmp(all[i].name, c_own[j]) == 0;
        }
        same[num] = all[i];
        num += !is_own;
    }
    return num;
}

/* Errors: OPTION, which names the option. */
static gmxfmm_status compare_options(const gmxfmm_comm* comm, const gmxfmm_options* own, char* message, size_t size)
{
    option_value same[c_mostOptions];
    double       first[c_mostOptions];
    const size_t num = same_options(own, same);
    for (size_t i = 0; i < num; i++)
    {
        first[i] = same[i].value;
    }
    gmxfmm_status status = fmm_ranks_broadcast(comm, 0, first, num * sizeof(*first));
    for (size_t i = 0; i < num && status == GMXFMM_OK; i++)
    {
        if (same[i].value != first[i])
        {
            snprintf(message, size, "option %s is %g, on rank 0 it is %g: give all ranks the same", same[i].name,
                     same[i].value, first[i]);
            status = GMXFMM_ERROR_OPTION;
        }
    }
    return fmm_ranks_agree(comm, status, message, size);
}

/* Whether it is a communicator that can be used. Ranks that have none cannot tell others. */
static gmxfmm_status check(const gmxfmm_comm* comm, char* message, size_t size)
{
    if (comm == NULL)
    {
        snprintf(message, size, "comm must not be NULL");
        return GMXFMM_ERROR_NULL;
    }
    if (comm->size < 1 || comm->size > FMM_MOST_RANKS || comm->rank < 0 || comm->rank >= comm->size)
    {
        snprintf(message, size, "the communicator has rank %d of %d: there are 1 to %d ranks, the first is 0",
                 comm->rank, comm->size, FMM_MOST_RANKS);
        return GMXFMM_ERROR_OPTION;
    }
    if (comm->size > 1 && (comm->all_gather == NULL || comm->exchange == NULL))
    {
        snprintf(message, size, "the communicator has no function %s",
                 comm->all_gather == NULL ? "all_gather" : "exchange");
        return GMXFMM_ERROR_NULL;
    }
    return GMXFMM_OK;
}

/* The plan of several ranks, whose options are the same; known: the status, with its text, of what this rank has
 * checked before. */
static gmxfmm_status create(gmxfmm_plan**         plan,
                            const gmxfmm_options* options,
                            const gmxfmm_comm*    comm,
                            int64_t               num_particles,
                            const double*         box,
                            int                   measures,
                            gmxfmm_status         known,
                            char*                 text,
                            size_t                size)
{
    gmxfmm_plan*  made   = NULL;
    gmxfmm_status status = known;
    fmm_ranks*    ranks  = fmm_ranks_create(comm);
    if (status == GMXFMM_OK && ranks == NULL)
    {
        snprintf(text, size, "out of memory");
        status = GMXFMM_ERROR_MEMORY;
    }
    if (status == GMXFMM_OK)
    {
        status = fmm_create_with_errors(plan != NULL ? &made : NULL, options, num_particles, box, measures, NULL, ranks,
                                        text, size);
    }
    status = fmm_ranks_agree(comm, status, text, size);
    status = status == GMXFMM_OK ? compare_options(comm, &made->options, text, size) : status;
    if (status != GMXFMM_OK)
    {
        if (made != NULL)
        {
            made->ranks = NULL;
        }
        gmxfmm_destroy(made);
        fmm_ranks_destroy(ranks);
        return status;
    }
    *plan = made;
    return GMXFMM_OK;
}

gmxfmm_status gmxfmm_create_parallel(gmxfmm_plan**         plan,
                                     const gmxfmm_options* options,
                                     const gmxfmm_comm*    comm,
                                     int64_t               num_particles,
                                     const double*         box,
                                     char*                 message,
                                     size_t                message_size)
{
    char                unread[256];
    char*               text   = message != NULL && message_size > 0 ? message : unread;
    const size_t        size   = text == unread ? sizeof(unread) : message_size;
    const gmxfmm_status status = check(comm, text, size);
    if (plan != NULL)
    {
        *plan = NULL;
    }
    if (status != GMXFMM_OK)
    {
        return status;
    }
    return comm->size == 1 ? gmxfmm_create(plan, options, num_particles, box, message, message_size)
                           : create(plan, options, comm, num_particles, box, 0, GMXFMM_OK, text, size);
}

gmxfmm_status gmxfmm_create_parallel_measured(gmxfmm_plan**         plan,
                                              const gmxfmm_options* options,
                                              const gmxfmm_comm*    comm,
                                              const gmxfmm_system*  system,
                                              gmxfmm_measurement*   chosen,
                                              char*                 message,
                                              size_t                message_size)
{
    char           unread[256];
    char*          text = message != NULL && message_size > 0 ? message : unread;
    const size_t   size = text == unread ? sizeof(unread) : message_size;
    gmxfmm_options own;
    double         accuracy = INFINITY;
    gmxfmm_plan*   made     = NULL;
    gmxfmm_status  status   = check(comm, text, size);
    if (plan != NULL)
    {
        *plan = NULL;
    }
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (comm->size == 1)
    {
        return gmxfmm_create_measured(plan, options, system, chosen, NULL, NULL, message, message_size);
    }
    if (plan == NULL || options == NULL || system == NULL)
    {
        snprintf(text, size, "plan, options or system is NULL");
        status = GMXFMM_ERROR_NULL;
    }
    status = status == GMXFMM_OK ? fmm_measured_treecode_options(&own, &accuracy, options, system, chosen, text, size)
                                 : status;
    if (status == GMXFMM_OK && own.method == GMXFMM_FMM)
    {
        snprintf(
            text, size,
            "several ranks measure the error of a treecode alone: choose method = treecode, or measure on one rank "
            "and make a plan with what it chose (gmxfmm_create_parallel)");
        status = GMXFMM_ERROR_UNSUPPORTED;
    }
    status = create(&made, &own, comm, status == GMXFMM_OK ? system->n : 0, status == GMXFMM_OK ? system->box : NULL, 1,
                    status, text, size);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    text[0] = '\0';
    status  = fmm_measure_treecode(made, &own, accuracy, system, chosen, text, size);
    if (status != GMXFMM_OK)
    {
        gmxfmm_destroy(made);
        return status;
    }
    *plan = made;
    return GMXFMM_OK;
}
