/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "main_options.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "text_lines.h"

enum kind
{
    INTEGER,
    REAL,
    GRID,
    FLAG,   /* has no value; stored as 1 */
    CHOICE, /* stored as the index of the word, which is the value of the enum in gmxfmm.h */
    TEXT
};

#define MAX_CHOICES 7

typedef struct
{
    const char* name;
    const char* argument;
    const char* meaning;
    const char* standard; /* default, as help shows it */
    enum kind   kind;
    size_t      offset; /* in main_options */
    double      minimum;
    double      maximum;
    const char* choice[MAX_CHOICES];
} option;

#define AT(member) offsetof(main_options, member)
#define IN_SOLVE(member) (offsetof(main_options, solve) + offsetof(gmxfmm_options, member))

static const option table[] = {
    {"--accuracy",
     "E",
     "relative RMS force error asked for; chooses what is left automatic",
     "4e-4",
     REAL,
     IN_SOLVE(accuracy),
     1e-12,
     0.1,
     {NULL}},
    {"--order", "P", "expansion order", "automatic", INTEGER, IN_SOLVE(order), 0, GMXFMM_MAX_ORDER, {NULL}},
    {"--grid",
     "NX,NY,NZ",
     "cells, or leaves, along each box vector",
     "automatic",
     GRID,
     IN_SOLVE(grid),
     1,
     4096,
     {NULL}},
    {"--depth", "D", "octree depth (octree methods)", "automatic", INTEGER, IN_SOLVE(depth), 1, 9, {NULL}},
    {"--separation", "WS", "layers of near cells", "automatic", INTEGER, IN_SOLVE(separation), 1, 2, {NULL}},
    {"--m2l",
     "METHOD",
     "way through the far field",
     "auto",
     CHOICE,
     IN_SOLVE(m2l),
     0,
     0,
     {"auto", "fft", "rotation", "symmetric", "dynamic", "naive", NULL}},
    {"--m2l-to-parent",
     "0|1",
     "far source cells of a stencil straight to the target's parent (octree methods)",
     "0",
     INTEGER,
     IN_SOLVE(m2l_to_parent),
     0,
     1,
     {NULL}},
    {"--m2l-truncate",
     "0|1|2",
     "translations only to the order that their distance needs, by its mean error or bound (octree methods)",
     "0",
     INTEGER,
     IN_SOLVE(m2l_truncate),
     0,
     2,
     {NULL}},
    {"--vertical-rotation",
     "0|1",
     "M2M and L2L by rotation, too (octree methods)",
     "0",
     INTEGER,
     IN_SOLVE(vertical_rotation),
     0,
     1,
     {NULL}},
    {"--method",
     "METHOD",
     "fast multipole method, or barycentric Lagrange treecode (open systems)",
     "fmm",
     CHOICE,
     IN_SOLVE(method),
     0,
     0,
     {"fmm", "treecode", NULL}},
    {"--kernel",
     "KERNEL",
     "1/r, or exp(-kappa r)/r (treecode)",
     "the file's, else coulomb",
     CHOICE,
     IN_SOLVE(kernel),
     0,
     0,
     {"coulomb", "yukawa", NULL}},
    {"--kappa", "K", "inverse length of yukawa (treecode)", "the file's", REAL, IN_SOLVE(kappa), 0, 1e100, {NULL}},
    {"--theta",
     "T",
     "clusters are far if radii add up to less than T times the distance (treecode)",
     "automatic",
     REAL,
     IN_SOLVE(theta),
     1e-6,
     0.999999,
     {NULL}},
    {"--degree", "N", "degree of interpolation (treecode)", "automatic", INTEGER, IN_SOLVE(degree), 1, 20, {NULL}},
    {"--leaf",
     "M",
     "most particles in a leaf, and targets in a batch (treecode)",
     "automatic",
     INTEGER,
     IN_SOLVE(leaf),
     1,
     INT_MAX,
     {NULL}},
    {"--traversal",
     "WAY",
     "targets meet clusters by batches, or clusters meet clusters (treecode, on the CPU)",
     "particle",
     CHOICE,
     IN_SOLVE(traversal),
     0,
     0,
     {"particle", "dual", NULL}},
    {"--precision", "TYPE", "arithmetic", "double", CHOICE, IN_SOLVE(precision), 0, 0, {"single", "double", NULL}},
    {"--device", "DEVICE", "where to compute", "cpu", CHOICE, IN_SOLVE(device), 0, 0, {"cpu", "cuda", NULL}},
    {"--boundary",
     "TYPE",
     "surroundings of a periodic system",
     "the file's, else tinfoil",
     CHOICE,
     IN_SOLVE(boundary),
     0,
     0,
     {"tinfoil", "vacuum", NULL}},
    {"--threads", "N", "threads", "as OpenMP decides", INTEGER, IN_SOLVE(num_threads), 1, 4096, {NULL}},
    {"--measure",
     "WHEN",
     "measure errors where order and cells are automatic, and choose by them (solve); auto: not on a GPU with an "
     "octree "
     "method given",
     "auto",
     CHOICE,
     AT(measure),
     0,
     0,
     {"auto", "yes", "no", NULL}},
    {"--verbose",
     "",
     "what was measured and seconds by stage, on stderr (solve)",
     "no",
     FLAG,
     AT(verbose),
     0,
     0,
     {NULL}},
    {"--quiet",
     "",
     "on stderr no notes, progress or seconds, only errors (solve)",
     "no",
     FLAG,
     AT(quiet),
     0,
     0,
     {NULL}},
    {"--output",
     "OUT",
     "write the charges with potential and field to OUT",
     "not written",
     TEXT,
     AT(output),
     0,
     0,
     {NULL}},
    {"--plot",
     "OUT.svg",
     "draw errors and times over order and cells (error)",
     "not drawn",
     TEXT,
     AT(plot),
     0,
     0,
     {NULL}},
};

