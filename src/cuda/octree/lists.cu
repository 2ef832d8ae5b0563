/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists of the octree's operators for the device: translations, and their division among blocks and warps. */
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "fmm/math/fold.h"
#include "cuda/octree/state.h"
#include "cuda/octree/rotation_orders.h"

namespace
{

enum
{
    c_sharedBytes = 226 * 1024 /* largest shared memory of a block (compute capability 9.0; shared_memory.h) */
};

/* Consecutive translations of one plane, for one group of warps. */
struct RotationRun
{
    int first, count; /* in the sorted translations of the child index */
    int plane, rank;
};

/* Host copies of lists, which are the same for all shapes; by child index. */
struct HostSchedule /* the lists of a RotationSchedule */
{
    std::vector<RotationStep> step[8];
    std::vector<int>          start[2][8], most[2][8], full_runs[8];
};

struct Lists
{
    std::vector<OctreeTranslation> list[8], sorted[8]; /* list: by operator; sorted: by order, then by plane */
    std::vector<SymmetricGroup>    group[8];
    HostSchedule                   host[c_rotationSchedules];
    std::vector<SymmetricRun>      symmetric;
    std::vector<unsigned char>     character;
};

/* Index of the reference operator `vector`, appended if it is new. */
int find_reference(fmm_octree_operators* ops, int vector)
{
    int* end = ops->reference + ops->num_references;
    int* at  = std::find(ops->reference, end, vector);
    if (at == end)
    {
        *at = vector;
        ops->num_references++;
    }
    return static_cast<int>(at - ops->reference);
}

int signs_of(const int* k)
{
    return (k[0] < 0 ? 4 : 0) + (k[1] < 0 ? 2 : 0) + (k[2] < 0 ? 1 : 0);
}

void make_lists(fmm_octree_operators* ops, const fmm_tree* tree, Lists* lists)
{
    for (int c = 0; c < 8; c++)
    {
        for (int i = 0; i < tree->num_list[c]; i++)
        {
            const fmm_translation&  t = tree->list[c][i];
            const OctreeTranslation o = {t.near, t.octant, t.vector};
            lists->list[c].push_back(o);
        }
        for (int i = 0; i < tree->num_groups[c]; i++)
        {
            const fmm_operator_group& g = tree->group[c][i];
            const int*                r = ops->vector + 3 * g.reference;
            SymmetricGroup            s;
            s.reference = find_reference(ops, g.reference);
            s.zero      = (r[0] == 0 ? 4 : 0) + (r[1] == 0 ? 2 : 0) + (r[2] == 0 ? 1 : 0);
            for (int j = 0; j < 8; j++)
            {
                s.near[j]   = -1;
                s.octant[j] = 0;
            }
            for (int j = g.first; j < g.first + g.count; j++)
            {
                const fmm_translation& t     = tree->list[c][j];
                const int              signs = signs_of(ops->vector + 3 * t.vector);
                s.near[signs]                = t.near;
                s.octant[signs]              = t.octant;
            }
            lists->group[c].push_back(s);
        }
        ops->num_list[c]   = tree->num_list[c];
        ops->num_groups[c] = tree->num_groups[c];
    }
}

/* Finds the planes through the z axis: displacements with the same ratio of x and y are in one plane. Those along the z
 * axis count to the first plane. */
void find_planes(fmm_octree_operators* ops)
{
    ops->num_planes = 0;
    for (int v = 0; v < ops->num_vectors; v++)
    {
        const int* k     = ops->vector + 3 * v;
        ops->plane_of[v] = 0;
        if (k[0] == 0 && k[1] == 0)
        {
            continue;
        }
        int plane = 0;
        while (plane < ops->num_planes)
        {
            const int* p = ops->vector + 3 * ops->plane_vector[plane];
            if (p[0] * k[1] == p[1] * k[0])
            {
                break;
            }
            plane++;
        }
        if (plane == ops->num_planes)
        {
            ops->plane_vector[ops->num_planes++] = v;
        }
        ops->plane_of[v] = plane;
    }
}

bool is_reduced(const fmm_octree_operators* ops, const OctreeTranslation& t)
{
    return ops->order_of[t.vector] < ops->order;
}

/* Sorts the translations of child index c by order, then by plane. */
void sort_by_plane(const fmm_octree_operators* ops, Lists* lists, int c)
{
    std::vector<OctreeTranslation>& sorted = lists->sorted[c];
    sorted                                 = lists->list[c];
    /* displacements that differ in z only read the same sources: they stay together */
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const OctreeTranslation& a, const OctreeTranslation& b)
                     {
                         const int pa = ops->plane_of[a.vector], pb = ops->plane_of[b.vector];
                         if (is_reduced(ops, a) != is_reduced(ops, b))
                         {
                             return is_reduced(ops, b);
                         }
                         if (pa != pb)
                         {
                             return pa < pb;
                         }
                         const int *ka = ops->vector + 3 * a.vector, *kb = ops->vector + 3 * b.vector;
                         if (ka[0] != kb[0] || ka[1] != kb[1])
                         {
                             return ka[0] != kb[0] ? ka[0] < kb[0] : ka[1] < kb[1];
                         }
                         return a.octant != b.octant ? a.octant < b.octant : ka[2] < kb[2];
                     });
}

