/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading of excluded pairs. */
#include "exclusions.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "text_lines.h"
#include "words.h"

/* Pairs as they are read, counted from 0. */
typedef struct
{
    int*    pair; /* 2 each */
    int64_t num, capacity;
} pair_list;

static int append(const text_lines* in, pair_list* pairs, int first, int second)
{
    if (pairs->num == pairs->capacity)
    {
        const int64_t capacity = 2 * pairs->capacity + 1024;
        int*          pair     = (int*)realloc(pairs->pair, (size_t)capacity * 2 * sizeof(int));
        if (!pair)
        {
            return text_lines_no_memory(in);
        }
        pairs->pair     = pair;
        pairs->capacity = capacity;
    }
    pairs->pair[2 * pairs->num]     = first;
    pairs->pair[2 * pairs->num + 1] = second;
    pairs->num++;
    return 0;
}

static int read_pair(const text_lines* in, char* text, int64_t n, pair_list* pairs)
{
    char*     word[2];
    int64_t   number[2] = {0, 0};
    const int num       = words_split(text, word, 2);

    if (num == 0 || *word[0] == '#')
    {
        return 0;
    }
    if (num != 2)
    {
        complain(in->name, in->line, "a row has the numbers of two particles, found %d columns", num);
        return -1;
    }
    for (int i = 0; i < 2; i++)
    {
        if (!words_integer(word[i], &number[i]))
        {
            complain(in->name, in->line, "column %d is not a whole number: '%.40s'", i + 1, word[i]);
            return -1;
        }
        if (number[i] < 1 || number[i] > n)
        {
            complain(in->name, in->line, "there is no particle %lld: they count from 1 to %lld", (long long)number[i],
                     (long long)n);
            return -1;
        }
    }
    if (number[0] == number[1])
    {
        complain(in->name, in->line, "particle %lld cannot exclude itself", (long long)number[0]);
        return -1;
    }
    return append(in, pairs, (int)number[0] - 1, (int)number[1] - 1);
}

static int compare(const void* first, const void* second)
{
    const int a = *(const int*)first, b = *(const int*)second;

    return (a > b) - (a < b);
}

/* Rows of the particles, sorted and each pair once. 0, or -1 without memory. */
static int make_rows(const pair_list* pairs, int64_t n, exclusions* e)
{
    const int64_t both = 2 * pairs->num;
    int*          end  = (int*)calloc((size_t)n + 1, sizeof(int)); /* of the row so far */

    e->start = (int*)calloc((size_t)n + 1, sizeof(int));
    e->list  = (int*)malloc((size_t)(both > 0 ? both : 1) * sizeof(int));
    if (!end || !e->start || !e->list)
    {
        free(end);
        return -1;
    }
    for (int64_t k = 0; k < both; k++)
    {
        e->start[pairs->pair[k] + 1]++;
    }
    for (int64_t i = 0; i < n; i++)
    {
        e->start[i + 1] += e->start[i];
        end[i] = e->start[i];
    }
    for (int64_t k = 0; k < both; k++)
    {
        e->list[end[pairs->pair[k]]++] = pairs->pair[k ^ 1];
    }
    int num = 0;
    for (int64_t i = 0; i < n; i++)
    {
        const int begin = e->start[i];
        e->start[i]     = num;
        qsort(e->list + begin, (size_t)(end[i] - begin), sizeof(int), compare);
        for (int k = begin; k < end[i]; k++)
        {
            if (k == begin || e->list[k] != e->list[num - 1])
            {
                e->list[num++] = e->list[k];
            }
        }
    }
    e->start[n]  = num;
    e->num_pairs = num / 2;
    free(end);
    return 0;
}

static int read_pairs(text_lines* in, int64_t n, exclusions* e)
{
    pair_list pairs = {0};
    char*     text;
    int       found;

    while ((found = text_lines_next(in, &text)) > 0)
    {
        if (read_pair(in, text, n, &pairs))
        {
            found = -1;
            break;
        }
    }
    if (found == 0 && (pairs.num > INT_MAX / 2 || make_rows(&pairs, n, e)))
    {
        found = text_lines_no_memory(in);
    }
    free(pairs.pair);
    return found;
}

int exclusions_read(const char* name, int64_t n, exclusions* e)
{
    text_lines in;

    memset(e, 0, sizeof(*e));
    if (n >= INT_MAX)
    {
        complain(name, 0, "excluded pairs need fewer than %d particles", INT_MAX);
        return -1;
    }
    if (text_lines_open(&in, name))
    {
        return -1;
    }
    const int status = read_pairs(&in, n, e);
    text_lines_close(&in);
    return status;
}

int exclusions_have(const exclusions* e, int64_t i, int64_t j)
{
    const int wanted = (int)j;

    return e->start && bsearch(&wanted, e->list + e->start[i], (size_t)(e->start[i + 1] - e->start[i]), sizeof(int),
                               compare) != NULL;
}

void exclusions_free(exclusions* e)
{
    free(e->start);
    free(e->list);
    memset(e, 0, sizeof(*e));
}
