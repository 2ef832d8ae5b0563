/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that are complete or not there. A regular file is written under another name beside its own and renamed in the
 * end: a failure, or a signal that ends the program, leaves what was there before. A file that exists is overwritten
 * only where that is asked for. A pipe, a device and standard output, which "-" names, are written as they are. A name
 * that ends with .gz is gzipped.
 */
#ifndef GMXFMM_OUT_FILE_H
#define GMXFMM_OUT_FILE_H

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include "text_lines.h"

#define OUT_FILE_STOPS 3

typedef struct
{
    const char*      name;   /* for messages */
    char*            target; /* what the result is renamed to; NULL: written in place */
    char*            beside; /* what is written until then */
    int              must_be_new;
    FILE*            stream; /* for fprintf, but not of a gzipped file */
    void*            gzip;   /* zlib's; NULL: plain */
    int              cause;  /* errno of the first failure, or 0 */
    size_t           used;
    char             buffer[65536];
    struct sigaction before[OUT_FILE_STOPS];
} out_file;

/* Whether out_file_open could succeed now: what fails is better known before a long solve. Changes nothing. 0, or -1
 * after a complaint. */
int out_file_check(const char* name, int overwrite);

/* 0, or -1 after a complaint; then there is nothing to close. name must outlive the file. */
int out_file_open(out_file* out, const char* name, int overwrite);

void out_file_put(out_file* out, const void* data, size_t size);
void out_file_print(out_file* out, const char* format, ...) TEXT_LINES_PRINTF(2, 3);

/* n numbers to the last bit, a blank between two of them, `end` behind the last. */
void out_file_numbers(out_file* out, const double* value, int n, char end);

/* Whether there is no use in going on: a failure, or a signal. */
int out_file_is_over(const out_file* out);

/* Makes the file complete. 0, or -1 after a complaint. */
int out_file_close(out_file* out);

#endif
