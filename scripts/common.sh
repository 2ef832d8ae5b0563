# Shared by quickstart.sh, run-tests.sh and the scripts beside this file; sourced, never run.
# shellcheck shell=bash disable=SC2034
# What a user may set:
#   GMXFMM_BUILD_DIR   folder for everything that is made (default: build/ beside this repository's README)
#   GMXFMM_JOBS        parallel compile jobs (default: cores, at most one per 1.5 GB of memory)
#   GMXFMM_CUDA_SM     compute capability of the GPUs to compile for, as 90 (default), 80 or "80;90"
#   GMXFMM_GROMACS     version of GROMACS, 2022.5 (default) or 2026.3; the scripts' --gromacs sets it

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD_DIR=${GMXFMM_BUILD_DIR:-$ROOT/build}
mkdir -p "$BUILD_DIR"
BUILD_DIR=$(cd "$BUILD_DIR" && pwd)
LOG_DIR=$BUILD_DIR/logs
mkdir -p "$LOG_DIR"

DEFAULT_VERSION=2022.5
export GMXFMM_GROMACS=${GMXFMM_GROMACS:-$DEFAULT_VERSION}
GROMACS_VERSION=$GMXFMM_GROMACS
PATCH_DIR=$ROOT/gromacs-patch/$GROMACS_VERSION
SOURCE_DIR=$BUILD_DIR/source
GROMACS_TREE=$BUILD_DIR/gromacs-$GROMACS_VERSION
# The systems of all end-to-end tests are those of the default version's regression tests.
REGRESSION_TREE=$BUILD_DIR/regressiontests-$DEFAULT_VERSION
LIBRARY_PREFIX=$BUILD_DIR/library-install
# What belongs to another version than the default one has its name in it.
suffix=$([ "$GROMACS_VERSION" = "$DEFAULT_VERSION" ] || echo "-$GROMACS_VERSION")
GROMACS_BUILD=$BUILD_DIR/gromacs$suffix # followed by -mixed or -double
INSTALL_PREFIX=${GMXFMM_PREFIX:-$BUILD_DIR/install$suffix}

# The clock and the step count run through the scripts that are called from one another.
export GMXFMM_START=${GMXFMM_START:-$(date +%s)}

elapsed() {
    local s=$(($(date +%s) - GMXFMM_START))
    printf '%d:%02d' $((s / 60)) $((s % 60))
}

say() { printf '%s\n' "$*"; }

warn() { printf 'warning: %s\n' "$*" >&2; }

die() {
    printf '\nerror: %s\n' "$*" >&2
    exit 1
}

[ -f "$PATCH_DIR/series" ] || die "there are no patches for GROMACS $GROMACS_VERSION, only for: $(
    cd "$ROOT/gromacs-patch" && for file in */series; do printf '%s ' "${file%/series}"; done)"

# optimized FOLDER: whether the library that is built there has the device code that users get (GMXFMM_OPTIMIZE of build-library.sh)
optimized() { ! grep -q '^CMAKE_CUDA_FLAGS:.*-Xcicc -O1' "$1/CMakeCache.txt" 2>/dev/null; }

# step TITLE: announces step i of STEPS (set by the caller before the first step)
STEP=0
step() {
    STEP=$((STEP + 1))
    printf '[%d/%d, %s] %s\n' "$STEP" "${STEPS:-$STEP}" "$(elapsed)" "$*"
}

jobs_default() {
    local cores memory_kb by_memory
    cores=$(nproc)
    memory_kb=$(awk '/^MemTotal:/ {print $2}' /proc/meminfo)
    by_memory=$((memory_kb / 1500000))
    ((by_memory >= 1)) || by_memory=1
    ((cores <= by_memory)) && echo "$cores" || echo "$by_memory"
}
# Running the tests leaves nothing in the source tree.
export PYTHONDONTWRITEBYTECODE=1

