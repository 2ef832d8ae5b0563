# SPDX-License-Identifier: LGPL-2.1-or-later

# The backend that computes coulombtype = FMM with the gmxfmm library
gmx_add_libgromacs_sources(
    fmmchoice.cpp
    fmmcoincidence.cpp
    fmmdomains.cpp
    fmmhalo.cpp
    fmmlisttuner.cpp
    fmmljsplit.cpp
    fmmljsplitchoice.cpp
    fmmljspliterrors.cpp
    fmmopensystem.cpp
    fmmothernames.cpp
    fmmpairkernels.cpp
    fmmpairlist.cpp
    fmmpreprocess.cpp
    fmmranks.cpp
    fmmremeasure.cpp
    fmmshares.cpp
    fmmslab.cpp
    fmmsystem.cpp
    fmmtaskassignment.cpp
    fmmversion.cpp
    fmmwalls.cpp
    gmxfmmbackend.cpp
    gmxfmmoptions.cpp
    )

if (GMX_GPU_CUDA)
    gmx_add_libgromacs_sources(fmmcharges.cu fmmgpu.cpp fmmvirial.cu)
    # They include device headers
    _gmx_add_files_to_property(CUDA_SOURCES fmmcharges.cu fmmgpu.cpp fmmpairkernels.cpp fmmvirial.cu)
    # Double precision on a GPU is an error in GROMACS; this sum over all atoms needs it
    set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/fmmvirial.cu
        DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/..
        PROPERTIES COMPILE_OPTIONS -Xptxas=-w)
else()
    gmx_add_libgromacs_sources(fmmgpu_stub.cpp)
endif()
if (GMX_GPU_CUDA AND (GMX_MPI OR GMX_THREAD_MPI))
    gmx_add_libgromacs_sources(fmmgpupeers.cu fmmgpuranks.cu)
    _gmx_add_files_to_property(CUDA_SOURCES fmmgpupeers.cu fmmgpuranks.cu)
else()
    gmx_add_libgromacs_sources(fmmgpuranks_stub.cpp)
endif()

if (GMX_GMXFMM)
    gmx_add_libgromacs_sources(
        fmmcommunicator.cpp
        fmmenergygroups.cpp
        fmmgpusteps.cpp
        fmmmeasure.cpp
        fmmperturbation.cpp
        fmmplan.cpp
        fmmreport.cpp
        fmmsiteenergies.cpp
        fmmsites.cpp
        fmmsolver.cpp
        fmmstep.cpp
        )
else()
    gmx_add_libgromacs_sources(fmmsolver_stub.cpp)
endif()

if (BUILD_TESTING)
    gmx_add_unit_test(FmmUnitTests fmm-test
        CPP_SOURCE_FILES
            tests/fmmchoice.cpp
            tests/fmmcoincidence.cpp
            tests/fmmlisttuner.cpp
            tests/fmmljsplit.cpp
            tests/fmmljspliterrors.cpp
            tests/fmmopensystem.cpp
            tests/fmmoptions.cpp
            tests/fmmothernames.cpp
            tests/fmmpairlist.cpp
            tests/fmmremeasure.cpp
            tests/fmmshares.cpp
            tests/fmmsystem.cpp
            tests/fmmtaskassignment.cpp
            tests/gmxfmmbackend.cpp
            )
    target_link_libraries(fmm-test PRIVATE taskassignment)
endif()
