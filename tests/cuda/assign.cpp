/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Assignments put on a stream: what follows is what a plan assigned anew would compute, to the bits, wherever particles
 * have gone; in other boxes, in graphs, with cells that are overfull, and with positions that no cell can hold. */
#include <limits>
#include <memory>
#include <type_traits>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/agreement.h"
#include "support/device_arrays.h"
#include "support/norms.h"
#include "support/on_stream.h"
#include "support/paths.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

using Positions = std::vector<double>;

/* Molecules of three atoms, each moved as a whole by up to `distance` along each axis. */
Positions moved(const Positions& x, double distance, Random* random)
{
    Positions there = x;
    for (std::size_t first = 0; first < x.size(); first += 9)
    {
        const Vec3 by = {distance * random->centred(), distance * random->centred(), distance * random->centred()};
        for (std::size_t i = first; i < std::min(first + 9, x.size()); i++)
        {
            there[i] += by[i % 3];
        }
    }
    return there;
}

/* The step at x of a new plan that is assigned at `cells` by the call that waits. */
template <class X>
std::unique_ptr<OutputsOf<X>>
fresh(System s, const gmxfmm_options& options, const Positions& cells, const Positions& x, cudaStream_t stream)
{
    s.x = cells;
    Plan                 plan(s, options);
    const DeviceArray<X> there(asArray<X>(x));
    auto                 out = std::make_unique<OutputsOf<X>>(s.size());
    enqueue(plan.get(), there, *out, stream);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    return out;
}

template <class X>
void expectClose(const OutputsOf<X>& out, const OutputsOf<X>& expected, gmxfmm_precision precision, double more = 0)
{
    const double tolerance =
        more + (precision == GMXFMM_DOUBLE && std::is_same<X, double>::value ? rounding(GMXFMM_DOUBLE)
                                                                             : rounding(GMXFMM_SINGLE));
    const std::vector<double> energy = out.energy.get(), reference = expected.energy.get();
    const double              size = std::fabs(reference[0]) + std::fabs(reference[1]);
    EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
    EXPECT_LE(relativeRms(out.force.get(), expected.force.get()), tolerance);
    EXPECT_LE(relativeRms(out.field.get(), expected.field.get()), tolerance);
    EXPECT_LE(relativeRms(out.potential.get(), expected.potential.get()), tolerance);
    EXPECT_NEAR(energy[0], reference[0], tolerance * size);
    EXPECT_NEAR(energy[1], reference[1], tolerance * size);
    EXPECT_LE(maxDifference(out.virial.get(), expected.virial.get()), tolerance * size);
}

struct Case
{
    std::string        name;
    Mat3               box;
    std::array<int, 3> grid;
    gmxfmm_precision   precision, arrays;
};

void PrintTo(const Case& c, std::ostream* out)
{
    *out << c.name;
}

std::vector<Case> cases()
{
    std::vector<Case> all;
    for (gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        for (gmxfmm_precision arrays : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
        {
            const std::string types = std::string(precision == GMXFMM_DOUBLE ? "Double" : "Single") +
                                      (arrays == GMXFMM_DOUBLE ? "OfDoubles" : "OfFloats");
            all.push_back({"Rectangular" + types, {2, 0, 0, 0, 2.2, 0, 0, 0, 1.8}, {5, 5, 4}, precision, arrays});
            all.push_back({"Triclinic" + types, {2, 0, 0, 0.3, 2.1, 0, -0.2, 0.4, 1.9}, {5, 5, 5}, precision, arrays});
        }
    }
    return all;
}

class CudaAssignIn : public OnStream<testing::TestWithParam<Case>>
{
  protected:
    gmxfmm_options options() const
    {
        return explicitOptions(8, GetParam().grid, 1, GetParam().precision);
    }
    template <class X>
    void followTrajectory(const System& s, const gmxfmm_options& options);
    template <class X>
    void changeBoxes(const System& s, const std::vector<Mat3>& strains);
    template <class X>
    void assignInParts(const System& s);
    template <class X>
    void launchGraphInBoxes(const System& s, const std::vector<Mat3>& strains);
    template <class X>
    void crowd(const System& s, const Positions& first, const Positions& then);
};

class CudaAssign : public OnStream<testing::Test>
{
  protected:
    const System         system_  = water({2, 0, 0, 0, 2.2, 0, 0, 0, 1.8}, 5);
    const gmxfmm_options options_ = onDevice(explicitOptions(8, 5, 5, 4, 1));
    void                 expectRefused(gmxfmm_plan* plan, gmxfmm_status status, const std::string& word)
    {
        const DeviceArray<double> x(system_.x);
        EXPECT_EQ(gmxfmm_enqueue_assign(plan, x.data(), stream_), status);
        expectMessage(plan, word);
        expectMessage(plan, "gmxfmm_assign");
    }
};

} // namespace

