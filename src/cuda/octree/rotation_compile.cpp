/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options and sources of NVRTC for the kernels of M2L by rotations, and their files of machine code. */
#include "cuda/octree/rotation_compile.h"

#include <cstdio>
#include <cstring>

#include "cuda/octree/kernel_cache.h"

/* written by embed.cmake; the first is m2l_rotation_order.cu */
extern const SourceFile fmm_rotation_sources[];
extern const int        fmm_num_rotation_sources;

static std::vector<SourceFile> sources()
{
    return std::vector<SourceFile>(fmm_rotation_sources, fmm_rotation_sources + fmm_num_rotation_sources);
}

/* The same options as nvcc gets in octree.cmake; -O3 and the same arithmetic are NVRTC's defaults. */
static std::vector<std::string> options(const RotationProgram& program)
{
    return {"-std=c++17",
            "-default-device", /* for functions without __host__ or __device__, such as constexpr ones */
            "-arch=sm_" + std::to_string(program.capability),
            "-DFMM_ORDER=" + std::to_string(program.order),
            std::string("-DFMM_REAL=") + (program.is_double ? "double" : "float"),
            std::string("-DFMM_KERNEL=") + program.kernel};
}

/* A hash of all that the machine code depends on. */
static uint64_t key_of(const RuntimeCompiler& compiler, const RotationProgram& program)
{
    const int version = compiler.version();
    uint64_t  hash    = fmm_hash(c_hashBegin, &version, sizeof(version));
    for (const std::string& option : options(program))
    {
        hash = fmm_hash(hash, option.c_str(), option.size() + 1);
    }
    for (const SourceFile& source : sources())
    {
        hash = fmm_hash(hash, source.name, strlen(source.name) + 1);
        hash = fmm_hash(hash, source.text, strlen(source.text) + 1);
    }
    return hash;
}

std::string
fmm_rotation_cache_file(const RuntimeCompiler& compiler, const RotationProgram& program, const std::string& folder)
{
    char name[128];
    snprintf(name, sizeof(name), "/rotation-%s-%s-%d-sm_%d-%016llx.cubin", program.kernel,
             program.is_double ? "double" : "float", program.order, program.capability,
             static_cast<unsigned long long>(key_of(compiler, program)));
    return folder + name;
}

bool fmm_rotation_compile(const RuntimeCompiler& compiler,
                          const RotationProgram& program,
                          const char*            cache_dir,
                          std::vector<char>*     code,
                          std::string*           cause)
{
    const bool        cached = cache_dir != nullptr && cache_dir[0] != '\0';
    const std::string file   = cached ? fmm_rotation_cache_file(compiler, program, cache_dir) : "";
    const uint64_t    key    = cached ? key_of(compiler, program) : 0;
    if (cached && fmm_cache_read(file, key, code))
    {
        return true;
    }
    if (!compiler.compile(sources(), options(program), code, cause))
    {
        return false;
    }
    if (cached)
    {
        fmm_cache_write(file, key, *code); /* if this fails, the next plan compiles again */
    }
    return true;
}
