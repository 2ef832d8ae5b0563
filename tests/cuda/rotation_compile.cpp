/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels of rotation for orders that the build does not have: their sources, which are in the library, compile by
 * NVRTC, which needs no GPU, and the machine code is found again on disk, if what is there is whole. */
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "cuda/octree/kernel_cache.h"
#include "cuda/octree/rotation_compile.h"
#include "support/cache_folder.h"

using namespace fmmtest;

namespace
{

using Code = std::vector<char>;

/* A folder for one test. */
class Folder
{
  public:
    Folder()
    {
        std::string name = testing::TempDir() + "gmxfmm-XXXXXX";
        if (mkdtemp(&name[0]) == nullptr)
        {
            throw std::runtime_error("no temporary folder");
        }
        path_ = name;
    }
    ~Folder()
    {
        std::filesystem::remove_all(path_);
    }
    Folder(const Folder&)            = delete;
    Folder& operator=(const Folder&) = delete;

    std::string operator/(const std::string& name) const
    {
        return path_ / name;
    }
    /* everything below but folders */
    std::vector<std::filesystem::path> files() const
    {
        std::vector<std::filesystem::path> found;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(path_))
        {
            if (!entry.is_directory())
            {
                found.push_back(entry.path());
            }
        }
        return found;
    }

  private:
    std::filesystem::path path_;
};

std::string contents(const std::string& file)
{
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

void write(const std::string& file, const std::string& text)
{
    std::ofstream(file, std::ios::binary) << text;
}

Code someCode()
{
    Code code(5000);
    for (std::size_t i = 0; i < code.size(); i++)
    {
        code[i] = static_cast<char>(i * i % 251);
    }
    return code;
}

/* NVRTC, or the test is skipped. */
class WithCompiler : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!compiler.found())
        {
            GTEST_SKIP() << compiler.cause();
        }
    }
    const RuntimeCompiler compiler;
};

using Case = std::tuple<int, bool>; /* order, double precision */

std::string caseName(const testing::TestParamInfo<Case>& info)
{
    return "Order" + std::to_string(std::get<0>(info.param)) + (std::get<1>(info.param) ? "Double" : "Single");
}

/* Machine code with this kernel. */
bool isCubin(const Code& code, const std::string& kernel)
{
    const std::string text(code.begin(), code.end());
    const std::string name = ".text._ZN8rotation" + std::to_string(kernel.size()) + kernel;
    return text.compare(0, 4, "\177ELF") == 0 && text.find(name) != std::string::npos;
}

class RotationKernel : public WithCompiler
{
  protected:
    void expectOne(const RotationProgram& program, const char* cache)
    {
        Code        code;
        std::string cause;
        EXPECT_TRUE(fmm_rotation_compile(compiler, program, cache, &code, &cause)) << cause;
        EXPECT_TRUE(isCubin(code, program.kernel)) << program.kernel;
    }
};

class RotationCompile : public RotationKernel, public testing::WithParamInterface<Case>
{
  protected:
    void expectBoth(const char* cache)
    {
        for (const char* kernel : {"rotate_sources", "translate"})
        {
            expectOne({std::get<0>(GetParam()), std::get<1>(GetParam()), kernel, 90}, cache);
        }
    }
};

class RotationCompileAll : public RotationCompile
{
};

} // namespace

TEST(KernelCache, ReadsWhatWasWritten)
{
    const Folder      folder;
    const std::string file = folder / "a/b/kernel";
    Code              code = {'x'};
    EXPECT_FALSE(fmm_cache_read(file, 7, &code));
    EXPECT_TRUE(code.empty());
    EXPECT_TRUE(fmm_cache_write(file, 7, someCode()));
    EXPECT_TRUE(fmm_cache_read(file, 7, &code));
    EXPECT_TRUE(code == someCode());
    EXPECT_TRUE(fmm_cache_write(file, 8, Code(3, 'y')));
    EXPECT_FALSE(fmm_cache_read(file, 7, &code)) << "another key";
    EXPECT_TRUE(fmm_cache_read(file, 8, &code));
    EXPECT_TRUE(code == Code(3, 'y'));
    EXPECT_EQ(folder.files().size(), 1u) << "a temporary file is left";
}

