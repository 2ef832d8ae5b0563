# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the functions of PyTorch and JAX have in common: objects that are kept, shapes, derivatives by cells, and second derivatives."""
from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._batch import Batch
from ._inputs import lattice, refuse
from ._library import Error

_MOST = 16  # sets of options that a function keeps plans for


def _part(value: Any) -> Any:
    """What equal options have the same of: an array, or a text, as the repr of a long array leaves most of it out."""
    return np.asarray(value) if isinstance(value, (list, tuple)) or hasattr(value, "__array__") else repr(value)


def _key(part: Any) -> Any:
    """A key that is the same for equal parts only."""
    return part if isinstance(part, str) else (part.shape, part.dtype.str, part.tobytes())


def _are_same(one: Any, other: Any) -> bool:
    """Whether two parts are equal."""
    if isinstance(one, str) or isinstance(other, str):
        return type(one) is type(other) and one == other
    return one.shape == other.shape and one.dtype == other.dtype and bool((one == other).all())


class Keeper:
    """Objects that are made of options and have a batch, for the last sets of options."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._kept: "OrderedDict[Tuple, Any]" = OrderedDict()
        self._last: Tuple[Dict[str, Any], Any] = {}, None  # parts of the options used last, and their object
        self._lock = threading.Lock()  # programs of JAX ask in threads of their own

    def of(self, options: Mapping[str, Any]) -> Any:
        parts, (last, found) = {name: _part(value) for name, value in options.items()}, self._last
        # long arrays are compared in less time than a key is made of them, and hashed
        if found is None or parts.keys() != last.keys() or not all(_are_same(part, last[name]) for name, part in parts.items()):
            found = self._by_key(parts, options)
            self._last = {name: part if isinstance(part, str) else part.copy() for name, part in parts.items()}, found
        return found

    def _by_key(self, parts: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        key = (*((name, _key(part)) for name, part in sorted(parts.items())),)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                found = self._make(**options)
                while len(self._kept) >= _MOST:
                    self._kept.popitem(last=False)[1].batch.close()
            self._kept[key] = found
        return found


def check_type(name: str, dtype: Any) -> None:
    """dtype: of any library, whose text has its name."""
    if str(dtype).rpartition(".")[2] not in ("float32", "float64"):
        raise refuse(name, f"it has the type {dtype}, it must be float32 or float64")


def systems_of(x: Sequence[int], q: Sequence[int], cell: Optional[Sequence[int]], offsets: Optional[int]) -> Tuple[int, bool]:
    """The number of systems, and whether there is one alone without a dimension of its own, from shapes; offsets: how many there are."""
    x, q = tuple(x), tuple(q)
    if x[-1:] != (3,) or x[:-1] != q or len(q) not in (1, 2) or (offsets is not None and len(q) != 1):
        raise refuse("x", f"it has the shape {x} and q {q}. They must be n x 3 and n, or systems x n x 3 and systems x n. "
                     "With offsets or batch they must be n x 3 and n")
    alone = offsets is None and len(q) == 1
    systems = 1 if alone else x[0] if offsets is None else offsets - 1
    if cell is not None and tuple(cell) not in ((3, 3), (systems, 3, 3)):
        raise refuse("cell", f"it has the shape {tuple(cell)}, it must be 3 x 3" + ("" if alone else f" or {systems} x 3 x 3"))
    return systems, alone


def check_dipoles(mu: Sequence[int], x: Sequence[int]) -> None:
    if tuple(mu) != tuple(x):
        raise refuse("dipoles", f"they have the shape {tuple(mu)}, and x {tuple(x)}: give one for each particle")


def no_third(name: str) -> Error:
    return Error("GMXFMM_ERROR_UNSUPPORTED", f"{name} has first and second derivatives alone: third derivatives are not offered")


def by_cell(library: Any, unit: Any, cells: Any, virial: Any, moved: Any, periodic: Sequence[int]) -> Any:
    """Derivatives of the energies by the vectors of the cells, with the positions as they are. That by a strain of both is 2 virial. The part of
    the positions, -sum F x, is taken off. The rest is that of the rows of the cell.

    library  of the arrays: numpy, torch or jax.numpy
    unit     (3, 3), the unit matrix
    cells, virial, moved
             (systems, 3, 3); moved is sum F (x) x
    """
    def cross(a: Any, b: Any) -> Any:
        return library.stack([a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))], -1)

    strain = 2 * virial + library.stack([moved[..., k] for k in range(3)], 1)  # last index: of the force
    # strain = cell^T G with the derivative G, whose rows belong to the cell's. The inverse of the transposed cell has reciprocal
    # vectors in rows: unlike a solver these products do not wait for a device
    rows = [cells[:, k] for k in range(3)]
    if sum(periodic) == 1:  # nothing depends on vectors without images
        k = list(periodic).index(1)
        rows[(k + 1) % 3] = cross(rows[k], unit[abs(rows[k]).argmin(-1)])
        rows[(k + 2) % 3] = cross(rows[k], rows[(k + 1) % 3])
    elif sum(periodic) == 2:
        k = list(periodic).index(0)
        rows[k] = cross(rows[(k + 1) % 3], rows[(k + 2) % 3])
    a, b, c = rows
    volume = (a * cross(b, c)).sum(-1)[:, None, None]
    gradient = library.stack([cross(b, c), cross(c, a), cross(a, b)], 1) / volume @ strain
    gradient = library.stack([gradient[:, k] if periodic[k] else 0 * gradient[:, k] for k in range(3)], 1)
    is_open = (cells == 0).all(2).all(1)[:, None, None]
    return library.where(is_open, library.zeros_like(gradient), gradient)


def sums(of_particles: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Sums over the particles of each system, in double precision."""
    total = np.zeros((len(of_particles) + 1, *of_particles.shape[1:]))
    np.cumsum(of_particles, axis=0, out=total[1:])
    return total[edges[1:]] - total[edges[:-1]]


