/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The excluded pairs of a system: a copy of its own, with rows that are sorted and have each group once. */
#include <stdlib.h>

#include "fmm/sites/state.h"

/* Rows of groups: those of g are group[start[g]] .. group[start[g + 1] - 1]. */
struct rows
{
    int *start, *group;
};

static int alloc_rows(struct rows* rows, size_t num, size_t entries)
{
    rows->start = calloc(num + 2, sizeof(int));
    rows->group = malloc(entries * sizeof(int) + 1);
    return rows->start != NULL && rows->group != NULL;
}

static void free_rows(struct rows* rows)
{
    free(rows->start);
    free(rows->group);
}

/* Sets `to` to the rows of what has g in its row, without g itself. They are sorted, and have each group once. */
static void transpose(int num, const int* start, const int* group, struct rows* to)
{
    int* fill = to->start + 1; /* where row g ends, after all: the start of the next one */
    for (int pass = 0; pass < 2; pass++)
    {
        for (int g = 0; g < num; g++)
        {
            for (int k = start[g]; k < start[g + 1]; k++)
            {
                const int row = group[k];
                if (row != g && pass == 0)
                {
                    to->start[row + 2]++;
                }
                else if (row != g)
                {
                    to->group[fill[row]++] = g;
                }
            }
        }
        for (int g = 0; g < num && pass == 0; g++)
        {
            to->start[g + 2] += to->start[g + 1];
        }
    }
    int kept = 0;
    for (int g = 0, begin = 0; g < num; g++)
    {
        const int end = to->start[g + 1];
        to->start[g]  = kept;
        for (int k = begin; k < end; k++)
        {
            if (k == begin || to->group[k] != to->group[k - 1])
            {
                to->group[kept++] = to->group[k];
            }
        }
        begin = end;
    }
    to->start[num] = kept;
}

/* Whether g's rows are the same; otherwise g has one that does not have it. */
static gmxfmm_status check_symmetric(gmxfmm_sites* sites, const struct rows* rows, const struct rows* other)
{
    for (int g = 0; g < sites->system.num_groups; g++)
    {
        const int begin = rows->start[g], end = rows->start[g + 1], from = other->start[g], to = other->start[g + 1];
        for (int k = 0; k < end - begin || k < to - from; k++)
        {
            const int a = begin + k < end ? rows->group[begin + k] : sites->system.num_groups;
            const int b = from + k < to ? other->group[from + k] : sites->system.num_groups;
            if (a != b)
            {
                return sites_fail(sites, GMXFMM_ERROR_OPTION,
                                  "group %d excludes group %d, which does not exclude it: exclude it in both rows",
                                  a < b ? g : b, a < b ? a : g);
            }
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status sites_copy_exclusions(gmxfmm_sites* sites)
{
    gmxfmm_sites_system* s     = &sites->system;
    const int *          start = s->exclusion_start, *group = s->exclusion;
    const size_t         num = (size_t)s->num_groups, entries = start != NULL && num > 0 ? (size_t)start[num] : 0;
    struct rows          other = {NULL, NULL}, rows = {NULL, NULL};
    s->exclusion_start = s->exclusion = NULL;
    if (entries == 0)
    {
        return GMXFMM_OK;
    }
    gmxfmm_status status = GMXFMM_OK;
    if (!alloc_rows(&other, num, entries) || !alloc_rows(&rows, num, entries))
    {
        status = sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory for %d exclusions", (int)entries);
    }
    else
    {
        transpose(s->num_groups, start, group, &other);
        transpose(s->num_groups, other.start, other.group, &rows);
        /* `other` has what excludes a group; rows has what is excluded in the rows of the caller */
        status = check_symmetric(sites, &rows, &other);
    }
    free_rows(&other);
    if (status != GMXFMM_OK || rows.start[num] == 0)
    {
        free_rows(&rows);
        return status;
    }
    s->exclusion_start = sites->exclusion_start = rows.start;
    s->exclusion = sites->exclusion = rows.group;
    sites->bytes += (int64_t)((num + 2 + entries) * sizeof(int));
    return GMXFMM_OK;
}
