/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the choices for both far-field paths share. */
#ifndef FMM_TUNE_H
#define FMM_TUNE_H

#include "fmm/plan.h"

/* error[0..GMXFMM_MAX_ORDER]: predicted relative RMS force error of cells with per_cell particles each. */
void fmm_predict_error(const fmm_cells* cells, double per_cell, double* error);

/* Largest order that is chosen automatically with ws near layers. */
int fmm_last_order(const gmxfmm_plan* plan, int ws);

/* Predicted error that a choice must keep. */
double fmm_target_error(const gmxfmm_plan* plan);

/* Message and status when the best choice misses the asked accuracy. */
gmxfmm_status fmm_out_of_reach(gmxfmm_plan* plan, double error, int order);

/* Time of transforms and product for a grid of cells on the fft path, single precision, tune.c's unit; on a device, in
 * pairs of its near field. */
double fmm_fft_cost(const gmxfmm_plan* plan, double cells, int order);

/* Cells of a periodic system on the fft path, and the least order that is predicted to be good enough there. */
typedef struct
{
    double cost; /* of a step, in tune.c's unit */
    int    order, ws, grid[3];
} fmm_candidate;

/* The cheapest cells for n particles in box (9) that are predicted to reach the accuracy of the options, one of those
 * that are much alike, cheapest first, to list[room]. Returns how many. */
int fmm_tune_candidates(const gmxfmm_options* options, int64_t n, const double* box, fmm_candidate* list, int room);

/* Predicted errors and costs of all orders, error[0..GMXFMM_MAX_ORDER] and costs alike, in these cells. Returns 0 if
 * there cannot be such cells. */
int fmm_tune_cells(
    const gmxfmm_options* options, int64_t n, const double* box, const int* grid, int ws, double* error, double* costs);

/* Order, separation and grid for about n particles in box where options leave them open. */
gmxfmm_status fmm_tune(gmxfmm_plan* plan, int64_t n, const double* box);

/* Open systems, for particles between low and high: grid, at the first call also edge, order and ws. */
gmxfmm_status fmm_tune_open(gmxfmm_plan* plan, const double* low, const double* high);

/* tune_tree.c: order, ws, depth and roots for about n particles spread evenly over box. */
gmxfmm_status fmm_tune_tree(gmxfmm_plan* plan, int64_t n, const double* box);

/* tune_tree.c: the same for particles at x, with the occupancy of cells at the first assign: open, and periodic. */
gmxfmm_status fmm_tune_tree_open(gmxfmm_plan* plan, const void* x, const double* low, const double* high);
gmxfmm_status fmm_tune_tree_particles(gmxfmm_plan* plan, const void* x);

/* Depth of an octree by options depth and grid, 0 if they leave it open. */
int fmm_given_depth(const gmxfmm_options* options);

/* Where the method is automatic: an octree in place of the fft path if the particles leave much of their box (open:
 * of low..high) empty. Once a plan, which fmm_considers_tree asks for; x is on the host. */
int           fmm_considers_tree(const gmxfmm_plan* plan);
gmxfmm_status fmm_consider_tree(gmxfmm_plan* plan, const void* x, const double* low, const double* high);

/* Time of pairs, of gathering a pair of near cells, of a particle's coefficient: tune.c's unit. */
#define FMM_COST_PAIR 0.8
#define FMM_COST_GATHER 30.0
#define FMM_COST_COEF 1.5

/* On a device, in pairs: of the targets of a cell, of a particle's coefficient. */
#define FMM_DEVICE_TILE 2500.0
#define FMM_DEVICE_COEF 1.0

#endif
