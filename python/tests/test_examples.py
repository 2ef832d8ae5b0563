# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of examples/ run, and print what they should."""
import contextlib
import importlib.util
import io
import re
import runpy
import sys
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import gmxfmm

PYTHON = Path(__file__).resolve().parent.parent
EXAMPLES = PYTHON / "examples"
sys.path.insert(0, str(EXAMPLES))  # as of a script that is run: one imports another


def run(name):
    with contextlib.redirect_stdout(io.StringIO()) as printed, mock.patch.object(sys, "argv", [name]):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return printed.getvalue()


def missing(module):
    return unittest.skipIf(importlib.util.find_spec(module) is None, f"there is no {module} here")


class Examples(unittest.TestCase):
    def number(self, pattern, text):
        found = re.search(pattern.replace("#", r"(-?[\d.]+(?:e[-+]?\d+)?)"), text)
        self.assertIsNotNone(found, text)
        return float(found.group(1))

    def test_madelung(self):
        self.assertAlmostEqual(self.number("constant: #", run("madelung.py")), 1.747564594633, delta=1e-7)

    def test_plan_in_a_loop_conserves_energy(self):
        printed = run("plan_in_a_loop.py")
        # Verlet's own error goes with the square of the time step: 0.02 here is a 60th of the fastest oscillation, which
        # leaves some 1e-3 of what moves between kinetic and potential energy
        moved = abs(self.number("energy from #", printed) - self.number(r"to #\n", printed))
        self.assertLess(self.number("total energy: spread #", printed), 0.01 * moved)

    def test_two_state_site(self):
        printed = run("two_state_site.py")
        energy = self.number("to B: #", printed)
        self.assertGreater(abs(energy), 0.1)
        self.assertAlmostEqual(self.number("energies, #", printed), energy, delta=1e-7)  # one plan, rounding

    def test_qeq_has_forces_of_its_energy(self):
        printed = run("qeq_molten_salt.py")
        fell, by_forces = (np.array(re.findall(pattern, printed), dtype=float) for pattern in (r"fell by ([\d.]+)", r"eV, ([\d.]+) by forces"))
        self.assertEqual((len(fell), bool((fell > 0.01).all())), (4, True))
        # the mean of the forces at both ends: an error of a twelfth of the third derivative, some 1e-5 at steps of 0.01 Angstrom
        np.testing.assert_allclose(by_forces, fell, rtol=2e-4)
        self.assertLess(abs(self.number("sum #:", printed)), 1e-12)

    def test_polarizable_water_has_the_published_dimer(self):
        """Dang and Chang: -4.69 kcal/mol at 2.87 Angstrom, and 1.848 D of a molecule by itself."""
        printed = run("polarizable_water.py")
        self.assertAlmostEqual(self.number("energy #", printed), -4.69, delta=0.005)
        self.assertAlmostEqual(self.number("O-O #", printed), 2.87, delta=0.005)
        self.assertAlmostEqual(self.number("by itself #", printed), 1.848, delta=0.002)
        self.assertGreater(self.number("molecules #", printed), 2)

    def test_polarizable_liquid_conserves_energy(self):
        printed = run("polarizable_liquid.py")
        # 2 fs are a 20th of the fastest libration, whose energy Verlet's error changes by (2 pi / 20)^2 / 8, a hundredth, at most
        moved = self.number("potential energy #,", printed)
        self.assertGreater(moved, 0.01)
        self.assertLess(self.number("total energy #,", printed), 0.02 * moved)
        # the structure is still near SPC water's, with 2.70 D; fields that are wrong by a tenth change that by 0.1 D or more
        self.assertAlmostEqual(self.number("mean dipole of a molecule #", printed), 2.7, delta=0.05)
        self.assertAlmostEqual(self.number("D; #", printed), 1.848, delta=0.002)
        self.assertLess(self.number("iterations a step: #", printed), 5.5)  # 6 without dipoles of earlier steps

    @missing("ase")
    def test_ase_molten_salt_conserves_energy(self):
        printed = run("ase_molten_salt.py")
        moved = self.number("potential energy: spread #", printed)
        self.assertGreater(moved, 20)
        # 2 fs are a 60th of the fastest vibration of salt, 0.13 ps: as above
        self.assertLess(self.number("total energy: spread #", printed), 0.02 * moved)

    @missing("torch")
    def test_torch_charges_are_found(self):
        printed = run("torch_charges.py")
        self.assertAlmostEqual(self.number("found: #", printed), -0.82, delta=1e-3)
        self.assertAlmostEqual(self.number("found: [^,]*, #", printed), 0.41, delta=1e-3)
        self.assertEqual(self.number("plans made: #", printed), 1)

    @missing("torch")
    def test_torch_trains_on_forces(self):
        """Losses are over the variance: 1 is what a constant has."""
        printed = run("torch_train_on_forces.py")
        self.assertLess(self.number("with the long-range part: loss .* to #,", printed), 5e-3)
        self.assertLess(self.number("with the long-range part: .* clusters #,", printed), 5e-3)
        self.assertAlmostEqual(self.number("charge #", printed), 0.8, delta=0.005)
        self.assertGreater(self.number("without the long-range part: loss .* to #,", printed), 0.5)

    @missing("cupy")
    def test_cupy_steps(self):
        try:
            gmxfmm.check_device("cuda")
        except gmxfmm.Error as error:
            self.skipTest(str(error))
        printed = run("cupy_steps.py")
        self.assertLess(self.number("to #,", printed), self.number("from #", printed))

    def test_blocks_of_documents_run(self):
        for page, least in ((PYTHON / "README.md", 1), (PYTHON.parent / "docs" / "from-python.md", 2), (PYTHON.parent / "docs" / "python.md", 3)):
            blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
            self.assertGreaterEqual(len(blocks), least)
            for block in blocks:
                needs = set(re.findall(r"^(?:import|from) (\w+)", block, re.M)) - {"gmxfmm", "numpy"}
                with self.subTest(page=page.name, block=block[:60]):
                    for module in needs:
                        if importlib.util.find_spec(module) is None:
                            self.skipTest(f"there is no {module} here")
                    with contextlib.redirect_stdout(io.StringIO()) as printed:
                        exec(compile(block, str(page), "exec"), {})
                    if "Madelung" in block:
                        self.assertIn("1.747564", printed.getvalue())
                    if "-8.923" in block:
                        self.assertIn("-8.92", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
