# SPDX-License-Identifier: LGPL-2.1-or-later
"""The function of PyTorch, on the CPU: derivatives against differences, many systems, what is refused."""
import copy
import io
import itertools
import unittest

import numpy as np

import gmxfmm
from systems import cloud, direct, melt, rms_error

try:
    import torch
except ImportError:
    torch = None
else:
    import gmxfmm.torch
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

    def test_third_are_refused_by_name(self):
        x, q = self.tensors(self.x, self.q)
        energy = coulomb(x, q, accuracy=1e-5)
        forces, = torch.autograd.grad(energy, x, create_graph=True)
        slopes, = torch.autograd.grad((forces**2).sum(), x, create_graph=True)
        with self.assertRaisesRegex(gmxfmm.Error, "coulomb .*third derivatives") as caught:
            slopes.sum().backward()
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


def sum_over_pairs(x, q):
    """The energy of an open system, with derivatives of all orders."""
    i, j = torch.triu_indices(len(x), len(x), 1)
    return (q[i] * q[j] / (x[i] - x[j]).norm(dim=1)).sum()


@unittest.skipIf(torch is None, "there is no PyTorch here")
class SecondDerivatives(unittest.TestCase):
    """What PyTorch makes of them. test_second.py has how exact they are."""

    def setUp(self):
        self.x, self.q = cloud(60)
        self.random = np.random.default_rng(9)

    def tensors(self, *arrays, dtype=None):
        return tuple(torch.tensor(array, dtype=dtype or torch.float64, requires_grad=True) for array in arrays)

    def products(self, energy, inputs, seed=1):
        """Second derivatives times a random vector by each of the inputs, of the energies weighted."""
        random = torch.Generator().manual_seed(seed)
        weight = torch.rand(energy.shape, generator=random, dtype=torch.float64).to(energy) + 0.5
        first = torch.autograd.grad((weight * energy).sum(), inputs, create_graph=True)
        ways = [torch.randn(one.shape, generator=random, dtype=torch.float64).to(one) for one in first]
        return torch.autograd.grad(sum((one * way).sum() for one, way in zip(first, ways)), inputs)

    def test_are_those_of_the_sum_over_pairs(self):
        for accuracy, dtype in ((1e-4, None), (1e-6, None), (1e-10, None), (1e-4, torch.float32)):
            inputs = self.tensors(self.x, self.q, dtype=dtype)
            double = self.tensors(self.x, self.q)
            exact = self.products(sum_over_pairs(*double), double)
            found = self.products(coulomb(*inputs, accuracy=accuracy), inputs)
            for one, other in zip(found, exact):
                self.assertEqual(one.dtype, dtype or torch.float64)
                self.assertLess(rms_error(one.double().numpy(), other.numpy()), accuracy + 1e-7)

    def test_trains_on_forces(self):
        """A loss of forces has the derivatives that its differences have."""
        x, q = self.tensors(self.x, self.q)
        wanted = torch.tensor(self.random.normal(size=self.x.shape))
        function = Coulomb(accuracy=1e-8)

        def loss(charges):
            forces, = torch.autograd.grad(function(x, charges), x, create_graph=True)
            return ((forces + wanted) ** 2).sum()

        slope, = torch.autograd.grad(loss(q), q)
        way = torch.tensor(self.random.normal(size=60))
        difference = (loss(q + 1e-4 * way) - loss(q - 1e-4 * way)).item() / 2e-4
        self.assertAlmostEqual(difference / (slope @ way).item(), 1, delta=1e-5)

    def test_of_boxes(self):
        """Against differences of first derivatives, in all inputs."""
        x, q = melt(4)
        images = self.random.integers(-2, 3, (64, 3))
        for options, cell in (({}, skew(4)), ({"periodic": (1, 1, 0)}, skew(4)), ({"boundary": "vacuum"}, 4 * np.eye(3))):
            options = dict(options, accuracy=1e-10)
            given = [x if options.get("boundary") else x + (images * options.get("periodic", 1)) @ cell, q, cell]
            inputs = self.tensors(*given)
            ways = [torch.tensor(self.random.normal(size=array.shape)) for array in given]
            function = Coulomb(**options)

            def along(*at):
                first = torch.autograd.grad(function(*at), at, create_graph=True)
                return sum((one * way).sum() for one, way in zip(first, ways))

            found = torch.autograd.grad(along(*inputs), inputs)
            for k in range(3):
                way = torch.tensor(self.random.normal(size=given[k].shape))
                sides = [along(*(one + sign * 3e-4 * way if i == k else one for i, one in enumerate(inputs))).item() for sign in (1, -1)]
                expected = (sides[0] - sides[1]) / 6e-4
                # the step squared times third derivatives, some hundred, and 1e-10 of the forces over the step
                self.assertAlmostEqual((found[k] * way).sum().item() / expected, 1, delta=1e-4, msg=f"{options} {k}")

    def test_of_many_systems(self):
        x, q, offsets = np.concatenate([self.x, 3 + self.x[:20]]), np.concatenate([self.q, self.q[:20]]), (0, 60, 80)
        function = Coulomb(accuracy=1e-9)
        inputs = self.tensors(x, q)
        found = self.products(function(*inputs, offsets=offsets), inputs)
        others = self.tensors(x, q)
        expected = self.products(torch.stack([sum_over_pairs(others[0][a:b], others[1][a:b]) for a, b in zip(offsets, offsets[1:])]), others)
        for one, other in zip(found, expected):
            self.assertLess(rms_error(one.numpy(), other.numpy()), 1e-7)

    def test_by_charges_where_there_are_none(self):
        """The energy is quadratic in the charges: its second derivative is the potential of the vector."""
        x, q = self.tensors(self.x, 0 * self.q)
        way = torch.tensor(self.q)
        first, = torch.autograd.grad(coulomb(x, q, accuracy=1e-6), q, create_graph=True)
        found, = torch.autograd.grad(first @ way, q)
        self.assertLess(rms_error(found.numpy(), direct(self.x, self.q)[0]), 1e-6)

    def test_gradgradcheck(self):
        x, q = melt(2)
        function = Coulomb(accuracy=1e-10)
        self.assertTrue(torch.autograd.gradgradcheck(lambda *given: function(*given), self.tensors(x, q * np.linspace(0.5, 1.5, 8), skew(2)),
                                                     eps=STEP, atol=1e-4, rtol=RELATIVE))

    def test_gradgradcheck_in_every_boundary_and_mixture(self):
        """Some of x, q and cell want derivatives. Random vectors stand in place of all. PyTorch's differences have cells of their own on either side."""
        x, q = melt(2)
        q = q * np.linspace(0.5, 1.5, 8)
        for options in ({}, {"periodic": (1, 1, 0)}, {"boundary": "vacuum"}, {"boundary": "open"}):
            is_open = options.get("boundary") == "open"
            function = Coulomb(accuracy=1e-10, **{} if is_open else options)
            given = self.tensors(x, q - q.mean() if "boundary" in options else q, *([] if is_open else [skew(2)]))
            for of in itertools.product((False, True), repeat=len(given)):
                inputs = [one.detach().requires_grad_(wanted) for one, wanted in zip(given, of)]
                if any(of) and not (options.get("boundary") == "vacuum" and of[1]):  # which wants no net charge
                    with self.subTest(options=options, of=of):
                        self.assertTrue(torch.autograd.gradgradcheck(function, inputs, eps=STEP, atol=1e-4, rtol=RELATIVE, fast_mode=True))

    def test_jacobians_are_symmetric(self):
        """To rounding at a low accuracy: they are derivatives of what is computed. That of the cell by itself is by differences."""
        x, q = (array[:8] for array in self.tensors(*melt(2)))
        cell = torch.tensor(skew(2))
        function = Coulomb(accuracy=1e-3, reproducible=1)
        sizes = (24, 8, 9)

        def slope(flat):
            parts = [part.reshape(one.shape) for part, one in zip(flat.split(sizes), (x, q, cell))]
            return torch.cat([one.reshape(-1) for one in torch.func.grad(function, argnums=(0, 1, 2))(*parts)])

        found = torch.func.jacrev(slope)(torch.cat([one.detach().reshape(-1) for one in (x, q, cell)]))
        torch.testing.assert_close(found, found.T, rtol=0, atol=1e-9 * found.abs().max().item())
        torch.testing.assert_close(found[:32, :32], found[:32, :32].T, rtol=0, atol=1e-13 * found.abs().max().item())

    def test_of_cells_are_computed_where_wanted(self):
        """A loss of forces alone takes no virial, and single precision no plan in double."""
        x, q = melt(4)
        for dtype, of_cell in ((torch.float64, False), (torch.float32, False), (torch.float64, True)):
            function = Coulomb(accuracy=1e-3)
            inputs = self.tensors(x, q, 4 * np.eye(3), dtype=dtype)
            inputs[2].requires_grad_(of_cell)
            asked, real = [], function.batch.mixed
            function.batch.mixed = lambda *given: asked.append(given[6]) or real(*given)
            forces, = torch.autograd.grad(function(*inputs), inputs[0], create_graph=True)
            (forces**2).sum().backward()
            self.assertEqual((asked, len(function.batch.plans), inputs[2].grad is not None), ([of_cell], 1, of_cell))


