/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point dipoles beside charges: against sums in extended precision, crystals and derivatives of the energy. */
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "support/derivatives.h"
#include "support/dipoles.h"
#include "support/norms.h"
#include "support/partly_periodic.h"
#include "support/paths.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Truncation at order 20 with two layers of near cells. Dipoles lose one power of |y|/|R| to charges, and the gradient
 * of the field two: 4e-9 was the largest seen, of a gradient. */
const double truncation = 2e-8;

/* The virial sums n forces of random errors over the lengths of cells. */
const double ofVirial = 1e-8;

/* Roundings of sums of some hundred terms that are ten times as large, in single precision. */
const double single = 3e-5;

/* Roundings where the same sums are made by other kernels. On a CPU a particle's terms keep their order. A GPU's
 * kernels with and without a result share the terms out to other lanes, which adds them up in another order. */
double ofOtherKernels()
{
    return defaultOptions().device == GMXFMM_CUDA ? 1e-13 : 1e-14;
}

/* 24 charges and dipoles with pairs excluded next to each other and as far apart as can be. */
DipoleSystem mixtureIn(const Mat3& box, double net = 0)
{
    System s = ions(box, 24, 9);
    s.q[1] += net;
    s.exclude(0, 1);
    s.exclude(5, 20);
    s.exclude(8, farthestFrom(s, 8));
    s.exclude(10, farthestFrom(s, 10));
    return withDipoles(s, 0.4, 5);
}

DipoleSystem mixtureIn(const BoxType& type, double net = 0)
{
    return mixtureIn(boxOfVolume(type, 24), net);
}

/* Without a box. */
DipoleSystem dropOf(int n)
{
    System s = droplet(n, 4, 2);
    s.exclude(0, 1);
    s.exclude(5, 20);
    std::size_t far = 0;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        far = s.x[3 * i] < s.x[3 * far] ? i : far;
    }
    const auto opposite = static_cast<std::size_t>(std::max_element(s.x.begin(), s.x.end()) - s.x.begin()) / 3;
    s.exclude(far, opposite);
    return withDipoles(s, 0.4, 5);
}

void expectSame(const DipoleSolution& r, const DipoleSolution& reference, double tolerance, double virialTolerance)
{
    const double root = std::sqrt(static_cast<double>(r.potential.size()));
    EXPECT_LT(relativeRms(r.potential, reference.potential), tolerance);
    EXPECT_LT(relativeRms(r.field, reference.field), tolerance);
    EXPECT_LT(relativeRms(r.gradient, reference.gradient), tolerance);
    EXPECT_LT(relativeRms(r.force, reference.force), tolerance);
    EXPECT_LT(relativeRms(r.torque, reference.torque), tolerance);
    EXPECT_NEAR(r.energy, reference.energy, tolerance * root * rms(reference.potential));
    EXPECT_LT(maxDifference(r.virial, reference.virial), virialTolerance * root * rms(reference.force));
}

/* Trace of the gradient of the field: the background is all that is at a place, beside sources elsewhere. */
double ofBackground(const System& s)
{
    return -4 * M_PI * std::accumulate(s.q.begin(), s.q.end(), 0.0) / volume(s.box);
}

/* The antisymmetric part of a virial is half the sum of torques, exactly. */
void expectTurn(const DipoleSolution& r, double tolerance)
{
    for (std::size_t d = 0; d < 3; d++)
    {
        const std::size_t a = (d + 1) % 3, b = (d + 2) % 3;
        double            sum = 0;
        for (std::size_t i = 0; i < r.potential.size(); i++)
        {
            sum += r.torque[3 * i + d];
        }
        EXPECT_NEAR(r.virial[3 * a + b] - r.virial[3 * b + a], 0.5 * sum, tolerance * rms(r.torque)) << d;
    }
}

/* Forces, torques, virial and fields of the truncated energy itself are its derivatives. */
void expectDerivatives(const DipoleSystem& s, gmxfmm_options options, const std::vector<std::size_t>& strains)
{
    options.reproducible = 1;
    DipolePlan           plan(s, options);
    const DipoleSolution r = plan.solution(s.x);
    /* five-point rule with h = 1e-3: h^4 / 30 of a fifth derivative, 1e-13 of a force over close pairs, and 1e-14 / h
     * of the energy by rounding */
    const double tolerance = 1e-8;
    for (const std::size_t k : {std::size_t{0}, std::size_t{4}, std::size_t{17}, std::size_t{26}, std::size_t{33}})
    {
        std::vector<double> x  = s.x;
        const auto          at = [&](double step)
        {
            x[k] = s.x[k] + step;
            return plan.energy(x);
        };
        EXPECT_NEAR(r.force[k], -slope(at, 1e-3), tolerance * rms(r.force)) << "force " << k;
        std::vector<double> mu   = s.mu;
        const auto          with = [&](double step)
        {
            mu[k] = s.mu[k] + step;
            plan.setDipoles(mu);
            return plan.energy(s.x);
        };
        EXPECT_NEAR(r.field[k], -slope(with, 1e-2), tolerance * rms(r.field)) << "field " << k;
        plan.setDipoles(s.mu);
    }
    for (const std::size_t k : strains)
    {
        const auto energy = [&](double strain)
        {
            Mat3 tensor           = {};
            tensor[k]             = strain;
            const System deformed = strained(s, tensor);
            plan.setBox(deformed.box);
            return plan.energy(deformed.x);
        };
        EXPECT_NEAR(r.virial[k], 0.5 * slope(energy, 3e-4), tolerance * std::fabs(r.energy)) << "strain " << k;
    }
}

