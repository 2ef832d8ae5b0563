# SPDX-License-Identifier: LGPL-2.1-or-later
"""Charges of the least energy: against dense linear algebra, derivatives against differences, and what is refused."""
import unittest

import numpy as np

import gmxfmm
from systems import melt


def parameters(q, seed=5):
    """Electronegativities and hardnesses of ions at distance 1: positive ones have less of the first. Bare charges at a distance of 1 have a
    minimum where hardness is more than some 3."""
    random = np.random.default_rng(seed)
    return random.normal(0, 0.3, len(q)) - q, random.uniform(4, 5, len(q))


class Charges(unittest.TestCase):
    def setUp(self):
        self.x, q = melt(4)
        self.chi, self.eta = parameters(q)

    def dense(self, total, correction=0.0):
        """Charges, chemical potential and energy of an open system."""
        n = len(self.x)
        r = np.linalg.norm(self.x[:, None] - self.x[None], axis=2) + np.diag(np.full(n, np.inf))
        matrix = np.ones((n + 1, n + 1))
        matrix[:n, :n] = np.diag(self.eta) + 1 / r + correction
        matrix[n, n] = 0
        found = np.linalg.solve(matrix, np.append(-self.chi, total))
        q = found[:n]
        return q, -found[n], self.chi @ q + 0.5 * q @ matrix[:n, :n] @ q

    def test_of_an_open_system(self):
        random = np.random.default_rng(1)
        correction = random.normal(0, 0.01, (64, 64))
        correction += correction.T
        for total, given in ((0.0, {}), (3.0, {}), (0.0, {"correction": correction}), (-1.0, {"start": np.linspace(-1, 1, 64)})):
            q, mu, energy = self.dense(total, given.get("correction", 0.0))
            found = gmxfmm.qeq(self.x, self.chi, self.eta, total_charge=total, accuracy=1e-9, **given)
            self.assertAlmostEqual(found.charges.sum(), total, delta=1e-12)
            # potentials are to 1e-9 of what moves charges, and the residual is 1e-8
            self.assertLess(np.abs(found.charges - q).max(), 1e-7)
            self.assertAlmostEqual(found.chemical_potential, mu, delta=1e-7)
            self.assertAlmostEqual(found.energy, energy, delta=1e-8 * abs(energy))
            self.assertLessEqual(found.residual, 1.1e-8)
            self.assertLessEqual(found.measured_error, 1e-9)
            self.assertLess(found.iterations, 60)

    def test_of_a_periodic_system(self):
        found = gmxfmm.qeq(self.x, self.chi, self.eta, 4, accuracy=1e-8, virial=True)
        exact = gmxfmm.solve(self.x, found.charges, 4, accuracy=1e-10, virial=True)
        np.testing.assert_allclose(self.chi + self.eta * found.charges + exact.potential, found.chemical_potential, rtol=0, atol=1e-6)
        np.testing.assert_allclose(found.forces, exact.forces, rtol=0, atol=1e-7 * np.abs(exact.forces).max())
        np.testing.assert_allclose(found.virial, exact.virial, rtol=0, atol=1e-6 * abs(exact.energy))

    def test_derivatives(self):
        """By differences of step h, with charges found anew: an error of h^2 / 6 third derivatives, 1e-8 here, and of rounding over h."""
        given = {"accuracy": 1e-9, "tolerance": 1e-10, "order": 24, "grid": 2, "separation": 1}  # the same settings for both energies
        base = {"x": self.x, "chi": self.chi, "eta": self.eta, "total": np.array(0.5)}
        given.pop("accuracy")

        def energy(box=4.0, **changed):
            at = {**base, **changed}
            return gmxfmm.qeq(at["x"], at["chi"], at["eta"], box, total_charge=float(at["total"]), **given)

        found = energy()
        for name, expected in (("x", -found.forces), ("chi", found.charges), ("eta", found.charges**2 / 2), ("total", found.chemical_potential)):
            way = np.random.default_rng(3).normal(size=base[name].shape)
            h = 1e-4
            slope = (energy(**{name: base[name] + h * way}).energy - energy(**{name: base[name] - h * way}).energy) / (2 * h)
            self.assertAlmostEqual(slope, float(np.sum(expected * way)), delta=1e-6 * max(1.0, np.linalg.norm(way)), msg=name)

    def test_of_a_plan_that_is_kept(self):
        exact = gmxfmm.qeq(self.x, self.chi, self.eta, 4, accuracy=1e-8)
        with gmxfmm.Plan(self.x, exact.charges, 4, accuracy=1e-8) as plan:
            handle, iterations = plan._handle.value, []
            for shift in (0.05, 1e-5, 1.1e-5):
                found = gmxfmm.qeq(self.x * (1 + shift * np.random.default_rng(4).normal(size=self.x.shape)), self.chi, self.eta, plan=plan)
                iterations.append(found.iterations)
                np.testing.assert_array_equal(plan.charges, found.charges)
            self.assertEqual(plan._handle.value, handle)  # was not measured again
            self.assertLess(iterations[-1], iterations[0] / 2)  # it begins with the charges that it has
            np.testing.assert_allclose(found.charges, exact.charges, rtol=0, atol=1e-4)
            again = gmxfmm.qeq(self.x, self.chi, self.eta, plan=plan, start=np.zeros(64))
            np.testing.assert_allclose(again.charges, exact.charges, rtol=0, atol=1e-6)
            self.assertAlmostEqual(plan.step(self.x).energy, float(0.5 * exact.charges @ exact.potential), delta=1e-6)

    def test_measured_with_what_is_found(self):
        """Electronegativities that are the same but for one: the first guess is hardly a charge, and another kind than what is found."""
        chi = np.zeros(64)
        chi[7] = 1
        found = gmxfmm.qeq(self.x, chi, self.eta, total_charge=0.0, accuracy=1e-7)
        self.chi = chi
        np.testing.assert_allclose(found.charges, self.dense(0.0)[0], rtol=0, atol=1e-7)
        self.assertLessEqual(found.measured_error, 1e-7)

    def test_where_all_are_the_same(self):
        found = gmxfmm.qeq(self.x, np.full(64, 2.7), self.eta, 4)
        self.assertEqual((np.abs(found.charges).max(), found.energy, found.residual < 1e-12), (0, 0, True))
        self.assertAlmostEqual(found.chemical_potential, 2.7, delta=1e-12)

    def test_refused(self):
        x, chi, eta = self.x, self.chi, self.eta
        with gmxfmm.Plan(x, chi, measure=False) as plan, gmxfmm.Plan(x, chi, method="treecode") as tree:
            for argument, text, call in (
                ("hardness", "positive", lambda: gmxfmm.qeq(x, chi, 0 * eta)),
                ("hardness", "no minimum.*correction", lambda: gmxfmm.qeq(x, chi, 0.1 * eta, accuracy=1e-4)),
                ("hardness", "64", lambda: gmxfmm.qeq(x, chi, eta[1:])),
                ("electronegativity", "finite", lambda: gmxfmm.qeq(x, chi * np.nan, eta)),
                ("total_charge", "finite", lambda: gmxfmm.qeq(x, chi, eta, total_charge=np.inf)),
                ("tolerance", "positive", lambda: gmxfmm.qeq(x, chi, eta, tolerance=0)),
                ("tolerance", "not reached in 3 iterations", lambda: gmxfmm.qeq(x, chi, eta, max_iterations=3)),
                ("correction", "64 x 64", lambda: gmxfmm.qeq(x, chi, eta, correction=np.eye(3))),
                ("start", "64", lambda: gmxfmm.qeq(x, chi, eta, start=[1.0])),
                ("method", "one energy", lambda: gmxfmm.qeq(x, chi, eta, method="treecode")),
                ("plan", "treecode", lambda: gmxfmm.qeq(x, chi, eta, plan=tree)),
                ("plan", "own box", lambda: gmxfmm.qeq(x, chi, eta, 4, plan=plan)),
                ("plan", "64 particles", lambda: gmxfmm.qeq(x[1:], chi[1:], eta[1:], plan=plan)),
                ("positions", "no particles", lambda: gmxfmm.qeq(np.empty((0, 3)), [], [])),
                ("acuracy", "no option", lambda: gmxfmm.qeq(x, chi, eta, acuracy=1)),
            ):
                with self.subTest(argument=argument, text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                    call()
                self.assertEqual(caught.exception.argument, argument, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
