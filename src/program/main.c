/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gmxfmm: point charges in a text file in; energy, virial, potentials and fields out. */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "charge_file.h"
#include "gmxfmm.h"
#include "main_error.h"
#include "main_measure.h"
#include "main_options.h"
#include "main_progress.h"
#include "text_lines.h"

/* Exit status of every failure. */
#define FAILURE 2

/* A net charge below this share of the sum of |q| is the rounding of charges written in decimal. */
#define NEUTRAL 1e-10

/* A reference whose RMS is below this share of its natural unit is zero but for rounding. */
#define ZERO_REFERENCE 1e-10

typedef struct
{
    double*       potential;
    double*       field;
    gmxfmm_output output;
    gmxfmm_info   info;

    gmxfmm_measurement measured; /* of the plan; time 0: nothing was measured */
} solution;

static void print_help(void)
{
    fputs("gmxfmm: Coulomb energy, virial, potentials and fields of point charges by the fast multipole method\n"
          "\n"
          "usage: gmxfmm solve FILE [options]\n"
          "       gmxfmm error FILE [options]   what orders and cells reach on this system, and their time\n"
          "       gmxfmm help | --help\n"
          "       gmxfmm --version\n"
          "\n"
          "FILE is text, plain or gzipped; - is standard input. Header lines start with #; rows are x y z q, all of "
          "them or\n"
          "none followed by reference values potential fx fy fz (field = -grad potential, unit 1/r).\n"
          "  # box: ax ay az bx by bz cx cy cz   box vectors; without a box the system is open\n"
          "  # periodic: 1 1 1                   or 0 0 0: open\n"
          "  # boundary: tinfoil                 or vacuum\n"
          "  # kernel: yukawa KAPPA              or coulomb\n"
          "Other lines with # are comments, but one that looks like a misspelt header is an error.\n"
          "\n"
          "Two charges in a periodic cube:\n"
          "  # box: 4 0 0  0 4 0  0 0 4\n"
          "  # periodic: 1 1 1\n"
          "  0 0 0  1\n"
          "  1 1 1 -1\n"
          "\n"
          "options: range (default); where that is automatic, -1 says the same\n",
          stdout);
    main_options_help(stdout);
    fputs("\n"
          "Results are printed as lines key: value. With reference values, potential_error and field_error are RMS "
          "errors\n"
          "over the RMS of the reference, and force_error is the same for q times field, which is what --accuracy is "
          "about.\n"
          "measured_error is force_error as measured on this system, without reference values; predicted_error is of a "
          "model\n"
          "of liquids, and all that there is where error_source is model. measured_error_limited, printed where it is "
          "larger,\n"
          "is the same with no force taken for more than ten times the median.\n"
          "A reference that is zero by symmetry has no RMS to divide by: then the unit, printed as ..._error_unit, is "
          "the mean\n"
          "|q| over the particle spacing d (potential), mean |q|/d^2 (field) or (mean |q|/d)^2 (force).\n"
          "Exit status: 0, or 2 after one line on stderr.\n",
          stdout);
}

static double mean_charge(const charge_file* file)
{
    double sum = 0;
    for (int64_t i = 0; i < file->n; i++)
    {
        sum += fabs(file->q[i]);
    }
    return sum / (double)file->n;
}

static double net_charge(const charge_file* file)
{
    double sum = 0;
    for (int64_t i = 0; i < file->n; i++)
    {
        sum += file->q[i];
    }
    return sum;
}

/* The boundary that the command line, the file and the lack of a box decide. */
static int settle_boundary(const charge_file* file, main_options* options)
{
    if (file->periodic)
    {
        options->solve.boundary = options->boundary_given ? options->solve.boundary : file->boundary;
        return 0;
    }
    if (options->boundary_given)
    {
        complain(file->name, 0, "the system is open: --boundary does not apply");
        return -1;
    }
    options->solve.boundary = GMXFMM_OPEN;
    return 0;
}

