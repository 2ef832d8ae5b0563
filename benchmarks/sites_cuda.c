/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lennard-Jones of groups at their centres (gmxfmm_sites.h) on a GPU:
 *   sites_cuda FILE.GRO [COPIES] [--atoms]
 * A heavy atom and the hydrogens after it, whose names begin with H, are a group. Each first letter of heavy atoms has
 * a type, with parameters of the size that dispersion has in water. Copies: of the box along each vector. One line of
 * JSON on stdout. With --atoms each atom is a group of its own, without an inner range, with excluded pairs: those of a
 * molecule of three atoms whose first one is O and the others H, otherwise three neighbours in the file to each side. A
 * line each for two cut-offs and two reaches. Times are by events: of a search the median of 20, with its wait; of a
 * step with forces alone, and of one with energy and virial, the mean of 200 in flight. force_difference is the largest
 * difference of a component of a force from the CPU's in double precision, relative to the root of the mean square of
 * components.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_step.h"
#include "gmxfmm_sites.h"

enum
{
    c_steps    = 200,
    c_searches = 20,
    c_letters  = 26
};

/* What a file has, and groups. */
typedef struct
{
    int             atoms, groups, types;
    double *        x, *weight, *c6, *c12, box[9];
    int *           start, *atom, *type;
    int *           exclusion_start, *exclusion; /* of atoms */
    gmxfmm_lj_range outer, inner;
    double          reach;
} molecules;

static void die(const char* file, const char* what)
{
    fprintf(stderr, "%s: %s\n", file, what);
    exit(2);
}

/* The first letter of an atom's name in a line of a .gro file, which may begin with digits. */
static int first_letter(const char* line)
{
    for (int i = 10; i < 15; i++)
    {
        if (isalpha((unsigned char)line[i]))
        {
            return toupper((unsigned char)line[i]);
        }
    }
    return 'X';
}

/* Reads atoms: positions, and letters of names. */
static void read_atoms(FILE* f, const char* file, molecules* m, char* letter)
{
    char line[256];
    for (int i = 0; i < m->atoms; i++)
    {
        if (!fgets(line, sizeof(line), f) || strlen(line) < 44 ||
            sscanf(line + 20, "%8lf%8lf%8lf", m->x + 3 * i, m->x + 3 * i + 1, m->x + 3 * i + 2) != 3)
        {
            die(file, "ends early");
        }
        letter[i] = (char)first_letter(line);
    }
    double    v[9] = {0};
    const int num  = fgets(line, sizeof(line), f) ? sscanf(line, "%lf %lf %lf %lf %lf %lf %lf %lf %lf", v, v + 1, v + 2,
                                                           v + 3, v + 4, v + 5, v + 6, v + 7, v + 8)
                                                  : 0;
    if (num != 3 && num != 9)
    {
        die(file, "has no box");
    }
    /* xx yy zz xy xz yx yz zx zy */
    const double box[9] = {v[0], 0, 0, v[5], v[1], 0, v[7], v[8], v[2]};
    memcpy(m->box, box, sizeof(box));
}

/* The first atom of the water that atom i belongs to, or -1. */
static int water_of(const char* letter, int atoms, int i)
{
    int first = i;
    while (first > 0 && first > i - 2 && letter[first] == 'H')
    {
        first--;
    }
    const int has_three = letter[first] == 'O' && first + 2 < atoms && letter[first + 1] == 'H' &&
                          letter[first + 2] == 'H' && (first + 3 == atoms || letter[first + 3] != 'H');
    return has_three && i - first < 3 ? first : -1;
}

static void make_exclusions(molecules* m, const char* letter)
{
    const int reach    = 3;
    int       num      = 0;
    m->exclusion_start = bench_memory(((size_t)m->atoms + 1) * sizeof(int));
    m->exclusion       = bench_memory((size_t)m->atoms * 6 * sizeof(int));
    for (int i = 0; i < m->atoms; i++)
    {
        const int water       = water_of(letter, m->atoms, i);
        m->exclusion_start[i] = num;
        for (int j = i - reach; j <= i + reach; j++)
        {
            if (j >= 0 && j < m->atoms && j != i && water_of(letter, m->atoms, j) == water)
            {
                m->exclusion[num++] = j;
            }
        }
    }
    m->exclusion_start[m->atoms] = num;
}

