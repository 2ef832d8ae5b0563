/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sites on the CPU: memory, positions of sites, and a step. */
#include "fmm/sites/cpu.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Sites of a domain: many have short halos for their number, and few divide a small system among many threads. */
enum
{
    c_domainSites = 256
};

static size_t rounded(int num)
{
    return ((size_t)num + VLEN - 1) / VLEN * VLEN;
}

/* Zeroed and aligned, counted in sites->bytes. */
static void* take(gmxfmm_sites* sites, size_t num, size_t size)
{
    const size_t bytes  = (num * size + FMM_ALIGN) / FMM_ALIGN * FMM_ALIGN;
    void*        memory = aligned_alloc(FMM_ALIGN, bytes);
    if (memory != NULL)
    {
        memset(memory, 0, bytes);
        sites->bytes += (int64_t)bytes;
    }
    return memory;
}

static void destroy(gmxfmm_sites* sites)
{
    struct sites_cpu_memory* m = sites->memory;
    for (int i = 0; i < m->num_domains && m->domain != NULL; i++)
    {
        free(m->domain[i].list);
        free(m->domain[i].halo);
        free(m->domain[i].image);
    }
    void* const all[] = {m->order, m->site,   m->is_target, m->excluded,   m->near,      m->place,      m->is_used,
                         m->block, m->domain, m->force,     m->halo_start, m->halo_of,   m->halo_force, m->halo_place,
                         m->sums,  m->p6,     m->p12,       m->table,      m->table_type};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    {
        free(all[i]);
    }
    free(m);
    sites->memory = NULL;
}

