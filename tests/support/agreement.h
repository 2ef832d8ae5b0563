/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GMXFMM_TESTS_AGREEMENT_H
#define GMXFMM_TESTS_AGREEMENT_H

#include "support/plan.h"

namespace fmmtest
{

/* The GPU gives what the CPU does in double precision with the same options: fields, potentials, forces, energies and
 * virial. */
void expectAgreement(const System& s, gmxfmm_options options);

/* Rounding: the same sums in another order. In single precision lengths carry 6e-8 of a few cells, and forces more of
 * the shortest distances. */
double rounding(gmxfmm_precision precision);

} // namespace fmmtest

#endif
