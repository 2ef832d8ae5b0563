/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables of the octree's operators on the device, as their kernels see them. */
#ifndef FMM_CUDA_OCTREE_STATE_H
#define FMM_CUDA_OCTREE_STATE_H

#include <cuda_runtime.h>

extern "C"
{
#include "fmm/gmxfmm.h"
}
#include "cuda/octree/operators.h"
#include "cuda/octree/rotation_arguments.h"
#include "cuda/runtime/buffer.h"
#include "cuda/runtime/call.h"
#include "cuda/runtime/shared_memory.h"

enum
{
    /* blocks of m2l_rotation.cu that share a list on levels of few cells, for each that a multiprocessor has room for,
     * where tiles of targets are that few: then no multiprocessor is without. On levels of some more cells as many
     * share one as a multiprocessor has room for */
    c_rotationSplits    = 8,
    c_rotationFewTiles  = 16,
    c_rotationSomeTiles = 128,
    c_rotationParts     = 4 /* of the planes, one after the other where there is no memory for all */
};

/* Schedules of m2l_rotation.cu: for levels of many cells, of some, of few, and parts of the planes. */
enum
{
    c_rotationWhole,
    c_rotationSome,
    c_rotationSplit,
    c_rotationPart,
    c_rotationSchedules = c_rotationPart + c_rotationParts
};

/* Reals of a displacement's table for m2l_rotation.cu: cos and sin of m theta, m = 1..p; n!/r^n and k!/r^{k+1}, n, k =
 * 0..p; a multiple of four. */
static inline int rotation_direction_size(int p)
{
    return (2 * p + 2 * (p + 1) + 3) / 4 * 4;
}

/* One reference operator, all components of R >= 0, with its mirror images (THEORY (33)). */
struct SymmetricGroup
{
    int   reference; /* which operator */
    int   zero;      /* components that are 0, as bits 4, 2, 1 */
    short near[8];   /* by signs of R, the same bits; -1: there is none */
    short octant[8];
};

enum
{
    c_symmetricRun   = 13, /* most outputs of a run: 16 registers hold the operator's elements for four more */
    c_symmetricWarps = 16
};

/* Outputs k = l + first .. of column l, real or imaginary parts, which one warp computes at once. */
struct SymmetricRun
{
    int l, im, first, count;
};

/* Who computes what in a block of m2l_symmetric.cu. */
struct SymmetricSchedule
{
    int                  warps, teams; /* of a team, which has a group of displacements in hand; of a block */
    int                  passes;       /* 1, or 4: outputs by their character in x and y */
    const SymmetricRun*  run;          /* device */
    int                  start[4][c_symmetricWarps + 1]; /* runs of each warp */
    const unsigned char* character;                      /* device: of each coefficient (fold.h) */
};

/* Addresses as cudaLaunchKernel takes them. */
struct fmm_rotation_kernels
{
    int         order, is_double;
    const void *turn, *translate;
    void*       library[2]; /* cudaLibrary_t of each if they are not of this build; NULL */
};

struct fmm_octree_operators
{
    int                         order, is_double, num_coef, num_near, num_vectors, num_references, num_planes;
    int                         num_list[8], num_groups[8];
    int*                        vector;       /* host: num_vectors x 3 */
    int*                        order_of;     /* host: of translations, by vector; `order`, or rot_reduced_order */
    int*                        plane_of;     /* host: by vector */
    int*                        plane_vector; /* host: by plane, a vector in it */
    int*                        reference;    /* host: vector of each reference operator */
    char                        message[256];
    AllowedKernels              allowed;
    const fmm_rotation_kernels* rotation;    /* not owned; NULL: another method */
    size_t                      theta_size;  /* reals of Theta(R), (2p+2)^2: forces take one degree more than M2L */
    size_t                      folded_size; /* of an operator of m2l_symmetric.cu */

    /* device */
    DeviceBuffer             lists; /* the next two and the schedules' */
    const OctreeTranslation* list[8];
    const SymmetricGroup*    group[8];
    RotationSchedule         schedule[c_rotationSchedules];
    SymmetricSchedule        symmetric;
    DeviceBuffer             shape;      /* tables that depend on the shape of the cell, in one piece: */
    void*                    host_shape; /* pinned copy, from which they are copied */
    size_t                   shape_bytes;
    size_t                   theta_at, folded_at, direction_at, angle_at, up_at, down_at, strain_at; /* bytes into it */
    DeviceBuffer             turned;      /* m2l_rotation: multipoles turned into planes */
    DeviceBuffer             partial;     /* m2l_rotation: locals by blocks that share a list */
    DeviceBuffer             strain_rows; /* strain.cu: 6 doubles, sums of each block */
};

template <class R>
static inline const R* octree_table(const fmm_octree_operators* ops, size_t at)
{
    return reinterpret_cast<const R*>(ops->shape.as<const char>() + at);
}

/* Reals between two blocks (fold.h) of an operator of m2l_symmetric.cu; block i of columns m and l is number
 * 4 ((p + 1) m + l) + i. Whole quads, and three quads beyond the last element may be read. */
static inline int folded_stride(int p)
{
    return (2 * p + 1 + 3) / 4 * 4 + 12;
}

/* lists.cu: the lists, on the device, and planes and references. May throw std::bad_alloc. */
gmxfmm_status fmm_octree_make_lists(fmm_octree_operators* ops, const fmm_tree* tree);

/* m2l_dynamic.cu: room for the launches from the device. */
cudaError_t fmm_octree_prepare_dynamic();

/* strain.cu: rows of sums that levels of at most num cells take. */
size_t fmm_octree_strain_rows(int num);

static inline size_t octree_aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The record of a failure in ops->message. */
gmxfmm_status
fmm_octree_failed(fmm_octree_operators* ops, gmxfmm_status status, const char* call, const char* file, int line);

/* Of call.h. */
static inline gmxfmm_status
fmm_cuda_failed(fmm_octree_operators* ops, cudaError_t error, const char* call, const char* file, int line)
{
    return fmm_describe_failure(error, call, file, line, ops->message, sizeof(ops->message));
}

static inline OctreeLists
octree_lists(const fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower)
{
    OctreeLists lists;
    lists.parent   = lower->parent;
    lists.near     = upper->near;
    lists.child    = upper->child;
    lists.num_near = ops->num_near;
    lists.num      = lower->num;
    lists.stride   = lower->stride;
    for (int i = 0; i < 9; i++)
    {
        lists.slab[i] = lower->slab[i];
    }
    return lists;
}

#endif
