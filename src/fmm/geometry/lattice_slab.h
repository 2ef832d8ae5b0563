/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lattice sums of a slab, periodic along two vectors in the plane z = 0, from those of its padded box, which has images
 * along z besides. These are taken off, in closed form: THEORY (40) to (44), in C11 and CUDA alike; double always.
 *
 * Images of a periodic layer at distances j L are sums over lateral wave vectors h (Parry 1975, Surf. Sci. 49, 433; as
 * "layer correction" of a 3D sum Arnold, de Joannis & Holm 2002, J. Chem. Phys. 117, 2496), of which few are left as
 * far away as the padding is long. That of h = 0 is a polynomial in z, without k = 0 as the 3D sum is.
 */
#ifndef FMM_LATTICE_SLAB_H
#define FMM_LATTICE_SLAB_H

#include <math.h>

#include "fmm/geometry/cells.h"
#include "fmm/geometry/lattice_weights.h"
#include "fmm/math/harmonics.h"

/* What the sums depend on: lengths in u. */
typedef struct
{
    int    n[2], ring, layers; /* cells in the plane; along z with the padding, and that can hold particles */
    double a[2], b[2];         /* vectors of the cells in the plane, and their area */
    double area;
    double edge, length; /* of a cell along z, and of the ring */
    double h_max;
} fmm_slab_grid;

/* Wave vectors that matter for sums of degree <= degree: terms fall as h^(n-1) e^(-h gap), gap being the distance of
 * the nearest image's edge. 1.2 a degree: for errors of 1e-16 to degree 82, relative to the sums' terms two cells away.
 */
static inline FMM_HD fmm_slab_grid fmm_slab_grid_of(const fmm_cells* c, int degree, double tolerance)
{
    fmm_slab_grid s;
    for (int d = 0; d < 2; d++)
    {
        s.n[d] = c->n[d];
        s.a[d] = c->cell[d];
        s.b[d] = c->cell[3 + d];
    }
    s.ring   = c->n[2];
    s.layers = (s.ring + 1) / 2; /* the most that may hold particles: another assign changes it, not the ring */
    s.edge   = c->cell[8];
    s.area   = s.a[0] * s.b[1] - s.a[1] * s.b[0];
    s.length = s.ring * s.edge;
    s.h_max  = (1.2 * degree - log(tolerance)) / (s.length - (s.layers - 1) * s.edge);
    return s;
}

/* Sums over layers j of displacements, |j| < layers, of the images' e^(h (z - L)) +- e^(-h (z + L)) over 1 - e^(-h L):
 * even with cos(phi j), odd with sin(phi j); *_z: the same with h z times the other of the two. Of h = 0 sums of the
 * potential with the cosine, of the field with the sine and of the gradient with the cosine, THEORY (43): even, odd,
 * even_z. */
typedef struct
{
    double even, odd, even_z, odd_z;
} fmm_slab_layers;

/* The part of layers first, first + step, ... and as many below 0: on a device several threads share the layers. */
static inline FMM_HD fmm_slab_layers
fmm_slab_sum_layers(const fmm_slab_grid* s, double h, double phi, int first, int step)
{
    const double    l = s->length, unit = h > 0 ? -1 / expm1(-h * l) : 1;
    fmm_slab_layers sum = {0, 0, 0, 0};
    if (first == 0)
    {
        sum.even   = h > 0 ? 2 * exp(-h * l) : -l / 6;
        sum.even_z = h > 0 ? 0 : -4 / (3 * l);
    }
    for (int j = first > 0 ? first : step; j < s->layers; j += step)
    {
        const double z = j * s->edge, c = 2 * cos(phi * j), t = 2 * sin(phi * j);
        if (h > 0)
        {
            const double up = exp(h * (z - l)), down = exp(-h * (z + l));
            sum.even += c * (up + down);
            sum.odd += t * (up - down);
            sum.even_z += c * h * z * (up - down);
            sum.odd_z += t * h * z * (up + down);
        }
        else
        {
            sum.even -= c * (z * z / l + l / 6);
            sum.odd += t * 2 * z / l;
            sum.even_z -= c * 4 / (3 * l);
        }
    }
    sum.even *= unit;
    sum.odd *= unit;
    sum.even_z *= unit;
    sum.odd_z *= unit;
    return sum;
}

/* A wave vector at a frequency along z: its direction and length, and what its terms have of the layers. */
typedef struct
{
    double          x, y, k;
    double          far; /* h L times the images' mean number */
    fmm_slab_layers layer;
} fmm_slab_wave;

/* Wave vector h without its layers. */
static inline FMM_HD fmm_slab_wave fmm_slab_wave_of(const fmm_slab_grid* s, const double* h)
{
    fmm_slab_wave w = {0, 0, sqrt(h[0] * h[0] + h[1] * h[1]), 1, {0, 0, 0, 0}};
    if (w.k > 0)
    {
        w.x   = h[0] / w.k;
        w.y   = h[1] / w.k;
        w.far = -w.k * s->length / expm1(-w.k * s->length);
    }
    return w;
}

