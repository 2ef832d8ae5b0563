/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What kernels of M2L are given of cells and lists, and those of rotation_kernels.h of their schedule. Without headers
 * of the system or of CUDA, which NVRTC does not have (rotation_compile.h). */
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
    int        num; /* cells of the targets' level; also its empty cell */
    int        slab[9];
    size_t     stride;
};

/* A translation of the list of one child index, as fmm_translation, and what the rotations know of it. */
struct OctreeTranslation
{
    short near, octant;
    int   vector;
};

/* A translation of m2l_rotation.cu. Those of one group of warps whose displacements have one angle phi modulo pi stand
 * in a row and are a run, whose sum is added to the locals at once. */
struct alignas(16) RotationStep
{
    short near, octant; /* as in OctreeTranslation */
    int   vector;
    int   plane; /* which angle */
    int   turn;  /* of the last of a run: its place in the order in which a block adds runs to locals; others: -1 */
};

/* The translations of m2l_rotation.cu, all on the device; by child index. */
struct RotationSchedule
{
    const RotationStep* step[8];
    const int*          start[2][8];             /* by order, full and reduced: steps of each group of each block */
    const int*          most[2][8];              /* steps of the group that has most, for each block */
    const int*          full_runs[8];            /* of the full order, by block */
    int                 groups, teams;           /* of a block; group g is in team g % teams */
    int                 splits;                  /* blocks */
    int                 first_plane, num_planes; /* steps, and the angles below, count from the first */
    const void*         direction;               /* by vector: rotation_direction_size reals */
    const void*         angle;                   /* by plane: cos and sin of m (phi - pi/2), m = 1..order */
};

namespace rotation
{

/* What a kernel is given. */
template <class R>
struct Arguments
{
    OctreeLists      lists;
    RotationSchedule schedule;
    R*               turned; /* [plane][tile][coefficient in the order of rows][32] */
    size_t           plane_size;
    R*               local; /* one for each of the blocks that share a list */
    size_t           local_size;
    const R*         multipole;
};

} // namespace rotation

#endif
