# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arrays of a GPU by PyTorch, CuPy, JAX and the protocols alone. Skipped without a GPU or a library that has one; each library that
is missing is skipped by name."""
import copy
import importlib
import itertools
import os
import pickle
import unittest
from unittest import mock

import numpy as np

import gmxfmm
from gmxfmm import _check
from systems import cloud, direct, melt, of_any_kind, rms_error

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else JAX takes most of the memory that the others need

try:
    gmxfmm.check_device("cuda")
    REASON = None
except gmxfmm.Error as error:
    REASON = f"no GPU: {error}"


def library(name):
    """A module, or the test is skipped."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise unittest.SkipTest(f"there is no {name} here") from error
    if name == "torch" and not module.cuda.is_available():
        raise unittest.SkipTest("PyTorch has no GPU here")
    if name == "jax" and not any(device.platform in ("gpu", "cuda") for device in module.devices()):
        raise unittest.SkipTest("JAX has no GPU here")
    return module


def mixture():
    """Systems of 64 charges, floats; the first has the least order to offer the others."""
    random = np.random.default_rng(4)
    kinds = ["melt", "one ion moved", "cluster", *random.choice(["melt", "gas", "one ion moved", "cold crystal", "cluster", "slab"], 15)]
    systems = [of_any_kind(kind, 4, random) for kind in kinds]
    return np.array([x for x, _ in systems], dtype=np.float32), np.array([q for _, q in systems], dtype=np.float32)


def assert_accurate(test, forces, x, q, box, accuracy):
    """One of them may fall short, by a factor of less than two."""
    exact = [gmxfmm.solve(x[s].astype(float), q[s].astype(float), box, accuracy=0.03 * accuracy).forces for s in range(len(x))]
    errors = np.sort([rms_error(*pair) for pair in zip(forces, exact)])
    test.assertLess(errors[-2], accuracy)
    test.assertLess(errors[-1], 2 * accuracy)


class WithTorch:
    def setUp(self):
        self.torch = library("torch")

    def device(self, array):
        return self.torch.tensor(array, device="cuda")

    def host(self, array):
        return array.cpu().numpy()

    def kind(self):
        return self.torch.Tensor


class WithCuPy:
    def setUp(self):
        self.cupy = library("cupy")

    def device(self, array):
        return self.cupy.asarray(array)

    def host(self, array):
        return self.cupy.asnumpy(array)

    def kind(self):
        return self.cupy.ndarray


class WithJax:
    def setUp(self):
        self.jax = library("jax")

    def device(self, array):
        return self.jax.numpy.asarray(array)  # float32 unless JAX is told otherwise

    def host(self, array):
        return np.asarray(array)

    def kind(self):
        return self.jax.Array


class _Protocol:
    """An array that shows one protocol and nothing else."""

    def __init__(self, array):
        self._array = array


class _Interface(_Protocol):
    @property
    def __cuda_array_interface__(self):
        return self._array.__cuda_array_interface__


class _DLPack(_Protocol):
    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__(stream=stream)


class WithInterface(WithCuPy):
    def device(self, array):
        return _Interface(self.cupy.asarray(array))


class WithDLPack(WithCuPy):
    def device(self, array):
        return _DLPack(self.cupy.asarray(array))


