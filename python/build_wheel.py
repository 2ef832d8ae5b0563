# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the wheel (PEP 517). It has the Python files, and the shared library and the program gmxfmm, which CMake builds from the checkout
around them. It also has the library's headers, from which the structures are read. An editable install (PEP 660) has only library and
program, and the path of the checkout. A source distribution has what CMake needs in the folder `checkout`.

pip shows nothing of what it builds. How far the compilers are is written to the terminal, if there is one, and always with pip -v.

GMXFMM_CMAKE_ARGS in the environment has more arguments of cmake, such as -DGMXFMM_CUDA=ON. GMXFMM_JOBS is the number of compilers at
once: by default one a core, and at most one for 1.5 GB of memory. GMXFMM_BUILD_FOLDER is a folder to build in that is kept.
"""
import base64
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE / "checkout" if (HERE / "checkout").exists() else HERE.parent  # of a source distribution, or around this folder
BUILT_FROM = ("CMakeLists.txt", "LICENSE", "CITATION.cff", "cmake", "src")  # of the checkout, by a source distribution
LIBRARY = "libgmxfmm.dylib" if sys.platform == "darwin" else "libgmxfmm.so"
HEADERS = [CHECKOUT / "src" / "fmm" / name for name in ("gmxfmm.h", "gmxfmm_measure.h", "gmxfmm_parallel.h")]


def _jobs():
    """Number of compilers at once. CMake's --parallel without a number sets make no limit."""
    if os.environ.get("GMXFMM_JOBS"):
        return int(os.environ["GMXFMM_JOBS"])
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(cores, int(memory / 1.5e9)))


class _Terminal:
    """One line that is overwritten, on the user's terminal. pip keeps what a build prints."""

    def __init__(self):
        try:
            self._file = None if sys.stdout.isatty() else open("/dev/tty", "w", encoding="utf-8")
        except OSError:
            self._file = None

    def say(self, text, end="\r"):
        if self._file:
            self._file.write(f"\r\033[K{text}{end}")
            self._file.flush()