/* Assignments, and two steps each, all in flight at once. */
template <class X>
void CudaAssignIn::followTrajectory(const System& s, const gmxfmm_options& options)
{
    enum
    {
        c_frames = 12
    };
    const gmxfmm_options                         o = onDevice(withArrays<X>(options));
    Random                                       random(3);
    std::vector<Positions>                       at;
    std::vector<std::unique_ptr<DeviceArray<X>>> x;
    std::vector<std::unique_ptr<OutputsOf<X>>>   out;
    for (int f = 0; f < c_frames; f++)
    {
        at.push_back(moved(f == 0 ? s.x : at[at.size() - 2], 1.3, &random)); /* some three cells */
        at.push_back(moved(at.back(), 0.02, &random));
    }
    for (const Positions& frame : at)
    {
        x.push_back(std::make_unique<DeviceArray<X>>(asArray<X>(frame)));
        out.push_back(std::make_unique<OutputsOf<X>>(s.size()));
    }
    Plan plan(s, o);
    for (std::size_t f = 0; f < at.size(); f++)
    {
        if (f % 2 == 0)
        {
            enqueueAssign(plan.get(), *x[f], stream_);
        }
        enqueue(plan.get(), *x[f], *out[f], stream_);
    }
    wait();
    for (std::size_t f = 0; f < at.size(); f++)
    {
        SCOPED_TRACE(f);
        expectSameBits(*out[f], *fresh<X>(s, o, at[f - f % 2], at[f], stream_));
    }
}

TEST_P(CudaAssignIn, FollowsParticlesAcrossCells)
{
    const System s = withFarExclusions(water(GetParam().box, 5));
    forArrays(GetParam().arrays, [&](auto x) { followTrajectory<decltype(x)>(s, options()); });
}

TEST_P(CudaAssignIn, FollowsParticlesInVacuum)
{
    const System s = withoutExclusions(ions(GetParam().box, 200, 4));
    forArrays(GetParam().arrays,
              [&](auto x) { followTrajectory<decltype(x)>(s, withBoundary(options(), Boundary::Vacuum)); });
}

/* Cells are deformed with the box, a new plan has them from its own: spectra come from shapes that differ by rounding,
 * and near cells may be in another order. */
template <class X>
void CudaAssignIn::changeBoxes(const System& s, const std::vector<Mat3>& strains)
{
    const gmxfmm_options o = onDevice(withArrays<X>(options()));
    Plan                 plan(s, o);
    Random               random(9);
    System               now = s;
    for (const Mat3& strain : strains)
    {
        SCOPED_TRACE(testing::PrintToString(strain));
        now   = strained(now, strain);
        now.x = moved(now.x, 0.5, &random);
        const DeviceArray<X> x(asArray<X>(now.x));
        const OutputsOf<X>   out(s.size());
        plan.setBox(now.box);
        enqueueAssign(plan.get(), x, stream_);
        enqueue(plan.get(), x, out, stream_);
        wait();
        expectClose(out, *fresh<X>(now, o, now.x, now.x, stream_), GetParam().precision);
        /* the call that waits may come at any time, too */
        plan.assign(now.x);
        enqueue(plan.get(), x, out, stream_);
        wait();
        expectClose(out, *fresh<X>(now, o, now.x, now.x, stream_), GetParam().precision);
    }
}

TEST_P(CudaAssignIn, TakesScaledBoxes)
{
    const std::vector<Mat3> strains = {{0.01, 0, 0, 0, 0.01, 0, 0, 0, 0.01},
                                       {-0.02, 0, 0, 0, -0.02, 0, 0, 0, -0.02},
                                       {0.3, 0, 0, 0, 0.3, 0, 0, 0, 0.3}};
    const System            s       = water(GetParam().box, 5);
    forArrays(GetParam().arrays, [&](auto x) { changeBoxes<decltype(x)>(s, strains); });
}

