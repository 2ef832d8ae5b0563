#!/usr/bin/env bash
# Programs of somebody else's against an installed copy, which is moved after it was installed: in C by pkg-config and a
# CMake project by find_package, each with the static and the shared library. The program is run from there, its manual is
# looked for.
#   installed.sh CMAKE BUILD COMPILER WORK
set -euo pipefail
cmake=$1 build=$2 compiler=$3 work=$4
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
fail() { echo "FAILED: $*" >&2 && exit 1; }

pc=$(find "$prefix" -name gmxfmm.pc)
export PKG_CONFIG_PATH=${pc%/*}
lib=$(dirname "${pc%/*}")
soname=$(readelf -d "$lib/libgmxfmm.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[[ $soname =~ ^libgmxfmm\.so\.[0-9]+\.[0-9]+$ && -e $lib/$soname ]] || fail "SONAME is '$soname'"
# needs PROGRAM: the libgmxfmm that it is linked with, if any
needs() { readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(libgmxfmm.*\)\]/\1/p'; }
export LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

if command -v pkg-config >/dev/null; then
    version=$(pkg-config --modversion gmxfmm)
    # shellcheck disable=SC2046
    "$compiler" -o "$work/shared" "$here/energy.c" $(pkg-config --cflags --libs gmxfmm) -lm
    "$work/shared"
    [ "$(needs "$work/shared")" = "$soname" ] || fail "pkg-config: not linked with $soname"
    # shellcheck disable=SC2046
    "$compiler" -o "$work/static" "$here/energy.c" $(pkg-config --static --cflags --libs gmxfmm | sed 's/-lgmxfmm/-l:libgmxfmm.a/') -lm
    "$work/static"
    [ -z "$(needs "$work/static")" ] || fail "pkg-config --static: linked with the shared library"
else
    fail "there is no pkg-config"
fi

for kind in static shared ""; do
    folder=$work/find-$kind
    "$cmake" -S "$here/find_package" -B "$folder" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" -DKIND="$kind" \
        -DWANTED_VERSION="${version%.*}" -DBUILD_SHARED_LIBS=ON >"$folder.log" 2>&1 || { cat "$folder.log" && fail "find_package $kind"; }
    "$cmake" --build "$folder" >>"$folder.log" 2>&1 || { cat "$folder.log" && fail "find_package $kind"; }
    "$folder/energy"
    [ "$(needs "$folder/energy")" = "$([ "$kind" != shared ] || echo "$soname")" ] || fail "find_package $kind: the wrong library"
done
# another minor version, and a kind that does not exist, are refused
for wrong in -DWANTED_VERSION=0.0 -DKIND=neither; do
    if "$cmake" -S "$here/find_package" -B "$work/wrong" -DCMAKE_PREFIX_PATH="$prefix" "$wrong" >"$work/wrong.log" 2>&1; then
        fail "find_package takes $wrong"
    fi
    rm -rf "$work/wrong"
done

printf '# box: 4 0 0  0 4 0  0 0 4\n# periodic: 1 1 1\n0 0 0 1\n1 1 1 -1\n' | "$prefix/bin/gmxfmm" solve - --quiet | grep '^energy:'
# complete WORD...: what bash offers for the last word
complete_words() (
    set +u
    # shellcheck disable=SC1091
    source "$prefix/share/bash-completion/completions/gmxfmm"
    COMP_WORDS=("$prefix/bin/gmxfmm" "$@") COMP_CWORD=$#
    _gmxfmm
    echo "${COMPREPLY[*]}"
)
offered() { # offered WANTED WORD...
    local wanted=$1
    shift
    [ "$(complete_words "$@")" = "$wanted" ] || fail "completion of '$*': '$(complete_words "$@")', not '$wanted'"
}
offered "solve" so
offered "--accuracy" solve salt.txt --acc
offered "--m2l --m2l-to-parent --m2l-truncate" solve salt.txt --m2
offered "fmm treecode auto" solve salt.txt --method ""
offered "rotation" solve salt.txt --m2l ro
offered "" solve sal
offered "" solve salt.txt --exclude pa
# what zsh makes of a line and a tab
if command -v zsh >/dev/null; then
    for line in "gmxfmm so|solve" "gmxfmm solve salt.txt --acc|--accuracy" "gmxfmm solve salt.txt --m2l ro|rotation"; do
        shown=$(zsh -f "$here/completion.zsh" "$prefix" "${line%|*}")
        [[ $shown == *"${line##*|}"* ]] || fail "completion of zsh of '${line%|*}': $shown"
    done
else
    echo "no zsh: its completion is not tested"
fi
page=$(find "$prefix" -name gmxfmm.1)
[ -s "$page" ] || fail "no manual page"
if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$page"
elif command -v man >/dev/null; then
    warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -l "$page" 2>&1 >/dev/null)
    [ -z "$warnings" ] || fail "manual page: $warnings"
fi
