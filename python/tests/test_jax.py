# SPDX-License-Identifier: LGPL-2.1-or-later
"""The function of JAX, on the CPU: derivatives against differences and sums over pairs, transforms, errors."""
import copy
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np

import gmxfmm
from systems import cloud, direct, melt, rms_error

try:
    import jax
except ImportError:
    jax = None
else:
    import jax.numpy as jnp
    from gmxfmm.jax import Coulomb, _has_interface, coulomb


def skew(edge):
    """Vectors of a box without right angles."""
    return edge * (np.eye(3) + 0.05 * np.random.default_rng(1).normal(size=(3, 3)))


@unittest.skipIf(jax is None, "there is no JAX here")
class Case(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(3)
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        self.addCleanup(jax.config.update, "jax_enable_x64", before)

    def hold(self, found, expected, most=1e-9):
        """The same to rounding, as of the same plan."""
        for one, other in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=most, atol=most)


    def told(self):
        """JAX logs what fails where it calls back."""
        return nullcontext() if _has_interface() else self.assertLogs("jax._src.callback")


class Derivatives(Case):
    def by_differences(self, function, *arrays):
        """Central differences of a step h have an error of h^2 / 6 times a third derivative, which is some ten here. The energies' own, 1e-10
        of them, comes over h. Both together are some 1e-6.
        """
        slopes = jax.grad(function, tuple(range(len(arrays))))(*arrays)
        for k, (array, slope) in enumerate(zip(arrays, slopes)):
            way = self.random.normal(size=array.shape)
            sides = [function(*(one + sign * 1e-4 * way if i == k else one for i, one in enumerate(arrays))) for sign in (1, -1)]
            self.assertAlmostEqual(float(jnp.vdot(slope, way)), float(sides[0] - sides[1]) / 2e-4, delta=1e-4, msg=f"argument {k}")

    def test_against_differences(self):
        x, q = melt(2)
        q *= np.linspace(0.5, 1.5, 8)
        images = self.random.integers(-2, 3, (8, 3))
        for given, options in (((x, q, skew(2)), {}), ((x + images @ skew(2), q, skew(2)), {}), ((x, q), {"prefactor": 3}),
                               ((x, q - q.mean(), skew(2)), {"exclusions": [(0, 1)], "boundary": "vacuum"}),
                               ((x, q, skew(2)), {"periodic": (1, 1, 0)}), ((x, q - q.mean(), skew(2)), {"periodic": (0, 0, 1)})):
            with self.subTest(options=options, arrays=len(given)):
                self.by_differences(Coulomb(accuracy=1e-10, **options), *given)

    def test_of_many_systems(self):
        x, q = np.array([melt(2, seed)[0] for seed in (1, 2)]), np.array([melt(2)[1], 2 * melt(2)[1]])
        cells, weight, function = np.array([skew(2), 2.05 * np.eye(3)]), np.array([1.0, -0.5]), Coulomb(accuracy=1e-10)
        self.by_differences(lambda *given: function(*given) @ weight, x, q, cells)
        self.by_differences(lambda *given: function(*given) @ weight, x, q, skew(2))
        flat = np.concatenate([x[0][:6], x[1]]), np.concatenate([q[0][:6], q[1]]), cells
        self.by_differences(lambda *given: function(*given, (0, 6, 14)) @ weight, *flat)
        self.by_differences(lambda *given: jax.jit(function)(*given, jnp.array([0, 6, 14])) @ weight, *flat)

    def test_open_and_periodic_ones(self):
        x, q = melt(4)
        cells = np.array([4 * np.eye(3), np.zeros((3, 3))])
        function = Coulomb(accuracy=1e-8)
        energy, slope = jax.value_and_grad(lambda cells: function(np.array([x, x]), np.array([q, q]), cells).sum())(cells)
        self.assertAlmostEqual(float(energy), float(function(x, q, cells[0]) + function(x, q)), delta=1e-6)
        self.assertEqual(float(abs(slope[1]).max()), 0)
        self.hold(slope[0], jax.grad(function, 2)(x, q, cells[0]))

    def test_types(self):
        """Forces and potentials of a cloud in either type; without 64 bits all arrays are float32."""
        x, q = cloud(300)
        phi, field = direct(x, q)
        for x64, given, dtype, accuracy in ((True, np.float64, "float64", 1e-8), (True, np.float32, "float32", 1e-4), (False, np.float64, "float32", 1e-4)):
            jax.config.update("jax_enable_x64", x64)
            energy, slopes = jax.jit(jax.value_and_grad(Coulomb(accuracy=accuracy), (0, 1)))(x.astype(given), q.astype(given))
            self.assertEqual([str(one.dtype) for one in (energy, *slopes)], 3 * [dtype])
            # ten times: an accuracy is of systems of many cells
            self.assertLess(rms_error(-np.asarray(slopes[0], float), q[:, None] * field), 10 * accuracy)
            self.assertLess(rms_error(np.asarray(slopes[1], float), phi), 10 * accuracy)

    def test_only_what_is_wanted_is_computed(self):
        function = Coulomb(measure=False)
        asked = []
        real = function.batch.step

        def step(*arguments, **wanted):
            asked.append((wanted["forces"], wanted["potential"], wanted["virial"]))
            return real(*arguments, **wanted)

        function.batch.step = step
        x, q = melt(4)
        function(x, q, 4 * np.eye(3))
        jax.grad(function, 1)(x, q, 4 * np.eye(3))
        jax.jit(jax.grad(function))(x, q, 4 * np.eye(3))
        jax.vmap(jax.grad(function, 2), (None, None, 0))(x, q, 4 * np.ones((2, 1, 1)) * np.eye(3))
        self.assertEqual(asked, [(False, False, False), (False, True, False), (True, False, False), (True, False, True)])


