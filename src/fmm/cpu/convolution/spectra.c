/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Spectra of the lattice sums over the grid of cells, whenever the box has another shape. The lattice vectors of the
 * real-space part are few and near the origin: the transform over the grid is summed by its definition over a block of
 * them, one direction after the other, and one lane is one coefficient. Wave vectors congruent to a frequency are
 * summed there.
 */
#include "fmm/cpu/convolution/convolution.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/cpu/simd/lanes.h"
#include "fmm/geometry/lattice_slab.h"
#include "fmm/geometry/lattice_wire.h"

#define HARM_T double
#define HARM_R double
#include "fmm/math/harmonics.h"

typedef struct fmm_convolution convolution;
typedef struct fmm_lattice     lattice_sums;

/* Truncation of the lattice sums, relative to their largest terms: below the rounding of the step. */
#ifdef FMM_DOUBLE
static const double c_latticeTolerance = 1e-16;
#else
static const double c_latticeTolerance = 1e-8;
#endif

enum
{
    c_frequencies = 3, /* in registers at once; the last direction's are padded to a multiple */
    c_longest     = (2 * FMM_MAX_SUM_DEGREE + VLEN - 1) / VLEN, /* column of coefficients, in vectors */
    /* of coefficients that have their terms computed at once: those of Z at order 14, single, or one column */
    c_mostVectors = c_longest > 64 ? c_longest : 64,
    c_tableBytes  = 1 << 22,
    c_wireBytes   = 1 << 28,
    c_planesBytes = 1 << 22,
    c_doubleLanes = FMM_VBYTES / 8
};

typedef struct
{
    real c, s;
} phase;

typedef struct
{
    vreal re, im;
} complex_lanes;

/* What the sums of the present shape are made with. */
struct fmm_lattice
{
    fmm_ewald ewald;
    int (*vectors)[3]; /* of the real-space part */
    int            num_vectors;
    int            range[3]; /* of their components: the block has k[0] = 0 .. range[0], k[d] = -range[d] .. range[d] */
    int            num_places; /* in the block */
    int            wide;       /* frequencies of the last direction that a thread does at once, padded */
    int            num_z;      /* all of them, padded to a multiple of `wide` */
    phase*         phases[3];  /* [f][k]: cos and sin of 2 pi f k / n, f = 0 .. n/2, k = 0 .. range */
    real*          table;      /* [coefficients / VLEN][place][VLEN]; 0 at places that are not among the vectors */
    int            room;       /* vectors of coefficients that the table is for */
    complex_lanes* scratch;    /* for each thread: rows, planes and a line of results */
    size_t         thread_size;
    double*        parts; /* for each thread: terms of a block of vectors or of frequencies */
    size_t         part_size;
    double *       inverse, *factor; /* of the coefficients */
    real *         even, *odd;       /* factors of those that have their terms computed at once */
    size_t         bytes;
};

static int num_rows(const lattice_sums* s, int d)
{
    return 2 * s->range[d] + 1;
}

/* Parts of a thread's scratch: rows of one plane, [k[1]][frequency z]; planes, [k[0]][frequency y][z]; and results at
 * a frequency x and its mirror image, two to a complex number. */
static size_t rows_size(const lattice_sums* s)
{
    return (size_t)num_rows(s, 1) * (size_t)s->wide;
}

static size_t planes_size(const lattice_sums* s, const int* n)
{
    return (size_t)(s->range[0] + 1) * (size_t)n[1] * (size_t)s->wide;
}

static size_t line_size(const lattice_sums* s, const int* n)
{
    return (size_t)n[1] * (size_t)s->wide;
}

static int vectors_for(int coefs)
{
    return (coefs + VLEN - 1) / VLEN;
}

/* Coefficients of columns first .. end-1. */
static int num_columns_coef(int degree, int first, int end)
{
    return harm_column(degree, end) - harm_column(degree, first);
}

void fmm_lattice_free(lattice_sums* s)
{
    if (s == NULL)
    {
        return;
    }
    for (int d = 0; d < 3; d++)
    {
        free(s->phases[d]);
    }
    free(s->vectors);
    free(s->table);
    free(s->scratch);
    free(s->parts);
    free(s->inverse);
    free(s->even);
    free(s);
}

