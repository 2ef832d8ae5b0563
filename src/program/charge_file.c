/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading of point-charge files. */
#include "charge_file.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "charge_header.h"
#include "text_lines.h"

#define MAX_COLUMNS 9 /* of a box; rows have at most 8 */

/* Splits text at blanks in place: the number of words, of which the first MAX_COLUMNS are kept. */
static int split(char* text, char* word[MAX_COLUMNS])
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
        if (n < MAX_COLUMNS)
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

static int parse_numbers(const text_lines* in, const char* what, char* const word[], int n, double* value)
{
    for (int i = 0; i < n; i++)
    {
        char* rest;
        value[i] = strtod(word[i], &rest);
        if (rest == word[i] || *rest)
        {
            complain(in->name, in->line, "%s %d is not a number: '%.40s'", what, i + 1, word[i]);
            return -1;
        }
        if (!isfinite(value[i]))
        {
            complain(in->name, in->line, "%s %d is not finite: '%.40s'", what, i + 1, word[i]);
            return -1;
        }
    }
    return 0;
}

static int parse_box(const text_lines* in, charge_file* file, char* const word[], int n)
{
    if (n != 9)
    {
        complain(in->name, in->line, "box needs 9 numbers ax ay az bx by bz cx cy cz, found %d", n);
        return -1;
    }
    file->box_line = in->line;
    return parse_numbers(in, "box component", word, 9, file->box);
}

static int parse_periodic(const text_lines* in, charge_file* file, char* const word[], int n)
{
    int flags = 0;

    for (int i = 0; i < n && i < 3; i++)
    {
        flags += strcmp(word[i], "0") == 0 || strcmp(word[i], "1") == 0;
    }
    if (n != 3 || flags != 3)
    {
        complain(in->name, in->line, "periodic needs three flags that are 0 or 1");
        return -1;
    }
    if (strcmp(word[0], word[1]) != 0 || strcmp(word[0], word[2]) != 0)
    {
        complain(in->name, in->line, "periodic: %s %s %s is not supported, only 1 1 1 and 0 0 0 are", word[0], word[1],
                 word[2]);
        return -1;
    }
    file->periodic_line = in->line;
    file->periodic      = word[0][0] == '1';
    return 0;
}

static int parse_boundary(const text_lines* in, charge_file* file, char* const word[], int n)
{
    if (n == 1 && strcmp(word[0], "tinfoil") == 0)
    {
        file->boundary = GMXFMM_TINFOIL;
    }
    else if (n == 1 && strcmp(word[0], "vacuum") == 0)
    {
        file->boundary = GMXFMM_VACUUM;
    }
    else
    {
        complain(in->name, in->line, "boundary is neither tinfoil nor vacuum: '%.40s'", n > 0 ? word[0] : "");
        return -1;
    }
    file->boundary_line = in->line;
    return 0;
}

static int parse_kernel(const text_lines* in, charge_file* file, char* const word[], int n)
{
    if (n == 1 && strcmp(word[0], "coulomb") == 0)
    {
        file->kernel = GMXFMM_COULOMB;
    }
    else if (n == 2 && strcmp(word[0], "yukawa") == 0)
    {
        file->kernel = GMXFMM_YUKAWA;
        if (parse_numbers(in, "kappa", word + 1, 1, &file->kappa))
        {
            return -1;
        }
        if (file->kappa < 0)
        {
            complain(in->name, in->line, "kappa is %g, it must not be negative", file->kappa);
            return -1;
        }
    }
    else
    {
        complain(in->name, in->line, "kernel is neither coulomb nor yukawa with its kappa: '%.40s'",
                 n > 0 ? word[0] : "");
        return -1;
    }
    file->kernel_line = in->line;
    return 0;
}

/* The known keys. The two without a parser describe old reference values or the columns; a written file has its own. */
static const struct key
{
    const char* name;
    int (*parse)(const text_lines*, charge_file*, char* const word[], int n);
} keys[] = {{"box", parse_box}, {"periodic", parse_periodic}, {"boundary", parse_boundary}, {"kernel", parse_kernel},
            {"columns", NULL},  {"reference_method", NULL}};

/* The key of a header line without its # and where its value begins, or NULL for a comment. */
static const struct key* find_key(char* text, char** value)
{
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
    {
        const size_t length = strlen(keys[k].name);
        size_t       i      = 0;
        while (i < length && tolower((unsigned char)text[i]) == keys[k].name[i])
        {
            i++;
        }
        char* colon = text + i;
        while (isblank((unsigned char)*colon))
        {
            colon++;
        }
        if (i == length && *colon == ':')
        {
            *value = colon + 1;
            return &keys[k];
        }
    }
    return NULL;
}

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
    char*             value;
    char*             word[MAX_COLUMNS];
    char*             content = text + 1 + strspn(text + 1, " \t"); /* behind the # */
    const struct key* key     = find_key(content, &value);

    if (!key)
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
    const int64_t before = key->parse == parse_box        ? file->box_line
                           : key->parse == parse_periodic ? file->periodic_line
                           : key->parse == parse_boundary ? file->boundary_line
                           : key->parse == parse_kernel   ? file->kernel_line
                                                          : 0;
    if (before > 0)
    {
        complain(in->name, in->line, "%s is given twice, first in line %lld", key->name, (long long)before);
        return -1;
    }
    return key->parse ? key->parse(in, file, word, split(value, word)) : 0;
}

