/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The solve of gmxfmm solve, and errors against reference values. */
#include "main_solve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "main_measure.h"
#include "main_ranks.h"

/* A reference whose RMS is below this share of its natural unit is zero but for rounding. */
#define ZERO_REFERENCE 1e-10

static int all_finite(const double* value, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
    {
        if (!isfinite(value[i]))
        {
            return 0;
        }
    }
    return 1;
}

/* A plan, on several ranks if there are some, which then make the same calls. */
static gmxfmm_status
create(const problem* all, const main_options* options, gmxfmm_plan** plan, char* message, size_t size)
{
    const charge_file* file = &all->charges;
    const double*      box  = file->periodic ? file->box : NULL;
    if (options->ranks == NULL)
    {
        return gmxfmm_create(plan, &options->solve, file->n, box, message, size);
    }
    main_task task = {1, 0, all->excluded.start != NULL, all->targets.n > 0, options->solve, box != NULL, {0}};
    if (box != NULL)
    {
        memcpy(task.box, box, sizeof(task.box));
    }
    const gmxfmm_status status = main_ranks_tell(options->ranks, &task);
    return status == GMXFMM_OK
               ? gmxfmm_create_parallel(plan, &options->solve, &options->ranks->comm, file->n, box, message, size)
               : status;
}

/* The plan by the library's model, ready for execute: at the targets, if there are any. */
static gmxfmm_status
make_plan(const problem* all, const main_options* options, gmxfmm_plan** plan, char* message, size_t size)
{
    const charge_file* file   = &all->charges;
    gmxfmm_status      status = create(all, options, plan, message, size);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    status = gmxfmm_set_charges(*plan, file->n, file->q);
    if (status == GMXFMM_OK && all->excluded.start)
    {
        status = gmxfmm_set_exclusions(*plan, all->excluded.start, all->excluded.list);
    }
    if (status == GMXFMM_OK && all->targets.n > 0)
    {
        status = gmxfmm_set_targets(*plan, all->targets.n, all->targets.x);
    }
    status = status == GMXFMM_OK ? gmxfmm_assign(*plan, file->x) : status;
    snprintf(message, size, "%s", gmxfmm_message(*plan));
    return status;
}

/* The plan, measured where that is wanted. The reference that errors are measured against takes higher orders than the
 * settings given: where a GPU does not have them, as without NVRTC, and nobody insists, it is a plan by the model. */
static gmxfmm_status find_plan(const problem*      all,
                               const main_options* options,
                               progress*           p,
                               solution*           s,
                               gmxfmm_plan**       plan,
                               char*               message,
                               size_t              size)
{
    char refused[512] = "";
    if (main_measure_is_wanted(options))
    {
        const gmxfmm_status status = main_measure(all, options, p, plan, &s->measured, message, size);
        if (status != GMXFMM_ERROR_UNSUPPORTED || options->measure == MEASURE_YES ||
            options->solve.device == GMXFMM_CPU)
        {
            return status;
        }
        snprintf(refused, sizeof(refused), "%s", message);
        memset(&s->measured, 0, sizeof(s->measured));
    }
    const gmxfmm_status status = make_plan(all, options, plan, message, size);
    if (status == GMXFMM_OK && refused[0] != 0 && !options->quiet)
    {
        complain(all->charges.name, 0, "note: the error was not measured: %s", refused);
    }
    return status;
}

/* Memory for potential and field at n places, once. */
static int allocate(int64_t n, double** potential, double** field)
{
    *potential = *potential ? *potential : (double*)malloc((size_t)n * sizeof(double));
    *field     = *field ? *field : (double*)malloc((size_t)n * 3 * sizeof(double));
    return *potential && *field ? 0 : -1;
}

