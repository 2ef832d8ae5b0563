/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gmxfmm error: what settings reach on the system in a file, and how long a step takes with them. */
#include "main_error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gmxfmm_measure.h"
#include "main_plot.h"
#include "main_progress.h"
#include "main_results.h"
#include "text_lines.h"

/* Cells along an edge over those of the choice by measurement. */
static const double c_sizes[] = {0.75, 0.87, 1, 1.15, 1.33};

enum
{
    c_ordersAbout = 4, /* below and above its order */
    c_numSizes    = (int)(sizeof(c_sizes) / sizeof(c_sizes[0])),
    c_repeats     = 5, /* of which the fastest counts */
    c_mostRows    = c_numSizes * (2 * c_ordersAbout + 1)
};

typedef struct
{
    const charge_file*      file;
    const main_options*     options;
    const gmxfmm_reference* reference;
    int64_t                 num_targets;
    gmxfmm_measurement      base; /* the choice by measurement, without time */
    gmxfmm_measurement      best; /* the fastest that reaches what was asked; time 0: none so far */
    gmxfmm_measurement      rows[c_mostRows];
    int                     num_rows;
} table;

/* Cells as the options take them: "fft, 6 x 6 x 7 cells", or leaves, or depth. */
static void describe_cells(const gmxfmm_measurement* m, char* text, size_t size)
{
    snprintf(text, size, "%dx%dx%d", m->grid[0], m->grid[1], m->grid[2]);
}

/* The error that has to reach what is asked. */
static double larger_error(const gmxfmm_measurement* m)
{
    return fmax(fmax(m->error, m->error_limited), m->error_targets);
}

static void print_row(const gmxfmm_measurement* m, int at_targets)
{
    char cells[64];
    describe_cells(m, cells, sizeof(cells));
    printf("%-10s %5d %13s %10d %12.2e %12.2e", gmxfmm_m2l_name(m->m2l), m->order, cells, m->separation,
           m->predicted_error, m->error);
    if (at_targets)
    {
        printf(" %12.2e", m->error_targets);
    }
    printf(" %12.4g\n", 1e3 * m->time);
    fflush(stdout);
}

/* Measures one setting and prints it. Returns 1 if it reaches what was asked, 0 if not, -1 after a complaint. */
static int measure_row(table* t, const gmxfmm_options* options)
{
    gmxfmm_measurement  m = {.size = sizeof(m)};
    char                message[512];
    const gmxfmm_status status = gmxfmm_measure(t->reference, options, c_repeats, &m, message, sizeof(message));
    if (status != GMXFMM_OK)
    {
        complain(t->file->name, 0, "%s", message);
        return -1;
    }
    print_row(&m, t->num_targets > 0);
    t->rows[t->num_rows++] = m;
    const int reached      = larger_error(&m) <= t->options->solve.accuracy;
    if (reached && (t->best.time <= 0 || m.time < t->best.time))
    {
        t->best = m;
    }
    return reached;
}

/* Cells of the base scaled: whether they are others than those of the size before, previous[3]. */
static int scaled_cells(const table* t, double scale, gmxfmm_options* options, int previous[3])
{
    const gmxfmm_measurement* base    = &t->base;
    int                       differs = 0;
    for (int d = 0; d < 3; d++)
    {
        const int part   = base->depth >= 0 ? 2 : 1; /* leaves come in pairs */
        const int count  = (int)floor(base->grid[d] * scale / part + 0.5);
        options->grid[d] = part * (count > 0 ? count : 1);
        differs          = differs || options->grid[d] != previous[d];
    }
    memcpy(previous, options->grid, 3 * sizeof(int));
    return differs;
}

/* Orders for one choice of cells: up to the first that reaches what was asked, which a higher one does at more cost. */
static int measure_orders(table* t, gmxfmm_options* options)
{
    const int first = t->base.order - c_ordersAbout, last = t->base.order + c_ordersAbout;
    int       reached = 0;
    for (int p = first > 1 ? first : 1; p <= last && p <= GMXFMM_MAX_ORDER && reached == 0; p++)
    {
        options->order = p;
        reached        = measure_row(t, options);
    }
    return reached;
}

static int measure_all(table* t)
{
    gmxfmm_options options     = t->options->solve;
    int            previous[3] = {0, 0, 0}, status = 0;
    options.m2l          = t->base.m2l;
    options.separation   = t->base.separation;
    options.reproducible = 0; /* as a simulation would: FFT plans are timed */
    if (options.boundary == GMXFMM_OPEN && t->base.depth >= 0)
    {
        options.depth = t->base.depth; /* leaves of an open octree follow the particles */
        return measure_orders(t, &options) < 0 ? -1 : 0;
    }
    for (int i = 0; i < c_numSizes && status >= 0; i++)
    {
        if (scaled_cells(t, c_sizes[i], &options, previous))
        {
            status = measure_orders(t, &options);
        }
    }
    return status < 0 ? -1 : 0;
}

