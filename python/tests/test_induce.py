# SPDX-License-Identifier: LGPL-2.1-or-later
"""Induced dipoles: against dense linear algebra, derivatives against differences, and what is refused."""
import itertools
import unittest

import numpy as np

import gmxfmm
from gmxfmm._pairs import near_pairs
from systems import melt, rms_error

DAMPING = 0.39


def skew(edge):
    """Vectors of a box without right angles."""
    return edge * (np.eye(3) + 0.05 * np.random.default_rng(1).normal(size=(3, 3)))


def dense(x, q, alpha, damping, excluded=()):
    """Dipoles and energy of an open system by linear algebra, with Thole's factors written out."""
    n = len(x)
    r = x[:, None] - x[None]
    d = np.sqrt((r**2).sum(axis=2)) + np.diag(np.full(n, np.inf))
    with np.errstate(all="ignore"):
        u3 = np.where(np.isinf(d), 1, d) ** 3 / np.sqrt(alpha[:, None] * alpha)
    u3[np.isinf(u3)] = 1e3  # without a polarizability there is no damping
    three = 1 - np.exp(-damping * u3) if damping else np.ones((n, n))
    five = 1 - (1 + damping * u3) * np.exp(-damping * u3) if damping else np.ones((n, n))
    kept = np.ones((n, n))
    for i, j in excluded:
        kept[i, j] = kept[j, i] = 0
    field = np.einsum("ij,ijd,j->id", kept * three / d**3, r, q)
    d[np.isinf(d)] = 1e50
    tensor = 3 * np.einsum("ij,ija,ijb->iajb", kept * five / d**5, r, r) - np.einsum("ij,ab->iajb", kept * three / d**3, np.eye(3))
    some = alpha > 0
    matrix = np.einsum("ij,ab->iajb", np.diag(1 / np.where(some, alpha, 1)), np.eye(3)) - tensor
    m = some.sum()
    mu = np.zeros((n, 3))
    mu[some] = np.linalg.solve(matrix[some][:, :, some].reshape(3 * m, 3 * m), field[some].reshape(-1)).reshape(m, 3)
    d[d > 1e40] = np.inf
    return mu, 0.5 * q @ (kept / d) @ q - 0.5 * np.vdot(mu, field)


