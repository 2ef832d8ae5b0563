/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Charges put on a stream: what follows is what a plan computes whose charges were set by the call that waits, to the
 * bits; of all particles and of some, with assignments after them, in graphs, and with charges that are none. */
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/on_stream.h"
#include "support/paths.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

using Numbers = std::vector<double>;

struct Case
{
    std::string      name;
    gmxfmm_options   options;
    gmxfmm_precision arrays;
};

void PrintTo(const Case& c, std::ostream* out)
{
    *out << c.name;
}

/* Cells and octree in each precision and boundary, with arrays of both types. */
std::vector<Case> cases()
{
    std::vector<Case> all;
    for (gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        const struct
        {
            const char*    name;
            gmxfmm_options options;
        } paths[] = {{"Cells", explicitOptions(8, 5, 5, 5, 1, precision)},
                     {"Octree", depthOptions(GMXFMM_M2L_ROTATION, 6, 2, 1, precision)}};
        for (const auto& [path, options] : paths)
        {
            for (Boundary boundary : {Boundary::Tinfoil, Boundary::Vacuum, Boundary::Open})
            {
                for (gmxfmm_precision arrays : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
                {
                    const std::string words = std::string(precision == GMXFMM_DOUBLE ? "Double" : "Single") +
                                              (boundary == Boundary::Open     ? "Open"
                                               : boundary == Boundary::Vacuum ? "Vacuum"
                                                                              : "Tinfoil") +
                                              (arrays == GMXFMM_DOUBLE ? "OfDoubles" : "OfFloats");
                    all.push_back({path + words, withBoundary(options, boundary), arrays});
                    all.back().options.array_type = arrays;
                    all.back().options.device     = GMXFMM_CUDA;
                }
            }
        }
    }
    return all;
}

/* Numbers that floats hold, so that both array types have the same; their sum is that net charge, nearly. */
Numbers otherCharges(std::size_t n, double net)
{
    Random  random(11);
    Numbers q(n);
    for (double& qi : q)
    {
        qi = static_cast<double>(static_cast<float>(random.centred() + net / static_cast<double>(n)));
    }
    return q;
}

class CudaChargesOf : public OnStream<testing::TestWithParam<Case>>
{
  protected:
    const gmxfmm_options& options() const
    {
        return GetParam().options;
    }
    /* The step at x of a plan that was made with these charges, or whose charges were set by the call that waits, and
     * whose particles were assigned at `cells`. */
    template <class X>
    std::unique_ptr<OutputsOf<X>> expected(const Numbers& q, const Numbers& cells, const Numbers& x, bool made)
    {
        System s = system_;
        s.x      = cells;
        s.q      = made ? q : s.q;
        Plan                 plan(s, options());
        const std::vector<X> charges = asArray<X>(q);
        const DeviceArray<X> there(asArray<X>(x));
        auto                 out = std::make_unique<OutputsOf<X>>(s.size());
        if (!made)
        {
            EXPECT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(s.size()), charges.data()), GMXFMM_OK);
        }
        enqueue(plan.get(), there, *out, stream_);
        wait();
        return out;
    }
    template <class X>
    void expectThoseOf(const OutputsOf<X>& out, const Numbers& q, const Numbers& cells, const Numbers& x)
    {
        for (const bool made : {false, true})
        {
            SCOPED_TRACE(made);
            expectSameBits(out, *expected<X>(q, cells, x, made));
        }
    }

    const System system_ = water({2, 0, 0, 0, 2, 0, 0, 0, 2}, 5);
};

class CudaCharges : public OnStream<testing::Test>
{
  protected:
    void expectRefused(
        gmxfmm_plan* plan, std::int64_t count, const int* index, gmxfmm_status status, const std::string& word)
    {
        EXPECT_EQ(gmxfmm_enqueue_charges(plan, count, index, q_, stream_), status);
        expectMessage(plan, word);
    }
    const System         system_  = water({2, 0, 0, 0, 2, 0, 0, 0, 2}, 5);
    const gmxfmm_options options_ = onDevice(explicitOptions(8, 5, 5, 5, 1));
    const void*          q_       = nullptr;
};

} // namespace

