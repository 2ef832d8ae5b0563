/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that exist in both precisions, and once for each level of x86-64 where there are several (level.h). Their
 * files write fmm_p2m and are compiled several times; for the linker, and in fmm/backend.c, which lists all copies, it
 * is fmm_p2m_f and fmm_p2m_d, or fmm_p2m_f_v2 and so on. Types need no second name. A function that is missing here is
 * defined twice, which the linker refuses.
 */
#ifndef FMM_NAMES_H
#define FMM_NAMES_H

#include "fmm/math/level.h"

#ifdef FMM_DOUBLE
#    define FMM_NAME(name) LEVEL(name##_d)
#else
#    define FMM_NAME(name) LEVEL(name##_f)
#endif

#define fmm_backend_cpu FMM_NAME(fmm_backend_cpu)
#define fmm_cells_path FMM_NAME(fmm_cells_path)
#define fmm_conv_create FMM_NAME(fmm_conv_create)
#define fmm_conv_destroy FMM_NAME(fmm_conv_destroy)
#define fmm_conv_backward FMM_NAME(fmm_conv_backward)
#define fmm_conv_forward FMM_NAME(fmm_conv_forward)
#define fmm_conv_load FMM_NAME(fmm_conv_load)
#define fmm_conv_locals_to_cells FMM_NAME(fmm_conv_locals_to_cells)
#define fmm_conv_multipoles_to_units FMM_NAME(fmm_conv_multipoles_to_units)
#define fmm_conv_own_columns FMM_NAME(fmm_conv_own_columns)
#define fmm_conv_product FMM_NAME(fmm_conv_product)
#define fmm_conv_reserve FMM_NAME(fmm_conv_reserve)
#define fmm_conv_reserve_cells FMM_NAME(fmm_conv_reserve_cells)
#define fmm_conv_set_shape FMM_NAME(fmm_conv_set_shape)
#define fmm_conv_share FMM_NAME(fmm_conv_share)
#define fmm_conv_spectra FMM_NAME(fmm_conv_spectra)
#define fmm_conv_to_columns FMM_NAME(fmm_conv_to_columns)
#define fmm_conv_to_planes FMM_NAME(fmm_conv_to_planes)
#define fmm_convolve FMM_NAME(fmm_convolve)
#define fmm_cpu_assign FMM_NAME(fmm_cpu_assign)
#define fmm_expansion_force FMM_NAME(fmm_expansion_force)
#define fmm_far_pairs FMM_NAME(fmm_far_pairs)
#define fmm_fft_columns FMM_NAME(fmm_fft_columns)
#define fmm_fft_create FMM_NAME(fmm_fft_create)
#define fmm_fft_destroy FMM_NAME(fmm_fft_destroy)
#define fmm_fft_planes FMM_NAME(fmm_fft_planes)
#define fmm_fft_units FMM_NAME(fmm_fft_units)
#define fmm_l2l FMM_NAME(fmm_l2l)
#define fmm_l2l_rotation FMM_NAME(fmm_l2l_rotation)
#define fmm_l2l_strain FMM_NAME(fmm_l2l_strain)
#define fmm_l2p FMM_NAME(fmm_l2p)
#define fmm_l2p_leaves FMM_NAME(fmm_l2p_leaves)
#define fmm_lattice_free FMM_NAME(fmm_lattice_free)
#define fmm_m2l FMM_NAME(fmm_m2l)
#define fmm_m2l_by_target FMM_NAME(fmm_m2l_by_target)
#define fmm_m2l_fft FMM_NAME(fmm_m2l_fft)
#define fmm_m2l_fft_virial FMM_NAME(fmm_m2l_fft_virial)
#define fmm_m2l_kernel FMM_NAME(fmm_m2l_kernel)
#define fmm_m2l_naive FMM_NAME(fmm_m2l_naive)
#define fmm_m2l_rotation FMM_NAME(fmm_m2l_rotation)
#define fmm_m2l_source FMM_NAME(fmm_m2l_source)
#define fmm_m2l_symmetric FMM_NAME(fmm_m2l_symmetric)
#define fmm_m2m FMM_NAME(fmm_m2m)
#define fmm_m2m_rotation FMM_NAME(fmm_m2m_rotation)
#define fmm_octree_path FMM_NAME(fmm_octree_path)
#define fmm_operators_create FMM_NAME(fmm_operators_create)
#define fmm_operators_destroy FMM_NAME(fmm_operators_destroy)
#define fmm_operators_reserve FMM_NAME(fmm_operators_reserve)
#define fmm_operators_set_shape FMM_NAME(fmm_operators_set_shape)
#define fmm_output FMM_NAME(fmm_output)
#define fmm_p2m FMM_NAME(fmm_p2m)
#define fmm_p2m_leaves FMM_NAME(fmm_p2m_leaves)
#define fmm_p2p FMM_NAME(fmm_p2p)
#define fmm_p2p_scratch FMM_NAME(fmm_p2p_scratch)
#define fmm_particle_sums FMM_NAME(fmm_particle_sums)
#define fmm_permute FMM_NAME(fmm_permute)
#define fmm_rotation_tables FMM_NAME(fmm_rotation_tables)
#define fmm_scratch_of FMM_NAME(fmm_scratch_of)
#define fmm_shift_tables FMM_NAME(fmm_shift_tables)
#define fmm_sort_charges FMM_NAME(fmm_sort_charges)
#define fmm_step FMM_NAME(fmm_step)
#define fmm_sum_strain FMM_NAME(fmm_sum_strain)
#define fmm_widths FMM_NAME(fmm_widths)
#define fmm_widths_assign FMM_NAME(fmm_widths_assign)
#define fmm_widths_scratch FMM_NAME(fmm_widths_scratch)
#define sites_cpu FMM_NAME(sites_cpu)
#define sites_cpu_make_lists FMM_NAME(sites_cpu_make_lists)
#define sites_cpu_pairs FMM_NAME(sites_cpu_pairs)
#define treecode_sums FMM_NAME(treecode_sums)
#define treecode_sums_scratch FMM_NAME(treecode_sums_scratch)

#endif
