# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many systems in one call, with plans that are kept from call to call."""
from __future__ import annotations

import ctypes
import math
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _check, _inputs, _mixed
from ._arrays import View, checked, library_of, to_host
from ._inputs import BoxLike, box_vectors, numbers, refuse
from ._library import DeviceOutput, Error
from ._options import Options, Precision
from ._plan import CHANGE, Plan
from ._results import ARRAYS, BLOCK, DeviceStep, Wanted, check_blocks, room, with_given

if TYPE_CHECKING:
    from typing_extensions import Unpack

# A plan of cells for n particles is taken for others, too, whose number differs by a quarter at most, which is a twelfth in
# the length of a cell. On a device it is not: another number means an assignment that waits.
_MORE = 1.25
# A plan is made for this share of the accuracy, as errors of systems of one kind differ: of liquids of 64 ions by a fifth. It costs an
# order at most.
_SHARE = 0.6
# Differences of first derivatives are taken over twice this, in mean distances of particles, RMS charges or lengths of the box: their own
# error is some ten times the square, and rounding over it.
_NEAR, _NEAR_IN_SINGLE = 1e-5, 3e-3
# Those along a strain are of the fourth order, as nothing else is exact there: the error is about four times the fourth power of the strain.
_STRAIN, _STRAIN_IN_SINGLE = 1e-3, 1e-2
_OTHERS = 3  # plans that are tried on a system which the one used last does not serve


class BatchStep:
    """Results of the systems of a batch, in the caller's library and type. Those that were not asked for are None.

    energy     (systems), double precision
    forces     (all particles, 3), or (systems, n, 3) as the positions
    potential  (all particles) or (systems, n)
    field      as forces
    virial     (systems, 3, 3), double precision
    check()    with a device: waits, and raises Error if a position or charge was not finite or two charges stood at one place
    """

    def __init__(self, wanted: Wanted, energy: Any, virial: Any, arrays: Mapping[str, Any], block: Any = None, door: Any = None) -> None:
        self.energy, self.virial = energy if wanted.energy else None, virial if wanted.virial else None
        self.forces, self.potential, self.field = (arrays.get(name) for name in ARRAYS)
        self._block, self._door = block, door

    def check(self) -> None:
        if self._block is not None:
            check_blocks(self._door, self._block)


class _Kept:
    """A plan, what it is for, the accuracy that it was measured to have, and how its checks went."""

    def __init__(self, kind: Tuple, n: int, inverse: Optional[np.ndarray], plan: Plan, asked: float,
                 exclusions: Tuple[Optional[np.ndarray], Optional[np.ndarray]]) -> None:
        self.kind, self.n, self.inverse, self.plan, self.asked = kind, n, inverse, plan, asked
        self.exclusions = exclusions
        self.record = _check.Record()
        info = plan.info  # cells of an open system are others for each
        self.settings = [info[name] for name in ("method", "order", "grid", "depth", "separation", "m2l", "theta", "degree", "leaf")]


