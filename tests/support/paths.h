/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ways through the far field, each in the boxes that it takes: what the suites are parameters of. */
#ifndef GMXFMM_TESTS_PATHS_H
#define GMXFMM_TESTS_PATHS_H

#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "gmxfmm.h"
#include "support/systems.h"

namespace fmmtest
{

struct Path
{
    gmxfmm_m2l m2l;
    BoxType    box;
};

void PrintTo(const Path& path, std::ostream* out);

/* fft, rotation, symmetric, naive */
const std::vector<gmxfmm_m2l>& methods();
/* the last three */
const std::vector<gmxfmm_m2l>& octreeMethods();

/* Symmetric and naive: O(p^4), for which high orders want few cells. */
bool isSlow(gmxfmm_m2l m2l);

/* fft and rotation in every box that they take, symmetric and naive, which are slower, in a cube and one box more:
 * paths_agree.cpp has the three in all. */
const std::vector<Path>& paths();
/* Without symmetric and naive: for what the way of multiplying has no part in. */
const std::vector<Path>& fastPaths();

/* Order and ws as given; on the fft path about `cells` cells along each edge (evenGrid), on an octree the depth that
 * comes closest to as many cells in all. */
gmxfmm_options
pathOptions(const Path& path, int order, int cells, int separation, gmxfmm_precision precision = GMXFMM_DOUBLE);

/* The same in a cube. */
gmxfmm_options
methodOptions(gmxfmm_m2l m2l, int order, int cells, int separation, gmxfmm_precision precision = GMXFMM_DOUBLE);

/* An octree's options with the depth itself given. */
gmxfmm_options
depthOptions(gmxfmm_m2l m2l, int order, int depth, int separation, gmxfmm_precision precision = GMXFMM_DOUBLE);

/* Defaults, and an asked accuracy, with everything automatic but the method. */
gmxfmm_options automatic(gmxfmm_m2l m2l);
gmxfmm_options automatic(gmxfmm_m2l m2l, double accuracy, gmxfmm_precision precision = GMXFMM_DOUBLE);

/* Names in test names: "FftCubic", "Rotation", "RotationSingle" */
std::string methodWord(gmxfmm_m2l m2l);
std::string pathName(const testing::TestParamInfo<Path>& info);
std::string methodName(const testing::TestParamInfo<gmxfmm_m2l>& info);
std::string pathAndPrecisionName(const testing::TestParamInfo<std::tuple<Path, gmxfmm_precision>>& info);

using MethodAndPrecision = std::tuple<gmxfmm_m2l, gmxfmm_precision>;
std::string methodAndPrecisionName(const testing::TestParamInfo<MethodAndPrecision>& info);

} // namespace fmmtest

#endif
