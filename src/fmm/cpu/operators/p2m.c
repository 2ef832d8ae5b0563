/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2M: one lane is one cell; the lanes walk through their cells' particles side by side. */
#include "fmm/math/portable.h"

#define HARM_T vreal
#define HARM_R real
#include "fmm/math/harmonics.h"

#include "fmm/cpu/operators/step.h"

enum
{
    c_maxCoef = (GMXFMM_MAX_ORDER + 1) * (GMXFMM_MAX_ORDER + 1)
};

/* conj Upsilon(x, y, z) = Upsilon(x, -y, z) */
static void block_multipoles(const gmxfmm_plan* plan, int first, int lanes, const real* inverse, vreal* m)
{
    const fmm_arrays a     = fmm_arrays_of(&plan->cpu->charges);
    const int*       start = plan->cpu->charges.cell_start;
    int              begin[VLEN], count[VLEN], most = 0;
    for (int i = 0; i < harm_size(plan->order); i++)
    {
        m[i] = (vreal){0};
    }
    for (int l = 0; l < VLEN; l++)
    {
        begin[l] = l < lanes ? start[first + l] : 0;
        count[l] = l < lanes ? start[first + l + 1] - begin[l] : 0;
        most     = count[l] > most ? count[l] : most;
    }
    for (int k = 0; k < most; k++)
    {
        _Alignas(FMM_ALIGN) real x[VLEN], y[VLEN], z[VLEN], q[VLEN];
        for (int l = 0; l < VLEN; l++)
        {
            const int s = k < count[l] ? begin[l] + k : begin[l]; /* padded arrays: always a valid place */
            x[l]        = a.x[s];
            y[l]        = -a.y[s];
            z[l]        = a.z[s];
            q[l]        = k < count[l] ? a.q[s] : 0;
        }
        harm_add_upsilon(plan->order, *(vreal*)x, *(vreal*)y, *(vreal*)z, *(vreal*)q, inverse, m);
    }
}

void fmm_p2m(const gmxfmm_plan* plan, real* field, size_t stride)
{
    real      inverse[c_maxCoef];
    const int num = plan->num_cells;
    harm_fill_inverse(plan->order, inverse);
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
    for (int first = 0; first < num; first += VLEN)
    {
        vreal m[c_maxCoef];
        block_multipoles(plan, first, num - first < VLEN ? num - first : VLEN, inverse, m);
        for (int i = 0; i < harm_size(plan->order); i++)
        {
            *(vreal*)(field + (size_t)i * stride + first) = m[i];
        }
    }
}
