/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pairs of particles that do not interact, from a text file, plain or gzipped:
 *
 *   # a comment
 *   1 2                  the first and the second particle of the file of charges
 *
 * A pair may be given in either order and more than once.
 */
#ifndef GMXFMM_EXCLUSIONS_H
#define GMXFMM_EXCLUSIONS_H

#include <stdint.h>

/* As gmxfmm_set_exclusions takes them, both directions listed, each row rising. */
typedef struct
{
    int*    start; /* n + 1; NULL: none */
    int*    list;
    int64_t num_pairs;
} exclusions;

/* Reads the pairs among n particles. 0, or -1 after one line on stderr that names file, line and cause. *e can be given
 * to exclusions_free in any case. */
int exclusions_read(const char* name, int64_t n, exclusions* e);

/* Whether i and j exclude each other. */
int exclusions_have(const exclusions* e, int64_t i, int64_t j);

void exclusions_free(exclusions* e);

#endif
