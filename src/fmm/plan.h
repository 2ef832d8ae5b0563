/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What measurement and choice need of a plan beyond the public interface: all that they know of its inside. */
#ifndef FMM_PLAN_H
#define FMM_PLAN_H

#include "fmm/gmxfmm.h"

struct fmm_costs;
struct fmm_known_errors;
struct fmm_ranks;

/* As gmxfmm_create, of a plan whose choices use and add to what is known of errors (model/tune.h), to outlive it.
 * measures: FMM_NOT_MEASURED ... ranks: the plan is theirs, and frees them in the end; NULL: there is one. */
gmxfmm_status fmm_create_with_errors(gmxfmm_plan**            plan,
                                     const gmxfmm_options*    options,
                                     int64_t                  num_particles,
                                     const double*            box,
                                     int                      measures,
                                     struct fmm_known_errors* known,
                                     struct fmm_ranks*        ranks,
                                     char*                    message,
                                     size_t                   message_size);

/* A plan of one rank, of cells of one level and periodic along all vectors, whose steps these ranks compute together
 * (cpu/ranks.h), each with the particles of its own cells and of those near to them. It is chosen for num_particles of
 * all. */
gmxfmm_status fmm_create_shared(gmxfmm_plan**           plan,
                                const gmxfmm_options*   options,
                                int64_t                 num_particles,
                                const double*           box,
                                const struct fmm_ranks* shared,
                                char*                   message,
                                size_t                  message_size);

/* Whether particles have dipoles, or widths. */
int fmm_plan_has_dipoles(const gmxfmm_plan* plan);
int fmm_plan_has_widths(const gmxfmm_plan* plan);

/* Makes cells for the box as it is, as an assignment does first. Errors: MEMORY, OPTION, UNSUPPORTED. */
gmxfmm_status fmm_make_cells(gmxfmm_plan* plan);

/* A plan that is kept uses what is known of errors no more. */
void fmm_forget_known_errors(gmxfmm_plan* plan);

/* What the stages of a plan with these options, checked, cost by the model (model/costs.h). */
const struct fmm_costs* fmm_costs_of(const gmxfmm_options* options);

/* The vectors box[9] of the cells of a plan with these options, periodic along all: the caller's if they are short
 * enough, or else others of the same lattice. */
void fmm_box_of_cells(const gmxfmm_options* options, const double* given, double* box);
/* As gmxfmm_execute, also where particles have left their cells: what that costs is measured. */
gmxfmm_status fmm_execute_anyway(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);
/* As measure_again of the plan's backend (backend.h), which has it. */
void fmm_measure_again(gmxfmm_plan* plan, double accuracy);

/* Whether something is so on any of the ranks, all of which ask; of a plan of one rank, here. Errors: COMM. */
gmxfmm_status fmm_any_rank(gmxfmm_plan* plan, int here, int* any);

/* The output of a step that is measured, in room for it: forces, 3 n, or with targets potential and field there, 4 of
 * each. Of several ranks potential and field always, as another may have targets. */
gmxfmm_output fmm_output_in(const gmxfmm_plan* plan, void* room);

/* Whether steps without the copies of execute can be timed (on a GPU), and the time of one of num, s. Errors: as
 * execute. */
int           fmm_can_time_steps(const gmxfmm_plan* plan);
gmxfmm_status fmm_time_steps(gmxfmm_plan* plan, const void* x, int num, double* seconds);

/* Lets the plan compute on at most so many threads, until its next assignment. */
void fmm_limit_threads(gmxfmm_plan* plan, int most);

/* Whether forces are the same wherever the cells are: of systems that are periodic along any direction. */
int fmm_can_shift_cells(const gmxfmm_plan* plan);

/* As fmm_domain_shift_cells. The next assignment is to these cells. */
void fmm_shift_cells(gmxfmm_plan* plan, const double* shift);

/* Coordinates t of a place, in the caller's axes, in cells that are where they were at first. */
void fmm_cell_coordinates(const gmxfmm_plan* plan, const double* x, double* t);

/* Cost of cells of one level over that of an octree, by the model, when they were compared for this plan; 0: they were
 * not. */
double fmm_tree_gain(const gmxfmm_plan* plan);

#endif
