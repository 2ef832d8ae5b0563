/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NVRTC, CUDA's compiler as a library. It is loaded only if a plan needs it, so that other programs run without it. */
#ifndef FMM_CUDA_RUNTIME_COMPILER_H
#define FMM_CUDA_RUNTIME_COMPILER_H

#include <string>
#include <vector>

#include <nvrtc.h>

/* A source of a program; the first one is compiled and includes the others by their names. */
struct SourceFile
{
    const char* name;
    const char* text;
};

class RuntimeCompiler
{
  public:
    /* Looks for the NVRTC of the CUDA version that the library is built with: where the loader looks, in
     * /usr/local/cuda and in the toolkit that the library was built with. */
    RuntimeCompiler();
    ~RuntimeCompiler();
    RuntimeCompiler(const RuntimeCompiler&)            = delete;
    RuntimeCompiler& operator=(const RuntimeCompiler&) = delete;

    /* Whether it was found; if not, cause() says what is missing. */
    bool found() const
    {
        return library_ != nullptr;
    }
    const std::string& cause() const
    {
        return cause_;
    }
    /* 1000 major + 10 minor, as CUDA counts */
    int version() const;

    /* Compiles to machine code; on failure returns false and the first line of the compiler's output in *cause. Several
     * threads may call this at once. */
    bool compile(const std::vector<SourceFile>&  sources,
                 const std::vector<std::string>& options,
                 std::vector<char>*              code,
                 std::string*                    cause) const;

  private:
    template <class Function>
    void find(const char* name, Function** function);

    void*       library_ = nullptr;
    std::string cause_;

    decltype(nvrtcVersion)*           get_version_  = nullptr;
    decltype(nvrtcGetErrorString)*    error_string_ = nullptr;
    decltype(nvrtcCreateProgram)*     create_       = nullptr;
    decltype(nvrtcCompileProgram)*    compile_      = nullptr;
    decltype(nvrtcDestroyProgram)*    destroy_      = nullptr;
    decltype(nvrtcGetProgramLogSize)* log_size_     = nullptr;
    decltype(nvrtcGetProgramLog)*     log_          = nullptr;
    decltype(nvrtcGetCUBINSize)*      code_size_    = nullptr;
    decltype(nvrtcGetCUBIN)*          code_         = nullptr;
};

#endif