def by_cell_on_host(x: np.ndarray, cells: np.ndarray, forces: np.ndarray, virial: np.ndarray, edges: np.ndarray, periodic: Sequence[int]) -> np.ndarray:
    """by_cell of numpy's arrays: all particles, and systems with edges (systems + 1)."""
    moved = sums(forces.astype(float)[:, :, None] * x.astype(float)[:, None, :], edges)
    with np.errstate(all="ignore"):  # open systems have no volume
        return by_cell(np, np.eye(3), cells, virial, moved, periodic)


def second(batch: Batch, weight: np.ndarray, ways: Sequence[Optional[np.ndarray]], x: np.ndarray, q: np.ndarray, cells: Optional[np.ndarray],
           edges: np.ndarray, device: int = -1, door: Any = None, of_cells: bool = True, mu: Optional[np.ndarray] = None) -> Tuple[np.ndarray, ...]:
    """Second derivatives of the weighted energies by a way and by x, q and cells, and first derivatives of each energy by the way. With dipoles
    second ones by these, too.

    weight    (systems)
    ways      of x, q, cells and dipoles; the last two may be None
    x, q, mu  all particles (n, 3), (n) and dipoles (n, 3) or None, of one type; edges (systems + 1)
    cells     (systems, 3, 3), or None
    device    of the plans, as of Batch.sides
    of_cells  whether the derivatives by cells are wanted; they are zeros otherwise

    Arrays are contiguous and of the host, all but x, q and mu in double precision. So are the results.

    Along positions, charges and dipoles they are exact, but where a particle with a dipole moves. A way of the cells is a strain of positions and
    cells and a way of the positions back. Along the strain they are differences. So they are along everything where a dipole moves, and where a
    plan takes no dipoles.
    """
    systems, sizes = len(weight), np.diff(edges)
    boxes = np.zeros((systems, 3, 3)) if cells is None else cells
    given = [box if box.any() else None for box in boxes]
    of_cells = of_cells and cells is not None
    way_x, way_q, way_box, way_mu = (*ways, None, None)[:4]
    assert way_x is not None and way_q is not None
    way_box = np.zeros_like(boxes) if way_box is None else way_box
    if mu is not None and way_mu is None:
        way_mu = np.zeros_like(way_x)
    strained = way_box.any(axis=(1, 2)) & boxes.any(axis=(1, 2))
    with_box = np.zeros(x.shape)
    for s in np.flatnonzero(strained):
        one = slice(edges[s], edges[s + 1])
        with_box[one] = x[one] @ np.linalg.solve(lattice(boxes[s], batch.periodic), np.array(batch.periodic)[:, None] * way_box[s])
    move = np.zeros(systems, dtype=bool)  # dipoles of these systems
    if mu is not None:
        has_way = way_x.any(axis=1) | np.repeat(strained, sizes)
        move = sums((mu.any(axis=1) & has_way).astype(float), edges) > 0
    still = ~np.repeat(move, sizes)
    exact, mixed = batch.mixed(x, q, given, edges, (way_x - with_box) * still[:, None], way_q * still, of_cells, device, door, mu,
                               None if way_mu is None else way_mu * still[:, None])
    slope = by_cell_on_host(x, boxes, mixed["forces"], mixed["virial"], edges, batch.periodic) if of_cells else np.zeros_like(boxes)
    found = [-mixed["forces"], mixed["potential"], slope, mixed["energy"], -mixed["field"] if mu is not None else np.zeros((len(q), 3))]
    nothing = np.zeros_like(way_x)
    full = (way_x, way_q, way_box, nothing if way_mu is None else way_mu)
    for these, along, moved, fourth in ((exact & strained & ~move, (with_box, np.zeros_like(way_q), way_box, nothing), nothing, True),
                                        (move, full, way_x - with_box, True), (~exact & ~move, full, None, False)):
        if these.any():
            each = np.repeat(these, sizes)
            own = (along[0] * each[:, None], along[1] * each, along[2] * these[:, None, None], along[3] * each[:, None])
            found = [one + other for one, other in zip(found, _by_differences(
                batch, own, x.astype(float), q.astype(float), boxes, given, edges, cells is not None, fourth, device, door,
                None if mu is None else mu.astype(float), moved))]
    by_x, by_q, by_cells, by_way, by_mu = found
    each = np.repeat(weight, sizes)
    results = each[:, None] * by_x, each * by_q, weight[:, None, None] * by_cells, by_way
    return results if mu is None else (*results, each[:, None] * by_mu)


