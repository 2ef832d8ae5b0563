# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions of PyTorch and JAX with dipoles, on the CPU: derivatives against differences and sums over pairs, transforms, errors."""
import io
import itertools
import unittest

import numpy as np

import gmxfmm
from systems import cloud, direct_with_dipoles, melt, rms_error

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

BOUNDARIES = ({}, {"periodic": (1, 1, 0)}, {"periodic": (0, 0, 1)}, {"boundary": "vacuum"}, {"boundary": "open"})


def skew(edge):
    """Vectors of a box without right angles."""
    return edge * (np.eye(3) + 0.05 * np.random.default_rng(1).normal(size=(3, 3)))


def few(options):
    """Eight ions with dipoles; x, q, mu and cell, which open systems are without. Some boundaries want no net charge."""
    x, q = melt(2)
    q = q * np.linspace(0.5, 1.5, 8)
    neutral = options.get("boundary") == "vacuum" or sum(options.get("periodic", (1, 1, 1))) == 1
    mu = np.random.default_rng(5).normal(0, 0.3, x.shape) * (np.arange(8) % 3 > 0)[:, None]
    return (x, q - q.mean() if neutral else q, mu, *([] if options.get("boundary") == "open" else [skew(2)])), neutral


def options_of(options):
    return {} if options.get("boundary") == "open" else options


def sum_over_pairs(x, q, mu):
    """The energy of an open system, with derivatives of all orders (Stone 2013, chapter 3)."""
    i, j = torch.triu_indices(len(x), len(x), 1)
    r = x[i] - x[j]
    d = r.norm(dim=1)
    a, b = ((mu[k] * r).sum(dim=1) for k in (i, j))
    return (q[i] * q[j] / d + (q[i] * b - q[j] * a + (mu[i] * mu[j]).sum(dim=1)) / d**3 - 3 * a * b / d**5).sum()


