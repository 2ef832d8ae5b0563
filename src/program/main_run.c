/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The commands of gmxfmm: point charges in a file in; energy, virial, potentials and fields out. */
#include "main_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "charge_write.h"
#include "grid_write.h"
#include "main_error.h"
#include "main_results.h"
#include "out_file.h"

static void print_help(void)
{
    fputs(
        "gmxfmm: Coulomb energy, virial, potentials and fields of point charges by the fast multipole method\n"
        "\n"
        "usage: gmxfmm solve FILE [options]\n"
        "       gmxfmm error FILE [options]   what orders and cells reach on this system, and their time\n"
        "       gmxfmm help | --help\n"
        "       gmxfmm --version | -V\n"
        "\n"
        "The ending of a name says the format of FILE and OUT. Numbers are taken as they are, without units:\n"
        "  .npy           array of float32 or float64, rows x y z q\n"
        "  .xyz           extended XYZ: a column charge, charges, initial_charges or q; Lattice and pbc\n"
        "  .pqr           ATOM and HETATM with charge and radius; CRYST1\n"
        "  all others, -  text: rows x y z q and header lines; written to -, .txt, .dat, .out and without an ending\n"
        "  .dx, .cube     written alone: the potential on the grid of --grid-targets\n"
        "All but .npy may be gzipped, with .gz behind the ending. All rows or none have reference values behind q\n"
        "(.pqr: behind the radius): potential fx fy fz (field = -grad potential, unit 1/r). Header lines of text start "
        "with #:\n"
        "  # box: ax ay az bx by bz cx cy cz   box vectors; without a box the system is open\n"
        "  # periodic: 1 1 1                   1 1 0: a slab; 0 0 1: a wire; 0 0 0: open\n"
        "  # boundary: tinfoil                 or vacuum\n"
        "  # kernel: yukawa KAPPA              or coulomb\n"
        "  # prefactor: F                      of the reference values, 1 without\n"
        "Other lines with # are comments. A line that looks like a misspelt header is an error.\n"
        "\n"
        "Two charges in a periodic cube:\n"
        "  # box: 4 0 0  0 4 0  0 0 4\n"
        "  # periodic: 1 1 1\n"
        "  0 0 0  1\n"
        "  1 1 1 -1\n"
        "\n"
        "options: range (default); -1 also means automatic\n",
        stdout);
    main_options_help(stdout);
    fputs("\n"
          "Results are printed as lines key: value. With reference values, potential_error and field_error are RMS\n"
          "errors over the RMS of the reference. force_error is the same for q times field; --accuracy means this "
          "error.\n"
          "measured_error is force_error as measured on this system, without reference values. Where\n"
          "measured_error_targets is larger, it is that: the error of potential or field at --targets over its RMS.\n"
          "predicted_error is that of a model of liquids, the only one where error_source is model.\n"
          "measured_error_limited is printed where it is larger: forces above ten times the median count as the\n"
          "median there.\n"
          "A reference that is zero by symmetry has no RMS. The unit is then printed as ..._error_unit: mean |q| over\n"
          "the particle spacing d (potential), mean |q|/d^2 (field) or (mean |q|/d)^2 (force).\n"
          "Exit status: 0, or 2 after one line on stderr. No file is left half-written.\n",
          stdout);
}

static int run_error(problem* all, main_options* options, solution* s)
{
    (void)s;
    const char* other = options->solve.method != GMXFMM_FMM ? "another method than the FMM"
                        : options->verbose                  ? "--verbose"
                        : options->quiet                    ? "--quiet"
                        : options->output                   ? "--output"
                        : options->grid_targets > 0         ? "--grid-targets"
                        : options->json                     ? "--json"
                                                            : NULL;
    if (other)
    {
        complain(NULL, 0, "%s belongs to gmxfmm solve", other);
        return -1;
    }
    if (problem_read(all, options, NULL) || (options->plot && out_file_check(options->plot, options->force)))
    {
        return -1;
    }
    return main_error(all, options);
}

/* Whether the files that are asked for could be written. */
static int check_outputs(const problem* all, const main_options* options)
{
    return (options->output &&
            (options->grid_targets > 0 ? out_file_check(options->output, options->force)
                                       : charge_write_check(options->output, options->force, &all->charges))) ||
                   (options->json && out_file_check(options->json, options->force))
               ? -1
               : 0;
}

static int write_output(const problem* all, const main_options* options, const solution* s, atomic_llong* rows)
{
    const int            at_targets = all->targets.n > 0;
    const charge_results results    = {.system    = &all->charges,
                                       .at        = at_targets ? &all->targets : &all->charges,
                                       .options   = &options->solve,
                                       .potential = at_targets ? s->target_potential : s->potential,
                                       .field     = at_targets ? s->target_field : s->field,
                                       .energy    = s->output.energy_near + s->output.energy_far};

    return all->grid.n > 0 ? grid_write(options->output, options->force, &all->grid, &results, s->potential,
                                        main_options_unit(options), rows)
                           : charge_write(options->output, options->force, &results, rows);
}

