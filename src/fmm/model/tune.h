/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Choice of method, order and cells by the models of errors and costs, from a description of the problem. */
#ifndef FMM_TUNE_H
#define FMM_TUNE_H

#include "fmm/model/problem.h"

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

/* Chooses cells of one level, for a convolution, for n particles spread evenly over the box and, along open directions,
 * between low and high; both may be NULL if there are none. */
gmxfmm_status fmm_tune(const fmm_problem* problem, const double* low, const double* high, fmm_choice* chosen);

/* Chooses an octree, not of a wire: for particles at x (on the host, of the options' type), along open directions
 * between low and high; or, with x = NULL, in a periodic box for particles spread evenly over it. roots: of a periodic
 * box, these or more roots; NULL: as few as are cubes, or nearly, or more. */
gmxfmm_status fmm_tune_tree(const fmm_problem* problem,
                            const void*        x,
                            const double*      low,
                            const double*      high,
                            const int*         roots,
                            fmm_choice*        chosen);

/* Compares an octree, not of a wire, for the particles at x with cells of one level. In a periodic system and a slab
 * these are `cells`, which were chosen for particles spread evenly; NULL: there are none that serve. In an open system
 * they are those of `cells` if its grid is set, where the convolution is all that they are taken to cost, else the
 * cheapest of several grids. *gain is the time with cells of one level over that with the octree, by the models; 0: no
 * octree is possible. If the octree is enough faster to be chosen, *better is 1 and *tree has it. */
gmxfmm_status fmm_compare_tree(const fmm_problem* problem,
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