static gmxfmm_status out_of_memory(gmxfmm_plan* plan)
{
    return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for lattice sums");
}

/* What terms are made in, which would be much of a thread's stack. */
static void set_parts(gmxfmm_plan* plan, const convolution* conv, lattice_sums* s)
{
    const size_t size = (size_t)harm_size(2 * conv->order + 2), block = (size_t)s->room * VLEN;
    const size_t wire      = fmm_is_wire(conv->cells->periodic) ? FMM_WIRE_WORK + size : 0;
    const size_t real_part = block * VLEN + wire, reciprocal = size * c_doubleLanes;
    s->part_size = ((real_part > reciprocal ? real_part : reciprocal) + FMM_ALIGN) / FMM_ALIGN * FMM_ALIGN;
    s->parts     = fmm_alloc(plan, (size_t)plan->most_threads * s->part_size * sizeof(double));
    s->inverse   = fmm_alloc(plan, 2 * size * sizeof(double));
    s->even      = fmm_alloc(plan, 2 * block * sizeof(real));
    s->factor    = s->inverse != NULL ? s->inverse + size : NULL;
    s->odd       = s->even != NULL ? s->even + block : NULL;
}

/* The calling thread's. */
static double* part_of(const lattice_sums* s)
{
    return s->parts + (size_t)omp_get_thread_num() * s->part_size;
}

/* Arrays for the block of lattice vectors of s->range. */
static gmxfmm_status set_block(gmxfmm_plan* plan, const convolution* conv, lattice_sums* s)
{
    const int *  n = conv->cells->n, degree = 2 * conv->order + 2;
    const size_t before = plan->bytes;
    const int    nz     = n[2] / 2 + 1;
    s->num_places       = (s->range[0] + 1) * num_rows(s, 1) * num_rows(s, 2);
    s->wide             = (nz + c_frequencies - 1) / c_frequencies * c_frequencies;
    while (planes_size(s, n) * sizeof(complex_lanes) > c_planesBytes && s->wide > c_frequencies)
    {
        s->wide = (s->wide / 2 + c_frequencies - 1) / c_frequencies * c_frequencies;
    }
    s->num_z = (nz + s->wide - 1) / s->wide * s->wide;
    for (int d = 0; d < 3; d++)
    {
        const int num = d < 2 ? n[d] / 2 + 1 : s->num_z, width = s->range[d] + 1;
        s->phases[d] = fmm_alloc(plan, (size_t)num * (size_t)width * sizeof(phase));
        for (int f = 0; f < num && s->phases[d] != NULL; f++)
        {
            for (int k = 0; k < width; k++)
            {
                const double angle          = 2 * FMM_PI * (f * k % n[d]) / n[d];
                s->phases[d][f * width + k] = (phase){(real)cos(angle), (real)sin(angle)};
            }
        }
    }
    /* all coefficients at once, if that is not much, but at least one column of them */
    const size_t column = (size_t)s->num_places * sizeof(vreal);
    /* a wire's terms take long, and would be made again for each part of the coefficients */
    const size_t bytes = fmm_is_wire(conv->cells->periodic) ? (size_t)c_wireBytes : c_tableBytes;
    const size_t least = (size_t)vectors_for(2 * degree), most = bytes / column;
    s->room        = vectors_for(harm_size(degree));
    s->room        = s->room < c_mostVectors ? s->room : c_mostVectors;
    s->room        = (size_t)s->room > most ? (int)(most > least ? most : least) : s->room;
    s->table       = fmm_alloc(plan, (size_t)s->room * column);
    s->thread_size = rows_size(s) + planes_size(s, n) + line_size(s, n);
    s->scratch     = fmm_alloc(plan, (size_t)plan->most_threads * s->thread_size * sizeof(complex_lanes));
    set_parts(plan, conv, s);
    s->bytes = plan->bytes - before;
    plan->cpu->grid_bytes += s->bytes;
    return s->phases[0] && s->phases[1] && s->phases[2] && s->table && s->scratch && s->parts && s->inverse && s->even
               ? GMXFMM_OK
               : out_of_memory(plan);
}

