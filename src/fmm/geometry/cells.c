/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lattice of cells for a box, and the near set of a cell. */
#include "fmm/geometry/cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/geometry/fftsize.h"

/* A far vector of a skewed lattice may be this much shorter than (ws + 1) edges: the face-centred lattice has shells at
 * 1.944 and 2.245 edges, and its 19-cell set (shell at 1.944) is the counterpart of the 27-cell block. */
static const double c_skewSlack = 0.96;

double fmm_determinant(const double* m)
{
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
}

void fmm_inverse(const double* m, double det, double* inverse)
{
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            const int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
            inverse[3 * i + j] = (m[3 * a + c] * m[3 * b + d] - m[3 * a + d] * m[3 * b + c]) / det;
        }
    }
}

static double dot(const double* a, const double* b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

int fmm_is_rectangular(const double* box)
{
    for (int i = 0; i < 3; i++)
    {
        const double *a = box + 3 * i, *b = box + 3 * ((i + 1) % 3);
        if (fabs(dot(a, b)) > 1e-9 * sqrt(dot(a, a) * dot(b, b)))
        {
            return 0;
        }
    }
    return 1;
}

int fmm_is_aligned(const double* box)
{
    const double longest = fmax(box[0], fmax(box[4], box[8]));
    for (int i = 0; i < 9; i++)
    {
        if (i % 4 != 0 ? fabs(box[i]) > 1e-9 * longest : box[i] <= 0)
        {
            return 0;
        }
    }
    return 1;
}

void fmm_voronoi(const double* basis, double vectors[FMM_VORONOI][3], int coordinates[FMM_VORONOI][3])
{
    /* Superbase b0..b3 with b0 + b1 + b2 + b3 = 0. Selling's step makes a positive product vanish from the sum of
     * squares; it ends when all six products are <= 0 (Conway & Sloane 1992, Proc. R. Soc. A 436, 55). */
    double b[4][3];
    int    k[4][3];
    memset(k, 0, sizeof(k));
    for (int d = 0; d < 3; d++)
    {
        for (int i = 0; i < 3; i++)
        {
            b[i][d] = basis[3 * i + d];
        }
        b[3][d] = -b[0][d] - b[1][d] - b[2][d];
        k[d][d] = 1;
        k[3][d] = -1;
    }
    const double eps = 1e-12 * (dot(b[0], b[0]) + dot(b[1], b[1]) + dot(b[2], b[2]));
    for (int changed = 1, step = 0; changed && step < 1000; step++)
    {
        changed = 0;
        for (int i = 0; i < 4 && !changed; i++)
        {
            for (int j = i + 1; j < 4 && !changed; j++)
            {
                if (dot(b[i], b[j]) > eps)
                {
                    for (int l = 0; l < 4; l++)
                    {
                        for (int d = 0; d < 3 && l != i && l != j; d++)
                        {
                            b[l][d] += b[i][d];
                            k[l][d] += k[i][d];
                        }
                    }
                    for (int d = 0; d < 3; d++)
                    {
                        b[i][d] = -b[i][d];
                        k[i][d] = -k[i][d];
                    }
                    changed = 1;
                }
            }
        }
    }
    int count = 0;
    for (int set = 1; set < 15; set++)
    {
        for (int d = 0; d < 3; d++)
        {
            vectors[count][d]     = 0;
            coordinates[count][d] = 0;
            for (int i = 0; i < 4; i++)
            {
                if (set >> i & 1)
                {
                    vectors[count][d] += b[i][d];
                    coordinates[count][d] += k[i][d];
                }
            }
        }
        count++;
    }
}

double fmm_lambda(int order)
{
    /* exponents of y^n/n! at n = p and n!/R^(n+1) at n = 2p then stay within +-30 for p <= 20 */
    return order > 2 ? 0.4 * order : 1.0;
}

typedef struct
{
    int    k[3];
    double length; /* in edges */
} lattice_vector;

static int square(const int* k)
{
    return k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
}

/* By k^2, zero first, and among equals by components, as candidates come. Not by length, which changes with the box:
 * what refers to near vectors by their place (the octree's lists, excluded pairs) and the order of sums outlive such a
 * change. By counting, as a new box of few particles would notice qsort. */
static void sort_near(const lattice_vector* all, int count, int (*near)[3])
{
    int place[3 * FMM_NEAR_REACH * FMM_NEAR_REACH + 2] = {0}, most = 0;
    for (int i = 0; i < count; i++)
    {
        const int k2 = square(all[i].k);
        place[k2 + 1]++;
        most = k2 > most ? k2 : most;
    }
    for (int k2 = 0; k2 < most; k2++)
    {
        place[k2 + 1] += place[k2];
    }
    for (int i = 0; i < count; i++)
    {
        memcpy(near[place[square(all[i].k)]++], all[i].k, sizeof(all[i].k));
    }
}

/* Radius of the smallest sphere about the centre of a skewed cell that holds the cell, in units of cells->cell. */
static double skewed_radius(const fmm_cells* cells)
{
    /* Deep holes are found by sampling with a local search; 2 % on top covers what the samples miss. */
    const double* basis = cells->cell;
    double        best  = 0;
    for (int i = 0; i < 12 * 12 * 12; i++)
    {
        const double f[3]     = {(i % 12 + 0.5) / 12, (i / 12 % 12 + 0.5) / 12, (i / 144 + 0.5) / 12};
        int          shift[3] = {0, 0, 0};
        double       y[3];
        for (int d = 0; d < 3; d++)
        {
            y[d] = f[0] * basis[d] + f[1] * basis[3 + d] + f[2] * basis[6 + d];
        }
        fmm_reduce(cells->voronoi, cells->voronoi_int, y, shift);
        best = fmax(best, dot(y, y));
    }
    return 1.02 * sqrt(best);
}

static void shift_near(fmm_cells* cells)
{
    for (int i = 0; i < cells->num_near; i++)
    {
        const int* k = cells->near[i];
        for (int d = 0; d < 3; d++)
        {
            cells->near_shift[i][d] = k[0] * cells->cell[d] + k[1] * cells->cell[3 + d] + k[2] * cells->cell[6 + d];
        }
    }
}

/* The grid of the convolution. Where it is not periodic, displacements of -(n-1) .. n-1 cells and near vectors must not
 * overlap across the edge. */
static void set_grid(fmm_cells* cells, int reach)
{
    double num = 1;
    for (int d = 0; d < 3; d++)
    {
        const int inner = cells->inner[d], margin = inner - 1 > reach ? inner - 1 : reach;
        cells->n[d]      = cells->periodic[d] || !cells->padded ? inner : fmm_fft_size(inner + margin);
        cells->period[d] = cells->periodic[d] ? inner : FMM_NO_PERIOD;
        num *= cells->n[d];
    }
    cells->num_cells = cells->octree && !(num < 1e9) ? 0 : (int)num;
}

static gmxfmm_status store_near(fmm_cells* cells, const lattice_vector* all, int count)
{
    int(*near)[3] = realloc(cells->near, (size_t)count * sizeof(*near));
    if (near == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    cells->near            = near;
    double(*near_shift)[3] = realloc(cells->near_shift, (size_t)count * sizeof(*near_shift));
    if (near_shift == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    cells->near_shift = near_shift;
    cells->num_near   = count;
    int reach         = 0;
    sort_near(all, count, near);
    for (int i = 0; i < count; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            reach = abs(near[i][d]) > reach ? abs(near[i][d]) : reach;
        }
    }
    if (reach > FMM_NEAR_REACH)
    {
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    set_grid(cells, reach);
    const int w      = 2 * reach + 1;
    short*    lookup = realloc(cells->near_lookup, (size_t)(w * w * w) * sizeof(short));
    if (lookup == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    cells->near_lookup = lookup;
    cells->near_reach  = reach;
    for (int d = 0; d < 3 && !cells->octree; d++) /* an octree's levels have lists, and may be 2^30 cells long */
    {
        int* wrap = realloc(cells->wrap[d], (size_t)(cells->n[d] + 2 * reach) * sizeof(int));
        if (wrap == NULL)
        {
            return GMXFMM_ERROR_MEMORY;
        }
        cells->wrap[d] = wrap;
        for (int k = -reach; k < cells->n[d] + reach; k++)
        {
            wrap[k + reach] = (k % cells->n[d] + cells->n[d]) % cells->n[d];
        }
    }
    for (int i = 0; i < w * w * w; i++)
    {
        lookup[i] = -1;
    }
    for (int i = 0; i < count; i++)
    {
        lookup[((near[i][0] + reach) * w + near[i][1] + reach) * w + near[i][2] + reach] = (short)i;
    }
    return GMXFMM_OK;
}

/* Length of a row of m[9]. */
static double row_length(const double* m, int row)
{
    return sqrt(dot(m + 3 * row, m + 3 * row));
}

/* Longest vectors in edges that are near: those of the block apart; expansions of cells farther apart converge. */
static double near_radius(const fmm_cells* cells, int ws)
{
    if (!cells->rectangular)
    {
        return c_skewSlack * (ws + 1);
    }
    /* the diagonal of a brick for ws = 1: adds nothing to the block unless the brick is longer than 1.2 times its width
     */
    double diagonal2 = 0;
    for (int d = 0; d < 3; d++)
    {
        diagonal2 += dot(cells->cell + 3 * d, cells->cell + 3 * d);
    }
    return 0.5 * (ws + 1) * sqrt(diagonal2) / cells->lambda;
}

/* Components of lattice vectors up to `longest` edges, and of the first layer outside the block. Errors: UNSUPPORTED
 * (some are out of reach). */
static gmxfmm_status find_range(const fmm_cells* cells, int ws, double longest, int* range)
{
    double inverse[9];
    fmm_inverse(cells->cell, fmm_determinant(cells->cell), inverse);
    for (int d = 0; d < 3; d++)
    {
        const double g =
            sqrt(inverse[d] * inverse[d] + inverse[3 + d] * inverse[3 + d] + inverse[6 + d] * inverse[6 + d]);
        range[d] = (int)floor(longest * cells->lambda * g);
        range[d] = range[d] > ws + 1 ? range[d] : ws + 1;
        if (range[d] > FMM_NEAR_REACH)
        {
            return GMXFMM_ERROR_UNSUPPORTED;
        }
    }
    return GMXFMM_OK;
}

/* Length in edges of the lattice vector with coordinates k. */
static double vector_length(const fmm_cells* cells, const int* k)
{
    double r[3];
    for (int d = 0; d < 3; d++)
    {
        r[d] = k[0] * cells->cell[d] + k[1] * cells->cell[3 + d] + k[2] * cells->cell[6 + d];
    }
    return sqrt(dot(r, r)) / cells->lambda;
}

static int is_in_block(const fmm_cells* cells, const int* k, int layers)
{
    return cells->rectangular && abs(k[0]) <= layers && abs(k[1]) <= layers && abs(k[2]) <= layers;
}

/* radius: near_radius(cells, ws) */
static int is_near(const fmm_cells* cells, int ws, double radius, const int* k, double length)
{
    return is_in_block(cells, k, ws) || (length < radius && !cells->octree);
}

/* All lattice vectors that may be near or in the first far shells: *all, to be freed. Errors: MEMORY,
 * UNSUPPORTED (some are out of reach). */
static gmxfmm_status candidates(const fmm_cells* cells, int ws, double longest, lattice_vector** out, int* num)
{
    int                 range[3], count = 0;
    const gmxfmm_status status = find_range(cells, ws, longest, range);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    lattice_vector* all =
        malloc((size_t)(2 * range[0] + 1) * (size_t)(2 * range[1] + 1) * (size_t)(2 * range[2] + 1) * sizeof(*all));
    if (all == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    for (int a = -range[0]; a <= range[0]; a++)
    {
        for (int b = -range[1]; b <= range[1]; b++)
        {
            for (int c = -range[2]; c <= range[2]; c++)
            {
                lattice_vector v = {{a, b, c}, 0};
                v.length         = vector_length(cells, v.k);
                if (v.length < longest || is_in_block(cells, v.k, ws + 1))
                {
                    all[count++] = v;
                }
            }
        }
    }
    *out = all;
    *num = count;
    return GMXFMM_OK;
}

double fmm_covering_radius(const fmm_cells* cells)
{
    return cells->rectangular ? near_radius(cells, 0) : skewed_radius(cells) / cells->lambda;
}

double fmm_near_range(const fmm_cells* cells, int ws)
{
    if (cells->rectangular)
    {
        return ws * fmin(row_length(cells->cell, 0), fmin(row_length(cells->cell, 1), row_length(cells->cell, 2))) /
               cells->lambda;
    }
    return fmax(0.0, cells->far_distance - 2 * fmm_covering_radius(cells));
}

static gmxfmm_status near_set(fmm_cells* cells, int ws)
{
    const double    radius = near_radius(cells, ws);
    lattice_vector* all    = NULL;
    int             count  = 0;
    gmxfmm_status   status = candidates(cells, ws, radius + 0.5, &all, &count);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    int near            = 0;
    cells->far_distance = INFINITY;
    for (int i = 0; i < count; i++)
    {
        if (is_near(cells, ws, radius, all[i].k, all[i].length))
        {
            all[near++] = all[i];
        }
        else
        {
            cells->far_distance = fmin(cells->far_distance, all[i].length);
        }
    }
    cells->near_range = fmm_near_range(cells, ws);
    status            = store_near(cells, all, near);
    free(all);
    return status;
}

/* All that follows from the box and the grid alone. */
static void set_shape(fmm_cells* cells, const double* box)
{
    double basis[9], scaled_box[9];
    for (int i = 0; i < 9; i++)
    {
        basis[i] = box[i] / cells->inner[i / 3];
    }
    const double det   = fmm_determinant(basis);
    cells->rectangular = fmm_is_rectangular(box);
    cells->edge        = cbrt(det);
    cells->u           = cells->edge / cells->lambda;
    cells->cell_volume = det / (cells->u * cells->u * cells->u);
    cells->box_volume  = cells->cell_volume * cells->inner[0] * cells->inner[1] * cells->inner[2];
    fmm_inverse(basis, det, cells->to_cells);
    for (int i = 0; i < 9; i++)
    {
        cells->cell[i] = basis[i] / cells->u;
        /* a slab has no image along z: vectors this long are no nearer to any place in it than zero is */
        scaled_box[i] = box[i] / cells->u * (i > 5 && fmm_is_slab(cells->periodic) ? 4 : 1);
    }
    fmm_voronoi(cells->cell, cells->voronoi, cells->voronoi_int);
    fmm_voronoi(scaled_box, cells->box_voronoi, cells->box_voronoi_int);
}

static gmxfmm_status
set_cells(fmm_cells* cells, const double* box, const int* inner, const int* periodic, int ws, int order)
{
    memcpy(cells->periodic, periodic, sizeof(cells->periodic));
    memcpy(cells->inner, inner, sizeof(cells->inner));
    cells->lambda = fmm_lambda(order);
    set_shape(cells, box);
    const gmxfmm_status status = near_set(cells, ws);
    if (status == GMXFMM_OK)
    {
        shift_near(cells);
    }
    return status;
}

gmxfmm_status
fmm_cells_set(fmm_cells* cells, const double* box, const int* inner, const int* periodic, int ws, int order)
{
    cells->octree = 0;
    cells->padded = 1;
    return set_cells(cells, box, inner, periodic, ws, order);
}

gmxfmm_status
fmm_cells_set_octree(fmm_cells* cells, const double* box, const int* inner, const int* periodic, int ws, int order)
{
    cells->octree = 1;
    cells->padded = 0;
    return set_cells(cells, box, inner, periodic, ws, order);
}

gmxfmm_status
fmm_cells_set_roots(fmm_cells* cells, const double* box, const int* inner, const int* periodic, int ws, int order)
{
    cells->octree = 1;
    cells->padded = fmm_has_images(periodic);
    return set_cells(cells, box, inner, periodic, ws, order);
}

void fmm_cells_deform(fmm_cells* cells, const double* box)
{
    set_shape(cells, box);
    shift_near(cells);
}

/* Whether near_set would choose the near set that *cells has; if so, *far_distance is what it would find. */
static int chooses_same(const fmm_cells* cells, int ws, double* far_distance)
{
    const double radius = near_radius(cells, ws);
    int          range[3];
    *far_distance = INFINITY;
    if (find_range(cells, ws, radius + 0.5, range) != GMXFMM_OK)
    {
        return 0;
    }
    for (int a = -range[0]; a <= range[0]; a++)
    {
        for (int b = -range[1]; b <= range[1]; b++)
        {
            for (int c = -range[2]; c <= range[2]; c++)
            {
                const int    k[3] = {a, b, c}, has = fmm_near_index(cells, k) >= 0;
                const double length = vector_length(cells, k);
                if (is_near(cells, ws, radius, k, length) != has)
                {
                    return 0;
                }
                *far_distance = has ? *far_distance : fmin(*far_distance, length);
            }
        }
    }
    for (int i = 0; i < cells->num_near; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            if (abs(cells->near[i][d]) > range[d])
            {
                return 0;
            }
        }
    }
    return 1;
}

int fmm_cells_near_holds(const fmm_cells* cells, int ws)
{
    double far_distance;
    return chooses_same(cells, ws, &far_distance);
}

int fmm_cells_keep_near(fmm_cells* cells, int ws)
{
    double far_distance;
    if (!chooses_same(cells, ws, &far_distance))
    {
        return 0;
    }
    cells->far_distance = far_distance;
    cells->near_range   = -1;
    return 1;
}

void fmm_cells_free(fmm_cells* cells)
{
    free(cells->near);
    free(cells->near_shift);
    free(cells->near_lookup);
    for (int d = 0; d < 3; d++)
    {
        free(cells->wrap[d]);
        cells->wrap[d] = NULL;
    }
    cells->near        = NULL;
    cells->near_shift  = NULL;
    cells->near_lookup = NULL;
}
