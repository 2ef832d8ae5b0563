/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures the errors of settings on a system itself, and chooses settings by them. docs/accuracy.md says how. */
#ifndef GMXFMM_MEASURE_H
#define GMXFMM_MEASURE_H

#include "gmxfmm.h"

/* A system to measure errors on. Its members are as for create, set_charges, set_exclusions and assign, in the array
 * type of the options that come with it. Its arrays must outlive what is made from them. */
typedef struct
{
    size_t        size;
    int64_t       n;
    const double* box;                    /* 9; NULL with boundary OPEN */
    const void*   x;                      /* 3 n */
    const void*   q;                      /* n */
    const int *   excl_start, *excl_list; /* NULL: none */
    const void*   x_before;               /* 3 n: where particles might have been at the last assign; NULL: at x */
    int64_t       num_targets;            /* 0: none; targets have no excluded pairs */
    const void*   targets;                /* 3 num_targets: places where potential and field are computed, too */
    const void*   mu; /* 3 n: dipoles (gmxfmm_set_dipoles), which the FMM takes; NULL: none. Errors of forces are
                       * then the larger of these and of those of the torques over their RMS, or over f (mean |mu|)
                       * (mean |q| / spacing^2) where torques are zero, |mu| / spacing counting as |q| */
} gmxfmm_system;

/* Forces on a system that errors of settings are measured against. */
typedef struct gmxfmm_reference gmxfmm_reference;

/* Settings, and what they reach on a system. */
typedef struct
{
    size_t     size;
    gmxfmm_m2l m2l; /* this to predicted_error as in gmxfmm_info */
    int        order, grid[3], depth, separation;
    double     predicted_error; /* of a model of liquids; what follows was measured */
    double     error; /* relative RMS error of forces; if these are zero by symmetry, over f (mean |q| / spacing)^2 */
    double     error_moved;  /* the same where cells were assigned at x_before */
    double     virial_error; /* largest error of an element of the virial, unit of energy; NAN: was not measured */
    double     time;         /* s, of a step that gives forces, or values at targets: the fastest; 0: none was timed */
    double     uncertainty;  /* of error: gmxfmm_reference_uncertainty; 0: of a sample (treecode) */
    /* As error, but forces above ten times the median count as the median. So a few pairs that almost touch hide no
     * other errors. It has to reach what is asked for, too. In liquids it is the same as error. */
    double error_limited;
    /* The larger of the two at the worst of some thousand places of a periodic system in its cells. A translation of
     * all particles changes no force. It changes errors of few particles, and of particles on a lattice. Cells of open
     * systems follow the particles: there it is the larger of the two. Where forces are zero by symmetry, it is
     * relative to those of particles that are moved by some 1e-3 of their spacing. After a failed limit it is what was
     * found until then. */
    double error_anywhere;
    double error_unit; /* f (mean |q| / spacing)^2 where errors are relative to that; 0: to the RMS of the forces */
    /* The error at the targets, of the potential over its RMS or of the field over its own. It is the largest of these
     * with all values, and with values above ten times the median counted as that. It has to reach what is asked for,
     * too. 0: no targets */
    double error_targets;
} gmxfmm_measurement;

/* Makes a plan that was measured on a system, in one call. It does create, set_charges, set_exclusions, set_targets and
 * assign. The next call is execute at system->x. Automatic options are chosen as by gmxfmm_choose, for
 * options->accuracy. Where the system has x_before, error_moved has to reach it, too. With all of order, cells and ws
 * given there is nothing to choose, and these are measured. GMXFMM_AUTO as the accuracy means that none is asked for
 * where order, grid or depth is given (treecode: theta and degree). The model then completes these settings, and the
 * error that they reach is told. Elsewhere it means the default accuracy.
 *
 * METHOD_AUTO measures both methods in an open system without excluded pairs and x_before. It takes the treecode where
 * a call of execute for forces takes less than 0.9 of the FMM's time. It also does so where the FMM does not reach the
 * accuracy or lacks the memory. gmxfmm_info.method tells which one it is; a treecode has no virial. `tried` then has
 * what was tried of the FMM, and *chosen the treecode. Options of one method that are set mean that method. With
 * options->reproducible METHOD_AUTO is the error OPTION, as times decide.
 *
 * With targets in the system execute gives potential and field there. The accuracy is reached there and at the charges.
 * For results at the charges call gmxfmm_set_targets with none, and assign.
 *
 * A sample of charges and targets measures open systems of 5,000 charges or more on a CPU without x_before or mu, by
 * direct sums. Their error is the upper end of what the sample allows (3 standard deviations). uncertainty is 0, and
 * virial_error is NAN. METHOD_AUTO tries the treecode only where the FMM has more than 10,000 near particles a
 * particle. Settings are the model's for the accuracy that reaches a third of what was asked or more. They are less
 * where an order makes more than that. Times decide nothing there.
 *
 * gmxfmm_info.measured_error has the error of the plan, the larger of error and error_targets, until charges,
 * exclusions, targets or cells are others. *chosen and tried[0..*num_tried-1] have more, as of gmxfmm_choose. All three
 * may be NULL. An error below the uncertainty of the measurement is given as that. A plan holds no pointer to the
 * system. On failure *plan is NULL, and *chosen is what came nearest. Its error is not finite if nothing was measured.
 * Errors: as gmxfmm_reference_create and gmxfmm_choose; OPTION, too, if the settings given miss the accuracy. */
