/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests the choice of nstlist by times of steps
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmlisttuner.h"

#include <cmath>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gromacs/fmm/fmmchoice.h"
#include "gromacs/mdtypes/inputrec.h"

namespace gmx
{
namespace
{

//! Time of a step in s with a list for so many steps
using StepTime = std::function<double(int)>;

//! What a run came to
struct Outcome
{
    int              nstlist;
    int64_t          numSteps = 0;
    double           seconds  = 0;
    std::vector<int> tried;
};

//! Runs from one multiple of nstlist to the next until nothing more is tried
Outcome runOf(FmmListTuner tuner, const StepTime& time)
{
    Outcome run = { tuner.nstlist() };
    while (!tuner.isDone() && run.numSteps < 1000000)
    {
        const int    nstlist  = tuner.nstlist();
        const int    numSteps = nstlist - static_cast<int>(run.numSteps % nstlist);
        const double seconds  = numSteps * time(nstlist);
        run.numSteps += numSteps;
        run.seconds += seconds;
        tuner.add(numSteps, seconds);
    }
    run.nstlist = tuner.nstlist();
    for (const auto& trial : tuner.trials())
    {
        run.tried.push_back(trial.nstlist);
    }
    return run;
}

//! A step, a search that is shared by the steps with the list, and pairs that become more with its radius
StepTime stepWith(const double search, const double pairs)
{
    return [=](const int nstlist) { return 3e-4 * (1 + search / nstlist + pairs * nstlist); };
}

TEST(FmmListTunerTest, FindsWhatIsFastest)
{
    // The least time is at sqrt(search / pairs), and smaller values that are as fast are taken
    const auto found = [](const double search, const double pairs)
    {
        const auto time    = stepWith(search, pairs);
        const int  nstlist = runOf(FmmListTuner(40, 10), time).nstlist;
        EXPECT_LE(time(nstlist), 1.005 * time(static_cast<int>(std::sqrt(search / pairs))));
        return nstlist;
    };
    EXPECT_EQ(found(10, 0.001), 80);
    EXPECT_EQ(found(11, 0.001), 100);
    EXPECT_EQ(found(8, 0.0002), 150);
    EXPECT_EQ(found(40, 0.0003), 300);
    EXPECT_EQ(runOf(FmmListTuner(40, 10), stepWith(40, 0)).nstlist, 400);
}

TEST(FmmListTunerTest, KeepsTheFirstWhereNothingIsFaster)
{
    EXPECT_EQ(runOf(FmmListTuner(40, 10), [](int) { return 1e-3; }).nstlist, 40);
    const Outcome run = runOf(FmmListTuner(40, 10), stepWith(0, 0.0026));
    EXPECT_EQ(run.nstlist, 40);
    EXPECT_EQ(run.tried.size(), 3); // Twice slower is enough
    EXPECT_EQ(runOf(FmmListTuner(40, 10), stepWith(0, 0.02)).tried.size(), 3);
}

TEST(FmmListTunerTest, TriesMultiplesOfWhatIsGiven)
{
    const auto alike = [](int) { return 3e-3; };
    EXPECT_EQ(runOf(FmmListTuner(20, 10), alike).tried,
              std::vector<int>({ 20, 40, 50, 80, 100, 150, 200, 300, 400 }));
    EXPECT_EQ(runOf(FmmListTuner(48, 12), alike).tried,
              std::vector<int>({ 48, 60, 84, 108, 156, 204, 300, 408 }));
    EXPECT_TRUE(FmmListTuner(400, 100).isDone());
    EXPECT_TRUE(FmmListTuner(500, 500).isDone());
    EXPECT_EQ(FmmListTuner(500, 500).nstlist(), 500);
}

TEST(FmmListTunerTest, EndsInTime)
{
    // Steps that take nothing, or very long
    EXPECT_LT(runOf(FmmListTuner(40, 10), [](int) { return 1e-9; }).numSteps, 41000);
    EXPECT_LT(runOf(FmmListTuner(40, 10), stepWith(20, 0)).numSteps, 11000);
    const Outcome slow = runOf(FmmListTuner(20, 5), [](int nstlist) { return 0.5 + 10. / nstlist; });
    EXPECT_EQ(slow.tried, std::vector<int>({ 20, 40, 50 }));
    EXPECT_EQ(slow.nstlist, 50);
    EXPECT_LT(slow.numSteps, 500);
}

TEST(FmmListTunerTest, BearsNoiseAndDisturbances)
{
    std::mt19937                     generator(7);
    std::uniform_real_distribution<> noise(0.99, 1.01);
    std::uniform_int_distribution<>  lot(0, 9);
    const auto                       time = stepWith(10, 0.001);
    for (int i = 0; i < 100; i++)
    {
        const Outcome run =
                runOf(FmmListTuner(40, 10), [&](int n) { return noise(generator) * time(n); });
        EXPECT_LT(time(run.nstlist), 1.03 * time(100)) << i;
    }
    int numWorse = 0;
    for (int i = 0; i < 100; i++)
    {
        const Outcome run = runOf(FmmListTuner(40, 10),
                                  [&](int n) { return (lot(generator) == 0 ? 1.5 : 1) * time(n); });
        numWorse += time(run.nstlist) > 1.05 * time(100) ? 1 : 0;
    }
    EXPECT_LT(numWorse, 15);
}

TEST(FmmListTunerTest, CountsOnlyListsOfFullAge)
{
    FmmListTuner tuner(50, 10);
    for (int i = 0; i < 1000; i++)
    {
        tuner.add(50, 50 * 1e-3);
        tuner.add(1, 1); // as after an exchange of positions
    }
    ASSERT_FALSE(tuner.trials().empty());
    EXPECT_NEAR(tuner.trials()[0].time, 1e-3, 1e-9);
}

TEST(FmmListTunerTest, EndsWhereTheBoxIsTooSmall)
{
    FmmListTuner tuner(40, 10);
    const auto   time = stepWith(20, 0);
    while (tuner.nstlist() < 100)
    {
        tuner.add(tuner.nstlist(), tuner.nstlist() * time(tuner.nstlist()));
    }
    tuner.refuse();
    EXPECT_TRUE(tuner.isDone());
    EXPECT_EQ(tuner.nstlist(), 80);
    tuner.add(80, 1e-9);
    EXPECT_EQ(tuner.nstlist(), 80);
}

TEST(FmmListTunerTest, KeepsWhatTheInputAllows)
{
    FmmChoice  choice;
    t_inputrec inputrec;
    inputrec.cutoff_scheme = CutoffScheme::Verlet;
    inputrec.eI            = IntegrationAlgorithm::MD;
    inputrec.etc           = TemperatureCoupling::VRescale;
    inputrec.verletbuf_tol = 0.005;
    EXPECT_EQ(fmmKeptNstlist(choice, inputrec, false, 1), 0);
    choice.nstlist = 150;
    EXPECT_EQ(fmmKeptNstlist(choice, inputrec, false, 1), 150);
    EXPECT_EQ(fmmKeptNstlist(choice, inputrec, true, 1), 0);
    EXPECT_EQ(fmmKeptNstlist(choice, inputrec, false, 2), 0);
    inputrec.verletbuf_tol = -1;
    EXPECT_EQ(fmmKeptNstlist(choice, inputrec, false, 1), 0);
    inputrec.verletbuf_tol = 0.005;
    inputrec.etc           = TemperatureCoupling::No;
    EXPECT_EQ(fmmKeptNstlist(choice, inputrec, false, 1), 0);
}

} // namespace
} // namespace gmx
