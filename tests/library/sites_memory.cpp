/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of sites: none is allocated in a step, all is given back, and a call that finds none says so. */
#include <gtest/gtest.h>

#include "gmxfmm_sites.h"
#include "support/heap.h"
#include "support/sized.h"
#include "support/sites.h"

using namespace fmmtest;

namespace
{

/* Every call until one has all the memory that it wants; how many had not. */
template <class Call>
int failEach(const Call& call)
{
    for (int number = 0;; number++)
    {
        heapFailAfter(number);
        const gmxfmm_status status = call();
        const bool          failed = heapHasFailed();
        heapFailAfter(-1);
        if (!failed)
        {
            EXPECT_EQ(status, GMXFMM_OK);
            return number;
        }
        EXPECT_EQ(status, GMXFMM_ERROR_MEMORY) << number;
    }
}

class SitesMemory : public testing::TestWithParam<gmxfmm_precision>
{
  protected:
    /* The OpenMP runtime keeps what the first parallel region takes. */
    void SetUp() override
    {
        ASSERT_EQ(gmxfmm_sites_create(&sites_, &system_, nullptr, 0), GMXFMM_OK);
        ASSERT_EQ(search(), GMXFMM_OK);
        gmxfmm_sites_destroy(sites_);
    }
    gmxfmm_status search()
    {
        return gmxfmm_sites_search(sites_, g_.box.data(), positions(), 1.3, nullptr);
    }
    gmxfmm_status execute()
    {
        double energy, virial[9];
        return gmxfmm_sites_execute(sites_, g_.box.data(), positions(), f_.data(), &energy, virial);
    }
    static Groups groups()
    {
        Groups g = randomGroups(scaled(sitesBoxes()[0].shape, 4), 3, 500, 4, 1);
        g.exclude(chainExclusions(50, 10));
        return g;
    }
    const void* positions() const
    {
        return GetParam() == GMXFMM_DOUBLE ? static_cast<const void*>(g_.x.data()) : x_.data();
    }

    Groups              g_      = groups();
    gmxfmm_sites_system system_ = g_.system(GetParam());
    std::vector<float>  x_{g_.x.begin(), g_.x.end()};
    std::vector<double> f_     = g_.x;
    gmxfmm_sites*       sites_ = nullptr;
};

} // namespace

TEST_P(SitesMemory, IsNotAllocatedInAStep)
{
    system_.num_threads = 2; /* for a team of one the OpenMP runtime allocates every time */
    ASSERT_EQ(gmxfmm_sites_create(&sites_, &system_, nullptr, 0), GMXFMM_OK);
    ASSERT_EQ(search(), GMXFMM_OK);
    ASSERT_EQ(execute(), GMXFMM_OK); /* starts the threads */
    const std::size_t calls = heapCalls();
    ASSERT_EQ(execute(), GMXFMM_OK);
    EXPECT_EQ(heapCalls(), calls);
    gmxfmm_sites_destroy(sites_);
}

TEST_P(SitesMemory, IsCountedAndGivenBack)
{
    const std::size_t before = heapBytes();
    for (int i = 0; i < 2; i++)
    {
        ASSERT_EQ(gmxfmm_sites_create(&sites_, &system_, nullptr, 0), GMXFMM_OK);
        ASSERT_EQ(search(), GMXFMM_OK);
        gmxfmm_sites_info info = sized<gmxfmm_sites_info>();
        ASSERT_EQ(gmxfmm_sites_get_info(sites_, &info), GMXFMM_OK);
        /* what the heap adds to each array */
        EXPECT_NEAR(static_cast<double>(info.bytes), static_cast<double>(heapBytes() - before), 4096);
        gmxfmm_sites_destroy(sites_);
        EXPECT_EQ(heapBytes(), before);
    }
}

TEST_P(SitesMemory, MayLack)
{
    const std::size_t before = heapBytes();
    EXPECT_GT(failEach([this] { return gmxfmm_sites_create(&sites_, &system_, nullptr, 0); }), 15);
    const int targets[3] = {7, 2, 400};
    EXPECT_EQ(failEach([&] { return gmxfmm_sites_set_targets(sites_, 3, 3, targets); }), 2);
    EXPECT_GT(failEach(
                  [this]
                  {
                      const gmxfmm_status status = search();
                      EXPECT_TRUE(status == GMXFMM_OK || execute() == GMXFMM_ERROR_ORDER);
                      return status;
                  }),
              4);
    EXPECT_EQ(execute(), GMXFMM_OK);
    gmxfmm_sites_destroy(sites_);
    EXPECT_EQ(heapBytes(), before);
}

INSTANTIATE_TEST_SUITE_P(Precisions, SitesMemory, testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE));
