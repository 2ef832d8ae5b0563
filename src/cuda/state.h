/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The device part of a plan, the arguments of its kernels by how often they change, and the error macro. */
#ifndef FMM_CUDA_STATE_H
#define FMM_CUDA_STATE_H

#include <cuda_runtime.h>
#include <cufft.h>

extern "C"
{
#include "fmm/geometry/cells.h"
#include "fmm/geometry/lattice.h"
#include "fmm/state.h"
}
#include "cuda/device.h"
#include "cuda/octree/operators.h"
#include "cuda/runtime/buffer.h"
#include "cuda/runtime/call.h"
#include "cuda/runtime/device_limits.h"
#include "cuda/runtime/device_scope.h"
#include "cuda/runtime/extent.h"
#include "cuda/runtime/shared_memory.h"

/* Four numbers loaded at once: position and charge, field and potential. */
template <class R>
struct alignas(4 * sizeof(R)) Vec4
{
    R x, y, z, w;
};

template <class R>
struct alignas(2 * sizeof(R)) Vec2
{
    R x, y;
};

/* Per box. */
struct Geometry
{
    double origin[3], to_cells[9], cell[9];
    int    n[3], inner[3];
    int    periodic, rectangular;
    int    num_cells, num_near;
    double far_away; /* a particle this far from its cell's centre has no expansion, unit u */
};

/* What a step on the fft path needs of the box, in memory of the device: written behind the steps before, which keep
 * theirs. A graph of a step so has the box of when it is launched. */
struct BoxValues
{
    double origin[3], to_cells[9], cell[9]; /* as Geometry */
    double inverse_u;                       /* in the caller's unit */
    double surface;                         /* 4 pi / 3 over the volume of the box, caller's unit */
};

/* Voronoi vectors of cells or of the box (fmm_reduce). */
struct VoronoiVectors
{
    double vectors[FMM_VORONOI][3];
    int    coordinates[FMM_VORONOI][3];
};

/* A run of at most 32 particles of one cell, the targets of one warp of P2P: first particle, number, place of the cell
 * as x | y << 16 and z. */
typedef int4 Tile;

enum
{
    c_tileSize  = 32,
    c_none      = 0x7f7f7f7f, /* bytes alike, for memset; above every index of a particle */
    c_numSums   = 24,         /* doubles in a row of partial sums, at most */
    c_sumBlocks = 528         /* blocks of kernels that sum over particles: four for each multiprocessor of an H200 */
};

/* A source that some targets of a tile leave out: its place in the list of near sources, and a bit for each target. */
struct Special
{
    int      place;
    unsigned mask;
};

/* A pair left out whose cells are far from each other, once for each of its particles. */
struct FarPair
{
    int source;    /* sorted index */
    int offset[3]; /* cell of the target minus cell of the source's image, in cells */
};

/* What permute needs of a particle: where it stood in its cell at assign, in cells, and which cell that is. */
struct alignas(16) Anchor
{
    float  reference[3];
    short  place[3];
    double charge;
};

/* What a step leaves on the device beside the arrays. */
struct StepResults
{
    /* dipole 3, quadrupole xx yy zz xy xz yz, sum q x 3; only the dipole and the trace, in the place of xx, where the
     * others are not wanted */
    double moments[c_numSums];
    double energy[2];
    double virial[9];
    /* set by what is found wrong, otherwise c_none, as permute leaves them */
    int bad_positions; /* 1 */
    int not_finite;    /* lowest particle without a finite field */
    int unplaced;      /* AssignResults.bad: permute brings it here in every step */
    /* counters of finished blocks, zero between kernels */
    unsigned moments_done, p2m_done, output_done;
};

/* What an assignment finds and counts, for steps and for a host that waits. */
struct AssignResults
{
    int    bad;                /* lowest particle that no cell can hold, or c_none */
    int    num_tiles, num_far; /* tiles of the targets, entries of far_pairs */
    Extent extent;             /* of an open system */
};

/* Particles in cells: the charges, or the targets. Sorted order unless said otherwise; cells are those of the grid of
 * near cells, on an octree of all leaves there might be. */
struct ParticleSet
{
    int          n;
    DeviceBuffer sorted, position /* caller's order */, cell_of, anchor, cell_start, tile_start, tiles, xq;
    int          launched_tiles; /* warps that P2P gets for the tiles */
};

