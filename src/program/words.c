/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Words of a line. */
#include "words.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "number_read.h"

int words_split(char* text, char* word[], int most)
{
    int n = 0;

    for (;;)
    {
        while (isspace((unsigned char)*text))
        {
            *text++ = '\0';
        }
        if (!*text)
        {
            return n;
        }
        if (n < most)
        {
            word[n] = text;
        }
        n++;
        while (*text && !isspace((unsigned char)*text))
        {
            text++;
        }
    }
}

int words_numbers(const text_lines* in, const char* what, int first, char* const word[], int n, double* value)
{
    for (int i = 0; i < n; i++)
    {
        const char* rest = number_read(word[i], &value[i]);
        if (!rest)
        {
            char* behind;
            value[i] = strtod(word[i], &behind);
            rest     = behind;
        }
        if (rest == word[i] || *rest)
        {
            complain(in->name, in->line, "%s %d is not a number: '%.40s'", what, first + i, word[i]);
            return -1;
        }
        if (!isfinite(value[i]))
        {
            complain(in->name, in->line, "%s %d is not finite: '%.40s'", what, first + i, word[i]);
            return -1;
        }
    }
    return 0;
}

int words_integer(const char* word, int64_t* value)
{
    char* rest;

    errno                = 0;
    const intmax_t found = strtoimax(word, &rest, 10);
    *value               = (int64_t)found;
    return rest != word && !*rest && errno == 0;
}

int words_equal(const char* a, const char* b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b))
    {
        a++;
        b++;
    }
    return !*a && !*b;
}

int words_end_with(const char* word, size_t length, const char* ending)
{
    char         last[8] = "";
    const size_t wanted  = strlen(ending);

    if (length < wanted)
    {
        return 0;
    }
    memcpy(last, word + length - wanted, wanted);
    return words_equal(last, ending);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

int words_distance(const char* a, const char* b)
{
    enum
    {
        LONGEST = 40
    };
    const int n = (int)strlen(a), m = (int)strlen(b);
    int       d[LONGEST + 1][LONGEST + 1];

    if (n > LONGEST || m > LONGEST)
    {
        return LONGEST + 1;
    }
    for (int i = 0; i <= n; i++)
    {
        for (int j = 0; j <= m; j++)
        {
            if (i == 0 || j == 0)
            {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = smaller(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]), smaller(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
            {
                d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[n][m];
}
