/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Charges, dipoles and widths: checked, copied, added up, and told to the backend. */
#include "fmm/charges.h"

#include <math.h>
#include <stdlib.h>

#include "fmm/backend.h"
#include "fmm/charge_derivatives.h"
#include "fmm/math/threads.h"
#include "fmm/memory.h"
#include "fmm/numbers.h"
#include "fmm/particles.h"
#include "fmm/process.h"
#include "fmm/state.h"
#include "fmm/status.h"

enum
{
    c_parts = 256, /* of a sum, so that it has the same bits with any number of threads */
    c_lanes = 8    /* of them that are added up at once: a divisor */
};

/* Squares of larger widths would be no numbers. */
static const double c_widest = 1e100;

static void free_dipoles(gmxfmm_plan* plan)
{
    free(plan->charges.mu);
    plan->bytes -= plan->charges.mu_bytes;
    plan->charges.mu       = NULL;
    plan->charges.mu_bytes = 0;
}

static void free_widths(gmxfmm_plan* plan)
{
    free(plan->charges.width);
    plan->bytes -= plan->charges.width_bytes;
    plan->charges.width       = NULL;
    plan->charges.width_bytes = 0;
    plan->charges.widest      = 0;
}

void fmm_charges_free(gmxfmm_plan* plan)
{
    fmm_charge_derivatives_free(plan);
    free_dipoles(plan);
    free_widths(plan);
    free(plan->charges.q);
    plan->bytes -= plan->charges.bytes;
    plan->charges.q     = NULL;
    plan->charges.bytes = 0;
    fmm_particles_set_number(plan, 0);
}

/* The first number that is not finite, or n. */
static int64_t find_bad(const gmxfmm_plan* plan, int64_t n, const void* q)
{
    const gmxfmm_precision type = plan->options.array_type;
    int64_t                bad  = n;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(min : bad) if (n > FMM_FEW_PARTICLES)
    for (int64_t i = 0; i < n; i++)
    {
        bad = !isfinite(fmm_number_of(q, type, i)) && i < bad ? i : bad;
    }
    return bad;
}

/* Adds v to sum[2], which is exact but for digits behind those of two numbers: sums of charges then do not depend on
 * their order. (Knuth 1997, section 4.2.2, theorem B) */
static void add_exactly(double* sum, double v)
{
    const double s = sum[0] + v, b = s - sum[0], low = sum[1] + ((sum[0] - (s - b)) + (v - b));
    sum[0] = s + low;
    sum[1] = low - (sum[0] - s);
}

void fmm_charges_set_total(gmxfmm_plan* plan, const double* sums, int num)
{
    double sum[2] = {0, 0};
    for (int i = 0; i < 2 * num; i++)
    {
        add_exactly(sum, sums[i]);
    }
    plan->charges.total[0] = sum[0];
    plan->charges.rest[0]  = sum[1];
}

/* Sums of the charges of c_lanes parts: an addition waits for the last one of its part alone. */
static void add_parts(const double* q, int64_t n, int part, double (*sum)[2])
{
    const double* at[c_lanes];
    double        own[c_lanes][2] = {{0}};
    const int64_t least           = n / c_parts; /* charges of a part; some have one more */
    for (int l = 0; l < c_lanes; l++)
    {
        at[l] = q + n * (part + l) / c_parts;
    }
    for (int64_t k = 0; k < least; k++)
    {
        for (int l = 0; l < c_lanes; l++)
        {
            add_exactly(own[l], at[l][k]);
        }
    }
    for (int l = 0; l < c_lanes; l++)
    {
        if (at[l] + least < q + n * (part + l + 1) / c_parts)
        {
            add_exactly(own[l], at[l][least]);
        }
        sum[l][0] = own[l][0];
        sum[l][1] = own[l][1];
    }
}

static void copy_charges(gmxfmm_plan* plan, int64_t n, const void* q)
{
    double                 sum[c_parts][2];
    const gmxfmm_precision type = plan->options.array_type;
    double* const          to   = plan->charges.q;
#pragma omp parallel num_threads(plan->num_threads) if (n > FMM_FEW_PARTICLES)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++)
        {
            to[i] = fmm_number_of(q, type, i);
        }
#pragma omp for schedule(static)
        for (int part = 0; part < c_parts; part += c_lanes)
        {
            add_parts(to, n, part, sum + part);
        }
    }
    fmm_charges_set_total(plan, sum[0], c_parts);
    plan->charges.version++;
}

