/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plan, and what the stages see of each other. `_f` and `_d` functions are the two precisions of one source file.
 */
#ifndef FMM_PLAN_H
#define FMM_PLAN_H

#include "cells.h"
#include "gmxfmm.h"

/* Arrays of the step in sorted order (particles of a cell stand together), each padded by one vector. */
typedef struct
{
    void *x, *y, *z, *q;      /* position relative to the cell's centre, unit u; charge */
    void *near_phi, *far_phi; /* potentials, unit 1/u */
    void *ex, *ey, *ez;       /* field, near and far, unit 1/u^2 */
    float (*reference)[3];    /* position in the cell at assign, in cells: tells which image of a particle is meant */
} fmm_particles;

/* A pair left out whose cells are far from each other. */
typedef struct
{
    int i, j;      /* sorted indices */
    int offset[3]; /* cell of i minus cell of j's image, in cells */
} fmm_far_pair;

struct fmm_convolution_f;
struct fmm_convolution_d;

struct gmxfmm_plan
{
    gmxfmm_options options; /* as asked */
    char           message[512];
    int            order, separation, inner[3], periodic, num_threads; /* as chosen */
    double         target_edge;                                        /* open: cell edge, once chosen */
    double         predicted_error;
    double         box[9];
    fmm_cells      cells;
    int            geometry_valid; /* cells belongs to box */
    int            spectra_valid;  /* spectra belong to the shape of box */
    int            virial_spectra_valid;
    double         spectra_cell[9]; /* shape the spectra were made for */
    uint64_t       spectra_near;    /* and near set */

    int64_t expected; /* particles, as said at create */
    int64_t n;            /* particles */
    double* charge;       /* n, caller's order */
    double  total_charge; /* sum q */
    int*    excl_start;   /* n + 1, or NULL */
    int*    excl_list;
    int     assigned;

    int*          sorted;     /* sorted[s] = i */
    int*          position;   /* position[i] = s */
    int*          cell_of;    /* n: cell of particle i (assign) */
    int*          cell_start; /* num_cells + 1 */
    fmm_particles p;
    int* mask_start; /* n + 1: pairs left out of the near field of s, as places in the gathered near particles */
    int* mask;
    fmm_far_pair* far_pairs;
    int           num_far_pairs;
    int           near_capacity; /* largest number of particles in a near set, padded */

    void*   scratch;       /* per thread: gathered near particles, expansions of a block of cells */
    size_t  scratch_bytes; /* per thread */
    double* partial;       /* per thread or per slab sums */
    int     partial_rows;

    struct fmm_convolution_f* conv_f;
    struct fmm_convolution_d* conv_d;

    gmxfmm_info info; /* times and counts */
    size_t      bytes, particle_bytes, exclusion_bytes, grid_bytes;
};

enum
{
    FMM_PARTIAL = 16 /* reals a row of plan->partial: sums of one thread, or of one slab of cells */
};

/* Writes the message of status into the plan and returns status. */
gmxfmm_status fmm_fail(gmxfmm_plan* plan, gmxfmm_status status, const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Seconds of a steady clock. */
double fmm_time(void);

/* Aligned memory, a multiple of FMM_ALIGN; counted in plan->bytes. NULL when there is none. */
void* fmm_alloc(gmxfmm_plan* plan, size_t bytes);

/* exclusions.c: the lists and what was made of them. */
void fmm_free_exclusions(gmxfmm_plan* plan);

/* options.c: ranges and contradictions; the message goes to message[size]. */
gmxfmm_status fmm_check_options(const gmxfmm_options* options, char* message, size_t size);

/* tune.c: chooses order, separation and grid where options leave them open. */
gmxfmm_status fmm_tune(gmxfmm_plan* plan, int64_t n, const double* box);

/* Both precisions of the step. */
#define FMM_DECLARE(suffix)                                                                                            \
    gmxfmm_status fmm_conv_create_##suffix(gmxfmm_plan* plan);                                                         \
    void          fmm_conv_destroy_##suffix(struct fmm_convolution_##suffix* conv);                                    \
    gmxfmm_status fmm_conv_set_shape_##suffix(gmxfmm_plan* plan);                                                      \
    void          fmm_conv_spectra_##suffix(gmxfmm_plan* plan, int with_virial);                                       \
    gmxfmm_status fmm_step_reserve_##suffix(gmxfmm_plan* plan);                                                        \
    gmxfmm_status fmm_step_##suffix(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);

FMM_DECLARE(f)
FMM_DECLARE(d)

#endif
