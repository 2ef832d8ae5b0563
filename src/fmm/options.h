/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options as the library has them. */
#ifndef FMM_OPTIONS_H
#define FMM_OPTIONS_H

#include "fmm/gmxfmm.h"

/* Whether an option is left to the library. */
static inline int fmm_is_auto(double value)
{
    return value == GMXFMM_AUTO;
}

/* A program's options as the library has them, whatever size they have there, and the way back. The message goes to
 * message[size]. Errors: OPTION. */
gmxfmm_status fmm_take_options(gmxfmm_options* own, const gmxfmm_options* given, char* message, size_t size);
void          fmm_give_options(gmxfmm_options* given, const gmxfmm_options* own);

/* Ranges and contradictions of options that are so; the message goes to message[size]. Errors: OPTION, UNSUPPORTED,
 * DEVICE. */
gmxfmm_status fmm_check_options(const gmxfmm_options* options, char* message, size_t size);

/* The accuracy that is asked for where none is given. */
double fmm_default_accuracy(void);

/* Whether there are images along each of the caller's box vectors. */
void fmm_periodic_of(const gmxfmm_options* options, int periodic[3]);

/* The name of an option that is set though it belongs to this method alone, or NULL. */
const char* fmm_option_of(gmxfmm_method method, const gmxfmm_options* options);

#endif
