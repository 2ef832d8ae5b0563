# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs of JAX for a GPU, on the CPU: XLA calls the functions that it would call on a GPU. The host's memory stands for that of a device, and plans of
the host for those of one. test_gpu.py has the GPU."""
import ctypes
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace
from unittest import mock

import numpy as np

import gmxfmm
from gmxfmm import _arrays, _batch, _library
from systems import cloud, melt
from test_jax import Case, jax, skew

if jax is not None:
    import jax.numpy as jnp
    import gmxfmm.jax as function
    from gmxfmm import _xla
    from gmxfmm.jax import Coulomb


def memory(address, shape, dtype):
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)


def copies(to_host, log):
    def copy(pairs):
        for view, array in pairs:
            if array.size:
                log.append(array.nbytes)
                there = memory(view.pointer, view.shape, view.dtype)
                (array if to_host else there)[...] = there if to_host else array
    return copy


def enqueue_system(plan, x, q, box, output, what="enqueue"):
    """A plan of the host computes what one of a device would."""
    at, charges = memory(x.pointer, (plan._n, 3), x.dtype), memory(q.pointer, (plan._n,), x.dtype)
    if what == "enqueue_along":
        ways = memory(output.u, at.shape, x.dtype), memory(output.w, charges.shape, x.dtype)
        forces, potential, energies, felt = plan.along_of_systems(at, charges, *ways, np.array([0, plan._n]), None if box is None else box[None])
        found = {"force": forces, "potential": potential, "felt": felt, "energy": energies}
    else:
        plan.set_charges(charges.copy())
        if box is not None:
            plan.set_box(box)
        step = plan.step(at.copy(), potential=True, virial=True, assign=True)
        found = {"force": step.forces, "potential": step.potential, "energy": np.array([step.energy, 0]), "virial": step.virial}
        found["status"] = np.zeros(1, np.intc)
    for name, array in found.items():
        address = getattr(output, name, None)
        if address:
            memory(address, array.shape, np.float64 if name in ("energy", "virial") else np.intc if name == "status" else x.dtype)[...] = array


def plan_of_host(*arguments, device=None, device_id=None, **options):
    return gmxfmm.Plan(*arguments, **options)


@unittest.skipIf(jax is None or jax.__version_info__ < (0, 8), "there is no JAX 0.8 or newer here")
class Programs(Case):
    @classmethod
    def setUpClass(cls):
        if not _xla._dtypes:
            raise AssertionError("the header of XLA is not known")

    def setUp(self):
        super().setUp()
        self.sent, self.fetched = [], []
        patches = ExitStack()
        self.addCleanup(patches.close)
        read = _xla._read
        for where, name, value in (
                (function, "fetch", copies(True, self.fetched)), (_arrays, "fetch", copies(True, self.fetched)), (function, "send", copies(False, self.sent)),
                (function, "wait_for_all", lambda stream: None), (_xla, "device_of", lambda stream: 0), (_xla, "_stream", lambda frame: 7),
                (_xla, "_read", lambda frame, on_device: read(frame, True)), (function, "_has_device", lambda: True), (function, "_has_gpu", lambda: True),
                (function, "_by_place", lambda on_host, of_program, site, arguments: of_program(site, *arguments)),
                (gmxfmm.Plan, "enqueue_system", enqueue_system), (_batch, "Plan", plan_of_host)):
            patches.enter_context(mock.patch.object(where, name, value))

    def compare(self, make, *given, most=1e-9, dipoles=None, offsets=None, by=(0, 1), **options):
        """Values, gradients and products of second derivatives of a program and of what is called back."""
        ways = [np.random.default_rng(5).normal(size=np.shape(given[k])).astype(given[0].dtype) for k in by]

        def results(*arrays):
            called = make(**options)
            energy = lambda *a: called(*a, **({} if offsets is None else {"offsets": offsets}), dipoles=dipoles).sum()  # noqa: E731
            value, slopes = jax.value_and_grad(energy, by)(*arrays)
            products = jax.grad(lambda *a: sum(jnp.vdot(s, w) for s, w in zip(jax.grad(energy, by)(*a), ways)), by)(*arrays)
            return value, slopes, products

        found = jax.jit(results)(*given)
        again = jax.jit(results)(*given)
        eager = results(*given)
        with mock.patch.object(function, "_by_place", lambda on_host, of_program, site, arguments: on_host(*arguments)), \
                mock.patch.object(function, "_has_interface", lambda: False), mock.patch.object(function, "_has_gpu", lambda: False):
            expected = results(*given)
        for one in (found, again, eager):
            for a, b in zip(jax.tree_util.tree_leaves(one), jax.tree_util.tree_leaves(expected), strict=True):
                self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
                np.testing.assert_allclose(a, b, rtol=most, atol=most * max(1, float(np.abs(b).max(initial=0))))

    def test_one_system(self):
        x, q = melt(4)
        for options in ({"measure": False}, {"accuracy": 1e-8}):
            for cell in (None, skew(4)):
                with self.subTest(options=options, periodic=cell is not None):
                    self.compare(Coulomb, x, q, *([] if cell is None else [cell]), **options, most=1e-6)
        self.assertFalse(self.sent)

    def test_cells(self):
        x, q = melt(4)
        self.compare(Coulomb, x, q, skew(4), by=(0, 1, 2), accuracy=1e-8, most=1e-6)

    def test_many_systems(self):
        x, q = np.array([melt(2, seed)[0] for seed in (1, 2)]), np.array([melt(2)[1], 2 * melt(2)[1]])
        self.compare(Coulomb, x, q, np.array([skew(2), 2.05 * np.eye(3)]), accuracy=1e-8, most=1e-6)
        flat = np.concatenate([x[0][:6], x[1]]), np.concatenate([q[0][:6], q[1]])
        self.compare(Coulomb, *flat, skew(2), offsets=(0, 6, 14), accuracy=1e-8, most=1e-6)
        self.compare(Coulomb, *flat, skew(2), offsets=jnp.array([0, 6, 14]), by=(0, 1, 2), accuracy=1e-8, most=1e-6)

    def test_dipoles(self):
        x, q = melt(4)
        mu = np.random.default_rng(2).normal(0, 0.1, x.shape)
        self.compare(Coulomb, x, q, skew(4), dipoles=mu, accuracy=1e-6, most=1e-5)

    def test_single_precision(self):
        x, q = (one.astype(np.float32) for one in melt(4))
        for x64 in (True, False):
            with self.subTest(x64=x64):
                jax.config.update("jax_enable_x64", x64)
                self.compare(Coulomb, x, q, skew(4).astype(np.float32), by=(0, 1, 2), measure=False, most=1e-4)
                self.compare(Coulomb, x, q, skew(4).astype(np.float32), accuracy=1e-4, most=1e-3)

    def test_vmap(self):
        x, q = melt(4)
        called, many = Coulomb(accuracy=1e-8), np.array([x, x + 0.1])
        for cell in (skew(4), None):
            found = jax.jit(jax.vmap(jax.grad(lambda x: called(x, q, cell))))(many)
            for one, slopes in zip(many, found):
                np.testing.assert_allclose(slopes, jax.grad(called)(one, q, cell), atol=1e-6)
        by_cell = jax.jit(jax.vmap(jax.grad(called, 2), (None, None, 0)))(x, q, 4 * np.ones((2, 1, 1)) * np.eye(3))
        np.testing.assert_allclose(by_cell[0], jax.grad(called, 2)(x, q, 4 * np.eye(3)), atol=1e-6)

    def test_forward_mode(self):
        x, q = melt(2)
        called = Coulomb(accuracy=1e-8)
        rows = jax.jit(jax.hessian(lambda x: called(x, q, skew(2))))(x)
        np.testing.assert_allclose(rows, jax.jacrev(jax.grad(called))(x, q, skew(2)), atol=1e-6)

    def test_arrays_stay(self):
        """Once a plan is known to serve, sums and errors alone are copied; without an accuracy nothing is."""
        x, q = cloud(300)
        for options, most in (({"measure": False}, 0), ({"accuracy": 1e-4}, 300)):
            called = Coulomb(**options)
            gradient = jax.jit(jax.value_and_grad(called, (0, 1)))
            product = jax.jit(lambda x, q, way: jax.grad(lambda x: jnp.vdot(jax.grad(called)(x, q), way))(x))
            for _ in range(40):
                jax.block_until_ready((gradient(x, q), product(x, q, x)))
            self.fetched.clear()
            jax.block_until_ready((gradient(x, q), product(x, q, x)))
            self.assertLessEqual(max(self.fetched, default=0), most)
            self.assertFalse(self.sent)

    def test_threads(self):
        """Objects of their own, whose plans are made at the same time, and one of all threads."""
        x, q = melt(4)
        expected = jax.grad(Coulomb(accuracy=1e-8))(x, q, skew(4))
        for objects in ([Coulomb(accuracy=1e-8)] * 3, [Coulomb(accuracy=1e-8) for _ in range(3)]):
            with ThreadPoolExecutor(3) as threads:
                for slopes in threads.map(lambda called: [jax.jit(jax.grad(called))(x, q, skew(4)) for _ in range(4)], objects):
                    np.testing.assert_allclose(slopes, 4 * [expected], atol=1e-6)

    def test_plans_of_a_device_are_made_one_after_the_other(self):
        x, q = melt(4)
        busy, together, real = [], [], plan_of_host

        def plan(*arguments, **options):
            busy.append(0)
            together.append(len(busy))
            time.sleep(0.02)
            made = real(*arguments, **options)
            busy.pop()
            return made

        with mock.patch.object(_batch, "Plan", plan), ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda called: jax.block_until_ready(jax.jit(called)(x, q, skew(4))), [Coulomb(measure=False) for _ in range(4)]))
        self.assertEqual(together, 4 * [1])

    def test_what_fails_is_told(self):
        x, q = melt(4)
        with self.assertRaisesRegex(Exception, "offsets: they go from"):
            jax.block_until_ready(jax.jit(Coulomb(measure=False))(x, q, None, jnp.array([0, 60])))


@unittest.skipIf(jax is None or jax.__version_info__ < (0, 8), "there is no JAX 0.8 or newer here")
class Places(Case):
    """What is called where JAX has a GPU, its default, beside the CPU."""

    def setUp(self):
        super().setUp()
        real = function._devices
        default = [SimpleNamespace(platform="gpu")], False
        patches = ExitStack()
        self.addCleanup(patches.close)
        for name, value in (("_devices", lambda arrays: real(arrays) if real(arrays)[1] else default), ("_has_gpu", lambda: True)):
            patches.enter_context(mock.patch.object(function, name, value))

    def place(self, *arrays):
        site = function._Site("", False, (1, 1, 1), function._Held())
        return function._by_place(lambda *_: "host", lambda site, *_: "host" if site.on_host else "device", site, arrays)

    def test_arrays_that_are_committed_decide(self):
        free, host = jnp.ones(3), jax.device_put(jnp.ones(3), jax.devices("cpu")[0])
        for arrays, expected in (((free, None, free), "device"), ((free, None, host), "host"), ((host, free), "host"), ((host, host), "host"),
                                 ((np.ones(3), host), "host"), ((np.ones(3), np.ones(3)), "device")):
            self.assertEqual(self.place(*arrays), expected)
        self.assertEqual([jax.vmap(lambda one: self.called(one, free))(one)[0] for one in (free, host)], [1, 0])

    def called(self, *arrays):
        return jnp.ones(()) if self.place(*arrays) == "device" else jnp.zeros(())

    def test_arrays_of_the_host_stay_there(self):
        """Also where constants and zeros are where JAX makes them, and none of these functions is for the GPU."""
        x, q = melt(2)
        given = [jax.device_put(one, jax.devices("cpu")[0]) for one in (x, q, skew(2))]
        called = Coulomb(accuracy=1e-8)

        def products(*given):
            return jax.grad(lambda *a: jnp.vdot(jax.grad(called)(*a), np.ones(a[0].shape)), (0, 1, 2))(*given)

        of_device = mock.Mock(side_effect=AssertionError("of the device"))
        patches = [mock.patch.object(function, name, lambda by, site, *rest, real=real: (real if site.on_host else of_device)(by, site, *rest))
                   for name, real in (("_energies_of_program", function._energies_of_program), ("_second_of_program", function._second_of_program))]
        with patches[0], patches[1]:
            found = products(*given)
            many = jax.vmap(lambda x: jax.grad(called)(x, *given[1:]))(jnp.stack([given[0], given[0]]))
        self.assertTrue(all(one.committed for one in found))
        with mock.patch.object(function, "_has_interface", lambda: False), mock.patch.object(function, "_has_gpu", lambda: False):
            self.hold(found, products(*given))
            self.hold(many[1], jax.grad(called)(*given))
