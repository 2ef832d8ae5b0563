/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Choice of method, order and cells by the models of errors and costs, from a description of the problem. */
#ifndef FMM_TUNE_H
#define FMM_TUNE_H

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
    fmm_known_errors* known; /* stored by earlier choices, and added to; NULL: none */
} fmm_problem;

typedef struct
{
    gmxfmm_m2l m2l;
    int        order, separation;
    int        grid[3];         /* cells, or leaves, along each box vector */
    int        depth, roots[3]; /* of an octree; its grid is roots 2^depth */
    int        most;            /* of fmm_tree */
    double     error;           /* predicted */
    double     edge;            /* open: of a cell, or leaf; of a slab: its height */
} fmm_choice;

/* Functions that choose return OK, or MEMORY or UNSUPPORTED (such cells are impossible) with the message of the
 * problem. */

/* Chooses cells of one level, for a convolution, for n particles spread evenly over the box or, in an open system,
 * between low and high. */
gmxfmm_status fmm_tune(const fmm_problem* problem, fmm_choice* chosen);
gmxfmm_status fmm_tune_open(const fmm_problem* problem, const double* low, const double* high, fmm_choice* chosen);

/* The same for a slab of that thickness, 0 for particles in a plane. */
gmxfmm_status fmm_tune_slab(const fmm_problem* problem, double thickness, fmm_choice* chosen);

/* And for a wire of these widths along x and y. */
gmxfmm_status fmm_tune_wire(const fmm_problem* problem, const double* width, fmm_choice* chosen);

/* Layers of that height in such a slab; and the height of the layers of a grid, or of roots: one is as high as cells
 * are wide, if that is enough. */
int    fmm_slab_layers_of(double thickness, double height);
double fmm_slab_height(const fmm_problem* problem, double thickness, const int* grid);

/* The grid of cubes of that edge that contains n particles between low and high. The edge is enlarged if there would be
 * too many cubes. */
void fmm_open_grid(int64_t n, const double* low, const double* high, double* edge, int* grid);

/* Chooses an octree for particles spread evenly over the box; for particles at x (on the host, of the options' type),
 * with chosen->roots or more roots; or, in a slab or an open system, for particles at x between low and high. */
gmxfmm_status fmm_tune_tree(const fmm_problem* problem, fmm_choice* chosen);
gmxfmm_status fmm_tune_tree_particles(const fmm_problem* problem, const void* x, fmm_choice* chosen);
gmxfmm_status fmm_tune_tree_slab(
    const fmm_problem* problem, const void* x, const double* low, const double* high, fmm_choice* chosen);
gmxfmm_status fmm_tune_tree_open(
    const fmm_problem* problem, const void* x, const double* low, const double* high, fmm_choice* chosen);

/* The depth, up to `deepest`, of an octree that contains all between low and high and whose smallest leaves have that
 * edge. If a depth is given, it is returned, and *edge becomes the edge of its leaves. */
int fmm_open_depth(const double* low, const double* high, int given_depth, int deepest, double* edge);

/* Compares an octree for the particles at x with cells of one level. In a periodic system these are `cells`, which were
 * chosen for particles spread evenly over the box. In an open system they are those of `cells` if its grid is set,
 * where the convolution is all that they are taken to cost, else the cheapest of several grids. *gain is the time with
 * cells of one level over that with the octree, by the models; 0: no octree is possible. If the octree is enough faster
 * to be chosen, *better is 1 and *tree has it. */
gmxfmm_status fmm_compare_tree(const fmm_problem* problem,
                               const void*        x,
                               const double*      low,
                               const double*      high,
                               const fmm_choice*  cells,
                               double*            gain,
                               int*               better,
                               fmm_choice*        tree);

/* The same for a slab, whose particles are between low and high, and cells chosen for it; NULL: there are none that
 * serve, and an octree that does is better. */
gmxfmm_status fmm_compare_tree_slab(const fmm_problem* problem,
                                    const void*        x,
                                    const double*      low,
                                    const double*      high,
                                    const fmm_choice*  cells,
                                    double*            gain,
                                    int*               better,
                                    fmm_choice*        tree);

/* An error as messages have it: two digits, rounded up, so that it can be asked for. */
double fmm_error_said(double error);

/* Checks that an automatically chosen order is predicted to reach the accuracy asked for. Errors: OPTION, with the
 * message of the problem. */
gmxfmm_status fmm_check_reach(const fmm_problem* problem, const fmm_choice* chosen);

/* Depth of an octree by the options depth and grid, 0 if both are automatic. */
int fmm_given_depth(const gmxfmm_options* options);

/* Cells of a periodic system on the fft path, and the lowest order that is predicted to reach the accuracy. */
typedef struct
{
    double cost; /* of a step, in tune.c's unit */
    int    order, ws, grid[3];
} fmm_candidate;

/* Writes the cheapest cells of a periodic problem that are predicted to reach the accuracy of its options to
 * list[room], the cheapest first. Of cells with the same ws and nearly the same number only the cheapest are listed.
 * Returns how many. */
int fmm_tune_candidates(const fmm_problem* problem, fmm_candidate* list, int room);

/* Predicted errors and costs in these cells of all orders that the precision allows: error[0..GMXFMM_MAX_ORDER], and
 * costs likewise. Returns 0 if such cells are impossible. */
int fmm_tune_cells(const fmm_problem* problem, const int* grid, int ws, double* error, double* costs);

/* Functions used by the files of this folder. */

/* error[0..last], by order: predicted relative RMS force error of cells with one particle each and ws near layers. */
void fmm_predict_error(const fmm_problem* problem, const fmm_cells* cells, int ws, int last, double* error);

/* The same, but only up to order 20, if that is below `last` and its error is `enough` or less; enough = 0: always up
 * to `last`. Returns the last order predicted. The model takes longer for more orders. */
int fmm_predict_enough(
    const fmm_problem* problem, const fmm_cells* cells, int ws, int last, double enough, double* error);

/* Factor by which that error changes with per_cell particles in each cell. */
double fmm_density_factor(double per_cell);

/* Highest order of a precision. */
static inline int fmm_most_order(gmxfmm_precision precision)
{
    return precision == GMXFMM_SINGLE ? GMXFMM_MAX_ORDER_SINGLE : GMXFMM_MAX_ORDER;
}

/* Highest order that is chosen automatically with ws near layers. */
int fmm_last_order(const fmm_problem* problem, int ws);

/* Predicted error that a choice must not exceed. */
double fmm_target_error(const fmm_problem* problem);

/* Cost of transforms and product for a grid of cells of one level, in single precision. */
double fmm_fft_cost(const fmm_problem* problem, double cells, int order);

/* Writes the message, and returns status. */
gmxfmm_status fmm_not_chosen(const fmm_problem* problem, gmxfmm_status status, const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

#endif
