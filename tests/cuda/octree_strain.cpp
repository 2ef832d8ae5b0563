/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The strain derivative of the octree's far energy on the GPU is the CPU's in double precision, level by level, and
 * what a thread computes for it is the same on the host. */
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/cuda.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/suites.h"
#include "support/systems.h"

extern "C"
{
#define restrict __restrict
#include "fmm/cpu/state.h"

    /* fmm/cpu/octree/operators.h, as the linker has it (fmm/math/names.h) */
    void fmm_m2l_d(gmxfmm_plan* plan, int level, double* strain);
    void fmm_l2l_d(gmxfmm_plan* plan, int level, double* strain);
}
#include "cuda/octree/operators.h"
#include "cuda/octree/strain.h"
#include "fmm/math/strain.h"
#include "fmm/math/theta.h"

using namespace fmmtest;

namespace
{

using Strain = std::array<double, 6>;

struct Case
{
    const char* name;
    Mat3        box; /* zeros: open */
    int         order, depth, separation, particles;
    int         truncate = 0; /* m2l_truncate */
};

/* A plan in double precision on the CPU that has executed, so that all levels have expansions. */
std::unique_ptr<Plan> makePlan(const Case& c)
{
    const bool   open    = c.box[0] == 0;
    const System s       = open ? droplet(c.particles, 2, 5) : ions(c.box, c.particles, 5);
    auto         options = depthOptions(GMXFMM_M2L_NAIVE, c.order, c.depth, c.separation);
    options.m2l_truncate = c.truncate;
    options.device       = GMXFMM_CPU; /* whatever GMXFMM_TESTS_DEVICE says */
    auto plan            = std::make_unique<Plan>(s, open ? withBoundary(options, Boundary::Open) : options);
    plan->execute(s.x);
    return plan;
}

template <class R>
std::vector<R> converted(const void* field, std::size_t n)
{
    const auto* x = static_cast<const double*>(field);
    return std::vector<R>(x, x + n);
}

/* ---- what a thread computes, by threads one after the other ---- */

/* Displacements, centres of children and their harmonics, and Theta. */
template <class R>
struct HostTables
{
    std::vector<double> strain;
    std::vector<R>      theta;
    std::size_t         row;

