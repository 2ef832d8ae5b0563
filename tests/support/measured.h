/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plans that are measured when they are made. */
#ifndef GMXFMM_TESTS_MEASURED_H
#define GMXFMM_TESTS_MEASURED_H

#include <array>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "gmxfmm_measure.h"
#include "support/norms.h"
#include "support/plan.h"
#include "support/systems.h"

namespace fmmtest
{

/* What gmxfmm_create_measured gives. */
struct Made
{
    Made(const System& s, const gmxfmm_options& options)
        : Made(s, SystemView(s, options.boundary == GMXFMM_OPEN ? Boundary::Open : Boundary::Tinfoil).get(), options)
    {
    }
    Made(const System& s, const gmxfmm_system& view, const gmxfmm_options& options)
    {
        char text[512] = "not set";
        tried.fill(sized<gmxfmm_measurement>());
        status  = gmxfmm_create_measured(&made, &options, &view, &chosen, tried.data(), &num, text, sizeof(text));
        message = text;
        if (made != nullptr)
        {
            plan = std::make_unique<Plan>(s, made);
        }
    }
    double measured() const
    {
        return plan->info().measured_error;
    }
    double trueError(const System& s, const Solution& sum) const
    {
        return relativeRms(plan->execute(s.x).force, sum.force);
    }

    gmxfmm_plan*                       made = nullptr;
    std::unique_ptr<Plan>              plan; /* destroys it */
    gmxfmm_status                      status;
    std::string                        message;
    gmxfmm_measurement                 chosen = sized<gmxfmm_measurement>();
    std::array<gmxfmm_measurement, 32> tried;
    int                                num = 32;
};

inline void expectRefused(const Made& made)
{
    EXPECT_EQ(made.status, GMXFMM_ERROR_OPTION);
    EXPECT_EQ(made.made, nullptr);
    EXPECT_NE(made.message.find("accura"), std::string::npos) << made.message; /* y of */
    EXPECT_NE(made.message.find("ask for"), std::string::npos) << made.message;
}

/* A whole number, the ends of the range included. */
inline int between(Random* random, int low, int high)
{
    return low + static_cast<int>((high - low + 1) * random->uniform());
}

} // namespace fmmtest

#endif