/* The gradient at a particle that has neither charge nor dipole is that of the field. (Others take their images along.)
 */
void expectGradientOfField(DipolePlan* plan, const DipoleSystem& s, std::size_t i, double tolerance)
{
    static const std::size_t c_row[6] = {0, 1, 2, 0, 0, 1}, c_column[6] = {0, 1, 2, 1, 2, 2};
    const DipoleSolution     r = plan->solution(s.x);
    ASSERT_EQ(s.q[i], 0);
    for (std::size_t k = 0; k < 6; k++)
    {
        std::vector<double> x     = s.x;
        const auto          field = [&](double step)
        {
            x[3 * i + c_row[k]] = s.x[3 * i + c_row[k]] + step;
            return plan->solution(x).field[3 * i + c_column[k]];
        };
        EXPECT_NEAR(r.gradient[6 * i + k], slope(field, 1e-3), tolerance * rms(r.gradient)) << k;
    }
}

const std::vector<std::size_t> allStrains  = {0, 1, 2, 3, 4, 5, 6, 7, 8};
const std::vector<std::size_t> rightAngles = {0, 4, 8};

/* Of the boxes: one with right angles, a dodecahedron, and one in general orientation. */
std::vector<BoxType> someBoxes()
{
    return {boxTypes()[1], boxTypes()[3], boxTypes().back()};
}

class DipolesInBox : public testing::TestWithParam<BoxType>
{
};

gmxfmm_options fine(const BoxType& type, gmxfmm_precision precision = GMXFMM_DOUBLE)
{
    return explicitOptions(20, evenGrid(type, 4), 2, precision);
}

} // namespace

TEST(DipoleReference, DoesNotDependOnTheSplitting)
{
    const DipoleSystem s      = mixtureIn(boxTypes().back(), 2.5);
    const double       length = std::cbrt(volume(s.box));
    for (const Boundary boundary : {Boundary::Tinfoil, Boundary::Vacuum})
    {
        /* what is left out by either */
        expectSame(dipoleEwald(s, boundary, 4 / length), dipoleEwald(s, boundary, 6 / length), 1e-13, 1e-11);
    }
}

TEST_P(DipolesInBox, AreTheEwaldSum)
{
    const DipoleSystem   s         = mixtureIn(GetParam());
    const DipoleSolution reference = dipoleEwald(s);
    expectSame(solveDipoles(s, fine(GetParam())), reference, truncation, ofVirial);
    expectSame(solveDipoles(s, fine(GetParam(), GMXFMM_SINGLE)), reference, single, 10 * single);
}

TEST_P(DipolesInBox, AreTheEwaldSumWithNetChargeInVacuum)
{
    const DipoleSystem   s         = mixtureIn(GetParam(), 2.5);
    const DipoleSolution reference = dipoleEwald(s, Boundary::Vacuum);
    const DipoleSolution r         = solveDipoles(s, withBoundary(fine(GetParam()), Boundary::Vacuum));
    expectSame(r, reference, truncation, ofVirial);
    expectTurn(r, 1e-11); /* rounding */
    for (std::size_t i = 0; i < s.size(); i++)
    {
        EXPECT_NEAR(r.gradient[6 * i] + r.gradient[6 * i + 1] + r.gradient[6 * i + 2], ofBackground(s),
                    1e-10 * rms(r.gradient));
    }
}

TEST_P(DipolesInBox, DerivativesAtLowOrder)
{
    expectDerivatives(mixtureIn(GetParam(), 2.5), explicitOptions(4, evenGrid(GetParam(), 6), 1), allStrains);
}

TEST_P(DipolesInBox, DerivativesInVacuum)
{
    const gmxfmm_options options = explicitOptions(5, evenGrid(GetParam(), 5), 1);
    expectDerivatives(mixtureIn(GetParam()), withBoundary(options, Boundary::Vacuum), allStrains);
}

INSTANTIATE_TEST_SUITE_P(Boxes, DipolesInBox, testing::ValuesIn(someBoxes()), boxName);

/* Simple cubic lattice of dipoles, constant 1, mu = 1, n along each edge. sign: of a dipole along z by its place. */
template <typename Sign>
static DipoleSystem cubicDipoles(int n, const Sign& sign)
{
    DipoleSystem s;
    const double edge = n;
    s.box             = {edge, 0, 0, 0, edge, 0, 0, 0, edge};
    for (int i = 0; i < n * n * n; i++)
    {
        const int x = i % n, y = i / n % n, z = i / n / n;
        s.add({x + 0.1, y + 0.2, z + 0.3}, 0);
        s.mu.insert(s.mu.end(), {0, 0, sign(x, y)});
    }
    return s;
}

/* Energies of a dipole in simple cubic arrays, in mu^2 over the cube of the constant: antiparallel columns have -2.676
 * (Luttinger & Tisza 1946). Parallel ones are in the field 4 pi / 3 P of Lorentz with conducting
 * surroundings, and in none in a sphere. They are dipoles alone, without a charge. */
TEST(Dipoles, CrystalsHaveTheirEnergies)
{
    const auto parallel = [](int, int) { return 1.0; };
    const auto columns  = [](int x, int y) { return (x + y) % 2 == 0 ? 1.0 : -1.0; };
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        const double         tolerance = precision == GMXFMM_DOUBLE ? 1e-8 : 1e-5; /* truncation; rounding */
        const gmxfmm_options options   = explicitOptions(20, 3, 3, 3, 2, precision);
        const DipoleSystem   along = cubicDipoles(4, parallel), against = cubicDipoles(4, columns);
        EXPECT_NEAR(solveDipoles(along, options).energy / 64, -2 * M_PI / 3, tolerance);
        EXPECT_NEAR(solveDipoles(along, withBoundary(options, Boundary::Vacuum)).energy / 64, 0, tolerance);
        const DipoleSolution r = solveDipoles(against, options);
        EXPECT_NEAR(r.energy / 64, -2.676, 1e-3); /* its digits */
        EXPECT_NEAR(r.energy / 64, dipoleEwald(cubicDipoles(2, columns)).energy / 8, tolerance);
        EXPECT_LT(rms(r.force), 10 * tolerance); /* by symmetry */
        EXPECT_LT(rms(r.torque), 10 * tolerance);
    }
}

