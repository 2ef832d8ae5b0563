/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a caller may have wrong: the system, and the box. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fmm/simd_level.h"
#include "fmm/sites/state.h"

/* The sum of a group's weights may differ by so much from 1: what is left of weights in single precision. */
static const double c_weights = 1e-6;

/* So much may two numbers of one pair of types differ by, relative to them: what rounding leaves. */
static const double c_symmetric = 1e-6;

/* Powers up to r^-14 of distances between these are numbers of single precision. */
static const double c_leastSingle = 0.003, c_mostSingle = 400;

#define FAIL(...) return snprintf(message, size, __VA_ARGS__), GMXFMM_ERROR_OPTION

static gmxfmm_status check_range(const char* name, const gmxfmm_lj_range* range, char* message, size_t size)
{
    const int modifier = (int)range->modifier;
    if (modifier < GMXFMM_LJ_CUT || modifier > GMXFMM_LJ_POTENTIAL_SWITCH)
    {
        FAIL("%s.modifier is %d: set it to a value of gmxfmm_lj_modifier", name, modifier);
    }
    if (!isfinite(range->cutoff) || range->cutoff <= 0)
    {
        FAIL("%s.cutoff is %g: set it to a length above 0", name, range->cutoff);
    }
    const int has_switch = modifier == GMXFMM_LJ_FORCE_SWITCH || modifier == GMXFMM_LJ_POTENTIAL_SWITCH;
    if (has_switch && !(range->start > 0 && range->start < range->cutoff))
    {
        FAIL("%s.start is %g: set it between 0 and the cut-off, %g", name, range->start, range->cutoff);
    }
    return GMXFMM_OK;
}

/* All zero: there is none. */
static gmxfmm_status check_inner(const gmxfmm_sites_system* s, char* message, size_t size)
{
    if (s->inner.cutoff == 0 && s->inner.start == 0 && s->inner.modifier == GMXFMM_LJ_CUT)
    {
        return GMXFMM_OK;
    }
    const gmxfmm_status status = check_range("inner", &s->inner, message, size);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (s->inner.modifier != GMXFMM_LJ_FORCE_SWITCH)
    {
        FAIL("inner.modifier is not GMXFMM_LJ_FORCE_SWITCH: set it to that");
    }
    if (s->inner.cutoff > s->outer.cutoff)
    {
        FAIL("inner.cutoff is %g, beyond outer.cutoff, %g: make it shorter", s->inner.cutoff, s->outer.cutoff);
    }
    return GMXFMM_OK;
}

static gmxfmm_status check_ranges(const gmxfmm_sites_system* s, char* message, size_t size)
{
    gmxfmm_status status = check_range("outer", &s->outer, message, size);
    status               = status == GMXFMM_OK ? check_inner(s, message, size) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const int    has_switch = s->outer.modifier >= GMXFMM_LJ_FORCE_SWITCH;
    const double least      = !sites_has_inner(s) ? 0.01 * s->outer.cutoff
                              : has_switch        ? fmin(s->inner.start, s->outer.start)
                                                  : s->inner.start;
    if (s->precision == GMXFMM_SINGLE && (least < c_leastSingle || s->outer.cutoff > c_mostSingle))
    {
        FAIL("single precision has no powers of lengths from %g to %g: use a unit in which they are near 1", least,
             s->outer.cutoff);
    }
    return GMXFMM_OK;
}

