# SPDX-License-Identifier: LGPL-2.1-or-later
"""Types of the options: those that type checkers see are the library's, and what is no option fails there and in constructors."""
import importlib
import importlib.util
import re
import subprocess
import sys
import tempfile
import typing
import unittest
from pathlib import Path

import gmxfmm
from gmxfmm import _inputs, _library, _options

GOOD = """
import numpy as np
import gmxfmm
import gmxfmm.jax
x, q = np.zeros((2, 3)), np.ones(2)
gmxfmm.solve(x, q, 4, accuracy=1e-4, grid=(4, 4, 4), method="fmm", precision="single", periodic=(True, True, False), devices=(0, 1))
with gmxfmm.Plan(x, q, accuracy=1e-4, kernel="yukawa", kappa=0.5, reproducible=True, cache_dir=None, exclusions=[(0, 1)]) as plan:
    plan.set_charges(q, measure="once")
    step = plan.step(x, virial=True)
    energy: float = step.energy
gmxfmm.Batch(accuracy=1e-4, max_plans=3, precision=None)
gmxfmm.qeq(x, q, q, 4, tolerance=1e-6, exclusions=[(0, 1)], measure=False)
gmxfmm.induce(x, q, q, 4, damping=0.39, exclusions=[(0, 1)], prefactor=2.0)
gmxfmm.jax.coulomb(x, q, accuracy=1e-4, measure=False, max_plans=3)
"""
BAD = ('gmxfmm.solve(x, q, acuracy=1e-4)', 'gmxfmm.Plan(x, q, method="tree")', 'gmxfmm.Plan(x, q, order="six")', 'gmxfmm.Batch(acuracy=1e-4)',
       'gmxfmm.Batch(m2l="pme")', 'gmxfmm.qeq(x, q, q, boundary="metal")', 'gmxfmm.solve(x, q, precision="half")',
       'gmxfmm.jax.coulomb(x, q, acuracy=1e-4)', 'gmxfmm.jax.Coulomb(method="tree")')


class Options(unittest.TestCase):
    def test_are_the_librarys(self):
        typed = typing.get_type_hints(_options.Options)
        self.assertEqual(set(typed) | {"precision"}, set(_inputs._FIELDS) - _inputs._FIXED)
        for name, kind in {**typed, "precision": _options.Precision}.items():
            words = _inputs.choices(name)
            with self.subTest(option=name):
                self.assertEqual(typing.get_origin(kind) is typing.Literal, words is not None)
                if words is not None:
                    self.assertEqual(sorted(typing.get_args(kind)), sorted(words))
                elif not isinstance(_inputs._FIELDS[name], type(_library.ctypes.c_int * 3)):
                    self.assertEqual(kind in (int, float), kind is (float if _inputs._FIELDS[name] is _library.ctypes.c_double else int))

    def test_that_there_are_not_are_refused_by_constructors(self):
        makers = [gmxfmm.Batch]
        if importlib.util.find_spec("ase"):
            makers.append(importlib.import_module("gmxfmm.ase").Coulomb)
        for library in ("torch", "jax"):
            if importlib.util.find_spec(library):
                makers.append(importlib.import_module("gmxfmm." + library).Coulomb)
        for make in makers:
            for argument, given in (("acuracy", {"acuracy": 1e-4}), ("method", {"method": "tree"}), ("order", {"order": "six"}),
                                    ("precision", {"precision": "half"}), ("grid", {"grid": (1, 2)})):
                with self.subTest(make=make.__module__, **given), self.assertRaises(gmxfmm.Error) as caught:
                    make(**given)
                self.assertEqual(caught.exception.argument, argument)

    @unittest.skipIf(importlib.util.find_spec("mypy") is None, "there is no mypy here")
    def test_are_seen_by_mypy(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "calls.py"
            file.write_text(GOOD + "\n".join(BAD) + "\n", encoding="utf-8")
            told = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", "--ignore-missing-imports", file],
                                  capture_output=True, text=True).stdout
        wrong = {int(line) for line in re.findall(r"calls\.py:(\d+): error", told)}
        first = GOOD.count("\n") + 1
        self.assertEqual(wrong, set(range(first, first + len(BAD))), told)


if __name__ == "__main__":
    unittest.main()