@unittest.skipIf(torch is None, "there is no PyTorch here")
class Transforms(unittest.TestCase):
    """What PyTorch makes of a function: compiled, exported, of many inputs, differentiated by torch.func."""

    def setUp(self):
        x, q = melt(4)
        self.x, self.q, self.cell = torch.tensor(x), torch.tensor(q), 4 * torch.eye(3, dtype=torch.float64)
        self.function = Coulomb(accuracy=1e-6, reproducible=1)
        inputs = [one.clone().requires_grad_() for one in (self.x, self.q, self.cell)]
        self.energy = self.function(*inputs)
        self.gradients = torch.autograd.grad(self.energy, inputs)

    def hold(self, found, expected):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)  # of the same plan

    def test_grad(self):
        self.hold(torch.func.grad(self.function, argnums=(0, 1, 2))(self.x, self.q, self.cell), self.gradients)
        self.hold(torch.func.grad_and_value(self.function)(self.x, self.q, self.cell), (self.gradients[0], self.energy.detach()))

    def test_vmap(self):
        many = torch.stack([self.x, self.x + 0.5, self.x + 1.0])
        energies = torch.func.vmap(self.function, in_dims=(0, None, None))(many, self.q, self.cell)
        self.hold(energies, torch.stack([self.function(one, self.q, self.cell) for one in many]))
        slopes = torch.func.vmap(torch.func.grad(self.function, argnums=(0, 2)), in_dims=(2, None, None))(many.movedim(0, 2), self.q, self.cell)
        for k, one in enumerate(many):
            self.hold(tuple(part[k] for part in slopes), torch.func.grad(self.function, argnums=(0, 2))(one, self.q, self.cell))
        flat, offsets = torch.cat([self.x, self.x[:30]]), torch.tensor([0, 64, 94])
        charges = torch.stack([torch.cat([self.q, self.q[:30]]) * scale for scale in (1.0, 2.0)])
        energies = torch.func.vmap(lambda q: self.function(flat, q, offsets=offsets))(charges)
        self.hold(energies[1], 4 * energies[0])
        self.hold(energies[0], self.function(flat, charges[0], offsets=offsets))

    def test_hessian(self):
        """By charges it is the matrix of potentials, whose rows are those of single charges."""
        x, q = self.x[:6], self.q[:6]
        function = Coulomb(accuracy=1e-8)
        found = torch.func.jacrev(torch.func.grad(function, argnums=1), argnums=1)(x, q)
        d = torch.cdist(x, x) + torch.diag(torch.full((6,), torch.inf, dtype=torch.float64))
        torch.testing.assert_close(found, 1 / d, rtol=0, atol=1e-7)
        by_x = torch.func.jacrev(torch.func.grad(function))(x, q).reshape(18, 18)
        exact = torch.autograd.functional.hessian(lambda at: sum_over_pairs(at, q), x).reshape(18, 18)
        torch.testing.assert_close(by_x, exact, rtol=0, atol=1e-6 * exact.abs().max().item())

    def test_compile(self):
        torch._dynamo.reset()
        for function in (self.function, lambda *given: coulomb(*given, accuracy=1e-6, reproducible=1)):
            inputs = [one.clone().requires_grad_() for one in (self.x, self.q, self.cell)]
            compiled = torch.compile(lambda x, q, cell: 2 * function(x, q, cell), fullgraph=True, backend="aot_eager")
            energy = compiled(*inputs)
            torch.testing.assert_close(energy, 2 * self.energy, rtol=1e-6, atol=0)  # another plan of the same accuracy
            found = torch.autograd.grad(energy, inputs)
            torch.testing.assert_close(found, tuple(2 * one for one in self.gradients), rtol=0, atol=1e-4)

    def test_export(self):
        class Model(torch.nn.Module):
            def __init__(self, coulomb):
                super().__init__()
                self.coulomb = coulomb

            def forward(self, x, q, cell):
                return 2 * self.coulomb(x, q, cell)

        program = torch.export.export(Model(self.function), (self.x, self.q, self.cell))
        self.hold(program.module()(self.x, self.q, self.cell), 2 * self.energy.detach())
        x = self.x.clone().requires_grad_()
        self.hold(torch.autograd.grad(program.module()(x, self.q, self.cell), x)[0], 2 * self.gradients[0])
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        name = self.function._name
        del gmxfmm.torch._objects[name]  # as in another process, which has the options alone
        torch.testing.assert_close(torch.export.load(file).module()(self.x, self.q, self.cell), 2 * self.energy.detach(), rtol=1e-6, atol=0)

    def test_operators_are_what_pytorch_wants(self):
        mu = 0.1 * torch.randn(64, 3, dtype=torch.float64)
        for mu, given in itertools.product((None, mu), ((self.x[None], self.q[None], self.cell[None], None), (self.x, self.q, None, torch.tensor([0, 30, 64])))):
            given = (*given[:2], None if mu is None else mu.reshape(given[0].shape), *given[2:])
            arguments = [one.clone().requires_grad_(one.is_floating_point()) if one is not None else None for one in given]
            torch.library.opcheck(gmxfmm.torch.energies, (*arguments, self.function._name, True, True, mu is not None, arguments[3] is not None),
                                  test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_static"))
            x, q, mu, cell, bounds = (None if one is None else one.detach() for one in arguments)
            weight = torch.ones(1 if bounds is None else 2, dtype=torch.float64)
            for of_cell in (False, True):
                torch.library.opcheck(gmxfmm.torch.second, (weight, x, q, mu, cell, x, q, mu, cell, bounds, self.function._name, of_cell),
                                      test_utils=("test_schema", "test_faketensor"))


@unittest.skipIf(torch is None, "there is no PyTorch here")
class BatchesByIndex(unittest.TestCase):
    def test_are_those_of_offsets(self):
        x, q = cloud(90)
        x, q = torch.tensor(x, requires_grad=True), torch.tensor(q)
        index = torch.tensor([0] * 40 + [2] * 50)
        function = Coulomb(accuracy=1e-6, reproducible=1)
        expected = function(x, q, offsets=(0, 40, 40, 90))
        for given in ({}, {"systems": 3}, {"systems": 5}):
            energy = function(x, q, batch=index, **given)
            torch.testing.assert_close(energy[:3], expected, rtol=1e-12, atol=0)
            self.assertEqual(energy[1:2].tolist() + energy[3:].tolist(), [0.0] * (len(energy) - 2))
        cells = 2 * torch.eye(3, dtype=torch.float64).expand(3, 3, 3)
        self.assertEqual(function(x, q, cells, batch=index.int()).shape, (3,))
        compiled = torch.compile(lambda *given: function(*given, batch=index, systems=3), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x, q), expected, rtol=1e-12, atol=0)

    def test_open_and_periodic_ones(self):
        x, q = (torch.tensor(array) for array in melt(4))
        cells = torch.stack([4 * torch.eye(3), torch.zeros(3, 3), 4.1 * torch.eye(3)]).double().requires_grad_()
        function = Coulomb(accuracy=1e-8)
        energy = function(x.expand(3, 64, 3), q.expand(3, 64), cells)
        for s, cell in enumerate((cells[0], None, cells[2])):
            self.assertAlmostEqual(energy[s].item(), Coulomb(accuracy=1e-8)(x, q, cell).item(), delta=1e-6)
        slope, = torch.autograd.grad(energy.sum(), cells)
        self.assertTrue(torch.isfinite(slope).all())
        self.assertEqual(slope[1].abs().max(), 0)
        self.assertGreater(slope[0].abs().max(), 0)

    def test_refused(self):
        x, q = (torch.tensor(array) for array in cloud(6))
        for text, given in (("rise", {"batch": torch.tensor([0, 0, 1, 1, 0, 1])}), ("rise", {"batch": torch.tensor([0, 0, 1, 1, 1, 3]), "systems": 3}),
                            ("rise", {"batch": torch.tensor([-1, 0, 1, 1, 1, 1])}), ("integers", {"batch": torch.zeros(6)}),
                            ("integers", {"batch": torch.zeros(5, dtype=torch.int64)}), ("offsets", {"batch": torch.zeros(6).long(), "offsets": (0, 6)})):
            with self.subTest(text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                coulomb(x, q, measure=False, **given)
            self.assertEqual(caught.exception.argument, "batch")


if __name__ == "__main__":
    unittest.main()