class Arrays:
    """What holds with any of the libraries. All in single precision, which JAX has by default."""

    # an accuracy of 1e-4 twice, and of a system that is not quite the one measured
    ERROR = 3e-4

    def data(self, edge=6):
        x, q = melt(edge)
        return x.astype(np.float32), q.astype(np.float32)

    def close(self, found, exact):
        self.assertLess(rms_error(self.host(found).astype(float), exact), self.ERROR)

    def test_a_step_is_that_of_host_arrays(self):
        x, q = self.data()
        exact = gmxfmm.solve(x.astype(float), q.astype(float), 6, accuracy=1e-6, virial=True)
        with gmxfmm.Plan(self.device(x), self.device(q), 6, accuracy=1e-4) as plan:
            self.assertLessEqual(plan.measured_error, 1e-4)
            step = plan.step(self.device(x), potential=True, field=True, virial=True)
            step.check()
            self.assertIsInstance(step.forces, self.kind())
            for name in ("forces", "potential", "field"):
                self.close(getattr(step, name), getattr(exact, name))
            self.assertAlmostEqual(float(step.energy), exact.energy, delta=1e-4 * abs(exact.energy))
            virial = step.virial if isinstance(step.virial, np.ndarray) else self.host(step.virial)
            np.testing.assert_allclose(virial, exact.virial, rtol=0, atol=1e-3 * abs(exact.energy))
            host = plan.step(x)
            self.assertIsInstance(host.forces, np.ndarray)
            # the same plan and numbers, but for which assignment: sums in another order
            np.testing.assert_allclose(self.host(step.forces), host.forces, rtol=0, atol=1e-5 * np.abs(host.forces).max())

    def test_parts_of_a_step_give_what_one_device_does(self):
        x, q = self.data()
        forces = []
        for devices in ((0,), (0, 0)):
            with gmxfmm.Plan(self.device(x), self.device(q), 6, measure=False, devices=devices) as plan:
                step = plan.step(self.device(x))
                step.check()
                self.assertEqual(plan.info.num_devices, len(devices))
                forces.append(self.host(step.forces))
        np.testing.assert_array_equal(*forces)

    def test_charges_box_and_assignment_follow(self):
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, accuracy=1e-4, assign_every=3) as plan:
            memory = []
            for k in range(8):
                box, charges = 6 + 0.02 * k, (q * (1 + 0.01 * k)).astype(np.float32)
                now = (x * (box / 6)).astype(np.float32)
                plan.set_box(box)
                plan.set_charges(self.device(charges))
                step = plan.step(self.device(now))
                step.check()
                memory.append(plan.info.bytes)
                self.close(step.forces, gmxfmm.solve(now.astype(float), charges.astype(float), box, accuracy=1e-6).forces)
            self.assertEqual(memory[2], memory[-1])

    def test_derivatives_by_charges(self):
        x, q = self.data()
        parameters = [([0, 3], [1, -0.5]), ([], []), (np.arange(len(q)), np.linspace(-1, 1, len(q)))]
        with gmxfmm.Plan(self.device(x), self.device(q), 6, accuracy=1e-4) as plan:
            self.assertIn("charge_gradient", plan.capabilities)
            plan.set_charge_derivatives(parameters)
            step = plan.step(self.device(x), potential=True, charge_gradient=True)
            step.check()
            potential, slope = self.host(step.potential).astype(float), step.charge_gradient
            slope = slope if isinstance(slope, np.ndarray) else self.host(slope)
            self.assertEqual(slope.dtype, np.float64)
            for k, (which, by) in enumerate(parameters):
                parts = potential[np.array(which, int)] * by
                self.assertAlmostEqual(slope[k], parts.sum(), delta=1e-6 * np.abs(parts).sum() + 1e-12)  # a float's rounding
            host = plan.step(x, charge_gradient=True).charge_gradient
            np.testing.assert_allclose(host, slope, rtol=1e-4, atol=1e-5 * np.abs(slope).max())

    def test_a_box_of_quite_another_shape_is_assigned(self):
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, accuracy=1e-4, assign_every=100) as plan:
            plan.step(self.device(x))
            box = np.diag([6.0, 6.0, 9.0])
            now = (x * (1, 1, 1.5)).astype(np.float32)
            plan.set_box(box)
            self.close(plan.step(self.device(now)).forces, gmxfmm.solve(now.astype(float), q.astype(float), box, accuracy=1e-6).forces)
            plan.set_charges(self.device(2 * q))
            plan.choose()  # fetches charges and positions
            self.assertLessEqual(plan.measured_error, 1e-4)

    def test_exclusions_targets_open_and_treecode(self):
        x, q = (array.astype(np.float32) for array in cloud(500))
        phi, field = direct(x.astype(float), q.astype(float), excluded=[(0, 1)])
        with gmxfmm.Plan(self.device(x), self.device(q), exclusions=[(0, 1)], accuracy=1e-4) as plan:
            self.close(plan.step(self.device(x)).forces, q[:, None] * field)
        phi, field = direct(x.astype(float), q.astype(float))
        with gmxfmm.Plan(self.device(x[1:]), self.device(q[1:]), targets=self.device(x[:1]), accuracy=1e-4) as plan:
            step = plan.step(self.device(x[1:]))
            self.assertAlmostEqual(float(self.host(step.potential)[0]), phi[0], delta=1e-3 * abs(phi[0]))
        with gmxfmm.Plan(self.device(x), self.device(q), method="treecode", theta=0.5, degree=6) as plan:
            self.close(plan.step(self.device(x), potential=True).potential, phi)

    def test_solve(self):
        x, q = self.data()
        result = gmxfmm.solve(self.device(x), self.device(q), 6, accuracy=1e-4)
        self.assertIsInstance(result.forces, self.kind())
        self.assertEqual(result.info.precision, "single")
        self.close(result.forces, gmxfmm.solve(x.astype(float), q.astype(float), 6, accuracy=1e-6).forces)

    def test_copies(self):
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, accuracy=1e-4) as plan:
            step = plan.step(self.device(x))
            plan.set_charges(self.device((2 * q).astype(np.float32)))
            for way in (copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))):
                kept = way(step)
                kept.check()
                np.testing.assert_array_equal(self.host(kept.forces), self.host(step.forces))
                self.assertEqual(float(kept.energy), float(step.energy))
                with way(plan) as other:
                    self.close(other.step(self.device(x)).forces, 4 * self.host(step.forces))

    def test_what_is_wrong_with_the_data_is_found_by_check(self):
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, measure=False) as plan:
            bad = x.copy()
            bad[7] = bad[8]
            with self.assertRaisesRegex(gmxfmm.Error, "one place"):
                plan.step(self.device(bad)).check()
            bad[7] = np.nan
            with self.assertRaises(gmxfmm.Error) as caught:
                plan.step(self.device(bad)).check()
            self.assertEqual(caught.exception.argument, "positions")
            plan.step(self.device(x)).check()
            with self.assertRaises(gmxfmm.Error) as caught:
                plan.set_charges(self.device(np.full_like(q, np.nan)))
                plan.step(self.device(x)).check()
            self.assertEqual(caught.exception.argument, "charges")

    def test_arguments_are_named(self):
        x, q = self.data()
        plan = gmxfmm.Plan(self.device(x), self.device(q), 6, measure=False)
        on_host = gmxfmm.Plan(x, q, 6, measure=False)
        for argument, text, call in (
            ("positions", "216 x 3", lambda: plan.step(self.device(x[1:]))),
            ("positions", "float32", lambda: plan.step(self.device(np.rint(x).astype(np.int32)))),
            ("positions", "plan is of the CPU", lambda: on_host.step(self.device(x))),
            ("device", "leave it out", lambda: gmxfmm.Plan(self.device(x), self.device(q), 6, device="cpu")),
            ("charges", "n", lambda: plan.set_charges(self.device(x))),
        ):
            with self.subTest(argument=argument, text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                call()
            self.assertEqual(caught.exception.argument, argument, str(caught.exception))

    def test_batches(self):
        systems = [melt(4, seed)[0].astype(np.float32) for seed in range(4)]
        q = melt(4)[1].astype(np.float32)
        x, charges = np.array(systems), np.array([q * (1 + 0.1 * s) for s in range(4)], dtype=np.float32)
        boxes = np.array([np.eye(3) * (4 + 0.05 * s) for s in range(4)])
        with gmxfmm.Batch(accuracy=1e-4) as batch:
            for _ in range(2):
                step = batch.step(self.device(x), self.device(charges), boxes, potential=True, virial=True)
                step.check()
            self.assertEqual(len(batch.plans), 1)
            energies = step.energy if isinstance(step.energy, np.ndarray) else self.host(step.energy)
            for s in range(4):
                exact = gmxfmm.solve(x[s].astype(float), charges[s].astype(float), boxes[s], accuracy=1e-6)
                self.close(step.forces[s], exact.forces)
                self.close(step.potential[s], exact.potential)
                self.assertAlmostEqual(energies[s], exact.energy, delta=1e-3 * abs(exact.energy))
            flat = batch.step(self.device(x.reshape(-1, 3)), self.device(charges.reshape(-1)), boxes[:3], (0, 64, 192, 256))
            flat.check()
            self.assertEqual(len(batch.plans), 2)
            bad = x.copy()
            bad[2] = 0
            with self.assertRaisesRegex(gmxfmm.Error, "system 2"):
                batch.step(self.device(bad), self.device(charges), boxes).check()


    def test_batches_of_many_kinds(self):
        """Systems that no plan was measured on have the accuracy, or a plan of their own: how many need one depends on the settings chosen."""
        x, q = mixture()
        for box in (4.0, None):
            with self.subTest(box=box), gmxfmm.Batch(accuracy=1e-3) as batch:
                for _ in range(2):
                    step = batch.step(self.device(x), self.device(q), box)
                    step.check()
                assert_accurate(self, [self.host(step.forces[s]) for s in range(len(x))], x, q, box, 1e-3)


class ArraysWritten(Arrays):
    """What holds with arrays that may be written to."""

    def test_out(self):
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, accuracy=1e-4) as plan:
            first = plan.step(self.device(x))
            forces, energy = self.host(first.forces).copy(), float(first.energy)
            self.assertIs(plan.step(self.device(-x), first), first)
            self.assertGreater(np.abs(self.host(first.forces) - forces).max(), 0.1 * np.abs(forces).max())
            mine = plan.step(self.device(x)).forces
            self.assertIs(plan.step(self.device(x), {"forces": mine}).forces, mine)
            np.testing.assert_allclose(self.host(mine), forces, rtol=0, atol=1e-5 * np.abs(forces).max())
            self.assertAlmostEqual(float(plan.step(self.device(x), first).energy), energy, delta=1e-5 * abs(energy))
            with self.assertRaises(gmxfmm.Error) as caught:
                plan.step(self.device(x), {"forces": mine[1:]})
            self.assertEqual(caught.exception.argument, "out")

    def test_in_double_precision(self):
        x, q = melt(6)
        with gmxfmm.Plan(self.device(x), self.device(q), 6, accuracy=1e-8) as plan:
            self.assertLess(rms_error(self.host(plan.step(self.device(x)).forces), gmxfmm.solve(x, q, 6, accuracy=1e-10).forces), 2e-8)
            with self.assertRaisesRegex(gmxfmm.Error, "float64"):
                plan.step(self.device(x.astype(np.float32)))