TEST_P(CudaAssignIn, TakesDeformedBoxes)
{
    std::vector<Mat3> strains = {{0.01, 0, 0, 0, 0.01, 0, 0, 0, -0.005}, {-0.012, 0, 0, 0, 0.004, 0, 0, 0, 0.01}};
    if (GetParam().box[3] != 0)
    {
        strains.push_back({0, 0, 0, 0.004, 0, 0, -0.003, 0.005, 0});
    }
    const System s = water(GetParam().box, 5);
    forArrays(GetParam().arrays, [&](auto x) { changeBoxes<decltype(x)>(s, strains); });
}

/* A graph of an assignment and a step does in another box what the calls would do; spectra between nodes differ by a
 * share of the error, as in box.cpp. */
template <class X>
void CudaAssignIn::launchGraphInBoxes(const System& s, const std::vector<Mat3>& strains)
{
    const gmxfmm_options o = onDevice(withArrays<X>(options()));
    Plan                 plan(s, o);
    const double         interpolated = 6 * 2.5e-3 * std::min(o.accuracy, plan.info().predicted_error);
    Random               random(12);
    DeviceArray<X>       x(asArray<X>(s.x));
    const OutputsOf<X>   out(s.size());
    Graph                graph;
    std::int64_t         version = 0;
    const auto           both    = [&]
    {
        enqueueAssign(plan.get(), x, stream_);
        enqueue(plan.get(), x, out, stream_);
    };
    for (std::size_t i = 0; i < strains.size(); i++)
    {
        SCOPED_TRACE(testing::PrintToString(strains[i]));
        System now = strained(s, strains[i]);
        now.x      = moved(now.x, 0.5, &random);
        x.put(asArray<X>(now.x));
        enqueueBox(plan.get(), now.box, stream_);
        if (graph)
        {
            EXPECT_EQ(gmxfmm_graph_version(plan.get()), version);
            graph.launch(stream_);
        }
        else
        {
            both();
        }
        wait();
        expectClose(out, *fresh<X>(now, o, now.x, now.x, stream_), GetParam().precision, interpolated);
        if (i == 1) /* a second box on the line has the memory for it */
        {
            graph   = Graph(stream_, both, cudaStreamCaptureModeGlobal);
            version = gmxfmm_graph_version(plan.get());
        }
    }
}

TEST_P(CudaAssignIn, GraphsFollowTheBox)
{
    std::vector<Mat3> strains;
    for (const double z : {0.001, 0.002, 0.01, -0.01, 0.02}) /* the same cells are near */
    {
        const double across = 0.004 - z;
        strains.push_back({across, 0, 0, 0, across, 0, 0, 0, z});
    }
    const System s = withFarExclusions(water(GetParam().box, 5));
    forArrays(GetParam().arrays, [&](auto x) { launchGraphInBoxes<decltype(x)>(s, strains); });
}

/* More tiles of targets than the first assignment counted, and cells with all particles. */
template <class X>
void CudaAssignIn::crowd(const System& s, const Positions& first, const Positions& then)
{
    const gmxfmm_options o       = onDevice(withArrays<X>(options()));
    System               atFirst = s;
    atFirst.x                    = first;
    Plan                 plan(atFirst, o);
    const DeviceArray<X> x(asArray<X>(then));
    const OutputsOf<X>   out(s.size());
    enqueueAssign(plan.get(), x, stream_);
    enqueue(plan.get(), x, out, stream_);
    wait();
    expectSameBits(out, *fresh<X>(s, o, then, then, stream_));
}

TEST_P(CudaAssignIn, CrowdsMayComeAndGo)
{
    const System s = water(GetParam().box, 5);
    forArrays(GetParam().arrays,
              [&](auto x)
              {
                  crowd<decltype(x)>(s, s.x, crowded(s.x));
                  crowd<decltype(x)>(s, crowded(s.x), s.x);
              });
}

INSTANTIATE_TEST_SUITE_P(Boxes, CudaAssignIn, testing::ValuesIn(cases()), parameterName<Case>);