/* Groups of atoms with these letters, and the types; all_atoms: each atom is one. */
static void make_groups(molecules* m, const char* letter, int all_atoms)
{
    int of[c_letters];
    for (int k = 0; k < c_letters; k++)
    {
        of[k] = -1;
    }
    for (int i = 0; i < m->atoms; i++)
    {
        if (i == 0 || all_atoms || letter[i] != 'H')
        {
            const int k           = letter[i] - 'A';
            of[k]                 = of[k] < 0 ? m->types++ : of[k];
            m->type[m->groups]    = of[k];
            m->start[m->groups++] = i;
        }
        m->atom[i] = i;
    }
    m->start[m->groups] = m->atoms;
    for (int g = 0; g < m->groups; g++)
    {
        const int first = m->start[g], num = m->start[g + 1] - first;
        for (int k = 0; k < num; k++)
        {
            m->weight[first + k] = num == 1 ? 1 : k == 0 ? 0.9 : 0.1 / (num - 1);
        }
    }
}

/* Dispersion of water's oxygen, and some more or less for others. */
static void make_parameters(molecules* m)
{
    const size_t n = (size_t)m->types;
    m->c6          = bench_numbers(n * n);
    m->c12         = bench_numbers(n * n);
    for (int a = 0; a < m->types; a++)
    {
        for (int b = 0; b < m->types; b++)
        {
            const double scale                = 1 + 0.1 * (a + b);
            m->c6[(size_t)a * n + (size_t)b]  = 2.6e-3 * scale;
            m->c12[(size_t)a * n + (size_t)b] = 2.6e-6 * scale * scale;
        }
    }
}

/* Copies the box's atoms along its vectors. letter: of all atoms. */
static void copy_box(molecules* m, char* letter, int unit, int copies)
{
    for (int i = unit; i < m->atoms; i++)
    {
        const int copy = i / unit, n[3] = {copy % copies, copy / copies % copies, copy / (copies * copies)};
        letter[i] = letter[i % unit];
        for (int d = 0; d < 3; d++)
        {
            m->x[3 * i + d] = m->x[3 * (i % unit) + d] + n[0] * m->box[d] + n[1] * m->box[3 + d] + n[2] * m->box[6 + d];
        }
    }
    for (int k = 0; k < 9; k++)
    {
        m->box[k] *= copies;
    }
}

static molecules read_gro(const char* file, int copies, int all_atoms)
{
    molecules m = {
        .outer = {GMXFMM_LJ_FORCE_SWITCH, 1.0, 1.2}, .inner = {GMXFMM_LJ_FORCE_SWITCH, 0.55, 0.75}, .reach = 1.3};
    char  line[256];
    int   unit = 0;
    FILE* f    = fopen(file, "r");
    if (f == NULL)
    {
        die(file, "cannot be read");
    }
    if (!fgets(line, sizeof(line), f) || !fgets(line, sizeof(line), f) || sscanf(line, "%d", &unit) != 1 || unit < 1 ||
        copies < 1)
    {
        die(file, "is no .gro file");
    }
    const size_t all    = (size_t)unit * (size_t)(copies * copies * copies);
    char*        letter = bench_memory(all);
    m.x                 = bench_numbers(3 * all);
    m.weight            = bench_numbers(all);
    m.start             = bench_memory((all + 1) * sizeof(int));
    m.atom              = bench_memory(all * sizeof(int));
    m.type              = bench_memory(all * sizeof(int));
    m.atoms             = unit;
    read_atoms(f, file, &m, letter);
    fclose(f);
    m.atoms = (int)all;
    copy_box(&m, letter, unit, copies);
    make_groups(&m, letter, all_atoms);
    if (all_atoms)
    {
        make_exclusions(&m, letter);
    }
    make_parameters(&m);
    free(letter);
    return m;
}

static void free_molecules(molecules* m)
{
    free(m->x);
    free(m->weight);
    free(m->c6);
    free(m->c12);
    free(m->start);
    free(m->atom);
    free(m->type);
    free(m->exclusion_start);
    free(m->exclusion);
}

