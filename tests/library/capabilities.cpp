/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a plan says that it can do is what its calls do, and what they refuse they refuse with a reason; the version of
 * captured graphs changes with calls that such a graph does not follow, and with no others. */
#include <string>

#include <gtest/gtest.h>

#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

struct Case
{
    std::string    name;
    gmxfmm_options options;
    int            targets; /* that are set */
};

void PrintTo(const Case& c, std::ostream* out)
{
    *out << c.name;
}

gmxfmm_options treecode()
{
    gmxfmm_options options = defaultOptions();
    options.method         = GMXFMM_TREECODE;
    options.boundary       = GMXFMM_OPEN;
    return options;
}

std::vector<Case> cases()
{
    const gmxfmm_options cells = explicitOptions(4, 3, 3, 3, 1), octree = depthOptions(GMXFMM_M2L_ROTATION, 4, 1, 1);
    std::vector<Case>    all;
    for (const int targets : {0, 5})
    {
        const std::string with = targets > 0 ? "WithTargets" : "";
        all.push_back({"Cells" + with, cells, targets});
        all.push_back({"CellsInVacuum" + with, withBoundary(cells, Boundary::Vacuum), targets});
        all.push_back({"CellsOpen" + with, withBoundary(cells, Boundary::Open), targets});
        all.push_back({"Octree" + with, octree, targets});
        all.push_back({"OctreeOpen" + with, withBoundary(octree, Boundary::Open), targets});
        all.push_back({"Automatic" + with, defaultOptions(), targets});
        all.push_back({"Treecode" + with, treecode(), targets});
    }
    return all;
}

class Capabilities : public testing::TestWithParam<Case>
{
  protected:
    void SetUp() override
    {
        const gmxfmm_options& options = GetParam().options;
        plan_ = createOrSkip(options, n(), options.boundary == GMXFMM_OPEN ? nullptr : system_.box.data());
        ASSERT_EQ(gmxfmm_set_charges(plan_, n(), system_.q.data()), GMXFMM_OK);
        ASSERT_EQ(gmxfmm_set_targets(plan_, GetParam().targets, places_.data()), GMXFMM_OK);
    }
    void TearDown() override
    {
        gmxfmm_destroy(plan_);
    }
    std::int64_t n() const
    {
        return static_cast<std::int64_t>(system_.size());
    }
    bool can(gmxfmm_capability what) const
    {
        return (gmxfmm_capabilities(plan_) & what) != 0;
    }
    /* A call that needs something: its status if the plan has that, otherwise UNSUPPORTED and a reason. */
    void expectStatus(gmxfmm_capability what, gmxfmm_status status, gmxfmm_status if_it_can)
    {
        EXPECT_EQ(status, can(what) ? if_it_can : GMXFMM_ERROR_UNSUPPORTED) << gmxfmm_message(plan_);
        if (!can(what))
        {
            const std::string reason = gmxfmm_message(plan_);
            EXPECT_NE(reason, "");
            EXPECT_EQ(reason.find("(null)"), std::string::npos) << reason;
        }
    }

    System              system_  = ions({3, 0, 0, 0, 3, 0, 0, 0, 3}, 40, 2);
    std::vector<double> places_  = ions({3, 0, 0, 0, 3, 0, 0, 0, 3}, 40, 5).x;
    std::vector<double> results_ = std::vector<double>(40);
    std::vector<int>    start_ = std::vector<int>(41, 2), list_ = {1, 0}; /* 0 and 1 exclude each other */
    gmxfmm_plan*        plan_ = nullptr;
};

class GraphVersion : public Capabilities
{
  protected:
    /* Whether the version has changed since the last question. */
    bool changed()
    {
        const std::int64_t before = version_;
        version_                  = gmxfmm_graph_version(plan_);
        return version_ != before;
    }

    std::int64_t version_ = -1;
};

} // namespace