# Compiled files are found again in ccache when another checkout, in another folder, is built: paths below this folder, the
# sources among them, count from where the compiler runs.
case $BUILD_DIR/ in
    "$ROOT"/*) export CCACHE_BASEDIR=$ROOT ;;
    *) export CCACHE_BASEDIR=$BUILD_DIR ;;
esac
export CCACHE_NOHASHDIR=1

JOBS=${GMXFMM_JOBS:-$(jobs_default)}

# run_followed LOG COMMAND...: output goes to LOG; meanwhile the counter of ninja, [3/40], or of ctest, 3/40 Test, is shown,
# on a terminal as it goes, otherwise once a minute. Returns the command's status.
run_followed() {
    local log=$1 pid status=0 shown='' line ticks=0
    shift
    # A process group of its own, so that Ctrl-C ends the whole job and not only this shell.
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    set +m
    trap 'kill -- -'"$pid"' 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        ticks=$((ticks + 1))
        if [ -t 1 ] || ((ticks % 60 == 0)); then
            line=$(tail -c 4000 "$log" 2>/dev/null | tr '\r' '\n' | grep -aoE '^(\[[0-9]+/[0-9]+\]| *[0-9]+/[0-9]+ Test)' | tail -n 1 |
                tr -d ' ' | sed 's/Test$/ tests/') || true
            if [ -n "$line" ] && [ "$line" != "$shown" ]; then
                if [ -t 1 ]; then printf '\r    %s %s ' "$line" "$(elapsed)"; else printf '    %s %s\n' "$line" "$(elapsed)"; fi
                shown=$line
            fi
        fi
    done
    wait "$pid" || status=$?
    trap - INT TERM
    if [ -t 1 ] && [ -n "$shown" ]; then printf '\r%*s\r' 40 ''; fi
    return "$status"
}

# run_logged NAME COMMAND...: run_followed with build/logs/NAME.log; upon failure the end of the log is shown and the script
# stops with one error.
run_logged() {
    local name=$1 log=$LOG_DIR/$1.log status=0
    shift
    run_followed "$log" "$@" || status=$?
    if ((status != 0)); then
        printf '\n--- last lines of %s\n' "$log" >&2
        tail -n 30 "$log" >&2
        die "'$name' failed with status $status; the whole output is in $log"
    fi
}

# content_hash PATH...: one checksum over names and contents of files and folders
content_hash() {
    local path
    for path in "$@"; do
        if [ -d "$path" ]; then (cd "$path" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum); else sha256sum <"$path"; fi
    done | sha256sum | cut -d ' ' -f 1
}

# A stamp holds the checksum of what a step was made from.
stamp_matches() { [ -f "$BUILD_DIR/stamps/$1" ] && [ "$(cat "$BUILD_DIR/stamps/$1")" = "$2" ]; }
stamp_write() {
    mkdir -p "$BUILD_DIR/stamps"
    printf '%s\n' "$2" >"$BUILD_DIR/stamps/$1"
}
stamp_remove() { rm -f "$BUILD_DIR/stamps/$1"; }

find_nvcc() {
    local nvcc
    for nvcc in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
        if [ -n "$nvcc" ] && [ -x "$nvcc" ]; then
            echo "$nvcc"
            return 0
        fi
    done
    return 1
}

# compile_timeline FOLDER: what records when kernels run, where the CUDA toolkit has CUPTI of version 13; else nothing
compile_timeline() {
    local nvcc cuda
    nvcc=$(find_nvcc || true)
    cuda=$(dirname "$(dirname "${nvcc:-/}")")
    if grep -qs CUpti_ActivityKernel10 "$cuda/include/cupti_activity.h"; then
        cc -std=c11 -Wall -Wextra -O2 -shared -fPIC -isystem "$cuda/include" -o "$1/libgmxfmm_timeline.so" "$ROOT/benchmarks/timeline.c" \
            -L"$cuda/lib64" -lcupti
        cp -L "$cuda"/lib64/libcupti.so.13 "$1/"
    fi
}