/* The octree of plan->domain.tree on the device. */
struct DeviceTree
{
    fmm_octree_operators* operators; /* NULL: not an octree */
    fmm_rotation_kernels* rotation;  /* NULL: another method; kept when operators are made again */
    size_t                operator_bytes;
    fmm_octree_level      level[FMM_MAX_DEPTH + 1];
    /* by level; index: occupied cells before each place of the level's grid, in the order of slabs */
    DeviceBuffer index[FMM_MAX_DEPTH + 1], parent[FMM_MAX_DEPTH + 1], child[FMM_MAX_DEPTH + 1], near[FMM_MAX_DEPTH + 1],
        multipole[FMM_MAX_DEPTH + 1], local[FMM_MAX_DEPTH + 1];
    DeviceBuffer leaf_cell; /* of each leaf in the grid of near cells */
    DeviceBuffer slabs;
    DeviceBuffer strain; /* 6 doubles: derivative of the far energy by strain of the translations, unit 1/u */
};

/* The cells with expansions, as P2M and L2P see them. */
struct Leaves
{
    int    num, edge; /* edge: leaves along the edge of what the background's moments are about; 1 on the fft path */
    size_t stride;    /* from one coefficient to the next */
    const int* cell;  /* of the grid of near cells; NULL: the same */
};

/* Their expansions, of the plan's precision, and what a virial needs of the octree. */
struct Expansions
{
    Leaves        leaves;
    void *        multipole, *local;
    const double* strain; /* DeviceTree.strain, or NULL */
};

/* What the two paths through the far field do in different ways: rows of paths.cu. */
struct DevicePath
{
    gmxfmm_status (*create)(gmxfmm_plan* plan);    /* arrays and transforms of the grid, or the roots; operators */
    gmxfmm_status (*set_shape)(gmxfmm_plan* plan); /* of new cells */
    gmxfmm_status (*assign)(gmxfmm_plan* plan, cudaStream_t stream); /* after particles were sorted; NULL: nothing */
    /* From multipoles to locals; ready: of spectra and moments, or NULL. */
    gmxfmm_status (*far)(gmxfmm_plan* plan, bool virial, cudaEvent_t ready, cudaStream_t stream);
    Expansions (*expansions)(const gmxfmm_plan* plan);
    size_t lattice_bytes; /* lattice sums take at most this much memory, or a quarter of a step's arrays */
};

struct fmm_device
{
    int            id;
    cudaStream_t   near, far, beside /* the far field */, ahead; /* ahead: for later steps */
    cudaStream_t   sums;                                         /* energy, virial, and what they take */
    cudaStream_t   own;                                          /* the caller's part of a synchronous execute */
    cudaEvent_t    fork, near_done, far_done, beside_done, ahead_done, spectrum_done, output_done, sums_done;
    cudaEvent_t    begin, end; /* of steps that are timed */
    DeviceLimits   limits;
    AllowedKernels allowed;
    bool           has_chains; /* chain.h */

    const DevicePath* path; /* by cells of one level, or by an octree: chosen with the grid */

    /* per set of charges */
    int          has_exclusions;
    DeviceBuffer charge, excl_start, excl_list;
    DeviceBuffer target_x; /* caller's order and type */

    /* per assignment */
    ParticleSet  sources, targets;
    DeviceTree   tree;
    DeviceBuffer keys, values, references, sort_scratch, counts; /* references: in their cells, caller's order */
    DeviceBuffer excl_place, excl_mask, special_start, specials, far_start, far_pairs;
    DeviceBuffer assign_results;

    /* per box */
    DeviceBuffer   box;           /* BoxValues, */
    BoxValues      stored;        /* which are these, unless a graph is launched that stores others: */
    int            box_in_graph;  /* one that was captured with a box that was not stored */
    int            sums_in_graph; /* one that makes lattice sums, of the shape that it was captured with */
    DeviceBuffer   near_vectors, near_lookup;
    int            near_reach, near_extent[3]; /* largest component of a near vector; in each direction */
    int4*          near_on_device;             /* the host's copy of near_vectors; NULL: nothing there yet */
    int            num_near_on_device;
    VoronoiVectors voronoi, box_voronoi;

    /* per grid */
    int          num_coef, num_freq;
    DeviceBuffer field, spectrum, s, z, work_items;
    DeviceBuffer local_spectrum; /* of local expansions, where a virial needs that of multipoles longer */
    int          num_items, num_warps;
    cufftHandle  forward, backward;
    int          has_transforms, own_transforms; /* of cuFFT; of fft.cu */
    DeviceBuffer twiddles;

