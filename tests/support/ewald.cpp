/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * With the splitting alpha, S(k) = sum_j q_j exp(i k r_j), Q = sum q and r over all images of all particles:
 *   phi_i = sum_{j, images} q_j erfc(alpha r) / r  +  4 pi / V sum_{k != 0} exp(-k^2 / 4 alpha^2) / k^2 Re[exp(-i k
 * r_i) S(k)]
 *           - 2 alpha / sqrt(pi) q_i  -  pi Q / (alpha^2 V)
 * The virial is half the derivative of the energy with respect to a strain x -> x (1 + strain), term by term: for real
 * space and for excluded pairs from d r = r_a r_b / r d strain_ab, in reciprocal space from
 * d(k^2) = -2 k_a k_b d strain_ab and d V = V d strain_aa.
 */
#include "support/ewald.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace fmmtest
{

namespace
{

const double pi = 3.14159265358979323846;

/* erfc(5.9) = 7e-17: what lies beyond cutoff and largest wave vector is below rounding. */
const double reach = 5.9;

struct Splitting
{
    double cutoff;
    double alpha;
    double kMax;
};

/* The cutoff at which the sums over pairs and over wave vectors take about the same time, from
 * N rho cutoff^3 ~ N V alpha^3; the factor is measured. */
Splitting chooseSplitting(const System& system, double cutoffScale)
{
    Splitting    s;
    const double n = static_cast<double>(system.size());
    s.cutoff       = cutoffScale * 2.2 * std::cbrt(volume(system.box)) / std::pow(n, 1.0 / 6.0);
    s.alpha        = reach / s.cutoff;
    s.kMax         = 2 * s.alpha * reach;
    return s;
}

/* Adds q_j erfc(alpha r) / r of the image at r to particle i; virial gets r (x) grad of the energy. */
void addRealPair(
    const Splitting& s, double qi, double qj, const Vec3& r, double r2, double* potential, double* field, Mat3* strain)
{
    const double distance = std::sqrt(r2);
    const double screened = std::erfc(s.alpha * distance) / distance;
    const double gauss    = 2 * s.alpha / std::sqrt(pi) * std::exp(-s.alpha * s.alpha * r2);
    const double slope    = -(screened + gauss) / r2; /* derivative of the pair potential over r */

    *potential += qj * screened;
    for (std::size_t a = 0; a < 3; a++)
    {
        field[a] -= qj * slope * r[a]; /* r points from the image of j to i */
        for (std::size_t b = 0; b < 3; b++)
        {
            (*strain)[3 * a + b] += 0.5 * qi * qj * slope * r[a] * r[b];
        }
    }
}

/* All images of j within the cutoff of i; d = r_i - r_j and f its fractional coordinates. */
void addImages(const System&    system,
               const Mat3&      recip,
               const Splitting& s,
               std::size_t      i,
               std::size_t      j,
               Solution*        out,
               Mat3*            strain)
{
    const Mat3&  box  = system.box;
    const double d[3] = {system.x[3 * i] - system.x[3 * j], system.x[3 * i + 1] - system.x[3 * j + 1],
                         system.x[3 * i + 2] - system.x[3 * j + 2]};
    int          low[3], high[3];
    for (std::size_t a = 0; a < 3; a++)
    {
        const double* g = &recip[3 * a];
        const double  f = d[0] * g[0] + d[1] * g[1] + d[2] * g[2];
        /* planes of the lattice along a are 1 / |a*| apart */
        const double range = s.cutoff * std::sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
        low[a]             = static_cast<int>(std::ceil(-range - f));
        high[a]            = static_cast<int>(std::floor(range - f));
    }
    for (int h = low[0]; h <= high[0]; h++)
    {
        for (int k = low[1]; k <= high[1]; k++)
        {
            for (int l = low[2]; l <= high[2]; l++)
            {
                const Vec3   r  = {d[0] + h * box[0] + k * box[3] + l * box[6],
                                   d[1] + h * box[1] + k * box[4] + l * box[7],
                                   d[2] + h * box[2] + k * box[5] + l * box[8]};
                const double r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
                if (r2 < s.cutoff * s.cutoff && !(i == j && h == 0 && k == 0 && l == 0))
                {
                    addRealPair(s, system.q[i], system.q[j], r, r2, &out->potential[i], &out->field[3 * i], strain);
                }
            }
        }
    }
}

void addReal(const System& system, const Splitting& s, Solution* out, Mat3* strain)
{
    const Mat3 recip = reciprocal(system.box);
    const long n     = static_cast<long>(system.size());
#pragma omp parallel
    {
        Mat3 mine = {};
#pragma omp for schedule(static)
        for (long i = 0; i < n; i++)
        {
            for (long j = 0; j < n; j++)
            {
                addImages(system, recip, s, static_cast<std::size_t>(i), static_cast<std::size_t>(j), out, &mine);
            }
        }
#pragma omp critical
        for (std::size_t a = 0; a < 9; a++)
        {
            (*strain)[a] += mine[a];
        }
    }
}

/* exp(2 pi i m f) for all particles and m = 0..mMax, f a fractional coordinate; real and imaginary parts apart. */
struct Phases
{
    std::size_t         n;
    std::vector<double> re, im;

    Phases(const System& system, const double* recip, int mMax) : n(system.size())
    {
        re.resize(n * static_cast<std::size_t>(mMax + 1));
        im.resize(re.size());
        for (int m = 0; m <= mMax; m++)
        {
            for (std::size_t i = 0; i < n; i++)
            {
                const double f =
                    system.x[3 * i] * recip[0] + system.x[3 * i + 1] * recip[1] + system.x[3 * i + 2] * recip[2];
                /* the fraction is taken before the sine, so that large multiples lose nothing */
                const double turn                       = m * f - std::floor(m * f);
                re[static_cast<std::size_t>(m) * n + i] = std::cos(2 * pi * turn);
                im[static_cast<std::size_t>(m) * n + i] = std::sin(2 * pi * turn);
            }
        }
    }
    const double* real(int m) const
    {
        return &re[static_cast<std::size_t>(std::abs(m)) * n];
    }
    const double* imag(int m) const
    {
        return &im[static_cast<std::size_t>(std::abs(m)) * n];
    }
};

double sign(int m)
{
    return m < 0 ? -1.0 : 1.0;
}

/* The reciprocal sum of one thread: a column of wave vectors (h, k, all l) at a time. */
class Column
{
  public:
    Column(const System& system, const Splitting& s, const Phases phases[3], Solution* out, Mat3* strain)
        : system_(system), s_(s), phases_(phases), out_(out), strain_(strain), re_(system.size()), im_(system.size()),
          waveRe_(system.size()), waveIm_(system.size())
    {
    }
    /* the product of the first two phases, then every l of one half space */
    void add(const Mat3& recip, int h, int k, int lMax)
    {
        const double *hr = phases_[0].real(h), *hi = phases_[0].imag(h);
        const double *kr = phases_[1].real(k), *ki = phases_[1].imag(k);
        for (std::size_t i = 0; i < re_.size(); i++)
        {
            const double a = sign(h) * hi[i], b = sign(k) * ki[i];
            re_[i] = hr[i] * kr[i] - a * b;
            im_[i] = hr[i] * b + a * kr[i];
        }
        /* k and -k give the same: h > 0, or h = 0 and k > 0, or h = k = 0 and l > 0 */
        for (int l = (h == 0 && k == 0) ? 1 : -lMax; l <= lMax; l++)
        {
            Vec3 wave;
            for (std::size_t d = 0; d < 3; d++)
            {
                wave[d] = 2 * pi * (h * recip[d] + k * recip[3 + d] + l * recip[6 + d]);
            }
            const double k2 = wave[0] * wave[0] + wave[1] * wave[1] + wave[2] * wave[2];
            if (k2 < s_.kMax * s_.kMax)
            {
                addWave(wave, k2, l);
            }
        }
    }

  private:
    std::complex<double> structureFactor(int l)
    {
        const double *lr = phases_[2].real(l), *li = phases_[2].imag(l);
        const double  side = sign(l);
        double        re = 0, im = 0;
        const long    n = static_cast<long>(re_.size());
#pragma omp simd reduction(+ : re, im)
        for (long i = 0; i < n; i++)
        {
            const double b = side * li[i];
            waveRe_[static_cast<std::size_t>(i)] =
                re_[static_cast<std::size_t>(i)] * lr[i] - im_[static_cast<std::size_t>(i)] * b;
            waveIm_[static_cast<std::size_t>(i)] =
                re_[static_cast<std::size_t>(i)] * b + im_[static_cast<std::size_t>(i)] * lr[i];
            re += system_.q[static_cast<std::size_t>(i)] * waveRe_[static_cast<std::size_t>(i)];
            im += system_.q[static_cast<std::size_t>(i)] * waveIm_[static_cast<std::size_t>(i)];
        }
        return {re, im};
    }
    void addWave(const Vec3& wave, double k2, int l)
    {
        const std::complex<double> sum = structureFactor(l);
        const double               v   = volume(system_.box);
        const double g = 2 * 4 * pi / v * std::exp(-k2 / (4 * s_.alpha * s_.alpha)) / k2; /* 2: k and -k */
        for (std::size_t i = 0; i < re_.size(); i++)
        {
            const double re = waveRe_[i] * sum.real() + waveIm_[i] * sum.imag();
            const double im = waveRe_[i] * sum.imag() - waveIm_[i] * sum.real();
            out_->potential[i] += g * re;
            out_->field[3 * i] -= g * im * wave[0];
            out_->field[3 * i + 1] -= g * im * wave[1];
            out_->field[3 * i + 2] -= g * im * wave[2];
        }
        const double energy = 0.5 * g * std::norm(sum);
        const double factor = 2 * (1 / k2 + 1 / (4 * s_.alpha * s_.alpha));
        for (std::size_t a = 0; a < 3; a++)
        {
            for (std::size_t b = 0; b < 3; b++)
            {
                (*strain_)[3 * a + b] += energy * (factor * wave[a] * wave[b] - (a == b ? 1 : 0));
            }
        }
    }

    const System&       system_;
    const Splitting&    s_;
    const Phases*       phases_;
    Solution*           out_;
    Mat3*               strain_;
    std::vector<double> re_, im_;         /* phases of h and k */
    std::vector<double> waveRe_, waveIm_; /* exp(i k r) */
};

void addReciprocal(const System& system, const Splitting& s, Solution* out, Mat3* strain)
{
    const Mat3 recip = reciprocal(system.box);
    int        most[3];
    for (std::size_t d = 0; d < 3; d++)
    {
        const double* edge = &system.box[3 * d];
        most[d] =
            static_cast<int>(s.kMax * std::sqrt(edge[0] * edge[0] + edge[1] * edge[1] + edge[2] * edge[2]) / (2 * pi));
    }
    const Phases phases[3] = {{system, &recip[0], most[0]}, {system, &recip[3], most[1]}, {system, &recip[6], most[2]}};
    const int    columns   = (most[0] + 1) * (2 * most[1] + 1);
#pragma omp parallel
    {
        Solution mine       = emptySolution(system.size());
        Mat3     mineStrain = {};
        Column   column(system, s, phases, &mine, &mineStrain);
#pragma omp for schedule(static, 1)
        for (int c = 0; c < columns; c++)
        {
            const int h = c / (2 * most[1] + 1), k = c % (2 * most[1] + 1) - most[1];
            if (h > 0 || k >= 0)
            {
                column.add(recip, h, k, most[2]);
            }
        }
#pragma omp critical
        {
            std::transform(mine.potential.begin(), mine.potential.end(), out->potential.begin(), out->potential.begin(),
                           std::plus<double>());
            std::transform(mine.field.begin(), mine.field.end(), out->field.begin(), out->field.begin(),
                           std::plus<double>());
            std::transform(mineStrain.begin(), mineStrain.end(), strain->begin(), strain->begin(), std::plus<double>());
        }
    }
}

void addSelfAndBackground(const System& system, const Splitting& s, Solution* out, Mat3* strain)
{
    const double v   = volume(system.box);
    double       net = 0;
    for (double q : system.q)
    {
        net += q;
    }
    const double background = -pi * net / (s.alpha * s.alpha * v);
    for (std::size_t i = 0; i < system.size(); i++)
    {
        out->potential[i] += background - 2 * s.alpha / std::sqrt(pi) * system.q[i];
    }
    for (std::size_t a = 0; a < 3; a++)
    {
        (*strain)[4 * a] -= 0.5 * net * background;
    }
}

void addSurface(const System& system, Solution* out, Mat3* strain)
{
    const double v      = volume(system.box);
    Vec3         dipole = {0, 0, 0};
    for (std::size_t i = 0; i < system.x.size(); i++)
    {
        dipole[i % 3] += system.q[i / 3] * system.x[i];
    }
    for (std::size_t i = 0; i < system.x.size(); i++)
    {
        out->potential[i / 3] += 4 * pi / (3 * v) * dipole[i % 3] * system.x[i];
        out->field[i] -= 4 * pi / (3 * v) * dipole[i % 3];
    }
    const double square = dipole[0] * dipole[0] + dipole[1] * dipole[1] + dipole[2] * dipole[2];
    for (std::size_t a = 0; a < 3; a++)
    {
        for (std::size_t b = 0; b < 3; b++)
        {
            (*strain)[3 * a + b] += 2 * pi / (3 * v) * (2 * dipole[a] * dipole[b] - (a == b ? square : 0));
        }
    }
}

void subtractExcluded(const System& system, Solution* out, Mat3* strain)
{
    const Lattice lattice(system.box);
    for (std::size_t i = 0; i < system.excluded.size(); i++)
    {
        for (int other : system.excluded[i])
        {
            const std::size_t j = static_cast<std::size_t>(other);
            if (i == j)
            {
                continue;
            }
            const Vec3 r =
                lattice.nearest({system.x[3 * i] - system.x[3 * j], system.x[3 * i + 1] - system.x[3 * j + 1],
                                 system.x[3 * i + 2] - system.x[3 * j + 2]});
            const double r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
            const double u  = 1 / std::sqrt(r2);
            out->potential[i] -= system.q[j] * u;
            for (std::size_t a = 0; a < 3; a++)
            {
                out->field[3 * i + a] -= system.q[j] * u / r2 * r[a];
                for (std::size_t b = 0; b < 3; b++)
                {
                    (*strain)[3 * a + b] += 0.5 * system.q[i] * system.q[j] * u / r2 * r[a] * r[b];
                }
            }
        }
    }
}

} // namespace

Solution ewald(const System& system, Boundary boundary, double cutoffScale)
{
    Solution out    = emptySolution(system.size());
    Mat3     strain = {};
    if (system.size() == 0)
    {
        return out;
    }
    const Splitting s = chooseSplitting(system, cutoffScale);
    addReal(system, s, &out, &strain);
    addReciprocal(system, s, &out, &strain);
    addSelfAndBackground(system, s, &out, &strain);
    if (boundary == Boundary::Vacuum)
    {
        addSurface(system, &out, &strain);
    }
    subtractExcluded(system, &out, &strain);
    finishSolution(system, &out);
    for (std::size_t a = 0; a < 9; a++)
    {
        out.virial[a] = 0.5 * strain[a];
    }
    return out;
}

} // namespace fmmtest
