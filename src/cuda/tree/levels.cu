/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The levels of the octree on the device (tree.h), made at assign. The places of a level's grid are numbered in the
 * order of its cells: by child slab, then row by row. A prefix sum over the occupied places gives each cell its index.
 * This array of indices by place is all that is needed to find parents, children and neighbours; it takes four bytes
 * for each place, occupied or not. All roots exist: their expansions are the arrays of the transforms.
 */
#include <cstring>

#include "cuda/tree/levels.h"

#include "cuda/tree/leaves.h"
#include "cuda/expansions/expansions.h"
#include "cuda/particles/particles.h"
#include "cuda/runtime/recording.h"

enum
{
    c_threads = 128
};

/* The grid of a level. Roots have the places of their convolution, with padding above n[2] in a slab; padding are cells
 * without particles, as other roots may be. */
struct LevelGrid
{
    int l, n[3], num; /* level, places along each axis, and in all but the padding */
    int periodic[3];
    int padded_roots; /* roots along the last axis with the padding */
};

static LevelGrid level_grid(const gmxfmm_plan* plan, int l)
{
    LevelGrid g = {l, {0, 0, 0}, 1, {0, 0, 0}, plan->domain.tree->roots[2]};
    for (int d = 0; d < 3; d++)
    {
        g.n[d]        = plan->domain.tree->roots[d] << l;
        g.periodic[d] = plan->domain.periodic[d];
        g.num *= g.n[d];
    }
    if (fmm_is_periodic(plan))
    {
        g.padded_roots = plan->domain.root_cells.n[2];
    }
    return g;
}

/* Numbers that places have. */
static __host__ __device__ inline int num_numbers(const LevelGrid& g)
{
    return g.l == 0 ? g.n[0] * g.n[1] * g.padded_roots : g.num;
}

/* Number of a place: roots row by row, other levels by child index, then row by row of the parents. */
static __device__ inline int number_of(const LevelGrid& g, const int* at)
{
    if (g.l == 0)
    {
        return (at[0] * g.n[1] + at[1]) * g.padded_roots + at[2];
    }
    const int octant = (at[0] & 1) * 4 + (at[1] & 1) * 2 + (at[2] & 1);
    return octant * (g.num / 8) + ((at[0] >> 1) * (g.n[1] / 2) + (at[1] >> 1)) * (g.n[2] / 2) + (at[2] >> 1);
}

static __device__ inline void place_of(const LevelGrid& g, int number, int* at)
{
    const int size = g.l > 0 ? g.num / 8 : num_numbers(g), half = g.l > 0 ? 1 : 0;
    const int octant = number / size, row = number % size, n1 = g.n[1] >> half,
              n2 = g.l > 0 ? g.n[2] >> half : g.padded_roots;
    at[0]        = (row / (n1 * n2) << half) + (octant >> 2);
    at[1]        = (row / n2 % n1 << half) + (octant >> 1 & 1);
    at[2]        = (row % n2 << half) + (octant & 1);
}

/* Index of the cell at the place with this number, or num, the empty cell. */
static __device__ inline int cell_with(const int* index, int number, int num)
{
    return index[number + 1] > index[number] ? index[number] : num;
}

/* Marks the leaves that hold sources or targets or, if there are no particles, the first leaf, so that no launch is
 * empty. The array has one more element, for the prefix sum. */
__global__ void
mark_leaves(LevelGrid g, Geometry near, const int* sources, const int* targets, bool no_particles, int* mark)
{
    const int number = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (number > g.num)
    {
        return;
    }
    int at[3], occupied = no_particles && number == 0;
    if (number < g.num && !no_particles)
    {
        place_of(g, number, at);
        const int cell = cell_at(near, at[0], at[1], at[2]);
        occupied       = sources[cell + 1] > sources[cell] || (targets != NULL && targets[cell + 1] > targets[cell]);
    }
    mark[number] = occupied;
}

