/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reference for open systems: the sum over all pairs. */
#ifndef GMXFMM_TESTS_DIRECT_H
#define GMXFMM_TESTS_DIRECT_H

#include "support/system.h"

namespace fmmtest
{

/* Potential, field, force, energy and virial without the excluded pairs. */
Solution directSum(const System& system);

} // namespace fmmtest

#endif