/* The plan of several ranks, measured where that is wanted. */
static gmxfmm_status find_plan_of_ranks(const problem*      all,
                                        const main_options* options,
                                        progress*           p,
                                        solution*           s,
                                        gmxfmm_plan**       plan,
                                        char*               message,
                                        size_t              size)
{
    main_options found = *options;
    found.solve.method = options->solve.method == GMXFMM_METHOD_AUTO ? GMXFMM_TREECODE : options->solve.method;
    /* before others are told: from then on all make the same calls */
    if (allocate(all->charges.n, &s->potential, &s->field) ||
        (all->targets.n > 0 && allocate(all->targets.n, &s->target_potential, &s->target_field)))
    {
        return GMXFMM_ERROR_MEMORY;
    }
    return main_measure_is_wanted(options) ? main_measure(all, &found, p, plan, &s->measured, message, size)
                                           : make_plan(all, &found, plan, message, size);
}

/* Energy, and potential and field at the charges. */
static gmxfmm_status execute(gmxfmm_plan* plan, const charge_file* file, solution* s)
{
    if (allocate(file->n, &s->potential, &s->field))
    {
        return GMXFMM_ERROR_MEMORY;
    }
    s->output.size             = sizeof(s->output);
    s->output.potential        = s->potential;
    s->output.field            = s->field;
    s->output.want_energy      = 1;
    s->output.want_virial      = (gmxfmm_capabilities(plan) & GMXFMM_CAN_VIRIAL) != 0;
    s->info.size               = sizeof(s->info);
    const gmxfmm_status status = gmxfmm_execute(plan, file->x, &s->output);
    return status == GMXFMM_OK ? gmxfmm_get_info(plan, &s->info) : status;
}

/* Potential and field at the targets, that the plan was made for, and then by the same plan at the charges: what was
 * measured is of both. */
static gmxfmm_status execute_targets(gmxfmm_plan* plan, const problem* all, solution* s)
{
    const charge_file* targets = &all->targets;
    gmxfmm_info        info    = {.size = sizeof(info)};

    if (allocate(targets->n, &s->target_potential, &s->target_field))
    {
        return GMXFMM_ERROR_MEMORY;
    }
    gmxfmm_output output   = {.size = sizeof(output), .potential = s->target_potential, .field = s->target_field};
    gmxfmm_status status   = gmxfmm_execute(plan, all->charges.x, &output);
    status                 = status == GMXFMM_OK ? gmxfmm_get_info(plan, &info) : status;
    status                 = status == GMXFMM_OK ? gmxfmm_set_targets(plan, 0, NULL) : status;
    status                 = status == GMXFMM_OK ? gmxfmm_assign(plan, all->charges.x) : status;
    status                 = status == GMXFMM_OK ? execute(plan, &all->charges, s) : status;
    s->info.measured_error = info.measured_error;
    return status;
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

/* One line for a point that stands where a charge does, of whose number the library's message tells; 0 for any other
 * message. */
static int complain_of_target(const charge_file* targets, const char* message)
{
    long long i;

    if (sscanf(message, "target %lld stands where", &i) != 1 || i < 0 || i >= targets->n)
    {
        return 0;
    }
    complain(targets->name, charge_file_line(targets, i), "this point stands where a charge does");
    return 1;
}

/* One line for what the library refuses: with the line of a box, and what its numbers of particles mean. */
static void complain_of(const charge_file* file, gmxfmm_status status, const char* message)
{
    complain(file->name, status == GMXFMM_ERROR_BOX ? file->box_line : 0, "%s%s",
             message[0] ? message : gmxfmm_status_text(status),
             status == GMXFMM_ERROR_COINCIDENT || status == GMXFMM_ERROR_CHARGE ? "; particle 0 is the first row" : "");
}

/* Whether all results are finite; complains if not. */
static int check_finite(const problem* all, const solution* s)
{
    const gmxfmm_output* o = &s->output;

    if (!isfinite(o->energy_near) || !isfinite(o->energy_far) || !all_finite(o->virial, 9) ||
        !all_finite(s->potential, all->charges.n) || !all_finite(s->field, 3 * all->charges.n))
    {
        complain(all->charges.name, 0, "the result is not finite: positions or charges are too large or too close");
        return -1;
    }
    for (int64_t i = 0; i < all->targets.n; i++)
    {
        if (!isfinite(s->target_potential[i]) || !all_finite(s->target_field + 3 * i, 3))
        {
            complain(all->targets.name, charge_file_line(&all->targets, i),
                     "the potential is not finite: the point is too close to a charge, or too far away");
            return -1;
        }
    }
    return 0;
}

/* Mean distance of particles: a periodic system's from its volume, another's from the brick around it, which along
 * periodic vectors is as long as these. */
static double spacing(const charge_file* file)
{
    static const double c_axes[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double              lattice[9], volume = 1, longest = 0;

    charge_file_lattice(file, lattice);
    for (int d = 0; d < 3; d++)
    {
        const double* v     = file->periodic ? lattice + 3 * d : c_axes + 3 * d;
        double        width = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]), low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < file->n && !file->along[d]; i++)
        {
            const double* x = file->x + 3 * i;
            low             = fmin(low, v[0] * x[0] + v[1] * x[1] + v[2] * x[2]);
            high            = fmax(high, v[0] * x[0] + v[1] * x[1] + v[2] * x[2]);
        }
        width = file->along[d] ? width : high - low;
        volume *= width;
        longest = fmax(longest, width);
    }
    if (file->along[0] && file->along[1] && file->along[2])
    {
        volume = fabs(charge_file_volume(file));
    }
    volume = volume > 0 ? volume : longest * longest * longest; /* particles in a plane or on a line */
    return volume > 0 ? cbrt(volume / (double)file->n) : 1;     /* one particle has no spacing */
}

