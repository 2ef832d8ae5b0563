# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds how wrong a plan's forces are on a system that it was not measured on, in the time of a step or so."""
from __future__ import annotations

import math
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._library import Error

# Where a periodic system is put, in lengths of the box: not a whole number of cells, nor half of one, in a grid of any size, so that the
# cells cut crystals elsewhere. The errors of both places are then independent of each other.
_SHIFT = np.array([0.2361, 0.3819, 0.1459])
# So many forces of an open system are summed directly, spread over all particles by the golden ratio. The RMS error of a sample is uncertain
# by 1 / sqrt(2 of them), about; twice that is left, unless all are in it.
_SAMPLE = 64
_GOLDEN = 0.6180339887498949

# As in src/fmm/measure/norm.c: forces larger than this times the usual one count as usual ones, and forces below this share of
# their natural unit are zero.
_LIMIT, _ZERO = 10, 1e-10

_ENOUGH = 4  # systems of a kind that are checked before others of it are trusted
_LAST = 16  # of these alone the errors are kept: a kind may change
_EVERY = 8  # of a kind that is trusted each so many-th is checked
_SIGMAS = 3  # of the errors of its systems lie between their mean and what was asked


class Sources(NamedTuple):
    """Charges (n), and dipoles (n, 3) or None."""

    charges: np.ndarray
    dipoles: Optional[np.ndarray] = None

    def any(self) -> bool:
        return bool(self.charges.any()) or self.dipoles is not None and bool(self.dipoles.any())

    def of(self, some: slice) -> Sources:
        return Sources(self.charges[some], None if self.dipoles is None else self.dipoles[some])

    def together(self, parts: List[slice]) -> Sources:
        """Those of several parts, one behind the other."""
        charges, dipoles = self
        return Sources(np.concatenate([charges[one] for one in parts]), None if dipoles is None else np.concatenate([dipoles[one] for one in parts]))

    def strengths(self, distance: float) -> np.ndarray:
        """|q| + |mu| / distance, which forces and torques go with, as of src/fmm/measure/norm.c."""
        return np.abs(self.charges) if self.dipoles is None else np.abs(self.charges) + _lengths(self.dipoles) / distance


class Felt(NamedTuple):
    """Forces (n, 3), and torques (n, 3) on dipoles, or None."""

    forces: np.ndarray
    torques: Optional[np.ndarray] = None

    def of(self, some: slice) -> Felt:
        return Felt(self.forces[some], None if self.torques is None else self.torques[some])


def _lengths(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=float))