    explicit HostTables(const gmxfmm_plan& plan)
        : strain(strain_table_size(plan.far.order, plan.domain.tree->num_vectors)),
          row(static_cast<std::size_t>(harm_size(2 * plan.far.order + 1)))
    {
        std::vector<int> orders(static_cast<std::size_t>(plan.domain.tree->num_vectors), plan.far.order);
        if (plan.domain.tree->truncation != nullptr)
        {
            orders.assign(plan.domain.tree->truncation, plan.domain.tree->truncation + plan.domain.tree->num_vectors);
        }
        fmm_octree_strain_table(plan.far.order, plan.domain.tree->num_vectors, plan.domain.tree->vector[0],
                                orders.data(), plan.domain.cells.cell, strain.data());
        std::vector<double> one(row);
        for (int v = 0; v < plan.domain.tree->num_vectors; v++)
        {
            theta_fill(2 * plan.far.order + 1, &strain[c_strainVector * static_cast<std::size_t>(v)], one.data());
            theta.insert(theta.end(), one.begin(), one.end());
        }
    }
};

template <class R>
Strain m2lOnHost(const gmxfmm_plan& plan, int l)
{
    const fmm_tree&     tree  = *plan.domain.tree;
    const fmm_level &   upper = plan.cpu->level[l - 1], &lower = plan.cpu->level[l];
    const HostTables<R> tables(plan);
    const auto m = converted<R>(lower.multipole, static_cast<std::size_t>(harm_size(plan.far.order)) * lower.stride);
    Strain     strain{};
    for (int target = 0, slab = 0; target < lower.num; target++)
    {
        while (target >= lower.slab[slab + 1])
        {
            slab++;
        }
        for (int t = 0; t < tree.num_list[slab]; t++)
        {
            const fmm_translation& x    = tree.list[slab][t];
            const auto             cell = static_cast<std::size_t>(lower.parent[target]);
            const auto             v    = static_cast<std::size_t>(x.vector);
            const int              near =
                upper.near[cell * static_cast<std::size_t>(tree.num_near) + static_cast<std::size_t>(x.near)];
            const int     source = upper.child[8 * static_cast<std::size_t>(near) + static_cast<std::size_t>(x.octant)];
            const double* r      = &tables.strain[c_strainVector * v];
            R             force[3] = {0, 0, 0};
            for (int share = 0; share < 3 && source < lower.num && r[3] != 0; share++)
            {
                strain_add_m2l_force(plan.far.order, static_cast<int>(r[4]), &tables.theta[v * tables.row],
                                     &m[static_cast<std::size_t>(source)], &m[static_cast<std::size_t>(target)],
                                     lower.stride, share, 3, force);
            }
            const double pulled[3] = {static_cast<double>(force[0]), static_cast<double>(force[1]),
                                      static_cast<double>(force[2])};
            fmm_add_symmetric(-0.5 * r[3], r, pulled, strain.data());
        }
    }
    return strain;
}

template <class R>
Strain l2lOnHost(const gmxfmm_plan& plan, int l)
{
    const fmm_tree&     tree  = *plan.domain.tree;
    const fmm_level &   upper = plan.cpu->level[l], &lower = plan.cpu->level[l + 1];
    const HostTables<R> tables(plan);
    const auto          n     = static_cast<std::size_t>(harm_size(plan.far.order));
    const auto          m     = converted<R>(lower.multipole, n * lower.stride);
    const auto          local = converted<R>(upper.local, n * upper.stride);
    const double *      s     = &tables.strain[strain_child_at(tree.num_vectors)],
                 *upsilon     = &tables.strain[strain_upsilon_at(tree.num_vectors)];
    Strain strain{};
    for (int parent = 0; parent < upper.num; parent++)
    {
        for (std::size_t octant = 0; octant < 8; octant++)
        {
            const int child    = upper.child[8 * static_cast<std::size_t>(parent) + octant];
            double    force[3] = {0, 0, 0};
            for (int share = 0; share < 2 && child < lower.num; share++)
            {
                strain_add_l2l_force(plan.far.order, upsilon + octant * n, &local[static_cast<std::size_t>(parent)],
                                     upper.stride, &m[static_cast<std::size_t>(child)], lower.stride, share, 2, force);
            }
            fmm_add_symmetric(-1, s + octant * c_strainVector, force, strain.data());
        }
    }
    return strain;
}

/* ---- the same on the device ---- */

class DeviceMemory
{
  public:
    template <class T>
    T* put(const T* from, std::size_t n)
    {
        void* to = nullptr;
        EXPECT_EQ(cudaMalloc(&to, n * sizeof(T) + 1), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(to, from, n * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
        all_.push_back(to);
        return static_cast<T*>(to);
    }
    DeviceMemory() = default;
    ~DeviceMemory()
    {
        for (void* memory : all_)
        {
            cudaFree(memory);
        }
    }
    DeviceMemory(const DeviceMemory&)            = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

  private:
    std::vector<void*> all_;
};

template <class R>
class Device
{
  public:
    explicit Device(const gmxfmm_plan& plan) : plan_(plan)
    {
        EXPECT_EQ(fmm_octree_create(&operators_, plan.domain.tree, &plan.domain.cells, plan.far.order,
                                    sizeof(R) == sizeof(double)),
                  GMXFMM_OK);
        EXPECT_EQ(fmm_octree_reserve(operators_, GMXFMM_M2L_NAIVE, plan.cpu->level[plan.domain.tree->depth].num),
                  GMXFMM_OK);
        strain_ = memory_.put(Strain{}.data(), 6);
    }
    ~Device()
    {
        fmm_octree_destroy(operators_);
    }
    Device(const Device&)            = delete;
    Device& operator=(const Device&) = delete;

    template <class Function>
    Strain strain(Function* function, int upper, double scale)
    {
        const fmm_octree_level a = level(upper), b = level(upper + 1);
        const Strain           once = run(function, a, b, scale), twice = run(function, a, b, scale);
        for (std::size_t i = 0; i < 6; i++) /* adds, and the same bits */
        {
            EXPECT_EQ(twice[i], 2 * once[i]);
        }
        return once;
    }

  private:
    template <class Function>
    Strain run(Function* function, const fmm_octree_level& upper, const fmm_octree_level& lower, double scale)
    {
        Strain out{};
        EXPECT_EQ(function(operators_, &upper, &lower, scale, strain_, nullptr), GMXFMM_OK)
            << fmm_octree_message(operators_);
        EXPECT_EQ(cudaMemcpy(out.data(), strain_, sizeof(out), cudaMemcpyDeviceToHost), cudaSuccess);
        return out;
    }
    /* A level as the host has it now. */
    fmm_octree_level level(int l)
    {
        const fmm_level& h     = plan_.cpu->level[l];
        const auto       cells = static_cast<std::size_t>(h.num) + 1,
                   near        = static_cast<std::size_t>(plan_.domain.tree->num_near),
                   size        = static_cast<std::size_t>(harm_size(plan_.far.order)) * h.stride;
        fmm_octree_level d     = {};
        d.num                  = h.num;
        d.stride               = h.stride;
        d.parent               = l > 0 ? memory_.put(h.parent, cells - 1) : nullptr;
        d.child                = l < plan_.domain.tree->depth ? memory_.put(h.child, 8 * cells) : nullptr;
        d.near                 = memory_.put(h.near, near * cells);
        d.multipole            = memory_.put(converted<R>(h.multipole, size).data(), size);
        d.local                = memory_.put(converted<R>(h.local, size).data(), size);
        std::copy(h.slab, h.slab + 9, d.slab);
        return d;
    }

    const gmxfmm_plan&    plan_;
    DeviceMemory          memory_;
    fmm_octree_operators* operators_ = nullptr;
    double*               strain_    = nullptr;
};

double largest(const Strain& s)
{
    return maxDifference(s, Strain{});
}

/* Rounding: the same products in another order, more of them at higher orders; pairs' parts cancel, as charges have
 * both signs. In single precision the six sums are in double, but multipoles, Theta and forces carry 6e-8 each. */
template <class R>
double tolerance(int p)
{
    return sizeof(R) == sizeof(double) ? 2e-15 * (10 + p) : 2e-7 * (10 + p);
}

class CudaOctreeStrain : public testing::TestWithParam<Case>
{
  protected:
    /* Compares m2l(upper level) and l2l(upper level) with the CPU's of all levels. */
    template <class R, class M2l, class L2l>
    void compare(gmxfmm_plan* plan, M2l m2l, L2l l2l)
    {
        const int depth = plan->domain.tree->depth;
        for (int l = 0; l < depth; l++)
        {
            const double scale = std::ldexp(1.0, l + 1 - depth);
            Strain       expected{};
            fmm_m2l_d(plan, l + 1, expected.data());
            const Strain found = m2l(l, scale);
            EXPECT_LE(maxDifference(found, expected), tolerance<R>(plan->far.order) * largest(expected))
                << "M2L to level " << l + 1;
            EXPECT_TRUE(largest(expected) > 0 || l + 1 < depth);
        }
        for (int l = 0; l < depth; l++)
        {
            const double scale = std::ldexp(1.0, l + 1 - depth);
            const Strain found = l2l(l, scale); /* first: the CPU's adds to the next level's locals */
            Strain       expected{};
            fmm_l2l_d(plan, l, expected.data());
            EXPECT_LE(maxDifference(found, expected), tolerance<R>(plan->far.order) * largest(expected))
                << "L2L from level " << l;
            EXPECT_TRUE(largest(expected) > 0 || l + 1 < depth || plan->far.order == 0);
        }
    }

    template <class R>
    void onHost()
    {
        const auto   plan   = makePlan(GetParam());
        gmxfmm_plan* p      = plan->get();
        const auto   scaled = [](Strain s, double scale)
        {
            for (double& x : s)
            {
                x *= scale;
            }
            return s;
        };
        compare<R>(
            p, [&](int l, double scale) { return scaled(m2lOnHost<R>(*p, l + 1), scale); },
            [&](int l, double scale) { return scaled(l2lOnHost<R>(*p, l), scale); });
    }

    template <class R>
    void onDevice()
    {
        if (!haveCuda())
        {
            GTEST_SKIP() << "no CUDA device";
        }
        const auto plan = makePlan(GetParam());
        compare<R>(
            plan->get(),
            [&](int l, double scale) { return Device<R>(*plan->get()).strain(fmm_octree_m2l_strain, l, scale); },
            [&](int l, double scale) { return Device<R>(*plan->get()).strain(fmm_octree_l2l_strain, l, scale); });
    }
};

} // namespace

TEST_P(CudaOctreeStrain, ByTheSameFunctionsOnTheHost)
{
    onHost<double>();
}

TEST_P(CudaOctreeStrain, ByTheSameFunctionsOnTheHostSingle)
{
    onHost<float>();
}

TEST_P(CudaOctreeStrain, OnTheDevice)
{
    onDevice<double>();
}

TEST_P(CudaOctreeStrain, OnTheDeviceSingle)
{
    onDevice<float>();
}

INSTANTIATE_TEST_SUITE_P(Cells,
                         CudaOctreeStrain,
                         testing::Values(Case{"Order0", {3, 0, 0, 0, 3, 0, 0, 0, 3}, 0, 2, 1, 200},
                                         Case{"Order1TwoLayers", {3, 0, 0, 0, 3, 0, 0, 0, 3}, 1, 2, 2, 200},
                                         Case{"Order3Brick", {3, 0, 0, 0, 3.6, 0, 0, 0, 5.5}, 3, 2, 1, 300},
                                         Case{"Order6Sparse", {0, 0, 0, 0, 0, 0, 0, 0, 0}, 6, 4, 1, 150},
                                         Case{"Order8", {3, 0, 0, 0, 3.6, 0, 0, 0, 2.5}, 8, 2, 1, 200},
                                         Case{"Order8Truncated", {3, 0, 0, 0, 3.6, 0, 0, 0, 2.5}, 8, 2, 1, 200, 1},
                                         Case{"Order7TruncatedSparse", {0, 0, 0, 0, 0, 0, 0, 0, 0}, 7, 4, 1, 150, 1},
                                         Case{"Order8TwoLayers", {0, 0, 0, 0, 0, 0, 0, 0, 0}, 8, 3, 2, 60},
                                         Case{"Order13TwoLayers", {3, 0, 0, 0, 3, 0, 0, 0, 3}, 13, 1, 2, 20},
                                         Case{"Order20", {3, 0, 0, 0, 3.3, 0, 0, 0, 2.8}, 20, 1, 1, 30},
                                         Case{"Order20Sparse", {0, 0, 0, 0, 0, 0, 0, 0, 0}, 20, 3, 1, 15}),
                         parameterName<Case>);