/* Adds the images' terms of a wave vector other than 0 in column m, the phase (-i)^n taken off, to out_re and, m > 0,
 * out_im, n = m .. degree. (re, im): (x + iy)^m; power: -weight 2 pi / A h^(m-1). */
static inline FMM_HD void fmm_slab_add_column(const fmm_slab_wave* w,
                                              fmm_sum              sum,
                                              int                  degree,
                                              int                  m,
                                              double               re,
                                              double               im,
                                              double               power,
                                              double*              out_re,
                                              double*              out_im)
{
    const double inverse = 1 / (w->k * w->k);
    double       value   = power;
    for (int n = m; n <= degree; n++)
    {
        const int    q = n - m, odd = q & 1, sign = ((n + m) >> 1 & 1) != (n & 1) ? -1 : 1;
        const double all  = odd ? w->layer.odd : w->layer.even;
        double       term = all;
        if (sum == FMM_SUM_Z)
        {
            const double of_z = odd ? w->layer.odd_z : w->layer.even_z;
            term              = inverse * ((2 * n - 1) * ((1 - q + w->far) * all - of_z) + q * (q - 1) * all);
        }
        out_re[q] += sign * value * re * term;
        if (m > 0)
        {
            out_im[q] += sign * value * im * term;
        }
        value *= w->k;
    }
}

/* The same of h = 0, which has terms in column 0 alone: THEORY (43), (44). */
static inline FMM_HD void fmm_slab_add_mean(
    const fmm_slab_grid* s, const fmm_slab_layers* layer, fmm_sum sum, int degree, double weight, double* out)
{
    const double unit = weight * 2 * FMM_PI / s->area;
    const int    of_z = sum == FMM_SUM_Z, first = of_z ? 2 : 0;
    const double of[3] = {unit * (of_z ? 4 : 1) * layer->even, unit * (of_z ? 4 : 1) * layer->odd,
                          -unit * (of_z ? 4.8 : 1) * layer->even_z};
    for (int i = 0; i < 3 && first + i <= degree; i++)
    {
        out[first + i] += of[i];
    }
}

/* Adds those of any wave vector in all columns of out[(degree+1)^2]. */
static inline FMM_HD void
fmm_slab_add_wave(const fmm_slab_grid* s, fmm_sum sum, int degree, const fmm_slab_wave* w, double weight, double* out)
{
    if (w->k == 0)
    {
        fmm_slab_add_mean(s, &w->layer, sum, degree, weight, out);
        return;
    }
    double re = 1, im = 0, power = -weight * 2 * FMM_PI / s->area / w->k;
    for (int m = 0; m <= degree; m++)
    {
        double* column = out + harm_column(degree, m);
        fmm_slab_add_column(w, sum, degree, m, re, im, power, column, column + (degree + 1 - m));
        const double next = re * w->x - im * w->y;
        im                = re * w->y + im * w->x;
        re                = next;
        power *= w->k;
    }
}

/* How many of the wave vectors congruent to a frequency there are to try in each direction, up and down. */
static inline FMM_HD void fmm_slab_range(const fmm_slab_grid* s, int* range)
{
    for (int d = 0; d < 2; d++)
    {
        const double* v = d == 0 ? s->a : s->b;
        range[d]        = (int)floor(s->h_max * sqrt(v[0] * v[0] + v[1] * v[1]) / (2 * FMM_PI) + 0.5);
    }
}

/* Wave vector h[2] number (i, j) of those congruent to frequency f[2] in the plane. Returns whether it matters. */
static inline FMM_HD int fmm_slab_wave_vector(const fmm_slab_grid* s, const int* f, int i, int j, double* h)
{
    double kappa[2];
    for (int d = 0; d < 2; d++)
    {
        kappa[d] = (double)(2 * f[d] <= s->n[d] ? f[d] : f[d] - s->n[d]) / s->n[d];
    }
    const double t = 2 * FMM_PI * (kappa[0] + i) / s->area, w = 2 * FMM_PI * (kappa[1] + j) / s->area;
    h[0] = t * s->b[1] - w * s->a[1];
    h[1] = w * s->a[0] - t * s->b[0];
    return h[0] * h[0] + h[1] * h[1] < s->h_max * s->h_max;
}

/* What the spectrum of a slab's sums has beside that of its padded box at frequency f[3], f[2] up to half the ring, the
 * phase (-i)^n taken off, times weight: added to out[(degree+1)^2]. */
static inline FMM_HD void
fmm_slab_add(const fmm_slab_grid* s, fmm_sum sum, int degree, const int* f, double weight, double* out)
{
    const double phi = 2 * FMM_PI * f[2] / s->ring;
    int          range[2];
    fmm_slab_range(s, range);
    for (int i = -range[0]; i <= range[0]; i++)
    {
        for (int j = -range[1]; j <= range[1]; j++)
        {
            double h[2];
            if (fmm_slab_wave_vector(s, f, i, j, h))
            {
                fmm_slab_wave w = fmm_slab_wave_of(s, h);
                w.layer         = fmm_slab_sum_layers(s, w.k, phi, 0, 1);
                fmm_slab_add_wave(s, sum, degree, &w, weight, out);
            }
        }
    }
}

#endif