class Batch:
    """Computes many systems in one call. It makes plans for each number of particles and shape of the box, and keeps them.

    measure     True: a plan is measured on the system that it is made for, and other systems are checked. Most of those of a kind
                that the plan is known to serve are not checked. Where a plan does not serve, another one is made.
                False: a model chooses
    precision   "single" or "double"; None: that of the positions' type
    exclusions  pairs of particles that do not interact in any of the systems, integers (m, 2)
    max_plans   number of plans that are kept; the one that was not used for longest goes first
    options     members of gmxfmm_options, as of Plan

    One thread at a time may use a batch.
    """

    def __init__(self, *, measure: bool = True, precision: Optional[Precision] = None, exclusions: Any = None, max_plans: int = 32,
                 **options: Unpack[Options]) -> None:
        _inputs.check_options(options if precision is None else {**options, "precision": precision})
        if not isinstance(max_plans, (int, np.integer)) or max_plans < 1:
            raise refuse("max_plans", f"it is {max_plans!r}, it must be an integer of at least 1")
        self._given: Dict[str, Any] = dict(options, measure=measure, precision=precision, exclusions=exclusions)
        self._exact = exclusions is not None
        self._surface = options.get("boundary") == "vacuum"
        flags = _inputs.periodic_flags(options.get("periodic", 0))
        self._wants_boxes = any(flags) or options.get("boundary", "open") != "open"
        self._periodic = flags if any(flags) else (1, 1, 1)
        self._kappa = options.get("kappa", 0) if options.get("kernel") == "yukawa" else 0
        self._accuracy = _inputs.asked_of(self._given) if measure else None
        self._max_plans = max_plans
        self._kept: List[_Kept] = []  # the one used last comes first

    def __getstate__(self) -> Dict[str, Any]:
        """Without plans: a copy makes its own."""
        return dict(self.__dict__, _kept=[])

    @property
    def periodic(self) -> Tuple[int, int, int]:
        """Along which vectors of a box there are images."""
        return self._periodic

    @property
    def plans(self) -> List[Plan]:
        """The plans that are kept, the one used last first."""
        return [kept.plan for kept in self._kept]

    def _find(self, kind: Tuple, n: int, box: Optional[np.ndarray], more: float) -> "List[_Kept]":
        """The plans for such a system, the one used last first."""
        return [kept for kept in self._kept
                if kept.kind == kind and kept.n <= more * n and n <= more * kept.n
                and (box is None or kept.inverse is None or _inputs.same_shape(_inputs.lattice(box, self._periodic), kept.inverse, CHANGE))]

    def _use(self, kept: "_Kept") -> None:
        """It was used last."""
        if self._kept[0] is not kept:
            self._kept.remove(kept)
            self._kept.insert(0, kept)

    def _make(self, kind: Tuple, n: int, box: Optional[np.ndarray], x: np.ndarray, q: np.ndarray) -> "_Kept":
        """A plan that is measured on this system, and used last."""
        given, exclusions = dict(self._given), _inputs.exclusion_lists(self._given["exclusions"], n)
        if box is None:  # what is of periodic systems
            given.pop("boundary", None)
            given.pop("periodic", None)
        if kind[1] is not None:
            given.update(device="cuda", device_id=kind[2])
        if not np.any(q):  # nothing to measure with: a plan for this system alone, as the next may have charges
            return _Kept(kind, n, None, Plan(x, q, box, **dict(given, measure=False)), 0, exclusions)
        plan, asked = None, self._accuracy or 0
        if asked:
            try:
                plan = Plan(x, q, box, **dict(given, accuracy=_SHARE * asked))
                asked *= _SHARE
            except Error as error:
                if error.argument != "accuracy":
                    raise
        plan = plan or Plan(x, q, box, **given)
        plan.stop_measuring()
        kept = _Kept(kind, n, None if box is None else np.linalg.inv(_inputs.lattice(box, self._periodic)), plan, asked, exclusions)
        self._kept.insert(0, kept)
        while len(self._kept) > self._max_plans:
            self._kept.pop().plan.close()
        return kept

    def step(self, positions: Any, charges: Any, boxes: BoxLike = None, offsets: Optional[Sequence[int]] = None,
             out: Optional[Mapping[str, Any]] = None, *, energy: bool = True, forces: bool = True, potential: bool = False, field: bool = False,
             virial: bool = False) -> BatchStep:
        """Computes each system.

        positions  (systems, n, 3). Systems of any sizes stand one after the other, (all particles, 3), with offsets
        charges    (systems, n), or (all particles)
        boxes      None: open systems. (systems, 3, 3): a box each, vectors in rows; zeros are an open system. Or one box for all, as of Plan
        offsets    (systems + 1) integers: system s has the particles offsets[s] to offsets[s + 1] - 1
        out        a dictionary with arrays to write to, by the names forces, potential and field
        energy, forces, potential, field, virial
                   True: computed

        Arrays of a device stay there. All systems are put on the current stream, one behind the other. The host waits where a plan is
        made. It also waits at the end of a call whose systems are checked, for copies of positions, charges and forces.
        """
        door = library_of(positions)
        wanted = Wanted(bool(energy), bool(forces), bool(potential), bool(field), bool(virial))
        if out is not None:
            wanted = with_given(wanted, out)
        if door is None:
            x = to_host("positions", positions)
            dtype = np.dtype(np.float32 if getattr(x, "dtype", None) == np.float32 else np.float64)
            x = numbers("positions", x, (None, 3) if offsets is not None else (None, None, 3), dtype)
            q = numbers("charges", to_host("charges", charges), x.shape[:-1], dtype)
            shape = x.shape[:-1]
        else:
            view = checked(door, "positions", positions, (None, 3) if offsets is not None else (None, None, 3), None)
            q_view = checked(door, "charges", charges, view.shape[:-1], view.dtype)
            shape, dtype = view.shape[:-1], np.dtype(view.dtype)
        bounds = _bounds(offsets, shape)
        if boxes is None and self._wants_boxes:
            raise refuse("boxes", "there are none, but the systems are periodic: give their vectors")
        all_boxes = _boxes(boxes, len(bounds) - 1, self._periodic)
        arrays = room(wanted, shape, dtype, door, -1 if door is None else view.device, out)
        if door is None:
            return self._on_host(x.reshape(-1, 3), q.reshape(-1), all_boxes, bounds, wanted, arrays)
        return self._on_device(door, positions, charges, view, q_view, all_boxes, bounds, wanted, arrays)

    def _on_host(self, x: np.ndarray, q: np.ndarray, boxes: List[Optional[np.ndarray]], bounds: np.ndarray, wanted: Wanted,
                 arrays: dict) -> BatchStep:
        energies, virials = np.zeros(len(boxes)), np.zeros((len(boxes), 3, 3))
        flat = {name: array.reshape(-1, 3) if name != "potential" else array.reshape(-1) for name, array in arrays.items()}

        def compute(s: int, plan: Plan) -> Optional[np.ndarray]:
            one = slice(bounds[s], bounds[s + 1])
            _change(plan, q[one], boxes[s])
            step = plan.step(x[one], {name: array[one] for name, array in flat.items()}, energy=wanted.energy,
                             forces=wanted.forces or self._accuracy is not None, virial=wanted.virial, assign=True)
            if wanted.energy:
                energies[s] = step.energy
            if wanted.virial:
                virials[s] = step.virial
            return step.forces

        s, most, sizes = 0, 1, (bounds[1:] - bounds[:-1]).tolist()
        while s < len(boxes):
            end, found = self._run(s, min(len(boxes), s + most), x.dtype, sizes, boxes)
            if found:
                done = self._many(found[0], s, end, x, q, boxes, bounds, flat, energies if wanted.energy else None,
                                  virials if wanted.virial else None)
                most = 2 * most if done == end else 1  # what follows one that is not served is computed by another plan
                s = done
            if not found or s < end:
                box, one, kind = boxes[s], slice(bounds[s], bounds[s + 1]), (x.dtype, None, -1, boxes[s] is None)
                with _naming(s, len(boxes)):
                    self._one(self._find(kind, sizes[s], box, 1 if self._exact else _MORE), kind, x[one], q[one], box, partial(compute, s))
                s += 1
        return BatchStep(wanted, energies, virials, arrays)

    def _run(self, s: int, end: int, dtype: np.dtype, sizes: List[int], boxes: List[Optional[np.ndarray]]) -> "Tuple[int, List[_Kept]]":
        """Systems s to end - 1 that a plan serves by size and shape, and the plan; none: there is none, or no particle."""
        first, n = boxes[s], sizes[s]
        more = 1 if self._exact else _MORE
        found = self._find((dtype, None, -1, first is None), n, first, more)[:1] if n else []
        if not found:
            return s + 1, found
        if end > s + 1:
            like = found[0].n
            fits = [size > 0 and like <= more * size and size <= more * like and (box is None) == (first is None)
                    for size, box in zip(sizes[s:end], boxes[s:end])]
            if False in fits:
                end = s + fits.index(False)
            # most boxes are found to have the shape together, and boxes that are one are looked at once
            others = [k for k in range(s + 1, end) if boxes[k] is not boxes[k - 1]]
            if others and found[0].inverse is not None:
                shapes = np.array([_inputs.lattice(boxes[k], self._periodic) for k in others])
                same = _inputs.have_same_shape(shapes, found[0].inverse, CHANGE)
                if not same.all():
                    end = others[int(same.argmin())]
        return end, found

    def _many(self, kept: "_Kept", s: int, end: int, x: np.ndarray, q: np.ndarray, boxes: List[Optional[np.ndarray]], bounds: np.ndarray,
              flat: Dict[str, np.ndarray], energies: Optional[np.ndarray], virials: Optional[np.ndarray]) -> int:
        """Systems s to end - 1 by a plan, in one call of the library. Gives the first that it does not serve, or end."""
        all_of_them = slice(bounds[s], bounds[end])
        arrays = {name: array[all_of_them] for name, array in flat.items()}
        if self._accuracy is not None and "forces" not in arrays:
            arrays["forces"] = np.empty_like(x[all_of_them])
        own = None if boxes[s] is None else np.array(boxes[s:end], dtype=np.float64)
        try:
            kept.plan.step_systems(x[all_of_them], q[all_of_them], bounds[s:end + 1], own, arrays, None if energies is None else energies[s:end],
                                   None if virials is None else virials[s:end])
        except Error as error:
            with _naming(s + getattr(error, "system", 0), len(boxes)):
                raise
        self._use(kept)
        return end if self._accuracy is None else self._first_unserved(kept, s, end, arrays["forces"], x, q, boxes, bounds, own)

    def _first_unserved(self, kept: "_Kept", s: int, end: int, forces: np.ndarray, x: np.ndarray, q: np.ndarray, boxes: Sequence[Optional[np.ndarray]],
                        bounds: np.ndarray, own: Optional[np.ndarray]) -> int:
        """Checks the forces (of these systems alone) that a plan has given of systems s to end - 1. Gives the first that it does not serve, or
        end.
        """
        assert self._accuracy is not None
        all_of_them, start = slice(bounds[s], bounds[end]), bounds[s:end] - bounds[s]
        if end == s + 1:  # a third of the time
            kinds = [_check.kind_of(forces, x[all_of_them], q[all_of_them], boxes[s])]
        else:
            kinds = _check.kinds_of(forces, x[all_of_them], q[all_of_them], start, own)
        for k, kind in enumerate(kinds):
            if kind and not kept.record.trusts(kind):
                one = slice(bounds[s + k], bounds[s + k + 1])
                if not self._has_accuracy(kept, kind, forces[start[k]:start[k] + one.stop - one.start], self._accuracy, x[one], q[one], boxes[s + k]):
                    kept.record.drop(kind)
                    return s + k
        return end

    def _one(self, found: "List[_Kept]", kind: Tuple, x: np.ndarray, q: np.ndarray, box: Optional[np.ndarray],
             compute: Callable[[Plan], Optional[np.ndarray]]) -> None:
        """Computes one system, by the first of the plans found that serves it, or by one that is made for it. compute gives its forces by a plan."""
        asked = self._accuracy if q.any() else None
        found = found[:1 if asked is None else 1 + _OTHERS]
        for kept in found:
            forces = compute(kept.plan)
            if asked is None or forces is None or self._serves(kept, forces, asked, x, q, box):
                self._use(kept)
                return
        kept = self._make(kind, len(x), box, x, q)
        forces = compute(kept.plan)
        if kept not in self._kept:
            kept.plan.close()
        elif asked is not None and forces is not None:
            self._made(kept, found, forces, asked, x, q, box)

    def _made(self, kept: "_Kept", others: "List[_Kept]", forces: np.ndarray, asked: float, x: np.ndarray, q: np.ndarray,
              box: Optional[np.ndarray]) -> None:
        """Records a plan that was made for a system which the others do not serve."""
        kind = _check.kind_of(forces, x, q, box)
        self._join(kept, others, kind)
        kept.record.add(kind, kept.asked / asked)

    def _join(self, made: "_Kept", others: "List[_Kept]", kind: _check.Kind) -> None:
        """Drops a new plan whose settings another one has. What is known of errors on systems of this kind is kept. The check of this system is
        not kept, as it was wrong.
        """
        for other in others:
            if other.settings == made.settings and other in self._kept:
                made.record.take(kind, other.record)
                self._kept.remove(other)
                other.plan.close()

    def _serves(self, kept: "_Kept", forces: np.ndarray, asked: float, x: np.ndarray, q: np.ndarray, box: Optional[np.ndarray]) -> bool:
        """Whether the forces have the accuracy."""
        kind = _check.kind_of(forces, x, q, box)
        return not kind or kept.record.trusts(kind) or self._has_accuracy(kept, kind, forces, asked, x, q, box)

    def _has_accuracy(self, kept: "_Kept", kind: _check.Kind, forces: np.ndarray, asked: float, x: np.ndarray, q: np.ndarray,
                      box: Optional[np.ndarray]) -> bool:
        """The same, by a check."""
        try:
            if box is not None:
                _change(kept.plan, q, box)  # on a device it has those of a later system
            error = _check.error_of(kept.plan, forces, x, q, box, kept.exclusions, self._kappa, self._surface) / asked
        except Error:
            kept.record.add(kind, 1e300)
            return False
        kept.record.add(kind, error)
        return error <= 1

    def _on_device(self, door: Any, positions: Any, charges: Any, view: View, q_view: View, boxes: List[Optional[np.ndarray]], bounds: np.ndarray,
                   wanted: Wanted, arrays: dict) -> BatchStep:
        dtype = np.dtype(view.dtype)
        word = dtype.itemsize
        block = door.empty((max(1, len(boxes)), BLOCK), "float64", view.device)
        written = arrays
        if self._accuracy is not None and not wanted.forces:  # to be looked at
            written = {**arrays, **room(Wanted(False, True, False, False, False), view.shape[:-1], dtype, door, view.device, None)}
        base, pointers = door.pointer(block), {name: door.pointer(array) for name, array in written.items()}
        kinds = [(dtype, type(door), view.device, box is None) for box in boxes]
        bound: List[int] = bounds.tolist()

        def enqueue(s: int, plan: Plan) -> None:
            output = DeviceOutput(size=ctypes.sizeof(DeviceOutput))
            DeviceStep.point(output, base + 8 * BLOCK * s, wanted,
                             {name: pointer + bound[s] * word * (3 if name != "potential" else 1) for name, pointer in pointers.items()})
            plan.enqueue_system(view._replace(pointer=view.pointer + 3 * word * bound[s]),
                                q_view._replace(pointer=q_view.pointer + word * bound[s]), boxes[s], output)

        def on_host(name: str, array: Any) -> np.ndarray:
            return to_host(name, array).reshape(-1 if name == "charges" else (-1, 3))

        used: List[_Kept] = []
        made = set()  # systems
        for s, box in enumerate(boxes):
            n = bound[s + 1] - bound[s]
            with _naming(s, len(boxes)):
                found = self._find(kinds[s], n, box, 1)
                if not found:
                    one = slice(bound[s], bound[s + 1])
                    found = [self._make(kinds[s], n, box, on_host("positions", positions)[one], on_host("charges", charges)[one])]
                    made.add(s)
                enqueue(s, found[0].plan)
                used.append(found[0])
        door.finish(view)
        if self._accuracy is not None and used:
            # Once they are all under way, so that the device need not wait while the host looks at one after the other
            x, q, forces = (on_host(*array) for array in (("positions", positions), ("charges", charges), ("forces", written["forces"])))

            def compute(s: int, plan: Plan) -> np.ndarray:
                if plan is used[s].plan:
                    return forces[bound[s]:bound[s + 1]]
                enqueue(s, plan)
                door.finish(view)
                return on_host("forces", written["forces"])[bound[s]:bound[s + 1]]

            for s, box in enumerate(boxes):
                one = slice(bound[s], bound[s + 1])
                if s in made:
                    if used[s] in self._kept:
                        self._made(used[s], [], forces[one], self._accuracy, x[one], q[one], box)
                    continue
                with _naming(s, len(boxes)):
                    found = self._find(kinds[s], one.stop - one.start, box, 1)
                    found.sort(key=lambda kept: kept is not used[s])
                    self._one(found, kinds[s], x[one], q[one], box, partial(compute, s))
        if not door.writes:  # JAX's bytes: numbers of the host
            block = door.host(block).reshape(-1, BLOCK)
        block = block[:len(boxes)]
        return BatchStep(wanted, *DeviceStep.parts(block), arrays, block, door)

    def mixed(self, positions: np.ndarray, charges: np.ndarray, boxes: List[Optional[np.ndarray]], bounds: np.ndarray, by_x: np.ndarray,
              by_q: np.ndarray, strain: bool, device: int = -1, door: Any = None) -> Tuple[np.ndarray, Dict[str, np.ndarray]]:
        """Second derivatives of energies along a way of positions by_x (n, 3) and charges by_q (n), as of _mixed.Mixed. Arguments are those of
        sides, in single or double precision.

        strain  whether the virial is wanted

        Gives which systems were computed, and arrays by the names of Mixed. A plan without dipoles computes nothing.
        """
        dtype, systems, n = positions.dtype, len(boxes), len(charges)
        found = {"forces": np.zeros((n, 3)), "potential": np.zeros(n), "virial": np.zeros((systems, 3, 3)), "energy": np.zeros(systems)}
        done = np.ones(systems, dtype=bool)
        by_x, by_q = by_x.astype(dtype), by_q.astype(dtype)
        result: Optional[_mixed.Mixed] = None

        def compute(plan: Plan) -> Optional[np.ndarray]:
            nonlocal result
            result = None
            _change(plan, measured_with, box)
            if not q.any():  # the energy is quadratic in the charges
                step = plan.step(x, potential=True, assign=True)
                result = _mixed.Mixed(np.zeros_like(x), step.potential, np.zeros((3, 3)), 0.0)
                return step.forces
            if not _mixed.has_dipoles(plan):
                return None
            result, forces = _mixed.along(plan, x, q, u, w, box, strain and box is not None)
            return forces

        s, most, sizes = 0, 1, np.diff(bounds).tolist()
        while s < systems:
            end, kept = self._run(s, min(systems, s + most), dtype, sizes, boxes) if door is None and not strain else (s + 1, [])
            if kept and _mixed.has_dipoles(kept[0].plan):
                before, s = s, self._many_mixed(kept[0], s, end, positions, charges, by_x, by_q, boxes, bounds, found)
                most = 2 * most if s == end else 1  # as of steps
                if s > before:
                    continue
            one, box = slice(bounds[s], bounds[s + 1]), boxes[s]
            x, q, u, w = positions[one], charges[one], by_x[one], by_q[one]
            measured_with = q if q.any() else w
            if measured_with.any() and (u.any() or w.any()):
                kind = (np.dtype(dtype), None if door is None else type(door), device, box is None)
                with _naming(s, systems):
                    self._one(self._near(kind, x, box), kind, x, measured_with, box, compute)
                done[s] = result is not None
                if result is not None:
                    found["forces"][one], found["potential"][one], found["virial"][s], found["energy"][s] = result
            s += 1
        return done, found

    def _many_mixed(self, kept: "_Kept", s: int, end: int, x: np.ndarray, q: np.ndarray, u: np.ndarray, w: np.ndarray,
                    boxes: Sequence[Optional[np.ndarray]], bounds: np.ndarray, found: Dict[str, np.ndarray]) -> int:
        """What mixed finds, without virials, of systems s to end - 1 by a plan. Gives the first that it does not serve, or end."""
        all_of_them = slice(bounds[s], bounds[end])
        own = None if boxes[s] is None else np.array(boxes[s:end], dtype=np.float64)
        try:
            forces, potential, energy, felt = _mixed.of_systems(kept.plan, x[all_of_them], q[all_of_them], u[all_of_them], w[all_of_them],
                                                                bounds[s:end + 1] - bounds[s], own)
        except Error as error:
            with _naming(s + getattr(error, "system", 0), len(boxes)):
                raise
        self._use(kept)
        served = end if self._accuracy is None else self._first_unserved(kept, s, end, felt, x, q, boxes, bounds, own)
        n = bounds[served] - bounds[s]
        these = slice(bounds[s], bounds[served])
        found["forces"][these], found["potential"][these], found["energy"][s:served] = forces[:n], potential[:n], energy[:served - s]
        return served

    def sides(self, positions: np.ndarray, charges: np.ndarray, boxes: Sequence[Optional[np.ndarray]], bounds: np.ndarray, ways: Sequence[np.ndarray],
              virial: bool, strain: bool, device: int = -1, door: Any = None) -> Tuple[np.ndarray, Dict[int, Dict[str, np.ndarray]]]:
        """Results of systems a little before and behind where they are, for differences of first derivatives.

        positions, charges, boxes, bounds
                all particles (n, 3) and (n) of float64, on the host; a box or None for each system. System s has bounds[s] to bounds[s + 1] - 1
        ways    directions of positions (n, 3), charges (n) and boxes (systems, 3, 3). A system without any is left out
        strain  whether the positions follow the box, as of a strain of both
        device  of the plans, and the door to its library; -1: the host

        Gives the steps h (systems), and for the sides at -h and +h of the way, of a strain at twice that, too, forces, potential and virial. One
        plan computes all sides. Its cells are those of the place between, so that its potential is smooth from one side to the other. The
        difference then has no errors of different cells.
        """
        kind_of_arrays = np.dtype(np.float64), None if door is None else type(door), device
        steps, systems, n = np.ones(len(boxes)), len(boxes), len(charges)
        found = {far: {"forces": np.zeros((n, 3)), "potential": np.zeros(n), "virial": np.zeros((systems, 3, 3))}
                 for far in ((-2, -1, 1, 2) if strain else (-1, 1))}
        exact, rough = (_STRAIN, _STRAIN_IN_SINGLE) if strain else (_NEAR, _NEAR_IN_SINGLE)
        for s, box in enumerate(boxes):
            one = slice(bounds[s], bounds[s + 1])
            x, q, (by_x, by_q, by_box) = positions[one], charges[one], (ways[0][one], ways[1][one], ways[2][s])
            measured_with = q if q.any() else by_q
            if not measured_with.any():
                continue
            way = _length_of_way(x, measured_with, box, 0 * by_x if strain else by_x, by_q, by_box)
            if not way > 0:
                continue
            with _naming(s, systems):
                kind = (*kind_of_arrays, box is None)
                plan = self._plan_that_serves(kind, x, measured_with, box)
                h = steps[s] = (exact if plan.info.precision == "double" else rough) / way
                plan.assign(x)
                for far, side in found.items():
                    plan.set_charges(q + far * h * by_q)
                    if box is not None:
                        plan.set_box(box + far * h * by_box)
                    step = plan.step(x + far * h * by_x, potential=True, virial=virial and box is not None, assign=False)
                    side["forces"][one], side["potential"][one] = step.forces, step.potential
                    if step.virial is not None:
                        side["virial"][s] = step.virial
        return steps, found

    def _near(self, kind: Tuple, x: np.ndarray, box: Optional[np.ndarray]) -> "List[_Kept]":
        """The plans for a system, the one used last first."""
        return self._find(kind, len(x), box, 1 if self._exact or kind[1] is not None else _MORE)

    def _plan_that_serves(self, kind: Tuple, x: np.ndarray, q: np.ndarray, box: Optional[np.ndarray]) -> Plan:
        """A plan that has the charges and the box of the system."""
        plan: Any = None

        def compute(other: Plan) -> Optional[np.ndarray]:
            nonlocal plan
            plan = other
            _change(plan, q, box)
            return plan.step(x, assign=True).forces

        self._one(self._near(kind, x, box), kind, x, q, box, compute)
        _change(plan, q, box)
        return plan

    def close(self) -> None:
        """Gives the memory of all plans back."""
        for plan in self.plans:
            plan.close()
        self._kept.clear()

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _length_of_way(x: np.ndarray, q: np.ndarray, box: Optional[np.ndarray], by_x: np.ndarray, by_q: np.ndarray, by_box: np.ndarray) -> float:
    """The longest way of a particle, a charge or the box, in mean distances, RMS charges and lengths of the box."""
    far = [np.abs(by_x).max(initial=0) / _check.spacing(x, box), np.abs(by_q).max(initial=0) / (math.sqrt(float(np.mean(q * q))) or 1.0)]
    if box is not None:
        far.append(np.abs(by_box).max() / np.abs(box).max())
    return float(max(far))