TEST(KernelCache, IgnoresDamagedFiles)
{
    const Folder      folder;
    const std::string file = folder / "kernel";
    Code              code;
    ASSERT_TRUE(fmm_cache_write(file, 7, someCode()));
    const std::string whole = contents(file);
    for (const std::size_t length :
         {std::size_t(0), std::size_t(5), std::size_t(31), std::size_t(32), whole.size() - 1})
    {
        write(file, whole.substr(0, length));
        EXPECT_FALSE(fmm_cache_read(file, 7, &code)) << "cut to " << length;
    }
    write(file, whole + "x");
    EXPECT_FALSE(fmm_cache_read(file, 7, &code)) << "longer";
    for (const std::size_t at :
         {std::size_t(0), std::size_t(8), std::size_t(16), std::size_t(24), std::size_t(32), whole.size() - 1})
    {
        std::string spoilt = whole;
        spoilt[at]         = static_cast<char>(spoilt[at] ^ 1);
        write(file, spoilt);
        EXPECT_FALSE(fmm_cache_read(file, 7, &code)) << "another byte " << at;
        EXPECT_TRUE(code.empty());
    }
    std::string long_size = whole;
    long_size[23]         = '\177'; /* more than any memory has */
    write(file, long_size);
    EXPECT_FALSE(fmm_cache_read(file, 7, &code));
    EXPECT_TRUE(fmm_cache_write(file, 7, someCode()));
    EXPECT_TRUE(fmm_cache_read(file, 7, &code));
    EXPECT_TRUE(code == someCode());
}

/* What others may write may be theirs. */
TEST(KernelCache, ReadsOnlyWhatNobodyElseMayWrite)
{
    using std::filesystem::perms;
    const Folder      folder;
    const std::string file = folder / "inside/kernel", link = folder / "inside/link";
    Code              code;
    ASSERT_TRUE(fmm_cache_write(file, 7, someCode()));
    for (const std::string& path : {file, folder / "inside"})
    {
        const perms own = std::filesystem::status(path).permissions();
        for (const perms others : {perms::group_write, perms::others_write})
        {
            std::filesystem::permissions(path, own | others);
            EXPECT_FALSE(fmm_cache_read(file, 7, &code)) << path;
            EXPECT_TRUE(code.empty());
        }
        std::filesystem::permissions(path, own);
        EXPECT_TRUE(fmm_cache_read(file, 7, &code)) << path;
    }
    std::filesystem::create_symlink(file, link);
    EXPECT_FALSE(fmm_cache_read(link, 7, &code));
    if (geteuid() == 0) /* who alone may give files away */
    {
        ASSERT_EQ(chown(file.c_str(), 1, 1), 0);
        EXPECT_FALSE(fmm_cache_read(file, 7, &code));
    }
}

TEST(KernelCache, FailsWhereItCannotWrite)
{
    const Folder folder;
    Code         code;
    write(folder / "file", "not a folder");
    EXPECT_FALSE(fmm_cache_write(folder / "file/kernel", 7, someCode()));
    EXPECT_FALSE(fmm_cache_read(folder / "file/kernel", 7, &code));
    std::filesystem::create_directories(folder / "kernel/inside"); /* a folder where the file should be */
    EXPECT_FALSE(fmm_cache_write(folder / "kernel", 7, someCode()));
    EXPECT_FALSE(fmm_cache_read(folder / "kernel", 7, &code));
    EXPECT_EQ(folder.files().size(), 1u) << "a temporary file is left";
}

TEST_P(RotationCompile, BothKernels)
{
    expectBoth(nullptr);
}

INSTANTIATE_TEST_SUITE_P(Some,
                         RotationCompile,
                         testing::Values(Case{9, false}, Case{9, true}, Case{14, false}),
                         caseName);

/* From order 21 on, tables of double precision are in memory, not in instructions (m2l_rotation_order.cu). */
TEST_F(RotationKernel, WithTablesInMemory)
{
    expectOne({21, true, "rotate_sources", 90}, nullptr);
}

