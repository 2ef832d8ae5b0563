#!/usr/bin/env bash
# The library for 64-bit Arm by a cross compiler, and its unit tests under qemu-user. Usage: test-aarch64.sh [-march=...]
# Without an argument for Armv8 (NEON); with -march=armv8-a+sve, say, the compiler uses SVE where it can.
# Needs Debian's gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu and qemu-user; Arm's zlib and GoogleTest are fetched
# from Debian into the build folder. 77: one of these cannot be had, and which.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"
march=${1:-}
skip() { say "SKIPPED: $*" && exit 77; }
command -v aarch64-linux-gnu-g++ >/dev/null || skip "no cross compiler (Debian: gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu)"
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip "no qemu-aarch64 (Debian: qemu-user)"

root=$BUILD_DIR/aarch64-root
if [ ! -f "$root/complete" ]; then
    # apt with lists of its own, so that the machine's are not touched
    state=$BUILD_DIR/aarch64-apt
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$root"
    : >"$state/status"
    apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$state" -o "Dir::State::status=$state/status"
        -o "Dir::Cache=$state/cache" -o APT::Sandbox::User=root)
    packages=(zlib1g zlib1g-dev libgtest-dev)
    { "${apt[@]}" update && (cd "$state" && "${apt[@]}" download "${packages[@]}"); } >"$LOG_DIR/aarch64-packages.log" 2>&1 ||
        skip "Debian's packages for arm64 cannot be fetched; see $LOG_DIR/aarch64-packages.log"
    for package in "$state"/*.deb; do dpkg -x "$package" "$root"; done
    touch "$root/complete"
fi

name=aarch64${march//[^a-zA-Z0-9]/-}
folder=$BUILD_DIR/library-$name
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
# what the packages bring is looked for in their folder only
run_logged "library-$name-configure" cmake -S "$ROOT" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGMXFMM_CUDA=OFF \
    -DGMXFMM_TESTS=ON -DGMXFMM_WERROR=ON -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ "-DGMXFMM_ARCH=${march#-march=}" \
    -DCMAKE_FIND_ROOT_PATH="$root" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
    -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=$emulator;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=$root/usr/lib/aarch64-linux-gnu" \
    "${launcher[@]}"
suites=(cells edges errors fft operators plans_in_threads public_header tree)
run_logged "library-$name-build" ninja -C "$folder" -j "$JOBS" gmxfmm_shared gmxfmm-program "${suites[@]/#/gmxfmm_test_}"
# not what takes minutes of high orders, or runs programs of its own
say "    unit tests under $(basename "$emulator")"
ctest --test-dir "$folder" -L unit -E 'AtHighOrder|leaks|cli|NOT_BUILT' -j "$JOBS" --output-on-failure >"$LOG_DIR/$name.log" 2>&1 ||
    { tail -n 40 "$LOG_DIR/$name.log" && die "see $LOG_DIR/$name.log"; }
tail -n 5 "$LOG_DIR/$name.log"
