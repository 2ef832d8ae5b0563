/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line, from the library's own table of options. */
#include "main_options.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "text_lines.h"
#include "words.h"

enum kind
{
    INTEGER,
    REAL,
    GRID,
    DEVICES, /* numbers, and how many */
    FACTOR,  /* a number that is not 0 */
    STEP,    /* a number above 0 */
    BOX,
    FLAG,   /* has no value; stored as 1 */
    CHOICE, /* stored as the index of the word, which is the value of the enum in gmxfmm.h */
    TEXT,
    TEXT_OR_STANDARD /* without a value, which only = gives, it is - */
};

/* What is NULL is as the library has it for that member of gmxfmm_options, as the range of numbers always is. */
typedef struct
{
    const char* name;
    const char* argument;
    enum kind   kind;
    size_t      offset; /* in main_options */
    const char* member; /* of gmxfmm_options; NULL: the program's own */
    const char* meaning;
    const char* standard; /* default, as help shows it */
    const char* choices;  /* words, | between them */
} option;

#define OWN(member) offsetof(main_options, member), NULL
#define SOLVE_OFFSET(member) (offsetof(main_options, solve) + offsetof(gmxfmm_options, member))
#define SOLVE(member) SOLVE_OFFSET(member), #member

static const option table[] = {
    {"--accuracy", "E", REAL, SOLVE(accuracy), NULL, NULL, NULL},
    {"--order", "P", INTEGER, SOLVE(order), NULL, NULL, NULL},
    {"--grid", "NX,NY,NZ", GRID, SOLVE(grid), NULL, NULL, NULL},
    {"--depth", "D", INTEGER, SOLVE(depth), NULL, NULL, NULL},
    {"--separation", "WS", INTEGER, SOLVE(separation), NULL, NULL, NULL},
    {"--m2l", "METHOD", CHOICE, SOLVE(m2l), NULL, NULL, NULL},
    {"--m2l-to-parent", "0|1", INTEGER, SOLVE(m2l_to_parent), NULL, NULL, NULL},
    {"--m2l-truncate", "0|1|2", INTEGER, SOLVE(m2l_truncate), NULL, NULL, NULL},
    {"--vertical-rotation", "0|1", INTEGER, SOLVE(vertical_rotation), NULL, NULL, NULL},
    {"--method", "METHOD", CHOICE, SOLVE(method), NULL, NULL, NULL},
    {"--kernel", "KERNEL", CHOICE, SOLVE(kernel), NULL, "the file's, else coulomb", NULL},
    {"--kappa", "K", REAL, SOLVE(kappa), NULL, "the file's", NULL},
    {"--theta", "T", REAL, SOLVE(theta), NULL, NULL, NULL},
    {"--degree", "N", INTEGER, SOLVE(degree), NULL, NULL, NULL},
    {"--leaf", "M", INTEGER, SOLVE(leaf), NULL, NULL, NULL},
    {"--traversal", "WAY", CHOICE, SOLVE(traversal), NULL, NULL, NULL},
    {"--precision", "TYPE", CHOICE, SOLVE(precision), NULL, "double", NULL},
    {"--device", "DEVICE", CHOICE, SOLVE(device), NULL, NULL, NULL},
    {"--devices", "ID,ID,...", DEVICES, SOLVE(devices),
     "numbers of the GPUs that share the work; the first has most of it (--device cuda)", "0 alone", NULL},
    {"--boundary", "TYPE", CHOICE, SOLVE(boundary), "surroundings of a periodic system", "the file's, else tinfoil",
     "tinfoil|vacuum"},
    {"--box", "BOX", BOX, OWN(box),
     "edge, three edges, or nine numbers ax,ay,az,bx,... of a periodic box; none: an open system", "the file's", NULL},
    {"--periodic", "A,B,C", GRID, SOLVE(periodic), "which box vectors have images; two make a slab, one a wire",
     "the file's, else all", NULL},
    {"--prefactor", "F", FACTOR, SOLVE_OFFSET(prefactor), NULL,
     "factor of energy, virial, potential and field, which sets their units; not 0", "the file's, else 1", NULL},
    {"--units", "UNIT", CHOICE, OWN(units),
     "unit of energies where lengths are in Angstrom and charges in e; the prefactor is 1389.35, 14.3996 or 332.064",
     "none", "none|kJ/mol|eV|kcal/mol"},
    {"--exclude", "PAIRS", TEXT, OWN(exclude),
     "file of pairs of particles that do not interact, in rows i j; the first particle is 1", "none", NULL},
    {"--reproducible", "0|1", INTEGER, SOLVE(reproducible), "the same bits in every run with as many threads (solve)",
     "1", NULL},
    {"--threads", "N", INTEGER, SOLVE(num_threads), NULL, NULL, NULL},
    {"--measure", "WHEN", CHOICE, OWN(measure),
     "measure the error and choose automatic options by it (solve); auto: yes, and a note where a GPU cannot", "auto",
     "auto|yes|no"},
    {"--verbose", "", FLAG, OWN(verbose), "print what was measured and the seconds of each stage to stderr (solve)",
     "no", NULL},
    {"--quiet", "", FLAG, OWN(quiet), "print only errors to stderr (solve)", "no", NULL},
    {"--targets", "POINTS", TEXT, OWN(targets),
     "file of points, in rows x y z; --output writes potential and field there (solve), and errors there are measured",
     "none", NULL},
    {"--grid-targets", "H", STEP, OWN(grid_targets),
     "points of a grid in steps of at most H: the box, or the charges and a margin; --output OUT.dx or OUT.cube has "
     "the "
     "potential there (solve)",
     "none", NULL},
    {"--output", "OUT", TEXT, OWN(output),
     "write the charges with potential and field to OUT, in the format of its ending; -: only this text to stdout "
     "(solve)",
     "not written", NULL},
    {"--json", "[=OUT]", TEXT_OR_STANDARD, OWN(json),
     "print the results as one object of JSON in place of lines, or write it to OUT, too (solve)", "not written", NULL},
    {"--force", "", FLAG, OWN(force), "overwrite files that exist", "no", NULL},
    {"--plot", "OUT.svg", TEXT, OWN(plot), "draw errors and times over order and cells (error)", "not drawn", NULL},
};