/* Room for charges of n particles, which are new ones if there were others, or none. */
static gmxfmm_status reserve(gmxfmm_plan* plan, int64_t n)
{
    fmm_charges_free(plan);
    const size_t before = plan->bytes;
    plan->charges.q     = fmm_alloc(plan, FMM_CHARGE_SETS * (size_t)n * sizeof(double));
    plan->charges.bytes = plan->bytes - before;
    if (plan->charges.q == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)n);
    }
    fmm_particles_set_number(plan, n);
    return GMXFMM_OK;
}

static gmxfmm_status set_charges(gmxfmm_plan* plan, int64_t n, const void* q)
{
    if (q == NULL && n > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "charges are NULL");
    }
    if (n < 0 || n > INT32_MAX / 4)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "number of particles is %lld, allowed is 0 to %d", (long long)n,
                        INT32_MAX / 4);
    }
    gmxfmm_status status = fmm_check_threads(plan);
    status               = status == GMXFMM_OK ? plan->backend->on_host(plan, &q, (size_t)n) : status;
    const int64_t bad    = status == GMXFMM_OK ? find_bad(plan, n, q) : n;
    if (bad < n)
    {
        return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "charge of particle %lld is %g: not finite", (long long)bad,
                        fmm_number_of(q, plan->options.array_type, bad));
    }
    const int others = n != plan->particles.n || plan->charges.q == NULL;
    plan->charges.graph_version++;
    status = status == GMXFMM_OK && others ? reserve(plan, n) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    copy_charges(plan, n, q);
    status = plan->backend->set_charges(plan);
    status = status == GMXFMM_OK && others ? fmm_particles_exclude_none(plan) : status;
    if (status != GMXFMM_OK)
    {
        fmm_charges_free(plan);
    }
    return status;
}

gmxfmm_status gmxfmm_set_charges(gmxfmm_plan* plan, int64_t n, const void* q)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    const gmxfmm_status status = fmm_agree(plan, set_charges(plan, n, q));
    if (status != GMXFMM_OK && plan->ranks != NULL)
    {
        fmm_charges_free(plan); /* no rank goes on with charges that others do not have */
    }
    return status;
}

/* Whether there are charges, and as many of what is to be set beside them; what: its name. */
static gmxfmm_status check_beside_charges(gmxfmm_plan* plan, int64_t n, const char* what)
{
    if (plan->charges.q == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before set_%s", what);
    }
    return n == plan->particles.n ? GMXFMM_OK
                                  : fmm_fail(plan, GMXFMM_ERROR_OPTION,
                                             "number of %s is %lld, and there are %lld particles: set one of each",
                                             what, (long long)n, (long long)plan->particles.n);
}

gmxfmm_status fmm_charges_check_dipoles(gmxfmm_plan* plan, int64_t n)
{
    if (plan->backend->set_dipoles == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "dipoles are offered by the FMM, on one rank: use method = fmm and gmxfmm_create");
    }
    const gmxfmm_status status = check_beside_charges(plan, n, "dipoles");
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (plan->charges.width != NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "dipoles and second derivatives are of point charges: set widths to NULL first");
    }
    return plan->options.min_distance > 0
               ? fmm_fail(plan, GMXFMM_ERROR_OPTION, "min_distance is for charges alone: set none of it with dipoles")
               : fmm_check_threads(plan);
}

/* Whether these dipoles can be set. *mu becomes an address on the host. */
static gmxfmm_status check_dipoles(gmxfmm_plan* plan, int64_t n, const void** mu)
{
    gmxfmm_status status = fmm_charges_check_dipoles(plan, n);
    status               = status == GMXFMM_OK ? plan->backend->on_host(plan, mu, 3 * (size_t)n) : status;
    const int64_t bad    = status == GMXFMM_OK ? find_bad(plan, 3 * n, *mu) : 3 * n;
    return bad < 3 * n
               ? fmm_fail(plan, GMXFMM_ERROR_CHARGE, "dipole of particle %lld is not finite", (long long)bad / 3)
               : status;
}

