# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Coulomb energy as a function of JAX, with derivatives by positions, charges, dipoles and cell, for jit, grad and vmap. The library has first
derivatives, and those of dipoles give second ones. Programs call it by XLA's foreign function interface. On NVIDIA's GPUs that is on the stream of
their arrays, which stay on the device. Only a cell or offsets that a program computes leave it, and what Batch checks. Elsewhere it is called back.

There are two functions that JAX differentiates by rules of ours: energies with their first derivatives, and second derivatives times vectors. Each is
of systems (systems, n, 3), or of all particles (n, 3) with bounds (systems + 1). Only second derivatives evaluate anything anew.
"""
from __future__ import annotations

import atexit
import json
import threading
import uuid
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import _xla
from ._arrays import HOST, Raw, View, door_to, fetch, send, wait_for_all
from ._batch import Batch, check_offsets
from ._derivatives import Keeper, by_cell, by_cell_on_host, check_dipoles, check_type, no_third, second, systems_of
from ._inputs import check_device, refuse
from ._library import Error
from ._options import BatchOptions
from ._results import BLOCK, Wanted, check_blocks

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Coulomb", "coulomb"]

Array = jax.Array
_By = Tuple[bool, bool, bool, bool]  # x, q, mu (dipoles), cell


# ------------------------------------------------------------------------------------------------------------ what programs call
# Arrays may have more dimensions in front, of vmap. The systems of all are one batch.


class _Held(NamedTuple):
    """Cells and bounds that a program has as constants, nested tuples, so that a device need not give them to the host."""

    cell: Any = None
    bounds: Any = None


class _Site(NamedTuple):
    """What a program knows of a _Caller, which it does not keep: its name, whether systems are checked, and along which vectors there are images. What
    is held, and whether the program is of the host.
    """

    name: str
    checks: bool
    periodic: Tuple[int, int, int]
    held: _Held
    on_host: bool = False

    def bounds(self, bounds: Optional[Array]) -> Optional[Array]:
        return jnp.asarray(self.held.bounds) if bounds is None and self.held.bounds is not None else bounds

    def number(self, x: Any, bounds: Any) -> int:
        return len(self.held.bounds) - 1 if self.held.bounds is not None else x.shape[0] if bounds is None else bounds.shape[0] - 1

    def each(self, of_systems: Array, x: Array, bounds: Optional[Array]) -> Array:
        """Repeats what belongs to systems for each of their particles."""
        bounds = self.bounds(bounds)
        return of_systems[:, None] if bounds is None else jnp.repeat(of_systems, jnp.diff(bounds), total_repeat_length=x.shape[0])

    def sums(self, of_particles: Array, bounds: Optional[Array], kind: str = "sum") -> Array:
        """Sums (or "min", "max") over the particles of each system."""
        if self.bounds(bounds) is None:
            return getattr(of_particles, kind)(axis=1)
        systems = self.number(of_particles, bounds)
        return getattr(jax.ops, "segment_" + kind)(of_particles, self.each(jnp.arange(systems), of_particles, bounds), systems, indices_are_sorted=True)


def _edges(shape: Sequence[int], bounds: Optional[np.ndarray]) -> np.ndarray:
    """Where systems begin, all of them one after the other; shape: of x."""
    if bounds is None:
        return np.arange(int(np.prod(shape[:-2])) + 1) * shape[-2]
    n = shape[-2]
    ends = np.broadcast_to(bounds, (*shape[:-2], bounds.shape[-1])).reshape(-1, bounds.shape[-1]).astype(np.int64)
    for row in ends:
        check_offsets(row, n)
    return np.append((ends[:, :-1] + n * np.arange(len(ends))[:, None]).reshape(-1), n * len(ends))


def _cells(cell: Any, systems: int) -> Optional[np.ndarray]:
    """Cells of all systems, one after the other; those that are held are the same for all of a vmap."""
    if cell is None:
        return None
    cells = np.asarray(cell, dtype=float).reshape(-1, 3, 3)
    return np.tile(cells, (systems // max(1, len(cells)), 1, 1))


class _Systems:
    """All systems of a call, one after the other: x (n, 3), q (n), mu (n, 3) or None, cells (systems, 3, 3) or None, edges (systems + 1)."""

    def __init__(self, held: _Held, x: Any, q: Any, mu: Any = None, cell: Any = None, bounds: Any = None) -> None:
        x, q = np.asarray(x), np.asarray(q)
        bounds = held.bounds if bounds is None else bounds
        self.many = x.shape[:-3 if bounds is None else -2]  # of vmap
        self.edges = _edges(x.shape, None if bounds is None else np.asarray(bounds))
        self.dtype, self.shapes = x.dtype, (x.shape, q.shape, np.shape(mu), np.shape(cell))
        self.x, self.q = np.ascontiguousarray(x).reshape(-1, 3), np.ascontiguousarray(q).reshape(-1)
        self.mu = None if mu is None else np.ascontiguousarray(mu).reshape(-1, 3)
        self.cells = _cells(held.cell if cell is None else cell, len(self.edges) - 1)

    def of_each(self, array: np.ndarray) -> np.ndarray:
        """What belongs to systems, as the caller has it."""
        return array.astype(self.dtype).reshape(*self.many, -1 if array.size else 0)


def _ways(x: Any, q: Any, mu: Any, cell: Any) -> List[Optional[np.ndarray]]:
    return [None if way is None else np.asarray(way, dtype=float).reshape(shape)
            for way, shape in ((x, (-1, 3)), (q, (-1,)), (cell, (-1, 3, 3)), (mu, (-1, 3)))]


def _wanted(by: _By) -> Wanted:
    return Wanted(True, by[0] or by[3], by[1], by[2], by[3])


class _Caller:
    """The functions that JAX calls back, and those that programs call with memory of a device, by names."""

    def __init__(self, batch: Batch, options: Mapping[str, Any]) -> None:
        self.batch = batch
        self.site = _Site(uuid.uuid4().hex, batch.checks, batch.periodic, _Held())
        self._has_plans_on_host = options.get("device") == "cpu" or options.get("widths") is not None
        self._lock = threading.Lock()  # a program of JAX may call from several threads
        self._streams: Dict[int, int] = {}  # of each device the one used last
        self._looks: Dict[Tuple, Any] = {}  # what looks at results, by where these are
        _callers[self.site.name] = self

    def energies(self, by: _By, held: _Held, x: Any, q: Any, mu: Any, cell: Any, bounds: Any) -> Tuple:
        """Energies, and their derivatives by what is asked for."""
        every = _Systems(held, x, q, mu, cell, bounds)
        with self._lock:
            step = self.batch.step(every.x, every.q, every.cells, every.edges, dipoles=every.mu, forces=by[0] or by[3], potential=by[1], field=by[2],
                                   virial=by[3])
        slope = self._by_cell(every, step) if by[3] and every.cells is not None else None
        found = (-step.forces if by[0] else None, step.potential, -step.field if by[2] else None, slope)
        dtypes = (every.dtype, every.dtype, every.dtype, np.asarray(cell).dtype)
        return (every.of_each(step.energy), *(None if one is None else one.astype(dtype, copy=False).reshape(shape)
                                              for one, shape, dtype in zip(found, every.shapes, dtypes)))

    def _by_cell(self, every: _Systems, step: Any) -> np.ndarray:
        return by_cell_on_host(every.x, every.cells, step.forces, step.virial, every.edges, self.batch.periodic)

    def second(self, by: _By, held: _Held, way_x: Any, way_q: Any, way_mu: Any, way_cell: Any, x: Any, q: Any, mu: Any, cell: Any,
               bounds: Any) -> Tuple:
        """Second derivatives along ways, and by what is asked for."""
        every, ways = _Systems(held, x, q, mu, cell, bounds), _ways(way_x, way_q, way_mu, way_cell)
        with self._lock:
            by_x, by_q, by_cell, _, *by_mu = second(self.batch, np.ones(len(every.edges) - 1), ways, every.x, every.q, every.cells, every.edges,
                                                    of_cells=by[3], mu=every.mu)
        found = (by_x, by_q, by_mu[0] if by_mu else None, by_cell)
        dtypes = (every.dtype, every.dtype, every.dtype, np.asarray(cell).dtype)
        return (*(np.asarray(one, dtype).reshape(shape) if asked else None for one, asked, shape, dtype in zip(found, by, every.shapes, dtypes)),)

    # With memory of a device. What is not offered there raises UNSUPPORTED.

    def _energies_there(self, call: "_Call") -> Any:
        x, q, cells, edges = call.systems()
        return self.batch.put(x, q, cells, edges, call.wanted, {name: view for name, view in call.results.items() if name != "block"}, call.results["block"])

    def _second_there(self, call: "_Call") -> Any:
        """Along positions and charges."""
        if "by_cell" in call.results or "way_cell" in call.given:
            raise Error("GMXFMM_ERROR_UNSUPPORTED", "strains are of the host")
        x, q, cells, edges = call.systems()
        ways = call.given["way_x"]._replace(shape=x.shape), call.given["way_q"]._replace(shape=q.shape)
        return self.batch.put_along(x, q, cells, edges, ways, [call.results.get(name) for name in ("forces", "potential", "along", "felt")])

    # With copies of the arrays. place: device and its door, of plans of a device; without them plans are where the options say. Arrays of the host
    # are given so alone.

    def _energies_here(self, call: "_Call", given: Mapping[str, np.ndarray], place: Tuple) -> Dict[str, Any]:
        every, wanted = _Systems(call.held, **given), call.wanted
        if place:
            step = self.batch.of_host(every.x, every.q, every.mu, every.cells, every.edges, wanted, None, *place)
        else:
            step = self.batch.step(every.x, every.q, every.cells, every.edges, dipoles=every.mu, forces=wanted.forces, potential=wanted.potential,
                                   field=wanted.field, virial=wanted.virial)
        block = np.zeros((len(every.edges) - 1, BLOCK))
        block[:, 0] = step.energy
        if step.virial is not None:
            block[:, 2:11] = step.virial.reshape(-1, 9)
        slope = self._by_cell(every, step) if "by_cell" in call.results else None
        return {"block": block, "forces": step.forces, "potential": step.potential, "field": step.field, "by_cell": slope}

    def _second_here(self, call: "_Call", given: Mapping[str, np.ndarray], place: Tuple) -> Dict[str, Any]:
        every = _Systems(call.held, **{name: array for name, array in given.items() if not name.startswith("way_")})
        ways = _ways(*(given.get("way_" + name) for name in ("x", "q", "mu", "cell")))
        by_x, by_q, by_cells, along, *by_mu = second(self.batch, np.ones(len(every.edges) - 1), ways, every.x, every.q, every.cells, every.edges, *place,
                                                     of_cells="by_cell" in call.results, mu=every.mu)
        return {"along": along, "forces": -by_x, "potential": by_q, "field": -by_mu[0] if by_mu else None, "by_cell": by_cells}

    def answer(self, call: "_Call") -> None:
        """What a program calls. Where systems are checked, one of a device does so twice: then with sums of the results, to look at those."""
        there, here = (self._energies_there, self._energies_here) if call.kind == "energies" else (self._second_there, self._second_here)
        if call.x.device == HOST:
            with self._lock:
                self._computed(call, there, here)
            return
        with self._lock, _locks.setdefault(call.x.device, threading.Lock()):
            self._follow(call.x)
            look: Any = self._looks.pop(call.place, None) if call.sums is not None else None
            if look is None:
                look = self._computed(call, there, here)
            if call.sums is not None:
                self._look(call, look)
            elif self.batch.checks:
                while len(self._looks) >= 64:  # programs that failed
                    self._looks.pop(next(iter(self._looks)))
                self._looks[call.place] = look

    def _computed(self, call: "_Call", there: Callable, here: Callable) -> Callable:
        """On the device where that is offered. Plans for dipoles are there, too, and take arrays of the host. What it does not offer is computed on
        the host.
        """
        on_device = call.x.device != HOST and not (self._has_plans_on_host or 0 in call.x.shape) and _has_device()
        for place in ((call.x.device, door_to(Raw)), ()) if on_device else ((),):
            try:
                if place and "mu" not in call.given:
                    try:
                        return there(call) or _is_done
                    except Error as error:
                        if error.status != "GMXFMM_ERROR_UNSUPPORTED":
                            raise
                found = here(call, call.fetched(), place)
                send([(view, np.ascontiguousarray(found[name], dtype=view.dtype)) for name, view in call.results.items() if found.get(name) is not None])
                return _is_done
            except Error as error:
                if error.status != "GMXFMM_ERROR_UNSUPPORTED" or not place:
                    raise
        raise AssertionError("the last place raises")

    @staticmethod
    def _look(call: "_Call", look: Callable) -> None:
        views = [call.sums, *([call.results["block"]] if call.kind == "energies" else [])]
        arrays = [np.empty(view.shape, view.dtype) for view in views]
        fetch(list(zip(views, arrays)))
        sums = arrays[0].astype(float).reshape(-1, arrays[0].shape[-1])
        look(lambda: sums if np.isfinite(sums).all() else None)
        if len(arrays) > 1 and look is not _is_done:
            check_blocks(None, arrays[1])

    def _follow(self, x: View) -> None:
        """A plan does one step at a time: one on another stream waits for those before."""
        if self._streams.setdefault(x.device, x.stream) != x.stream:
            wait_for_all(x.stream)
            self._streams[x.device] = x.stream


def _is_done(_: Any) -> None:
    """Looks at results that are looked at."""


_callers: "WeakValueDictionary[str, _Caller]" = WeakValueDictionary()  # by what programs call them
_options_of: Dict[str, Mapping[str, Any]] = {}  # of those, also when they are gone
# Of devices. A plan records steps to time them when it is made, which fails where another thread waits for the whole device.
_locks: Dict[int, threading.Lock] = {}


class _Call:
    """What a program calls a _Caller with: arrays and results by names, and what it has as constants."""

    def __init__(self, kind: str, arrays: Sequence[View], results: Sequence[View], constants: Mapping[str, Any]) -> None:
        self.kind, self.held, self.wanted = kind, _Held(*constants["held"]), Wanted(True, *constants["parts"])
        named = dict(zip(constants["arrays"], arrays))
        self.sums = named.pop("sums", None)
        self.results = dict(zip(constants["results"], results))
        self.given = {name: view for name, view in named.items() if not name.startswith("in_")}
        self.x = self.given["x"]
        self.place = (kind, self.x.stream, *((name, view.pointer) for name, view in (*self.given.items(), *self.results.items())))

    def fetched(self, names: Optional[Sequence[str]] = None) -> Dict[str, np.ndarray]:
        views = {name: view for name, view in self.given.items() if names is None or name in names}
        found = {name: np.empty(view.shape, view.dtype) for name, view in views.items()}
        fetch([(view, found[name]) for name, view in views.items()])
        return found

    def systems(self) -> Tuple[View, View, Optional[np.ndarray], np.ndarray]:
        """Positions and charges of all systems, one after the other, their cells, and where they begin."""
        host = self.fetched(("cell", "bounds"))
        bounds = host.get("bounds", self.held.bounds)
        edges = _edges(self.x.shape, None if bounds is None else np.asarray(bounds))
        n = int(np.prod(self.x.shape[:-1]))
        for name in self.results:  # as of all systems
            if name in ("forces", "field", "felt"):
                self.results[name] = self.results[name]._replace(shape=(n, 3))
        return self.x._replace(shape=(n, 3)), self.given["q"]._replace(shape=(n,)), _cells(host.get("cell", self.held.cell), len(edges) - 1), edges


@lru_cache(maxsize=1)
def _has_device() -> bool:
    """Whether the library has the GPU, too."""
    try:
        check_device("cuda")
    except Error:
        return False
    return True


_constants = lru_cache(maxsize=1024)(json.loads)


def _answer(kind: str, call: _xla.Call) -> None:
    """An object may be gone. Its options then make one that is kept."""
    name, constants = call.texts
    caller = _callers.get(name)
    if caller is None:
        if name not in _options_of:
            raise Error("GMXFMM_ERROR_UNSUPPORTED", "a program of another process calls gmxfmm.jax: compile it here")
        caller = _keeper.of(_options_of[name])._caller
    caller.answer(_Call(kind, call.arrays, call.results, _constants(constants)))


_functions = {"gmxfmm_" + kind: partial(_answer, kind) for kind in ("energies", "second")}
_is_registered = _xla.register(getattr(jax, "ffi", None), _functions)


# ------------------------------------------------------------------------------------------------------------------------- programs


def _drain() -> None:
    """Waits for what JAX has queued: a program that calls Python while that ends aborts it or waits for ever."""
    for array in jax.live_arrays():
        try:
            array.block_until_ready()
        except Exception:  # its program failed or it is deleted
            continue
    # an array may be gone whose program is queued: a later program waits for it
    for device in jax.local_devices():
        (jax.device_put(np.zeros(()), device) + 1).block_until_ready()


def _is_staged() -> bool:
    """Whether operations become parts of a program."""
    return isinstance(jnp.zeros(()), jax.core.Tracer)


def _has_interface() -> bool:
    """Whether programs may have our calls."""
    # older ones make single numbers of the block in programs without double ones
    return _is_registered and jax.__version_info__ >= (0, 8)


@lru_cache(maxsize=1)
def _has_gpu() -> bool:
    """Whether there is a GPU whose programs may have our calls."""
    return _has_interface() and "cuda" in str(jax.devices()[0].client.platform_version).lower()


def _call(kind: str, site: "_Site", wanted: Wanted, given: Mapping[str, Any], results: Mapping[str, Any], looked_at: str) -> Dict[str, Any]:
    """A call of a program, with the arrays that are there. looked_at: the result with the forces that are looked at, where systems are checked. XLA sorts
    texts by their names, and so does _answer.
    """
    given = {name: array for name, array in given.items() if array is not None}

    def once(given: Mapping[str, Any], aliases: Mapping[int, int]) -> Dict[str, Any]:
        constants = {"arrays": [*given], "results": [*results], "parts": wanted[1:5], "held": site.held}
        function = jax.ffi.ffi_call("gmxfmm_" + kind, (*results.values(),), vmap_method="broadcast_all", input_output_aliases=dict(aliases))
        return dict(zip(results, function(*given.values(), caller=site.name, constants=json.dumps(constants))))

    found = once(given, {})
    if not looked_at or 0 in given["x"].shape:
        return found
    sums = _sums(site, given["x"], given["q"], found[looked_at], given.get("bounds"))
    given = {**given, "sums": sums, **{"in_" + name: array for name, array in found.items()}}
    return once(given, {len(given) - len(found) + k: k for k in range(len(found))})


def _back(function: Callable, like: Any, *arguments: Any) -> Any:
    """Calls a function of the host. Where JAX only looks, it is called later, and an error then has another type around its text."""
    leaves = jax.tree_util.tree_leaves(arguments)
    if any(isinstance(one, jax.core.Tracer) for one in leaves):
        return jax.pure_callback(function, like, *arguments, vmap_method="broadcast_all")
    devices, is_committed = _devices(leaves)
    with jax.default_device(devices[0]):
        found = jax.tree_util.tree_map(jnp.asarray, function(*arguments))
    return jax.device_put(found, devices[0]) if is_committed and len(devices) == 1 else found


def _devices(arrays: Sequence[Any]) -> Tuple[List[Any], bool]:
    """Where JAX computes with arrays: on the devices that some are committed to, or else on the default one; and whether some are."""
    found = {device for one in arrays if isinstance(one, jax.Array) and one.committed for device in one.devices()}
    default: Any = jax.config.jax_default_device
    return ([*found], True) if found else ([jax.devices(default)[0] if default is None or isinstance(default, str) else default], False)


def _inside(array: Any) -> Any:
    """The array that vmap, without jit, has put into a tracer, whose class is not public; a tracer where there is none yet."""
    while type(array).__name__ == "BatchTracer" and hasattr(array, "val"):
        array = array.val
    return array


def _are_batched(arguments: Tuple) -> bool:
    """Whether vmap, without jit, has put some into tracers."""
    return any(isinstance(one, jax.core.Tracer) for one in jax.tree_util.tree_leaves(arguments))


def _by_place(on_host: Callable, of_program: Callable, site: _Site, arguments: Tuple) -> Any:
    """Calls what belongs to the place of the arrays, which a program knows when it is compiled. of_program: of a _Site and the arguments."""
    leaves = [_inside(one) for one in jax.tree_util.tree_leaves(arguments)]
    if any(isinstance(one, jax.core.Tracer) for one in leaves):
        if not _has_interface():
            return on_host(*arguments)
        return lax.platform_dependent(*arguments, default=on_host, cpu=partial(of_program, site._replace(on_host=True)), cuda=partial(of_program, site))
    # of arrays of several places JAX tells what is wrong
    if _has_gpu() and any(device.platform != "cpu" for device in _devices(leaves)[0]):
        return of_program(site, *arguments)
    return of_program(site._replace(on_host=True), *arguments) if _has_interface() and _are_batched(arguments) else on_host(*arguments)


def _like(array: Any) -> Any:
    return None if array is None else jax.ShapeDtypeStruct(array.shape, array.dtype)


def _wide() -> Any:
    return np.float64 if jax.config.jax_enable_x64 else np.float32


def _sums(site: _Site, x: Array, q: Array, forces: Array, bounds: Optional[Array]) -> Array:
    """What Door.sums gives, (systems, 8)."""
    wide = _wide()
    squares, charges = jnp.square(forces.astype(wide)).sum(axis=-1), q.astype(wide)
    terms = jnp.stack([squares, squares**2, charges**2, charges**4, charges], axis=-1)
    extents = site.sums(x, bounds, "max") - site.sums(x, bounds, "min")
    return jnp.concatenate([site.sums(terms, bounds), extents.astype(wide)], axis=1)


def _by_cell(site: _Site, x: Array, cell: Array, forces: Array, virial: Array, bounds: Optional[Array]) -> Array:
    """Derivatives of the energies by the vectors of the cells, with the positions as they are; in double precision where JAX has it."""
    wide = _wide()
    moved = site.sums(forces.astype(wide)[..., :, None] * x.astype(wide)[..., None, :], bounds)
    with jax.default_matmul_precision("highest"):  # a GPU multiplies with ten bits else
        return by_cell(jnp, jnp.eye(3, dtype=wide), cell.astype(wide), lax.convert_element_type(virial, wide), moved,
                       site.periodic).astype(cell.dtype)


@partial(jax.jit, static_argnums=(0, 1), inline=True)
def _energies_of_program(by: _By, site: _Site, x: Array, q: Array, mu: Optional[Array], cell: Optional[Array], bounds: Optional[Array]) -> Tuple:
    wanted, looks = _wanted(by), site.checks and not site.on_host
    with_slope = by[3] and cell is not None
    # energies are double numbers also where JAX has none
    results = {"block": jax.ShapeDtypeStruct((site.number(x, bounds), BLOCK), np.float64)}
    results.update({name: _like(like) for name, like, there in (("forces", x, wanted.forces or looks), ("potential", q, wanted.potential),
                                                                ("field", x, wanted.field), ("by_cell", cell, with_slope and site.on_host)) if there})
    found = _call("energies", site, wanted, {"x": x, "q": q, "mu": mu, "cell": cell, "bounds": bounds}, results, "forces" if looks and mu is None else "")
    block = found["block"]
    energy = lax.convert_element_type(lax.add(block[:, 0], block[:, 1]), x.dtype)
    slope = found.get("by_cell")
    if with_slope and slope is None:
        slope = _by_cell(site, x, cell, found["forces"], block[:, 2:11].reshape(-1, 3, 3), bounds)
    return energy, -found["forces"] if by[0] else None, found["potential"] if by[1] else None, -found["field"] if by[2] else None, slope


@partial(jax.jit, static_argnums=(0, 1), inline=True)
def _second_of_program(by: _By, site: _Site, way_x: Array, way_q: Array, way_mu: Optional[Array], way_cell: Optional[Array], x: Array, q: Array,
                       mu: Optional[Array], cell: Optional[Array], bounds: Optional[Array]) -> Tuple:
    looks = site.checks and not site.on_host and mu is None and not by[3] and way_cell is None
    results = {"along": jax.ShapeDtypeStruct((site.number(x, bounds),), np.float64), "forces": _like(x), "potential": _like(q)}
    results.update({name: _like(like) for name, like, there in (("field", mu, mu is not None), ("by_cell", cell, by[3]), ("felt", x, looks)) if there})
    given = {"way_x": way_x, "way_q": way_q, "way_mu": way_mu, "way_cell": way_cell, "x": x, "q": q, "mu": mu, "cell": cell, "bounds": bounds}
    found = _call("second", site, _wanted(4 * (False,)), given, results, "felt" if looks else "")
    return (-found["forces"] if by[0] else None, found["potential"] if by[1] else None, -found["field"] if by[2] else None,
            found["by_cell"] if by[3] else None)


# ----------------------------------------------------------------------------------------------------------------------- derivatives


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _energies(caller: _Caller, site: _Site, by: _By, x: Array, q: Array, mu: Optional[Array], cell: Optional[Array], bounds: Optional[Array]) -> Tuple:
    """Energies and parts: their derivatives by x, q, mu and cell, or None for what is not asked for."""
    like = (jax.ShapeDtypeStruct((site.number(x, bounds),), x.dtype), *(_like(one) if wanted else None for one, wanted in zip((x, q, mu, cell), by)))
    return _by_place(partial(_back, partial(caller.energies, by, site.held), like), partial(_energies_of_program, by), site, (x, q, mu, cell, bounds))


def _energies_along(caller: _Caller, site: _Site, by: _By, given: Tuple, ways: Tuple) -> Tuple:
    """The same, and derivatives along ways."""
    along: Any = tuple(way is not None and not isinstance(way, jax.custom_derivatives.SymbolicZero) for way in ways[:4])
    # the same function, which an outer derivative differentiates again
    energy, *parts = _energies(caller, site, tuple(a or b for a, b in zip(by, along)), *given)
    bounds, slope = given[4], jnp.zeros_like(energy)
    for part, way, there, of_particles in zip(parts, ways, along, (True, True, True, False)):
        if there and of_particles:
            product = part * way
            slope = slope + site.sums(product.sum(axis=-1) if product.ndim == given[0].ndim else product, bounds)
        elif there:
            slope = slope + (part * way).sum(axis=(1, 2)).astype(energy.dtype)
    changes: Any = iter(())
    if any(by) and any(along):
        there = tuple(one is not None for one in given[2:])
        operands = [way for way, one in zip(ways, along) if one] + [one for one in given if one is not None]
        changes = iter(_second_p.bind(*operands, caller=caller, site=site, ways=along, by=by, there=there, many=0))
    return ((energy, *(part if asked else None for part, asked in zip(parts, by))),
            (slope, *((next(changes) if any(along) else jnp.zeros_like(part)) if asked else None for part, asked in zip(parts, by))))


_energies.defjvp(_energies_along, symbolic_zeros=True)


# Second derivatives times ways: a primitive, as these are linear, and the matrix is symmetric, which JAX would not know. Operands: the ways that there
# are, x, q, and which of mu, cell and bounds are there. Results: those by what is asked for. All have many dimensions in front, of vmap.


def _second(*operands: Any, many: int, **parameters: Any) -> Any:
    function: Any = partial(_second_of_systems, **parameters)
    for _ in range(many):
        function = jax.vmap(function)
    return function(*operands)


def _second_of_systems(*operands: Any, caller: _Caller, site: _Site, ways: _By, by: _By, there: Tuple[bool, bool, bool]) -> List[Array]:
    of = iter(operands)
    given_ways: Any = [next(of) if one else None for one in ways]
    x, q, mu, cell, bounds = (next(of) if one else None for one in (True, True, *there))
    way_x, way_q = (jnp.zeros_like(one) if way is None else way for way, one in zip(given_ways, (x, q)))
    arguments = (way_x, way_q, *given_ways[2:], x, q, mu, cell, bounds)
    found = _by_place(partial(_back, partial(caller.second, by, site.held), tuple(_like(one) if asked else None for one, asked in zip((x, q, mu, cell), by))),
                      partial(_second_of_program, by), site, arguments)
    return [one for one, asked in zip(found, by) if asked]


def _second_shapes(*operands: Any, ways: _By, by: _By, there: Tuple[bool, bool, bool], **_: Any) -> List[Any]:
    of = iter(operands[sum(ways):])
    return [one for one, asked in zip([next(of) if one else None for one in (True, True, *there)], by) if asked]


def _second_along(given: Any, changes: Any, *, ways: _By, **parameters: Any) -> Tuple:
    num = sum(ways)
    if any(not isinstance(one, ad.Zero) for one in changes[num:]):
        raise no_third("gmxfmm.jax.coulomb")
    second_by = partial(_second_p.bind, ways=ways, **parameters)
    return second_by(*given), second_by(*map(ad.instantiate_zeros, changes[:num]), *given[num:])


def _second_transposed(weights: Any, *operands: Any, ways: _By, by: _By, **parameters: Any) -> List[Any]:
    num, of = sum(ways), iter(weights)
    each = [next(of) if asked else None for asked in by]
    there: Any = tuple(one is not None and not isinstance(one, ad.Zero) for one in each)
    found = _second_p.bind(*(one for one, is_there in zip(each, there) if is_there), *operands[num:], ways=there, by=ways, **parameters)
    return [one if ad.is_undefined_primal(way) else None for one, way in zip(found, operands)] + (len(operands) - num) * [None]


def _second_batched(operands: Any, dims: Any, *, many: int, **parameters: Any) -> Tuple:
    size = next(one.shape[dim] for one, dim in zip(operands, dims) if dim is not None)
    moved = [jnp.broadcast_to(one, (size, *one.shape)) if dim is None else jnp.moveaxis(one, dim, 0) for one, dim in zip(operands, dims)]
    found = _second_p.bind(*moved, many=many + 1, **parameters)
    return found, len(found) * [0]


_second_p = Primitive("gmxfmm_second")
_second_p.multiple_results = True
_second_p.def_impl(_second)
_second_p.def_abstract_eval(_second_shapes)
ad.primitive_jvps[_second_p], ad.primitive_transposes[_second_p] = _second_along, _second_transposed
batching.primitive_batchers[_second_p] = _second_batched
mlir.register_lowering(_second_p, mlir.lower_fun(_second, multiple_results=True))


# ------------------------------------------------------------------------------------------------------------------ what callers have


class Coulomb:
    """The Coulomb energy with plans of its own, which are kept from call to call. There is one for each number of particles and shape of
    the cell.

    options  of Batch: accuracy, measure, precision, exclusions, prefactor, max_plans, ...
    """

    def __init__(self, **options: Unpack[BatchOptions]) -> None:
        self.batch = Batch(**options)
        self._options: Dict[str, Any] = dict(options)
        self._caller = _Caller(self.batch, options)

    def __reduce__(self) -> Any:
        return _made, (type(self), self._options)

    def __call__(self, x: Any, q: Any, cell: Any = None, offsets: Union[Sequence[int], Array, None] = None, *, dipoles: Any = None) -> Array:
        """Energies, as of coulomb()."""
        given = cell, offsets
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
        held = _Held()
        is_staged = _is_staged()  # one that only runs now may have another cell the next time
        if _has_interface() and (is_staged or _has_gpu()):
            _options_of[self._caller.site.name] = self._options
        if _has_gpu() and is_staged:
            held = _Held(*(None if one is None or isinstance(one, jax.core.Tracer) else _nested(np.asarray(one)) for one in given))
            cell, bounds = (None if there is not None else one for there, one in zip(held, (cell, bounds)))
        if cell is not None:
            cell = jnp.broadcast_to(cell, (systems, 3, 3))
        _drain_at_exit()
        energy = _energies(self._caller, self._caller.site._replace(held=held), (False, False, False, False), x, q.astype(x.dtype), mu, cell, bounds)[0]
        return energy[0] if alone else energy


def _nested(array: np.ndarray) -> Any:
    return tuple(_nested(one) for one in array) if array.ndim else array.item()


@lru_cache(maxsize=1)
def _drain_at_exit() -> None:
    atexit.register(_drain)


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
