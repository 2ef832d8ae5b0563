/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void bench_check(gmxfmm_status status, const char* message)
{
    if (status != GMXFMM_OK)
    {
        fprintf(stderr, "%s: %s\n", gmxfmm_status_text(status), message);
        exit(1);
    }
}

double bench_random(unsigned long long* state)
{
    unsigned long long z = (*state += 0x9e3779b97f4a7c15ULL);
    z                    = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z                    = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z                    = z ^ (z >> 31);
    return (double)(z >> 11) * 0x1p-53;
}

void* bench_memory(size_t bytes)
{
    void* memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL)
    {
        fprintf(stderr, "out of memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

double* bench_numbers(size_t n)
{
    return bench_memory(n * sizeof(double));
}

float* bench_floats(size_t n, const double* numbers)
{
    float* floats = bench_memory(n * sizeof(float));
    for (size_t i = 0; i < n && numbers != NULL; i++)
    {
        floats[i] = (float)numbers[i];
    }
    return floats;
}

static int compare_numbers(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

double bench_median(const double* values, int num)
{
    double* sorted = bench_numbers((size_t)num);
    memcpy(sorted, values, (size_t)num * sizeof(double));
    qsort(sorted, (size_t)num, sizeof(double), compare_numbers);
    const double middle = num % 2 ? sorted[num / 2] : 0.5 * (sorted[num / 2 - 1] + sorted[num / 2]);
    free(sorted);
    return middle;
}

double bench_error(size_t n, const float* values, const float* reference)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++)
    {
        const double d = (double)values[i] - (double)reference[i];
        difference += d * d;
        norm += (double)reference[i] * (double)reference[i];
    }
    return sqrt(difference / norm);
}

int bench_list(const char* text, int* values, int max)
{
    int   num = 0, first, last, used = 0;
    char* rest;
    if (sscanf(text, "%d..%d%n", &first, &last, &used) == 2 && text[used] == '\0')
    {
        for (int k = first; k <= last && num < max; k++)
        {
            values[num++] = k;
        }
        return num;
    }
    for (const char* at = text; num < max; at = rest + 1)
    {
        values[num++] = (int)strtol(at, &rest, 10);
        if (rest == at || (*rest != ',' && *rest != '\0'))
        {
            fprintf(stderr, "'%s' is no list of integers\n", text);
            exit(2);
        }
        if (*rest == '\0')
        {
            break;
        }
    }
    return num;
}

int bench_or_auto(const char* text)
{
    const int number = atoi(text);
    return number == 0 ? GMXFMM_AUTO : number;
}

int bench_read(int argc, char** argv, int num, const bench_option* options, const char* usage)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++)
    {
        int k = 0;
        while (k < num && strcmp(argv[i], options[k].name) != 0)
        {
            k++;
        }
        if (k == num || (options[k].flag == NULL && i + 1 == argc))
        {
            fprintf(stderr, "%s: usage: %s\n", argv[i], usage);
            exit(2);
        }
        if (options[k].flag != NULL)
        {
            *options[k].flag = 1;
            continue;
        }
        const char* value = argv[++i];
        if (options[k].integer != NULL)
        {
            *options[k].integer = atoi(value);
        }
        else if (options[k].number != NULL)
        {
            *options[k].number = atof(value);
        }
        else
        {
            *options[k].text = value;
        }
    }
    return i;
}

gmxfmm_m2l bench_method(const char* name)
{
    for (int m2l = GMXFMM_M2L_AUTO; m2l <= GMXFMM_M2L_NAIVE; m2l++)
    {
        if (strcmp(gmxfmm_m2l_name((gmxfmm_m2l)m2l), name) == 0)
        {
            return (gmxfmm_m2l)m2l;
        }
    }
    fprintf(stderr, "unknown method '%s'\n", name);
    exit(2);
}

double bench_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