/* Marks the parents of cells, or all roots. */
__global__ void mark_parents(LevelGrid upper, const int* lower_index, int* mark)
{
    const int number = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), num = num_numbers(upper);
    if (number > num)
    {
        return;
    }
    int at[3], occupied = upper.l == 0;
    if (number < num && !occupied)
    {
        place_of(upper, number, at);
        const int row = (at[0] * upper.n[1] + at[1]) * upper.n[2] + at[2];
        for (int octant = 0; octant < 8; octant++)
        {
            const int child = octant * upper.num + row;
            occupied |= lower_index[child + 1] > lower_index[child];
        }
    }
    mark[number] = occupied && number < num;
}

/* Writes the first cell of each slab and, after them, the number of cells. */
__global__ void find_slabs(LevelGrid g, const int* index, int* slab)
{
    const int c = static_cast<int>(threadIdx.x);
    if (c <= 8)
    {
        slab[c] = index[g.l == 0 ? (c > 0 ? num_numbers(g) : 0) : c * (g.num / 8)];
    }
}

struct LevelArrays
{
    LevelGrid   here;
    int         num, num_near;
    const int * index, *upper, *lower; /* of this level, the one above and the one below; NULL: no such level */
    int         upper_num, lower_num;  /* cells there */
    const int4* vectors;
    int *       parent, *child, *near;
};

static __device__ inline int near_cell_of(const LevelArrays& a, const int* at, int4 k)
{
    const int v[3] = {k.x, k.y, k.z};
    int       to[3];
    for (int d = 0; d < 3; d++)
    {
        to[d] = at[d] + v[d];
        if (a.here.periodic[d])
        {
            to[d] = wrapped(to[d], a.here.n[d]);
        }
        else if (to[d] < 0 || to[d] >= a.here.n[d])
        {
            return a.num;
        }
    }
    return cell_with(a.index, number_of(a.here, to), a.num);
}

static __device__ inline LevelGrid neighbour_grid(const LevelGrid& here, int up)
{
    LevelGrid g = here;
    g.l += up;
    g.num = 1;
    for (int d = 0; d < 3; d++)
    {
        g.n[d] = up > 0 ? 2 * here.n[d] : here.n[d] / 2;
        g.num *= g.n[d];
    }
    return g;
}

/* Writes parents, children and neighbours of the cells of a level; one more thread writes those of the empty cell. */
__global__ void link(LevelArrays a)
{
    const int number = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), all = num_numbers(a.here);
    const int cell = number < all ? cell_with(a.index, number, a.num) : a.num;
    if (number > all || (number < all && cell == a.num))
    {
        return;
    }
    bool empty = cell == a.num;
    int  at[3] = {0, 0, 0};
    place_of(a.here, empty ? 0 : number, at);
    empty = empty || at[2] >= a.here.n[2]; /* padding of roots, which has neither children nor neighbours */
    if (a.upper != NULL && !empty)
    {
        const int up[3] = {at[0] >> 1, at[1] >> 1, at[2] >> 1};
        a.parent[cell]  = cell_with(a.upper, number_of(neighbour_grid(a.here, -1), up), a.upper_num);
    }
    if (a.lower == NULL)
    {
        return;
    }
    const int row = (at[0] * a.here.n[1] + at[1]) * a.here.n[2] + at[2];
    for (int octant = 0; octant < 8; octant++)
    {
        a.child[8 * static_cast<size_t>(cell) + octant] =
            empty ? a.lower_num : cell_with(a.lower, octant * a.here.num + row, a.lower_num);
    }
    for (int o = 0; o < a.num_near; o++)
    {
        a.near[static_cast<size_t>(cell) * a.num_near + o] = empty ? a.num : near_cell_of(a, at, a.vectors[o]);
    }
}

__global__ void find_leaf_cells(LevelGrid g, Geometry near, const int* index, int* cell)
{
    const int number = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (number < g.num && index[number + 1] > index[number])
    {
        int at[3];
        place_of(g, number, at);
        cell[index[number]] = cell_at(near, at[0], at[1], at[2]);
    }
}

gmxfmm_status fmm_cuda_tree_status(gmxfmm_plan* plan, const DeviceTree* tree, gmxfmm_status status)
{
    const fmm_octree_operators* ops = tree->operators;
    return status == GMXFMM_OK
               ? status
               : fmm_fail(plan, status, "%s", ops != NULL ? fmm_octree_message(ops) : "out of memory for an octree");
}

