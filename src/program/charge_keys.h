/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a file of charges says of the whole system: box, periodic, boundary, kernel, prefactor. */
#ifndef GMXFMM_CHARGE_KEYS_H
#define GMXFMM_CHARGE_KEYS_H

#include "charge_file.h"

typedef enum
{
    KEY_BOX = 0,
    KEY_PERIODIC,
    KEY_BOUNDARY,
    KEY_KERNEL,
    KEY_PREFACTOR,
    KEY_OTHER, /* describes old reference values or the columns; a written file has its own */
    KEY_NONE
} charge_key;

/* The key that text begins with, with a colon behind it, and where its value begins; KEY_NONE for a comment. */
charge_key charge_keys_find(char* text, char** value);

/* Takes a value from the line at hand, whose blanks it overwrites; shown: the key's name for messages. 0, or -1 after a
 * complaint. */
int charge_keys_set(charge_key key, const text_lines* in, charge_file* file, const char* shown, char* value);

#endif