/* The kernel that the command line and the file decide. */
static int settle_kernel(const charge_file* file, main_options* options)
{
    gmxfmm_options* solve = &options->solve;
    solve->kernel         = options->kernel_given ? solve->kernel : file->kernel;
    if (solve->kernel == GMXFMM_YUKAWA && !options->kappa_given)
    {
        if (file->kernel != GMXFMM_YUKAWA)
        {
            complain(file->name, 0, "--kernel yukawa needs --kappa");
            return -1;
        }
        solve->kappa = file->kappa;
    }
    return 0;
}

/* What a user should know beside the results; only after success, for a failure has one line on stderr. */
static void print_notes(const charge_file* file, const main_options* options)
{
    const double net = net_charge(file);

    if (file->periodic && fabs(net) > NEUTRAL * mean_charge(file) * (double)file->n)
    {
        complain(file->name, 0, "note: net charge %g, computed with a uniform neutralising background", net);
    }
    if (!file->periodic && file->boundary_line > 0)
    {
        complain(file->name, file->boundary_line, "note: the system is open, its boundary has no effect");
    }
    if (file->periodic && file->field && file->boundary != options->solve.boundary)
    {
        complain(file->name, file->boundary_line, "note: the reference values belong to another boundary");
    }
    if (file->field && file->kernel != options->solve.kernel)
    {
        complain(file->name, file->kernel_line, "note: the reference values belong to another kernel");
    }
}

static int all_finite(const solution* s, int64_t n)
{
    int finite = isfinite(s->output.energy_near) && isfinite(s->output.energy_far);
    for (int i = 0; i < 9; i++)
    {
        finite = finite && isfinite(s->output.virial[i]);
    }
    for (int64_t i = 0; i < n; i++)
    {
        finite = finite && isfinite(s->potential[i]) && isfinite(s->field[3 * i]) && isfinite(s->field[3 * i + 1]) &&
                 isfinite(s->field[3 * i + 2]);
    }
    return finite;
}

/* The plan by the library's model, ready for execute. */
static gmxfmm_status
make_plan(const charge_file* file, const main_options* options, gmxfmm_plan** plan, char* message, size_t size)
{
    gmxfmm_status status =
        gmxfmm_create(plan, &options->solve, file->n, file->periodic ? file->box : NULL, message, size);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    status = gmxfmm_set_charges(*plan, file->n, file->q);
    status = status == GMXFMM_OK ? gmxfmm_assign(*plan, file->x) : status;
    snprintf(message, size, "%s", gmxfmm_message(*plan));
    return status;
}

static gmxfmm_status execute(gmxfmm_plan* plan, const charge_file* file, gmxfmm_method method, solution* s)
{
    s->potential          = (double*)malloc((size_t)file->n * sizeof(double));
    s->field              = (double*)malloc((size_t)file->n * 3 * sizeof(double));
    s->output.size        = sizeof(s->output);
    s->output.potential   = s->potential;
    s->output.field       = s->field;
    s->output.want_energy = 1;
    s->output.want_virial = method == GMXFMM_FMM;
    s->info.size          = sizeof(s->info);
    if (!s->potential || !s->field)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    const gmxfmm_status status = gmxfmm_execute(plan, file->x, &s->output);
    return status == GMXFMM_OK ? gmxfmm_get_info(plan, &s->info) : status;
}

/* Whether an accuracy that was asked for is missed: by the model, where nothing was measured. */
static int misses_accuracy(const charge_file* file, const main_options* options, const solution* s)
{
    const gmxfmm_info* info  = &s->info;
    const double       error = isfinite(info->measured_error) ? info->measured_error : info->predicted_error;
    if (!options->accuracy_given || error <= options->solve.accuracy)
    {
        return 0;
    }
    complain(file->name, 0,
             "accuracy %g is missed with the settings given: %.2g is %s; leave more of them automatic, or ask for less",
             options->solve.accuracy, error, isfinite(info->measured_error) ? "measured" : "predicted by the model");
    return 1;
}

