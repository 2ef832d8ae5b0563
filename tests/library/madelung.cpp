/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Energies of crystals, known to many digits: with nearest neighbours at distance 1 every potential is -+M. */
#include <tuple>

#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

struct Crystal
{
    const char* name;
    System (*make)(int cells, const Vec3& shift);
    int    cells; /* along each edge */
    double constant;
};

/* so that no ion stands on a cell face or centre */
const Vec3 shift = {0.123, 0.456, -0.789};

const Crystal crystals[] = {{"SodiumChloride", sodiumChloride, 3, 1.747564594633182},
                            {"CaesiumChloride", caesiumChloride, 5, 1.762674773070988},
                            {"Zincblende", zincblende, 3, 1.638055053388789}};

using CrystalAndMethod = std::tuple<Crystal, gmxfmm_m2l>;

std::string crystalName(const testing::TestParamInfo<CrystalAndMethod>& info)
{
    return std::get<0>(info.param).name + methodWord(std::get<1>(info.param));
}

class Madelung : public testing::TestWithParam<CrystalAndMethod>
{
  protected:
    static gmxfmm_m2l method()
    {
        return std::get<1>(GetParam());
    }
    void expectCrystal(const gmxfmm_options& options, double tolerance)
    {
        const Crystal& crystal = std::get<0>(GetParam());
        const System   s       = crystal.make(crystal.cells, shift);
        const Result   r       = solve(s, options);
        for (std::size_t i = 0; i < s.size(); i++)
        {
            ASSERT_NEAR(r.potential[i], -s.q[i] * crystal.constant, tolerance) << "ion " << i;
        }
        EXPECT_NEAR(r.energy / static_cast<double>(s.size()), -0.5 * crystal.constant, tolerance);
        /* by symmetry; the force between neighbours is 1 */
        EXPECT_LT(rms(r.force), tolerance);
        EXPECT_NEAR(trace(r.virial), -0.5 * r.energy, tolerance * std::fabs(r.energy));
    }
};

} // namespace

/* Order 20 with two layers: (0.27 per order)^20 of the first neglected term is below rounding of 1e-12. */
TEST_P(Madelung, IsExactAtOrder20)
{
    expectCrystal(methodOptions(method(), 20, 5, 2), 1e-11);
}

/* Rounding of single precision, 6e-8, times the terms of some hundred neighbours of alternating sign. On an octree
 * those of some thousand cells of the levels above are added, with net charges up to 4 each. */
TEST_P(Madelung, IsGoodInSinglePrecision)
{
    expectCrystal(methodOptions(method(), 14, 5, 2, GMXFMM_SINGLE), method() == GMXFMM_M2L_FFT ? 1e-5 : 5e-5);
}

/* The accuracy asked for is relative to forces; a crystal has none, so here it is relative to those of neighbours. */
TEST_P(Madelung, IsAsGoodAsAsked)
{
    expectCrystal(automatic(method()), 4e-4);
}

INSTANTIATE_TEST_SUITE_P(Crystals,
                         Madelung,
                         testing::Combine(testing::ValuesIn(crystals), testing::ValuesIn(methods())),
                         crystalName);
