/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The treecode on a GPU against the CPU. (The suite treecode runs there, too, with GMXFMM_TESTS_DEVICE=cuda.) */
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C"
{
#include "fmm/backend.h"
#include "fmm/treecode/treecode.h"
}

namespace
{

using Numbers = std::vector<double>;

struct Sums
{
    Numbers potential, field;
    double  energy = 0;
};

struct Case
{
    const char*      name;
    treecode_kernel  kernel;
    gmxfmm_precision precision;
    int              degree;
    std::int64_t     leaf;
};

void PrintTo(const Case& c, std::ostream* out)
{
    *out << c.name;
}

std::string nameOf(const testing::TestParamInfo<Case>& info)
{
    return info.param.name;
}

class CudaTreecode : public testing::TestWithParam<Case>
{
  protected:
    void SetUp() override
    {
        treecode*        t = nullptr;
        treecode_options o = options(GMXFMM_CUDA);
        char             message[256];
        if (treecode_create(&t, &o, message, sizeof(message)) != GMXFMM_OK)
        {
            GTEST_SKIP() << message;
        }
        treecode_destroy(t);
        std::mt19937_64                        random(11);
        std::uniform_real_distribution<double> uniform(-1, 1);
        for (int i = 0; i < 20000; i++)
        {
            /* denser towards one corner, so that leaves are of many sizes */
            for (int d = 0; d < 3; d++)
            {
                x_.push_back(std::pow(uniform(random), 3));
            }
            q_.push_back(uniform(random));
        }
        for (int i = 0; i < 7000; i++)
        {
            for (int d = 0; d < 3; d++)
            {
                y_.push_back(1.5 * uniform(random));
            }
        }
    }

    treecode_options options(gmxfmm_device device) const
    {
        const fmm_backend* row = fmm_find_backend(GMXFMM_TREECODE, device, GetParam().precision, GMXFMM_M2L_AUTO);
        treecode_options   o   = {};
        o.kernel               = GetParam().kernel;
        o.parameter[0]         = 0.5;
        o.parameter[1]         = -1;
        o.parameter[2]         = 3;
        o.theta                = 0.8;
        o.degree               = GetParam().degree;
        o.leaf                 = GetParam().leaf;
        o.precision            = GetParam().precision;
        o.num_threads          = 1;
        o.stages               = row != nullptr ? row->treecode : nullptr; /* a build without CUDA */
        return o;
    }

    /* With a field or without one; at separate targets or at the sources; the second execute of a plan, for good
     * measure. */
    Sums sums(gmxfmm_device device, bool withField, bool separate) const
    {
        treecode*        t = nullptr;
        treecode_options o = options(device);
        char             message[256];
        Sums             s;
        EXPECT_EQ(treecode_create(&t, &o, message, sizeof(message)), GMXFMM_OK) << message;
        s.potential.resize((separate ? y_ : x_).size() / 3);
        s.field.resize(3 * s.potential.size());
        treecode_output out = {s.potential.data(), withField ? s.field.data() : nullptr, 1, 0};
        EXPECT_EQ(treecode_set_charges(t, static_cast<std::int64_t>(q_.size()), q_.data()), GMXFMM_OK);
        EXPECT_EQ(
            treecode_assign(t, x_.data(), static_cast<std::int64_t>(y_.size() / 3), separate ? y_.data() : nullptr),
            GMXFMM_OK)
            << treecode_message(t);
        for (int i = 0; i < 2; i++)
        {
            EXPECT_EQ(treecode_execute(t, x_.data(), &out), GMXFMM_OK) << treecode_message(t);
        }
        s.energy = out.energy;
        treecode_destroy(t);
        return s;
    }

    Numbers x_, q_, y_;
};

double difference(const Numbers& a, const Numbers& b)
{
    double square = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); i++)
    {
        square += std::pow(a[i] - b[i], 2);
        norm += b[i] * b[i];
    }
    return norm > 0 ? std::sqrt(square / norm) : 0;
}

TEST_P(CudaTreecode, AgreesWithTheCpu)
{
    /* rounding of sums in another order; in single precision that of positions in batches, too, for near pairs */
    const bool   isDouble  = GetParam().precision == GMXFMM_DOUBLE;
    const double potential = isDouble ? 1e-13 : 2e-6, field = isDouble ? 1e-12 : 3e-5;
    for (bool separate : {false, true})
    {
        for (bool withField : {false, true})
        {
            const Sums gpu = sums(GMXFMM_CUDA, withField, separate), cpu = sums(GMXFMM_CPU, withField, separate);
            EXPECT_LT(difference(gpu.potential, cpu.potential), potential);
            EXPECT_LT(difference(gpu.field, cpu.field), field);
            EXPECT_NEAR(gpu.energy, cpu.energy, 10 * potential * std::abs(cpu.energy));
        }
    }
}

TEST_P(CudaTreecode, GivesTheSameBitsInEveryRun)
{
    const Sums one = sums(GMXFMM_CUDA, true, false), other = sums(GMXFMM_CUDA, true, false);
    EXPECT_EQ(one.potential, other.potential);
    EXPECT_EQ(one.field, other.field);
}

INSTANTIATE_TEST_SUITE_P(,
                         CudaTreecode,
                         testing::Values(Case{"Coulomb", treecode_coulomb, GMXFMM_DOUBLE, 5, 300},
                                         Case{"CoulombHigh", treecode_coulomb, GMXFMM_DOUBLE, 20, 2000},
                                         Case{"CoulombSingle", treecode_coulomb, GMXFMM_SINGLE, 4, 200},
                                         Case{"CoulombSingleLow", treecode_coulomb, GMXFMM_SINGLE, 1, 20},
                                         Case{"Yukawa", treecode_yukawa, GMXFMM_DOUBLE, 8, 800},
                                         Case{"YukawaSingle", treecode_yukawa, GMXFMM_SINGLE, 6, 500},
                                         Case{"Polynomial", treecode_polynomial, GMXFMM_DOUBLE, 4, 100}),
                         nameOf);

} // namespace
