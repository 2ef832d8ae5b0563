/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How far two sets of numbers are apart. */
#ifndef GMXFMM_TESTS_NORMS_H
#define GMXFMM_TESTS_NORMS_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace fmmtest
{

/* Root of the mean square of the components. */
template <typename Container>
double rms(const Container& v)
{
    double sum = 0;
    for (double c : v)
    {
        sum += c * c;
    }
    return v.size() > 0 ? std::sqrt(sum / static_cast<double>(v.size())) : 0;
}

template <typename Container>
double rmsDifference(const Container& v, const Container& reference)
{
    double sum = 0;
    for (std::size_t i = 0; i < reference.size(); i++)
    {
        sum += (v[i] - reference[i]) * (v[i] - reference[i]);
    }
    return reference.size() > 0 ? std::sqrt(sum / static_cast<double>(reference.size())) : 0;
}

/* What "relative RMS error" means everywhere here. */
template <typename Container>
double relativeRms(const Container& v, const Container& reference)
{
    return rmsDifference(v, reference) / rms(reference);
}

template <typename Container>
double maxDifference(const Container& v, const Container& reference)
{
    double most = 0;
    for (std::size_t i = 0; i < reference.size(); i++)
    {
        const double d = std::fabs(v[i] - reference[i]);
        most           = d > most || std::isnan(d) ? d : most;
    }
    return most;
}

/* Trace of a row-major 3x3 matrix. */
template <typename Matrix>
double trace(const Matrix& m)
{
    return m[0] + m[4] + m[8];
}

} // namespace fmmtest

#endif
