/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the stages of several ranks share: agreement, and memory of an assign. */
#include "fmm/treecode/ranks/state.h"

#include <stdlib.h>

gmxfmm_status treecode_ranks_agree(treecode* t, gmxfmm_status status)
{
    return fmm_ranks_agree(&t->ranks->ranks->comm, status, t->message, sizeof(t->message));
}

void treecode_ranks_free_trees(treecode_ranks* r)
{
    for (int i = 0; r->tree != NULL && i < r->ranks->comm.size; i++)
    {
        treecode_clusters_free(&r->tree[i]);
    }
}

void treecode_ranks_free_named(treecode_ranks* r)
{
    free(r->take_cluster);
    free(r->give_cluster);
    free(r->send);
    free(r->receive);
    r->take_cluster = r->give_cluster = NULL;
    r->send = r->receive = NULL;
    r->bytes             = 0;
}