def _change(plan: Plan, q: np.ndarray, box: Optional[np.ndarray]) -> None:
    """Gives a plan the charges and the box of another system."""
    plan.set_charges(q)
    if box is not None:
        plan.set_box(box)


@contextmanager
def _naming(s: int, systems: int) -> Iterator[None]:
    """Adds to an error which system it belongs to."""
    try:
        yield
    except Error as error:
        if systems == 1:
            raise
        raise Error(error.status, f"{error}, in system {s}", error.argument) from None


def _bounds(offsets: Optional[Sequence[int]], shape: Tuple[int, ...]) -> np.ndarray:
    if offsets is None:
        return np.arange(shape[0] + 1, dtype=np.int64) * shape[1]
    bounds = np.asarray(to_host("offsets", offsets))
    if bounds.dtype.kind not in "iu" or bounds.ndim != 1 or len(bounds) < 1:
        raise refuse("offsets", f"they have the type {bounds.dtype} and the shape {bounds.shape}, they must be integers (systems + 1)")
    bounds = bounds.astype(np.int64)
    check_offsets(bounds, shape[0])
    return bounds


def check_offsets(bounds: np.ndarray, n: int) -> None:
    if bounds[0] != 0 or bounds[-1] != n or (np.diff(bounds) < 0).any():
        raise refuse("offsets", f"they go from {bounds[0]} to {bounds[-1]}, they must rise from 0 to {n}, the number of particles")


def _boxes(boxes: Any, systems: int, periodic: Tuple[int, int, int]) -> List[Optional[np.ndarray]]:
    boxes = to_host("boxes", boxes)
    if boxes is not None and np.ndim(boxes) == 3:
        array = numbers("boxes", boxes, (systems, 3, 3)).copy()
        rows = array.reshape(systems, 9)
        found = [box if there else None for box, there in zip(array, rows.any(axis=1).tolist())]
        if systems > 1:
            for s, again in enumerate((rows[1:] == rows[:-1]).all(axis=1).tolist()):
                if again:
                    found[s + 1] = found[s]
        return found
    one = box_vectors(boxes, periodic)
    return [one] * systems
