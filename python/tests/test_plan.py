# SPDX-License-Identifier: LGPL-2.1-or-later
"""A plan that is kept: steps, what may change, when it is measured, and what is refused."""
import copy
import gc
import unittest
import unittest.mock

import numpy as np

import gmxfmm
from gmxfmm import _inputs
from systems import cloud, direct, direct_at, direct_with_dipoles, ewald_forces, melt, rms_error, rock_salt, scattered


class Steps(unittest.TestCase):
    def setUp(self):
        self.x, self.q = melt(6)

    def test_are_those_of_solve(self):
        with gmxfmm.Plan(self.x, self.q, 6, measure=False, reproducible=1) as plan:
            for seed in (1, 2):
                x, _ = melt(6, seed)
                step = plan.step(x, potential=True, field=True, virial=True)
                result = gmxfmm.solve(x, self.q, 6, measure=False, virial=True)
                for name in ("forces", "potential", "field", "virial", "energy"):
                    np.testing.assert_array_equal(getattr(step, name), getattr(result, name), name)

    def test_give_what_is_wanted(self):
        with gmxfmm.Plan(self.x, self.q, 6, measure=False) as plan:
            step = plan.step(self.x)
            self.assertIsInstance(step.energy, float)
            self.assertEqual((step.forces.shape, step.potential, step.field, step.virial), ((216, 3), None, None, None))
            only = plan.step(self.x, energy=False, forces=False, potential=True)
            self.assertEqual((only.energy, only.forces, only.potential.shape), (None, None, (216,)))

    def test_write_to_out(self):
        with gmxfmm.Plan(self.x, self.q, 6, measure=False, reproducible=1) as plan:
            first = plan.step(self.x)
            forces, energy = first.forces.copy(), first.energy
            moved, _ = melt(6, 2)
            again = plan.step(moved, first)
            self.assertIs(again, first)
            self.assertIs(again.forces, first.forces)
            self.assertNotEqual(again.energy, energy)
            mine = np.empty((216, 3))
            given = plan.step(self.x, {"forces": mine}, energy=True)
            self.assertIs(given.forces, mine)
            np.testing.assert_array_equal(mine, forces)
            self.assertEqual(given.energy, energy)

    def test_between_assignments_keep_the_accuracy(self):
        exact = ewald_forces(self.x, self.q, 6)
        with gmxfmm.Plan(self.x, self.q, 6, accuracy=1e-6, assign_every=5) as plan:
            begun = plan.info.time_assign
            plan.step(self.x + 0.01)  # the whole system: forces stay
            self.assertGreater(plan.info.time_assign, begun)
            begun = plan.info.time_assign
            for k in range(2, 6):
                self.assertLess(rms_error(plan.step(self.x + 0.01 * k).forces, exact), 2e-6)  # moved by 5 % of a distance
            self.assertEqual(plan.info.time_assign, begun)
            plan.step(self.x)
            self.assertGreater(plan.info.time_assign, begun)
            begun = plan.info.time_assign
            plan.step(self.x, assign=True)
            self.assertGreater(plan.info.time_assign, begun)
            plan.assign(self.x)
            begun = plan.info.time_assign
            plan.step(self.x)
            self.assertEqual(plan.info.time_assign, begun)

    def test_in_single_precision_take_arrays_as_they_are(self):
        x, q = self.x.astype(np.float32), self.q.astype(np.float32)
        with gmxfmm.Plan(x, q, 6, accuracy=1e-4) as plan:
            self.assertEqual(plan.step(x).forces.dtype, np.float32)
            self.assertEqual(plan.step(self.x).forces.dtype, np.float32)  # converted
            self.assertLess(rms_error(plan.step(x).forces, ewald_forces(self.x, self.q, 6)), 1e-4)