static int grow(const text_lines* in, charge_file* file, int64_t* capacity, int references)
{
    const int64_t wanted = 2 * *capacity + 1024;
    double*       x      = (double*)realloc(file->x, (size_t)wanted * 3 * sizeof(*x));
    file->x              = x ? x : file->x;
    double* q            = (double*)realloc(file->q, (size_t)wanted * sizeof(*q));
    file->q              = q ? q : file->q;
    int64_t* line        = (int64_t*)realloc(file->line, (size_t)wanted * sizeof(*line));
    file->line           = line ? line : file->line;
    if (!x || !q || !line)
    {
        return text_lines_no_memory(in);
    }
    if (references)
    {
        double* potential = (double*)realloc(file->potential, (size_t)wanted * sizeof(*potential));
        file->potential   = potential ? potential : file->potential;
        double* field     = (double*)realloc(file->field, (size_t)wanted * 3 * sizeof(*field));
        file->field       = field ? field : file->field;
        if (!potential || !field)
        {
            return text_lines_no_memory(in);
        }
    }
    *capacity = wanted;
    return 0;
}

static int parse_row(const text_lines* in, charge_file* file, int64_t* capacity, int* columns, char* text)
{
    char*     word[MAX_COLUMNS];
    double    value[MAX_COLUMNS];
    const int n = split(text, word);

    if (n == 0)
    {
        return 0;
    }
    if (n != 4 && n != 8)
    {
        complain(in->name, in->line, "a row has 4 columns x y z q or 8 with potential fx fy fz, found %d", n);
        return -1;
    }
    if (file->n > 0 && n != *columns)
    {
        complain(in->name, in->line, "found %d columns, but the rows before have %d", n, *columns);
        return -1;
    }
    *columns = n;
    if (parse_numbers(in, "column", word, n, value))
    {
        return -1;
    }
    if (file->n == *capacity && grow(in, file, capacity, n == 8))
    {
        return -1;
    }
    const int64_t i = file->n++;
    memcpy(file->x + 3 * i, value, 3 * sizeof(double));
    file->q[i]    = value[3];
    file->line[i] = in->line;
    if (n == 8)
    {
        file->potential[i] = value[4];
        memcpy(file->field + 3 * i, value + 5, 3 * sizeof(double));
    }
    return 0;
}

static int read_lines(text_lines* in, charge_file* file, atomic_llong* rows)
{
    size_t  comment_length = 0;
    int64_t capacity       = 0;
    int     columns        = 0;
    char*   text;
    int     found;

    while ((found = text_lines_next(in, &text)) > 0)
    {
        while (isspace((unsigned char)*text))
        {
            text++;
        }
        if (*text == '#' ? parse_header(in, file, &comment_length, text)
                         : parse_row(in, file, &capacity, &columns, text))
        {
            return -1;
        }
        if (rows)
        {
            atomic_store_explicit(rows, file->n, memory_order_relaxed);
        }
    }
    return found;
}

/* What only the whole file shows: particles, a box where one is needed, and a box with a volume. */
static int check_whole(charge_file* file)
{
    const double* b = file->box;

    if (file->n == 0)
    {
        complain(file->name, 0, "has no particles");
        return -1;
    }
    if (file->periodic_line == 0)
    {
        file->periodic = file->box_line > 0;
    }
    if (!file->periodic)
    {
        return 0;
    }
    if (file->box_line == 0)
    {
        complain(file->name, file->periodic_line, "periodic: 1 1 1 needs a box");
        return -1;
    }
    const double volume =
        b[0] * (b[4] * b[8] - b[5] * b[7]) - b[1] * (b[3] * b[8] - b[5] * b[6]) + b[2] * (b[3] * b[7] - b[4] * b[6]);
    const double edges = sqrt(b[0] * b[0] + b[1] * b[1] + b[2] * b[2]) * sqrt(b[3] * b[3] + b[4] * b[4] + b[5] * b[5]) *
                         sqrt(b[6] * b[6] + b[7] * b[7] + b[8] * b[8]);
    /* Below 1e-12 of the brick with the same edges the volume is rounding error. Written so that NaN fails too. */
    if (!(fabs(volume) > 1e-12 * edges && isfinite(edges)))
    {
        complain(file->name, file->box_line, "the box is singular: its volume is %g", volume);
        return -1;
    }
    return 0;
}

int charge_file_read(const char* name, charge_file* file, atomic_llong* rows)
{
    text_lines in;

    memset(file, 0, sizeof(*file));
    if (text_lines_open(&in, name))
    {
        return -1;
    }
    file->name       = in.name;
    const int status = read_lines(&in, file, rows);
    text_lines_close(&in);
    return status ? status : check_whole(file);
}

void charge_file_free(charge_file* file)
{
    free(file->x);
    free(file->q);
    free(file->potential);
    free(file->field);
    free(file->line);
    free(file->comments);
    memset(file, 0, sizeof(*file));
}