/* Neutral charges, and such with a net charge, whose background is that of the sum on the device. */
TEST_P(CudaChargesOf, AllAreThoseOfSetCharges)
{
    forArrays(GetParam().arrays,
              [&](auto number)
              {
                  using X = decltype(number);
                  Plan                 plan(system_, options());
                  const std::size_t    n = system_.size();
                  const DeviceArray<X> x(asArray<X>(system_.x));
                  const OutputsOf<X>   before(n), out(n);
                  enqueue(plan.get(), x, before, stream_);
                  wait();
                  for (const double net : {0.0, 25.0})
                  {
                      SCOPED_TRACE(net);
                      const Numbers        q = otherCharges(n, net);
                      const DeviceArray<X> charges(asArray<X>(q));
                      enqueueCharges(plan.get(), n, charges, stream_);
                      enqueue(plan.get(), x, out, stream_);
                      wait();
                      expectThoseOf(out, q, system_.x, system_.x);
                      EXPECT_NE(out.force.get(), before.force.get());
                  }
              });
}

/* One step behind the other with nothing awaited: each has the charges that were put before it. */
TEST_P(CudaChargesOf, SomeAreThoseOfSetCharges)
{
    forArrays(GetParam().arrays,
              [&](auto number)
              {
                  using X = decltype(number);
                  enum
                  {
                      c_steps = 4
                  };
                  Plan                                           plan(system_, options());
                  const std::size_t                              n = system_.size();
                  const DeviceArray<X>                           x(asArray<X>(system_.x));
                  const Numbers                                  other = otherCharges(n, 40);
                  std::vector<Numbers>                           now(c_steps, system_.q);
                  std::vector<std::unique_ptr<DeviceArray<X>>>   q;
                  std::vector<std::unique_ptr<DeviceArray<int>>> index;
                  std::vector<std::unique_ptr<OutputsOf<X>>>     out;
                  std::vector<std::size_t>                       num;
                  for (std::size_t k = 0; k < c_steps; k++)
                  {
                      std::vector<int> which;
                      Numbers          some;
                      now[k] = k > 0 ? now[k - 1] : now[k];
                      for (std::size_t i = n; i-- > 0;)
                      {
                          if (k < 3 && (i + k) % (3 + 10 * k) == 0) /* none in the last step */
                          {
                              which.push_back(static_cast<int>(i));
                              some.push_back(other[i] + static_cast<double>(k));
                              now[k][i] = other[i] + static_cast<double>(k);
                          }
                      }
                      const std::vector<X> rounded = asArray<X>(now[k]);
                      now[k].assign(rounded.begin(), rounded.end());
                      num.push_back(which.size());
                      q.push_back(std::make_unique<DeviceArray<X>>(asArray<X>(some)));
                      index.push_back(std::make_unique<DeviceArray<int>>(which));
                      out.push_back(std::make_unique<OutputsOf<X>>(n));
                  }
                  for (std::size_t k = 0; k < c_steps; k++)
                  {
                      enqueueCharges(plan.get(), num[k], *q[k], stream_, index[k]->data());
                      enqueue(plan.get(), x, *out[k], stream_);
                  }
                  wait();
                  for (std::size_t k = 0; k < c_steps; k++)
                  {
                      SCOPED_TRACE(k);
                      expectThoseOf(*out[k], now[k], system_.x, system_.x);
                  }
                  EXPECT_EQ(out[3]->force.get(), out[2]->force.get()) << "no charges were changed";
              });
}

/* A graph of steps that was captured before follows them, and its version says so. */
TEST_P(CudaChargesOf, CountInGraphsCapturedBefore)
{
    forArrays(GetParam().arrays,
              [&](auto number)
              {
                  using X = decltype(number);
                  Plan                 plan(system_, options());
                  const std::size_t    n = system_.size();
                  const Numbers        q = otherCharges(n, 25);
                  const DeviceArray<X> x(asArray<X>(system_.x)), charges(asArray<X>(q)), old(asArray<X>(system_.q));
                  const OutputsOf<X>   out(n);
                  enqueue(plan.get(), x, out, stream_);
                  wait();
                  const auto         force   = out.force.get();
                  const std::int64_t version = gmxfmm_graph_version(plan.get());
                  const Graph        graph(stream_, [&] { enqueue(plan.get(), x, out, stream_); });
                  enqueueCharges(plan.get(), n, charges, stream_);
                  graph.launch(stream_);
                  wait();
                  expectThoseOf(out, q, system_.x, system_.x);
                  enqueueCharges(plan.get(), n, old, stream_);
                  graph.launch(stream_);
                  wait();
                  EXPECT_EQ(out.force.get(), force);
                  EXPECT_EQ(gmxfmm_graph_version(plan.get()), version);
              });
}

