/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point charges in an extended XYZ file of one frame. */
#include "charge_formats.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"
#include "xyz_header.h"

/* The next line, which must be there. */
static int need_line(text_lines* in, char** text, const char* what)
{
    const int found = text_lines_next(in, text);

    if (found == 0)
    {
        complain(in->name, in->line + 1, "the file ends before %s", what);
    }
    return found == 1 ? 0 : -1;
}

static int read_count(text_lines* in, int64_t* count)
{
    char* text;
    char* word[1];

    if (need_line(in, &text, "the number of particles"))
    {
        return -1;
    }
    if (words_split(text, word, 1) != 1 || !words_integer(word[0], count) || *count < 0)
    {
        complain(in->name, in->line, "the first line is not the number of particles alone");
        return -1;
    }
    return 0;
}

/* The words of the columns that are read, in the order x y z q potential fx fy fz: how many. */
static int choose(const xyz_columns* c, int is_places, char* const word[], char* chosen[8])
{
    int n = 0;

    for (int d = 0; d < 3; d++)
    {
        chosen[n++] = word[c->position + d];
    }
    if (!is_places)
    {
        chosen[n++] = word[c->charge];
    }
    if (!is_places && c->potential >= 0 && c->field >= 0)
    {
        chosen[n++] = word[c->potential];
        for (int d = 0; d < 3; d++)
        {
            chosen[n++] = word[c->field + d];
        }
    }
    return n;
}

static int read_row(text_lines* in, charge_file* file, const xyz_columns* columns, char* word[], atomic_llong* rows)
{
    char*  text;
    char*  chosen[8];
    double value[8];

    if (need_line(in, &text, "the number of particles in its first line is reached"))
    {
        return -1;
    }
    const int found = words_split(text, word, columns->num);
    if (found != columns->num)
    {
        complain(in->name, in->line, "a row has %d columns, as Properties say, found %d", columns->num, found);
        return -1;
    }
    const int n = choose(columns, file->is_places, word, chosen);
    if (words_numbers(in, "position", 1, chosen, 3, value) ||
        (n > 3 && words_numbers(in, "charge", 1, chosen + 3, 1, value + 3)) ||
        (n > 4 && words_numbers(in, "reference value", 1, chosen + 4, n - 4, value + 4)))
    {
        return -1;
    }
    return charge_file_append(file, in, value, n, rows) ||
                   charge_file_label(file, in, columns->species >= 0 ? word[columns->species] : "X")
               ? -1
               : 0;
}

static int read_rows(text_lines* in, charge_file* file, int64_t count, const xyz_columns* columns, atomic_llong* rows)
{
    char** word   = (char**)malloc((size_t)columns->num * sizeof(*word));
    int    status = word ? 0 : text_lines_no_memory(in);

    for (int64_t i = 0; i < count && status == 0; i++)
    {
        status = read_row(in, file, columns, word, rows);
    }
    free(word);
    return status;
}

/* Nothing but empty lines may follow. */
static int check_end(text_lines* in, int64_t count)
{
    char* text;
    int   found;

    while ((found = text_lines_next(in, &text)) > 0)
    {
        if (text[strspn(text, " \t\r")] != '\0')
        {
            complain(in->name, in->line, "something follows the %lld particles: files of one frame are read",
                     (long long)count);
            return -1;
        }
    }
    return found;
}

int charge_read_xyz(text_lines* in, charge_file* file, atomic_llong* rows)
{
    int64_t     count;
    xyz_columns columns;
    char*       text;

    return read_count(in, &count) || need_line(in, &text, "its second line") ||
                   xyz_header_read(in, file, text, &columns) || read_rows(in, file, count, &columns, rows) ||
                   check_end(in, count)
               ? -1
               : 0;
}
