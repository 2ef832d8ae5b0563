/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests the choice of the first GPU's share of the near field by times of whole steps
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmshares.h"

#include <algorithm>
#include <functional>
#include <random>

#include <gtest/gtest.h>

namespace gmx
{
namespace
{

/*! \brief Returns the share that is chosen with these times
 *
 * \param[in] first  Share to begin with
 * \param[in] time   Time of a step with a share
 */
double chosen(const double first, const std::function<double(double)>& time)
{
    FmmShareTuner tuner(first);
    int           numTimes = 0;
    while (!tuner.isDone() && numTimes < 100)
    {
        EXPECT_GE(tuner.share(), 0);
        EXPECT_LT(tuner.share(), 1);
        tuner.add(time(tuner.share()));
        numTimes++;
    }
    EXPECT_LE(numTimes, 16);
    return tuner.share();
}

//! The slower of two GPUs, of which the first has other work that takes so long
std::function<double(double)> besideWork(const double work)
{
    return [work](double share) { return std::max(work + 0.4 * share, 0.1 + 0.4 * (1 - share)); };
}

TEST(FmmShareTunerTest, FindsWhatIsFastest)
{
    for (const double first : { 0.0, 0.03, 0.25, 0.5, 0.9 })
    {
        // The times are equal at (0.5 - work) / 0.8; halves of the last change of the share are not tried
        EXPECT_NEAR(chosen(first, besideWork(0.3)), 0.25, 0.025) << first;
        EXPECT_NEAR(chosen(first, besideWork(0.1)), 0.5, 0.025) << first;
        EXPECT_NEAR(chosen(first, besideWork(0.6)), 0, 0.025) << first;
        EXPECT_NEAR(chosen(first, besideWork(-0.4)), 0.95, 0.025) << first;
    }
}

TEST(FmmShareTunerTest, EndsWhereTimesVary)
{
    std::mt19937                     generator(7);
    std::uniform_real_distribution<> noise(0.99, 1.01);
    for (int i = 0; i < 100; i++)
    {
        const auto   time  = besideWork(0.3);
        const double share = chosen(0.03, [&](double s) { return noise(generator) * time(s); });
        EXPECT_LT(time(share), 1.05 * time(0.25));
    }
}

TEST(FmmShareTunerTest, KeepsTheFirstWhereNothingIsFaster)
{
    EXPECT_EQ(chosen(0.4, [](double) { return 1.0; }), 0.4);
    EXPECT_EQ(chosen(0, [](double share) { return 1 + share; }), 0);
}

TEST(FmmShareTunerTest, ChangesNothingAfterItsEnd)
{
    FmmShareTuner tuner(0.4);
    while (!tuner.isDone())
    {
        tuner.add(1);
    }
    tuner.add(0.1);
    EXPECT_EQ(tuner.share(), 0.4);
}

} // namespace
} // namespace gmx
