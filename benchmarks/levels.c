/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The copies of the step for x86-64-v2, v3 and v4 (as far as the processor has them) against a library compiled for
 * this processor, in one run: a step of each in turn, the order of turns moving on. levels LIBGMXFMM_NATIVE.SO [ROUNDS
 * [CHARGES]] One line of JSON on stdout for each case: the median over rounds of the time over the native one's in the
 * same round, and how far the results differ, RMS over that of the native ones.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cloud.h"

enum
{
    c_most   = 4, /* libraries and levels */
    c_renews = 3  /* times that plans are made anew: memory may lie well or badly */
};

/* What is called of a library. */
typedef struct
{
    const char* name;
    gmxfmm_status (*create)(gmxfmm_plan**, const gmxfmm_options*, int64_t, const double*, char*, size_t);
    gmxfmm_status (*set_charges)(gmxfmm_plan*, int64_t, const void*);
    gmxfmm_status (*assign)(gmxfmm_plan*, const void*);
    gmxfmm_status (*set_box)(gmxfmm_plan*, const double*);
    gmxfmm_status (*execute)(gmxfmm_plan*, const void*, gmxfmm_output*);
    void (*destroy)(gmxfmm_plan*);
} library;

static const char* const c_levels[] = {"v2", "v3", "v4"};

static void set_level(const char* name)
{
    if (name != NULL ? setenv("GMXFMM_SIMD", name, 1) : unsetenv("GMXFMM_SIMD"))
    {
        exit(1);
    }
}

