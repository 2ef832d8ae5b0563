/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parameters that several suites share, and their names in test names. */
#ifndef GMXFMM_TESTS_SUITES_H
#define GMXFMM_TESTS_SUITES_H

#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "gmxfmm.h"
#include "support/systems.h"

namespace fmmtest
{

inline std::string boxName(const testing::TestParamInfo<BoxType>& info)
{
    return info.param.name;
}

inline std::string boxAndPrecisionName(const testing::TestParamInfo<std::tuple<BoxType, gmxfmm_precision>>& info)
{
    return std::get<0>(info.param).name + (std::get<1>(info.param) == GMXFMM_DOUBLE ? "Double" : "Single");
}

/* Of cases that have a name. */
template <class Case>
std::string parameterName(const testing::TestParamInfo<Case>& info)
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
