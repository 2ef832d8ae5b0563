# SPDX-License-Identifier: LGPL-2.1-or-later
"""Second derivatives as the functions of PyTorch and JAX have them, with neither: against differences of first ones, and their symmetry."""
import unittest
from unittest import mock

import numpy as np

import gmxfmm
from gmxfmm._batch import Batch
from gmxfmm._derivatives import by_cell_on_host, second
from systems import cloud, direct, direct_with_dipoles, melt, rms_error

BOUNDARIES = ({}, {"exclusions": [(0, 1), (5, 40)]}, {"boundary": "vacuum"}, {"periodic": (1, 1, 0)}, {"periodic": (0, 0, 1)}, {"boundary": "open"})


def skew(edge):
    """Vectors of a box without right angles."""
    return edge * (np.eye(3) + 0.05 * np.random.default_rng(1).normal(size=(3, 3)))


class Case(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(4)

    def system(self, options):
        """Ions in any images with a net charge, or without one where a boundary wants none; and three ways, of x, q and cell."""
        x, q = melt(4)
        q = q * np.linspace(0.5, 1.5, 64)
        ways = [self.random.normal(size=shape) for shape in (x.shape, q.shape, (3, 3))]
        if options.get("boundary") == "vacuum" or sum(options.get("periodic", (1, 1, 1))) == 1:
            q, ways[1] = q - q.mean(), ways[1] - ways[1].mean()
        cell = None if options.get("boundary") == "open" else skew(4)
        if not options.get("boundary"):
            x = x + (self.random.integers(-2, 3, (64, 3)) * options.get("periodic", 1)) @ cell
        return x, q, cell, ways

    def products(self, batch, ways, x, q, cell, **wanted):
        """Second derivatives of one system along ways by x, q and cell, and the first one; with dipoles along ways of these, and by these."""
        cells = None if cell is None else cell[None]
        return second(batch, np.ones(1), [*ways[:2], ways[2][None], *ways[3:]], x, q, cells, np.array([0, len(q)]), **wanted)

    def dipoles(self, x):
        """Dipoles of two thirds of the particles, and a way of all."""
        return 0.3 * self.random.normal(size=x.shape) * (np.arange(len(x)) % 3 > 0)[:, None], self.random.normal(size=x.shape)


class AgainstDifferences(Case):
    def first(self, plan, x, q, cell, periodic, mu=None):
        """First derivatives with the cells where they are."""
        plan.set_charges(q)
        if cell is not None:
            plan.set_box(cell)
        if mu is not None:
            plan.set_dipoles(mu, measure=False)
        step = plan.step(x, potential=True, field=True, virial=cell is not None, assign=False)
        slope = np.zeros((1, 3, 3)) if cell is None else by_cell_on_host(x, cell[None], step.forces, step.virial[None], np.array([0, len(q)]), periodic)
        return -step.forces, step.potential, slope, -step.field

    def differences(self, plan, along, x, q, cell, periodic, mu=None):
        """Second derivatives, of the fourth order in a step of 1e-4: rounding is some 1e-11 of them."""
        h = 1e-4
        plan.set_charges(q)
        if cell is not None:
            plan.set_box(cell)
        if mu is not None:
            plan.set_dipoles(mu, measure=False)
        plan.assign(x)
        sides = {k: self.first(plan, x + k * h * along[0], q + k * h * along[1], None if cell is None else cell + k * h * along[2], periodic,
                               None if mu is None else mu + k * h * along[3]) for k in (-2, -1, 1, 2)}
        return [(8 * (sides[1][k] - sides[-1][k]) - sides[2][k] + sides[-2][k]) / (12 * h) for k in range(4)]

    def test_in_every_boundary_and_mixture(self):
        """Differences of the fourth order of the same plan's first derivatives: some 1e-10 at these steps, of a strain 1e-9. At a low accuracy,
        too, as these are derivatives of what is computed.
        """
        for options in BOUNDARIES:
            x, q, cell, ways = self.system(options)
            for accuracy in (1e-3, 1e-9):
                batch = Batch(accuracy=accuracy, reproducible=1, **{} if cell is None else options)
                for of in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)):
                    along = [wanted * way for wanted, way in zip(of, ways)]
                    if cell is None and not any(of[:2]):
                        continue
                    along[2] *= cell is not None
                    found = self.products(batch, along, x, q, cell)
                    for k, (one, expected) in enumerate(zip(found[:3], self.differences(batch.plans[0], along, x, q, cell, batch.periodic))):
                        with self.subTest(options=options, accuracy=accuracy, of=of, by="x q cell".split()[k]):
                            if expected.any():
                                self.assertLess(rms_error(one, expected), 1e-8)
                            else:
                                self.assertFalse(one.any())

    def test_with_dipoles_in_every_boundary_and_mixture(self):
        """Along charges and dipoles to rounding of the differences, also of positions without dipoles. Where dipoles move, these are differences
        themselves, of another step: some 1e-11.
        """
        for options in BOUNDARIES:
            x, q, cell, ways = self.system(options)
            mu, way = self.dipoles(x)
            for accuracy, mixtures in ((1e-3, ((0, 0, 0, 1), (0, 1, 0, 1), (1, 0, 0, 0), (2, 1, 0, 1), (0, 0, 1, 0), (1, 1, 1, 1))), (1e-9, ((1, 0, 0, 1),))):
                batch = Batch(accuracy=accuracy, reproducible=1, **{} if cell is None else options)
                for of in mixtures:
                    along = [bool(wanted) * one for wanted, one in zip(of, (*ways, way))]
                    along[0] = along[0] * (mu == 0) if of[0] == 2 else along[0]
                    along[2] = along[2] * (cell is not None)
                    if not any(one.any() for one in along):
                        continue
                    found = self.products(batch, along, x, q, cell, mu=mu)
                    expected = self.differences(batch.plans[0], along, x, q, cell, batch.periodic, mu)
                    for k, one in zip((0, 1, 2, 3), (*found[:3], found[4])):
                        with self.subTest(options=options, accuracy=accuracy, of=of, by="x q cell mu".split()[k]):
                            if expected[k].any():
                                self.assertLess(rms_error(one, expected[k]), 1e-9 if of[0] == 1 or of[2] else 1e-10)
                            else:
                                self.assertFalse(one.any())

    def test_with_dipoles_of_near_pairs(self):
        """Differences of sums over pairs in extended precision, of the fourth order in a step of 1e-5: 1e-13. The error is 3e-9 in a pair at a tenth of
        the mean distance, which takes most of the sums, and goes with the fourth power of one over it.
        """
        x, q = melt(3)
        mu, _ = self.dipoles(x)
        x[14] = x[13] + 0.1 / np.sqrt(3)
        way, h = self.random.normal(size=x.shape), 1e-5

        def forces(k):
            phi, field, gradient = direct_with_dipoles(*(one.astype(np.longdouble) for one in (x + np.longdouble(k * h) * way, q, mu)))
            return q[:, None] * field + np.einsum("ikl,ik->il", gradient, mu)

        expected = -(8 * (forces(1) - forces(-1)) - forces(2) + forces(-2)) / (12 * h)
        found = self.products(Batch(accuracy=1e-10), [way, 0 * q, np.zeros((3, 3))], x, q, None, mu=mu)
        self.assertLess(rms_error(found[0], expected.astype(float)), 1e-8)

    def test_with_dipoles_that_stay_takes_no_differences(self):
        """Nor with dipoles of zero: charges that move alone. Then all is as without."""
        x, q = melt(4)
        mu, way = self.dipoles(x)
        ways = [self.random.normal(size=x.shape), self.random.normal(size=q.shape), np.zeros((3, 3)), way]
        batch = Batch(accuracy=1e-6)
        with mock.patch.object(batch, "sides", side_effect=AssertionError):
            self.products(batch, [ways[0] * (mu == 0), *ways[1:]], x, q, 4 * np.eye(3), mu=mu)
            of_zero = self.products(batch, ways[:3], x, q, 4 * np.eye(3), mu=np.zeros_like(x))
            with self.assertRaises(AssertionError):
                self.products(batch, ways, x, q, 4 * np.eye(3), mu=mu)
        without = self.products(Batch(accuracy=1e-6), ways[:3], x, q, 4 * np.eye(3))
        for one, other in zip(of_zero, without):
            self.assertLess(rms_error(one, other), 1e-5)  # other plans of the accuracy

    def test_by_sources_where_there_are_none(self):
        """The energy is quadratic in charges and dipoles: its second derivatives are potential and field of the way."""
        x, q = cloud(60)
        mu, way = self.dipoles(x)
        phi, field, _ = direct_with_dipoles(x, q, way)
        for own in (0, 1):
            found = self.products(Batch(accuracy=1e-9), [0 * x, q, np.zeros((3, 3)), way], x, own * q, None, mu=own * mu)
            self.assertLess(rms_error(found[1], phi), 1e-7)
            self.assertLess(rms_error(found[4], -field), 1e-7)

    def test_where_a_plan_has_no_dipoles(self):
        """The treecode, and softened pairs: differences of the second order, whose error is some 1e-9 of them."""
        x, q = cloud(60)
        ways = [self.random.normal(size=x.shape), self.random.normal(size=60), np.zeros((3, 3))]
        exact = self.products(Batch(accuracy=1e-10), ways, x, q, None)
        for options in ({"method": "treecode", "accuracy": 1e-8}, {"min_distance": 1e-5, "accuracy": 1e-10}):
            found = self.products(Batch(**options), ways, x, q, None)
            for one, other in zip((*found[:2], found[3]), (*exact[:2], exact[3])):
                self.assertLess(rms_error(one, other), 1e-6)


