/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the short list of Lennard-Jones in two pair lists, on a GPU
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include <algorithm>

#include "gromacs/gpu_utils/cudautils.cuh"
#include "gromacs/gpu_utils/device_context.h"
#include "gromacs/gpu_utils/device_stream.h"
#include "gromacs/gpu_utils/devicebuffer.h"
#include "gromacs/pbcutil/ishift.h"
#include "gromacs/utility/gmxassert.h"

#include "fmmljsplit.h"
#include "fmmshortlist.h"

namespace gmx
{

namespace
{

constexpr int c_numThreads = 128;
//! Threads that share the list of a heavy atom
constexpr int c_teamSize = 8;
//! Threads of a block that computes forces: few, since lists differ in length
constexpr int c_numForceThreads = 64;
//! Pairs closer than this would overflow r^-12
constexpr float c_minDistanceSquared = 3.82e-7F;
//! Entries of a list: the place of an atom, and behind it the index of a shift vector
constexpr int      c_placeBits = 26;
constexpr unsigned c_placeMask = (1U << c_placeBits) - 1;
//! Fourth number of a heavy atom's coordinates: its type, and behind it how many light atoms it has
constexpr int c_typeBits = 24;
constexpr int c_typeMask = (1 << c_typeBits) - 1;

static_assert(c_numShiftVectors <= 1 << (32 - c_placeBits),
              "Shift vectors have an index in list entries");

//! As the pair kernels have them: i-supercluster, shift vector, range of groups of four j-clusters
struct ListEntry
{
    int supercluster, shift, begin, end;
};
//! Four j-clusters, and for each half of a cluster which pairs of clusters there are and where the exclusions stand
struct FourClusters
{
    int cluster[4];
    struct
    {
        unsigned mask;
        int      exclusions;
    } half[2];
};
constexpr int c_clusterSize = 8;

//! Constants of the switch of a power of the distance
struct Switch
{
    explicit Switch(const FmmForceSwitch& constants) :
        c2(static_cast<float>(constants.c2)),
        c3(static_cast<float>(constants.c3)),
        cpot(static_cast<float>(constants.shift))
    {
    }
    float c2, c3, cpot;
};

//! Potentials and their switch
struct Interactions
{
    // 6 c6 and 12 c12 of pairs of types
    const float2* parameters;
    int           numTypes;
    float         switchStart, cutoffSquared;
    Switch        dispersion, repulsion;
};

//! Heavy atoms and light ones, by the place of the heavy one in the order of the pair search
struct Groups
{
    // Coordinates of the heavy atom and its light ones, one behind the other, and types. Without an
    // atom all bits are set: no distance is less than another number then.
    float4* x;
    // Number of light atoms, -1 without an atom
    int* numLight;
    // Places of light atoms, and which images are nearest to the heavy atom
    unsigned* lightPlaces;
    int       num;
};

//! Lists with the same room for each heavy atom
struct Lists
{
    unsigned* entries;
    int*      counts;
    int       capacity;
};

__device__ float3 difference(const float4& a, const float3& b)
{
    return make_float3(a.x - b.x, a.y - b.y, a.z - b.z);
}

__device__ float squareOf(const float3& a)
{
    return a.x * a.x + a.y * a.y + a.z * a.z;
}

__device__ float3 shifted(const float4& x, const float3& shift)
{
    return make_float3(x.x + shift.x, x.y + shift.y, x.z + shift.z);
}

__device__ void addTo(float3* sum, const float factor, const float3& d)
{
    sum->x += factor * d.x;
    sum->y += factor * d.y;
    sum->z += factor * d.z;
}

__device__ void atomicAddTo(float3* sum, const float3& value)
{
    atomicAdd(&sum->x, value.x);
    atomicAdd(&sum->y, value.y);
    atomicAdd(&sum->z, value.z);
}

//! Returns the index of the shift vector by which \p b is nearest to \p a. Without periodicity it is the central one, though not all are zero.
__device__ int nearestImage(const float4& a, const float4& b, const float3* shiftVectors, const bool isPeriodic)
{
    int nearest = c_centralShiftIndex;
    if (!isPeriodic)
    {
        return nearest;
    }
    float distance = squareOf(difference(a, shifted(b, shiftVectors[nearest])));
    for (int shift = 0; shift < c_numShiftVectors; shift++)
    {
        const float other = squareOf(difference(a, shifted(b, shiftVectors[shift])));
        if (other < distance)
        {
            nearest  = shift;
            distance = other;
        }
    }
    return nearest;
}

//! Copies shift vectors to shared memory
__device__ void loadShiftVectors(float3* vectors, const float3* shiftVectors)
{
    if (threadIdx.x < c_numShiftVectors)
    {
        vectors[threadIdx.x] = shiftVectors[threadIdx.x];
    }
    __syncthreads();
}

//! Force over distance of a pair, and its energy
template<bool computeEnergy>
__device__ float pairForce(const Interactions& lj, const float2& c6c12, float r2, float* energy)
{
    if (r2 >= lj.cutoffSquared)
    {
        return 0;
    }
    r2                 = fmaxf(r2, c_minDistanceSquared);
    const float rInv   = rsqrtf(r2);
    const float r2Inv  = rInv * rInv;
    const float r6Inv  = r2Inv * r2Inv * r2Inv;
    const float beyond = fmaxf(r2 * rInv - lj.switchStart, 0.0F);
    const float c6 = c6c12.x, c12 = c6c12.y;
    if (computeEnergy)
    {
        *energy += c12 * (r6Inv * r6Inv + lj.repulsion.cpot) / 12 - c6 * (r6Inv + lj.dispersion.cpot) / 6
                   + beyond * beyond * beyond
                             * (c6 * (lj.dispersion.c2 / 3 + lj.dispersion.c3 / 4 * beyond)
                                - c12 * (lj.repulsion.c2 / 3 + lj.repulsion.c3 / 4 * beyond));
    }
    return r6Inv * (c12 * r6Inv - c6) * r2Inv
           + (c12 * (lj.repulsion.c2 + lj.repulsion.c3 * beyond)
              - c6 * (lj.dispersion.c2 + lj.dispersion.c3 * beyond))
                     * beyond * beyond * rInv;
}

//! Finds light atoms, one thread for an atom. Atoms of a molecule can be at different sides of the box.
__global__ void findGroups(const Groups  groups,
                           const int     maxNumLight,
                           const int*    lightAtoms,
                           const int*    places,
                           const int     numAtoms,
                           const float4* xq,
                           const float3* shiftVectors,
                           const bool    isPeriodic)
{
    __shared__ float3 vectors[c_numShiftVectors];
    loadShiftVectors(vectors, shiftVectors);
    const int atom  = blockIdx.x * c_numThreads + threadIdx.x;
    const int place = atom < numAtoms ? places[atom] : groups.num;
    if (place < 0 || place >= groups.num)
    {
        return;
    }
    int numLight = 0;
    for (int k = 0; k < maxNumLight; k++)
    {
        const int light = lightAtoms[static_cast<size_t>(atom) * maxNumLight + k];
        if (light >= 0)
        {
            const unsigned lightPlace = places[light];
            const unsigned shift = nearestImage(xq[place], xq[lightPlace], vectors, isPeriodic);
            groups.lightPlaces[static_cast<size_t>(place) * maxNumLight + numLight] =
                    lightPlace | (shift << c_placeBits);
            numLight++;
        }
    }
    groups.numLight[place] = numLight;
}

//! Collects coordinates and types of groups
__global__ void collectGroups(const Groups  groups,
                              const int     maxNumLight,
                              const float4* xq,
                              const int*    types,
                              const float3* shiftVectors)
{
    const int place    = blockIdx.x * c_numThreads + threadIdx.x;
    const int numLight = place < groups.num ? groups.numLight[place] : -1;
    if (numLight < 0)
    {
        return;
    }
    float4* group = groups.x + static_cast<size_t>(place) * (1 + maxNumLight);
    float4  x     = xq[place];
    x.w           = __int_as_float(types[place] | (numLight << c_typeBits));
    group[0]      = x;
    for (int k = 0; k < numLight; k++)
    {
        const unsigned entry    = groups.lightPlaces[static_cast<size_t>(place) * maxNumLight + k];
        const int      light    = entry & c_placeMask;
        const float3   position = shifted(xq[light], shiftVectors[entry >> c_placeBits]);
        group[1 + k] = make_float4(position.x, position.y, position.z, __int_as_float(types[light]));
    }
}

//! Returns whether a pair that the short list is for is within a radius, the second group shifted
template<int maxNumLight, bool havePairsOfLight>
__device__ bool isWithin(const float4* a,
                         const int     numLightA,
                         const float4* b,
                         const int     numLightB,
                         const float3& shift,
                         const float   radiusSquared)
{
    const float3 heavyB = shifted(b[0], shift);
    bool         within = squareOf(difference(a[0], heavyB)) < radiusSquared;
#pragma unroll
    for (int k = 0; k < maxNumLight; k++)
    {
        if (k < numLightA)
        {
            within = within || squareOf(difference(a[1 + k], heavyB)) < radiusSquared;
        }
        if (k < numLightB)
        {
            const float3 lightB = shifted(b[1 + k], shift);
            within              = within || squareOf(difference(a[0], lightB)) < radiusSquared;
            if (havePairsOfLight)
            {
                for (int m = 0; m < numLightA; m++)
                {
                    within = within || squareOf(difference(a[1 + m], lightB)) < radiusSquared;
                }
            }
        }
    }
    return within;
}

//! Adds a heavy atom to the list of another. What is beyond the room for it is counted only.
__device__ void append(const Lists& lists, const int place, const int other, const int shift)
{
    const int index = atomicAdd(&lists.counts[place], 1);
    if (index < lists.capacity)
    {
        lists.entries[static_cast<size_t>(place) * lists.capacity + index] =
                other | (static_cast<unsigned>(shift) << c_placeBits);
    }
}

/*! \brief Makes lists of heavy atoms from the list of cluster pairs
 *
 * A block has one entry of the list, a thread one pair of atoms at a time, as
 * in the pair kernels.
 */
template<int maxNumLight, bool havePairsOfLight>
__global__ void listHeavyAtoms(const ListEntry*    longList,
                               const FourClusters* fourClusters,
                               const unsigned*     exclusions,
                               const Groups        groups,
                               const float3*       shiftVectors,
                               const float         heavyRadiusSquared,
                               const float         radiusSquared,
                               const Lists         lists)
{
    __shared__ float4 heavyAtoms[8][c_clusterSize];

    const ListEntry entry  = longList[blockIdx.x];
    const int       shift  = entry.shift;
    const float3    vector = shiftVectors[shift];
    // The second group of a pair is shifted here
    const float3 opposite = make_float3(-vector.x, -vector.y, -vector.z);
    const int    firstA   = entry.supercluster * 8 * c_clusterSize;
    const int    half     = threadIdx.y / (c_clusterSize / 2);
    const int    lane     = (threadIdx.y * c_clusterSize + threadIdx.x) % 32;
    const auto   group    = [&](int place)
    { return groups.x + static_cast<size_t>(place) * (1 + maxNumLight); };
    const auto numLight = [](const float4& heavy) { return __float_as_int(heavy.w) >> c_typeBits; };
    if (threadIdx.z == 0)
    {
        heavyAtoms[threadIdx.y][threadIdx.x] =
                *group(firstA + threadIdx.y * c_clusterSize + threadIdx.x);
    }
    __syncthreads();

    for (int j4 = entry.begin + threadIdx.z; j4 < entry.end; j4 += blockDim.z)
    {
        const unsigned mask = fourClusters[j4].half[half].mask
                              & exclusions[fourClusters[j4].half[half].exclusions * 32 + lane];
        for (int jm = 0; jm < 4; jm++)
        {
            const unsigned clusters = (mask >> (8 * jm)) & 0xff;
            if (clusters == 0)
            {
                continue;
            }
            const int    b      = fourClusters[j4].cluster[jm] * c_clusterSize + threadIdx.y;
            const float4 heavyB = *group(b);
            const float3 xB     = shifted(heavyB, opposite);
            for (int i = 0; i < 8; i++)
            {
                const float4 heavyA = heavyAtoms[i][threadIdx.x];
                if (((clusters >> i) & 1) != 0 && squareOf(difference(heavyA, xB)) < heavyRadiusSquared
                    && numLight(heavyA) + numLight(heavyB) > 0)
                {
                    const int a = firstA + i * c_clusterSize + threadIdx.x;
                    if (isWithin<maxNumLight, havePairsOfLight>(
                                group(a), numLight(heavyA), group(b), numLight(heavyB), opposite, radiusSquared))
                    {
                        append(lists, a, b, c_numShiftVectors - 1 - shift);
                        append(lists, b, a, shift);
                    }
                }
            }
        }
    }
}

//! The length of the longest list
__global__ void findLongest(const int* counts, const int num, int* longest)
{
    int count = 0;
    for (int i = blockIdx.x * c_numThreads + threadIdx.x; i < num; i += gridDim.x * c_numThreads)
    {
        count = max(count, counts[i]);
    }
    atomicMax(longest, count);
}

//! Keeps what is within the inner radius, in its order
template<int maxNumLight, bool havePairsOfLight>
__global__ __launch_bounds__(c_numThreads) void pruneLists(const Groups  groups,
                                                           const float3* shiftVectors,
                                                           const float   radiusSquared,
                                                           const Lists   outer,
                                                           const Lists   inner)
{
    __shared__ float3 vectors[c_numShiftVectors];
    loadShiftVectors(vectors, shiftVectors);

    const int place = (blockIdx.x * c_numThreads + threadIdx.x) / c_teamSize;
    if (place >= groups.num)
    {
        return;
    }
    const int       member    = threadIdx.x % c_teamSize;
    const int       firstLane = threadIdx.x % 32 - member;
    const unsigned  team      = ((1U << c_teamSize) - 1) << firstLane;
    const int       count     = outer.counts[place];
    const float4*   group     = groups.x + static_cast<size_t>(place) * (1 + maxNumLight);
    const int       numLight  = count > 0 ? groups.numLight[place] : 0;
    const unsigned* entries   = outer.entries + static_cast<size_t>(place) * outer.capacity;
    unsigned*       kept      = inner.entries + static_cast<size_t>(place) * inner.capacity;
    int             numKept   = 0;
    for (int first = 0; first < count; first += c_teamSize)
    {
        bool     keep  = false;
        unsigned entry = 0;
        if (first + member < count)
        {
            entry               = entries[first + member];
            const float4* other = groups.x + static_cast<size_t>(entry & c_placeMask) * (1 + maxNumLight);
            const int numLightOther = __float_as_int(other[0].w) >> c_typeBits;
            keep                    = isWithin<maxNumLight, havePairsOfLight>(
                    group, numLight, other, numLightOther, vectors[entry >> c_placeBits], radiusSquared);
        }
        const unsigned all = __ballot_sync(team, keep) >> firstLane;
        if (keep)
        {
            kept[numKept + __popc(all & ((1U << member) - 1))] = entry;
        }
        numKept += __popc(all);
    }
    if (member == 0)
    {
        inner.counts[place] = numKept;
    }
}

//! Sum over a team, for all of its threads
__device__ float teamSum(const unsigned team, float value)
{
#pragma unroll
    for (int offset = c_teamSize / 2; offset > 0; offset /= 2)
    {
        value += __shfl_xor_sync(team, value, offset);
    }
    return value;
}

/*! \brief Computes forces on heavy atoms and their light ones
 *
 * A pair is in the lists of both heavy atoms, so that each thread keeps forces
 * on its own atoms alone, in registers.
 */
template<int maxNumLight, bool havePairsOfLight, bool computeEnergyOrVirial>
__global__ __launch_bounds__(c_numForceThreads) void computeForces(const Groups       groups,
                                                                   const Lists        lists,
                                                                   const Interactions lj,
                                                                   const float3*      shiftVectors,
                                                                   float3*            f,
                                                                   float3*            shiftForces,
                                                                   float*             totalEnergy)
{
    __shared__ float3 vectors[c_numShiftVectors];
    __shared__ float3 shiftForcesOfBlock[c_numShiftVectors];
    if (computeEnergyOrVirial && threadIdx.x < c_numShiftVectors)
    {
        shiftForcesOfBlock[threadIdx.x] = make_float3(0, 0, 0);
    }
    loadShiftVectors(vectors, shiftVectors);

    // Heavy atoms with light ones come last in the order, and have the longest lists: they begin
    const int place  = groups.num - 1 - (blockIdx.x * c_numForceThreads + threadIdx.x) / c_teamSize;
    const int member = threadIdx.x % c_teamSize;
    const unsigned team   = ((1U << c_teamSize) - 1) << (threadIdx.x % 32 - member);
    const int      count  = place >= 0 ? lists.counts[place] : 0;
    float          energy = 0;
    if (count > 0)
    {
        const float4*   group   = groups.x + static_cast<size_t>(place) * (1 + maxNumLight);
        const unsigned* entries = lists.entries + static_cast<size_t>(place) * lists.capacity;

        float4        x[1 + maxNumLight];
        float3        force[1 + maxNumLight];
        const float2* parameters[1 + maxNumLight]; // rows of the table
        const int     numLight = groups.numLight[place];
#pragma unroll
        for (int k = 0; k <= maxNumLight; k++)
        {
            x[k]          = group[k <= numLight ? k : 0];
            force[k]      = make_float3(0, 0, 0);
            parameters[k] = lj.parameters + (__float_as_int(x[k].w) & c_typeMask) * lj.numTypes;
        }
        // Most neighbors with a shift have the same one
        int        lastShift     = c_centralShiftIndex;
        float3     sumWithShift  = make_float3(0, 0, 0);
        const auto addShiftForce = [&]()
        {
            if (computeEnergyOrVirial && lastShift != c_centralShiftIndex)
            {
                atomicAddTo(&shiftForcesOfBlock[c_numShiftVectors - 1 - lastShift], sumWithShift);
            }
        };
        unsigned next = member < count ? entries[member] : 0;
        for (int e = member; e < count; e += c_teamSize)
        {
            const unsigned entry = next;
            next                 = e + c_teamSize < count ? entries[e + c_teamSize] : 0;
            const float4* other = groups.x + static_cast<size_t>(entry & c_placeMask) * (1 + maxNumLight);
            const float4 heavy = other[0];
            // Loaded together with it, also where there are none
            float4 lights[2];
#pragma unroll
            for (int k = 0; k < min(2, maxNumLight); k++)
            {
                lights[k] = other[1 + k];
            }
            const int    typeAndNumLight = __float_as_int(heavy.w);
            const int    type            = typeAndNumLight & c_typeMask;
            const int    numLightOther   = typeAndNumLight >> c_typeBits;
            const float3 vector          = vectors[entry >> c_placeBits];
            const float3 heavyOther      = shifted(heavy, vector);

            float3     sum = make_float3(0, 0, 0); // force on all own atoms
            const auto add = [&](int k, const float3& xOther, int typeOther)
            {
                const float3 d      = difference(x[k], xOther);
                const float  factor = pairForce<computeEnergyOrVirial>(
                        lj, __ldg(parameters[k] + typeOther), squareOf(d), &energy);
                addTo(&force[k], factor, d);
                if (computeEnergyOrVirial)
                {
                    addTo(&sum, factor, d);
                }
            };
            add(0, heavyOther, type);
#pragma unroll
            for (int k = 0; k < maxNumLight; k++)
            {
                if (k < numLight)
                {
                    add(1 + k, heavyOther, type);
                }
                if (k < numLightOther)
                {
                    const float4 light      = k < 2 ? lights[k] : other[1 + k];
                    const float3 lightOther = shifted(light, vector);
                    const int    typeLight  = __float_as_int(light.w);
                    add(0, lightOther, typeLight);
                    if (havePairsOfLight)
                    {
#pragma unroll
                        for (int m = 0; m < maxNumLight; m++)
                        {
                            if (m < numLight)
                            {
                                add(1 + m, lightOther, typeLight);
                            }
                        }
                    }
                }
            }
            const int shift = entry >> c_placeBits;
            if (computeEnergyOrVirial && shift != c_centralShiftIndex)
            {
                if (shift != lastShift)
                {
                    addShiftForce();
                    lastShift    = shift;
                    sumWithShift = make_float3(0, 0, 0);
                }
                // The pair is in two lists
                addTo(&sumWithShift, 0.5F, sum);
            }
        }
        addShiftForce();
#pragma unroll
        for (int k = 0; k <= maxNumLight; k++)
        {
            if (k <= numLight)
            {
                const float3 total = make_float3(
                        teamSum(team, force[k].x), teamSum(team, force[k].y), teamSum(team, force[k].z));
                if (member == k)
                {
                    const unsigned own =
                            k == 0 ? place | (c_centralShiftIndex << c_placeBits)
                                   : groups.lightPlaces[static_cast<size_t>(place) * maxNumLight + k - 1];
                    atomicAddTo(&f[own & c_placeMask], total);
                    const int shift = own >> c_placeBits;
                    if (computeEnergyOrVirial && shift != c_centralShiftIndex)
                    {
                        atomicAddTo(&shiftForcesOfBlock[shift], total);
                    }
                }
            }
        }
    }
    if (computeEnergyOrVirial)
    {
        for (int offset = 16; offset > 0; offset /= 2)
        {
            energy += __shfl_xor_sync(0xffffffff, energy, offset);
        }
        if (threadIdx.x % 32 == 0)
        {
            atomicAdd(totalEnergy, 0.5F * energy);
        }
        __syncthreads();
        // Most blocks have no pairs across the boundary, and all of them would wait for the same numbers
        if (threadIdx.x < c_numShiftVectors && squareOf(shiftForcesOfBlock[threadIdx.x]) != 0)
        {
            atomicAddTo(&shiftForces[threadIdx.x], shiftForcesOfBlock[threadIdx.x]);
        }
    }
}

//! A pair of atoms whose heavy atoms are bonded: places, and the shift of the second
struct BondedPair
{
    int a, b, shift;
};

//! Finds the nearest images of such pairs
__global__ void findImages(const int2*   atoms,
                           const int     num,
                           const int*    places,
                           const float4* xq,
                           const float3* shiftVectors,
                           const bool    isPeriodic,
                           BondedPair*   pairs)
{
    __shared__ float3 vectors[c_numShiftVectors];
    loadShiftVectors(vectors, shiftVectors);
    const int i = blockIdx.x * c_numThreads + threadIdx.x;
    if (i >= num)
    {
        return;
    }
    const int a = places[atoms[i].x], b = places[atoms[i].y];
    pairs[i] = { a, b, nearestImage(xq[a], xq[b], vectors, isPeriodic) };
}

//! Computes their forces, one thread for a pair
template<bool computeEnergyOrVirial>
__global__ void computeBondedPairs(const BondedPair*  pairs,
                                   const int          num,
                                   const float4*      xq,
                                   const int*         types,
                                   const Interactions lj,
                                   const float3*      shiftVectors,
                                   float3*            f,
                                   float3*            shiftForces,
                                   float*             totalEnergy)
{
    const int i = blockIdx.x * c_numThreads + threadIdx.x;
    if (i >= num)
    {
        return;
    }
    const BondedPair pair   = pairs[i];
    const float3     d      = difference(xq[pair.a], shifted(xq[pair.b], shiftVectors[pair.shift]));
    float            energy = 0;
    const float      factor = pairForce<computeEnergyOrVirial>(
            lj, lj.parameters[types[pair.a] * lj.numTypes + types[pair.b]], squareOf(d), &energy);
    if (factor == 0 && energy == 0)
    {
        return;
    }
    const float3 force = make_float3(factor * d.x, factor * d.y, factor * d.z);
    atomicAddTo(&f[pair.a], force);
    atomicAddTo(&f[pair.b], make_float3(-force.x, -force.y, -force.z));
    if (computeEnergyOrVirial)
    {
        atomicAdd(totalEnergy, energy);
        if (pair.shift != c_centralShiftIndex)
        {
            atomicAddTo(&shiftForces[c_numShiftVectors - 1 - pair.shift], force);
        }
    }
}

//! Memory on the device that grows
template<typename T>
class Buffer
{
public:
    Buffer() = default;
    ~Buffer() { freeDeviceBuffer(&data_); }
    Buffer(const Buffer&)            = delete;
    Buffer& operator=(const Buffer&) = delete;

