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
from ._check import Felt, Sources
from ._library import DeviceAlong, DeviceOutput, Error
from ._options import Options, Precision
from ._plan import CHANGE, Plan
from ._results import BLOCK, COLUMNS, DeviceStep, OF_DIPOLES, STEP_ARRAYS, Wanted, check_blocks, room, with_given

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
# Where dipoles move the error is some fifty times the fourth power of the way over the distance of near pairs, and rounding over the way.
_MOVE, _MOVE_IN_SINGLE = 3e-4, 1e-2
_Again = Callable[[Plan, np.ndarray], Optional[np.ndarray]]
_Look = Callable[[Callable[[], Optional[np.ndarray]]], None]
_OTHERS = 3  # plans that are tried on a system which the one used last does not serve


class BatchStep:
    """Results of the systems of a batch, in the caller's library and type. Those that were not asked for are None.

    energy     (systems), double precision
    forces     (all particles, 3), or (systems, n, 3) as the positions
    potential  (all particles) or (systems, n)
    field      as forces
    torques    as forces, on dipoles; field_gradient (all particles, 6) or (systems, n, 6). Both as of Plan
    virial     (systems, 3, 3), double precision
    check()    with a device: waits, and raises Error if a position or charge was not finite or two charges stood at one place
    """

    def __init__(self, wanted: Wanted, energy: Any, virial: Any, arrays: Mapping[str, Any], block: Any = None, door: Any = None) -> None:
        self.energy, self.virial = energy if wanted.energy else None, virial if wanted.virial else None
        self.forces, self.potential, self.field, self.torques, self.field_gradient = (arrays.get(name) for name in STEP_ARRAYS)
        self._block, self._door = block, door

    def check(self) -> None:
        if self._block is not None:
            check_blocks(self._door, self._block)


class _NoDipoles(Exception):
    """A plan takes no dipoles."""


class _Kept:
    """A plan, what it is for, the accuracy that it was measured to have, and how its checks went."""

    def __init__(self, kind: Tuple, n: int, inverse: Optional[np.ndarray], plan: Plan, asked: float,
                 exclusions: Tuple[Optional[np.ndarray], Optional[np.ndarray]]) -> None:
        self.kind, self.n, self.inverse, self.plan, self.asked = kind, n, inverse, plan, asked
        self.exclusions = exclusions
        self.record = _check.Record()
        self.most = 1  # systems in one call: twice as many as it has served, as those behind one that it fails are computed in vain
        info = plan.info  # cells of an open system are others for each
        self.settings = [info[name] for name in ("method", "order", "grid", "depth", "separation", "m2l", "theta", "degree", "leaf")]


