/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that are complete or not there. */
#define _XOPEN_SOURCE 700 /* realpath */

#include "out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "number_write.h"
#include "words.h"

static const int stops[OUT_FILE_STOPS] = {SIGHUP, SIGINT, SIGTERM};

/* The signal that came while an unfinished file lay beside the output, or 0. A handler has nothing but such a variable
 * to tell of it. */
static volatile sig_atomic_t stopped_by;

static void note_stop(int number)
{
    stopped_by = number;
}

/* From here to restore_stops a first signal only stops the writing, a second one ends the program. Signals that the
 * caller has ignored stay so. */
static void catch_stops(struct sigaction before[OUT_FILE_STOPS])
{
    struct sigaction note = {.sa_handler = note_stop, .sa_flags = (int)SA_RESETHAND | SA_RESTART};

    sigemptyset(&note.sa_mask);
    stopped_by = 0;
    for (int i = 0; i < OUT_FILE_STOPS; i++)
    {
        sigaction(stops[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
        {
            sigaction(stops[i], &note, NULL);
        }
    }
}

static void restore_stops(const struct sigaction before[OUT_FILE_STOPS])
{
    for (int i = 0; i < OUT_FILE_STOPS; i++)
    {
        sigaction(stops[i], &before[i], NULL);
    }
}

static int complain_unwritten(const char* name, int cause)
{
    complain(name, 0, cause == EEXIST ? "exists already; --force overwrites it" : "cannot be written: %s",
             strerror(cause));
    return -1;
}

static int is_standard(const char* name)
{
    return strcmp(name, "-") == 0;
}

/* What a file of this name is renamed to in the end: the name, or what a link of this name leads to. NULL, with errno
 * 0, for what is no regular file: renaming would replace it. */
static char* find_target(const char* name)
{
    struct stat there;

    errno = 0;
    if (is_standard(name))
    {
        return NULL;
    }
    if (lstat(name, &there) != 0)
    {
        errno = 0; /* opening it will say what is wrong, if anything is */
        return strdup(name);
    }
    if (S_ISREG(there.st_mode))
    {
        return strdup(name);
    }
    if (S_ISLNK(there.st_mode) && stat(name, &there) == 0 && S_ISREG(there.st_mode))
    {
        return realpath(name, NULL);
    }
    errno = 0;
    return NULL;
}

/* A new file beside name: its descriptor and, in *path, its name (to be freed); or -1. */
static int open_beside(const char* name, char** path)
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
    if (file < 0)
    {
        const int cause = errno;
        free(*path);
        *path = NULL;
        errno = cause;
    }
    return file;
}

int out_file_check(const char* name, int overwrite)
{
    struct stat there;

    if (is_standard(name))
    {
        return 0;
    }
    const int exists = stat(name, &there) == 0;
    if (exists && (S_ISDIR(there.st_mode) || access(name, W_OK) != 0))
    {
        return complain_unwritten(name, S_ISDIR(there.st_mode) ? EISDIR : errno);
    }
    if (exists && S_ISREG(there.st_mode) && !overwrite)
    {
        return complain_unwritten(name, EEXIST);
    }
    char* target = find_target(name);
    if (!target)
    {
        return errno ? complain_unwritten(name, errno) : 0;
    }
    char*     beside;
    const int file  = open_beside(target, &beside);
    const int cause = errno;
    free(target);
    if (file < 0)
    {
        return complain_unwritten(name, cause);
    }
    close(file);
    remove(beside);
    free(beside);
    return 0;
}

/* Opens what is written, and the gzip stream if there is one. 0 or errno. */
static int open_streams(out_file* out, const char* name)
{
    const int file = is_standard(name) ? dup(STDOUT_FILENO)
                     : out->target     ? open_beside(out->target, &out->beside)
                                       : open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    out->stream = file < 0 ? NULL : fdopen(file, "w");
    if (!out->stream)
    {
        return errno;
    }
    if (words_end_with(name, strlen(name), ".gz"))
    {
        const int copy = dup(file);
        /* digits of random numbers: the next levels take several times as long and gain a few percent */
        out->gzip = copy < 0 ? NULL : gzdopen(copy, "wb1");
        if (!out->gzip)
        {
            return errno ? errno : ENOMEM;
        }
    }
    return 0;
}

/* What is left of a file that cannot be completed. */
static void give_up(out_file* out)
{
    if (out->beside)
    {
        remove(out->beside);
    }
    free(out->beside);
    free(out->target);
    if (out->target)
    {
        restore_stops(out->before);
    }
}

int out_file_open(out_file* out, const char* name, int overwrite)
{
    out->name        = is_standard(name) ? "standard output" : name;
    out->must_be_new = !overwrite;
    out->beside      = NULL;
    out->stream      = NULL;
    out->gzip        = NULL;
    out->cause       = 0;
    out->used        = 0;
    out->target      = find_target(name);
    if (!out->target && errno)
    {
        return complain_unwritten(out->name, errno);
    }
    if (out->target)
    {
        catch_stops(out->before);
    }
    const int cause = open_streams(out, name);
    if (cause != 0)
    {
        if (out->stream)
        {
            fclose(out->stream);
        }
        give_up(out);
        return complain_unwritten(out->name, cause);
    }
    return 0;
}

static void flush(out_file* out)
{
    errno = 0;
    if (out->used > 0 && out->cause == 0 &&
        (out->gzip ? gzwrite((gzFile)out->gzip, out->buffer, (unsigned)out->used) != (int)out->used
                   : fwrite(out->buffer, 1, out->used, out->stream) != out->used))
    {
        out->cause = errno ? errno : EIO;
    }
    out->used = 0;
}

void out_file_put(out_file* out, const void* data, size_t size)
{
    const char* from = (const char*)data;

    while (size > 0)
    {
        const size_t room = sizeof(out->buffer) - out->used;
        const size_t part = size < room ? size : room;
        memcpy(out->buffer + out->used, from, part);
        out->used += part;
        from += part;
        size -= part;
        if (out->used == sizeof(out->buffer))
        {
            flush(out);
        }
    }
}

void out_file_print(out_file* out, const char* format, ...)
{
    char    text[1024];
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    out_file_put(out, text, length < (int)sizeof(text) ? (size_t)length : sizeof(text) - 1);
}

void out_file_numbers(out_file* out, const double* value, int n, char end)
{
    for (int i = 0; i < n; i++)
    {
        if (sizeof(out->buffer) - out->used < NUMBER_LONGEST + 1)
        {
            flush(out);
        }
        char* text = number_write(out->buffer + out->used, value[i]);
        *text++    = i + 1 < n ? ' ' : end;
        out->used  = (size_t)(text - out->buffer);
    }
}

int out_file_is_over(const out_file* out)
{
    return out->cause != 0 || (out->target && stopped_by);
}

/* Gives the file its name. A link is made where no file may be there, since renaming would overwrite one. 0 or errno.
 */
static int rename_to_target(const out_file* out)
{
    if (!out->must_be_new)
    {
        return rename(out->beside, out->target) == 0 ? 0 : errno;
    }
    if (link(out->beside, out->target) == 0)
    {
        remove(out->beside);
        return 0;
    }
    if (errno == EEXIST)
    {
        return EEXIST;
    }
    /* a file system without links */
    struct stat there;
    return lstat(out->target, &there) == 0 ? EEXIST : rename(out->beside, out->target) == 0 ? 0 : errno;
}

int out_file_close(out_file* out)
{
    flush(out);
    errno = 0;
    if (out->gzip && gzclose((gzFile)out->gzip) != Z_OK && out->cause == 0)
    {
        out->cause = errno ? errno : EIO;
    }
    const int bad = ferror(out->stream);
    if ((fclose(out->stream) != 0 || bad) && out->cause == 0)
    {
        out->cause = errno ? errno : EIO;
    }
    const int is_stopped = out->target && stopped_by;
    if (out->cause == 0 && is_stopped)
    {
        out->cause = EINTR;
    }
    if (out->cause == 0 && out->target)
    {
        out->cause = rename_to_target(out);
        if (out->cause == 0)
        {
            free(out->beside);
            out->beside = NULL;
        }
    }
    give_up(out);
    if (is_stopped)
    {
        raise(stopped_by); /* as if it had not been caught */
    }
    return out->cause == 0 ? 0 : complain_unwritten(out->name, out->cause);
}