gmxfmm_status fmm_cuda_octree_status(gmxfmm_plan* plan, gmxfmm_status status)
{
    return fmm_cuda_tree_status(plan, &plan->device->far.tree, status);
}

void fmm_cuda_count_operators(gmxfmm_plan* plan, DeviceTree* tree)
{
    const size_t bytes = tree->operators != NULL ? fmm_octree_bytes(tree->operators) : 0;
    plan->bytes += bytes - tree->operator_bytes;
    tree->operator_bytes = bytes;
}

gmxfmm_status fmm_cuda_rotation_create(gmxfmm_plan* plan, fmm_device* device, int order)
{
    DeviceTree* tree = &device->far.tree;
    char        message[sizeof(plan->message)];
    if (fmm_rotation_is_for(tree->rotation, order, is_double(plan)))
    {
        return GMXFMM_OK;
    }
    fmm_rotation_destroy(tree->rotation);
    const gmxfmm_status status =
        fmm_rotation_create(&tree->rotation, order, is_double(plan), plan->options.cache_dir, message, sizeof(message));
    return status == GMXFMM_OK ? GMXFMM_OK : fmm_fail(plan, status, "%s", message);
}

gmxfmm_status fmm_cuda_make_operators(gmxfmm_plan* plan, fmm_device* device)
{
    DeviceTree* tree = &device->far.tree;
    fmm_octree_destroy(tree->operators);
    tree->operators = NULL;
    const gmxfmm_status status =
        fmm_octree_create(&tree->operators, plan->domain.tree, &plan->domain.cells, plan->far.order, is_double(plan));
    fmm_cuda_count_operators(plan, tree);
    FMM_TRY(fmm_cuda_tree_status(plan, tree, status));
    if (plan->far.m2l == GMXFMM_M2L_ROTATION)
    {
        FMM_TRY(fmm_cuda_rotation_create(plan, device, plan->far.order));
        fmm_octree_set_rotation(tree->operators, tree->rotation);
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_tree_create(gmxfmm_plan* plan)
{
    DeviceTree* tree = &plan->device->far.tree;
    FMM_TRY(fmm_cuda_make_operators(plan, plan->device));
    FMM_TRY(fmm_cuda_octree_status(plan, fmm_octree_reserve(tree->operators, plan->far.m2l, 0)));
    return fmm_device_reserve(plan, &tree->strain, 6 * sizeof(double));
}

void fmm_cuda_tree_destroy(fmm_device* device)
{
    DeviceTree* tree = &device->far.tree;
    fmm_octree_destroy(tree->operators);
    fmm_rotation_destroy(tree->rotation);
    tree->operators = NULL;
    tree->rotation  = NULL;
}

/* On all devices that have operators of these arrays, which the first one makes before others. */
gmxfmm_status fmm_cuda_tree_set_shape(gmxfmm_plan* plan)
{
    const int num = plan->device->group->far_arrays == plan->far.arrays ? num_devices(plan->device) : 1;
    for (int k = 0; k < num; k++)
    {
        const fmm_device* d    = &plan->device[k];
        const DeviceTree* tree = &d->far.tree;
        DeviceScope       scope(d->id);
        FMM_CUDA(plan, fmm_cuda_wait_for_device()); /* a step may still be using the tables */
        FMM_TRY(fmm_cuda_tree_status(plan, tree,
                                     fmm_octree_set_shape(tree->operators, &plan->domain.cells, d->schedule.own)));
        FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.own));
    }
    return GMXFMM_OK;
}

Expansions fmm_cuda_tree_expansions(const gmxfmm_plan* plan)
{
    const int         depth = plan->domain.tree->depth;
    const DeviceTree* tree  = &plan->device->far.tree;
    Expansions        far;
    if (fmm_is_adaptive(plan))
    {
        return fmm_cuda_leaves_expansions(plan);
    }
    const fmm_octree_level* level = &tree->level[depth];
    far.leaves.num                = level->num;
    far.leaves.edge               = 1 << depth;
    far.leaves.stride             = level->stride;
    far.leaves.cell               = tree->leaf_cell.as<int>();
    far.multipole                 = level->multipole;
    far.local                     = level->local;
    far.strain                    = tree->strain.as<double>();
    return far;
}

