/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derivatives of charges by parameters, and of the energy by these: with E = 1/2 sum q_i phi_i, phi linear in the
 * charges, dE/dq_i = phi_i. */
#include "fmm/charge_derivatives.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/memory.h"
#include "fmm/state.h"
#include "fmm/status.h"

void fmm_charge_derivatives_free(gmxfmm_plan* plan)
{
    fmm_charge_derivatives* d = &plan->derivatives;
    free(d->start);
    free(d->entry);
    free(d->slot);
    free(d->dq);
    free(d->phi);
    plan->bytes -= d->bytes;
    *d = (fmm_charge_derivatives){.graph_version = d->graph_version};
}

static gmxfmm_status check(gmxfmm_plan* plan, int num, const int* start, const int* index, const double* dq)
{
    if (num < 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "number of parameters is %d, it must be 0 or more", num);
    }
    if (num > 0 && start == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "start of charge derivatives is NULL");
    }
    if (num > 0 && start[0] != 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "start[0] of charge derivatives is %d, it must be 0", start[0]);
    }
    for (int k = 0; k < num; k++)
    {
        if (start[k + 1] < start[k])
        {
            return fmm_fail(plan, GMXFMM_ERROR_OPTION,
                            "start of charge derivatives falls from %d to %d at parameter %d", start[k], start[k + 1],
                            k);
        }
    }
    const int all = num > 0 ? start[num] : 0;
    if (all > 0 && (index == NULL || dq == NULL))
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "%s of charge derivatives is NULL", index == NULL ? "index" : "dq");
    }
    for (int j = 0; j < all; j++)
    {
        if (index[j] < 0 || index[j] >= plan->particles.n)
        {
            return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "index of charge derivative %d is %d, not 0 to %lld", j,
                            index[j], (long long)plan->particles.n - 1);
        }
        if (!isfinite(dq[j]))
        {
            return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "charge derivative %d is %g: not finite", j, dq[j]);
        }
    }
    return GMXFMM_OK;
}

/* Numbers the particles index[all], which have derivatives. */
static void set_slots(fmm_charge_derivatives* d, int64_t n, const int* index, int all)
{
    int used = 0;
    for (int64_t i = 0; i < n; i++)
    {
        d->slot[i] = -1;
    }
    for (int j = 0; j < all; j++)
    {
        int* slot   = &d->slot[index[j]];
        *slot       = *slot < 0 ? used++ : *slot;
        d->entry[j] = *slot;
    }
}

static gmxfmm_status
set_charge_derivatives(gmxfmm_plan* plan, int num, const int* start, const int* index, const double* dq)
{
    if (!(plan->backend->capabilities(plan) & GMXFMM_CAN_CHARGE_GRADIENT))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "charge derivatives are offered by the FMM, at the charges: use method = fmm, without targets");
    }
    if (plan->charges.q == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before set_charge_derivatives");
    }
    const gmxfmm_status status = check(plan, num, start, index, dq);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    fmm_charge_derivatives_free(plan);
    plan->derivatives.graph_version++;
    if (num == 0)
    {
        return GMXFMM_OK;
    }
    fmm_charge_derivatives* d      = &plan->derivatives;
    const size_t            before = plan->bytes, all = (size_t)start[num];
    d->start = fmm_alloc(plan, ((size_t)num + 1) * sizeof(int));
    d->entry = fmm_alloc(plan, (all + 1) * sizeof(int));
    d->slot  = fmm_alloc(plan, ((size_t)plan->particles.n + 1) * sizeof(int));
    d->dq    = fmm_alloc(plan, (all + 1) * sizeof(double));
    d->phi   = fmm_alloc(plan, (all + 1) * sizeof(double));
    d->bytes = plan->bytes - before;
    if (d->start == NULL || d->entry == NULL || d->slot == NULL || d->dq == NULL || d->phi == NULL)
    {
        fmm_charge_derivatives_free(plan);
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %zu charge derivatives", all);
    }
    d->num = num;
    memcpy(d->start, start, ((size_t)num + 1) * sizeof(int));
    if (all > 0)
    {
        memcpy(d->dq, dq, all * sizeof(double));
    }
    set_slots(d, plan->particles.n, index, (int)all);
    const fmm_backend*  b   = plan->backend;
    const gmxfmm_status set = b->set_charge_derivatives != NULL ? b->set_charge_derivatives(plan) : GMXFMM_OK;
    if (set != GMXFMM_OK)
    {
        fmm_charge_derivatives_free(plan);
    }
    return set;
}

gmxfmm_status
gmxfmm_set_charge_derivatives(gmxfmm_plan* plan, int num, const int* start, const int* index, const double* dq)
{
    return plan == NULL ? GMXFMM_ERROR_NULL : fmm_agree(plan, set_charge_derivatives(plan, num, start, index, dq));
}