TEST_F(CudaAssign, CanBeCapturedWithAStep)
{
    Plan                plan(system_, options_);
    DeviceArray<double> x(system_.x);
    OutputsOf<double>   out(system_.size());
    Random              random(5);
    const auto          both = [&]
    {
        enqueueAssign(plan.get(), x, stream_);
        enqueue(plan.get(), x, out, stream_);
    };
    both();
    wait();
    const Graph graph(stream_, both, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < 3; i++)
    {
        const Positions there = i < 2 ? moved(system_.x, 1.3, &random) : crowded(system_.x);
        x.put(there);
        graph.launch(stream_);
        wait();
        expectSameBits(out, *fresh<double>(system_, options_, there, there, stream_));
    }
}

TEST_F(CudaAssign, CountsInGraphsCapturedBefore)
{
    Plan                plan(system_, options_);
    DeviceArray<double> x(system_.x);
    OutputsOf<double>   out(system_.size());
    Random              random(6);
    enqueue(plan.get(), x, out, stream_);
    wait();
    const Graph graph(
        stream_, [&] { enqueue(plan.get(), x, out, stream_); }, cudaStreamCaptureModeGlobal);
    const Positions there = moved(system_.x, 1.3, &random);
    x.put(there);
    enqueueAssign(plan.get(), x, stream_);
    graph.launch(stream_);
    wait();
    expectSameBits(out, *fresh<double>(system_, options_, there, there, stream_));
}

/* In parts: steps between them have the old cells, later ones the new; what changes meanwhile, and graphs. */
template <class X>
void CudaAssignIn::assignInParts(const System& s)
{
    const gmxfmm_options o = onDevice(withArrays<X>(options()));
    Plan                 plan(s, o);
    Random               random(21);
    System               now    = s;
    Positions            before = s.x; /* where the old cells are of */
    DeviceArray<X>       x(asArray<X>(s.x)), q(asArray<X>(s.q));
    const OutputsOf<X>   old(s.size()), out(s.size());
    const Stream         beside;
    const Event          event;
    Graph                graph;
    const auto           put = [&](gmxfmm_assign_part part, cudaStream_t stream)
    { enqueueAssignPart(plan.get(), part, x, stream); };
    const auto behind = [&](cudaStream_t first, cudaStream_t second)
    {
        ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
        ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
    };
    for (int i = 0; i < 5; i++)
    {
        SCOPED_TRACE(i);
        now.x = i == 3 ? crowded(s.x) : moved(now.x, i == 4 ? 0.5 : 1.3, &random);
        x.put(asArray<X>(now.x));
        put(GMXFMM_ASSIGN_BEGIN, stream_);
        behind(stream_, beside);
        if (i == 1)
        {
            graph = Graph(beside, [&] { put(GMXFMM_ASSIGN_SORT, beside); });
        }
        if (i == 0)
        {
            put(GMXFMM_ASSIGN_SORT, beside);
        }
        else
        {
            graph.launch(beside);
        }
        const DeviceArray<X> there(asArray<X>(before));
        enqueue(plan.get(), there, old, stream_);
        const std::unique_ptr<OutputsOf<X>> expected = fresh<X>(now, o, before, before, stream_);
        if (i == 2)
        {
            for (double& charge : now.q)
            {
                charge *= 1.25;
            }
            q.put(asArray<X>(now.q));
            enqueueCharges(plan.get(), s.size(), q, stream_);
        }
        if (i == 4)
        {
            now = strained(now, {0.001, 0, 0, 0, 0.001, 0, 0, 0, 0.001});
            enqueueBox(plan.get(), now.box, stream_);
            wait();
            x.put(asArray<X>(now.x));
        }
        behind(beside, stream_);
        put(GMXFMM_ASSIGN_END, stream_);
        enqueue(plan.get(), x, out, stream_);
        wait();
        expectSameBits(old, *expected);
        const std::unique_ptr<OutputsOf<X>> at = fresh<X>(now, o, now.x, now.x, stream_);
        i < 4 ? expectSameBits(out, *at) : expectClose(out, *at, GetParam().precision);
        before = now.x;
    }
    EXPECT_EQ(gmxfmm_enqueue_assign_part(plan.get(), GMXFMM_ASSIGN_END, nullptr, stream_), GMXFMM_ERROR_ORDER);
    put(GMXFMM_ASSIGN_BEGIN, stream_);
    enqueueAssign(plan.get(), x, stream_);
    EXPECT_EQ(gmxfmm_enqueue_assign_part(plan.get(), GMXFMM_ASSIGN_SORT, nullptr, stream_), GMXFMM_ERROR_ORDER);
    expectMessage(plan.get(), "BEGIN");
    wait();
}

