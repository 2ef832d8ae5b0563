# SPDX-License-Identifier: LGPL-2.1-or-later
"""Gaussian charges from Python: against sums over pairs and dense linear algebra, derivatives against differences, and what is refused."""
import copy
import math
import unittest

import numpy as np

import gmxfmm
from systems import cloud, melt, rms_error

try:
    import torch
except ImportError:
    torch = None
else:
    import gmxfmm.torch as of_torch
try:
    import jax
except ImportError:
    jax = None
else:
    import gmxfmm.jax as of_jax


def pairs(x, widths):
    """Potentials of unit charges on each other, and their derivatives by distance over the distance; vectors between them."""
    r = x[:, None] - x
    d = np.sqrt((r**2).sum(axis=2)) + np.diag(np.full(len(x), np.inf))
    s = d / np.sqrt(2 * (widths[:, None] ** 2 + widths**2))
    potential = np.vectorize(math.erf)(s) / d
    return potential, (2 / math.sqrt(math.pi) * np.where(np.isinf(s), 0, s) * np.exp(-s * s) / d - potential) / d**2, r


class Widths(unittest.TestCase):
    def setUp(self):
        self.x, self.q = cloud(200)
        near = np.sqrt(((self.x[:, None] - self.x) ** 2).sum(axis=2) + np.eye(200) * 1e9).min(axis=1).mean()
        self.widths = near * np.linspace(0.2, 1, 200)
        potential, slope, r = pairs(self.x, self.widths)
        self.potential = potential @ self.q
        self.forces = -self.q[:, None] * np.einsum("j,ij,ijd->id", self.q, slope, r)

    def test_are_the_sum_over_pairs(self):
        result = gmxfmm.solve(self.x, self.q, widths=self.widths, accuracy=1e-6)
        # errors are relative to forces of point charges, some times as large as those of Gaussians that overlap
        self.assertLess(rms_error(result.forces, self.forces), 1e-5)
        self.assertLess(rms_error(result.potential, self.potential), 1e-5)
        self.assertAlmostEqual(result.energy / (0.5 * self.q @ self.potential), 1, places=5)
        self.assertLessEqual(result.measured_error, 1e-6)

    def test_of_a_plan(self):
        points = gmxfmm.solve(self.x, self.q, accuracy=1e-6)
        with gmxfmm.Plan(self.x, self.q, widths=self.widths, accuracy=1e-6) as plan:
            self.assertLess(rms_error(plan.step(self.x).forces, self.forces), 1e-5)
            self.assertLess(rms_error(copy.deepcopy(plan).step(self.x).forces, self.forces), 1e-5)
            plan.set_charges(2 * self.q, self.x)
            self.assertLess(rms_error(plan.step(self.x).forces, 4 * self.forces), 1e-5)
            plan.set_charges(self.q, self.x)
            plan.set_widths(None)
            self.assertLess(rms_error(plan.step(self.x).forces, points.forces), 1e-5)
            plan.set_widths(self.widths)
            self.assertLess(rms_error(plan.step(self.x).forces, self.forces), 1e-5)

    def test_of_a_batch(self):
        x, q = np.stack([self.x, 1.1 * self.x]), np.stack([self.q, self.q])
        step = gmxfmm.Batch(widths=self.widths, accuracy=1e-6).step(x, q, potential=True)
        for k in (0, 1):
            self.assertLess(rms_error(step.potential[k], pairs(x[k], self.widths)[0] @ self.q), 1e-5)

    def test_what_is_refused(self):
        for argument, given in (("widths", {"widths": self.widths[:-1]}), ("widths", {"widths": self.widths, "method": "treecode"}),
                                ("width of particle 0", {"widths": -self.widths}), ("widths", {"widths": self.widths, "dipoles": self.x})):
            with self.subTest(given=sorted(given)), self.assertRaisesRegex(gmxfmm.Error, argument):
                gmxfmm.Plan(self.x, self.q, **given)
        with gmxfmm.Plan(self.x, self.q, widths=self.widths) as plan:
            self.assertRaises(gmxfmm.Error, plan.set_charges, self.q, measure="once")
            self.assertRaises(gmxfmm.Error, plan.set_widths, self.widths[:-1])
            plan.step(self.x)


class Equilibrium(unittest.TestCase):
    def test_of_an_open_system(self):
        x, _ = melt(3)
        random = np.random.default_rng(1)
        chi, widths = random.normal(0, 1, 27), random.uniform(0.3, 0.6, 27)
        eta = 0.5 + 1 / (math.sqrt(math.pi) * widths)
        matrix = np.ones((28, 28))
        matrix[:27, :27] = np.diag(eta) + pairs(x, widths)[0]
        matrix[27, 27] = 0
        found = gmxfmm.qeq(x, chi, eta, total_charge=1, widths=widths, accuracy=1e-9)
        self.assertLess(rms_error(found.charges, np.linalg.solve(matrix, np.append(-chi, 1))[:27]), 1e-7)


@unittest.skipIf(torch is None, "there is no PyTorch here")
class OfTorch(unittest.TestCase):
    def test_derivatives(self):
        x, q = melt(2)
        cell = 2 * (np.eye(3) + 0.05 * np.random.default_rng(1).normal(size=(3, 3)))
        x, q, cell = (torch.tensor(one, requires_grad=True) for one in (x, q * np.linspace(0.5, 1.5, 8), cell))
        given = {"widths": torch.linspace(0.1, 0.5, 8), "order": 8, "grid": (3, 3, 3), "measure": False, "reproducible": 1}
        # of the truncated energy itself; the cut-off is for an error of 1e-6, and leaves a fiftieth of it
        torch.autograd.gradcheck(lambda *one: of_torch.coulomb(*one, **given), (x, q, cell), eps=1e-4, atol=1e-5, rtol=1e-4)
        energy = of_torch.coulomb(x, q, cell, **given)
        forces, = torch.autograd.grad(energy, x, create_graph=True)
        way = torch.ones_like(x).cumsum(0)
        by_q, = torch.autograd.grad((forces * way).sum(), q)
        h = 1e-4
        sides = [torch.autograd.grad(of_torch.coulomb((x + side * h * way).detach(), q, cell, **given), q)[0] for side in (1, -1)]
        self.assertLess(rms_error(by_q.numpy(), ((sides[0] - sides[1]) / (2 * h)).numpy()), 1e-5)


@unittest.skipIf(jax is None, "there is no JAX here")
class OfJax(unittest.TestCase):
    def test_is_that_of_solve(self):
        x, q = cloud(60)
        widths = np.full(60, 0.1)
        expected = gmxfmm.solve(x, q, widths=widths, accuracy=1e-6)
        energy = of_jax.coulomb(np.float32(x), np.float32(q), widths=widths, accuracy=1e-6)
        self.assertAlmostEqual(float(energy) / expected.energy, 1, places=4)
        forces = -jax.grad(of_jax.coulomb)(np.float32(x), np.float32(q), widths=widths, accuracy=1e-6)
        self.assertLess(rms_error(np.asarray(forces), expected.forces), 1e-4)


if __name__ == "__main__":
    unittest.main()
