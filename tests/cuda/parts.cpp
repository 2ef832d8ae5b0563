/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Near and far field in parts, on one device or on all that there are: the bits of a plan on one, whatever the number
 * of parts and their shares; on streams, in graphs, with assignments, boxes and charges that change. */
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/on_stream.h"
#include "support/partly_periodic.h"
#include "support/paths.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Of near and far field; empty: as the library measures them or, of the far field where those of the near field are
 * given, all on the first. */
struct Shares
{
    std::vector<double> near, far;
};

gmxfmm_options inParts(gmxfmm_options options, const std::vector<int>& devices, const Shares& shares = {})
{
    options.num_devices = static_cast<int>(devices.size());
    std::copy(devices.begin(), devices.end(), options.devices);
    std::copy(shares.near.begin(), shares.near.end(), options.shares);
    std::copy(shares.far.begin(), shares.far.end(), options.far_shares);
    return options;
}

std::string named(const std::vector<int>& devices, const Shares& shares)
{
    return "devices " + testing::PrintToString(devices) + ", shares " + testing::PrintToString(shares.near) +
           ", of the far field " + testing::PrintToString(shares.far);
}

/* 2, 3, 4 and 8 parts of the first device, and the same on all devices in turn if there are several. */
std::vector<std::vector<int>> divisions()
{
    int num = 0;
    EXPECT_EQ(cudaGetDeviceCount(&num), cudaSuccess);
    std::vector<std::vector<int>> all;
    for (const int stride : {0, 1})
    {
        for (const int parts : {2, 3, 4, 8})
        {
            std::vector<int> devices;
            for (int k = 0; k < parts; k++)
            {
                devices.push_back(k * stride % num);
            }
            if (stride == 0 || num > 1)
            {
                all.push_back(devices);
            }
        }
    }
    return all;
}

/* Equal shares, shares that grow, one part alone, and parts without any between others, the far field's the same or
 * others, or all on the first; the library's own of one field and of both. */
std::vector<Shares> sharesOf(std::size_t parts)
{
    std::vector<double> equal(parts, 1), growing(parts), falling(parts), first(parts, 0), last(parts, 0),
        every(parts, 0);
    std::iota(growing.begin(), growing.end(), 0);
    std::iota(falling.rbegin(), falling.rend(), 1);
    first.front() = 5;
    last.back()   = 0.1;
    for (std::size_t k = 0; k < parts; k += 2)
    {
        every[k] = 1;
    }
    return {{equal, equal},   {growing, falling}, {first, last}, {last, equal}, {every, growing},
            {growing, every}, {last, {}},         {{}, equal},   {{}, {}}};
}

class CudaParts : public OnStream<testing::Test>
{
  protected:
    template <class X>
    void step(Plan* plan, const std::vector<double>& x, const gmxfmm_device_output& wanted) const
    {
        const DeviceArray<X> there(asArray<X>(x));
        enqueue(plan->get(), there, wanted, stream_);
        wait();
    }
    template <class X>
    void compare(const System& s, const gmxfmm_options& options) const;

    const System         system_  = water({4.8, 0, 0, 0, 1.6, 0, 0, 0, 1.7}, 5);
    const gmxfmm_options options_ = onDevice(explicitOptions(6, 12, 4, 4, 1));
};

/* Steps of plans in parts, of one for all that it gives and one for forces alone, elsewhere than at assign. */
template <class X>
void CudaParts::compare(const System& s, const gmxfmm_options& given) const
{
    const gmxfmm_options      options = withArrays<X>(given);
    const std::vector<double> x       = moved(s.x, 0.01, 7);
    Plan                      one(s, options);
    OutputsOf<X>              expected(s.size()), forces(s.size());
    gmxfmm_device_output      few = sized<gmxfmm_device_output>();
    few.force                     = forces.force.data();
    step<X>(&one, x, expected.all());
    step<X>(&one, s.x, few);
    ASSERT_EQ(expected.status.get()[0], GMXFMM_OK);
    for (const std::vector<int>& devices : divisions())
    {
        for (const Shares& shares : sharesOf(devices.size()))
        {
            SCOPED_TRACE(named(devices, shares));
            Plan         parts(s, inParts(options, devices, shares));
            OutputsOf<X> out(s.size());
            step<X>(&parts, x, out.all());
            expectSameBits(out, expected);
            few.force = out.force.data();
            step<X>(&parts, s.x, few);
            EXPECT_EQ(out.force.get(), forces.force.get());
            if (testing::Test::HasFailure())
            {
                return;
            }
        }
    }
}

