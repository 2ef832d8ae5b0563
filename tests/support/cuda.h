/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether tests of the GPU can run. */
#ifndef GMXFMM_TESTS_CUDA_H
#define GMXFMM_TESTS_CUDA_H

#include <gtest/gtest.h>

#include "support/plan.h"

namespace fmmtest
{

/* A plan with device = cuda can be made: this build has the device part, and there is a device. */
inline bool haveCuda()
{
    gmxfmm_options options = explicitOptions(2, 2, 2, 2, 1);
    gmxfmm_plan*   plan    = nullptr;
    const double   box[9]  = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    options.device         = GMXFMM_CUDA;
    const bool have        = gmxfmm_create(&plan, &options, 8, box, nullptr, 0) == GMXFMM_OK;
    gmxfmm_destroy(plan);
    return have;
}

/* A test that is skipped where there is no GPU. */
template <class Base = testing::Test>
class WithCuda : public Base
{
  protected:
    void SetUp() override
    {
        if (!haveCuda())
        {
            GTEST_SKIP() << "no CUDA device";
        }
    }
};

} // namespace fmmtest

#endif
