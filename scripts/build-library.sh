#!/usr/bin/env bash
# Builds libgmxfmm and the program gmxfmm and installs them into build/library-install.
# Usage: build-library.sh [release|sanitize|cuda] [--tests]
#   sanitize   address and undefined-behaviour sanitizers, debug, not installed
#   cuda       with the device part, its tests and benchmarks, not installed: GROMACS is linked with the plain library
#   --tests    also the tests
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"

kind=release tests=OFF
for argument in "$@"; do
    case $argument in
        release | sanitize | cuda) kind=$argument ;;
        --tests) tests=ON ;;
        *) die "build-library.sh: unknown argument $argument" ;;
    esac
done

folder=$BUILD_DIR/library-$kind
options=(-S "$ROOT" -B "$folder" -G Ninja)
if [ "$tests" = ON ]; then options+=(-DGMXFMM_TESTS=ON); elif [ ! -f "$folder/build.ninja" ]; then options+=(-DGMXFMM_TESTS=OFF); fi
if [ "$kind" = sanitize ]; then
    options+=(-DCMAKE_BUILD_TYPE=Debug -DGMXFMM_SANITIZE=ON -DGMXFMM_CUDA=OFF)
elif [ "$kind" = cuda ]; then
    # higher orders of the octree are the same templates, and take long to compile
    options+=(-DCMAKE_BUILD_TYPE=Release -DGMXFMM_CUDA=ON -DGMXFMM_CUDA_ALL_ORDERS=OFF -DGMXFMM_BENCHMARKS=ON "-DCMAKE_CUDA_COMPILER=$(find_nvcc)"
        "-DCMAKE_CUDA_ARCHITECTURES=${GMXFMM_CUDA_SM:-90}")
    if command -v ccache >/dev/null; then options+=(-DCMAKE_CUDA_COMPILER_LAUNCHER=ccache); fi
else
    options+=(-DGMXFMM_CUDA=OFF)
    options+=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$LIBRARY_PREFIX" -DCMAKE_POSITION_INDEPENDENT_CODE=ON)
fi
if command -v ccache >/dev/null; then options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

run_logged "library-$kind-configure" cmake "${options[@]}"
run_logged "library-$kind-build" ninja -C "$folder" -j "$JOBS"
# Files that have not changed keep their time, so GROMACS is linked again only when the library is new.
if [ "$kind" = release ]; then run_logged library-install cmake --install "$folder"; fi
