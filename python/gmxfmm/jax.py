# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Coulomb energy as a function of JAX, with derivatives by positions, charges, dipoles and cell, for jit, grad and vmap. The library has first
derivatives, and those of dipoles give second ones. It is called back on the host.

There are three functions that JAX differentiates by rules of ours: energies, gradient and second. Each is of systems (systems, n, 3), or of
all particles (n, 3) with bounds (systems + 1). Only second derivatives evaluate anything anew.
"""
from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple, Union

import jax
import jax.numpy as jnp
import numpy as np

from ._batch import Batch, check_offsets
from ._derivatives import Keeper, by_cell_on_host, check_dipoles, check_type, no_third, second, systems_of
from ._inputs import refuse
from ._options import BatchOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Coulomb", "coulomb"]

Array = jax.Array
_By = Tuple[bool, bool, bool, bool]  # x, q, mu (dipoles), cell


# --------------------------------------------------------------------------------------------------------------------- on the host
# Arrays may have more dimensions in front, of vmap. The systems of all are one batch.


class _Systems:
    """All systems of a call, one after the other: x (n, 3), q (n), mu (n, 3) or None, cells (systems, 3, 3) or None, edges (systems + 1)."""

    def __init__(self, x: Any, q: Any, mu: Any, cell: Any, bounds: Any) -> None:
        x, q = np.asarray(x), np.asarray(q)
        self.many = x.shape[:-3 if bounds is None else -2]  # of vmap
        if bounds is None:
            self.edges = np.arange(int(np.prod(x.shape[:-2])) + 1) * x.shape[-2]
        else:
            ends, n = np.asarray(bounds).reshape(-1, np.shape(bounds)[-1]).astype(np.int64), x.shape[-2]
            for row in ends:
                check_offsets(row, n)
            self.edges = np.append((ends[:, :-1] + n * np.arange(len(ends))[:, None]).reshape(-1), n * len(ends))
        self.dtype, self.shapes = x.dtype, (x.shape, q.shape, np.shape(mu), np.shape(cell))
        self.x, self.q = np.ascontiguousarray(x).reshape(-1, 3), np.ascontiguousarray(q).reshape(-1)
        self.mu = None if mu is None else np.ascontiguousarray(mu).reshape(-1, 3)
        self.cells = None if cell is None else np.asarray(cell, dtype=float).reshape(-1, 3, 3)

    def of_each(self, array: np.ndarray) -> np.ndarray:
        """What belongs to systems, as the caller has it."""
        return array.astype(self.dtype).reshape(*self.many, -1 if array.size else 0)


class _Caller:
    """The functions that JAX calls back."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._lock = threading.Lock()  # a program of JAX may call from several threads

    def energies(self, by: _By, x: Any, q: Any, mu: Any, cell: Any, bounds: Any) -> Tuple:
        """Energies, and their derivatives by what is asked for."""
        all_of_them = _Systems(x, q, mu, cell, bounds)
        x, q, mu, cells = all_of_them.x, all_of_them.q, all_of_them.mu, all_of_them.cells
        with self._lock:
            step = self.batch.step(x, q, cells, all_of_them.edges, dipoles=mu, forces=by[0] or by[3], potential=by[1], field=by[2], virial=by[3])
        slope = by_cell_on_host(x, cells, step.forces, step.virial, all_of_them.edges, self.batch.periodic) if by[3] and cells is not None else None
        found = (-step.forces if by[0] else None, step.potential, -step.field if by[2] else None, slope)
        dtypes = (x.dtype, x.dtype, x.dtype, np.asarray(cell).dtype)
        return (all_of_them.of_each(step.energy), *(None if one is None else one.astype(dtype, copy=False).reshape(shape)
                                                    for one, shape, dtype in zip(found, all_of_them.shapes, dtypes)))

    def second(self, of_cell: bool, weight: Any, way_x: Any, way_q: Any, way_mu: Any, way_cell: Any, x: Any, q: Any, mu: Any, cell: Any,
               bounds: Any) -> Tuple:
        all_of_them = _Systems(x, q, mu, cell, bounds)
        ways = [None if way is None else np.asarray(way, dtype=float).reshape(shape)
                for way, shape in ((way_x, (-1, 3)), (way_q, (-1,)), (way_cell, (-1, 3, 3)), (way_mu, (-1, 3)))]
        with self._lock:
            by_x, by_q, by_cell, along, *by_mu = second(self.batch, np.asarray(weight, dtype=float).reshape(-1), ways, all_of_them.x, all_of_them.q,
                                                        all_of_them.cells, all_of_them.edges, of_cells=of_cell, mu=all_of_them.mu)
        return (all_of_them.of_each(along), by_x.astype(all_of_them.dtype).reshape(np.shape(x)), by_q.astype(all_of_them.dtype).reshape(np.shape(q)),
                by_mu[0].astype(all_of_them.dtype).reshape(np.shape(mu)) if by_mu else None,
                None if cell is None else by_cell.astype(np.asarray(cell).dtype).reshape(np.shape(cell)))


