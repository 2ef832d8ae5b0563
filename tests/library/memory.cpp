/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory: little of it, none of it allocated in execute, all of it given back. */
#include <cmath>

#include <gtest/gtest.h>

#include "support/heap.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Atoms at the density of water in a cube, one anywhere within each cell of a lattice; charges as in water. */
System manyAtoms(int edge)
{
    System       s;
    Random       random(1);
    const double spacing = std::cbrt(1 / 100.2); /* nm; three atoms a molecule */
    s.box                = {edge * spacing, 0, 0, 0, edge * spacing, 0, 0, 0, edge * spacing};
    for (int i = 0; i < edge * edge * edge; i++)
    {
        const double a = i % edge + 0.7 * random.uniform(), b = i / edge % edge + 0.7 * random.uniform(),
                     c = i / (edge * edge) + 0.7 * random.uniform();
        s.add({a * spacing, b * spacing, c * spacing}, i % 3 == 0 ? -0.82 : 0.41);
    }
    for (std::size_t i = 0; i + 2 < s.size(); i += 3)
    {
        s.exclude(i, i + 1);
        s.exclude(i, i + 2);
        s.exclude(i + 1, i + 2);
    }
    return s;
}

struct Case
{
    const char*      name;
    Boundary         boundary;
    gmxfmm_precision precision;
    gmxfmm_m2l       m2l;
    int              edge; /* cube root of the number of atoms */
};

class Memory : public testing::TestWithParam<Case>
{
  protected:
    gmxfmm_options options() const
    {
        gmxfmm_options o = withBoundary(defaultOptions(), GetParam().boundary);
        o.precision      = GetParam().precision;
        o.m2l            = GetParam().m2l;
        return o;
    }
};

} // namespace

/* Drops at the density of water that fill 1 % of the box: the grid of the fft path would have a hundred cells for each
 * that holds atoms. */
System drops(int number, int atomsEach)
{
    System       s;
    Random       random(4);
    const double edge  = std::cbrt(100.0 * number * atomsEach / 100.2);
    const double width = std::cbrt(atomsEach / 100.2); /* of a cubic drop */
    s.box              = {edge, 0, 0, 0, edge, 0, 0, 0, edge};
    for (int drop = 0; drop < number; drop++)
    {
        const double x = edge * random.uniform(), y = edge * random.uniform(), z = edge * random.uniform();
        for (int i = 0; i < atomsEach; i++)
        {
            const double a = width * random.uniform(), b = width * random.uniform(), c = width * random.uniform();
            s.add({x + a, y + b, z + c}, i % 3 == 0 ? -0.82 : 0.41);
        }
    }
    return s;
}

/* For the plan itself, as it says and as the heap says; exclusions and everything else that a real run has included. */
TEST_P(Memory, IsBelowOneKilobyteAnAtom)
{
    const System        s     = manyAtoms(GetParam().edge);
    const double        atoms = static_cast<double>(s.size());
    std::vector<double> force(s.x.size());
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.force               = force.data();
    output.want_energy         = 1;
    output.want_virial         = 1;
    const std::size_t before   = heapBytes();
    heapResetPeak();
    Plan              plan(s, options());
    const std::size_t held = heapBytes() - before;
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_LT(static_cast<double>(heapPeak() - before) / atoms, 1000);
    const double told = static_cast<double>(plan.info().bytes);
    EXPECT_LT(told / atoms, 1000);
    /* what the plan tells is what it holds; 2 %: bookkeeping of the allocator and of FFT plans */
    EXPECT_NEAR(told, static_cast<double>(held), 0.02 * static_cast<double>(held) + 1e5);
}

