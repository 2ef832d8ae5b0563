/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results as lines of text. */
#include "main_results.h"

#include <math.h>
#include <stdio.h>

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

static void print_error(const char* key, const reference_error* error)
{
    printf("%s: %.6g\n", key, error->value);
    if (error->unit > 0)
    {
        printf("%s_unit: %.17g\n", key, error->unit);
    }
}

const char* main_results_unit(double prefactor)
{
    return prefactor == 1 ? "(mean |q| / spacing)^2, as the forces are zero"
                          : "prefactor (mean |q| / spacing)^2, as the forces are zero";
}

static const char* system_text(const charge_file* file, const main_options* options)
{
    return file->periodic                   ? charge_file_kind(file)
           : options->box_given == BOX_NONE ? "open (--box none)"
           : file->periodic_line > 0        ? "open (periodic: 0 0 0)"
                                            : "open (no box in the file)";
}

void main_results_print(const problem* all, const main_options* options, const solution* s)
{
    const charge_file*    file   = &all->charges;
    const gmxfmm_options* solve  = &options->solve;
    const gmxfmm_info*    info   = &s->info;
    const gmxfmm_output*  output = &s->output;

    printf("system: %s\n", system_text(file, options));
    printf("particles: %lld\n", (long long)file->n);
    if (all->targets.n > 0)
    {
        printf("targets: %lld\n", (long long)all->targets.n);
    }
    if (options->exclude)
    {
        printf("excluded_pairs: %lld\n", (long long)all->excluded.num_pairs);
    }
    printf("net_charge: %.17g\n", problem_net_charge(file));
    printf("boundary: %s\n", problem_boundary_name(file, solve->boundary));
    if (solve->prefactor != 1)
    {
        printf("prefactor: %.17g\n", solve->prefactor);
    }
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
    for (int i = 0; i < info->num_devices && solve->num_devices > 0; i++)
    {
        printf("%s%d%s", i == 0 ? "devices: " : ",", info->devices[i], i < info->num_devices - 1 ? "" : "\n");
    }
    if (info->devices_note[0])
    {
        printf("devices_note: %s\n", info->devices_note);
    }
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
        if (info->zero_forces)
        {
            printf("error_relative_to: %s\n", main_results_unit(solve->prefactor));
        }
        if (all->targets.n > 0 && s->measured.time > 0)
        {
            printf("measured_error_targets: %.3g\n", s->measured.error_targets);
        }
    }
    if (s->measured.time > 0)
    {
        printf("measured_ms: %.4g\n", 1e3 * s->measured.time);
    }
    printf("error_source: %s\n", isfinite(info->measured_error) ? "measurement" : "model");
    if (file->field)
    {
        print_error("potential_error", &s->potential_error);
        print_error("field_error", &s->field_error);
        print_error("force_error", &s->force_error);
    }
}
