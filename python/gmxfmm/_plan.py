# SPDX-License-Identifier: LGPL-2.1-or-later
"""A plan that is kept. It is made and measured once, then stepped."""
from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _check, _inputs
from ._arrays import View, checked, library_of, to_host
from ._inputs import AUTO, BoxLike, Info, Measured, box_vectors, exclusion_lists, is_auto, library_error, make_options, numbers, particle_ids, refuse
from ._library import Along, Error, Info as InfoStructure, Measurement, Options as OptionsStructure, Output, System, Systems, header, library
from ._ranks import Communicator
from ._options import Options, Precision
from ._results import DeviceStep, HostStep, OF_DIPOLES, Out, Step, Wanted, prepare

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TYPES = header.enums["gmxfmm_precision"]
_CAN = header.enums["gmxfmm_capability"]
_STATUS = header.enums["gmxfmm_status"]
_OUT_OF_ORDER, _REFUSED, _LEFT = (_STATUS["GMXFMM_ERROR_" + name] for name in ("ORDER", "OPTION", "LEFT"))
_MESSAGE_SIZE = 512
_TRIED_SIZE = 32  # enough, says gmxfmm_choose
# A measured error is of far fields over forces, both of which are linear in the charges: where these, or lengths of the box
# against each other, change by less than a tenth, so does either of the two, about. A choice leaves a tenth of the accuracy
# for other configurations.
CHANGE = 0.1


def _address(array: Optional[np.ndarray]) -> Optional[int]:
    return None if array is None else array.ctypes.data