@unittest.skipIf(REASON, REASON)
class TorchArrays(WithTorch, ArraysWritten, unittest.TestCase):
    def test_rows_must_follow_each_other(self):
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, measure=False) as plan:
            with self.assertRaisesRegex(gmxfmm.Error, "contiguous"):
                plan.step(self.device(np.ascontiguousarray(x.T)).T)

    def test_the_current_stream(self):
        torch = self.torch
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, accuracy=1e-4) as plan:
            expected = plan.step(self.device(x)).forces.cpu()
            stream = torch.cuda.Stream()
            wrong, right = torch.zeros((216, 3), device="cuda"), self.device(x)
            big = torch.rand((4096, 4096), device="cuda")
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                for _ in range(20):  # work that the positions, and so the step, come behind
                    big = big @ big / 4096
                wrong.copy_(right)
                step = plan.step(wrong)
                doubled = 2 * step.forces
            stream.synchronize()
            step.check()
            # the same assignment twice: the same bits but for the order of sums over tiles
            torch.testing.assert_close(doubled.cpu(), 2 * expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))

    def test_gradients_of_tensors_are_not_followed(self):
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, measure=False) as plan:
            self.assertFalse(plan.step(self.device(x).requires_grad_()).forces.requires_grad)


@unittest.skipIf(REASON, REASON)
class CuPyArrays(WithCuPy, ArraysWritten, unittest.TestCase):
    def test_the_current_stream(self):
        cupy = self.cupy
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, accuracy=1e-4) as plan:
            expected = self.host(plan.step(self.device(x)).forces)
            positions, right = cupy.zeros((216, 3), dtype=cupy.float32), self.device(x)
            big = cupy.random.rand(2048, 2048)
            cupy.cuda.Device().synchronize()
            with cupy.cuda.Stream(non_blocking=True) as stream:
                for _ in range(20):
                    big = big @ big / 2048
                positions[...] = right
                doubled = 2 * plan.step(positions).forces
                stream.synchronize()
            np.testing.assert_allclose(cupy.asnumpy(doubled), 2 * expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@unittest.skipIf(REASON, REASON)
class JaxArrays(WithJax, Arrays, unittest.TestCase):
    def test_arrays_are_never_written_to(self):
        x, q = self.data()
        with gmxfmm.Plan(self.device(x), self.device(q), 6, measure=False) as plan:
            first = plan.step(self.device(x))
            before = np.array(first.forces)
            for out in (first, {"forces": first.forces}):
                with self.assertRaisesRegex(gmxfmm.Error, "JAX"):
                    plan.step(self.device(-x), out)
            plan.step(self.device(-x))
            np.testing.assert_array_equal(np.array(self.jax.numpy.array(first.forces)), before)


@unittest.skipIf(REASON, REASON)
class ArraysWithTheInterface(WithInterface, Arrays, unittest.TestCase):
    pass


@unittest.skipIf(REASON, REASON)
class ArraysWithDLPack(WithDLPack, Arrays, unittest.TestCase):
    pass


@unittest.skipIf(REASON, REASON)
class Differentiated(WithTorch, unittest.TestCase):
    """As test_torch, on the device, whose orders to 20 can be measured to some 4e-8 in the smallest of these systems. Differences of
    energies, from which the gradients of a check come, are a hundred times as exact: the cells stay the same."""

    def test_gradcheck(self):
        from gmxfmm.torch import Coulomb
        x, q = melt(2)
        cell = 2 * (np.eye(3) + 0.05 * np.random.default_rng(1).normal(size=(3, 3)))
        given = [self.device(array).requires_grad_() for array in (x, q * np.linspace(0.5, 1.5, 8), cell)]
        for take in (3, 2):
            self.assertTrue(self.torch.autograd.gradcheck(Coulomb(accuracy=1e-7), given[:take], eps=1e-4, atol=1e-5, rtol=1e-4))

    def test_second_derivatives_and_func(self):
        from gmxfmm.torch import Coulomb
        x, q = cloud(100)
        products, slopes = [], []
        for device in ("cpu", "cuda"):
            function = Coulomb(accuracy=1e-7)
            at, charges = (self.torch.tensor(array, device=device, requires_grad=True) for array in (x, q))
            way = self.torch.tensor(x[::-1].copy(), device=device)
            first, = self.torch.autograd.grad(function(at, charges), at, create_graph=True)
            products.append([one.cpu().numpy() for one in self.torch.autograd.grad((first * way).sum(), (at, charges))])
            slopes.append(self.torch.func.grad(function)(at.detach(), charges.detach()).cpu().numpy())
        for one, other in zip(*products):
            self.assertLess(rms_error(one, other), 3e-7)  # both have an error of 1e-7
        self.assertLess(rms_error(*slopes), 3e-7)

    def test_gradgradcheck(self):
        """Along positions and charges, with a cell of the host that wants no derivatives. PyTorch's differences are of first derivatives in
        the same cells.
        """
        from gmxfmm.torch import Coulomb
        torch, (x, q) = self.torch, melt(2)
        q = q * np.linspace(0.5, 1.5, 8)
        cell = torch.tensor(2 * (np.eye(3) + 0.05 * np.random.default_rng(1).normal(size=(3, 3))))
        systems = [self.device(np.array(pair)).requires_grad_() for pair in ((x, x[::-1] + 0.02), (q, 0.7 * q))]
        alone = [self.device(array).requires_grad_() for array in (x, q)]
        for options in ({}, {"measure": False}):
            for given, cells in itertools.product((alone, systems), ((), (cell,))):
                with self.subTest(options=options, systems=given[1].ndim == 2, periodic=bool(cells)):
                    function = Coulomb(accuracy=1e-7, **options)
                    self.assertTrue(torch.autograd.gradgradcheck(lambda *inputs: function(*inputs, *cells), given, eps=1e-4, atol=1e-4, rtol=1e-4))

    def products(self, function, device, arrays, cell, way, kind, offsets=None):
        """Derivatives of the forces times a vector by positions and charges."""
        torch = self.torch
        at, charges = (torch.tensor(array, device=device, dtype=kind, requires_grad=True) for array in arrays)
        energies = function(at, charges, cell, offsets)
        weight = torch.linspace(0.5, 1.5, energies.numel(), dtype=kind, device=device).reshape(energies.shape)
        first, = torch.autograd.grad((weight * energies).sum(), at, create_graph=True)
        return [one.cpu().numpy().astype(float) for one in torch.autograd.grad((first * torch.tensor(way, device=device, dtype=kind)).sum(), (at, charges))]

    def test_second_derivatives_are_those_of_the_host(self):
        """In boxes and open, of one system, many, and such of two sizes. Both devices ask for 1e-7, or in single precision 1e-4, of the forces,
        over which second derivatives are relatively as large.
        """
        from gmxfmm.torch import Coulomb
        torch, random = self.torch, np.random.default_rng(3)
        cell = torch.tensor(4 * (np.eye(3) + 0.05 * random.normal(size=(3, 3))))
        (x, q), (other, charges) = melt(4), melt(4, 2)
        sizes = (np.concatenate([x, other[:48]]), np.concatenate([q, charges[:48]]))
        for arrays, offsets in (((x, q), None), ((np.array([x, other]), np.array([q, 2 * q])), None), (sizes, (0, 64, 112))):
            way = random.normal(size=arrays[0].shape)
            for cells, (accuracy, kind) in itertools.product((None, cell), ((1e-7, torch.float64), (1e-4, torch.float32))):
                with self.subTest(shape=way.shape, periodic=cells is not None, kind=kind):
                    found, expected = (self.products(Coulomb(accuracy=a), device, arrays, cells, way, of, offsets)
                                       for device, a, of in (("cuda", accuracy, kind), ("cpu", 1e-9, torch.float64)))
                    for one, exact in zip(found, expected):
                        self.assertLess(np.linalg.norm(one - exact), 5 * accuracy * np.linalg.norm(exact))

    def test_second_derivatives_are_not_waited_for(self):
        from gmxfmm.torch import Coulomb
        torch, (x, q) = self.torch, melt(6)
        at, charges, way = (torch.tensor(array, device="cuda", dtype=torch.float32) for array in (x, q, x[::-1].copy()))
        at.requires_grad_()
        charges.requires_grad_()
        cell, function = 6 * torch.eye(3, dtype=torch.float64), Coulomb(measure=False)

        def second():
            first, = torch.autograd.grad(function(at, charges, cell), at, create_graph=True)
            return torch.autograd.grad((first * way).sum(), (at, charges))

        before = [second() for _ in range(3)]
        torch.cuda.synchronize()
        torch.cuda._sleep(2 * 10**9)  # a second
        awake = torch.cuda.Event()
        awake.record()
        after = second()
        self.assertFalse(awake.query())
        for one, other in zip(after, before[-1]):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))

    def test_second_derivatives_of_plans_without_dipoles(self):
        """The treecode's are differences, on the host."""
        from gmxfmm.torch import Coulomb
        arrays = cloud(200)
        way = arrays[0][::-1].copy()
        found, exact = (self.products(Coulomb(**options), device, arrays, None, way, self.torch.float64)
                        for options, device in (({"method": "treecode", "accuracy": 1e-6}, "cuda"), ({"accuracy": 1e-9}, "cpu")))
        for one, other in zip(found, exact):
            self.assertLess(np.linalg.norm(one - other), 1e-3 * np.linalg.norm(other))

    def test_dipoles_and_their_second_derivatives(self):
        """Both devices ask for 1e-7 of the RMS force or torque; where dipoles move, a second derivative is a difference of these."""
        from gmxfmm.torch import Coulomb
        random = np.random.default_rng(7)
        for cell in (None, 4 * (np.eye(3) + 0.05 * random.normal(size=(3, 3)))):
            x, q = cloud(100) if cell is None else melt(4)
            mu = random.normal(0, 0.03, x.shape)
            given = (x, q, mu) if cell is None else (x, q, mu, cell)
            ways = [random.normal(size=array.shape) for array in given]
            found = []
            for device in ("cpu", "cuda"):
                function = Coulomb(accuracy=1e-7)
                inputs = [self.torch.tensor(array, device=device, requires_grad=True) for array in given]
                energy = function(*inputs[:2], *inputs[3:], dipoles=inputs[2])
                first = self.torch.autograd.grad(energy, inputs, create_graph=True)
                along = sum((one * self.torch.tensor(way, device=device)).sum() for one, way in zip(first[:2], ways))
                second = self.torch.autograd.grad(along, inputs)
                self.assertEqual({one.device.type for one in (*first, *second)}, {device})
                found.append([one.detach().cpu().numpy() for one in (*first, *second)])
            for number, (one, other) in enumerate(zip(*found)):
                with self.subTest(periodic=cell is not None, number=number):
                    self.assertLess(np.linalg.norm(one - other), 1e-6 * np.linalg.norm(other))

    def test_checks_where_arrays_are(self):
        """Errors that a batch finds on the device, of the first of a kind and then of one in eight, are those of its forces."""
        torch, random = self.torch, np.random.default_rng(8)
        box = 4 * (np.eye(3) + 0.05 * random.normal(size=(3, 3)))
        for kind, cell in itertools.product((torch.float32, torch.float64), (None, box)):
            x, q = cloud(1000) if cell is None else melt(4)
            found, exact = [], gmxfmm.Plan(x, q, cell, accuracy=1e-8)
            errors_of = _check.errors_of

            def spied(*arguments):
                found.append(errors_of(*arguments))
                return found[-1]

            with self.subTest(kind=kind, periodic=cell is not None), gmxfmm.Batch(accuracy=1e-3) as batch, \
                    mock.patch.object(_check, "errors_of", spied):
                errors = []
                for _ in range(24):
                    moved = x + random.normal(0, 0.01, x.shape)
                    at, charges = (torch.tensor(array[None], device="cuda", dtype=kind) for array in (moved, q))
                    forces = batch.step(at, charges, cell).forces[0].cpu().numpy().astype(float)
                    errors.append(rms_error(forces, exact.step(moved, assign=True).forces))
                self.assertEqual(len(batch.plans), 1)
                self.assertGreaterEqual(len(found), 5)  # the first three, and of others one in eight or, where there is doubt, more
                self.assertLess(max(errors), 1e-3)
                for one in found:  # a sample's error has a margin, and cells elsewhere may be better or worse ones
                    self.assertTrue(0.3 * min(errors) < one[0] < 3 * max(errors), f"{one} {errors}")

    def test_many_systems_and_a_cell_of_the_host(self):
        from gmxfmm.torch import Coulomb
        torch, (x, q) = self.torch, melt(2)
        given = (torch.tensor(np.array([x, x + 0.1]), device="cuda", requires_grad=True),
                 torch.tensor(np.array([q, 2 * q]), device="cuda", requires_grad=True), torch.tensor(2.1 * np.eye(3), requires_grad=True))
        function, weight = Coulomb(accuracy=1e-8), torch.tensor([1.0, -0.5], dtype=torch.float64, device="cuda")
        energies = function(*given)
        self.assertEqual((energies.device.type, energies.shape), ("cuda", (2,)))
        (energies @ weight).backward()
        self.assertEqual((given[0].grad.device.type, given[2].grad.device.type), ("cuda", "cpu"))
        host = [tensor.detach().cpu().requires_grad_() for tensor in given]
        (Coulomb(accuracy=1e-10)(*host) @ weight.cpu()).backward()
        for mine, theirs in zip(given, host):
            torch.testing.assert_close(mine.grad.cpu(), theirs.grad, rtol=1e-6, atol=1e-6)  # the device asks for 1e-8 of the forces