enum
{
    NUM_OPTIONS = sizeof(table) / sizeof(table[0])
};

/* An option with what the library knows of it. */
static gmxfmm_option described(const option* o)
{
    const gmxfmm_option* found = o->member ? gmxfmm_find_option(o->member) : NULL;
    gmxfmm_option        known = found ? *found : (gmxfmm_option){.name = o->name};

    known.help     = o->meaning ? o->meaning : known.help;
    known.standard = o->standard ? o->standard : known.standard;
    known.choices  = o->choices ? o->choices : known.choices;
    return known;
}

/* "0..20", "1e-12..0.1" or "tinfoil|vacuum" */
static void range_text(const option* o, char* text, size_t size)
{
    const gmxfmm_option known = described(o);

    text[0] = '\0';
    if (o->kind == CHOICE)
    {
        snprintf(text, size, "%s", known.choices);
    }
    else if (o->kind == INTEGER || o->kind == REAL || o->kind == GRID)
    {
        snprintf(text, size, "%g..%g", known.lowest, known.highest);
    }
}

static int refuse(const option* o, const char* value)
{
    char range[128];

    if (o->kind == TEXT || o->kind == TEXT_OR_STANDARD)
    {
        complain(NULL, 0, "%s %s is empty, but must be the name of a file", o->name, o->argument);
        return -1;
    }
    range_text(o, range, sizeof(range));
    complain(NULL, 0, "%s %s is '%.60s', but must be %s%s", o->name, o->argument, value,
             o->kind == INTEGER   ? "an integer in "
             : o->kind == REAL    ? "a number in "
             : o->kind == GRID    ? "three integers in "
             : o->kind == DEVICES ? "1 to 8 numbers of GPUs with commas"
             : o->kind == FACTOR  ? "a finite number other than 0"
             : o->kind == STEP    ? "a finite number above 0"
             : o->kind == BOX     ? "1, 3 or 9 numbers with commas, or none"
                                  : "",
             range);
    return -1;
}