static void* symbol(void* handle, const char* name)
{
    void* found = dlsym(handle, name);
    if (found == NULL)
    {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

static library open_native(const char* path)
{
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
    {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    library l = {.name = "native"};
    /* through memory: ISO C has no conversion of an object's address to a function's */
    *(void**)&l.create      = symbol(handle, "gmxfmm_create");
    *(void**)&l.set_charges = symbol(handle, "gmxfmm_set_charges");
    *(void**)&l.assign      = symbol(handle, "gmxfmm_assign");
    *(void**)&l.set_box     = symbol(handle, "gmxfmm_set_box");
    *(void**)&l.execute     = symbol(handle, "gmxfmm_execute");
    *(void**)&l.destroy     = symbol(handle, "gmxfmm_destroy");
    return l;
}

static int compare(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double median(double* values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare);
    return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

typedef struct
{
    const char*    name;
    gmxfmm_options options;
    int            new_box; /* in each step */
    int            share;   /* of the charges, one of so many */
} test_case;

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double step(const library* l, gmxfmm_plan* plan, const test_case* c, int round, const void* x, double* out)
{
    const double  edge   = round % 2 == 0 ? 1 : 1.001;
    const double  box[9] = {1, 0, 0, 0, 1, 0, 0, 0, edge};
    gmxfmm_output output = {.size = sizeof(output), .field = out};
    const double  begin  = processor_seconds();
    bench_check(c->new_box ? l->set_box(plan, box) : GMXFMM_OK, l->name);
    bench_check(l->execute(plan, x, &output), l->name);
    return processor_seconds() - begin;
}

static void run(const library* libraries, int num, const test_case* c, int rounds, size_t n)
{
    cloud        points = cloud_make(n / (size_t)c->share, GMXFMM_DOUBLE, -1, 1);
    const double box[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const int    all    = c_renews * rounds;
    double *     time[c_most], *out[c_most], difference[c_most] = {0};
    gmxfmm_plan* plan[c_most];
    char         message[256];
    for (int k = 0; k < num; k++)
    {
        time[k] = bench_numbers((size_t)all);
        out[k]  = bench_numbers(3 * points.n);
    }
    for (int renew = 0; renew < c_renews; renew++)
    {
        for (int k = 0; k < num; k++)
        {
            set_level(k > 0 ? libraries[k].name : NULL);
            const library* l = &libraries[k];
            bench_check(l->create(&plan[k], &c->options, (int64_t)points.n,
                                  c->options.boundary == GMXFMM_OPEN ? NULL : box, message, sizeof(message)),
                        message);
            bench_check(l->set_charges(plan[k], (int64_t)points.n, points.q), l->name);
            bench_check(l->assign(plan[k], points.x), l->name);
            step(l, plan[k], c, 0, points.x, out[k]);
        }
        for (int round = 0; round < rounds; round++)
        {
            for (int turn = 0; turn < num; turn++)
            {
                const int k                     = (turn + round) % num;
                time[k][renew * rounds + round] = step(&libraries[k], plan[k], c, round, points.x, out[k]);
            }
        }
        for (int k = 0; k < num; k++)
        {
            double sum = 0, scale = 0;
            for (size_t i = 0; i < 3 * points.n; i++)
            {
                sum += (out[k][i] - out[0][i]) * (out[k][i] - out[0][i]);
                scale += out[0][i] * out[0][i];
            }
            difference[k] = fmax(difference[k], sqrt(sum / scale));
            libraries[k].destroy(plan[k]);
        }
    }
    printf("{\"case\": \"%s\", \"charges\": %zu, \"rounds\": %d, \"over_native\": {", c->name, points.n, all);
    double* ratio = bench_numbers((size_t)all);
    for (int k = 1; k < num; k++)
    {
        for (int i = 0; i < all; i++)
        {
            ratio[i] = time[k][i] / time[0][i];
        }
        printf("%s\"%s\": %.4f", k > 1 ? ", " : "", libraries[k].name, median(ratio, all));
    }
    printf("}, \"difference\": {");
    for (int k = 1; k < num; k++)
    {
        printf("%s\"%s\": %.2g", k > 1 ? ", " : "", libraries[k].name, difference[k]);
    }
    printf("}, \"native_ms\": %.3f}\n", 1e3 * median(time[0], all));
    fflush(stdout);
    for (int k = 0; k < num; k++)
    {
        free(time[k]);
        free(out[k]);
    }
    free(ratio);
    cloud_free(&points);
}

int main(int argc, char** argv)
{
    if (argc < 2)
    {
        fprintf(stderr, "usage: %s LIBGMXFMM_NATIVE.SO [ROUNDS [CHARGES]]\n", argv[0]);
        return 2;
    }
    const int      rounds = argc > 2 ? atoi(argv[2]) : 15;
    const size_t   n      = argc > 3 ? (size_t)atoll(argv[3]) : 100000;
    gmxfmm_options standard;
    gmxfmm_default_options(&standard);
    standard.num_threads      = 1;
    library libraries[c_most] = {open_native(argv[1])};
    int     num               = 1;
    for (size_t k = 0; k < sizeof(c_levels) / sizeof(c_levels[0]); k++)
    {
        gmxfmm_plan* plan = NULL;
        gmxfmm_info  info = {.size = sizeof(info)};
        set_level(c_levels[k]);
        standard.boundary = GMXFMM_OPEN;
        if (gmxfmm_create(&plan, &standard, 1, NULL, NULL, 0) == GMXFMM_OK &&
            gmxfmm_get_info(plan, &info) == GMXFMM_OK && strcmp(info.simd, c_levels[k]) == 0)
        {
            libraries[num++] = (library){c_levels[k],    gmxfmm_create,  gmxfmm_set_charges, gmxfmm_assign,
                                         gmxfmm_set_box, gmxfmm_execute, gmxfmm_destroy};
        }
        gmxfmm_destroy(plan);
    }
    standard.boundary = GMXFMM_TINFOIL;

    test_case cases[] = {
        {"fft, single", standard, 0, 1},
        {"fft, double, 1e-8", standard, 0, 1},
        {"fft, single, a box a step", standard, 1, 1},
        {"rotation, single", standard, 0, 1},
        {"symmetric, double", standard, 0, 1},
        {"treecode, double", standard, 0, 4},
        {"treecode, single", standard, 0, 4},
        {"treecode, yukawa, double", standard, 0, 4},
        {"treecode, dual, double", standard, 0, 4},
    };
    cases[1].options.precision = cases[4].options.precision = GMXFMM_DOUBLE;
    cases[1].options.accuracy                               = 1e-8;
    cases[3].options.m2l                                    = GMXFMM_M2L_ROTATION;
    cases[4].options.m2l                                    = GMXFMM_M2L_SYMMETRIC;
    for (int i = 5; i < 9; i++)
    {
        cases[i].options.method    = GMXFMM_TREECODE;
        cases[i].options.boundary  = GMXFMM_OPEN;
        cases[i].options.precision = i == 6 ? GMXFMM_SINGLE : GMXFMM_DOUBLE;
    }
    cases[7].options.kernel    = GMXFMM_YUKAWA;
    cases[7].options.kappa     = 2;
    cases[8].options.traversal = GMXFMM_DUAL;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    {
        run(libraries, num, &cases[i], rounds, n);
    }
    return 0;
}
