/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statuses with a message. */
#ifndef FMM_STATUS_H
#define FMM_STATUS_H

#include "fmm/gmxfmm.h"

/* Writes the message of status into the plan and returns status. */
gmxfmm_status fmm_fail(gmxfmm_plan* plan, gmxfmm_status status, const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Of a plan on several ranks, all of which call it: the first error of any rank, with its message. Otherwise status. */
gmxfmm_status fmm_agree(gmxfmm_plan* plan, gmxfmm_status status);

/* Whether a structure that a caller has filled, and that begins with its size, holds the `known` bytes that this
 * version knows, and nothing beyond them. Errors: OPTION. */
gmxfmm_status fmm_check_size(gmxfmm_plan* plan, const void* given, size_t known, const char* type);

#endif
