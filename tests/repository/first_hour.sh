#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The first hour of a user: what docs/from-c.md and docs/program.md say, done in a scratch folder on a copy of the sources. Builds and
# installs the library, compiles the program of the first page against the installed copy, solves the file of the second and reads the output.
#   first_hour.sh [--gromacs]
#   --gromacs   also GROMACS: a box of water with an .mdp of one's own, and md.log read. With GMXFMM_GMX=.../gmx by that program,
#               otherwise ./quickstart.sh builds one first, which takes some 20 minutes.
# The commands are taken from the pages themselves, so they are what a user would type.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
gromacs=0
case ${1:-} in
    --gromacs) gromacs=1 ;;
    "") ;;
    *) echo "usage: first_hour.sh [--gromacs]" >&2 && exit 2 ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch/home # where the page installs
mkdir "$HOME" "$scratch/gmx-fmm" "$scratch/own"

start=$(date +%s)
say() { printf '[%3d s] %s\n' $(($(date +%s) - start)) "$*"; }
die() {
    echo "FAILED: $*" >&2
    exit 1
}

# block PAGE LANGUAGE HEADING [NUMBER]: the text of the NUMBERth block of this language under a heading
block() {
    awk -v language="$2" -v heading="$3" -v number="${4:-1}" '
        /^```/ { if (inside) { inside = 0; if (found && count == number) exit } else if (found && $0 == "```" language) { inside = 1; count++ ; next } else inside = 2; next }
        inside == 0 && /^#/ { found = ($0 == heading) }
        inside == 1 && found && count == number { print }' "$root/$1"
}

# follow PAGE HEADING [NUMBER]: runs the commands of a block, each of which must succeed
follow() {
    local commands
    commands=$(block "$1" sh "$2" "${3:-1}")
    [ -n "$commands" ] || die "no commands under '$2' in $1"
    printf '%s\n' "$commands" | sed 's/^/    $ /'
    bash -euo pipefail -c "$commands" >"$scratch/log" 2>&1 || {
        tail -n 30 "$scratch/log"
        die "the commands above"
    }
}

say "a copy of the sources"
if git -C "$root" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    (cd "$root" && git ls-files -z | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
        tar -cf - --null -T -) | tar -xf - -C "$scratch/gmx-fmm"
else
    cp -r "$root/." "$scratch/gmx-fmm"
    rm -rf "$scratch/gmx-fmm/build"
fi

say "build and install (docs/from-c.md)"
# what makes it fast, also on a machine that does other things, and changes nothing else; the CPU is enough for an hour
export CMAKE_BUILD_PARALLEL_LEVEL=${GMXFMM_JOBS:-2} CCACHE_BASEDIR=$scratch CCACHE_NOHASHDIR=1 CUDACXX=/nowhere OMP_NUM_THREADS=1
if command -v ccache >/dev/null; then
    CCACHE_DIR=${CCACHE_DIR:-$(ccache --get-config cache_dir 2>/dev/null || true)}
    export CCACHE_DIR CMAKE_C_COMPILER_LAUNCHER=ccache
fi
cd "$scratch/gmx-fmm"
follow docs/from-c.md "## Build and install" 2
export PATH=$HOME/gmxfmm/bin:$PATH

cd "$scratch/own"
say "a file of one's own"
block docs/program.md text "## Files of point charges" >salt.txt
[ "$(grep -vc '^#' salt.txt)" = 8 ] || die "salt.txt of docs/program.md has not 8 charges"
follow docs/program.md "## Files of point charges"
gmxfmm solve salt.txt --accuracy 1e-8 >salt.out 2>salt.notes
awk '/^energy: / { d = $2 + 4 * 1.747564594633182; good = d < 1e-6 && d > -1e-6 } END { exit !good }' salt.out ||
    die "the energy of salt.txt: $(grep '^energy:' salt.out)"
grep -q '^measured_error: ' salt.out || die "no measured error in the output"
say "    $(grep '^energy: ' salt.out); $(grep '^measured_error: ' salt.out)"

say "a program of one's own"
block docs/from-c.md c "## A program" >own.c
block docs/from-c.md cmake "## A program" >CMakeLists.txt
[ -s own.c ] || die 'docs/from-c.md has no program in C under "A program"'
printf '# box: 4 0 0  0 4 0  0 0 4\n# periodic: 1 1 1\n0 0 0 1\n1 0 0 -1\n' >two.txt
gmxfmm solve two.txt --accuracy 1e-6 --output solved.txt >two.energy
for number in 1 2; do # by CMake, and with the shared library
    follow docs/from-c.md "## A program" $number
    tail -n 1 "$scratch/log" >two.out
    awk 'FILENAME == "two.energy" { if ($1 == "energy:") energy = $2; next } FILENAME == "solved.txt" { if ($1 !~ /^#/ && !force) force = $6; next }
        { sub(/,/, "", $2); a = $2 - energy; b = $4 - force; good = energy && force && a * a < 1e-4 && b * b < 1e-4 } END { exit !good }' \
        two.energy solved.txt two.out || die "the program of docs/from-c.md printed: $(cat two.out)"
    say "    $(cat two.out)"
done
cc -Wall -Wextra -Werror -fsyntax-only -I"$HOME/gmxfmm/include" own.c || die "the program of docs/from-c.md has warnings"

if ((gromacs)); then
    say "GROMACS"
    if [ -z "${GMXFMM_GMX:-}" ]; then
        (cd "$scratch/gmx-fmm" && ./quickstart.sh --no-run) || die "quickstart.sh"
        GMXFMM_GMX=$scratch/gmx-fmm/build/install/bin/gmx
    fi
    water=${GMXFMM_SPC216:-/usr/share/gromacs/top/spc216.gro}
    [ -f "$water" ] || die "$water is missing (Debian: gromacs-data)"
    mkdir "$scratch/md" && cd "$scratch/md"
    cp "$water" conf.gro
    printf '%s\n' '#include "oplsaa.ff/forcefield.itp"' '#include "oplsaa.ff/spc.itp"' '[ system ]' water '[ molecules ]' 'SOL 216' >topol.top
    # the only line about the FMM is the first
    printf '%s\n' 'coulombtype = FMM' 'dt = 0.002' 'nsteps = 100' 'rvdw = 0.9' 'tcoupl = V-rescale' 'tc-grps = System' 'tau-t = 0.5' \
        'ref-t = 300' 'gen-vel = yes' >own.mdp
    "$GMXFMM_GMX" grompp -f own.mdp -c conf.gro -p topol.top >grompp.out 2>&1 || { tail -n 20 grompp.out && die "grompp"; }
    "$GMXFMM_GMX" mdrun -nb cpu >mdrun.out 2>&1 || { tail -n 20 mdrun.out && die "mdrun"; }
    grep -q '^FMM: far field by fft, expansion order' md.log || die "md.log does not say what was chosen"
    grep -qE 'expected relative RMS force error [0-9.e-]+, measured' md.log || die "md.log has no measured error"
    say "    $(grep -m 1 -o 'expected relative RMS force error.*' md.log)"
fi
say "all of it worked"