static void drop_lattice(gmxfmm_plan* plan, convolution* conv)
{
    if (conv->lattice != NULL)
    {
        plan->bytes -= conv->lattice->bytes;
        plan->cpu->grid_bytes -= conv->lattice->bytes;
        fmm_lattice_free(conv->lattice);
        conv->lattice = NULL;
    }
}

/* What sums of the shape of *cells need. */
static gmxfmm_status set_lattice(gmxfmm_plan* plan, convolution* conv, const fmm_cells* cells)
{
    lattice_sums*   s     = conv->lattice;
    const fmm_ewald ewald = fmm_ewald_choose(cells, 2 * conv->order + 2, c_latticeTolerance);
    int             range[3];
    fmm_real_range(cells, &ewald, range);
    if (s == NULL || memcmp(range, s->range, sizeof(range)) != 0)
    {
        drop_lattice(plan, conv);
        conv->lattice = s = calloc(1, sizeof(*s));
        if (s == NULL)
        {
            return out_of_memory(plan);
        }
        memcpy(s->range, range, sizeof(range));
        const gmxfmm_status status = set_block(plan, conv, s);
        if (status != GMXFMM_OK)
        {
            drop_lattice(plan, conv);
            return status;
        }
    }
    int(*vectors)[3] = NULL, num = 0;
    if (fmm_real_vectors(cells, &ewald, &vectors, &num) != GMXFMM_OK)
    {
        return out_of_memory(plan);
    }
    /* without vectors before: the table is still all zero */
    if (s->vectors != NULL &&
        (num != s->num_vectors || memcmp(vectors, s->vectors, (size_t)num * sizeof(*vectors)) != 0))
    {
        memset(s->table, 0, (size_t)s->room * (size_t)s->num_places * sizeof(vreal));
    }
    free(s->vectors);
    s->vectors     = vectors;
    s->num_vectors = num;
    s->ewald       = ewald;
    return GMXFMM_OK;
}

/* The same of a wire, whose sums are all in real space: those at k[count]. Displacements of half a period stand at both
 * ends of the block, and zero counts half. */
static void wire_block(const fmm_cells* cells,
                       fmm_sum          sum,
                       int              degree,
                       const int*       columns,
                       const int (*k)[3],
                       int     count,
                       double* work,
                       double* out)
{
    const int first = harm_column(degree, columns[0]), coefs = num_columns_coef(degree, columns[0], columns[1]);
    memset(out, 0, (size_t)(coefs * c_doubleLanes) * sizeof(double));
    for (int l = 0; l < count; l++)
    {
        double*      sums = work + FMM_WIRE_WORK;
        const int    zero = k[l][0] == 0 && k[l][1] == 0 && k[l][2] == 0;
        const double part = zero || 2 * abs(k[l][2]) == cells->n[2] ? 0.5 : 1;
        fmm_wire_sums(cells, sum, degree, k[l], work, sums);
        for (int i = 0; i < coefs; i++)
        {
            out[i * c_doubleLanes + l] = part * sums[first + i];
        }
    }
}

/* Terms of columns columns[0] .. columns[1] - 1 at the lattice vectors from first on, VLEN at most. */
static void make_terms(const fmm_cells*    cells,
                       const lattice_sums* s,
                       fmm_sum             sum,
                       int                 degree,
                       const int*          columns,
                       const double*       inverse,
                       int                 first,
                       double*             part)
{
    const int coefs = num_columns_coef(degree, columns[0], columns[1]), stride = vectors_for(coefs) * VLEN;
    const int here = s->num_vectors - first < VLEN ? s->num_vectors - first : VLEN;
    for (int at = 0; at < here; at += c_doubleLanes)
    {
        const int count = here - at < c_doubleLanes ? here - at : c_doubleLanes;
        if (fmm_is_wire(cells->periodic))
        {
            wire_block(cells, sum, degree, columns, s->vectors + first + at, count,
                       part + (size_t)s->room * VLEN * VLEN, part + at * stride);
            continue;
        }
        LEVEL(fmm_real_block)
        (cells, &s->ewald, sum, degree, columns, inverse, s->vectors + first + at, count, part + at * stride);
    }
    for (int i = 0; i < coefs; i += VLEN)
    {
        vreal v[VLEN];
        for (int j = 0; j < VLEN; j++)
        {
            for (int l = 0; l < VLEN; l++)
            {
                v[j][l] = (real)
                    part[l / c_doubleLanes * c_doubleLanes * stride + (i + j) * c_doubleLanes + l % c_doubleLanes];
            }
        }
        lanes_transpose(v);
        for (int l = 0; l < here; l++)
        {
            const int* k     = s->vectors[first + l];
            const int  place = (k[0] * num_rows(s, 1) + k[1] + s->range[1]) * num_rows(s, 2) + k[2] + s->range[2];
            ((vreal*)s->table)[(size_t)(i / VLEN) * (size_t)s->num_places + (size_t)place] = v[l];
        }
    }
}