class Induced(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(3)
        self.x, q = melt(3)
        self.q = q * np.linspace(0.5, 1.5, 27)
        self.alpha = random.uniform(0.02, 0.08, 27)
        self.alpha[[4, 9]] = 0
        self.random = random

    def test_are_those_of_linear_algebra(self):
        for damping, excluded in ((None, ()), (DAMPING, ()), (DAMPING, ((0, 1), (3, 12)))):
            mu, energy = dense(self.x, self.q, self.alpha, damping, excluded)
            found = gmxfmm.induce(self.x, self.q, self.alpha, damping=damping, exclusions=list(excluded) or None, accuracy=1e-9, prefactor=3.0)
            self.assertLess(rms_error(found.dipoles, mu), 1e-7)
            self.assertAlmostEqual(found.energy / (3 * energy), 1, delta=1e-8)
            self.assertLess(found.residual, 1e-7)
            self.assertLessEqual(found.measured_error, 1e-9)
            np.testing.assert_allclose(found.dipoles[[4, 9]], 0, atol=0)

    def test_derivatives_are_those_of_the_energy(self):
        """Central differences at a step of 1e-4: their error is its square times third derivatives, some hundred."""
        x = self.x + self.random.integers(-1, 2, (27, 3)) @ skew(3)
        plain = {"tolerance": 1e-10, "damping": DAMPING, "prefactor": 2.0, "measure": False, "order": 16, "reproducible": 1}
        for box, options in ((None, {"order": 20}), (skew(3), {"grid": (2, 2, 2)}), (skew(3), {"periodic": (1, 1, 0)})):
            # an excluded pair stays the nearest image of its own
            options = {**plain, **options, "exclusions": [(0, 1)]}
            at = x if box is not None and "periodic" not in options else self.x

            def energy(strain=0, by_x=0, by_q=0, by_alpha=0):
                turned = np.eye(3) + strain
                found = gmxfmm.induce((at + by_x) @ turned, self.q + by_q, self.alpha + by_alpha, None if box is None else box @ turned, **options)
                return found.energy

            found = gmxfmm.induce(at, self.q, self.alpha, box, virial=True, **options)
            ways = {"by_x": self.random.normal(size=(27, 3)), "by_q": self.random.normal(size=27),
                    "by_alpha": 0.1 * np.where(self.alpha > 0, self.random.normal(size=27) * self.alpha, 0), "strain": self.random.normal(size=(3, 3))}
            slopes = {"by_x": -found.forces, "by_q": found.potential, "by_alpha": found.by_polarizability, "strain": 2 * found.virial}
            for name, way in ways.items():
                difference = (energy(**{name: 1e-4 * way}) - energy(**{name: -1e-4 * way})) / 2e-4
                with self.subTest(name=name, periodic=box is not None, options=options):
                    self.assertAlmostEqual(np.vdot(slopes[name], way), difference, delta=1e-5 * max(1, abs(difference)))

    def test_a_plan_is_kept(self):
        """Dipoles of before are where the next call begins."""
        with gmxfmm.Plan(self.x, self.q, 3, accuracy=1e-6) as plan:
            first = gmxfmm.induce(self.x, self.q, self.alpha, plan=plan, damping=DAMPING)
            moved = self.x + 1e-4
            again = gmxfmm.induce(moved, self.q, self.alpha, plan=plan, damping=DAMPING)
            self.assertLess(again.iterations, first.iterations / 2)
            self.assertLess(rms_error(again.dipoles, first.dipoles), 1e-4)
            np.testing.assert_array_equal(plan.charges, self.q)
            self.assertLessEqual(again.measured_error, 1e-6)

    def test_refused(self):
        x, q, alpha = self.x, self.q, self.alpha
        with gmxfmm.Plan(x, q, measure=False) as plan, gmxfmm.Plan(x, q, method="treecode") as tree:
            for argument, text, call in (
                ("polarizability", "negative", lambda: gmxfmm.induce(x, q, -alpha)),
                ("polarizability", "no minimum.*damping", lambda: gmxfmm.induce(x, q, 10 * alpha + 1, measure=False)),
                ("polarizability", "27", lambda: gmxfmm.induce(x, q, alpha[1:])),
                ("damping", "positive", lambda: gmxfmm.induce(x, q, alpha, damping=0)),
                ("tolerance", "positive", lambda: gmxfmm.induce(x, q, alpha, tolerance=0)),
                ("tolerance", "not reached in 2 iterations", lambda: gmxfmm.induce(x, q, alpha, max_iterations=2, measure=False)),
                ("start", "27", lambda: gmxfmm.induce(x, q, alpha, start=[1.0])),
                ("method", "FMM", lambda: gmxfmm.induce(x, q, alpha, method="treecode")),
                ("plan", "no dipoles", lambda: gmxfmm.induce(x, q, alpha, plan=tree)),
                ("plan", "own box", lambda: gmxfmm.induce(x, q, alpha, 3, plan=plan)),
                ("plan", "27 particles", lambda: gmxfmm.induce(x[1:], q[1:], alpha[1:], plan=plan)),
                ("charges", "induce", lambda: gmxfmm.induce(x, 0 * q, alpha)),
                ("acuracy", "no option", lambda: gmxfmm.induce(x, q, alpha, acuracy=1)),
            ):
                with self.subTest(argument=argument, text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                    call()
                self.assertEqual(caught.exception.argument, argument, str(caught.exception))


class NearPairs(unittest.TestCase):
    def test_are_all_of_them(self):
        """Against loops over all images, also of a box smaller than the distance."""
        random = np.random.default_rng(2)
        for box, periodic, cutoff in ((None, (1, 1, 1), 0.7), (skew(2), (1, 1, 1), 0.7), (skew(2), (1, 1, 1), 3.5), (skew(2), (1, 0, 1), 2.5)):
            x = random.uniform(-1, 4, (12, 3))
            shifts = [s for s in itertools.product(range(-5, 6), repeat=3) if box is not None and all(p or not k for p, k in zip(periodic, s))]
            expected = sorted((i, j, round(float(np.linalg.norm(x[i] - x[j] - s @ np.asarray(box if box is not None else np.eye(3)))), 9))
                              for i in range(12) for j in range(12) for s in np.array(shifts or [(0, 0, 0)]) if i != j or s.any())
            expected = [one for one in expected if one[2] < cutoff]
            pairs = near_pairs(x, box, periodic, cutoff, (None, None))
            self.assertEqual(sorted((int(i), int(j), round(float(np.linalg.norm(r)), 9)) for i, j, r in zip(*pairs)), expected)
            start, others = np.array([0, 1] + 11 * [2]), np.array([1, 0])
            fewer = near_pairs(x, box, periodic, cutoff, (start, others))
            self.assertEqual(len(pairs.i) - len(fewer.i), 2 * int(any(i == 0 and j == 1 for i, j in zip(pairs.i, pairs.j))))


if __name__ == "__main__":
    unittest.main()
