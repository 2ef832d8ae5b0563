/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Progress of long computations, on a terminal. */
#include "main_progress.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "text_lines.h"

static const double c_long  = 2;   /* seconds that nobody minds */
static const int    c_every = 250; /* milliseconds from one line to the next */

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void describe(const progress* p, char* text, size_t size)
{
    static const char* const names[NUM_STAGES] = {"", "reading", "measuring", "solving", "writing"};
    const long long          rows              = atomic_load_explicit(&p->rows, memory_order_relaxed);
    char                     share[32]         = "";

    if (p->all_rows > 0)
    {
        snprintf(share, sizeof(share), ", %.0f %%", floor(100 * (double)rows / (double)p->all_rows));
    }
    else if (p->stage == STAGE_READ)
    {
        snprintf(share, sizeof(share), ", %lld rows", rows);
    }
    snprintf(text, size, "gmxfmm: %s%s (%.0f s)", names[p->stage], share, floor(seconds_now() - p->start));
}

/* A job in the background would write into what its user types. */
static int is_in_foreground(void)
{
    const pid_t there = tcgetpgrp(STDERR_FILENO);
    return there < 0 || there == getpgrp();
}

static void draw(progress* p)
{
    char text[TEXT_LINES_PROGRESS + 1];

    pthread_mutex_lock(&p->lock);
    if (p->stage != STAGE_NONE && seconds_now() - p->start > c_long && is_in_foreground())
    {
        describe(p, text, sizeof(text));
        fprintf(stderr, "\r%-*s\r", TEXT_LINES_PROGRESS, text);
        p->is_shown = 1;
    }
    pthread_mutex_unlock(&p->lock);
}

/* A thread, since neither the library nor a read that waits calls back. */
static void* draw_until_stopped(void* data)
{
    progress*     p    = (progress*)data;
    struct pollfd stop = {.fd = p->stop[0]};

    while (poll(&stop, 1, c_every) == 0)
    {
        draw(p);
    }
    return NULL;
}

static void start_thread(progress* p)
{
    sigset_t all, before;

    if (pipe(p->stop) != 0)
    {
        return;
    }
    sigfillset(&all); /* signals are for the one that works */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    p->has_thread = pthread_create(&p->thread, NULL, draw_until_stopped, p) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!p->has_thread)
    {
        close(p->stop[0]);
        close(p->stop[1]);
    }
}

void progress_begin(progress* p, int quiet)
{
    memset(p, 0, sizeof(*p));
    atomic_init(&p->rows, 0);
    pthread_mutex_init(&p->lock, NULL);
    p->start       = seconds_now();
    p->since       = p->start;
    p->on_terminal = !quiet && isatty(STDERR_FILENO);
    if (p->on_terminal)
    {
        start_thread(p);
    }
}

void progress_enter(progress* p, progress_stage stage, int64_t all_rows)
{
    const double now = seconds_now();

    pthread_mutex_lock(&p->lock);
    p->seconds[p->stage] += now - p->since;
    p->since    = now;
    p->stage    = stage;
    p->all_rows = all_rows;
    atomic_store_explicit(&p->rows, 0, memory_order_relaxed);
    if (stage == STAGE_NONE && p->is_shown)
    {
        clear_progress();
        p->is_shown = 0;
    }
    pthread_mutex_unlock(&p->lock);
}

void progress_end(progress* p)
{
    progress_enter(p, STAGE_NONE, 0);
    if (p->has_thread)
    {
        close(p->stop[1]);
        pthread_join(p->thread, NULL);
        close(p->stop[0]);
        p->has_thread = 0;
    }
    pthread_mutex_destroy(&p->lock);
}

int progress_was_long(const progress* p)
{
    return p->on_terminal && p->since - p->start > c_long;
}

/* Stages that did not take place have no line. */
static void print_row(const char* name, double seconds)
{
    if (seconds > 0)
    {
        fprintf(stderr, "%-28s %9.3f\n", name, seconds);
    }
}

static void print_parts(gmxfmm_device device, const gmxfmm_info* info, double solve)
{
    const struct
    {
        const char* name;
        double      seconds;
    } parts[] = {
        {"  assign", info->time_assign},
        {"  near field", info->time_near},
        {"  modified charges", info->time_charges},
        {"  sums", info->time_sums},
        {"  far: lattice sums", info->time_spectra},
        {"  far: sort positions", info->time_permute},
        {"  far: P2M", info->time_p2m},
        {"  far: M2M", info->time_m2m},
        {"  far: M2L", info->time_m2l},
        {"  far: L2L", info->time_l2l},
        {"  far: L2P", info->time_l2p},
        /* near and far field overlap on a GPU, and the library has one time for both */
        {device == GMXFMM_CUDA ? "  near and far field" : "  far: output", info->time_output},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
    {
        print_row(parts[i].name, parts[i].seconds);
        solve -= parts[i].seconds;
    }
    print_row("  plan and rest", solve);
}

void progress_table(const progress* p, gmxfmm_device device, const gmxfmm_info* info)
{
    fprintf(stderr, "%-28s %9s\n", "stage", "seconds");
    print_row("read", p->seconds[STAGE_READ]);
    print_row("measure", p->seconds[STAGE_MEASURE]);
    print_row("solve", p->seconds[STAGE_SOLVE]);
    print_parts(device, info, p->seconds[STAGE_SOLVE]);
    print_row("write", p->seconds[STAGE_WRITE]);
    print_row("total", p->since - p->start);
}