    /* lattice sums of the present shape */
    fmm_ewald     ewald;
    double        ewald_distance; /* fmm_cells.far_distance that it was chosen for; 0: none */
    DeviceBuffer  lattice_near;   /* near_lookup of the grid's cells, */
    uint64_t      lattice_set;    /* which is that of this plan->far.spectra_near, */
    int           lattice_ready;  /* and of this grid */
    DeviceBuffer  lattice_table;
    fmm_line_node held_s[FMM_LINE_NODES], held_z[FMM_LINE_NODES]; /* nodes of plan->far.line whose spectra are in these: */
    DeviceBuffer  node_s[FMM_LINE_NODES], node_z[FMM_LINE_NODES];
    int           s_valid, z_valid;
    int           z_used, z_expected; /* by a step in this box; in this box since in the last */
    int           z_ever;             /* by any step, be it in a graph */
    int           s_ahead, z_ahead;   /* made before the step, on another stream, which nothing has waited for */

    /* per step */
    DeviceBuffer near_out, far_out, partial, p2m_partial, near_virial, far_virial, results, x_copy, out_copy;
    void*        host_copy; /* of an array of the device */
    size_t       host_copy_bytes;
};

/* Of call.h. */
gmxfmm_status fmm_cuda_failed(gmxfmm_plan* plan, cudaError_t error, const char* call, const char* file, int line);

/* Copies from the host, and waits: cudaMemcpy may return before the last of pageable memory has arrived, and streams of
 * the library do not wait for the default one. Not for steps. */
gmxfmm_status fmm_cuda_upload(gmxfmm_plan* plan, void* to, const void* from, size_t bytes);

/* Makes *buffer hold at least `bytes`; what it held is lost if it grows. Errors: MEMORY. */
gmxfmm_status fmm_device_reserve(gmxfmm_plan* plan, DeviceBuffer* buffer, size_t bytes);

static inline bool is_double(const gmxfmm_plan* plan)
{
    return plan->options.precision == GMXFMM_DOUBLE;
}

static inline size_t real_size(const gmxfmm_plan* plan)
{
    return is_double(plan) ? sizeof(double) : sizeof(float);
}

static inline int blocks_for(int64_t items, int threads)
{
    return static_cast<int>((items + threads - 1) / threads);
}

/* What receives potentials and fields. */
static inline const ParticleSet* targets_of(const fmm_device* d)
{
    return d->targets.n > 0 ? &d->targets : &d->sources;
}

/* What a step is to do; the public structure with its defaults filled in. */
struct StepWanted
{
    int energy, virial;
    int potential; /* of particles, for any of these or by itself */
};

/* execute.cu: whether what is enqueued on the stream becomes part of a graph. */
gmxfmm_status fmm_cuda_is_capturing(gmxfmm_plan* plan, cudaStream_t stream, bool* capturing);

/* The stages, one file each; they enqueue on `stream`. */
gmxfmm_status fmm_cuda_spectra(gmxfmm_plan* plan, bool with_virial, cudaStream_t stream);
/* lattice.cu: spectra by interpolation (plan->far.line.active), S and with_virial Z; *box to *to. */
gmxfmm_status
fmm_cuda_interpolate(gmxfmm_plan* plan, bool with_virial, const BoxValues* box, BoxValues* to, cudaStream_t stream);
gmxfmm_status fmm_cuda_permute(gmxfmm_plan* plan, const void* x, cudaStream_t stream);
gmxfmm_status fmm_cuda_moments(gmxfmm_plan* plan, const void* x, cudaStream_t stream);
gmxfmm_status fmm_cuda_p2p(gmxfmm_plan* plan, const StepWanted& wanted, cudaStream_t stream);
/* The near virial's part of forces through faces of a grid of one level, from the positions alone. */
gmxfmm_status fmm_cuda_near_faces(gmxfmm_plan* plan, cudaStream_t stream);
/* Rows of device->near_virial: of P2P, one for each tile, on an octree; on other grids of the faces, and the sum over
 * particles of position times near force belongs to the virial, too. */