class Changes(unittest.TestCase):
    def setUp(self):
        self.x, self.q = melt(4)

    def test_of_charges(self):
        with gmxfmm.Plan(self.x, self.q, 4, measure=False) as plan:
            energy = plan.step(self.x).energy
            q = 2 * self.q
            plan.set_charges(q)
            self.assertAlmostEqual(plan.step(self.x).energy, 4 * energy, delta=1e-12 * abs(energy))
            q[:] = 0  # the plan has a copy
            self.assertAlmostEqual(plan.step(self.x).energy, 4 * energy, delta=1e-12 * abs(energy))

    def test_of_their_number(self):
        x, q = melt(6)
        with gmxfmm.Plan(self.x, self.q, 4, measure=False, exclusions=[(0, 1)], reproducible=1, order=8, grid=3) as plan:
            plan.set_charges(q)
            plan.set_box(6)
            self.assertEqual(len(plan), 216)
            expected = gmxfmm.solve(x, q, 6, measure=False, order=8, grid=3)
            np.testing.assert_allclose(plan.step(x).forces, expected.forces, rtol=1e-12, atol=1e-12)

    def test_of_the_box(self):
        with gmxfmm.Plan(self.x, self.q, 4, accuracy=1e-6, assign_every=100) as plan:
            for box in (4.01, (4.02, 4.02, 4.1), [[4.0, 0, 0], [0.1, 4.1, 0], [0, 0, 4]], [[9, 1, 0], [0, 4, 0], [1, 0, 4.5]]):
                plan.set_box(box)
                x = self.x @ (plan.box / 4)
                exact = gmxfmm.solve(x, self.q, box, accuracy=1e-9).forces
                # twice what was asked for: the error of a system that is not the one measured, yet like it
                self.assertLess(rms_error(plan.step(x).forces, exact), 2e-6, str(box))

    def test_of_exclusions(self):
        x, q = cloud(60)
        with gmxfmm.Plan(x, q, accuracy=1e-8) as plan:
            for pairs in ([(0, 1), (5, 9)], None, np.empty((0, 2), dtype=int), [(3, 2)]):
                plan.set_exclusions(pairs)
                phi, _ = direct(x, q, excluded=[] if pairs is None else pairs)
                self.assertLess(rms_error(plan.step(x, potential=True).potential, phi), 1e-7)

    def test_of_targets(self):
        x, q = cloud(60)
        phi, field = direct(x, q)
        with gmxfmm.Plan(np.delete(x, 7, axis=0), np.delete(q, 7), targets=x[7:8], accuracy=1e-8) as plan:
            step = plan.step(np.delete(x, 7, axis=0))
            self.assertAlmostEqual(step.potential[0], phi[7], delta=1e-6 * abs(phi[7]))
            np.testing.assert_allclose(step.field[0], field[7], rtol=0, atol=1e-6 * np.abs(field[7]).max())
            self.assertIsNone(step.forces)
            with self.assertRaisesRegex(gmxfmm.Error, "targets"):
                plan.step(np.delete(x, 7, axis=0), forces=True)
            plan.set_targets(None)
            self.assertEqual(plan.step(np.delete(x, 7, axis=0)).forces.shape, (59, 3))


