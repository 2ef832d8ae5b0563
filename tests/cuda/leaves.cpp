/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Leaves of several levels on the GPU: the same tree as on the CPU, and what that computes in double precision, of
 * systems that fill space as unevenly as these are for; with excluded pairs, targets, close pairs limited, particles
 * that have no charge, and steps on a stream. */
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/on_stream.h"
#include "support/paths.h"
#include "support/systems.h"

extern "C"
{
#define restrict __restrict
#include "fmm/state.h"
}

using namespace fmmtest;

namespace
{

/* Numbers that floats hold, so that arrays of both types have the same. */
double asFloat(double x)
{
    volatile const float f = static_cast<float>(x); /* GCC 12 leaves the rounding out of two at once */
    return static_cast<double>(f);
}

void addIon(System* s, double x, double y, double z)
{
    s->add({asFloat(x), asFloat(y), asFloat(z)}, s->size() % 2 == 0 ? 1 : -1);
}

/* Half of n ions in a cube that is by so much smaller than the others'. */
System halfInACluster(int n, double cluster = 1e-4)
{
    Random random(3);
    System s;
    for (int i = 0; i < n; i++)
    {
        const double edge = i % 4 < 2 ? 1 : cluster;
        addIon(&s, edge * random.centred(), edge * random.centred(), edge * random.centred());
    }
    return s;
}

/* One ion so many lengths away from n others. */
System withAnOutlier(int n, double away = 1000)
{
    Random random(5);
    System s;
    for (int i = 0; i < n; i++)
    {
        addIon(&s, random.uniform(), random.uniform(), random.uniform());
    }
    addIon(&s, 0.9 * away, -0.3 * away, 0.4 * away);
    return s;
}

/* A Plummer sphere of n ions. */
System plummer(int n)
{
    Random random(7);
    System s;
    for (int i = 0; i < n; i++)
    {
        double x, y, z, square;
        do
        {
            x      = 2 * random.centred();
            y      = 2 * random.centred();
            z      = 2 * random.centred();
            square = x * x + y * y + z * z;
        } while (square > 1 || square < 1e-4);
        const double inside = 0.999 * random.uniform() + 5e-4; /* part of the mass */
        const double r      = 1 / std::sqrt(std::pow(inside, -2.0 / 3) - 1) / std::sqrt(square);
        addIon(&s, r * x, r * y, r * z);
    }
    return s;
}

/* Bonds of neighbours in the list, every seventh of which is in another leaf, or far away. */
void excludePairs(System* s)
{
    for (std::size_t i = 0; i + 1 < s->size(); i += 2)
    {
        s->exclude(i, i + 1);
        if (i % 7 == 0 && i != s->size() / 2)
        {
            s->exclude(i, s->size() - 1 - i);
        }
    }
}

/* Edge of the smallest leaves, and pairs at which a cell is divided: so that small systems, too, have many leaves. */
const double c_edge  = 1e-5;
const int    c_pairs = 3000;

template <class X>
std::vector<double> asDoubles(const std::vector<X>& v)
{
    return std::vector<double>(v.begin(), v.end());
}

/* A plan for the system whose tree has such leaves: the model may have chosen others, or leaves of one level. */
template <class X>
class LeavesPlan
{
  public:
    LeavesPlan(const System& s, const gmxfmm_options& options) : x_(s.x.begin(), s.x.end()), n_(s.size())
    {
        plan_ = std::make_unique<Plan>(s, withArrays<X>(options));
        EXPECT_NE(plan_->get()->domain.tree, nullptr);
        plan_->get()->domain.tree->most  = c_pairs;
        plan_->get()->tuning.target_edge = c_edge;
        plan_->get()->tuning.done        = 1;
        assign();
    }
    void assign()
    {
        EXPECT_EQ(gmxfmm_assign(get(), x_.data()), GMXFMM_OK) << gmxfmm_message(get());
    }
    void setTargets(const std::vector<double>& places)
    {
        const std::vector<X> at(places.begin(), places.end());
        n_ = places.size() / 3;
        EXPECT_EQ(gmxfmm_set_targets(get(), static_cast<std::int64_t>(n_), at.data()), GMXFMM_OK);
        assign();
    }
    Solution execute(bool own = true)
    {
        std::vector<X> potential(n_), field(3 * n_), force(own ? 3 * n_ : 0);
        gmxfmm_output  out = sized<gmxfmm_output>();
        Solution       v;
        out.potential   = potential.data();
        out.field       = field.data();
        out.force       = own ? force.data() : nullptr;
        out.want_energy = out.want_virial = own;
        EXPECT_EQ(gmxfmm_execute(get(), x_.data(), &out), GMXFMM_OK) << gmxfmm_message(get());
        v.potential = asDoubles(potential);
        v.field     = asDoubles(field);
        v.force     = asDoubles(force);
        v.energy    = out.energy_near + out.energy_far;
        std::copy(out.virial, out.virial + 9, v.virial.begin());
        return v;
    }
    gmxfmm_plan* get() const
    {
        return plan_->get();
    }
    int leaves() const
    {
        return plan_->info().num_cells;
    }
    const std::vector<X>& x() const
    {
        return x_;
    }

