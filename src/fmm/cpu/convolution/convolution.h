/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L over all cells and images as a convolution over the grid of cells (Ong et al. 2003; THEORY section 5). */
#ifndef FMM_CONVOLUTION_H
#define FMM_CONVOLUTION_H

#include "fmm/cpu/convolution/fft.h"
#include "fmm/cpu/state.h"
#include "fmm/geometry/lattice.h"
#include "fmm/math/portable.h"

/* The far field by cells of one level. */
extern const fmm_cpu_path fmm_cells_path;

struct fmm_lattice;

struct fmm_convolution
{
    const fmm_cells* cells; /* grid it works on: plan->domain.cells, or an octree's roots */
    int              order;
    /* Frequency x columns.num + i of the own ones is that at x and of column i (fft.h); they are in chunks of VLEN. */
    int          num_own, num_chunks;
    real*        field; /* (p+1)^2 x fft.field_stride: multipoles of the cells, after the convolution locals */
    fmm_fft      fft;
    fmm_complex* spectrum; /* their transforms, fft.num_groups x fft.spectrum_stride; of several ranks the units
                            * that this one has (fft.h) */
    fmm_columns columns;   /* the columns that it has: of one rank all, in spectrum */
    real*       s;         /* num_chunks x (2p+1)^2 x VLEN: spectrum of S / num_cells */
    real*       z;         /* num_chunks x (2p+3)^2 x VLEN: of Z / num_cells, filled once a virial was asked for */
    double*     strain;    /* of a virial: 5 sums of each own frequency, and of each column */
    /* On their way between ranks (exchange.c): spectra of own units, and those of own columns; multipoles or locals. */
    fmm_complex *       packed, *own_columns;
    real*               cells_packed;
    size_t              cells_capacity;       /* bytes of these */
    int64_t             s_version, z_version; /* of the far field that s and z are of */
    struct fmm_lattice* lattice;              /* spectra.c */
    fmm_line_node       held[FMM_LINE_NODES]; /* nodes of plan->far.line whose spectra are in node_s and node_z, */
    real *              node_s[FMM_LINE_NODES], *node_z[FMM_LINE_NODES]; /* which are NULL until the first are wanted */
};

/* Degree of a spectrum, and its numbers. */
static inline int fmm_conv_degree(const struct fmm_convolution* conv, fmm_sum sum)
{
    return 2 * conv->order + (sum == FMM_SUM_Z ? 2 : 0);
}

static inline size_t fmm_conv_spectrum_size(const struct fmm_convolution* conv, fmm_sum sum)
{
    const size_t degrees = (size_t)fmm_conv_degree(conv, sum) + 1;
    return (size_t)conv->num_chunks * degrees * degrees * VLEN;
}

/* Vectors for the coefficients of a chunk of frequencies: there is room for the last group's lanes. */
static inline size_t fmm_conv_coef(int order)
{
    return (size_t)(order + 1) * (size_t)(order + 1) + VLEN;
}

/* Arrays and transforms for the plan's grid of cells, or of roots; what lattice sums of a new shape need; the spectra
 * where they are not valid, those of Z with_virial. Errors: MEMORY. */
gmxfmm_status fmm_conv_create(gmxfmm_plan* plan);
void          fmm_conv_destroy(struct fmm_convolution* conv);
gmxfmm_status fmm_conv_set_shape(gmxfmm_plan* plan);
void          fmm_conv_spectra(gmxfmm_plan* plan, int with_virial);

/* Number among all frequencies of the own frequency f; of the padding behind the last, that one. */
static inline int fmm_conv_frequency(const struct fmm_convolution* conv, int f)
{
    const int  own = f < conv->num_own ? f : conv->num_own - 1, num = conv->columns.num;
    const int* n = conv->cells->n;
    return own / num * n[1] * (n[2] / 2 + 1) + conv->columns.first + own % num;
}

/* The parts of the convolution: transforms of multipoles, and back to locals, of what this rank has of each; one chunk
 * of own frequencies, phases taken off, to re and im [fmm_conv_coef(order)]; the product with S at all of them, in
 * place. */
void fmm_conv_forward(gmxfmm_plan* plan, struct fmm_convolution* conv);
void fmm_conv_backward(gmxfmm_plan* plan, struct fmm_convolution* conv);
void fmm_conv_load(const struct fmm_convolution* conv, int chunk, vreal* re, vreal* im);
void fmm_conv_product(const gmxfmm_plan* plan, const struct fmm_convolution* conv);

void fmm_lattice_free(struct fmm_lattice* lattice);

/* Multipoles in conv->field to locals, in place. */
void fmm_m2l_fft(gmxfmm_plan* plan, struct fmm_convolution* conv);

/* The same; adds the strain derivative of the far energy less that of positions within cells, THEORY (22):
 * w[5] = dE/d(xx-yy), dE/d(2xy), dE/d(2xz), dE/d(2yz), dE/d(zz) (traceless parts), unit 1/u. */
void fmm_m2l_fft_virial(gmxfmm_plan* plan, struct fmm_convolution* conv, double* w);

/* The one of the two that is wanted, on conv->field; strain: NULL, or six sums (xx, yy, zz, xy, xz, yz) to which that
 * derivative is added, times scale. */
void fmm_convolve(gmxfmm_plan* plan, double scale, double* strain);

#endif
