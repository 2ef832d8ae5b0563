#!/usr/bin/env bash
# Puts what the GPU tests need into one folder, to be run on a machine that has a GPU but nothing of GROMACS:
#   scripts/make-gpu-bundle.sh FOLDER        here, after ./quickstart.sh or ./run-tests.sh
#   scripts/run-gpu-bundle.sh FOLDER OUT     there, in a checkout of this project
# GMXFMM_GMX, GMXFMM_TOP and GMXFMM_REGRESSION name another gmx, its share/top and the regression tests.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"

bundle=${1:?usage: make-gpu-bundle.sh FOLDER}
gmx=${GMXFMM_GMX:-$INSTALL_PREFIX/bin/gmx}
top=${GMXFMM_TOP:-$INSTALL_PREFIX/share/gromacs/top}
regression=${GMXFMM_REGRESSION:-$REGRESSION_TREE}

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/top" "$bundle/regression/complex"
strip -o "$bundle/bin/gmx" "$gmx"
# All shared libraries but those of the C library, which belong to the other machine's loader, and CUDA's own.
ldd "$gmx" | awk '$2 == "=>" && $3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread|libcufft|libcuda)\./ { print $3 }' |
    while read -r library; do cp -L "$library" "$bundle/lib/"; done
strip "$bundle"/lib/*
cp -r "$top/oplsaa.ff" "$top/spc216.gro" "$top"/*.dat "$bundle/top/"
cp -r "$regression/complex/swap_z" "$bundle/regression/complex/"
rm -f "$bundle"/regression/complex/*/reference_*
git -C "$ROOT" rev-parse --short HEAD >"$bundle/commit"
du -sh "$bundle"
