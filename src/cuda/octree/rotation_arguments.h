/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arguments of kernels of M2L: cells and lists and, for those of rotation_kernels.h, their schedule. This file includes
 * no headers of the system or of CUDA, which NVRTC does not have (rotation_compile.h). */
#ifndef FMM_CUDA_ROTATION_ARGUMENTS_H
#define FMM_CUDA_ROTATION_ARGUMENTS_H

/* Cells and lists as kernels of M2L see them: the source of a target, at one translation, is child `octant` of the
 * near cell `near` of the target's parent. */
struct OctreeLists
{
    const int* parent; /* of targets */
    const int* near;   /* of parents, num_near each */
    const int* child;  /* of parents, 8 each */
    int        num_near;
    int        num; /* cells of the targets' level; also the index of its empty cell */
    int        slab[9];
    size_t     stride;
};

/* A translation of the interaction list of one child index, as fmm_translation. */
struct OctreeTranslation
{
    short near, octant;
    int   vector;
};

/* A translation of m2l_rotation.cu. Consecutive translations of a group of warps whose displacements have the same
 * angle phi modulo pi are a run, whose sum is added to the locals at once. */
struct alignas(16) RotationStep
{
    short near, octant; /* as in OctreeTranslation */
    int   vector;
    int   plane; /* number of the angle phi */
    int   rank;  /* of a run in the order in which a block adds runs to locals: in its last step; in others -1 */
};

/* The translations of m2l_rotation.cu by child index and how they are divided among blocks and groups; all on the
 * device. */
struct RotationSchedule
{
    const RotationStep* step[8];
    const int*          start[2][8];   /* by order, full and reduced: first step of each group of each block */
    const int*          most[2][8];    /* for each block, the steps of its group with most */
    const int*          full_runs[8];  /* for each block, its number of runs of the full order */
    int                 groups, teams; /* in a block; group g is in team g % teams */
    int                 splits;        /* blocks among which a list is divided */
    int                 first_plane, num_planes; /* steps, and the angles below, count from the first */
    const void*         direction;               /* by vector: rotation_direction_size reals */
    const void*         angle;                   /* by plane: cos and sin of m (phi - pi/2), m = 1..order */
};

namespace rotation
{

/* Arguments of both kernels. */
template <class R>
struct Arguments
{
    OctreeLists      lists;
    RotationSchedule schedule;
    R*               rotated; /* [plane][tile][coefficient in the order of rows][32] */
    size_t           plane_size;
    R*               local; /* one for each of the blocks among which a list is divided */
    size_t           local_size;
    const R*         multipole;
};

} // namespace rotation

#endif