/* sum_c v_c e^(-i c phi) at c_frequencies frequencies, c = -range .. range. */
static inline void transform_row(int range, const vreal* v, const phase* phases, complex_lanes* out)
{
    const vreal   zero = {0};
    complex_lanes sum[c_frequencies];
    for (int f = 0; f < c_frequencies; f++)
    {
        sum[f] = (complex_lanes){v[0], zero};
    }
    for (int c = 1; c <= range; c++)
    {
        const vreal even = v[c] + v[-c], odd = v[-c] - v[c];
        for (int f = 0; f < c_frequencies; f++)
        {
            const phase w = phases[f * (range + 1) + c];
            sum[f].re += w.c * even;
            sum[f].im += w.s * odd;
        }
    }
    for (int f = 0; f < c_frequencies; f++)
    {
        out[f] = sum[f];
    }
}

/* The last direction at all k[1] of one plane of lattice vectors: rows of k[1] and -k[1] as their sums and differences,
 * all that is needed of them. */
static void transform_rows(const lattice_sums* s, const vreal* plane, int first_z, complex_lanes* rows)
{
    const int     range = s->range[2], stride = s->wide;
    complex_lanes up[c_frequencies], down[c_frequencies];
    for (int z = 0; z < s->wide; z += c_frequencies)
    {
        const phase* phases = s->phases[2] + (first_z + z) * (range + 1);
        const vreal* centre = plane + s->range[1] * num_rows(s, 2) + range;
        transform_row(range, centre, phases, rows + s->range[1] * stride + z);
        for (int b = 1; b <= s->range[1]; b++)
        {
            transform_row(range, centre + b * num_rows(s, 2), phases, up);
            transform_row(range, centre - b * num_rows(s, 2), phases, down);
            for (int f = 0; f < c_frequencies; f++)
            {
                rows[(s->range[1] + b) * stride + z + f] =
                    (complex_lanes){up[f].re + down[f].re, up[f].im + down[f].im};
                rows[(s->range[1] - b) * stride + z + f] =
                    (complex_lanes){up[f].re - down[f].re, up[f].im - down[f].im};
            }
        }
    }
}

/*
 * The second direction, to g_a at all frequencies of two directions. By parity, n even, the sum over all lattice
 * vectors is that over planes k[0] = a >= 0 of 2 Re(e^(-i a phi) g_a), and of 2 i Im for odd n; the vectors of a plane
 * a = 0 are one of each pair, too. With (u, v) = g_a or, n odd, i g_a, both are u cos(a phi) + v sin(a phi), the phase
 * (-i)^n taken off, if the sign is that of i^n. even, odd: that sign and all factors in lanes of even, or odd degree, 0
 * in others.
 */
