/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point charges in text. */
#include "charge_formats.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "charge_header.h"
#include "charge_keys.h"
#include "number_read.h"
#include "words.h"

enum
{
    c_mostColumns = 8
};

static int keep_comment(const text_lines* in, charge_file* file, size_t* length, const char* text)
{
    const size_t added    = strcspn(text, "\r");
    char*        comments = (char*)realloc(file->comments, *length + added + 2);

    if (!comments)
    {
        return text_lines_no_memory(in);
    }
    memcpy(comments + *length, text, added);
    memcpy(comments + *length + added, "\n", 2);
    file->comments = comments;
    *length += added + 1;
    return 0;
}

static int parse_header(const text_lines* in, charge_file* file, size_t* comment_length, char* text)
{
    char*            value;
    char*            content = text + 1 + strspn(text + 1, " \t"); /* behind the # */
    const charge_key key     = charge_keys_find(content, &value);

    if (key == KEY_NONE)
    {
        int         length;
        const char* meant = charge_header_meant(content, &length);
        if (meant)
        {
            complain(in->name, in->line, "'%.*s' is not a header; did you mean '# %s:'?", length < 60 ? length : 60,
                     content, meant);
            return -1;
        }
        return keep_comment(in, file, comment_length, text);
    }
    static const char* const names[] = {"box", "periodic", "boundary", "kernel", "prefactor", ""};
    return charge_keys_set(key, in, file, names[key], value);
}

/* The numbers of a row that is nothing but plain numbers: how many, or -1 for any other row. */
static int plain_row(const char* text, double value[c_mostColumns])
{
    for (int n = 0;; n++)
    {
        while (*text == ' ' || *text == '\t')
        {
            text++;
        }
        if (*text == '\0' || (*text == '\r' && text[1] == '\0'))
        {
            return n;
        }
        text = n < c_mostColumns ? number_read(text, &value[n]) : NULL;
        if (!text || (*text && !isspace((unsigned char)*text)))
        {
            return -1;
        }
    }
}

/* Columns that rows may have. */
static int complain_of_columns(const text_lines* in, int is_places, int n)
{
    complain(in->name, in->line,
             is_places ? "a row has 3 columns x y z, 4 with q, 7 or 8 with potential fx fy fz, found %d"
                       : "a row has 4 columns x y z q or 8 with potential fx fy fz, found %d",
             n);
    return -1;
}

static int parse_row(const text_lines* in, charge_file* file, int* columns, char* text, atomic_llong* rows)
{
    char*  word[c_mostColumns];
    double value[c_mostColumns];
    int    n        = plain_row(text, value);
    int    is_plain = n >= 0;

    n = is_plain ? n : words_split(text, word, c_mostColumns);
    if (n == 0)
    {
        return 0;
    }
    if (n != 4 && n != 8 && !(file->is_places && (n == 3 || n == 7)))
    {
        return complain_of_columns(in, file->is_places, n);
    }
    if (file->n > 0 && n != *columns)
    {
        complain(in->name, in->line, "found %d columns, but the rows before have %d", n, *columns);
        return -1;
    }
    *columns = n;
    if (!is_plain && words_numbers(in, "column", 1, word, n, value))
    {
        return -1;
    }
    return charge_file_append(file, in, value, n, rows);
}

int charge_read_text(text_lines* in, charge_file* file, atomic_llong* rows)
{
    size_t comment_length = 0;
    int    columns        = 0;
    char*  text;
    int    found;

    while ((found = text_lines_next(in, &text)) > 0)
    {
        while (isspace((unsigned char)*text))
        {
            text++;
        }
        if (*text == '#' ? parse_header(in, file, &comment_length, text) : parse_row(in, file, &columns, text, rows))
        {
            return -1;
        }
    }
    return found;
}