TEST_P(CudaAssignIn, ComesInParts)
{
    const System s = withFarExclusions(water(GetParam().box, 5));
    forArrays(GetParam().arrays, [&](auto x) { assignInParts<decltype(x)>(s); });
}

TEST_F(CudaAssign, ReportsPositionsThatNoCellCanHold)
{
    Plan                      plan(system_, options_);
    OutputsOf<double>         out(system_.size());
    const DeviceArray<double> good(system_.x);
    for (double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e30})
    {
        Positions there = system_.x;
        there[100]      = value;
        const DeviceArray<double> bad(there);
        enqueueAssign(plan.get(), bad, stream_);
        for (int i = 0; i < 2; i++) /* until the next assignment */
        {
            enqueue(plan.get(), good, out, stream_);
            wait();
            EXPECT_EQ(out.status.get()[0], GMXFMM_ERROR_POSITION);
        }
        gmxfmm_output output = sized<gmxfmm_output>();
        output.want_energy   = 1;
        EXPECT_EQ(gmxfmm_execute(plan.get(), system_.x.data(), &output), GMXFMM_ERROR_POSITION);
        expectMessage(plan.get(), "particle 33");
        enqueueAssign(plan.get(), good, stream_);
        enqueue(plan.get(), good, out, stream_);
        wait();
        expectSameBits(out, *fresh<double>(system_, options_, system_.x, system_.x, stream_));
        EXPECT_EQ(gmxfmm_execute(plan.get(), system_.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
        enqueueAssign(plan.get(), bad, stream_);
        plan.assign(system_.x);
        enqueue(plan.get(), good, out, stream_);
        wait();
        EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
    }
}

TEST_F(CudaAssign, TakesNewCharges)
{
    Plan   plan(system_, options_);
    System changed = system_;
    for (double& q : changed.q)
    {
        q *= 1.25;
    }
    Random                    random(8);
    const Positions           there = moved(system_.x, 1.3, &random);
    const DeviceArray<double> x(there);
    OutputsOf<double>         out(system_.size());
    enqueueAssign(plan.get(), x, stream_);
    ASSERT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(changed.size()), changed.q.data()), GMXFMM_OK);
    enqueue(plan.get(), x, out, stream_);
    wait();
    expectSameBits(out, *fresh<double>(changed, options_, there, there, stream_));
    enqueueAssign(plan.get(), x, stream_);
    enqueue(plan.get(), x, out, stream_);
    wait();
    expectSameBits(out, *fresh<double>(changed, options_, there, there, stream_));
}

TEST_F(CudaAssign, OfNoParticles)
{
    System none;
    none.box = system_.box;
    Plan              plan(none, options_);
    OutputsOf<double> out(0);
    const auto        all = out.all();
    ASSERT_EQ(gmxfmm_enqueue_assign(plan.get(), nullptr, stream_), GMXFMM_OK) << gmxfmm_message(plan.get());
    ASSERT_EQ(gmxfmm_enqueue(plan.get(), nullptr, &all, stream_), GMXFMM_OK) << gmxfmm_message(plan.get());
    wait();
    EXPECT_EQ(out.energy.get(), (std::vector<double>{0, 0}));
    EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
}

TEST_F(CudaAssign, ComesAfterTheCallThatWaits)
{
    gmxfmm_plan* p = nullptr;
    ASSERT_EQ(gmxfmm_create(&p, &options_, static_cast<std::int64_t>(system_.size()), system_.box.data(), nullptr, 0),
              GMXFMM_OK);
    expectRefused(p, GMXFMM_ERROR_ORDER, "before enqueue_assign");
    ASSERT_EQ(gmxfmm_set_charges(p, static_cast<std::int64_t>(system_.size()), system_.q.data()), GMXFMM_OK);
    expectRefused(p, GMXFMM_ERROR_ORDER, "before enqueue_assign");
    gmxfmm_destroy(p);
    Plan                      plan(system_, options_);
    const DeviceArray<double> x(system_.x);
    enqueueAssign(plan.get(), x, stream_);
    plan.setExclusions(system_);
    expectRefused(plan.get(), GMXFMM_ERROR_ORDER, "exclusions");
    plan.assign(system_.x);
    enqueueAssign(plan.get(), x, stream_);
    wait();
}