static void transform_columns(
    const lattice_sums* s, const int* n, const complex_lanes* rows, vreal even, vreal odd, complex_lanes* plane)
{
    const int   range = s->range[1], stride = s->wide;
    const vreal zero = {0};
    for (int y = 0; y <= n[1] / 2; y++)
    {
        const phase* phases = s->phases[1] + y * (range + 1);
        for (int z = 0; z < s->wide; z += c_frequencies)
        {
            complex_lanes a[c_frequencies], b[c_frequencies]; /* what y and -y have in common, and what changes sign */
            for (int f = 0; f < c_frequencies; f++)
            {
                a[f] = rows[range * stride + z + f];
                b[f] = (complex_lanes){zero, zero};
            }
            for (int k = 1; k <= range; k++)
            {
                const complex_lanes *sums        = rows + (range + k) * stride + z,
                                    *differences = rows + (range - k) * stride + z;
                for (int f = 0; f < c_frequencies; f++)
                {
                    a[f].re += phases[k].c * sums[f].re;
                    a[f].im += phases[k].c * sums[f].im;
                    b[f].re += phases[k].s * differences[f].im;
                    b[f].im -= phases[k].s * differences[f].re;
                }
            }
            for (int f = 0; f < c_frequencies; f++)
            {
                const complex_lanes up    = {a[f].re + b[f].re, a[f].im + b[f].im};
                const complex_lanes down  = {a[f].re - b[f].re, a[f].im - b[f].im};
                plane[y * stride + z + f] = (complex_lanes){even * up.re - odd * up.im, even * up.im + odd * up.re};
                if (y > 0)
                {
                    plane[(n[1] - y) * stride + z + f] =
                        (complex_lanes){even * down.re - odd * down.im, even * down.im + odd * down.re};
                }
            }
        }
    }
}

/* The first direction at one frequency x, to that and its mirror image, at frequencies first .. end - 1 of the second
 * and all of the last. */
static void transform_planes(
    const lattice_sums* s, const int* n, const complex_lanes* planes, int x, int first, int end, vreal* up, vreal* down)
{
    const phase* phases = s->phases[0] + x * (s->range[0] + 1);
    const int    size   = n[1] * s->wide;
    for (int i = first * s->wide; i < end * s->wide; i += c_frequencies)
    {
        vreal even[c_frequencies], odd[c_frequencies];
        for (int f = 0; f < c_frequencies; f++)
        {
            even[f] = planes[i + f].re;
            odd[f]  = (vreal){0};
        }
        for (int a = 1; a <= s->range[0]; a++)
        {
            for (int f = 0; f < c_frequencies; f++)
            {
                even[f] += phases[a].c * planes[a * size + i + f].re;
                odd[f] += phases[a].s * planes[a * size + i + f].im;
            }
        }
        for (int f = 0; f < c_frequencies; f++)
        {
            up[i + f]   = even[f] + odd[f];
            down[i + f] = even[f] - odd[f];
        }
    }
}

/* Adds values of `coefs` coefficients, the lanes, at own frequencies first, first + 1, ..., to out[chunk][size][VLEN].
 */
static void add_lanes(const vreal* values, int count, int first, int coefs, size_t size, real* out)
{
    while (count > 0)
    {
        const int begin = first % VLEN, num = count < VLEN - begin ? count : VLEN - begin;
        real*     to = out + (size_t)(first / VLEN) * size * VLEN;
        vreal     v[VLEN];
        for (int l = 0; l < VLEN; l++)
        {
            v[l] = l >= begin && l < begin + num ? values[l - begin] : (vreal){0};
        }
        lanes_transpose(v);
        for (int i = 0; i < coefs; i++)
        {
            ((vreal*)to)[i] += v[i];
        }
        values += num;
        first += num;
        count -= num;
    }
}

/* Adds what a line has at own columns, of frequencies begin .. end - 1 of the last two directions, to own frequencies
 * of x; frequency `begin` is at line. */
static void
add_line(const convolution* conv, const vreal* line, int begin, int end, int x, int coefs, size_t size, real* out)
{
    const fmm_columns* c     = &conv->columns;
    const int          first = begin > c->first ? begin : c->first;
    const int          last  = end < c->first + c->num ? end : c->first + c->num;
    if (first < last)
    {
        add_lanes(line + (first - begin), last - first, x * c->num + first - c->first, coefs, size, out);
    }
}