class Plan:
    """Settings, charges, box and cells of one system, made once and used for many steps.

    positions    (n, 3), any unit of length: numpy, lists; arrays of a device of PyTorch, CuPy, JAX or with DLPack
    charges      (n), any unit of charge
    dipoles      (n, 3), charge times length, of the FMM, arrays of the host; None: there are none. measured_error is the
                 larger one of forces, over their RMS, and of torques, over theirs
    widths       (n), standard deviations of Gaussian charges, of the FMM on the CPU; None: points, as which errors are measured
    box          None: an open system; a length: a cube; three: a brick; (3, 3): its vectors in rows
    periodic     three flags, as of ASE: along which box vectors there are images. Two of them: a slab, open along the normal of
                 their plane. One: a wire (FMM on the CPU). Left out: along all
    exclusions   pairs of particles that do not interact, integers (m, 2)
    targets      (m, 3), places where potential and field are computed, and not at the charges. Errors there are measured, too
    precision    "single" or "double"; None: that of the positions' type
    measure      True: errors are measured on this system, in some ten times the time of a step. They choose the automatic options.
                 set_charges, set_box and set_exclusions measure again where these change too much. set_targets always does so,
                 a step never. False: a model of liquids chooses
    assign_every number of steps between assignments to cells. Between these no particle should move more than a fraction of a
                 cell, as in 10 to 20 steps of molecular dynamics
    comm         an mpi4py communicator: its ranks share the treecode in an open system, or the FMM in a periodic one. Each rank
                 gives any number of particles and gets results of these. All make the same calls in the same order. With measure
                 the error of all ranks' sums is measured when the plan is made. Later only choose() and measure() do so; they
                 need positions. The FMM needs measure=False. Messages have a tag of their own, 25937. Arrays are on the host
    ids          with comm, of the FMM: numbers (n) of these particles in the whole system, 0, 1, ..., each on one rank. Exclusions
                 are pairs of such numbers then, given where one of the two is. None: in the order of ranks
    options      members of gmxfmm_options (docs/python.md): accuracy, boundary, prefactor, device, order, ...

    Positions of type float32 make a plan whose arrays are float32, all others float64. Arrays of a device make a plan on it.
    One thread at a time may use a plan. What is wrong raises Error, which names the argument and the cause.
    """

    def __init__(self, positions: Any, charges: Any, box: BoxLike = None, *, dipoles: Any = None, widths: Any = None, exclusions: Any = None, targets: Any = None,
                 precision: Optional[Precision] = None, measure: bool = True, assign_every: int = 1, comm: Any = None,
                 ids: Any = None, **given: Unpack[Options]) -> None:
        options: Dict[str, Any] = dict(given)
        self._handle = ctypes.c_void_p()
        self._door: Any = library_of(positions)
        self._ranks = None if comm is None else Communicator(comm)
        if comm is not None and self._door is not None:
            raise refuse("positions", "they are on a GPU: several ranks take arrays of the host, also for device = 'cuda'")
        if self._door is not None:
            view = checked(self._door, "positions", positions, (None, 3), None)
            if options.setdefault("device", "cuda") != "cuda":
                raise refuse("device", f"it is {options['device']!r}, but the positions are on a GPU: leave it out")
            options.setdefault("device_id", view.device)
        x = to_host("positions", positions)
        self._dtype = np.dtype(np.float32 if getattr(x, "dtype", None) == np.float32 else np.float64)
        self._type = self._dtype.name  # which numpy takes microseconds to find
        if not isinstance(assign_every, (int, np.integer)) or assign_every < 1:
            raise refuse("assign_every", f"it is {assign_every!r}, it must be an integer of at least 1")
        self._assign_every, self._steps_left = int(assign_every), 0
        x = numbers("positions", x, (None, 3), self._dtype)
        self._charges = numbers("charges", to_host("charges", charges), (len(x),), self._dtype).copy()
        self._take_dipoles(dipoles, len(x))
        self._take_widths(widths, len(x))
        flags = _inputs.periodic_flags(options.pop("periodic", 0))
        self._periodic = flags if any(flags) else (1, 1, 1)
        self._box = box_vectors(to_host("box", box), self._periodic)
        if self._box is None and any(flags):
            raise refuse("box", "there is none, but the system is periodic: give its vectors")
        if self._periodic != (1, 1, 1):
            options["periodic"] = self._periodic
        if self._box is None:
            options.setdefault("boundary", "open")
        elif options.get("boundary") == "open":
            raise refuse("box", "an open system has no box: leave out box, or boundary")
        self._accuracy = options.pop("accuracy", AUTO)
        if measure or not is_auto(self._accuracy):
            options["accuracy"] = self._accuracy
        options["precision"] = precision or ("single" if self._dtype == np.float32 else "double")
        self._given = options
        self._options = self._make_options()
        self._on_device = bool(self._options.device)
        self._measures = bool(measure) and comm is None
        if ids is not None and comm is None:
            raise refuse("ids", "they are those of particles on several ranks: give comm, too, or leave them out")
        self._ids = None if ids is None else particle_ids(ids, len(x))
        self._exclusions = self._lists(exclusions, len(x))
        places = None if targets is None else numbers("targets", to_host("targets", targets), (None, 3), self._dtype)
        self._take_targets(places)
        self._kept: Any = None
        self._charges_on_device: Any = None
        self._tried: List[Measured] = []
        self._derivatives: Optional[Tuple[np.ndarray, np.ndarray, np.ndarray]] = None
        self._make(x, bool(measure))

    # ------------------------------------------------------------------------------------------------- making and measuring

    def _lists(self, exclusions: Any, n: int) -> Tuple[Optional[np.ndarray], Optional[np.ndarray]]:
        """Rows of exclusions. On ranks without numbers pairs may be of any particles, those here are known when others are."""
        if self._ranks is not None and exclusions is not None and self._ids is None:
            raise refuse("exclusions", "on several ranks they are pairs of numbers of the whole system: give the ids of particles, too")
        return exclusion_lists(exclusions, n, self._ids)

    def _make_options(self) -> OptionsStructure:
        return make_options(self._given, _TYPES["GMXFMM_SINGLE" if self._dtype == np.float32 else "GMXFMM_DOUBLE"])

    def _system(self, x: Optional[np.ndarray]) -> System:
        start, others = self._exclusions
        return System(ctypes.sizeof(System), len(self._charges), _address(self._box), _address(x), _address(self._charges), _address(start), _address(others),
                      None, self._targets, _address(self._target_positions), _address(self._dipoles))

    def _take_dipoles(self, dipoles: Any, n: int) -> None:
        if dipoles is not None and self._ranks is not None:
            raise refuse("dipoles", "several ranks have none: leave out comm, or dipoles")
        if dipoles is not None and library_of(dipoles) is not None:
            raise refuse("dipoles", "they are on a GPU: dipoles are arrays of the host")
        self._dipoles = None if dipoles is None else numbers("dipoles", to_host("dipoles", dipoles), (n, 3), self._dtype).copy()

    def _take_widths(self, widths: Any, n: int) -> None:
        if widths is not None and self._ranks is not None:
            raise refuse("widths", "several ranks have none: leave out comm, or widths")
        self._widths = None if widths is None else numbers("widths", to_host("widths", widths), (n,), self._dtype).copy()

    def _take_targets(self, places: Optional[np.ndarray]) -> None:
        """Takes a copy of the targets. None: there are none, on no rank."""
        self._target_positions = None if places is None else places.copy()
        self._targets = 0 if places is None else len(places)

    def _make(self, x: Optional[np.ndarray], measured: bool) -> None:
        """The library's plan for these positions and the targets, assigned and without a step. None: a copy that is not measured and not
        assigned.
        """
        handle, message = ctypes.c_void_p(), ctypes.create_string_buffer(_MESSAGE_SIZE)
        system = self._system(x)
        if measured:
            chosen, tried = Measurement(size=ctypes.sizeof(Measurement)), (Measurement * _TRIED_SIZE)()
            for one in tried:
                one.size = ctypes.sizeof(Measurement)
            count = ctypes.c_int(_TRIED_SIZE)
            if self._ranks is None:
                status = library.gmxfmm_create_measured(handle, self._options, system, chosen, tried, count, message, _MESSAGE_SIZE)
                found = [Measured(tried[i]) for i in range(count.value)]
            else:
                status = library.gmxfmm_create_parallel_measured(handle, self._options, ctypes.byref(self._ranks.structure), system, chosen,
                                                                 message, _MESSAGE_SIZE)
                found = [Measured(chosen)]
            self._tried = found if not status else self._tried
        elif self._ranks is not None:
            status = library.gmxfmm_create_parallel(handle, self._options, ctypes.byref(self._ranks.structure), system.n, system.box, message,
                                                    _MESSAGE_SIZE)
        else:
            status = library.gmxfmm_create(handle, self._options, system.n, system.box, message, _MESSAGE_SIZE)
        if status:
            raise library_error(status, message.value.decode())
        if self.__dict__.get("_handle"):
            library.gmxfmm_destroy(self._handle)
        self._handle, self._n, self._chosen = handle, len(self._charges), measured
        try:
            if not measured:
                self._call("set_charges", system.n, system.q)
                if self._ids is not None:
                    self._call("set_ids", _address(self._ids))
                if system.excl_start:
                    self._call("set_exclusions", system.excl_start, system.excl_list)
                if self._dipoles is not None:
                    self._call("set_dipoles", system.n, _address(self._dipoles))
                if self._target_positions is not None:
                    self._call("set_targets", system.num_targets, system.targets)
                if x is not None:
                    self._call("assign", system.x)
            if self._widths is not None:
                self._call("set_widths", system.n, _address(self._widths))
                if x is not None:
                    self._call("assign", system.x)
            info = self._info()
        except Error:
            self.close()
            raise
        self._measured_error, self._extent = info.measured_error, np.array(info.extent)
        self._check_accuracy(info)
        self._unmeasured, self._to_check, self._record, self._checked_error = False, False, _check.Record(), float("nan")
        self._then = (self._charges, None if self._box is None else np.linalg.inv(self._lattice(self._box)), self._dipoles)
        self._steps_left = 0
        if x is not None:
            self._keep(x)

    def _check_accuracy(self, info: InfoStructure) -> None:
        """Raises Error where the error is known to miss the accuracy that was asked for, as the program does."""
        error = info.predicted_error if np.isnan(info.measured_error) else info.measured_error
        if not is_auto(self._accuracy) and error > self._accuracy:
            self.close()
            raise Error("GMXFMM_ERROR_OPTION", f"accuracy {self._accuracy:g} is missed with the settings given: {error:.2g} is "
                        f"{'measured' if np.isfinite(info.measured_error) else 'predicted by the model'}; leave more of them automatic, or ask for less", "accuracy")

    def _lattice(self, box: np.ndarray) -> np.ndarray:
        """Vectors that have an inverse. Those without images are replaced."""
        return _inputs.lattice(box, self._periodic)

    def _keep(self, x: Any) -> None:
        """Positions as they were assigned, for a later measurement."""
        if self._measures:
            self._kept = (x.copy() if type(x) is np.ndarray else self._door.copy(x), self._box, self._n)

    def _positions_now(self, positions: Any) -> np.ndarray:
        """Positions for a measurement: those given, or the last that were assigned, moved with the box. Charges that only a device has are
        fetched, too.
        """
        self._fetch_charges()
        if positions is not None:
            return numbers("positions", to_host("positions", positions), (len(self._charges), 3), self._dtype)
        x = self._kept_positions() if self._measures else None
        if x is None:
            raise refuse("positions", "there are none to measure with: give them")
        return x

    def _kept_positions(self) -> Optional[np.ndarray]:
        """The last positions that were assigned and kept, moved with the box. None: there are none for these particles."""
        if self._kept is None or self._kept[2] != self._n:
            return None
        x, box = numbers("positions", to_host("positions", self._kept[0]), (None, 3), self._dtype), self._kept[1]
        if box is None or self._box is None or np.array_equal(box, self._box):
            return x
        return np.ascontiguousarray(x @ np.linalg.solve(self._lattice(box), self._lattice(self._box)), dtype=self._dtype)

    def _fetch_charges(self) -> None:
        """Copies charges that only a device has to the host."""
        if self._charges_on_device is not None:
            self._charges = numbers("charges", to_host("charges", self._charges_on_device), (self._n,), self._dtype)
            self._charges_on_device = None

    def _has_other_charges(self) -> bool:
        """Whether charges are not those that were measured."""
        charges = self._then[0]
        return charges is not self._charges and (len(charges) != len(self._charges) or
                                                 bool(np.linalg.norm(self._charges - charges) > CHANGE * np.linalg.norm(charges)))

    def _has_other_dipoles(self) -> bool:
        then = self._then[2]
        if then is None or self._dipoles is None or len(then) != len(self._dipoles):
            return then is not self._dipoles
        return bool(np.linalg.norm(self._dipoles - then) > CHANGE * np.linalg.norm(then))

    def _has_other_shape(self) -> bool:
        inverse = self._then[1]
        return not (inverse is None or self._box is None or _inputs.same_shape(self._lattice(self._box), inverse, CHANGE))

    def _measure_if_changed(self, positions: Any) -> None:
        """Measures again where charges or box are no longer those that were measured."""
        if self._measures and (self._has_other_shape() or not self._unmeasured and (self._has_other_charges() or self._has_other_dipoles())):
            self._make_again(self._positions_now(positions))

    def _make_again(self, x: np.ndarray) -> None:
        self._make(x, True)
        if self._derivatives is not None:
            self._give_derivatives()

    def stop_measuring(self) -> None:
        """From now on only choose() and measure() measure, and copies, which are measured where this plan was."""
        self._measures = False

    def choose(self, positions: Any = None, accuracy: Optional[float] = None) -> List[Measured]:
        """Measures settings on the system as it is now, and takes the cheapest that reach the accuracy.

        positions  (n, 3); None: those of the last assignment, moved with the box
        accuracy   relative RMS error of forces, and of potential and field at targets; None: as before

        Gives the settings that were tried, with their errors and times in seconds. Settings given when the plan was made stay.
        """
        x = self._positions_now(positions)
        before = self._accuracy, self._options.accuracy, self._measures
        self._accuracy = self._options.accuracy = self._accuracy if accuracy is None else float(accuracy)
        self._measures = self._ranks is None  # of several ranks one alone must not measure again
        try:
            self._make_again(x)
        except Error:
            self._accuracy, self._options.accuracy, self._measures = before
            raise
        return list(self._tried)

    def measure(self, positions: Any = None) -> Measured:
        """Measures the errors of the settings in use on the system as it is now. The settings stay.

        positions  (n, 3); None: those of the last assignment, moved with the box

        Gives a Measured. Its error is the relative RMS error of forces, with its uncertainty. virial_error has the unit of energy.
        error_targets is that of potential or field at the targets over its RMS. time is that of a step in seconds.
        """
        x, options = self._positions_now(positions), self._settings()
        message, found = ctypes.create_string_buffer(_MESSAGE_SIZE), Measurement(size=ctypes.sizeof(Measurement))
        made, system = ctypes.c_void_p(), self._system(x)
        if self._ranks is not None:
            status = library.gmxfmm_create_parallel_measured(made, options, ctypes.byref(self._ranks.structure), system, found, message,
                                                             _MESSAGE_SIZE)
            library.gmxfmm_destroy(made)
        elif options.method:  # a treecode's plans measure their settings themselves
            status = library.gmxfmm_create_measured(made, options, system, found, None, None, message, _MESSAGE_SIZE)
            library.gmxfmm_destroy(made)
        else:
            status = library.gmxfmm_reference_create(made, options, system, message, _MESSAGE_SIZE)
            status = status or library.gmxfmm_measure(made, options, 1, found, message, _MESSAGE_SIZE)
            library.gmxfmm_reference_destroy(made)
        if status:
            raise library_error(status, message.value.decode())
        return Measured(found)

    def _settings(self) -> OptionsStructure:
        """The options with the settings in use, and an accuracy for which a reference can be made."""
        info, options = self._info(), OptionsStructure.from_buffer_copy(self._options)
        options.method = info.method
        if options.method:
            options.theta, options.degree, options.leaf, options.accuracy = info.theta, info.degree, info.leaf, AUTO
            return options
        options.order, options.separation, options.m2l = info.order, info.separation, info.m2l
        if info.depth < 0 or self._box is not None:  # an open octree makes its leaves from the particles
            options.depth, options.grid = info.depth, info.grid
        if is_auto(options.accuracy):
            options.accuracy = max(1e-12, min(0.1, info.predicted_error))
        return options

    # --------------------------------------------------------------------------------------------------------------- copies

    def __getstate__(self) -> Dict[str, Any]:
        """What the plan is made of, as it is now, without the library's plan: a copy makes its own when it is first used."""
        if self._ranks is not None:
            raise refuse("comm", "a plan of several ranks is not copied, as its communicator is not: make another one")
        self._fetch_charges()
        state = {**self.__dict__, "_kept": None, "_accuracy_of_options": self._options.accuracy}
        x = self._kept_positions()
        if x is not None:
            state["_kept"] = (x.copy(), self._box, self._n)
        for name in ("_options", "_then", "_extent"):
            state.pop(name, None)
        handle = state.pop("_handle", True)
        return dict(state, _closed=not handle)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._options = self._make_options()
        self._options.accuracy = self.__dict__.pop("_accuracy_of_options")
        self._steps_left = 0
        if self.__dict__.pop("_closed"):
            self._handle = ctypes.c_void_p()

    def __getattr__(self, name: str) -> Any:
        """The library's plan of a copy is made when it is first used."""
        if name != "_handle" or "_options" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._make_copy()
        return self._handle

    def _make_copy(self, positions: Optional[np.ndarray] = None) -> None:
        """The library's plan of a copy, at the positions kept or else at those given."""
        x = self._kept_positions()
        x = positions if x is None else x
        if x is None and self._chosen:
            raise refuse("positions", "there are none that this copy of a plan could be measured with: begin with step() or assign()")
        try:
            self._make(x, self._chosen)
            if self._derivatives is not None:
                self._give_derivatives()
        except Error:
            self.close()
            del self._handle
            raise

    # ------------------------------------------------------------------------------------------------------ what may change

    def set_charges(self, charges: Any, positions: Any = None, *, box: BoxLike = None,
                    measure: Union[bool, str, None] = None) -> None:
        """Sets new charges (n). With another n there are no exclusions. A plan that measures then needs positions (n, 3).

        box      a new box, as of set_box, that the positions are in. A later set_box would come too late for a measurement
        measure  None: a plan that measures does so again where charges differ by more than a tenth of their RMS from those measured.
                 It does so at the positions given, or at those of the last assignment. True: it measures in any case.
                 False: settings stay, and measured_error is nan after such a change.
                 "once": for the charges of iterations. Settings stay as long as they serve charges of this kind. The next step of
                 host arrays finds the kind and checks its forces (checked_error). Most charges of a kind that is known to be served
                 are not checked. Where they miss the accuracy, settings are measured with these charges, and the step is done again

        Charges of a device are put on the current stream, and are not looked at.
        """
        if measure not in (None, True, False, "once"):
            raise refuse("measure", f"it is {measure!r}, it must be True, False, 'once' or None")
        if measure == "once" and self._ranks is not None:
            raise refuse("measure", "it is 'once', which several ranks do not check: leave it out, choose() measures")
        if measure == "once" and self._dipoles is not None:
            raise refuse("measure", "it is 'once', which checks charges without dipoles: use None, True or False")
        if measure == "once" and self._widths is not None:
            raise refuse("measure", "it is 'once', which checks point charges: use None, True or False with widths")
        if measure == "once" and not self._chosen:
            raise refuse("measure", "it is 'once', but nothing was measured: the plan was made with measure=False")
        door = library_of(charges)
        if door is not None and self._on_device:
            view = checked(door, "charges", charges, (None,), self._type)
            if view.shape[0] == self._n and self._can("ENQUEUE_CHARGES"):
                self._door = door
                if box is not None:
                    self._put_box(box)
                self._call("enqueue_charges", self._n, None, view.pointer, view.stream)
                self._charges_on_device = door.copy(charges)
                door.finish(view)
                if box is not None:
                    self._measure_if_changed(positions)
                return
        q = numbers("charges", to_host("charges", charges), (None,), self._dtype).copy()
        if len(q) != self._n and self._measures and positions is None:
            raise refuse("positions", f"there are {len(q)} charges instead of {self._n}: to measure with these, give their positions")
        if box is not None:
            self._put_box(box)
        self._set_host_charges(q, positions, measure)

    def _set_host_charges(self, q: np.ndarray, positions: Any, measure: Union[bool, str, None]) -> None:
        if len(q) != self._n:
            if "_handle" not in self.__dict__:
                self._make_copy(None)
            self._exclusions, self._kept, self._steps_left, self._derivatives = (None, None), None, 0, None
            self._ids = self._dipoles = self._widths = None
        self._call("set_charges", len(q), q.ctypes.data)
        self._n, self._charges, self._charges_on_device = len(q), q, None
        if measure is True:
            self._make_again(self._positions_now(positions))
        elif measure is None or self._targets:
            self._unmeasured = self._to_check = False
            self._measure_if_changed(positions)
        else:
            self._unmeasured = self._has_other_charges() or self._has_other_shape() or self._has_other_dipoles()
            self._to_check = measure == "once" and self._unmeasured

    def set_dipoles(self, dipoles: Any, positions: Any = None, *, measure: Optional[bool] = None) -> None:
        """Sets dipoles (n, 3), charge times length; None: there are none.

        measure  None: a plan that measures does so again where dipoles differ by more than a tenth of their RMS from those measured.
                 It does so at the positions (n, 3) given, or at those of the last assignment. True: it measures in any case.
                 False: settings stay, as for the dipoles of iterations, and measured_error is nan after such a change
        """
        before = self._dipoles
        self._take_dipoles(dipoles, self._n)
        again = (self._measures and self._has_other_dipoles()) if measure is None else measure
        try:
            if again:
                self._make_again(self._positions_now(positions))
                return
            self._call("set_dipoles", self._n, _address(self._dipoles))
        except Error:
            self._dipoles = before
            raise
        if (before is None) != (self._dipoles is None):
            self._steps_left = 0
        self._unmeasured = self._unmeasured or self._has_other_dipoles()

    def set_widths(self, widths: Any) -> None:
        """Sets widths (n) of Gaussian charges, their standard deviations; None: all are points. Settings stay."""
        before = self._widths
        self._take_widths(widths, self._n)
        try:
            self._call("set_widths", self._n, _address(self._widths))
        except Error:
            self._widths = before
            raise
        self._steps_left = 0

    def set_box(self, box: BoxLike, positions: Any = None) -> None:
        """Sets a new box, as of Plan. Particles keep their cells, which move with it, until the next assignment.

        Errors are measured again where the shape is stretched by more than a tenth against the one measured. That is at the positions
        given, or at those of the last assignment, moved with the box. With arrays of a device the box is put on their stream.
        """
        self._put_box(box)
        self._measure_if_changed(positions)

    def _put_box(self, box: BoxLike) -> None:
        vectors = box_vectors(to_host("box", box), self._periodic)
        if vectors is None or self._box is None:
            raise refuse("box", "an open system has none" if self._box is None else "a periodic system needs one")
        if self._door is not None and self._can("ENQUEUE"):
            self._call("enqueue_box", vectors.ctypes.data, self._door.current_stream(self._options.device_id))
        else:
            self._call("set_box", vectors.ctypes.data)
        self._box = vectors

    def set_exclusions(self, exclusions: Any, positions: Any = None) -> None:
        """Sets pairs of particles that do not interact, integers (m, 2); None: there are none. A plan that measures does so again, at the
        positions given or at those of the last assignment.
        """
        lists = self._lists(exclusions, self._n)
        if self._measures:
            x, before = self._positions_now(positions), self._exclusions
            self._exclusions = lists
            try:
                self._make_again(x)
            except Error:
                self._exclusions = before
                raise
            return
        self._call("set_exclusions", *(_address(array) for array in lists))
        self._exclusions, self._steps_left = lists, 0

    def set_charge_derivatives(self, parameters: Optional[Sequence[Tuple[Any, Any]]]) -> None:
        """Sets how charges depend on parameters, as in lambda dynamics. A parameter has its particles, integers (m), and the change of
        their charges for a unit of it (m). A step then has charge_gradient. None: there are no parameters. set_charges sets the
        charges themselves; with another number of them there are no parameters.
        """
        if parameters is None:
            self._call("set_charge_derivatives", 0, None, None, None)
            self._derivatives = None
            return
        groups = []
        for k, (particles, changes) in enumerate(parameters):
            which, by = np.atleast_1d(np.asarray(particles)), np.atleast_1d(np.asarray(changes, dtype=np.float64))
            if which.size and not np.issubdtype(which.dtype, np.integer):
                raise refuse("parameters", f"particles of parameter {k} are not integers")
            if which.ndim != 1 or which.shape != by.shape:
                raise refuse("parameters", f"parameter {k} has particles of the shape {which.shape} and changes of the shape {by.shape}")
            if which.size and not 0 <= which.min() <= which.max() < self._n:
                raise refuse("parameters", f"parameter {k} names a particle beyond 0 to {self._n - 1}")
            groups.append((which.astype(np.intc), by))
        start = np.cumsum([0] + [len(which) for which, _ in groups], dtype=np.intc)
        before = self._derivatives
        self._derivatives = (start, np.concatenate([np.empty(0, np.intc), *(which for which, _ in groups)]),
                             np.concatenate([np.empty(0), *(by for _, by in groups)]))
        try:
            self._give_derivatives()
        except Error:
            self._derivatives = before
            raise

    def _give_derivatives(self) -> None:
        assert self._derivatives is not None
        start, which, by = self._derivatives
        self._call("set_charge_derivatives", len(start) - 1, start.ctypes.data, which.ctypes.data, by.ctypes.data)

    def set_targets(self, targets: Any, positions: Any = None, *, measure: Optional[bool] = None) -> None:
        """Sets places (m, 3) where potential and field are computed, and not at the charges; None: at the charges again. There are no
        forces, energy or virial then.

        measure  True: errors are measured again, and automatic options chosen, at the positions (n, 3) given or those of the last
                 assignment. False: settings stay, and measured_error is nan. None: as the plan was made; on several ranks False
        """
        places = None if targets is None else numbers("targets", to_host("targets", targets), (None, 3), self._dtype)
        if self._measures if measure is None else measure:
            x, before = self._positions_now(positions), self._target_positions
            self._take_targets(places)
            try:
                self._make_again(x)
            except Error:
                self._take_targets(before)
                raise
            return
        self._call("set_targets", 0 if places is None else len(places), _address(places))
        self._take_targets(places)
        self._measured_error = float("nan")
        self._steps_left = 0

    # ----------------------------------------------------------------------------------------------------------------- steps

    def assign(self, positions: Any) -> None:
        """Puts the particles at positions (n, 3) into cells. They stay there for the next assign_every steps. Any periodic image of a
        particle will do.
        """
        door = library_of(positions)
        if door is None:
            x = self._host_positions(positions)
            self._assign_host(x, x.ctypes.data)
        else:
            self._assign_on_device(self._device_view(door, positions), positions)

    def step(self, positions: Any, out: Out = None, *, energy: Optional[bool] = None, forces: Optional[bool] = None,
             potential: Optional[bool] = None, field: Optional[bool] = None, virial: bool = False, charge_gradient: bool = False,
             torques: bool = False, field_gradient: bool = False, assign: Optional[bool] = None) -> Step:
        """Computes results at positions (n, 3). No copy is needed for positions of the type of the plan's arrays.

        out       an earlier step, which is overwritten; or a dictionary with arrays to write to, by the names forces, potential,
                  field, torques and field_gradient
        energy, forces, potential, field, virial, charge_gradient, torques, field_gradient
                  True: computed, which takes time. Left out: energy and forces, with targets potential and field
        assign    True or False: whether particles are put into cells first. None: as assign_every says

        Arrays of a device are taken as they are, on the current stream of their library. The host does not wait. The result's check()
        raises what is wrong with them.
        """
        default = not self._targets
        wanted = Wanted(default if energy is None else bool(energy), default if forces is None else bool(forces),
                        not default if potential is None else bool(potential), not default if field is None else bool(field), bool(virial),
                        self._num_parameters() if charge_gradient else 0, bool(torques), bool(field_gradient))
        if self._dipoles is None and (torques or field_gradient or not (out is None or isinstance(out, Step))):
            for name in OF_DIPOLES:
                if getattr(wanted, name) or isinstance(out, Mapping) and name in out:
                    raise refuse(name, "there are no dipoles: set_dipoles first, with zeros for charges alone")
        due = self._steps_left <= 0 if assign is None else assign
        door = library_of(positions)
        if door is not None:
            return self._step_on_device(door, positions, out, wanted, due)
        x = self._host_positions(positions)
        step = prepare(HostStep, out, wanted, (self._targets or self._n, self._dtype, None, -1))
        address = x.ctypes.data
        if due:
            self._assign_host(x, address)
        status = library.gmxfmm_execute(self._handle, address, step._reference)
        if status == _OUT_OF_ORDER and not due and self._handle:  # a box of quite another shape
            self._assign_host(x, address)
            status = library.gmxfmm_execute(self._handle, address, step._reference)
        if status:
            raise self._error(status)
        if self._to_check:
            self._check_charges(x, step)
        self._steps_left -= 1
        return step

    def _check_charges(self, x: np.ndarray, step: Step) -> None:
        """Whether the settings serve charges that were not measured, at the positions of this step. If not, they are measured, and the step
        is done again.
        """
        self._to_check, left = False, self._steps_left
        try:
            if self._serves(x, step):
                return
            self._steps_left = left = 0
            self._make_again(x)
            self._assign_host(x, x.ctypes.data)
            left = self._steps_left
            status = library.gmxfmm_execute(self._handle, x.ctypes.data, step._reference)
            if status:
                raise self._error(status)
        finally:
            self._steps_left = left

    def _serves(self, x: np.ndarray, step: Step) -> bool:
        q, box, asked = self._charges, self._box, _inputs.asked_of(self._given) if is_auto(self._accuracy) else self._accuracy
        if asked is None or not q.any():
            return True
        forces, felt = step.forces, step.forces
        if forces is None and step.potential is not None:  # tells kinds apart as forces do
            felt = (q * step.potential / _check.spacing(x, box))[:, None]
        if felt is None:
            forces = felt = self.step(x, energy=False, forces=True, assign=False).forces
        kind = _check.kind_of(felt, x, q, box) + (int(forces is None),)
        if self._record.trusts(kind):
            return True
        if forces is None:
            forces = self.step(x, energy=False, forces=True, assign=False).forces
        options = self._options
        kappa = options.kappa if options.method and options.kernel else 0.0
        surface = options.boundary == header.enums["gmxfmm_boundary"]["GMXFMM_VACUUM"]
        error = _check.errors_of(self, _check.Felt(forces), x, _check.Sources(q), None if box is None else box[None], [(0, slice(0, len(x)))],
                                 self._exclusions, kappa, surface)[0]
        self._record.add(kind, error / asked)
        if error <= asked:
            self._checked_error = error if math.isnan(self._checked_error) else max(error, self._checked_error)
            if box is not None:  # into the cells of this step again
                self._assign_host(x, x.ctypes.data)
        return error <= asked

    def _num_parameters(self) -> int:
        if self._derivatives is None or len(self._derivatives[0]) == 1:
            raise refuse("charge_gradient", "there are no parameters: set_charge_derivatives first")
        return len(self._derivatives[0]) - 1

    def _host_positions(self, positions: Any) -> np.ndarray:
        return numbers("positions", positions if type(positions) is np.ndarray else to_host("positions", positions), (self._n, 3), self._dtype)

    def _has_spread(self) -> bool:
        """Whether the extent along an open direction is another one than at the last measurement, for the particles that were just assigned.
        Targets may be anywhere.
        """
        if not self._measures or self._targets or (self._box is not None and self._periodic == (1, 1, 1)):
            return False
        now = np.array(self._info().extent)
        return bool((np.abs(now - self._extent) > CHANGE * self._extent).any())

    def _assign_host(self, x: np.ndarray, address: int) -> None:
        if "_handle" not in self.__dict__:
            self._make_copy(x)
        self._call("assign", address)
        if self._has_spread():
            self._make_again(x)
            self._call("assign", address)
        self._keep(x)
        self._steps_left = self._assign_every

    def _device_view(self, door: Any, positions: Any) -> View:
        if not self._on_device:
            raise refuse("positions", "they are on a GPU, and the plan is of the CPU: make one with these positions")
        view = checked(door, "positions", positions, (self._n, 3), self._type)
        if view.device != self._options.device_id:
            raise refuse("positions", f"they are on device {view.device}, and the plan is on {self._options.device_id}")
        self._door = door
        return view

    def _assign_on_device(self, view: View, positions: Any) -> None:
        status = _OUT_OF_ORDER
        if self._can("ENQUEUE_ASSIGN") and self._periodic == (1, 1, 1):  # cells of a slab are made for positions nearby
            status = library.gmxfmm_enqueue_assign(self._handle, view.pointer, view.stream)
        if status == _OUT_OF_ORDER:  # waits
            status = library.gmxfmm_assign(self._handle, view.pointer)
        if status:
            raise self._error(status)
        if positions is not None and self._has_spread():
            self._make_again(numbers("positions", to_host("positions", positions), (self._n, 3), self._dtype))
            self._call("assign", view.pointer)
        self._keep(positions)
        self._steps_left = self._assign_every

    def _step_on_device(self, door: Any, positions: Any, out: Out, wanted: Wanted, due: bool) -> Step:
        view = self._device_view(door, positions)
        step = prepare(DeviceStep, out, wanted, (self._targets or self._n, self._dtype, door, view.device))
        if due:
            self._assign_on_device(view, positions)
        status = library.gmxfmm_enqueue(self._handle, view.pointer, step._reference, view.stream)
        if status == _OUT_OF_ORDER and not due:
            self._assign_on_device(view, positions)
            status = library.gmxfmm_enqueue(self._handle, view.pointer, step._reference, view.stream)
        if status:
            raise self._error(status)
        self._steps_left -= 1
        door.finish(view)
        return step

    def step_systems(self, x: np.ndarray, sources: _check.Sources, bounds: np.ndarray, boxes: Optional[np.ndarray], arrays: Dict[str, np.ndarray],
                     energies: Optional[np.ndarray], virials: Optional[np.ndarray]) -> None:
        """Whole steps of systems of a Batch, by the library in one call: all particles of these, bounds of each, boxes of each (or None).
        Raises Error with the number of the system as its attribute `system`."""
        q, mu = sources
        start = np.ascontiguousarray(bounds - bounds[0])
        pointers = {name: array.ctypes.data for name, array in arrays.items()}
        systems = Systems(ctypes.sizeof(Systems), len(start) - 1, start.ctypes.data, x.ctypes.data, q.ctypes.data, _address(boxes),
                          pointers.get("forces"), pointers.get("field"), pointers.get("potential"), _address(energies), _address(virials), 0,
                          _address(mu), pointers.get("torques"), pointers.get("field_gradient"))
        if "_handle" not in self.__dict__:
            self._make_copy(None)
        status = library.gmxfmm_execute_systems(self._handle, systems)
        last = min(int(systems.done), int(systems.num) - 1)  # what the library's plan is now
        self._charges = q[start[last]:start[last + 1]].copy()
        self._dipoles = None if mu is None else mu[start[last]:start[last + 1]].copy()
        self._n, self._charges_on_device, self._kept, self._steps_left = len(self._charges), None, None, 0
        if boxes is not None:
            self._box = boxes[last].copy()
        if status:
            error = self._error(status)
            error.system = last  # type: ignore[attr-defined]
            raise error

    def along_of_systems(self, x: np.ndarray, q: np.ndarray, u: np.ndarray, w: np.ndarray, bounds: np.ndarray,
                         boxes: Optional[np.ndarray]) -> Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What gmxfmm_execute_along gives of charges q along ways u of positions and w of charges, for systems as of step_systems: forces,
        potentials, energies of systems, and forces on q.
        """
        word, at = self._dtype.itemsize, [array.ctypes.data for array in (x, q, u, w)]
        forces, potential, felt, energies = np.empty_like(x), np.empty_like(q), np.empty_like(x), np.empty(len(bounds) - 1)
        results = [array.ctypes.data for array in (forces, potential, felt)]
        if "_handle" not in self.__dict__:
            self._make_copy(None)
        ends: List[int] = bounds.tolist()
        one, s = Along(size=ctypes.sizeof(Along)), 0
        reference = ctypes.byref(one)
        try:
            for s, (begin, end) in enumerate(zip(ends, ends[1:])):
                single, triple = word * begin, 3 * word * begin
                self._call("set_charges", end - begin, at[1] + single)
                if boxes is not None:
                    self._call("set_box", boxes[s].ctypes.data)
                one.u, one.w, one.force, one.potential, one.felt = at[2] + triple, at[3] + single, results[0] + triple, results[1] + single, results[2] + triple
                self._call("execute_along", at[0] + triple, reference)
                energies[s] = one.energy
        except Error as error:
            error.system = s  # type: ignore[attr-defined]
            raise
        finally:
            self._charges = q[ends[s]:ends[s + 1]].copy()
            self._n, self._charges_on_device, self._kept, self._steps_left, self._dipoles = len(self._charges), None, None, 0, None
            if boxes is not None:
                self._box = boxes[s].copy()
        return forces, potential, energies, felt

    def fields_of_systems(self, x: np.ndarray, first: _check.Sources, second: _check.Sources, bounds: np.ndarray,
                          boxes: Optional[np.ndarray]) -> Tuple[Dict[str, np.ndarray], Dict[str, np.ndarray]]:
        """Potential, field and its gradient of two sets of charges and dipoles, for systems as of step_systems. There are no dipoles
        afterwards.
        """
        n, word, pair = len(x), self._dtype.itemsize, (first, second)
        found: Tuple[Dict[str, np.ndarray], ...] = tuple(
            {"potential": np.empty(n, self._dtype), "field": np.empty((n, 3), self._dtype), "field_gradient": np.empty((n, 6), self._dtype)} for _ in pair)
        outputs = [Output(size=ctypes.sizeof(Output)) for _ in pair]
        at_x, at_sources = x.ctypes.data, [(sources.charges.ctypes.data, _address(sources.dipoles)) for sources in pair]
        at_arrays = [[(name, array.ctypes.data, array.size // n * word) for name, array in of.items()] for of in found]
        if "_handle" not in self.__dict__:
            self._make_copy(None)
        ends: List[int] = bounds.tolist()
        s = 0
        try:
            for s, (begin, end) in enumerate(zip(ends, ends[1:])):
                here = at_x + 3 * word * begin
                for k, ((at_q, at_mu), output) in enumerate(zip(at_sources, outputs)):
                    assert at_mu is not None
                    self._call("set_charges", end - begin, at_q + word * begin)
                    if boxes is not None and k == 0:
                        self._call("set_box", boxes[s].ctypes.data)
                    self._call("set_dipoles", end - begin, at_mu + 3 * word * begin)
                    if k == 0:
                        self._call("assign", here)
                    for name, address, row in at_arrays[k]:
                        setattr(output, name, address + row * begin)
                    self._call("execute", here, ctypes.byref(output))
        except Error as error:
            error.system = s  # type: ignore[attr-defined]
            raise
        finally:
            library.gmxfmm_set_dipoles(self._handle, 0, None)
            self._dipoles = None
            self._charges = second.charges[ends[s]:ends[s + 1]].copy()
            self._n, self._charges_on_device, self._kept, self._steps_left = len(self._charges), None, None, 0
            if boxes is not None:
                self._box = boxes[s].copy()
        return found[0], found[1]

    def enqueue_system(self, positions: View, charges: View, box: Optional[np.ndarray], output: Any, what: str = "enqueue") -> None:
        """A whole step of another system with as many particles: charges, box, assignment, results. Batch uses it. what: the call that gives
        these; output is its structure.
        """
        if self._can("ENQUEUE_CHARGES"):
            self._call("enqueue_charges", self._n, None, charges.pointer, charges.stream)
        else:
            self._call("set_charges", self._n, charges.pointer)
        if box is not None:
            self._call("enqueue_box", box.ctypes.data, positions.stream)
            self._box = box
        self._assign_on_device(positions, None)
        self._call(what, positions.pointer, ctypes.byref(output), positions.stream)

    # ------------------------------------------------------------------------------------------------------- what there is

    def _can(self, what: str) -> bool:
        return bool(library.gmxfmm_capabilities(self._handle) & _CAN["GMXFMM_CAN_" + what])

    def _error(self, status: int) -> Error:
        if not self._handle:
            return Error("GMXFMM_ERROR_NULL", "the plan is closed")
        message = library.gmxfmm_message(self._handle).decode()
        if status == _LEFT:
            return Error("GMXFMM_ERROR_LEFT", message.replace("(assign)", "(a smaller assign_every, or assign=True)"), "assign_every")
        return library_error(status, message)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(library, "gmxfmm_" + name)(self._handle, *arguments)
        if status:
            raise self._error(status)

    def _info(self) -> InfoStructure:
        info = InfoStructure(size=ctypes.sizeof(InfoStructure))
        self._call("get_info", info)
        return info

    @property
    def info(self) -> Info:
        """Settings in use, errors, memory in bytes, and times in seconds since the plan was made or measured or
        reset_times()."""
        return Info(self._info(), graph_version=library.gmxfmm_graph_version(self._handle))

    @property
    def measured_error(self) -> float:
        """Relative RMS error of forces as it was measured last, or that of potential or field at targets if it is larger. nan: it was not
        measured, or with other exclusions, targets or charges.
        """
        now = self._info().measured_error
        return float("nan") if self._unmeasured else self._measured_error if np.isnan(now) else now

    @property
    def checked_error(self) -> float:
        """The largest relative RMS error of forces found in charges set with measure="once", since the last measurement. nan: none was
        checked.
        """
        return self._checked_error

    @property
    def tried(self) -> List[Measured]:
        """Settings that were measured when the plan was made or chosen last; empty where there was nothing to choose."""
        return list(self._tried)

    @property
    def capabilities(self) -> FrozenSet[str]:
        """What the plan can do: some of virial, exclude, targets, enqueue, enqueue_assign, enqueue_charges and charge_gradient."""
        return frozenset(name.replace("GMXFMM_CAN_", "").lower() for name in _CAN if self._can(name.replace("GMXFMM_CAN_", "")))

    @property
    def box(self) -> Optional[np.ndarray]:
        """(3, 3), vectors in rows, a copy; None: an open system."""
        return None if self._box is None else self._box.copy()

    @property
    def charges(self) -> np.ndarray:
        """(n), a copy on the host."""
        self._fetch_charges()
        return self._charges.copy()

    @property
    def prefactor(self) -> float:
        """The factor of potentials, forces and energies."""
        return float(self._options.prefactor)

    @property
    def num_particles(self) -> int:
        return self._n

    def __len__(self) -> int:
        return self._n

    def reset_times(self) -> None:
        """Sets times and counts of info to zero."""
        library.gmxfmm_reset_times(self._handle)

    def close(self) -> None:
        """Gives the plan's memory back. The plan cannot be used then. May be called twice."""
        handle, self._handle = self.__dict__.get("_handle"), ctypes.c_void_p()
        if handle:
            library.gmxfmm_destroy(handle)

    def __enter__(self) -> "Plan":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if self.__dict__.get("_handle"):
            self.close()

    def __repr__(self) -> str:
        if "_handle" not in self.__dict__:
            return f"Plan of {self._n} particles, a copy that was not used yet"
        if not self._handle:
            return "Plan, closed"
        info = self._info()
        if info.method:
            return f"Plan of {self._n} particles, treecode, theta {info.theta:.2g}, degree {info.degree}, measured error {self.measured_error:.2g}"
        return f"Plan of {self._n} particles, order {info.order}, grid {list(info.grid)}, measured error {self.measured_error:.2g}"