/* Ions anywhere in a box with rectangular faces, and beyond them. */
System cloud(const Mat3& box, int n, std::uint64_t seed)
{
    System s;
    Random random(seed);
    s.box = box;
    scatter(&s, n, {-box[0] / 2, -box[4] / 2, -box[8] / 2}, {2 * box[0], 2 * box[4], 2 * box[8]}, &random);
    return s;
}

} // namespace

TEST_F(CudaParts, OfCells)
{
    compare<double>(withFarExclusions(system_), options_);
    compare<double>(system_, withBoundary(options_, Boundary::Vacuum));
}

TEST_F(CudaParts, OfCellsInSinglePrecision)
{
    const gmxfmm_options single = onDevice(explicitOptions(6, 12, 4, 4, 1, GMXFMM_SINGLE));
    compare<double>(system_, single);
    compare<float>(withFarExclusions(system_), single);
}

/* Two layers of near cells, in boxes of any shape; and cells so few that every part reads all of them. */
TEST_F(CudaParts, OfCellsInSkewedBoxes)
{
    const System s = water({3.6, 0, 0, 0.5, 1.5, 0, -0.4, 0.3, 1.4}, 5);
    compare<double>(s, onDevice(explicitOptions(5, 9, 4, 4, 1)));
    compare<float>(s, onDevice(explicitOptions(5, 9, 4, 4, 2, GMXFMM_SINGLE)));
    compare<double>(s, onDevice(explicitOptions(5, 2, 1, 2, 2)));
}

/* Lists of more sources than a warp has room for. */
TEST_F(CudaParts, OfFullCells)
{
    compare<float>(system_, onDevice(explicitOptions(5, 3, 1, 1, 1, GMXFMM_SINGLE)));
}

/* P2P takes the caller's own numbers but where a step has fewer digits. */
TEST_F(CudaParts, OfOpenSystems)
{
    const System ball = droplet(700, 3, 4);
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        const gmxfmm_options open = withBoundary(onDevice(explicitOptions(6, 6, 6, 6, 1, precision)), Boundary::Open);
        compare<double>(ball, open);
        compare<float>(ball, open);
    }
}

/* Padded along the open direction, whichever it is of the caller's; P2M has blocks of 32 cells and of 128. */
TEST_F(CudaParts, OfSlabs)
{
    const System flat = water({3.6, 0, 0, 0.5, 1.5, 0, 0, 0, 1.2}, 5),
                 wide = ions({6, 0, 0, 0, 3, 0, 0, 0, 1}, 3000, 6);
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        const auto slab = [](const gmxfmm_options& options) { return periodicAlong(onDevice(options), {1, 1, 0}); };
        const gmxfmm_options few = slab(explicitOptions(6, 9, 4, 3, 1, precision));
        compare<double>(withFarExclusions(flat), few);
        compare<float>(rotated(flat, {1, 2, 3}, 0.7), few);
        compare<double>(wide, slab(explicitOptions(4, 36, 18, 8, 1, precision)));
        compare<double>(wide, slab(depthOptions(GMXFMM_M2L_ROTATION, 6, 2, 1, precision)));
    }
}

TEST_F(CudaParts, OfOctrees)
{
    const System cubic = water({2, 0, 0, 0, 2, 0, 0, 0, 2}, 5), ball = droplet(700, 3, 4);
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        const gmxfmm_options octree = onDevice(depthOptions(GMXFMM_M2L_ROTATION, 6, 3, 1, precision));
        compare<double>(withFarExclusions(cubic), octree);
        compare<float>(ball, withBoundary(octree, Boundary::Open));
    }
}

/* Octrees with so many leaves that M2L of them is shared: periodic and open, the virial, too, kernels that are compiled
 * when they are first used, and a method that is not shared. */
TEST_F(CudaParts, OfOctreesWithManyLeaves)
{
    const System s = cloud({3, 0, 0, 0, 3, 0, 0, 0, 3}, 12000, 5);
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        const gmxfmm_options octree = onDevice(depthOptions(GMXFMM_M2L_ROTATION, 5, 5, 1, precision));
        compare<double>(s, octree);
        compare<float>(s, withBoundary(octree, Boundary::Open));
    }
    compare<float>(s, onDevice(depthOptions(GMXFMM_M2L_ROTATION, 9, 5, 1, GMXFMM_SINGLE)));
    compare<float>(s, onDevice(depthOptions(GMXFMM_M2L_SYMMETRIC, 4, 5, 1, GMXFMM_SINGLE)));
}