/* Makes the indices of all levels, leaves first, and copies their slabs to the host. */
static gmxfmm_status number_cells(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device* d    = plan->device;
    DeviceTree* tree = &d->far.tree;
    int         slab[FMM_MAX_DEPTH + 1][9];
    FMM_TRY(fmm_device_reserve(plan, &tree->slabs, sizeof(slab)));
    for (int l = plan->domain.tree->depth; l >= 0; l--)
    {
        const LevelGrid g      = level_grid(plan, l);
        const int       num    = num_numbers(g);
        const size_t    bytes  = (static_cast<size_t>(num) + 1) * sizeof(int);
        const int       blocks = blocks_for(static_cast<int64_t>(num) + 1, c_threads);
        FMM_TRY(fmm_device_reserve(plan, &tree->index[l], bytes));
        FMM_TRY(fmm_cuda_reserve_counts(plan, static_cast<size_t>(num) + 1));
        if (l == plan->domain.tree->depth)
        {
            const bool no_particles = d->particles.sources.n + d->particles.targets.n == 0;
            const int* targets      = d->particles.targets.n > 0 ? d->particles.targets.cell_start.as<int>() : NULL;
            mark_leaves<<<blocks, c_threads, 0, stream>>>(g, make_geometry(plan),
                                                          d->particles.sources.cell_start.as<int>(), targets,
                                                          no_particles, d->particles.counts.as<int>());
        }
        else
        {
            mark_parents<<<blocks, c_threads, 0, stream>>>(g, tree->index[l + 1].as<int>(),
                                                           d->particles.counts.as<int>());
        }
        FMM_CUDA(plan, cudaGetLastError());
        FMM_TRY(fmm_cuda_scan(plan, d->particles.counts.as<int>(), tree->index[l].as<int>(), num + 1, stream));
        find_slabs<<<1, 32, 0, stream>>>(g, tree->index[l].as<int>(), tree->slabs.as<int>() + 9 * l);
        FMM_CUDA(plan, cudaGetLastError());
    }
    FMM_CUDA(plan, cudaMemcpyAsync(slab, tree->slabs.memory, sizeof(slab), cudaMemcpyDeviceToHost, stream));
    FMM_CUDA(plan, cudaStreamSynchronize(stream));
    for (int l = 0; l <= plan->domain.tree->depth; l++)
    {
        std::memcpy(tree->level[l].slab, slab[l], sizeof(slab[l]));
        tree->level[l].num = slab[l][8];
    }
    return GMXFMM_OK;
}

/* Room for expansions of `room` cells on level l, and the arrays of those that there are. Multipoles after the last
 * cell are set to zero, as they are read as those of the empty cell. */
static gmxfmm_status reserve_expansions(gmxfmm_plan* plan, int l, size_t room, cudaStream_t stream)
{
    DeviceTree*       tree   = &plan->device->far.tree;
    fmm_octree_level* level  = &tree->level[l];
    const size_t      column = static_cast<size_t>(plan->device->far.num_coef) * real_size(plan);
    level->stride            = (static_cast<size_t>(level->num) + 1 + 31) / 32 * 32;
    FMM_TRY(fmm_device_reserve(plan, &tree->multipole[l], column * ((room + 1 + 31) / 32 * 32)));
    FMM_TRY(fmm_device_reserve(plan, &tree->local[l], column * ((room + 1 + 31) / 32 * 32)));
    level->multipole = tree->multipole[l].memory;
    level->local     = tree->local[l].memory;
    FMM_CUDA(plan, cudaMemsetAsync(level->multipole, 0, column * level->stride, stream));
    return GMXFMM_OK;
}