/* All that plans may ask for take minutes: --gtest_also_run_disabled_tests. They are kept in the folder where other
 * tests look for them. */
TEST_P(RotationCompileAll, BothKernels)
{
    expectBoth(cacheFolder());
}

INSTANTIATE_TEST_SUITE_P(DISABLED_Single,
                         RotationCompileAll,
                         testing::Combine(testing::Range(9, 21), testing::Values(false)),
                         caseName);
INSTANTIATE_TEST_SUITE_P(DISABLED_Double,
                         RotationCompileAll,
                         testing::Combine(testing::Range(9, 25), testing::Values(true)),
                         caseName);

class RotationCache : public WithCompiler
{
  protected:
    const RotationProgram program = {9, false, "rotate_sources", 90};
    const Folder          folder;
    Code                  code;
    std::string           cause;
};

TEST_F(RotationCache, IsUsedAndMended)
{
    const std::string cache = folder / "made/when needed", file = fmm_rotation_cache_file(compiler, program, cache);
    ASSERT_TRUE(fmm_rotation_compile(compiler, program, cache.c_str(), &code, &cause)) << cause;
    const std::string whole = contents(file);
    ASSERT_FALSE(whole.empty());
    /* what stands there is what comes back */
    std::uint64_t key = 0;
    std::memcpy(&key, whole.data() + 8, sizeof(key));
    ASSERT_TRUE(fmm_cache_write(file, key, someCode()));
    EXPECT_TRUE(fmm_rotation_compile(compiler, program, cache.c_str(), &code, &cause)) << cause;
    EXPECT_TRUE(code == someCode());
    write(file, whole.substr(0, whole.size() / 2));
    EXPECT_TRUE(fmm_rotation_compile(compiler, program, cache.c_str(), &code, &cause)) << cause;
    EXPECT_TRUE(isCubin(code, program.kernel));
    const Code compiled = code; /* not the bits of the first time: names that only the file sees are made up */
    EXPECT_EQ(contents(file).size(), whole.size());
    EXPECT_TRUE(fmm_rotation_compile(compiler, program, cache.c_str(), &code, &cause)) << cause;
    EXPECT_TRUE(code == compiled);
    EXPECT_EQ(folder.files().size(), 1u);
}

TEST_F(RotationCache, NeedNotBeThere)
{
    write(folder / "file", "not a folder");
    for (const std::string& cache : {folder / "file/below", std::string()})
    {
        EXPECT_TRUE(fmm_rotation_compile(compiler, program, cache.c_str(), &code, &cause)) << cause;
        EXPECT_TRUE(isCubin(code, "rotate_sources"));
    }
    EXPECT_EQ(folder.files().size(), 1u);
}

TEST_F(RotationCache, HasAFileForEachKernel)
{
    std::vector<std::string> names;
    for (const RotationProgram& p :
         {RotationProgram{9, false, "rotate_sources", 90}, RotationProgram{9, false, "translate", 90},
          RotationProgram{9, true, "rotate_sources", 90}, RotationProgram{10, false, "rotate_sources", 90},
          RotationProgram{9, false, "rotate_sources", 100}})
    {
        const std::string name = fmm_rotation_cache_file(compiler, p, "folder");
        EXPECT_EQ(std::count(names.begin(), names.end(), name), 0) << name;
        names.push_back(name);
    }
}

TEST_F(RotationCache, FailuresHaveACause)
{
    const std::string cache = folder / "cache";
    EXPECT_FALSE(fmm_rotation_compile(compiler, {9, false, "rotate_sources", 1}, cache.c_str(), &code, &cause));
    EXPECT_NE(cause.find("NVRTC"), std::string::npos) << cause;
    EXPECT_EQ(cause.find('\n'), std::string::npos) << cause;
    EXPECT_TRUE(folder.files().empty());
    EXPECT_FALSE(fmm_rotation_compile(compiler, {9, false, "twist", 90}, nullptr, &code, &cause));
    EXPECT_NE(cause.find("m2l_rotation_order.cu"), std::string::npos) << cause;
}
