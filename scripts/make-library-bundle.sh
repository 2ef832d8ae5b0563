#!/usr/bin/env bash
# Puts the library's tests and benchmarks for a GPU into one folder, to be run on a machine that has one:
#   scripts/make-library-bundle.sh BUILD FOLDER     here; BUILD: a build folder configured with -DGMXFMM_BENCHMARKS=ON
#   FOLDER/run.sh OUT [PART]...                     there; or unpack FOLDER.tar.xz, which is the same
# GMXFMM_REFERENCE_DATA as for the tests; GMXFMM_SPC216: GROMACS's box of water, for benchmarks.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"
root=$ROOT
build=$(realpath "${1:?usage: make-library-bundle.sh BUILD FOLDER}")
bundle=$(realpath -m "${2:?usage: make-library-bundle.sh BUILD FOLDER}")
data=${GMXFMM_REFERENCE_DATA:-$root/../shared/data}
optimized "$build" || die "make-library-bundle.sh: $build has device code for tests alone: build it again (scripts/build-library.sh cuda --tests)"

rm -rf "$bundle" "$bundle.tar.xz"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/data" "$bundle/checkout"
for program in "$build"/tests/gmxfmm_test_* "$build"/benchmarks/benchmark-{water_cuda,slab_cuda,devices_cuda,points_cuda,charge_gradient,choice,treecode,treecode_ranks,m2l-gpu} "$build"/src/program/gmxfmm; do
    case $(basename "$program") in
        # valgrind and leak checks are of the host's memory; what heap.cpp counts includes the driver's
        *leaks* | *memory | *public_header | *.cmake) continue ;;
        # of the CPU alone: parts of the library and of the tests themselves, and what a GPU does not offer
        *_operators | *_tree | *_references | *_translations | *_ranks_cells) continue ;;
    esac
    [ -f "$program" ] && [ -x "$program" ] && strip -o "$bundle/bin/$(basename "$program")" "$program"
done
# all shared libraries but those of the C library and the driver, which belong to the other machine
for program in "$bundle"/bin/*; do ldd "$program"; done |
    awk '$2 == "=>" && $3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread|libcuda)\./ { print $3 }' | sort -u |
    while read -r library; do cp -L "$library" "$bundle/lib/"; done
rm -f "$bundle"/lib/libcufft* # large, and part of any CUDA installation, as is libnvrtc, which no program is linked with
cp "$root"/benchmarks/scaling.py "$bundle/"
# kernels that are compiled when they are first used: here, where time costs less; with another NVRTC there, they are again
compile=$build/tests/gmxfmm_test_rotation_compile
if [ -x "$compile" ]; then
    export GMXFMM_CACHE=$build/kernels
    for part in Single Double; do
        "$compile" --gtest_also_run_disabled_tests --gtest_filter="DISABLED_$part/*" >"$build/kernels-$part.log" &
    done
    wait
    if grep -F '[  FAILED  ]' "$build"/kernels-*.log; then exit 1; fi
    cp -r "$build/kernels" "$bundle/kernels"
fi
cp "${GMXFMM_SPC216:-/usr/share/gromacs/top/spc216.gro}" "$bundle/spc216.gro"
cp "$data"/*.gz "$bundle/data/" 2>/dev/null || true
cp -r "$build/tests/data" "$bundle/own" && cp "$root/tests/data/water216.gro" "$bundle/own/"
# the Python package with its tests and what these read, where they are in a checkout
for file in python/{gmxfmm/*.py,tests/*.py,examples/*.py,README.md} docs/{from-python,python}.md benchmarks/python_gpu.py tests/data/water216.gro; do
    (cd "$root" && cp --parents "$file" "$bundle/checkout")
done
cp "$root"/src/fmm/gmxfmm{,_measure,_parallel}.h "$bundle/checkout/python/gmxfmm/"
strip -o "$bundle/checkout/python/gmxfmm/libgmxfmm.so" "$build/src/fmm/libgmxfmm.so"
cp "$root/scripts/run-library-bundle.sh" "$bundle/run.sh"
cp "$root/scripts/library-results.py" "$root/tests/library/cli.sh" "$bundle/"
git -C "$root" describe --always --dirty --abbrev=10 >"$bundle/commit"
# every program has the library's kernels in it: with a dictionary longer than a program they are stored once
tar -C "$(dirname "$bundle")" -cf - "$(basename "$bundle")" | xz --lzma2=preset=1,dict=128MiB >"$bundle.tar.xz"
du -sh "$bundle" "$bundle.tar.xz"
