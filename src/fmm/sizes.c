/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes of structures of a caller. */
#include "fmm/sizes.h"

#include <stdio.h>
#include <string.h>

/* More than any version will need: what was never set is larger, as a rule. */
static const size_t c_largest = 4096;

static size_t size_of(const void* given)
{
    size_t size;
    memcpy(&size, given, sizeof(size));
    return size;
}

int fmm_is_size(size_t size, size_t known)
{
    return size >= known && size <= c_largest;
}

gmxfmm_status fmm_check_room(const void* given, size_t known, const char* type, char* message, size_t size)
{
    const int good = fmm_is_size(size_of(given), known);
    if (!good && message != NULL && size > 0)
    {
        snprintf(message, size, "size is %zu: set it to sizeof(%s)", size_of(given), type);
    }
    return good ? GMXFMM_OK : GMXFMM_ERROR_OPTION;
}

gmxfmm_status fmm_check_members(const void* given, size_t known, const char* type, char* message, size_t size)
{
    const gmxfmm_status status = fmm_check_room(given, known, type, message, size);
    for (size_t i = known; status == GMXFMM_OK && i < size_of(given); i++)
    {
        if (((const char*)given)[i] != 0)
        {
            if (message != NULL && size > 0)
            {
                snprintf(message, size,
                         "a member of %s is set that version %s of the library does not know: leave it out, or "
                         "install the version that the program was compiled with",
                         type, GMXFMM_VERSION);
            }
            return GMXFMM_ERROR_OPTION;
        }
    }
    return status;
}
