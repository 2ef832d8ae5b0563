# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions of Python that compiled programs of XLA call on the CPU and on NVIDIA's GPUs, by its foreign function interface. Nothing is compiled: ctypes
has the structures of its header, xla/ffi/api/c_api.h, which is looked at before anything is registered.
"""
from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from ._arrays import HOST, View, device_of
from ._library import Error

_MAJOR = 0  # of the interface; another one has other structures
_METADATA = 1  # the extension by which XLA asks for the version that a function was made for
_INVALID_ARGUMENT, _INTERNAL = 3, 13
_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_HEAD = [("struct_size", _SIZE), ("extension_start", _POINTER)]


class _Version(ctypes.Structure):
    _fields_ = [*_HEAD, ("major_version", _INT), ("minor_version", _INT)]


class _Api(ctypes.Structure):
    _fields_ = [*_HEAD, ("api_version", _Version), ("internal_api", _POINTER), ("XLA_FFI_Error_Create", _POINTER), ("get_message", _POINTER),
                ("XLA_FFI_Error_Destroy", _POINTER), ("XLA_FFI_Handler_Register", _POINTER), ("XLA_FFI_Stream_Get", _POINTER)]


class _Buffer(ctypes.Structure):
    _fields_ = [*_HEAD, ("dtype", _INT), ("data", _POINTER), ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64))]


class _Span(ctypes.Structure):
    _fields_ = [("ptr", _POINTER), ("len", _SIZE)]


class _Args(ctypes.Structure):
    _fields_ = [*_HEAD, ("size", ctypes.c_int64), ("types", _POINTER), ("args", ctypes.POINTER(ctypes.POINTER(_Buffer)))]


class _Rets(ctypes.Structure):
    _fields_ = [*_HEAD, ("size", ctypes.c_int64), ("types", _POINTER), ("rets", ctypes.POINTER(ctypes.POINTER(_Buffer)))]


class _Attrs(ctypes.Structure):  # of text alone here, sorted by name
    _fields_ = [*_HEAD, ("size", ctypes.c_int64), ("types", _POINTER), ("names", _POINTER), ("attrs", ctypes.POINTER(ctypes.POINTER(_Span)))]


class _Frame(ctypes.Structure):
    _fields_ = [*_HEAD, ("api", ctypes.POINTER(_Api)), ("ctx", _POINTER), ("stage", _INT), ("args", _Args), ("rets", _Rets), ("attrs", _Attrs)]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("api_version", _Version), ("traits", ctypes.c_uint32)]


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("type", _INT), ("next", _POINTER), ("metadata", ctypes.POINTER(_Metadata))]


class _ErrorArgs(ctypes.Structure):
    _fields_ = [*_HEAD, ("message", ctypes.c_char_p), ("errc", _INT)]


class _StreamArgs(ctypes.Structure):
    _fields_ = [*_HEAD, ("ctx", _POINTER), ("stream", _POINTER)]


_Handler = ctypes.CFUNCTYPE(_POINTER, _POINTER)
_WithError = ctypes.CFUNCTYPE(_POINTER, ctypes.POINTER(_ErrorArgs))
_WithStream = ctypes.CFUNCTYPE(_POINTER, ctypes.POINTER(_StreamArgs))
_STRUCTURES = {"XLA_FFI_Api_Version": _Version, "XLA_FFI_Api": _Api, "XLA_FFI_Buffer": _Buffer, "XLA_FFI_ByteSpan": _Span, "XLA_FFI_Args": _Args,
               "XLA_FFI_Rets": _Rets, "XLA_FFI_Attrs": _Attrs, "XLA_FFI_CallFrame": _Frame, "XLA_FFI_Metadata": _Metadata,
               "XLA_FFI_Error_Create_Args": _ErrorArgs, "XLA_FFI_Stream_Get_Args": _StreamArgs}
_TYPES = {"S32": np.int32, "S64": np.int64, "F32": np.float32, "F64": np.float64}

_dtypes: Dict[int, np.dtype] = {}
_minor = -1  # of the header


def _is_known(text: str) -> bool:
    """Whether structures of the header begin as those here. Numbers of the header are taken from it."""
    global _minor
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    version = [re.search(rf"#define XLA_FFI_API_{name}\s+(\d+)", text) for name in ("MAJOR", "MINOR")]
    codes = {name: re.search(rf"XLA_FFI_DataType_{name}\s*=\s*(\d+)", text) for name in _TYPES}
    if version[0] is None or version[1] is None or int(version[0].group(1)) != _MAJOR:
        return False
    for name, structure in _STRUCTURES.items():
        body = re.search(rf"struct\s+{name}\s*\{{([^{{}}]*)\}}", text)
        members = re.findall(r"(\w+)\s*\)?\s*;", body.group(1)) if body else []
        known = [field[0] for field in structure._fields_]
        if len(members) < len(known) or any(one not in (other, "get_message") for one, other in zip(known, members)):
            return False
    for name, code in codes.items():
        if code is None:
            return False
        _dtypes[int(code.group(1))] = np.dtype(_TYPES[name])
    _minor = int(version[1].group(1))
    return True


class Call(NamedTuple):
    """What a program calls a function with: memory of arrays and of results, and texts, sorted by their names."""

    arrays: List[View]
    results: List[View]
    texts: List[str]


def _shape(buffer: _Buffer) -> Tuple[int, ...]:
    return (*buffer.dims[:buffer.rank],)


def _texts(frame: _Frame) -> List[str]:
    spans = (frame.attrs.attrs[i].contents for i in range(frame.attrs.size))
    return [ctypes.string_at(span.ptr, span.len).decode() for span in spans]


def _stream(frame: _Frame) -> int:
    given = _StreamArgs(struct_size=ctypes.sizeof(_StreamArgs), ctx=frame.ctx)
    if _WithStream(frame.api.contents.XLA_FFI_Stream_Get)(ctypes.byref(given)):
        raise Error("GMXFMM_ERROR_DEVICE", "XLA gives no stream")
    return given.stream or 0


def _read(frame: _Frame, on_device: bool) -> Call:
    stream = _stream(frame) if on_device else 0
    device = device_of(stream) if on_device else HOST

    def view(buffer: _Buffer) -> View:
        return View(buffer.data or 0, _shape(buffer), _dtypes[buffer.dtype].name, True, device, stream, None)

    return Call([view(frame.args.args[i].contents) for i in range(frame.args.size)],
                [view(frame.rets.rets[i].contents) for i in range(frame.rets.size)], _texts(frame))


def _failed(api: Any, error: BaseException) -> Optional[int]:
    is_ours = isinstance(error, Error)
    text = str(error) if is_ours else f"{type(error).__name__}: {error}"
    given = _ErrorArgs(struct_size=ctypes.sizeof(_ErrorArgs), message=text.replace("\0", " ").encode(), errc=_INVALID_ARGUMENT if is_ours else _INTERNAL)
    return _WithError(api.contents.XLA_FFI_Error_Create)(ctypes.byref(given))


def _tell_version(frame: _Frame, metadata: _Metadata) -> None:
    """That of XLA itself, which may be a plugin's. Another major one it refuses. No traits: calls are never part of a graph of the device."""
    api = frame.api.contents.api_version if frame.api else None
    metadata.api_version.major_version = _MAJOR
    metadata.api_version.minor_version = _minor if api is None else api.minor_version
    metadata.traits = 0


def _handler(function: Callable[[Call], None], on_device: bool) -> Any:
    def handle(address: int) -> Optional[int]:
        # an exception must not leave this: ctypes would tell XLA that all went well
        frame = _Frame.from_address(address)
        try:
            extension = frame.extension_start
            while extension:
                one = _Extension.from_address(extension)
                if one.type == _METADATA:
                    _tell_version(frame, one.metadata.contents)
                    return None
                extension = one.next
            function(_read(frame, on_device))
            return None
        except BaseException as error:  # noqa: B902
            return _failed(frame.api, error)

    made = _Handler(handle)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))  # XLA has its address as long as the process lives
    return made


def register(ffi: Any, functions: Mapping[str, Callable[[Call], None]]) -> bool:
    """Registers functions by names, for programs of the CPU and of a GPU. ffi: the module jax.ffi. False: there is no interface that is known here."""
    try:
        text = (Path(ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
        if not _is_known(text):
            return False
    except (AttributeError, OSError):
        return False
    for platform in ("cpu", "CUDA"):
        for name, function in functions.items():
            ffi.register_ffi_target(name, ffi.pycapsule(_handler(function, platform == "CUDA")), platform=platform, api_version=1)
    return True
