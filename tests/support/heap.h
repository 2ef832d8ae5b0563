/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts what a test program allocates. Linked into few programs only: it replaces malloc and its family. */
#ifndef GMXFMM_TESTS_HEAP_H
#define GMXFMM_TESTS_HEAP_H

#include <cstddef>

namespace fmmtest
{

/* Since the program began, by all threads. */
std::size_t heapCalls();

/* Bytes held now, and the most since heapResetPeak(). */
std::size_t heapBytes();
std::size_t heapPeak();
void        heapResetPeak();

/* The next `number` allocations of this thread in code of the program itself, libraries linked into it included, have
 * memory, the one after has none, all others have. Negative: all. */
void heapFailAfter(long number);

/* Whether there was one without. */
bool heapHasFailed();

} // namespace fmmtest

#endif