static gmxfmm_status set_dipoles(gmxfmm_plan* plan, int64_t n, const void* mu)
{
    if (mu == NULL && !fmm_has_dipoles(plan))
    {
        return GMXFMM_OK;
    }
    gmxfmm_status status = mu != NULL ? check_dipoles(plan, n, &mu) : GMXFMM_OK;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    plan->charges.version++;
    if (mu == NULL || !fmm_has_dipoles(plan))
    {
        fmm_particles_unassign(plan);
    }
    if (mu == NULL)
    {
        free_dipoles(plan);
        return plan->backend->set_dipoles(plan);
    }
    if (!fmm_has_dipoles(plan))
    {
        const size_t before    = plan->bytes;
        plan->charges.mu       = fmm_alloc(plan, 3 * (size_t)n * sizeof(double));
        plan->charges.mu_bytes = plan->bytes - before;
        status                 = plan->charges.mu != NULL
                                     ? plan->backend->set_dipoles(plan)
                                     : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld dipoles", (long long)n);
    }
    for (int64_t i = 0; i < 3 * n && status == GMXFMM_OK; i++)
    {
        plan->charges.mu[i] = fmm_number_of(mu, plan->options.array_type, i);
    }
    if (status == GMXFMM_OK && plan->backend->take_dipoles != NULL)
    {
        status = plan->backend->take_dipoles(plan);
    }
    if (status != GMXFMM_OK)
    {
        free_dipoles(plan);
        fmm_particles_unassign(plan);
    }
    return status;
}

gmxfmm_status gmxfmm_set_dipoles(gmxfmm_plan* plan, int64_t n, const void* mu)
{
    return plan == NULL ? GMXFMM_ERROR_NULL : fmm_agree(plan, set_dipoles(plan, n, mu));
}

/* Whether widths can be set, and what is in the way. *width becomes an address on the host. */
static gmxfmm_status check_widths(gmxfmm_plan* plan, int64_t n, const void** width)
{
    if (!plan->backend->has_widths)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "widths are offered by the FMM on the CPU, on one rank: use method = fmm, device = cpu and "
                        "gmxfmm_create");
    }
    gmxfmm_status status = check_beside_charges(plan, n, "widths");
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (fmm_has_dipoles(plan))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "widths are of charges alone: set dipoles to NULL first");
    }
    if (plan->options.min_distance > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "min_distance is for point charges: set none of it with widths");
    }
    status = fmm_check_threads(plan);
    status = status == GMXFMM_OK ? plan->backend->on_host(plan, width, (size_t)n) : status;
    for (int64_t i = 0; i < n && status == GMXFMM_OK; i++)
    {
        const double s = fmm_number_of(*width, plan->options.array_type, i);
        if (!(s >= 0 && s < c_widest))
        {
            return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "width of particle %lld is %g, allowed is 0 to %g", (long long)i,
                            s, c_widest);
        }
    }
    return status;
}

static gmxfmm_status set_widths(gmxfmm_plan* plan, int64_t n, const void* width)
{
    if (width == NULL && plan->charges.width == NULL)
    {
        return GMXFMM_OK;
    }
    const gmxfmm_status status = width != NULL ? check_widths(plan, n, &width) : GMXFMM_OK;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    fmm_particles_unassign(plan);
    free_widths(plan);
    if (width == NULL)
    {
        return GMXFMM_OK;
    }
    const size_t before       = plan->bytes;
    plan->charges.width       = fmm_alloc(plan, (size_t)n * sizeof(double));
    plan->charges.width_bytes = plan->bytes - before;
    if (plan->charges.width == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld widths", (long long)n);
    }
    for (int64_t i = 0; i < n; i++)
    {
        plan->charges.width[i] = fmm_number_of(width, plan->options.array_type, i);
        plan->charges.widest   = fmax(plan->charges.widest, plan->charges.width[i]);
    }
    return GMXFMM_OK;
}

gmxfmm_status gmxfmm_set_widths(gmxfmm_plan* plan, int64_t n, const void* width)
{
    return plan == NULL ? GMXFMM_ERROR_NULL : fmm_agree(plan, set_widths(plan, n, width));
}

gmxfmm_status gmxfmm_enqueue_charges(gmxfmm_plan* plan, int64_t count, const int* index, const void* q, void* stream)
{
    if (plan == NULL || (q == NULL && count > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "charges are NULL");
    }
    if (plan->backend->enqueue_charges == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%s", plan->backend->no_enqueue_charges);
    }
    if (plan->charges.q == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before enqueue_charges");
    }
    if (count < 0 || count > plan->particles.n || (index == NULL && count != plan->particles.n))
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "number of charges is %lld, allowed is %s%lld", (long long)count,
                        index != NULL ? "0 to " : "", (long long)plan->particles.n);
    }
    plan->charges.version++;
    return plan->backend->enqueue_charges(plan, count, index, q, stream);
}