enum
{
    NUM_OPTIONS = sizeof(table) / sizeof(table[0])
};

/* "0..20", "1e-12..0.1" or "tinfoil|vacuum" */
static void range_text(const option* o, char* text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    if (o->kind == CHOICE)
    {
        for (int i = 0; o->choice[i] && used < size; i++)
        {
            used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? "|" : "", o->choice[i]);
        }
    }
    else if (o->kind != TEXT && o->kind != FLAG)
    {
        snprintf(text, size, "%g..%g", o->minimum, o->maximum);
    }
}

static int refuse(const option* o, const char* value)
{
    char range[128];

    if (o->kind == TEXT)
    {
        complain(NULL, 0, "%s %s is empty, but must be the name of a file", o->name, o->argument);
        return -1;
    }
    range_text(o, range, sizeof(range));
    complain(NULL, 0, "%s %s is '%.60s', but must be %s%s", o->name, o->argument, value,
             o->kind == INTEGER ? "an integer in "
             : o->kind == REAL  ? "a number in "
             : o->kind == GRID  ? "three integers in "
                                : "",
             range);
    return -1;
}

/* Reads one integer in range up to the character end: what follows it, or NULL. */
static const char* parse_integer(const option* o, const char* text, char end, int* value)
{
    char* rest;

    errno             = 0;
    const long number = strtol(text, &rest, 10);
    if (rest == text || *rest != end || errno || (double)number < o->minimum || (double)number > o->maximum)
    {
        return NULL;
    }
    *value = (int)number;
    return rest + (end != '\0');
}

static int parse_real(const option* o, const char* text, double* value)
{
    char* rest;

    *value = strtod(text, &rest);
    /* written so that NaN is out of range */
    return rest != text && !*rest && *value >= o->minimum && *value <= o->maximum;
}

static int parse_choice(const option* o, const char* text, void* value)
{
    static_assert(sizeof(gmxfmm_m2l) == sizeof(int), "enums are stored through int");
    for (int i = 0; o->choice[i]; i++)
    {
        if (strcmp(text, o->choice[i]) == 0)
        {
            memcpy(value, &i, sizeof(i));
            return 1;
        }
    }
    return 0;
}

static int parse_value(const option* o, const char* text, void* value)
{
    int cells[3];

    switch (o->kind)
    {
    case INTEGER:
        return parse_integer(o, text, '\0', (int*)value) ? 0 : refuse(o, text);
    case REAL:
        return parse_real(o, text, (double*)value) ? 0 : refuse(o, text);
    case CHOICE:
        return parse_choice(o, text, value) ? 0 : refuse(o, text);
    case FLAG:
        return 0;
    case TEXT:
        *(const char**)value = text;
        return *text ? 0 : refuse(o, text);
    case GRID:
        break;
    }
    const char* rest = text;
    for (int d = 0; d < 3 && rest; d++)
    {
        rest = parse_integer(o, rest, d < 2 ? ',' : '\0', &cells[d]);
    }
    if (!rest)
    {
        return refuse(o, text);
    }
    memcpy(value, cells, sizeof(cells));
    return 0;
}

/* The option that an argument names, up to its end or to '='; *value is what follows '=', or NULL. */
static int find_option(const char* argument, const char** value)
{
    const size_t length = strcspn(argument, "=");

    *value = argument[length] == '=' ? argument + length + 1 : NULL;
    for (int k = 0; k < NUM_OPTIONS; k++)
    {
        if (strlen(table[k].name) == length && strncmp(table[k].name, argument, length) == 0)
        {
            return k;
        }
    }
    return -1;
}

