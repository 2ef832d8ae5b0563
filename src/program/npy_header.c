/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Headers of .npy files: a literal of a dictionary in Python, behind its length. */
#include "npy_header.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum
{
    c_longest = 65536 /* a header that describes one array of numbers has about 100 characters */
};

/* What is left of the literal. */
typedef struct
{
    const char* at;
} literal;

static void skip_blanks(literal* text)
{
    while (isspace((unsigned char)*text->at))
    {
        text->at++;
    }
}

/* Takes one character; 1 if it is there. */
static int take(literal* text, char wanted)
{
    skip_blanks(text);
    const int there = *text->at == wanted;
    text->at += there;
    return there;
}

/* Takes a word of letters; 1 if it is there. */
static int take_word(literal* text, const char* wanted)
{
    const size_t length = strlen(wanted);

    skip_blanks(text);
    const int there = strncmp(text->at, wanted, length) == 0 && !isalnum((unsigned char)text->at[length]);
    text->at += there ? length : 0;
    return there;
}

/* Takes a quoted string without escapes into word[size]; 1 if it is there. */
static int take_string(literal* text, char* word, size_t size)
{
    skip_blanks(text);
    const char quote = *text->at;
    if (quote != '\'' && quote != '"')
    {
        return 0;
    }
    const char*  begin  = text->at + 1;
    const char*  end    = strchr(begin, quote);
    const size_t length = end ? (size_t)(end - begin) : size;
    if (length >= size)
    {
        return 0;
    }
    memcpy(word, begin, length);
    word[length] = '\0';
    text->at     = end + 1;
    return 1;
}

/* Takes a tuple of whole numbers, of which the first two are kept: how many there are, or -1. */
static int take_shape(literal* text, int64_t shape[2])
{
    int n = 0;

    if (!take(text, '('))
    {
        return -1;
    }
    while (!take(text, ')'))
    {
        char*           rest;
        const long long number = strtoll(text->at, &rest, 10);
        if (rest == text->at || number < 0)
        {
            return -1;
        }
        if (n < 2)
        {
            shape[n] = number;
        }
        n++;
        text->at = rest + (*rest == 'L'); /* of Python 2 */
        if (!take(text, ',') && *text->at != ')')
        {
            return -1;
        }
    }
    return n;
}

static const char* set_type(const char* type, npy_header* header, char* message, size_t size)
{
    const char order = type[0];

    if ((strcmp(type + (order != '\0'), "f4") != 0 && strcmp(type + (order != '\0'), "f8") != 0) ||
        !strchr("<>=", order))
    {
        snprintf(message, size, "the numbers are '%.20s', but must be float32 or float64", type);
        return message;
    }
    header->bytes         = type[2] - '0';
    header->is_big_endian = order == '=' ? npy_is_big_endian() : order == '>';
    return NULL;
}

static const char* parse(literal text, npy_header* header, char* message, size_t size)
{
    char        key[32], type[32];
    int64_t     shape[2]   = {0, 0};
    int         dimensions = -1, has_type = 0, has_order = 0;
    const char* broken = "the header is not that of a .npy file";

    if (!take(&text, '{'))
    {
        return broken;
    }
    while (!take(&text, '}'))
    {
        if (!take_string(&text, key, sizeof(key)) || !take(&text, ':'))
        {
            return broken;
        }
        if (strcmp(key, "descr") == 0)
        {
            if (!take_string(&text, type, sizeof(type)))
            {
                return "the array has fields, but must be of float32 or float64";
            }
            has_type = 1;
        }
        else if (strcmp(key, "fortran_order") == 0)
        {
            header->is_by_columns = take_word(&text, "True");
            has_order             = header->is_by_columns || take_word(&text, "False");
        }
        else if (strcmp(key, "shape") != 0 || (dimensions = take_shape(&text, shape)) < 0)
        {
            return broken;
        }
        if (!take(&text, ',') && *text.at != '}')
        {
            return broken;
        }
    }
    if (!has_type || !has_order || dimensions < 0)
    {
        return broken;
    }
    if (dimensions != 2)
    {
        snprintf(message, size, "the array has %d dimensions, but must have 2", dimensions);
        return message;
    }
    header->rows    = shape[0];
    header->columns = shape[1];
    return set_type(type, header, message, size);
}

const char* npy_header_read(FILE* in, npy_header* header, char* message, size_t size)
{
    unsigned char begin[8], length[4] = {0, 0, 0, 0};

    memset(header, 0, sizeof(*header));
    if (fread(begin, 1, sizeof(begin), in) != sizeof(begin) || memcmp(begin, "\x93NUMPY", 6) != 0)
    {
        return "is not a .npy file";
    }
    if (begin[6] < 1 || begin[6] > 3)
    {
        snprintf(message, size, "version %d of the .npy format is not known, only 1 to 3 are", begin[6]);
        return message;
    }
    const size_t width = begin[6] == 1 ? 2 : 4;
    if (fread(length, 1, width, in) != width)
    {
        return "the header is cut short";
    }
    const size_t num = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
    if (num > c_longest)
    {
        snprintf(message, size, "the header has %zu bytes, too many for an array of numbers", num);
        return message;
    }
    char* text = (char*)malloc(num + 1);
    if (!text)
    {
        return "out of memory";
    }
    const char* problem = "the header is cut short";
    if (fread(text, 1, num, in) == num)
    {
        text[num] = '\0';
        problem   = parse((literal){text}, header, message, size);
    }
    free(text);
    return problem;
}

int npy_is_big_endian(void)
{
    const uint16_t one = 1;
    unsigned char  first;

    memcpy(&first, &one, 1);
    return first == 0;
}