/* In eighths, and not at all where leaves are few. */
TEST_F(CudaParts, OfOctreesAreTold)
{
    const System         s      = cloud({3, 0, 0, 0, 3, 0, 0, 0, 3}, 12000, 5);
    const gmxfmm_options octree = onDevice(depthOptions(GMXFMM_M2L_ROTATION, 5, 5, 1));
    gmxfmm_info          info   = Plan(s, inParts(octree, {0, 0, 0}, {{1, 1, 1}, {1, 1, 2}})).info();
    EXPECT_EQ(info.far_shares[0], 0.25);
    EXPECT_EQ(info.far_shares[1], 0.25);
    EXPECT_EQ(info.far_shares[2], 0.5);
    const gmxfmm_options few = onDevice(depthOptions(GMXFMM_M2L_ROTATION, 5, 3, 1));
    info                     = Plan(s, inParts(few, {0, 0}, {{1, 1}, {1, 1}})).info();
    EXPECT_EQ(info.far_shares[0], 1);
    const Plan near(s, inParts(octree, {0, 0}, {{1, 1}, {}})), far(s, inParts(octree, {0, 0}, {{1, 1}, {1, 1}})),
        own(s, inParts(octree, {0, 0}));
    EXPECT_GT(far.info().bytes, near.info().bytes);
    EXPECT_EQ(own.info().bytes, own.info().far_shares[0] < 1 ? far.info().bytes : near.info().bytes);
}

/* Cells so many that moments are summed by blocks of P2M, of 32 cells and of 128, which do not end where layers do. */
TEST_F(CudaParts, OfManyCells)
{
    const System s = ions({3, 0, 0, 0, 3, 0, 0, 0, 3}, 3000, 6);
    compare<double>(s, onDevice(explicitOptions(4, 24, 18, 20, 1)));
    compare<float>(s, onDevice(explicitOptions(5, 30, 27, 28, 1, GMXFMM_SINGLE)));
    compare<float>(s, onDevice(explicitOptions(3, 24, 18, 20, 1, GMXFMM_SINGLE)));
}

/* Orders that share kernels. */
TEST_F(CudaParts, OfOtherOrders)
{
    compare<double>(system_, onDevice(explicitOptions(2, 8, 4, 5, 1)));
    compare<float>(system_, onDevice(explicitOptions(14, 8, 4, 5, 1, GMXFMM_SINGLE)));
    compare<double>(system_, onDevice(explicitOptions(18, 6, 2, 2, 1)));
}

/* Grids of cuFFT have their far field on the first device, whatever is asked for. */
TEST_F(CudaParts, OfCellsThatAreNotShared)
{
    const gmxfmm_options options = onDevice(explicitOptions(5, 11, 4, 4, 1));
    compare<double>(system_, options);
    const Plan        plan(system_, inParts(options, {0, 0}, {{1, 1}, {1, 1}}));
    const gmxfmm_info info = plan.info();
    EXPECT_EQ(info.far_shares[0], 1);
    EXPECT_EQ(info.far_shares[1], 0);
    EXPECT_EQ(info.shares[1], 0.5);
}

TEST_F(CudaParts, MoreThanTiles)
{
    compare<double>(ions({3, 0, 0, 0, 3, 0, 0, 0, 3}, 5, 4), onDevice(explicitOptions(4, 5, 5, 5, 1)));
    compare<double>(ions({3, 0, 0, 0, 3, 0, 0, 0, 3}, 2, 4), onDevice(depthOptions(GMXFMM_M2L_ROTATION, 4, 2, 1)));
}

TEST_F(CudaParts, OfNoParticles)
{
    System none;
    none.box = system_.box;
    Plan              plan(none, inParts(options_, {0, 0, 0}));
    OutputsOf<double> out(0);
    const auto        all = out.all();
    ASSERT_EQ(gmxfmm_enqueue_assign(plan.get(), nullptr, stream_), GMXFMM_OK) << gmxfmm_message(plan.get());
    ASSERT_EQ(gmxfmm_enqueue(plan.get(), nullptr, &all, stream_), GMXFMM_OK) << gmxfmm_message(plan.get());
    wait();
    EXPECT_EQ(out.energy.get(), (std::vector<double>{0, 0}));
    EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
}