/* Adds the real-space part of the table's vector `block` of coefficients to out, that of the first of them. */
static void add_real(const convolution*  conv,
                     const lattice_sums* s,
                     int                 block,
                     int                 coefs,
                     vreal               even,
                     vreal               odd,
                     complex_lanes*      scratch,
                     size_t              size,
                     real*               out)
{
    const int*     n     = conv->cells->n;
    const int      nz    = n[2] / 2 + 1;
    const vreal*   terms = (const vreal*)s->table + (size_t)block * (size_t)s->num_places;
    complex_lanes *rows = scratch, *planes = rows + rows_size(s);
    vreal *        up = (vreal*)(planes + planes_size(s, n)), *down = up + line_size(s, n);
    const int      first_y = conv->columns.first / nz, end_y = (conv->columns.first + conv->columns.num + nz - 1) / nz;
    for (int first = 0; first < nz; first += s->wide)
    {
        const int here = nz - first < s->wide ? nz - first : s->wide;
        for (int a = 0; a <= s->range[0]; a++)
        {
            transform_rows(s, terms + a * num_rows(s, 1) * num_rows(s, 2), first, rows);
            transform_columns(s, n, rows, even, odd, planes + (size_t)a * line_size(s, n));
        }
        for (int x = 0; x <= n[0] / 2; x++)
        {
            transform_planes(s, n, planes, x, first_y, end_y, up, down);
            for (int mirror = 0; mirror < (x > 0 && 2 * x != n[0] ? 2 : 1); mirror++)
            {
                vreal*    line = mirror ? down : up;
                const int at   = mirror ? n[0] - x : x;
                if (here < nz)
                {
                    for (int y = first_y; y < end_y; y++)
                    {
                        add_line(conv, line + y * s->wide, y * nz + first, y * nz + first + here, at, coefs, size, out);
                    }
                    continue;
                }
                for (int y = first_y; y < end_y; y++)
                {
                    memmove(line + y * nz, line + y * s->wide, (size_t)nz * sizeof(vreal));
                }
                add_line(conv, line + first_y * nz, first_y * nz, end_y * nz, at, coefs, size, out);
            }
        }
    }
}

/* Factor of the real-space part for each coefficient of columns columns[0] .. columns[1] - 1, in even[] or odd[]. */
static void parity_factors(int degree, const int* columns, double scale, real* even, real* odd)
{
    for (int m = columns[0], i = 0; m < columns[1]; m++)
    {
        for (int part = 0; part < (m > 0 ? 2 : 1); part++)
        {
            for (int n = m; n <= degree; n++, i++)
            {
                const real factor = (real)(n & 2 ? -2 * scale : 2 * scale);
                even[i]           = n & 1 ? 0 : factor;
                odd[i]            = n & 1 ? factor : 0;
            }
        }
    }
}

/* As many columns of coefficients at a time as there is room for. */
static void real_part(const gmxfmm_plan* plan,
                      const convolution* conv,
                      const fmm_cells*   cells,
                      fmm_sum            sum,
                      int                degree,
                      const double*      inverse,
                      double             scale,
                      real*              out)
{
    const lattice_sums* s    = conv->lattice;
    const size_t        size = (size_t)harm_size(degree);
    for (int columns[2] = {0, 0}; columns[0] <= degree; columns[0] = columns[1])
    {
        real *const even = s->even, *const odd = s->odd;
        columns[1] = columns[0] + 1;
        while (columns[1] <= degree && vectors_for(num_columns_coef(degree, columns[0], columns[1] + 1)) <= s->room)
        {
            columns[1]++;
        }
        const int coefs = num_columns_coef(degree, columns[0], columns[1]), blocks = vectors_for(coefs);
        memset(even, 0, 2 * (size_t)s->room * VLEN * sizeof(*even));
        parity_factors(degree, columns, scale, even, odd);
#pragma omp parallel num_threads(plan->num_threads)
        {
            double* const part = part_of(s);
            memset(part, 0, (size_t)(blocks * VLEN * VLEN) * sizeof(double));
#pragma omp for schedule(dynamic)
            for (int first = 0; first < s->num_vectors; first += VLEN)
            {
                make_terms(cells, s, sum, degree, columns, inverse, first, part);
            }
#pragma omp for schedule(dynamic)
            for (int block = 0; block < blocks; block++)
            {
                const size_t   thread  = (size_t)omp_get_thread_num();
                complex_lanes* scratch = s->scratch + thread * s->thread_size;
                const int      here    = coefs - block * VLEN < VLEN ? coefs - block * VLEN : VLEN;
                add_real(conv, s, block, here, *(const vreal*)(even + block * VLEN),
                         *(const vreal*)(odd + block * VLEN), scratch, size,
                         out + (size_t)(harm_column(degree, columns[0]) + block * VLEN) * VLEN);
            }
        }
    }
}

