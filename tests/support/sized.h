/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Structures that begin with their size. */
#ifndef GMXFMM_TESTS_SIZED_H
#define GMXFMM_TESTS_SIZED_H

namespace fmmtest
{

/* All zero but the size. */
template <class Structure>
Structure sized()
{
    Structure empty = {};
    empty.size      = sizeof(empty);
    return empty;
}

} // namespace fmmtest

#endif
