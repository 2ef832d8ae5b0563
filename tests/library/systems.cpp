/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Many systems in one call: each has the results of a plan of its own, and what one plan cannot keep is refused. */
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/plan.h"
#include "support/sized.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Systems one after the other, and what comes of them. */
struct Row
{
    explicit Row(const std::vector<System>& all) : energy(all.size()), virial(9 * all.size())
    {
        for (const System& s : all)
        {
            x.insert(x.end(), s.x.begin(), s.x.end());
            q.insert(q.end(), s.q.begin(), s.q.end());
            box.insert(box.end(), s.box.begin(), s.box.end());
            start.push_back(static_cast<std::int64_t>(q.size()));
        }
        force.resize(x.size());
        view.num    = static_cast<std::int64_t>(all.size());
        view.start  = start.data();
        view.x      = x.data();
        view.q      = q.data();
        view.box    = box.data();
        view.force  = force.data();
        view.energy = energy.data();
        view.virial = virial.data();
    }

    std::vector<std::int64_t> start = {0};
    std::vector<double>       x, q, box, force, energy, virial;
    gmxfmm_systems            view = sized<gmxfmm_systems>();
};

gmxfmm_options onCpu()
{
    gmxfmm_options options = askedOptions(1e-6, GMXFMM_DOUBLE);
    options.device         = GMXFMM_CPU;
    options.order          = 12;
    options.grid[0] = options.grid[1] = options.grid[2] = 3;
    options.separation                                  = 1;
    options.reproducible                                = 1;
    return options;
}

System of(int n, std::uint64_t seed)
{
    return ions(boxOfVolume(boxTypes()[1], 30 + 2 * static_cast<double>(seed)), n, seed);
}

TEST(Systems, HaveTheResultsOfPlansOfTheirOwn)
{
    const std::vector<System> all = {of(40, 1), of(42, 2), of(40, 3)};
    Row                       row(all);
    Plan                      plan(all[0], onCpu());
    ASSERT_EQ(gmxfmm_execute_systems(plan.get(), &row.view), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_EQ(row.view.done, 3);
    for (std::size_t s = 0; s < all.size(); s++)
    {
        SCOPED_TRACE(s);
        const Result              alone = Plan(all[s], onCpu()).execute(all[s].x);
        const auto                at    = row.force.begin() + 3 * row.start[s];
        const std::vector<double> force(at, row.force.begin() + 3 * row.start[s + 1]);
        EXPECT_LE(relativeRms(force, alone.force), 1e-13); /* spectra of another box before: rounding */
        EXPECT_NEAR(row.energy[s], alone.energy, 1e-12 * std::fabs(alone.energy));
        for (std::size_t k = 0; k < 9; k++)
        {
            EXPECT_NEAR(row.virial[9 * s + k], alone.virial[k], 1e-11 * std::fabs(alone.energy));
        }
    }
}

TEST(Systems, TellWhichOneFails)
{
    const std::vector<System> all = {of(40, 1), of(40, 2), of(40, 3)};
    Row                       row(all);
    Plan                      plan(all[0], onCpu());
    row.x[3 * 40 + 5] = NAN;
    EXPECT_EQ(gmxfmm_execute_systems(plan.get(), &row.view), GMXFMM_ERROR_POSITION);
    EXPECT_EQ(row.view.done, 1);
}

TEST(Systems, AreRefusedWhereOnePlanCannotKeepWhatItHas)
{
    const std::vector<System> all = {of(40, 1), of(42, 2)};
    Row                       row(all);
    Plan                      plan(all[0], onCpu());
    const auto                refused = [&](const char* word)
    {
        EXPECT_EQ(gmxfmm_execute_systems(plan.get(), &row.view), GMXFMM_ERROR_OPTION);
        EXPECT_NE(std::string(gmxfmm_message(plan.get())).find(word), std::string::npos) << gmxfmm_message(plan.get());
        EXPECT_EQ(row.view.done, 0);
    };
    row.view.num = -3;
    refused("num is -3");
    row.view.num = 2;
    std::vector<int> start(41, 2), list = {1, 0};
    start[0] = 0;
    start[1] = 1;
    ASSERT_EQ(gmxfmm_set_exclusions(plan.get(), start.data(), list.data()), GMXFMM_OK);
    refused("system 1 has 42 particles");
    ASSERT_EQ(gmxfmm_set_exclusions(plan.get(), nullptr, nullptr), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), 1, all[0].x.data()), GMXFMM_OK);
    refused("targets");
    EXPECT_EQ(gmxfmm_execute_systems(plan.get(), nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_execute_systems(nullptr, &row.view), GMXFMM_ERROR_NULL);
}

} // namespace