def shifted(x: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The same system at another place in its cells."""
    return (x + _SHIFT @ box).astype(x.dtype)


def sample(n: int) -> np.ndarray:
    """Some particles, or all of few."""
    return np.arange(n) if n <= _SAMPLE else (np.arange(_SAMPLE) * _GOLDEN % 1 * n).astype(np.intp)


def direct(which: np.ndarray, x: np.ndarray, q: np.ndarray, exclusions: Tuple[Optional[np.ndarray], Optional[np.ndarray]], kappa: float) -> np.ndarray:
    """Forces on these particles of an open system, without prefactor, by the sum over pairs."""
    x, q = x.astype(float, copy=False), q.astype(float, copy=False)
    d = [x[which, k, None] - x[:, k] for k in range(3)]
    square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    square[np.arange(len(which)), which] = np.inf
    r = np.sqrt(square)
    term = q / (square * r)
    if kappa:
        r[np.isinf(r)] = 0
        term *= (1 + kappa * r) * np.exp(-kappa * r)
    start, others = exclusions
    if start is not None and others is not None:
        for row, i in enumerate(which):
            term[row, others[start[i]:start[i + 1]]] = 0
    return q[which, None] * np.stack([np.einsum("ij,ij->i", term, one) for one in d], axis=1)


def direct_with_dipoles(which: np.ndarray, x: np.ndarray, sources: Sources, exclusions: Tuple[Optional[np.ndarray], Optional[np.ndarray]]) -> Felt:
    """Forces and torques on these particles of an open system, without prefactor, by the sum over pairs: THEORY (49)."""
    assert sources.dipoles is not None
    x, q, mu = (array.astype(float, copy=False) for array in (x, sources.charges, sources.dipoles))
    r = x[which, None] - x
    square = np.einsum("ijd,ijd->ij", r, r)
    square[np.arange(len(which)), which] = np.inf
    start, others = exclusions
    if start is not None and others is not None:
        for row, i in enumerate(which):
            square[row, others[start[i]:start[i + 1]]] = np.inf
    own = mu[which]
    w2 = 1 / square
    w3 = w2 * np.sqrt(w2)
    along, here = np.einsum("ijd,jd->ij", r, mu), np.einsum("ijd,id->ij", r, own)
    radial = (q + 3 * along * w2) * w3
    field = np.einsum("ij,ijd->id", radial, r) - w3 @ mu
    second = 3 * w3 * w2
    turned = radial.sum(axis=1)[:, None] * own + (second * here) @ mu
    turned += np.einsum("ij,ijd->id", second * (own @ mu.T) - (q * second + 5 * along * second * w2) * here, r)
    return Felt(q[which, None] * field + turned, np.cross(own, field))


def spacing(x: np.ndarray, box: Optional[np.ndarray]) -> float:
    return spacing_of(len(x), box, () if box is not None else (x.max(axis=0) - x.min(axis=0)).tolist())


def spacing_of(n: int, box: Optional[np.ndarray], extent: Sequence[float]) -> float:
    """The mean distance of n particles in a box, or of an open system with an extent along each axis."""
    if box is not None:  # a tenth of the time that numpy takes for a determinant
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = box.tolist()
        volume = abs(ax * (by * cz - bz * cy) - ay * (bx * cz - bz * cx) + az * (bx * cy - by * cx))
    else:
        volume = math.prod(extent) or max(extent) ** 3  # of particles in a plane or on a line
    return (volume / n) ** (1 / 3) or 1.0


def difference(found: np.ndarray, which: np.ndarray, change: np.ndarray, natural: float, sampled: bool) -> float:
    """RMS change of the forces on particles `which` to those of another sum, over the RMS of all forces found. Where forces of usual size are
    larger, it is over these. In a periodic system the others are wrong, too. Independent errors add up in squares. Torques have the same.

    natural  unit of forces, by which they are zero
    sampled  whether others are exact, and of some particles
    """
    found = found.astype(float, copy=False)
    wrong, size, n = np.einsum("ij,ij->i", change, change), np.einsum("ij,ij->i", found, found), len(found)
    mean = float(size.sum()) / n
    if not mean > (_ZERO * natural) ** 2:
        mean = natural**2
    error = math.sqrt(float(wrong.sum()) / len(wrong) / mean) if mean > 0 else 0.0
    # a sort of few takes less time than np.median, and of many more
    ordered = np.sort(size) if n < 1000 else np.partition(size, (n - 1 - n // 2, n // 2, n - 1))
    usual = max(0.5 * float(ordered[n // 2] + ordered[-1 - n // 2]), natural**2)
    if 0 < _LIMIT**2 * usual < ordered[-1]:
        share = np.where(size > _LIMIT**2 * usual, usual / np.maximum(size, usual), 1)
        error = max(error, math.sqrt(float((wrong * share[which]).mean()) / float((size * share).mean())))
    if sampled:
        error *= 1 + 2 / math.sqrt(2 * len(which))
    return error if math.isfinite(error) else math.inf


def _summed_directly(prefactor: float, x: np.ndarray, sources: Sources, exclusions: Tuple[Optional[np.ndarray], Optional[np.ndarray]],
                     kappa: float) -> Felt:
    """Forces, and torques, on a sample of the particles of an open system."""
    which = sample(len(x))
    if sources.dipoles is None:
        return Felt(prefactor * direct(which, x, sources.charges, exclusions, kappa))
    forces, torques = direct_with_dipoles(which, x, sources, exclusions)
    return Felt(prefactor * forces, prefactor * torques)


def _at_another_place(plan: Any, x: np.ndarray, sources: Sources, parts: List[slice], boxes: np.ndarray) -> List[Optional[Felt]]:
    """Forces, and torques, of some periodic systems by the same plan at another place in its cells, where particles are left. parts: particles of
    each. It ends with None for a system that fails: in single precision a shift may put two charges at one place.
    """
    moved = np.concatenate([shifted(x[one], box) for one, box in zip(parts, boxes)])
    some = sources.together(parts)
    bounds = np.cumsum([0] + [one.stop - one.start for one in parts])
    names = ("forces",) if some.dipoles is None else ("forces", "torques")
    arrays = {name: np.empty_like(moved) for name in names}
    ends: List[int] = bounds.tolist()
    end, failed = len(parts), []
    try:
        plan.step_systems(moved, some, bounds, boxes, arrays, None, None)
    except Error as error:
        end, failed = getattr(error, "system", 0), [None]
    return [Felt(*(arrays[name][ends[k]:ends[k + 1]] for name in names)) for k in range(end)] + failed


def _error_between(felt: Felt, others: Felt, prefactor: float, x: np.ndarray, sources: Sources, box: Optional[np.ndarray], surface: bool) -> float:
    """The error of forces, and torques, from those at another place in the cells, or in an open system from a sample summed directly.

    surface  a term of the box's dipole that is left out, as a shift changes it where it takes ions to another side
    """
    which, (q, mu) = sample(len(x)) if box is None else np.arange(len(x)), sources
    change, uniform = others.forces - felt.forces[which], np.zeros(3)
    if surface and box is not None and q.any():
        uniform = q @ change / np.vdot(q, q)
        change = change - np.outer(q, uniform)
    distance = spacing(x, box)
    strength, sampled = float(sources.strengths(distance).mean()) / distance, box is None and len(which) < len(x)
    error = difference(felt.forces, which, change, abs(prefactor) * strength**2, sampled)
    if mu is None or felt.torques is None or others.torques is None:
        return error
    change = others.torques - felt.torques[which] - np.cross(mu[which], uniform)
    return max(error, difference(felt.torques, which, change, abs(prefactor) * float(_lengths(mu).mean()) / distance * strength, sampled))


def errors_of(plan: Any, felt: Felt, x: np.ndarray, sources: Sources, boxes: Optional[np.ndarray], some: List[Tuple[int, slice]],
              exclusions: Tuple[Optional[np.ndarray], Optional[np.ndarray]], kappa: float, surface: bool,
              again: Optional[Callable[[np.ndarray], Optional[np.ndarray]]] = None) -> Dict[int, float]:
    """Errors of a plan's forces, and torques, on some systems, by their numbers; infinite ones cannot be had. In periodic systems the same plan
    computes them at another place in its cells, where particles are left. In an open system it is by direct sums for some particles.

    boxes  of all systems; None: they are open
    some   numbers and particles of systems; the first of open ones alone is computed, as together they take no less time
    again  gives forces of a single periodic system without dipoles when all of it is moved by a vector, or None; None: it is moved here
    """
    if boxes is None:
        some = some[:1]
        others: List[Optional[Felt]] = [_summed_directly(plan.prefactor, x[one], sources.of(one), exclusions, kappa) for _, one in some]
    else:
        moved = None if again is None else again(_SHIFT @ boxes[0])
        others = [Felt(moved)] if moved is not None else _at_another_place(plan, x, sources, [one for _, one in some], boxes[[s for s, _ in some]])
    return {s: math.inf if other is None else
            _error_between(felt.of(one), other, plan.prefactor, x[one], sources.of(one), None if boxes is None else boxes[s], surface)
            for (s, one), other in zip(some, others)}


Kind = Tuple[int, ...]


def kind_of(forces: np.ndarray, x: np.ndarray, q: np.ndarray, box: Optional[np.ndarray]) -> Kind:
    squares, charges = np.einsum("ij,ij->i", forces, forces, dtype=float), np.square(q, dtype=float)
    sums = squares.sum(), np.vdot(squares, squares), charges.sum(), np.vdot(charges, charges), q.sum(dtype=float)
    return kind_of_sums(len(q), [float(one) for one in sums], box, () if box is not None else (x.max(axis=0) - x.min(axis=0)).tolist())


def kind_of_sums(n: int, sums: Sequence[float], box: Optional[np.ndarray], extent: Sequence[float]) -> Kind:
    """Numbers that tell kinds of systems apart, at the cost of some sums. They are the RMS force in its natural unit, how uneven forces and
    charges are, and whether there is a net charge. All but the last are kept to a factor of 1.4 or 2.

    sums  over the n particles: of F^2, F^4, q^2, q^4 and q
    """
    force, fourth, charge, fourth_of_charge, net = sums
    if not 0 < force < math.inf or not charge > 0:  # a device leaves infinite ones to BatchStep.check()
        return ()
    natural = charge / n / spacing_of(n, box, extent) ** 2
    uneven = n * fourth / force**2, n * fourth_of_charge / charge**2
    return (round(math.log2(force / n / natural**2)), round(math.log2(uneven[0])), round(2 * math.log2(uneven[1])),
            abs(net) > 1e-3 * math.sqrt(charge))


def kind_with_dipoles(felt: Felt, x: np.ndarray, sources: Sources, box: Optional[np.ndarray]) -> Kind:
    """The same of charges with dipoles, and the RMS torque in its natural unit."""
    assert felt.torques is not None and sources.dipoles is not None
    distance, q = spacing(x, box), sources.charges
    kind = kind_of(felt.forces, x, sources.strengths(distance), box)
    square = float(np.vdot(felt.torques, felt.torques)) / max(1e-300, float(np.vdot(sources.dipoles, sources.dipoles)))
    if not kind or not square < math.inf:
        return ()
    net = abs(float(q.sum(dtype=float))) > 1e-3 * math.sqrt(float(np.vdot(q, q)))
    return (*kind[:3], net, round(math.log2(max(square, 1e-300))))


def kinds_of(forces: np.ndarray, x: np.ndarray, q: np.ndarray, start: np.ndarray, boxes: Optional[np.ndarray]) -> List[Kind]:
    """kind_of of systems one behind the other, none of which is empty; start: where each begins."""
    def over(terms: np.ndarray) -> np.ndarray:
        return np.add.reduceat(terms, start)

    n = np.diff(np.append(start, len(q)))
    squares, charges = np.einsum("ij,ij->i", forces, forces, dtype=float), np.square(q, dtype=float)
    if boxes is not None:
        volume = np.abs(np.linalg.det(boxes))
    else:
        extent = (np.maximum.reduceat(x, start) - np.minimum.reduceat(x, start)).astype(float)
        volume = extent.prod(axis=1)
        volume = np.where(volume > 0, volume, extent.max(axis=1) ** 3)
    distance = np.cbrt(volume / n)
    distance[distance == 0] = 1
    with np.errstate(all="ignore"):
        force, charge = over(squares), over(charges)
        good = (force > 0) & (force < math.inf) & (charge > 0)
        natural = charge / n / distance**2
        first = np.rint(np.log2(force / n / natural**2))
        second = np.rint(np.log2(n * over(squares * squares) / force**2))
        third = np.rint(2 * np.log2(n * over(charges * charges) / charge**2))
        net = np.abs(over(q.astype(float))) > 1e-3 * np.sqrt(charge)
    numbers = np.where(good[:, None], np.stack([first, second, third, net], axis=1), 0).astype(int).tolist()
    return [tuple(kind) if fine else () for kind, fine in zip(numbers, good.tolist())]


def _are_sure(errors: Sequence[float]) -> bool:
    """Whether logarithms of errors leave no doubt: of so few numpy takes longer."""
    logarithms = [math.log(error) for error in errors]
    mean = sum(logarithms) / len(logarithms)
    variance = sum((one - mean)**2 for one in logarithms) / (len(logarithms) - 1)
    return mean + _SIGMAS * math.sqrt(variance) <= 0


class Record:
    """The kinds of systems that one plan has computed, and their errors over what was asked."""

    def __init__(self) -> None:
        self._errors: Dict[Kind, Deque[float]] = {}
        self._trusted: Dict[Kind, int] = {}  # how many of a kind need no check
        self._last: Kind = ()  # whose error was added last

    def trusts(self, kind: Kind) -> bool:
        """Whether such a system needs no check: those before it leave no doubt, and the last check is not long ago."""
        left = self._trusted.get(kind, 0)
        if left > 0:
            self._trusted[kind] = left - 1
        return left > 0

    def add(self, kind: Kind, error: float) -> None:
        errors = self._errors.setdefault(kind, deque(maxlen=_LAST))
        errors.append(min(max(error, 1e-300), 1e300))
        self._last = kind
        self._trusted[kind] = _EVERY - 1 if len(errors) >= _ENOUGH and _are_sure(errors) else 0

    def due(self, kinds: List[Kind], first: int) -> List[int]:
        """Which of these will be checked, from the first one on, which is now, where checks leave no doubt."""
        left, checks, found = dict(self._trusted), {kind: len(errors) for kind, errors in self._errors.items()}, []
        for s, kind in enumerate(kinds[first:], first):
            if not kind:
                continue
            left[kind] = left.get(kind, 0) - 1
            if left[kind] < 0:
                found.append(s)
                checks[kind] = checks.get(kind, 0) + 1
                left[kind] = _EVERY - 1 if checks[kind] >= _ENOUGH else 0
        return found

    def drop(self) -> None:
        """The error that was added last, which is to be found again."""
        self._errors[self._last].pop()

    def take(self, kind: Kind, other: Record) -> None:
        """Takes the errors of a kind from another record, without the last. The other record is of no use then."""
        errors = other._errors.get(kind)
        if errors:
            errors.pop()
            self._errors.setdefault(kind, deque(maxlen=_LAST)).extend(errors)