TEST(Dipoles, PlaceAndDirectionDoNotMatter)
{
    const BoxType        type      = boxTypes()[3];
    const DipoleSystem   s         = mixtureIn(type);
    const DipoleSolution r         = solveDipoles(s, fine(type));
    DipoleSystem         elsewhere = s;
    for (std::size_t k = 0; k < s.x.size(); k++)
    {
        elsewhere.x[k] += 0.37 * static_cast<double>(k % 3 + 1);
    }
    expectSame(solveDipoles(elsewhere, fine(type)), r, truncation, ofVirial);
    const Vec3           axis   = {0.3, -0.5, 0.8};
    const DipoleSolution turned = solveDipoles(rotatedDipoles(s, axis, 0.7), fine(type));
    DipoleSystem         arrows = s; /* forces as positions turn as these do */
    arrows.mu                   = r.force;
    EXPECT_NEAR(turned.energy, r.energy, truncation * std::fabs(r.energy) * 10);
    EXPECT_LT(relativeRms(turned.force, rotatedDipoles(arrows, axis, 0.7).mu), truncation);
    arrows.mu = r.torque;
    EXPECT_LT(relativeRms(turned.torque, rotatedDipoles(arrows, axis, 0.7).mu), truncation);
}

/* What is left out changes nothing in the rest. */
TEST(Dipoles, EachResultAlone)
{
    const BoxType        type = boxTypes().back();
    const DipoleSystem   s    = mixtureIn(type);
    DipolePlan           plan(s, explicitOptions(8, evenGrid(type, 4), 1));
    const DipoleSolution all = plan.solution(s.x);
    std::vector<double>  array(6 * s.size());
    void* gmxfmm_output::*     members[]  = {&gmxfmm_output::potential, &gmxfmm_output::field, &gmxfmm_output::force,
                                             &gmxfmm_output::torque, &gmxfmm_output::field_gradient};
    const std::vector<double>* expected[] = {&all.potential, &all.field, &all.force, &all.torque, &all.gradient};
    for (std::size_t k = 0; k < 5; k++)
    {
        gmxfmm_output output = sized<gmxfmm_output>();
        output.*members[k]   = array.data();
        ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
        array.resize(expected[k]->size());
        EXPECT_LT(relativeRms(array, *expected[k]), ofOtherKernels()) << k;
        array.resize(6 * s.size());
    }
    EXPECT_NEAR(plan.energy(s.x), all.energy, 1e-13 * std::fabs(all.energy));
}

TEST(Dipoles, OfZeroAreCharges)
{
    DipoleSystem s = mixtureIn(boxTypes()[3]);
    std::fill(s.mu.begin(), s.mu.end(), 0);
    s.x[9]  = s.x[12]; /* particles that have nothing may stand where others do */
    s.x[10] = s.x[13];
    s.x[11] = s.x[14];
    ASSERT_EQ(s.q[3], 0);
    const gmxfmm_options options = explicitOptions(8, evenGrid(boxTypes()[3], 4), 1);
    const DipoleSolution r       = solveDipoles(s, options);
    const Result         charges = solve(s, options);
    EXPECT_LT(relativeRms(r.potential, charges.potential), ofOtherKernels());
    EXPECT_LT(relativeRms(r.force, charges.force), ofOtherKernels());
    EXPECT_LT(maxDifference(r.virial, charges.virial), 1e-13 * std::fabs(r.energy));
    /* the gradient is that of the field */
    DipolePlan plan(s, options);
    expectGradientOfField(&plan, s, 6, 1e-8);
    /* and that of the kernel for dipoles, which one that is next to nothing takes */
    s.mu[0] = 1e-200;
    EXPECT_LT(relativeRms(solveDipoles(s, options).gradient, r.gradient), ofOtherKernels());
}

TEST(Dipoles, TakenAwayLeaveTheBitsOfCharges)
{
    const DipoleSystem   s       = mixtureIn(boxTypes()[3]);
    const gmxfmm_options options = explicitOptions(6, evenGrid(boxTypes()[3], 4), 1, GMXFMM_SINGLE);
    const Result         before  = solve(s, options);
    DipolePlan           plan(s, options);
    plan.solution(s.x);
    ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), static_cast<std::int64_t>(s.size()), nullptr), GMXFMM_OK);
    gmxfmm_output output = sized<gmxfmm_output>();
    EXPECT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_ERROR_ORDER);
    plan.assign(s.x);
    const Result after = plan.execute(s.x);
    EXPECT_EQ(before.force, after.force);
    EXPECT_EQ(before.potential, after.potential);
    EXPECT_EQ(before.virial, after.virial);
    EXPECT_EQ(before.energy, after.energy);
}

/* A box that shrinks takes the unit of length with it, and dipoles stay. */
TEST(Dipoles, FollowTheBox)
{
    const BoxType type    = boxTypes()[1];
    DipoleSystem  s       = mixtureIn(type);
    const auto    options = explicitOptions(8, evenGrid(type, 4), 1);
    DipolePlan    plan(s, options);
    plan.solution(s.x);
    static_cast<System&>(s) = strained(s, {-0.1, 0, 0, 0, -0.1, 0, 0, 0, -0.1});
    plan.setBox(s.box);
    expectSame(plan.solution(s.x), solveDipoles(s, options), 1e-13, 1e-12);
}

