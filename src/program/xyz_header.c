/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keys and columns of an extended XYZ file. */
#include "xyz_header.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "charge_keys.h"
#include "words.h"

enum
{
    c_mostColumns = 1000
};

/* Splits off the next key=value, key="value with blanks" or key: 1, 0 at the end, -1 for a quote without its end. */
static int next_pair(char** text, char** key, char** value)
{
    char* at = *text;

    while (isspace((unsigned char)*at))
    {
        at++;
    }
    if (!*at)
    {
        return 0;
    }
    *key   = at;
    *value = NULL;
    while (*at && *at != '=' && !isspace((unsigned char)*at))
    {
        at++;
    }
    if (*at == '=')
    {
        *at++  = '\0';
        *value = at;
        if (*at == '"' || *at == '\'' || *at == '{' || *at == '[')
        {
            const char end = *at == '{' ? '}' : *at == '[' ? ']' : *at;
            *value         = ++at;
            while (*at && *at != end)
            {
                at += *at == '\\' && at[1] ? 2 : 1;
            }
            if (!*at)
            {
                return -1;
            }
        }
        else
        {
            while (*at && !isspace((unsigned char)*at))
            {
                at++;
            }
        }
    }
    if (*at)
    {
        *at++ = '\0';
    }
    *text = at;
    return 1;
}

static int is_charge(const char* name)
{
    return words_equal(name, "charge") || words_equal(name, "charges") || words_equal(name, "initial_charges") ||
           words_equal(name, "q");
}

/* The next of the parts between colons, or NULL. */
static char* next_part(char** text)
{
    char* part = *text;

    if (!part)
    {
        return NULL;
    }
    char* colon = strchr(part, ':');
    *text       = colon ? colon + 1 : NULL;
    if (colon)
    {
        *colon = '\0';
    }
    return part;
}

/* Sets *column once, for a column of numbers with the count that is needed. */
static int
set_column(const text_lines* in, const char* name, const char* type, int count, int wanted, int* column, int at)
{
    if (*column >= 0)
    {
        complain(in->name, in->line, "Properties: '%.40s' is the second column of its kind", name);
        return -1;
    }
    if (count != wanted || !strchr("RI", type[0]) || type[1])
    {
        complain(in->name, in->line, "Properties: '%.40s' must have %s", name,
                 wanted == 3 ? "three columns of numbers, R:3" : "one column of numbers, R:1");
        return -1;
    }
    *column = at;
    return 0;
}

/* name:type:count, one after the other */
static int parse_properties(const text_lines* in, xyz_columns* columns, char* value)
{
    char* name;

    *columns = (xyz_columns){0, -1, -1, -1, -1, -1};
    while ((name = next_part(&value)) != NULL)
    {
        const char* type    = next_part(&value);
        const char* number  = next_part(&value);
        int64_t     count   = 0;
        const int   at      = columns->num;
        int         problem = 0;
        if (!number || !words_integer(number, &count) || count < 1 || count > c_mostColumns - at)
        {
            complain(in->name, in->line, "Properties are not name:type:count, one after the other, at '%.40s'", name);
            return -1;
        }
        columns->num += (int)count;
        if (words_equal(name, "species") && count == 1)
        {
            columns->species = at;
        }
        else if (words_equal(name, "pos"))
        {
            problem = set_column(in, name, type, (int)count, 3, &columns->position, at);
        }
        else if (is_charge(name))
        {
            problem = set_column(in, name, type, (int)count, 1, &columns->charge, at);
        }
        else if (words_equal(name, "gmxfmm_potential"))
        {
            problem = set_column(in, name, type, (int)count, 1, &columns->potential, at);
        }
        else if (words_equal(name, "gmxfmm_field"))
        {
            problem = set_column(in, name, type, (int)count, 3, &columns->field, at);
        }
        if (problem)
        {
            return -1;
        }
    }
    return 0;
}

/* The key of the whole system that stands behind a name. */
static charge_key key_of(const char* name)
{
    return words_equal(name, "Lattice")            ? KEY_BOX
           : words_equal(name, "pbc")              ? KEY_PERIODIC
           : strcmp(name, "gmxfmm_boundary") == 0  ? KEY_BOUNDARY
           : strcmp(name, "gmxfmm_kernel") == 0    ? KEY_KERNEL
           : strcmp(name, "gmxfmm_prefactor") == 0 ? KEY_PREFACTOR
                                                   : KEY_OTHER;
}

int xyz_header_read(text_lines* in, charge_file* file, char* text, xyz_columns* columns)
{
    char *key, *value;
    int   found;

    *columns = (xyz_columns){.num = 4, .species = 0, .position = 1, .charge = -1, .potential = -1, .field = -1};
    while ((found = next_pair(&text, &key, &value)) > 0)
    {
        if (value && (words_equal(key, "Properties") ? parse_properties(in, columns, value)
                                                     : charge_keys_set(key_of(key), in, file, key, value)))
        {
            return -1;
        }
    }
    if (found < 0)
    {
        complain(in->name, in->line, "a quote or bracket has no end");
        return -1;
    }
    if (columns->position < 0)
    {
        complain(in->name, in->line, "Properties have no pos:R:3");
        return -1;
    }
    if (columns->charge < 0 && !file->is_places)
    {
        complain(in->name, in->line, "Properties have no column charge:R:1, nor charges, initial_charges or q");
        return -1;
    }
    return 0;
}