/* One line for what the library refuses: with the line of a box, and what its numbers of particles mean. */
static void complain_of(const charge_file* file, gmxfmm_status status, const char* message)
{
    complain(file->name, status == GMXFMM_ERROR_BOX ? file->box_line : 0, "%s%s",
             message[0] ? message : gmxfmm_status_text(status),
             status == GMXFMM_ERROR_COINCIDENT || status == GMXFMM_ERROR_CHARGE ? "; particle 0 is the first row" : "");
}

static int solve_file(const charge_file* file, const main_options* options, progress* p, solution* s)
{
    gmxfmm_plan*  plan = NULL;
    char          message[512];
    gmxfmm_status status = main_measure_is_wanted(options)
                               ? main_measure(file, options, p, &plan, &s->measured, message, sizeof(message))
                               : GMXFMM_OK;
    progress_enter(p, STAGE_SOLVE, 0);
    status = status == GMXFMM_OK && !plan ? make_plan(file, options, &plan, message, sizeof(message)) : status;
    if (status == GMXFMM_OK)
    {
        status = execute(plan, file, options->solve.method, s);
        snprintf(message, sizeof(message), "%s", gmxfmm_message(plan));
    }
    gmxfmm_destroy(plan);
    if (status != GMXFMM_OK)
    {
        complain_of(file, status, message);
        return -1;
    }
    if (!all_finite(s, file->n))
    {
        complain(file->name, 0, "the result is not finite: positions or charges are too large or too close");
        return -1;
    }
    return misses_accuracy(file, options, s) ? -1 : 0;
}

static void print_fmm(const gmxfmm_info* info)
{
    printf("order: %d\n", info->order);
    if (info->depth >= 0)
    {
        printf("depth: %d\n", info->depth);
        printf("leaves: %d\n", info->num_cells);
    }
    else
    {
        printf("grid: %d %d %d\n", info->grid[0], info->grid[1], info->grid[2]);
    }
    printf("separation: %d\n", info->separation);
    printf("near_cells: %d\n", info->num_near_cells);
    printf("near_particles: %.6g\n", info->near_particles);
}

static void print_treecode(const gmxfmm_options* solve, const gmxfmm_info* info)
{
    printf("kernel: %s\n", solve->kernel == GMXFMM_YUKAWA ? "yukawa" : "coulomb");
    if (solve->kernel == GMXFMM_YUKAWA)
    {
        printf("kappa: %.17g\n", solve->kappa);
    }
    printf("theta: %g\n", info->theta);
    printf("degree: %d\n", info->degree);
    printf("leaf: %d\n", info->leaf);
    printf("traversal: %s\n", solve->traversal == GMXFMM_DUAL ? "dual" : "particle");
    printf("clusters: %d\n", info->num_clusters);
    printf("pairs_per_target: %.6g\n", info->pairs_per_target);
}