GMXFMM_API gmxfmm_status gmxfmm_create_measured(gmxfmm_plan**         plan,
                                                const gmxfmm_options* options,
                                                const gmxfmm_system*  system,
                                                gmxfmm_measurement*   chosen,
                                                gmxfmm_measurement*   tried,
                                                int*                  num_tried,
                                                char*                 message,
                                                size_t                message_size);

/* Evaluates the forces of a system twice, with other cells or another order each time; with targets also potential and
 * field there. It goes on until the two differ by no more than a tenth of options->accuracy, with orders up to
 * GMXFMM_MAX_ORDER (docs/accuracy.md). The options device, boundary, m2l, prefactor, threads and array type matter.
 * Errors: as create, set_charges and assign; OPTION: double precision is not enough. */
GMXFMM_API gmxfmm_status gmxfmm_reference_create(gmxfmm_reference**    reference,
                                                 const gmxfmm_options* options,
                                                 const gmxfmm_system*  system,
                                                 char*                 message,
                                                 size_t                message_size);

/* How far the two evaluations differ, as a relative RMS error of forces. A measured error is uncertain by this. Not a
 * number for NULL. */
GMXFMM_API double gmxfmm_reference_uncertainty(const gmxfmm_reference* reference);

/* Frees it; NULL is allowed. */
GMXFMM_API void gmxfmm_reference_destroy(gmxfmm_reference* reference);

/* Makes a plan with these options for the system of the reference, evaluates, and compares. Its cells are at one or
 * several places (few particles: up to 24). `repeats` more evaluations are timed. Errors: as create, set_charges,
 * assign and execute. */
GMXFMM_API gmxfmm_status gmxfmm_measure(const gmxfmm_reference* reference,
                                        const gmxfmm_options*   options,
                                        int                     repeats,
                                        gmxfmm_measurement*     measurement,
                                        char*                   message,
                                        size_t                  message_size);

/* The same for a plan as it is. It must have the charges, dipoles and exclusions of the reference, and a box in which
 * these are. Its cells may have followed particles that were elsewhere before. Afterwards its particles are assigned at
 * the reference's x. Errors: NULL, MEMORY, OPTION (one of the two has dipoles alone), those of assign and execute. */
GMXFMM_API gmxfmm_status gmxfmm_measure_plan(const gmxfmm_reference* reference,
                                             gmxfmm_plan*            plan,
                                             gmxfmm_measurement*     measurement,
                                             char*                   message,
                                             size_t                  message_size);

/* Chooses the cheapest settings that are measured to reach what was asked, with a tenth in hand for other
 * configurations of the same system (docs/accuracy.md). It sets order, cells, ws and m2l, and the accuracy that they
 * were chosen with; for an open system or a slab only m2l and ws at most. Costs are times of steps, with
 * options->reproducible those of a model. Where particles have moved, the error may be error_moved. An element of the
 * virial may be wrong by virial_error (INFINITY: any). All measurements go to tried[0..*num_tried-1]. *num_tried is its
 * room at first; 32 is enough. Both may be NULL. Errors: as measure; OPTION: a bound is negative or not a number, or
 * nothing reaches it. *chosen is then what came nearest. UNSUPPORTED: a treecode, whose plans measure their settings
 * themselves. */
GMXFMM_API gmxfmm_status gmxfmm_choose(const gmxfmm_reference* reference,
                                       gmxfmm_options*         options,
                                       double                  error_moved,
                                       double                  virial_error,
                                       gmxfmm_measurement*     chosen,
                                       gmxfmm_measurement*     tried,
                                       int*                    num_tried,
                                       char*                   message,
                                       size_t                  message_size);

#endif