@unittest.skipIf(REASON, REASON)
class DifferentiatedByJax(unittest.TestCase):
    """The function of JAX on the device, against that on the CPU."""

    def setUp(self):
        self.jax = library("jax")
        self.gpu, self.host = self.jax.devices()[0], self.jax.devices("cpu")[0]
        before = self.jax.config.jax_enable_x64
        self.jax.config.update("jax_enable_x64", True)
        self.addCleanup(self.jax.config.update, "jax_enable_x64", before)

    def results(self, called, by, ways, **keywords):
        """Energies, slopes, and products of second derivatives with ways."""
        jax = self.jax

        def energy(*given):
            return called(*given, **keywords).sum()

        def product(*given):
            return sum(jax.numpy.vdot(slope, way) for slope, way in zip(jax.grad(energy, by)(*given), ways))

        return lambda *given: (*jax.value_and_grad(energy, by)(*given), jax.grad(product, by)(*given))

    def compare(self, *given, accuracy=1e-8, kind=np.float64, by=(0, 1), most=1e-6, **keywords):
        from gmxfmm.jax import Coulomb
        ways = [np.random.default_rng(5).normal(size=np.shape(given[k])) for k in by]
        expected = self.results(Coulomb(accuracy=1e-9), by, ways, **keywords)(*(self.jax.device_put(one, self.host) for one in given))
        function = self.results(Coulomb(accuracy=accuracy), by, ways, **keywords)
        for program in (function, self.jax.jit(function)):
            found = program(*(self.jax.device_put(one.astype(kind), self.gpu) for one in given))
            for one, other in zip(self.jax.tree_util.tree_leaves(found), self.jax.tree_util.tree_leaves(expected)):
                self.assertEqual({device.platform for device in one.devices()}, {"gpu"})
                self.assertLess(np.linalg.norm(np.asarray(one) - np.asarray(other)), most * np.linalg.norm(other))

    def test_is_that_of_the_host(self):
        x, q = melt(4)
        cell = 4 * (np.eye(3) + 0.05 * np.random.default_rng(1).normal(size=(3, 3)))
        self.compare(x, q, cell)
        self.compare(x, q)
        self.compare(x, q, cell, by=(0, 1, 2))
        self.compare(x, q, cell, kind=np.float32, accuracy=1e-4, most=1e-3)
        self.compare(np.array([x, x + 0.1]), np.array([q, 2 * q]), cell)
        # 48 of 64 ions leave a hole, where errors of 1e-8 cannot be measured
        self.compare(np.concatenate([x, x[:48]]), np.concatenate([q, q[:48]]), cell, offsets=(0, 64, 112), accuracy=1e-7, most=1e-5)
        self.compare(x, q, cell, dipoles=np.random.default_rng(2).normal(0, 0.1, x.shape), accuracy=1e-7, most=1e-5)

    def test_arrays_stay(self):
        """With a cell that is a constant nothing is copied, and with an accuracy sums of a known kind."""
        from gmxfmm import _arrays, jax as function
        jax, (x, q) = self.jax, melt(8)
        for options, most in (({"measure": False}, 0), ({"accuracy": 1e-3}, 500)):
            called, copied = function.Coulomb(**options), []
            at, charges = (jax.device_put(one, self.gpu) for one in (x, q))
            program = jax.jit(lambda x, q: jax.grad(lambda x: jax.numpy.sum(jax.grad(called)(x, q, 8 * np.eye(3)) ** 2))(x))
            for _ in range(40):
                jax.block_until_ready(program(at, charges))
            real = _arrays.fetch

            def fetch(pairs):
                copied.append(sum(array.nbytes for _, array in pairs))
                real(pairs)

            with mock.patch.object(_arrays, "fetch", fetch), mock.patch.object(function, "fetch", fetch), jax.transfer_guard("disallow"):
                sizes = []
                for _ in range(8):  # one in eight is checked
                    copied.clear()
                    jax.block_until_ready(program(at, charges))
                    sizes.append(sum(copied))
            self.assertLessEqual(min(sizes), most, f"{options} {sizes}")


@unittest.skipIf(REASON, REASON)
class HostArrays(unittest.TestCase):
    def test_a_plan_of_the_device_takes_them(self):
        x, q = melt(6)
        exact = gmxfmm.solve(x, q, 6, accuracy=1e-9)
        with gmxfmm.Plan(x, q, 6, accuracy=1e-6, device="cuda") as plan:
            self.assertIn("enqueue", plan.capabilities)
            self.assertLess(rms_error(plan.step(x).forces, exact.forces), 2e-6)
            with self.assertRaisesRegex(gmxfmm.Error, "finite"):
                plan.step(np.full_like(x, np.nan))

    def test_a_batch_on_the_device_takes_them(self):
        x, q = mixture()
        with gmxfmm.Batch(accuracy=1e-3, device="cuda") as batch:
            assert_accurate(self, batch.step(x, q, 4).forces, x, q, 4, 1e-3)


if __name__ == "__main__":
    unittest.main()