  private:
    std::unique_ptr<Plan> plan_;
    std::vector<X>        x_;
    std::size_t           n_;
};

/* Of each number's own size, but for one in fifty, where large ones may cancel; in single precision pairs have digits
 * of the caller's numbers, and expansions 6e-8 of sums over many cells. */
void expectEach(const std::vector<double>& v, const std::vector<double>& reference, double tolerance, const char* what)
{
    std::size_t off = 0;
    ASSERT_EQ(v.size(), reference.size());
    for (std::size_t i = 0; i < v.size(); i++)
    {
        off += !(std::fabs(v[i] - reference[i]) <= tolerance * std::fabs(reference[i]));
    }
    EXPECT_LE(off, v.size() / 50) << what;
}

class CudaLeaves : public OnStream<testing::TestWithParam<MethodAndPrecision>>
{
  protected:
    static bool isDouble()
    {
        return std::get<1>(GetParam()) == GMXFMM_DOUBLE;
    }
    static gmxfmm_options options(int order, int separation, gmxfmm_device device)
    {
        gmxfmm_options o =
            withBoundary(depthOptions(std::get<0>(GetParam()), order, 0, separation, GMXFMM_DOUBLE), Boundary::Open);
        o.depth     = GMXFMM_AUTO;
        o.device    = device;
        o.precision = device == GMXFMM_CPU ? GMXFMM_DOUBLE : std::get<1>(GetParam());
        return o;
    }
    static double tolerance()
    {
        return isDouble() ? 1e-9 : 3e-3;
    }
    static void expectValues(const Solution& gpu, const Solution& cpu)
    {
        expectEach(gpu.potential, cpu.potential, tolerance(), "potentials");
        expectEach(gpu.field, cpu.field, tolerance(), "fields");
        expectEach(gpu.force, cpu.force, tolerance(), "forces");
        const double rounding = isDouble() ? 1e-11 : 2e-5,
                     size     = rms(cpu.potential) * static_cast<double>(cpu.potential.size());
        EXPECT_LE(rmsDifference(gpu.field, cpu.field), rounding * rms(cpu.field));
        EXPECT_LE(rmsDifference(gpu.potential, cpu.potential), rounding * rms(cpu.potential));
        EXPECT_NEAR(gpu.energy, cpu.energy, rounding * size);
        EXPECT_LE(maxDifference(gpu.virial, cpu.virial), rounding * size);
    }
    template <class X>
    static void expectSameOf(const System& s, const gmxfmm_options& o, const gmxfmm_options& reference)
    {
        LeavesPlan<X>      gpu(s, o);
        LeavesPlan<double> cpu(s, reference);
        ASSERT_GT(cpu.leaves(), 50);
        EXPECT_EQ(gpu.leaves(), cpu.leaves());
        expectValues(gpu.execute(), cpu.execute());
    }
    static void expectAgreement(const System& s, int order, int separation, double minDistance = 0)
    {
        gmxfmm_options o = options(order, separation, GMXFMM_CUDA), reference = options(order, separation, GMXFMM_CPU);
        o.min_distance = reference.min_distance = minDistance;
        isDouble() ? expectSameOf<double>(s, o, reference) : expectSameOf<float>(s, o, reference);
    }
    template <class X>
    static void expectTargetsAgree(const System& s, const std::vector<double>& places)
    {
        LeavesPlan<X>      gpu(s, options(6, 1, GMXFMM_CUDA));
        LeavesPlan<double> cpu(s, options(6, 1, GMXFMM_CPU));
        gpu.setTargets(places);
        cpu.setTargets(places);
        const Solution v = gpu.execute(false), reference = cpu.execute(false);
        expectEach(v.potential, reference.potential, tolerance(), "potentials");
        expectEach(v.field, reference.field, tolerance(), "fields");
    }
    template <class X>
    void expectTheSameOnAStream(const System& s)
    {
        LeavesPlan<X>        plan(s, options(6, 1, GMXFMM_CUDA));
        const Solution       values = plan.execute();
        const DeviceArray<X> x(plan.x());
        OutputsOf<X>         out(s.size());
        const auto           step = [&] { enqueue(plan.get(), x, out, stream_); };
        /* once before it is captured: kernels are loaded when they are first launched */
        step();
        wait();
        const Graph graph(stream_, step);
        graph.launch(stream_);
        wait();
        EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
        EXPECT_EQ(asDoubles(out.force.get()), values.force);
        EXPECT_EQ(asDoubles(out.potential.get()), values.potential);
    }
};

/* fmm_tree.most: 0 where leaves are of one level, or there is no octree. */
int mostIn(Plan* plan)
{
    const fmm_tree* tree = plan->get()->domain.tree;
    return tree != nullptr ? tree->most : 0;
}

} // namespace

