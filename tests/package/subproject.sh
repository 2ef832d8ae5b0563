#!/usr/bin/env bash
# A project of somebody else's that adds this one by FetchContent; installing it installs nothing of gmxfmm.
#   subproject.sh CMAKE SOURCE COMPILER WORK
set -euo pipefail
cmake=$1 source=$2 compiler=$3 work=$4
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
run() { "$@" >>"$work/log" 2>&1 || { tail -n 40 "$work/log" && echo "FAILED: $*" && exit 1; }; }
generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache); fi
run "$cmake" -S "$here/subproject" -B "$work/build" "${generator[@]}" "${launcher[@]}" -DGMXFMM_SOURCE="$source" \
    -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release -DGMXFMM_ARCH=native # one copy of the step to compile
run "$cmake" --build "$work/build" --target energy
"$work/build/energy"
run "$cmake" --install "$work/build" --prefix "$work/prefix"
installed=$(cd "$work/prefix" && find . -type f)
if [ "$installed" != ./bin/energy ]; then
    echo "FAILED: installed, too: $installed"
    exit 1
fi