TEST(Dipoles, HaveChargeGradients)
{
    DipoleSystem s = mixtureIn(boxTypes().back());
    DipolePlan   plan(s, explicitOptions(5, evenGrid(boxTypes().back(), 4), 1));
    const int    start[] = {0, 2}, index[] = {4, 8};
    const double dq[] = {0.7, -0.2};
    ASSERT_EQ(gmxfmm_set_charge_derivatives(plan.get(), 1, start, index, dq), GMXFMM_OK);
    double        gradient = 0;
    gmxfmm_output output   = sized<gmxfmm_output>();
    output.charge_gradient = &gradient;
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    const auto energy = [&](double step)
    {
        std::vector<double> q = s.q;
        q[4] += 0.7 * step;
        q[8] -= 0.2 * step;
        EXPECT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(q.size()), q.data()), GMXFMM_OK);
        return plan.energy(s.x); /* dipoles are kept */
    };
    EXPECT_NEAR(gradient, slope(energy, 1e-2), 1e-10 * std::fabs(gradient));
}

TEST(Dipoles, ThatLeaveTheirCellsAreTold)
{
    DipoleSystem s = cubicDipoles(4, [](int, int) { return 1.0; });
    for (std::size_t k = 0; k < s.x.size(); k++)
    {
        s.x[k] += 0.2; /* off the faces of cells */
    }
    gmxfmm_options options = explicitOptions(6, 4, 4, 4, 1);
    options.accuracy       = 1e-3;
    DipolePlan plan(s, options);
    plan.solution(s.x);
    std::vector<double> x = s.x;
    for (double& r : x)
    {
        r += 0.6;
    }
    gmxfmm_output output = sized<gmxfmm_output>();
    output.want_energy   = 1;
    EXPECT_EQ(gmxfmm_execute(plan.get(), x.data(), &output), GMXFMM_ERROR_LEFT);
    expectMessage(plan.get(), "allowed is");
    EXPECT_GT(output.outside, 0);
    EXPECT_LT(output.outside, 0.5); /* not the limit for a particle: what they have together */
}

