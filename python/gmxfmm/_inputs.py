# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arguments as the library takes them. A wrong argument is an Error that names it and the cause."""
from __future__ import annotations

import ctypes
import difflib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

from ._library import Error, Options, header, library

BoxLike = Union[float, "np.typing.ArrayLike", None]

STATUS: Dict[int, str] = {value: name for name, value in header.enums["gmxfmm_status"].items()}
AUTO = -1  # GMXFMM_AUTO
_FIELDS = dict(Options._fields_)
_FIXED = {"size", "array_type", "num_devices"}  # not a caller's
_ARGUMENTS = {"BOX": "box", "CHARGE": "charges", "EXCLUSION": "exclusions", "POSITION": "positions", "COINCIDENT": "positions"}
_choices_of: Dict[str, Optional[List[str]]] = {}


def refuse(argument: str, cause: str) -> Error:
    """The error of an argument that is wrong before the library has seen it."""
    status = next((name for name, whose in _ARGUMENTS.items() if whose == argument), "OPTION")
    return Error("GMXFMM_ERROR_" + status, f"{argument}: {cause}", argument)


def library_error(status: int, message: str) -> Error:
    """The error for what the library refuses. Its messages about options begin with the option's name, or with "option" and the name."""
    name = STATUS[status]
    argument = _ARGUMENTS.get(name.replace("GMXFMM_ERROR_", ""))
    words = message.replace("option ", "", 1).split()
    first = words[0].rstrip(":,").partition("[")[0] if words else ""  # grid[0] is of grid
    if argument is None and first in _FIELDS:
        argument = first
    if first in ("dipole", "dipoles"):
        argument = "dipoles"
    if argument is None and "cannot be measured on this system" in message:  # errors of such an accuracy
        argument = "accuracy"
    return Error(name, message, argument)


def check_device(device: str = "cuda", device_id: int = 0) -> None:
    """Raises Error, with the cause, where no plan can be made for this device: "cpu" or "cuda", and the number of the GPU."""
    words = choices("device") or []
    if device not in words:
        raise refuse("device", f"it is {device!r}, it must be one of {', '.join(words)}")
    message = ctypes.create_string_buffer(512)
    status = library.gmxfmm_check_device(words.index(device), device_id, message, 512)
    if status:
        raise Error(STATUS[status], message.value.decode(), "device")


def choices(name: str) -> Optional[List[str]]:
    """Words that an option takes, in the order of its enum; None: it is a number."""
    if name not in _choices_of:
        found = library.gmxfmm_find_option(name.encode())
        _choices_of[name] = found.contents.choices.decode().split("|") if found and found.contents.choices else None
    return _choices_of[name]


def _set_devices(options: Options, name: str, value: Any) -> None:
    """Numbers of the GPUs that share a step, of which the first is the plan's, or their shares."""
    kind = _FIELDS[name]
    try:
        numbers_given = [value] if isinstance(value, (int, np.integer)) else list(value)
        if not 0 < len(numbers_given) <= kind._length_:
            raise ValueError
        setattr(options, name, kind(*numbers_given))
    except (TypeError, ValueError, OverflowError):
        raise refuse(name, f"it is {value!r}, it must be 1 to {kind._length_} {'integers' if name == 'devices' else 'numbers'}") from None
    if name == "devices":
        options.num_devices = len(numbers_given)


def _set_option(options: Options, name: str, value: Any) -> None:
    if name not in _FIELDS or name in _FIXED:
        like = difflib.get_close_matches(name, set(_FIELDS) - _FIXED, 1)
        raise refuse(name, f"there is no option {name!r}; " + (f"did you mean {like[0]!r}? There" if like else "there")
                     + f" are {', '.join(sorted(set(_FIELDS) - _FIXED))}")
    kind = _FIELDS[name]
    if name == "cache_dir":
        setattr(options, name, None if value is None else str(value).encode())
        return
    if name in ("devices", "shares", "far_shares"):
        _set_devices(options, name, value)
        return
    if isinstance(value, str):
        words = choices(name)
        if words is None or value not in words:
            raise refuse(name, f"it is {value!r}, it must be " + (f"one of {', '.join(words)}" if words else "a number"))
        value = words.index(value)
    try:
        if issubclass(kind, ctypes.Array):
            value = kind(*np.broadcast_to(value, kind._length_).tolist())
        elif isinstance(value, (np.generic, np.ndarray)):
            value = value.item()
        setattr(options, name, value)
    except (TypeError, ValueError, OverflowError):
        wanted = "three integers" if issubclass(kind, ctypes.Array) else "a number" if kind is ctypes.c_double else "an integer"
        raise refuse(name, f"it is {value!r}, it must be {wanted}") from None