TEST_F(CudaParts, OfTargets)
{
    const System s      = withoutExclusions(system_);
    const System places = ions(s.box, 300, 9);
    for (const gmxfmm_options& options : {options_, withBoundary(options_, Boundary::Open)})
    {
        Values                      expected;
        std::vector<gmxfmm_options> all = {options};
        for (const std::vector<int>& devices : divisions())
        {
            for (const Shares& shares : sharesOf(devices.size()))
            {
                all.push_back(inParts(options, devices, shares));
            }
        }
        for (const gmxfmm_options& o : all)
        {
            Plan         plan(s, o);
            const Values v = valuesAt(plan.get(), s.x, places.x);
            expected       = expected.potential.empty() ? v : expected;
            EXPECT_EQ(v.potential, expected.potential);
            EXPECT_EQ(v.field, expected.field);
        }
    }
}

namespace
{

/* What a program does with a plan step by step; the results of each step. */
struct Trajectory
{
    Trajectory(const System& system, const gmxfmm_options& options, cudaStream_t on)
        : s(system), plan(system, options), stream(on)
    {
    }
    void assign(const DeviceArray<double>& x)
    {
        enqueueAssign(plan.get(), x, stream);
    }
    void step(const DeviceArray<double>& x)
    {
        out.push_back(std::make_unique<Outputs>(s.size()));
        enqueue(plan.get(), x, *out.back(), stream);
    }
    /* What the last step gave, kept while a graph writes its arrays again. */
    void keep()
    {
        const Outputs& last = *out.front();
        out.push_back(std::make_unique<Outputs>(s.size()));
        out.back()->force.put(last.force.get());
        out.back()->field.put(last.field.get());
        out.back()->potential.put(last.potential.get());
        out.back()->energy.put(last.energy.get());
        out.back()->virial.put(last.virial.get());
        out.back()->status.put(last.status.get());
    }
    const System&                         s;
    Plan                                  plan;
    cudaStream_t                          stream;
    std::vector<std::unique_ptr<Outputs>> out;
};

/* The same done by a plan on one device and by plans in parts gives the same bits. */
void expectSameSteps(const System&                           s,
                     const gmxfmm_options&                   options,
                     cudaStream_t                            stream,
                     const std::function<void(Trajectory*)>& run)
{
    Trajectory one(s, options, stream);
    run(&one);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    for (const std::vector<int>& devices : divisions())
    {
        for (const Shares& shares : sharesOf(devices.size()))
        {
            SCOPED_TRACE(named(devices, shares));
            Trajectory parts(s, inParts(options, devices, shares), stream);
            run(&parts);
            ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
            ASSERT_EQ(parts.out.size(), one.out.size());
            for (std::size_t i = 0; i < one.out.size(); i++)
            {
                SCOPED_TRACE(i);
                expectSameBits(*parts.out[i], *one.out[i]);
            }
            if (testing::Test::HasFailure())
            {
                return;
            }
        }
    }
}

} // namespace

/* Assignments and steps all in flight at once; particles go anywhere, so that tiles change hands. */
TEST_F(CudaParts, FollowAssignmentsOnAStream)
{
    std::vector<std::unique_ptr<DeviceArray<double>>> x;
    for (const std::uint64_t seed : {1, 2, 3, 4})
    {
        const System        other = water(system_.box, 5 + seed);
        std::vector<double> there(system_.x);
        std::copy_n(other.x.begin(), std::min(other.x.size(), there.size()), there.begin());
        x.push_back(std::make_unique<DeviceArray<double>>(there));
        x.push_back(std::make_unique<DeviceArray<double>>(moved(there, 0.01, seed)));
    }
    x.push_back(std::make_unique<DeviceArray<double>>(crowded(system_.x)));
    x.push_back(std::make_unique<DeviceArray<double>>(moved(crowded(system_.x), 0.001, 3)));
    expectSameSteps(withFarExclusions(system_), options_, stream_,
                    [&](Trajectory* t)
                    {
                        for (std::size_t i = 0; i < x.size(); i++)
                        {
                            if (i % 2 == 0)
                            {
                                t->assign(*x[i]);
                            }
                            t->step(*x[i]);
                        }
                    });
}