    //! Has room for so many values afterwards. Those that were there are lost.
    void resize(const size_t size, const DeviceContext& deviceContext)
    {
        if (size > capacity_)
        {
            freeDeviceBuffer(&data_);
            data_ = nullptr;
            // Some more: numbers fluctuate
            capacity_ = size + size / 8 + 1;
            allocateDeviceBuffer(&data_, capacity_, deviceContext);
        }
    }
    DeviceBuffer<T>* buffer() { return &data_; }
    T*               data() const { return data_; }

private:
    DeviceBuffer<T> data_     = nullptr;
    size_t          capacity_ = 0;
};

//! The interactions, without parameters
Interactions interactions(const FmmLJSplit& ljSplit)
{
    const double radius = ljSplit.settings().radius, start = radius - FmmLJSplit::c_switchRange;
    return { nullptr,
             ljSplit.numTypes(),
             static_cast<float>(start),
             static_cast<float>(radius * radius),
             Switch(FmmForceSwitch(6, start, radius)),
             Switch(FmmForceSwitch(12, start, radius)) };
}

int numBlocks(const size_t numThreads)
{
    return static_cast<int>((numThreads + c_numThreads - 1) / c_numThreads);
}

} // namespace

class FmmShortList::Impl
{
public:
    Impl(const FmmLJSplit&        ljSplit,
         const gmx_mtop_t&        mtop,
         const FmmShortListRadii& radii,
         const DeviceContext&     deviceContext,
         const DeviceStream&      deviceStream);

