/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the benchmarks of point clouds share. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "gmxfmm.h"

/* Exits with the status's text and the message unless status is OK. */
void bench_check(gmxfmm_status status, const char* message);

/* Uniform numbers in [0, 1) from a seed, the same on every machine (splitmix64). */
double bench_random(unsigned long long* state);

/* n numbers, or exit. */
double* bench_numbers(size_t n);

/* The same as floats, of these numbers or, NULL, of any. */
float* bench_floats(size_t n, const double* numbers);

/* Memory of so many bytes, or exit. */
void* bench_memory(size_t bytes);

double bench_median(const double* values, int num);

/* Relative 2-norm of the difference. */
double bench_error(size_t n, const float* values, const float* reference);

/* A list like "0,2,4", or a range like "0..20", into values[max]; returns how many, exits if it is neither. */
int bench_list(const char* text, int* values, int max);

/* A number from a word of the command line, where 0 leaves it to the library: GMXFMM_AUTO. */
int bench_or_auto(const char* text);

/* What a word of the command line that begins with -- sets: a flag alone, others the next word. NULL: not this. */
typedef struct
{
    const char*  name;
    int*         flag; /* becomes 1 */
    int*         integer;
    double*      number;
    const char** text;
} bench_option;

/* Reads options up to the first word that is none and returns its place; exits with usage at one that is not there. */
int bench_read(int argc, char** argv, int num, const bench_option* options, const char* usage);

/* The method of that name, or exit. */
gmxfmm_m2l bench_method(const char* name);

/* Seconds of a steady clock. */
double bench_seconds(void);

#endif
