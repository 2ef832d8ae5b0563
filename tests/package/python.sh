#!/usr/bin/env bash
# The Python package: its tests with the library just built, then a wheel, made from a source distribution and installed in a fresh
# virtual environment, where what is not a matter of the sources alone passes again; and an editable install. All of pip's work is
# done offline, but numpy, ASE and mypy are fetched where the machine has none. Tests that need ASE, PyTorch, CuPy, JAX or a GPU
# are skipped by name without these. 77: skipped.
#   python.sh SOURCE LIBRARY COMPILER WORK PROGRAM
set -Eeuo pipefail
source=$1 library=$2 compiler=$3 work=$4 program=$5
trap 'echo "FAILED: line $LINENO: $BASH_COMMAND"' ERR
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
# fetched first: pip that is stopped while it installs leaves a package that can be imported, and lacks files
for package in ase mypy; do
    "$python" -c "import $package" 2>/dev/null || { timeout 240 "${pip[@]}" download -d "fetched/$package" $package &&
        "${pip[@]}" install --no-index --find-links "fetched/$package" $package; } >"$package.log" 2>&1 ||
        echo "no $package, and pip cannot fetch it: its tests are skipped"
done
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
# The metadata tell where a clone is from, if all can read that, and so does a source distribution of it
if command -v git >/dev/null; then
    mkdir -p clone/src/fmm && cp -r "$source/python" clone && cp "$source"/src/fmm/gmxfmm*.h clone/src/fmm && git init -q clone
    for url in https://example.org/a/gmx-fmm.git git@example.org:a/gmx-fmm.git https://me:secret@example.org/a/gmx-fmm; do
        git -C clone config remote.origin.url $url
        (cd clone/python && "$python" -c 'import build_wheel; print(build_wheel._metadata())') | sed -n 's/^Project-URL: //p'
    done >urls
    [ "$(cat urls)" = "Source, https://example.org/a/gmx-fmm" ] || { echo "FAILED: addresses in the metadata:" && cat urls && exit 1; }
    git -C clone config remote.origin.url https://example.org/a/gmx-fmm
    (cd clone/python && "$python" -c 'import build_wheel; build_wheel.build_sdist(".")' && tar -xzf gmxfmm-*.tar.gz && cd gmxfmm-*/ &&
        "$python" -c 'import build_wheel; print(build_wheel._address())') | grep -qx https://example.org/a/gmx-fmm ||
        { echo "FAILED: the source distribution has not the address" && exit 1; }
    rm -rf clone
fi
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
