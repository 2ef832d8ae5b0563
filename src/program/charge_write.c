/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writing of point-charge files. */
#define _POSIX_C_SOURCE 200809L

#include "charge_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text_lines.h"

#define NUM_STOPS 3
static const int stops[NUM_STOPS] = {SIGHUP, SIGINT, SIGTERM};

/* The signal that came while an unfinished file lay beside the output, or 0. A handler has nothing but such a variable
 * to tell of it. */
static volatile sig_atomic_t stopped_by;

static void note_stop(int number)
{
    stopped_by = number;
}

/* From here to restore_stops a first signal only stops the writing, a second one ends the program. Signals that the
 * caller has ignored stay so. */
static void catch_stops(struct sigaction before[NUM_STOPS])
{
    struct sigaction note = {.sa_handler = note_stop, .sa_flags = (int)SA_RESETHAND | SA_RESTART};

    sigemptyset(&note.sa_mask);
    stopped_by = 0;
    for (int i = 0; i < NUM_STOPS; i++)
    {
        sigaction(stops[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
        {
            sigaction(stops[i], &note, NULL);
        }
    }
}

static void restore_stops(const struct sigaction before[NUM_STOPS])
{
    for (int i = 0; i < NUM_STOPS; i++)
    {
        sigaction(stops[i], &before[i], NULL);
    }
}

static void
write_header(FILE* out, const charge_file* file, gmxfmm_boundary boundary, gmxfmm_kernel kernel, double kappa)
{
    if (file->comments)
    {
        fputs(file->comments, out);
    }
    if (file->box_line > 0)
    {
        fputs("# box:", out);
        for (int i = 0; i < 9; i++)
        {
            fprintf(out, " %.17g", file->box[i]);
        }
        fputc('\n', out);
    }
    fputs(file->periodic ? "# periodic: 1 1 1\n" : "# periodic: 0 0 0\n", out);
    if (file->periodic)
    {
        fprintf(out, "# boundary: %s\n", boundary == GMXFMM_VACUUM ? "vacuum" : "tinfoil");
    }
    if (kernel == GMXFMM_YUKAWA)
    {
        fprintf(out, "# kernel: yukawa %.17g\n", kappa);
    }
    fputs("# reference_method: gmxfmm\n# columns: x y z q potential fx fy fz\n", out);
}

static void
write_rows(FILE* out, const charge_file* file, const double* potential, const double* field, atomic_llong* rows)
{
    for (int64_t i = 0; i < file->n && !ferror(out) && !stopped_by; i++)
    {
        const double* x = file->x + 3 * i;
        const double* e = field + 3 * i;
        fprintf(out, "%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", x[0], x[1], x[2], file->q[i], potential[i],
                e[0], e[1], e[2]);
        if (rows)
        {
            atomic_store_explicit(rows, i + 1, memory_order_relaxed);
        }
    }
}

/* What is not a regular file (a pipe, a device, a link) is written in place: renaming would replace it. */
static int is_in_place(const char* name)
{
    struct stat there;
    return lstat(name, &there) == 0 && !S_ISREG(there.st_mode);
}

/* A new file beside name: its stream and, in *path, its name (to be freed). */
static FILE* open_beside(const char* name, char** path)
{
    const size_t size = strlen(name) + 32;
    int          file = -1;

    *path = (char*)malloc(size);
    for (int attempt = 0; *path && file < 0 && attempt < 100; attempt++)
    {
        snprintf(*path, size, "%s.%ld-%d", name, (long)getpid(), attempt);
        /* not mkstemp, which takes the rights of group and others away from the result */
        file = open(*path, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (file < 0 && errno != EEXIST)
        {
            break;
        }
    }
    FILE* out = file < 0 ? NULL : fdopen(file, "w");
    if (!out)
    {
        free(*path);
        *path = NULL;
    }
    return out;
}

static int complain_unwritten(const char* name, int cause)
{
    complain(name, 0, "cannot be written: %s", strerror(cause));
    return -1;
}

int charge_file_check_output(const char* name)
{
    struct stat there;

    if (stat(name, &there) == 0 && (S_ISDIR(there.st_mode) || access(name, W_OK) != 0))
    {
        return complain_unwritten(name, S_ISDIR(there.st_mode) ? EISDIR : errno);
    }
    if (!is_in_place(name))
    {
        char* beside;
        FILE* out = open_beside(name, &beside);
        if (!out)
        {
            return complain_unwritten(name, errno);
        }
        fclose(out);
        remove(beside);
        free(beside);
    }
    return 0;
}

/* Writes and closes; 0 or the errno of what failed. */
static int write_all(FILE*              out,
                     const charge_file* file,
                     gmxfmm_boundary    boundary,
                     gmxfmm_kernel      kernel,
                     double             kappa,
                     const double*      potential,
                     const double*      field,
                     atomic_llong*      rows)
{
    errno = 0;
    write_header(out, file, boundary, kernel, kappa);
    write_rows(out, file, potential, field, rows);
    const int cause = !ferror(out) ? 0 : errno ? errno : EIO;
    return fclose(out) != 0 && cause == 0 ? errno : cause;
}

int charge_file_write(const char*        name,
                      const charge_file* file,
                      gmxfmm_boundary    boundary,
                      gmxfmm_kernel      kernel,
                      double             kappa,
                      const double*      potential,
                      const double*      field,
                      atomic_llong*      rows)
{
    struct sigaction before[NUM_STOPS];
    char*            beside = NULL;

    if (is_in_place(name))
    {
        FILE*     out   = fopen(name, "w");
        const int cause = out ? write_all(out, file, boundary, kernel, kappa, potential, field, rows) : errno;
        return cause == 0 ? 0 : complain_unwritten(name, cause);
    }
    catch_stops(before);
    FILE* out   = open_beside(name, &beside);
    int   cause = out ? write_all(out, file, boundary, kernel, kappa, potential, field, rows) : errno;
    if (cause == 0 && stopped_by)
    {
        cause = EINTR;
    }
    if (cause == 0 && rename(beside, name) != 0)
    {
        cause = errno;
    }
    if (cause != 0 && beside)
    {
        remove(beside);
    }
    free(beside);
    restore_stops(before);
    if (stopped_by)
    {
        raise(stopped_by); /* as if it had not been caught */
    }
    return cause == 0 ? 0 : complain_unwritten(name, cause);
}