@unittest.skipIf(torch is None, "there is no PyTorch here")
class OfTorch(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(9)
        self.x, self.q = cloud(60)
        self.mu = self.random.normal(0, 0.03, (60, 3))

    def tensors(self, *arrays, dtype=None):
        return tuple(torch.tensor(array, dtype=dtype or torch.float64, requires_grad=True) for array in arrays)

    def call(self, **options):
        """A function of x, q, mu and cell."""
        function = of_torch.Coulomb(**options)
        return lambda x, q, mu, cell=None, **given: function(x, q, cell, dipoles=mu, **given)

    def test_gradcheck_in_every_boundary(self):
        """Central differences of a step h have an error of h^2 / 6 times a third derivative, which is some hundred, and that of the energies,
        1e-10 of them, over h. With a net charge lost to a difference a vacuum boundary and a wire are refused, so charges are fixed there.
        """
        for options in BOUNDARIES:
            given, neutral = few(options)
            inputs = self.tensors(*given)
            inputs[1].requires_grad_(not neutral)
            with self.subTest(options=options):
                self.assertTrue(torch.autograd.gradcheck(self.call(accuracy=1e-10, **options_of(options)), inputs, eps=1e-4, atol=1e-5, rtol=1e-4))

    def test_gradgradcheck_in_every_boundary_and_mixture(self):
        """Random vectors stand in place of all. PyTorch's differences have cells of their own on either side. Fifth powers of distances that are
        the half of others make third derivatives of first ones large.
        """
        for options in BOUNDARIES:
            given, neutral = few(options)
            function = self.call(accuracy=1e-10, **options_of(options))
            for of in itertools.product((False, True), repeat=len(given)):
                inputs = [torch.tensor(one, requires_grad=wanted) for one, wanted in zip(given, of)]
                if any(of) and not (neutral and of[1]):
                    with self.subTest(options=options, of=of):
                        self.assertTrue(torch.autograd.gradgradcheck(function, inputs, eps=1e-4, atol=1e-4, rtol=1e-4, fast_mode=True))

    def test_are_those_of_the_sum_over_pairs(self):
        """Energies, first derivatives, and second ones along a random vector."""
        for accuracy, dtype in ((1e-4, None), (1e-6, None), (1e-10, None), (1e-4, torch.float32)):
            double = self.tensors(self.x, self.q, self.mu)
            inputs = self.tensors(self.x, self.q, self.mu, dtype=dtype)
            exact, found = sum_over_pairs(*double), of_torch.coulomb(*inputs[:2], dipoles=inputs[2], accuracy=accuracy)
            self.assertAlmostEqual(found.item() / exact.item(), 1, delta=accuracy)
            ways = [torch.tensor(self.random.normal(size=one.shape)) for one in double]
            results = []
            for energy, of in ((exact, double), (found, inputs)):
                first = torch.autograd.grad(energy, of, create_graph=True)
                results.append((*first, *torch.autograd.grad(sum((one * way.to(one)).sum() for one, way in zip(first, ways)), of)))
            for one, other in zip(results[1], results[0]):
                self.assertEqual(one.dtype, dtype or torch.float64)
                # of forces and torques what was asked; potentials and second derivatives stand for no more than three times of it
                self.assertLess(rms_error(one.detach().double().numpy(), other.detach().numpy()), 3 * accuracy + 1e-8)

    def test_batches(self):
        x, q, mu = (np.concatenate([one, one[:20] + shift]) for one, shift in ((self.x, 3), (self.q, 0), (self.mu, 0.01)))
        offsets, function = (0, 60, 80), self.call(accuracy=1e-8)
        for given in ({"offsets": offsets}, {"batch": torch.tensor([0] * 60 + [1] * 20)}):
            inputs, others = self.tensors(x, q, mu), self.tensors(x, q, mu)
            energy = function(*inputs, **given)
            exact = torch.stack([sum_over_pairs(*(one[a:b] for one in others)) for a, b in zip(offsets, offsets[1:])])
            torch.testing.assert_close(energy, exact, rtol=1e-7, atol=0)
            weight = torch.tensor([0.7, 1.6], dtype=torch.float64)
            for one, other in zip(torch.autograd.grad((weight * energy).sum(), inputs), torch.autograd.grad((weight * exact).sum(), others)):
                self.assertLess(rms_error(one.numpy(), other.numpy()), 1e-7)
        x, q = (torch.tensor(array) for array in melt(4))
        mu = torch.tensor(self.random.normal(0, 0.3, (3, 64, 3)))
        cells = torch.stack([4 * torch.eye(3), torch.zeros(3, 3), 4.1 * torch.eye(3)]).double().requires_grad_()
        energy = function(x.expand(3, 64, 3), q.expand(3, 64), mu, cells)
        slope, = torch.autograd.grad(energy.sum(), cells)
        for s, cell in enumerate((cells[0].detach(), None, cells[2].detach())):
            alone = cell if cell is None else cell.requires_grad_()
            one = function(x, q, mu[s], alone)
            self.assertAlmostEqual(energy[s].item(), one.item(), delta=1e-6)
            if cell is not None:
                torch.testing.assert_close(slope[s], torch.autograd.grad(one, alone)[0], rtol=1e-6, atol=1e-6)
        self.assertEqual(slope[1].abs().max(), 0)

    def test_trains_on_forces(self):
        """Charges and dipoles that come of the positions, as of a model: the loss of forces against its differences."""
        x, q = (torch.tensor(array) for array in melt(4))
        cell, shape = 4 * torch.eye(3, dtype=torch.float64), torch.tensor(self.random.normal(0, 0.3, (64, 3)))
        function = self.call(accuracy=1e-8)

        def loss(size, at):
            at = at.clone().requires_grad_()
            energy = function(at, q * (1 + 0.1 * torch.sin(at[:, 0])), size * shape * torch.cos(at), cell)
            forces, = torch.autograd.grad(energy, at, create_graph=True)
            return ((forces + 1) ** 2).sum()

        size = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        slope, = torch.autograd.grad(loss(size, x), size)
        difference = (loss(size + 1e-4, x) - loss(size - 1e-4, x)).item() / 2e-4
        self.assertAlmostEqual(difference / slope.item(), 1, delta=1e-5)  # the step squared, and 1e-8 over the step

    def test_transforms(self):
        """Functions that are compiled, exported, of many inputs, and differentiated by torch.func."""
        x, q = (torch.tensor(array) for array in melt(4))
        mu, cell = torch.tensor(self.random.normal(0, 0.3, (64, 3))), 4 * torch.eye(3, dtype=torch.float64)
        function = self.call(accuracy=1e-6, reproducible=1)
        inputs = [one.clone().requires_grad_() for one in (x, q, mu, cell)]
        energy = function(*inputs)
        slopes = torch.autograd.grad(energy, inputs)
        torch.testing.assert_close(torch.func.grad(function, argnums=(0, 1, 2, 3))(x, q, mu, cell), slopes, rtol=1e-9, atol=1e-9)
        many = torch.stack([mu, 0.5 * mu, 0 * mu])
        found = torch.func.vmap(torch.func.grad(function, argnums=(1, 2)), in_dims=(None, None, 0, None))(x, q, many, cell)
        for k, one in enumerate(many):
            torch.testing.assert_close(tuple(part[k] for part in found), torch.func.grad(function, argnums=(1, 2))(x, q, one, cell), rtol=1e-9, atol=1e-9)
        few, small = x[:6], mu[:6]
        by_mu = torch.func.jacrev(torch.func.grad(self.call(accuracy=1e-8), argnums=2), argnums=2)(few, q[:6], small).reshape(18, 18)
        exact = torch.autograd.functional.hessian(lambda at: sum_over_pairs(few, q[:6], at), small).reshape(18, 18)
        torch.testing.assert_close(by_mu, exact, rtol=0, atol=1e-6 * exact.abs().max().item())

        torch._dynamo.reset()
        compiled = torch.compile(lambda *given: 2 * function(*given), fullgraph=True, backend="aot_eager")
        again = [one.detach().clone().requires_grad_() for one in inputs]
        torch.testing.assert_close(torch.autograd.grad(compiled(*again), again), tuple(2 * one for one in slopes), rtol=1e-9, atol=1e-9)

        class Model(torch.nn.Module):
            def __init__(self, coulomb):
                super().__init__()
                self.coulomb = coulomb

            def forward(self, x, q, mu, cell):
                return self.coulomb(x, q, cell, dipoles=mu)

        program, file = torch.export.export(Model(of_torch.Coulomb(accuracy=1e-6, reproducible=1)), (x, q, mu, cell)), io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        torch.testing.assert_close(torch.export.load(file).module()(x, q, mu, cell), energy.detach(), rtol=1e-6, atol=0)
        again = mu.clone().requires_grad_()
        found, = torch.autograd.grad(program.module()(x, q, again, cell), again)
        torch.testing.assert_close(found, slopes[2], rtol=0, atol=1e-5)  # another plan of the same accuracy

    def test_arguments_are_named(self):
        x, q, mu = self.tensors(self.x, self.q, self.mu)
        for text, call in (
            ("tensor", lambda: of_torch.coulomb(x, q, dipoles=self.mu)),
            ("float32 or float64", lambda: of_torch.coulomb(x, q, dipoles=mu.half())),
            (r"the shape \(59, 3\), and x \(60, 3\)", lambda: of_torch.coulomb(x, q, dipoles=mu[1:])),
            (r"the shape \(60, 3\), and x \(1, 60, 3\)", lambda: of_torch.coulomb(x[None], q[None], dipoles=mu)),
            ("method = fmm", lambda: of_torch.coulomb(x, q, dipoles=mu, method="treecode", measure=False)),
            ("particle 5 is not finite", lambda: of_torch.coulomb(x, q, dipoles=torch.where(torch.arange(60)[:, None] == 5, torch.inf, mu))),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                call()
            self.assertEqual(caught.exception.argument, "dipoles", str(caught.exception))


@unittest.skipIf(jax is None, "there is no JAX here")
class OfJax(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(3)
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        self.addCleanup(jax.config.update, "jax_enable_x64", before)

    def call(self, **options):
        function = of_jax.Coulomb(**options)
        return lambda x, q, mu, cell=None, offsets=None: function(x, q, cell, offsets, dipoles=mu)

    def test_first_and_second_in_every_boundary(self):
        """First derivatives against differences of energies, and second ones against differences of these; both are some 1e-6."""
        for options in BOUNDARIES:
            given, neutral = few(options)
            which = tuple(k for k in range(len(given)) if not (neutral and k == 1))
            ways = [self.random.normal(size=one.shape) for one in given]
            function = self.call(accuracy=1e-10, **options_of(options))
            slopes = jax.jit(jax.grad(function, which))
            along = lambda *at: sum((slope * ways[k]).sum() for k, slope in zip(which, jax.grad(function, which)(*at)))
            found = jax.jit(jax.grad(along, which))(*given)
            for k, slope, second in zip(which, slopes(*given), found):
                sides = [[one + sign * 1e-4 * ways[k] if i == k else one for i, one in enumerate(given)] for sign in (1, -1)]
                with self.subTest(options=options, argument=k):
                    for part, energy in ((slope, function), (second, along)):
                        difference = float(energy(*sides[0]) - energy(*sides[1])) / 2e-4
                        # the step squared times third derivatives, some hundred of the first
                        self.assertAlmostEqual(float((part * ways[k]).sum()), difference, delta=1e-4 * max(1, abs(difference)))

    def test_are_those_of_the_sum_over_pairs(self):
        x, q = cloud(60)
        mu = self.random.normal(0, 0.03, (60, 3))
        phi, field, gradient = direct_with_dipoles(x, q, mu)
        for dtype, accuracy in ((np.float64, 1e-8), (np.float32, 1e-4)):
            slopes = jax.grad(self.call(accuracy=accuracy), (0, 1, 2))(*(one.astype(dtype) for one in (x, q, mu)))
            for one, other in zip(slopes, (-q[:, None] * field - np.einsum("ikl,ik->il", gradient, mu), phi, -field)):
                self.assertEqual(one.dtype, dtype)
                self.assertLess(rms_error(np.asarray(one, float), other), 3 * accuracy)

    def test_batches_and_transforms(self):
        x, q = melt(4)
        mu, cell = self.random.normal(0, 0.3, (3, 64, 3)), 4 * np.eye(3)
        function = self.call(accuracy=1e-6, reproducible=1)
        slopes = jax.grad(function, (0, 2))
        found = jax.jit(jax.vmap(slopes, (None, None, 0, None)))(x, q, mu, cell)
        ends = np.array([0, 64, 128, 192])
        together = jax.grad(lambda *given: function(*given, np.tile(cell, (3, 1, 1)), ends).sum(), (0, 2))(np.tile(x, (3, 1)), np.tile(q, 3), mu.reshape(-1, 3))
        for k, one in enumerate(mu):
            for part, flat, alone in zip(found, together, slopes(x, q, one, cell)):
                np.testing.assert_allclose(part[k], alone, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(flat[64 * k:64 * k + 64], alone, rtol=1e-9, atol=1e-9)

    def test_arguments_are_named(self):
        x, q = cloud(60)
        for text, call in (
            ("float32 or float64", lambda: of_jax.coulomb(x, q, dipoles=x.astype(int))),
            (r"the shape \(59, 3\), and x \(60, 3\)", lambda: of_jax.coulomb(x, q, dipoles=x[1:])),
            ("method = fmm", lambda: of_jax.coulomb(x, q, dipoles=x, method="treecode", measure=False)),
            ("particle 0 is not finite", lambda: of_jax.coulomb(x, q, dipoles=np.nan * x)),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                call()
            self.assertEqual(caught.exception.argument, "dipoles", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
