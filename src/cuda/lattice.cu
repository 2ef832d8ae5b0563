/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Spectra of the lattice sums (THEORY section 4), when the box has another shape: the real-space part is summed into
 * cells and transformed, as many coefficients at once as a step has; the reciprocal part is computed at the
 * frequencies. Lattice vectors and their weights come from src/fmm/lattice.c.
 */
#define HARM_T double
#define HARM_R double
#include "spectrum.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

enum
{
    c_threads   = 128,
    c_maxDegree = 2 * FMM_OCTREE_MAX_ROTATION_ORDER + 2
};

static const double c_pi = 3.14159265358979323846;

/* Truncation relative to the largest terms: below the rounding of the step. */
static const double c_toleranceSingle = 1e-8, c_toleranceDouble = 1e-16;

/* A coefficient by its place in harm_re, harm_im. */
struct Coefficient
{
    int n, m, imaginary;
};

static __device__ Coefficient coefficient_at(int degree, int index)
{
    int m = 0;
    while (m < degree && index >= harm_column(degree, m + 1))
    {
        m++;
    }
    const int within = index - harm_column(degree, m), length = degree + 1 - m;
    return {m + within % length, m, within / length};
}

/* Coefficients first .. first + num - 1 of the real-space part at all lattice vectors: table[coefficient][vector]. A
 * thread has one column of one vector; see fmm_real_column of src/fmm/lattice.c. */
template <class R>
__global__ void real_columns(Geometry      g,
                             int           degree,
                             int           first_m,
                             int           first,
                             int           num,
                             int           num_vectors,
                             const int*    vectors,
                             const double* weights,
                             R*            table)
{
    const int v = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), m = first_m + static_cast<int>(blockIdx.y);
    if (v >= num_vectors)
    {
        return;
    }
    double       r[3], re[c_maxDegree + 1], im[c_maxDegree + 1], inverse[c_maxDegree + 1], u = 1, w = 0, factor = 1;
    const double t[3] = {static_cast<double>(vectors[3 * v]), static_cast<double>(vectors[3 * v + 1]),
                         static_cast<double>(vectors[3 * v + 2])};
    for (int d = 0; d < 3; d++)
    {
        r[d] = t[0] * g.cell[d] + t[1] * g.cell[3 + d] + t[2] * g.cell[6 + d];
    }
    for (int i = 1; i <= m; i++)
    {
        harm_next_diagonal(i, r[0], r[1], &u, &w);
        factor *= 2.0 * i * (2 * i - 1); /* (2m)! */
    }
    const int length = degree + 1 - m, column = harm_column(degree, m) - first;
    for (int i = 0; i < length; i++)
    {
        inverse[i] = i > 0 ? harm_inverse(m + i, m) : 0;
        re[i] = im[i] = 0;
    }
    harm_add_column(degree, m, r[2], r[0] * r[0] + r[1] * r[1] + r[2] * r[2], u, w, inverse, re, im);
    weights += static_cast<size_t>(v) * static_cast<size_t>(degree + 1);
    for (int i = 0; i < length; i++)
    {
        const int    n     = m + i;
        const double scale = weights[n] * factor;
        for (int part = 0; part < (m > 0 ? 2 : 1); part++)
        {
            const int index = column + part * length + i;
            if (index >= 0 && index < num)
            {
                table[static_cast<size_t>(index) * static_cast<size_t>(num_vectors) + v] =
                    static_cast<R>((part ? im[i] : re[i]) * scale);
            }
        }
        factor *= static_cast<double>(n + 1 - m) * (n + 1 + m);
    }
}