/* Bricks of 0.36 0.44 0.45: their diagonal is longer than twice the shortest edge, those of 0.4 0.44 0.45 have a
 * shorter one (near_radius of cells.c). */
TEST_F(CudaAssign, ComesAfterTheCallThatWaitsWhereOtherCellsAreNear)
{
    Plan   plan(system_, options_);
    System narrow = strained(system_, {-0.1, 0, 0, 0, 0, 0, 0, 0, 0});
    plan.setBox(narrow.box);
    expectRefused(plan.get(), GMXFMM_ERROR_ORDER, "near each other");
    expectRefused(plan.get(), GMXFMM_ERROR_ORDER, "near each other");
    plan.assign(narrow.x);
    const DeviceArray<double> x(narrow.x);
    OutputsOf<double>         out(narrow.size());
    enqueueAssign(plan.get(), x, stream_);
    enqueue(plan.get(), x, out, stream_);
    wait();
    expectClose(out, *fresh<double>(narrow, options_, narrow.x, narrow.x, stream_), GMXFMM_DOUBLE);
}

/* Bricks of 0.4 0.44 0.38 to 0.33: from 0.342 on their diagonal is longer than twice the shortest edge. Graphs of steps
 * go on. */
TEST_F(CudaAssign, SaysWhereNoGraphCanStandForIt)
{
    Plan                      plan(system_, options_);
    const DeviceArray<double> x(system_.x);
    OutputsOf<double>         out(system_.size());
    int                       accepted = 0, refused = 0;
    for (const double z : {-0.16, -0.17, -0.18, -0.2, -0.22, -0.23, -0.24, -0.25, -0.26})
    {
        SCOPED_TRACE(z);
        const Mat3         box     = strained(system_, {0, 0, 0, 0, 0, 0, 0, 0, z}).box;
        const std::int64_t version = gmxfmm_graph_version(plan.get());
        enqueueBox(plan.get(), box, stream_);
        const bool          can    = (gmxfmm_capabilities(plan.get()) & GMXFMM_CAN_ENQUEUE_ASSIGN) != 0;
        const gmxfmm_status status = gmxfmm_enqueue_assign(plan.get(), x.data(), stream_);
        EXPECT_EQ(can, status == GMXFMM_OK);
        EXPECT_EQ(can, gmxfmm_enqueue_assign_part(plan.get(), GMXFMM_ASSIGN_BEGIN, x.data(), stream_) == GMXFMM_OK);
        EXPECT_TRUE(can || status == GMXFMM_ERROR_ORDER) << gmxfmm_message(plan.get());
        if (z < -0.17) /* before, the line of these shapes begins */
        {
            EXPECT_EQ(gmxfmm_graph_version(plan.get()), version);
            (can ? accepted : refused)++;
        }
        enqueue(plan.get(), x, out, stream_);
        wait();
    }
    EXPECT_GT(accepted, 1);
    EXPECT_GT(refused, 1);
}

TEST_F(CudaAssign, RefusesWhatOnlyTheCallThatWaitsCanDo)
{
    const System cubic = water({2, 0, 0, 0, 2, 0, 0, 0, 2}, 5);
    Plan         octree(cubic, onDevice(depthOptions(GMXFMM_M2L_ROTATION, 6, 2, 1)));
    expectRefused(octree.get(), GMXFMM_ERROR_UNSUPPORTED, "octree");
    Plan open(system_, withBoundary(options_, Boundary::Open));
    expectRefused(open.get(), GMXFMM_ERROR_UNSUPPORTED, "open");
    Plan         plan(withoutExclusions(system_), options_);
    const double probe[3] = {1, 1, 1};
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), 1, probe), GMXFMM_OK);
    expectRefused(plan.get(), GMXFMM_ERROR_UNSUPPORTED, "targets");
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), 0, nullptr), GMXFMM_OK);
    expectRefused(plan.get(), GMXFMM_ERROR_ORDER, "before enqueue_assign");
    gmxfmm_options cpu = options_;
    cpu.device         = GMXFMM_CPU;
    Plan host(system_, cpu);
    EXPECT_EQ(gmxfmm_enqueue_assign(host.get(), system_.x.data(), stream_), GMXFMM_ERROR_UNSUPPORTED);
    EXPECT_EQ(gmxfmm_enqueue_assign(nullptr, system_.x.data(), stream_), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_enqueue_assign(plan.get(), nullptr, stream_), GMXFMM_ERROR_NULL);
}
