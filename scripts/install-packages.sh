#!/usr/bin/env bash
# Installs the Debian packages that are missing. Usage: install-packages.sh [--tests | --all]
#   --tests   also what only ./run-tests.sh needs
#   --all     and what it needs with --all
# With GMXFMM_SKIP_PACKAGES=1 nothing is checked or installed (for other distributions: bring the same tools yourself).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"

packages=(
    cmake ninja-build g++ patch perl python3 ccache # build
    libfftw3-dev zlib1g-dev libblas-dev liblapack-dev
    gnuplot-nox              # plot of the results
    dpkg-dev ca-certificates # apt-get source
    gromacs gromacs-data)    # Debian's unpatched build, double precision included: an independent reference
if [ "$GROMACS_VERSION" != "$DEFAULT_VERSION" ]; then
    packages+=(git python3-venv) # its source, and a newer cmake from PyPI where Debian's is too old
fi
case ${1:-} in --tests | --all) packages+=(libgtest-dev valgrind git clang-format pkg-config python3-venv python3-numpy zsh
    libopenmpi-dev openmpi-bin libmpich-dev mpich) ;; esac # the treecode on several ranks
if [ "${1:-}" = --all ]; then packages+=(gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user); fi

if [ "${GMXFMM_SKIP_PACKAGES:-0}" = 1 ]; then exit 0; fi
command -v dpkg-query >/dev/null ||
    die "this is not a Debian system (no dpkg); install the equivalents of: ${packages[*]} and set GMXFMM_SKIP_PACKAGES=1"

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then exit 0; fi

say "    installing: ${missing[*]}"
if [ "$(id -u)" = 0 ]; then
    as_root=(env)
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    sudo -v || die "sudo refused; let an administrator run: apt-get install ${missing[*]}"
    as_root=(sudo env)
else
    die "packages are missing and neither root nor sudo is at hand; let an administrator run: apt-get install ${missing[*]}"
fi
run_logged apt-update "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get update
run_logged apt-install "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
