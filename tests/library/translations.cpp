/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fewer and shorter translations, m2l_to_parent and m2l_truncate: what they may cost in accuracy (Gumerov & Duraiswami
 * 2008, section 3.4), and that energies, forces and virial still belong together. */
#include <tuple>

#include <gtest/gtest.h>

#include "support/derivatives.h"
#include "support/ewald.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

gmxfmm_options shortened(gmxfmm_m2l m2l, int order, int depth, int separation, bool toParent, int truncate)
{
    gmxfmm_options options = depthOptions(m2l, order, depth, separation);
    options.m2l_to_parent  = toParent;
    options.m2l_truncate   = truncate;
    return options;
}

using MethodAndLayers = std::tuple<gmxfmm_m2l, int>;

std::string layersName(const testing::TestParamInfo<MethodAndLayers>& info)
{
    return methodWord(std::get<0>(info.param)) + "Separation" + std::to_string(std::get<1>(info.param));
}

class Translations : public testing::TestWithParam<MethodAndLayers>
{
  protected:
    static gmxfmm_m2l method()
    {
        return std::get<0>(GetParam());
    }
    static int separation()
    {
        return std::get<1>(GetParam());
    }
};

} // namespace

/* By Gumerov & Duraiswami's rule (m2l_truncate 2) every translation keeps the bound of the worst one, that its error
 * falls by eta* = a / (D - a) an order, a being half the diagonal of a cell and D = ws + 1 edges (eqs. 20 to 24). At
 * full order most translations are far better than that for most particles; with less, all come closer to the bound,
 * but not beyond it: it starts from the error of order 0.
 */
TEST_P(Translations, StayWithinTheBoundOfTheWorst)
{
    const double   a = 0.5 * std::sqrt(3.0), ratio = a / (separation() + 1 - a);
    const System   s         = ions(boxOfVolume(boxTypes()[0], 500), 500, 3);
    const Solution reference = ewald(s);
    const double   start     = relativeRms(solve(s, depthOptions(method(), 0, 2, separation())).force, reference.force);
    for (int order : isSlow(method()) ? std::vector<int>{4, 12} : std::vector<int>{4, 8, 12, 16})
    {
        const double bound = start * std::pow(ratio, order);
        const auto   error = [&](bool toParent, int truncate)
        {
            return relativeRms(solve(s, shortened(method(), order, 2, separation(), toParent, truncate)).force,
                               reference.force);
        };
        const double full = error(false, 0);
        EXPECT_LT(full, bound) << "order " << order;
        EXPECT_LT(error(true, 0), bound) << "order " << order;
        EXPECT_LT(error(false, 2), bound) << "order " << order;
        EXPECT_LT(error(true, 2), bound) << "order " << order;
        /* by the mean square no translation adds more than the worst do at full order, and those are 6 x 9, straight
         * across a face, of 189 or 875 */
        const double growth = std::sqrt((separation() == 1 ? 189 : 875) / 54.0);
        EXPECT_LT(error(false, 1), growth * full) << "order " << order;
        EXPECT_LT(error(true, 1), growth * error(true, 0)) << "order " << order;
    }
}

/* An energy with truncated translations has the gradient and the virial that it is given with: the one from A to B is
 * truncated as the one from B to A. (Not so with translations to parents. A child's expansion about its own centre goes
 * to the other's parent, so that action and reaction are equal to truncation only.) */
TEST_P(Translations, TruncatedKeepForceAndVirialWithTheEnergy)
{
    System s               = ions(boxOfVolume(boxTypes()[0], 64), 64, 9);
    s.q[3]                 = 1.7;
    gmxfmm_options options = shortened(method(), 5, 2, separation(), false, 1);
    options.reproducible   = 1; /* as in virial.cpp */
    Plan         plan(s, options);
    const Result r = plan.execute(s.x);
    for (std::size_t k = 0; k < s.x.size(); k += 17)
    {
        expectGradient(&plan, s, r, k, 1e-3, 1e-8); /* as in gradient.cpp */
    }
    expectStrainDerivatives(s, options, {0, 4, 8});
}

/* ... where energy, forces and virial are those of the system nevertheless, to truncation: 0.41^p, here 1e-6. */
TEST_P(Translations, ToParentsGiveForceAndVirial)
{
    const int order = separation() == 1 ? 30 : 16;
    if (isSlow(method()) && separation() == 1)
    {
        GTEST_SKIP() << "order 30 takes long; with two layers the same is tested";
    }
    System s                 = ions(boxOfVolume(boxTypes()[0], 64), 64, 9);
    s.q[3]                   = 1.7;
    const Solution reference = ewald(s);
    const Result   r         = solve(s, shortened(method(), order, 2, separation(), true, 0));
    EXPECT_LT(relativeRms(r.force, reference.force), 1e-6);
    EXPECT_NEAR(r.energy, reference.energy, 1e-6 * std::fabs(reference.energy));
    EXPECT_LT(maxDifference(r.virial, reference.virial), 1e-6 * std::fabs(reference.energy));
    EXPECT_NEAR(trace(r.virial), -0.5 * r.energy, 1e-12 * std::fabs(r.energy));
}

/* By default rotation truncates, and no other method does. */
TEST(TranslationsByDefault, AreTruncatedWithRotation)
{
    const System s = ions(boxOfVolume(boxTypes()[0], 64), 64, 9);
    for (const gmxfmm_m2l m2l : octreeMethods())
    {
        gmxfmm_options options = shortened(m2l, 6, 2, 1, false, GMXFMM_AUTO);
        const Result   found   = solve(s, options);
        options.m2l_truncate   = m2l == GMXFMM_M2L_ROTATION;
        EXPECT_EQ(found.force, solve(s, options).force) << gmxfmm_m2l_name(m2l);
        options.m2l_truncate = m2l != GMXFMM_M2L_ROTATION;
        EXPECT_NE(found.force, solve(s, options).force) << gmxfmm_m2l_name(m2l);
    }
}

INSTANTIATE_TEST_SUITE_P(Methods,
                         Translations,
                         testing::Combine(testing::ValuesIn(octreeMethods()), testing::Values(1, 2)),
                         layersName);
