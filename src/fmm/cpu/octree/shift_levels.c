/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables of M2M and L2L for who is compiled for no level of x86-64, src/cuda: the copy that every processor has. */
void fmm_shift_tables_d_v2(int p, const double* s, double* up, double* down);
void fmm_shift_tables_d(int p, const double* s, double* up, double* down);

void fmm_shift_tables_d(int p, const double* s, double* up, double* down)
{
    fmm_shift_tables_d_v2(p, s, up, down);
}
