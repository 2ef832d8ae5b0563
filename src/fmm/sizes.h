/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Structures of a caller that begin with their size: of this version, an older or a newer one. */
#ifndef FMM_SIZES_H
#define FMM_SIZES_H

#include <stddef.h>

#include "fmm/gmxfmm.h"

/* Whether a size can be that of a structure whose first `known` bytes this version knows. */
int fmm_is_size(size_t size, size_t known);

/* For a structure that is filled in by the library: whether it has room for these bytes, otherwise the message[size],
 * if there is one. Errors: OPTION. */
gmxfmm_status fmm_check_room(const void* given, size_t known, const char* type, char* message, size_t size);

/* For one that is read: the same, and what stands beyond these bytes is zero. */
gmxfmm_status fmm_check_members(const void* given, size_t known, const char* type, char* message, size_t size);

#endif
