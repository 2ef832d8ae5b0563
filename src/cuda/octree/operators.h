/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The octree's operators between cells on the device (THEORY section 8): M2M, M2L in four variants, L2L; strain.
 *
 * The layout of data is that of the CPU (tree.h): expansions as [coefficient][cell] in the order of harmonics.h, cells
 * in child slabs, index `num` the empty cell with zero expansions, so that sources need no branch. The operators only
 * enqueue kernels on a stream, without allocation or synchronisation, and can be captured in a graph. Tables are made
 * by fmm_octree_create and fmm_octree_set_shape. All sums are in a fixed order: the same input gives the same result.
 */
#ifndef FMM_CUDA_OCTREE_H
#define FMM_CUDA_OCTREE_H

#include <stddef.h>

#include "fmm/geometry/cells.h"
#include "fmm/geometry/tree.h"

#ifdef __cplusplus
extern "C"
{
#endif

    /* Highest orders on a device: of all methods, and of m2l = rotation (whole plans: in double precision). */
    enum
    {
        FMM_OCTREE_MAX_ORDER          = 20,
        FMM_OCTREE_MAX_ROTATION_ORDER = 24
    };

    /* A level on the device: fmm_level with pointers to device memory; leaves need no near. */
    typedef struct
    {
        int        num;
        int        slab[9];
        const int *parent, *child, *near;
        size_t     stride; /* > num, except for roots */
        void*      multipole;
        void*      local;
        int        tiles; /* where slab has a part of a level: tiles of M2L by rotations in all of it; else 0 */
        /* The cells of all levels may be in one array, which is upper and lower level of M2L and strain at once: then
         * the unit of energy of each cell, else NULL. The root is in the first slab, and its parent the empty cell. */
        const double* scale;
    } fmm_octree_level;

    /* In such an array the cells with children of level l: begin[l][c] .. end[l][c] - 1 of each child index. */
    typedef struct
    {
        int begin[FMM_MAX_LEVEL][8], end[FMM_MAX_LEVEL][8];
    } fmm_octree_parents;

    /* Kernels of m2l = rotation for one order, precision and device. */
    typedef struct fmm_rotation_kernels fmm_rotation_kernels;

    /* Kernels for the current device. Orders that the build does not contain are read from cache_dir or compiled by
     * NVRTC and stored there (NULL: not stored). On failure *kernels is NULL and message[size] has the cause. Errors:
     * UNSUPPORTED (no NVRTC), MEMORY, DEVICE. */
    gmxfmm_status fmm_rotation_create(
        fmm_rotation_kernels** kernels, int order, int is_double, const char* cache_dir, char* message, size_t size);
    /* Whether kernels, which may be NULL, are for this order and precision. */
    int  fmm_rotation_is_for(const fmm_rotation_kernels* kernels, int order, int is_double);
    void fmm_rotation_destroy(fmm_rotation_kernels* kernels);

    /* Tables of the operators on the device, for one order, precision and set of lists. */
    typedef struct fmm_octree_operators fmm_octree_operators;

    /* Lists and tables for the lists of `tree` and a rectangular cell (cells->cell, unit u, axis-aligned).
     * M2L uses lists without translations to parents. Errors: MEMORY, DEVICE, UNSUPPORTED. */
    gmxfmm_status fmm_octree_create(
        fmm_octree_operators** ops, const fmm_tree* tree, const fmm_cells* cells, int order, int is_double);

    /* Computes tables that depend on the shape of the cell and copies them on `stream`. Errors: DEVICE. */
    gmxfmm_status fmm_octree_set_shape(fmm_octree_operators* ops, const fmm_cells* cells, void* stream);

    /* Sets the kernels for m2l = rotation, of the order and precision of ops; they must outlive ops. */
    void fmm_octree_set_rotation(fmm_octree_operators* ops, const fmm_rotation_kernels* kernels);

    /* Reserves scratch memory for levels of at most num cells; its contents are lost. Errors: MEMORY, ORDER (m2l =
     * rotation without kernels). */
    gmxfmm_status fmm_octree_reserve(fmm_octree_operators* ops, gmxfmm_m2l m2l, int num);

    /* The same for num cells of all levels in one array, which M2L takes at once. */
    gmxfmm_status fmm_octree_reserve_cells(fmm_octree_operators* ops, gmxfmm_m2l m2l, int num);

    /* Device memory of the operators, without the lists, which are small. */
    size_t fmm_octree_bytes(const fmm_octree_operators* ops);

    void fmm_octree_destroy(fmm_octree_operators* ops);

    /* Why the last of these calls failed. */
    const char* fmm_octree_message(const fmm_octree_operators* ops);

    /* Multipoles of `upper` from those of `lower`, its children. Errors of launches: DEVICE, UNSUPPORTED. */
    gmxfmm_status fmm_octree_m2m(fmm_octree_operators*   ops,
                                 const fmm_octree_level* upper,
                                 const fmm_octree_level* lower,
                                 void*                   stream);

    /* Adds locals of `upper` to those of `lower`. */
    gmxfmm_status fmm_octree_l2l(fmm_octree_operators*   ops,
                                 const fmm_octree_level* upper,
                                 const fmm_octree_level* lower,
                                 void*                   stream);

    /* The same through all levels, whose cells are `all`, in one launch: multipoles of the parents of levels last ..
     * first, from those of their children, and locals from the parents of levels first .. last. Levels first .. last
     * must have parents. Neither may run twice at a time. */
    gmxfmm_status fmm_octree_m2m_sweep(fmm_octree_operators*     ops,
                                       const fmm_octree_level*   all,
                                       const fmm_octree_parents* parents,
                                       int                       first,
                                       int                       last,
                                       void*                     stream);
    gmxfmm_status fmm_octree_l2l_sweep(fmm_octree_operators*     ops,
                                       const fmm_octree_level*   all,
                                       const fmm_octree_parents* parents,
                                       int                       first,
                                       int                       last,
                                       void*                     stream);

    /* Adds the interaction lists to the locals of `lower`; `upper` holds its parents. */
    typedef gmxfmm_status fmm_octree_m2l(fmm_octree_operators*   ops,
                                         const fmm_octree_level* upper,
                                         const fmm_octree_level* lower,
                                         void*                   stream);
    fmm_octree_m2l fmm_octree_m2l_rotation, fmm_octree_m2l_symmetric, fmm_octree_m2l_naive, fmm_octree_m2l_dynamic;

    /* Add scale times the derivative of the far energy with respect to a strain of the displacements of these
     * translations to strain6 (device; xx, yy, zz, xy, xz, yz), in the unit of energy of `lower`, or of each of its
     * cells where it has scales, as fmm_m2l and fmm_l2l do (operators.h). M2L needs the multipoles of `lower`, L2L
     * these and the locals of `upper` as they are before L2L. Both use scratch memory of fmm_octree_reserve: one stream
     * at a time. */
    gmxfmm_status fmm_octree_m2l_strain(fmm_octree_operators*   ops,
                                        const fmm_octree_level* upper,
                                        const fmm_octree_level* lower,
                                        double                  scale,
                                        double*                 strain6,
                                        void*                   stream);
    gmxfmm_status fmm_octree_l2l_strain(fmm_octree_operators*   ops,
                                        const fmm_octree_level* upper,
                                        const fmm_octree_level* lower,
                                        double                  scale,
                                        double*                 strain6,
                                        void*                   stream);

#ifdef __cplusplus
}
#endif

#endif
