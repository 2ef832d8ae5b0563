/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree that a plan may have. */
#include <stdlib.h>

#include "fmm/plan.h"

gmxfmm_status fmm_tree_check_box(gmxfmm_plan* plan, const double* box)
{
    return fmm_is_aligned(box) ? GMXFMM_OK
                               : fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                                          "m2l = %s needs a rectangular box with its vectors along x, y and z: for "
                                          "this box use m2l = fft",
                                          gmxfmm_m2l_name(plan->m2l));
}

gmxfmm_status fmm_add_tree(gmxfmm_plan* plan)
{
    plan->tree = calloc(1, sizeof(*plan->tree));
    if (plan->tree == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->bytes += sizeof(*plan->tree);
    plan->convolved = &plan->root_cells;
    return GMXFMM_OK;
}

void fmm_tree_free(gmxfmm_plan* plan)
{
    fmm_tree* tree = plan->tree;
    if (tree == NULL)
    {
        return;
    }
    for (int l = 0; l <= FMM_MAX_DEPTH; l++)
    {
        fmm_level* level     = &tree->level[l];
        void*      pointer[] = {level->at, level->parent, level->child, level->near, level->multipole, level->local};
        for (size_t i = 0; i < sizeof(pointer) / sizeof(pointer[0]); i++)
        {
            free(pointer[i]);
            plan->bytes -= level->capacity[i];
        }
    }
    fmm_tree_lists_free(tree);
    free(tree);
    plan->tree = NULL;
}