/* Reserves memory for level l. */
static gmxfmm_status reserve_level(gmxfmm_plan* plan, int l, cudaStream_t stream)
{
    DeviceTree*       tree   = &plan->device->far.tree;
    fmm_octree_level* level  = &tree->level[l];
    const bool        leaves = l == plan->domain.tree->depth, roots = l == 0;
    const size_t cells = static_cast<size_t>(level->num) + 1, near = static_cast<size_t>(plan->domain.cells.num_near);
    FMM_TRY(fmm_device_reserve(plan, &tree->parent[l], roots ? 0 : cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &tree->child[l], leaves ? 0 : 8 * cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &tree->near[l], leaves ? 0 : near * cells * sizeof(int)));
    level->parent = tree->parent[l].as<int>();
    level->child  = tree->child[l].as<int>();
    level->near   = tree->near[l].as<int>();
    if (roots)
    {
        level->stride    = static_cast<size_t>(level->num);
        level->multipole = level->local = plan->device->far.cells.field.memory;
        return GMXFMM_OK;
    }
    return reserve_expansions(plan, l, static_cast<size_t>(level->num), stream);
}

static gmxfmm_status link_level(gmxfmm_plan* plan, int l, cudaStream_t stream)
{
    DeviceTree*             tree  = &plan->device->far.tree;
    const fmm_octree_level* level = &tree->level[l];
    LevelArrays             a;
    a.here      = level_grid(plan, l);
    a.num       = level->num;
    a.num_near  = plan->domain.cells.num_near;
    a.index     = tree->index[l].as<int>();
    a.upper     = l > 0 ? tree->index[l - 1].as<int>() : NULL;
    a.lower     = l < plan->domain.tree->depth ? tree->index[l + 1].as<int>() : NULL;
    a.upper_num = l > 0 ? level[-1].num : 0;
    a.lower_num = l < plan->domain.tree->depth ? level[1].num : 0;
    a.vectors   = plan->device->near.vectors.as<int4>();
    a.parent    = tree->parent[l].as<int>();
    a.child     = tree->child[l].as<int>();
    a.near      = tree->near[l].as<int>();
    link<<<blocks_for(static_cast<int64_t>(num_numbers(a.here)) + 1, c_threads), c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* Scratch memory of the operators for levels of at most num cells, or num cells of all levels, and of P2M. */
static gmxfmm_status reserve_scratch(gmxfmm_plan* plan, int num)
{
    fmm_octree_operators* ops = plan->device->far.tree.operators;
    FMM_TRY(fmm_cuda_octree_status(plan, fmm_is_adaptive(plan) ? fmm_octree_reserve_cells(ops, plan->far.m2l, num)
                                                               : fmm_octree_reserve(ops, plan->far.m2l, num)));
    fmm_cuda_count_operators(plan, &plan->device->far.tree);
    return fmm_cuda_p2m_reserve(plan);
}

/* Leaves of several levels, which the particles are sorted into. */
static gmxfmm_status assign_leaves(gmxfmm_plan* plan, cudaStream_t stream)
{
    const int num = plan->device->far.tree.level[0].num;
    FMM_TRY(reserve_expansions(plan, 0, fmm_cuda_with_room(num), stream));
    FMM_TRY(fmm_cuda_reserve_leaves(plan));
    return reserve_scratch(plan, num);
}

gmxfmm_status fmm_cuda_tree_assign(gmxfmm_plan* plan, cudaStream_t stream)
{
    DeviceTree* tree  = &plan->device->far.tree;
    const int   depth = plan->domain.tree->depth;
    int         most  = 0;
    if (fmm_is_adaptive(plan))
    {
        return assign_leaves(plan, stream);
    }
    tree->last = depth;
    FMM_TRY(number_cells(plan, stream));
    for (int l = 0; l <= depth; l++)
    {
        FMM_TRY(reserve_level(plan, l, stream));
        FMM_TRY(link_level(plan, l, stream));
        most = tree->level[l].num > most ? tree->level[l].num : most;
    }
    const LevelGrid g = level_grid(plan, depth);
    FMM_TRY(fmm_device_reserve(plan, &tree->leaf_cell, static_cast<size_t>(tree->level[depth].num) * sizeof(int)));
    find_leaf_cells<<<blocks_for(g.num, c_threads), c_threads, 0, stream>>>(
        g, make_geometry(plan), tree->index[depth].as<int>(), tree->leaf_cell.as<int>());
    FMM_CUDA(plan, cudaGetLastError());
    return reserve_scratch(plan, most);
}