/* What is enqueued does not wait, so that it may be captured itself. */
TEST_P(CudaChargesOf, CanBeCapturedWithAStep)
{
    forArrays(GetParam().arrays,
              [&](auto number)
              {
                  using X = decltype(number);
                  Plan                 plan(system_, options());
                  const std::size_t    n = system_.size();
                  const DeviceArray<X> x(asArray<X>(system_.x));
                  DeviceArray<X>       q(asArray<X>(system_.q));
                  const OutputsOf<X>   out(n);
                  enqueueCharges(plan.get(), n, q, stream_);
                  enqueue(plan.get(), x, out, stream_);
                  wait();
                  const Graph graph(stream_,
                                    [&]
                                    {
                                        enqueueCharges(plan.get(), n, q, stream_);
                                        enqueue(plan.get(), x, out, stream_);
                                    });
                  for (const double net : {-30.0, 0.0})
                  {
                      const Numbers other = otherCharges(n, net);
                      q.put(asArray<X>(other));
                      graph.launch(stream_);
                      wait();
                      expectThoseOf(out, other, system_.x, system_.x);
                  }
              });
}

/* Assignments by both calls leave the charges as they are, also those that came before the first one. */
TEST_P(CudaChargesOf, StayWithAssignments)
{
    forArrays(GetParam().arrays,
              [&](auto number)
              {
                  using X                    = decltype(number);
                  const std::size_t    n     = system_.size();
                  const Numbers        there = moved(system_.x, 0.7), q = otherCharges(n, 25);
                  Plan                 plan(system_, options());
                  const DeviceArray<X> x(asArray<X>(there)), charges(asArray<X>(q));
                  const OutputsOf<X>   out(n);
                  enqueueCharges(plan.get(), n, charges, stream_);
                  if (gmxfmm_capabilities(plan.get()) & GMXFMM_CAN_ENQUEUE_ASSIGN)
                  {
                      enqueueAssign(plan.get(), x, stream_);
                      enqueue(plan.get(), x, out, stream_);
                      wait();
                      expectThoseOf(out, q, there, there);
                  }
                  wait();
                  if (options().boundary !=
                      GMXFMM_OPEN) /* whose cells keep the size that the first assignment gave them */
                  {
                      plan.assign(there);
                      enqueue(plan.get(), x, out, stream_);
                      wait();
                      expectThoseOf(out, q, there, there);
                  }

                  /* another number of particles, which are in no cells yet */
                  System fewer = withoutExclusions(system_);
                  fewer.x.resize(3 * (n - 30));
                  fewer.q.resize(n - 30);
                  const std::vector<X> first = asArray<X>(fewer.q);
                  fewer.q                    = Numbers(q.begin(), q.end() - 30);
                  const DeviceArray<X> at(asArray<X>(fewer.x)), all(asArray<X>(fewer.q));
                  const OutputsOf<X>   few(n - 30), expected(n - 30);
                  ASSERT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(n - 30), first.data()), GMXFMM_OK);
                  enqueueCharges(plan.get(), n - 30, all, stream_);
                  wait();
                  plan.assign(fewer.x);
                  enqueue(plan.get(), at, few, stream_);
                  Plan fresh(fewer, options());
                  enqueue(fresh.get(), at, expected, stream_);
                  wait();
                  expectSameBits(few, expected);
              });
}

