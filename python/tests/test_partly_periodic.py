# SPDX-License-Identifier: LGPL-2.1-or-later
"""Slabs and wires, periodic along two vectors or one: what the box may be, what follows it, and what is refused."""
import unittest

import numpy as np

import gmxfmm
from systems import rms_error

try:
    import ase
except ImportError:
    ase = None
else:
    import ase.build
    from gmxfmm.ase import Coulomb


def film(n=80, seed=2):
    """Charges in a plane of 3 x 4, of a thickness of 2."""
    random = np.random.default_rng(seed)
    return random.uniform(size=(n, 3)) * (3, 4, 2), np.tile([1.0, -1.0], n // 2)


def twice(x, q):
    """Two of them, side by side."""
    return np.concatenate([x, x + (3, 0, 0)]), np.concatenate([q, q])


class Slab(unittest.TestCase):
    def test_two_cells_are_one_of_twice_the_width(self):
        x, q = film()
        one, two = (gmxfmm.solve(*system, box, periodic=(1, 1, 0), accuracy=1e-9, virial=True)
                    for system, box in (((x, q), (3, 4, 1)), (twice(x, q), (6, 4, 100))))
        self.assertLess(abs(two.energy - 2 * one.energy), 1e-8 * abs(two.energy))
        self.assertLess(rms_error(two.forces, np.concatenate([one.forces, one.forces])), 1e-8)
        np.testing.assert_allclose(two.virial, 2 * one.virial, rtol=0, atol=1e-7 * abs(one.energy))
        self.assertAlmostEqual(np.trace(one.virial), -one.energy / 2, delta=1e-12 * abs(one.energy))

    def test_along_other_axes(self):
        x, q = film()
        given = {"accuracy": 1e-9, "measure": False}
        expected = gmxfmm.solve(x, q, (3, 4, 0), periodic=[True, True, False], **given)
        for axes in ((1, 2, 0), (2, 0, 1)):
            periodic = np.array([True, True, False])[list(axes)]
            found = gmxfmm.solve(x[:, axes], q, np.diag((3.0, 4.0, 0.0))[list(axes)][:, axes], periodic=periodic, **given)
            self.assertLess(rms_error(found.forces, expected.forces[:, axes]), 1e-8)
        single = gmxfmm.solve(x[:, (2, 0, 1)].astype(np.float32), q, (1, 3, 4), periodic=(0, 1, 1), accuracy=1e-5)
        self.assertEqual(single.forces.dtype, np.float32)
        self.assertLess(rms_error(single.forces, expected.forces[:, (2, 0, 1)]), 2e-5)  # positions are rounded, too

    def test_a_plan_follows_its_box(self):
        x, q = film()
        with gmxfmm.Plan(x, q, (3, 4, 0), periodic=(1, 1, 0), accuracy=1e-7) as plan:
            for width in (3, 3.05, 4.5):
                plan.set_box((width, 4, 0), x * (width / 3, 1, 1))
                step = plan.step(x * (width / 3, 1, 1))
                expected = gmxfmm.solve(x * (width / 3, 1, 1), q, (width, 4, 7), periodic=(1, 1, 0), accuracy=1e-9)
                self.assertLess(rms_error(step.forces, expected.forces), 1e-6)
            self.assertLessEqual(plan.measured_error, 1e-7)

    def test_wires(self):
        x, q = film()
        given = {"accuracy": 1e-9, "virial": True}
        one = gmxfmm.solve(x, q, (3, 0, 0), periodic=(1, 0, 0), **given)
        two = gmxfmm.solve(*twice(x, q), [(6, 0, 0), (1, 1, 1), (0, 0, 0)], periodic=(True, False, False), **given)
        self.assertLess(abs(two.energy - 2 * one.energy), 1e-8 * abs(two.energy))
        self.assertLess(rms_error(two.forces, np.concatenate([one.forces, one.forces])), 1e-8)
        np.testing.assert_allclose(two.virial, 2 * one.virial, rtol=0, atol=1e-7 * abs(one.energy))
        turned = gmxfmm.solve(x[:, (1, 2, 0)], q, (1, 1, 3), periodic=(0, 0, 1), **given)
        self.assertLess(rms_error(turned.forces, one.forces[:, (1, 2, 0)]), 1e-8)
        with gmxfmm.Plan(x, q, (3, 0, 0), periodic=(1, 0, 0), accuracy=1e-7) as plan:
            plan.set_box((4, 0, 0), x * (4 / 3, 1, 1))
            expected = gmxfmm.solve(x * (4 / 3, 1, 1), q, (4, 5, 6), periodic=(1, 0, 0), accuracy=1e-9).forces
            self.assertLess(rms_error(plan.step(x * (4 / 3, 1, 1)).forces, expected), 1e-6)

    def test_targets(self):
        x, q = film()
        places = np.array([(1, 1, 3.5), (2, 3, -1.0)])
        found = gmxfmm.solve(x, q, (3, 4, 0), periodic=(1, 1, 0), targets=places, accuracy=1e-9)
        probed = gmxfmm.solve(np.concatenate([x, places]), np.append(q, (0, 0)), (3, 4, 0), periodic=(1, 1, 0), accuracy=1e-9)
        np.testing.assert_allclose(found.potential, probed.potential[-2:], rtol=0, atol=1e-7 * np.abs(probed.potential).max())

    def test_batch(self):
        systems = [film(seed=k) for k in range(4)]
        batch = gmxfmm.Batch(periodic=(1, 1, 0), accuracy=1e-6)
        step = batch.step(np.stack([x for x, _ in systems]), np.stack([q for _, q in systems]), (3, 4, 0))
        for (x, q), forces in zip(systems, step.forces):
            expected = gmxfmm.solve(x, q, (3, 4, 0), periodic=(1, 1, 0), accuracy=1e-9).forces
            self.assertLess(rms_error(forces, expected), 1e-6)

    def test_refused(self):
        x, q = film()
        for argument, text, given in (
            ("box", "give its vectors", {"periodic": (1, 1, 0)}),
            ("box", "positive", {"box": (3, 0, 4), "periodic": (1, 1, 0)}),
            ("box", "on one line", {"box": [(3, 0, 0), (6, 0, 0), (0, 0, 1)], "periodic": (1, 1, 0)}),
            ("boundary", "periodic along all vectors.*leave boundary out", {"box": 3, "periodic": (1, 1, 0), "boundary": "vacuum"}),
            ("periodic", "three flags", {"box": 3, "periodic": (1, 2, 0)}),
            ("periodic", "three flags", {"box": 3, "periodic": (1, 1)}),
            ("m2l", "not offered with one periodic vector", {"box": 3, "periodic": (1, 0, 0), "m2l": "rotation"}),
            ("box", "periodic vector", {"box": np.zeros((3, 3)), "periodic": (1, 0, 0)}),
            ("periodic", "use the CPU", {"box": 3, "periodic": (1, 0, 0), "device": "cuda"}),
        ):
            with self.subTest(given=given), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                gmxfmm.solve(x, q, **given)
            self.assertEqual(caught.exception.argument, argument, str(caught.exception))

    @unittest.skipIf(ase is None, "there is no ASE here")
    def test_atoms_of_a_surface(self):
        surface = ase.build.surface(ase.build.bulk("NaCl", "rocksalt", a=5.64, cubic=True), (1, 0, 0), 2)
        surface.set_initial_charges([1 if name == "Na" else -1 for name in surface.get_chemical_symbols()])
        surface.rattle(0.1, seed=1)
        surface.pbc = (True, True, False)
        surface.calc = Coulomb(accuracy=1e-9)
        energy, forces = surface.get_potential_energy(), surface.get_forces()
        surface.center(vacuum=30, axis=2)  # another cell and other positions, the same atoms
        self.assertAlmostEqual(surface.get_potential_energy(), energy, delta=1e-6 * abs(energy))
        np.testing.assert_allclose(surface.get_forces(), forces, rtol=0, atol=1e-7 * np.abs(forces).max())
        stress = surface.get_stress() * surface.get_volume()
        for k, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))):
            energies = []
            for by in (1e-4, -1e-4):
                strain = np.eye(3)
                strain[i, j] += by / 2
                strain[j, i] += by / 2
                other = surface.copy()
                other.set_cell(surface.cell @ strain, scale_atoms=True)
                other.calc = Coulomb(accuracy=1e-9, measure=False)
                energies.append(other.get_potential_energy())
            # errors of the energies over the strain
            self.assertAlmostEqual((energies[0] - energies[1]) / 2e-4, stress[k], delta=2e-5 * abs(energy))


if __name__ == "__main__":
    unittest.main()