TEST(DipoleErrors, AreTold)
{
    const DipoleSystem s    = mixtureIn(boxTypes()[0]);
    const std::int64_t n    = static_cast<std::int64_t>(s.size());
    gmxfmm_plan*       plan = createOrSkip(explicitOptions(6, 4, 4, 4, 1), n, s.box.data());
    EXPECT_EQ(gmxfmm_set_dipoles(nullptr, n, s.mu.data()), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_set_dipoles(plan, n, s.mu.data()), GMXFMM_ERROR_ORDER);
    expectMessage(plan, "set_charges");
    EXPECT_EQ(gmxfmm_set_dipoles(plan, n, nullptr), GMXFMM_OK); /* there are none */
    ASSERT_EQ(gmxfmm_set_charges(plan, n, s.q.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_assign(plan, s.x.data()), GMXFMM_OK);
    std::vector<double> torque(3 * s.size()), gradient(6 * s.size());
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.torque              = torque.data();
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_ERROR_ORDER);
    expectMessage(plan, "set_dipoles");
    output.torque         = nullptr;
    output.field_gradient = gradient.data();
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_ERROR_ORDER);
    EXPECT_EQ(gmxfmm_set_dipoles(plan, n - 1, s.mu.data()), GMXFMM_ERROR_OPTION);
    expectMessage(plan, "dipoles");
    std::vector<double> bad = s.mu;
    bad[3 * 7 + 1]          = NAN;
    EXPECT_EQ(gmxfmm_set_dipoles(plan, n, bad.data()), GMXFMM_ERROR_CHARGE);
    expectMessage(plan, "dipole of particle 7");
    EXPECT_NE(gmxfmm_capabilities(plan) & GMXFMM_CAN_DIPOLES, 0U);

    /* where there were none, particles are assigned anew; then other dipoles need no assignment */
    EXPECT_EQ(gmxfmm_set_dipoles(plan, n, s.mu.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_ERROR_ORDER);
    ASSERT_EQ(gmxfmm_assign(plan, s.x.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_dipoles(plan, n, s.mu.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan);

    /* two dipoles without charges at one place */
    std::vector<double> x = s.x, alone(s.size(), 0.0);
    ASSERT_EQ(gmxfmm_set_charges(plan, n, alone.data()), GMXFMM_OK);
    for (std::size_t d = 0; d < 3; d++)
    {
        x[3 * 2 + d] = x[3 * 3 + d];
    }
    ASSERT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_execute(plan, x.data(), &output), GMXFMM_ERROR_COINCIDENT);

    /* another number of particles has no dipoles */
    ASSERT_EQ(gmxfmm_set_charges(plan, n - 1, alone.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_assign(plan, s.x.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_ERROR_ORDER);
    gmxfmm_destroy(plan);
}

TEST(DipoleErrors, OfWhatIsNotOffered)
{
    const DipoleSystem s       = mixtureIn(boxTypes()[0]);
    const std::int64_t n       = static_cast<std::int64_t>(s.size());
    gmxfmm_options     options = withBoundary(defaultOptions(), Boundary::Open);
    options.method             = GMXFMM_TREECODE;
    gmxfmm_plan* plan          = createOrSkip(options, n, nullptr);
    ASSERT_EQ(gmxfmm_set_charges(plan, n, s.q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_dipoles(plan, n, s.mu.data()), GMXFMM_ERROR_UNSUPPORTED);
    expectMessage(plan, "dipoles");
    expectMessage(plan, "method = fmm");
    EXPECT_EQ(gmxfmm_capabilities(plan) & GMXFMM_CAN_DIPOLES, 0U);
    gmxfmm_destroy(plan);

    options              = explicitOptions(6, 4, 4, 4, 1);
    options.min_distance = 0.01;
    plan                 = createOrSkip(options, n, s.box.data());
    ASSERT_EQ(gmxfmm_set_charges(plan, n, s.q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_dipoles(plan, n, s.mu.data()), GMXFMM_ERROR_OPTION);
    expectMessage(plan, "min_distance");
    gmxfmm_destroy(plan);
}

TEST(DipoleErrors, OfSystemsWithOtherNumbers)
{
    const DipoleSystem s = mixtureIn(boxTypes()[0]);
    const std::int64_t n = static_cast<std::int64_t>(s.size()), start[] = {0, n / 2, n};
    DipolePlan         plan(s, explicitOptions(6, 4, 4, 4, 1));
    double             energy[2] = {0, 0};
    gmxfmm_systems     systems   = sized<gmxfmm_systems>();
    systems.num                  = 2;
    systems.start                = start;
    systems.x                    = s.x.data();
    systems.q                    = s.q.data();
    systems.energy               = energy;
    ASSERT_EQ(gmxfmm_set_exclusions(plan.get(), nullptr, nullptr), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_execute_systems(plan.get(), &systems), GMXFMM_ERROR_OPTION);
    expectMessage(plan.get(), "dipoles");
    systems.num              = 1;
    const std::int64_t one[] = {0, n};
    systems.start            = one;
    ASSERT_EQ(gmxfmm_execute_systems(plan.get(), &systems), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_NEAR(energy[0], plan.energy(s.x), 1e-13 * std::fabs(energy[0]));
}

TEST(DipoleSystems, HaveTheResultsOfPlansOfTheirOwn)
{
    /* Of 24 and 20 particles; the plan has other dipoles before, those of the larger one. */
    DipoleSystem              both[2] = {withDipoles(ions(boxOfVolume(boxTypes()[1], 24), 24, 9), 0.4, 5),
                                         withDipoles(ions(boxOfVolume(boxTypes()[1], 26), 20, 3), 0.3, 6)};
    std::vector<double>       x, q, mu, box;
    std::vector<std::int64_t> start = {0};
    for (const DipoleSystem& s : both)
    {
        x.insert(x.end(), s.x.begin(), s.x.end());
        q.insert(q.end(), s.q.begin(), s.q.end());
        mu.insert(mu.end(), s.mu.begin(), s.mu.end());
        box.insert(box.end(), s.box.begin(), s.box.end());
        start.push_back(static_cast<std::int64_t>(q.size()));
    }
    std::vector<double> force(x.size()), torque(x.size()), gradient(6 * q.size()), energy(2), virial(18);
    gmxfmm_systems      systems  = sized<gmxfmm_systems>();
    systems.num                  = 2;
    systems.start                = start.data();
    systems.x                    = x.data();
    systems.q                    = q.data();
    systems.mu                   = mu.data();
    systems.box                  = box.data();
    systems.force                = force.data();
    systems.torque               = torque.data();
    systems.field_gradient       = gradient.data();
    systems.energy               = energy.data();
    systems.virial               = virial.data();
    const gmxfmm_options options = explicitOptions(8, 4, 4, 4, 1);
    DipolePlan           plan(both[0], options);
    ASSERT_EQ(gmxfmm_execute_systems(plan.get(), &systems), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_EQ(systems.done, 2);
    for (std::size_t s = 0; s < 2; s++)
    {
        SCOPED_TRACE(s);
        const DipoleSolution alone = solveDipoles(both[s], options);
        const auto           part  = [&](const std::vector<double>& all, std::int64_t columns)
        { return std::vector<double>(all.begin() + columns * start[s], all.begin() + columns * start[s + 1]); };
        /* spectra of another box before, and sums in another order: rounding */
        EXPECT_LE(relativeRms(part(force, 3), alone.force), 1e-12);
        EXPECT_LE(relativeRms(part(torque, 3), alone.torque), 1e-12);
        EXPECT_LE(relativeRms(part(gradient, 6), alone.gradient), 1e-12);
        EXPECT_NEAR(energy[s], alone.energy, 1e-12 * std::fabs(alone.energy));
        for (std::size_t k = 0; k < 9; k++)
        {
            EXPECT_NEAR(virial[9 * s + k], alone.virial[k], 1e-11 * std::fabs(alone.energy));
        }
    }
    /* The plan has the dipoles of the last one, of 20 particles. */
    mu[3 * 24 + 7] = NAN;
    EXPECT_EQ(gmxfmm_execute_systems(plan.get(), &systems), GMXFMM_ERROR_CHARGE);
    EXPECT_EQ(systems.done, 1);
}

/* Without a box. */
class DipolesInOpenSystem : public testing::TestWithParam<gmxfmm_m2l>
{
};

TEST_P(DipolesInOpenSystem, AreTheDirectSum)
{
    const DipoleSystem   s         = dropOf(200);
    const DipoleSolution reference = dipoleDirect(s);
    const auto           options   = [&](gmxfmm_precision precision)
    { return withBoundary(methodOptions(GetParam(), 20, 4, 2, precision), Boundary::Open); };
    const DipoleSolution r = solveDipoles(s, options(GMXFMM_DOUBLE));
    expectSame(r, reference, truncation, ofVirial);
    expectTurn(r, 1e-11);
    expectSame(solveDipoles(s, options(GMXFMM_SINGLE)), reference, single, 10 * single);
}

TEST_P(DipolesInOpenSystem, DerivativesAtLowOrder)
{
    expectDerivatives(dropOf(60), withBoundary(methodOptions(GetParam(), 4, 5, 1), Boundary::Open), {});
}

INSTANTIATE_TEST_SUITE_P(Methods, DipolesInOpenSystem, testing::ValuesIn(methods()), methodName);

/* Leaves of several levels: a cloud that is dense in its middle. Units that are far from the system's are tests of the
 * range of single precision, where numbers are rounded first, as close pairs have few digits of their places. */
TEST(Dipoles, InLeavesOfSeveralLevels)
{
    for (const double unit : {1.0, 1e-4, 1e4})
    {
        DipoleSystem s = dropOf(900);
        s.excluded.clear();
        for (std::size_t i = 0; i < s.size(); i++)
        {
            const Vec3   r  = s.position(i);
            const double r2 = (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]) / 16;
            for (std::size_t d = 0; d < 3; d++)
            {
                s.x[3 * i + d] *= r2 * r2 * unit;
                s.mu[3 * i + d] *= r2 * r2 * unit;
            }
        }
        for (std::vector<double>* numbers : {&s.x, &s.q, &s.mu})
        {
            const std::vector<float> floats(numbers->begin(), numbers->end());
            numbers->assign(floats.begin(), floats.end());
        }
        const DipoleSolution reference = dipoleDirect(s);
        gmxfmm_options       options   = withBoundary(automatic(GMXFMM_M2L_ROTATION, 1e-5), Boundary::Open);
        options.order                  = 18;
        for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
        {
            options.precision = options.array_type = precision;
            const DipoleSolution r                 = solveDipoles(s, options);
            /* order 18 with one layer of near cells; close pairs have most of the norms */
            const double tolerance = precision == GMXFMM_DOUBLE ? 1e-6 : single;
            EXPECT_LT(relativeRms(r.force, reference.force), tolerance);
            EXPECT_LT(relativeRms(r.torque, reference.torque), tolerance);
            EXPECT_LT(relativeRms(r.gradient, reference.gradient), tolerance);
            EXPECT_NEAR(r.energy, reference.energy, tolerance * std::fabs(reference.energy) * 10);
        }
    }
}

/* Octrees in periodic boxes. */
class DipolesInOctree : public testing::TestWithParam<Path>
{
};

TEST_P(DipolesInOctree, AreTheEwaldSum)
{
    const DipoleSystem   s         = mixtureIn(GetParam().box, 2.5);
    const DipoleSolution reference = dipoleEwald(s, Boundary::Vacuum);
    const gmxfmm_options options   = withBoundary(pathOptions(GetParam(), 20, 4, 2), Boundary::Vacuum);
    expectSame(solveDipoles(s, options), reference, truncation, ofVirial);
}

TEST_P(DipolesInOctree, DerivativesAtLowOrder)
{
    expectDerivatives(mixtureIn(GetParam().box, 2.5), pathOptions(GetParam(), 4, 6, 1), rightAngles);
}

static std::vector<Path> octreePaths()
{
    std::vector<Path> some;
    for (const gmxfmm_m2l m2l : octreeMethods())
    {
        some.push_back({m2l, octreeBoxTypes().front()});
    }
    some.push_back({GMXFMM_M2L_ROTATION, octreeBoxTypes().back()});
    return some;
}

INSTANTIATE_TEST_SUITE_P(Paths, DipolesInOctree, testing::ValuesIn(octreePaths()), pathName);

/* Each dipole as two charges, `apart` from each other, that exclude each other: the same but for the square of that
 * over distances. */
static System asPairs(const DipoleSystem& s, double apart)
{
    System pairs;
    pairs.box = s.box;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const double* mu    = &s.mu[3 * i];
        const double  size  = std::sqrt(mu[0] * mu[0] + mu[1] * mu[1] + mu[2] * mu[2]);
        const double  scale = size > 0 ? 0.5 * apart / size : 0;
        for (const double sign : {1.0, -1.0})
        {
            pairs.add({s.x[3 * i] + sign * scale * mu[0], s.x[3 * i + 1] + sign * scale * mu[1],
                       s.x[3 * i + 2] + sign * scale * mu[2]},
                      0.5 * s.q[i] + sign * size / apart);
        }
        pairs.exclude(2 * i, 2 * i + 1);
    }
    for (std::size_t i = 0; i < s.excluded.size(); i++)
    {
        for (const int j : s.excluded[i])
        {
            for (std::size_t a = 0; a < 2; a++)
            {
                for (std::size_t b = 0; b < 2 && static_cast<std::size_t>(j) > i; b++)
                {
                    pairs.exclude(2 * i + a, 2 * static_cast<std::size_t>(j) + b);
                }
            }
        }
    }
    return pairs;
}

/* Forces, torques, energy and virial of dipoles are those of pairs of charges. */
static void expectPairs(const DipoleSystem& s, const gmxfmm_options& options)
{
    const double         apart = 1e-3, tolerance = 2e-5; /* apart^2 over the least distance squared, some times */
    const System         pairs = asPairs(s, apart);
    const Result         two   = solve(pairs, options);
    const DipoleSolution one   = solveDipoles(s, options);
    std::vector<double>  force(s.x.size()), torque(s.x.size());
    Mat3                 virial = two.virial;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t d = 0; d < 3; d++)
        {
            force[3 * i + d]       = two.force[6 * i + d] + two.force[6 * i + 3 + d];
            const std::size_t next = (d + 1) % 3, last = (d + 2) % 3;
            for (std::size_t k : {2 * i, 2 * i + 1})
            {
                torque[3 * i + d] += (pairs.x[3 * k + next] - s.x[3 * i + next]) * two.force[3 * k + last] -
                                     (pairs.x[3 * k + last] - s.x[3 * i + last]) * two.force[3 * k + next];
                for (std::size_t e = 0; e < 3; e++) /* arms are not strained with the positions */
                {
                    virial[3 * d + e] += 0.5 * (pairs.x[3 * k + d] - s.x[3 * i + d]) * two.force[3 * k + e];
                }
            }
        }
    }
    EXPECT_LT(relativeRms(one.force, force), tolerance);
    EXPECT_LT(relativeRms(one.torque, torque), tolerance);
    EXPECT_NEAR(one.energy, two.energy, tolerance * std::fabs(two.energy) * 10);
    EXPECT_LT(maxDifference(one.virial, virial), 10 * tolerance * std::fabs(two.energy));
    expectTurn(one, 1e-10);
}

TEST(Dipoles, AreTwoChargesEach)
{
    expectPairs(mixtureIn(boxTypes()[3]), explicitOptions(12, evenGrid(boxTypes()[3], 4), 2));
}

/* Along the plan's own axes and others. */
static void expectPairsAlong(const std::vector<std::array<int, 3>>& openings)
{
    const Mat3 box = {3, 0.2, -0.3, 0.4, 2.8, 0.5, -0.2, 0.3, 3.1};
    for (const std::array<int, 3>& periodic : openings)
    {
        SCOPED_TRACE(testing::Message() << periodic[0] << periodic[1] << periodic[2]);
        const DipoleSystem   s       = mixtureIn(box, 2.5);
        const gmxfmm_options options = periodicAlong(explicitOptions(12, 3, 3, 3, 2), periodic);
        expectPairs(s, options);
        expectDerivatives(s, periodicAlong(explicitOptions(4, 4, 4, 4, 1), periodic), {});
        /* the gradient, in axes that are turned, too */
        DipoleSystem with = s;
        std::fill(&with.mu[3 * 6], &with.mu[3 * 7], 0);
        DipolePlan plan(with, options);
        expectGradientOfField(&plan, with, 6, 1e-8);
    }
}

TEST(Dipoles, InSlabs)
{
    expectPairsAlong({{1, 1, 0}, {1, 0, 1}, {0, 1, 1}});
}

TEST(Dipoles, InWires)
{
    expectPairsAlong({{0, 0, 1}, {0, 1, 0}});
}

/* Places that are no particles: the reference has particles without charge and dipole there. */
TEST(Dipoles, ActOnTargets)
{
    const BoxType       type = boxTypes().back();
    DipoleSystem        s = mixtureIn(type), with = s;
    Random              random(3);
    std::vector<double> places;
    s.excluded.clear();
    with.excluded.clear();
    for (int i = 0; i < 10; i++)
    {
        const Vec3 at = rowTimes({random.uniform(), random.uniform(), random.uniform()}, s.box);
        places.insert(places.end(), at.begin(), at.end());
        with.add(at, 0);
        with.mu.insert(with.mu.end(), {0, 0, 0});
    }
    const DipoleSolution reference = dipoleEwald(with);
    DipolePlan           plan(s, fine(type));
    for (const int again : {0, 1}) /* targets after dipoles, and dipoles after targets */
    {
        ASSERT_EQ(gmxfmm_set_targets(plan.get(), again ? 0 : 10, places.data()), GMXFMM_OK);
        if (again)
        {
            ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), 24, nullptr), GMXFMM_OK);
            ASSERT_EQ(gmxfmm_set_targets(plan.get(), 10, places.data()), GMXFMM_OK);
            plan.setDipoles(s.mu);
        }
        plan.assign(s.x);
        std::vector<double> potential(10), field(30), gradient(60);
        gmxfmm_output       output = sized<gmxfmm_output>();
        output.torque              = field.data();
        EXPECT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_ERROR_OPTION);
        output.torque         = nullptr;
        output.potential      = potential.data();
        output.field          = field.data();
        output.field_gradient = gradient.data();
        ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
        const auto tail = [](const std::vector<double>& all, std::size_t num)
        { return std::vector<double>(all.end() - static_cast<std::ptrdiff_t>(num), all.end()); };
        EXPECT_LT(relativeRms(potential, tail(reference.potential, 10)), truncation);
        EXPECT_LT(relativeRms(field, tail(reference.field, 30)), truncation);
        EXPECT_LT(relativeRms(gradient, tail(reference.gradient, 60)), truncation);
        for (std::size_t i = 0; i < 10; i++) /* no source, no divergence */
        {
            EXPECT_NEAR(gradient[6 * i] + gradient[6 * i + 1] + gradient[6 * i + 2], ofBackground(s),
                        1e-10 * rms(gradient));
        }
    }
}

