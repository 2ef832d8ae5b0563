/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options, results and information of a treecode. */
#ifndef TREECODE_TYPES_H
#define TREECODE_TYPES_H

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
    int              measures;    /* 1: the error is measured, once, even if nothing is automatic */

    const struct treecode_stages* stages; /* what makes modified charges and sums: that of a row of fmm/backend.h */
    const struct fmm_ranks*       ranks;  /* that share the sums, for stages that know them (ranks/) */
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

#endif
