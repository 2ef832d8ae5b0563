/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of a text file, plain or gzipped. */
#define _POSIX_C_SOURCE 200809L

#include "text_lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#define CHUNK 65536

static void print_clean(const char* text)
{
    for (; *text; text++)
    {
        fputc(iscntrl((unsigned char)*text) ? '?' : *text, stderr);
    }
}

void clear_progress(void)
{
    if (isatty(STDERR_FILENO))
    {
        fprintf(stderr, "\r%*s\r", TEXT_LINES_PROGRESS, "");
    }
}

void complain(const char* name, int64_t line, const char* format, ...)
{
    char    cause[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(cause, sizeof(cause), format, arguments);
    va_end(arguments);
    flockfile(stderr); /* a thread may show progress */
    clear_progress();
    fputs("gmxfmm: ", stderr);
    if (name)
    {
        print_clean(name);
        fputs(line > 0 ? ":" : ": ", stderr);
    }
    if (line > 0)
    {
        fprintf(stderr, "%lld: ", (long long)line);
    }
    print_clean(cause);
    fputc('\n', stderr);
    funlockfile(stderr);
}

int text_lines_no_memory(const text_lines* in)
{
    complain(in->name, in->line, "out of memory");
    return -1;
}

/* Appends up to one chunk to the data; -1 on failure. */
static int fill(text_lines* in)
{
    if (in->begin > 0)
    {
        memmove(in->data, in->data + in->begin, in->end - in->begin);
        in->end -= in->begin;
        in->begin = 0;
    }
    if (in->capacity - in->end < CHUNK + 1)
    {
        const size_t capacity = 2 * in->capacity + CHUNK + 1;
        char*        data     = (char*)realloc(in->data, capacity);
        if (!data)
        {
            return text_lines_no_memory(in);
        }
        in->data     = data;
        in->capacity = capacity;
    }
    errno           = 0;
    const int   got = gzread((gzFile)in->stream, in->data + in->end, CHUNK);
    int         status;
    const char* text = gzerror((gzFile)in->stream, &status);
    /* A gzip file cut short gives its bytes and Z_BUF_ERROR, so the status counts as well as the number of bytes. */
    if (got < 0 || (status != Z_OK && status != Z_STREAM_END))
    {
        complain(in->name, in->line + 1, "cannot be read: %s", status == Z_ERRNO ? strerror(errno) : text);
        return -1;
    }
    in->at_end = got < CHUNK;
    in->end += (size_t)got;
    return 0;
}

int text_lines_next(text_lines* in, char** text)
{
    size_t searched = 0;
    char*  newline  = NULL;

    for (;;)
    {
        if (in->end > in->begin + searched)
        {
            newline = (char*)memchr(in->data + in->begin + searched, '\n', in->end - in->begin - searched);
        }
        if (newline || in->at_end)
        {
            break;
        }
        searched = in->end - in->begin;
        if (fill(in))
        {
            return -1;
        }
    }
    if (in->begin == in->end)
    {
        return 0;
    }
    const size_t stop   = newline ? (size_t)(newline - in->data) : in->end;
    const size_t length = stop - in->begin;

    in->line++;
    *text          = in->data + in->begin;
    in->data[stop] = '\0'; /* there is room for one byte behind the data */
    in->begin      = newline ? stop + 1 : stop;
    if (in->line == 1 && (strncmp(*text, "\xff\xfe", 2) == 0 || strncmp(*text, "\xfe\xff", 2) == 0))
    {
        complain(in->name, in->line, "the file is UTF-16; save it as UTF-8 or plain ASCII");
        return -1;
    }
    if (memchr(*text, '\0', length))
    {
        complain(in->name, in->line, "contains a NUL byte: not a text file");
        return -1;
    }
    if (in->line == 1 && strncmp(*text, "\xef\xbb\xbf", 3) == 0)
    {
        *text += 3; /* the byte order mark of UTF-8 */
    }
    return 1;
}

int text_lines_open(text_lines* in, const char* name)
{
    memset(in, 0, sizeof(*in));
    const int standard = strcmp(name, "-") == 0;
    in->name           = standard ? "standard input" : name;
    errno              = 0;
    in->stream         = standard ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(name, "rb");
    if (!in->stream)
    {
        complain(in->name, 0, "cannot be opened: %s", errno ? strerror(errno) : "out of memory");
        return -1;
    }
    return 0;
}

void text_lines_close(text_lines* in)
{
    gzclose((gzFile)in->stream);
    free(in->data);
}