class AreSymmetric(Case):
    def test_in_every_boundary(self):
        """The product of two ways with the matrix is the same from both sides, to rounding. The part of the cell is a difference. Along an open
        direction cells do not follow a strain. So the virial of a slab or a wire is the derivative of the energy to the accuracy alone.
        """
        for options in BOUNDARIES:
            x, q, cell, ways = self.system(options)
            others = self.system(options)[3]
            for of, accuracy, most in (((1, 1, 0), 1e-3, 1e-12), ((1, 1, 1), 1e-9 if "periodic" in options else 1e-3, 1e-9)):
                if cell is None and of[2]:
                    continue
                batch = Batch(accuracy=accuracy, reproducible=1, **{} if cell is None else options)
                a, b = ([wanted * way for wanted, way in zip(of, some)] for some in (ways, others))
                there = sum(np.vdot(one, way) for one, way in zip(self.products(batch, a, x, q, cell)[:3], b))
                back = sum(np.vdot(one, way) for one, way in zip(self.products(batch, b, x, q, cell)[:3], a))
                with self.subTest(options=options, of=of):
                    self.assertLess(abs(there - back), most * np.sqrt(64) * max(abs(there), 1))

    def test_with_dipoles(self):
        """To rounding where nothing with a dipole moves, and otherwise to what differences have."""
        for options in BOUNDARIES:
            x, q, cell, ways = self.system(options)
            others = self.system(options)[3]
            mu, way = self.dipoles(x)
            ways, others = (*ways, way), (*others, self.dipoles(x)[1])
            for of, most in (((0, 1, 0, 1), 1e-12), ((1, 1, 0, 1), 1e-9)):
                batch = Batch(accuracy=1e-3, reproducible=1, **{} if cell is None else options)
                a, b = ([wanted * one for wanted, one in zip(of, some)] for some in (ways, others))
                there, back = (sum(np.vdot(found[k], one[j]) for k, j in ((0, 0), (1, 1), (4, 3)))
                               for found, one in ((self.products(batch, a, x, q, cell, mu=mu), b), (self.products(batch, b, x, q, cell, mu=mu), a)))
                with self.subTest(options=options, of=of):
                    self.assertLess(abs(there - back), most * np.sqrt(64) * max(abs(there), 1))


