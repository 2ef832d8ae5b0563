/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Command line of gmxfmm: one table drives parsing, ranges and help. */
#ifndef GMXFMM_MAIN_OPTIONS_H
#define GMXFMM_MAIN_OPTIONS_H

#include <stdio.h>

#include "gmxfmm.h"

/* --measure, in the order of its words */
typedef enum
{
    MEASURE_AUTO = 0, /* unless a GPU cannot: the reference takes higher orders than a solve, which it may not have */
    MEASURE_YES,
    MEASURE_NO
} measure_choice;

/* --box wins over the file's */
typedef enum
{
    BOX_OF_FILE = 0,
    BOX_GIVEN, /* periodic */
    BOX_NONE   /* open */
} box_choice;

typedef struct
{
    const char*    input;        /* FILE, - for standard input */
    const char*    output;       /* NULL: none; - for standard output */
    const char*    plot;         /* NULL: none; ends with .svg */
    const char*    json;         /* NULL: none; - for standard output, instead of lines */
    const char*    targets;      /* NULL: none */
    double         grid_targets; /* largest step of a grid of targets; 0: none */
    const char*    exclude;      /* NULL: none */
    int            force;        /* files that exist are overwritten */
    box_choice     box_given;
    double         box[9];
    gmxfmm_options solve;
    int            boundary_given; /* --boundary wins over the file's */
    int            accuracy_given;
    int            kernel_given; /* --kernel and --kappa win over the file's */
    int            kappa_given;
    int            prefactor_given;
    int            units; /* of --units; 0: none */
    measure_choice measure;
    int            verbose;
    int            quiet; /* not with verbose */
    char           cache_dir[4096];

    struct main_ranks* ranks; /* that share the sums of solve (main_ranks.h); NULL: none. Not of the command line */
} main_options;

/* Parses what follows "solve". 0, or -1 after one line on stderr. */
int main_options_parse(main_options* options, int count, char* const* arguments);

/* The word of --units, or NULL. */
const char* main_options_unit(const main_options* options);

/* Prints the options with ranges and defaults. */
void main_options_help(FILE* out);

#endif
