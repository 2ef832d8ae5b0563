#!/usr/bin/env bash
# Puts what tests and benchmarks of gmx mdrun on a GPU need into one folder, for a machine that has a GPU but nothing of GROMACS:
#   scripts/make-mdrun-bundle.sh FOLDER                 here, after ./quickstart.sh or ./run-tests.sh
#   scripts/run-mdrun-bundle.sh FOLDER OUT [PART]...    there, in a checkout of this project
# GMXFMM_GMX, GMXFMM_TOP and GMXFMM_REGRESSION name another gmx, its share/top and the regression tests, GMXFMM_MEMBRANE_PROTEIN the
# archive of the membrane protein, without which those parts are skipped there.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"

bundle=${1:?usage: make-mdrun-bundle.sh FOLDER}
gmx=${GMXFMM_GMX:-$INSTALL_PREFIX/bin/gmx}
top=${GMXFMM_TOP:-$INSTALL_PREFIX/share/gromacs/top}
regression=${GMXFMM_REGRESSION:-$REGRESSION_TREE}

# newer THAN OTHER: in whole seconds, which are all that installing a file keeps of its time
newer() {
    [ -f "$1" ] && (($(stat -c %Y "$1") > $(stat -c %Y "$2")))
}

[ -f "$gmx" ] || die "make-mdrun-bundle.sh: there is no $gmx: run ./quickstart.sh, or set GMXFMM_GMX"
built=$GROMACS_BUILD-mixed/bin/gmx
if [ -z "${GMXFMM_GMX:-}" ] && newer "$built" "$gmx"; then
    die "make-mdrun-bundle.sh: $built is newer than $gmx: install it, or set GMXFMM_GMX to the one that is meant"
fi

# gmx has the library in it
optimized "$BUILD_DIR/library-cuda" || die "make-mdrun-bundle.sh: the library has device code for tests alone: build it again (scripts/build-library.sh), and gmx"
library=$LIBRARY_PREFIX/lib/libgmxfmm.a
if newer "$library" "$gmx"; then
    die "make-mdrun-bundle.sh: $library is newer than $gmx, which has an earlier one in it: link gmx again (scripts/build-gromacs.sh)"
fi

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/top" "$bundle/regression"/{complex,freeenergy}
strip -o "$bundle/bin/gmx" "$gmx"
programs=("$gmx")
# A gmx_mpi of Open MPI takes that along: mpirun, and the components that it opens, but those for networks.
if ldd "$gmx" | grep 'libmpi[.]so' >/dev/null; then
    mkdir -p "$bundle/mpi"
    cp -L "$(command -v mpirun)" "$bundle/bin/"
    cp -rL "$(ompi_info --parsable --path pkglibdir | cut -d: -f3)" "$bundle/mpi/components"
    cp -rL "$(ompi_info --parsable --path pkgdatadir | cut -d: -f3)" "$bundle/mpi/data"
    rm -f "$bundle"/mpi/components/*_{ucx,ofi,openib,psm,psm2}.so
    programs+=("$bundle/bin/mpirun" "$bundle"/mpi/components/*.so)
fi
# All shared libraries but those of the C library, which belong to the other machine's loader, and CUDA's own.
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread|libcufft|libcuda)\./ { print $3 }' | sort -u |
    while read -r library; do cp -L "$library" "$bundle/lib/"; done
strip "$bundle"/lib/*
compile_timeline "$bundle/lib"
# Programs and libraries travel packed, and are unpacked where they are used.
tar -C "$bundle" -cf - $(cd "$bundle" && ls -d bin lib mpi 2>/dev/null) | xz --lzma2=preset=2,dict=128MiB >"$bundle/programs.tar.xz"
sha256sum <"$bundle/programs.tar.xz" >"$bundle/programs.sha256"
rm -rf "${bundle:?}"/{bin,lib,mpi}
cp -r "$top"/{oplsaa,gromos43a1,amber99,amber99sb}.ff "$top/spc216.gro" "$top"/*.dat "$bundle/top/"
for name in swap_z octahedron nbnxn_vsite; do cp -r "$regression/complex/$name" "$bundle/regression/complex/"; done
for name in restraints coulandvdwsequential_coul coulandvdwtogether transformAtoB relative; do
    cp -r "$regression/freeenergy/$name" "$bundle/regression/freeenergy/"
done
rm -f "$bundle"/regression/*/*/reference_*
protein=${GMXFMM_MEMBRANE_PROTEIN:-$ROOT/../shared/systems/membrane-protein-charmm.tar.xz}
if [ -f "$protein" ]; then cp "$protein" "$bundle/membrane-protein.tar.xz"; fi
git -C "$ROOT" describe --always --dirty=+ --abbrev=12 >"$bundle/commit"
du -sh "$bundle"
