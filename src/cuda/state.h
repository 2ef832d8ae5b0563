/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The device part of a plan, and what its kernels share. */
#ifndef FMM_CUDA_STATE_H
#define FMM_CUDA_STATE_H

#include <cuda_runtime.h>
#include <cufft.h>

extern "C"
{
#include "fmm/geometry/cells.h"
#include "fmm/geometry/lattice.h"
#include "fmm/geometry/tree_leaves.h"
#include "fmm/clock.h"
#include "fmm/math/left.h"
#include "fmm/state.h"
#include "fmm/status.h"
}
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

/* A symmetric tensor: xx, yy, zz, xy, xz, yz. */
template <class R>
struct alignas(2 * sizeof(R)) Symmetric
{
    R t[6];
};

/* The grid of near cells and the box that it was made for. */
struct Geometry
{
    double origin[3], to_cells[9], cell[9];
    int    n[3], inner[3];
    int    periodic[3], rectangular;
    int    period[3]; /* as fmm_cells */
    int    num_cells, num_near;
    double far_away; /* a particle this far from its cell's centre has no expansion, unit u */
};

/* Voronoi vectors of cells or of the box (fmm_reduce). */
struct VoronoiVectors
{
    double vectors[FMM_VORONOI][3];
    int    coordinates[FMM_VORONOI][3];
};

/* What an assignment, and a step on the fft path, need of the box, in device memory. It is written in stream order, so
 * that what was enqueued before keeps its box, and a captured graph uses the box at the time of its launch. */
struct BoxValues
{
    double         origin[3], to_cells[9];    /* as Geometry, but for positions in the caller's axes */
    double         cell[9];                   /* as Geometry */
    double         axes[9];                   /* rows: the plan's axes in the caller's (fmm_frame) */
    double         inverse_u;                 /* in the caller's unit */
    double         surface;                   /* 4 pi / 3 over the volume of the box, caller's unit */
    double         given[9], in_basis[9];     /* as fmm_domain, but in the caller's axes */
    double         reach[3];                  /* fmm_few_images, likewise */
    VoronoiVectors cell_voronoi, box_voronoi; /* in units of u */
};

/* A run of at most 32 particles of one cell, the targets of one warp of P2P: first particle, number, place of the cell
 * as x | y << 16 and z, which of leaves of several levels is their number. */
typedef int4 Tile;

enum
{
    c_tileSize  = 32,
    c_none      = 0x7f7f7f7f, /* bytes alike, for memset; above every index of a particle */
    c_numSums   = 28,         /* doubles in a row of partial sums, at most */
    c_sumBlocks = 528         /* blocks of kernels that sum over particles: four for each multiprocessor of an H200 */
};

/* A source excluded by some targets of a tile: its place in the tile's list of near sources, and a bit for each of
 * these targets. */
struct Special
{
    int      place;
    unsigned mask;
};

/* An excluded pair whose cells are far from each other, listed once for each of its particles. */
struct FarPair
{
    int source;    /* sorted index */
    int offset[3]; /* cell of the target minus cell of the source's image, in cells */
};

/* What permute needs of a particle: the cell that it was assigned to, its position in it then, in cells, and its
 * charge. */
struct alignas(16) Anchor
{
    float  reference[3];
    short  place[3];
    double charge;
};

enum
{
    c_leftSums = 32 /* of blocks: in one place they would wait for each other */
};

/* Particles that have left their cells (fmm/math/left.h): sums of fmm_left over blocks of permute, which write_output
 * takes and sets to zero; farthest: its largest coordinate in its cell, the bits of a float, before 2^32 - 1 less its
 * number. Stages may be enqueued alone: several permutes before an output leave the ratio of the sums as it is. */
struct LeftSums
{
    double             now, then, charge2;
    unsigned long long farthest;
};

/* What a step leaves on the device in addition to the arrays. */
struct StepResults
{
    /* dipole (3), quadrupole xx yy zz xy xz yz, sum of q x (3); where P2M computes them, only the dipole and, in place
     * of xx, the trace. With dipoles the third has these, too, and their sum (3) follows */
    double moments[c_numSums];
    double energy[2];
    double virial[9];
    /* errors found by the step's kernels; c_none, which permute sets, if there are none */
    int bad_positions; /* 1 */
    int not_finite;    /* lowest particle without a finite field */
    int unplaced;      /* AssignResults.bad and ChargeResults.bad: permute brings them here in every step */
    int bad_charge;
    /* counters of finished blocks, zero between kernels */
    unsigned moments_done, p2m_done, output_done, gradient_done;
    LeftSums left_sums[c_leftSums]; /* zero between steps */
    fmm_left left;                  /* what they were */
    int      farthest;              /* the worst particle */
    int      has_left;              /* 1: errors may be worse than promised, and that is an error */
};