/* The first device's share of the near field changes with each assignment. */
TEST_F(CudaParts, OfTheFirstDeviceMayChange)
{
    const DeviceArray<double> x(system_.x), there(moved(system_.x, 0.01, 7));
    expectSameSteps(withFarExclusions(system_), options_, stream_,
                    [&](Trajectory* t)
                    {
                        for (const double share : {0.4, 0.0, 0.97, 0.1})
                        {
                            const int num = t->plan.info().num_devices;
                            ASSERT_EQ(gmxfmm_set_first_share(t->plan.get(), share),
                                      num > 1 ? GMXFMM_OK : GMXFMM_ERROR_UNSUPPORTED);
                            const gmxfmm_info info = t->plan.info();
                            EXPECT_DOUBLE_EQ(info.shares[0], num > 1 ? share : 1);
                            EXPECT_NEAR(std::accumulate(info.shares, info.shares + num, 0.0), 1, 1e-12);
                            t->assign(x);
                            t->step(x);
                            t->step(there);
                        }
                    });
}

/* A box scaled and one deformed, and charges, on the stream. */
TEST_F(CudaParts, FollowBoxesAndCharges)
{
    DeviceArray<double> x(system_.x), q(moved(system_.q, 0.1, 3));
    Mat3                scaled = system_.box, stretched = system_.box;
    for (double& b : scaled)
    {
        b *= 1.01;
    }
    stretched[8] *= 1.004;
    expectSameSteps(system_, options_, stream_,
                    [&](Trajectory* t)
                    {
                        gmxfmm_plan* plan = t->plan.get();
                        t->step(x);
                        for (const Mat3& box : {scaled, stretched, system_.box})
                        {
                            enqueueBox(plan, box, stream_);
                            t->step(x);
                            t->assign(x);
                            t->step(x);
                        }
                        enqueueCharges(plan, t->s.size(), q, stream_);
                        t->step(x);
                    });
}

/* One graph with an assignment and a step, and one of a step alone, launched in turn; of several devices, too. */
TEST_F(CudaParts, CanBeCaptured)
{
    expectSameSteps(
        system_, options_, stream_,
        [&](Trajectory* t)
        {
            DeviceArray<double> x(system_.x);
            t->assign(x);
            t->step(x);
            wait();
            const auto again = [&] { enqueue(t->plan.get(), x, *t->out.front(), stream_); };
            const auto both  = [&]
            {
                t->assign(x);
                again();
            };
            const Graph graph[2] = {Graph(stream_, both, cudaStreamCaptureModeGlobal), Graph(stream_, again)};
            for (const std::uint64_t seed : {1, 2, 3})
            {
                const std::vector<double> there = seed == 3 ? crowded(system_.x) : moved(system_.x, 0.03, seed);
                for (int g = 0; g < 2; g++)
                {
                    x.put(g == 0 ? there : moved(there, 0.001, seed));
                    graph[g].launch(stream_);
                    wait();
                    t->keep();
                }
            }
        });
}

/* A graph of forces alone between steps with a virial: a box that changes its shape reaches the spectra of all parts.
 */
TEST_F(CudaParts, GraphsFollowBoxes)
{
    expectSameSteps(system_, options_, stream_,
                    [&](Trajectory* t)
                    {
                        DeviceArray<double> x(system_.x);
                        gmxfmm_plan*        plan = t->plan.get();
                        Graph               graph;
                        std::int64_t        version = -1;
                        t->step(x);
                        gmxfmm_device_output few = sized<gmxfmm_device_output>();
                        few.force                = t->out.front()->force.data();
                        enqueue(plan, x, few, stream_);
                        for (int change = 0; change < 5; change++)
                        {
                            Mat3 box = system_.box;
                            box[8] *= 1 + 0.0005 * change;
                            enqueueBox(plan, box, stream_);
                            if (gmxfmm_graph_version(plan) != version)
                            {
                                graph   = Graph(stream_, [&] { enqueue(plan, x, few, stream_); });
                                version = gmxfmm_graph_version(plan);
                            }
                            graph.launch(stream_);
                            graph.launch(stream_);
                            wait();
                            t->keep();
                            t->step(x);
                        }
                        wait();
                    });
}