def make_options(given: Mapping[str, Any], array_type: int) -> Options:
    """gmxfmm_options with the members given, choices by their names."""
    options = Options()
    library.gmxfmm_default_options_of_size(options, ctypes.sizeof(Options))
    for name, value in given.items():
        _set_option(options, name, value)
    options.array_type = array_type
    if options.num_devices:
        options.device_id = options.devices[0]
    return options


def check_options(given: Mapping[str, Any]) -> None:
    """Refuses unknown options, and words and types that options do not take, before there is a system."""
    make_options({name: value for name, value in given.items() if name != "precision" or value is not None}, 0)


def is_auto(value: Any) -> bool:
    """Whether an option is left to the library."""
    return isinstance(value, (int, float)) and value == AUTO


# Where these are given and no accuracy, none is asked for; of the treecode's two, the last, both have to be.
_SETTINGS = ("order", "grid", "depth", "theta", "degree")


def asked_of(given: Mapping[str, Any]) -> Optional[float]:
    """The accuracy that options ask for. None: they ask for none, or for one that the library will refuse."""
    accuracy = given.get("accuracy", AUTO)
    if not is_auto(accuracy):
        return float(accuracy) if isinstance(accuracy, (int, float, np.number)) and accuracy > 0 else None
    settings = {name for name in _SETTINGS if not np.all(np.equal(given.get(name, AUTO), AUTO))}
    return None if settings & {"order", "grid", "depth"} or len(settings) == 2 else float(make_options({}, 0).accuracy)


def _real(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise refuse(name, f"it cannot be made an array: {error}") from None
    if array.dtype.kind not in "biuf":
        raise refuse(name, f"it has the type {array.dtype}, it must be real numbers")
    return array


def numbers(name: str, value: Any, shape: Tuple[Optional[int], ...], dtype: Any = np.float64) -> np.ndarray:
    """An array of this type and shape, None being any length; the caller's own if it is one already."""
    if type(value) is np.ndarray and value.dtype == dtype and value.flags.c_contiguous:
        array = value
    else:
        array = np.asarray(_real(name, value), dtype=dtype, order="C")
    if array.ndim != len(shape) or any(want is not None and want != have for want, have in zip(shape, array.shape)):
        wanted = " x ".join("n" if want is None else str(want) for want in shape)
        raise refuse(name, f"it has the shape {array.shape}, it must be {wanted}")
    return array


def periodic_flags(value: Any) -> Tuple[int, int, int]:
    """Along which box vectors there are images, from one flag or three. Zeros: as the box says."""
    try:
        flags = np.broadcast_to(np.asarray(value), 3)
    except ValueError:
        raise refuse("periodic", f"it is {value!r}, it must be three flags") from None
    if flags.dtype.kind not in "biu" or not np.isin(flags, (0, 1)).all():
        raise refuse("periodic", f"it is {value!r}, it must be three flags that are 0 or 1")
    a, b, c = (int(flag) for flag in flags)
    return a, b, c


def lattice(box: np.ndarray, periodic: Tuple[int, int, int]) -> np.ndarray:
    """The vectors of a box. Those without images are replaced by others, normal to the periodic ones and about as long."""
    if sum(periodic) == 3:
        return box
    vectors = box.copy()
    if sum(periodic) == 1:
        k = periodic.index(1)
        length = np.linalg.norm(box[k])
        axis = np.eye(3)[np.argmin(np.abs(box[k]))]
        vectors[(k + 1) % 3] = np.cross(box[k], axis) / np.linalg.norm(np.cross(box[k] / length, axis))
        vectors[(k + 2) % 3] = np.cross(box[k], vectors[(k + 1) % 3]) / length
        return vectors
    k = periodic.index(0)
    normal = np.cross(box[(k + 1) % 3], box[(k + 2) % 3])
    vectors[k] = normal / np.sqrt(np.linalg.norm(normal))
    return vectors


def box_vectors(box: BoxLike, periodic: Tuple[int, int, int] = (1, 1, 1)) -> Optional[np.ndarray]:
    """(3, 3), vectors in rows, from a length, three lengths or three vectors, as a copy. None gives None. Lengths are positive along
    periodic vectors.
    """
    if box is None:
        return None
    box = _real("box", box)
    if box.ndim < 2:
        if box.ndim == 1 and box.shape != (3,):
            raise refuse("box", f"it has the shape {box.shape}, it must be a length, 3 lengths or 3 x 3")
        if not (np.broadcast_to(box, 3)[np.array(periodic, dtype=bool)] > 0).all():
            raise refuse("box", f"lengths are positive, not {box}")
        box = np.diag(np.broadcast_to(np.asarray(box, dtype=np.float64), 3))
    return numbers("box", box, (3, 3)).copy()


def particle_ids(ids: Any, n: int) -> np.ndarray:
    """Numbers of n particles in a whole system."""
    numbers_ = np.asarray(ids)
    if numbers_.dtype.kind not in "iu" or numbers_.shape != (n,):
        raise refuse("ids", f"they are {numbers_.dtype} of the shape {numbers_.shape}, they must be integers, one for each of {n} particles")
    if n and not 0 <= numbers_.min() <= numbers_.max() < 2**29:
        raise refuse("ids", f"they go from {numbers_.min()} to {numbers_.max()}, they must be those of particles of the whole system")
    return np.ascontiguousarray(numbers_, dtype=np.intc)


def _rows_of(pairs: np.ndarray, ids: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """start and list of the particles that have these numbers, from pairs of numbers of the whole system."""
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64), axis=0)
    order = np.argsort(ids, kind="stable")
    at = np.searchsorted(ids[order], both[:, 0])
    own = (at < len(ids)) & (ids[order][np.minimum(at, len(ids) - 1)] == both[:, 0]) if len(ids) else np.zeros(len(both), bool)
    rows, partners = order[at[own]], both[own, 1]
    by_row = np.argsort(rows, kind="stable")
    return np.searchsorted(rows[by_row], np.arange(len(ids) + 1)).astype(np.intc), partners[by_row].astype(np.intc)