def sum_over_pairs(x, q):
    i, j = np.triu_indices(len(x), 1)
    return (q[i] * q[j] / jnp.linalg.norm(x[i] - x[j], axis=1)).sum()


class SecondDerivatives(Case):
    """What JAX makes of them. test_second.py has how exact they are."""

    def products(self, function, *arrays):
        """Derivatives of the energy's square, so that its own derivatives are in them, and of a product of its slopes with ways."""
        ways = [np.random.default_rng(5).normal(size=np.shape(one)) for one in arrays]

        def loss(*at):
            energy, slopes = jax.value_and_grad(function, tuple(range(len(at))))(*at)
            return 1e-3 * energy**2 + sum((slope * way).sum() for slope, way in zip(slopes, ways))

        return loss, jax.jit(jax.grad(loss, tuple(range(len(arrays)))))(*arrays)

    def test_are_those_of_the_sum_over_pairs(self):
        x, q = cloud(60)
        exact = self.products(sum_over_pairs, x, q)[1]
        for accuracy, dtype in ((1e-4, np.float64), (1e-6, np.float64), (1e-10, np.float64), (1e-4, np.float32)):
            found = self.products(Coulomb(accuracy=accuracy), x.astype(dtype), q.astype(dtype))[1]
            for one, other in zip(found, exact):
                self.assertEqual(one.dtype, dtype)
                self.assertLess(rms_error(np.asarray(one, float), np.asarray(other)), accuracy + 1e-7)

    def test_of_boxes(self):
        """Against differences of first derivatives, in all inputs."""
        x, q = melt(4)
        for options in ({}, {"periodic": (1, 1, 0)}):
            given = [x, q, skew(4)]
            loss, found = self.products(Coulomb(accuracy=1e-10, **options), *given)
            for k, one in enumerate(found):
                way = self.random.normal(size=one.shape)
                sides = [loss(*(array + sign * 3e-4 * way if i == k else array for i, array in enumerate(given))) for sign in (1, -1)]
                # the step squared times third derivatives, some hundred, and 1e-10 of the forces over the step
                self.assertAlmostEqual(float((one * way).sum() / (sides[0] - sides[1]) * 6e-4), 1, delta=1e-4, msg=f"{options} {k}")

    def test_hessian(self):
        """By charges it is the matrix of potentials, whose rows are those of single charges."""
        x, q = (array[:6] for array in cloud(60))
        function = Coulomb(accuracy=1e-8)
        d = np.linalg.norm(x[:, None] - x, axis=2) + np.diag(np.full(6, np.inf))
        # 1e-8 of potentials of some ten
        np.testing.assert_allclose(jax.jacrev(jax.grad(function, 1), 1)(x, q), 1 / d, rtol=0, atol=1e-6)
        np.testing.assert_allclose(jax.jit(jax.jacrev(jax.grad(function, 1), 1))(x, q), 1 / d, rtol=0, atol=1e-6)

    def test_of_many_systems(self):
        x, q = cloud(80)
        ends = (0, 60, 80)
        function = Coulomb(accuracy=1e-9)
        expected = self.products(lambda x, q: sum(sum_over_pairs(x[a:b], q[a:b]) for a, b in zip(ends, ends[1:])), x, q)[1]
        for one, other in zip(self.products(lambda x, q: function(x, q, None, ends).sum(), x, q)[1], expected):
            self.assertLess(rms_error(np.asarray(one), np.asarray(other)), 1e-7)

    def test_are_symmetric(self):
        """To rounding at a low accuracy: they are derivatives of what is computed. That of the cell by itself is by differences."""
        x, q = melt(2)
        function = Coulomb(accuracy=1e-3, reproducible=1)
        parts = jax.jit(jax.jacrev(jax.grad(function, (0, 1, 2)), (0, 1, 2)))(x, q, skew(2))
        found = np.block([[np.reshape(part, (rows, -1)) for part in of] for of, rows in zip(parts, (24, 8, 9))])
        largest = np.abs(found).max()
        np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-9 * largest)
        np.testing.assert_allclose(found[:32, :32], found[:32, :32].T, rtol=0, atol=1e-13 * largest)

    def test_of_cells_are_computed_where_wanted(self):
        x, q = melt(4)
        function, asked = Coulomb(accuracy=1e-3), []
        real = function.batch.mixed
        function.batch.mixed = lambda *given: asked.append(given[6]) or real(*given)
        loss = lambda *given: (jax.grad(function)(*given) ** 2).sum()
        for of in ((0,), (0, 1), (2,)):
            jax.jit(jax.grad(loss, of))(x, q, 4 * np.eye(3))
        self.assertEqual(asked, [False, False, True])

    def test_forward_mode(self):
        """Slopes along ways, and second derivatives in each order of the modes, one by one and of many systems."""
        x, q = melt(2)
        mu = self.random.normal(0, 0.1, x.shape)
        called = Coulomb(accuracy=1e-10)
        for function, given, by in ((lambda x, q, cell: called(x, q, cell), (x, q, skew(2)), (0, 1, 2)),
                                    (lambda x, q, mu: called(x, q, skew(2), dipoles=mu), (x, q, mu), (1, 2)),
                                    (lambda x, q: called(jnp.concatenate([x, x]), jnp.concatenate([q, 2 * q]), skew(2), (0, 8, 16))[1], (x, q), (0, 1))):
            ways = tuple(self.random.normal(size=one.shape) if k in by else np.zeros(one.shape) for k, one in enumerate(given))
            with self.subTest(by=by, arrays=len(given)):
                slopes = jax.grad(function, by)(*given)
                along = jax.jvp(function, given, ways)[1]
                self.hold(along, sum(jnp.vdot(slope, ways[k]) for slope, k in zip(slopes, by)))
                self.hold(jax.jvp(jax.grad(function, by), given, ways)[1],
                          jax.grad(lambda *at: sum(jnp.vdot(s, ways[k]) for s, k in zip(jax.grad(function, by)(*at), by)), by)(*given), 1e-6)
                self.hold(jax.grad(lambda *at: jax.jvp(function, at, ways)[1], by)(*given), jax.jvp(jax.grad(function, by), given, ways)[1], 1e-6)
                self.hold(jax.jit(jax.jacfwd(jax.grad(function, 1), by))(*given), jax.jacrev(jax.grad(function, 1), by)(*given), 1e-6)

    def test_third_are_refused_by_name(self):
        x, q = melt(2)
        function = Coulomb(accuracy=1e-5)
        second = jax.grad(lambda at: (jax.grad(function)(at, q) ** 2).sum())
        with self.assertRaisesRegex(gmxfmm.Error, "jax.coulomb .*third derivatives") as caught:
            jax.grad(lambda at: second(at).sum())(x)
        self.assertEqual(caught.exception.status, "GMXFMM_ERROR_UNSUPPORTED")


