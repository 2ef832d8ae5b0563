/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * M2M and L2L by rotations, O(p^3) (rotation.h): a child's expansion is rotated until its shift s is along z, where
 *   M_n^m(y + s) = sum_{k<=n} |s|^{n-k}/(n-k)! M_k^m,  L_k^l about s = sum_{n>=k} (-|s|)^{n-k}/(n-k)! L_n^l,
 * and rotated back. With B the flip of rotation.h, multipoles go by B D(theta) B D(a), locals by its transposed
 * inverse. Eight shifts a parent; shift.h does all eight at the cost of one, O(p^4) though it is.
 */
#include "fmm/cpu/octree/operators.h"

#include <math.h>

#include "fmm/math/harmonics.h"
#include "fmm/cpu/octree/shift.h"
#include "fmm/cpu/simd/rotations.h"

/* The shift of one child: angles of its rotation and of the inverse, and |s|^j/j!. */
typedef struct
{
    angle a, theta, a_back, theta_back;
    real  power[c_maxOrder + 1];
} shift;

static void fill_shift(const gmxfmm_plan* plan, int octant, int p, shift* w)
{
    const double* cell = plan->domain.cells.cell;
    const vreal   zero = {0};
    double        s[3];
    for (int d = 0; d < 3; d++)
    {
        s[d] = 0;
        for (int e = 0; e < 3; e++)
        {
            s[d] += (octant >> (2 - e) & 1 ? 0.5 : -0.5) * cell[3 * e + d];
        }
    }
    const double rho = hypot(s[0], s[1]), r = hypot(rho, s[2]);
    /* a = phi - pi/2 */
    const real c = (real)(s[1] / rho), sn = (real)(-s[0] / rho), ct = (real)(s[2] / r), st = (real)(rho / r);
    fill_angle(p, zero + c, zero + sn, &w->a);
    fill_angle(p, zero + c, zero - sn, &w->a_back);
    fill_angle(p, zero + ct, zero + st, &w->theta);
    fill_angle(p, zero + ct, zero - st, &w->theta_back);
    double power = 1;
    for (int j = 0; j <= p; j++)
    {
        w->power[j] = (real)power;
        power *= r / (j + 1);
    }
}

/* Degree n: multiplied by e^{im first}, flipped, by e^{im second}, flipped. */
static void rotate_to_z(int n, const angle* first, const angle* second, const real* g, vreal* t)
{
    vreal u[c_maxDegree];
    rotate(n, first, t, t);
    flip(n, 0, g, t, u);
    rotate(n, second, u, u);
    flip(n, 0, g, u, t);
}

/* The inverse of rotate_to_z. */
static void rotate_back(int n, const angle* first, const angle* second, const real* g, vreal* t)
{
    vreal u[c_maxDegree];
    flip(n, 0, g, t, u);
    rotate(n, second, u, u);
    flip(n, 0, g, u, t);
    rotate(n, first, t, t);
}

static void load_degree(int p, int n, const vreal* columns, vreal* t)
{
    for (int m = 0; m <= n; m++)
    {
        t[rot_re(n, m) - n * n] = columns[harm_re(p, n, m)];
        if (m > 0)
        {
            t[rot_im(n, m) - n * n] = columns[harm_im(p, n, m)];
        }
    }
}

/* To columns, added to them if `add`. */
static void store_degree(int p, int n, int add, const vreal* t, vreal* columns)
{
    for (int m = 0; m <= n; m++)
    {
        for (int im = 0; im <= (m > 0); im++)
        {
            vreal*      to    = columns + (im ? harm_im(p, n, m) : harm_re(p, n, m));
            const vreal value = t[(im ? rot_im(n, m) : rot_re(n, m)) - n * n];
            if (add)
            {
                *to += value;
            }
            else
            {
                *to = value;
            }
        }
    }
}

/* Shift along z, column by column in place: higher degrees from lower ones (up), or lower from higher. */
static void shift_columns(int p, const real* power, int up, vreal* columns)
{
    for (int m = 0; m <= p; m++)
    {
        for (int im = 0; im <= (m > 0); im++)
        {
            vreal* c = columns + (im ? harm_im(p, m, m) : harm_re(p, m, m));
            for (int i = 0; i <= p - m; i++)
            {
                const int n   = up ? p - m - i : i;
                vreal     sum = c[n];
                for (int j = 1; j <= (up ? n : p - m - n); j++)
                {
                    sum += (up || !(j & 1) ? power[j] : -power[j]) * c[up ? n - j : n + j];
                }
                c[n] = sum;
            }
        }
    }
}

void fmm_m2m_rotation(const gmxfmm_plan* plan,
                      const fmm_level*   upper,
                      const fmm_level*   lower,
                      int                first,
                      int                lanes,
                      vreal*             work,
                      vreal*             out)
{
    const struct fmm_operators* ops = plan->cpu->ops;
    const int                   p   = ops->order;
    for (int i = 0; i < ops->num_coef; i++)
    {
        out[i] = (vreal){0};
    }
    for (int octant = 0; octant < 8; octant++)
    {
        shift     w;
        int       index[VLEN];
        vreal     t[c_maxDegree];
        const int contiguous = shift_children(upper->child, first, lanes, octant, lower->num, index);
        fill_shift(plan, octant, p, &w);
        for (int i = 0; i < ops->num_coef; i++)
        {
            work[i] = shift_gather((const real*)lower->multipole + (size_t)i * lower->stride, index, contiguous);
        }
        for (int n = 0, at = 0; n <= p; at += rot_flip_size(n), n++)
        {
            load_degree(p, n, work, t);
            rotate_to_z(n, &w.a, &w.theta, ops->flips + at, t);
            store_degree(p, n, 0, t, work);
        }
        shift_columns(p, w.power, 1, work);
        for (int n = 0, at = 0; n <= p; at += rot_flip_size(n), n++)
        {
            load_degree(p, n, work, t);
            rotate_back(n, &w.a_back, &w.theta_back, ops->flips + at, t);
            store_degree(p, n, 1, t, out);
        }
    }
}

void fmm_l2l_rotation(const gmxfmm_plan* plan, const vreal* in, vreal* out)
{
    const struct fmm_operators* ops   = plan->cpu->ops;
    const real*                 local = ops->flips + ROT_FLIP_LOCAL * ops->flip_size;
    const int                   p     = ops->order;
    for (int i = 0; i < 8; i++)
    {
        shift  w;
        vreal  t[c_maxDegree];
        vreal* columns = out + (size_t)i * (size_t)ops->num_coef;
        fill_shift(plan, 7 ^ i, p, &w);
        for (int n = 0, at = 0; n <= p; at += rot_flip_size(n), n++)
        {
            load_degree(p, n, in, t);
            rotate_to_z(n, &w.a_back, &w.theta_back, local + at, t);
            store_degree(p, n, 0, t, columns);
        }
        shift_columns(p, w.power, 0, columns);
        for (int n = 0, at = 0; n <= p; at += rot_flip_size(n), n++)
        {
            load_degree(p, n, columns, t);
            rotate_back(n, &w.a, &w.theta, local + at, t);
            store_degree(p, n, 0, t, columns);
        }
    }
}