TEST_P(Memory, IsNotAllocatedInExecute)
{
    const System   s = manyAtoms(12);
    gmxfmm_options o = options();
    o.num_threads    = 2; /* for a team of one the OpenMP runtime allocates every time */
    Plan                plan(s, o);
    std::vector<double> force(s.x.size()), field(s.x.size()), potential(s.size());
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.force               = force.data();
    output.field               = field.data();
    output.potential           = potential.data();
    output.want_energy         = 1;
    output.want_virial         = 1;
    /* the first call starts the threads, which allocate their stacks */
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK);
    const std::size_t calls = heapCalls();
    for (int step = 0; step < 3; step++)
    {
        ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK);
    }
    EXPECT_EQ(heapCalls(), calls);
    if (GetParam().boundary == Boundary::Open)
    {
        return;
    }
    /* also with a box of another shape, whose spectra are computed in execute */
    const bool   octree = GetParam().m2l != GMXFMM_M2L_FFT; /* takes right angles only */
    const System deformed =
        strained(s, octree ? Mat3{0.01, 0, 0, 0, 0, 0, 0, 0, -0.02} : Mat3{0.01, 0, 0, 0.02, 0, 0, 0, 0.01, -0.02});
    ASSERT_EQ(gmxfmm_set_box(plan.get(), deformed.box.data()), GMXFMM_OK);
    const std::size_t afterBox = heapCalls();
    ASSERT_EQ(gmxfmm_execute(plan.get(), deformed.x.data(), &output), GMXFMM_OK);
    EXPECT_EQ(heapCalls(), afterBox);
}

/* Many lives of plans leave the heap as it was: what one leaves behind would add up. */
TEST_P(Memory, IsGivenBack)
{
    const System s = manyAtoms(8);
    for (int life = 0; life < 3; life++) /* until FFT planner and OpenMP runtime have what they keep */
    {
        solve(s, options());
    }
    const std::size_t before = heapBytes();
    const int         lives  = 20;
    for (int life = 0; life < lives; life++)
    {
        solve(s, options());
        Plan plan(s, options());
        ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), static_cast<std::int64_t>(s.size()), s.x.data()), GMXFMM_OK);
        plan.assign(s.x);
        plan.energy(s.x);
    }
    /* The planner still remembers a little when timing goes another way; one row of anything is larger than 100 bytes a
     * life. */
    EXPECT_LT(heapBytes(), before + 100 * lives);
}

/* Assigning again and again does not grow: buffers may reach what the worst of similar positions needs, and stay there.
 */
TEST_P(Memory, DoesNotGrowFromAssignToAssign)
{
    const System        s = manyAtoms(8);
    Plan                plan(s, options());
    Random              random(3);
    std::vector<double> x       = s.x;
    double              settled = 0;
    for (int step = 0; step < 200; step++)
    {
        for (std::size_t k = 0; k < x.size(); k++)
        {
            x[k] = s.x[k] + 0.05 * random.centred(); /* not further and further: an open system would grow */
        }
        plan.assign(x);
        settled = step == 99 ? static_cast<double>(plan.info().bytes) : settled;
    }
    EXPECT_LT(static_cast<double>(plan.info().bytes), 1.1 * settled);
}

/* Sets what particles have beside their charges: it is told how much memory that takes, and no step allocates any. */
template <typename Set>
void expectToldAndKept(Plan* plan, const System& s, gmxfmm_output* output, const Set& set)
{
    const std::size_t told = plan->info().bytes, before = heapBytes();
    ASSERT_EQ(set(), GMXFMM_OK) << gmxfmm_message(plan->get());
    plan->assign(s.x);
    EXPECT_GT(plan->info().bytes,
              told + 80 * s.size()); /* dipoles: six numbers in double precision, nine in the step's */
    EXPECT_NEAR(static_cast<double>(plan->info().bytes - told), static_cast<double>(heapBytes() - before), 1e4);
    ASSERT_EQ(gmxfmm_execute(plan->get(), s.x.data(), output), GMXFMM_OK) << gmxfmm_message(plan->get());
    const std::size_t calls = heapCalls();
    for (int step = 0; step < 3; step++)
    {
        ASSERT_EQ(gmxfmm_execute(plan->get(), s.x.data(), output), GMXFMM_OK);
    }
    EXPECT_EQ(heapCalls(), calls);
}

