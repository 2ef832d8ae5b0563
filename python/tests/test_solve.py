# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Python door: what goes in and comes out, and that structures are laid out as the compiler does it.

GMXFMM_HEADER names the header for the last, CC the compiler (default cc).
"""
import ctypes
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import gmxfmm
from gmxfmm import _library


def rock_salt(edge):
    positions = np.argwhere(np.ones((edge, edge, edge))).astype(float)
    return positions, 1 - 2.0 * (positions.sum(axis=1) % 2)


def cloud(n):
    random = np.random.default_rng(7)
    return random.uniform(0, 1, (n, 3)), random.choice([-1.0, 1.0], n)


def direct(x, q, kappa=0.0, excluded=()):
    """Potential and field by the sum over pairs."""
    d = x[:, None, :] - x[None, :, :]
    r = np.sqrt((d**2).sum(axis=2)) + np.diag(np.full(len(x), np.inf))
    term = np.exp(-kappa * np.where(np.isinf(r), 0, r)) / r
    for i, j in excluded:
        term[i, j] = term[j, i] = 0
    slope = np.where(np.isinf(r), 0, term * (kappa + 1 / r) / r)
    return term @ q, np.einsum("ij,ijd,j->id", slope, d, q)


def rms_error(a, reference):
    return np.sqrt(((a - reference) ** 2).sum() / (reference**2).sum())


class Solve(unittest.TestCase):
    def test_madelung_constant(self):
        x, q = rock_salt(6)
        for box in (6, (6, 6, 6), 6 * np.eye(3)):
            result = gmxfmm.solve(x, q, box, accuracy=1e-8)
            self.assertAlmostEqual(-2 * result.energy / len(q), 1.747564594633, delta=1e-7)

    def test_open_system_is_the_sum_over_pairs(self):
        x, q = cloud(500)
        phi, field = direct(x, q)
        result = gmxfmm.solve(x, q, accuracy=1e-6)
        # an accuracy is of forces on systems of many cells; ten times that leaves room for this small one
        self.assertLess(rms_error(result.forces, q[:, None] * field), 1e-5)
        self.assertLess(rms_error(result.potential, phi), 1e-5)
        self.assertLess(abs(result.energy - 0.5 * q @ phi), 1e-5 * np.sqrt((phi**2).sum()))
        np.testing.assert_allclose(result.forces, q[:, None] * result.field, rtol=1e-12)

    def test_virial_has_the_trace_of_coulomb_systems(self):
        x, q = cloud(300)
        result = gmxfmm.solve(x, q, 1.0, virial=True, accuracy=1e-8)
        self.assertAlmostEqual(np.trace(result.virial), -result.energy / 2, delta=1e-6 * abs(result.energy))
        self.assertIsNone(gmxfmm.solve(x, q, 1.0).virial)

    def test_exclusions(self):
        x, q = cloud(60)
        pairs = [(0, 1), (1, 0), (5, 9)]
        phi, _ = direct(x, q, excluded=pairs)
        self.assertLess(rms_error(gmxfmm.solve(x, q, exclusions=pairs, accuracy=1e-8).potential, phi), 1e-7)
        with self.assertRaisesRegex(ValueError, "60"):
            gmxfmm.solve(x, q, exclusions=[(0, 60)])

    def test_treecode(self):
        x, q = cloud(2000)
        for kernel, kappa in (("coulomb", 0.0), ("yukawa", 3.0)):
            phi, field = direct(x, q, kappa)
            result = gmxfmm.solve(x, q, method="treecode", kernel=kernel, kappa=kappa, theta=0.6, degree=8)
            self.assertEqual((result.info["method"], result.info["degree"], result.info["theta"]), ("treecode", 8, 0.6))
            self.assertLess(rms_error(result.potential, phi), 1e-5)
            self.assertLess(rms_error(result.field, field), 1e-4)

    def test_options_and_info(self):
        x, q = rock_salt(4)
        result = gmxfmm.solve(x, q, 4, m2l="rotation", depth=1, order=6, precision="single", num_threads=1, prefactor=2)
        info = result.info
        self.assertEqual((info["m2l"], info["order"], info["precision"], info["num_threads"]), ("rotation", 6, "single", 1))
        grid = gmxfmm.solve(x, q, 4, m2l="fft", grid=(4, 4, 4), order=6).info["grid"]
        self.assertEqual(grid, [4, 4, 4])
        automatic = gmxfmm.solve(x, q, 4, order=-1, grid=-1, separation=-1).info
        self.assertEqual(automatic["grid"], gmxfmm.solve(x, q, 4).info["grid"])
        self.assertNotIn("size", automatic)

    def test_what_is_refused(self):
        x, q = rock_salt(4)
        for kind, text, call in (
            (TypeError, "no option 'acuracy'", lambda: gmxfmm.solve(x, q, 4, acuracy=1)),
            (TypeError, "no option 'size'", lambda: gmxfmm.solve(x, q, 4, size=1)),
            (ValueError, "fft", lambda: gmxfmm.solve(x, q, 4, m2l="pme")),
            (ValueError, "a number", lambda: gmxfmm.solve(x, q, 4, order="six")),
            (ValueError, "n x 3", lambda: gmxfmm.solve(x.T, q, 4)),
            (ValueError, "shape", lambda: gmxfmm.solve(x, q[1:], 4)),
            (ValueError, "no box", lambda: gmxfmm.solve(x, q, 4, boundary="open")),
            (gmxfmm.Error, "order", lambda: gmxfmm.solve(x, q, 4, order=99)),
            (gmxfmm.Error, "separation", lambda: gmxfmm.solve(x, q, 4, separation=0)),
            (gmxfmm.Error, "treecode", lambda: gmxfmm.solve(x, q, 4, method="treecode")),
            (gmxfmm.Error, "", lambda: gmxfmm.solve(np.full_like(x, np.nan), q, 4)),
        ):
            with self.assertRaisesRegex(kind, text):
                call()
        with self.assertRaisesRegex(ValueError, "positive"):
            gmxfmm.solve(x, q, -4)
        with self.assertRaises(gmxfmm.Error) as caught:
            gmxfmm.solve(x, q, [[4, 0, 0], [0, 4, 0], [4, 4, 0]])
        self.assertEqual(caught.exception.status, "GMXFMM_ERROR_BOX")

    def test_version(self):
        self.assertEqual(gmxfmm.__version__, _library.header.version)


class Structures(unittest.TestCase):
    def test_are_laid_out_as_the_compiler_does_it(self):
        header = os.environ.get("GMXFMM_HEADER")
        if not header:
            self.skipTest("GMXFMM_HEADER is not set")
        kinds = (_library.Options, _library.Output, _library.Info, _library.Option)
        lines, expected = [], []
        for kind in kinds:
            lines.append(f'printf("%zu\\n", sizeof({kind.__name__}));')
            expected.append(ctypes.sizeof(kind))
            for field, _ in kind._fields_:
                lines.append(f'printf("%zu\\n", offsetof({kind.__name__}, {field}));')
                expected.append(getattr(kind, field).offset)
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / "layout.c", Path(folder) / "layout"
            source.write_text('#include "gmxfmm.h"\n#include <stdio.h>\nint main(void)\n{\n' + "\n".join(lines) + "\n}\n")
            compiler = os.environ.get("CC", "cc")
            subprocess.run([compiler, "-I", Path(header).parent, "-c", "-o", f"{program}.o", source], check=True)
            subprocess.run([compiler, "-o", program, f"{program}.o"], check=True)
            told = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        self.assertEqual([int(number) for number in told.split()], expected)


if __name__ == "__main__":
    unittest.main()