/* Whether a grid and a file that has its format are asked for together. */
static int check_grid(const main_options* options)
{
    const int is_grid = options->output && grid_write_is_grid(options->output);

    if (options->grid_targets > 0 && options->targets)
    {
        complain(NULL, 0, "--grid-targets and --targets exclude each other");
        return -1;
    }
    if (options->grid_targets > 0 && !is_grid)
    {
        complain(NULL, 0, "--grid-targets needs --output with a name that ends with .dx or .cube");
        return -1;
    }
    if (is_grid && options->grid_targets <= 0)
    {
        complain(options->output, 0, "this is a file of a grid: --grid-targets H gives its step");
        return -1;
    }
    return 0;
}

static int solve_stages(problem* all, main_options* options, solution* s, progress* p)
{
    progress_enter(p, STAGE_READ, 0);
    if (problem_read(all, options, &p->rows) || check_outputs(all, options) || solve_problem(all, options, p, s))
    {
        return -1;
    }
    if (!options->output)
    {
        return 0;
    }
    progress_enter(p, STAGE_WRITE,
                   all->grid.n > 0      ? all->grid.n
                   : all->targets.n > 0 ? all->targets.n
                                        : all->charges.n);
    return write_output(all, options, s, &p->rows);
}

/* Results where they are asked for: standard output is either for lines, or for one of the others alone. */
static int print_results(const problem* all, const main_options* options, const solution* s, const progress* p)
{
    const int output_is_standard = options->output && strcmp(options->output, "-") == 0;
    const int json_is_standard   = options->json && strcmp(options->json, "-") == 0;

    if (!output_is_standard && !json_is_standard)
    {
        main_results_print(all, options, s);
    }
    return options->json ? main_results_write_json(all, options, s, p) : 0;
}

static int run_solve(problem* all, main_options* options, solution* s)
{
    progress p;
    if (options->plot)
    {
        complain(NULL, 0, "--plot belongs to gmxfmm error");
        return -1;
    }
    if (check_grid(options))
    {
        return -1;
    }
    progress_begin(&p, options->quiet);
    const int failed = solve_stages(all, options, s, &p);
    progress_end(&p);
    if (failed)
    {
        return -1;
    }
    if (!options->quiet)
    {
        problem_print_notes(all, options);
    }
    if (print_results(all, options, s, &p))
    {
        return -1;
    }
    if (options->verbose || progress_was_long(&p))
    {
        fflush(stdout); /* on a terminal the table comes last */
        progress_table(&p, options->solve.device, &s->info);
    }
    return 0;
}

/* A command on a file: what it does after the options are parsed. */
static int file_command(int                count,
                        char* const*       arguments,
                        struct main_ranks* ranks,
                        int (*command)(problem*, main_options*, solution*))
{
    main_options options;
    problem      all = {0};
    solution     s   = {0};

    for (int i = 0; i < count && strcmp(arguments[i], "--") != 0; i++)
    {
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0)
        {
            print_help();
            return 0;
        }
    }
    int failed    = main_options_parse(&options, count, arguments);
    options.ranks = ranks;
    failed        = failed || command(&all, &options, &s);
    solution_free(&s);
    problem_free(&all);
    return failed ? MAIN_FAILURE : 0;
}

static int run(int count, char* const* arguments, struct main_ranks* ranks)
{
    const char* command = count > 1 ? arguments[1] : "";

    if (strcmp(command, "solve") == 0)
    {
        return file_command(count - 2, arguments + 2, ranks, run_solve);
    }
    if (strcmp(command, "error") == 0)
    {
        return file_command(count - 2, arguments + 2, NULL, run_error);
    }
    if (strcmp(command, "help") == 0 || strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0)
    {
        print_help();
        return 0;
    }
    if (strcmp(command, "--version") == 0 || strcmp(command, "-V") == 0)
    {
        printf("gmxfmm %s\n", gmxfmm_version());
        return 0;
    }
    if (command[0])
    {
        complain(NULL, 0, "unknown command '%.60s'; see gmxfmm help", command);
    }
    else
    {
        complain(NULL, 0, "usage: gmxfmm solve FILE [options]; see gmxfmm help");
    }
    return MAIN_FAILURE;
}

int main_run(int count, char* const* arguments, struct main_ranks* ranks)
{
    const int status = run(count, arguments, ranks);

    if (fflush(stdout) != 0 || ferror(stdout))
    {
        complain("standard output", 0, "cannot be written");
        return MAIN_FAILURE;
    }
    return status;
}
