/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results of gmxfmm solve as one object of JSON. What does not apply is null, so that the keys are always the same. */
#include <math.h>

#include "json.h"
#include "main_results.h"

static void put_matrix(json* j, const char* key, const double* matrix)
{
    if (!matrix)
    {
        json_string(j, key, NULL);
        return;
    }
    json_open(j, key, '[');
    for (int i = 0; i < 3; i++)
    {
        json_numbers(j, NULL, matrix + 3 * i, 3);
    }
    json_close(j, ']');
}

/* An integer that is null where it does not apply. */
static void put_count(json* j, const char* key, int applies, int64_t value)
{
    if (applies)
    {
        json_integer(j, key, value);
    }
    else
    {
        json_string(j, key, NULL);
    }
}

static void put_choice(json* j, const gmxfmm_options* solve, const gmxfmm_info* info)
{
    const int    is_fmm    = info->method == GMXFMM_FMM;
    const int    is_octree = is_fmm && info->depth >= 0;
    const double grid[3]   = {info->grid[0], info->grid[1], info->grid[2]};

    json_open(j, "choice", '{');
    json_string(j, "method", is_fmm ? gmxfmm_m2l_name(info->m2l) : "treecode");
    json_string(j, "precision", info->precision == GMXFMM_DOUBLE ? "double" : "single");
    json_string(j, "device", solve->device == GMXFMM_CUDA ? "cuda" : "cpu");
    json_integer(j, "threads", info->num_threads);
    json_string(j, "simd", info->simd && info->simd[0] ? info->simd : NULL);
    put_count(j, "order", is_fmm, info->order);
    json_numbers(j, "grid", is_fmm && !is_octree ? grid : NULL, 3);
    put_count(j, "depth", is_octree, info->depth);
    put_count(j, "leaves", is_octree, info->num_cells);
    put_count(j, "separation", is_fmm, info->separation);
    put_count(j, "near_cells", is_fmm, info->num_near_cells);
    json_number(j, "near_particles", is_fmm ? info->near_particles : NAN);
    json_number(j, "theta", is_fmm ? NAN : info->theta);
    put_count(j, "degree", !is_fmm, info->degree);
    put_count(j, "leaf", !is_fmm, info->leaf);
    json_string(j, "traversal", is_fmm ? NULL : solve->traversal == GMXFMM_DUAL ? "dual" : "particle");
    put_count(j, "clusters", !is_fmm, info->num_clusters);
    json_number(j, "pairs_per_target", is_fmm ? NAN : info->pairs_per_target);
    json_close(j, '}');
}

static void put_reference_error(json* j, const char* key, int is_there, const reference_error* error)
{
    char unit[64];

    json_number(j, key, is_there ? error->value : NAN);
    snprintf(unit, sizeof(unit), "%s_unit", key);
    json_number(j, unit, is_there && error->unit > 0 ? error->unit : NAN);
}

/* measured_limited: with forces above ten times the median taken for the median. */
static void put_errors(json* j, const problem* all, double prefactor, const solution* s)
{
    const charge_file* file        = &all->charges;
    const int          is_measured = isfinite(s->info.measured_error);
    const int          has_all     = is_measured && s->measured.time > 0;
    const int          is_there    = file->field != NULL;

    json_open(j, "errors", '{');
    json_string(j, "source", is_measured ? "measurement" : "model");
    json_number(j, "predicted", s->info.predicted_error);
    json_number(j, "measured", s->info.measured_error);
    json_number(j, "measured_limited", has_all && s->info.method == GMXFMM_FMM ? s->measured.error_limited : NAN);
    json_number(j, "measured_targets", has_all && all->targets.n > 0 ? s->measured.error_targets : NAN);
    json_number(j, "uncertainty", has_all ? s->measured.uncertainty : NAN);
    json_string(j, "measured_relative_to", s->info.zero_forces ? main_results_unit(prefactor) : NULL);
    put_reference_error(j, "potential", is_there, &s->potential_error);
    put_reference_error(j, "field", is_there, &s->field_error);
    put_reference_error(j, "force", is_there, &s->force_error);
    json_close(j, '}');
}

static void put_times(json* j, const progress* p, const solution* s)
{
    json_open(j, "seconds", '{');
    json_number(j, "read", p->seconds[STAGE_READ]);
    json_number(j, "measure", p->seconds[STAGE_MEASURE]);
    json_number(j, "solve", p->seconds[STAGE_SOLVE]);
    json_number(j, "write", p->seconds[STAGE_WRITE]);
    json_number(j, "total", p->since - p->start);
    json_number(j, "step", s->measured.time > 0 ? s->measured.time : NAN);
    json_close(j, '}');
}

int main_results_write_json(const problem* all, const main_options* options, const solution* s, const progress* p)
{
    const charge_file*    file   = &all->charges;
    const gmxfmm_options* solve  = &options->solve;
    const gmxfmm_output*  output = &s->output;
    out_file              out;
    json                  j = {.out = &out, .is_first = 1};

    if (out_file_open(&out, options->json, options->force))
    {
        return -1;
    }
    json_open(&j, NULL, '{');
    json_string(&j, "program", "gmxfmm");
    json_string(&j, "version", gmxfmm_version());
    json_string(&j, "file", file->name);
    json_string(&j, "system", charge_file_kind(file));
    put_matrix(&j, "box", file->periodic ? file->box : NULL);
    json_integer(&j, "particles", file->n);
    json_integer(&j, "targets", all->targets.n);
    json_integer(&j, "excluded_pairs", all->excluded.num_pairs);
    json_number(&j, "net_charge", problem_net_charge(file));
    json_string(&j, "boundary", problem_boundary_name(file, solve->boundary));
    json_string(&j, "kernel", solve->kernel == GMXFMM_YUKAWA ? "yukawa" : "coulomb");
    json_number(&j, "kappa", solve->kernel == GMXFMM_YUKAWA ? solve->kappa : NAN);
    json_number(&j, "prefactor", solve->prefactor);
    json_number(&j, "energy", output->energy_near + output->energy_far);
    json_number(&j, "energy_near", output->energy_near);
    json_number(&j, "energy_far", output->energy_far);
    put_matrix(&j, "virial", s->info.method == GMXFMM_FMM ? output->virial : NULL);
    put_choice(&j, solve, &s->info);
    put_errors(&j, all, solve->prefactor, s);
    put_times(&j, p, s);
    json_close(&j, '}');
    out_file_print(&out, "\n");
    return out_file_close(&out);
}
