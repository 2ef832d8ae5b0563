# SPDX-License-Identifier: LGPL-2.1-or-later
import ctypes
from dataclasses import dataclass

import numpy as np

from ._library import Error, Info, Options, Output, System, header, library

_STATUS = {value: name for name, value in header.enums["gmxfmm_status"].items()}
_FIELDS = dict(Options._fields_)
_FIXED = {"size", "array_type"}  # not a caller's
_AUTO = -1  # GMXFMM_AUTO


@dataclass
class Result:
    """energy: 1/2 sum q phi; forces (n, 3), potential (n) and field (n, 3) at the charges; virial (3, 3) or None; info:
    what the plan did, by the names of gmxfmm_info; measured_error: relative RMS error of the forces, measured on this system
    (treecode: of potential or field, at a sample), nan without measure."""

    energy: float
    forces: np.ndarray
    potential: np.ndarray
    field: np.ndarray
    virial: np.ndarray
    info: dict
    measured_error: float


def _choices(name):
    found = library.gmxfmm_find_option(name.encode())
    return found.contents.choices.decode().split("|") if found and found.contents.choices else None


def _set(options, name, value):
    if name not in _FIELDS or name in _FIXED:
        raise TypeError(f"solve() has no option {name!r}; there are {', '.join(sorted(set(_FIELDS) - _FIXED))}")
    if isinstance(value, str) and name != "cache_dir":
        words = _choices(name)
        if words is None or value not in words:
            allowed = f"one of {', '.join(words)}" if words else "a number"
            raise ValueError(f"option {name} is {value!r}, it must be {allowed}")
        value = words.index(value)
    kind = _FIELDS[name]
    if name == "cache_dir":
        value = None if value is None else str(value).encode()
    elif issubclass(kind, ctypes.Array):
        value = kind(*np.broadcast_to(value, kind._length_).tolist())
    setattr(options, name, value)


def _numbers(name, value, shape):
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape)):
        wanted = " x ".join("n" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} has the shape {array.shape}, it must be {wanted}")
    return array


def _box_vectors(box):
    box = np.asarray(box, dtype=np.float64)
    if box.ndim < 2:
        if (box <= 0).any():
            raise ValueError(f"lengths of a box are positive, not {box}")
        box = np.diag(np.broadcast_to(box, 3))
    return _numbers("box", box, (3, 3))


def _exclusion_lists(exclusions, n):
    """start and list of gmxfmm_set_exclusions from pairs (m, 2), each of them once or twice."""
    pairs = np.asarray(exclusions, dtype=np.int64).reshape(-1, 2)
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n):
        raise ValueError(f"exclusions name particles from {pairs.min()} to {pairs.max()}, there are 0 to {n - 1}")
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    start = np.searchsorted(both[:, 0], np.arange(n + 1)).astype(np.intc)
    return start, np.ascontiguousarray(both[:, 1], dtype=np.intc)


def _as_dict(info):
    result = {}
    for name, kind in Info._fields_:
        value = getattr(info, name)
        words = _choices(name) if name in ("m2l", "method", "precision") else None
        if name != "size":
            result[name] = words[value] if words else list(value) if issubclass(kind, ctypes.Array) else value
            if isinstance(value, bytes):
                result[name] = value.decode()
    return result


class _Plan:
    """A gmxfmm_plan that is destroyed at the end of a with: one that was measured on the system, or one of the model's."""

    def __init__(self, options, system, measure):
        self._plan, message = ctypes.c_void_p(), ctypes.create_string_buffer(512)
        if measure:
            status = library.gmxfmm_create_measured(self._plan, options, system, None, None, None, message, 512)
        else:
            status = library.gmxfmm_create(self._plan, options, system.n, system.box, message, 512)
        if status:
            raise Error(_STATUS[status], message.value.decode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        library.gmxfmm_destroy(self._plan)

    def graph_version(self):
        return library.gmxfmm_graph_version(self._plan)

    def call(self, name, *arguments):
        status = getattr(library, "gmxfmm_" + name)(self._plan, *arguments)
        if status:
            raise Error(_STATUS[status], library.gmxfmm_message(self._plan).decode())


def solve(positions, charges, box=None, *, exclusions=None, virial=False, precision="double", measure=True, **options):
    """Energy, forces, potential and field of point charges.

    positions   (n, 3), any length unit
    charges     (n)
    box         None: an open system; a length: a cube; three: a brick; (3, 3): its vectors in rows
    exclusions  pairs of particles that do not interact, (m, 2)
    virial      also the virial (FMM)
    measure     True: errors are measured on this system, in some ten times the time of the solve itself, and what is left to
                the library is chosen by them; with order, grid or depth given and no accuracy, these are measured as they
                are. False: a model of liquids chooses, which in crystals may be wrong by a thousand times
    options     members of gmxfmm_options (gmxfmm.h, gmxfmm help), choices by their names: accuracy, m2l, boundary, device,
                prefactor, ...; of the treecode method="treecode", kernel="yukawa", kappa, theta, degree, ...
                Numbers that the library is to choose are left out, or -1. The default of reproducible is 1 here, as no FFT
                plans are worth timing for one solve.

    Potentials are prefactor * sum q / r. Raises Error with the library's message where it refuses something, and where no
    settings reach the accuracy.
    """
    x = _numbers("positions", positions, (None, 3))
    q = _numbers("charges", charges, (len(x),))
    asked = Options()
    library.gmxfmm_default_options_of_size(asked, ctypes.sizeof(Options))
    if box is None:
        options.setdefault("boundary", "open")
    elif options.get("boundary") == "open":
        raise ValueError("an open system has no box: leave out box, or boundary")
    wanted = options.pop("accuracy", _AUTO)
    if measure or wanted != _AUTO:
        options["accuracy"] = wanted
    for name, value in dict({"reproducible": 1}, **options, precision=precision).items():
        _set(asked, name, value)
    asked.array_type = header.enums["gmxfmm_precision"]["GMXFMM_DOUBLE"]
    vectors = None if box is None else _box_vectors(box)
    start, others = (None, None) if exclusions is None else _exclusion_lists(exclusions, len(x))
    system = System(ctypes.sizeof(System), len(x), *(None if array is None else array.ctypes.data for array in (vectors, x, q, start, others)))
    potential, field = np.empty(len(x)), np.empty((len(x), 3))
    forces = np.empty((len(x), 3))
    output = Output(size=ctypes.sizeof(Output), force=forces.ctypes.data, field=field.ctypes.data, potential=potential.ctypes.data, want_energy=1,
                    want_virial=bool(virial))
    info = Info(size=ctypes.sizeof(Info))
    with _Plan(asked, system, measure) as plan:
        if not measure:
            plan.call("set_charges", system.n, system.q)
            plan.call("set_exclusions", system.excl_start, system.excl_list)
            plan.call("assign", system.x)
        plan.call("execute", x.ctypes.data, output)
        plan.call("get_info", info)
        what = dict(_as_dict(info), graph_version=plan.graph_version())
    error = what["predicted_error"] if np.isnan(what["measured_error"]) else what["measured_error"]
    if wanted != _AUTO and error > wanted:
        raise Error("GMXFMM_ERROR_OPTION", f"accuracy {wanted:g} is missed with the settings given: {error:.2g} is predicted by the model; "
                    "leave more of them automatic, or ask for less")
    return Result(output.energy_near + output.energy_far, forces, potential, field,
                  np.array(output.virial).reshape(3, 3) if virial else None, what, what["measured_error"])
