/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forces and virials as derivatives of a plan's energy. */
#ifndef GMXFMM_TESTS_DERIVATIVES_H
#define GMXFMM_TESTS_DERIVATIVES_H

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/plan.h"

namespace fmmtest
{

/* Slope of a smooth function by a five-point rule: h^4 / 30 of the fifth derivative, and 1e-14 / h of rounding. */
template <typename Function>
double slope(const Function& f, double h)
{
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
}

/* The component k of the forces is the slope of the energy, over steps of h, to a part of the RMS force. */
inline void expectGradient(Plan* plan, const System& s, const Result& r, std::size_t k, double h, double tolerance)
{
    std::vector<double> x      = s.x;
    const auto          energy = [&](double step)
    {
        x[k] = s.x[k] + step;
        return plan->energy(x);
    };
    ASSERT_NEAR(r.force[k], -slope(energy, h), tolerance * rms(r.force)) << "component " << k;
}

/* These components of the virial r of a plan's system are half the strain derivatives of the energy, to a part of the
 * energy. A strain moves images in proportion to their distance, a few lengths, so that its steps are small. */
inline void expectStrainDerivativesOf(
    Plan* plan, const System& s, const Result& r, const std::vector<std::size_t>& components, double tolerance)
{
    for (const std::size_t k : components)
    {
        const auto energy = [&](double strain)
        {
            Mat3 tensor           = {};
            tensor[k]             = strain;
            const System deformed = strained(s, tensor);
            plan->setBox(deformed.box);
            return plan->energy(deformed.x);
        };
        EXPECT_NEAR(r.virial[k], 0.5 * slope(energy, 3e-4), tolerance * std::fabs(r.energy)) << "component " << k;
    }
}

/* The same of a plan with these options. */
inline void expectStrainDerivatives(const System&                   s,
                                    gmxfmm_options                  options,
                                    const std::vector<std::size_t>& components,
                                    double                          tolerance = 1e-8)
{
    options.reproducible = 1; /* no sums of shapes nearby, which are as exact as was asked for */
    Plan         plan(s, options);
    const Result r = plan.execute(s.x);
    expectStrainDerivativesOf(&plan, s, r, components, tolerance);
    /* rounding of sums that are some times larger than the energy */
    EXPECT_NEAR(trace(r.virial), -0.5 * r.energy, 1e-12 * std::fabs(r.energy));
}

} // namespace fmmtest

#endif