static void print_solution(const charge_file* file, const gmxfmm_options* solve, const solution* s)
{
    const gmxfmm_info*   info   = &s->info;
    const gmxfmm_output* output = &s->output;

    printf("system: %s\n", file->periodic            ? "periodic"
                           : file->periodic_line > 0 ? "open (periodic: 0 0 0)"
                                                     : "open (no box in the file)");
    printf("particles: %lld\n", (long long)file->n);
    printf("net_charge: %.17g\n", net_charge(file));
    printf("boundary: %s\n", solve->boundary == GMXFMM_OPEN     ? "open"
                             : solve->boundary == GMXFMM_VACUUM ? "vacuum"
                                                                : "tinfoil");
    printf("energy: %.17g\n", output->energy_near + output->energy_far);
    printf("energy_near: %.17g\n", output->energy_near);
    printf("energy_far: %.17g\n", output->energy_far);
    for (int i = 0; i < 3 && info->method == GMXFMM_FMM; i++)
    {
        const double* row = output->virial + 3 * i;
        printf("virial_%c: %.17g %.17g %.17g\n", "xyz"[i], row[0], row[1], row[2]);
    }
    printf("method: %s\n", info->method == GMXFMM_FMM ? gmxfmm_m2l_name(info->m2l) : "treecode");
    printf("precision: %s\n", info->precision == GMXFMM_DOUBLE ? "double" : "single");
    printf("threads: %d\n", info->num_threads);
    if (info->simd[0])
    {
        printf("simd: %s\n", info->simd);
    }
    info->method == GMXFMM_FMM ? print_fmm(info) : print_treecode(solve, info);
    printf("predicted_error: %.3g\n", info->predicted_error);
    if (isfinite(info->measured_error))
    {
        printf("measured_error: %.3g\n", info->measured_error);
        if (s->measured.error_limited > info->measured_error)
        {
            printf("measured_error_limited: %.3g\n", s->measured.error_limited);
        }
    }
    if (s->measured.time > 0)
    {
        printf("measured_ms: %.4g\n", 1e3 * s->measured.time);
    }
    printf("error_source: %s\n", isfinite(info->measured_error) ? "measurement" : "model");
}

/* Mean distance of particles: a periodic system's from its volume, another's from the brick around it. */
static double spacing(const charge_file* file)
{
    const double* b       = file->box;
    double        volume  = fabs(b[0] * (b[4] * b[8] - b[5] * b[7]) - b[1] * (b[3] * b[8] - b[5] * b[6]) +
                                 b[2] * (b[3] * b[7] - b[4] * b[6]));
    double        longest = 0;

    if (!file->periodic)
    {
        volume = 1;
        for (int d = 0; d < 3; d++)
        {
            double low = file->x[d], high = file->x[d];
            for (int64_t i = 1; i < file->n; i++)
            {
                low  = fmin(low, file->x[3 * i + d]);
                high = fmax(high, file->x[3 * i + d]);
            }
            volume *= high - low;
            longest = fmax(longest, high - low);
        }
        volume = volume > 0 ? volume : longest * longest * longest; /* particles in a plane or on a line */
    }
    return volume > 0 ? cbrt(volume / (double)file->n) : 1; /* one particle has no spacing */
}

/* sum over particles of |w (value - reference)|^2 and |w reference|^2, w being 1 or the charge */
static void print_error(const char*        key,
                        const charge_file* file,
                        const double*      value,
                        const double*      reference,
                        int                components,
                        const double*      weight,
                        double             unit)
{
    double difference = 0, norm = 0;

    for (int64_t i = 0; i < file->n * components; i++)
    {
        const double w = weight ? weight[i / components] : 1;
        difference += pow(w * (value[i] - reference[i]), 2);
        norm += pow(w * reference[i], 2);
    }
    difference        = sqrt(difference / (double)file->n);
    norm              = sqrt(norm / (double)file->n);
    unit              = unit > 0 ? unit : 1; /* all charges zero */
    const int    zero = norm <= ZERO_REFERENCE * unit;
    const double one  = zero ? unit : norm;
    printf("%s: %.6g\n", key, difference / one);
    if (zero)
    {
        printf("%s_unit: %.17g\n", key, unit);
    }
}

static void print_errors(const charge_file* file, const solution* s)
{
    const double charge = mean_charge(file);
    const double d      = spacing(file);

    print_error("potential_error", file, s->potential, file->potential, 1, NULL, charge / d);
    print_error("field_error", file, s->field, file->field, 3, NULL, charge / (d * d));
    print_error("force_error", file, s->field, file->field, 3, file->q, charge / d * (charge / d));
}

static int read_system(charge_file* file, main_options* options, atomic_llong* rows)
{
    return charge_file_read(options->input, file, rows) || charge_file_check_places(file) ||
                   settle_boundary(file, options) || settle_kernel(file, options)
               ? -1
               : 0;
}