TEST_P(CudaLeaves, HalfInACluster)
{
    expectAgreement(halfInACluster(6000), 6, 1);
    expectAgreement(halfInACluster(3000), 3, 2);
}

TEST_P(CudaLeaves, WithAnOutlier)
{
    for (double away : {1e3, 1e6, 1e8})
    {
        SCOPED_TRACE(away);
        expectAgreement(withAnOutlier(4000, away), 6, 1);
    }
}

TEST_P(CudaLeaves, PlummerSphere)
{
    expectAgreement(plummer(6000), 8, 1);
    expectAgreement(plummer(2000), 5, 2);
}

TEST_P(CudaLeaves, WithExcludedPairs)
{
    for (System s : {halfInACluster(4000), plummer(3000)})
    {
        excludePairs(&s);
        expectAgreement(s, 6, 1);
    }
}

TEST_P(CudaLeaves, WithLeastDistance)
{
    expectAgreement(halfInACluster(4000), 6, 1, 1e-5);
}

/* Particles without a charge stand where others do. */
TEST_P(CudaLeaves, WithUnchargedParticles)
{
    System s = plummer(3000);
    for (std::size_t i = 0; i < 60; i++)
    {
        s.add(s.position(40 * i), 0);
    }
    expectAgreement(s, 6, 1);
}

TEST_P(CudaLeaves, WithTargets)
{
    const System        s = halfInACluster(4000), more = withAnOutlier(700);
    std::vector<double> places = more.x; /* some in leaves without particles */
    for (std::size_t i = 0; i < 300; i++)
    {
        places.push_back(asFloat(1.2e-4 * s.x[i]));
    }
    isDouble() ? expectTargetsAgree<double>(s, places) : expectTargetsAgree<float>(s, places);
}

TEST_P(CudaLeaves, OnAStream)
{
    isDouble() ? expectTheSameOnAStream<double>(halfInACluster(4000)) : expectTheSameOnAStream<float>(plummer(4000));
}

/* Nothing is kept of the particles before. */
TEST_P(CudaLeaves, AssignedAnew)
{
    if (!isDouble())
    {
        GTEST_SKIP() << "once is enough";
    }
    const System       s = halfInACluster(4000), other = plummer(static_cast<int>(s.size()));
    LeavesPlan<double> plan(s, options(6, 1, GMXFMM_CUDA));
    const Solution     first = plan.execute();
    EXPECT_EQ(gmxfmm_assign(plan.get(), other.x.data()), GMXFMM_OK) << gmxfmm_message(plan.get());
    plan.assign();
    EXPECT_EQ(plan.execute().force, first.force);
    EXPECT_EQ(plan.execute().force, first.force);
}

/* The model takes them where particles are as uneven as this and orders may follow, and not on several GPUs. */
TEST_P(CudaLeaves, AreChosen)
{
    gmxfmm_options o = options(6, 1, GMXFMM_CUDA);
    o.m2l            = GMXFMM_M2L_AUTO;
    o.order = o.separation = GMXFMM_AUTO;
    o.precision            = GMXFMM_DOUBLE;
    o.accuracy             = 1e-4;
    const System s         = halfInACluster(50000, 1e-5);
    Plan         one(s, o);
    EXPECT_GT(mostIn(&one), 0);
    o.num_devices = 2; /* parts of one */
    o.devices[0] = o.devices[1] = 0;
    Plan several(s, o);
    EXPECT_EQ(mostIn(&several), 0);
}

INSTANTIATE_TEST_SUITE_P(Methods,
                         CudaLeaves,
                         testing::Combine(testing::Values(GMXFMM_M2L_ROTATION, GMXFMM_M2L_SYMMETRIC, GMXFMM_M2L_NAIVE),
                                          testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         methodAndPrecisionName);
