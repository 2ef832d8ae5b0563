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
    /* On levels of at most c_rotationFewTiles tiles of targets, m2l_rotation.cu divides each list among
     * c_rotationSplits blocks for each block that fits on a multiprocessor, so that every multiprocessor has work. On
     * levels of at most c_rotationSomeTiles it divides a list among as many blocks as fit on a multiprocessor. */
    c_rotationSplits    = 8,
    c_rotationFewTiles  = 16,
    c_rotationSomeTiles = 128,
    /* Cells of all levels in one array may have any number of tiles: with at most c_rotationCellTiles, a list is
     * divided as on small levels where the multiprocessors then take so many fewer rounds (m2l_rotation.cu). */
    c_rotationCellTiles  = 256,
    c_rotationProcessors = 132, /* of an H100 or H200 */
    c_rotationParts      = 4    /* of the planes, computed one after the other if there is no memory for all */
};

/* Schedules of m2l_rotation.cu: for levels of many cells, of some, of few, and for parts of the planes. */
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
    int   reference; /* number of the operator */
    int   zero;      /* components that are 0, as bits 4, 2, 1 */
    short near[8];   /* by signs of R, in the same bits; -1: no such displacement */
    short octant[8];
};

enum
{
    c_symmetricRun   = 13, /* most outputs of a run: 16 registers hold the elements for them and four inputs */
    c_symmetricWarps = 16
};

/* Outputs k = l + first .. of column l, real or imaginary parts, which a warp computes at once. */
struct SymmetricRun
{
    int l, im, first, count;
};

/* Division of work in a block of m2l_symmetric.cu. */
struct SymmetricSchedule
{
    int                  warps, teams; /* of a team, which has one group of displacements at a time; of a block */
    int                  passes;       /* 1, or 4: outputs by their character in x and y */
    const SymmetricRun*  run;          /* device */
    int                  start[4][c_symmetricWarps + 1]; /* runs of each warp */
    const unsigned char* character;                      /* device: of each coefficient (fold.h) */
};

/* The kernels of rotation_kernels.h for one order and precision, as cudaLaunchKernel takes them. */
struct fmm_rotation_kernels
{
    int         order, is_double;
    const void *rotate_sources, *translate;
    void*       library[2]; /* cudaLibrary_t of each if they were compiled at run time, else NULL */
};

struct fmm_octree_operators
{
    int                         order, is_double, num_coef, num_near, num_vectors, num_references, num_planes;
    int                         num_list[8], num_groups[8];
    int*                        vector;       /* host: num_vectors x 3 */
    int*                        order_of;     /* host: order of translations by vector, `order` or rot_reduced_order */
    int*                        plane_of;     /* host: by vector */
    int*                        plane_vector; /* host: by plane, a vector in it */
    int*                        reference;    /* host: vector of each reference operator */
    char                        message[256];
    AllowedKernels              allowed;
    const fmm_rotation_kernels* rotation;    /* not owned; NULL: another method of M2L */
    size_t                      theta_size;  /* reals of Theta(R), (2p+2)^2: forces take one degree more than M2L */
    size_t                      folded_size; /* of an operator of m2l_symmetric.cu */

    /* device */
    DeviceBuffer             lists; /* memory of the next two and of the schedules' lists */
    const OctreeTranslation* list[8];
    const SymmetricGroup*    group[8];
    RotationSchedule         schedule[c_rotationSchedules];
    SymmetricSchedule        symmetric;
    DeviceBuffer             shape;      /* tables that depend on the shape of the cell, one after the other */
    void*                    host_shape; /* on the host, pinned: from where they are copied */
    size_t                   shape_bytes;
    size_t                   theta_at, folded_at, direction_at, angle_at, up_at, down_at, strain_at; /* begins, bytes */
    DeviceBuffer             rotated;     /* m2l_rotation: multipoles rotated to the planes */
    DeviceBuffer             partial;     /* m2l_rotation: locals of each block among which a list is divided */
    DeviceBuffer             strain_rows; /* strain.cu: 6 doubles, sums of each block */
    DeviceBuffer             sweep;       /* sweep.h: counters, zero between kernels */
};

template <class R>
static inline const R* octree_table(const fmm_octree_operators* ops, size_t at)
{
    return reinterpret_cast<const R*>(ops->shape.as<const char>() + at);
}

/* Reals from one block (fold.h) of an operator of m2l_symmetric.cu to the next; block i of columns m and l is number 4
 * ((p + 1) m + l) + i. The stride is a multiple of four and has room for three quads after the last element, which may
 * be read. */
static inline int folded_stride(int p)
{
    return (2 * p + 1 + 3) / 4 * 4 + 12;
}

/* Blocks of m2l_rotation.cu, with 32 targets of one slab each: for every slab as many as the longest one needs. */
static inline int rotation_tiles(const int* slab)
{
    int tiles = 0;
    for (int c = 0; c < 8; c++)
    {
        const int blocks = (slab[c + 1] - slab[c] + 31) / 32;
        tiles            = blocks > tiles ? blocks : tiles;
    }
    return 8 * tiles;
}

/* Reals of the multipoles of num cells, rotated to one plane; and whether there is memory for all planes at once. */
static inline size_t rotation_plane_size(const fmm_octree_operators* ops, int num)
{
    return (static_cast<size_t>(num) + 32) / 32 * 32 * static_cast<size_t>(ops->num_coef);
}

static inline bool rotation_holds_planes(const fmm_octree_operators* ops, int num)
{
    const size_t real = ops->is_double ? sizeof(double) : sizeof(float);
    return static_cast<size_t>(ops->num_planes) * rotation_plane_size(ops, num) * real <= ops->rotated.capacity;
}

/* lists.cu: makes the lists on the device, the planes and the reference operators. May throw std::bad_alloc. */
gmxfmm_status fmm_octree_make_lists(fmm_octree_operators* ops, const fmm_tree* tree);

/* m2l_dynamic.cu: reserves memory for launches from the device. */
cudaError_t fmm_octree_prepare_dynamic();

/* strain.cu: rows of sums needed for levels of at most num cells. */
size_t fmm_octree_strain_rows(int num);

static inline size_t octree_aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Writes a failure to ops->message. */
gmxfmm_status
fmm_octree_failed(fmm_octree_operators* ops, gmxfmm_status status, const char* call, const char* file, int line);

/* What FMM_CUDA of call.h needs. */
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