def exclusion_lists(exclusions: Any, n: int, ids: Optional[np.ndarray] = None) -> Tuple[Optional[np.ndarray], Optional[np.ndarray]]:
    """start and list of gmxfmm_set_exclusions from pairs (m, 2) of integers, each of them once or twice. ids: pairs are of such
    numbers, and rows of the particles that have these."""
    if exclusions is None:
        return None, None
    pairs = np.asarray(exclusions)
    if pairs.size == 0 and pairs.ndim in (1, 2) and pairs.shape[-1] in (0, 2):
        pairs = np.empty((0, 2), dtype=np.int64)
    if pairs.dtype.kind not in "iu":
        raise refuse("exclusions", f"it has the type {pairs.dtype}, it must be integers")
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise refuse("exclusions", f"it has the shape {pairs.shape}, it must be m x 2")
    if ids is not None and (not pairs.size or (pairs.min() >= 0 and pairs.max() < 2**29)):
        return _rows_of(pairs, ids)
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n):
        raise refuse("exclusions", f"they name particles from {pairs.min()} to {pairs.max()}, there are 0 to {n - 1}")
    # a pair as one number: sorting these is several times faster than sorting rows
    first, second = pairs.astype(np.int64).T
    both = np.unique(np.concatenate([first * n + second, second * n + first]))
    start = np.searchsorted(both, np.arange(n + 1, dtype=np.int64) * n).astype(np.intc)
    return start, (both % max(n, 1)).astype(np.intc)


class Fields(Mapping[str, Any]):
    """Members of one of the library's structures as they were, as attributes and by name in brackets."""

    def __init__(self, structure: ctypes.Structure, **more: Any) -> None:
        self._values: Dict[str, Any] = {}  # copies, as texts are the plan's own
        for name in (field[0] for field in structure._fields_):
            value = getattr(structure, name)
            if name in ("m2l", "method", "precision"):
                value = (choices(name) or [])[value]
            if name != "size":
                self._values[name] = list(value) if isinstance(value, ctypes.Array) else value.decode() if isinstance(value, bytes) else value
        self._values.update(more)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


class Info(Fields):
    """What a plan does: members of gmxfmm_info and graph_version; times in seconds, memory (bytes) in bytes."""


class Measured(Fields):
    """Settings, and the errors that were measured with them: members of gmxfmm_measurement; time in seconds."""


def same_shape(box: np.ndarray, inverse: np.ndarray, most: float) -> bool:
    """Whether the shape of a box has changed by no more than that: the ratio of the largest to the smallest stretch, less 1.

    inverse  of the earlier vectors in rows
    """
    change = inverse @ box
    # Scaled to a trace of 3, the change is 1 + E with a trace of E of 0, and stretches differ from 1 by |E| at most: most changes
    # are found to be small by their sum of squares, 3 + |E|^2, in a fifth of the time that stretches take.
    if 9 * np.vdot(change, change) <= _most_squares(most) * change.trace() ** 2:
        return True
    stretch = np.linalg.svd(change, compute_uv=False)
    return bool(stretch[0] <= (1 + most) * stretch[-1])


def _most_squares(most: float) -> float:
    enough = most / (2 + most)
    return 3 + enough * enough


def have_same_shape(boxes: np.ndarray, inverse: np.ndarray, most: float) -> np.ndarray:
    """The same of each of many, (systems, 3, 3)."""
    change = (inverse @ boxes).reshape(-1, 9)
    same = 9 * np.einsum("si,si->s", change, change) <= _most_squares(most) * (change[:, 0] + change[:, 4] + change[:, 8]) ** 2
    for s in np.flatnonzero(~same):
        same[s] = same_shape(boxes[s], inverse, most)
    return same
