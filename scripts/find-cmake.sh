#!/usr/bin/env bash
# Prints the path of a cmake that is new enough for a source tree: the one in PATH, or one from PyPI in the build folder.
# Usage: find-cmake.sh SOURCE_TREE
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"

wanted=$(sed -n 's/^cmake_minimum_required(VERSION \([0-9.]*\).*/\1/p' "$1/CMakeLists.txt")
[ -n "$wanted" ] || die "$1/CMakeLists.txt does not say which cmake it needs"

# is_enough CMAKE
is_enough() {
    local version
    version=$("$1" --version 2>/dev/null | sed -n 's/^cmake version //p')
    [ -n "$version" ] && printf '%s\n' "$wanted" "$version" | sort --version-sort --check=quiet
}

own=$BUILD_DIR/cmake/bin/cmake
for cmake in "$(command -v cmake || true)" "$own"; do
    if [ -n "$cmake" ] && is_enough "$cmake"; then echo "$cmake" && exit 0; fi
done
{
    run_logged cmake-environment python3 -m venv "$BUILD_DIR/cmake"
    run_logged cmake-install "$BUILD_DIR/cmake/bin/pip" install "cmake>=$wanted"
} >&2
is_enough "$own" || die "PyPI's cmake is older than $wanted; put a newer one into PATH"
echo "$own"