static gmxfmm_sites* make_sites(const molecules* m, gmxfmm_device device)
{
    const gmxfmm_sites_system system = {.size            = sizeof(system),
                                        .device          = device,
                                        .precision       = device == GMXFMM_CUDA ? GMXFMM_SINGLE : GMXFMM_DOUBLE,
                                        .num_periodic    = 3,
                                        .num_atoms       = m->atoms,
                                        .num_groups      = m->groups,
                                        .start           = m->start,
                                        .atom            = m->atom,
                                        .weight          = m->weight,
                                        .type            = m->type,
                                        .num_types       = m->types,
                                        .c6              = m->c6,
                                        .c12             = m->c12,
                                        .outer           = m->outer,
                                        .inner           = m->inner,
                                        .exclusion_start = m->exclusion_start,
                                        .exclusion       = m->exclusion};
    gmxfmm_sites*             sites  = NULL;
    char                      message[512];
    bench_check(gmxfmm_sites_create(&sites, &system, message, sizeof(message)), message);
    return sites;
}

/* What is on the device. */
typedef struct
{
    gmxfmm_sites* sites;
    float *       x, *f;
    double*       sums;
    cudaStream_t  stream;
    cudaEvent_t   begin, end;
} device_sites;

static device_sites make_device(const molecules* m)
{
    const size_t n = 3 * (size_t)m->atoms;
    device_sites d = {.sites = make_sites(m, GMXFMM_CUDA)};
    float*       x = bench_floats(n, m->x);
    d.x            = bench_device_floats(n, x);
    d.f            = bench_device_floats(n, NULL);
    free(x);
    CUDA(cudaMalloc((void**)&d.sums, 10 * sizeof(double)));
    CUDA(cudaStreamCreateWithFlags(&d.stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&d.begin));
    CUDA(cudaEventCreate(&d.end));
    return d;
}

static void free_device(device_sites* d)
{
    gmxfmm_sites_destroy(d->sites);
    CUDA(cudaFree(d->x));
    CUDA(cudaFree(d->f));
    CUDA(cudaFree(d->sums));
    CUDA(cudaEventDestroy(d->begin));
    CUDA(cudaEventDestroy(d->end));
    CUDA(cudaStreamDestroy(d->stream));
}

static double elapsed_us(const device_sites* d)
{
    float ms;
    CUDA(cudaStreamSynchronize(d->stream));
    CUDA(cudaEventElapsedTime(&ms, d->begin, d->end));
    return 1e3 * (double)ms;
}

/* The first search grows lists. */
static double search_us(const device_sites* d, const molecules* m)
{
    double us[c_searches + 1];
    for (int i = 0; i <= c_searches; i++)
    {
        CUDA(cudaEventRecord(d->begin, d->stream));
        bench_check(gmxfmm_sites_search(d->sites, m->box, d->x, m->reach, d->stream), gmxfmm_sites_message(d->sites));
        CUDA(cudaEventRecord(d->end, d->stream));
        us[i] = elapsed_us(d);
    }
    return bench_median(us + 1, c_searches);
}

static void enqueue(const device_sites* d, double* sums)
{
    bench_check(gmxfmm_sites_enqueue(d->sites, d->x, sums, d->stream), gmxfmm_sites_message(d->sites));
    bench_check(gmxfmm_sites_enqueue_forces(d->sites, d->f, d->stream), gmxfmm_sites_message(d->sites));
}

static double step_us(const device_sites* d, double* sums)
{
    for (int i = 0; i < 5; i++)
    {
        enqueue(d, sums);
    }
    CUDA(cudaEventRecord(d->begin, d->stream));
    for (int i = 0; i < c_steps; i++)
    {
        enqueue(d, sums);
    }
    CUDA(cudaEventRecord(d->end, d->stream));
    return elapsed_us(d) / c_steps;
}

/* Differences of a step from the CPU. */
typedef struct
{
    double force, energy, virial, energy_sum;
    int    same; /* bits in a second step */
} differences;

