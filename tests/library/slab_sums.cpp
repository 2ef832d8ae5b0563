/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lattice sums of a slab, by Ewald's method in its padded box less the images along z, against sums of lateral waves
 * alone, THEORY (40); and against themselves with other splittings and paddings. */
#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include <gtest/gtest.h>

extern "C"
{
#define HARM_T double
#define HARM_R double
#include "fmm/math/harmonics.h"
#include "fmm/geometry/lattice.h"
#include "fmm/geometry/lattice_slab.h"
}

using Complex = std::complex<double>;

namespace
{

const double pi = 3.14159265358979323846;

enum
{
    c_degree = 40
};

const auto c_size = static_cast<std::size_t>(harm_size(c_degree));

/* Coefficients, in the order of harmonics.h. */
using Sums = std::vector<double>;

/* (n-m)!(n+m)!, where Re and Im of the coefficient stand. */
const Sums& factorials()
{
    static const Sums c_table = []
    {
        Sums table(c_size, 0);
        for (int m = 0; m <= c_degree; m++)
        {
            for (int n = m; n <= c_degree; n++)
            {
                for (const int i : {harm_re(c_degree, n, m), harm_im(c_degree, n, m)})
                {
                    if (m > 0 || i == harm_re(c_degree, n, m))
                    {
                        table[static_cast<std::size_t>(i)] = std::exp(std::lgamma(n - m + 1) + std::lgamma(n + m + 1));
                    }
                }
            }
        }
        return table;
    }();
    return c_table;
}

/* Adds factor[n] times a coefficient of degree n to each. */
void addScaled(const Sums& term, const double* factor, Sums* out)
{
    for (int m = 0; m <= c_degree; m++)
    {
        const int length = c_degree + 1 - m;
        for (int i = 0; i < (m > 0 ? 2 : 1) * length; i++)
        {
            const auto at = static_cast<std::size_t>(harm_column(c_degree, m) + i);
            (*out)[at] += factor[m + i % length] * term[at];
        }
    }
}

/* Real part of e^(i angle) (-i)^n, by n. */
void phases(double angle, double* phase)
{
    const double c = std::cos(angle), s = std::sin(angle), of[4] = {c, s, -c, -s};
    for (int n = 0; n <= c_degree; n++)
    {
        phase[n] = of[n % 4];
    }
}

/* (2n-1)!!, also of n = -1. */
double oddFactorial(int n)
{
    double product = n < 0 ? -1 : 1;
    for (int k = 1; k < 2 * n; k += 2)
    {
        product *= k;
    }
    return product;
}

void addUpsilon(const double* r, double weight, Sums* out)
{
    static const Sums inverse = []
    {
        Sums table(c_size, 0);
        harm_fill_inverse(c_degree, table.data());
        return table;
    }();
    harm_add_upsilon(c_degree, r[0], r[1], r[2], weight, inverse.data(), out->data());
}

/* Cells of a slab, and sums with a splitting, in units of a cell's edge, and a padding. */
class Grid
{
  public:
    Grid(const double* plane, const int* inner, int ring, double alpha) : ring_(ring), alpha_(alpha)
    {
        const int    periodic[3] = {1, 1, 0};
        const double box[9]      = {plane[0], plane[1], 0, plane[2], plane[3], 0, 0, 0, 1.0 * inner[2]};
        EXPECT_EQ(fmm_cells_set(&cells_, box, inner, periodic, 1, 0), GMXFMM_OK);
        EXPECT_GE(ring, cells_.n[2]);
        cells_.n[2] = ring;
    }
    ~Grid()
    {
        fmm_cells_free(&cells_);
    }
    Grid(const Grid&)            = delete;
    Grid& operator=(const Grid&) = delete;

    /* At displacement at[3], in cells. */
    Sums sums(fmm_sum sum, const int* at) const
    {
        Sums out(c_size, 0);
        addReal(sum, at, &out);
        addReciprocal(sum, at, &out);
        addSlab(sum, at, &out);
        return out;
    }

