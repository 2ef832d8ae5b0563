#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What conda-build runs in the sources: all is compiled once, for the wheel, and then installed from there, too. conda-build sets
# PREFIX, PYTHON and CPU_COUNT; its compilers set CMAKE_ARGS.
set -euo pipefail
export GMXFMM_BUILD_FOLDER=$PWD/build/conda GMXFMM_JOBS=${CPU_COUNT:-1}
# lib: where conda's compilers look, on Red Hat's systems, too
export GMXFMM_CMAKE_ARGS="${CMAKE_ARGS:-} -G Ninja -DCMAKE_INSTALL_PREFIX=$PREFIX -DCMAKE_INSTALL_LIBDIR=lib ${GMXFMM_CMAKE_ARGS:-}"
"$PYTHON" -m pip install ./python --no-deps --no-build-isolation --no-index -v
cmake --build "$GMXFMM_BUILD_FOLDER" --parallel "$GMXFMM_JOBS"
cmake --install "$GMXFMM_BUILD_FOLDER" # the program in place of the command of Python's package that runs it