class OfManySystems(Case):
    def test_are_those_of_each(self):
        """Systems of any sizes, open and periodic, without charges, and without a way."""
        x, q = melt(4)
        sizes, cells = np.array([64, 0, 30, 64, 20, 10]), np.zeros((6, 3, 3))
        cells[0], cells[3] = skew(4), 4.1 * np.eye(3)
        edges = np.append(0, np.cumsum(sizes))
        x, q = (np.concatenate([array[:n] for n in sizes]) for array in (x, q))
        q[edges[4]:edges[5]] = 0
        ways = [self.random.normal(size=shape) for shape in (x.shape, q.shape, cells.shape)]
        ways[0][edges[5]:], ways[1][edges[5]:] = 0, 0
        weight = self.random.normal(size=6)
        batch = Batch(accuracy=1e-9)
        found = second(batch, weight, ways, x, q, cells, edges)
        for s in range(6):
            one = slice(edges[s], edges[s + 1])
            alone = second(batch, weight[s:s + 1], [ways[0][one], ways[1][one], ways[2][s:s + 1]], x[one], q[one], cells[s:s + 1], np.array([0, sizes[s]]))
            np.testing.assert_allclose(found[0][one], alone[0], rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(found[1][one], alone[1], rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(found[2][s], alone[2][0], rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(found[3][s], alone[3][0], rtol=1e-7, atol=1e-7)
        one = slice(edges[4], edges[5])
        np.testing.assert_allclose(found[1][one], weight[4] * direct(x[one], ways[1][one])[0], rtol=1e-8)
        self.assertFalse(found[0][edges[4]:].any())
        self.assertFalse(found[2][[1, 2, 4, 5]].any())

    def test_with_dipoles_are_those_of_each(self):
        """Some move, some have dipoles of zero, some have no way or are dipoles alone; with derivatives by cells and without."""
        x, q = melt(4)
        sizes, cells = np.array([64, 0, 30, 64, 20, 10]), np.zeros((6, 3, 3))
        cells[0], cells[3] = skew(4), 4.1 * np.eye(3)
        edges = np.append(0, np.cumsum(sizes))
        x, q = (np.concatenate([array[:n] for n in sizes]) for array in (x, q))
        q[edges[4]:edges[5]] = 0
        mu, way = self.dipoles(x)
        mu[edges[3]:edges[4]] = 0
        ways = [self.random.normal(size=shape) for shape in (x.shape, q.shape, cells.shape)] + [way]
        ways[0][edges[2]:edges[3]], ways[2][:3] = 0, 0
        for k in (0, 1, 3):
            ways[k][edges[5]:] = 0
        weight = self.random.normal(size=6)
        for of_cells in (False, True):
            ways[2] *= of_cells
            found = second(Batch(accuracy=1e-9), weight, ways, x, q, cells, edges, of_cells=of_cells, mu=mu)
            for s in range(6):
                one = slice(edges[s], edges[s + 1])
                alone = second(Batch(accuracy=1e-9), weight[s:s + 1], [ways[0][one], ways[1][one], ways[2][s:s + 1], way[one]], x[one], q[one],
                               cells[s:s + 1], np.array([0, sizes[s]]), of_cells=of_cells, mu=mu[one])
                for part, other in zip((found[0][one], found[1][one], found[2][s], found[3][s], found[4][one]),
                                       (alone[0], alone[1], alone[2][0], alone[3][0], alone[4])):
                    np.testing.assert_allclose(part, other, rtol=1e-7, atol=1e-7)

    def test_that_one_plan_serves(self):
        """Without derivatives by cells these are computed together. Some have no charges, or no way, or a kind of their own."""
        x, q = melt(4)
        x = np.concatenate([x + self.random.normal(0, 0.02, x.shape) for _ in range(8)])
        q, edges, weight = np.tile(q, 8), 64 * np.arange(9), self.random.normal(size=8)
        q[64:128] = 0
        x[320:384] = 0.1 * x[320:384]
        ways = [self.random.normal(size=shape) for shape in (x.shape, q.shape)]
        ways[0][192:256], ways[1][192:256] = 0, 0
        for cells in (None, np.array(8 * [4 * np.eye(3)])):
            x = x if cells is None else np.concatenate([x[:320], x[256:320], x[384:]])
            for accuracy in (1e-3, 1e-9):
                batch = Batch(accuracy=accuracy)
                found = second(batch, weight, ways, x, q, cells, edges, of_cells=False)
                exact = second(Batch(accuracy=1e-10), weight, ways, x, q, cells, edges)
                for s in range(8):
                    one = slice(edges[s], edges[s + 1])
                    for part, other in zip(found[:2], exact):
                        if other[one].any():
                            self.assertLess(rms_error(part[one], other[one]), 2 * accuracy)
                        else:
                            self.assertFalse(part[one].any())
                    self.assertAlmostEqual(found[3][s], exact[3][s], delta=10 * accuracy * max(1, abs(exact[3][s])))
                step = batch.step(x[:64][None], q[:64][None], None if cells is None else cells[:1])
                self.assertTrue(np.isfinite(step.energy[0]))

    def test_in_single_precision(self):
        """By the plan of the forces, which is left with charges alone: later steps have the bits of before."""
        x, q = (array.astype(np.float32) for array in melt(6))
        cell = 6 * np.eye(3)
        batch = Batch(accuracy=1e-3, reproducible=1)
        before = batch.step(x[None], q[None], cell[None], potential=True, virial=True)
        ways = [self.random.normal(size=x.shape), self.random.normal(size=q.shape), np.zeros((3, 3))]
        found = self.products(batch, ways, x, q, cell)
        self.assertEqual(len(batch.plans), 1)
        exact = self.products(Batch(accuracy=1e-10), ways, x.astype(float), q.astype(float), cell)
        for one, other in zip(found, exact):
            self.assertLess(rms_error(one, other), 1e-3)
        np.testing.assert_array_equal(self.products(batch, ways, x, q, cell, of_cells=False)[2], 0)
        after = batch.step(x[None], q[None], cell[None], potential=True, virial=True)
        for name in ("energy", "forces", "potential", "virial"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
        self.assertLessEqual(batch.plans[0].measured_error, 1e-3)

    def test_errors_name_the_system(self):
        x, q = cloud(10)
        x, q, ways = np.concatenate([x, x]), np.append(q, q), [np.ones((20, 3)), np.ones(20), None]
        x[11] = x[10]
        batch = Batch(measure=False)
        with self.assertRaisesRegex(gmxfmm.Error, "another one.*in system 1"):
            second(batch, np.ones(2), ways, x, q, None, np.array([0, 10, 20]))
        x[11] += 0.1
        self.assertTrue(np.isfinite(second(batch, np.ones(2), ways, x, q, None, np.array([0, 10, 20]))[0]).all())


if __name__ == "__main__":
    unittest.main()
