/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Texts of statuses and names, and the message of a plan. */
#include "fmm/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "fmm/parallel/ranks.h"
#include "fmm/sizes.h"
#include "fmm/state.h"

static const char* const c_text[GMXFMM_NUM_STATUS] = {
    [GMXFMM_OK]                = "no error",
    [GMXFMM_ERROR_NULL]        = "a required pointer is NULL",
    [GMXFMM_ERROR_OPTION]      = "an option is out of its range or contradicts another",
    [GMXFMM_ERROR_BOX]         = "the box is not finite, or flat",
    [GMXFMM_ERROR_CHARGE]      = "a charge is not finite",
    [GMXFMM_ERROR_EXCLUSION]   = "the list of excluded pairs is not valid",
    [GMXFMM_ERROR_POSITION]    = "a position is not finite",
    [GMXFMM_ERROR_COINCIDENT]  = "two charges stand at one place",
    [GMXFMM_ERROR_ORDER]       = "calls in the wrong order",
    [GMXFMM_ERROR_UNSUPPORTED] = "not offered by this build or method",
    [GMXFMM_ERROR_MEMORY]      = "out of memory",
    [GMXFMM_ERROR_DEVICE]      = "the device failed",
    [GMXFMM_ERROR_COMM]        = "the communicator of several ranks failed",
    [GMXFMM_ERROR_LEFT]        = "particles have left their cells: assign again",
};

static const char* const c_m2l[] = {"auto", "fft", "rotation", "symmetric", "dynamic", "naive"};

const char* gmxfmm_version(void)
{
    return GMXFMM_VERSION;
}

const char* gmxfmm_status_text(gmxfmm_status status)
{
    return (int)status >= 0 && status < GMXFMM_NUM_STATUS ? c_text[status] : "unknown status";
}

const char* gmxfmm_m2l_name(gmxfmm_m2l m2l)
{
    return (int)m2l >= 0 && (size_t)m2l < sizeof(c_m2l) / sizeof(c_m2l[0]) ? c_m2l[m2l] : "unknown";
}

const char* gmxfmm_message(const gmxfmm_plan* plan)
{
    return plan ? plan->message : "";
}

gmxfmm_status fmm_fail(gmxfmm_plan* plan, gmxfmm_status status, const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(plan->message, sizeof(plan->message), format, arguments);
    va_end(arguments);
    return status;
}

gmxfmm_status fmm_agree(gmxfmm_plan* plan, gmxfmm_status status)
{
    return plan->ranks == NULL ? status
                               : fmm_ranks_agree(&plan->ranks->comm, status, plan->message, sizeof(plan->message));
}

gmxfmm_status fmm_check_size(gmxfmm_plan* plan, const void* given, size_t known, const char* type)
{
    return fmm_check_members(given, known, type, plan->message, sizeof(plan->message));
}