/* A charge that is not finite is found by the steps that follow it, until it has been replaced. */
TEST_P(CudaChargesOf, BadOnesAreReportedAndHealed)
{
    forArrays(GetParam().arrays,
              [&](auto number)
              {
                  using X = decltype(number);
                  Plan                   plan(system_, options());
                  const std::size_t      n = system_.size();
                  const DeviceArray<X>   x(asArray<X>(system_.x));
                  const OutputsOf<X>     out(n), before(n);
                  const DeviceArray<int> which(std::vector<int>{17});
                  DeviceArray<X>         one(asArray<X>({0.0}));
                  enqueue(plan.get(), x, before, stream_);
                  wait();
                  for (const X bad : {std::numeric_limits<X>::quiet_NaN(), std::numeric_limits<X>::infinity()})
                  {
                      one.put({bad});
                      enqueueCharges(plan.get(), 1, one, stream_, which.data());
                      for (int i = 0; i < 2; i++)
                      {
                          enqueue(plan.get(), x, out, stream_);
                          wait();
                          EXPECT_EQ(out.status.get()[0], GMXFMM_ERROR_CHARGE);
                      }
                      one.put(asArray<X>({system_.q[17]}));
                      enqueueCharges(plan.get(), 1, one, stream_, which.data());
                      enqueue(plan.get(), x, out, stream_);
                      wait();
                      expectSameBits(out, before);
                  }
                  /* and by set_charges */
                  one.put({std::numeric_limits<X>::quiet_NaN()});
                  enqueueCharges(plan.get(), 1, one, stream_, which.data());
                  wait();
                  const std::vector<X> good = asArray<X>(system_.q);
                  ASSERT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(n), good.data()), GMXFMM_OK);
                  enqueue(plan.get(), x, out, stream_);
                  wait();
                  expectSameBits(out, before);
              });
}

INSTANTIATE_TEST_SUITE_P(Plans, CudaChargesOf, testing::ValuesIn(cases()), parameterName<Case>);

/* The call that waits has them, too, and their error. */
TEST_F(CudaCharges, CountInExecute)
{
    const Numbers             q       = otherCharges(system_.size(), 25);
    System                    changed = system_;
    Plan                      plan(system_, options_);
    const DeviceArray<double> charges(q);
    changed.q = q;
    enqueueCharges(plan.get(), q.size(), charges, stream_);
    wait();
    const Result r = plan.execute(system_.x), expected = solve(changed, options_);
    EXPECT_EQ(r.force, expected.force);
    EXPECT_EQ(r.energy, expected.energy);
    EXPECT_EQ(r.virial, expected.virial);
    const DeviceArray<int>    which(std::vector<int>{3});
    const DeviceArray<double> bad(Numbers{std::numeric_limits<double>::quiet_NaN()});
    gmxfmm_output             output = sized<gmxfmm_output>();
    Numbers                   force(3 * q.size());
    output.force = force.data();
    enqueueCharges(plan.get(), 1, bad, stream_, which.data());
    wait();
    EXPECT_EQ(gmxfmm_execute(plan.get(), system_.x.data(), &output), GMXFMM_ERROR_CHARGE);
    EXPECT_NE(std::string(gmxfmm_message(plan.get())), "");
}

/* An index that no particle has: the others are set, steps say so until charges are set again. */
TEST_F(CudaCharges, IndicesOfNoParticleAreFound)
{
    const int     n = static_cast<int>(system_.size());
    Plan          plan(system_, options_);
    Numbers       q      = system_.q;
    gmxfmm_output output = sized<gmxfmm_output>();
    Numbers       force(3 * q.size());
    output.force = force.data();
    for (const int stray : {-1, n, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()})
    {
        SCOPED_TRACE(stray);
        const DeviceArray<int>    which(std::vector<int>{3, stray, 5}), again(std::vector<int>{7});
        const DeviceArray<double> values(Numbers{0.25, 0.5, -0.75}), value(Numbers{q[7]});
        q[3] = 0.25;
        q[5] = -0.75;
        enqueueCharges(plan.get(), 3, values, stream_, which.data());
        wait();
        for (int i = 0; i < 2; i++)
        {
            EXPECT_EQ(gmxfmm_execute(plan.get(), system_.x.data(), &output), GMXFMM_ERROR_CHARGE);
            expectMessage(plan.get(), "index of charge 1 of enqueue_charges");
        }
        enqueueCharges(plan.get(), 1, value, stream_, again.data());
        wait();
        System changed = system_;
        changed.q      = q;
        EXPECT_EQ(plan.execute(system_.x).force, solve(changed, options_).force);
    }
}