/* Sets all own frequencies of out. */
static void reciprocal_part(const gmxfmm_plan* plan,
                            const convolution* conv,
                            const fmm_cells*   cells,
                            fmm_sum            sum,
                            int                degree,
                            const double*      inverse,
                            const double*      factor,
                            double             scale,
                            real*              out)
{
    const fmm_ewald* ewald = &conv->lattice->ewald;
    const int        lanes = LEVEL(fmm_lattice_lanes)(), size = harm_size(degree);
#pragma omp parallel for schedule(dynamic) num_threads(plan->num_threads)
    for (int chunk = 0; chunk < conv->num_chunks; chunk++)
    {
        double* const part = part_of(conv->lattice);
        real*         to   = out + (size_t)chunk * (size_t)size * VLEN;
        for (int first = 0; first < VLEN; first += lanes)
        {
            int frequencies[VLEN];
            for (int l = 0; l < lanes; l++)
            {
                frequencies[l] = fmm_conv_frequency(conv, chunk * VLEN + first + l);
            }
            LEVEL(fmm_reciprocal_block)(cells, ewald, sum, degree, inverse, factor, frequencies, part);
            for (int i = 0; i < size; i++)
            {
                for (int l = 0; l < lanes; l++)
                {
                    to[i * VLEN + first + l] = (real)(part[i * lanes + l] * scale);
                }
            }
        }
    }
    if (sum == FMM_SUM_S && conv->columns.first == 0 && conv->columns.num > 0)
    {
        /* neutralising background: -pi / (alpha^2 V) for every pair, all of it at frequency 0 */
        out[0] -= (real)(scale * FMM_PI / (ewald->alpha * ewald->alpha * cells->cell_volume));
    }
}

/* Adds what makes sums of a slab of those of its padded box. */
static void slab_part(const gmxfmm_plan*  plan,
                      const lattice_sums* s,
                      const fmm_cells*    cells,
                      fmm_sum             sum,
                      int                 degree,
                      double              scale,
                      real*               out)
{
    const fmm_slab_grid slab = fmm_slab_grid_of(cells, degree, c_latticeTolerance);
    const int *         n = cells->n, nz = n[2] / 2 + 1, size = harm_size(degree);
#pragma omp parallel for schedule(dynamic) num_threads(plan->num_threads)
    for (int at = 0; at < n[0] * n[1] * nz; at++)
    {
        const int f[3] = {at / nz / n[1], at / nz % n[1], at % nz};
        double*   part = part_of(s);
        real*     to   = out + (size_t)(at / VLEN) * (size_t)size * VLEN + at % VLEN;
        memset(part, 0, (size_t)size * sizeof(double));
        fmm_slab_add(&slab, sum, degree, f, scale, part);
        for (int i = 0; i < size; i++)
        {
            to[i * VLEN] += (real)part[i];
        }
    }
}

/* The spectrum for the shape of *cells, which set_lattice was called with. */
static void
make_spectrum(const gmxfmm_plan* plan, const convolution* conv, const fmm_cells* cells, fmm_sum sum, real* out)
{
    const int    degree  = fmm_conv_degree(conv, sum);
    const size_t size    = fmm_conv_spectrum_size(conv, sum);
    const double scale   = 1.0 / cells->num_cells; /* of the unnormalised transforms */
    double *     inverse = conv->lattice->inverse, *factor = conv->lattice->factor;
    LEVEL(fmm_reciprocal_tables)(sum, degree, inverse, factor);
    if (fmm_is_periodic(plan) && !fmm_is_wire(cells->periodic))
    {
        reciprocal_part(plan, conv, cells, sum, degree, inverse, factor, scale, out);
    }
    else
    {
        memset(out, 0, size * sizeof(real));
    }
    if (fmm_is_slab(cells->periodic))
    {
        slab_part(plan, conv->lattice, cells, sum, degree, scale, out);
    }
    real_part(plan, conv, cells, sum, degree, inverse, scale, out);
    for (size_t i = 0; i < size; i++)
    {
        /* What vanishes by symmetry is left as powers of rounding errors; subnormal numbers among them would make the
         * products ten times slower. */
        out[i] = out[i] < (real)1e-30 && out[i] > (real)-1e-30 ? 0 : out[i];
    }
}