/* 0, or -1 after a complaint: none of the rows reaches what was asked. */
static int print_best(const table* t)
{
    const gmxfmm_measurement* best = &t->best;
    if (t->best.time <= 0)
    {
        complain(t->file->name, 0, "accuracy %g: none of the settings that were measured reaches it; ask for less",
                 t->options->solve.accuracy);
        return -1;
    }
    printf("best: --m2l %s --order %d --separation %d", gmxfmm_m2l_name(best->m2l), best->order, best->separation);
    if (best->depth >= 0 && t->options->solve.boundary == GMXFMM_OPEN)
    {
        printf(" --depth %d\n", best->depth);
    }
    else
    {
        printf(" --grid %d,%d,%d\n", best->grid[0], best->grid[1], best->grid[2]);
    }
    return 0;
}

/* Threads that a plan with these options has, or 0. */
static int num_threads(const gmxfmm_options* options)
{
    gmxfmm_options any;
    gmxfmm_plan*   plan = NULL;
    gmxfmm_info    info = {.size = sizeof(info)};
    gmxfmm_default_options(&any);
    any.boundary    = GMXFMM_OPEN;
    any.num_threads = options->num_threads;
    if (gmxfmm_create(&plan, &any, 1, NULL, NULL, 0) == GMXFMM_OK)
    {
        gmxfmm_get_info(plan, &info);
    }
    gmxfmm_destroy(plan);
    return info.num_threads;
}

static int plot(const table* t)
{
    plot_point  points[c_mostRows];
    char        title[160];
    const char* slash = strrchr(t->file->name, '/');
    for (int i = 0; i < t->num_rows; i++)
    {
        const gmxfmm_measurement* m = &t->rows[i];
        char                      cells[32];
        describe_cells(m, cells, sizeof(cells));
        points[i] = (plot_point){.order   = m->order,
                                 .error   = fmax(fmax(m->error, m->error_targets), 1e-17), /* exact: two charges, say */
                                 .ms      = 1e3 * m->time,
                                 .is_best = t->best.time > 0 && m->time == t->best.time && m->error == t->best.error};
        snprintf(points[i].name, sizeof(points[i].name), "%s %s%s", gmxfmm_m2l_name(m->m2l), cells,
                 m->separation == 2 ? ", ws 2" : "");
    }
    snprintf(title, sizeof(title), "%.60s: %lld particles, %s precision, threads: %d",
             slash ? slash + 1 : t->file->name, (long long)t->file->n,
             t->options->solve.precision == GMXFMM_DOUBLE ? "double" : "single", num_threads(&t->options->solve));
    return plot_write(t->options->plot, t->options->force, title, points, t->num_rows, t->options->solve.accuracy);
}

/* The reference, and the choice by measurement; with progress on a terminal, as both take a while. */
static gmxfmm_status
make_base(table* t, const gmxfmm_system* system, gmxfmm_reference** reference, char* message, size_t size)
{
    progress       p;
    gmxfmm_options options = t->options->solve;
    progress_begin(&p, t->options->quiet);
    progress_enter(&p, STAGE_MEASURE, 0);
    gmxfmm_status status = gmxfmm_reference_create(reference, &options, system, message, size);
    if (status == GMXFMM_OK)
    {
        status = gmxfmm_choose(*reference, &options, INFINITY, INFINITY, &t->base, NULL, NULL, message, size);
    }
    progress_end(&p);
    t->reference = *reference;
    return status;
}

static int print_all(table* t)
{
    printf("particles: %lld\n", (long long)t->file->n);
    if (t->num_targets > 0)
    {
        printf("targets: %lld\n", (long long)t->num_targets);
    }
    printf("accuracy: %g\n", t->options->solve.accuracy);
    printf("uncertainty: %.2g\n", gmxfmm_reference_uncertainty(t->reference));
    if (t->base.error_unit > 0)
    {
        printf("error_relative_to: %s\n", main_results_unit(t->options->solve.prefactor));
    }
    printf("%-10s %5s %13s %10s %12s %12s%s %12s\n", "method", "order", "cells", "separation", "predicted", "measured",
           t->num_targets > 0 ? "   at targets" : "", "ms per step");
    if (measure_all(t))
    {
        return -1;
    }
    const int failed = print_best(t);
    return (t->options->plot && plot(t)) || failed ? -1 : 0;
}

int main_error(const problem* all, const main_options* options)
{
    const charge_file*  file      = &all->charges;
    const gmxfmm_system system    = problem_system(all);
    gmxfmm_reference*   reference = NULL;
    char                message[512];
    table t = {.file = file, .options = options, .base = {.size = sizeof(t.base)}, .best = {.size = sizeof(t.best)}};
    int   status = 0;
    if (make_base(&t, &system, &reference, message, sizeof(message)) != GMXFMM_OK)
    {
        complain(file->name, 0, "%s", message);
        status = -1;
    }
    t.num_targets = all->targets.n;
    status        = status == 0 ? print_all(&t) : status;
    gmxfmm_reference_destroy(reference);
    return status;
}
