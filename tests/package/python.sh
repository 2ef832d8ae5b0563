#!/usr/bin/env bash
# The Python package: its tests with the library just built, then a wheel, made from a source distribution and installed in a fresh
# virtual environment, where what is not a matter of the sources alone passes again; and an editable install. All of pip's work is
# done offline, but numpy, ASE and mypy are fetched where the machine has none. Tests that need ASE, PyTorch, CuPy, JAX or a GPU
# are skipped by name without these. 77: skipped.
#   python.sh SOURCE LIBRARY COMPILER WORK PROGRAM
set -euo pipefail
source=$1 library=$2 compiler=$3 work=$4 program=$5
skip() { echo "SKIPPED: $*" && exit 77; }
rm -rf "$work"
mkdir -p "$work"
cd "$work"
# --system-site-packages: for numpy
python3 -m venv --system-site-packages venv >venv.log 2>&1 || skip "python3 -m venv does not work here (Debian: python3-venv)"
python=$work/venv/bin/python
pip=("$python" -m pip --disable-pip-version-check -q)
if ! "$python" -c 'import numpy' 2>/dev/null; then
    timeout 120 "${pip[@]}" install numpy >numpy.log 2>&1 || skip "no numpy, and pip cannot fetch it"
fi
if ! "$python" -c 'import ase' 2>/dev/null; then
    timeout 120 "${pip[@]}" install ase >ase.log 2>&1 || echo "no ASE, and pip cannot fetch it: its tests are skipped"
fi
if ! "$python" -c 'import mypy' 2>/dev/null; then
    timeout 120 "${pip[@]}" install mypy >mypy.log 2>&1 || echo "no mypy, and pip cannot fetch it: its test is skipped"
fi
export CC=$compiler GMXFMM_HEADER=$source/src/fmm/gmxfmm.h PYTHONDONTWRITEBYTECODE=1
before=$(find "$source/python" | sort)
PYTHONPATH=$source/python GMXFMM_LIBRARY=$library GMXFMM_PROGRAM=$program "$python" -m unittest discover -s "$source/python/tests"

launcher=$(if command -v ccache >/dev/null; then echo -DCMAKE_C_COMPILER_LAUNCHER=ccache; fi)
export GMXFMM_CMAKE_ARGS="-DCMAKE_C_COMPILER=$compiler -DGMXFMM_ARCH=native $launcher" GMXFMM_JOBS=${GMXFMM_JOBS:-2}
unset PYTHONPATH GMXFMM_LIBRARY
# where FOLDER...: the package and the library that are imported are in these
where() {
    "$python" - "$@" <<'PY'
import sys
import gmxfmm
from gmxfmm import _library
for path, folder in zip((gmxfmm.__file__, _library.library._name), sys.argv[1:]):
    assert folder in path, (path, folder)
PY
    "$python" "$source/python/examples/madelung.py" | tee example.log
    grep -q "constant: 1.74756459" example.log
}
# The program runs as a command and as a module
program() {
    for command in "$work/venv/bin/gmxfmm" "$python -m gmxfmm"; do
        [ "$($command --version)" = "gmxfmm $("$python" -c 'import gmxfmm; print(gmxfmm.version())')" ] || { echo "FAILED: $command" && exit 1; }
    done
}
# The wheel is made from the source distribution, so that this is complete; the editable install from the checkout
(cd "$source/python" && "$python" -c 'import sys, build_wheel; build_wheel.build_sdist(sys.argv[1])' "$work")
"${pip[@]}" wheel --no-index --no-deps -w wheel gmxfmm-*.tar.gz >wheel.log 2>&1 || { cat wheel.log && exit 1; }
"${pip[@]}" install --no-index --no-deps wheel/*.whl
program
where site-packages site-packages
"$python" -m unittest discover -s "$source/python/tests" -k Solve -k Steps -k Systems -k Calculator -k Derivatives -k Examples -k OfPlans
"${pip[@]}" uninstall -y gmxfmm

"${pip[@]}" install --no-index --no-deps -e "$source/python" >editable.log 2>&1 || { cat editable.log && exit 1; }
where "$source/python" site-packages
program
[ "$before" = "$(find "$source/python" | sort)" ] || { echo "FAILED: making the wheel left files in python/" && exit 1; }
