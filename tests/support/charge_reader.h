/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reference systems from point-charge files, read without the program that is tested. */
#ifndef GMXFMM_TESTS_CHARGE_READER_H
#define GMXFMM_TESTS_CHARGE_READER_H

#include <string>
#include <vector>

#include "support/system.h"

namespace fmmtest
{

struct ReferenceSystem
{
    System   system;
    Solution reference;
};

/* NAME.txt.gz: the project's own, whose names begin with own-, made by tests/data/make_reference.cpp, others from
 * GMXFMM_REFERENCE_DATA or the folder that the build knows. Throws when it is not there. */
ReferenceSystem referenceSystem(const std::string& name);

/* Those of names whose files are there, and all of the project's own. */
std::vector<std::string> presentOf(const std::vector<std::string>& names);

} // namespace fmmtest

#endif