def _call(function: Any, like: Any, *arguments: Any) -> Any:
    """Calls a function of the host. Where JAX only looks, it is called later, and an error then has another type around its text."""
    leaves = jax.tree_util.tree_leaves(arguments)
    if any(isinstance(one, jax.core.Tracer) for one in leaves):
        return jax.pure_callback(function, like, *arguments, vmap_method="broadcast_all")
    with jax.default_device(next(iter(leaves[0].devices()))):
        return jax.tree_util.tree_map(jnp.asarray, function(*arguments))


def _like(array: Any) -> Any:
    return None if array is None else jax.ShapeDtypeStruct(array.shape, array.dtype)


def _number(x: Any, bounds: Any) -> int:
    return x.shape[0] if bounds is None else bounds.shape[0] - 1


# ----------------------------------------------------------------------------------------------------------------------- derivatives


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _energies(caller: _Caller, by: _By, x: Array, q: Array, mu: Optional[Array], cell: Optional[Array], bounds: Optional[Array]) -> Tuple:
    """Energies and parts: their derivatives by x, q, mu and cell, or None for what is not asked for. JAX takes the parts as constants."""
    like = (jax.ShapeDtypeStruct((_number(x, bounds),), x.dtype), *(_like(one) if wanted else None for one, wanted in zip((x, q, mu, cell), by)))
    return _call(partial(caller.energies, by), like, x, q, mu, cell, bounds)


def _energies_forward(caller: _Caller, by: _By, x: Any, q: Any, mu: Any, cell: Any, bounds: Any) -> Tuple:
    wanted: Any = tuple(one is not None and one.perturbed for one in (x, q, mu, cell))
    values = tuple(None if one is None else one.value for one in (x, q, mu, cell, bounds))
    # the same function, which an outer derivative differentiates again
    energy, *parts = _energies(caller, tuple(a or b for a, b in zip(by, wanted)), *values)
    return (energy, *(part if asked else None for part, asked in zip(parts, by))), (wanted, values, parts)


def _energies_backward(caller: _Caller, by: _By, kept: Any, weights: Any) -> Tuple:
    wanted, values, parts = kept
    weight = weights[0]
    if isinstance(weight, jax.custom_derivatives.SymbolicZero):
        return 5 * (None,)
    return (*_gradient(caller, wanted, weight, *values, *(part if one else None for part, one in zip(parts, wanted))), None)


_energies.defvjp(_energies_forward, _energies_backward, symbolic_zeros=True)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _gradient(caller: _Caller, by: _By, weight: Array, x: Array, q: Array, mu: Optional[Array], cell: Optional[Array], bounds: Optional[Array],
              *parts: Any) -> Tuple:
    """Derivatives of the weighted energies, from those of each."""
    by_x, by_q, by_mu, by_cell = parts
    each = weight[:, None] if bounds is None else jnp.repeat(weight, jnp.diff(bounds), total_repeat_length=x.shape[0])
    return (None if by_x is None else each[..., None] * by_x, None if by_q is None else each * by_q,
            None if by_mu is None else each[..., None] * by_mu,
            None if by_cell is None else weight.astype(by_cell.dtype)[:, None, None] * by_cell)


def _gradient_forward(caller: _Caller, by: _By, *arguments: Any) -> Tuple:
    values = tuple(None if one is None else one.value for one in arguments)
    of_cell = arguments[4] is not None and arguments[4].perturbed
    return _gradient(caller, by, *values), (of_cell, values[:6])


def _gradient_backward(caller: _Caller, by: _By, kept: Any, ways: Any) -> Tuple:
    of_cell, (weight, x, q, mu, cell, bounds) = kept
    nothing = jax.custom_derivatives.SymbolicZero
    asked = [wanted and not (way is None or isinstance(way, nothing)) for way, wanted in zip(ways, by)]
    way_x, way_q, way_mu, way_cell = (way if one else None for way, one in zip(ways, asked))
    way_x, way_q = (jnp.zeros_like(one) if way is None else way for way, one in zip((way_x, way_q), (x, q)))
    return (*_second(caller, of_cell, weight, way_x, way_q, way_mu, way_cell, x, q, mu, cell, bounds), *(5 * (None,)))


