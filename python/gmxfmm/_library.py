# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shared library: the one in this package, or what GMXFMM_LIBRARY names, or the system's."""
from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, Optional, Tuple

from ._header import Header

_HERE = Path(__file__).resolve().parent
_NAME = "libgmxfmm.dylib" if sys.platform == "darwin" else "libgmxfmm.so"


class Error(ValueError):
    """An error, with the cause as its text. The only exception of this package.

    status    name of the library's gmxfmm_status, such as "GMXFMM_ERROR_BOX"
    argument  name of the argument that is wrong, such as "box"; None where no argument is wrong
    """

    def __init__(self, status: str, message: str, argument: Optional[str] = None) -> None:
        super().__init__(message)
        self.status = status
        self.argument = argument

    def __reduce__(self) -> Tuple[Any, ...]:
        """For copies between processes. By default an error would be made from its text alone, which fails."""
        return type(self), (self.status, str(self), self.argument), self.__dict__


def _find_header() -> Header:
    for folder in (_HERE, _HERE.parent.parent / "src" / "fmm"):
        if (folder / "gmxfmm.h").exists():
            return Header(folder / "gmxfmm.h", folder / "gmxfmm_measure.h", folder / "gmxfmm_parallel.h")
    raise ImportError("gmxfmm.h is neither in the package gmxfmm nor in a checkout around it: install the package by pip")


def _find_library() -> ctypes.CDLL:
    own = _HERE / _NAME
    editable = importlib.util.find_spec("gmxfmm_library")  # beside an editable install
    if not own.exists() and editable is not None and editable.origin:
        own = Path(editable.origin).with_name(_NAME)
    path = os.environ.get("GMXFMM_LIBRARY") or (str(own) if own.exists() else ctypes.util.find_library("gmxfmm"))
    if path is None:
        raise ImportError(f"there is no {_NAME}: install the package by pip, or name the library in GMXFMM_LIBRARY")
    # GCC's OpenMP lets a thread that waits spin for milliseconds, which on a busy machine takes the processor from the threads it waits
    # for. 3,000 turns, 0.1 ms at most, are as fast on an idle one (benchmarks/results/amd-epyc-2-cores/busy.json). It is read once, when the
    # library of OpenMP is loaded: the environment is then as it was.
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        return ctypes.CDLL(path)
    os.environ["GOMP_SPINCOUNT"] = "3000"
    try:
        return ctypes.CDLL(path)
    finally:
        del os.environ["GOMP_SPINCOUNT"]


header = _find_header()
library = _find_library()
Options = header.structure("gmxfmm_options")
Output = header.structure("gmxfmm_output")
Info = header.structure("gmxfmm_info")
Option = header.structure("gmxfmm_option")
System = header.structure("gmxfmm_system")
Measurement = header.structure("gmxfmm_measurement")
DeviceOutput = header.structure("gmxfmm_device_output")
Systems = header.structure("gmxfmm_systems")
Along = header.structure("gmxfmm_along")
DeviceAlong = header.structure("gmxfmm_device_along")

_POINTER, _SIZE, _TEXT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
for _name, _result, _arguments in (
    ("version", _TEXT, []),
    ("default_options_of_size", None, [ctypes.POINTER(Options), _SIZE]),
    ("find_option", ctypes.POINTER(Option), [_TEXT]),
    ("check_device", ctypes.c_int, [ctypes.c_int, ctypes.c_int, _TEXT, _SIZE]),
    ("create", ctypes.c_int, [ctypes.POINTER(_POINTER), ctypes.POINTER(Options), ctypes.c_int64, _POINTER, _TEXT, _SIZE]),
    ("create_parallel", ctypes.c_int, [ctypes.POINTER(_POINTER), ctypes.POINTER(Options), _POINTER, ctypes.c_int64, _POINTER, _TEXT, _SIZE]),
    ("create_parallel_measured", ctypes.c_int, [ctypes.POINTER(_POINTER), ctypes.POINTER(Options), _POINTER, ctypes.POINTER(System),
                                                ctypes.POINTER(Measurement), _TEXT, _SIZE]),
    ("create_measured", ctypes.c_int, [ctypes.POINTER(_POINTER), ctypes.POINTER(Options), ctypes.POINTER(System),
                                       ctypes.POINTER(Measurement), ctypes.POINTER(Measurement), ctypes.POINTER(ctypes.c_int), _TEXT, _SIZE]),
    ("reference_create", ctypes.c_int, [ctypes.POINTER(_POINTER), ctypes.POINTER(Options), ctypes.POINTER(System), _TEXT, _SIZE]),
    ("reference_destroy", None, [_POINTER]),
    ("measure", ctypes.c_int, [_POINTER, ctypes.POINTER(Options), ctypes.c_int, ctypes.POINTER(Measurement), _TEXT, _SIZE]),
    ("set_box", ctypes.c_int, [_POINTER, _POINTER]),
    ("set_charges", ctypes.c_int, [_POINTER, ctypes.c_int64, _POINTER]),
    ("set_dipoles", ctypes.c_int, [_POINTER, ctypes.c_int64, _POINTER]),
    ("set_widths", ctypes.c_int, [_POINTER, ctypes.c_int64, _POINTER]),
    ("set_exclusions", ctypes.c_int, [_POINTER, _POINTER, _POINTER]),
    ("set_ids", ctypes.c_int, [_POINTER, _POINTER]),
    ("set_charge_derivatives", ctypes.c_int, [_POINTER, ctypes.c_int, _POINTER, _POINTER, _POINTER]),
    ("set_targets", ctypes.c_int, [_POINTER, ctypes.c_int64, _POINTER]),
    ("assign", ctypes.c_int, [_POINTER, _POINTER]),
    ("execute", ctypes.c_int, [_POINTER, _POINTER, ctypes.POINTER(Output)]),
    ("execute_systems", ctypes.c_int, [_POINTER, ctypes.POINTER(Systems)]),
    ("execute_along", ctypes.c_int, [_POINTER, _POINTER, ctypes.POINTER(Along)]),
    ("enqueue", ctypes.c_int, [_POINTER, _POINTER, ctypes.POINTER(DeviceOutput), _POINTER]),
    ("enqueue_along", ctypes.c_int, [_POINTER, _POINTER, ctypes.POINTER(DeviceAlong), _POINTER]),
    ("enqueue_assign", ctypes.c_int, [_POINTER, _POINTER, _POINTER]),
    ("enqueue_box", ctypes.c_int, [_POINTER, _POINTER, _POINTER]),
    ("enqueue_charges", ctypes.c_int, [_POINTER, ctypes.c_int64, _POINTER, _POINTER, _POINTER]),
    ("capabilities", ctypes.c_uint, [_POINTER]),
    ("get_info", ctypes.c_int, [_POINTER, ctypes.POINTER(Info)]),
    ("reset_times", None, [_POINTER]),
    ("graph_version", ctypes.c_int64, [_POINTER]),
    ("message", _TEXT, [_POINTER]),
    ("destroy", None, [_POINTER]),
):
    _function = getattr(library, "gmxfmm_" + _name)
    _function.restype, _function.argtypes = _result, _arguments


def version() -> str:
    """Version of the library."""
    return library.gmxfmm_version().decode()


if version().split(".")[:2] != header.version.split(".")[:2]:
    raise ImportError(f"libgmxfmm is of version {version()}, the package of {header.version}: install one version of both")