/* The forces of a step on 3 atoms numbers, and its sums. */
static void fetch(const device_sites* d, size_t n, float* f, double* sums)
{
    CUDA(cudaMemsetAsync(d->f, 0, n * sizeof(float), d->stream));
    enqueue(d, d->sums);
    CUDA(cudaStreamSynchronize(d->stream));
    CUDA(cudaMemcpy(f, d->f, n * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(sums, d->sums, 10 * sizeof(double), cudaMemcpyDeviceToHost));
}

static differences compare(const molecules* m, const device_sites* d)
{
    const size_t  n   = 3 * (size_t)m->atoms;
    gmxfmm_sites* cpu = make_sites(m, GMXFMM_CPU);
    float *       f = bench_floats(n, NULL), *again = bench_floats(n, NULL), *x = bench_floats(n, m->x);
    double *      reference = bench_numbers(n), *rounded = bench_numbers(n);
    double        sums[10], second[10], energy = 0, virial[9], square = 0, most = 0, trace = 0, worst = 0;
    for (size_t i = 0; i < n; i++)
    {
        rounded[i]   = (double)x[i]; /* as the device has it */
        reference[i] = 0;
    }
    bench_check(gmxfmm_sites_search(cpu, m->box, rounded, m->reach, NULL), gmxfmm_sites_message(cpu));
    bench_check(gmxfmm_sites_execute(cpu, m->box, rounded, reference, &energy, virial), gmxfmm_sites_message(cpu));
    fetch(d, n, f, sums);
    fetch(d, n, again, second);
    for (size_t i = 0; i < n; i++)
    {
        square += reference[i] * reference[i];
        most = fmax(most, fabs((double)f[i] - reference[i]));
    }
    for (int k = 0; k < 9; k++)
    {
        trace = fmax(trace, fabs(virial[k]));
        worst = fmax(worst, fabs(virial[k] - sums[1 + k]));
    }
    const differences result = {.force      = most / sqrt(square / (double)n),
                                .energy     = fabs(sums[0] / energy - 1),
                                .virial     = worst / trace,
                                .energy_sum = energy,
                                .same       = memcmp(f, again, n * sizeof(float)) == 0 &&
                                        memcmp(sums, second, sizeof(sums)) == 0};
    gmxfmm_sites_destroy(cpu);
    free(f);
    free(again);
    free(x);
    free(reference);
    free(rounded);
    return result;
}

/* One line of results. */
static void measure(const molecules* m)
{
    device_sites      d      = make_device(m);
    const double      search = search_us(&d, m);
    gmxfmm_sites_info info   = {.size = sizeof(info)};
    bench_check(gmxfmm_sites_get_info(d.sites, &info), gmxfmm_sites_message(d.sites));
    const differences apart = compare(m, &d);
    const double      force = step_us(&d, NULL), all = step_us(&d, d.sums);
    printf("{\"atoms\": %d, \"sites\": %d, \"types\": %d, \"cutoff\": %g, \"reach\": %g, \"pairs_per_site\": %.1f, "
           "\"within_per_site\": %.1f, "
           "\"search_us\": %.1f, \"force_us\": %.2f, \"energy_us\": %.2f, \"force_difference\": %.2e, "
           "\"energy\": %.10g, \"energy_difference\": %.2e, \"virial_difference\": %.2e, \"same_bits\": %s, "
           "\"device_bytes\": %lld}\n",
           m->atoms, m->groups, m->types, m->outer.cutoff, m->reach, (double)info.num_pairs / m->groups,
           (double)info.num_within / m->groups, search, force, all, apart.force, apart.energy_sum, apart.energy,
           apart.virial, apart.same ? "true" : "false", (long long)info.device_bytes);
    free_device(&d);
}

/* Lines for atoms, whose parameters are smaller than those of groups. */
static void measure_atoms(molecules* m)
{
    static const double   cutoff[] = {0.55, 0.75}, more[] = {0.06, 0.1};
    const gmxfmm_lj_range none = {0};
    for (size_t i = 0; i < (size_t)m->types * (size_t)m->types; i++)
    {
        m->c12[i] *= 1e-2; /* hydrogens are close to others */
    }
    m->inner = none;
    for (int i = 0; i < 4; i++)
    {
        const gmxfmm_lj_range outer = {GMXFMM_LJ_FORCE_SWITCH, cutoff[i / 2] - 0.2, cutoff[i / 2]};
        m->outer                    = outer;
        m->reach                    = outer.cutoff + more[i % 2];
        measure(m);
    }
}

int main(int argc, char** argv)
{
    const int all_atoms = argc > 2 && strcmp(argv[argc - 1], "--atoms") == 0, num = argc - all_atoms;
    if (num < 2)
    {
        fprintf(stderr, "usage: %s FILE.GRO [COPIES] [--atoms]\n", argv[0]);
        return 2;
    }
    molecules m = read_gro(argv[1], num > 2 ? atoi(argv[2]) : 1, all_atoms);
    all_atoms ? measure_atoms(&m) : measure(&m);
    free_molecules(&m);
    return 0;
}