/* Sums of the vectors that fall on a cell, in a fixed order; entries 2 v, and 2 v + 1 for -v. */
template <class R>
__global__ void sum_into_cells(int        degree,
                               int        first,
                               int        num_cells,
                               int        num_targets,
                               int        num_vectors,
                               const int* start,
                               const int* entry,
                               const int* cell,
                               const R*   table,
                               R*         field)
{
    const int target = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), slot = static_cast<int>(blockIdx.y);
    if (target >= num_targets)
    {
        return;
    }
    const bool odd    = coefficient_at(degree, first + slot).n & 1;
    const R*   values = table + static_cast<size_t>(slot) * static_cast<size_t>(num_vectors);
    double     sum    = 0;
    for (int e = start[target]; e < start[target + 1]; e++)
    {
        const double value = static_cast<double>(values[entry[e] / 2]);
        sum += odd && entry[e] % 2 != 0 ? -value : value;
    }
    field[static_cast<size_t>(slot) * static_cast<size_t>(num_cells) + cell[target]] = static_cast<R>(sum);
}

/* Real part of i^n X, which is what the phase (-i)^n leaves of a spectrum of parity (-1)^n. */
template <class R>
__global__ void take_phase_off(int degree, int first, int num_freq, const Vec2<R>* spectrum, Vec2<R>* out)
{
    const int f = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), slot = static_cast<int>(blockIdx.y);
    if (f >= num_freq)
    {
        return;
    }
    const Coefficient c  = coefficient_at(degree, first + slot);
    const Vec2<R>     x  = spectrum[static_cast<size_t>(slot) * static_cast<size_t>(num_freq) + f];
    const R           a  = c.n & 1 ? -x.y : x.x;
    Vec2<R>*          to = out + static_cast<size_t>(pair_index(degree, c.n, c.m)) * static_cast<size_t>(num_freq) + f;
    (c.imaginary ? to->y : to->x) = c.n & 2 ? -a : a;
}

struct ReciprocalArgs
{
    Geometry g;
    int      degree, num_freq, is_z, range[3];
    double   dual[9], alpha, k_max, cell_volume, scale;
};

/* Signed frequency nearest to zero. */
static __device__ int centred(int f, int n)
{
    return 2 * f <= n ? f : f - n;
}

/* Weight of a wave vector in the reciprocal part, per cell of the grid: fmm_reciprocal_weight. */
static __device__ double reciprocal_weight(const ReciprocalArgs& a, double k2)
{
    const double w = 4 * c_pi / (a.cell_volume * k2) * exp(-k2 / (4 * a.alpha * a.alpha));
    return a.is_z ? w * 2 * (1 / k2 + 1 / (4 * a.alpha * a.alpha)) : w;
}

/* Column m of the sum over wave vectors congruent to frequency f, THEORY (14), without factors of degree. */
static __device__ void reciprocal_column(const ReciprocalArgs& a, int f, int m, double* re, double* im)
{
    const int    nz       = a.g.n[2] / 2 + 1;
    const double kappa[3] = {static_cast<double>(centred(f / nz / a.g.n[1], a.g.n[0])) / a.g.n[0],
                             static_cast<double>(centred(f / nz % a.g.n[1], a.g.n[1])) / a.g.n[1],
                             static_cast<double>(centred(f % nz, a.g.n[2])) / a.g.n[2]};
    double       inverse[c_maxDegree + 1];
    for (int i = 0; i <= a.degree - m; i++)
    {
        inverse[i] = i > 0 ? harm_inverse(m + i, m) : 0;
        re[i] = im[i] = 0;
    }
    for (int t0 = -a.range[0]; t0 <= a.range[0]; t0++)
    {
        for (int t1 = -a.range[1]; t1 <= a.range[1]; t1++)
        {
            for (int t2 = -a.range[2]; t2 <= a.range[2]; t2++)
            {
                const double c[3] = {kappa[0] + t0, kappa[1] + t1, kappa[2] + t2};
                double       k[3], k2 = 0;
                for (int e = 0; e < 3; e++)
                {
                    k[e] = 2 * c_pi * (c[0] * a.dual[3 * e] + c[1] * a.dual[3 * e + 1] + c[2] * a.dual[3 * e + 2]);
                    k2 += k[e] * k[e];
                }
                if (k2 <= a.k_max * a.k_max && (c[0] != 0 || c[1] != 0 || c[2] != 0))
                {
                    double u = reciprocal_weight(a, k2), w = 0;
                    for (int i = 1; i <= m; i++)
                    {
                        harm_next_diagonal(i, k[0], k[1], &u, &w);
                    }
                    harm_add_column(a.degree, m, k[2], k2, u, w, inverse, re, im);
                }
            }
        }
    }
}