/* A liquid of charges and dipoles: what is chosen for an accuracy reaches it, in forces and torques. */
class MeasuredDipoles : public testing::TestWithParam<Boundary>
{
};

static gmxfmm_system viewOf(const SystemView& view, const DipoleSystem& s)
{
    gmxfmm_system system = view.get();
    system.mu            = s.mu.data();
    return system;
}

/* Whatever GMXFMM_TESTS_DEVICE says: an order that a GPU does not have. */
static gmxfmm_options onCpu(gmxfmm_options options)
{
    options.device = GMXFMM_CPU;
    return options;
}

TEST_P(MeasuredDipoles, ReachWhatIsAsked)
{
    const bool   open = GetParam() == Boundary::Open;
    DipoleSystem s    = withDipoles(open ? droplet(1000, 5, 7) : ions(boxOfVolume(boxTypes()[3], 512), 512, 4), 0.4, 5);
    const SystemView     view(s, GetParam());
    const DipoleSolution reference =
        open ? dipoleDirect(s)
             : solveDipoles(s, onCpu(withBoundary(explicitOptions(22, evenGrid(boxTypes()[3], 4), 2), GetParam())));
    for (const double accuracy : {1e-3, 1e-5})
    {
        const gmxfmm_system system      = viewOf(view, s);
        gmxfmm_options      options     = withBoundary(askedOptions(accuracy), GetParam());
        options.method                  = GMXFMM_METHOD_AUTO; /* the FMM's alone */
        gmxfmm_plan*       plan         = nullptr;
        gmxfmm_measurement chosen       = sized<gmxfmm_measurement>();
        char               message[512] = "";
        ASSERT_EQ(gmxfmm_create_measured(&plan, &options, &system, &chosen, nullptr, nullptr, message, sizeof(message)),
                  GMXFMM_OK)
            << message;
        std::vector<double> force(s.x.size()), torque(s.x.size());
        gmxfmm_output       output = sized<gmxfmm_output>();
        output.force               = force.data();
        output.torque              = torque.data();
        ASSERT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan);
        const double found = std::max(relativeRms(force, reference.force), relativeRms(torque, reference.torque));
        EXPECT_LT(found, accuracy);
        EXPECT_NEAR(chosen.error, found, 0.11 * accuracy); /* a reference is exact to a tenth of the accuracy */
        gmxfmm_info info = sized<gmxfmm_info>();
        ASSERT_EQ(gmxfmm_get_info(plan, &info), GMXFMM_OK);
        EXPECT_EQ(info.method, GMXFMM_FMM);
        EXPECT_LT(info.measured_error, accuracy);
        EXPECT_EQ(gmxfmm_set_dipoles(plan, system.n, system.mu), GMXFMM_OK);
        ASSERT_EQ(gmxfmm_get_info(plan, &info), GMXFMM_OK);
        EXPECT_TRUE(std::isnan(info.measured_error)) << "they may be others";
        gmxfmm_destroy(plan);
    }
}

