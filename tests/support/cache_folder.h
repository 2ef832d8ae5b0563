/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where tests keep kernels that are compiled when they are first used, so that each is compiled once. */
#ifndef GMXFMM_TESTS_CACHE_FOLDER_H
#define GMXFMM_TESTS_CACHE_FOLDER_H

#include <cstdlib>
#include <string>

#include <unistd.h>

namespace fmmtest
{

/* GMXFMM_CACHE in the environment, or a folder of the user's among temporary files. */
inline const char* cacheFolder()
{
    static const std::string standard = "/tmp/gmxfmm-tests-" + std::to_string(getuid());
    const char*              given    = std::getenv("GMXFMM_CACHE");
    return given != nullptr ? given : standard.c_str();
}

} // namespace fmmtest

#endif