/* Dipoles: no allocation in execute; all is told, and given back. */
TEST_P(Memory, OfDipoles)
{
    const System   s = manyAtoms(12);
    gmxfmm_options o = options();
    o.num_threads    = 2;
    Plan                plan(s, o);
    const std::int64_t  n = static_cast<std::int64_t>(s.size());
    std::vector<double> force(s.x.size()), torque(s.x.size()), gradient(2 * s.x.size());
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.force               = force.data();
    output.torque              = torque.data();
    output.field_gradient      = gradient.data();
    output.want_energy         = 1;
    output.want_virial         = 1;
    expectToldAndKept(&plan, s, &output, [&] { return gmxfmm_set_dipoles(plan.get(), n, s.x.data()); });
    const std::size_t with = plan.info().bytes;
    ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), n, nullptr), GMXFMM_OK);
    EXPECT_LT(plan.info().bytes + 80 * s.size(), with); /* scratch may stay */
}

/* The same of widths. */
TEST_P(Memory, OfWidths)
{
    const System   s = manyAtoms(12);
    gmxfmm_options o = options();
    o.num_threads    = 2;
    Plan                plan(s, o);
    const std::int64_t  n = static_cast<std::int64_t>(s.size());
    std::vector<double> force(s.x.size());
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.force               = force.data();
    output.want_energy         = 1;
    output.want_virial         = 1;
    const std::vector<double> width(s.size(), 0.1);
    const std::size_t         told = plan.info().bytes;
    expectToldAndKept(&plan, s, &output, [&] { return gmxfmm_set_widths(plan.get(), n, width.data()); });
    ASSERT_EQ(gmxfmm_set_widths(plan.get(), n, nullptr), GMXFMM_OK);
    plan.assign(s.x);
    EXPECT_LT(plan.info().bytes, told + 1000000); /* scratch may stay */
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    Memory,
    testing::Values(Case{"TinfoilSingle", Boundary::Tinfoil, GMXFMM_SINGLE, GMXFMM_M2L_FFT, 100},
                    Case{"TinfoilDouble", Boundary::Tinfoil, GMXFMM_DOUBLE, GMXFMM_M2L_FFT, 100},
                    Case{"OpenSingle", Boundary::Open, GMXFMM_SINGLE, GMXFMM_M2L_FFT, 100},
                    Case{"RotationSingle", Boundary::Tinfoil, GMXFMM_SINGLE, GMXFMM_M2L_ROTATION, 100},
                    Case{"RotationDouble", Boundary::Tinfoil, GMXFMM_DOUBLE, GMXFMM_M2L_ROTATION, 60},
                    Case{"RotationOpen", Boundary::Open, GMXFMM_SINGLE, GMXFMM_M2L_ROTATION, 60},
                    Case{"SymmetricDouble", Boundary::Open, GMXFMM_DOUBLE, GMXFMM_M2L_SYMMETRIC, 50},
                    Case{"NaiveSingle", Boundary::Tinfoil, GMXFMM_SINGLE, GMXFMM_M2L_NAIVE, 50}),
    parameterName<Case>);

/* It goes with the cells that hold particles, not with the box: some hundred bytes for an atom itself, and for a leaf
 * of some 20 atoms two expansions of 100 coefficients and a few hundred indices. */
TEST(MemoryOfDrops, GoesWithTheirAtoms)
{
    double bytesOfOne = 0;
    for (int number : {1, 100})
    {
        const System   s         = drops(number, 10000);
        gmxfmm_options o         = automatic(GMXFMM_M2L_ROTATION);
        const double   atoms     = static_cast<double>(s.size());
        o.num_threads            = 2;
        const std::size_t before = heapBytes();
        heapResetPeak();
        Plan          plan(s, o);
        gmxfmm_output output = sized<gmxfmm_output>();
        output.want_energy   = 1;
        output.want_virial   = 1;
        ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
        const double bytes = static_cast<double>(plan.info().bytes);
        EXPECT_LT(bytes / atoms, 1000);
        EXPECT_LT(static_cast<double>(heapPeak() - before) / atoms, 1000);
        if (number == 1)
        {
            bytesOfOne = bytes;
        }
        EXPECT_LT(bytes, 2 * number * bytesOfOne); /* 2: drops that are cut by more leaves, and levels above */
    }
}
