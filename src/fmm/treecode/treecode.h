/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The barycentric Lagrange treecode: sums phi_i = sum_j G(|x_i - y_j|) q_j of a kernel that is smooth away from zero,
 * and their negative gradients, in open space, for particles distributed in any way. Clusters of sources that are far
 * from a batch of targets are replaced by (n + 1)^3 Chebyshev points with modified charges. Vaughn, Wilson & Krasny, A
 * GPU-accelerated barycentric Lagrange treecode, IPDPSW 2020 Wilson, Vaughn & Krasny, Comput. Phys. Commun. 265, 108017
 * (2021)
 *
 * Life cycle: create -> set_charges -> { assign -> execute, execute, ... } -> destroy. Memory is allocated in create,
 * set_charges and assign, never in execute. A call that fails leaves the cause in treecode_message.
 */
#ifndef TREECODE_TREECODE_H
#define TREECODE_TREECODE_H

#include <stddef.h>
#include <stdint.h>

#include "fmm/gmxfmm.h"
#include "fmm/treecode/kernels.h"

typedef struct
{
    treecode_kernel  kernel;
    double           parameter[TREECODE_PARAMETERS]; /* of the kernel, in the caller's units */
    double           accuracy;    /* asked relative error of potential and field, chooses what is 0 below */
    double           theta;       /* of (13), above 0 and below 1; 0: automatic */
    int              degree;      /* n, 1..20; 0: automatic */
    int64_t          leaf;        /* most particles in a leaf and most targets in a batch, >= 1; 0: automatic */
    int              dual;        /* 1: dual traversal (dual.h) */
    gmxfmm_precision precision;   /* of the sums; modified charges are double always */
    int              num_threads; /* >= 1 */
    int              device_id;   /* of several GPUs */
    int              floats;      /* 1: positions of sources and results are floats, which only a device takes */
    double           prefactor;   /* of all results */

    const struct treecode_stages* stages; /* what makes modified charges and sums: that of a row of fmm/backend.h */
} treecode_options;

/* What execute fills; NULL leaves a thing out. Arrays of the targets, in the caller's order. */
typedef struct
{
    void*  potential; /* n */
    void*  field;     /* 3 n, -grad phi */
    int    want_energy;
    double energy; /* 1/2 sum q phi; where the sources are the targets, and so the next line */
    void*  force;  /* 3 n, q times the field */
} treecode_output;

typedef struct
{
    double  theta; /* as chosen, and so are the next two */
    int     degree;
    int64_t leaf;
    double  predicted_error; /* of the model in choose.c */
    double  measured_error;  /* at a sample of the targets, the larger one of potential and field; NAN: not measured */
    int     num_clusters, num_levels, num_batches;
    double  pairs_per_target; /* evaluations of the kernel a target, mean */
    size_t  bytes;
    double  time_choose, time_tree, time_lists, time_charges, time_sums,
        time_output; /* seconds, of the last assign and execute */
} treecode_info;

typedef struct treecode treecode;

/* On failure *t is NULL and message[size] has the cause. Errors: OPTION, MEMORY, UNSUPPORTED,
 * DEVICE. */
gmxfmm_status treecode_create(treecode** t, const treecode_options* options, char* message, size_t size);

void treecode_destroy(treecode* t);

/* Charges of n sources, copied. Errors: OPTION (n < 0), CHARGE, MEMORY. */
gmxfmm_status treecode_set_charges(treecode* t, int64_t n, const double* q);

/* Clusters and lists for sources at x[3n] and targets at y[3m]; y NULL: the targets are the sources, without
 * themselves. Errors: ORDER, POSITION, MEMORY, DEVICE. */
gmxfmm_status treecode_assign(treecode* t, const void* x, int64_t m, const double* y);

/* The sums for sources at x[3n], which should not have moved far since assign. Errors: ORDER, POSITION, COINCIDENT. */
gmxfmm_status treecode_execute(treecode* t, const void* x, treecode_output* output);

void treecode_get_info(const treecode* t, treecode_info* info);

const char* treecode_message(const treecode* t);

#endif