/* Takes one option and its value from the arguments at *i. */
static int take_option(main_options* options, int seen[NUM_OPTIONS], int count, char* const* arguments, int* i)
{
    const char* value;
    const int   k = find_option(arguments[*i], &value);

    if (k < 0)
    {
        complain(NULL, 0, "unknown option '%.60s'; see gmxfmm help", arguments[*i]);
        return -1;
    }
    if (seen[k]++)
    {
        complain(NULL, 0, "%s is given twice", table[k].name);
        return -1;
    }
    if (table[k].kind == FLAG)
    {
        if (value)
        {
            complain(NULL, 0, "%s takes no value", table[k].name);
            return -1;
        }
        *(int*)(void*)((char*)options + table[k].offset) = 1;
        return 0;
    }
    if (!value && *i + 1 >= count)
    {
        complain(NULL, 0, "%s needs a value: %s", table[k].name, table[k].argument);
        return -1;
    }
    value = value ? value : arguments[++*i];
    options->boundary_given |= table[k].offset == IN_SOLVE(boundary);
    options->kernel_given |= table[k].offset == IN_SOLVE(kernel);
    options->kappa_given |= table[k].offset == IN_SOLVE(kappa);
    options->accuracy_given |= table[k].offset == IN_SOLVE(accuracy);
    return parse_value(&table[k], value, (char*)options + table[k].offset);
}

/* Kernels that are compiled for a GPU are kept where the XDG Base Directory Specification says: in
 * $XDG_CACHE_HOME/gmxfmm, if that is an absolute path, or ~/.cache/gmxfmm. Without either they are not kept. */
static void set_cache_dir(main_options* options)
{
    const char*  xdg  = getenv("XDG_CACHE_HOME");
    const char*  home = getenv("HOME");
    const size_t size = sizeof(options->cache_dir);
    int          used = 0;

    if (xdg && xdg[0] == '/')
    {
        used = snprintf(options->cache_dir, size, "%s/gmxfmm", xdg);
    }
    else if (home && home[0] == '/')
    {
        used = snprintf(options->cache_dir, size, "%s/.cache/gmxfmm", home);
    }
    options->solve.cache_dir = used > 0 && (size_t)used < size ? options->cache_dir : NULL;
}

int main_options_parse(main_options* options, int count, char* const* arguments)
{
    int seen[NUM_OPTIONS] = {0};
    int only_files        = 0; /* after -- */

    memset(options, 0, sizeof(*options));
    gmxfmm_default_options(&options->solve);
    options->solve.precision    = GMXFMM_DOUBLE;
    options->solve.array_type   = GMXFMM_DOUBLE;
    options->solve.reproducible = 1; /* one solve: timing FFT plans would cost more than it gains */
    set_cache_dir(options);
    for (int i = 0; i < count; i++)
    {
        if (!only_files && strcmp(arguments[i], "--") == 0)
        {
            only_files = 1;
        }
        else if (!only_files && arguments[i][0] == '-' && arguments[i][1])
        {
            if (take_option(options, seen, count, arguments, &i))
            {
                return -1;
            }
        }
        else if (options->input)
        {
            complain(NULL, 0, "two files given, '%.200s' and '%.200s'; one is solved at a time", options->input,
                     arguments[i]);
            return -1;
        }
        else
        {
            options->input = arguments[i];
        }
    }
    if (!options->input)
    {
        complain(NULL, 0, "no file given; usage: gmxfmm solve FILE [options]; see gmxfmm help");
        return -1;
    }
    if (!*options->input)
    {
        complain(NULL, 0, "FILE is empty, but must be the name of a file");
        return -1;
    }
    const size_t length = options->plot ? strlen(options->plot) : 0;
    if (options->plot && (length < 5 || strcmp(options->plot + length - 4, ".svg") != 0))
    {
        complain(NULL, 0, "--plot OUT.svg is '%.200s', but pictures are SVG: the name must end with .svg",
                 options->plot);
        return -1;
    }
    if (options->quiet && options->verbose)
    {
        complain(NULL, 0, "--quiet and --verbose exclude each other");
        return -1;
    }
    return 0;
}

void main_options_help(FILE* out)
{
    for (int k = 0; k < NUM_OPTIONS; k++)
    {
        char head[64];
        char range[128];
        snprintf(head, sizeof(head), "%s %s", table[k].name, table[k].argument);
        range_text(&table[k], range, sizeof(range));
        fprintf(out, "  %-23s  %s%s%s (%s)\n", head, table[k].meaning, range[0] ? ": " : "", range, table[k].standard);
    }
}