/* Reads one integer in range up to the character end: what follows it, or NULL. *value is the default, and may stay it
 * if that is automatic. */
static const char* parse_integer(const option* o, const char* text, char end, int* value)
{
    const gmxfmm_option known = described(o);
    char*               rest;

    errno                  = 0;
    const long number      = strtol(text, &rest, 10);
    const int  is_default  = *value == GMXFMM_AUTO && number == GMXFMM_AUTO;
    const int  is_in_range = (double)number >= known.lowest && (double)number <= known.highest;
    if (rest == text || *rest != end || errno || !(is_in_range || is_default))
    {
        return NULL;
    }
    *value = (int)number;
    return rest + (end != '\0');
}

static int parse_real(const option* o, const char* text, double* value)
{
    const gmxfmm_option known = described(o);
    char*               rest;
    const double        number     = strtod(text, &rest);
    const int           is_default = *value == GMXFMM_AUTO && number == GMXFMM_AUTO;

    *value = number;
    /* written so that NaN is out of range */
    return rest != text && !*rest && ((number >= known.lowest && number <= known.highest) || is_default);
}

static int parse_factor(const char* text, double* value)
{
    char* rest;

    *value = strtod(text, &rest);
    return rest != text && !*rest && isfinite(*value) && *value != 0;
}

/* The edge of a cube, edges of a brick, or three vectors. */
static int parse_box(const char* text, main_options* options)
{
    double number[9];
    int    n = 0;

    options->box_given = strcmp(text, "none") == 0 ? BOX_NONE : BOX_GIVEN;
    while (options->box_given == BOX_GIVEN && n < 9)
    {
        char* rest;
        number[n] = strtod(text, &rest);
        if (rest == text || !isfinite(number[n]) || (*rest && *rest != ','))
        {
            return 0;
        }
        n++;
        if (!*rest)
        {
            text = rest;
            break;
        }
        text = rest + 1;
    }
    if (options->box_given == BOX_NONE)
    {
        return 1;
    }
    memset(options->box, 0, sizeof(options->box));
    for (int i = 0; i < 9; i++)
    {
        options->box[i] = n == 9 ? number[i] : i % 4 != 0 ? 0 : number[n == 3 ? i / 4 : 0];
    }
    return !*text && (n == 1 || n == 3 || n == 9);
}

/* Numbers of devices, whose range is the library's to check. */
static int parse_devices(const char* text, gmxfmm_options* solve)
{
    solve->num_devices = 0;
    for (;;)
    {
        char* rest;
        errno             = 0;
        const long number = strtol(text, &rest, 10);
        if (rest == text || errno || number < 0 || number > INT_MAX || (*rest && *rest != ',') ||
            solve->num_devices == GMXFMM_MAX_DEVICES)
        {
            return 0;
        }
        solve->devices[solve->num_devices++] = (int)number;
        if (!*rest)
        {
            return 1;
        }
        text = rest + 1;
    }
}

static int parse_choice(const option* o, const char* text, void* value)
{
    static_assert(sizeof(gmxfmm_m2l) == sizeof(int), "enums are stored through int");
    const gmxfmm_option known  = described(o);
    const size_t        length = strlen(text);
    const char*         word   = known.choices;

    for (int i = 0; *word; i++)
    {
        const size_t next = strcspn(word, "|");
        if (next == length && strncmp(text, word, length) == 0)
        {
            memcpy(value, &i, sizeof(i));
            return 1;
        }
        word += next + (word[next] == '|');
    }
    return 0;
}

