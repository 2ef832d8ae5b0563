/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support/paths.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "support/plan.h"

namespace fmmtest
{

static std::vector<Path> combine(const std::vector<gmxfmm_m2l>& ways, const std::vector<BoxType>& boxes)
{
    std::vector<Path> all;
    for (gmxfmm_m2l m2l : ways)
    {
        for (const BoxType& box : boxes)
        {
            all.push_back({m2l, box});
        }
    }
    return all;
}

const std::vector<gmxfmm_m2l>& methods()
{
    static const std::vector<gmxfmm_m2l> all = {GMXFMM_M2L_FFT, GMXFMM_M2L_ROTATION, GMXFMM_M2L_SYMMETRIC,
                                                GMXFMM_M2L_NAIVE};
    return all;
}

const std::vector<gmxfmm_m2l>& octreeMethods()
{
    static const std::vector<gmxfmm_m2l> all(methods().begin() + 1, methods().end());
    return all;
}

bool isSlow(gmxfmm_m2l m2l)
{
    return m2l == GMXFMM_M2L_SYMMETRIC || m2l == GMXFMM_M2L_NAIVE;
}

const std::vector<Path>& fastPaths()
{
    static const std::vector<Path> all = []
    {
        std::vector<Path> some = combine({GMXFMM_M2L_FFT}, boxTypes());
        for (const Path& path : combine({GMXFMM_M2L_ROTATION}, octreeBoxTypes()))
        {
            some.push_back(path);
        }
        return some;
    }();
    return all;
}

const std::vector<Path>& paths()
{
    static const std::vector<Path> all = []
    {
        std::vector<Path> some = fastPaths();
        some.push_back({GMXFMM_M2L_SYMMETRIC, octreeBoxTypes()[0]});
        some.push_back({GMXFMM_M2L_SYMMETRIC, octreeBoxTypes()[2]});
        some.push_back({GMXFMM_M2L_NAIVE, octreeBoxTypes()[0]});
        some.push_back({GMXFMM_M2L_NAIVE, octreeBoxTypes()[2]});
        return some;
    }();
    return all;
}

gmxfmm_options depthOptions(gmxfmm_m2l m2l, int order, int depth, int separation, gmxfmm_precision precision)
{
    gmxfmm_options options = defaultOptions();
    options.m2l            = m2l;
    options.order          = order;
    options.depth          = depth;
    options.m2l_truncate   = 0; /* as methods agree; what rotation does by itself is in translations.cpp */
    options.separation     = separation;
    options.precision      = precision;
    return options;
}

gmxfmm_options pathOptions(const Path& path, int order, int cells, int separation, gmxfmm_precision precision)
{
    if (path.m2l == GMXFMM_M2L_FFT)
    {
        return explicitOptions(order, evenGrid(path.box, cells), separation, precision);
    }
    const double roots = path.box.roots[0] * path.box.roots[1] * path.box.roots[2];
    const int    depth = static_cast<int>(std::lround(std::log2(cells / std::cbrt(roots))));
    return depthOptions(path.m2l, order, std::max(depth, 1), separation, precision);
}

gmxfmm_options methodOptions(gmxfmm_m2l m2l, int order, int cells, int separation, gmxfmm_precision precision)
{
    return pathOptions({m2l, boxTypes()[0]}, order, cells, separation, precision);
}

gmxfmm_options automatic(gmxfmm_m2l m2l)
{
    gmxfmm_options options = defaultOptions();
    options.m2l            = m2l;
    return options;
}

gmxfmm_options automatic(gmxfmm_m2l m2l, double accuracy, gmxfmm_precision precision)
{
    gmxfmm_options options = askedOptions(accuracy, precision);
    options.m2l            = m2l;
    return options;
}

std::string methodWord(gmxfmm_m2l m2l)
{
    std::string word = gmxfmm_m2l_name(m2l);
    word[0]          = static_cast<char>(std::toupper(word[0]));
    return word;
}

void PrintTo(const Path& path, std::ostream* out)
{
    *out << methodWord(path.m2l) << path.box.name;
}

std::string pathName(const testing::TestParamInfo<Path>& info)
{
    return methodWord(info.param.m2l) + info.param.box.name;
}

std::string methodName(const testing::TestParamInfo<gmxfmm_m2l>& info)
{
    return methodWord(info.param);
}

std::string methodAndPrecisionName(const testing::TestParamInfo<MethodAndPrecision>& info)
{
    return methodWord(std::get<0>(info.param)) + (std::get<1>(info.param) == GMXFMM_DOUBLE ? "Double" : "Single");
}

std::string pathAndPrecisionName(const testing::TestParamInfo<std::tuple<Path, gmxfmm_precision>>& info)
{
    const Path& path = std::get<0>(info.param);
    return methodWord(path.m2l) + path.box.name + (std::get<1>(info.param) == GMXFMM_DOUBLE ? "Double" : "Single");
}

} // namespace fmmtest
