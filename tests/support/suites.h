/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parameters that several suites share, and their names in test names. */
#ifndef GMXFMM_TESTS_SUITES_H
#define GMXFMM_TESTS_SUITES_H

#include <string>

#include <gtest/gtest.h>

#include "gmxfmm.h"
#include "support/systems.h"

namespace fmmtest
{

inline std::string boxName(const testing::TestParamInfo<BoxType>& info)
{
    return info.param.name;
}

inline std::string precisionName(const testing::TestParamInfo<gmxfmm_precision>& info)
{
    return info.param == GMXFMM_DOUBLE ? "Double" : "Single";
}

inline void PrintTo(const BoxType& type, std::ostream* out)
{
    *out << type.name;
}

} // namespace fmmtest

#endif
