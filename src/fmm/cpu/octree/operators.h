/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree's operators between cells, M2M, M2L and L2L: tables and scratch, which a step finds allocated. */
#ifndef FMM_OPERATORS_H
#define FMM_OPERATORS_H

#include "fmm/cpu/state.h"
#include "fmm/math/portable.h"
#include "fmm/math/strain.h"
#include "fmm/geometry/tree.h"

enum
{
    FMM_SHARES = 1024 /* into which the targets of a level are divided; sums over them do not depend on threads */
};

/* Direction of a displacement R as the rotations need it (rotation.h). */
typedef struct
{
    real cos_phi, sin_phi, cos_theta, sin_theta, inverse; /* 1 / |R| */
    real padding[3];
} fmm_direction;

/* The order of coefficients of multipoles and locals in M2L, row by row or lane by lane. With strain, locals have one
 * degree more than the plan's order p: (d/dR) Theta_{n+k} = Theta_{n+k+1} makes the derivative of the energy of a
 * translation M_k L_{k+1}.
 */
typedef struct
{
    int  order;  /* p, or p + 1 */
    int  num;    /* (order+1)^2 */
    int  row;    /* num, rounded up to vectors */
    int* harm;   /* row[i] is coefficient harm[i] in the order of harmonics.h, */
    int* level;  /* and level[i] of a level's arrays, -1 if its degree is p + 1, */
    int* degree; /* and of this degree */
} fmm_row_layout;

/* What one thread works in, carved out of ops->scratch; vreals. */
typedef struct
{
    /* row each, of one block: L, and with strain sum of R_x L, R_y L, R_z L */
    vreal* sum[4];   /* a lane a target */
    vreal* total[4]; /* the same of one target, a lane a translation */
    real*  rows[4];  /* VLEN x row: the same of the block's targets, row by row */
    vreal* in;       /* row: multipoles, a lane a source */
    vreal* work;     /* what the variant asks for */
    int*   source;   /* longest list: cells */
    int*   vector;   /* and displacements */
} fmm_scratch;

struct fmm_operators
{
    int            order, num_coef;
    fmm_row_layout layout[2];      /* without and with strain */
    int            rows_by_degree; /* a lower order is the beginning of a row */
    int            num_vectors;    /* displacements of lists, then those to parents */
    int            longest;        /* list */
    size_t         theta_row;      /* (2p+2)^2, rounded up to vectors */
    int*           mirror;    /* 8 x num_vectors, of references: their mirror images (signs: bits 4, 2, 1); symmetric */
    real*          theta;     /* num_vectors x theta_row: Theta(R), degrees <= 2p+1; naive and symmetric */
    fmm_direction* direction; /* num_vectors; rotation */
    real (*displacement)[4];  /* num_vectors: R, unit u */
    real * up, *down;         /* shift.h: M2M and L2L of child 7 */
    int    flip_size;         /* reals of one of the three tables of flips (rotation.h) */
    real*  flips;
    real*  binomial; /* (p+2) x (p+2): (n+k)! / (n! k!) */
    real*  rows;     /* (cells + 1) x row: multipoles of the sources' level */
    size_t rows_capacity;
    char*  scratch;
    size_t scratch_bytes, work_bytes; /* per thread, of that for work */
    double (*partial)[8];             /* FMM_SHARES: strain */
};

/* Tables that depend on the order alone; room: for 3 (p + 2) (p + 3) numbers. */
void fmm_rotation_tables(struct fmm_operators* ops, double* room);

/* Scratch of a thread. */
fmm_scratch fmm_scratch_of(const struct fmm_operators* ops, int thread);

/* Force on multipoles m of order p in local expansions l of order q, lane by lane, in the order of harmonics.h. */
void fmm_expansion_force(int p, const vreal* m, int q, const vreal* l, vreal force[3]);

/* Adds factor * sum s (x) F over the children at s of cells first .. first+lanes-1 of `level`, F being the force on
 * their multipoles in what comes from their parents' locals `local`, unit 1/u of the children; uses scratch->in and
 * ->work. */
void fmm_l2l_strain(const gmxfmm_plan* plan,
                    int                level,
                    int                first,
                    int                lanes,
                    int                q,
                    const vreal*       local,
                    double             factor,
                    const fmm_scratch* scratch,
                    double*            strain);

/* Adds scale times the sum of ops->partial to strain[6]. */
void fmm_sum_strain(const struct fmm_operators* ops, double scale, double* strain);

#endif
