/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files and options of a command line, put together. */
#include "main_problem.h"

#include <math.h>
#include <string.h>

#include "charge_read.h"

/* A net charge below this share of the sum of |q| is the rounding of charges written in decimal. */
#define NEUTRAL 1e-10

double problem_mean_charge(const charge_file* file)
{
    double sum = 0;
    for (int64_t i = 0; i < file->n; i++)
    {
        sum += fabs(file->q[i]);
    }
    return sum / (double)file->n;
}

double problem_net_charge(const charge_file* file)
{
    double sum = 0;
    for (int64_t i = 0; i < file->n; i++)
    {
        sum += file->q[i];
    }
    return sum;
}

const char* problem_boundary_name(const charge_file* file, gmxfmm_boundary boundary)
{
    return charge_file_is_partly(file) ? "none"
           : boundary == GMXFMM_OPEN   ? "open"
           : boundary == GMXFMM_VACUUM ? "vacuum"
                                       : "tinfoil";
}

/* The box that the command line and the file decide. */
static int settle_box(charge_file* file, main_options* options)
{
    const int asked[3] = {options->solve.periodic[0], options->solve.periodic[1], options->solve.periodic[2]};
    if (options->box_given != BOX_OF_FILE)
    {
        const int given = options->box_given == BOX_GIVEN;
        charge_file_set_periodic(file, (const int[3]){given, given, given});
        file->has_box  = given;
        file->box_line = file->periodic_line = 0;
        memcpy(file->box, options->box, sizeof(file->box));
    }
    if (asked[0] || asked[1] || asked[2])
    {
        charge_file_set_periodic(file, asked);
        file->periodic_line = 0;
    }
    memset(options->solve.periodic, 0, sizeof(file->along));
    if (charge_file_is_partly(file))
    {
        memcpy(options->solve.periodic, file->along, sizeof(file->along));
    }
    return charge_file_check_box(file);
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

/* The kernel that the command line and the file decide, and the prefactor. */
static int settle_kernel(const charge_file* file, main_options* options)
{
    /* e^2 / (4 pi epsilon_0 Angstrom) by CODATA 2018, in the order of --units */
    static const double c_unit[] = {1, 1389.35457644, 14.3996454784, 1389.35457644 / 4.184};
    gmxfmm_options*     solve    = &options->solve;
    if (options->units > 0 && options->prefactor_given)
    {
        complain(NULL, 0, "--units is a prefactor: leave out --prefactor");
        return -1;
    }
    if (options->units > 0)
    {
        solve->prefactor         = c_unit[options->units];
        options->prefactor_given = 1;
    }
    solve->prefactor = options->prefactor_given ? solve->prefactor : file->prefactor;
    solve->kernel    = options->kernel_given ? solve->kernel : file->kernel;
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

int problem_read(problem* all, main_options* options, atomic_llong* rows)
{
    charge_file* file = &all->charges;

    return charge_read(options->input, file, rows) || settle_box(file, options) ||
                   (options->exclude && exclusions_read(options->exclude, file->n, &all->excluded)) ||
                   charge_file_check_places(file, &all->excluded) || settle_boundary(file, options) ||
                   settle_kernel(file, options) ||
                   (options->targets && charge_read_places(options->targets, &all->targets, rows)) ||
                   (options->grid_targets > 0 &&
                    target_grid_make(&all->grid, file, options->grid_targets, "--grid-targets", &all->targets))
               ? -1
               : 0;
}

gmxfmm_system problem_system(const problem* all)
{
    const charge_file* file = &all->charges;

    return (gmxfmm_system){.size        = sizeof(gmxfmm_system),
                           .n           = file->n,
                           .box         = file->periodic ? file->box : NULL,
                           .x           = file->x,
                           .q           = file->q,
                           .excl_start  = all->excluded.start,
                           .excl_list   = all->excluded.list,
                           .num_targets = all->targets.n,
                           .targets     = all->targets.x};
}

void problem_print_notes(const problem* all, const main_options* options)
{
    const charge_file* file = &all->charges;
    const double       net  = problem_net_charge(file);

    if (charge_file_is_partly(file) && fabs(net) > NEUTRAL * problem_mean_charge(file) * (double)file->n)
    {
        complain(file->name, 0,
                 "note: net charge %g: the %s is charged, without a background; its energy has a constant of choice",
                 net, charge_file_kind(file));
    }
    else if (file->periodic && fabs(net) > NEUTRAL * problem_mean_charge(file) * (double)file->n)
    {
        complain(file->name, 0, "note: net charge %g, computed with a uniform neutralising background", net);
    }
    if (all->grid.num_at_charge > 0)
    {
        complain(file->name, 0,
                 "note: charges stand at %lld of the points, which have the potential of all other charges",
                 (long long)all->grid.num_at_charge);
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
    /* text and .xyz without a prefactor have 1, of the other formats nobody knows */
    if (file->field && file->prefactor != options->solve.prefactor &&
        (file->format == CHARGE_TEXT || file->format == CHARGE_XYZ))
    {
        complain(file->name, file->prefactor_line, "note: the reference values belong to another prefactor");
    }
}

void problem_free(problem* all)
{
    charge_file_free(&all->charges);
    charge_file_free(&all->targets);
    target_grid_free(&all->grid);
    exclusions_free(&all->excluded);
}