    /* The same by lateral waves: |at[2]| > 1, where no vector is near. */
    Sums lateral(fmm_sum sum, const int* at) const;

  private:
    void   cartesian(const int* k, double* r) const;
    double area() const
    {
        return cells_.n[0] * cells_.n[1] * (cells_.cell[0] * cells_.cell[4] - cells_.cell[1] * cells_.cell[3]);
    }
    void addReal(fmm_sum sum, const int* at, Sums* out) const;
    void addReciprocal(fmm_sum sum, const int* at, Sums* out) const;
    void addSlab(fmm_sum sum, const int* at, Sums* out) const;

    fmm_cells cells_ = {};
    int       ring_;
    double    alpha_;
};

void Grid::cartesian(const int* k, double* r) const
{
    for (int d = 0; d < 3; d++)
    {
        r[d] = k[0] * cells_.cell[d] + k[1] * cells_.cell[3 + d] + k[2] * cells_.cell[6 + d];
    }
}

void Grid::addReal(fmm_sum sum, const int* at, Sums* out) const
{
    const int reach = static_cast<int>(9 / alpha_ / 0.8) + 1, images = 2 * reach;
    for (int i = -images; i <= images; i++)
    {
        for (int j = -images; j <= images; j++)
        {
            for (int l = -images; l <= images; l++)
            {
                const int k[3] = {at[0] + i * cells_.n[0], at[1] + j * cells_.n[1], at[2] + l * ring_};
                double    r[3], weight[c_degree + 1];
                cartesian(k, r);
                const double r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
                if (r2 > (9 / alpha_) * (9 / alpha_))
                {
                    continue;
                }
                fmm_vector_weights(sum, alpha_, c_degree, fmm_near_index(&cells_, k) >= 0, r2, weight);
                Sums term(c_size, 0);
                addUpsilon(r, r2 == 0 ? 2 : 1, &term);
                for (std::size_t at_n = 0; at_n < c_size; at_n++)
                {
                    term[at_n] *= factorials()[at_n];
                }
                addScaled(term, weight, out);
            }
        }
    }
}

void Grid::addReciprocal(fmm_sum sum, const int* at, Sums* out) const
{
    double       dual[9], volume = cells_.cell_volume * cells_.n[0] * cells_.n[1] * ring_, r[3];
    const double most = 2 * alpha_ * 8 + c_degree / 3.0;
    fmm_inverse(cells_.cell, fmm_determinant(cells_.cell), dual);
    cartesian(at, r);
    const int range[3] = {static_cast<int>(most * cells_.n[0] / 4), static_cast<int>(most * cells_.n[1] / 4),
                          static_cast<int>(most * ring_ / 4)};
    for (int a = -range[0]; a <= range[0]; a++)
    {
        for (int b = -range[1]; b <= range[1]; b++)
        {
            for (int c = -range[2]; c <= range[2]; c++)
            {
                const double f[3] = {1.0 * a / cells_.n[0], 1.0 * b / cells_.n[1], 1.0 * c / ring_};
                double       k[3], k2 = 0, angle = 0;
                for (int e = 0; e < 3; e++)
                {
                    k[e] = 2 * pi * (f[0] * dual[3 * e] + f[1] * dual[3 * e + 1] + f[2] * dual[3 * e + 2]);
                    k2 += k[e] * k[e];
                    angle += k[e] * r[e];
                }
                if (k2 == 0 || k2 > most * most)
                {
                    continue;
                }
                const double w = fmm_reciprocal_weight(sum, k2, alpha_, volume, std::exp(-k2 / (4 * alpha_ * alpha_)));
                Sums         term(c_size, 0);
                addUpsilon(k, w, &term);
                double phase[c_degree + 1];
                phases(angle, phase);
                for (int n = 0; n <= c_degree; n++)
                {
                    phase[n] /= oddFactorial(sum == FMM_SUM_S ? n : n - 1);
                }
                for (std::size_t i = 0; i < c_size; i++)
                {
                    term[i] *= factorials()[i];
                }
                addScaled(term, phase, out);
            }
        }
    }
    if (sum == FMM_SUM_S)
    {
        (*out)[0] -= pi / (alpha_ * alpha_ * volume);
    }
}

/* The library's spectrum, transformed back. */
void Grid::addSlab(fmm_sum sum, const int* at, Sums* out) const
{
    const fmm_slab_grid slab   = fmm_slab_grid_of(&cells_, c_degree, 1e-16);
    const double        weight = 1.0 / (cells_.n[0] * cells_.n[1] * ring_);
    for (int i = 0; i < cells_.n[0]; i++)
    {
        for (int j = 0; j < cells_.n[1]; j++)
        {
            for (int l = 0; l <= ring_ / 2; l++)
            {
                const int    f[3] = {i, j, l};
                const double angle =
                    2 * pi * (1.0 * i * at[0] / cells_.n[0] + 1.0 * j * at[1] / cells_.n[1] + 1.0 * l * at[2] / ring_);
                const double twice = l == 0 || 2 * l == ring_ ? 1 : 2; /* with the frequency's mirror image */
                Sums         term(c_size, 0);
                fmm_slab_add(&slab, sum, c_degree, f, twice * weight, term.data());
                double phase[c_degree + 1];
                phases(angle, phase);
                addScaled(term, phase, out);
            }
        }
    }
}

/* THEORY (40), (44) with the signs of a layer below, that of the charges. */
Sums Grid::lateral(fmm_sum sum, const int* at) const
{
    Sums   out(c_size, 0);
    double dual[9], r[3];
    fmm_inverse(cells_.cell, fmm_determinant(cells_.cell), dual);
    cartesian(at, r);
    const double z = std::fabs(r[2]), side = r[2] > 0 ? 1 : -1, most = (45 + 2 * c_degree) / z;
    const int    range[2] = {static_cast<int>(most * cells_.n[0] / 4), static_cast<int>(most * cells_.n[1] / 4)};
    for (int i = -range[0]; i <= range[0]; i++)
    {
        for (int j = -range[1]; j <= range[1]; j++)
        {
            const double f[2] = {1.0 * i / cells_.n[0], 1.0 * j / cells_.n[1]};
            const double hx   = 2 * pi * (f[0] * dual[0] + f[1] * dual[1]),
                         hy   = 2 * pi * (f[0] * dual[3] + f[1] * dual[4]);
            const double h    = std::hypot(hx, hy);
            if (h == 0 || h > most)
            {
                continue;
            }
            const Complex wave = std::polar(std::exp(-h * z), hx * r[0] + hy * r[1]);
            for (int m = 0; m <= c_degree; m++)
            {
                for (int n = m; n <= c_degree; n++)
                {
                    const double q = n - m, kappa = 1 - q + q * (q - 1) / (2.0 * n - 1);
                    const double of_sum = sum == FMM_SUM_S ? 1 : (2.0 * n - 1) / (h * h) * (kappa + h * z);
                    const double size =
                        (n & 1 ? -1 : 1) * 2 * pi / area() * std::pow(h, n - m - 1) * std::pow(-side, n - m) * of_sum;
                    const Complex value = size * wave * std::pow(Complex(0, 1) * Complex(hx, hy), m);
                    out[static_cast<std::size_t>(harm_re(c_degree, n, m))] += value.real();
                    if (m > 0)
                    {
                        out[static_cast<std::size_t>(harm_im(c_degree, n, m))] += value.imag();
                    }
                }
            }
        }
    }
    if (sum == FMM_SUM_S)
    {
        out[0] -= 2 * pi / area() * z;
        out[1] += 2 * pi / area() * side;
    }
    else
    {
        out[2] += 8 * pi / area() * z;    /* THEORY (44) for h = 0: -3 (2/3) 2 (-2 pi z / A) */
        out[3] -= 8 * pi / area() * side; /* 5 (2/5) d_z of that potential, twice */
    }
    return out;
}

/* Largest difference of coefficients relative to the size of Theta_n^m two cells away, or to their own. */
double difference(const Sums& a, const Sums& b, int first)
{
    double worst = 0;
    for (int m = 0; m <= c_degree; m++)
    {
        for (int n = std::max(m, first); n <= c_degree; n++)
        {
            const auto   re   = static_cast<std::size_t>(harm_re(c_degree, n, m));
            const double unit = std::max(std::fabs(b[re]), std::sqrt(factorials()[re]) / std::pow(2.0, n + 1));
            for (const int i : {harm_re(c_degree, n, m), m > 0 ? harm_im(c_degree, n, m) : harm_re(c_degree, n, m)})
            {
                const auto at = static_cast<std::size_t>(i);
                worst         = std::max(worst, std::fabs(a[at] - b[at]) / unit);
            }
        }
    }
    return worst;
}

/* Square, oblique, and 2 x 4 cells; the area of a cell is 1. */
struct PlaneOfCells
{
    double vectors[4];
    int    cells[3];
};

const PlaneOfCells c_planes[] = {
    {{3, 0, 0, 3}, {3, 3, 4}}, {{3, 0.4, 1.2, 3.16}, {3, 3, 4}}, {{2, 0, 0, 4}, {2, 4, 3}}, {{1, 0, 0, 1}, {1, 1, 4}}};

} // namespace