static gmxfmm_status create(gmxfmm_sites* sites)
{
    const int                num = sites->system.num_groups, threads = sites->system.num_threads;
    const int                types = num > 0 ? sites->system.num_types : 0;
    const size_t             all = rounded(num), pairs = (size_t)types * (size_t)types;
    struct sites_cpu_memory* m = sites->memory = take(sites, 1, sizeof(*m));
    if (m == NULL)
    {
        return sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    m->num          = num;
    m->num_blocks   = (int)(all / VLEN);
    m->num_domains  = num / c_domainSites + 1;
    m->table_stride = (size_t)types * 2 * VLEN;
    m->order        = take(sites, all, sizeof(int));
    m->site         = take(sites, all, sizeof(int));
    m->is_target    = take(sites, all, sizeof(int));
    m->near         = take(sites, 3 * all, sizeof(double));
    m->place        = take(sites, all, sizeof(sites_place));
    m->is_used      = take(sites, all, 1);
    m->block        = take(sites, (size_t)m->num_blocks, sizeof(struct sites_block));
    m->domain       = take(sites, (size_t)m->num_domains, sizeof(struct sites_domain));
    m->force        = take(sites, all * SITES_STRIDE, sizeof(real));
    m->halo_start   = take(sites, all + 1, sizeof(int));
    m->sums         = take(sites, (size_t)m->num_blocks * SITES_SUMS, sizeof(double));
    m->p6           = take(sites, pairs, sizeof(real));
    m->p12          = take(sites, pairs, sizeof(real));
    m->table        = take(sites, (size_t)threads * m->table_stride, sizeof(real));
    m->table_type   = take(sites, (size_t)threads * VLEN, sizeof(int));
    if (sites->exclusion_start != NULL)
    {
        m->excluded = take(sites, all, sizeof(int));
        if (m->excluded == NULL)
        {
            return sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory for exclusions of %d groups", num);
        }
    }
    if (m->order == NULL || m->site == NULL || m->is_target == NULL || m->near == NULL || m->place == NULL ||
        m->is_used == NULL || m->block == NULL || m->domain == NULL || m->force == NULL || m->halo_start == NULL ||
        m->sums == NULL || m->p6 == NULL || m->p12 == NULL || m->table == NULL || m->table_type == NULL)
    {
        return sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory for %d groups", num);
    }
    for (int p = 0; p < m->num_domains; p++)
    {
        m->domain[p].begin = (int)((int64_t)m->num_blocks * p / m->num_domains);
        m->domain[p].end   = (int)((int64_t)m->num_blocks * (p + 1) / m->num_domains);
    }
    for (size_t i = 0; i < pairs; i++)
    {
        m->p6[i]  = (real)(6 * sites->c6[i]);
        m->p12[i] = (real)(12 * sites->c12[i]);
    }
    memset(m->table_type, 0xff, (size_t)threads * VLEN * sizeof(int)); /* of no type */
    return GMXFMM_OK;
}

/* The site of a group: each atom is taken in its image that is nearest to the first. */
static inline void site_of(const gmxfmm_sites* sites, const real* x, int group, double* r)
{
    const double* box   = sites->box;
    const int     first = sites->start[group], end = sites->start[group + 1], num = sites->system.num_periodic;
    const real*   heavy  = x + 3 * (size_t)sites->atom[first];
    double        sum[3] = {0, 0, 0};
    for (int k = first + 1; k < end; k++)
    {
        const real* atom = x + 3 * (size_t)sites->atom[k];
        double      d[3] = {(double)atom[0] - (double)heavy[0], (double)atom[1] - (double)heavy[1],
                            (double)atom[2] - (double)heavy[2]};
        for (int i = num - 1; i >= 0; i--)
        {
            const double n = rint(d[i] / box[4 * i]);
            for (int j = 0; j <= i && n != 0; j++)
            {
                d[j] -= n * box[3 * i + j];
            }
        }
        for (int i = 0; i < 3; i++)
        {
            sum[i] += sites->weight[k] * d[i];
        }
    }
    for (int i = 0; i < 3; i++)
    {
        r[i] = (double)heavy[i] + sum[i];
    }
}

/* Whether a site is a number. Errors: POSITION. */
static gmxfmm_status check_finite(gmxfmm_sites* sites, int bad)
{
    return bad >= 0 ? sites_fail(sites, GMXFMM_ERROR_POSITION, "the site of group %d is not finite", bad) : GMXFMM_OK;
}

static gmxfmm_status search(gmxfmm_sites* sites, const void* x, double reach, void* stream)
{
    const int num = sites->system.num_groups;
    double*   R   = malloc((3 * (size_t)num + 1) * sizeof(double));
    int       bad = -1;
    (void)stream;
    if (R == NULL)
    {
        return sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory for %d sites", num);
    }
#pragma omp parallel for num_threads(sites->system.num_threads) schedule(static) reduction(max : bad)
    for (int g = 0; g < num; g++)
    {
        double* r = R + 3 * (size_t)g;
        site_of(sites, x, g, r);
        bad = isfinite(r[0]) && isfinite(r[1]) && isfinite(r[2]) ? bad : g;
        sites_into_box(sites, r);
    }
    gmxfmm_status status = check_finite(sites, bad);
    status               = status == GMXFMM_OK ? sites_cpu_make_lists(sites, R, reach) : status;
    free(R);
    return status;
}

/* Moves all sites that any target uses, each to the image that is nearest to where it was searched. In the order of
 * groups atoms are next to each other. */
static gmxfmm_status move_sites(gmxfmm_sites* sites, const real* x)
{
    struct sites_cpu_memory* m   = sites->memory;
    const double*            box = sites->box;
    int                      bad = -1;
#pragma omp parallel for num_threads(sites->system.num_threads) schedule(static) reduction(max : bad)
    for (int g = 0; g < m->num; g++)
    {
        const int s = m->site[g];
        double    r[3];
        if (!m->is_used[s])
        {
            continue;
        }
        site_of(sites, x, g, r);
        bad = isfinite(r[0]) && isfinite(r[1]) && isfinite(r[2]) ? bad : g;
        for (int i = sites->system.num_periodic - 1; i >= 0; i--)
        {
            const double n = rint((r[i] - m->near[3 * (size_t)g + (size_t)i]) / box[4 * i]);
            for (int d = 0; d <= i && n != 0; d++)
            {
                r[d] -= n * box[3 * i + d];
            }
        }
        for (int d = 0; d < 3; d++)
        {
            m->place[s].x[d] = (real)r[d];
        }
    }
    return check_finite(sites, bad);
}

static gmxfmm_status execute(gmxfmm_sites* sites, const void* x, void* f, double* energy, double* virial)
{
    const struct sites_cpu_memory* m               = sites->memory;
    double                         sum[SITES_SUMS] = {0};
    const int                      with_sums       = energy != NULL || virial != NULL;
    const gmxfmm_status            status          = move_sites(sites, x);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    sites_cpu_pairs(sites, f, with_sums);
    for (int b = 0; b < m->num_blocks && with_sums; b++)
    {
        for (int i = 0; i < SITES_SUMS; i++)
        {
            sum[i] += m->sums[(size_t)b * SITES_SUMS + (size_t)i];
        }
    }
    if (energy != NULL)
    {
        *energy = sum[0];
    }
    if (virial != NULL)
    {
        memcpy(virial, sum + 1, 9 * sizeof(double));
    }
    return GMXFMM_OK;
}

extern const struct sites_backend sites_cpu;
const struct sites_backend sites_cpu = {.create = create, .destroy = destroy, .search = search, .execute = execute};