class AtTargets(unittest.TestCase):
    """What is asked is reached at targets, too, and known: of a cluster and places as far away as a thousand times its size."""

    def setUp(self):
        self.random = np.random.default_rng(11)

    def check(self, plan, x, q, places, asked):
        phi, field = direct_at(places, x, q)
        step = plan.step(x)
        error = max(rms_error(step.potential, phi), rms_error(step.field, field))
        self.assertLess(error, asked)
        self.assertLessEqual(error, plan.measured_error + 0.1 * asked)

    def test_is_measured(self):
        for method in ("fmm", "treecode"):
            for asked in (1e-3, 1e-5, 1e-8):
                edge = 10 ** self.random.uniform(-2, 1)
                x, q = edge * self.random.random((200, 3)), self.random.choice([-1.0, 1.0], 200)
                places = scattered(self.random, 40, edge)
                with gmxfmm.Plan(x, q, targets=places, accuracy=asked, method=method, num_threads=1) as plan:
                    self.check(plan, x, q, places, asked)

    def test_is_measured_again(self):
        x, q = cloud(300)
        places = [scattered(self.random, n, 1.0) for n in (40, 40, 7)]
        with gmxfmm.Plan(x, q, accuracy=1e-6, num_threads=1) as plan:
            for some in places:
                plan.set_targets(some)
                self.check(plan, x, q, some, 1e-6)
                found = plan.measure()
                self.assertLess(found.error_targets, 1e-6)
                self.assertGreater(found.error_targets, 0)
            tried = plan.choose(accuracy=1e-9)
            self.check(plan, x, q, places[-1], 1e-9)
            self.assertLess(min(one.error_targets for one in tried), 1e-9)
            plan.set_targets(None)
            self.assertEqual(plan.measure().error_targets, 0)
            self.assertLess(plan.measured_error, 1e-9)
            self.assertEqual(plan.step(x).forces.shape, x.shape)

    def test_is_left_out(self):
        x, q = cloud(300)
        places = scattered(self.random, 40, 1.0)
        with gmxfmm.Plan(x, q, accuracy=1e-6, num_threads=1) as plan:
            self.assertTrue(np.isfinite(plan.measured_error))
            plan.set_targets(places, measure=False)
            self.assertTrue(np.isnan(plan.measured_error))
            # cells and order are those that the model has for places so far away
            self.assertLess(rms_error(plan.step(x).potential, direct_at(places, x, q)[0]), 1e-6)
            plan.set_targets(places, x, measure=True)
            self.check(plan, x, q, places, 1e-6)
        with gmxfmm.Plan(x, q, targets=places, measure=False, order=12) as plan:
            self.assertTrue(np.isnan(plan.measured_error))
            self.assertLess(rms_error(plan.step(x).potential, direct_at(places, x, q)[0]), 1e-3)

    def test_stays_after_an_error(self):
        x, q = cloud(300)
        places = scattered(self.random, 40, 1.0)
        with gmxfmm.Plan(x, q, targets=places, accuracy=1e-6, num_threads=1) as plan:
            with self.assertRaisesRegex(gmxfmm.Error, "target 3 stands where"):
                plan.set_targets(np.vstack([places[:3], x[:1]]))
            self.check(plan, x, q, places, 1e-6)

    def test_single_precision_is_refused_where_it_does_not_hold_the_places(self):
        x, q = 0.01 * self.random.random((100, 3)), self.random.choice([-1.0, 1.0], 100)
        places = np.vstack([0.01 * self.random.random((5, 3)), 1000 * self.random.standard_normal((35, 3))])
        with self.assertRaisesRegex(gmxfmm.Error, "at the targets.*use double precision"):
            gmxfmm.solve(x, q, targets=places, precision="single", accuracy=1e-5, num_threads=1)
        result = gmxfmm.solve(x, q, targets=places, accuracy=1e-5, num_threads=1)
        self.assertLess(rms_error(result.field, direct_at(places, x, q)[1]), 1e-5)