class Batch:
    """Computes many systems in one call. It makes plans for each number of particles and shape of the box, and keeps them.

    measure     True: a plan is measured on the system that it is made for, and other systems are checked. Most of those of a kind
                that the plan is known to serve are not checked. Where a plan does not serve, another one is made.
                False: a model chooses
    precision   "single" or "double"; None: that of the positions' type
    exclusions  pairs of particles that do not interact in any of the systems, integers (m, 2)
    widths      (n), standard deviations of Gaussian charges, of all systems, which then are not checked; None: points
    max_plans   number of plans that are kept; the one that was not used for longest goes first
    options     members of gmxfmm_options, as of Plan

    One thread at a time may use a batch.
    """

    def __init__(self, *, measure: bool = True, precision: Optional[Precision] = None, exclusions: Any = None, widths: Any = None,
                 max_plans: int = 32, **options: Unpack[Options]) -> None:
        _inputs.check_options(options if precision is None else {**options, "precision": precision})
        if not isinstance(max_plans, (int, np.integer)) or max_plans < 1:
            raise refuse("max_plans", f"it is {max_plans!r}, it must be an integer of at least 1")
        self._given: Dict[str, Any] = dict(options, measure=measure, precision=precision, exclusions=exclusions, widths=widths)
        self._exact = exclusions is not None or widths is not None
        self._surface = options.get("boundary") == "vacuum"
        flags = _inputs.periodic_flags(options.get("periodic", 0))
        self._wants_boxes = any(flags) or options.get("boundary", "open") != "open"
        self._periodic = flags if any(flags) else (1, 1, 1)
        self._kappa = options.get("kappa", 0) if options.get("kernel") == "yukawa" else 0
        self._accuracy = _inputs.asked_of(self._given) if measure and widths is None else None
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
    def checks(self) -> bool:
        """Whether systems are checked."""
        return self._accuracy is not None

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

    def _make(self, kind: Tuple, n: int, box: Optional[np.ndarray], x: np.ndarray, sources: Sources) -> "_Kept":
        """A plan that is measured on this system, and used last."""
        given, exclusions = dict(self._given), _inputs.exclusion_lists(self._given["exclusions"], n)
        if box is None:  # what is of periodic systems
            given.pop("boundary", None)
            given.pop("periodic", None)
        q, given["dipoles"] = sources
        if kind[1] is not None:
            given.update(device="cuda", device_id=kind[2])
        if not sources.any():  # nothing to measure with: a plan for this system alone, as the next may have charges
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
             out: Optional[Mapping[str, Any]] = None, *, dipoles: Any = None, energy: bool = True, forces: bool = True, potential: bool = False,
             field: bool = False, virial: bool = False, torques: bool = False, field_gradient: bool = False) -> BatchStep:
        """Computes each system.

        positions  (systems, n, 3). Systems of any sizes stand one after the other, (all particles, 3), with offsets
        charges    (systems, n), or (all particles)
        boxes      None: open systems. (systems, 3, 3): a box each, vectors in rows; zeros are an open system. Or one box for all, as of Plan
        offsets    (systems + 1) integers: system s has the particles offsets[s] to offsets[s + 1] - 1
        out        a dictionary with arrays to write to, by the names forces, potential, field, torques and field_gradient
        dipoles    as the positions, charge times length, of the FMM, arrays of the host; None: there are none
        energy, forces, potential, field, virial, torques, field_gradient
                   True: computed; the last two of dipoles alone, which may be zeros

        Arrays of a device stay there. All systems are put on the current stream, one behind the other. The host waits where a plan is
        made. It also waits at the end of a call where there is an accuracy, for sums over the systems, and where one is checked for copies.
        """
        door = library_of(positions)
        wanted = Wanted(bool(energy), bool(forces), bool(potential), bool(field), bool(virial), 0, bool(torques), bool(field_gradient))
        if out is not None:
            wanted = with_given(wanted, out, STEP_ARRAYS)
        if dipoles is None:
            for name in OF_DIPOLES:
                if getattr(wanted, name):
                    raise refuse(name, "there are no dipoles: give some, with zeros for charges alone")
        elif door is not None or library_of(dipoles) is not None:
            raise refuse("dipoles", "batches of a GPU's arrays have none: give all arrays on the host, also for device = 'cuda'")
        if door is None:
            x = to_host("positions", positions)
            dtype = np.dtype(np.float32 if getattr(x, "dtype", None) == np.float32 else np.float64)
            x = numbers("positions", x, (None, 3) if offsets is not None else (None, None, 3), dtype)
            q = numbers("charges", to_host("charges", charges), x.shape[:-1], dtype)
            mu = None if dipoles is None else numbers("dipoles", to_host("dipoles", dipoles), x.shape, dtype)
            return self.of_host(x, q, mu, boxes, offsets, wanted, out)
        view = checked(door, "positions", positions, (None, 3) if offsets is not None else (None, None, 3), None)
        q_view = checked(door, "charges", charges, view.shape[:-1], view.dtype)
        bounds, all_boxes = self._parts(view.shape[:-1], boxes, offsets)
        arrays = room(wanted, view.shape[:-1], np.dtype(view.dtype), door, view.device, out)
        return self._on_device(door, positions, charges, view, q_view, all_boxes, bounds, wanted, arrays)

    def _parts(self, shape: Tuple[int, ...], boxes: BoxLike, offsets: Optional[Sequence[int]]) -> Tuple[np.ndarray, List[Optional[np.ndarray]]]:
        """Where systems begin, and the box of each."""
        bounds = _bounds(offsets, shape)
        if boxes is None and self._wants_boxes:
            raise refuse("boxes", "there are none, but the systems are periodic: give their vectors")
        return bounds, _boxes(boxes, len(bounds) - 1, self._periodic)

    def of_host(self, x: np.ndarray, q: np.ndarray, mu: Optional[np.ndarray], boxes: BoxLike, offsets: Optional[Sequence[int]], wanted: Wanted,
                out: Optional[Mapping[str, Any]] = None, device: int = -1, door: Any = None) -> BatchStep:
        """step of arrays of the host that have their type and shape. device, door: of the plans; left out as the options say."""
        bounds, all_boxes = self._parts(x.shape[:-1], boxes, offsets)
        arrays = room(wanted, x.shape[:-1], x.dtype, None, -1, out)
        sources = Sources(q.reshape(-1), None if mu is None else mu.reshape(-1, 3))
        return self._on_host(x.reshape(-1, 3), sources, all_boxes, bounds, wanted, arrays, (None if door is None else type(door), device))

    def _on_host(self, x: np.ndarray, sources: Sources, boxes: List[Optional[np.ndarray]], bounds: np.ndarray, wanted: Wanted,
                 arrays: dict, place: Tuple) -> BatchStep:
        energies, virials = np.zeros(len(boxes)), np.zeros((len(boxes), 3, 3))
        flat = {name: array.reshape(-1, *COLUMNS[name]) for name, array in arrays.items()}
        checked, with_dipoles = self._accuracy is not None, sources.dipoles is not None

        def compute(s: int, plan: Plan) -> Felt:
            one = slice(bounds[s], bounds[s + 1])
            _change(plan, sources.of(one), boxes[s])
            step = plan.step(x[one], {name: array[one] for name, array in flat.items()}, energy=wanted.energy, forces=wanted.forces or checked,
                             torques=wanted.torques or checked and with_dipoles, virial=wanted.virial, assign=True)
            if wanted.energy:
                energies[s] = step.energy
            if wanted.virial:
                virials[s] = step.virial
            return Felt(step.forces, step.torques)

        s, sizes = 0, (bounds[1:] - bounds[:-1]).tolist()
        start = (x.dtype, *place)
        while s < len(boxes):
            end, found = self._run(s, start, with_dipoles, sizes, boxes)
            if found:
                s = self._many(found[0], s, end, x, sources, boxes, bounds, flat, energies if wanted.energy else None,
                               virials if wanted.virial else None)
            if not found or s < end:
                box, one, kind = boxes[s], slice(bounds[s], bounds[s + 1]), (*start, boxes[s] is None, with_dipoles)
                with _naming(s, len(boxes)):
                    self._one(self._find(kind, sizes[s], box, 1 if self._exact else _MORE), kind, x[one], sources.of(one), box, partial(compute, s))
                s += 1
        return BatchStep(wanted, energies, virials, arrays)

    def _run(self, s: int, start: Tuple, with_dipoles: bool, sizes: List[int], boxes: List[Optional[np.ndarray]]) -> "Tuple[int, List[_Kept]]":
        """Systems s to end - 1 that a plan serves by size and shape, and the plan; none: there is none, or no particle. start: of its kind."""
        first, n = boxes[s], sizes[s]
        more = 1 if self._exact else _MORE
        found = self._find((*start, first is None, with_dipoles), n, first, more)[:1] if n else []
        if not found:
            return s + 1, found
        end = min(len(boxes), s + found[0].most)
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

    def _many(self, kept: "_Kept", s: int, end: int, x: np.ndarray, sources: Sources, boxes: List[Optional[np.ndarray]], bounds: np.ndarray,
              flat: Dict[str, np.ndarray], energies: Optional[np.ndarray], virials: Optional[np.ndarray]) -> int:
        """Systems s to end - 1 by a plan, in one call of the library. Gives the first that it does not serve, or end."""
        all_of_them, start = slice(bounds[s], bounds[end]), bounds[s:end + 1] - bounds[s]
        arrays = {name: array[all_of_them] for name, array in flat.items()}
        x, sources = x[all_of_them], sources.of(all_of_them)
        if self._accuracy is not None:
            for name in ("forces",) if sources.dipoles is None else ("forces", "torques"):
                if name not in arrays:
                    arrays[name] = np.empty_like(x)
        own = None if boxes[s] is None else np.array(boxes[s:end], dtype=np.float64)
        try:
            kept.plan.step_systems(x, sources, start, own, arrays, None if energies is None else energies[s:end], None if virials is None else virials[s:end])
        except Error as error:
            with _naming(s + getattr(error, "system", 0), len(boxes)):
                raise
        self._use(kept)
        felt = None if self._accuracy is None else Felt(arrays["forces"], arrays.get("torques"))
        return s + self._num_of_run(kept, felt, x, sources, start, own)

    def _num_of_run(self, kept: "_Kept", felt: Optional[Felt], x: np.ndarray, sources: Sources, bounds: np.ndarray, boxes: Optional[np.ndarray]) -> int:
        """How many of the systems that a plan has computed in one call it serves, up to the first that it does not. All are served where nothing is
        checked. Sets how many the next call has.
        """
        systems = len(bounds) - 1
        served = systems if felt is None or self._accuracy is None else self._num_served(kept, felt, x, sources, bounds, boxes)
        if served == systems:
            kept.most = max(kept.most, 2 * systems)
        else:
            kept.most = 1
            kept.record.drop()  # it is found again
        return served

    def _num_served(self, kept: "_Kept", felt: Felt, x: np.ndarray, sources: Sources, bounds: np.ndarray, boxes: Optional[np.ndarray],
                    again: Optional[_Again] = None) -> int:
        """The same of forces, and torques, that are felt. Systems that are not known to be served are checked. again: gives forces of a single
        one by a plan, moved by a vector.
        """
        assert self._accuracy is not None
        systems = len(bounds) - 1
        parts = [slice(*pair) for pair in zip(bounds[:-1].tolist(), bounds[1:].tolist())]
        if systems == 1 or sources.dipoles is not None:  # of one a third of the time
            kinds = [_kind_of(felt.of(one), x[one], sources.of(one), None if boxes is None else boxes[s]) for s, one in enumerate(parts)]
        else:
            kinds = _check.kinds_of(felt.forces, x, sources.charges, bounds[:-1], boxes)
        errors: Dict[int, float] = {}
        for s, kind in enumerate(kinds):
            if not kind or kept.record.trusts(kind):
                continue
            if s not in errors:
                due = [(k, parts[k]) for k in kept.record.due(kinds, s) if k not in errors]
                errors.update(_check.errors_of(kept.plan, felt, x, sources, boxes, due, kept.exclusions, self._kappa, self._surface,
                                               None if again is None else partial(again, kept.plan)))
            error = errors[s] / self._accuracy
            kept.record.add(kind, error)
            if error > 1:
                return s
        return systems

    def _one(self, found: "List[_Kept]", kind: Tuple, x: np.ndarray, sources: Sources, box: Optional[np.ndarray],
             compute: Callable[[Plan], Optional[Felt]], again: Optional[_Again] = None) -> None:
        """Computes one system, by the first of the plans found that serves it, or by one that is made for it. compute gives its forces by a plan,
        again as of _num_served.
        """
        asked = self._accuracy if sources.any() else None
        found = found[:1 if asked is None else 1 + _OTHERS]
        for kept in found:
            felt = compute(kept.plan)
            if asked is None or felt is None or self._serves(kept, felt, x, sources, box, again):
                self._use(kept)
                return
        kept = self._make(kind, len(x), box, x, sources)
        felt = compute(kept.plan)
        if kept not in self._kept:
            kept.plan.close()
        elif asked is not None and felt is not None:
            self._made(kept, found, felt, asked, x, sources, box)

    def _made(self, kept: "_Kept", others: "List[_Kept]", felt: Felt, asked: float, x: np.ndarray, sources: Sources,
              box: Optional[np.ndarray]) -> None:
        """Records a plan that was made for a system which the others do not serve."""
        kind = _kind_of(felt, x, sources, box)
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

    def _serves(self, kept: "_Kept", felt: Felt, x: np.ndarray, sources: Sources, box: Optional[np.ndarray], again: Optional[_Again]) -> bool:
        """Whether the forces have the accuracy."""
        return self._num_served(kept, felt, x, sources, np.array([0, len(x)]), None if box is None else box[None], again) == 1

    def _on_device(self, door: Any, positions: Any, charges: Any, view: View, q_view: View, boxes: List[Optional[np.ndarray]], bounds: np.ndarray,
                   wanted: Wanted, arrays: dict) -> BatchStep:
        dtype = np.dtype(view.dtype)
        block = door.empty((max(1, len(boxes)), BLOCK), "float64", view.device)
        written = arrays
        if self._accuracy is not None and not wanted.forces:  # to be looked at
            written = {**arrays, **room(Wanted(False, True, False, False, False), view.shape[:-1], dtype, door, view.device, None)}
        self._each_on_device(door, positions, charges, view, q_view, boxes, bounds, written.get("forces"), partial(self._enqueue, door, boxes, wanted, written, block))
        if not door.writes:  # JAX's bytes: numbers of the host
            block = door.host(block).reshape(-1, BLOCK)
        block = block[:len(boxes)]
        return BatchStep(wanted, *DeviceStep.parts(block), arrays, block, door)

    def _enqueue(self, door: Any, boxes: List[Optional[np.ndarray]], wanted: Wanted, arrays: Mapping[str, Any], block: Any, s: int, plan: Plan, at: int,
                 x: View, q: View) -> None:
        output = DeviceOutput(size=ctypes.sizeof(DeviceOutput))
        DeviceStep.point(output, door.pointer(block) + 8 * BLOCK * s, wanted,
                         {name: door.pointer(array) + at * (3 if name != "potential" else 1) for name, array in arrays.items()})
        plan.enqueue_system(x, q, boxes[s], output)

    def put(self, x: View, q: View, boxes: BoxLike, offsets: np.ndarray, wanted: Wanted, arrays: Mapping[str, View], block: View) -> Optional[_Look]:
        """step of memory of a device (all particles, 3) and (all particles), put on its stream, with results to memory that is given.

        boxes, offsets  of the host
        arrays          by the names of out. There are forces where systems are checked
        block           (systems, BLOCK) of float64, as of DeviceStep

        Gives what looks at the results, where systems are checked: a function that takes one which gives what Door.sums does.
        """
        door: Any = library_of(x)
        bounds, all_boxes = self._parts(x.shape[:-1], boxes, offsets)
        return self._all_on_device(door, x, q, x, q, all_boxes, bounds, arrays.get("forces"), partial(self._enqueue, door, all_boxes, wanted, arrays, block))

    def _each_on_device(self, door: Any, positions: Any, charges: Any, view: View, q_view: View, boxes: List[Optional[np.ndarray]], bounds: np.ndarray,
                        felt: Any, put: Callable[[int, Plan, int, View, View], None]) -> None:
        """Puts each system on the stream, and looks at the results at once."""
        look = self._all_on_device(door, positions, charges, view, q_view, boxes, bounds, felt, put)
        if look is not None:
            look(partial(door.sums, positions, charges, felt, bounds, any(box is None for box in boxes)))

    def _all_on_device(self, door: Any, positions: Any, charges: Any, view: View, q_view: View, boxes: List[Optional[np.ndarray]], bounds: np.ndarray,
                       felt: Any, put: Callable[[int, Plan, int, View, View], None]) -> Optional[_Look]:
        """Puts each system on the stream by a plan that serves it. put does so for system s, of which arrays of the device begin that many bytes
        a number later, and is given views of its positions and charges. felt: the forces on the charges, to be looked at where there is an
        accuracy. Gives what looks at them.
        """
        dtype = np.dtype(view.dtype)
        word = dtype.itemsize
        kinds = [(dtype, type(door), view.device, box is None, False) for box in boxes]
        bound: List[int] = bounds.tolist()

        def enqueue(s: int, plan: Plan) -> None:
            at = word * bound[s]
            put(s, plan, at, view._replace(pointer=view.pointer + 3 * at), q_view._replace(pointer=q_view.pointer + at))

        arrays, host = {"positions": positions, "charges": charges, "forces": felt}, {}

        def on_host(name: str, anew: bool = False) -> np.ndarray:
            if anew or name not in host:
                host[name] = to_host(name, arrays[name]).reshape(-1 if name == "charges" else (-1, 3))
            return host[name]

        used: List[_Kept] = []
        made = set()  # systems
        for s, box in enumerate(boxes):
            n = bound[s + 1] - bound[s]
            with _naming(s, len(boxes)):
                found = self._find(kinds[s], n, box, 1)
                if not found:
                    one = slice(bound[s], bound[s + 1])
                    found = [self._make(kinds[s], n, box, on_host("positions")[one], Sources(on_host("charges")[one]))]
                    made.add(s)
                enqueue(s, found[0].plan)
                used.append(found[0])
        door.finish(view)
        if self._accuracy is None or not used:
            return None

        def compute(s: int, plan: Plan) -> Felt:
            if plan is not used[s].plan:
                enqueue(s, plan)
                door.finish(view)
            return Felt(on_host("forces", plan is not used[s].plan)[bound[s]:bound[s + 1]])

        def again(s: int, plan: Plan, by: np.ndarray) -> Optional[np.ndarray]:
            moved = door.moved(positions, slice(bound[s], bound[s + 1]), by)
            if moved is None:
                return None
            forces = door.empty((bound[s + 1] - bound[s], 3), view.dtype, view.device)
            output = DeviceOutput(size=ctypes.sizeof(DeviceOutput), force=door.pointer(forces))
            plan.enqueue_system(view._replace(pointer=door.pointer(moved)), q_view._replace(pointer=q_view.pointer + word * bound[s]), boxes[s], output)
            return door.host(forces)

        # Once they are all under way, so that the device need not wait while the host looks at one after the other
        def look(sums_of: Callable[[], Optional[np.ndarray]]) -> None:
            sums = sums_of() if len(made) < len(boxes) else None
            for s, box in enumerate(boxes):
                one, kept = slice(bound[s], bound[s + 1]), used[s]
                if sums is not None and s not in made:
                    kind = _check.kind_of_sums(bound[s + 1] - bound[s], sums[s, :5].tolist(), box, sums[s, 5:].tolist())
                    if not kind or kept.record.trusts(kind):
                        if kept in self._kept:
                            self._use(kept)
                        continue
                x, sources = on_host("positions")[one], Sources(on_host("charges")[one])
                if s in made:
                    if kept in self._kept:
                        self._made(kept, [], Felt(on_host("forces")[one]), self._accuracy, x, sources, box)
                    continue
                with _naming(s, len(boxes)):
                    found = self._find(kinds[s], len(x), box, 1)
                    found.sort(key=lambda other: other is not kept)
                    self._one(found, kinds[s], x, sources, box, partial(compute, s), partial(again, s))

        return look

    def along(self, positions: Any, charges: Any, boxes: BoxLike, offsets: Optional[Sequence[int]], by_x: Any, by_q: Any) -> Optional[Tuple[Any, Any, Any]]:
        """Second derivatives of energies along a way of positions by_x and charges by_q. All are arrays of a device, of one library and one
        type, as of step.

        Gives less those by positions, those by charges, and the first derivatives along the way (systems), in double precision. None: a plan
        takes no dipoles.
        """
        door: Any = library_of(positions)
        view = checked(door, "positions", positions, (None, 3) if offsets is not None else (None, None, 3), None)
        q_view = checked(door, "charges", charges, view.shape[:-1], view.dtype)
        ways = checked(door, "by_x", by_x, view.shape, view.dtype), checked(door, "by_q", by_q, q_view.shape, view.dtype)
        bounds, all_boxes = self._parts(view.shape[:-1], boxes, offsets)
        forces, potential = (door.empty(shape, view.dtype, view.device) for shape in (view.shape, q_view.shape))
        energies = door.empty((max(1, len(all_boxes)),), "float64", view.device)
        felt = None if self._accuracy is None else door.empty(view.shape, view.dtype, view.device)
        to = tuple(0 if array is None else door.pointer(array) for array in (forces, potential, energies, felt))
        try:
            self._each_on_device(door, positions, charges, view, q_view, all_boxes, bounds, felt, partial(_enqueue_along, all_boxes, ways, to))
        except _NoDipoles:
            return None
        return forces, potential, energies[:len(all_boxes)]

    def put_along(self, x: View, q: View, boxes: BoxLike, offsets: np.ndarray, ways: Tuple[View, View], out: Sequence[Optional[View]]) -> Optional[_Look]:
        """along of memory of a device, as put. out: memory for the three results, and for forces where systems are checked."""
        door: Any = library_of(x)
        bounds, all_boxes = self._parts(x.shape[:-1], boxes, offsets)
        to = tuple(0 if view is None else view.pointer for view in out)
        try:
            return self._all_on_device(door, x, q, x, q, all_boxes, bounds, out[3], partial(_enqueue_along, all_boxes, ways, to))
        except _NoDipoles:
            raise Error("GMXFMM_ERROR_UNSUPPORTED", "the plan takes no dipoles") from None

    def mixed(self, positions: np.ndarray, charges: np.ndarray, boxes: List[Optional[np.ndarray]], bounds: np.ndarray, by_x: np.ndarray,
              by_q: np.ndarray, strain: bool, device: int = -1, door: Any = None, dipoles: Optional[np.ndarray] = None,
              by_mu: Optional[np.ndarray] = None) -> Tuple[np.ndarray, Dict[str, np.ndarray]]:
        """Second derivatives of energies along a way of positions by_x (n, 3), charges by_q (n) and dipoles by_mu (n, 3), as of _mixed.Mixed.
        Arguments are those of sides, in single or double precision.

        strain  whether the virial is wanted

        Gives which systems were computed, and arrays by the names of Mixed. A plan that takes no dipoles computes nothing.
        """
        dtype, systems, n = positions.dtype, len(boxes), len(charges)
        found = {"forces": np.zeros((n, 3)), "potential": np.zeros(n), "virial": np.zeros((systems, 3, 3)), "energy": np.zeros(systems)}
        if dipoles is not None:
            found["field"] = np.zeros((n, 3))
        done = np.ones(systems, dtype=bool)
        all_sources = Sources(charges, dipoles)
        all_ways = _mixed.Way(by_x.astype(dtype), by_q.astype(dtype), None if by_mu is None else by_mu.astype(dtype))
        result: Optional[_mixed.Mixed] = None

        def compute(plan: Plan) -> Optional[Felt]:
            nonlocal result
            result = None
            _change(plan, measured_with if dipoles is None else sources, box)
            if dipoles is None and not sources.any():  # the energy is quadratic in the charges
                step = plan.step(x, potential=True, assign=True)
                result = _mixed.Mixed(np.zeros_like(x), step.potential, np.zeros((3, 3)), 0.0)
                return Felt(step.forces)
            if not _mixed.has_dipoles(plan):
                return None
            result, felt = _mixed.along(plan, x, sources, way, box, strain and box is not None)
            return felt if sources.any() else None

        s, sizes, place = 0, np.diff(bounds).tolist(), (dtype, None if door is None else type(door), device)
        while s < systems:
            end, kept = self._run(s, place, dipoles is not None, sizes, boxes) if door is None and not strain else (s + 1, [])
            if kept and _mixed.has_dipoles(kept[0].plan):
                before, s = s, self._many_mixed(kept[0], s, end, positions, all_sources, all_ways, boxes, bounds, found)
                if s > before:
                    continue
            one, box = slice(bounds[s], bounds[s + 1]), boxes[s]
            x, sources, way = positions[one], all_sources.of(one), all_ways.of(one)
            measured_with = sources if sources.any() else Sources(way.w, way.v)
            if measured_with.any() and way.any():
                kind = (*place, box is None, dipoles is not None)
                with _naming(s, systems):
                    self._one(self._near(kind, x, box), kind, x, measured_with, box, compute)
                done[s] = result is not None
                if result is not None:
                    found["forces"][one], found["potential"][one], found["virial"][s], found["energy"][s], field = result
                    if field is not None:
                        found["field"][one] = field
            s += 1
        return done, found

    def _many_mixed(self, kept: "_Kept", s: int, end: int, x: np.ndarray, sources: Sources, way: _mixed.Way,
                    boxes: Sequence[Optional[np.ndarray]], bounds: np.ndarray, found: Dict[str, np.ndarray]) -> int:
        """What mixed finds, without virials, of systems s to end - 1 by a plan. Gives the first that it does not serve, or end."""
        all_of_them = slice(bounds[s], bounds[end])
        own, start = None if boxes[s] is None else np.array(boxes[s:end], dtype=np.float64), bounds[s:end + 1] - bounds[s]
        x, sources = x[all_of_them], sources.of(all_of_them)
        try:
            forces, potential, field, energy, felt = _mixed.of_systems(kept.plan, x, sources, way.of(all_of_them), start, own)
        except Error as error:
            with _naming(s + getattr(error, "system", 0), len(boxes)):
                raise
        self._use(kept)
        served = s + self._num_of_run(kept, felt, x, sources, start, own)
        n = bounds[served] - bounds[s]
        these = slice(bounds[s], bounds[served])
        found["forces"][these], found["potential"][these], found["energy"][s:served] = forces[:n], potential[:n], energy[:served - s]
        if field is not None:
            found["field"][these] = field[:n]
        return served

    def sides(self, positions: np.ndarray, charges: np.ndarray, boxes: Sequence[Optional[np.ndarray]], bounds: np.ndarray, ways: Sequence[Any],
              virial: bool, fourth: bool, device: int = -1, door: Any = None, dipoles: Optional[np.ndarray] = None,
              moved: Optional[np.ndarray] = None) -> Tuple[np.ndarray, Dict[int, Dict[str, np.ndarray]]]:
        """Results of systems a little before and behind where they are, for differences of first derivatives.

        positions, charges, boxes, bounds, dipoles
                all particles (n, 3) and (n) of float64, on the host; a box or None for each system. System s has bounds[s] to bounds[s + 1] - 1.
                Dipoles as the positions, or None
        ways    directions of positions (n, 3), charges (n), boxes (systems, 3, 3) and dipoles (n, 3). A system without any is left out
        fourth  whether differences are of the fourth order
        moved   (n, 3), the way of positions in cells that follow the box; None: that of the positions
        device  of the plans, and the door to its library; -1: the host

        Gives the steps h (systems), and for the sides at -h and +h of the way forces, potential, field (with dipoles) and virial. The fourth order
        has sides at twice that, too. One plan computes all sides. Its cells are those of the place between, so that its potential is smooth from
        one side to the other. The difference then has no errors of different cells.
        """
        place = np.dtype(np.float64), None if door is None else type(door), device
        steps, systems, n = np.ones(len(boxes)), len(boxes), len(charges)
        found = {far: {"forces": np.zeros((n, 3)), "potential": np.zeros(n), "field": np.zeros((n, 3)), "virial": np.zeros((systems, 3, 3))}
                 for far in ((-2, -1, 1, 2) if fourth else (-1, 1))}
        exact, rough = (_NEAR, _NEAR_IN_SINGLE) if not fourth else (_STRAIN, _STRAIN_IN_SINGLE) if dipoles is None else (_MOVE, _MOVE_IN_SINGLE)
        all_sources, all_ways = Sources(charges, dipoles), Sources(ways[1], None if dipoles is None else ways[3])
        for s, box in enumerate(boxes):
            one = slice(bounds[s], bounds[s + 1])
            x, sources, (q, mu), (by_q, by_mu), by_x, by_box = (positions[one], all_sources.of(one), all_sources.of(one), all_ways.of(one),
                                                                ways[0][one], ways[2][s])
            measured_with = sources if sources.any() else all_ways.of(one)
            if not measured_with.any():
                continue
            way = _length_of_way(x, measured_with, box, by_x if moved is None else moved[one], all_ways.of(one), by_box)
            if not way > 0:
                continue
            with _naming(s, systems):
                kind = (*place, box is None, dipoles is not None)
                plan = self._plan_that_serves(kind, x, measured_with, box)
                h = steps[s] = (exact if plan.info.precision == "double" else rough) / way
                plan.assign(x)
                for far, side in found.items():
                    _change(plan, Sources(q + far * h * by_q, None if mu is None or by_mu is None else mu + far * h * by_mu), None if box is None else box + far * h * by_box)
                    step = plan.step(x + far * h * by_x, potential=True, field=mu is not None, virial=virial and box is not None, assign=False)
                    side["forces"][one], side["potential"][one] = step.forces, step.potential
                    if step.field is not None:
                        side["field"][one] = step.field
                    if step.virial is not None:
                        side["virial"][s] = step.virial
        return steps, found

    def _near(self, kind: Tuple, x: np.ndarray, box: Optional[np.ndarray]) -> "List[_Kept]":
        """The plans for a system, the one used last first."""
        return self._find(kind, len(x), box, 1 if self._exact or kind[1] is not None else _MORE)

    def _plan_that_serves(self, kind: Tuple, x: np.ndarray, sources: Sources, box: Optional[np.ndarray]) -> Plan:
        """A plan that has the sources and the box of the system."""
        plan: Any = None

        def compute(other: Plan) -> Felt:
            nonlocal plan
            plan = other
            _change(plan, sources, box)
            step = plan.step(x, torques=sources.dipoles is not None, assign=True)
            return Felt(step.forces, step.torques)

        self._one(self._near(kind, x, box), kind, x, sources, box, compute)
        _change(plan, sources, box)
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


