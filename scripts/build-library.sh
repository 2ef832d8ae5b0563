#!/usr/bin/env bash
# Builds libgmxfmm and the program gmxfmm.
# Usage: build-library.sh [release|sanitize|thread|cuda] [--tests]
#   release    for the CPU
#   cuda       with the device part, for which nvcc is needed
#   sanitize   address and undefined-behaviour sanitizers, debug
#   thread     thread sanitizer; of the tests only those of plans, and of ranks, in several threads
#   --tests    also the tests, with cuda the benchmarks, too
# Without one of these, cuda where nvcc is found, otherwise release: this is what GROMACS is linked with, and the one that is
# installed into build/library-install.
#   GMXFMM_OPTIMIZE=off  device code with -O1 where there is no GPU: for tests, which compile it and cannot run it
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"

if find_nvcc >/dev/null; then installed=cuda; else installed=release; fi
kind=$installed tests=OFF targets=()
for argument in "$@"; do
    case $argument in
        release | sanitize | thread | cuda) kind=$argument ;;
        --tests) tests=ON ;;
        *) die "build-library.sh: unknown argument $argument" ;;
    esac
done

folder=$BUILD_DIR/library-$kind
options=(-S "$ROOT" -B "$folder" -G Ninja)
# who builds the tests works on the library: warnings are errors
if [ "$tests" = ON ]; then options+=(-DGMXFMM_TESTS=ON -DGMXFMM_WERROR=ON); elif [ ! -f "$folder/build.ninja" ]; then options+=(-DGMXFMM_TESTS=OFF); fi
if [ "$kind" = sanitize ]; then
    # for this processor alone: one copy of the step to compile
    options+=(-DCMAKE_BUILD_TYPE=Debug -DGMXFMM_SANITIZE=ON -DGMXFMM_CUDA=OFF -DGMXFMM_ARCH=native)
elif [ "$kind" = thread ]; then
    options+=(-DCMAKE_BUILD_TYPE=Debug -DGMXFMM_SANITIZE_THREAD=ON -DGMXFMM_CUDA=OFF -DGMXFMM_ARCH=native)
    targets+=(gmxfmm_test_plans_in_threads gmxfmm_test_ranks gmxfmm_test_ranks_cells)
elif [ "$kind" = cuda ]; then
    # rotation at orders above 8 is compiled when a plan first asks for one (GMXFMM_CUDA_ALL_ORDERS)
    options+=(-DCMAKE_BUILD_TYPE=Release -DGMXFMM_CUDA=ON "-DCMAKE_CUDA_COMPILER=$(find_nvcc)"
        "-DCMAKE_CUDA_ARCHITECTURES=${GMXFMM_CUDA_SM:-90}")
    quick=
    if [ "${GMXFMM_OPTIMIZE:-}" = off ] && ! nvidia-smi -L >/dev/null 2>&1; then quick="-Xcicc -O1 -Xptxas -O1"; fi
    options+=("-DCMAKE_CUDA_FLAGS=${CUDAFLAGS:-}${quick:+ $quick}")
    if [ "$tests" = ON ]; then options+=(-DGMXFMM_BENCHMARKS=ON); fi
    if command -v ccache >/dev/null; then options+=(-DCMAKE_CUDA_COMPILER_LAUNCHER=ccache); fi
else
    options+=(-DCMAKE_BUILD_TYPE=Release -DGMXFMM_CUDA=OFF)
fi
if [ "$kind" = "$installed" ]; then options+=(-DCMAKE_INSTALL_PREFIX="$LIBRARY_PREFIX" -DCMAKE_POSITION_INDEPENDENT_CODE=ON); fi
if command -v ccache >/dev/null; then options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

run_logged "library-$kind-configure" cmake "${options[@]}"
run_logged "library-$kind-build" ninja -C "$folder" -j "$JOBS" "${targets[@]}"
# Files that have not changed keep their time, so GROMACS is linked again only when the library is new.
if [ "$kind" = "$installed" ]; then run_logged library-install cmake --install "$folder"; fi