    void make(const FmmLongListOnDevice& longList,
              const FmmPairKernelData&   data,
              int                        numHeavySlots,
              ArrayRef<const int>        slotOfAtom,
              const DeviceStream&        deviceStream);
    void launchForces(const FmmPairKernelData& data, bool computeEnergyOrVirial, const DeviceStream& deviceStream);

private:
    //! Calls a function with the number of light atoms and whether they interact as constants
    template<typename Function>
    void dispatch(Function function) const;
    //! Enqueues the collection of coordinates
    void   launchCollection(const FmmPairKernelData& data, cudaStream_t stream) const;
    Groups groups() const
    {
        return { x_.data(), numLight_.data(), lightPlaces_.data(), numGroups_ };
    }
    Lists outer() const { return { outerEntries_.data(), outerCounts_.data(), capacity_ }; }
    Lists inner() const { return { innerEntries_.data(), innerCounts_.data(), capacity_ }; }

    const DeviceContext& deviceContext_;
    FmmShortListRadii    radii_;
    real                 longRadius_;
    int                  maxNumLight_;
    bool                 havePairsOfLight_;
    bool                 isPeriodic_;
    Interactions         lj_;
    // Force computations since the list was made
    int numUses_ = 0;

    Buffer<float2> parameters_;
    Buffer<int>    lightAtoms_;
    int            numBondedPairs_;
    Buffer<int2>   bondedAtoms_;

