/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree's operators between cells on the device, one level at a time: M2M, L2L and M2L in four variants against
 * the formulas in double precision, at every order, in both precisions, with one and two near layers, on dense and
 * sparse levels. */
#include <cstring>
#include <memory>
#include <tuple>

#include <gtest/gtest.h>

#include "support/cuda.h"
#include "support/octree_device.h"
#include "support/octree_formulas.h"

using namespace fmmtest;

namespace
{

struct Kind
{
    const char* name;
    int         depth, separation;
    bool        periodic;
    double      fill, stretch; /* part of the cells that are occupied; edges 1, stretch, 1 / stretch */
    int         truncate = 0;  /* m2l_truncate */
};

/* Dense levels meet all displacements in full warps; sparse ones have lists with holes, slabs of unequal length and
 * parents with one child. Stretched bricks have operators that no symmetry but mirrors relates. */
const Kind c_kinds[] = {{"Dense", 3, 1, true, 1, 1},
                        {"SparseBricks", 4, 1, false, 0.3, 1.2},
                        {"DenseBricksTwoLayers", 3, 2, true, 1, 1.1},
                        {"SparseTwoLayers", 3, 2, false, 0.5, 1},
                        {"FewCells", 3, 1, false, 0.02, 1}};

/* With translations of the reduced order: many tiles of targets, and few that share lists. */
const Kind c_truncated[] = {{"TruncatedDense", 4, 1, true, 1, 1, 1},
                            {"TruncatedSparseBricks", 4, 1, false, 0.3, 1.2, 1},
                            {"TruncatedSparseTwoLayers", 3, 2, false, 0.5, 1, 1},
                            {"TruncatedFewCells", 3, 1, false, 0.02, 1, 1}};

/* A coefficient is a sum over 8 to 875 cells, whose terms are the results of some hundred additions and products each;
 * if those were rounded all in one direction, by 6e-8 at the most, ... */
template <class R>
double rounding()
{
    return 6e-6;
}
/* ... and in double precision operators themselves, made by recurrences over up to 48 degrees, are off by more than one
 * rounding of 1e-16: ten times as many. */
template <>
double rounding<double>()
{
    return 2e-13;
}

using Case = std::tuple<Kind, int>;

std::string caseName(const testing::TestParamInfo<Case>& info)
{
    return std::get<0>(info.param).name + std::string("Order") + std::to_string(std::get<1>(info.param));
}

class CudaOctree : public testing::TestWithParam<Case>
{
  protected:
    void SetUp() override
    {
        if (!haveCuda())
        {
            GTEST_SKIP() << "no CUDA device";
        }
        const Kind& k = std::get<0>(GetParam());
        level_    = std::make_unique<Level>(k.depth, order(), k.separation, k.periodic, k.fill, k.stretch, k.truncate);
        formulas_ = std::make_unique<Formulas>(*level_);
    }
    static int order()
    {
        return std::get<1>(GetParam());
    }

    template <class R>
    void expectM2m()
    {
        DeviceLevels<R> device(*level_);
        device.expect(fmm_octree_m2m(device.ops, &device.upper, &device.lower, nullptr), "m2m");
        EXPECT_LT(formulas_->m2m_error(device.multipoles(device.upper)), rounding<R>());
    }
    template <class R>
    void expectL2l()
    {
        DeviceLevels<R> device(*level_);
        device.set_upper_locals();
        device.expect(fmm_octree_l2l(device.ops, &device.upper, &device.lower, nullptr), "l2l");
        EXPECT_LT(formulas_->l2l_error(device.locals(device.lower)), rounding<R>());
    }
    /* What M2L adds to locals that are zero. */
    template <class R>
    std::vector<R> translate(DeviceLevels<R>* device, const M2lMethod& method)
    {
        device->clear_locals();
        device->expect(method.function(device->ops, &device->upper, &device->lower, nullptr), method.name);
        return device->locals(device->lower);
    }
    template <class R>
    void expectM2l(const M2lMethod& method, int room)
    {
        DeviceLevels<R> device(*level_);
        if (!device.reserve(method.m2l, room))
        {
            GTEST_SKIP() << device.message();
        }
        const std::vector<R> first = translate(&device, method), second = translate(&device, method);
        EXPECT_LT(formulas_->m2l_error(first), rounding<R>());
        EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(R)), 0) << "not the same twice";
    }
    int num_cells() const
    {
        return level_->lower.num;
    }
    /* room: how many cells memory is reserved for */
    void expectM2lOf(gmxfmm_m2l m2l, int room)
    {
        for (const M2lMethod& method : m2l_methods())
        {
            if (method.m2l == m2l && order() <= method.max_order)
            {
                expectM2l<float>(method, room);
                expectM2l<double>(method, room);
            }
        }
    }

    std::unique_ptr<Level>    level_;
    std::unique_ptr<Formulas> formulas_;
};

/* Orders, and translations of two of them, that rotation alone has. */
class CudaOctreeRotation : public CudaOctree
{
};

class CudaOctreeParts : public CudaOctree
{
};

} // namespace

TEST_P(CudaOctree, M2m)
{
    expectM2m<float>();
    expectM2m<double>();
}

TEST_P(CudaOctree, L2l)
{
    expectL2l<float>();
    expectL2l<double>();
}

TEST_P(CudaOctree, M2lByRotation)
{
    expectM2lOf(GMXFMM_M2L_ROTATION, num_cells());
}

TEST_P(CudaOctree, M2lBySymmetry)
{
    expectM2lOf(GMXFMM_M2L_SYMMETRIC, num_cells());
}

TEST_P(CudaOctree, M2lByDynamicParallelism)
{
    expectM2lOf(GMXFMM_M2L_DYNAMIC, num_cells());
}

TEST_P(CudaOctree, M2lByLoops)
{
    expectM2lOf(GMXFMM_M2L_NAIVE, num_cells());
}

INSTANTIATE_TEST_SUITE_P(Levels,
                         CudaOctree,
                         testing::Combine(testing::ValuesIn(c_kinds), testing::Range(0, FMM_OCTREE_MAX_ORDER + 1)),
                         caseName);

TEST_P(CudaOctreeRotation, M2l)
{
    expectM2lOf(GMXFMM_M2L_ROTATION, num_cells());
}

/* Rotation turns multipoles to some planes at a time where there is no memory for all; that for a third of the cells is
 * enough. */
TEST_P(CudaOctreeParts, M2lByRotation)
{
    expectM2lOf(GMXFMM_M2L_ROTATION, num_cells() / 3);
}

INSTANTIATE_TEST_SUITE_P(
    Levels,
    CudaOctreeParts,
    testing::Combine(testing::Values(c_kinds[0], c_kinds[1], c_kinds[2], c_kinds[3], c_truncated[1]),
                     testing::Values(0, 3, 8, 13, 20)),
    caseName);

INSTANTIATE_TEST_SUITE_P(Truncated,
                         CudaOctreeRotation,
                         testing::Combine(testing::ValuesIn(c_truncated),
                                          testing::Range(0, FMM_OCTREE_MAX_ROTATION_ORDER + 1)),
                         caseName);

INSTANTIATE_TEST_SUITE_P(HighOrder,
                         CudaOctreeRotation,
                         testing::Combine(testing::Values(c_kinds[0], c_kinds[3]),
                                          testing::Range(FMM_OCTREE_MAX_ORDER + 1, FMM_OCTREE_MAX_ROTATION_ORDER + 1)),
                         caseName);