class Measuring(unittest.TestCase):
    def setUp(self):
        self.x, self.q = melt(6)

    def test_is_done_once(self):
        with gmxfmm.Plan(self.x, self.q, 6, accuracy=1e-4) as plan:
            self.assertLessEqual(plan.measured_error, 1e-4)
            self.assertLess(abs(rms_error(plan.step(self.x).forces, ewald_forces(self.x, self.q, 6)) - plan.measured_error), 1e-5)
            measured, handle = plan.measured_error, plan._handle.value
            self.assertTrue(plan.tried)
            for k in range(3):
                plan.set_charges(self.q * (1 + 0.01 * k))
                plan.set_box(6 + 0.05 * k)
                plan.step(self.x)
            self.assertEqual((plan._handle.value, plan.measured_error), (handle, measured))

    def test_is_done_again_where_the_system_is_another(self):
        with gmxfmm.Plan(self.x, self.q, 6, accuracy=1e-4) as plan:
            for change in (lambda: plan.set_charges(np.roll(self.q, 1)), lambda: plan.set_box((6, 6, 7)), lambda: plan.set_exclusions([(0, 1)]),
                           lambda: plan.set_charges(self.q[:-2], self.x[:-2])):
                before = len(plan.tried), plan.info.num_executes
                plan.step(self.x[:len(plan)])
                self.assertEqual(plan.info.num_executes, before[1] + 1)
                change()
                self.assertEqual(plan.info.measured_error, plan.measured_error)  # the library's own: of what is set now
                self.assertLessEqual(plan.measured_error, 1e-4)
            # an isotropic change of the box alters no error
            plan.set_box((12, 12, 14))
            self.assertFalse(np.isnan(plan.measured_error))

    def test_is_of_the_box_that_new_positions_are_in(self):
        """Those of another density: in the box before, images of different particles would almost touch."""
        with gmxfmm.Plan(self.x, self.q, 6, accuracy=1e-4) as plan:
            n = len(self.x)
            x, q = np.concatenate([self.x, self.x + (6, 0, 0)]), np.concatenate([self.q, np.roll(self.q, 1)])
            plan.set_charges(q, x, box=(12, 6, 6))
            self.assertEqual(len(plan), 2 * n)
            np.testing.assert_array_equal(plan.box, np.diag((12.0, 6, 6)))
            exact = gmxfmm.solve(x, q, (12, 6, 6), accuracy=1e-7).forces
            self.assertLessEqual(rms_error(plan.step(x).forces, exact), 1e-4)
            self.assertLessEqual(plan.measured_error, 1e-4)
            for bad in ((1, 2), -1):
                with self.assertRaises(gmxfmm.Error):
                    plan.set_charges(q, x, box=bad)

    def test_is_asked_for_by_the_stretch_of_the_box(self):
        random = np.random.default_rng(1)
        found = []
        for k in range(300):
            since = np.diag((1, 2, 3)) + random.normal(0, 0.2, (3, 3))
            change = random.uniform(0.5, 2) * (np.eye(3) + random.normal(0, (0.005, 0.02, 0.04)[k % 3], (3, 3)))
            stretch = np.linalg.svd(change, compute_uv=False)
            found.append(stretch[0] / stretch[2] <= 1.1)
            self.assertEqual(_inputs.same_shape(since @ change, np.linalg.inv(since), 0.1), found[-1])
        self.assertTrue(60 < sum(found) < 240)

    def test_is_left_out(self):
        with gmxfmm.Plan(self.x, self.q, 6, measure=False) as plan:
            plan.set_charges(np.roll(self.q, 1))
            plan.step(self.x)
            self.assertTrue(np.isnan(plan.measured_error))
            self.assertEqual(plan.tried, [])
            with self.assertRaisesRegex(gmxfmm.Error, "none to measure with"):
                plan.measure()
            found = plan.measure(self.x)
            self.assertEqual((found.order, found.grid), (plan.info.order, plan.info.grid))
            true = rms_error(plan.step(self.x).forces, ewald_forces(self.x, np.roll(self.q, 1), 6))
            self.assertAlmostEqual(found.error, true, delta=0.1 * true)  # a reference is exact to a tenth of the accuracy
            tried = plan.choose(self.x, accuracy=1e-5)
            self.assertTrue(all(one["time"] >= 0 for one in tried))
            self.assertLessEqual(plan.measured_error, 1e-5)

    def test_of_octrees_and_open_systems(self):
        x, q = cloud(2000)
        for box, options in ((None, {}), (1.0, {"m2l": "rotation", "depth": 2})):
            with gmxfmm.Plan(x, q, box, accuracy=1e-4, **options) as plan:
                found = plan.measure()
                self.assertAlmostEqual(found.error, plan.measured_error, delta=1e-5)  # a tenth of the accuracy

    def test_derivatives_by_charges(self):
        q = self.q.copy()
        q[7] = 0.3
        parameters = [([0, 3], [1, -0.5]), ([], []), (7, 2.0)]
        with gmxfmm.Plan(self.x, q, 6, accuracy=1e-6) as plan:
            with self.assertRaisesRegex(gmxfmm.Error, "set_charge_derivatives"):
                plan.step(self.x, charge_gradient=True)
            plan.set_charge_derivatives(parameters)
            step = plan.step(self.x, potential=True, charge_gradient=True)
            expected = [np.sum(step.potential[np.atleast_1d(which).astype(int)] * by) for which, by in parameters]
            np.testing.assert_allclose(step.charge_gradient, expected, rtol=1e-12, atol=0)
            plan.set_charges(1.5 * q)  # measured again, by a new plan of the library
            again = plan.step(self.x, out=None, charge_gradient=True)
            np.testing.assert_allclose(again.charge_gradient, 1.5 * step.charge_gradient, rtol=1e-5, atol=0)
            for wrong, cause in (([([0.5], [1])], "not integers"), ([([0, 1], [1])], "the shape"), ([([len(q)], [1])], "beyond 0 to"),
                                 ([([0], [np.nan])], "not finite")):
                with self.assertRaisesRegex(gmxfmm.Error, cause):
                    plan.set_charge_derivatives(wrong)
            np.testing.assert_array_equal(plan.step(self.x, charge_gradient=True).charge_gradient, again.charge_gradient)
            plan.set_charge_derivatives(None)
            with self.assertRaisesRegex(gmxfmm.Error, "no parameters"):
                plan.step(self.x, charge_gradient=True)

    def test_dipoles(self):
        random = np.random.default_rng(3)
        n = 100
        x, q, mu = random.uniform(-3, 3, (n, 3)), random.choice([-1.0, 0.0, 1.0], n), random.normal(0, 0.3, (n, 3))

        with gmxfmm.Plan(x, q, dipoles=mu, accuracy=1e-6) as plan:
            self.assertLessEqual(plan.measured_error, 1e-6)
            self.assertEqual(plan.info.method, "fmm")
            self.assertIn("dipoles", plan.capabilities)
            for scale in (1.0, 1.01, 3.0):  # the last one is measured again
                plan.set_dipoles(scale * mu)
                self.assertLessEqual(plan.measured_error, 1e-6)
                step = plan.step(x, torques=True, field_gradient=True, field=True)
                _, field, gradient = direct_with_dipoles(x, q, scale * mu)
                self.assertLess(rms_error(step.torques, np.cross(scale * mu, field)), 1e-6)
                self.assertLess(rms_error(step.forces, q[:, None] * field + np.einsum("ikl,ik->il", gradient, scale * mu)), 1e-6)
                self.assertLess(rms_error(step.field_gradient, gradient[:, (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]), 1e-6)  # one cell: no far field
            twin = copy.copy(plan)
            np.testing.assert_allclose(twin.step(x, torques=True).torques, step.torques, rtol=1e-5, atol=1e-6)
            plan.set_dipoles(mu, measure=False)
            self.assertTrue(np.isnan(plan.measured_error))
            plan.set_dipoles(None)
            for name in ("torques", "field_gradient"):
                with self.assertRaisesRegex(gmxfmm.Error, f"{name}: there are no dipoles"):
                    plan.step(x, **{name: True})
                with self.assertRaisesRegex(gmxfmm.Error, f"{name}: there are no dipoles"):
                    plan.step(x, {name: np.empty((n, 3 if name == "torques" else 6))})
            with self.assertRaisesRegex(gmxfmm.Error, "dipoles: it has the shape"):
                plan.set_dipoles(mu[1:])
            with self.assertRaisesRegex(gmxfmm.Error, "dipole of particle 4 is not finite"):
                plan.set_dipoles(np.where(np.arange(n)[:, None] == 4, np.inf, mu), measure=False)
        with self.assertRaisesRegex(gmxfmm.Error, "dipoles"):
            gmxfmm.Plan(x, q, dipoles=mu, method="treecode")

    def test_of_a_treecode(self):
        x, q = cloud(2000)
        with gmxfmm.Plan(x, q, method="auto", accuracy=1e-4, num_threads=1) as plan:
            self.assertIn(plan.info.method, ("fmm", "treecode"))
            self.assertLessEqual(plan.measure().error, 1e-4)
            self.assertIn(plan.info.method.replace("fmm", "order"), repr(plan))
        self.assertIn(gmxfmm.solve(x, q, method="auto", accuracy=1e-4).info.method, ("fmm", "treecode"))
        with gmxfmm.Plan(x, q, method="auto", theta=0.6) as plan:  # an option of one of them
            self.assertEqual(plan.info.method, "treecode")
            self.assertGreater(plan.measure().error, 0)
        with self.assertRaisesRegex(gmxfmm.Error, "method = auto"):
            gmxfmm.Plan(x, q, method="auto", measure=False)
        with gmxfmm.Plan(x, q, method="treecode", theta=0.6, degree=4, leaf=50) as plan:
            self.assertIn("degree 4", repr(plan))
            # potential and field at a sample, and forces of all: of one size
            self.assertLess(abs(np.log10(plan.measure().error / plan.measured_error)), 1)

    def test_follows_copies(self):
        x = self.x.copy()
        with gmxfmm.Plan(x, self.q, 6, accuracy=1e-4) as plan:
            x[:] = np.nan
            plan.choose()
            self.assertLessEqual(plan.measured_error, 1e-4)


class MeasuredOnce(unittest.TestCase):
    """Charges of iterations, for which settings stay as long as they serve."""

    def setUp(self):
        self.x, self.q = melt(6)

    def iterate(self, plan, box, kinds, steps=24, **wanted):
        """How often it was measured; each step has the accuracy."""
        random, handles = np.random.default_rng(3), []
        with gmxfmm.Plan(self.x, self.q, box, accuracy=1e-7) as exact:
            for k in range(steps):
                q = kinds[k % len(kinds)](random)
                plan.set_charges(q, measure="once")
                exact.set_charges(q, measure=False)
                step = plan.step(self.x, **wanted)
                handles.append(plan._handle.value)
                self.assertLess(rms_error(step.forces, exact.step(self.x).forces), 1e-5)
        return 1 + sum(a != b for a, b in zip(handles, handles[1:]))

    def test_serves_other_charges_of_a_melt(self):
        for box in (6, None):
            with self.subTest(box=box), gmxfmm.Plan(self.x, self.q, box, accuracy=1e-5, assign_every=7) as plan:
                handle = plan._handle.value
                self.assertTrue(np.isnan(plan.checked_error))
                executes = plan.info.num_executes
                times = self.iterate(plan, box, [lambda random: self.q * random.uniform(0.5, 1.5, 216)], virial=True)
                self.assertEqual((times, plan._handle.value), (1, handle))
                if box:
                    self.assertLess(plan.info.num_executes, executes + 2 * 24 - 8)  # not all are checked
                self.assertTrue(np.isnan(plan.measured_error))  # not of these charges
                self.assertLess(0, plan.checked_error)
                self.assertLess(plan.checked_error, 1e-5)
                plan.set_charges(self.q)  # those that were measured
                self.assertLessEqual(plan.measured_error, 1e-5)
                self.assertEqual(plan._handle.value, handle)

    def test_potentials_alone(self):
        with gmxfmm.Plan(self.x, self.q, 6, accuracy=1e-5) as plan:
            random = np.random.default_rng(4)
            for wanted in ({"energy": False, "potential": True}, {"energy": True}):
                for _ in range(6):
                    q = self.q * random.uniform(0.5, 1.5, 216)
                    plan.set_charges(q, measure="once")
                    step = plan.step(self.x, forces=False, **wanted)
                    with gmxfmm.Plan(self.x, q, 6, measure=False, order=20, grid=3) as exact:
                        found = exact.step(self.x, potential=True)
                    if step.potential is not None:
                        self.assertLess(rms_error(step.potential, found.potential), 1e-5)
                    else:
                        self.assertAlmostEqual(step.energy, found.energy, delta=1e-5 * abs(found.energy))
            self.assertLess(plan.checked_error, 1e-5)

    def test_charges_of_another_kind_are_measured(self):
        """A crystal with a little disorder has small forces, and large errors against them. Those of the step count."""
        self.x = rock_salt(6)[0] + np.random.default_rng(5).normal(0, 3e-3, (216, 3))
        for wanted in ({}, {"forces": False, "potential": True}):
            with gmxfmm.Plan(self.x, np.random.default_rng(6).permutation(self.q), 6, accuracy=1e-5) as plan:
                handle, exact = plan._handle.value, gmxfmm.solve(self.x, self.q, 6, accuracy=1e-8).forces
                plan.set_charges(self.q, measure="once")
                step = plan.step(self.x, **wanted)
                self.assertNotEqual(plan._handle.value, handle)
                self.assertLessEqual(plan.measured_error, 1e-5)
                self.assertEqual(step.forces is None, bool(wanted))
                self.assertLess(rms_error(plan.step(self.x).forces, exact), 1e-5)
                if step.forces is not None:
                    self.assertLess(rms_error(step.forces, exact), 1e-5)

    def test_cells_stay_those_of_the_step(self):
        with gmxfmm.Plan(self.x, self.q, 6, accuracy=1e-5, assign_every=5) as plan:
            plan.step(self.x)
            plan.set_charges(np.roll(self.q, 1), measure="once")
            for k in range(4):
                begun = plan.info.time_assign
                plan.step(self.x + 0.01 * k)
                self.assertEqual(plan.info.time_assign == begun, k > 0)  # the first is checked
            self.assertLess(rms_error(plan.step(self.x, assign=False).forces, ewald_forces(self.x, np.roll(self.q, 1), 6)), 2e-5)

    def test_or_not_or_at_once(self):
        with gmxfmm.Plan(self.x, self.q, 6, accuracy=1e-5) as plan:
            handle = plan._handle.value
            plan.set_charges(np.roll(self.q, 1), measure=False)
            self.assertTrue(np.isnan(plan.measured_error))
            plan.set_box((6, 6, 6.1))  # of nearly the same shape
            plan.step(self.x)
            self.assertEqual(plan._handle.value, handle)
            plan.set_charges(1.01 * self.q, measure=True)
            self.assertNotEqual(plan._handle.value, handle)
            self.assertLessEqual(plan.measured_error, 1e-5)
            with self.assertRaisesRegex(gmxfmm.Error, "measure: .*'once'"):
                plan.set_charges(self.q, measure="twice")
        with gmxfmm.Plan(self.x, self.q, 6, measure=False) as plan, self.assertRaisesRegex(gmxfmm.Error, "nothing was measured"):
            plan.set_charges(self.q, measure="once")

    def test_on_several_ranks(self):
        with gmxfmm.Plan(self.x, self.q, 6, measure=False) as plan, unittest.mock.patch.object(plan, "_ranks", object()):
            with self.assertRaisesRegex(gmxfmm.Error, "several ranks"):
                plan.set_charges(self.q, measure="once")
            with self.assertRaisesRegex(gmxfmm.Error, "comm: .*not copied"):
                copy.copy(plan)


class Left(unittest.TestCase):
    """Particles that leave their cells between assignments."""

    def test_is_an_error_that_names_assign_every(self):
        x, q = melt(6)
        moved = x.copy()
        moved[7] += (0.9, 0, 0)
        with gmxfmm.Plan(x, q, 6, grid=(6, 6, 6), order=6, measure=False, assign_every=10) as plan:
            self.assertEqual(plan.step(x).outside, 0)
            with self.assertRaisesRegex(gmxfmm.Error, "particle 7 .*assign=True") as caught:
                plan.step(moved)
            self.assertEqual((caught.exception.status, caught.exception.argument), ("GMXFMM_ERROR_LEFT", "assign_every"))
            self.assertEqual(plan.step(moved, assign=True).outside, 0)
        with gmxfmm.Plan(x, q, 6, grid=(6, 6, 6), order=6, measure=False, assign_every=10, check="report") as plan:
            plan.step(x)
            self.assertGreater(plan.step(moved).outside, 0.3)

    def test_expanding_slab_is_measured_again(self):
        random = np.random.default_rng(2)
        x, q = random.random((100, 3)) * 3, random.choice([-1.0, 1.0], 100)
        with gmxfmm.Plan(x, q, 3, periodic=(1, 1, 0), accuracy=1e-3, assign_every=10) as plan:
            for step in range(30):
                x = x * (1, 1, 1.04)
                try:
                    forces = plan.step(x).forces
                except gmxfmm.Error:
                    forces = plan.step(x, assign=True).forces
                if step % 5 == 0:
                    exact = gmxfmm.solve(x, q, 3, periodic=(1, 1, 0), accuracy=1e-6).forces
                    self.assertLess(rms_error(forces, exact), 3e-3)  # a step may have twice the error, as it is estimated


class Refused(unittest.TestCase):
    def test_arguments_are_named(self):
        x, q = rock_salt(4)
        plan = gmxfmm.Plan(x, q, 4, measure=False)
        measured = gmxfmm.Plan(x + np.arange(64)[:, None] * 1e-3, q, 4, accuracy=1e-3)
        cloudy = gmxfmm.Plan(*cloud(50), measure=False)
        for argument, text, call in (
            ("assign_every", "at least 1", lambda: gmxfmm.Plan(x, q, 4, assign_every=0)),
            ("assign_every", "integer", lambda: gmxfmm.Plan(x, q, 4, assign_every=2.5)),
            ("positions", "64 x 3", lambda: plan.step(x[1:])),
            ("positions", "finite", lambda: plan.step(np.full_like(x, np.nan))),
            ("out", "rows", lambda: plan.step(x, cloudy.step(cloud(50)[0]))),
            ("out", "another", lambda: plan.step(x, plan.step(x), virial=True)),
            ("out", "forces", lambda: plan.step(x, {"force": np.empty_like(x)})),
            ("box", "open", lambda: cloudy.set_box(4)),
            ("box", "needs one", lambda: plan.set_box(None)),
            ("box", "positive", lambda: plan.set_box((4, 4, 0))),
            ("charges", "finite", lambda: plan.set_charges(np.full(64, np.nan))),
            ("positions", "give their positions", lambda: measured.set_charges(q[:60])),
            ("exclusions", "m x 2", lambda: plan.set_exclusions([1, 2])),
            ("devices", "device = cuda", lambda: gmxfmm.Plan(x, q, 4, measure=False, devices=(0, 1))),
            ("devices", "1 to 8 integers", lambda: gmxfmm.Plan(x, q, 4, measure=False, devices=())),
            ("devices", "1 to 8 integers", lambda: gmxfmm.Plan(x, q, 4, measure=False, devices=(0, 0.5))),
            ("shares", "1 to 8 numbers", lambda: gmxfmm.Plan(x, q, 4, measure=False, shares=range(9))),
            ("far_shares", "1 to 8 numbers", lambda: gmxfmm.Plan(x, q, 4, measure=False, far_shares=range(9))),
            ("num_devices", "no option", lambda: gmxfmm.Plan(x, q, 4, measure=False, num_devices=2)),
            ("targets", "n x 3", lambda: plan.set_targets([1, 2, 3])),
        ):
            with self.subTest(argument=argument, text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                call()
            self.assertEqual(caught.exception.argument, argument, str(caught.exception))
        self.assertEqual(plan.step(x).forces.shape, (64, 3))  # still of use

    def test_closed(self):
        x, q = rock_salt(4)
        with gmxfmm.Plan(x, q, 4, measure=False) as plan:
            self.assertIn("64 particles", repr(plan))
        for call in (lambda: plan.step(x), lambda: plan.assign(x), lambda: plan.set_charges(q), lambda: plan.set_box(4), lambda: plan.info):
            with self.assertRaisesRegex(gmxfmm.Error, "closed"):
                call()
        plan.close()
        self.assertEqual(repr(plan), "Plan, closed")

    def test_memory_is_given_back(self):
        x, q = rock_salt(4)
        plan = gmxfmm.Plan(x, q, 4, measure=False)
        self.assertGreater(plan.info.bytes, 0)
        self.assertIn("virial", plan.capabilities)
        self.assertNotIn("enqueue", plan.capabilities)
        del plan
        gc.collect()


if __name__ == "__main__":
    unittest.main()
