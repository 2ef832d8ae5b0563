# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of a step: arrays of the host or of a device, and the structure that tells the library where they are."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from ._arrays import checked
from ._inputs import Info, STATUS, refuse
from ._library import DeviceOutput, Error, Output

ARRAYS = ("forces", "potential", "field")
OF_DIPOLES = ("torques", "field_gradient")
STEP_ARRAYS = ARRAYS + OF_DIPOLES
_MEMBERS = {"forces": "force", "potential": "potential", "field": "field", "torques": "torque", "field_gradient": "field_gradient"}
COLUMNS = {"forces": (3,), "potential": (), "field": (3,), "torques": (3,), "field_gradient": (6,)}
# Of a device, in one block of double numbers: energies of near and far, the virial, the status as an int, and how far the worst
# particle is outside its cell
_ENERGY, _VIRIAL, _STATUS, _OUTSIDE, BLOCK = 0, 2, 11, 12, 13
_IMMUTABLE = "arrays of JAX are never written to: leave it out"


class Wanted(NamedTuple):
    """What a step has to compute."""

    energy: bool
    forces: bool
    potential: bool
    field: bool
    virial: bool
    charge_gradient: int = 0  # number of parameters
    torques: bool = False
    field_gradient: bool = False


class Step:
    """Results of a step. Arrays are of the caller's library and type. An array that was not asked for is None.

    forces     (n, 3), charge^2 / length^2 times prefactor
    potential  (n) at the charges, or (m) at the targets; charge / length
    field      (n, 3) or (m, 3), charge / length^2
    energy     1/2 sum q phi, charge^2 / length: a float; on a device an array of no dimension, in double precision
    virial     (3, 3), -1/2 sum r (x) F over pairs, unit of energy; with dipoles it is not symmetric
    torques    (n, 3) on dipoles, mu x E, unit of energy
    field_gradient
               (n, 6) or (m, 6), of plans with dipoles: dE_b/dx_a as xx, yy, zz, xy, xz, yz; charge / length^3
    charge_gradient
               (k), of the energy by the parameters of Plan.set_charge_derivatives, in double precision
    outside    how far the worst particle is outside the cell that it was assigned to, in cells; 0: none is. A float; on a device an
               array of no dimension
    check()    with a device: waits. It raises Error if a position or charge was not finite, two charges stood at one place, or
               particles had left their cells
    """

    forces: Any = None
    potential: Any = None
    field: Any = None
    torques: Any = None
    field_gradient: Any = None
    _gradient: Any = None
    _reference: Any = None

    def __init__(self, wanted: Wanted, key: Tuple, arrays: Mapping[str, Any]) -> None:
        self._wanted, self._key = wanted, key
        for name, array in arrays.items():
            setattr(self, name, array)

    @property
    def energy(self) -> Any:
        raise NotImplementedError

    @property
    def virial(self) -> Any:
        raise NotImplementedError

    @property
    def charge_gradient(self) -> Any:
        return self._gradient

    @property
    def outside(self) -> Any:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def _arrays(self) -> Dict[str, Any]:
        return {name: getattr(self, name) for name in STEP_ARRAYS if getattr(self, name) is not None}

    def __repr__(self) -> str:
        names = [name for name in Wanted._fields if getattr(self._wanted, name)]
        return f"{type(self).__name__} of {', '.join(names)}"


