#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Usage: apply.sh SRC_DIR
# Makes an unpacked GROMACS source tree offer coulombtype = FMM. A second run does nothing.
set -eu

fail() { echo "apply.sh: $*" >&2; exit 1; }

[ $# -eq 1 ] || fail "usage: apply.sh SRC_DIR, the folder of an unpacked GROMACS source tree"
here=$(cd "$(dirname "$0")" && pwd)
[ -d "$1" ] || fail "$1: no such folder"
src=$(cd "$1" && pwd)

version=$(sed -n 's/^project(Gromacs VERSION \([0-9.]*\).*/\1/p' "$src/CMakeLists.txt" 2> /dev/null || true)
[ -n "$version" ] || fail "$src is not a GROMACS source tree (its CMakeLists.txt does not say so)"
series=$here/$version
[ -f "$series/series" ] || fail "$src is GROMACS $version, for which there are no patches (there are for:$(
    for f in "$here"/*/series; do printf ' %s' "$(basename "$(dirname "$f")")"; done))"

# Ranges and comments of the mdp options are those of the library's
options=$here/../src/fmm/options.def
[ -f "$options" ] || fail "$options is missing: use this script in a complete checkout of gmxfmm"

# What the patched tree is made of
checksum=$(cd "$here" && { find common "$version" -type f; echo "../src/fmm/options.def"; } | LC_ALL=C sort | xargs sha256sum | sha256sum |
    cut -d ' ' -f 1)
stamp=$src/.gmxfmm-patched
if [ -f "$stamp" ]; then
    [ "$(cat "$stamp")" = "$checksum" ] || fail "$src has other patches than those in $series; start from a freshly unpacked tree"
    echo "$src already has these patches"
    exit 0
fi

# Patch a copy of the files concerned, so that a failure leaves the tree as it was
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$copy"
(cd "$series" && cat $(cat series)) | sed -n 's,^+++ b/,,p' | sort -u | while read -r file; do
    [ -f "$src/$file" ] || fail "$src has no $file; is the tree complete?"
    mkdir -p "$(dirname "$file")"
    cp -p "$src/$file" "$file"
done
while read -r patch; do
    if command -v patch > /dev/null; then
        patch -p1 -s -F0 --no-backup-if-mismatch < "$series/$patch"
    else
        git apply "$series/$patch"
    fi || fail "$patch does not apply to $src; start from a freshly unpacked GROMACS $version"
done < "$series/series"
cp -R "$here/common/files/." "$series/files/." .
cp "$options" src/gromacs/fmm/gmxfmmoptions.def
cp -R . "$src/"
echo "$checksum" > "$stamp"
echo "$src: GROMACS $version patched with $(wc -l < "$series/series") patches"
