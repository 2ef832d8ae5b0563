/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of what is compiled several times, each time for processors of another level of x86-64, so that one library is
 * fast on all (fmm/simd_level.h chooses): there the build defines FMM_LEVEL as 2, 3 or 4, and LEVEL(name) is name_v2,
 * name_v3 or name_v4. In a build for one processor names stay as they are. */
#ifndef FMM_MATH_LEVEL_H
#define FMM_MATH_LEVEL_H

#ifdef FMM_LEVEL
#    define LEVEL_PASTE(name, level) name##_v##level
#    define LEVEL_NAME(name, level) LEVEL_PASTE(name, level)
#    define LEVEL(name) LEVEL_NAME(name, FMM_LEVEL)
#else
#    define FMM_LEVEL 0
#    define LEVEL(name) name
#endif

#endif
