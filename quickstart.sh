#!/usr/bin/env bash
# From a fresh Debian 12 with git and a compiler to a patched GROMACS and a comparison of FMM with PME on a real system.
# Usage: ./quickstart.sh [--gromacs VERSION] [--prefix FOLDER] [--no-run]
#   --gromacs VERSION 2022.5 (default) or 2026.3, whose source is that in GROMACS_SOURCE or is downloaded
#   --prefix FOLDER   install GROMACS there (default: build/install, or build/install-VERSION)
#   --no-run          stop after the installation
# Everything is made under build/ (GMXFMM_BUILD_DIR); a second run continues where the first stopped. More settings:
# scripts/common.sh, scripts/fetch-gromacs.sh.
set -euo pipefail
# Paths that the user gave count from where the user is.
for name in GROMACS_SOURCE REGRESSIONTESTS GMXFMM_BUILD_DIR; do
    if [ -n "${!name:-}" ]; then export "$name=$(realpath -m "${!name}")"; fi
done
run=1
while (($#)); do
    case $1 in
        --prefix)
            (($# > 1)) || { echo "quickstart.sh: --prefix needs a folder" >&2 && exit 2; }
            mkdir -p "$2"
            GMXFMM_PREFIX=$(cd "$2" && pwd)
            export GMXFMM_PREFIX
            shift
            ;;
        --gromacs)
            (($# > 1)) || { echo "quickstart.sh: --gromacs needs a version" >&2 && exit 2; }
            export GMXFMM_GROMACS=$2
            shift
            ;;
        --no-run) run=0 ;;
        -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 0 ;;
        *) echo "quickstart.sh: unknown option $1 (see --help)" >&2 && exit 2 ;;
    esac
    shift
done
cd "$(dirname "$0")"
# shellcheck source-path=SCRIPTDIR source=scripts/common.sh
source scripts/common.sh

STEPS=$((4 + run))
step "packages"
scripts/install-packages.sh
step "GROMACS $GROMACS_VERSION: source, checksum, patches"
scripts/fetch-gromacs.sh
step "the library"
scripts/build-library.sh
step "GROMACS: build ($JOBS jobs, $(find_nvcc >/dev/null && echo "with CUDA" || echo "CPU only, no nvcc found")) and installation; some 15 minutes on 2 cores"
scripts/build-gromacs.sh mixed

if ((run)); then
    step "swap_z with PME and with FMM"
    export GMXFMM_REGRESSION=$REGRESSION_TREE
    run_logged compare-with-pme python3 scripts/compare-with-pme.py "$INSTALL_PREFIX/bin/gmx" "$BUILD_DIR/quickstart$suffix"
    say ""
    cat "$BUILD_DIR/quickstart$suffix/results.txt"
    say ""
    say "As a plot: $BUILD_DIR/quickstart$suffix/results.svg; as data: results.json beside it."
fi
say "GROMACS with coulombtype = FMM: source $INSTALL_PREFIX/bin/GMXRC, then gmx ($(elapsed) in all)"
