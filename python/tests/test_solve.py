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
from systems import cloud, direct, ewald_forces, melt, rms_error, rock_salt


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

    def test_method_auto_offers_what_is_asked(self):
        random = np.random.default_rng(17)  # a thin line, of which the treecode may be faster
        x = random.random((4000, 3)) * [4000, 1e-3, 1e-3]
        q = np.resize([1.0, -1.0], 4000)
        result = gmxfmm.solve(x, q, method="auto", accuracy=1e-4, num_threads=1, virial=True)
        self.assertEqual(result.info["method"], "fmm")
        self.assertAlmostEqual(np.trace(result.virial) / (-0.5 * result.energy), 1, 6)  # Xi = -1/2 sum r x F

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

    def test_what_is_refused_names_the_argument(self):
        x, q = rock_salt(4)
        pair = [(0, 1)]
        for argument, text, call in (
            ("acuracy", "no option 'acuracy'", lambda: gmxfmm.solve(x, q, 4, acuracy=1)),
            ("acuracy", "did you mean 'accuracy'[?]", lambda: gmxfmm.solve(x, q, 4, acuracy=1)),
            ("size", "no option 'size'", lambda: gmxfmm.solve(x, q, 4, size=1)),
            ("m2l", "fft", lambda: gmxfmm.solve(x, q, 4, m2l="pme")),
            ("order", "a number", lambda: gmxfmm.solve(x, q, 4, order="six")),
            ("order", "an integer", lambda: gmxfmm.solve(x, q, 4, order=6.5)),
            ("grid", "three integers", lambda: gmxfmm.solve(x, q, 4, grid=(4, 4))),
            ("accuracy", "a number", lambda: gmxfmm.solve(x, q, 4, accuracy=[1])),
            ("positions", "n x 3", lambda: gmxfmm.solve(x.T, q, 4)),
            ("positions", "real numbers", lambda: gmxfmm.solve(x + 1j, q, 4)),
            ("positions", "real numbers", lambda: gmxfmm.solve([["a", "b", "c"]], [1], 4)),
            ("charges", "shape", lambda: gmxfmm.solve(x, q[1:], 4)),
            ("charges", "real numbers", lambda: gmxfmm.solve(x, [None] * 64, 4)),
            ("box", "no box", lambda: gmxfmm.solve(x, q, 4, boundary="open")),
            ("box", "positive", lambda: gmxfmm.solve(x, q, -4)),
            ("box", "positive", lambda: gmxfmm.solve(x, q, np.nan)),
            ("box", "3 lengths", lambda: gmxfmm.solve(x, q, (4, 4))),
            ("box", "3 x 3", lambda: gmxfmm.solve(x, q, np.ones((2, 3)))),
            ("box", "", lambda: gmxfmm.solve(x, q, [[4, 0, 0], [0, 4, 0], [4, 4, 0]])),
            ("exclusions", "m x 2", lambda: gmxfmm.solve(x, q, 4, exclusions=[0, 1])),
            ("exclusions", "m x 2", lambda: gmxfmm.solve(x, q, 4, exclusions=[(0, 1, 2)])),
            ("exclusions", "m x 2", lambda: gmxfmm.solve(x, q, 4, exclusions=[pair])),
            ("exclusions", "integers", lambda: gmxfmm.solve(x, q, 4, exclusions=[(0.0, 1.0)])),
            ("exclusions", "integers", lambda: gmxfmm.solve(x, q, 4, exclusions="none")),
            ("exclusions", "0 to 63", lambda: gmxfmm.solve(x, q, 4, exclusions=[(0, 64)])),
            ("exclusions", "0 to 63", lambda: gmxfmm.solve(x, q, 4, exclusions=[(-1, 0)])),
            ("out", "shape", lambda: gmxfmm.solve(x, q, 4, out={"forces": np.empty((3, 64))})),
            ("out", "contiguous", lambda: gmxfmm.solve(x, q, 4, out={"forces": np.empty((64, 3), dtype=np.float32)})),
            ("out", "dictionary", lambda: gmxfmm.solve(x, q, 4, out=np.empty((64, 3)))),
            ("targets", "n x 3", lambda: gmxfmm.solve(x, q, 4, targets=x.T)),
            ("order", "order", lambda: gmxfmm.solve(x, q, 4, order=99)),
            ("separation", "separation", lambda: gmxfmm.solve(x, q, 4, separation=0)),
            ("prefactor", "zero", lambda: gmxfmm.solve(x, q, 4, prefactor=0)),
            ("charges", "finite", lambda: gmxfmm.solve(x, np.full_like(q, np.inf), 4)),
            ("positions", "", lambda: gmxfmm.solve(np.full_like(x, np.nan), q, 4)),
            ("positions", "another one does", lambda: gmxfmm.solve(np.zeros((64, 3)), q, 4)),
        ):
            with self.subTest(argument=argument, text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                call()
            self.assertEqual(caught.exception.argument, argument, str(caught.exception))
        with self.assertRaises(gmxfmm.Error) as caught:
            gmxfmm.solve(x, q, [[4, 0, 0], [0, 4, 0], [4, 4, 0]])
        self.assertEqual(caught.exception.status, "GMXFMM_ERROR_BOX")
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaisesRegex(gmxfmm.Error, "treecode"):
            gmxfmm.solve(x, q, 4, method="treecode")

    def test_types_of_arrays_are_kept(self):
        x, q = melt(6)
        double = gmxfmm.solve(x, q, 6, accuracy=1e-4)
        single = gmxfmm.solve(x.astype(np.float32), q.astype(np.float32), 6, accuracy=1e-4)
        self.assertEqual((single.info.precision, single.forces.dtype, single.potential.dtype), ("single", np.float32, np.float32))
        self.assertEqual((double.info.precision, double.forces.dtype), ("double", np.float64))
        self.assertLess(rms_error(single.forces, double.forces), 2e-4)  # both have an error of 1e-4
        self.assertEqual(gmxfmm.solve(x.astype(np.float32), q, 6, precision="double", measure=False).info.precision, "double")
        whole = gmxfmm.solve(np.rint(x).astype(int).tolist(), q.astype(int), 6, measure=False)
        self.assertEqual(whole.forces.dtype, np.float64)

    def test_out_is_written_to(self):
        x, q = melt(6)
        forces, potential = np.full((216, 3), np.nan), np.full(216, np.nan)
        result = gmxfmm.solve(x, q, 6, measure=False, out={"forces": forces, "potential": potential})
        self.assertIs(result.forces, forces)
        self.assertIs(result.potential, potential)
        np.testing.assert_array_equal(forces, gmxfmm.solve(x, q, 6, measure=False).forces)

    def test_targets(self):
        x, q = cloud(400)
        places = np.random.default_rng(3).uniform(0, 1, (50, 3))
        r = places[:, None] - x[None]
        distance = np.sqrt((r**2).sum(axis=2))
        result = gmxfmm.solve(x, q, targets=places, accuracy=1e-8)
        self.assertLess(rms_error(result.potential, (1 / distance) @ q), 1e-8)
        self.assertLess(rms_error(result.field, np.einsum("ijd,ij,j->id", r, distance**-3, q)), 1e-8)
        self.assertIsNone(result.forces)
        self.assertIsNone(result.energy)

    def test_version(self):
        self.assertEqual(gmxfmm.__version__, _library.header.version)


class Measured(unittest.TestCase):
    """Rock salt with one ion moved, where a model of liquids is wrong by a thousand times. What is measured is true to a tenth of
    what was asked, or to 3 % if nothing was. 1e-11 is for the digits of forces that are a hundredth of those between neighbours."""

    @classmethod
    def setUpClass(cls):
        cls.x, cls.q = rock_salt(8)
        cls.x[100] += (0.07, -0.04, 0.11)
        cls.forces = ewald_forces(cls.x, cls.q, 8)

    def errors(self, **options):
        result = gmxfmm.solve(self.x, self.q, 8, **options)
        self.assertEqual(str(result.measured_error), str(result.info["measured_error"]))
        return rms_error(result.forces, self.forces), result.measured_error, result.info["predicted_error"]

    def test_what_is_asked_is_reached(self):
        for asked in (1e-2, 1e-3, 1e-6, 1e-10):
            for settings in ({}, {"order": 26}, {"separation": 2}):
                true, measured, _ = self.errors(accuracy=asked, **settings)
                self.assertLessEqual(true, asked)
                self.assertAlmostEqual(measured, true, delta=0.1 * asked + 1e-11)

    def test_settings_given_are_measured(self):
        for settings, least in (({"order": 12}, 0.1), ({"grid": 4}, 0.03), ({"order": 9, "grid": (2, 3, 4), "separation": 2}, 0)):
            true, measured, _ = self.errors(**settings)
            self.assertGreater(true, least)
            self.assertAlmostEqual(measured, true, delta=0.03 * true + 1e-11)

    def test_what_is_missed_is_an_error(self):
        less_moved, _ = rock_salt(8)
        less_moved[100] += (0.007, -0.004, 0.011)  # forces are a thousandth of those between neighbours
        for x, settings, text in ((less_moved, {"accuracy": 1e-12}, "cannot be measured.* ask for"),
                                  (self.x, {"accuracy": 2e-6, "precision": "single"}, "use double"),
                                  (self.x, {"accuracy": 1e-3, "order": 12, "grid": 4, "separation": 1}, "is missed .*automatic"),
                                  (self.x, {"accuracy": 1e-6, "order": 4, "measure": False}, "predicted by the model")):
            with self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                gmxfmm.solve(x, self.q, 8, **settings)
            self.assertEqual(caught.exception.status, "GMXFMM_ERROR_OPTION")

    def test_forces_that_are_zero_have_another_unit(self):
        x, q = rock_salt(2)
        for x, q in ((x, q), ([(0.5, 1, 1.5)], [2])):
            result = gmxfmm.solve(x, q, 2, accuracy=1e-4)
            self.assertIn("as the forces are zero", result.relative_to)
            self.assertEqual(result.info.zero_forces, 1)
            self.assertLessEqual(result.measured_error, 1e-4)
        result = gmxfmm.solve(self.x, self.q, 8, accuracy=1e-3)
        self.assertEqual((result.relative_to, result.info.zero_forces), ("RMS of the forces", 0))

    def test_the_model_is_taken_where_that_is_asked_for(self):
        true, measured, predicted = self.errors(accuracy=1e-3, measure=False)
        self.assertTrue(np.isnan(measured))
        self.assertLess(predicted, 1e-3)
        self.assertGreater(true, 0.1)

    def reached(self, make, forces_of):
        """A hundred systems from seeds: how many were refused; none falls short without a word."""
        refused = 0
        for seed in range(100):
            random = np.random.default_rng(seed)
            x, q, box = make(random)
            asked = 10 ** random.uniform(-8, -2)
            try:
                result = gmxfmm.solve(x, q, box, accuracy=asked)
            except gmxfmm.Error as error:
                self.assertRegex(str(error), "ask for")
                refused += 1
                continue
            true = rms_error(result.forces, forces_of(x, q))
            self.assertLessEqual(true, asked, f"seed {seed}")
            self.assertAlmostEqual(result.measured_error, true, delta=0.1 * asked + 1e-11, msg=f"seed {seed}")
        return refused

    def test_a_hundred_crystals_with_defects(self):
        def make(random):
            x, q = rock_salt(4)
            i = random.integers(64)
            by = 10 ** random.uniform(-2.5, -0.8) * random.uniform(-1, 1, (64, 3))
            kind = random.integers(3)
            if kind == 0:
                q[i] *= 2
            else:
                x = x + (by if kind == 1 else by * (np.arange(64) == i)[:, None])
            return x, q, 4

        self.assertLessEqual(self.reached(make, lambda x, q: ewald_forces(x, q, 4)), 1)

    def test_a_hundred_clusters(self):
        def make(random):
            n = random.integers(10, 150)
            at = 10 ** random.uniform(0, 3) * random.integers(0, 3, (n, 1))
            return random.normal(0, n ** (1 / 3), (n, 3)) + at, random.uniform(-1, 1, n), None

        self.assertLessEqual(self.reached(make, lambda x, q: q[:, None] * direct(x, q)[1]), 1)


class Structures(unittest.TestCase):
    def test_are_laid_out_as_the_compiler_does_it(self):
        header = os.environ.get("GMXFMM_HEADER")
        if not header:
            self.skipTest("GMXFMM_HEADER is not set")
        kinds = (_library.Options, _library.Output, _library.Info, _library.Option, _library.System, _library.Measurement,
                 _library.DeviceOutput)
        lines, expected = [], []
        for kind in kinds:
            lines.append(f'printf("%zu\\n", sizeof({kind.__name__}));')
            expected.append(ctypes.sizeof(kind))
            for field, _ in kind._fields_:
                lines.append(f'printf("%zu\\n", offsetof({kind.__name__}, {field}));')
                expected.append(getattr(kind, field).offset)
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / "layout.c", Path(folder) / "layout"
            source.write_text('#include "gmxfmm_measure.h"\n#include <stdio.h>\nint main(void)\n{\n' + "\n".join(lines) + "\n}\n")
            compiler = os.environ.get("CC", "cc")
            subprocess.run([compiler, "-I", Path(header).parent, "-c", "-o", f"{program}.o", source], check=True)
            subprocess.run([compiler, "-o", program, f"{program}.o"], check=True)
            told = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        self.assertEqual([int(number) for number in told.split()], expected)


if __name__ == "__main__":
    unittest.main()