/* Results of the kernel that sums the charges, on the device: captured graphs read them there at each launch. */
struct ChargeResults
{
    double   total[FMM_CHARGE_SETS]; /* sum q */
    int      bad;                    /* lowest particle whose charge is not finite, -k of a stray index, or c_none */
    int      stray;                  /* while they are set: k if the index of charge k - 1 is not of a particle, or 0 */
    unsigned done;                   /* a counter of finished blocks, zero between kernels */
    double   partial[c_sumBlocks];
    int      partial_bad[c_sumBlocks];
};

/* Counts and errors of an assignment, read by steps and by a host that waits for the assignment. */
struct AssignResults
{
    int    bad;                /* lowest particle that no cell can hold, or c_none */
    int    num_tiles, num_far; /* tiles of the targets, entries of far_pairs */
    Extent extent;             /* of an open system */
};

/* Particles sorted into cells: the sources, or targets of their own. Arrays are in sorted order unless said otherwise.
 * Cells are those of the grid of near cells; on an octree, the grid of all leaves, empty ones included, or a row of the
 * leaves of several levels. */
struct ParticleSet
{
    int          n;
    DeviceBuffer sorted, position /* caller's order */, cell_of, anchor, cell_start, tile_start, tiles, xq;
    DeviceBuffer given;          /* where fmm_has_given: as xq, the caller's numbers times fmm_given_scale */
    DeviceBuffer scaled;         /* where fmm_is_adaptive: as xq, in the unit of the leaf */
    DeviceBuffer mu, scaled_mu;  /* dipoles as Vec4, in the plan's axes and these units of length */
    int          launched_tiles; /* warps that P2P gets for the tiles */
};

/* Leaves of several levels (tree/leaves.cu). The cells of all levels are in one array, level[0] of DeviceTree. */
struct DeviceLeaves
{
    int          num;
    size_t       stride;                                       /* of `expansions`, from one coefficient to the next */
    DeviceBuffer key[2], item, unsorted, scratch;              /* keys of particles and targets (fmm_sorted_keys) */
    DeviceBuffer leaf_level, before;                           /* of the items (fmm_found_items) */
    DeviceBuffer found, order[2], number[2], index_of, totals; /* while cells are found */
    DeviceBuffer range /* fmm_key_range */, leaf_of /* the leaf that it is, or -1 */, scale; /* of each cell */
    DeviceBuffer at /* its cell */, held /* fmm_key_range */, place /* fmm_leaf_place */;    /* of each leaf */
    DeviceBuffer run_start, runs; /* near to leaf c: runs[run_start[c]] .. runs[run_start[c + 1] - 1], first particle
                                   * and number; its own first */
    DeviceBuffer expansions;      /* multipoles of the leaves, and later their locals, in the unit of each */
};

/* The octree of plan->domain.tree on the device. */
struct DeviceTree
{
    int                   last;      /* deepest level with cells: the last one, unless leaves are of several levels */
    fmm_octree_operators* operators; /* NULL: not an octree */
    fmm_rotation_kernels* rotation;  /* NULL: another method; kept when operators are made again */
    size_t                operator_bytes;
    fmm_octree_level      level[FMM_MAX_DEPTH + 1]; /* where fmm_is_adaptive, [0] has the cells of all */
    fmm_octree_parents    parents;                  /* where fmm_is_adaptive */
    /* by level, as above; index: occupied cells before each place of the level's grid, in the order of slabs, if leaves
     * are of one level */
    DeviceBuffer index[FMM_MAX_DEPTH + 1], parent[FMM_MAX_DEPTH + 1], child[FMM_MAX_DEPTH + 1], near[FMM_MAX_DEPTH + 1],
        multipole[FMM_MAX_DEPTH + 1], local[FMM_MAX_DEPTH + 1];
    DeviceBuffer leaf_cell; /* of each leaf in the grid of near cells */
    DeviceLeaves leaves;    /* where fmm_is_adaptive */
    DeviceBuffer slabs;
    DeviceBuffer strain; /* 6 doubles: derivative of the far energy by strain of the translations, unit 1/u */
};

