# SPDX-License-Identifier: LGPL-2.1-or-later

# The target has to be visible in all directories that link libgromacs,
# so it is looked for at the top level and not in src/gromacs/fmm.
option(GMX_GMXFMM "Link the gmxfmm library, which computes coulombtype = FMM" OFF)
if (GMX_GMXFMM)
    find_package(gmxfmm CONFIG REQUIRED)
endif()