def _length_of_way(x: np.ndarray, sources: Sources, box: Optional[np.ndarray], by_x: np.ndarray, by: Sources, by_box: np.ndarray) -> float:
    """The longest way of a particle, a source or the box, in mean distances, RMS sources and lengths of the box."""
    distance = _check.spacing(x, box)
    far = [np.abs(by_x).max(initial=0) / distance,
           by.strengths(distance).max(initial=0) / (math.sqrt(float(np.mean(sources.strengths(distance) ** 2))) or 1.0)]
    if box is not None:
        far.append(np.abs(by_box).max() / np.abs(box).max())
    return float(max(far))


def _enqueue_along(boxes: List[Optional[np.ndarray]], ways: Tuple[View, View], to: Sequence[int], s: int, plan: Plan, at: int, x: View, q: View) -> None:
    """Puts the second derivatives of system s on the stream. to: addresses of forces, potentials, energies, and forces that are felt or 0."""
    if not _mixed.has_dipoles(plan):
        raise _NoDipoles
    plan.enqueue_system(x, q, boxes[s], DeviceAlong(
        size=ctypes.sizeof(DeviceAlong), u=ways[0].pointer + 3 * at, w=ways[1].pointer + at, force=to[0] + 3 * at, potential=to[1] + at,
        felt=to[3] + 3 * at if to[3] else None, energy=to[2] + 8 * s), "enqueue_along")


def _change(plan: Plan, sources: Sources, box: Optional[np.ndarray]) -> None:
    """Gives a plan the sources and the box of another system."""
    plan.set_charges(sources.charges)
    if box is not None:
        plan.set_box(box)
    if sources.dipoles is not None:
        plan.set_dipoles(sources.dipoles, measure=False)


def _kind_of(felt: Felt, x: np.ndarray, sources: Sources, box: Optional[np.ndarray]) -> _check.Kind:
    if sources.dipoles is None:
        return _check.kind_of(felt.forces, x, sources.charges, box)
    return _check.kind_with_dipoles(felt, x, sources, box)


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
        if systems == 1:
            return [array[0] if array.any() else None]
        rows = array.reshape(systems, 9)
        found = [box if there else None for box, there in zip(array, rows.any(axis=1).tolist())]
        for s, again in enumerate((rows[1:] == rows[:-1]).all(axis=1).tolist()):
            if again:
                found[s + 1] = found[s]
        return found
    one = box_vectors(boxes, periodic)
    return [one] * systems
