# SPDX-License-Identifier: LGPL-2.1-or-later

# The target has to be visible in all directories that link libgromacs,
# so it is looked for at the top level and not in src/gromacs/fmm.
option(GMX_GMXFMM "Link the gmxfmm library, which computes coulombtype = FMM" OFF)
if (GMX_GMXFMM)
    find_package(gmxfmm CONFIG REQUIRED)
    # The pair kernels without Coulomb interactions
    set(GMX_USE_EXT_FMM ON CACHE BOOL "Enable support for an external Fast Multipole Method (FMM) library in GROMACS" FORCE)
endif()