TEST_P(Capabilities, OfTheVirial)
{
    gmxfmm_output output = sized<gmxfmm_output>();
    output.want_virial   = 1;
    ASSERT_EQ(gmxfmm_assign(plan_, system_.x.data()), GMXFMM_OK) << gmxfmm_message(plan_);
    const gmxfmm_status status = gmxfmm_execute(plan_, system_.x.data(), &output);
    EXPECT_EQ(status == GMXFMM_OK, can(GMXFMM_CAN_VIRIAL)) << gmxfmm_message(plan_);
    EXPECT_TRUE(status == GMXFMM_OK || status == GMXFMM_ERROR_UNSUPPORTED || GetParam().targets > 0);
}

TEST_P(Capabilities, OfExcludedPairs)
{
    start_[0] = 0;
    start_[1] = 1;
    expectStatus(GMXFMM_CAN_EXCLUDE, gmxfmm_set_exclusions(plan_, start_.data(), list_.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_exclusions(plan_, nullptr, nullptr), GMXFMM_OK) << "none can be excluded everywhere";
}

TEST_P(Capabilities, OfChargeDerivatives)
{
    const int    index = 0;
    const double dq    = 1;
    start_[0]          = 0;
    start_[1]          = 1;
    expectStatus(GMXFMM_CAN_CHARGE_GRADIENT, gmxfmm_set_charge_derivatives(plan_, 1, start_.data(), &index, &dq),
                 GMXFMM_OK);
}

TEST_P(Capabilities, OfDipoles)
{
    expectStatus(GMXFMM_CAN_DIPOLES, gmxfmm_set_dipoles(plan_, n(), system_.x.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_dipoles(plan_, n(), nullptr), GMXFMM_OK) << "there can be none everywhere";
}

TEST_P(Capabilities, OfWidths)
{
    const std::vector<double> width(static_cast<std::size_t>(n()), 0.1);
    expectStatus(GMXFMM_CAN_WIDTHS, gmxfmm_set_widths(plan_, n(), width.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_widths(plan_, n(), nullptr), GMXFMM_OK) << "all can be points everywhere";
}

TEST_P(Capabilities, OfTargets)
{
    expectStatus(GMXFMM_CAN_TARGETS, gmxfmm_set_targets(plan_, 7, places_.data()), GMXFMM_OK);
    ASSERT_TRUE(can(GMXFMM_CAN_TARGETS));
    gmxfmm_output output = sized<gmxfmm_output>();
    output.potential     = results_.data();
    ASSERT_EQ(gmxfmm_assign(plan_, system_.x.data()), GMXFMM_OK) << gmxfmm_message(plan_);
    EXPECT_EQ(gmxfmm_execute(plan_, system_.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan_);
    EXPECT_NE(results_[6], 0);
    EXPECT_EQ(results_[7], 0);
}

/* What is put on streams is refused on the CPU, and before an assignment, or with a wrong number, for another reason
 * where it is offered: nothing is launched here. */
TEST_P(Capabilities, OfStreams)
{
    const gmxfmm_device_output output  = sized<gmxfmm_device_output>();
    double                     seconds = 0;
    const bool                 onCpu   = GetParam().options.device == GMXFMM_CPU;
    expectStatus(GMXFMM_CAN_ENQUEUE, gmxfmm_enqueue(plan_, system_.x.data(), &output, nullptr), GMXFMM_ERROR_ORDER);
    expectStatus(GMXFMM_CAN_ENQUEUE_ASSIGN, gmxfmm_enqueue_assign(plan_, system_.x.data(), nullptr),
                 GMXFMM_ERROR_ORDER);
    expectStatus(GMXFMM_CAN_ENQUEUE_ASSIGN,
                 gmxfmm_enqueue_assign_part(plan_, GMXFMM_ASSIGN_BEGIN, system_.x.data(), nullptr), GMXFMM_ERROR_ORDER);
    EXPECT_EQ(gmxfmm_enqueue_assign_part(plan_, GMXFMM_ASSIGN_SORT, nullptr, nullptr), GMXFMM_ERROR_ORDER);
    EXPECT_EQ(gmxfmm_enqueue_assign_part(plan_, static_cast<gmxfmm_assign_part>(3), nullptr, nullptr),
              GMXFMM_ERROR_OPTION);
    EXPECT_EQ(gmxfmm_enqueue_assign_part(nullptr, GMXFMM_ASSIGN_BEGIN, nullptr, nullptr), GMXFMM_ERROR_NULL);
    expectStatus(GMXFMM_CAN_ENQUEUE_CHARGES, gmxfmm_enqueue_charges(plan_, n() + 1, nullptr, system_.q.data(), nullptr),
                 GMXFMM_ERROR_OPTION);
    const gmxfmm_status timed = gmxfmm_time_stages(plan_, system_.x.data(), 0, 1, nullptr, &seconds);
    EXPECT_TRUE(timed == GMXFMM_ERROR_UNSUPPORTED || (can(GMXFMM_CAN_ENQUEUE) && timed == GMXFMM_ERROR_ORDER));
    EXPECT_EQ(std::string(gmxfmm_message(plan_)).find("(null)"), std::string::npos) << gmxfmm_message(plan_);
    if (onCpu)
    {
        EXPECT_EQ(gmxfmm_capabilities(plan_) &
                      (GMXFMM_CAN_ENQUEUE | GMXFMM_CAN_ENQUEUE_ASSIGN | GMXFMM_CAN_ENQUEUE_CHARGES),
                  0U);
        expectMessage(plan_, "device = cuda");
    }
    EXPECT_EQ(gmxfmm_set_first_share(plan_, 0.5), GMXFMM_ERROR_UNSUPPORTED);
    EXPECT_EQ(gmxfmm_set_first_share(plan_, 1), GMXFMM_ERROR_OPTION);
    EXPECT_EQ(gmxfmm_set_first_share(nullptr, 0.5), GMXFMM_ERROR_NULL);
}

INSTANTIATE_TEST_SUITE_P(Plans, Capabilities, testing::ValuesIn(cases()), parameterName<Case>);

TEST(CapabilitiesOfAPlan, OfNothingAreNone)
{
    EXPECT_EQ(gmxfmm_capabilities(nullptr), 0U);
    EXPECT_EQ(gmxfmm_graph_version(nullptr), 0);
}

/* They are those of the FMM on the CPU, of the treecode, and of a plan as it is: targets come and go. */
TEST(CapabilitiesOfAPlan, AreThoseThatAreDocumented)
{
    const System   s       = ions({3, 0, 0, 0, 3, 0, 0, 0, 3}, 40, 2);
    const unsigned charges = GMXFMM_CAN_VIRIAL | GMXFMM_CAN_CHARGE_GRADIENT; /* not of targets */
    const unsigned fmm     = charges | GMXFMM_CAN_EXCLUDE | GMXFMM_CAN_TARGETS | GMXFMM_CAN_DIPOLES | GMXFMM_CAN_WIDTHS;
    auto           tree = treecode(), cells = explicitOptions(4, 3, 3, 3, 1);
    tree.device = cells.device = GMXFMM_CPU;
    Plan byCells(s, cells), byTreecode(s, tree);
    EXPECT_EQ(gmxfmm_capabilities(byCells.get()), fmm);
    EXPECT_EQ(gmxfmm_capabilities(byTreecode.get()), static_cast<unsigned>(GMXFMM_CAN_TARGETS));
    ASSERT_EQ(gmxfmm_set_targets(byCells.get(), 3, s.x.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_capabilities(byCells.get()) & charges, 0U) << "targets have none";
    ASSERT_EQ(gmxfmm_set_targets(byCells.get(), 0, nullptr), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_capabilities(byCells.get()), fmm);
}

/* Steps and questions do not change it. */
TEST_P(GraphVersion, StaysWithSteps)
{
    gmxfmm_output output = sized<gmxfmm_output>();
    gmxfmm_info   info   = sized<gmxfmm_info>();
    output.potential     = results_.data();
    ASSERT_EQ(gmxfmm_assign(plan_, system_.x.data()), GMXFMM_OK) << gmxfmm_message(plan_);
    EXPECT_TRUE(changed());
    for (int i = 0; i < 3; i++)
    {
        for (double& x : system_.x)
        {
            x += 1e-3;
        }
        ASSERT_EQ(gmxfmm_execute(plan_, system_.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan_);
        EXPECT_FALSE(changed());
    }
    ASSERT_EQ(gmxfmm_get_info(plan_, &info), GMXFMM_OK);
    gmxfmm_reset_times(plan_);
    gmxfmm_capabilities(plan_);
    EXPECT_FALSE(changed());
    EXPECT_NE(gmxfmm_execute(plan_, system_.x.data(), nullptr), GMXFMM_OK);
    EXPECT_NE(gmxfmm_assign(plan_, nullptr), GMXFMM_OK);
    EXPECT_FALSE(changed());
    /* where there is no box it is not looked at, the same one changes nothing */
    ASSERT_EQ(gmxfmm_set_box(plan_, system_.box.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_enqueue_box(plan_, system_.box.data(), nullptr), GMXFMM_OK);
    EXPECT_FALSE(changed());
}

/* Everything that a step has in it: numbers, charges, pairs, places in cells, and where no graph follows it the box. */
TEST_P(GraphVersion, ChangesWithAllElse)
{
    const bool    periodic = GetParam().options.boundary != GMXFMM_OPEN, targets = GetParam().targets > 0;
    gmxfmm_output output = sized<gmxfmm_output>();
    output.potential     = results_.data();
    ASSERT_EQ(gmxfmm_assign(plan_, system_.x.data()), GMXFMM_OK) << gmxfmm_message(plan_);
    ASSERT_EQ(gmxfmm_execute(plan_, system_.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan_);
    EXPECT_TRUE(changed());
    EXPECT_GT(version_, 0) << "0 is that of no plan";
    ASSERT_EQ(gmxfmm_set_charges(plan_, n(), system_.q.data()), GMXFMM_OK);
    EXPECT_TRUE(changed()) << "set_charges";
    ASSERT_EQ(gmxfmm_assign(plan_, system_.x.data()), GMXFMM_OK) << gmxfmm_message(plan_);
    EXPECT_TRUE(changed()) << "assign";
    ASSERT_EQ(gmxfmm_set_targets(plan_, 4, places_.data()), GMXFMM_OK);
    EXPECT_TRUE(changed()) << "set_targets";
    ASSERT_EQ(gmxfmm_set_targets(plan_, 4, places_.data() + 3), GMXFMM_OK);
    EXPECT_TRUE(changed()) << "other places of as many targets";
    ASSERT_EQ(gmxfmm_set_targets(plan_, 0, nullptr), GMXFMM_OK);
    EXPECT_TRUE(changed()) << "no targets";
    if (can(GMXFMM_CAN_EXCLUDE))
    {
        start_[0] = 0;
        start_[1] = 1;
        ASSERT_EQ(gmxfmm_set_exclusions(plan_, start_.data(), list_.data()), GMXFMM_OK);
        EXPECT_TRUE(changed()) << "set_exclusions";
        ASSERT_EQ(gmxfmm_set_exclusions(plan_, nullptr, nullptr), GMXFMM_OK);
        EXPECT_TRUE(changed()) << "no exclusions";
    }
    ASSERT_EQ(gmxfmm_assign(plan_, system_.x.data()), GMXFMM_OK) << gmxfmm_message(plan_);
    EXPECT_TRUE(changed());
    Mat3 box = system_.box;
    box[0] *= 1.01;
    ASSERT_EQ(gmxfmm_set_box(plan_, box.data()), GMXFMM_OK);
    EXPECT_EQ(changed(), periodic) << "set_box";
    ASSERT_EQ(gmxfmm_set_charges(plan_, n() - 1, system_.q.data()), GMXFMM_OK);
    EXPECT_TRUE(changed()) << "fewer particles, " << targets;
}

INSTANTIATE_TEST_SUITE_P(Plans, GraphVersion, testing::ValuesIn(cases()), parameterName<Case>);