/* Divides the translations of one order in each of the schedule's planes into pieces of nearly the same size, small
 * enough to be divided evenly among groups. */
std::vector<RotationRun> make_pieces(const fmm_octree_operators*           ops,
                                     const RotationSchedule&               schedule,
                                     const std::vector<OctreeTranslation>& sorted,
                                     bool                                  reduced)
{
    const auto plane_at = [&](int i) { return ops->plane_of[sorted[static_cast<size_t>(i)].vector]; };
    const int  full     = static_cast<int>(
        std::count_if(sorted.begin(), sorted.end(), [&](const auto& t) { return !is_reduced(ops, t); }));
    int begin = reduced ? full : 0, end = reduced ? static_cast<int>(sorted.size()) : full;
    while (begin < end && plane_at(begin) < schedule.first_plane)
    {
        begin++;
    }
    while (begin < end && plane_at(end - 1) >= schedule.first_plane + schedule.num_planes)
    {
        end--;
    }
    const int                groups = schedule.groups * schedule.splits;
    const int                most   = std::max((end - begin + groups - 1) / groups, 1);
    std::vector<RotationRun> pieces;
    for (int first = begin; first < end;)
    {
        const int plane = plane_at(first);
        int       last  = first;
        while (last < end && plane_at(last) == plane)
        {
            last++;
        }
        const int parts = (last - first + most - 1) / most, size = last - first;
        for (int i = 0; i < parts; i++)
        {
            const RotationRun run = {first + size * i / parts, size * (i + 1) / parts - size * i / parts,
                                     plane - schedule.first_plane, 0};
            pieces.push_back(run);
        }
        first = last;
    }
    return pieces;
}

/* Assigns pieces to groups, the longest first, each to the group with the fewest steps. */
void assign_pieces(std::vector<RotationRun>               pieces,
                   std::vector<std::vector<RotationRun>>* of_group,
                   std::vector<int>*                      steps)
{
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const RotationRun& a, const RotationRun& b) { return a.count > b.count; });
    for (const RotationRun& piece : pieces)
    {
        const size_t g = static_cast<size_t>(std::min_element(steps->begin(), steps->end()) - steps->begin());
        (*of_group)[g].push_back(piece);
        (*steps)[g] += piece.count;
    }
}

/* Ranks the runs of one block's groups, from rank `first` on, by the number of steps after which a group has finished
 * them. Groups add their runs to the same locals in the order of ranks, and a group that finishes a run waits until
 * those of lower rank have been added. Since all groups make their steps at the same pace, this order makes them wait
 * least. Returns the next rank. */
int rank_runs(std::vector<RotationRun>* of_group, int groups, int first)
{
    std::vector<std::pair<int, RotationRun*>> done;
    for (int g = 0; g < groups; g++)
    {
        int steps = 0;
        for (RotationRun& piece : of_group[g])
        {
            steps += piece.count;
            done.emplace_back(steps, &piece);
        }
    }
    std::stable_sort(done.begin(), done.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < done.size(); i++)
    {
        done[i].second->rank = first + static_cast<int>(i);
    }
    return first + static_cast<int>(done.size());
}

/* Appends the steps of a run. */
void add_steps(const RotationRun& run, const std::vector<OctreeTranslation>& sorted, std::vector<RotationStep>* steps)
{
    for (int i = 0; i < run.count; i++)
    {
        const OctreeTranslation& t    = sorted[static_cast<size_t>(run.first + i)];
        const int                rank = i + 1 == run.count ? run.rank : -1;
        steps->push_back({t.near, t.octant, t.vector, run.plane, rank});
    }
}