# Weights of the sides for a derivative, over h, and for the value between
_SLOPES = {False: {-1: -1 / 2, 1: 1 / 2}, True: {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}}
_MEANS = {False: {-1: 1 / 2, 1: 1 / 2}, True: {-2: -1 / 6, -1: 2 / 3, 1: 2 / 3, 2: -1 / 6}}


def _by_differences(batch: Batch, ways: Sequence[np.ndarray], x: np.ndarray, q: np.ndarray, boxes: np.ndarray, given: Sequence[Optional[np.ndarray]],
                    edges: np.ndarray, of_cells: bool, fourth: bool, device: int, door: Any, mu: Optional[np.ndarray],
                    moved: Optional[np.ndarray]) -> List[np.ndarray]:
    """Second derivatives along the ways by x, q and cells, the first one, and second ones by dipoles, from first derivatives on the sides."""
    steps, sides = batch.sides(x, q, given, edges, ways, of_cells, fourth, device, door, mu, moved)
    sizes = np.diff(edges)
    by_x, by_q, by_cells, by_way, by_mu = np.zeros(x.shape), np.zeros(q.shape), np.zeros_like(boxes), np.zeros(len(boxes)), np.zeros(x.shape)
    for far, side in sides.items():
        slope = np.zeros_like(boxes)
        if of_cells:
            h = far * steps
            slope = by_cell_on_host(x + np.repeat(h, sizes)[:, None] * ways[0], boxes + h[:, None, None] * ways[2], side["forces"], side["virial"],
                                    edges, batch.periodic)
        scale, share = _SLOPES[fourth][far] / steps, _MEANS[fourth][far]
        each = np.repeat(scale, sizes)
        by_x -= each[:, None] * side["forces"]
        by_q += each * side["potential"]
        by_mu -= each[:, None] * side["field"]
        by_cells += scale[:, None, None] * slope
        along = side["potential"] * ways[1] - (side["forces"] * ways[0] + side["field"] * ways[3]).sum(axis=1)
        by_way += share * (sums(along, edges) + (slope * ways[2]).sum(axis=(1, 2)))
    return [by_x, by_q, by_cells, by_way, by_mu]