TEST(SlabSums, AreSumsOfLateralWaves)
{
    for (const PlaneOfCells& p : c_planes)
    {
        const Grid grid(p.vectors, p.cells, 8, 0.6);
        for (const fmm_sum sum : {FMM_SUM_S, FMM_SUM_Z})
        {
            for (const int z : {2, -2})
            {
                const int at[3] = {p.cells[0] / 2, p.cells[1] - 1, z};
                /* rounding; the first two of Z are of no use, and have another constant */
                EXPECT_LT(difference(grid.sums(sum, at), grid.lateral(sum, at), sum == FMM_SUM_S ? 0 : 2), 1e-13);
            }
        }
    }
}

TEST(SlabSums, DependNeitherOnSplittingNorOnPadding)
{
    for (const PlaneOfCells& p : c_planes)
    {
        const Grid a(p.vectors, p.cells, 8, 0.6), b(p.vectors, p.cells, 11, 0.8);
        for (const fmm_sum sum : {FMM_SUM_S, FMM_SUM_Z})
        {
            for (const int z : {0, 1, -2})
            {
                const int at[3] = {p.cells[0] / 2, p.cells[1] - 1, z};
                EXPECT_LT(difference(a.sums(sum, at), b.sums(sum, at), sum == FMM_SUM_S ? 0 : 2), 1e-13);
            }
        }
    }
}