/* RMS over particles of |w (value - reference)| over that of |w reference|, w being 1 or the charge. */
static reference_error compare(const charge_file* file,
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
    difference     = sqrt(difference / (double)file->n);
    norm           = sqrt(norm / (double)file->n);
    unit           = unit > 0 ? unit : 1; /* all charges zero */
    const int zero = norm <= ZERO_REFERENCE * unit;
    return (reference_error){difference / (zero ? unit : norm), zero ? unit : 0};
}

static void compare_with_reference(const charge_file* file, double prefactor, solution* s)
{
    const double charge = problem_mean_charge(file);
    const double d      = spacing(file);
    const double f      = fabs(prefactor);

    s->potential_error = compare(file, s->potential, file->potential, 1, NULL, f * charge / d);
    s->field_error     = compare(file, s->field, file->field, 3, NULL, f * charge / (d * d));
    s->force_error     = compare(file, s->field, file->field, 3, file->q, f * charge / d * (charge / d));
}

int solve_problem(const problem* all, const main_options* options, progress* p, solution* s)
{
    const charge_file* file         = &all->charges;
    gmxfmm_plan*       plan         = NULL;
    char               message[512] = "";
    gmxfmm_status      status =
        (options->ranks != NULL ? find_plan_of_ranks : find_plan)(all, options, p, s, &plan, message, sizeof(message));
    progress_enter(p, STAGE_SOLVE, 0);
    if (status == GMXFMM_OK)
    {
        status = all->targets.n > 0 ? execute_targets(plan, all, s) : execute(plan, file, s);
        snprintf(message, sizeof(message), "%s", gmxfmm_message(plan));
    }
    gmxfmm_destroy(plan);
    if (status != GMXFMM_OK)
    {
        if (status != GMXFMM_ERROR_COINCIDENT || !complain_of_target(&all->targets, message))
        {
            complain_of(file, status, message);
        }
        return -1;
    }
    if (check_finite(all, s) || misses_accuracy(file, options, s))
    {
        return -1;
    }
    if (file->field)
    {
        compare_with_reference(file, options->solve.prefactor, s);
    }
    return 0;
}

void solution_free(solution* s)
{
    free(s->potential);
    free(s->field);
    free(s->target_potential);
    free(s->target_field);
}
