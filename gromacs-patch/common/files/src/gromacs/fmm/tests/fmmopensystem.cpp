/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests for what takes the place of the box for systems without periodicity
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmopensystem.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "gromacs/pbcutil/pbc.h"
#include "gromacs/utility/exceptions.h"

#include "testutils/testasserts.h"

namespace gmx
{
namespace
{

const matrix c_box     = { { 3, 0, 0 }, { 0, 4, 0 }, { 1, 0, 5 } };
const matrix c_zeroBox = { { 0 } };
//! What grompp makes of it without two walls
const matrix c_boxOfFilm = { { 3, 0, 0 }, { 0, 4, 0 }, { 0, 0, 0 } };

//! Returns atoms on a cubic lattice with the given spacing, the first of them at \p start
std::vector<RVec> lattice(int numAlongEdge, real spacing, real start)
{
    std::vector<RVec> x;
    for (int i = 0; i < numAlongEdge * numAlongEdge * numAlongEdge; i++)
    {
        x.push_back({ start + spacing * (i % numAlongEdge),
                      start + spacing * (i / numAlongEdge % numAlongEdge),
                      start + spacing * (i / numAlongEdge / numAlongEdge) });
    }
    return x;
}

//! Expects the same bits in all components
void expectEqual(const RVec& expected, const RVec& found)
{
    for (int d = 0; d < DIM; d++)
    {
        EXPECT_EQ(expected[d], found[d]) << "along dimension " << d;
    }
}

TEST(FmmOpenSystemTest, PeriodicGridIsTheBox)
{
    const std::vector<RVec> x       = { { -7, 0, 0 } };
    const GridCorners       corners = gridCorners(PbcType::Xyz, 0, c_box, x);
    expectEqual(RVec(0, 0, 0), corners.lower);
    expectEqual(RVec(3, 4, 5), corners.upper);
}

TEST(FmmOpenSystemTest, OpenGridHasAllAtomsWhateverTheBox)
{
    const std::vector<RVec> x = { { -7, 1, 0 }, { -2, 8, 50 }, { -3, -9, 7 } };
    for (const auto* box : { &c_box, &c_zeroBox })
    {
        const GridCorners corners = gridCorners(PbcType::No, 0, *box, x);
        expectEqual(RVec(-7, -9, 0), corners.lower);
        expectEqual(RVec(-2, 8, 50), corners.upper);
    }
}

TEST(FmmOpenSystemTest, GridBetweenTwoWallsIsTheBox)
{
    const std::vector<RVec> x       = { { -7, 1, 0 }, { -2, 8, 50 } };
    const GridCorners       corners = gridCorners(PbcType::XY, 2, c_box, x);
    expectEqual(RVec(0, 0, 0), corners.lower);
    expectEqual(RVec(3, 4, 5), corners.upper);
}

TEST(FmmOpenSystemTest, GridOfAFilmHasAllAtomsAlongZ)
{
    const std::vector<RVec> x = { { -7, 1, -4 }, { -2, 8, 50 }, { -3, -9, 7 } };
    for (const int numWalls : { 0, 1 })
    {
        const GridCorners corners = gridCorners(PbcType::XY, numWalls, c_box, x);
        expectEqual(RVec(0, 0, -4), corners.lower);
        expectEqual(RVec(3, 4, 50), corners.upper);
    }
    const std::vector<RVec> flat    = { { 1, 1, 2 }, { 2, 3, 2 } };
    const GridCorners       corners = gridCorners(PbcType::XY, 0, c_box, flat);
    EXPECT_LT(corners.lower[ZZ], 2);
    EXPECT_GT(corners.upper[ZZ], 2);
}

TEST(FmmOpenSystemTest, DomainOfAFilmExtendsAlongZAsFarAsItsFiniteAtoms)
{
    const real        nan   = std::numeric_limits<real>::quiet_NaN();
    RVec              lower = { 1, 2, 100 }, upper = { 3, 4, 200 };
    std::vector<RVec> x = { { -7, 1, nan }, { -2, 8, 50 }, { -3, -9, -4 } };
    setExtentAlongZ(x, &lower, &upper);
    expectEqual(RVec(1, 2, -4), lower);
    expectEqual(RVec(3, 4, 50), upper);
    for (const size_t numAtoms : { 1, 0 })
    {
        x.resize(numAtoms);
        setExtentAlongZ(x, &lower, &upper);
        EXPECT_REAL_EQ(c_openMinimumExtent, upper[ZZ] - lower[ZZ]) << "without a finite atom";
    }
}

TEST(FmmOpenSystemTest, OpenGridHasSomeExtentAroundFlatMolecules)
{
    const std::vector<RVec> x       = { { -1, 0, 2 }, { 1, 0, 2 } };
    const GridCorners       corners = gridCorners(PbcType::No, 0, c_zeroBox, x);
    EXPECT_EQ(-1, corners.lower[XX]);
    EXPECT_EQ(1, corners.upper[XX]);
    for (const int d : { YY, ZZ })
    {
        EXPECT_LT(corners.lower[d], x[0][d]);
        EXPECT_GT(corners.upper[d], x[0][d]);
        EXPECT_REAL_EQ(c_openMinimumExtent, corners.upper[d] - corners.lower[d]);
    }
}

TEST(FmmOpenSystemTest, RefusesCoordinatesThatAreNotFinite)
{
    for (const real bad : { std::numeric_limits<real>::quiet_NaN(), std::numeric_limits<real>::infinity() })
    {
        const std::vector<RVec> x = { { 0, 0, 0 }, { 1, bad, 0 } };
        EXPECT_THROW(gridCorners(PbcType::No, 0, c_zeroBox, x), SimulationInstabilityError);
        EXPECT_THROW(openSystemVolume(x), SimulationInstabilityError);
    }
}

TEST(FmmOpenSystemTest, VolumeIsThatOfTheMatter)
{
    // Cells of 0.5 nm with 5 x 5 x 5 atoms each
    const std::vector<RVec> compact = lattice(20, 0.1, -0.95);
    EXPECT_REAL_EQ(8, openSystemVolume(compact));

    // Two such cubes have twice the volume, however far apart
    std::vector<RVec>       both = compact;
    const std::vector<RVec> away = lattice(20, 0.1, 1000.05);
    both.insert(both.end(), away.begin(), away.end());
    EXPECT_REAL_EQ_TOL(16, openSystemVolume(both), test::relativeToleranceAsFloatingPoint(16, 1e-2));
}

TEST(FmmOpenSystemTest, VolumeIsPositiveForFewAtoms)
{
    EXPECT_GT(openSystemVolume({}), 0);
    const std::vector<RVec> x = { { 1, 2, 3 } };
    EXPECT_GT(openSystemVolume(x), 0);
}

TEST(FmmOpenSystemTest, DensityBoxIsTheBoxWithPeriodicity)
{
    matrix                  densityBox;
    const std::vector<RVec> x = lattice(20, 0.1, -0.95);
    setDensityBox(PbcType::Xyz, 0, c_box, x, densityBox);
    EXPECT_EQ(60, det(densityBox));
    setDensityBox(PbcType::No, 0, c_box, x, densityBox);
    EXPECT_REAL_EQ_TOL(8, det(densityBox), test::relativeToleranceAsFloatingPoint(8, 1e-5));
}

TEST(FmmOpenSystemTest, DensityBoxOfAFilmHasItsWidthsAndTheVolumeOfItsMatter)
{
    matrix                  densityBox;
    const std::vector<RVec> x = lattice(20, 0.1, -0.95);
    setDensityBox(PbcType::XY, 2, c_box, x, densityBox);
    EXPECT_EQ(60, det(densityBox));
    for (const auto* box : { &c_box, &c_boxOfFilm })
    {
        setDensityBox(PbcType::XY, 0, *box, x, densityBox);
        EXPECT_EQ(3, densityBox[XX][XX]);
        EXPECT_EQ(4, densityBox[YY][YY]);
        EXPECT_REAL_EQ_TOL(8, det(densityBox), test::relativeToleranceAsFloatingPoint(8, 1e-5));
    }
}

} // namespace
} // namespace gmx
