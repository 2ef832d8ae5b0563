#!/usr/bin/env bash
# Builds the patched GROMACS and installs it. Usage: build-gromacs.sh mixed|double|mpi [TARGET...]
# With targets (test programs) these are built and nothing is installed. Mixed precision is built with CUDA when nvcc is found;
# mpi is mixed precision for ranks that are processes: gmx_mpi, by the MPI whose mpicc and mpicxx are in PATH.
#   GMXFMM_PREFIX   where to install (default build/install, for another version than 2022.5 build/install-VERSION)
#   GMXFMM_GPU=off  mixed precision and mpi without CUDA, too
#   GMXFMM_OPTIMIZE=off  mixed precision and mpi with -O1, as double precision always is: for tests, which compile longer than they run
#   GMXFMM_GROMACS_OPTIONS  more options for cmake, separated by spaces
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"

precision=${1:-mixed}
shift || true
folder=$GROMACS_BUILD-$precision
cmake=$("$ROOT/scripts/find-cmake.sh" "$GROMACS_TREE")
options=(-S "$GROMACS_TREE" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$INSTALL_PREFIX"
    -DCMAKE_PREFIX_PATH="$LIBRARY_PREFIX" -DGMX_GMXFMM=ON
    -DGMXAPI=OFF -DGMX_INSTALL_NBLIB_API=OFF -DGMX_BUILD_HELP=OFF -DGMX_HWLOC=OFF -DBUILD_SHARED_LIBS=OFF
    -DBUILD_TESTING=ON -DREGRESSIONTEST_DOWNLOAD=OFF)
if command -v ccache >/dev/null; then options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
# GROMACS with CUDA where nvcc is found
cuda_options() {
    if [ "${GMXFMM_GPU:-}" = off ] || ! nvcc=$(find_nvcc); then
        options+=(-DGMX_GPU=OFF)
    elif [ "$GROMACS_VERSION" = 2022.5 ]; then
        # The stub flag: GROMACS launches kernel templates from other files than those that instantiate them, which
        # CUDA 13 links only without static stubs; nvcc before 12.8 does not know the flag and does not need it.
        cuda_flags=
        # (no grep -q: it would end nvcc by SIGPIPE, which pipefail takes for "not found")
        if "$nvcc" --help | grep static-global-template-stub >/dev/null; then cuda_flags=-static-global-template-stub=false; fi
        options+=(-DGMX_GPU=CUDA -DGMX_CUDA_TARGET_SM="${GMXFMM_CUDA_SM:-90}" -DCUDA_HOST_COMPILER=/usr/bin/g++
            -DCUDA_TOOLKIT_ROOT_DIR="$(dirname "$(dirname "$nvcc")")" -DCUDA_NVCC_FLAGS="$cuda_flags")
    else
        options+=(-DGMX_GPU=CUDA -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_HOST_COMPILER=/usr/bin/g++
            -DCMAKE_CUDA_ARCHITECTURES="${GMXFMM_CUDA_SM:-90}" -DGMX_CUDA_ARCHITECTURES="${GMXFMM_CUDA_SM:-90}")
        if command -v ccache >/dev/null; then options+=(-DCMAKE_CUDA_COMPILER_LAUNCHER=ccache); fi
    fi
}
case $precision in
    mixed) cuda_options ;;
    double) options+=(-DGMX_DOUBLE=ON -DGMX_GPU=OFF) ;;
    mpi)
        command -v mpicxx >/dev/null || die "build-gromacs.sh mpi: there is no mpicxx in PATH: install an MPI, such as libopenmpi-dev"
        options+=(-DGMX_MPI=ON)
        cuda_options
        ;;
    *) die "build-gromacs.sh: mixed, double or mpi, not $precision" ;;
esac
if [ "$precision" = double ] || [ "${GMXFMM_OPTIMIZE:-}" = off ]; then
    options+=("-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG" "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")
fi
# shellcheck disable=SC2206
options+=(${GMXFMM_GROMACS_OPTIONS:-})

# CMake's checks of GROMACS take a minute: once per set of options. When a CMake file of the tree is newer, ninja repeats them.
hash=$(printf '%s\n' "${options[@]}" | sha256sum | cut -d ' ' -f 1)
if ! stamp_matches "configured$suffix-$precision" "$hash" || [ ! -f "$folder/build.ninja" ]; then
    stamp_remove "configured$suffix-$precision"
    # (in the build folder: a check of nvcc leaves files where it is)
    mkdir -p "$folder"
    (cd "$folder" && run_logged "gromacs$suffix-$precision-configure" "$cmake" "${options[@]}")
    stamp_write "configured$suffix-$precision" "$hash"
fi
if (($#)); then
    run_logged "gromacs$suffix-$precision-tests-build" ninja -C "$folder" -j "$JOBS" "$@"
else
    run_logged "gromacs$suffix-$precision-build" ninja -C "$folder" -j "$JOBS" gmx
    run_logged "gromacs$suffix-$precision-install" "$cmake" --install "$folder"
fi