def _configure(folder, program):
    """Whether CMake could, with the program or without. What it prints goes on."""
    arguments = ["-DCMAKE_BUILD_TYPE=Release", "-DGMXFMM_SHARED=ON", "-DGMXFMM_TESTS=OFF", f"-DGMXFMM_PROGRAM={'ON' if program else 'OFF'}",
                 "-DGMXFMM_CUDA=OFF", *shlex.split(os.environ.get("GMXFMM_CMAKE_ARGS", ""))]
    done = subprocess.run(["cmake", "-S", CHECKOUT, "-B", folder, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False)
    print(done.stdout, flush=True)
    if done.returncode == 0:
        return True
    if re.search("No CMAKE_C_COMPILER|Could not find compiler set in|is not a full path to an existing compiler", done.stdout):
        raise SystemExit("gmxfmm: there is no C compiler: install one, such as gcc, or name it in the environment variable CC")
    if "ZLIB" in done.stdout and program:
        return False
    raise SystemExit("gmxfmm: CMake failed, as it says above")


def _build(folder):
    """Paths of the shared library and of the program, built in folder. Without the headers of zlib there is no program, None."""
    if shutil.which("cmake") is None:
        raise SystemExit("gmxfmm: there is no cmake: install it and a C compiler")
    program = _configure(folder, True)
    if not program:
        print("gmxfmm: the headers of zlib are not there: the program gmxfmm is left out", flush=True)
        _configure(folder, False)
    terminal, jobs = _Terminal(), _jobs()
    targets = ["gmxfmm_shared"] + (["gmxfmm-program"] if program else [])
    with subprocess.Popen(["cmake", "--build", folder, "--target", *targets, "--parallel", str(jobs)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True) as build:
        for line in build.stdout:
            print(line, end="", flush=True)
            done = re.match(r"\[ *(\d+)(?:/(\d+)\]|%\])", line)  # Ninja's and make's
            if done:
                percent = 100 * int(done[1]) // int(done[2]) if done[2] else int(done[1])
                terminal.say(f"gmxfmm: compiling on {jobs} core{'s' if jobs > 1 else ''}, {percent} %")
    terminal.say("", "")
    if build.returncode:
        raise SystemExit("gmxfmm: the library could not be built, as the compiler says above")
    return Path(folder) / "src" / "fmm" / LIBRARY, Path(folder) / "src" / "program" / "gmxfmm" if program else None


def _version():
    return re.search(r'#define GMXFMM_VERSION "([^"]+)"', HEADERS[0].read_text()).group(1)


def _address():
    """Where the checkout was cloned from, if all can read that, or what a source distribution says of it; None: nowhere."""
    if (HERE / "PKG-INFO").exists():
        told = re.search(r"^Project-URL: Source, (\S+)$", (HERE / "PKG-INFO").read_text(encoding="utf-8"), re.M)
        return told and told.group(1)
    if not (CHECKOUT / ".git").exists():
        return None  # in another repository, say
    try:
        told = subprocess.run(["git", "-C", str(CHECKOUT), "config", "--get", "remote.origin.url"], stdout=subprocess.PIPE, text=True)
    except OSError:
        return None
    found = re.fullmatch(r"(https://[^@\s]+?)(\.git)?/?", told.stdout.strip())
    return found and found.group(1)


def _metadata():
    """Metadata from pyproject.toml. The lines read here have one form each, as no Python before 3.11 reads such a file."""
    project = (HERE / "pyproject.toml").read_text(encoding="utf-8")

    def one(name):
        return re.search(rf'^{name} = "([^"]+)"', project, re.M).group(1)

    classifiers = re.findall(r'^    "([^"]+)",$', project.partition("classifiers = [")[2].partition("]")[0], re.M)
    keywords = re.findall(r'"([^"]+)"', re.search(r"^keywords = (.*)$", project, re.M).group(1))
    lines = ["Metadata-Version: 2.1", "Name: gmxfmm", f"Version: {_version()}", f"Summary: {one('description')}", "License: LGPL-2.1-or-later",
             f"Keywords: {','.join(keywords)}", *(f"Classifier: {name}" for name in classifiers), f"Requires-Python: {one('requires-python')}",
             *([f"Project-URL: Source, {_address()}"] if _address() else []), "Requires-Dist: numpy"]
    for name, needs in re.findall(r'^(\w+) = \["([^"]+)"\]$', project.partition("[project.optional-dependencies]")[2], re.M):
        lines += [f"Provides-Extra: {name}", f"Requires-Dist: {needs}; extra == '{name}'"]
    text = (HERE / "README.md").read_text(encoding="utf-8")
    return "\n".join([*lines, "License-File: LICENSE", "Description-Content-Type: text/markdown"]) + "\n\n" + text


def _write_wheel(wheel_directory, contents, programs=()):
    """Name of a wheel of these files: {path: content}; programs: paths of those that can be run."""
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    tag = f"py3-none-{platform}"
    info = f"gmxfmm-{_version()}.dist-info"
    contents[f"{info}/METADATA"] = _metadata().encode()
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: gmxfmm\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    contents[f"{info}/LICENSE"] = (CHECKOUT / "LICENSE").read_bytes()
    contents[f"{info}/entry_points.txt"] = b"[console_scripts]\ngmxfmm = gmxfmm.__main__:main\n"
    record = f"{info}/RECORD"
    lines = []
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    contents[record] = ("".join(lines) + f"{record},,\n").encode()
    name = f"gmxfmm-{_version()}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in contents.items():
            about = zipfile.ZipInfo(path, date_time=(2020, 1, 1, 0, 0, 0))
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, (0o100755 if path in programs else 0o100644) << 16
            wheel.writestr(about, content)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = [*sorted((HERE / "gmxfmm").glob("*.py")), HERE / "gmxfmm" / "py.typed", *HEADERS]
    contents = {f"gmxfmm/{path.name}": path.read_bytes() for path in files}
    return _write_wheel(wheel_directory, contents, _add_built(contents, "gmxfmm"))


def _add_built(contents, package):
    """Adds library and program to a package, and gives the paths of the programs."""
    with tempfile.TemporaryDirectory() as folder:
        library, program = _build(os.environ.get("GMXFMM_BUILD_FOLDER") or folder)
        contents[f"{package}/{LIBRARY}"] = library.read_bytes()
        if program is None:
            return []
        contents[f"{package}/gmxfmm-program"] = program.read_bytes()
        return [f"{package}/gmxfmm-program"]


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    contents = {"gmxfmm.pth": f"{HERE}\n".encode(),
                "gmxfmm_library/__init__.py": b'"""The library and the program of an editable install of gmxfmm."""\n'}
    return _write_wheel(wheel_directory, contents, _add_built(contents, "gmxfmm_library"))


def build_sdist(sdist_directory, config_settings=None):
    """Files that git ignores, such as those of Python's cache, stay out."""
    root = f"gmxfmm-{_version()}"
    name = f"{root}.tar.gz"
    own = [HERE / name for name in ("pyproject.toml", "build_wheel.py", "README.md", "gmxfmm", "tests", "examples")]
    with tarfile.open(Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        def add(path, under):
            if path.is_dir():
                for inner in sorted(path.iterdir()):
                    if inner.name != "__pycache__":
                        add(inner, f"{under}/{path.name}")
            else:
                archive.add(path, f"{under}/{path.name}", recursive=False)

        for path in own:
            if path.exists():
                add(path, root)
        for path in BUILT_FROM:
            if (CHECKOUT / path).exists():
                add(CHECKOUT / path, f"{root}/checkout")
        about = _metadata().encode()
        entry = tarfile.TarInfo(f"{root}/PKG-INFO")
        entry.size = len(about)
        archive.addfile(entry, io.BytesIO(about))
    return name
