/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The treecode on a GPU against the CPU. (The suite treecode runs there, too, with GMXFMM_TESTS_DEVICE=cuda.) */
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C"
{
#include "fmm/backend.h"
#include "fmm/treecode/state.h"
#include "fmm/treecode/treecode.h"
}
#include "support/norms.h"
#include "support/on_ranks.h"
#include "support/on_stream.h"
#include "support/suites.h"

using namespace fmmtest;

namespace
{

using Numbers = std::vector<double>;

struct Sums
{
    Numbers potential, field;
    double  energy = 0, pairsPerTarget = 0;
};

struct Case
{
    const char*      name;
    treecode_kernel  kernel;
    gmxfmm_precision precision;
    int              degree;
    std::int64_t     leaf;
    int              dual;
};

void PrintTo(const Case& c, std::ostream* out)
{
    *out << c.name;
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

    /* On the CPU in double precision: in single, batches lose digits of pairs that are near. */
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
        o.precision            = device == GMXFMM_CPU ? GMXFMM_DOUBLE : GetParam().precision;
        o.dual                 = GetParam().dual;
        o.num_threads          = 1;
        o.prefactor            = 1;
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
        treecode_output out = {s.potential.data(), withField ? s.field.data() : nullptr, 1, 0, nullptr};
        EXPECT_EQ(treecode_set_charges(t, static_cast<std::int64_t>(q_.size()), q_.data()), GMXFMM_OK);
        EXPECT_EQ(
            treecode_assign(t, x_.data(), static_cast<std::int64_t>(y_.size() / 3), separate ? y_.data() : nullptr),
            GMXFMM_OK)
            << treecode_message(t);
        for (int i = 0; i < 2; i++)
        {
            EXPECT_EQ(treecode_execute(t, x_.data(), &out), GMXFMM_OK) << treecode_message(t);
        }
        treecode_info info;
        treecode_get_info(t, &info);
        s.energy         = out.energy;
        s.pairsPerTarget = info.pairs_per_target;
        treecode_destroy(t);
        return s;
    }

    Numbers x_, q_, y_;
};