/* Divides the list of child index c among the groups of all its blocks. */
void make_schedule(const fmm_octree_operators*           ops,
                   const RotationSchedule&               schedule,
                   const std::vector<OctreeTranslation>& sorted,
                   HostSchedule*                         host,
                   int                                   c)
{
    const int        groups = schedule.groups * schedule.splits;
    std::vector<int> next_rank(static_cast<size_t>(schedule.splits), 0);
    for (int pass = 0; pass < 2; pass++)
    {
        std::vector<std::vector<RotationRun>> of_group(static_cast<size_t>(groups));
        std::vector<int>                      counts(static_cast<size_t>(groups), 0);
        std::vector<int>&                     start = host->start[pass][c];
        assign_pieces(make_pieces(ops, schedule, sorted, pass == 1), &of_group, &counts);
        for (int split = 0; split < schedule.splits; split++)
        {
            int& next = next_rank[static_cast<size_t>(split)];
            next      = rank_runs(&of_group[static_cast<size_t>(split * schedule.groups)], schedule.groups, next);
            const auto first = counts.begin() + split * schedule.groups;
            host->most[pass][c].push_back(*std::max_element(first, first + schedule.groups));
        }
        for (const std::vector<RotationRun>& runs : of_group)
        {
            start.push_back(static_cast<int>(host->step[c].size()));
            for (const RotationRun& run : runs)
            {
                add_steps(run, sorted, &host->step[c]);
            }
        }
        start.push_back(static_cast<int>(host->step[c].size()));
        if (pass == 0)
        {
            host->full_runs[c] = next_rank;
        }
    }
}

/* Sets the numbers of groups, teams and blocks, and the planes, of each schedule. */
void init_schedules(fmm_octree_operators* ops)
{
    const bool is_double = ops->is_double != 0;
    const int  blocks    = fmm_rotation_blocks(ops->order, is_double);
    for (int s = 0; s < c_rotationSchedules; s++)
    {
        RotationSchedule& schedule = ops->schedule[s];
        const int         part = s - c_rotationPart, planes = ops->num_planes;
        schedule.groups = fmm_rotation_warps(ops->order, is_double) / fmm_rotation_group_warps(ops->order, is_double);
        schedule.teams  = fmm_rotation_teams(ops->order, is_double);
        schedule.splits = s == c_rotationSplit ? blocks * c_rotationSplits : s == c_rotationSome ? blocks : 1;
        schedule.first_plane = part < 0 ? 0 : planes * part / c_rotationParts;
        schedule.num_planes  = part < 0 ? planes : planes * (part + 1) / c_rotationParts - schedule.first_plane;
    }
}

/* Outputs of one pass: columns are divided into runs of nearly the same size, which are assigned, the longest first,
 * each to the warp with the least work. */
void make_symmetric_pass(fmm_octree_operators* ops, int pass, Lists* lists)
{
    SymmetricSchedule&        s = ops->symmetric;
    std::vector<SymmetricRun> all, of_warp[c_symmetricWarps];
    for (int l = 0; l <= ops->order; l++)
    {
        for (int im = 0; im <= (l > 0); im++)
        {
            if (s.passes > 1 && (fold_character(l, l, im) & 6) != 2 * pass)
            {
                continue;
            }
            const int size = ops->order + 1 - l, parts = (size + c_symmetricRun - 1) / c_symmetricRun;
            const int most = parts > 1 ? ((size + parts - 1) / parts + 3) / 4 * 4 : size; /* whole quads */
            for (int first = 0; first < size; first += most)
            {
                const SymmetricRun run = {l, im, first, std::min(most, size - first)};
                all.push_back(run);
            }
        }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const SymmetricRun& a, const SymmetricRun& b) { return a.count > b.count; });
    double cost[c_symmetricWarps] = {0};
    for (const SymmetricRun& run : all)
    {
        const int w = static_cast<int>(std::min_element(cost, cost + s.warps) - cost);
        of_warp[w].push_back(run);
        cost[w] += run.count + 4; /* 4 for loads */
    }
    for (int w = 0; w < c_symmetricWarps; w++)
    {
        s.start[pass][w] = static_cast<int>(lists->symmetric.size());
        lists->symmetric.insert(lists->symmetric.end(), of_warp[w].begin(), of_warp[w].end());
    }
    s.start[pass][c_symmetricWarps] = static_cast<int>(lists->symmetric.size());
}

