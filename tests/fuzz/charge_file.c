/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a file of charges in each format, and as one of excluded pairs (scripts/fuzz-reader.sh): what the
 * readers accept has to be what their headers say, and neither sanitizer may complain. The work folder gets a link for
 * each ending. With libFuzzer, or with a main of its own that mutates the seeds: fuzz_charge_file SECONDS SEED_FILE...
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "program/charge_read.h"

int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size);

enum
{
    c_file = 100 /* descriptor of the file in memory, and its path: */
};
#define FILE_PATH "/proc/self/fd/100"

/* Stops if what should be finite is not. */
static void expect_finite(const double* values, int64_t n)
{
    for (int64_t i = 0; i < n && values != NULL; i++)
    {
        if (!isfinite(values[i]))
        {
            abort();
        }
    }
}

static void read_and_check(const char* name)
{
    const exclusions none = {0};
    charge_file      file;
    atomic_llong     rows = 0;
    if (charge_read(name, &file, &rows) == 0)
    {
        if (file.n < 1)
        {
            abort();
        }
        expect_finite(file.x, 3 * file.n);
        expect_finite(file.q, file.n);
        expect_finite(file.potential, file.n);
        expect_finite(file.field, 3 * file.n);
        expect_finite(file.box, file.has_box ? 9 : 0);
        if (charge_file_check_box(&file) == 0)
        {
            charge_file_check_places(&file, &none);
        }
    }
    charge_file_free(&file);
}

/* Of four particles. */
static void read_pairs(const char* name)
{
    exclusions e;
    if (exclusions_read(name, 4, &e) == 0 && e.start != NULL)
    {
        for (int k = e.start[0]; k < e.start[4]; k++)
        {
            if (e.list[k] < 0 || e.list[k] >= 4)
            {
                abort();
            }
        }
    }
    exclusions_free(&e);
}

int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size)
{
    static const char* const names[] = {"charges", "charges.xyz", "charges.pqr", "charges.npy"};
    const int                made    = memfd_create("charges", 0);
    if (made < 0 || dup2(made, c_file) != c_file || close(made) != 0 || write(c_file, data, size) != (ssize_t)size)
    {
        exit(1);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    {
        if (symlink(FILE_PATH, names[i]) != 0 && errno != EEXIST)
        {
            exit(1);
        }
        read_and_check(names[i]);
    }
    read_pairs(names[0]);
    close(c_file);
    return 0;
}

#ifdef FUZZ_MAIN

enum
{
    c_room = 4096
};

/* splitmix64 */
static unsigned long long next(unsigned long long* state)
{
    unsigned long long z = *state += 0x9E3779B97F4A7C15ULL;
    z                    = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z                    = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

/* Some bytes changed, cut out, doubled, or words that mean something put in; the new size. */
static size_t mutate(unsigned char* text, size_t size, unsigned long long* state)
{
    static const char* const words[] = {"nan",  "1e999", "-", "#", "# box:", "\n", "periodic: 1 1 1", "kernel: yukawa",
                                        "0x1p9"};
    for (int times = 1 + (int)(next(state) % 4); times > 0 && size > 1; times--)
    {
        const size_t at = next(state) % size, length = 1 + next(state) % (size - at);
        const char*  word = words[next(state) % (sizeof(words) / sizeof(words[0]))];
        switch (next(state) % 4)
        {
        case 0:
            text[at] = (unsigned char)next(state);
            break;
        case 1:
            memmove(text + at, text + at + length, size - at - length);
            size -= length;
            break;
        case 2:
            if (size + length <= c_room)
            {
                memmove(text + at + length, text + at, size - at);
                size += length;
            }
            break;
        default:
            for (size_t i = 0; word[i] != '\0' && at + i < size; i++)
            {
                text[at + i] = (unsigned char)word[i];
            }
        }
    }
    return size;
}

int main(int argc, char** argv)
{
    const time_t       end   = time(NULL) + (argc > 1 ? atoi(argv[1]) : 60);
    unsigned long long state = 1;
    long               runs  = 0;
    for (; argc > 2 && time(NULL) < end; runs++)
    {
        unsigned char text[c_room];
        FILE*         seed = fopen(argv[2 + next(&state) % (unsigned long long)(argc - 2)], "rb");
        size_t        size = seed != NULL ? fread(text, 1, sizeof(text), seed) : 0;
        if (seed == NULL || fclose(seed) != 0)
        {
            return 2;
        }
        size = mutate(text, size, &state);
        LLVMFuzzerTestOneInput(text, size);
    }
    printf("%ld files\n", runs);
    return runs == 0;
}

#endif
