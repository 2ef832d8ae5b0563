#!/usr/bin/env bash
# The Python package: its tests with the library just built, then a wheel, made from the checkout and installed in a fresh
# virtual environment, whose example is run and whose tests pass again. All of pip's work is done offline, but numpy is
# fetched where the machine has none. 77: skipped.
#   python.sh SOURCE LIBRARY COMPILER WORK
set -euo pipefail
source=$1 library=$2 compiler=$3 work=$4
skip() { echo "SKIPPED: $*" && exit 77; }
rm -rf "$work"
mkdir -p "$work"
cd "$work"
# --system-site-packages: for numpy
python3 -m venv --system-site-packages venv >venv.log 2>&1 || skip "python3 -m venv does not work here (Debian: python3-venv)"
python=$work/venv/bin/python
if ! "$python" -c 'import numpy' 2>/dev/null; then
    timeout 120 "$python" -m pip install -q --disable-pip-version-check numpy >numpy.log 2>&1 || skip "no numpy, and pip cannot fetch it"
fi
export CC=$compiler GMXFMM_HEADER=$source/src/fmm/gmxfmm.h PYTHONDONTWRITEBYTECODE=1
before=$(find "$source/python" | sort)
PYTHONPATH=$source/python GMXFMM_LIBRARY=$library "$python" -m unittest discover -s "$source/python/tests"

launcher=$(if command -v ccache >/dev/null; then echo -DCMAKE_C_COMPILER_LAUNCHER=ccache; fi)
GMXFMM_CMAKE_ARGS="-DCMAKE_C_COMPILER=$compiler -DGMXFMM_ARCH=native $launcher" "$python" -m pip wheel -q --disable-pip-version-check --no-index \
    --no-deps -w wheel "$source/python" >wheel.log 2>&1 || { cat wheel.log && exit 1; }
"$python" -m pip install -q --disable-pip-version-check --no-index --no-deps wheel/*.whl
env -u PYTHONPATH -u GMXFMM_LIBRARY "$python" - <<'PY'
import gmxfmm
from gmxfmm import _library
assert "site-packages" in _library.library._name, _library.library._name
PY
env -u PYTHONPATH -u GMXFMM_LIBRARY "$python" "$source/python/examples/madelung.py" | tee example.log
grep -q "constant: 1.74756459" example.log
env -u PYTHONPATH -u GMXFMM_LIBRARY "$python" -m unittest discover -s "$source/python/tests"
[ "$before" = "$(find "$source/python" | sort)" ] || { echo "FAILED: making the wheel left files in python/" && exit 1; }