static int parse_value(const option* o, const char* text, main_options* options)
{
    void* value = (char*)options + o->offset;

    int cells[3] = {GMXFMM_AUTO, GMXFMM_AUTO, GMXFMM_AUTO};

    switch (o->kind)
    {
    case INTEGER:
        return parse_integer(o, text, '\0', (int*)value) ? 0 : refuse(o, text);
    case REAL:
        return parse_real(o, text, (double*)value) ? 0 : refuse(o, text);
    case CHOICE:
        return parse_choice(o, text, value) ? 0 : refuse(o, text);
    case FACTOR:
        return parse_factor(text, (double*)value) ? 0 : refuse(o, text);
    case STEP:
        return parse_factor(text, (double*)value) && *(double*)value > 0 ? 0 : refuse(o, text);
    case DEVICES:
        return parse_devices(text, &options->solve) ? 0 : refuse(o, text);
    case BOX:
        return parse_box(text, options) ? 0 : refuse(o, text);
    case FLAG:
        return 0;
    case TEXT:
    case TEXT_OR_STANDARD:
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

/* The option that an argument is a misspelling of; NULL: of none. */
static const char* option_like(const char* argument)
{
    char        word[41] = "";
    const char* found    = NULL;
    int         least    = 3; /* letters, of which two may be wrong */

    if (strcspn(argument, "=") < sizeof(word))
    {
        memcpy(word, argument, strcspn(argument, "="));
    }
    for (int k = 0; k < NUM_OPTIONS; k++)
    {
        const int wrong = words_distance(word, table[k].name);
        if (wrong < least)
        {
            least = wrong;
            found = table[k].name;
        }
    }
    return found;
}

/* Takes one option and its value from the arguments at *i. */
static int take_option(main_options* options, int seen[NUM_OPTIONS], int count, char* const* arguments, int* i)
{
    const char* value;
    const int   k = find_option(arguments[*i], &value);

    if (k < 0)
    {
        const char* like = option_like(arguments[*i]);
        complain(NULL, 0, "unknown option '%.60s'; %s%s%s", arguments[*i], like ? "did you mean " : "see gmxfmm help",
                 like ? like : "", like ? "?" : "");
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
    if (!value && table[k].kind == TEXT_OR_STANDARD)
    {
        value = "-";
    }
    if (!value && *i + 1 >= count)
    {
        complain(NULL, 0, "%s needs a value: %s", table[k].name, table[k].argument);
        return -1;
    }
    value = value ? value : arguments[++*i];
    options->boundary_given |= table[k].offset == SOLVE_OFFSET(boundary);
    options->kernel_given |= table[k].offset == SOLVE_OFFSET(kernel);
    options->kappa_given |= table[k].offset == SOLVE_OFFSET(kappa);
    options->prefactor_given |= table[k].offset == SOLVE_OFFSET(prefactor);
    options->accuracy_given |= table[k].offset == SOLVE_OFFSET(accuracy);
    return parse_value(&table[k], value, options);
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

/* What one option alone does not show. */
static int check(const main_options* options)
{
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
    if (options->output && options->json && strcmp(options->output, options->json) == 0)
    {
        complain(NULL, 0, "--output and --json both write to %s",
                 strcmp(options->json, "-") == 0 ? "standard output" : options->json);
        return -1;
    }
    return 0;
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
    for (int k = 0; k < NUM_OPTIONS && options->solve.method == GMXFMM_METHOD_AUTO; k++)
    {
        if (table[k].offset == SOLVE_OFFSET(reproducible) && !seen[k])
        {
            options->solve.reproducible = 0; /* the method is decided by times */
        }
    }
    return check(options);
}

const char* main_options_unit(const main_options* options)
{
    static const char* const unit[] = {NULL, "kJ/mol", "eV", "kcal/mol"};
    return unit[options->units];
}

void main_options_help(FILE* out)
{
    for (int k = 0; k < NUM_OPTIONS; k++)
    {
        const gmxfmm_option known = described(&table[k]);
        char                head[64];
        char                range[128];
        snprintf(head, sizeof(head), "%s%s%s", table[k].name, table[k].argument[0] == '[' ? "" : " ",
                 table[k].argument);
        range_text(&table[k], range, sizeof(range));
        fprintf(out, "  %-23s  %s%s%s (%s)\n", head, known.help, range[0] ? ": " : "", range, known.standard);
    }
}