/* At targets, whose potential is that of the new charges. */
TEST_F(CudaCharges, CountAtTargets)
{
    const System              probes = ions(system_.box, 50, 4);
    const Numbers             q      = otherCharges(system_.size(), 25);
    const DeviceArray<double> charges(q);
    std::vector<Numbers>      potential;
    for (const bool onStream : {false, true})
    {
        Plan          plan(withoutExclusions(system_), options_);
        Numbers       here(probes.size());
        gmxfmm_output output = sized<gmxfmm_output>();
        output.potential     = here.data();
        ASSERT_EQ(gmxfmm_set_targets(plan.get(), static_cast<std::int64_t>(probes.size()), probes.x.data()), GMXFMM_OK);
        plan.assign(system_.x);
        if (onStream)
        {
            enqueueCharges(plan.get(), q.size(), charges, stream_);
            wait();
        }
        else
        {
            ASSERT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(q.size()), q.data()), GMXFMM_OK);
        }
        ASSERT_EQ(gmxfmm_execute(plan.get(), system_.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
        potential.push_back(here);
    }
    EXPECT_EQ(potential[1], potential[0]);
}

TEST_F(CudaCharges, MisuseIsRefused)
{
    const std::int64_t        n = static_cast<std::int64_t>(system_.size());
    Plan                      plan(system_, options_);
    const DeviceArray<double> q(system_.q), x(system_.x);
    const DeviceArray<int>    index(std::vector<int>(system_.size() + 1, 0));
    const Outputs             before(system_.size()), out(system_.size());
    enqueue(plan.get(), x, before, stream_);
    wait();
    q_ = q.data();
    expectRefused(plan.get(), -1, nullptr, GMXFMM_ERROR_OPTION, "-1");
    expectRefused(plan.get(), -1, index.data(), GMXFMM_ERROR_OPTION, "-1");
    expectRefused(plan.get(), n + 1, index.data(), GMXFMM_ERROR_OPTION, std::to_string(n + 1));
    expectRefused(plan.get(), n + 1, nullptr, GMXFMM_ERROR_OPTION, std::to_string(n + 1));
    expectRefused(plan.get(), n - 1, nullptr, GMXFMM_ERROR_OPTION, std::to_string(n - 1)); /* all, without an index */
    EXPECT_EQ(gmxfmm_enqueue_charges(nullptr, n, nullptr, q_, stream_), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_enqueue_charges(plan.get(), n, nullptr, nullptr, stream_), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_enqueue_charges(plan.get(), 0, index.data(), nullptr, stream_), GMXFMM_OK);

    gmxfmm_plan* empty = nullptr;
    ASSERT_EQ(gmxfmm_create(&empty, &options_, n, system_.box.data(), nullptr, 0), GMXFMM_OK);
    expectRefused(empty, n, nullptr, GMXFMM_ERROR_ORDER, "set_charges");
    gmxfmm_destroy(empty);

    gmxfmm_options cpu = options_, tree = options_;
    cpu.device = GMXFMM_CPU;
    Plan host(system_, cpu);
    expectRefused(host.get(), n, nullptr, GMXFMM_ERROR_UNSUPPORTED, "device = cuda");
    gmxfmm_default_options(&tree);
    tree.device   = GMXFMM_CUDA;
    tree.method   = GMXFMM_TREECODE;
    tree.boundary = GMXFMM_OPEN;
    Plan treecode(withoutExclusions(system_), tree);
    expectRefused(treecode.get(), n, nullptr, GMXFMM_ERROR_UNSUPPORTED, "gmxfmm_set_charges");

    enqueue(plan.get(), x, out, stream_);
    wait();
    expectSameBits(out, before);
}

/* Steps on a stream give the derivatives by parameters of charges, also as a graph and for charges that came later; the
 * version of graphs tells of other parameters. */