static int run_error(charge_file* file, main_options* options, solution* s)
{
    (void)s;
    const char* other = options->solve.method != GMXFMM_FMM ? "--method treecode"
                        : options->verbose                  ? "--verbose"
                        : options->quiet                    ? "--quiet"
                        : options->output                   ? "--output"
                                                            : NULL;
    if (other)
    {
        complain(NULL, 0, "%s belongs to gmxfmm solve", other);
        return -1;
    }
    if (read_system(file, options, NULL) || (options->plot && charge_file_check_output(options->plot)))
    {
        return -1;
    }
    return main_error(file, options);
}

static int solve_stages(charge_file* file, main_options* options, solution* s, progress* p)
{
    progress_enter(p, STAGE_READ, 0);
    if (read_system(file, options, &p->rows) || (options->output && charge_file_check_output(options->output)))
    {
        return -1;
    }
    if (solve_file(file, options, p, s))
    {
        return -1;
    }
    if (!options->output)
    {
        return 0;
    }
    progress_enter(p, STAGE_WRITE, file->n);
    return charge_file_write(options->output, file, options->solve.boundary, options->solve.kernel,
                             options->solve.kappa, s->potential, s->field, &p->rows);
}

static int run_solve(charge_file* file, main_options* options, solution* s)
{
    progress p;
    if (options->plot)
    {
        complain(NULL, 0, "--plot belongs to gmxfmm error");
        return -1;
    }
    progress_begin(&p, options->quiet);
    const int failed = solve_stages(file, options, s, &p);
    progress_end(&p);
    if (failed)
    {
        return -1;
    }
    if (!options->quiet)
    {
        print_notes(file, options);
    }
    print_solution(file, &options->solve, s);
    if (file->field)
    {
        print_errors(file, s);
    }
    if (options->verbose || progress_was_long(&p))
    {
        fflush(stdout); /* on a terminal the table comes last */
        progress_table(&p, options->solve.device, &s->info);
    }
    return 0;
}

/* A command on a file: what it does after the options are parsed. */
static int file_command(int count, char* const* arguments, int (*command)(charge_file*, main_options*, solution*))
{
    main_options options;
    charge_file  file = {0};
    solution     s    = {0};

    for (int i = 0; i < count && strcmp(arguments[i], "--") != 0; i++)
    {
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0)
        {
            print_help();
            return 0;
        }
    }
    const int failed = main_options_parse(&options, count, arguments) || command(&file, &options, &s);
    free(s.potential);
    free(s.field);
    charge_file_free(&file);
    return failed ? FAILURE : 0;
}

static int run(int count, char* const* arguments)
{
    const char* command = count > 1 ? arguments[1] : "";

    if (strcmp(command, "solve") == 0)
    {
        return file_command(count - 2, arguments + 2, run_solve);
    }
    if (strcmp(command, "error") == 0)
    {
        return file_command(count - 2, arguments + 2, run_error);
    }
    if (strcmp(command, "help") == 0 || strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0)
    {
        print_help();
        return 0;
    }
    if (strcmp(command, "--version") == 0)
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
    return FAILURE;
}

/* GCC's OpenMP lets a thread that waits spin for milliseconds, which on a busy machine takes the processor from the
 * threads that it waits for. It reads how long before main() begins, so the program starts itself once more. Where that
 * fails it goes on as it is. */
static void wait_briefly(char* arguments[])
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || setenv("GOMP_SPINCOUNT", "3000", 1))
    {
        return;
    }
    execv("/proc/self/exe", arguments);
    unsetenv("GOMP_SPINCOUNT");
}

int main(int count, char* arguments[])
{
    wait_briefly(arguments);
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit of the shell is then a failed write, with a message */
    const int status = run(count, arguments);

    if (fflush(stdout) != 0 || ferror(stdout))
    {
        complain("standard output", 0, "cannot be written");
        return FAILURE;
    }
    return status;
}
