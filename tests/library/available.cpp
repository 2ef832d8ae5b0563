/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What control groups leave of the memory, on folders as Linux shows them. */
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

extern "C"
{
#include "fmm/available.h"
}

namespace
{

const std::uint64_t unlimited = UINT64_MAX;

class GroupMemory : public testing::Test
{
  protected:
    void SetUp() override
    {
        const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
        root_ = std::filesystem::temp_directory_path() / ("gmxfmm." + std::to_string(getpid()) + "." + test->name());
        std::filesystem::create_directories(root_);
    }
    void TearDown() override
    {
        std::filesystem::remove_all(root_);
    }

    void write(const std::string& folder, const std::string& name, const std::string& text) const
    {
        std::filesystem::create_directories(root_ / folder);
        std::ofstream(root_ / folder / name) << text << "\n";
    }
    void second(const std::string& folder, const std::string& limit, int used, int cache) const
    {
        write(folder, "memory.max", limit);
        write(folder, "memory.current", std::to_string(used));
        write(folder, "memory.stat", "anon 7\ninactive_file_of_another_name 5\ninactive_file " + std::to_string(cache));
    }
    void first(const std::string& folder, const std::string& limit, int used, int cache) const
    {
        write(folder, "memory.limit_in_bytes", limit);
        write(folder, "memory.usage_in_bytes", std::to_string(used));
        write(folder, "memory.stat", "inactive_file 3\ntotal_inactive_file " + std::to_string(cache));
    }
    std::uint64_t left(const std::string& groups) const
    {
        return fmm_group_memory(root_.c_str(), groups.c_str());
    }

  private:
    std::filesystem::path root_;
};

} // namespace

TEST_F(GroupMemory, HasNoLimitWithoutGroups)
{
    EXPECT_EQ(left(""), unlimited);
    EXPECT_EQ(left("0::/user.slice\n"), unlimited);
    EXPECT_EQ(left("no such file"), unlimited);
}

TEST_F(GroupMemory, IsTheLimitWithoutWhatIsUsed)
{
    second("", "1000", 700, 100);
    EXPECT_EQ(left("0::/\n"), 1000 - (700 - 100));
    EXPECT_EQ(left(""), 400) << "a container without /proc";
}

TEST_F(GroupMemory, IsNothingWhereMoreIsUsed)
{
    second("", "1000", 1200, 100);
    EXPECT_EQ(left("0::/\n"), 0);
}

/* A group of its own may have no limit, and the one above it little left. */
TEST_F(GroupMemory, IsTheLeastUpToTheRoot)
{
    second("a/b", "max", 600, 0);
    second("a", "1000", 900, 50);
    second("", "9000", 900, 0);
    EXPECT_EQ(left("0::/a/b\n"), 150);
    second("a/b", "650", 600, 0);
    EXPECT_EQ(left("0::/a/b\n"), 50);
    EXPECT_EQ(left("0::/other\n"), 8100) << "a group that this hierarchy does not show";
    EXPECT_EQ(left("0::/../a\n"), 8100) << "a group outside";
}

TEST_F(GroupMemory, IsFoundInTheFirstVersion)
{
    const std::string groups = "9:name=systemd:/\n4:cpu,memory:/job\n2:memory_of_another_name:/else\n0::/\n";
    first("memory", "9223372036854771712", 900, 0);
    EXPECT_EQ(left(groups), 9223372036854771712U - 900);
    first("memory/job", "2000", 1500, 300);
    first("memory/else", "10", 10, 0);
    EXPECT_EQ(left(groups), 800);
    second("", "700", 200, 0);
    EXPECT_EQ(left(groups), 500) << "both versions";
}

TEST(AvailableMemory, IsSome)
{
    EXPECT_GT(fmm_available_memory(), 0U);
    EXPECT_LT(fmm_available_memory(), unlimited);
}