TEST_P(CudaChargesOf, GradientsAreThoseOfPotentials)
{
    forArrays(
        GetParam().arrays,
        [&](auto number)
        {
            using X                 = decltype(number);
            const std::size_t n     = system_.size();
            const Numbers     dq    = otherCharges(2 * n, 25);
            const double      most  = sizeof(X) == 8 ? 1e-12 : 1e-6; /* potentials of a float are rounded */
            std::vector<int>  start = {0, 0, 7, static_cast<int>(n)}, index(2 * n);
            for (std::size_t j = 0; j < index.size(); j++)
            {
                index[j] = static_cast<int>((7 * j) % n);
            }
            start.push_back(static_cast<int>(2 * n));
            const int            num = static_cast<int>(start.size()) - 1;
            Plan                 plan(system_, options());
            const DeviceArray<X> x(asArray<X>(system_.x)), charges(asArray<X>(otherCharges(n, 25)));
            const OutputsOf<X>   out(n);
            DeviceArray<double>  gradient(static_cast<std::size_t>(num));
            gmxfmm_device_output all    = out.all();
            all.charge_gradient         = gradient.data();
            gmxfmm_device_output forces = sized<gmxfmm_device_output>();
            forces.force                = all.force;
            forces.charge_gradient      = all.charge_gradient;
            EXPECT_EQ(gmxfmm_enqueue(plan.get(), x.data(), &all, stream_), GMXFMM_ERROR_ORDER);
            const std::int64_t version = gmxfmm_graph_version(plan.get());
            ASSERT_EQ(gmxfmm_set_charge_derivatives(plan.get(), num, start.data(), index.data(), dq.data()), GMXFMM_OK)
                << gmxfmm_message(plan.get());
            EXPECT_NE(gmxfmm_graph_version(plan.get()), version);
            const auto step = [&](const gmxfmm_device_output& wanted) { enqueue(plan.get(), x, wanted, stream_); };
            const auto expectGradient = [&](const char* what)
            {
                SCOPED_TRACE(what);
                wait();
                const std::vector<double> found     = gradient.get();
                const std::vector<X>      potential = out.potential.get();
                for (int k = 0; k < num; k++)
                {
                    double sum = 0, size = 0;
                    for (int j = start[static_cast<std::size_t>(k)]; j < start[static_cast<std::size_t>(k) + 1]; j++)
                    {
                        const std::size_t at = static_cast<std::size_t>(j);
                        const double      part =
                            dq[at] * static_cast<double>(potential[static_cast<std::size_t>(index[at])]);
                        sum += part;
                        size += std::fabs(part);
                    }
                    EXPECT_NEAR(found[static_cast<std::size_t>(k)], sum, most * size) << "parameter " << k;
                }
            };
            step(all);
            expectGradient("a step");
            const Graph graph(stream_, [&] { step(all); });
            enqueueCharges(plan.get(), n, charges, stream_);
            graph.launch(stream_);
            expectGradient("a graph, new charges");
            const std::vector<double> before = gradient.get();
            const auto                force  = out.force.get();
            const double close = options().precision == GMXFMM_DOUBLE ? 1e-12 : 1e-5; /* moments come another way */
            step(forces);
            wait();
            EXPECT_LT(relativeRms(gradient.get(), before), close);
            EXPECT_LT(relativeRms(out.force.get(), force), close);
            const DeviceArray<X> there(asArray<X>(moved(system_.x, 0.7)));
            if (gmxfmm_capabilities(plan.get()) & GMXFMM_CAN_ENQUEUE_ASSIGN)
            {
                enqueueAssign(plan.get(), there, stream_);
            }
            else
            {
                wait();
                plan.assign(moved(system_.x, 0.7));
            }
            enqueue(plan.get(), there, all, stream_);
            expectGradient("another assignment");
            const std::vector<double> beside = gradient.get();
            enqueue(plan.get(), there, forces, stream_);
            wait();
            EXPECT_LT(relativeRms(gradient.get(), beside), 1e-4); /* of a float */
            /* another parameter */
            const std::vector<int> few = {0, 3}, of = {5, 90, 6};
            ASSERT_EQ(gmxfmm_set_charge_derivatives(plan.get(), 1, few.data(), of.data(), dq.data()), GMXFMM_OK);
            enqueue(plan.get(), there, all, stream_);
            wait();
            const double first = gradient.get()[0];
            enqueue(plan.get(), there, forces, stream_);
            wait();
            EXPECT_NEAR(gradient.get()[0], first, 1e-4 * std::fabs(first));
        });
}