/* Calls that wait: another assignment, other charges, another number of particles; stages that are timed. */
TEST_F(CudaParts, FollowCallsThatWait)
{
    const System        other = water({2.4, 0, 0, 0, 1.6, 0, 0, 0, 1.7}, 9);
    DeviceArray<double> x(system_.x), there(other.x);
    expectSameSteps(
        withoutExclusions(system_), options_, stream_,
        [&](Trajectory* t)
        {
            gmxfmm_plan* plan    = t->plan.get();
            double       seconds = 0;
            t->step(x);
            ASSERT_EQ(gmxfmm_time_stages(plan, x.data(), GMXFMM_STAGE_NEAR, 3, stream_, &seconds), GMXFMM_OK)
                << gmxfmm_message(plan);
            EXPECT_GT(seconds, 0);
            t->plan.assign(moved(system_.x, 0.2, 3));
            t->plan.assign(system_.x);
            t->step(x);
            wait();
            ASSERT_EQ(gmxfmm_set_charges(plan, static_cast<std::int64_t>(other.size()), other.q.data()), GMXFMM_OK)
                << gmxfmm_message(plan);
            t->plan.assign(other.x);
            t->out.push_back(std::make_unique<Outputs>(other.size()));
            enqueue(plan, there, *t->out.back(), stream_);
        });
}

/* An octree whose M2L is shared, in boxes of other shapes and sizes, with other particles, in a graph. */
TEST_F(CudaParts, OfOctreesFollowBoxesAndAssignments)
{
    const System        s = cloud({3, 0, 0, 0, 3, 0, 0, 0, 3}, 12000, 5), other = cloud(s.box, 12000, 6);
    const System        fewer = cloud(s.box, 9000, 7);
    DeviceArray<double> x(s.x), there(other.x), here(fewer.x);
    expectSameSteps(
        s, onDevice(depthOptions(GMXFMM_M2L_ROTATION, 5, 5, 1, GMXFMM_SINGLE)), stream_,
        [&](Trajectory* t)
        {
            gmxfmm_plan* plan = t->plan.get();
            t->step(x);
            for (const double stretch : {1.02, 0.97})
            {
                Mat3 box = s.box;
                box[8] *= stretch;
                wait();
                ASSERT_EQ(gmxfmm_set_box(plan, box.data()), GMXFMM_OK) << gmxfmm_message(plan);
                t->plan.assign(s.x);
                t->step(x);
            }
            t->plan.assign(other.x);
            t->step(there);
            wait();
            const Graph graph(stream_, [&] { enqueue(plan, there, *t->out.front(), stream_); });
            for (int i = 0; i < 2; i++)
            {
                graph.launch(stream_);
                wait();
                t->keep();
            }
            ASSERT_EQ(gmxfmm_set_charges(plan, static_cast<std::int64_t>(fewer.size()), fewer.q.data()), GMXFMM_OK)
                << gmxfmm_message(plan);
            t->plan.assign(fewer.x);
            t->out.push_back(std::make_unique<Outputs>(fewer.size()));
            enqueue(plan, here, *t->out.back(), stream_);
        });
}