/* The cells with expansions, as P2M and L2P see them. */
struct Leaves
{
    /* edge: leaves along the edge of a root, about whose centre the background's moments are taken; 1 on the fft path
     */
    int        num, edge;
    size_t     stride; /* from one coefficient to the next */
    const int* cell;   /* each leaf's place in the grid of near cells; NULL: the leaves are those cells */
};

/* Expansions of the leaves, in the plan's precision, and what a virial needs of the octree. */
struct Expansions
{
    Leaves        leaves;
    void *        multipole, *local;
    const double* strain; /* DeviceTree.strain, or NULL */
};

/* Layers of cells along the first direction, and columns of frequencies: all first frequencies with the same other two,
 * whose number is f_y nz + f_z. */
struct GridRange
{
    int first_layer, end_layer, first_column, end_column;
};

/* The functions that differ between a far field by a convolution over cells and one by an octree. The two tables are in
 * convolution/far.cu and tree/far.cu. */
struct DevicePath
{
    /* For a new grid: arrays and transforms of the grid or of the roots; operators. */
    gmxfmm_status (*create)(gmxfmm_plan* plan);
    gmxfmm_status (*set_shape)(gmxfmm_plan* plan);                   /* for cells of a new shape */
    gmxfmm_status (*assign)(gmxfmm_plan* plan, cudaStream_t stream); /* after particles were sorted; may be NULL */
    /* From multipoles to locals, by each device of its range on its stream for the far field. ready: event after which
     * spectra can be used, or NULL. */
    gmxfmm_status (*far)(gmxfmm_plan* plan, bool virial, cudaEvent_t ready);
    Expansions (*expansions)(const gmxfmm_plan* plan);
    /* Whether devices can share it, as it was assigned; room and tables for a range on another device; their release,
     * while nothing that uses them is enqueued. */
    bool (*can_share)(const gmxfmm_plan* plan);
    gmxfmm_status (*reserve)(gmxfmm_plan* plan, fmm_device* device);
    void (*release)(gmxfmm_plan* plan, fmm_device* device);
    size_t lattice_bytes; /* lattice sums take at most this much scratch memory, or a quarter of a step's arrays */
};

/* The box on the device (particles/box.cu). */
struct DeviceDomain
{
    DeviceBuffer box;             /* BoxValues */
    DeviceBuffer no_box;          /* the same, all zero: places have no shifts between cells */
    DeviceBuffer next_box;        /* that an assignment in parts began in */
    BoxValues    stored;          /* what `box` holds; all zero where graphs may have written another one */
    int64_t      box_graphs = -1; /* plan->graph_version of the last graph captured that writes its box; -1: none */
};

enum
{
    c_nextParticles = 8, /* arrays of an assignment that steps read (particles/arrays.cu), and of excluded pairs */
    c_nextPairs     = 4
};

/* Particles in the order of their cells, and what makes it (particles). */
struct DeviceParticles
{
    ParticleSet  sources, targets;
    DeviceBuffer target_x;                                   /* caller's order and type */
    int          room_of_sources = -1, room_of_targets = -1; /* particles that arrays are large enough for; -1: none */
    DeviceBuffer keys, values, sort_scratch, counts;         /* of sources and targets one after the other */
    DeviceBuffer references;            /* positions of particles in their cells at assign, caller's order */
    DeviceBuffer assign_results;        /* AssignResults */
    DeviceBuffer next[c_nextParticles]; /* as those that steps read, of an assignment that they do not use yet */
    int*         beyond;    /* on the host: whether an enqueued assignment found particles beyond the cells of a slab */
    DeviceBuffer x_copy;    /* of a caller's array on the host or another device */
    void*        host_copy; /* on the host: copy of a caller's array on a device */
    size_t       host_copy_bytes;
};

/* The near set, the pairs among near ones that are excluded, and the near virial (near). */
struct DeviceNearField
{
    DeviceBuffer vectors, lookup;
    int          reach, extent[3]; /* largest component of a near vector; in each direction */
    int4*        on_device;        /* on the host: what was last copied to `vectors`; NULL: nothing yet */
    int          num_on_device;
    DeviceBuffer excl_start, excl_list; /* of the plan */
    DeviceBuffer excl_place, excl_mask; /* while pairs are found */
    DeviceBuffer special_start, specials, far_start, far_pairs;
    DeviceBuffer next[c_nextPairs]; /* as DeviceParticles.next */
    DeviceBuffer virial;
};