void make_symmetric(fmm_octree_operators* ops, Lists* lists)
{
    const int    p        = ops->order;
    const size_t bytes    = 32 * (ops->is_double ? sizeof(double) : sizeof(float)); /* a coefficient of 32 targets */
    const size_t team     = 9 * static_cast<size_t>(ops->num_coef) * bytes;
    ops->symmetric.passes = team <= c_sharedBytes ? 1 : 4;
    ops->symmetric.warps  = p <= 5 ? 4 : p <= 8 ? 8 : c_symmetricWarps;
    ops->symmetric.teams  = c_symmetricWarps / ops->symmetric.warps;
    while (ops->symmetric.teams > 1 && (ops->symmetric.passes > 1 || ops->symmetric.teams * team > c_sharedBytes))
    {
        ops->symmetric.teams /= 2;
    }
    ops->symmetric.warps = ops->symmetric.teams == 1 ? c_symmetricWarps : ops->symmetric.warps;
    for (int pass = 0; pass < ops->symmetric.passes; pass++)
    {
        make_symmetric_pass(ops, pass, lists);
    }
    lists->character.resize(static_cast<size_t>(ops->num_coef));
    for (int m = 0; m <= p; m++)
    {
        for (int n = m; n <= p; n++)
        {
            lists->character[static_cast<size_t>(harm_re(p, n, m))] =
                static_cast<unsigned char>(fold_character(n, m, 0));
            if (m > 0)
            {
                lists->character[static_cast<size_t>(harm_im(p, n, m))] =
                    static_cast<unsigned char>(fold_character(n, m, 1));
            }
        }
    }
}

/* Appends a list to bytes, the copy on the host of the memory at `device`, and sets its address there. */
template <class T>
void place_list(const std::vector<T>& list, const T** address, std::vector<char>* bytes, const char* device)
{
    const size_t at = octree_aligned(bytes->size());
    bytes->resize(at + list.size() * sizeof(T));
    std::memcpy(bytes->data() + at, list.data(), list.size() * sizeof(T));
    *address = reinterpret_cast<const T*>(device + at);
}

void place_schedule(
    const HostSchedule& host, int c, RotationSchedule* schedule, std::vector<char>* bytes, const char* device)
{
    place_list(host.step[c], &schedule->step[c], bytes, device);
    place_list(host.full_runs[c], &schedule->full_runs[c], bytes, device);
    for (int pass = 0; pass < 2; pass++)
    {
        place_list(host.start[pass][c], &schedule->start[pass][c], bytes, device);
        place_list(host.most[pass][c], &schedule->most[pass][c], bytes, device);
    }
}

std::vector<char> place_lists(fmm_octree_operators* ops, const Lists& lists, const char* device)
{
    std::vector<char> bytes;
    for (int c = 0; c < 8; c++)
    {
        place_list(lists.list[c], &ops->list[c], &bytes, device);
        place_list(lists.group[c], &ops->group[c], &bytes, device);
        for (int s = 0; s < c_rotationSchedules; s++)
        {
            place_schedule(lists.host[s], c, &ops->schedule[s], &bytes, device);
        }
    }
    place_list(lists.symmetric, &ops->symmetric.run, &bytes, device);
    place_list(lists.character, &ops->symmetric.character, &bytes, device);
    return bytes;
}

gmxfmm_status upload_lists(fmm_octree_operators* ops, const Lists& lists)
{
    FMM_CUDA(ops, ops->lists.reserve(place_lists(ops, lists, nullptr).size()));
    const std::vector<char> bytes = place_lists(ops, lists, ops->lists.as<const char>());
    FMM_CUDA(ops, cudaMemcpy(ops->lists.memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    return GMXFMM_OK;
}

} // namespace

gmxfmm_status fmm_octree_make_lists(fmm_octree_operators* ops, const fmm_tree* tree)
{
    Lists lists;
    make_lists(ops, tree, &lists);
    find_planes(ops);
    init_schedules(ops);
    for (int c = 0; c < 8; c++)
    {
        sort_by_plane(ops, &lists, c);
        for (int s = 0; s < c_rotationSchedules; s++)
        {
            make_schedule(ops, ops->schedule[s], lists.sorted[c], &lists.host[s], c);
        }
    }
    make_symmetric(ops, &lists);
    return upload_lists(ops, lists);
}