class Transforms(Case):
    def setUp(self):
        super().setUp()
        self.x, self.q = melt(4)
        self.cell = 4 * np.eye(3)
        self.function = Coulomb(accuracy=1e-6, reproducible=1)

    def test_jit(self):
        both = jax.value_and_grad(self.function, (0, 1, 2))
        self.hold(jax.jit(both)(self.x, self.q, self.cell), both(self.x, self.q, self.cell))
        compiled = jax.jit(lambda *given: coulomb(*given, accuracy=1e-6, reproducible=1))
        # another plan of the same accuracy
        self.assertAlmostEqual(float(compiled(self.x, self.q, self.cell) / self.function(self.x, self.q, self.cell)), 1, delta=1e-6)

    @unittest.skipIf(jax is not None and jax.__version_info__ < (0, 8), "older ones call back")
    def test_programs_call_by_the_interface(self):
        both = jax.value_and_grad(self.function, (0, 1, 2))
        product = jax.grad(lambda x: jnp.vdot(jax.grad(self.function)(x, self.q, self.cell), self.x))
        for call, given, name in ((both, (self.x, self.q, self.cell), "gmxfmm_energies"), (product, (self.x,), "gmxfmm_second")):
            text = jax.jit(call).lower(*given).as_text()
            self.assertIn(name, text)
            self.assertNotIn("callback", text)

    def test_vmap_is_one_call(self):
        many = np.array([self.x, self.x + 0.5, self.x + 1.0])
        slopes = jax.grad(self.function, (0, 2))
        expected = [slopes(one, self.q, self.cell) for one in many]
        calls = []
        real = self.function.batch.step
        self.function.batch.step = lambda *arguments, **wanted: calls.append(len(arguments[3]) - 1) or real(*arguments, **wanted)
        found = jax.jit(jax.vmap(slopes, (2, None, None)))(np.moveaxis(many, 0, 2), self.q, self.cell)
        self.assertEqual(calls, [3])
        for k, one in enumerate(expected):
            self.hold([part[k] for part in found], one)
        nested = jax.vmap(jax.vmap(self.function, (0, None, None)), (None, 0, None))(many, np.array([self.q, 2 * self.q]), self.cell)
        self.assertEqual(calls, [3, 6])
        self.hold(nested, np.outer([1, 4], jax.vmap(self.function, (0, None, None))(many, self.q, self.cell)))

    def test_vmap_with_offsets(self):
        x, q, ends = np.concatenate([self.x, self.x[:30]]), np.concatenate([self.q, self.q[:30]]), np.array([[0, 64, 94], [0, 30, 94]])
        found = jax.vmap(lambda ends, q: self.function(x, q, None, ends))(ends, np.array([q, 2 * q]))
        self.hold(found[0], self.function(x, q, None, ends[0]))
        self.hold(found[1], 4 * self.function(x, q, None, ends[1]))
        with self.told(), self.assertRaisesRegex(Exception, "must rise from 0 to 94"):
            jax.vmap(lambda ends: self.function(x, q, None, ends))(np.array([[0, 64, 94], [0, 64, 93]])).block_until_ready()

    def test_in_a_loop(self):
        """Steepest descent inside a compiled loop lowers the energy as the same steps outside do."""
        slope = jax.grad(self.function)
        inside = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, at: at - 1e-3 * slope(at, self.q, self.cell), x))(self.x)
        outside = self.x
        for _ in range(3):
            outside = outside - 1e-3 * slope(outside, self.q, self.cell)
        self.hold(inside, outside)
        self.assertLess(float(self.function(inside, self.q, self.cell)), float(self.function(self.x, self.q, self.cell)))

    def test_programs_may_run_in_threads(self):
        """Plans are for one thread at a time, which a caller of JAX need not know."""
        compiled = jax.jit(jax.value_and_grad(self.function))
        given = [(self.x * (1 + 0.001 * k), self.q, self.cell) for k in range(8)]
        expected = [compiled(*one) for one in given]
        with ThreadPoolExecutor(4) as pool:
            self.hold(list(pool.map(lambda one: jax.block_until_ready(compiled(*one)), 4 * given)), 4 * expected)

    def test_large_arrays(self):
        """JAX copies such sizes in threads of its own. A callback must not wait for these for ever."""
        x, q = cloud(100_000)
        energy, slope = jax.jit(jax.value_and_grad(Coulomb(measure=False, accuracy=1e-3)))(x, q)
        plain = gmxfmm.solve(x, q, measure=False, accuracy=1e-3)
        self.assertLess(rms_error(-np.asarray(slope), plain.forces), 1e-6)  # the same settings, summed in another order
        self.assertAlmostEqual(float(energy / plain.energy), 1, delta=1e-6)

    def test_copies(self):
        expected = self.function(self.x, self.q, self.cell)
        self.hold(copy.deepcopy(self.function)(self.x, self.q, self.cell), expected, 1e-6)


