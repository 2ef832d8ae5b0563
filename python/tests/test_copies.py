# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is copied, stored and sent to other processes: errors, plans, batches, calculators, results."""
import copy
import multiprocessing
import pickle
import unittest

import numpy as np

import gmxfmm
from systems import cloud, ewald_forces, melt, rms_error, rock_salt

try:
    import ase
except ImportError:
    ase = None
else:
    import ase.build
    from gmxfmm.ase import Coulomb


def energy(box):
    x, q = rock_salt(4)
    return gmxfmm.solve(x, q, box, measure=False, num_threads=1).energy


class Errors(unittest.TestCase):
    def test_are_stored(self):
        with self.assertRaises(gmxfmm.Error) as caught:
            energy(-4)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertIs(type(again), gmxfmm.Error)
        self.assertEqual((str(again), again.status, again.argument), (str(caught.exception), "GMXFMM_ERROR_BOX", "box"))

    def test_of_a_worker_reach_its_parent(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assertEqual(pool.map_async(energy, [4]).get(60), [energy(4)])
            with self.assertRaisesRegex(gmxfmm.Error, "box") as caught:
                pool.map_async(energy, [4, -4]).get(60)  # an error that cannot be read would never come: 60 s
            self.assertEqual(caught.exception.argument, "box")

    def test_have_their_notes(self):
        error = gmxfmm.Error("GMXFMM_ERROR_BOX", "box: flat", "box")
        error.note = "of frame 7"
        self.assertEqual(pickle.loads(pickle.dumps(error)).note, "of frame 7")


def stored(thing):
    return pickle.loads(pickle.dumps(thing))


WAYS = (copy.copy, stored, lambda plan: copy.deepcopy(stored(plan)))


class OfPlans(unittest.TestCase):
    """A copy is made of the system as it is and of the options given, when it is first used."""

    def setUp(self):
        self.x, self.q = melt(4)

    def test_have_the_settings_given(self):
        given = {"order": 7, "grid": 2, "separation": 1, "reproducible": 1, "measure": False, "exclusions": [(0, 1)], "cache_dir": "/tmp"}
        with gmxfmm.Plan(self.x, self.q, 4, **given) as plan:
            forces = plan.step(self.x).forces
            for way in WAYS:
                with way(plan) as other:
                    self.assertIn("not used yet", repr(other))
                    self.assertEqual((len(other), other.prefactor), (64, 1))
                    np.testing.assert_array_equal(other.step(self.x).forces, forces)
                    self.assertEqual((other.info.order, other.info.grid), (7, [2, 2, 2]))

    def test_are_measured(self):
        with gmxfmm.Plan(self.x, self.q, 4, accuracy=1e-6, assign_every=5) as plan:
            plan.step(self.x)
            for way in WAYS[1:]:
                with way(plan) as other:
                    self.assertLessEqual(other.measured_error, 1e-6)
                    self.assertTrue(other.tried)
                    self.assertLess(rms_error(other.step(self.x).forces, ewald_forces(self.x, self.q, 4)), 1e-6)
            plan.step(self.x)  # it is as it was
            self.assertLessEqual(plan.measured_error, 1e-6)

    def test_have_what_was_changed(self):
        q = self.q * np.linspace(0.5, 1.5, 64)
        places = self.x[:5] + 0.5
        with gmxfmm.Plan(self.x, self.q, 4, accuracy=1e-3, check="report") as plan:
            plan.set_charges(q)
            plan.set_box((4, 4, 4.2))
            plan.set_exclusions([(2, 3)])
            plan.set_charge_derivatives([([0, 1], [1, -1])])
            plan.choose(accuracy=1e-7)
            x = self.x * (1, 1, 1.05)
            expected = plan.step(x, charge_gradient=True)
            for way in (copy.deepcopy,):
                with way(plan) as other:
                    found = other.step(x, charge_gradient=True)
                    self.assertLess(rms_error(found.forces, expected.forces), 2e-7)  # both have an error of 1e-7
                    np.testing.assert_allclose(found.charge_gradient, expected.charge_gradient, rtol=1e-5)
                    self.assertLessEqual(other.measured_error, 1e-7)
            plan.set_charge_derivatives(None)
            plan.set_exclusions(None)
            plan.set_targets(places)
            there = plan.step(x).potential
            for way in (copy.deepcopy,):
                with way(plan) as other:
                    np.testing.assert_allclose(other.step(x).potential, there, rtol=0, atol=1e-6 * np.abs(there).max())

    def test_may_be_changed_before_they_are_used(self):
        x, q = melt(6)
        with gmxfmm.Plan(self.x, self.q, 4, accuracy=1e-5) as plan:
            for way in (copy.deepcopy,):
                with way(plan) as other:
                    other.set_charges(2 * self.q)
                    self.assertAlmostEqual(other.step(self.x).energy / plan.step(self.x).energy, 4, delta=1e-3)
                with way(plan) as other:
                    other.set_box(6)
                    other.set_charges(q, x)
                    self.assertLess(rms_error(other.step(x).forces, ewald_forces(x, q, 6)), 1e-5)

    def test_of_one_that_measures_no_more(self):
        with gmxfmm.Plan(self.x, self.q, 4, accuracy=1e-5) as plan:
            plan.stop_measuring()
            with stored(plan) as other:
                self.assertLessEqual(other.measured_error, 1e-5)
                handle = other._handle.value
                other.set_charges(np.roll(self.q, 1))
                self.assertEqual(other._handle.value, handle)
            x, q = melt(6)
            plan.set_charges(q)
            plan.set_box(6)
            with stored(plan) as other:
                with self.assertRaisesRegex(gmxfmm.Error, r"copy.*begin with step\(\) or assign\(\)"):
                    other.set_box(6)
                self.assertLess(rms_error(other.step(x).forces, ewald_forces(x, q, 6)), 1e-5)

    def test_that_cannot_be_made_say_so_each_time(self):
        with gmxfmm.Plan(self.x, self.q, 4, accuracy=1e-5) as plan:
            other = copy.copy(plan)
            other._charges = np.full(64, np.nan)
            for _ in range(2):
                with self.assertRaisesRegex(gmxfmm.Error, "finite"):
                    other.step(self.x)
            other._charges = self.q
            self.assertEqual(other.step(self.x).forces.shape, (64, 3))

    def test_of_what_is_closed(self):
        plan = gmxfmm.Plan(self.x, self.q, 4, measure=False)
        plan.close()
        for way in WAYS:
            with self.assertRaisesRegex(gmxfmm.Error, "closed"):
                way(plan).step(self.x)

    def test_of_open_systems(self):
        x, q = cloud(300)
        with gmxfmm.Plan(x, q, accuracy=1e-6) as plan, stored(plan) as other:
            self.assertLess(rms_error(other.step(x).forces, plan.step(x).forces), 2e-6)
            other.step(3 * x)  # measured again
            self.assertLessEqual(other.measured_error, 1e-6)


class OfResults(unittest.TestCase):
    def hold(self, one, other):
        self.assertEqual((one.energy, one.outside), (other.energy, other.outside))
        for name in ("forces", "potential", "field", "virial", "charge_gradient"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)

    def test_of_a_step(self):
        x, q = melt(4)
        wanted = {"potential": True, "virial": True, "charge_gradient": True}
        with gmxfmm.Plan(x, q, 4, measure=False, reproducible=1) as plan:
            plan.set_charge_derivatives([([0], [1])])
            step = plan.step(x, **wanted)
            others = [way(step) for way in (copy.deepcopy, stored)]
            for other in others:
                self.hold(step, other)
                self.assertIsNone(other.field)
            plan.step(x + [[0.1, 0, 0]] * 64 * q[:, None], step, **wanted)
            self.assertNotEqual(step.energy, others[0].energy)
            for other in others:  # of use for later steps
                self.assertIs(plan.step(x + [[0.1, 0, 0]] * 64 * q[:, None], other, **wanted), other)
                self.hold(step, other)

    def test_of_solve(self):
        x, q = melt(4)
        result = gmxfmm.solve(x, q, 4, accuracy=1e-4, virial=True)
        for way in WAYS:
            other = way(result)
            np.testing.assert_array_equal(other.forces, result.forces)
            self.assertEqual((other.energy, dict(other.info), other.info.order, repr(other)),
                             (result.energy, dict(result.info), result.info.order, repr(result)))

    def test_of_what_was_measured(self):
        x, q = melt(4)
        with gmxfmm.Plan(x, q, 4, accuracy=1e-4) as plan:
            one, tried = plan.measure(), plan.tried
        self.assertEqual([dict(stored(found)) for found in (one, *tried)], [dict(found) for found in (one, *tried)])


class OfBatches(unittest.TestCase):
    def test_have_plans_of_their_own(self):
        x, q = melt(4)
        with gmxfmm.Batch(accuracy=1e-5, exclusions=[(0, 1)]) as batch:
            step = batch.step(x[None], q[None], 4)
            for way in WAYS:
                with way(batch) as other:
                    self.assertEqual(other.plans, [])
                    self.assertLess(rms_error(other.step(x[None], q[None], 4).forces, step.forces), 2e-5)
            self.assertEqual(len(batch.plans), 1)
            np.testing.assert_array_equal(stored(step).forces, step.forces)


@unittest.skipIf(ase is None, "there is no ASE here")
class OfCalculators(unittest.TestCase):
    def test_follow_their_own_atoms(self):
        atoms = ase.build.bulk("NaCl", "rocksalt", a=5.64, cubic=True)
        atoms.set_initial_charges([1, -1] * 4)
        atoms.rattle(0.1, seed=1)
        atoms.calc = Coulomb(accuracy=1e-6)
        energy = atoms.get_potential_energy()
        for way in (copy.deepcopy, stored):
            other = way(atoms)
            self.assertEqual(other.get_potential_energy(), energy)  # kept
            other.rattle(0.1, seed=2)
            self.assertNotEqual(other.get_potential_energy(), energy)
            other.positions[:] = atoms.positions
            self.assertAlmostEqual(other.get_potential_energy(), energy, delta=1e-6 * abs(energy))
            self.assertIsNot(other.calc.plan, atoms.calc.plan)


if __name__ == "__main__":
    unittest.main()