TEST_P(CudaTreecode, AgreesWithTheCpu)
{
    /* rounding of sums in another order; in single precision, of numbers and 1/r, and of exp */
    const bool   isDouble  = GetParam().precision == GMXFMM_DOUBLE;
    const double potential = isDouble ? 1e-13 : 2e-6, field = isDouble ? 1e-12 : 3e-5;
    for (bool separate : {false, true})
    {
        for (bool withField : {false, true})
        {
            const Sums gpu = sums(GMXFMM_CUDA, withField, separate), cpu = sums(GMXFMM_CPU, withField, separate);
            EXPECT_LT(relativeRms(gpu.potential, cpu.potential), potential);
            if (withField)
            {
                EXPECT_LT(relativeRms(gpu.field, cpu.field), field);
            }
            EXPECT_NEAR(gpu.energy, cpu.energy, 10 * potential * std::abs(cpu.energy));
            EXPECT_DOUBLE_EQ(gpu.pairsPerTarget, cpu.pairsPerTarget);
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
                         testing::Values(Case{"Coulomb", treecode_coulomb, GMXFMM_DOUBLE, 5, 300, 0},
                                         Case{"CoulombHigh", treecode_coulomb, GMXFMM_DOUBLE, 20, 2000, 0},
                                         Case{"CoulombSingle", treecode_coulomb, GMXFMM_SINGLE, 4, 200, 0},
                                         Case{"CoulombSingleLow", treecode_coulomb, GMXFMM_SINGLE, 1, 20, 0},
                                         Case{"Yukawa", treecode_yukawa, GMXFMM_DOUBLE, 8, 800, 0},
                                         Case{"YukawaSingle", treecode_yukawa, GMXFMM_SINGLE, 6, 500, 0},
                                         Case{"Polynomial", treecode_polynomial, GMXFMM_DOUBLE, 4, 100, 0},
                                         Case{"CoulombDual", treecode_coulomb, GMXFMM_DOUBLE, 3, 100, 1},
                                         Case{"CoulombDualSingle", treecode_coulomb, GMXFMM_SINGLE, 4, 200, 1},
                                         Case{"YukawaDual", treecode_yukawa, GMXFMM_DOUBLE, 5, 30, 1},
                                         Case{"PolynomialDual", treecode_polynomial, GMXFMM_DOUBLE, 2, 20, 1}),
                         parameterName<Case>);

/* ------------------------------------------------------------------------------------------------------ one treecode
 */

treecode* make(gmxfmm_device device, gmxfmm_precision precision, std::int64_t leaf)
{
    const fmm_backend* row = fmm_find_backend(GMXFMM_TREECODE, device, precision, GMXFMM_M2L_AUTO);
    treecode_options   o   = {};
    treecode*          t   = nullptr;
    char               message[256];
    o.kernel      = treecode_coulomb;
    o.theta       = 0.7;
    o.degree      = 6;
    o.leaf        = leaf;
    o.precision   = precision;
    o.num_threads = 1;
    o.prefactor   = 1;
    o.stages      = row != nullptr ? row->treecode : nullptr;
    treecode_create(&t, &o, message, sizeof(message));
    return t;
}

Numbers placed(int n, int dimensions, double power)
{
    std::mt19937_64                        random(17);
    std::uniform_real_distribution<double> uniform(-1, 1);
    Numbers                                x;
    for (int i = 0; i < n; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            const double u = uniform(random);
            x.push_back(d < dimensions ? std::copysign(std::pow(std::abs(u), power), u) : 0.375);
        }
    }
    return x;
}

/* In a cube, crowded in its middle, in a plane, on a line, at places that many share, at one place, and two. */
TEST(CudaTreecodeTree, IsThatOfTheCpu)
{
    std::vector<Numbers> systems = {placed(30000, 3, 1), placed(30000, 3, 12), placed(10000, 2, 1), placed(10000, 1, 3),
                                    placed(5000, 3, 1),  placed(500, 0, 1),    placed(2, 3, 1)};
    for (double& x : systems[4])
    {
        x = std::floor(3 * x);
    }
    for (const Numbers& x : systems)
    {
        for (std::int64_t leaf : {1, 50, 2000})
        {
            const auto    n = static_cast<std::int64_t>(x.size() / 3);
            const Numbers q(x.size() / 3, 1);
            treecode *    gpu = make(GMXFMM_CUDA, GMXFMM_DOUBLE, leaf), *cpu = make(GMXFMM_CPU, GMXFMM_DOUBLE, leaf);
            if (gpu == nullptr)
            {
                treecode_destroy(cpu);
                GTEST_SKIP() << "no GPU";
            }
            for (treecode* t : {gpu, cpu})
            {
                ASSERT_EQ(treecode_set_charges(t, n, q.data()), GMXFMM_OK) << treecode_message(t);
                ASSERT_EQ(treecode_assign(t, x.data(), 0, nullptr), GMXFMM_OK) << treecode_message(t);
            }
            ASSERT_EQ(gpu->options.stages->mirror(gpu, 1), GMXFMM_OK) << treecode_message(gpu);
            const treecode_clusters &a = gpu->sources, &b = cpu->sources;
            ASSERT_EQ(a.num, b.num) << leaf;
            ASSERT_EQ(a.num_levels, b.num_levels);
            ASSERT_EQ(a.num_leaves, b.num_leaves);
            EXPECT_EQ(std::vector<int>(a.level, a.level + a.num_levels + 1),
                      std::vector<int>(b.level, b.level + b.num_levels + 1));
            EXPECT_EQ(std::vector<int>(a.leaf, a.leaf + a.num_leaves), std::vector<int>(b.leaf, b.leaf + b.num_leaves));
            EXPECT_EQ(Numbers(a.low, a.low + 3 * a.num), Numbers(b.low, b.low + 3 * b.num));
            EXPECT_EQ(Numbers(a.high, a.high + 3 * a.num), Numbers(b.high, b.high + 3 * b.num));
            for (int k = 0; k < a.num; k++)
            {
                ASSERT_EQ(a.begin[k], b.begin[k]) << k;
                ASSERT_EQ(a.end[k], b.end[k]) << k;
                ASSERT_EQ(a.num_children[k], b.num_children[k]) << k;
                ASSERT_TRUE(a.num_children[k] == 0 || a.child[k] == b.child[k]) << k;
            }
            for (std::int64_t s = 0; s < n; s++)
            {
                ASSERT_EQ(a.order[s], b.order[s]) << s;
                ASSERT_EQ(a.x[0][s], b.x[0][s]) << s;
            }
            EXPECT_DOUBLE_EQ(gpu->info.pairs_per_target, cpu->info.pairs_per_target);
            treecode_destroy(gpu);
            treecode_destroy(cpu);
        }
    }
}

/* Particles on a line, of which some are very near each other, in batches that are wide: rounding of positions to the
 * batch would cost them 3e-3. */
TEST(CudaTreecodeSingle, KeepsDigitsOfClosePairs)
{
    const Numbers x = placed(3000, 1, 1);
    Numbers       q, exact(3000), single(3000), exactField(9000), singleField(9000);
    for (int i = 0; i < 3000; i++)
    {
        q.push_back(i % 2 == 0 ? 1 : -0.5);
    }
    treecode *gpu = make(GMXFMM_CUDA, GMXFMM_SINGLE, 500), *cpu = make(GMXFMM_CPU, GMXFMM_DOUBLE, 500);
    if (gpu == nullptr)
    {
        treecode_destroy(cpu);
        GTEST_SKIP() << "no GPU";
    }
    treecode_output in = {exact.data(), exactField.data(), 0, 0, nullptr};
    treecode_output of = {single.data(), singleField.data(), 0, 0, nullptr};
    for (treecode* t : {gpu, cpu})
    {
        ASSERT_EQ(treecode_set_charges(t, 3000, q.data()), GMXFMM_OK);
        ASSERT_EQ(treecode_assign(t, x.data(), 0, nullptr), GMXFMM_OK) << treecode_message(t);
        ASSERT_EQ(treecode_execute(t, x.data(), t == gpu ? &of : &in), GMXFMM_OK) << treecode_message(t);
    }
    treecode_destroy(gpu);
    treecode_destroy(cpu);
    /* pairs at 1/64 of the radius lose 64 times the rounding of a position, 6e-8, fields twice of it; few are so near
     */
    EXPECT_LT(relativeRms(single, exact), 1e-6);
    EXPECT_LT(relativeRms(singleField, exactField), 2e-6);
}

/* ----------------------------------------------------------------------------------------------------- on a stream */

template <class X>
void enqueueAsExecute(bool dual)
{
    const int      n      = 20000;
    const Numbers  places = placed(n, 3, 2);
    std::vector<X> x(places.begin(), places.end()), q;
    gmxfmm_options o    = withArrays<X>(treecodeOptions(0.7, 4, 150, dual));
    gmxfmm_plan*   plan = nullptr;
    for (int i = 0; i < n; i++)
    {
        q.push_back(static_cast<X>(std::sin(i)));
    }
    o.device    = GMXFMM_CUDA;
    o.precision = GMXFMM_SINGLE;
    o.prefactor = 3;
    if (gmxfmm_create(&plan, &o, n, nullptr, nullptr, 0) != GMXFMM_OK)
    {
        GTEST_SKIP() << "no GPU";
    }
    std::vector<X> potential(n), field(3 * n), force(3 * n);
    gmxfmm_output  out = sized<gmxfmm_output>();
    out.potential      = potential.data();
    out.field          = field.data();
    out.force          = force.data();
    out.want_energy    = 1;
    ASSERT_EQ(gmxfmm_set_charges(plan, n, q.data()), GMXFMM_OK) << gmxfmm_message(plan);
    ASSERT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK) << gmxfmm_message(plan);
    for (X& coordinate : x) /* they may move */
    {
        coordinate *= X(1.001);
    }
    ASSERT_EQ(gmxfmm_execute(plan, x.data(), &out), GMXFMM_OK) << gmxfmm_message(plan);
    DeviceArray<X>       there(x);
    OutputsOf<X>         outputs(n);
    gmxfmm_device_output all = outputs.all();
    const Stream         stream;
    const Event          event;
    EXPECT_EQ(gmxfmm_enqueue(plan, there.data(), &all, stream), GMXFMM_ERROR_UNSUPPORTED) << "a virial";
    all.virial = nullptr;
    all.stages = GMXFMM_STAGE_NEAR;
    EXPECT_EQ(gmxfmm_enqueue(plan, there.data(), &all, stream), GMXFMM_ERROR_UNSUPPORTED) << "a stage";
    all.stages     = 0;
    all.add_forces = 1;
    EXPECT_EQ(gmxfmm_enqueue(plan, there.data(), &all, stream), GMXFMM_ERROR_UNSUPPORTED) << "forces that are added";
    all.add_forces  = 0;
    all.arrays_done = event;
    /* nothing may wait or be allocated in a capture */
    const auto step  = [&] { enqueue(plan, there, all, stream); };
    Graph      graph = Graph(stream, step);
    graph.launch(stream);
    graph.launch(stream);
    ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
    EXPECT_EQ(outputs.force.get(), force);
    stream.wait();
    EXPECT_EQ(outputs.potential.get(), potential);
    EXPECT_EQ(outputs.field.get(), field);
    EXPECT_EQ(outputs.force.get(), force);
    EXPECT_EQ(outputs.energy.get(), (Numbers{0, out.energy_far}));
    EXPECT_EQ(outputs.status.get(), std::vector<int>{GMXFMM_OK});
    /* what cannot be is in the status */
    x[7] = std::numeric_limits<X>::quiet_NaN();
    there.put(x);
    graph.launch(stream);
    stream.wait();
    EXPECT_EQ(outputs.status.get(), std::vector<int>{GMXFMM_ERROR_POSITION});
    graph = Graph();
    step();
    stream.wait();
    /* arrays of the device in the calls that wait */
    x[7] = 0.5;
    there.put(x);
    const DeviceArray<X> charges(q);
    ASSERT_EQ(gmxfmm_set_charges(plan, n, charges.data()), GMXFMM_OK) << gmxfmm_message(plan);
    ASSERT_EQ(gmxfmm_assign(plan, there.data()), GMXFMM_OK) << gmxfmm_message(plan);
    ASSERT_EQ(gmxfmm_execute(plan, there.data(), &out), GMXFMM_OK) << gmxfmm_message(plan);
    const std::vector<X> fromDevice = potential;
    ASSERT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK) << gmxfmm_message(plan);
    ASSERT_EQ(gmxfmm_execute(plan, x.data(), &out), GMXFMM_OK) << gmxfmm_message(plan);
    EXPECT_EQ(fromDevice, potential);
    gmxfmm_destroy(plan);
}

TEST(CudaTreecodeStream, GivesWhatExecuteGives)
{
    enqueueAsExecute<double>(false);
}

TEST(CudaTreecodeStream, GivesWhatExecuteGivesInFloats)
{
    enqueueAsExecute<float>(false);
}

TEST(CudaTreecodeStream, GivesWhatExecuteGivesDual)
{
    enqueueAsExecute<double>(true);
}

} // namespace
