/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The message of sites. */
#include <stdarg.h>
#include <stdio.h>

#include "fmm/sites/state.h"

gmxfmm_status sites_fail(gmxfmm_sites* sites, gmxfmm_status status, const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sites->message, sizeof(sites->message), format, arguments);
    va_end(arguments);
    return status;
}