/* What vanishes by symmetry is left as powers of rounding errors: 0. */
template <class R>
static __device__ inline R flushed(double x)
{
    return fabs(x) < 1e-30 ? R(0) : static_cast<R>(x);
}

/* Adds the reciprocal part to what the real-space part left in out, and scales; a thread has one column. */
template <class R>
__global__ void add_reciprocal(ReciprocalArgs a, Vec2<R>* out)
{
    const int f = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), m = static_cast<int>(blockIdx.y);
    if (f >= a.num_freq)
    {
        return;
    }
    double re[c_maxDegree + 1], im[c_maxDegree + 1], factor = 1; /* (2m)! / (2m-1)!!, then n of THEORY (14) */
    for (int i = 0; i <= a.degree - m; i++)
    {
        re[i] = im[i] = 0;
    }
    if (a.g.periodic)
    {
        reciprocal_column(a, f, m, re, im);
    }
    for (int i = 1; i <= m; i++)
    {
        factor *= 2.0 * i;
    }
    for (int n = m; n <= a.degree; n++)
    {
        factor *= n > m ? static_cast<double>(n - m) * (n + m) / (2 * n - 1) : 1;
        const double scale = !a.is_z ? factor : n > 0 ? factor * (2 * n - 1) : 0;
        Vec2<R>*     v = out + static_cast<size_t>(pair_index(a.degree, n, m)) * static_cast<size_t>(a.num_freq) + f;
        double       x = static_cast<double>(v->x) + re[n - m] * scale;
        if (a.g.periodic && !a.is_z && n == 0 && f == 0)
        {
            x -= c_pi / (a.alpha * a.alpha * a.cell_volume); /* neutralising background */
        }
        v->x = flushed<R>(x * a.scale);
        v->y = m > 0 ? flushed<R>((static_cast<double>(v->y) + im[n - m] * scale) * a.scale) : R(0);
    }
}

static Geometry shape_of(const gmxfmm_plan* plan)
{
    Geometry         g;
    const fmm_cells* c = transform_cells(plan);
    std::memset(&g, 0, sizeof(g));
    for (int i = 0; i < 9; i++)
    {
        g.cell[i] = c->cell[i];
    }
    for (int d = 0; d < 3; d++)
    {
        g.n[d] = c->n[d];
    }
    g.periodic  = c->periodic;
    g.num_cells = c->num_cells;
    return g;
}

static ReciprocalArgs reciprocal_args(const gmxfmm_plan* plan, fmm_sum sum, int degree)
{
    const fmm_device* d = plan->device;
    const fmm_cells*  c = transform_cells(plan);
    ReciprocalArgs    a;
    a.g           = shape_of(plan);
    a.degree      = degree;
    a.num_freq    = d->num_freq;
    a.is_z        = sum == FMM_SUM_Z;
    a.alpha       = d->ewald.alpha;
    a.k_max       = d->ewald.k_max;
    a.cell_volume = c->cell_volume;
    a.scale       = 1.0 / c->num_cells;                     /* of the unnormalised transforms */
    fmm_inverse(c->cell, fmm_determinant(c->cell), a.dual); /* k_e = 2 pi sum_d kappa_d dual[3 e + d] */
    for (int i = 0; i < 3; i++)
    {
        const double* v      = c->cell + 3 * i;
        const double  length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        a.range[i]           = static_cast<int>(floor(d->ewald.k_max * length / (2 * c_pi) + 0.5));
    }
    return a;
}

