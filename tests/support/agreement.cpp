/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support/agreement.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "support/norms.h"

namespace fmmtest
{

double rounding(gmxfmm_precision precision)
{
    return precision == GMXFMM_DOUBLE ? 1e-11 : 2e-5;
}

void expectAgreement(const System& s, gmxfmm_options options)
{
    gmxfmm_options reference = options;
    reference.device         = GMXFMM_CPU;
    reference.precision      = GMXFMM_DOUBLE;
    options.device           = GMXFMM_CUDA;
    const Result gpu = solve(s, options), cpu = solve(s, reference);
    const double tolerance = rounding(options.precision), energy = std::fabs(cpu.energyNear) + std::fabs(cpu.energyFar);
    /* where fields cancel, as that of one particle by symmetry, what cancels is of the size of the potential */
    const double field = std::max(rms(cpu.field), s.size() == 1 ? rms(cpu.potential) : 0.0);
    /* <=: zero is zero */
    EXPECT_LE(rmsDifference(gpu.field, cpu.field), tolerance * field);
    EXPECT_LE(rmsDifference(gpu.force, cpu.force), tolerance * std::max(rms(cpu.force), s.size() == 1 ? field : 0.0));
    EXPECT_LE(rmsDifference(gpu.potential, cpu.potential), tolerance * rms(cpu.potential));
    EXPECT_NEAR(gpu.energyNear, cpu.energyNear, tolerance * energy);
    EXPECT_NEAR(gpu.energyFar, cpu.energyFar, tolerance * energy);
    EXPECT_LE(maxDifference(gpu.virial, cpu.virial), tolerance * energy);
}

} // namespace fmmtest