TEST_P(MeasuredDipoles, WithoutForcesAreMeasuredInTheirUnits)
{
    const DipoleSystem  s = cubicDipoles(6, [](int x, int y) { return (x + y) % 2 == 0 ? 1.0 : -1.0; });
    const SystemView    view(s, GetParam());
    const gmxfmm_system system       = viewOf(view, s);
    gmxfmm_options      options      = withBoundary(askedOptions(1e-3), GetParam());
    gmxfmm_plan*        plan         = nullptr;
    char                message[512] = "";
    ASSERT_EQ(gmxfmm_create_measured(&plan, &options, &system, nullptr, nullptr, nullptr, message, sizeof(message)),
              GMXFMM_OK)
        << message;
    gmxfmm_info info = sized<gmxfmm_info>();
    ASSERT_EQ(gmxfmm_get_info(plan, &info), GMXFMM_OK);
    EXPECT_LT(info.measured_error, 1e-3);
    EXPECT_EQ(info.zero_forces, GetParam() == Boundary::Open ? 0 : 1);
    gmxfmm_destroy(plan);
}

static std::string boundaryName(const testing::TestParamInfo<Boundary>& param)
{
    return param.param == Boundary::Open ? "Open" : "Periodic";
}

INSTANTIATE_TEST_SUITE_P(Boundaries, MeasuredDipoles, testing::Values(Boundary::Tinfoil, Boundary::Open), boundaryName);

