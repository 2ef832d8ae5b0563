/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What computes a plan: one row of limits and functions for a method and device, on the CPU the FMM has one in each
 * precision; backend.c lists them. The core keeps what all have in common (domain, particles, charges, shape of the far
 * field), and calls the row of the plan for the rest; what a row can do, and what it costs, is data in it. Another way
 * to compute is one more row: its files, and a line in backend.c.
 *
 * Functions return a status and leave the cause in the plan's message.
 */
#ifndef FMM_BACKEND_H
#define FMM_BACKEND_H

#include "fmm/gmxfmm.h"

struct fmm_costs;
struct gmxfmm_ranks_info;

typedef struct fmm_backend
{
    gmxfmm_method           method;
    gmxfmm_device           device;
    int                     level;      /* of x86-64 that it is compiled for; 0: any (simd_level.h) */
    unsigned                precisions; /* bit 1 << gmxfmm_precision */
    unsigned                m2l;        /* bit 1 << gmxfmm_m2l; of the FMM, and so are the next lines */
    int                     max_order, max_rotation_order; /* of all methods but rotation, and of that */
    int                     has_octree_options;            /* m2l_to_parent, vertical_rotation, all of m2l_truncate */
    const struct fmm_costs* costs;                         /* of its stages (model/costs.h) */
    /* Whether it turns positions, targets and results between the caller's axes and the plan's (frame.h) itself, as
     * they may be on a device; otherwise it is given the plan's. */
    int turns_axes;
    /* Whether execute has the near field of plan->along (state.h), and that of charges with widths. */
    int has_along, has_widths;

    const struct treecode_stages* treecode; /* of the treecode: what makes modified charges and sums (its state.h) */

    /* Why it does not offer the functions below that are NULL, and what to do: set_exclusions; enqueue; enqueue_assign;
     * enqueue_charges; time_stages. */
    const char *no_exclusions, *no_enqueue, *no_enqueue_assign, *no_enqueue_charges, *no_time_stages;

    /* Bits of gmxfmm_capability of a plan as it is. */
    unsigned (*capabilities)(const gmxfmm_plan* plan);

    /* Whether device number id can be used, otherwise the cause in message[size]. Errors: DEVICE (none, too old). */
    gmxfmm_status (*check)(int id, char* message, size_t size);

    /* What depends on options alone; destroy frees what any of these functions made, of a plan at any stage. */
    gmxfmm_status (*create)(gmxfmm_plan* plan);
    void (*destroy)(gmxfmm_plan* plan);

    /* The charges of the plan are new; where it fails, the plan has none. */
    gmxfmm_status (*set_charges)(gmxfmm_plan* plan);
    /* Room for dipoles, or none of them any more, as plan->charges has them. NULL: not offered. */
    gmxfmm_status (*set_dipoles)(gmxfmm_plan* plan);
    /* The dipoles of the plan are new, after set_dipoles. NULL: it reads them itself. */
    gmxfmm_status (*take_dipoles)(gmxfmm_plan* plan);
    /* x: places of the plan's targets in the array type, where the caller has them. */
    gmxfmm_status (*set_targets)(gmxfmm_plan* plan, const void* x);
    /* Excluded pairs, checked; both NULL if there are none. start has n + 1 elements. NULL: not offered. */
    gmxfmm_status (*set_exclusions)(gmxfmm_plan* plan, const int* start, const int* list, int64_t n);
    /* plan->derivatives are new; where it fails, there are none. NULL: it has nothing to do for them. */
    gmxfmm_status (*set_charge_derivatives)(gmxfmm_plan* plan);
    /* What it made of exclusions on the host. NULL: nothing. */
    void (*free_exclusions)(gmxfmm_plan* plan);

    /* Arrays, transforms and tables for the grid of fmm_convolved, or for the octree's roots and lists. NULL: the plan
     * has no cells, and the row neither of the next two, nor extent. */
    gmxfmm_status (*set_grid)(gmxfmm_plan* plan);
    void (*free_grid)(gmxfmm_plan* plan);
    /* The far field has another version, that of another shape: its lattice sums are needed anew, by the next step. */
    gmxfmm_status (*set_shape)(gmxfmm_plan* plan);

    /* Makes *x, num numbers of the array type, an address of the host, valid until the next call. */
    gmxfmm_status (*on_host)(gmxfmm_plan* plan, const void** x, size_t num);
    /* Widens low..high, in the plan's axes, by particles, at *x, and targets; *x becomes an address that assign need
     * not copy. Errors: POSITION, MEMORY, DEVICE. */
    gmxfmm_status (*extent)(gmxfmm_plan* plan, const void** x, double* low, double* high);

    /* Sorts particles at x into cells, finds the excluded pairs among near ones, reserves what a step needs.
     * Errors: POSITION, MEMORY, DEVICE. */
    gmxfmm_status (*assign)(gmxfmm_plan* plan, const void* x);
    /* One step with arrays of the host, synchronous. */
    gmxfmm_status (*execute)(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);

    /* Seconds of one of num steps for forces one behind the other, without the copies of x and forces that execute
     * makes; x, on the host, is where the particles are. NULL: execute is what can be timed. */
    gmxfmm_status (*time_steps)(gmxfmm_plan* plan, const void* x, int num, double* seconds);
    /* As gmxfmm_time_stages. NULL: not offered, as enqueue. */
    gmxfmm_status (*time_stages)(
        gmxfmm_plan* plan, const void* x, unsigned stages, int repeats, void* stream, double* seconds);
    /* As gmxfmm_set_first_share, of several devices. NULL: not offered. */
    gmxfmm_status (*set_first_share)(gmxfmm_plan* plan, double share);

    /* The next assign measures the error of a method that measures itself, again. accuracy: for which it chooses first
     * what the options leave automatic; 0: its settings stay. NULL: it does not. */
    void (*measure_again)(gmxfmm_plan* plan, double accuracy);

    /* Adds what plan.c does not know of, such as the leaves of an octree; NULL: nothing. */
    void (*get_info)(const gmxfmm_plan* plan, gmxfmm_info* info);

    /* What a row for several ranks tells of them, and times of that set to zero (gmxfmm_parallel.h); NULL: one rank. */
    void (*get_ranks_info)(const gmxfmm_plan* plan, struct gmxfmm_ranks_info* info);
    void (*reset_ranks_times)(gmxfmm_plan* plan);

    /* Whether graphs of steps that were captured so far will have a new box, too, once it is enqueued. NULL: none. */
    gmxfmm_status (*graphs_follow)(gmxfmm_plan* plan, void* stream, int* follow);
    /* These on the caller's stream with arrays of the device, without waiting; what a step in a new box needs, ahead
     * of it. NULL: not offered. */
    gmxfmm_status (*enqueue_assign)(gmxfmm_plan* plan, const void* x, void* stream);
    gmxfmm_status (*enqueue_assign_part)(gmxfmm_plan* plan, gmxfmm_assign_part part, const void* x, void* stream);
    gmxfmm_status (*enqueue_charges)(gmxfmm_plan* plan, int64_t count, const int* index, const void* q, void* stream);
    gmxfmm_status (*enqueue_box)(gmxfmm_plan* plan, void* stream);
    gmxfmm_status (*enqueue)(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, void* stream);
    /* With plan->has_way, checked; charges are what they were afterwards. NULL: not offered. */
    gmxfmm_status (*enqueue_along)(gmxfmm_plan* plan, const void* x, const gmxfmm_device_along* along, void* stream);
    /* Whether the cells of an open direction held all particles at the last assignment that was enqueued: waits until
     * that is known. NULL: enqueue_assign is not offered. */
    int (*cells_hold)(const gmxfmm_plan* plan);

    /* The row in its place on several ranks; NULL: not offered. Its assign and execute are called by all ranks or by
     * none, and their status is that of all. */
    const struct fmm_backend* on_ranks;
} fmm_backend;

/* The row for a method, device and precision, of several one that offers this way of M2L; NULL: not in this build. */
const fmm_backend*
fmm_find_backend(gmxfmm_method method, gmxfmm_device device, gmxfmm_precision precision, gmxfmm_m2l m2l);

#endif