def room(wanted: Wanted, rows: Tuple[int, ...], dtype: np.dtype, door: Any, device: int, given: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """Arrays for what is wanted: those given, if they fit, and new ones. door: of their library; None: numpy's."""
    arrays = {}
    for name in STEP_ARRAYS:
        if not getattr(wanted, name):
            continue
        shape = rows + COLUMNS[name]
        array = None if given is None else given.get(name)
        if array is None:
            array = np.empty(shape, dtype) if door is None else door.empty(shape, dtype.name, device)
        elif door is None:
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous or \
                    not array.flags.writeable:
                raise refuse("out", f"{name} must be a contiguous array of numpy that can be written, {dtype}, of the shape {shape}")
        elif not door.writes:
            raise refuse("out", _IMMUTABLE)
        else:
            try:
                checked(door, name, array, shape, dtype.name)
            except Error as error:
                raise refuse("out", str(error)) from None
        arrays[name] = array
    return arrays


class HostStep(Step):
    def __init__(self, wanted: Wanted, key: Tuple, arrays: Mapping[str, Any]) -> None:
        super().__init__(wanted, key, arrays)
        self._output = Output(size=ctypes.sizeof(Output), want_energy=wanted.energy, want_virial=wanted.virial)
        for name in arrays:
            setattr(self._output, _MEMBERS[name], arrays[name].ctypes.data)
        if wanted.charge_gradient:
            self._gradient = np.empty(wanted.charge_gradient)
            self._output.charge_gradient = self._gradient.ctypes.data
        self._reference = ctypes.byref(self._output)

    def __getstate__(self) -> Tuple:
        """Arrays and numbers, without the structure that tells the library where they are."""
        numbers = {name: getattr(self._output, name) for name in ("energy_near", "energy_far", "outside")}
        return self._wanted, self._key, self._arrays(), self._gradient, numbers, tuple(self._output.virial)

    def __setstate__(self, state: Tuple) -> None:
        wanted, key, arrays, gradient, numbers, virial = state
        HostStep.__init__(self, wanted, key, arrays)
        if gradient is not None:
            self._gradient[...] = gradient
        for name, value in numbers.items():
            setattr(self._output, name, value)
        self._output.virial = virial

    @property
    def energy(self) -> Optional[float]:
        return self._output.energy_near + self._output.energy_far if self._wanted.energy else None

    @property
    def virial(self) -> Optional[np.ndarray]:
        return np.array(self._output.virial).reshape(3, 3) if self._wanted.virial else None

    @property
    def outside(self) -> float:
        return self._output.outside

    def check(self) -> None:
        """Nothing to do: a step of the host has raised its errors."""


class DeviceStep(Step):
    def __init__(self, wanted: Wanted, key: Tuple, arrays: Mapping[str, Any]) -> None:
        _, _, door, device = key
        gradient = door.empty((wanted.charge_gradient,), "float64", device) if wanted.charge_gradient else None
        self.__setstate__((wanted, key, arrays, gradient, door.empty((BLOCK,), "float64", device)))

    def __getstate__(self) -> Tuple:
        """Arrays, without the structure that tells the library where they are."""
        return self._wanted, self._key, self._arrays(), self._gradient, self._block

    def __setstate__(self, state: Tuple) -> None:
        wanted, key, arrays, self._gradient, self._block = state
        Step.__init__(self, wanted, key, arrays)
        door = key[2]
        self._output = DeviceOutput(size=ctypes.sizeof(DeviceOutput))
        if self._gradient is not None:
            self._output.charge_gradient = door.pointer(self._gradient)
        self.point(self._output, door.pointer(self._block), wanted, {name: door.pointer(array) for name, array in arrays.items()})
        self._reference = ctypes.byref(self._output)

    @staticmethod
    def point(output: Any, block: int, wanted: Wanted, pointers: Mapping[str, int]) -> None:
        """Tells the library where to write. block: address of BLOCK double numbers."""
        for name, pointer in pointers.items():
            setattr(output, _MEMBERS[name], pointer)
        output.status = block + 8 * _STATUS
        output.outside = block + 8 * _OUTSIDE
        if wanted.energy:
            output.energy = block + 8 * _ENERGY
        if wanted.virial:
            output.virial = block + 8 * _VIRIAL

    @staticmethod
    def parts(block: Any) -> Tuple[Any, Any]:
        """Energies (...) and virials (..., 3, 3) of blocks (..., BLOCK)."""
        shape = tuple(block.shape[:-1])
        return block[..., _ENERGY] + block[..., _ENERGY + 1], block[..., _VIRIAL:_VIRIAL + 9].reshape(shape + (3, 3))

    def _numbers(self, array: Any) -> Any:
        return array if self._key[2].writes else self._key[2].host(array)

    @property
    def energy(self) -> Any:
        return self.parts(self._numbers(self._block))[0] if self._wanted.energy else None

    @property
    def virial(self) -> Any:
        return self.parts(self._numbers(self._block))[1] if self._wanted.virial else None

    @property
    def charge_gradient(self) -> Any:
        return None if self._gradient is None else self._numbers(self._gradient)

    @property
    def outside(self) -> Any:
        return self._numbers(self._block)[_OUTSIDE]

    def check(self) -> None:
        check_blocks(self._key[2], self._block)


def check_blocks(door: Any, block: Any) -> None:
    """Waits for blocks (..., BLOCK) of a device, and raises the first error in them."""
    host = (block if isinstance(block, np.ndarray) else door.host(block)).reshape(-1, BLOCK)
    found = np.ascontiguousarray(host[:, _STATUS]).view(np.intc)[::2]
    if not found.any():
        return
    system = int(np.flatnonzero(found)[0])
    name = STATUS.get(int(found[system]), "GMXFMM_ERROR_DEVICE")
    argument, cause = {"GMXFMM_ERROR_CHARGE": ("charges", "one is not finite"),
                       "GMXFMM_ERROR_COINCIDENT": ("positions", "two charges that do not exclude each other stand at one place"),
                       "GMXFMM_ERROR_POSITION": ("positions", "one is not finite"),
                       "GMXFMM_ERROR_LEFT": ("assign_every", "particles have left their cells, and errors may be worse than promised: "
                                                             "a smaller one, or a step with assign=True")}.get(name, (None, f"the step failed with {name}"))
    raise Error(name, (f"{argument}: {cause}" if argument else cause) + (f", in system {system}" if len(found) > 1 else ""), argument)


class Result:
    """What solve gives: the members of Step, and

    info            what the plan did: Info, members of gmxfmm_info by name or as attributes
    measured_error  relative RMS error of the forces, measured on this system (treecode: of potential or field, at a sample).
                    nan: nothing was measured
    relative_to     what the error is divided by: the RMS of the forces or, where these are zero by symmetry, their natural unit
    """

    def __init__(self, step: Step, info: Info, measured_error: float) -> None:
        self.energy, self.forces, self.potential, self.field, self.virial = step.energy, step.forces, step.potential, step.field, step.virial
        self.info, self.measured_error = info, measured_error
        self.relative_to = "prefactor (mean |q| / spacing)^2, as the forces are zero" if info["zero_forces"] else "RMS of the forces"

    def __repr__(self) -> str:
        return f"Result(energy={self.energy!r}, measured_error={self.measured_error:.2g}, order={self.info['order']})"


Out = Union[Step, Mapping[str, Any], None]


def with_given(wanted: Wanted, out: Any, names: Tuple[str, ...] = ARRAYS) -> Wanted:
    """What is wanted, with the arrays that are given to write to."""
    if not isinstance(out, Mapping) or any(name not in names for name in out):
        raise refuse("out", f"it must be a dictionary with arrays of {', '.join(names)}, or of a plan what an earlier step gave")
    return wanted._replace(**{name: True for name in out})


def prepare(kind: Any, out: Out, wanted: Wanted, key: Tuple) -> Step:
    """A step to write to: out itself where it fits, otherwise one with the arrays of out. key has rows, type, library, device."""
    rows, dtype, door, device = key
    if isinstance(out, Step):
        if door is not None and not door.writes:
            raise refuse("out", _IMMUTABLE)
        if out._wanted == wanted and out._key == key:
            return out
        raise refuse("out", f"it is a {out!r}, of {out._key[0]} rows; this step is another: leave it out once")
    if out is not None:
        wanted = with_given(wanted, out, STEP_ARRAYS)
    return kind(wanted, key, room(wanted, (rows,), dtype, door, device, out))
