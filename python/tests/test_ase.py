# SPDX-License-Identifier: LGPL-2.1-or-later
"""The calculator of ASE: units, derivatives, what it follows, and what it refuses."""
import unittest

import numpy as np

import gmxfmm

try:
    import ase
except ImportError:
    ase = None
else:
    import ase.build
    import ase.units
    from ase.calculators.calculator import PropertyNotImplementedError
    from gmxfmm.ase import Coulomb

EDGE = 5.64  # of salt's cell, in Angstrom


def salt(cells=1, moved=0.0):
    atoms = ase.build.bulk("NaCl", "rocksalt", a=EDGE, cubic=True) * (cells, cells, cells)
    atoms.set_initial_charges([1 if name == "Na" else -1 for name in atoms.get_chemical_symbols()])
    atoms.rattle(moved, seed=3)
    return atoms


@unittest.skipIf(ase is None, "there is no ASE here")
class Calculator(unittest.TestCase):
    def test_energy_is_that_of_madelung(self):
        atoms = salt()
        atoms.calc = Coulomb(accuracy=1e-8)
        # per pair: the constant times e^2 / (4 pi eps0) over the distance
        expected = -1.747564594633 * ase.units.Hartree * ase.units.Bohr / (EDGE / 2)
        self.assertAlmostEqual(atoms.get_potential_energy() / 4, expected, delta=1e-6)
        self.assertAlmostEqual(atoms.calc.get_property("potential", atoms)[0], 2 * expected / 2, delta=1e-6)

    def test_forces_and_stress_are_derivatives(self):
        atoms = salt(moved=0.2)
        atoms.set_cell(atoms.cell @ (np.eye(3) + 0.02 * np.random.default_rng(1).normal(size=(3, 3))), scale_atoms=True)
        atoms.calc = Coulomb(accuracy=1e-10)
        forces, stress = atoms.get_forces(), atoms.get_stress()

        def slope(change, by):
            """Central difference of the energy; change(atoms, by) makes other atoms."""
            energies = []
            for sign in (1, -1):
                other = atoms.copy()
                other.calc = atoms.calc
                change(other, sign * by)
                energies.append(other.get_potential_energy())
            return (energies[0] - energies[1]) / (2 * by)

        # differences have an error of a third derivative, some 10 eV / Angstrom^3 and 100 eV, times the square of the step / 6
        for i, d in ((0, 0), (3, 2)):
            def move(other, by):
                other.positions[i, d] += by
            self.assertAlmostEqual(-slope(move, 1e-3), forces[i, d], delta=2e-5)
        for k, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))):
            def stretch(other, by):
                strain = np.eye(3)
                strain[i, j] += by / 2
                strain[j, i] += by / 2
                other.set_cell(other.cell @ strain, scale_atoms=True)
            self.assertAlmostEqual(slope(stretch, 1e-3) / atoms.get_volume(), stress[k], delta=1e-6)

    def test_open_systems_have_no_stress(self):
        atoms = ase.Atoms("NaCl", [(0, 0, 0), (0, 0, 2)], charges=[1, -1])
        atoms.calc = Coulomb(measure=False)
        self.assertAlmostEqual(atoms.get_potential_energy(), -ase.units.Hartree * ase.units.Bohr / 2, delta=1e-9)
        with self.assertRaises(PropertyNotImplementedError):
            atoms.get_stress()

    def test_the_plan_follows_the_atoms(self):
        atoms = salt(moved=0.1)
        atoms.calc = calculator = Coulomb(accuracy=1e-6)
        atoms.get_forces()
        plan = calculator.plan
        atoms.rattle(0.05, seed=4)
        atoms.set_cell(atoms.cell * 1.01, scale_atoms=True)
        changed = atoms.get_forces()
        self.assertIs(calculator.plan, plan)
        fresh = atoms.copy()
        fresh.calc = Coulomb(accuracy=1e-8)
        np.testing.assert_allclose(changed, fresh.get_forces(), rtol=0, atol=2e-6 * np.abs(changed).max())
        atoms.set_initial_charges(2 * atoms.get_initial_charges())
        np.testing.assert_allclose(atoms.get_forces(), 4 * changed, rtol=0, atol=1e-5 * np.abs(changed).max())
        del atoms[:2]
        atoms.pbc = False
        self.assertEqual(atoms.get_forces().shape, (6, 3))

    def test_charges_of_the_calculator(self):
        atoms = salt(moved=0.1)
        charges = atoms.get_initial_charges()
        given = {"accuracy": 1e-6, "measure": False}  # which settings are the cheapest is measured: they need not be the same twice
        atoms.calc = Coulomb(**given)
        energy = atoms.get_potential_energy()
        atoms.set_initial_charges(None)
        atoms.calc = Coulomb(charges, **given)
        self.assertAlmostEqual(atoms.get_potential_energy(), energy, delta=1e-9)

    def test_what_is_set_takes_effect(self):
        atoms = salt(moved=0.1)
        atoms.calc = calculator = Coulomb(accuracy=1e-2)
        atoms.get_forces()
        plan, order = calculator.plan, calculator.plan.info.order
        self.assertEqual(calculator.set(accuracy=1e-2), {})
        atoms.get_forces()
        self.assertIs(calculator.plan, plan)
        self.assertEqual(calculator.set(accuracy=1e-8), {"accuracy": 1e-8})
        forces = atoms.get_forces()
        self.assertEqual(calculator.parameters["accuracy"], 1e-8)
        self.assertLessEqual(calculator.plan.measured_error, 1e-8)
        self.assertGreater(calculator.plan.info.order, order)
        calculator.set(prefactor=2 * calculator.parameters["prefactor"])
        np.testing.assert_allclose(atoms.get_forces(), 2 * forces, rtol=0, atol=1e-7 * np.abs(forces).max())
        charges = 2 * atoms.get_initial_charges()
        calculator.set(charges=charges)
        doubled = atoms.get_potential_energy()
        charges *= 2  # the calculator has a copy
        self.assertEqual(atoms.get_potential_energy(), doubled)
        calculator.set(charges=charges)
        # by a plan that is measured again, to 1e-8 of the forces
        self.assertAlmostEqual(atoms.get_potential_energy() / doubled, 4, delta=1e-6)

    def test_what_is_set_is_refused_at_once(self):
        calculator = Coulomb(accuracy=1e-4)
        for argument, change in (("acuracy", {"acuracy": 1e-8}), ("method", {"method": "tree"}), ("accuracy", {"accuracy": "high"}),
                                 ("periodic", {"periodic": (1, 1, 0)})):
            for call in (Coulomb, calculator.set):
                with self.subTest(call=call, **change), self.assertRaises(gmxfmm.Error) as caught:
                    call(**change)
                self.assertEqual(caught.exception.argument, argument)
        self.assertEqual(calculator.parameters["accuracy"], 1e-4)

    def test_refused(self):
        for argument, change in (("box", lambda atoms: atoms.set_cell(np.diag((0.0, 5.64, 5.64)))),
                                 ("charges", lambda atoms: atoms.set_initial_charges(None))):
            atoms = salt()
            change(atoms)
            atoms.calc = Coulomb()
            with self.assertRaises(gmxfmm.Error) as caught:
                atoms.get_potential_energy()
            self.assertEqual(caught.exception.argument, argument)


if __name__ == "__main__":
    unittest.main()
