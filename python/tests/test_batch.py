# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many systems in one call: each gets what it gets alone, by plans that are kept."""
import unittest

import numpy as np

import gmxfmm
from systems import cloud, direct, melt, rms_error


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
            self.assertEqual((batch.plans, plan.info.num_executes), ([plan], executes + 5))
        self.assertEqual((step.forces.shape, step.potential.shape, step.virial.shape, step.energy.shape), ((5, 64, 3), (5, 64), (5, 3, 3), (5,)))
        for s in range(5):
            exact = gmxfmm.solve(x[s], q[s], boxes[s], accuracy=1e-9, virial=True)
            # twice what was asked for: the plan was measured on the first system alone
            self.assertLess(rms_error(step.forces[s], exact.forces), 2e-5)
            self.assertLess(rms_error(step.field[s], exact.field), 2e-5)
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
                # ten times: an accuracy is of systems of many cells
                self.assertLess(rms_error(step.potential[offsets[s]:offsets[s + 1]], phi), 1e-5)
                self.assertLess(rms_error(forces[offsets[s]:offsets[s + 1]], charges[:, None] * field), 1e-5)
            self.assertAlmostEqual(step.energy[s], 0.5 * charges @ phi, delta=1e-5 * len(own))

    def test_plans_are_for_shapes_too(self):
        x, q = melt(4)
        with gmxfmm.Batch(measure=False, max_plans=2) as batch:
            for stretch in (1, 2, 1, 3):
                batch.step(x[None] * (1, 1, stretch), q[None], (4, 4, 4 * stretch))
            self.assertEqual([plan.box[2, 2] for plan in batch.plans], [12, 4])
            batch.step(x[None].astype(np.float32), q[None], 4)
            self.assertEqual(batch.plans[0].info.precision, "single")

    def test_exclusions_and_no_charges(self):
        x, q = cloud(40)
        with gmxfmm.Batch(accuracy=1e-6, exclusions=[(0, 1)]) as batch:
            self.assertEqual(batch.step(x[None], 0 * q[None]).energy, [0])
            self.assertEqual(batch.plans, [])
            energy = batch.step(np.array([x, x]), np.array([q, 2 * q])).energy
            phi, _ = direct(x, q, excluded=[(0, 1)])
            np.testing.assert_allclose(energy, [0.5 * q @ phi, 2 * q @ phi], rtol=1e-5)

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
            ("max_plans", "at least 1", lambda: gmxfmm.Batch(max_plans=0)),
            ("acuracy", "no option", lambda: gmxfmm.Batch(acuracy=1).step(x[None], q[None], 4)),
        ):
            with self.subTest(argument=argument, text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                call()
            self.assertEqual(caught.exception.argument, argument, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
