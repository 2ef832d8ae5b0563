/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiles kernels of rotation_kernels.h at run time by NVRTC, for orders that the build does not compile. The sources
 * are those that nvcc compiles for the other orders; the library contains them as text (embed.cmake). */
#ifndef FMM_CUDA_ROTATION_COMPILE_H
#define FMM_CUDA_ROTATION_COMPILE_H

#include <string>
#include <vector>

#include "cuda/octree/runtime_compiler.h"

/* One kernel of one order. */
struct RotationProgram
{
    int         order;
    bool        is_double;
    const char* kernel;     /* "rotate_sources" or "translate" */
    int         capability; /* of the device: 90 is 9.0 */
};

/* The file in a folder for its machine code; the name depends on all that the code depends on. */
std::string
fmm_rotation_cache_file(const RuntimeCompiler& compiler, const RotationProgram& program, const std::string& folder);

/* Machine code with this one kernel, from its file in cache_dir (NULL: no files) or compiled and stored there; false
 * and the cause if it cannot be compiled. Several threads may call this at once. May throw std::bad_alloc. */
bool fmm_rotation_compile(const RuntimeCompiler& compiler,
                          const RotationProgram& program,
                          const char*            cache_dir,
                          std::vector<char>*     code,
                          std::string*           cause);

#endif
