/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* JSON as RFC 8259 has it. */
#include "json.h"

#include <math.h>
#include <string.h>

/* How many bytes of a valid character of UTF-8 text begins with, 0 for none (RFC 3629). */
static int character(const unsigned char* text)
{
    const unsigned char first = text[0], second = text[1];
    const int           length = first < 0x80                    ? 1
                                 : first >= 0xc2 && first < 0xe0 ? 2
                                 : first >= 0xe0 && first < 0xf0 ? 3
                                 : first >= 0xf0 && first < 0xf5 ? 4
                                                                 : 0;

    for (int i = 1; i < length; i++)
    {
        if ((text[i] & 0xc0) != 0x80)
        {
            return 0;
        }
    }
    const int is_overlong  = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const int is_surrogate = first == 0xed && second >= 0xa0;
    const int is_beyond    = first == 0xf4 && second >= 0x90;
    return is_overlong || is_surrogate || is_beyond ? 0 : length;
}

static void put_string(json* j, const char* text)
{
    out_file_put(j->out, "\"", 1);
    for (const unsigned char* at = (const unsigned char*)text; *at;)
    {
        const int length = character(at);
        if (length == 0)
        {
            out_file_print(j->out, "\\ufffd");
        }
        else if (*at == '"' || *at == '\\')
        {
            out_file_print(j->out, "\\%c", *at);
        }
        else if (*at < 0x20 || *at == 0x7f)
        {
            out_file_print(j->out, "\\u%04x", *at);
        }
        else
        {
            out_file_put(j->out, at, (size_t)length);
        }
        at += length > 0 ? length : 1;
    }
    out_file_put(j->out, "\"", 1);
}

/* What stands before a value: a comma, a new line in objects, the key. */
static void begin(json* j, const char* key)
{
    out_file_print(j->out, "%s", j->is_first ? "" : key ? "," : ", ");
    if (key)
    {
        out_file_print(j->out, "\n%*s", 2 * j->depth, "");
        put_string(j, key);
        out_file_print(j->out, ": ");
    }
    j->is_first = 0;
}

void json_open(json* j, const char* key, char bracket)
{
    begin(j, key);
    out_file_put(j->out, &bracket, 1);
    j->depth++;
    j->is_first = 1;
}

void json_close(json* j, char bracket)
{
    j->depth--;
    if (bracket == '}')
    {
        out_file_print(j->out, "\n%*s", 2 * j->depth, "");
    }
    out_file_put(j->out, &bracket, 1);
    j->is_first = 0;
}

void json_integer(json* j, const char* key, int64_t value)
{
    begin(j, key);
    out_file_print(j->out, "%lld", (long long)value);
}

void json_number(json* j, const char* key, double value)
{
    begin(j, key);
    out_file_print(j->out, isfinite(value) ? "%.17g" : "null", value);
}

void json_numbers(json* j, const char* key, const double* value, int n)
{
    if (!value)
    {
        json_string(j, key, NULL);
        return;
    }
    json_open(j, key, '[');
    for (int i = 0; i < n; i++)
    {
        json_number(j, NULL, value[i]);
    }
    json_close(j, ']');
}

void json_string(json* j, const char* key, const char* text)
{
    begin(j, key);
    if (text)
    {
        put_string(j, text);
    }
    else
    {
        out_file_print(j->out, "null");
    }
}