class Errors(Case):
    def test_arguments_are_named(self):
        x, q = melt(2)
        for argument, text, call in (
            ("q", "float32 or float64", lambda: coulomb(x, q.astype(np.float16))),
            ("x", "float32 or float64", lambda: coulomb(x.astype(int), q)),
            ("x", "n x 3", lambda: coulomb(x, q[1:])),
            ("cell", "3 x 3", lambda: coulomb(x, q, np.ones(3))),
            ("cell", "3 x 3", lambda: coulomb(x, q, np.ones((2, 3, 3)))),
            ("offsets", "rise", lambda: coulomb(x, q, offsets=(0, 7))),
            ("offsets", "integers", lambda: coulomb(x, q, offsets=(0, 8.0))),
            ("acuracy", "no option", lambda: coulomb(x, q, acuracy=1)),
            ("positions", "finite", lambda: coulomb(np.nan * x, q)),
        ):
            for whole in (call, lambda: jax.grad(lambda scale: scale * call().sum())(1.0)):
                with self.subTest(argument=argument, text=text), self.assertRaisesRegex(gmxfmm.Error, text) as caught:
                    whole()
                self.assertEqual(caught.exception.argument, argument, str(caught.exception))

    def test_in_compiled_code_have_their_text(self):
        x, q = melt(2)
        function = jax.jit(Coulomb(measure=False))
        with self.told(), self.assertRaisesRegex(Exception, "position of particle 0 is .*not finite"):
            function(np.nan * x, q).block_until_ready()
        self.assertTrue(np.isfinite(function(x, q)))


QUEUED = """
import jax, numpy as np
from gmxfmm.jax import Coulomb
x = 13 * np.random.default_rng(0).random((2000, 3), dtype=np.float32)
q = np.where(np.arange(2000) % 2, 1, -1).astype(np.float32)
function = jax.jit(jax.value_and_grad(Coulomb(measure=False)))
for k in range(30):
    last = function(x + np.float32(1e-4 * k), q)
"""


@unittest.skipIf(jax is None, "there is no JAX here")
class Exit(unittest.TestCase):
    def test_programs_may_be_queued(self):
        """Python ends with a program that calls it back: it waits for that first, also where nothing has its results."""
        for end in ("", "del last"):
            done = subprocess.run([sys.executable, "-c", QUEUED + end], capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
