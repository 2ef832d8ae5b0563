/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A text file, plain or gzipped, line by line; and the one line on stderr that a failure gets. */
#ifndef GMXFMM_TEXT_LINES_H
#define GMXFMM_TEXT_LINES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#    define TEXT_LINES_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#    define TEXT_LINES_PRINTF(text, first)
#endif

typedef struct
{
    const char* name;   /* for messages */
    int64_t     line;   /* number of the line last given out */
    void*       stream; /* zlib's */
    char*       data;   /* begin .. end: read, not yet given out */
    size_t      begin;
    size_t      end;
    size_t      capacity;
    int         at_end;
} text_lines;

/* name "-" is standard input. 0, or -1 after a complaint. name must outlive the lines. */
int text_lines_open(text_lines* in, const char* name);

/* 1 and the next line without its end and without a byte order mark (it may be changed, and lives until the next call),
 * 0 at the end of the file, -1 after a complaint. */
int text_lines_next(text_lines* in, char** text);

void text_lines_close(text_lines* in);

/* Complains about memory at the current line; -1. */
int text_lines_no_memory(const text_lines* in);

/* Columns of a line of progress on stderr, which leaves the cursor before it. */
enum
{
    TEXT_LINES_PROGRESS = 48
};

/* Blanks these columns where stderr is a terminal. */
void clear_progress(void);

/* One line on stderr, instead of progress if that is there: gmxfmm: name:line: cause; name may be NULL and line 0.
 * Control characters are shown as '?'. */
void complain(const char* name, int64_t line, const char* format, ...) TEXT_LINES_PRINTF(3, 4);

#endif