/* Charges (particles/charges.cu). */
struct DeviceCharges
{
    DeviceBuffer value;   /* caller's order */
    DeviceBuffer dipoles; /* 3 n: caller's order, axes and unit, double; where fmm_has_dipoles */
    DeviceBuffer kept;    /* n: charges whose derivative along a way is in their place (cuda/along.cu) */
    DeviceBuffer results; /* ChargeResults */
};

/* What charges depend on (charge_gradient.cu): plan->derivatives, the lists of parameters cut into pieces. */
struct DeviceDerivatives
{
    int          num_pieces;
    DeviceBuffer first_piece /* of each parameter */, piece_start, entry, dq, slot;
    DeviceBuffer phi, partial; /* of a step: potentials kept, sums of pieces */
    DeviceBuffer gradient;     /* of a synchronous execute */
};

/* The convolution over cells of one level or the roots of an octree: its arrays, transforms and lattice sums
 * (convolution). Versions are those of the plan's far field. */
struct DeviceConvolution
{
    int          num_freq;
    DeviceBuffer field, spectrum, s, z, work_items;
    DeviceBuffer local_spectrum;       /* of local expansions, where that of multipoles in `spectrum` is still needed */
    int          num_parts, num_warps; /* blocks for the same frequencies, and warps of each */
    cufftHandle  forward, backward;
    int          has_transforms, own_transforms; /* whether cuFFT, or fft.cu, has those of the grid */
    int          whole_grids;                    /* whether fft.cu transforms all dimensions in one kernel */
    DeviceBuffer twiddles;
    DeviceBuffer virial; /* rows of m2l_fft_virial.cu */

    fmm_ewald     ewald;
    double        ewald_distance;  /* fmm_cells.far_distance that `ewald` was chosen for; 0: none */
    DeviceBuffer  lattice_near;    /* lookup of the near set, of the grid's cells */
    uint64_t      lattice_set;     /* the near set that lattice_near is of (fmm_far_shape) */
    int64_t       lattice_version; /* and the version of the arrays (fmm_far_field.arrays) */
    DeviceBuffer  lattice_table;
    fmm_line_node held_s[FMM_LINE_NODES],
        held_z[FMM_LINE_NODES]; /* nodes of plan->far.line whose spectra are in node_s and node_z */
    DeviceBuffer node_s[FMM_LINE_NODES], node_z[FMM_LINE_NODES];
    int64_t      s_version, z_version; /* of the far field that s and z were computed for */
};

/* Moments for the background (expansions/p2m.cu). */
struct DeviceMoments
{
    DeviceBuffer partial;    /* rows of P2M's blocks */
    DeviceBuffer background; /* of a device but the first: what L2P needs of it */
};

/* The far field: which way (create.cu), and what each keeps. */
struct DeviceFarField
{
    const DevicePath* path; /* convolution over cells of one level, or octree: set with the grid */
    int               num_coef;
    DeviceMoments     moments;
    DeviceConvolution cells;
    DeviceTree        tree;
};

/* Results of a step (particles/arrays.cu). */
struct DeviceOutput
{
    DeviceBuffer near, far;                   /* potentials and fields of the targets, sorted */
    DeviceBuffer near_gradient, far_gradient; /* Symmetric, of these fields; where fmm_has_dipoles */
    DeviceBuffer partial;                     /* rows of sums over particles */
    DeviceBuffer results;                     /* StepResults */
    DeviceBuffer copy;                        /* of a synchronous execute */
};

/* Streams and events of a step, and what of the lattice sums it has waited for (schedule.cu). Versions are those of the
 * plan's far field. */
