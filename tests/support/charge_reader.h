/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reference systems from point-charge files, read without the program that is tested. */
#ifndef GMXFMM_TESTS_CHARGE_READER_H
#define GMXFMM_TESTS_CHARGE_READER_H

#include <optional>
#include <string>

#include "support/system.h"

namespace fmmtest
{

struct ReferenceSystem
{
    System   system;
    Solution reference;
};

/* NAME.txt.gz from GMXFMM_REFERENCE_DATA or the folder that the build knows; nothing when it is not there. */
std::optional<ReferenceSystem> referenceSystem(const std::string& name);

} // namespace fmmtest

#endif
