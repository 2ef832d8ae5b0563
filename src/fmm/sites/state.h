/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What gmxfmm_sites keeps, and what a device does for it. */
#ifndef FMM_SITES_STATE_H
#define FMM_SITES_STATE_H

#include "fmm/gmxfmm_sites.h"
#include "fmm/math/lj.h"

/* What computes: the CPU in one of two precisions, or a device. Arguments were checked. Errors go to the message. */
struct sites_backend
{
    gmxfmm_status (*create)(gmxfmm_sites* sites);
    void (*destroy)(gmxfmm_sites* sites);
    gmxfmm_status (*search)(gmxfmm_sites* sites, const void* x, double reach, void* stream); /* in sites->box */
    gmxfmm_status (*execute)(gmxfmm_sites* sites, const void* x, void* f, double* energy, double* virial); /* CPU */
    gmxfmm_status (*enqueue_box)(gmxfmm_sites* sites, void* stream);                                       /* device */
    gmxfmm_status (*enqueue)(gmxfmm_sites* sites, const void* x, double* sums, void* stream);              /* device */
    gmxfmm_status (*enqueue_forces)(gmxfmm_sites* sites, void* f, void* stream);                           /* device */
};

struct gmxfmm_sites
{
    gmxfmm_sites_system         system; /* its arrays are those below */
    int *                       start, *atom, *type;
    int *                       exclusion_start, *exclusion; /* sorted rows, without the group; NULL: none */
    double *                    weight, *c6, *c12;
    struct lj_pair              lj;
    int                         num_targets; /* groups whose forces are computed, */
    int*                        target;      /* NULL: all */
    int                         num_counted; /* of these, the first: what they have counts for energy and virial */
    double                      box[9];
    int                         has_search;
    int                         graph_version;
    const struct sites_backend* backend;
    void*                       memory; /* of the backend */
    int64_t                     num_pairs, num_within, bytes, device_bytes;
    char                        message[512];
};

/* Writes the message and returns status. */
gmxfmm_status sites_fail(gmxfmm_sites* sites, gmxfmm_status status, const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Of src/cuda; where the library is built without it there is none. The CPU's are in sites.c. */
extern const struct sites_backend sites_cuda;

/* What is wrong with a system. Errors: NULL, OPTION, UNSUPPORTED. */
gmxfmm_status sites_check_system(const gmxfmm_sites_system* system, char* message, size_t size);

/* Replaces the exclusions of the system, which were checked one by one, by a copy. Errors: MEMORY, OPTION. */
gmxfmm_status sites_copy_exclusions(gmxfmm_sites* sites);

/* Whether there is an inner range. */
static inline int sites_has_inner(const gmxfmm_sites_system* system)
{
    return system->inner.cutoff != 0;
}

/* Whether the box has a vector for each periodic one, a lower triangle, and no site is within `reach` of two images of
 * another. Errors: BOX. */
gmxfmm_status sites_check_box(gmxfmm_sites* sites, const double* box, double reach);

#endif
