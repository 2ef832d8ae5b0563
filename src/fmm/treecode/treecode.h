/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The barycentric Lagrange treecode: sums phi_i = sum_j G(|x_i - y_j|) q_j of a kernel that is smooth away from zero,
 * and their negative gradients, in open space, for particles distributed in any way. Clusters of sources that are far
 * from a batch of targets are replaced by (n + 1)^3 Chebyshev points with modified charges. Vaughn, Wilson & Krasny, A
 * GPU-accelerated barycentric Lagrange treecode, IPDPSW 2020 Wilson, Vaughn & Krasny, Comput. Phys. Commun. 265, 108017
 * (2021)
 *
 * Life cycle: create -> set_charges -> { assign -> execute, execute, ... } -> destroy. Memory is allocated in create,
 * set_charges and assign, never in execute. A call that fails leaves the cause in treecode_message.
 */
#ifndef TREECODE_TREECODE_H
#define TREECODE_TREECODE_H

#include <stddef.h>
#include <stdint.h>

#include "fmm/treecode/types.h"

/* On failure *t is NULL and message[size] has the cause. Errors: OPTION, MEMORY, UNSUPPORTED,
 * DEVICE. */
gmxfmm_status treecode_create(treecode** t, const treecode_options* options, char* message, size_t size);

void treecode_destroy(treecode* t);

/* Charges of n sources, copied. Errors: OPTION (n < 0), CHARGE, MEMORY. */
gmxfmm_status treecode_set_charges(treecode* t, int64_t n, const double* q);

/* How many threads take part from the next assign on, which makes scratch for them. */
void treecode_set_threads(treecode* t, int num_threads);

/* Clusters and lists for sources at x[3n] and targets at y[3m]; y NULL: the targets are the sources, without
 * themselves. Errors: ORDER, POSITION, MEMORY, DEVICE. */
gmxfmm_status treecode_assign(treecode* t, const void* x, int64_t m, const double* y);

/* The sums for sources at x[3n], which should not have moved far since assign. On the CPU a pair of sources whose
 * kernel is not finite, and of which one has no charge, has no part in them. Errors: ORDER, POSITION, COINCIDENT. */
gmxfmm_status treecode_execute(treecode* t, const void* x, treecode_output* output);

void treecode_get_info(const treecode* t, treecode_info* info);

const char* treecode_message(const treecode* t);

#endif
