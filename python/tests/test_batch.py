# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many systems in one call: each gets what it gets alone, by plans that are kept."""
import ctypes
import unittest
from unittest import mock

import numpy as np

import gmxfmm
from gmxfmm import _arrays, _batch, _check
from gmxfmm._arrays import View
from systems import KINDS, cloud, direct, direct_with_dipoles, ewald_forces, melt, of_any_kind, rms_error, rock_salt


def one_ion_moved():
    """Rock salt whose forces are a hundredth of those of a melt."""
    x = rock_salt(4)[0]
    x[3, 0] += 0.01
    return x


class Array:
    """Stands for an array of a device."""

    def __init__(self, array):
        self.array = np.ascontiguousarray(array)
        self.shape = array.shape

    def __getitem__(self, what):
        return self.array[what]


class Door:
    """Stands for a library with arrays of a device, which are the host's."""

    writes = True
    fetched = 0  # arrays

    def view(self, array):
        return View(array.array.ctypes.data, array.shape, array.array.dtype.name, True, 0, 0, array)

    def empty(self, shape, dtype, device):
        return Array(np.full(shape, 0 if dtype == "float64" and shape[-1] == 12 else np.nan, dtype))

    def pointer(self, array):
        return array.array.ctypes.data

    def host(self, array):
        self.fetched += 1
        return array.array.copy()

    def finish(self, view):
        """There is nothing to wait for."""

    def sums(self, x, q, forces, bounds, is_open):
        return None

    def moved(self, x, some, by):
        return None


class DoorWithSums(Door):
    """The same of one that looks at arrays where they are."""

    def sums(self, x, q, forces, bounds, is_open):
        rows = []
        for begin, end in zip(bounds, bounds[1:]):
            at, charges, felt = (array.array.reshape(-1, *width)[begin:end].astype(float) for array, width in ((x, (3,)), (q, ()), (forces, (3,))))
            squares = (felt**2).sum(axis=1)
            rows.append([squares.sum(), (squares**2).sum(), (charges**2).sum(), (charges**4).sum(), charges.sum(), *np.ptp(at, axis=0)])
        return np.array(rows)

    def moved(self, x, some, by):
        return Array((x.array.reshape(-1, 3)[some] + by).astype(x.array.dtype))


class PlanOfADevice(gmxfmm.Plan):
    """A plan of the host that takes systems as one of a device does."""

    def __init__(self, *arguments, device=None, device_id=None, **options):
        super().__init__(*arguments, **options)

    def enqueue_system(self, positions, charges, box, output):
        def at(address, shape, dtype):
            count = int(np.prod(shape)) * np.dtype(dtype).itemsize
            return np.frombuffer((ctypes.c_char * count).from_address(address), dtype).reshape(shape)

        x, q = at(positions.pointer, (len(self), 3), positions.dtype), at(charges.pointer, len(self), positions.dtype)
        self.set_charges(q)
        if box is not None:
            self.set_box(box)
        step = self.step(x, assign=True, virial=bool(output.virial))
        at(output.force, (len(self), 3), positions.dtype)[...] = step.forces
        if output.energy:
            at(output.energy, 2, np.float64)[...] = step.energy, 0


def as_on_a_device(door):
    """Batches take objects of Array for arrays of a device. What a device does is tested in test_gpu.py, this is what they make of it."""
    return (mock.patch.object(_batch, "Plan", PlanOfADevice),
            *(mock.patch.object(module, "library_of", lambda array: door if type(array) is Array else None) for module in (_batch, _arrays)))