int           fmm_cuda_near_virial_rows(const gmxfmm_plan* plan, int tiles);
gmxfmm_status fmm_cuda_p2m(gmxfmm_plan* plan, bool sums, cudaStream_t stream);
/* Of device->field to or from a spectrum. */
gmxfmm_status fmm_cuda_transform(gmxfmm_plan* plan, bool forward, const DeviceBuffer& spectrum, cudaStream_t stream);
/* From device->spectrum to `to`, which may be the same. */
gmxfmm_status fmm_cuda_product(gmxfmm_plan* plan, const DeviceBuffer& to, cudaStream_t stream);
gmxfmm_status fmm_cuda_m2l_virial(gmxfmm_plan* plan, cudaStream_t stream);
gmxfmm_status fmm_cuda_l2p(gmxfmm_plan* plan, cudaStream_t stream);
/* execute.cu: the far field by cells, by transforms and product. */
gmxfmm_status fmm_cuda_convolve(gmxfmm_plan* plan, bool virial, cudaEvent_t ready, cudaStream_t stream);
/* output.cu: the arrays; energy and virial; the status, of what the arrays have found. */
gmxfmm_status
fmm_cuda_output(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, cudaStream_t stream);
gmxfmm_status fmm_cuda_sums(gmxfmm_plan* plan, const gmxfmm_device_output* output, cudaStream_t stream);
gmxfmm_status fmm_cuda_status(gmxfmm_plan* plan, int* status, cudaStream_t stream);

/* paths.cu: the row for the plan's cells, or for its octree. */
const DevicePath* fmm_cuda_path(const gmxfmm_plan* plan);

/* plan.cu: arrays and transforms of the grid of fmm_convolved(plan). */
gmxfmm_status fmm_cuda_set_transforms(gmxfmm_plan* plan);

/* lattice.cu: what lattice sums need for the present shape. */
gmxfmm_status fmm_cuda_set_lattice(gmxfmm_plan* plan);

/* octree/far.cu: the far field by an octree, between P2M and L2P. */
gmxfmm_status fmm_cuda_far_tree(gmxfmm_plan* plan, bool virial, cudaEvent_t ready, cudaStream_t stream);

/* octree/levels.cu: operators for the present order and lists, and for the present shape; the levels of what was
 * assigned; the leaves. */
gmxfmm_status fmm_cuda_tree_create(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_tree_set_shape(gmxfmm_plan* plan);
/* Kernels of m2l = rotation, unless they are there for this order. */
gmxfmm_status fmm_cuda_rotation_create(gmxfmm_plan* plan, int order);
gmxfmm_status fmm_cuda_tree_assign(gmxfmm_plan* plan, cudaStream_t stream);
void          fmm_cuda_tree_destroy(gmxfmm_plan* plan);
Expansions    fmm_cuda_tree_expansions(const gmxfmm_plan* plan);
/* The plan's status and message from what a call of octree.h returned. */
gmxfmm_status fmm_cuda_octree_status(gmxfmm_plan* plan, gmxfmm_status status);

/* arrays.cu: makes *x, positions of all particles on the host or a device, an address of the plan's device. */
gmxfmm_status fmm_cuda_on_device(gmxfmm_plan* plan, const void** x);

/* assign.cu: exclusive sums of `num` numbers, at most as many as there are cells or particles, and one. */
gmxfmm_status fmm_cuda_scan(gmxfmm_plan* plan, const int* in, int* out, int num, cudaStream_t stream);
gmxfmm_status fmm_cuda_scan(gmxfmm_plan* plan, const uint64_t* in, uint64_t* out, int num, cudaStream_t stream);

/* assign.cu: what the device counted in this assign, waited for. */
gmxfmm_status fmm_cuda_assign_results(gmxfmm_plan* plan, AssignResults* results, cudaStream_t stream);

/* excluded_pairs.cu: pairs left out, a particle and itself among them; targets leave nothing out. */
gmxfmm_status fmm_cuda_excluded_pairs(gmxfmm_plan* plan, cudaStream_t stream);

/* assign.cu: charges of sorted particles anew. */
gmxfmm_status fmm_cuda_sort_charges(gmxfmm_plan* plan);

/* fft.cu: whether the grid has transforms there (own_transforms), and its tables; the transforms. */
gmxfmm_status fmm_cuda_fft_prepare(gmxfmm_plan* plan);
gmxfmm_status
fmm_cuda_own_transform(gmxfmm_plan* plan, bool forward, const DeviceBuffer& spectrum, cudaStream_t stream);

/* fft.cu: sets device->has_chains. */
gmxfmm_status fmm_cuda_find_chains(gmxfmm_plan* plan);

/* p2m.cu: memory that it needs for the present cells. */
gmxfmm_status fmm_cuda_p2m_reserve(gmxfmm_plan* plan);

/* m2l_fft.cu: the table of work items of the product. */
gmxfmm_status fmm_cuda_product_items(gmxfmm_plan* plan);

/* Blocks of fmm_cuda_m2l_virial: rows of device->far_virial. */
int fmm_cuda_virial_blocks(const gmxfmm_plan* plan);

#endif
