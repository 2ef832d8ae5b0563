/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L target by target, a lane a source: what all variants that are made of a kernel have in common. */
#include <string.h>

#include "fmm/cpu/octree/m2l_job.h"
#include "fmm/cpu/simd/lanes.h"

int fmm_m2l_source(const fmm_m2l_job* job, int target, const fmm_translation* t)
{
    const fmm_tree* tree = job->plan->domain.tree;
    const int       cell = job->parent != NULL ? job->parent[target] : target;
    const int       near = job->upper->near[(size_t)cell * (size_t)tree->num_near + (size_t)t->near];
    return job->upper->child[8 * (size_t)near + (size_t)t->octant];
}

/* Occupied sources of a target and their displacements, in the order of the list; padded with the empty cell. */
static int find_sources(const fmm_m2l_job* job, int target, const fmm_scratch* s)
{
    int count = 0;
    for (int i = 0; i < job->num_list; i++)
    {
        const int source = fmm_m2l_source(job, target, &job->list[i]);
        s->source[count] = source;
        s->vector[count] = job->first_vector + job->list[i].vector;
        count += source != job->empty;
    }
    for (int i = count; i < count + VLEN; i++)
    {
        s->source[i] = job->empty;
        s->vector[i] = count > 0 ? s->vector[count - 1] : job->first_vector + job->list[0].vector;
    }
    return count;
}

/* Sets coefficients of higher degree than order[lane] + more to zero. */
static void cut_to(const fmm_row_layout* layout, const int* order, int more, vreal* x)
{
    vreal keep[GMXFMM_MAX_ORDER + 2];
    for (int n = 0; n <= layout->order; n++)
    {
        for (int lane = 0; lane < VLEN; lane++)
        {
            keep[n][lane] = n <= order[lane] + more;
        }
    }
    for (int i = 0; i < layout->num; i++)
    {
        x[i] *= keep[layout->degree[i]];
    }
}

/* Adds R x to the totals of the strain. */
static void add_strained(const fmm_m2l_job* job, const fmm_scratch* s, const int* vector, const vreal* x)
{
    _Alignas(FMM_ALIGN) real r[3][VLEN];
    for (int i = 0; i < VLEN; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            r[d][i] = job->ops->displacement[vector[i]][d];
        }
    }
    for (int i = 0; i < job->layout->num; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            s->total[1 + d][i] += *(const vreal*)r[d] * x[i];
        }
    }
}

/* Adds VLEN translations from source[] along vector[] to the totals. Each has its own order, as its mirror image from
 * target to source has, so that forces stay the gradient of the energy. */
static void add_translations(const fmm_m2l_job* job, const fmm_scratch* s, int from, fmm_m2l_kernel* kernel)
{
    const struct fmm_operators* ops    = job->ops;
    const fmm_row_layout*       layout = job->layout;
    const int *                 source = s->source + from, *vector = s->vector + from;
    const real*                 row[VLEN];
    int                         order[VLEN], highest = 0, lowest = ops->order;
    for (int i = 0; i < VLEN; i++)
    {
        order[i] = fmm_job_order(job, vector[i]);
        row[i]   = ops->rows + (size_t)source[i] * (size_t)layout->row;
        highest  = order[i] > highest ? order[i] : highest;
        lowest   = order[i] < lowest ? order[i] : lowest;
    }
    lanes_load_rows(row, ops->rows_by_degree ? (highest + 1) * (highest + 1) : layout->num, s->in);
    if (!job->strain && lowest == highest)
    {
        kernel(job, s, vector, highest, s->total[0]);
        return;
    }
    vreal* out = s->sum[0]; /* not in use yet */
    memset(out, 0, (size_t)layout->row * sizeof(vreal));
    if (lowest < highest)
    {
        cut_to(layout, order, 0, s->in);
    }
    kernel(job, s, vector, highest, out);
    if (job->strain)
    {
        /* forces take one degree more; locals, which may have it, are to be without */
        cut_to(layout, order, 1, out);
        add_strained(job, s, vector, out);
        for (int i = 0; i < VLEN; i++)
        {
            order[i] += order[i] == ops->order;
        }
    }
    if (lowest < ops->order)
    {
        cut_to(layout, order, 0, out);
    }
    for (int i = 0; i < layout->num; i++)
    {
        s->total[0][i] += out[i];
    }
}

void fmm_m2l_by_target(const fmm_m2l_job* job, int first, int lanes, const fmm_scratch* s, fmm_m2l_kernel* kernel)
{
    const fmm_row_layout* layout = job->layout;
    const int             num    = job->strain ? 4 : 1;
    for (int lane = 0; lane < lanes; lane++)
    {
        const int count = find_sources(job, first + lane, s);
        for (int t = 0; t < num; t++)
        {
            memset(s->total[t], 0, (size_t)layout->row * sizeof(vreal));
        }
        for (int from = 0; from < count; from += VLEN)
        {
            add_translations(job, s, from, kernel);
        }
        for (int t = 0; t < num; t++)
        {
            lanes_sum(s->total[t], layout->num, s->rows[t] + (size_t)lane * (size_t)layout->row);
        }
    }
    for (int t = 0; t < num; t++)
    {
        const real* row[VLEN];
        for (int lane = 0; lane < VLEN; lane++)
        {
            row[lane] = s->rows[t] + (size_t)(lane < lanes ? lane : 0) * (size_t)layout->row;
        }
        lanes_load_rows(row, layout->num, s->in);
        for (int i = 0; i < layout->num; i++)
        {
            s->sum[t][layout->harm[i]] = s->in[i];
        }
    }
}