class Systems(unittest.TestCase):
    def test_of_one_size(self):
        x = np.array([melt(4, seed)[0] for seed in range(5)])
        q = np.array([melt(4)[1] * (1 + 0.1 * seed) for seed in range(5)])
        boxes = np.array([np.eye(3) * (4 + 0.02 * seed) for seed in range(5)])
        with gmxfmm.Batch(accuracy=1e-5) as batch:
            step = batch.step(x, q, boxes, potential=True, field=True, virial=True)
            plan, = batch.plans
            executes = plan.info.num_executes
            batch.step(x, q, boxes)
            self.assertEqual(batch.plans, [plan])
            self.assertLessEqual(plan.info.num_executes, executes + 2 * 5)  # each of them checked, at most
        self.assertEqual((step.forces.shape, step.potential.shape, step.virial.shape, step.energy.shape), ((5, 64, 3), (5, 64), (5, 3, 3), (5,)))
        for s in range(5):
            exact = gmxfmm.solve(x[s], q[s], boxes[s], accuracy=1e-9, virial=True)
            self.assertLess(rms_error(step.forces[s], exact.forces), 1e-5)
            self.assertLess(rms_error(step.field[s], exact.field), 1e-5)
            self.assertAlmostEqual(step.energy[s], exact.energy, delta=1e-5 * abs(exact.energy))
            np.testing.assert_allclose(step.virial[s], exact.virial, rtol=0, atol=1e-4 * abs(exact.energy))

    def test_of_several_sizes(self):
        sizes = [50, 60, 300, 55, 1, 310]
        systems = [cloud(n) for n in sizes]
        x, q = np.concatenate([x for x, _ in systems]), np.concatenate([q for _, q in systems])
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        with gmxfmm.Batch(accuracy=1e-6) as batch:
            forces = np.empty_like(x)
            step = batch.step(x, q, offsets=offsets, out={"forces": forces}, potential=True)
            self.assertIs(step.forces, forces)
            self.assertEqual(len(batch.plans), 3)  # of some 50, of some 300, of one
            step.check()
        for s, (own, charges) in enumerate(systems):
            phi, field = direct(own, charges)
            if len(own) > 1:
                self.assertLess(rms_error(step.potential[offsets[s]:offsets[s + 1]], phi), 1e-5)  # ten times: it is forces that are asked for
                self.assertLess(rms_error(forces[offsets[s]:offsets[s + 1]], charges[:, None] * field), 1e-6)
            self.assertAlmostEqual(step.energy[s], 0.5 * charges @ phi, delta=1e-5 * len(own))

    def test_of_many_kinds(self):
        """Each has the accuracy, whichever was measured: one in a hundred may fall short, and none by a factor of two."""
        random = np.random.default_rng(1)
        short = 0
        for edge, box, asked in ((4, 4.0, 1e-3), (4, 4.0, 1e-5), (6, 6.0, 1e-3), (6, None, 1e-3)):
            systems = [of_any_kind(kind, edge, random) for kind in random.choice(KINDS, 50)]
            with self.subTest(edge=edge, box=box, asked=asked), gmxfmm.Batch(accuracy=asked, num_threads=1) as batch:
                forces = batch.step(np.array([x for x, _ in systems]), np.array([q for _, q in systems]), box).forces
                self.assertLessEqual(len(batch.plans), 12)
                if box is None:
                    exact = [q[:, None] * direct(x, q)[1] for x, q in systems]
                else:
                    exact = [gmxfmm.solve(x, q, box, accuracy=0.03 * asked, num_threads=1).forces for x, q in systems]
                errors = np.array([rms_error(*pair) for pair in zip(forces, exact)])
                short += (errors > asked).sum()
                self.assertLess(errors.max(), 2 * asked)
        self.assertLessEqual(short, 2)

    def test_a_crystal_after_a_melt(self):
        """By a sum that has nothing of the library's."""
        random = np.random.default_rng(3)
        x, q = melt(4)
        with gmxfmm.Batch(accuracy=1e-3) as batch:
            batch.step(x[None], q[None], 4)
            for _ in range(3):
                x, q = of_any_kind("one ion moved", 4, random)
                self.assertLess(rms_error(batch.step(x[None], q[None], 4).forces[0], ewald_forces(x, q, 4)), 1e-3)

    def test_systems_of_a_kind_are_not_all_checked(self):
        x = np.array([melt(6, seed)[0] for seed in range(100)])
        q = np.array([melt(6)[1]] * 100)
        with gmxfmm.Batch(accuracy=1e-4) as batch:
            batch.step(x, q, 6)
            plan, = batch.plans
            executes = plan.info.num_executes
            batch.step(x, q, 6, energy=True, forces=False)
            self.assertEqual(batch.plans, [plan])
            self.assertLess(plan.info.num_executes, executes + 125)  # each eighth, and some of rare kinds

    def test_an_accuracy_out_of_reach(self):
        x, q = melt(4)
        other = rock_salt(4)[0]
        other[3, 0] += 1e-4
        with gmxfmm.Batch(accuracy=1e-11) as batch:
            batch.step(x[None], q[None], 4)
            with self.assertRaisesRegex(gmxfmm.Error, "accuracy.*, in system 1$") as caught:
                batch.step(np.array([x, other]), np.array([q, q]), 4)
            self.assertEqual(caught.exception.argument, "accuracy")
            batch.step(x[None], q[None], 4)

    def test_settings_that_are_given(self):
        """What these reach is what there is, unless an accuracy is asked for, too."""
        x, q = melt(4)
        other = one_ion_moved()
        both = np.array([x, other]), np.array([q, q]), 4
        given = {"order": 6, "grid": 2, "separation": 1}  # the melt: errors of 0.010 where it is, below 0.044 anywhere
        with gmxfmm.Batch(**given) as batch:
            batch.step(*both)
            self.assertEqual(len(batch.plans), 1)
        with gmxfmm.Batch(**given, accuracy=0.05) as batch, self.assertRaisesRegex(gmxfmm.Error, "missed with the settings given.*in system 1$"):
            batch.step(*both)

    def test_plans_are_for_shapes_too(self):
        x, q = melt(4)
        with gmxfmm.Batch(measure=False, max_plans=2) as batch:
            for stretch in (1, 2, 1, 3):
                batch.step(x[None] * (1, 1, stretch), q[None], (4, 4, 4 * stretch))
            self.assertEqual([plan.box[2, 2] for plan in batch.plans], [12, 4])
            batch.step(x[None].astype(np.float32), q[None], 4)
            self.assertEqual(batch.plans[0].info.precision, "single")

    def test_open_and_periodic_ones(self):
        x, q = melt(4)
        boxes = np.array([4 * np.eye(3), np.zeros((3, 3)), np.diag((4, 4, 4.2)), np.zeros((3, 3))])
        with gmxfmm.Batch(accuracy=1e-5, boundary="vacuum") as batch:
            step = batch.step(np.array([x] * 4), np.array([q] * 4), boxes, virial=True)
            self.assertEqual(len(batch.plans), 2)
        for s in range(4):
            given = {"boundary": "vacuum"} if s % 2 == 0 else {}
            exact = gmxfmm.solve(x, q, None if s % 2 else boxes[s], accuracy=1e-8, virial=True, **given)
            self.assertLess(rms_error(step.forces[s], exact.forces), 1e-5)
            np.testing.assert_allclose(step.virial[s], exact.virial, rtol=0, atol=1e-4 * abs(exact.energy))

    def test_exclusions_and_no_charges(self):
        x, q = cloud(40)
        with gmxfmm.Batch(accuracy=1e-6, exclusions=[(0, 1)]) as batch:
            self.assertEqual(batch.step(x[None], 0 * q[None]).energy, [0])
            self.assertEqual(batch.plans, [])
            energy = batch.step(np.array([x, x]), np.array([q, 2 * q])).energy
            phi, _ = direct(x, q, excluded=[(0, 1)])
            np.testing.assert_allclose(energy, [0.5 * q @ phi, 2 * q @ phi], rtol=1e-5)

    def hold_dipoles(self, step, x, q, mu, s, asked):
        """Results of an open system to the sum over pairs. Errors are of forces and torques, others may have three times as much."""
        phi, field, gradient = direct_with_dipoles(x, q, mu)
        self.assertLess(rms_error(step.forces[s], q[:, None] * field + np.einsum("ikl,ik->il", gradient, mu)), asked)
        self.assertLess(rms_error(step.torques[s], np.cross(mu, field)), asked)
        self.assertLess(rms_error(step.potential[s], phi), 3 * asked)
        self.assertLess(rms_error(step.field[s], field), 3 * asked)
        self.assertLess(rms_error(step.field_gradient[s], gradient[:, (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]), 10 * asked)
        return 0.5 * (q @ phi - np.vdot(mu, field))

    def test_dipoles(self):
        random = np.random.default_rng(5)
        sizes = [120, 130, 600, 125]
        x, q, mu = (random.normal(size=(sum(sizes), k)) for k in (3, 1, 3))
        q, mu, offsets = q[:, 0] * random.integers(0, 2, len(q)), 0.2 * mu * random.integers(0, 2, q.shape), np.append(0, np.cumsum(sizes))
        q[offsets[3]:] = 0  # dipoles alone
        every = {name: True for name in ("potential", "field", "torques", "field_gradient")}
        for asked in (1e-3, 1e-6):
            with gmxfmm.Batch(accuracy=asked) as batch:
                torques = np.empty_like(x)
                for _ in range(2):
                    step = batch.step(x, q, offsets=offsets, out={"torques": torques}, dipoles=mu, **every)
                self.assertIs(step.torques, torques)
                for s, n in enumerate(sizes):
                    one = slice(offsets[s], offsets[s + 1])
                    parts = mock.Mock(**{name: [getattr(step, name)[one]] for name in ("forces", *every)})
                    self.assertAlmostEqual(step.energy[s], self.hold_dipoles(parts, x[one], q[one], mu[one], 0, asked), delta=asked * n)
                # plans with dipoles are others than those without
                alone = batch.step(x[:120][None], q[:120][None])
                self.assertIsNone(alone.torques)
                self.assertLess(rms_error(alone.forces[0], q[:120, None] * direct(x[:120], q[:120])[1]), asked)
                again = batch.step(x[:120][None], q[:120][None], dipoles=mu[:120][None], **every)
                self.hold_dipoles(again, x[:120], q[:120], mu[:120], 0, asked)

    def test_dipoles_in_boxes(self):
        random = np.random.default_rng(6)
        systems = [melt(4, seed) for seed in range(6)]
        x, q = (np.array(array) for array in zip(*systems))
        mu = 0.3 * random.normal(size=x.shape) * 10.0 ** -np.arange(6)[:, None, None]  # also such as hardly any
        boxes = np.array([np.eye(3) * (4 + 0.02 * s) for s in range(6)])
        for options in ({}, {"boundary": "vacuum"}, {"periodic": (1, 1, 0)}, {"periodic": (0, 0, 1)}, {"exclusions": [(0, 1), (7, 30)]}):
            for dtype, asked in ((np.float64, 1e-5), (np.float32, 1e-3)):
                with self.subTest(options=options, dtype=dtype), gmxfmm.Batch(accuracy=asked, **options) as batch:
                    step = batch.step(x.astype(dtype), q.astype(dtype), boxes, dipoles=mu.astype(dtype), virial=True, torques=True)
                    for s in range(6):
                        with gmxfmm.Plan(x[s], q[s], boxes[s], dipoles=mu[s], accuracy=1e-8, **options) as plan:
                            exact = plan.step(x[s], virial=True, torques=True)
                        self.assertLess(rms_error(step.forces[s], exact.forces), asked)
                        self.assertLess(rms_error(step.torques[s], exact.torques), asked)
                        self.assertAlmostEqual(step.energy[s], exact.energy, delta=asked * abs(exact.energy))
                        np.testing.assert_allclose(step.virial[s], exact.virial, rtol=0, atol=10 * asked * abs(exact.energy))

    def test_dipoles_of_a_system_that_a_plan_does_not_serve(self):
        """Torques alone fall short: dipoles of a crystal's sites, whose ions have no forces but by these."""
        x, q = rock_salt(4)
        mu = 1e-5 * np.random.default_rng(7).normal(size=x.shape)
        with gmxfmm.Batch(accuracy=1e-4) as batch:
            batch.step(melt(4)[0][None], q[None], 4, dipoles=0.3 * np.ones((1, 64, 3)))
            for _ in range(2):
                step = batch.step(x[None], q[None], 4, dipoles=mu[None], torques=True)
        with gmxfmm.Plan(x, q, 4, dipoles=mu, accuracy=1e-7) as plan:
            exact = plan.step(x, torques=True)
        self.assertLess(rms_error(step.forces[0], exact.forces), 2e-4)  # that of a system which was not measured
        self.assertLess(rms_error(step.torques[0], exact.torques), 2e-4)

    def test_no_systems(self):
        with gmxfmm.Batch() as batch:
            self.assertEqual(batch.step(np.empty((0, 3)), np.empty(0), offsets=[0]).energy.shape, (0,))
            self.assertEqual(batch.step(np.empty((0, 8, 3)), np.empty((0, 8)), 4).forces.shape, (0, 8, 3))

    def test_refused(self):
        x, q = melt(4)
        batch = gmxfmm.Batch(measure=False)
        for argument, text, call in (
            ("positions", "n x n x 3", lambda: batch.step(x, q, 4)),
            ("charges", "1 x 64", lambda: batch.step(x[None], q, 4)),
            ("offsets", "rise from 0 to 64", lambda: batch.step(x, q, 4, [0, 63])),
            ("offsets", "rise", lambda: batch.step(x, q, 4, [0, 40, 30, 64])),
            ("offsets", "integers", lambda: batch.step(x, q, 4, [0.0, 64.0])),
            ("boxes", "2 x 3 x 3", lambda: batch.step(x, q, np.ones((3, 3, 3)), [0, 40, 64])),
            ("out", "dictionary", lambda: batch.step(x[None], q[None], 4, out=x)),
            ("out", "shape", lambda: batch.step(x[None], q[None], 4, out={"forces": np.empty((64, 3))})),
            ("boxes", "give their vectors", lambda: gmxfmm.Batch(measure=False, periodic=(1, 1, 0)).step(x[None], q[None])),
            ("boxes", "give their vectors", lambda: gmxfmm.Batch(measure=False, boundary="tinfoil").step(x[None], q[None])),
            ("dipoles", "1 x 64 x 3", lambda: batch.step(x[None], q[None], 4, dipoles=x)),
            ("dipoles", "real numbers", lambda: batch.step(x[None], q[None], 4, dipoles=1j * x[None])),
            ("torques", "no dipoles", lambda: batch.step(x[None], q[None], 4, torques=True)),
            ("field_gradient", "no dipoles", lambda: batch.step(x[None], q[None], 4, out={"field_gradient": np.empty((1, 64, 6))})),
            ("dipoles", "method = fmm", lambda: gmxfmm.Batch(measure=False, method="treecode").step(x[None], q[None], dipoles=x[None])),
            ("dipoles", "particle 4 is not finite", lambda: batch.step(x[None], q[None], 4, dipoles=np.where(np.arange(64)[:, None] == 4, np.nan, x)[None])),
            ("max_plans", "at least 1", lambda: gmxfmm.Batch(max_plans=0)),
            ("acuracy", "no option", lambda: gmxfmm.Batch(acuracy=1).step(x[None], q[None], 4)),
        ):
            with self.subTest(argument=argument, text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                call()
            self.assertEqual(caught.exception.argument, argument, str(caught.exception))


class OnADevice(unittest.TestCase):
    """What becomes of arrays of a device, whose systems are all under way before one of them is looked at."""

    kind = Door

    def setUp(self):
        self.door = self.kind()
        for patch in as_on_a_device(self.door):
            patch.start()
            self.addCleanup(patch.stop)

    def test_of_many_kinds(self):
        random = np.random.default_rng(2)
        for edge, box, asked in ((4, 4.0, 1e-3), (4, 4.0, 1e-5), (4, None, 1e-3)):
            systems = [of_any_kind(kind, edge, random) for kind in random.choice(KINDS, 25)]
            x, q = np.array([x for x, _ in systems]), np.array([q for _, q in systems])
            with self.subTest(box=box, asked=asked), gmxfmm.Batch(accuracy=asked, num_threads=1) as batch:
                step = batch.step(Array(x), Array(q), box)
                step.check()
                exact = [gmxfmm.solve(x[s], q[s], box, accuracy=0.03 * asked, num_threads=1) for s in range(len(x))]
                errors = np.array([rms_error(step.forces[s], exact[s].forces) for s in range(len(x))])
                self.assertLess(np.sort(errors)[-2], asked)
                self.assertLess(errors.max(), 2 * asked)

    def test_a_system_of_the_kind_measured_and_one_that_is_not(self):
        x, q = melt(4)
        other = one_ion_moved()
        with gmxfmm.Batch(accuracy=1e-3) as batch:
            batch.step(Array(x[None]), Array(q[None]), 4)
            step = batch.step(Array(np.array([x, other, x])), Array(np.array([q, q, q])), 4, forces=False)
            self.assertIsNone(step.forces)
            self.assertEqual(step.energy[1], batch.step(Array(other[None]), Array(q[None]), 4).energy[0])  # of the plan that serves it
            self.assertEqual(len(batch.plans), 2)
            forces = batch.step(Array(np.array([x, other])), Array(np.array([q, 0 * q])), 4).forces
            self.assertLess(rms_error(forces[0], ewald_forces(x, q, 4)), 1e-3)
            self.assertEqual(np.abs(forces[1]).max(), 0)
            self.assertLess(rms_error(batch.step(Array(other[None]), Array(q[None]), 4).forces[0], ewald_forces(other, q, 4)), 1e-3)

    def test_plans_that_go_meanwhile(self):
        """A call with more shapes than plans are kept for, one of which does not serve a later system of its shape."""
        x, q = melt(4)
        other = of_any_kind("one ion moved", 4, np.random.default_rng(3))[0]
        stretches = (1, 2, 3, 1, 2)
        given = [(other if s > 2 else x) * (1, 1, stretch) for s, stretch in enumerate(stretches)]
        boxes = [np.diag([4.0, 4.0, 4.0 * stretch]) for stretch in stretches]
        with gmxfmm.Batch(accuracy=1e-3, max_plans=1) as batch:
            for _ in range(2):
                forces = batch.step(Array(np.array(given)), Array(np.array([q] * 5)), np.array(boxes)).forces
                for s in range(5):
                    self.assertLess(rms_error(forces[s], gmxfmm.solve(given[s], q, boxes[s], accuracy=1e-5).forces), 1e-3)

    def test_an_accuracy_out_of_reach(self):
        x, q = melt(4)
        other = rock_salt(4)[0]
        other[3, 0] += 1e-4
        with gmxfmm.Batch(accuracy=1e-11) as batch:
            batch.step(Array(x[None]), Array(q[None]), 4)
            with self.assertRaisesRegex(gmxfmm.Error, "accuracy.*, in system 1$"):
                batch.step(Array(np.array([x, other])), Array(np.array([q, q])), 4)

    def test_dipoles_are_refused(self):
        x, q = melt(4)
        for dipoles in (Array(x[None]), x[None]):
            with self.assertRaisesRegex(gmxfmm.Error, "dipoles: batches of a GPU's arrays have none"):
                gmxfmm.Batch().step(Array(x[None]), Array(q[None]), 4, dipoles=dipoles)

    def test_where_nothing_is_looked_at(self):
        x, q = melt(4)
        for options in ({"measure": False}, {"order": 8, "grid": 2, "separation": 1}):
            with self.subTest(**options), gmxfmm.Batch(**options) as batch:
                batch.step(Array(x[None]), Array(q[None]), 4)
                self.door.fetched = 0
                batch.step(Array(np.array([x, x + 0.1])), Array(np.array([q, q])), 4)
                self.assertEqual(self.door.fetched, 0)  # and the host has not waited


class OnADeviceThatSumsUp(OnADevice):
    kind = DoorWithSums

    def test_arrays_are_fetched_to_make_a_plan_and_for_checks(self):
        x, q = melt(4)
        for box in (4.0, None):
            for x_type in (np.float32, np.float64):
                random = np.random.default_rng(4)
                with self.subTest(box=box, type=x_type), gmxfmm.Batch(accuracy=1e-3) as batch:
                    fetched = []
                    for _ in range(24):
                        self.door.fetched = 0
                        moved = Array((x + random.normal(0, 0.01, x.shape))[None].astype(x_type))
                        step = batch.step(moved, Array(q[None].astype(x_type)), box)
                        fetched.append(self.door.fetched)
                        exact = ewald_forces(moved[0].astype(float), q, 4) if box else q[:, None] * direct(moved[0].astype(float), q)[1]
                        self.assertLess(rms_error(step.forces[0], exact), 1e-3)
                    self.assertEqual(len(batch.plans), 1)
                    self.assertGreater(fetched[0], 0)
                    self.assertEqual(min(fetched[1:4]), 4 if box else 3)  # the first of a kind
                    self.assertEqual(sorted(fetched[5:])[8], 0)  # of others one in eight
                    self.assertIn(fetched[1], fetched[6:])


class Sums(unittest.TestCase):
    """What tells kinds apart, summed up by PyTorch where its tensors are."""

    def test_kinds_are_those_of_the_host(self):
        try:
            torch = _arrays.Torch()
        except ImportError:
            self.skipTest("PyTorch is not installed")
        random = np.random.default_rng(5)
        for bounds in ([0, 64], [0, 64, 64, 164, 300], [0, 0]):
            n, cells = bounds[-1], 4 + random.random((len(bounds) - 1, 3, 1)) * np.eye(3)
            x, q, forces = random.random((n, 3)), random.choice([-1.0, 1.0, 3.0], n), random.normal(size=(n, 3))**3
            for dtype in (np.float32, np.float64):
                arrays = [array.astype(dtype) for array in (x, q, forces)]
                sums = torch.sums(*(torch.module.from_numpy(array) for array in arrays), np.array(bounds), True)
                for s, one in enumerate(map(slice, bounds, bounds[1:])):
                    for box in (cells[s], None):
                        with self.subTest(bounds=bounds, dtype=dtype, system=s, box=box):
                            found = _check.kind_of_sums(one.stop - one.start, sums[s, :5].tolist(), box, sums[s, 5:].tolist())
                            if one.stop == one.start:
                                self.assertEqual(found, ())
                                continue
                            self.assertEqual(found, _check.kind_of(arrays[2][one], arrays[0][one], arrays[1][one], box))
        moved = torch.moved(torch.module.from_numpy(x), slice(0, 0), np.ones(3))
        self.assertEqual(tuple(moved.shape), (0, 3))


if __name__ == "__main__":
    unittest.main()
