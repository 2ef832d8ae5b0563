/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How far a long gmxfmm solve is: one line on stderr that is rewritten while it works, and seconds at its end. */
#ifndef GMXFMM_MAIN_PROGRESS_H
#define GMXFMM_MAIN_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "gmxfmm.h"

typedef enum
{
    STAGE_NONE = 0, /* between stages: stderr is free for others */
    STAGE_READ,
    STAGE_MEASURE,
    STAGE_SOLVE,
    STAGE_WRITE,
    NUM_STAGES
} progress_stage;

typedef struct
{
    double          start;
    double          since; /* of the stage */
    double          seconds[NUM_STAGES];
    int             on_terminal;
    int             has_thread; /* that draws the line */
    int             stop[2];    /* a pipe, closed to end the thread */
    pthread_t       thread;
    atomic_llong    rows; /* read or written so far, in this stage */
    pthread_mutex_t lock; /* of what follows */
    progress_stage  stage;
    int64_t         all_rows;
    int             is_shown; /* the line stands there */
} progress;

/* Starts the clock; the line is shown where stderr is a terminal, unless quiet. *p must stay where it is up to
 * progress_end. */
void progress_begin(progress* p, int quiet);

/* The stage that begins; all_rows: how many there will be, 0 if nobody knows. */
void progress_enter(progress* p, progress_stage stage, int64_t all_rows);

/* Stops the clock and clears the line. */
void progress_end(progress* p);

/* Whether a user waited at a terminal for so long that the times are of interest. After progress_end. */
int progress_was_long(const progress* p);

/* Stages and seconds on stderr, the parts of the solve as info has them. After progress_end. */
void progress_table(const progress* p, gmxfmm_device device, const gmxfmm_info* info);

#endif