struct DeviceSchedule
{
    cudaStream_t near, far;
    cudaStream_t side;     /* lattice sums and moments, while P2M and transforms are on `far` */
    cudaStream_t prefetch; /* lattice sums for later steps */
    cudaStream_t sums;     /* energy and virial, and kernels that only they need */
    cudaStream_t own;      /* the caller's part of a synchronous execute */
    cudaEvent_t  fork, near_done, far_done, side_done, prefetch_done, spectrum_done, output_done, sums_done;
    cudaEvent_t  p2m_done;           /* with others: its multipoles, and rows of their moments */
    cudaEvent_t  sent;               /* with others: its planes are transformed, and where their columns are needed */
    cudaEvent_t  returned;           /* locals of its columns are where their planes are needed */
    cudaEvent_t  gathered;           /* the first device has the spectrum of its columns, for a virial */
    cudaEvent_t  cells_found;        /* by the last enqueued assignment of a slab */
    cudaEvent_t  begin, end;         /* timing events around timed steps */
    int64_t      s_joined, z_joined; /* s and z as these versions steps have waited for, or computed themselves; they
                                      * wait for others by prefetch_done */
    int64_t virial_version;          /* at the last step enqueued or captured with a virial; 0: none */
    int64_t sums_graphs = -1;        /* plan->graph_version of the last graph captured that computes its lattice sums */
};

/* What a GPU computes of a step (devices): tiles of P2P; layers of cells and columns of frequencies of a convolution;
 * leaves of an octree. */
struct DeviceRange
{
    int          begin_share, end_share;   /* tiles from this to that part of c_allTiles */
    int          warps;                    /* that P2P is launched with; 0: it has no tiles */
    DeviceBuffer tiles;                    /* with others: TileRange */
    GridRange    grid;                     /* of cells of one level, or of the roots of an octree */
    int          first_layer, end_layer;   /* with others: whose particles it needs for these; the first sends them */
    int          first_octant, end_octant; /* leaves that are these children of their parents; equal ends: none */
};

/* Shares of near and far field; the sum of each is 1. */
struct DeviceShares
{
    double near[GMXFMM_MAX_DEVICES], far[GMXFMM_MAX_DEVICES];
};

/* What the GPUs of a plan have in common (devices). */
struct DeviceGroup
{
    int          num;
    cudaEvent_t  fork;
    DeviceShares share;
    bool         given, far_given; /* they were asked for */
    bool         connected;    /* each device reaches the memory of all others, so that they can share the far field */
    bool         shares_far;   /* they share it: that of cells, or M2L of an octree's leaves */
    int64_t      far_arrays;   /* version of the far field's arrays that they have room and tables for; 0: none */
    int64_t      no_room;      /* version for which a device has none */
    bool         timed;        /* steps record `begin` and `end` of all devices */
    bool         pairs_beside; /* steps are only timed: all of the near field stands for pair kernels of others */
    char         note[640];    /* devices that are not used, and why the far field is not shared */
    /* what the shares were measured for */
    int measured_n, measured_targets, measured_order, measured_near, measured_tiles;
};

/* A GPU of a plan: plan->device[k], of which the first has all particles, lattice sums and output, and the others
 * copies of what they compute from. Each object is written in the file or folder that it names, and read by all
 * (tests/repository/includes.txt). */
struct fmm_device
{
    int               id;
    DeviceLimits      limits;
    AllowedKernels    allowed;
    bool              has_chains; /* chain.h */
    DeviceSchedule    schedule;
    DeviceDomain      domain;
    DeviceParticles   particles;
    DeviceNearField   near;
    DeviceCharges     charges;
    DeviceDerivatives derivatives;
    DeviceFarField    far;
    DeviceOutput      output;
    DeviceRange       range;
    DeviceGroup*      group; /* of the first device */
};

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
    return d->particles.targets.n > 0 ? &d->particles.targets : &d->particles.sources;
}

/* What a step is to do; the public structure with its defaults filled in. */
struct StepWanted
{
    int energy, virial;
    int potential; /* of particles: for output, or for energy and virial */
    int gradient;  /* of the field, with dipoles: for output, or forces on them */
};

/* Whether the spectra s, or z below, belong to the present far field. */
static inline bool has_s(const gmxfmm_plan* plan)
{
    return plan->device->far.cells.s_version == plan->far.version;
}

static inline bool has_z(const gmxfmm_plan* plan)
{
    return plan->device->far.cells.z_version == plan->far.version;
}

/* Whether an assignment can be enqueued on a stream: in a periodic system with cells of one level, which can stay as
 * they are, and without targets of their own. */
static inline bool enqueues_assign(const gmxfmm_plan* plan)
{
    return fmm_has_fixed_cells(plan) && plan->particles.num_targets == 0;
}

static inline size_t array_word(const gmxfmm_plan* plan)
{
    return plan->options.array_type == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float);
}

#endif
