/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads NVRTC by dlopen and compiles with it. */
#include "cuda/octree/runtime_compiler.h"

#include <dlfcn.h>

#include <cuda_runtime_api.h>

/* FMM_NVRTC_FOLDER is the folder with libraries of the toolkit that this is built with. */

static const std::string& name_of_library()
{
    static const std::string name = "libnvrtc.so." + std::to_string(CUDART_VERSION / 1000);
    return name;
}

RuntimeCompiler::RuntimeCompiler()
{
    for (const char* folder : {"", "/usr/local/cuda/lib64/", FMM_NVRTC_FOLDER "/"})
    {
        /* RTLD_NODELETE: NVRTC has threads and destructors, which must not run after its code is unloaded */
        library_ = dlopen((folder + name_of_library()).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library_ != nullptr)
        {
            break;
        }
    }
    if (library_ == nullptr)
    {
        cause_ = name_of_library() + " (NVRTC) is not there";
        return;
    }
    find("nvrtcVersion", &get_version_);
    find("nvrtcGetErrorString", &error_string_);
    find("nvrtcCreateProgram", &create_);
    find("nvrtcCompileProgram", &compile_);
    find("nvrtcDestroyProgram", &destroy_);
    find("nvrtcGetProgramLogSize", &log_size_);
    find("nvrtcGetProgramLog", &log_);
    find("nvrtcGetCUBINSize", &code_size_);
    find("nvrtcGetCUBIN", &code_);
}

RuntimeCompiler::~RuntimeCompiler()
{
    if (library_ != nullptr)
    {
        dlclose(library_);
    }
}

template <class Function>
void RuntimeCompiler::find(const char* name, Function** function)
{
    *function = library_ != nullptr ? reinterpret_cast<Function*>(dlsym(library_, name)) : nullptr;
    if (library_ != nullptr && *function == nullptr)
    {
        cause_ = name_of_library() + " (NVRTC) has no " + name;
        dlclose(library_);
        library_ = nullptr;
    }
}

int RuntimeCompiler::version() const
{
    int major = 0, minor = 0;
    return get_version_(&major, &minor) == NVRTC_SUCCESS ? 1000 * major + 10 * minor : 0;
}

bool RuntimeCompiler::compile(const std::vector<SourceFile>&  sources,
                              const std::vector<std::string>& options,
                              std::vector<char>*              code,
                              std::string*                    cause) const
{
    std::vector<const char*> names, texts, flags;
    for (size_t i = 1; i < sources.size(); i++)
    {
        names.push_back(sources[i].name);
        texts.push_back(sources[i].text);
    }
    for (const std::string& option : options)
    {
        flags.push_back(option.c_str());
    }
    nvrtcProgram program = nullptr;
    nvrtcResult  result =
        create_(&program, sources[0].text, sources[0].name, static_cast<int>(names.size()), texts.data(), names.data());
    std::string log;
    size_t      size = 0;
    if (result == NVRTC_SUCCESS)
    {
        result = compile_(program, static_cast<int>(flags.size()), flags.data());
        if (result != NVRTC_SUCCESS && log_size_(program, &size) == NVRTC_SUCCESS)
        {
            log.resize(size);
            log_(program, &log[0]);
        }
    }
    code->clear();
    if (result == NVRTC_SUCCESS)
    {
        result = code_size_(program, &size);
    }
    if (result == NVRTC_SUCCESS)
    {
        code->resize(size);
        result = code_(program, code->data());
    }
    if (program != nullptr)
    {
        destroy_(&program);
    }
    if (result != NVRTC_SUCCESS)
    {
        const std::string line = log.substr(0, log.find_first_of(std::string("\n\0", 2)));
        *cause = std::string("NVRTC failed: ") + error_string_(result) + (line.empty() ? "" : ", " + line);
    }
    return result == NVRTC_SUCCESS;
}