/* Real-space part of coefficients first .. first + num - 1 into out. */
template <class R>
static gmxfmm_status
real_batch(gmxfmm_plan* plan, int degree, int first, int num, const double* weights, Vec2<R>* out, cudaStream_t stream)
{
    fmm_device*    d      = plan->device;
    const unsigned height = static_cast<unsigned>(num);
    int            low    = 0, high;
    while (low < degree && harm_column(degree, low + 1) <= first)
    {
        low++;
    }
    for (high = low; high < degree && harm_column(degree, high + 1) < first + num; high++)
    {
    }
    FMM_CUDA(plan, cudaMemsetAsync(d->field.memory, 0,
                                   static_cast<size_t>(num) * static_cast<size_t>(transform_cells(plan)->num_cells) *
                                       sizeof(R),
                                   stream));
    if (d->num_vectors > 0)
    {
        const dim3 columns(static_cast<unsigned>(blocks_for(d->num_vectors, c_threads)),
                           static_cast<unsigned>(high - low + 1));
        real_columns<R><<<columns, c_threads, 0, stream>>>(shape_of(plan), degree, low, first, num, d->num_vectors,
                                                           d->lattice_vectors.as<int>(), weights,
                                                           d->lattice_table.as<R>());
        const dim3 sums(static_cast<unsigned>(blocks_for(d->num_scatter, c_threads)), height);
        sum_into_cells<R><<<sums, c_threads, 0, stream>>>(
            degree, first, transform_cells(plan)->num_cells, d->num_scatter, d->num_vectors, d->scatter_start.as<int>(),
            d->scatter_entry.as<int>(), d->scatter_cell.as<int>(), d->lattice_table.as<R>(), d->field.as<R>());
        FMM_CUDA(plan, cudaGetLastError());
    }
    FMM_TRY(fmm_cuda_transform(plan, true, stream));
    const dim3 grid(static_cast<unsigned>(blocks_for(d->num_freq, c_threads)), height);
    take_phase_off<R><<<grid, c_threads, 0, stream>>>(degree, first, d->num_freq, d->spectrum.as<Vec2<R>>(), out);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

template <class R>
static gmxfmm_status
make_spectrum(gmxfmm_plan* plan, fmm_sum sum, int degree, const double* weights, Vec2<R>* out, cudaStream_t stream)
{
    fmm_device*  d     = plan->device;
    const int    size  = harm_size(degree);
    const size_t bytes = static_cast<size_t>(num_pairs(degree)) * static_cast<size_t>(d->num_freq) * sizeof(Vec2<R>);
    FMM_CUDA(plan, cudaMemsetAsync(out, 0, bytes, stream));
    for (int first = 0; first < size; first += d->num_coef)
    {
        FMM_TRY(real_batch(plan, degree, first, std::min(d->num_coef, size - first), weights, out, stream));
    }
    const dim3 grid(static_cast<unsigned>(blocks_for(d->num_freq, c_threads)), static_cast<unsigned>(degree + 1));
    add_reciprocal<R><<<grid, c_threads, 0, stream>>>(reciprocal_args(plan, sum, degree), out);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

template <class R>
static gmxfmm_status spectra(gmxfmm_plan* plan, bool with_virial, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    const int   p = plan->order;
    if (!d->s_valid)
    {
        FMM_TRY(make_spectrum(plan, FMM_SUM_S, 2 * p, d->lattice_weights.as<double>(), d->s.as<Vec2<R>>(), stream));
        d->s_valid = 1;
        plan->info.num_spectra++;
    }
    if (with_virial && !d->z_valid)
    {
        FMM_TRY(
            make_spectrum(plan, FMM_SUM_Z, 2 * p + 2, d->lattice_weights_z.as<double>(), d->z.as<Vec2<R>>(), stream));
        d->z_valid = 1;
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_spectra(gmxfmm_plan* plan, bool with_virial, cudaStream_t stream)
{
    /* the two sums use the buffers of the step, before the step does */
    return is_double(plan) ? spectra<double>(plan, with_virial, stream) : spectra<float>(plan, with_virial, stream);
}

static gmxfmm_status upload(gmxfmm_plan* plan, DeviceBuffer* buffer, const void* from, size_t bytes)
{
    FMM_TRY(fmm_device_reserve(plan, buffer, bytes + 1));
    return fmm_cuda_upload(plan, buffer->memory, from, bytes);
}

/* Which lattice vectors, and their mirror images, fall on which cell of the grid. */
static gmxfmm_status upload_scatter(gmxfmm_plan* plan, const int (*vectors)[3], int num)
{
    fmm_device*                      d = plan->device;
    const int*                       n = transform_cells(plan)->n;
    std::vector<std::pair<int, int>> all(static_cast<size_t>(num) * 2);
    std::vector<int>                 start, cell, entry(all.size());
    for (size_t e = 0; e < all.size(); e++)
    {
        int at[3];
        for (int i = 0; i < 3; i++)
        {
            const int k = e % 2 != 0 ? -vectors[e / 2][i] : vectors[e / 2][i];
            at[i]       = (k % n[i] + n[i]) % n[i];
        }
        all[e] = {(at[0] * n[1] + at[1]) * n[2] + at[2], static_cast<int>(e)};
    }
    std::sort(all.begin(), all.end());
    for (size_t e = 0; e < all.size(); e++)
    {
        if (e == 0 || all[e].first != all[e - 1].first)
        {
            start.push_back(static_cast<int>(e));
            cell.push_back(all[e].first);
        }
        entry[e] = all[e].second;
    }
    d->num_scatter = static_cast<int>(cell.size());
    start.push_back(static_cast<int>(all.size()));
    FMM_TRY(upload(plan, &d->scatter_start, start.data(), start.size() * sizeof(int)));
    FMM_TRY(upload(plan, &d->scatter_cell, cell.data(), cell.size() * sizeof(int)));
    return upload(plan, &d->scatter_entry, entry.data(), entry.size() * sizeof(int));
}

static gmxfmm_status
upload_weights(gmxfmm_plan* plan, fmm_sum sum, int degree, const int (*vectors)[3], int num, DeviceBuffer* buffer)
{
    const size_t        size = static_cast<size_t>(degree + 1);
    std::vector<double> weights(static_cast<size_t>(num) * size);
    for (int i = 0; i < num; i++)
    {
        fmm_real_weights(transform_cells(plan), &plan->device->ewald, sum, degree, vectors[i],
                         weights.data() + static_cast<size_t>(i) * size);
    }
    return upload(plan, buffer, weights.data(), weights.size() * sizeof(double));
}

static gmxfmm_status upload_lattice(gmxfmm_plan* plan, const int (*vectors)[3], int num)
{
    fmm_device* d  = plan->device;
    const int   p  = plan->order;
    d->num_vectors = num;
    FMM_TRY(upload(plan, &d->lattice_vectors, vectors, static_cast<size_t>(num) * sizeof(*vectors)));
    FMM_TRY(upload_weights(plan, FMM_SUM_S, 2 * p, vectors, num, &d->lattice_weights));
    FMM_TRY(upload_weights(plan, FMM_SUM_Z, 2 * p + 2, vectors, num, &d->lattice_weights_z));
    FMM_TRY(fmm_device_reserve(plan, &d->lattice_table,
                               static_cast<size_t>(num) * static_cast<size_t>(d->num_coef) * real_size(plan)));
    return upload_scatter(plan, vectors, num);
}

gmxfmm_status fmm_device_set_shape(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    int(*vectors)[3] = NULL;
    int num          = 0;
    d->s_valid = d->z_valid = 0;
    FMM_CUDA(plan, cudaDeviceSynchronize()); /* a step may be using what is replaced */
    if (plan->tree != NULL)
    {
        FMM_TRY(fmm_cuda_octree_status(plan, fmm_octree_set_shape(d->tree.operators, &plan->cells, d->own)));
        FMM_CUDA(plan, cudaStreamSynchronize(d->own));
        if (!plan->periodic)
        {
            return GMXFMM_OK; /* no root is far from another: there are no sums */
        }
    }
    d->ewald = fmm_ewald_choose(transform_cells(plan), 2 * plan->order + 2,
                                is_double(plan) ? c_toleranceDouble : c_toleranceSingle);
    if (fmm_real_vectors(transform_cells(plan), &d->ewald, &vectors, &num) != GMXFMM_OK)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for lattice sums");
    }
    gmxfmm_status status;
    try
    {
        status = upload_lattice(plan, vectors, num);
    }
    catch (const std::bad_alloc&)
    {
        status = fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for lattice sums");
    }
    std::free(vectors);
    return status;
}