_gradient.defvjp(_gradient_forward, _gradient_backward, symbolic_zeros=True)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _second(caller: _Caller, of_cell: bool, weight: Array, way_x: Array, way_q: Array, way_mu: Optional[Array], way_cell: Optional[Array], x: Array,
            q: Array, mu: Optional[Array], cell: Optional[Array], bounds: Optional[Array]) -> Tuple:
    like = (_like(weight), _like(x), _like(q), _like(mu), _like(cell))
    return _call(partial(caller.second, of_cell), like, weight, way_x, way_q, way_mu, way_cell, x, q, mu, cell, bounds)


def _second_forward(caller: _Caller, of_cell: bool, *arguments: Any) -> Tuple:
    return _second(caller, of_cell, *arguments), None


def _second_backward(*_: Any) -> Tuple:
    raise no_third("gmxfmm.jax.coulomb")


_second.defvjp(_second_forward, _second_backward)


# ------------------------------------------------------------------------------------------------------------------ what callers have


class Coulomb:
    """The Coulomb energy with plans of its own, which are kept from call to call. There is one for each number of particles and shape of
    the cell.

    options  of Batch: accuracy, measure, precision, exclusions, prefactor, max_plans, ...
    """

    def __init__(self, **options: Unpack[BatchOptions]) -> None:
        self.batch = Batch(**options)
        self._options: Dict[str, Any] = dict(options)
        self._caller = _Caller(self.batch)

    def __reduce__(self) -> Any:
        return _made, (type(self), self._options)

    def __call__(self, x: Any, q: Any, cell: Any = None, offsets: Union[Sequence[int], Array, None] = None, *, dipoles: Any = None) -> Array:
        """Energies, as of coulomb()."""
        x, q, mu, cell = (None if one is None else jnp.asarray(one) for one in (x, q, dipoles, cell))
        for name, one in (("x", x), ("q", q), ("dipoles", mu), ("cell", cell)):
            if one is not None:
                check_type(name, one.dtype)
        bounds = None if offsets is None else jnp.asarray(offsets)
        if bounds is not None and (bounds.ndim != 1 or not bounds.size or not jnp.issubdtype(bounds.dtype, jnp.integer)):
            raise refuse("offsets", f"they have the type {bounds.dtype} and the shape {bounds.shape}, they must be integers (systems + 1)")
        systems, alone = systems_of(x.shape, q.shape, None if cell is None else cell.shape, None if bounds is None else bounds.size)
        if mu is not None:
            check_dipoles(mu.shape, x.shape)
            mu = mu.astype(x.dtype)
        if alone:
            x, q, mu = x[None], q[None], None if mu is None else mu[None]
        if cell is not None:
            cell = jnp.broadcast_to(cell, (systems, 3, 3))
        energy = _energies(self._caller, (False, False, False, False), x, q.astype(x.dtype), mu, cell, bounds)[0]
        return energy[0] if alone else energy


def _made(kind: Any, options: Dict[str, Any]) -> Any:
    return kind(**options)


_keeper = Keeper(Coulomb)


def coulomb(x: Any, q: Any, cell: Any = None, offsets: Union[Sequence[int], Array, None] = None, *, dipoles: Any = None,
            **options: Unpack[BatchOptions]) -> Array:
    """Coulomb energy 1/2 sum (q phi - mu . E), prefactor * charge^2 / length, with derivatives by x, q, mu (dipoles) and cell.

    x        (n, 3), float32 or float64. For many systems (systems, n, 3), or (all particles, 3) with offsets
    q        (n); (systems, n); or (all particles)
    cell     (3, 3), vectors in rows. (systems, 3, 3): one each; zeros are an open system. None: open
    offsets  (systems + 1) integers: system s has the particles offsets[s] to offsets[s + 1] - 1
    dipoles  as x, charge times length, of the FMM; None: there are none
    options  of Batch: accuracy, measure, exclusions, prefactor, ... They are no arrays that JAX traces

    Gives an array of no dimension, or (systems), of the type of x. The derivative by cell leaves the positions where they are. A strain of
    both is x @ s, cell @ s. jit and vmap call the library back once, with all systems. Second derivatives are exact, but
    for those along a strain of the cell, and where dipoles move (docs/python.md). Third ones raise Error. Plans are kept as by gmxfmm.torch.
    """
    return _keeper.of(options)(x, q, cell, offsets, dipoles=dipoles)
