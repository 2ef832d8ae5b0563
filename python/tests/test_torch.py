# SPDX-License-Identifier: LGPL-2.1-or-later
"""The function of PyTorch, on the CPU: derivatives against differences, many systems, what is refused."""
import copy
import io
import unittest

import numpy as np

import gmxfmm
from systems import cloud, direct, melt

try:
    import torch
except ImportError:
    torch = None
else:
    from gmxfmm.torch import Coulomb, coulomb

# Central differences of a step h have an error of h^2 / 6 times a third derivative, which is some ten here, and the error of the
# energies, 1e-10 of them, over h: some 1e-6 together at this step.
STEP, ABSOLUTE, RELATIVE = 1e-4, 1e-5, 1e-4


def skew(edge):
    """Vectors of a box without right angles."""
    return edge * (np.eye(3) + 0.05 * np.random.default_rng(1).normal(size=(3, 3)))


@unittest.skipIf(torch is None, "there is no PyTorch here")
class Derivatives(unittest.TestCase):
    def tensors(self, *arrays):
        return tuple(torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in arrays)

    def hold(self, function, *arrays):
        self.assertTrue(torch.autograd.gradcheck(function, self.tensors(*arrays), eps=STEP, atol=ABSOLUTE, rtol=RELATIVE))

    def setUp(self):
        self.x, q = melt(2)
        self.q = q * np.linspace(0.5, 1.5, 8)

    def test_of_a_periodic_system(self):
        self.hold(Coulomb(accuracy=1e-10), self.x, self.q, skew(2))

    def test_of_images_of_particles(self):
        images = np.random.default_rng(2).integers(-2, 3, (8, 3))
        self.hold(Coulomb(accuracy=1e-10), self.x + images @ skew(2), self.q, skew(2))

    def test_of_an_open_system(self):
        self.hold(Coulomb(accuracy=1e-10, prefactor=3), self.x, self.q)

    def test_of_exclusions_and_vacuum(self):
        q = self.q - self.q.mean()  # a vacuum boundary wants none
        self.hold(Coulomb(accuracy=1e-10, exclusions=[(0, 1)], boundary="vacuum"), self.x, q, skew(2))

    def test_of_many_systems(self):
        x = np.array([melt(2, seed)[0] for seed in (1, 2)])
        q, cells = np.array([self.q, self.q[::-1].copy()]), np.array([skew(2), 2.05 * np.eye(3)])
        weight = torch.tensor([1.0, -0.5], dtype=torch.float64)
        self.hold(lambda *given: coulomb(*given, accuracy=1e-10) @ weight, x, q, cells)
        self.hold(lambda *given: coulomb(*given, accuracy=1e-10), x, q, skew(2))
        function = Coulomb(accuracy=1e-10)
        self.hold(lambda *given: function(*given, offsets=(0, 6, 14)), np.concatenate([x[0][:6], x[1]]), np.concatenate([q[0][:6], q[1]]), cells)

    def test_forces_are_those_of_solve(self):
        x, q = cloud(300)
        phi, field = direct(x, q)
        for dtype, accuracy in ((torch.float64, 1e-8), (torch.float32, 1e-4)):
            positions, charges = (torch.tensor(array, dtype=dtype, requires_grad=True) for array in (x, q))
            energy = coulomb(positions, charges, accuracy=accuracy)
            self.assertEqual((energy.dtype, energy.shape), (dtype, ()))
            (2 * energy).backward()
            norm = np.linalg.norm
            # ten times: an accuracy is of systems of many cells
            self.assertLess(norm(positions.grad.numpy() / -2 - q[:, None] * field), 10 * accuracy * norm(q[:, None] * field))
            self.assertLess(norm(charges.grad.numpy() / 2 - phi), 10 * accuracy * norm(phi))

    def test_second_are_refused_by_name(self):
        x, q = self.tensors(self.x, self.q)
        energy = coulomb(x, q, accuracy=1e-5)
        forces, = torch.autograd.grad(energy, x, create_graph=True)
        with self.assertRaisesRegex(gmxfmm.Error, "coulomb .*second derivatives") as caught:
            (forces**2).sum().backward()
        self.assertEqual(caught.exception.status, "GMXFMM_ERROR_UNSUPPORTED")

    def test_plans_are_kept(self):
        function = Coulomb(accuracy=1e-6)
        for k in range(3):
            x, q = self.tensors(self.x, self.q * (1 + k))
            function(x, q, torch.tensor(skew(2))).backward()
        plan, = function.batch.plans
        self.assertLessEqual(plan.measured_error, 1e-6)

    def test_models_are_copied_and_stored(self):
        class Model(torch.nn.Module):
            def __init__(self, charges):
                super().__init__()
                self.charges, self.coulomb = torch.nn.Parameter(charges), Coulomb(accuracy=1e-6)

            def forward(self, x):
                return self.coulomb(x, self.charges)

        global StoredModel  # pickle looks it up by its name
        StoredModel, Model.__qualname__ = Model, "StoredModel"
        x, q = self.tensors(self.x, self.q)
        model = Model(q.detach())
        energy = model(x)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for other in (copy.deepcopy(model), torch.optim.swa_utils.AveragedModel(model), torch.load(file, weights_only=False)):
            self.assertAlmostEqual(other(x).item(), energy.item(), delta=1e-6 * abs(energy.item()))

    def test_options_are_told_apart(self):
        x, q = cloud(3000)
        pairs = np.stack([np.arange(0, 3000, 2), np.arange(1, 3000, 2)], axis=1)
        other = pairs.copy()
        other[700:800] = other[700:800, ::-1] + (1, 1)  # in the middle, which numpy's text of an array leaves out
        given = [torch.tensor(array) for array in (x, q)]
        energies = [coulomb(*given, exclusions=some, measure=False).item() for some in (pairs, other, pairs)]
        self.assertEqual(energies[0], energies[2])
        self.assertGreater(abs(energies[1] - energies[0]), 1e-3 * abs(energies[0]))

    def test_arguments_are_named(self):
        x, q = self.tensors(self.x, self.q)
        for argument, text, call in (
            ("x", "tensor", lambda: coulomb(self.x, q)),
            ("q", "float32 or float64", lambda: coulomb(x, q.half())),
            ("x", "n x 3", lambda: coulomb(x, q[1:])),
            ("cell", "3 x 3", lambda: coulomb(x, q, torch.ones(3))),
            ("cell", "3 x 3", lambda: coulomb(x, q, torch.ones(2, 3, 3))),
            ("offsets", "rise", lambda: coulomb(x, q, offsets=(0, 7))),
            ("acuracy", "no option", lambda: coulomb(x, q, acuracy=1)),
        ):
            with self.subTest(argument=argument, text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                call()
            self.assertEqual(caught.exception.argument, argument, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