TEST(DipoleErrors, OfMeasurements)
{
    const DipoleSystem  s = mixtureIn(boxTypes()[0]);
    const SystemView    view(s, Boundary::Tinfoil);
    const gmxfmm_system charges = view.get(), both = viewOf(view, s);
    gmxfmm_options      options      = askedOptions(1e-3);
    gmxfmm_reference*   reference    = nullptr;
    char                message[512] = "";
    gmxfmm_measurement  m            = sized<gmxfmm_measurement>();
    DipolePlan          plan(s, explicitOptions(10, 4, 4, 4, 1));
    ASSERT_EQ(gmxfmm_reference_create(&reference, &options, &charges, message, sizeof(message)), GMXFMM_OK) << message;
    EXPECT_EQ(gmxfmm_measure_plan(reference, plan.get(), &m, message, sizeof(message)), GMXFMM_ERROR_OPTION);
    EXPECT_NE(std::string(message).find("dipoles"), std::string::npos) << message;
    gmxfmm_reference_destroy(reference);
    ASSERT_EQ(gmxfmm_reference_create(&reference, &options, &both, message, sizeof(message)), GMXFMM_OK) << message;
    EXPECT_EQ(gmxfmm_measure_plan(reference, plan.get(), &m, message, sizeof(message)), GMXFMM_OK) << message;
    EXPECT_GT(m.error, 0);
    EXPECT_LT(m.error, 1e-2);
    gmxfmm_reference_destroy(reference);
    gmxfmm_plan* made = nullptr;
    options           = withBoundary(options, Boundary::Open);
    options.method    = GMXFMM_TREECODE;
    EXPECT_EQ(gmxfmm_create_measured(&made, &options, &both, nullptr, nullptr, nullptr, message, sizeof(message)),
              GMXFMM_ERROR_UNSUPPORTED);
    EXPECT_NE(std::string(message).find("dipoles"), std::string::npos) << message;
}
