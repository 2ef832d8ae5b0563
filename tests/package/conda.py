#!/usr/bin/env python3
"""The recipe of packaging/conda, as far as it goes without conda: it is rendered as conda-build does, its build script runs in a fresh
environment of Python in place of conda's, and so do its tests: with GMXFMM_ALL in the environment (run-tests.sh --all), as that compiles
the library once more. 77: skipped.

Usage: conda.py SOURCE COMPILER WORK
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import venv

SOURCE, COMPILER, WORK = (os.path.realpath(path) for path in sys.argv[1:])


def rendered(text, system):
    """The recipe on a system: lines with a selector of another one are left out, as conda-build does before it asks Jinja."""
    import jinja2
    import yaml
    lines = []
    for line in text.splitlines():
        selector = re.search(r"# \[(\w+)\]$", line)
        if not selector or selector[1] == system:
            lines.append(line)
    return yaml.safe_load(jinja2.Environment(undefined=jinja2.StrictUndefined).from_string("\n".join(lines)).render(compiler=lambda of: of + "_compiler"))


def check_recipe(text):
    version = re.search(r'#define GMXFMM_VERSION "([^"]+)"', open(f"{SOURCE}/src/fmm/gmxfmm.h").read())[1]
    for system, openmp in (("linux", "libgomp"), ("osx", "llvm-openmp")):
        recipe = rendered(text, system)
        assert recipe["package"] == {"name": "gmxfmm", "version": version}, f"{recipe['package']}: gmxfmm.h has {version}"
        assert "skip" not in recipe["build"] and rendered(text, "win")["build"]["skip"]
        for part in ("build", "host", "run"):
            assert openmp in recipe["requirements"][part], f"{system}, {part}: no {openmp}"
        assert os.path.isfile(f"{SOURCE}/{recipe['about']['license_file']}")
    return rendered(text, "linux")


def main():
    prefix = f"{WORK}/prefix"
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(f"{WORK}/source")
    venv.create(prefix, system_site_packages=True, with_pip=True)
    sys.path += glob.glob(f"{prefix}/lib/python*/site-packages")
    missing = [package for module, package in (("numpy", "numpy"), ("jinja2", "jinja2"), ("yaml", "pyyaml"))
               if subprocess.run([f"{prefix}/bin/python", "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode]
    if missing and subprocess.run(["timeout", "300", f"{prefix}/bin/python", "-m", "pip", "install", "-q", *missing]).returncode:
        print(f"SKIPPED: no {', '.join(missing)}, and pip cannot fetch them")
        return 77
    if not shutil.which("ninja"):
        print("SKIPPED: no ninja")
        return 77
    recipe = check_recipe(open(f"{SOURCE}/packaging/conda/meta.yaml").read())
    if not os.environ.get("GMXFMM_ALL"):
        print("conda: the recipe is complete; GMXFMM_ALL=1 runs it")
        return 0
    # as conda-build copies the sources, but not what was built there
    for name in ("CMakeLists.txt", "LICENSE", "CITATION.cff", "cmake", "src", "python", "packaging"):
        (shutil.copytree if os.path.isdir(f"{SOURCE}/{name}") else shutil.copy)(f"{SOURCE}/{name}", f"{WORK}/source/{name}")
    launcher = " -DCMAKE_C_COMPILER_LAUNCHER=ccache" if shutil.which("ccache") else ""
    environment = {**os.environ, "PREFIX": prefix, "PYTHON": f"{prefix}/bin/python", "CPU_COUNT": "2", "SHLIB_EXT": ".so", "CC": COMPILER,
                   "PATH": f"{prefix}/bin:{os.environ['PATH']}", "CMAKE_ARGS": "-DCMAKE_BUILD_TYPE=Release",
                   "GMXFMM_CMAKE_ARGS": f"-DGMXFMM_ARCH=native{launcher}"}
    for name in ("PYTHONPATH", "GMXFMM_LIBRARY", "GMXFMM_PROGRAM"):
        environment.pop(name, None)
    with open(f"{WORK}/build.log", "w") as log:
        if subprocess.run(["bash", f"{WORK}/source/packaging/conda/build.sh"], cwd=f"{WORK}/source", env=environment, stdout=log, stderr=log).returncode:
            print(open(f"{WORK}/build.log").read()[-5000:])
            return 1
    commands = [*(f"python -c 'import {name}'" for name in recipe["test"]["imports"]), *recipe["test"]["commands"]]
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=WORK, env=environment, check=True)
    where = subprocess.run(["python", "-c", "import gmxfmm; print(gmxfmm.__file__)"], cwd=WORK, env=environment, check=True, capture_output=True, text=True)
    assert where.stdout.startswith(prefix), where.stdout
    assert open(f"{prefix}/bin/gmxfmm", "rb").read(4) == b"\x7fELF", "the command is not the program itself"
    print(f"conda: the recipe is complete, its build script ran, {len(commands)} tests passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
