# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the wheel (PEP 517): the Python files, the shared library built by CMake from the checkout around them, and its
headers, of which the structures are read. An editable install (PEP 660) has the library alone, and the path of the checkout.

GMXFMM_CMAKE_ARGS in the environment has further arguments of cmake, such as -DGMXFMM_CUDA=ON, GMXFMM_JOBS the number of
compilers at once: by default one a core, and at most one for 1.5 GB of memory.
"""
import base64
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
HEADERS = [CHECKOUT / "src" / "fmm" / name for name in ("gmxfmm.h", "gmxfmm_measure.h", "gmxfmm_parallel.h")]


def _jobs():
    """Compilers at once. CMake's --parallel without a number sets make no limit."""
    if os.environ.get("GMXFMM_JOBS"):
        return int(os.environ["GMXFMM_JOBS"])
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(cores, int(memory / 1.5e9)))


def _build_library(folder):
    """Path of the shared library, built in folder."""
    if shutil.which("cmake") is None:
        raise SystemExit("gmxfmm: there is no cmake: install it and a C compiler")
    arguments = ["-DCMAKE_BUILD_TYPE=Release", "-DGMXFMM_SHARED=ON", "-DGMXFMM_TESTS=OFF", "-DGMXFMM_PROGRAM=OFF",
                 "-DGMXFMM_CUDA=OFF", *shlex.split(os.environ.get("GMXFMM_CMAKE_ARGS", ""))]
    subprocess.run(["cmake", "-S", CHECKOUT, "-B", folder, *arguments], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "gmxfmm_shared", "--parallel", str(_jobs())], check=True)
    return Path(folder) / "src" / "fmm" / "libgmxfmm.so"


def _version():
    return re.search(r'#define GMXFMM_VERSION "([^"]+)"', HEADERS[0].read_text()).group(1)


def _metadata():
    project = (HERE / "pyproject.toml").read_text()
    summary = re.search(r'^description = "([^"]+)"', project, re.M).group(1)
    extras = "".join(f"Provides-Extra: {name}\nRequires-Dist: {needs}; extra == '{name}'\n"
                     for name, needs in re.findall(r'^(\w+) = \["([^"]+)"\]$', project.partition("[project.optional-dependencies]")[2], re.M))
    return ("Metadata-Version: 2.1\nName: gmxfmm\n" f"Version: {_version()}\nSummary: {summary}\n"
            f"License: LGPL-2.1-or-later\nRequires-Python: >=3.8\nRequires-Dist: numpy\n{extras}")


def _write_wheel(wheel_directory, contents):
    """Name of a wheel of these files: {path: content}."""
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    tag = f"py3-none-{platform}"
    info = f"gmxfmm-{_version()}.dist-info"
    contents[f"{info}/METADATA"] = _metadata().encode()
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: gmxfmm\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = f"{info}/RECORD"
    lines = []
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    contents[record] = ("".join(lines) + f"{record},,\n").encode()
    name = f"gmxfmm-{_version()}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in contents.items():
            wheel.writestr(path, content)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = [*sorted((HERE / "gmxfmm").glob("*.py")), HERE / "gmxfmm" / "py.typed", *HEADERS]
    contents = {f"gmxfmm/{path.name}": path.read_bytes() for path in files}
    with tempfile.TemporaryDirectory() as folder:
        contents["gmxfmm/libgmxfmm.so"] = _build_library(folder).read_bytes()
    return _write_wheel(wheel_directory, contents)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        library = _build_library(folder).read_bytes()
    return _write_wheel(wheel_directory, {"gmxfmm.pth": f"{HERE}\n".encode(), "gmxfmm_library/libgmxfmm.so": library,
                                          "gmxfmm_library/__init__.py": b'"""libgmxfmm.so of an editable install of gmxfmm."""\n'})


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("gmxfmm: the library is built from the whole checkout: give pip its folder python/")
