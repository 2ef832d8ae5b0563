/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One value of JSON after the other into a file. */
#ifndef GMXFMM_JSON_H
#define GMXFMM_JSON_H

#include <stdint.h>

#include "out_file.h"

typedef struct
{
    out_file* out;
    int       depth;
    int       is_first; /* in its object or array */
} json;

/* key: NULL in an array. */
void json_open(json* j, const char* key, char bracket);
void json_close(json* j, char bracket);
void json_integer(json* j, const char* key, int64_t value);

/* To the last bit; null for what JSON has no number for. */
void json_number(json* j, const char* key, double value);

/* n numbers, or null if value is NULL. */
void json_numbers(json* j, const char* key, const double* value, int n);

/* A string in UTF-8, or null if it is NULL; bytes that are no UTF-8, as a file name may have, become U+FFFD. */
void json_string(json* j, const char* key, const char* text);

#endif