static gmxfmm_status check_numbers(const gmxfmm_sites_system* s, char* message, size_t size)
{
    if ((int)s->precision != GMXFMM_SINGLE && (int)s->precision != GMXFMM_DOUBLE)
    {
        FAIL("precision is %d: set it to GMXFMM_SINGLE or GMXFMM_DOUBLE", (int)s->precision);
    }
    if (s->device == GMXFMM_CUDA && s->precision != GMXFMM_SINGLE)
    {
        snprintf(message, size, "a GPU computes sites in single precision alone: set precision to GMXFMM_SINGLE");
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    if (s->num_threads < 0)
    {
        FAIL("num_threads is %d: set it to 0 for all, or to their number", s->num_threads);
    }
    if (s->num_periodic != 0 && s->num_periodic != 2 && s->num_periodic != 3)
    {
        FAIL("num_periodic is %d: set it to 0, 2 or 3", s->num_periodic);
    }
    if (s->num_atoms < 0 || s->num_atoms > INT_MAX / 3)
    {
        FAIL("num_atoms is %d: set it to a number from 0 to %d", s->num_atoms, INT_MAX / 3);
    }
    if (s->num_groups < 0 || s->num_groups > s->num_atoms)
    {
        FAIL("num_groups is %d: set it to a number from 0 to that of atoms, %d", s->num_groups, s->num_atoms);
    }
    if (s->num_types < (s->num_groups > 0) || s->num_types > 32768)
    {
        FAIL("num_types is %d: set it to a number from 1 to 32768", s->num_types);
    }
    return GMXFMM_OK;
}

/* Atoms and weights of group g; seen: whether a group has had the atom. */
static gmxfmm_status check_group(const gmxfmm_sites_system* s, int g, char* seen, char* message, size_t size)
{
    double sum = 0;
    for (int k = s->start[g]; k < s->start[g + 1]; k++)
    {
        const int i = s->atom[k];
        if (i < 0 || i >= s->num_atoms)
        {
            FAIL("atom[%d] is %d: atoms count from 0 to %d", k, i, s->num_atoms - 1);
        }
        if (seen[i])
        {
            FAIL("atom[%d]: atom %d is there for the second time, put it into one group", k, i);
        }
        seen[i] = 1;
        if (!isfinite(s->weight[k]))
        {
            FAIL("weight[%d] is not finite", k);
        }
        sum += s->weight[k];
    }
    if (!(fabs(sum - 1) <= c_weights))
    {
        FAIL("the weights of group %d sum to %.9g: make it 1", g, sum);
    }
    if (s->type[g] < 0 || s->type[g] >= s->num_types)
    {
        FAIL("type[%d] is %d: types count from 0 to %d", g, s->type[g], s->num_types - 1);
    }
    return GMXFMM_OK;
}

static gmxfmm_status check_groups(const gmxfmm_sites_system* s, char* message, size_t size)
{
    if (s->num_groups == 0)
    {
        return GMXFMM_OK;
    }
    if (s->start[0] != 0)
    {
        FAIL("start[0] is %d: set it to 0", s->start[0]);
    }
    for (int g = 0; g < s->num_groups; g++)
    {
        if (s->start[g + 1] <= s->start[g])
        {
            FAIL("start[%d] is %d, not above start[%d], %d: a group has one atom or more", g + 1, s->start[g + 1], g,
                 s->start[g]);
        }
    }
    if (s->start[s->num_groups] > s->num_atoms)
    {
        FAIL("start[%d] is %d: groups have at most all atoms, %d", s->num_groups, s->start[s->num_groups],
             s->num_atoms);
    }
    char* seen = calloc((size_t)s->num_atoms, 1);
    if (seen == NULL)
    {
        snprintf(message, size, "out of memory for %d atoms", s->num_atoms);
        return GMXFMM_ERROR_MEMORY;
    }
    gmxfmm_status status = GMXFMM_OK;
    for (int g = 0; g < s->num_groups && status == GMXFMM_OK; g++)
    {
        status = check_group(s, g, seen, message, size);
    }
    free(seen);
    return status;
}

static gmxfmm_status
check_table(const char* name, const double* c, int num, gmxfmm_precision precision, char* message, size_t size)
{
    for (int a = 0; a < num; a++)
    {
        for (int b = 0; b < num; b++)
        {
            const double one = c[(size_t)a * (size_t)num + (size_t)b], other = c[(size_t)b * (size_t)num + (size_t)a];
            if (!isfinite(one) || (precision == GMXFMM_SINGLE && !isfinite((float)one)))
            {
                FAIL("%s of types %d and %d is not finite", name, a, b);
            }
            if (fabs(one - other) > c_symmetric * fmax(fabs(one), fabs(other)))
            {
                FAIL("%s of types %d and %d is %.17g, that of %d and %d is %.17g: make them equal", name, a, b, one, b,
                     a, other);
            }
        }
    }
    return GMXFMM_OK;
}

/* Rows of exclusions, but for their symmetry (exclusions.c). */
static gmxfmm_status check_exclusions(const gmxfmm_sites_system* s, char* message, size_t size)
{
    const int* start = s->exclusion_start;
    if (start == NULL || s->num_groups == 0)
    {
        return GMXFMM_OK;
    }
    if (start[0] != 0)
    {
        FAIL("exclusion_start[0] is %d: set it to 0", start[0]);
    }
    for (int g = 0; g < s->num_groups; g++)
    {
        if (start[g + 1] < start[g])
        {
            FAIL("exclusion_start[%d] is %d, below exclusion_start[%d], %d: rows follow each other", g + 1,
                 start[g + 1], g, start[g]);
        }
    }
    if (s->exclusion == NULL && start[s->num_groups] > 0)
    {
        snprintf(message, size, "exclusion is NULL");
        return GMXFMM_ERROR_NULL;
    }
    for (int k = 0; k < start[s->num_groups]; k++)
    {
        if (s->exclusion[k] < 0 || s->exclusion[k] >= s->num_groups)
        {
            FAIL("exclusion[%d] is %d: groups count from 0 to %d", k, s->exclusion[k], s->num_groups - 1);
        }
    }
    return GMXFMM_OK;
}

/* The name of an array that is missing; NULL: there are all. */
static const char* missing(const gmxfmm_sites_system* s)
{
    const struct
    {
        const char* name;
        const void* array;
    } all[] = {{"start", s->start}, {"atom", s->atom}, {"weight", s->weight},
               {"type", s->type},   {"c6", s->c6},     {"c12", s->c12}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && s->num_groups > 0; i++)
    {
        if (all[i].array == NULL)
        {
            return all[i].name;
        }
    }
    return NULL;
}

gmxfmm_status sites_check_system(const gmxfmm_sites_system* s, char* message, size_t size)
{
    gmxfmm_status status = check_numbers(s, message, size);
    status               = status == GMXFMM_OK ? check_ranges(s, message, size) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const char* none = missing(s);
    if (none != NULL)
    {
        snprintf(message, size, "%s is NULL", none);
        return GMXFMM_ERROR_NULL;
    }
    status = check_groups(s, message, size);
    status = status == GMXFMM_OK ? check_exclusions(s, message, size) : status;
    if (s->num_groups > 0)
    {
        status = status == GMXFMM_OK ? check_table("c6", s->c6, s->num_types, s->precision, message, size) : status;
        status = status == GMXFMM_OK ? check_table("c12", s->c12, s->num_types, s->precision, message, size) : status;
    }
    status = status == GMXFMM_OK ? gmxfmm_check_device(s->device, s->device_id, message, size) : status;
    return status == GMXFMM_OK && s->device == GMXFMM_CPU ? fmm_check_simd_level(message, size) : status;
}

/* Square of the shortest vector of the lattice: none is a sum of more than one of each vector, as rows are reduced. */
static double shortest2(const double* box, int num_periodic)
{
    double least = INFINITY;
    for (int k = 0; k < 27; k++)
    {
        const int n[3] = {k % 3 - 1, k / 3 % 3 - 1, num_periodic == 3 ? k / 9 - 1 : 0};
        double    r2   = 0;
        for (int d = 0; d < 3; d++)
        {
            double x = n[0] * box[d] + n[1] * box[3 + d];
            x += num_periodic == 3 ? n[2] * box[6 + d] : 0;
            r2 += x * x;
        }
        least = n[0] != 0 || n[1] != 0 || n[2] != 0 ? fmin(least, r2) : least;
    }
    return least;
}

/* A skew is at most half of the vector that takes it away; a box that is coupled to a pressure may exceed it a little
 * until it is reduced. */
static const double c_mostSkew = 0.51;

gmxfmm_status sites_check_box(gmxfmm_sites* sites, const double* box, double reach)
{
    const int num = sites->system.num_periodic;
    if (num == 0)
    {
        return GMXFMM_OK;
    }
    for (int i = 0; i < num; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            const double x = box[3 * i + d];
            if (!isfinite(x) || (d > i && x != 0) || (d == i && x <= 0))
            {
                return sites_fail(sites, GMXFMM_ERROR_BOX,
                                  "box[%d] is %g: give a lower triangle of finite numbers, with a diagonal above 0",
                                  3 * i + d, x);
            }
            if (d < i && fabs(x) > c_mostSkew * box[4 * d])
            {
                return sites_fail(sites, GMXFMM_ERROR_BOX,
                                  "box[%d] is %g, more than half of box[%d], %g: subtract vectors from each other",
                                  3 * i + d, x, 4 * d, box[4 * d]);
            }
        }
    }
    const double shortest = sqrt(shortest2(box, num));
    if (2 * reach > shortest)
    {
        return sites_fail(sites, GMXFMM_ERROR_BOX,
                          "the box is too small: its images are %g from each other, less than twice %g", shortest,
                          reach);
    }
    return GMXFMM_OK;
}