/* As a device divides layers among threads; h = 0 has the sums of the mean. */
TEST(SlabSums, OfLayersAreThoseOfParts)
{
    fmm_slab_grid s = {};
    s.layers        = 8;
    s.edge          = 0.9;
    s.length        = 15 * s.edge;
    for (const double h : {0.0, 0.3, 4.0})
    {
        const fmm_slab_layers whole = fmm_slab_sum_layers(&s, h, 2.0, 0, 1);
        for (const int parts : {2, 3, 10})
        {
            fmm_slab_layers sum = {0, 0, 0, 0};
            for (int first = 0; first < parts; first++)
            {
                const fmm_slab_layers part = fmm_slab_sum_layers(&s, h, 2.0, first, parts);
                sum.even += part.even;
                sum.odd += part.odd;
                sum.even_z += part.even_z;
                sum.odd_z += part.odd_z;
            }
            const double size =
                std::fabs(whole.even) + std::fabs(whole.odd) + std::fabs(whole.even_z) + std::fabs(whole.odd_z);
            EXPECT_NEAR(sum.even, whole.even, 1e-15 * size);
            EXPECT_NEAR(sum.odd, whole.odd, 1e-15 * size);
            EXPECT_NEAR(sum.even_z, whole.even_z, 1e-15 * size);
            EXPECT_NEAR(sum.odd_z, whole.odd_z, 1e-15 * size);
        }
    }
}
