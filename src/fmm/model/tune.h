/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Choice of method, order and cells: a description of the problem in, a choice out. */
#ifndef FMM_TUNE_H
#define FMM_TUNE_H

#include "fmm/geometry/cells.h"
#include "fmm/gmxfmm.h"
#include "fmm/model/costs.h"

enum
{
    FMM_KNOWN_SHAPES = 128
};

/* Predicted errors, by order, of cells with one particle each: they depend on the shape of a cell, on ws and on the
 * near set, which an octree has without some vectors in long bricks. All zero: none so far. */
typedef struct fmm_known_errors
{
    int num;
    struct
    {
        int    ws, num_near, last; /* order */
        double shape[9], error[GMXFMM_MAX_ORDER + 1];
    } shapes[FMM_KNOWN_SHAPES];
} fmm_known_errors;

/* What is to be computed. */
typedef struct
{
    const gmxfmm_options* options;
    const fmm_costs*      costs;       /* of the backend */
    int                   periodic;    /* else open */
    int                   num_threads; /* that the choice itself may have */
    int                   level;       /* of the processor, as in simd_level.h */
    int64_t               n;           /* particles */
    const double*         box;         /* 9; periodic */
    char*                 message;     /* message[message_size]: why there is no choice */
    size_t                message_size;
    fmm_known_errors*     known; /* of other choices, to be used and added to; NULL: none */
} fmm_problem;

typedef struct
{
    gmxfmm_m2l m2l;
    int        order, separation;
    int        grid[3];         /* cells, or leaves, along each box vector */
    int        depth, roots[3]; /* of an octree; its grid is roots 2^depth */
    double     error;           /* predicted */
    double     edge;            /* open: of a cell, or leaf */
} fmm_choice;

/* All that choose return OK, or MEMORY, UNSUPPORTED (there cannot be such cells) with the message of the problem. */

/* Cells of one level, for a convolution: evenly filled by n particles; open, where these are between low and high. */
gmxfmm_status fmm_tune(const fmm_problem* problem, fmm_choice* chosen);
gmxfmm_status fmm_tune_open(const fmm_problem* problem, const double* low, const double* high, fmm_choice* chosen);

/* Cubes of that edge, or a larger one where these would be too many, that n particles between low and high fill. */
void fmm_open_grid(int64_t n, const double* low, const double* high, double* edge, int* grid);

/* An octree for particles evenly spread over the box; for those at x (on the host, of the options' type), with
 * chosen->roots or more of them; open, where they are between low and high. */
gmxfmm_status fmm_tune_tree(const fmm_problem* problem, fmm_choice* chosen);
gmxfmm_status fmm_tune_tree_particles(const fmm_problem* problem, const void* x, fmm_choice* chosen);
gmxfmm_status fmm_tune_tree_open(
    const fmm_problem* problem, const void* x, const double* low, const double* high, fmm_choice* chosen);

/* The depth of an octree over what is between low and high, whose leaves have that edge or, if a depth is given,
 * another one. */
int fmm_open_depth(const double* low, const double* high, int given_depth, double* edge);

/* An octree compared with cells of one level, which (periodic) were chosen as if particles were everywhere: *gain is
 * the time of these over that of the octree, by the models; 0: no octree is possible. *better: it is taken, *tree. In
 * an open system cells->grid is 0, or the cells that it has by now, whose convolution alone is compared. */
gmxfmm_status fmm_compare_tree(const fmm_problem* problem,
                               const void*        x,
                               const double*      low,
                               const double*      high,
                               const fmm_choice*  cells,
                               double*            gain,
                               int*               better,
                               fmm_choice*        tree);

/* Whether a choice of order keeps the asked accuracy. Errors: OPTION, with the message of the problem. */
gmxfmm_status fmm_check_reach(const fmm_problem* problem, const fmm_choice* chosen);

/* Depth of an octree by options depth and grid, 0 if they leave it open. */
int fmm_given_depth(const gmxfmm_options* options);

/* Cells of a periodic system on the fft path, and the least order that is predicted to be good enough there. */
typedef struct
{
    double cost; /* of a step, in tune.c's unit */
    int    order, ws, grid[3];
} fmm_candidate;

/* The cheapest cells of a periodic problem that are predicted to reach the accuracy of its options, one of those that
 * are much alike, cheapest first, to list[room]. Returns how many. */
int fmm_tune_candidates(const fmm_problem* problem, fmm_candidate* list, int room);

/* Predicted errors and costs of all orders that the precision allows, error[0..GMXFMM_MAX_ORDER] and costs alike, in
 * these cells. Returns 0 if there cannot be such cells. */
int fmm_tune_cells(const fmm_problem* problem, const int* grid, int ws, double* error, double* costs);

/* What the files of this folder share. */

/* error[0..last], by order: predicted relative RMS force error of cells with one particle each and ws near layers. */
void fmm_predict_error(const fmm_problem* problem, const fmm_cells* cells, int ws, int last, double* error);

/* The same, but if an order of `last` or 20 has `enough` or less, no further than to that; 0: as above. Returns the
 * last order. The model takes the longer the more orders it is asked for. */
int fmm_predict_enough(
    const fmm_problem* problem, const fmm_cells* cells, int ws, int last, double enough, double* error);

/* Factor of that error with so many particles in each. */
double fmm_density_factor(double per_cell);

/* Largest order of a precision. */
static inline int fmm_most_order(gmxfmm_precision precision)
{
    return precision == GMXFMM_SINGLE ? GMXFMM_MAX_ORDER_SINGLE : GMXFMM_MAX_ORDER;
}

/* Largest order that is chosen automatically with ws near layers. */
int fmm_last_order(const fmm_problem* problem, int ws);

/* Predicted error that a choice must keep. */
double fmm_target_error(const fmm_problem* problem);

/* Cost of transforms and product for a grid of cells of one level, single precision. */
double fmm_fft_cost(const fmm_problem* problem, double cells, int order);

/* Writes the message, and returns status. */
gmxfmm_status fmm_not_chosen(const fmm_problem* problem, gmxfmm_status status, const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

#endif