static gmxfmm_status reserve_nodes(gmxfmm_plan* plan, convolution* conv)
{
    const size_t before = plan->bytes;
    int          there  = 1;
    for (int i = 0; i < 2 * FMM_LINE_NODES; i++)
    {
        const fmm_sum sum   = i < FMM_LINE_NODES ? FMM_SUM_S : FMM_SUM_Z;
        real**        nodes = (sum == FMM_SUM_S ? conv->node_s : conv->node_z) + i % FMM_LINE_NODES;
        *nodes = *nodes != NULL ? *nodes : fmm_alloc(plan, fmm_conv_spectrum_size(conv, sum) * sizeof(real));
        there  = there && *nodes != NULL;
    }
    plan->cpu->grid_bytes += plan->bytes - before;
    return there ? GMXFMM_OK : out_of_memory(plan);
}

/* Spectra of the nodes between which the present shape lies. */
static gmxfmm_status make_nodes(gmxfmm_plan* plan, convolution* conv)
{
    const fmm_shape_line* line   = &plan->far.line;
    gmxfmm_status         status = reserve_nodes(plan, conv);
    for (int node = line->first; node < line->first + FMM_LINE_NODES && status == GMXFMM_OK; node++)
    {
        const int place = fmm_line_place(node);
        if (fmm_line_holds(&conv->held[place], line, node))
        {
            continue;
        }
        const fmm_cells cells = fmm_line_cells(line, conv->cells, node);
        const double    begin = fmm_time();
        status                = set_lattice(plan, conv, &cells);
        if (status != GMXFMM_OK)
        {
            conv->held[place].line = 0;
            break;
        }
        make_spectrum(plan, conv, &cells, FMM_SUM_S, conv->node_s[place]);
        make_spectrum(plan, conv, &cells, FMM_SUM_Z, conv->node_z[place]);
        plan->info.num_spectra++;
        plan->info.time_spectra += fmm_time() - begin;
    }
    return status;
}

gmxfmm_status fmm_conv_set_shape(gmxfmm_plan* plan)
{
    convolution* conv = plan->cpu->conv;
    return plan->far.line.active ? make_nodes(plan, conv) : set_lattice(plan, conv, conv->cells);
}

static void interpolate(const gmxfmm_plan* plan, real* const* nodes, size_t size, real* out)
{
    const fmm_shape_line* line = &plan->far.line;
    const real *          a = nodes[fmm_line_place(line->first)], *b = nodes[fmm_line_place(line->first + 1)],
               *c = nodes[fmm_line_place(line->first + 2)];
    const real wa = (real)line->weight[0], wb = (real)line->weight[1], wc = (real)line->weight[2];
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (size_t i = 0; i < size; i++)
    {
        out[i] = wa * a[i] + wb * b[i] + wc * c[i];
    }
}

static void spectrum(const gmxfmm_plan* plan, const convolution* conv, fmm_sum sum, real* const* nodes, real* out)
{
    if (plan->far.line.active)
    {
        interpolate(plan, nodes, fmm_conv_spectrum_size(conv, sum), out);
    }
    else
    {
        make_spectrum(plan, conv, conv->cells, sum, out);
    }
}

void fmm_conv_spectra(gmxfmm_plan* plan, int with_virial)
{
    convolution* conv = plan->cpu->conv;
    if (conv->s_version != plan->far.version)
    {
        spectrum(plan, conv, FMM_SUM_S, conv->node_s, conv->s);
        conv->s_version = plan->far.version;
        plan->info.num_spectra += !plan->far.line.active;
    }
    if (with_virial && conv->z_version != plan->far.version)
    {
        spectrum(plan, conv, FMM_SUM_Z, conv->node_z, conv->z);
        conv->z_version = plan->far.version;
    }
}
