# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is installed: metadata, the source distribution, the program; what is missing is told in a line. Wheels are made by
tests/package/python.sh."""
import email
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

import gmxfmm

PYTHON = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("build_wheel", PYTHON / "build_wheel.py")
build_wheel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build_wheel)


class Metadata(unittest.TestCase):
    def test_says_what_it_is(self):
        about = email.message_from_string(build_wheel._metadata())
        self.assertEqual((about["Name"], about["Version"], about["License"]), ("gmxfmm", gmxfmm.version(), "LGPL-2.1-or-later"))
        self.assertIn("Operating System :: POSIX :: Linux", about.get_all("Classifier"))
        self.assertIn("import gmxfmm", about.get_payload())
        self.assertEqual(set(about.get_all("Provides-Extra")), {"ase", "jax", "torch"})
        self.assertEqual(len(about["Keywords"].split(",")), 6)

    @unittest.skipIf(sys.version_info < (3, 11), "this Python does not read .toml")
    def test_is_that_of_pyproject(self):
        import tomllib
        project = tomllib.loads((PYTHON / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        about = email.message_from_string(build_wheel._metadata())
        self.assertEqual((about["Summary"], about["Requires-Python"], about.get_all("Classifier"), about["Keywords"].split(",")),
                         (project["description"], project["requires-python"], project["classifiers"], project["keywords"]))
        extras = [f"{needs[0]}; extra == '{name}'" for name, needs in project["optional-dependencies"].items()]
        self.assertEqual(about.get_all("Requires-Dist"), project["dependencies"] + extras)


class Source(unittest.TestCase):
    def test_has_what_is_built_from(self):
        with tempfile.TemporaryDirectory() as folder:
            name = build_wheel.build_sdist(folder)
            with tarfile.open(Path(folder) / name) as archive:
                names = set(archive.getnames())
        root = f"gmxfmm-{gmxfmm.version()}/"
        for path in ("PKG-INFO", "pyproject.toml", "build_wheel.py", "gmxfmm/py.typed", "checkout/CMakeLists.txt", "checkout/src/fmm/gmxfmm.h",
                     "checkout/src/program/main.c", "checkout/LICENSE"):
            self.assertIn(root + path, names)
        self.assertFalse([name for name in names if not name.startswith(root) or "__pycache__" in name or name.endswith(".pyc")])


class Building(unittest.TestCase):
    @unittest.skipIf(shutil.which("cmake") is None, "there is no cmake here")
    def test_without_a_compiler_one_line_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            command = "import sys; sys.path.insert(0, sys.argv[1]); import build_wheel; build_wheel.build_wheel(sys.argv[2])"
            environment = {**os.environ, "CC": "/no/compiler", "GMXFMM_CMAKE_ARGS": ""}
            done = subprocess.run([sys.executable, "-c", command, PYTHON, folder], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^gmxfmm: there is no C compiler: .*CC\n$")


class Program(unittest.TestCase):
    """With GMXFMM_PROGRAM, or the one in an installed package."""

    def run_module(self, *arguments, **environment):
        return subprocess.run([sys.executable, "-m", "gmxfmm", *arguments], capture_output=True, text=True, env={**os.environ, **environment})

    def test_runs(self):
        done = self.run_module("--version")
        if done.returncode and "not in this package" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual((done.returncode, done.stdout), (0, f"gmxfmm {gmxfmm.version()}\n"))
        self.assertNotEqual(self.run_module("slove").returncode, 0)

    def test_where_there_is_none(self):
        from gmxfmm import __main__ as module
        if (Path(gmxfmm.__file__).parent / "gmxfmm-program").exists() or importlib.util.find_spec("gmxfmm_library"):
            self.skipTest("it is in this package")
        self.assertIn("not in this package", self.run_module("--version", GMXFMM_PROGRAM="").stderr)
        self.assertTrue(callable(module.main))


if __name__ == "__main__":
    unittest.main()
