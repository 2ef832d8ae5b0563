/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What lets a header of this folder be read as C11, as C++ and by a CUDA compiler; and pi. */
#ifndef FMM_HOST_DEVICE_H
#define FMM_HOST_DEVICE_H

#ifndef FMM_HD /* rotation_rows.h wants constexpr, too */
#    ifdef __CUDACC__
#        define FMM_HD __host__ __device__
#    else
#        define FMM_HD
#    endif
#endif

#define FMM_PI 3.14159265358979323846

#endif
