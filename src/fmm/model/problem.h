/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Description of a problem that order and cells are chosen for. */
#ifndef FMM_PROBLEM_H
#define FMM_PROBLEM_H

#include "fmm/geometry/cells.h"
#include "fmm/gmxfmm.h"
#include "fmm/model/costs.h"

enum
{
    FMM_KNOWN_SHAPES = 128
};

/* Predicted errors, by order, of cells with one particle each, stored for later use. They depend on the shape of a
 * cell, on ws and on the near set, as an octree omits some near vectors in elongated cells. All zero: none so far. */
typedef struct fmm_known_errors
{
    int num;
    struct
    {
        int    ws, num_near, last; /* last: order */
        double shape[9], error[GMXFMM_MAX_ORDER + 1];
    } shapes[FMM_KNOWN_SHAPES];
} fmm_known_errors;

enum
{
    /* With ws = 1 single pairs in facing corners have more of an error the higher the order is, which the model does
     * not tell. At this order a hundredth of the particles has 0.7 to 0.9 of the mean square of errors, and a sample of
     * 2,000 still measures it. */
    FMM_LAST_SAMPLED = 18
};

/* What is measured of a plan. */
enum
{
    FMM_NOT_MEASURED,
    FMM_MEASURED, /* a treecode measures its error at the first assign even if all of its settings are given */
    FMM_SAMPLED   /* so, and whoever makes the plan measures errors at a sample: for that orders are chosen */
};

/* Description of what is to be computed. */
typedef struct
{
    const gmxfmm_options* options;
    const fmm_costs*      costs; /* of the backend */
    int           periodic[3];   /* along each box vector: all, none, the first two of a slab, or the third of a wire */
    int           num_threads;   /* that the choice itself may use */
    int           level;         /* of the processor, as in simd_level.h */
    int64_t       n;             /* particles */
    const double* box;           /* 9; periodic; of a slab or a wire its periodic vectors */
    char*         message;       /* message[message_size]: why there is no choice */
    size_t        message_size;
    fmm_known_errors* known;      /* stored by earlier choices, and added to; NULL: none */
    int               is_sampled; /* errors are measured at a sample, so that higher orders of octrees may be chosen */
} fmm_problem;

#endif