    int                numGroups_ = 0;
    Buffer<int>        places_;
    Buffer<float4>     x_;
    Buffer<int>        numLight_;
    Buffer<unsigned>   lightPlaces_;
    int                capacity_ = 64;
    Buffer<unsigned>   outerEntries_, innerEntries_;
    Buffer<int>        outerCounts_, innerCounts_, longest_;
    Buffer<BondedPair> bondedPairs_;
};

FmmShortList::Impl::Impl(const FmmLJSplit&        ljSplit,
                         const gmx_mtop_t&        mtop,
                         const FmmShortListRadii& radii,
                         const DeviceContext&     deviceContext,
                         const DeviceStream&      deviceStream) :
    deviceContext_(deviceContext),
    radii_(radii),
    longRadius_(fmmLongListRadius(ljSplit, radii.outer)),
    havePairsOfLight_(ljSplit.settings().havePairsOfLightAtoms),
    isPeriodic_(ljSplit.isPeriodic()),
    lj_(interactions(ljSplit))
{
    const FmmShortListTopology topology(ljSplit, mtop);
    GMX_RELEASE_ASSERT(topology.maxNumLight <= FmmLJSplit::c_maxNumLight,
                       "There are kernels for so many light atoms of a heavy one");
    maxNumLight_    = topology.maxNumLight;
    numBondedPairs_ = static_cast<int>(topology.bondedPairs.size());

    std::vector<float2> parameters(ljSplit.shortNbfp().size() / 2);
    for (size_t i = 0; i < parameters.size(); i++)
    {
        parameters[i] = make_float2(ljSplit.shortNbfp()[2 * i], ljSplit.shortNbfp()[2 * i + 1]);
    }
    std::vector<int2> bondedAtoms;
    for (const auto& [a, b] : topology.bondedPairs)
    {
        bondedAtoms.push_back(make_int2(a, b));
    }
    const auto copy = [&](auto* buffer, const auto& values)
    {
        buffer->resize(values.size(), deviceContext);
        copyToDeviceBuffer(
                buffer->buffer(), values.data(), 0, values.size(), deviceStream, GpuApiCallBehavior::Sync, nullptr);
    };
    copy(&parameters_, parameters);
    copy(&lightAtoms_, topology.lightAtoms);
    copy(&bondedAtoms_, bondedAtoms);
    bondedPairs_.resize(bondedAtoms.size(), deviceContext);
    longest_.resize(1, deviceContext);

    lj_.parameters = parameters_.data();
}

template<typename Function>
void FmmShortList::Impl::dispatch(Function function) const
{
    const auto withNumLight = [&](auto pairsOfLight)
    {
        switch (maxNumLight_)
        {
            case 1: function(std::integral_constant<int, 1>(), pairsOfLight); break;
            case 2: function(std::integral_constant<int, 2>(), pairsOfLight); break;
            default: function(std::integral_constant<int, 3>(), pairsOfLight); break;
        }
    };
    if (havePairsOfLight_)
    {
        withNumLight(std::true_type());
    }
    else
    {
        withNumLight(std::false_type());
    }
    checkDeviceError(cudaGetLastError(), "A kernel of the short list could not be launched.");
}

void FmmShortList::Impl::launchCollection(const FmmPairKernelData& data, cudaStream_t stream) const
{
    collectGroups<<<numBlocks(numGroups_), c_numThreads, 0, stream>>>(
            groups(),
            maxNumLight_,
            static_cast<const float4*>(data.xq),
            data.atomTypes,
            static_cast<const float3*>(data.shiftVectors));
}

void FmmShortList::Impl::make(const FmmLongListOnDevice& longList,
                              const FmmPairKernelData&   data,
                              const int                  numHeavySlots,
                              ArrayRef<const int>        slotOfAtom,
                              const DeviceStream&        deviceStream)
{
    GMX_RELEASE_ASSERT(slotOfAtom.size() < c_placeMask / 2,
                       "Entries of the short list have room for so many places");
    numUses_                  = 0;
    numGroups_                = numHeavySlots;
    const int    numAtoms     = static_cast<int>(slotOfAtom.size());
    const size_t num          = numGroups_;
    cudaStream_t stream       = deviceStream.stream();
    const auto*  shiftVectors = static_cast<const float3*>(data.shiftVectors);
    if (numGroups_ == 0)
    {
        return;
    }
    places_.resize(numAtoms, deviceContext_);
    copyToDeviceBuffer(
            places_.buffer(), slotOfAtom.data(), 0, numAtoms, deviceStream, GpuApiCallBehavior::Async, nullptr);
    x_.resize(num * (1 + maxNumLight_), deviceContext_);
    numLight_.resize(num, deviceContext_);
    lightPlaces_.resize(num * maxNumLight_, deviceContext_);
    outerCounts_.resize(num, deviceContext_);
    innerCounts_.resize(num, deviceContext_);
    cudaMemsetAsync(numLight_.data(), 0xff, num * sizeof(int), stream);
    cudaMemsetAsync(x_.data(), 0xff, num * (1 + maxNumLight_) * sizeof(float4), stream);
    findGroups<<<numBlocks(numAtoms), c_numThreads, 0, stream>>>(groups(),
                                                                 maxNumLight_,
                                                                 lightAtoms_.data(),
                                                                 places_.data(),
                                                                 numAtoms,
                                                                 static_cast<const float4*>(data.xq),
                                                                 shiftVectors,
                                                                 isPeriodic_);
    launchCollection(data, stream);
    if (numBondedPairs_ > 0)
    {
        findImages<<<numBlocks(numBondedPairs_), c_numThreads, 0, stream>>>(
                bondedAtoms_.data(),
                numBondedPairs_,
                places_.data(),
                static_cast<const float4*>(data.xq),
                shiftVectors,
                isPeriodic_,
                bondedPairs_.data());
    }
    int longest = 0;
    do
    {
        capacity_ = std::max(capacity_, longest + longest / 8);
        outerEntries_.resize(num * capacity_, deviceContext_);
        innerEntries_.resize(num * capacity_, deviceContext_);
        cudaMemsetAsync(outerCounts_.data(), 0, num * sizeof(int), stream);
        cudaMemsetAsync(longest_.data(), 0, sizeof(int), stream);
        if (longList.numSci > 0)
        {
            dispatch(
                    [&](auto maxNumLight, auto havePairsOfLight)
                    {
                        listHeavyAtoms<maxNumLight, havePairsOfLight>
                                <<<longList.numSci, dim3(c_clusterSize, c_clusterSize, 4), 0, stream>>>(
                                        static_cast<const ListEntry*>(longList.sci),
                                        static_cast<const FourClusters*>(longList.clusters),
                                        static_cast<const unsigned*>(longList.exclusions),
                                        groups(),
                                        shiftVectors,
                                        longRadius_ * longRadius_,
                                        radii_.outer * radii_.outer,
                                        outer());
                    });
        }
        findLongest<<<std::min(64, numBlocks(num)), c_numThreads, 0, stream>>>(
                outerCounts_.data(), numGroups_, longest_.data());
        copyFromDeviceBuffer(
                &longest, longest_.buffer(), 0, 1, deviceStream, GpuApiCallBehavior::Sync, nullptr);
    } while (longest > capacity_);
}

void FmmShortList::Impl::launchForces(const FmmPairKernelData& data,
                                      const bool               computeEnergyOrVirial,
                                      const DeviceStream&      deviceStream)
{
    if (numGroups_ == 0)
    {
        return;
    }
    cudaStream_t stream       = deviceStream.stream();
    const auto*  shiftVectors = static_cast<const float3*>(data.shiftVectors);
    auto*        f            = static_cast<float3*>(data.f);
    auto*        shiftForces  = static_cast<float3*>(data.shiftForces);
    const int    blocks       = numBlocks(static_cast<size_t>(numGroups_) * c_teamSize);
    const int    forceBlocks  = blocks * (c_numThreads / c_numForceThreads);
    const bool   prune =
            numUses_ == 0 || (radii_.pruneInterval > 0 && numUses_ % radii_.pruneInterval == 0);
    numUses_++;

    launchCollection(data, stream);
    dispatch(
            [&](auto maxNumLight, auto havePairsOfLight)
            {
                if (prune)
                {
                    pruneLists<maxNumLight, havePairsOfLight><<<blocks, c_numThreads, 0, stream>>>(
                            groups(), shiftVectors, radii_.inner * radii_.inner, outer(), inner());
                }
                if (computeEnergyOrVirial)
                {
                    computeForces<maxNumLight, havePairsOfLight, true>
                            <<<forceBlocks, c_numForceThreads, 0, stream>>>(
                                    groups(), inner(), lj_, shiftVectors, f, shiftForces, data.energy);
                }
                else
                {
                    computeForces<maxNumLight, havePairsOfLight, false>
                            <<<forceBlocks, c_numForceThreads, 0, stream>>>(
                                    groups(), inner(), lj_, shiftVectors, f, shiftForces, data.energy);
                }
            });
    if (numBondedPairs_ > 0)
    {
        auto* kernel = computeEnergyOrVirial ? computeBondedPairs<true> : computeBondedPairs<false>;
        kernel<<<numBlocks(numBondedPairs_), c_numThreads, 0, stream>>>(bondedPairs_.data(),
                                                                        numBondedPairs_,
                                                                        static_cast<const float4*>(data.xq),
                                                                        data.atomTypes,
                                                                        lj_,
                                                                        shiftVectors,
                                                                        f,
                                                                        shiftForces,
                                                                        data.energy);
        checkDeviceError(cudaGetLastError(), "A kernel of the short list could not be launched.");
    }
}

FmmShortList::FmmShortList(const FmmLJSplit&        ljSplit,
                           const gmx_mtop_t&        mtop,
                           const FmmShortListRadii& radii,
                           const DeviceContext&     deviceContext,
                           const DeviceStream&      deviceStream) :
    impl_(std::make_unique<Impl>(ljSplit, mtop, radii, deviceContext, deviceStream))
{
}

FmmShortList::~FmmShortList() = default;

void FmmShortList::make(const FmmLongListOnDevice& longList,
                        const FmmPairKernelData&   data,
                        const int                  numHeavySlots,
                        ArrayRef<const int>        slotOfAtom,
                        const DeviceStream&        deviceStream)
{
    impl_->make(longList, data, numHeavySlots, slotOfAtom, deviceStream);
}

void FmmShortList::launchForces(const FmmPairKernelData& data,
                                const bool               computeEnergyOrVirial,
                                const DeviceStream&      deviceStream)
{
    impl_->launchForces(data, computeEnergyOrVirial, deviceStream);
}

} // namespace gmx
