/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables of M2M and L2L for src/cuda, which is compiled once for all levels of x86-64: made by the lowest level. */
void fmm_shift_tables_d_v2(int p, const double* s, double* up, double* down);
void fmm_shift_tables_d(int p, const double* s, double* up, double* down);

void fmm_shift_tables_d(int p, const double* s, double* up, double* down)
{
    fmm_shift_tables_d_v2(p, s, up, down);
}
