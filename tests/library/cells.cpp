/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The near set under deformations of the box: kept exactly as long as a new choice would have the same vectors. */
#include <algorithm>

#include <gtest/gtest.h>

#include "support/suites.h"
#include "support/systems.h"

extern "C"
{
#include "fmm/geometry/cells.h"
}

using namespace fmmtest;

namespace
{

class Grid
{
  public:
    Grid(const Mat3& box, const std::array<int, 3>& inner, int ws) : inner_(inner), ws_(ws)
    {
        const int periodic[3] = {1, 1, 1};
        EXPECT_EQ(fmm_cells_set(&cells_, box.data(), inner_.data(), periodic, ws_, 8), GMXFMM_OK);
    }
    ~Grid()
    {
        fmm_cells_free(&cells_);
    }
    Grid(const Grid&)            = delete;
    Grid& operator=(const Grid&) = delete;
    /* Whether the near set may stay in another box. */
    bool deform(const Mat3& box)
    {
        fmm_cells_deform(&cells_, box.data());
        return fmm_cells_keep_near(&cells_, ws_) != 0;
    }
    std::vector<std::array<int, 3>> near() const
    {
        std::vector<std::array<int, 3>> vectors;
        for (int i = 0; i < cells_.num_near; i++)
        {
            vectors.push_back({cells_.near[i][0], cells_.near[i][1], cells_.near[i][2]});
        }
        std::sort(vectors.begin(), vectors.end());
        return vectors;
    }
    const fmm_cells& cells() const
    {
        return cells_;
    }

  private:
    fmm_cells          cells_ = {};
    std::array<int, 3> inner_;
    int                ws_;
};

Mat3 deformed(const Mat3& box, double amount, bool alongAxes, Random* random)
{
    System s;
    Mat3   strain;
    s.box = box;
    for (std::size_t i = 0; i < 9; i++)
    {
        strain[i] = amount * random->centred() * (alongAxes && i % 4 != 0 ? 0 : 1);
    }
    return strained(s, strain).box;
}

class Cells : public testing::TestWithParam<BoxType>
{
};

} // namespace

TEST_P(Cells, KeepTheNearSetThatTheyWouldBeGiven)
{
    Random random(7);
    int    kept = 0, others = 0;
    for (int i = 0; i < 200; i++)
    {
        SCOPED_TRACE(i);
        const int  ws    = 1 + i % 2;
        const auto inner = evenGrid(GetParam(), 5 + i % 3);
        const Mat3 box   = boxOfVolume(GetParam(), 8),
                   other = deformed(box, i % 5 == 0 ? 0.2 : 0.005, i % 4 < 2, &random);
        Grid       grid(box, inner, ws);
        const Grid fresh(other, inner, ws);
        const bool same = grid.near() == fresh.near();
        EXPECT_EQ(grid.deform(other), same);
        (same ? kept : others)++;
        if (same)
        {
            EXPECT_EQ(grid.cells().far_distance, fresh.cells().far_distance);
            EXPECT_EQ(fmm_near_range(&grid.cells(), ws), fmm_near_range(&fresh.cells(), ws));
        }
    }
    EXPECT_GT(kept, 10);
    EXPECT_GT(others, 10);
}

TEST_P(Cells, KeepTheNearSetAsTheyGrow)
{
    const auto inner = evenGrid(GetParam(), 6);
    for (double volume : {8.1, 7.0, 20.0})
    {
        Grid grid(boxOfVolume(GetParam(), 8), inner, 1);
        EXPECT_TRUE(grid.deform(boxOfVolume(GetParam(), volume)));
    }
}

INSTANTIATE_TEST_SUITE_P(Boxes, Cells, testing::ValuesIn(boxTypes()), boxName);