/* The thread's device is what it was, and a plan may be destroyed with steps in flight. */
TEST_F(CudaParts, LeaveTheCallersDeviceAlone)
{
    int                 current = -1;
    DeviceArray<double> x(system_.x);
    Outputs             out(system_.size());
    for (const std::vector<int>& devices : divisions())
    {
        Plan plan(system_, inParts(options_, devices));
        for (int i = 0; i < 20; i++)
        {
            enqueue(plan.get(), x, out, stream_);
            enqueueAssign(plan.get(), x, stream_);
        }
        ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
        EXPECT_EQ(current, 0);
    }
    EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

/* Plans on all devices, the first of which is another one than the thread's. */
TEST_F(CudaParts, MayBeginOnAnyDevice)
{
    int num = 0;
    ASSERT_EQ(cudaGetDeviceCount(&num), cudaSuccess);
    if (num < 2)
    {
        GTEST_SKIP() << "one CUDA device";
    }
    Plan one(system_, options_), two(system_, inParts(options_, {1, 0})), three(system_, inParts(options_, {0, 1}));
    const Result expected = one.execute(system_.x);
    for (int i = 0; i < 3; i++)
    {
        EXPECT_EQ(two.execute(system_.x).force, expected.force);
        EXPECT_EQ(three.execute(system_.x).force, expected.force);
    }
}

TEST_F(CudaParts, AreTold)
{
    const Plan one(system_, options_), same(system_, inParts(options_, {0}));
    const Plan given(system_, inParts(options_, {0, 0, 0}, {{1, 3, 0}, {2, 1, 1}})),
        own(system_, inParts(options_, {0, 0}));
    const Plan  near(system_, inParts(options_, {0, 0}, {{1, 3}, {}}));
    gmxfmm_info info = one.info();
    EXPECT_EQ(info.num_devices, 1);
    EXPECT_EQ(info.shares[0], 1);
    EXPECT_STREQ(info.devices_note, "");
    EXPECT_EQ(same.info().num_devices, 1);
    info = given.info();
    EXPECT_EQ(info.num_devices, 3);
    EXPECT_EQ(info.devices[2], 0);
    EXPECT_EQ(info.shares[0], 0.25);
    EXPECT_EQ(info.shares[1], 0.75);
    EXPECT_EQ(info.shares[2], 0);
    EXPECT_EQ(info.far_shares[0], 0.5);
    EXPECT_EQ(info.far_shares[1], 0.25);
    EXPECT_EQ(info.far_shares[2], 0.25);
    info = near.info();
    EXPECT_EQ(info.far_shares[0], 1);
    EXPECT_EQ(info.far_shares[1], 0);
    EXPECT_EQ(one.info().far_shares[0], 1);
    info = own.info();
    EXPECT_NEAR(info.far_shares[0] + info.far_shares[1], 1, 1e-12);
    EXPECT_EQ(info.num_devices, 2);
    EXPECT_NEAR(info.shares[0] + info.shares[1], 1, 1e-12); /* rounding of a quotient */
    EXPECT_GE(info.shares[0], 0);
    EXPECT_GT(info.shares[1], 0);
}

/* Copies of the particles are in the memory that is told. */
TEST_F(CudaParts, TakeMemory)
{
    const Plan near(system_, inParts(options_, {0, 0}, {{1, 1}, {}})),
        far(system_, inParts(options_, {0, 0}, {{1, 1}, {1, 1}}));
    EXPECT_GT(far.info().bytes, near.info().bytes);
    const Plan one(system_, options_), two(system_, inParts(options_, {0, 0}));
    EXPECT_GT(two.info().bytes, one.info().bytes + 16 * system_.size());
    /* what was measured to be slower keeps none */
    EXPECT_EQ(two.info().bytes, two.info().far_shares[0] < 1 ? far.info().bytes : near.info().bytes);
}

TEST_F(CudaParts, AreRefused)
{
    int num = 0;
    ASSERT_EQ(cudaGetDeviceCount(&num), cudaSuccess);
    gmxfmm_options cpu = inParts(options_, {0, 0}), treecode = onDevice(defaultOptions());
    cpu.device          = GMXFMM_CPU;
    treecode.method     = GMXFMM_TREECODE;
    treecode.boundary   = GMXFMM_OPEN;
    const double   nan  = std::numeric_limits<double>::quiet_NaN();
    gmxfmm_options many = inParts(options_, {0, 0});
    many.num_devices    = 9;
    const struct
    {
        gmxfmm_options options;
        gmxfmm_status  status;
        std::string    named;
    } refused[] = {
        {inParts(options_, {0, num}), GMXFMM_ERROR_DEVICE, "devices[1]"},
        {inParts(options_, {num, 0}), GMXFMM_ERROR_DEVICE, std::to_string(num)},
        {inParts(options_, {0, -1}), GMXFMM_ERROR_OPTION, "devices[1]"},
        {inParts(options_, {0, 0}, {{1, -1}, {}}), GMXFMM_ERROR_OPTION, "shares[1]"},
        {inParts(options_, {0, 0}, {{nan, 1}, {}}), GMXFMM_ERROR_OPTION, "shares[0]"},
        {inParts(options_, {0, 0}, {{}, {0, -2}}), GMXFMM_ERROR_OPTION, "far_shares[1]"},
        {cpu, GMXFMM_ERROR_OPTION, "device = cuda"},
        {inParts(treecode, {0, 0}), GMXFMM_ERROR_OPTION, "num_devices belongs to the FMM"},
        {many, GMXFMM_ERROR_OPTION, "num_devices"},
    };
    for (const auto& r : refused)
    {
        expectRefused(r.options, 8, system_.box.data(), r.status, r.named);
    }
}
