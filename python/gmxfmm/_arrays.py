# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arrays of a device: those of PyTorch, CuPy and JAX, and any other with __cuda_array_interface__ or DLPack. A package is imported
only where the caller has arrays of it.
"""
from __future__ import annotations

import ctypes
import importlib
import sys
from contextlib import contextmanager
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._inputs import refuse
from ._library import Error

HOST = -1  # the device of memory of the host
_FLOATS = {"f4": "float32", "f8": "float64"}


class View(NamedTuple):
    """Where an array is: address, shape, type, whether rows follow each other, and number of the device, or HOST. And the stream that its
    library works on (0: the legacy default stream)."""

    pointer: int
    shape: Tuple[int, ...]
    dtype: str
    contiguous: bool
    device: int
    stream: int
    owner: Any  # keeps the memory


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DEVICE_CUDA = (2, 13)  # kDLCUDA and kDLCUDAManaged
_DTYPE_FLOAT = 2  # kDLFloat
_LEGACY_STREAM = 1  # as DLPack and __cuda_array_interface__ name it


def _is_contiguous(shape: Tuple[int, ...], strides: Optional[Tuple[int, ...]]) -> bool:
    """strides in elements; None: rows follow each other."""
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides or ())):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


class Door:
    """A library with arrays of a device. There is one object for each, also where it is copied or read from a file."""

    def __reduce__(self) -> Tuple[Any, ...]:
        return door_to, (type(self),)

    def sums(self, x: Any, q: Any, forces: Any, bounds: np.ndarray, is_open: bool) -> Optional[np.ndarray]:
        """Sums of F^2, F^4, q^2, q^4 and q over the particles of each system, and extents if one is open: (systems, 5 or 8). x, q and forces
        are of the device, and systems have bounds (systems + 1). The device is waited for. None: this library has no way to do it.
        """
        return None

    def moved(self, x: Any, some: slice, by: np.ndarray) -> Any:
        """Positions of some particles of the device and a vector, in the type of x. None: this library has no way to do it."""
        return None


class Torch(Door):
    """PyTorch; work goes on its current stream of the array's device."""

    writes = True  # whether arrays of this library may be written to

    def __init__(self) -> None:
        self.module: Any = importlib.import_module("torch")

    def view(self, array: Any) -> View:
        stream = self.module.cuda.current_stream(array.device).cuda_stream
        return View(array.data_ptr(), tuple(array.shape), str(array.dtype)[6:], array.is_contiguous(), array.device.index, stream, array)

    def current_stream(self, device: int) -> int:
        return self.module.cuda.current_stream(device).cuda_stream

    def empty(self, shape: Tuple[int, ...], dtype: str, device: int) -> Any:
        return self.module.empty(shape, dtype=getattr(self.module, dtype), device=f"cuda:{device}")

    def pointer(self, array: Any) -> int:
        return array.data_ptr()

    def copy(self, array: Any) -> Any:
        return array.detach().clone()

    def host(self, array: Any) -> np.ndarray:
        return array.detach().cpu().numpy()

    def sums(self, x: Any, q: Any, forces: Any, bounds: np.ndarray, is_open: bool) -> Optional[np.ndarray]:
        torch = self.module
        if bounds[-1] == 0:
            return np.zeros((len(bounds) - 1, 8))
        with torch.no_grad():
            squares, charges, x = forces.detach().reshape(-1, 3).double().square().sum(dim=1), q.detach().reshape(-1).double(), x.detach().reshape(-1, 3)
            terms = torch.stack([squares, squares.square(), charges.square(), charges.square().square(), charges], dim=1)
            if len(bounds) == 2:
                parts = [terms.sum(dim=0)[None]] + ([(x.amax(dim=0) - x.amin(dim=0)).double()[None]] if is_open else [])
            else:
                lengths = torch.as_tensor(np.diff(bounds), device=x.device)
                parts = [torch.segment_reduce(terms, "sum", lengths=lengths, axis=0)]
                if is_open:
                    least, most = (torch.segment_reduce(x, kind, lengths=lengths, axis=0) for kind in ("min", "max"))
                    parts.append((most - least).double())
            return torch.cat(parts, dim=1).cpu().numpy()

    def moved(self, x: Any, some: slice, by: np.ndarray) -> Any:
        return (x.detach().reshape(-1, 3)[some].double() + self.module.as_tensor(by, device=x.device)).to(x.dtype)

    def finish(self, view: View) -> None:
        """Later work of the library comes after ours, as it is on the same stream."""


class CuPy(Door):
    """CuPy; work goes on its current stream."""

    writes = True  # whether arrays of this library may be written to

    def __init__(self) -> None:
        self.module: Any = importlib.import_module("cupy")

    def view(self, array: Any) -> View:
        dtype = _FLOATS.get(array.dtype.str[1:]) or array.dtype.name  # the name alone takes numpy microseconds
        return View(array.data.ptr, array.shape, dtype, array.flags.c_contiguous, array.device.id, self.module.cuda.get_current_stream().ptr, array)

    def current_stream(self, device: int) -> int:
        return self.module.cuda.get_current_stream().ptr

    def empty(self, shape: Tuple[int, ...], dtype: str, device: int) -> Any:
        with self.module.cuda.Device(device):
            return self.module.empty(shape, dtype=dtype)

    def pointer(self, array: Any) -> int:
        return array.data.ptr

    def copy(self, array: Any) -> Any:
        return array.copy()

    def host(self, array: Any) -> np.ndarray:
        return self.module.asnumpy(array)

    def finish(self, view: View) -> None:
        """As of PyTorch."""


class Jax(Door):
    """JAX, which has no current stream. Its array is waited for. Work goes on the legacy default stream, and is waited for."""

    writes = False  # whether arrays of this library may be written to

    def __init__(self) -> None:
        self.module: Any = importlib.import_module("jax")

    def view(self, array: Any) -> View:
        array.block_until_ready()
        device = next(iter(array.devices()))
        return View(array.unsafe_buffer_pointer(), tuple(array.shape), str(array.dtype), True, device.local_hardware_id or 0, 0, array)

    def current_stream(self, device: int) -> int:
        return 0

    def empty(self, shape: Tuple[int, ...], dtype: str, device: int) -> Any:
        where = next(one for one in self.module.local_devices() if (one.local_hardware_id or 0) == device)
        # Bytes for double numbers: JAX has these only if it is told to.
        if dtype == "float64" and not self.module.config.jax_enable_x64:
            shape, dtype = (8 * int(np.prod(shape)),), "uint8"
        with self.module.default_device(where):
            return self.module.numpy.empty(shape, dtype=dtype).block_until_ready()

    def pointer(self, array: Any) -> int:
        return array.unsafe_buffer_pointer()

    def copy(self, array: Any) -> Any:
        return array

    def host(self, array: Any) -> np.ndarray:
        # of a copy, as an array keeps the numbers that it has shown once, and a batch may write to its forces again
        array = np.asarray(self.module.numpy.array(array, copy=True))
        return array.view(np.float64) if array.dtype == np.uint8 else array

    def finish(self, view: View) -> None:
        wait(view.device, view.stream)


class Other(Door):
    """Arrays with __cuda_array_interface__ or DLPack alone. Results are arrays of CuPy or, where there is none, of PyTorch."""

    writes = True  # whether arrays of this library may be written to

    def __init__(self) -> None:
        for kind in (CuPy, Torch):
            try:
                self._results: Any = kind()
                break
            except ImportError:
                continue
        else:
            raise refuse("positions", "arrays of this type need CuPy or PyTorch for the results")

    def view(self, array: Any) -> View:
        if hasattr(array, "__cuda_array_interface__"):
            about = array.__cuda_array_interface__
            kind = about["typestr"][1:]
            strides = about.get("strides")
            strides = None if strides is None else tuple(stride // int(kind[1:]) for stride in strides)
            shape = tuple(about["shape"])
            device = self._results.module.cuda.current_device() if isinstance(self._results, Torch) else \
                self._results.module.cuda.runtime.getDevice()
            return View(about["data"][0], shape, _FLOATS.get(kind, kind), _is_contiguous(shape, strides), device, about.get("stream") or 0, array)
        capsule = array.__dlpack__(stream=_LEGACY_STREAM)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
        shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
        dtype = f"float{tensor.bits}" if tensor.code == _DTYPE_FLOAT and tensor.lanes == 1 else f"DLPack's {tensor.code}"
        # the capsule is not renamed, so that it frees what it holds when View lets it go
        return View((tensor.data or 0) + tensor.byte_offset, shape, dtype, _is_contiguous(shape, strides), tensor.device_id, 0, (array, capsule))

    def current_stream(self, device: int) -> int:
        return 0

    def empty(self, shape: Tuple[int, ...], dtype: str, device: int) -> Any:
        return self._results.empty(shape, dtype, device)

    def pointer(self, array: Any) -> int:
        return self._results.pointer(array) if type(array).__module__.split(".")[0] in ("cupy", "torch") else self.view(array).pointer

    def copy(self, array: Any) -> Any:
        return array

    def host(self, array: Any) -> np.ndarray:
        if type(array).__module__.split(".")[0] in ("cupy", "torch"):
            return self._results.host(array)
        module = self._results.module
        return self._results.host(module.asarray(array) if hasattr(array, "__cuda_array_interface__") else module.from_dlpack(array))

    def finish(self, view: View) -> None:
        """Results are of a library whose stream may be another one."""
        wait(view.device, view.stream)


class Raw(Door):
    """Memory of a device alone, as XLA gives it to what it calls. An array is its View, with the stream that all of its work is put on."""

    writes = True  # whether arrays of this library may be written to

    def view(self, array: View) -> View:
        return array

    def pointer(self, array: View) -> int:
        return array.pointer

    def host(self, array: View) -> np.ndarray:
        found = np.empty(array.shape, array.dtype)
        fetch([(array, found)])
        return found

    def finish(self, view: View) -> None:
        """As of PyTorch."""


_libraries: dict = {}


def door_to(kind: Any) -> Any:
    """The object of this class."""
    if kind not in _libraries:
        _libraries[kind] = kind()
    return _libraries[kind]


def library_of(array: Any) -> Optional[Any]:
    """The door to the library that made an array of a device. None: an array, list or number of the host."""
    if type(array) is np.ndarray:
        return None
    if type(array) is View:
        return door_to(Raw)
    name = type(array).__module__.split(".")[0]
    if name == "torch":
        if array.device.type == "cpu":
            return None
        if array.device.type != "cuda":
            raise Error("GMXFMM_ERROR_UNSUPPORTED", f"arrays of PyTorch's device {array.device.type} are not taken: cpu or cuda are")
        kind: Any = Torch
    elif name == "cupy":
        kind = CuPy
    elif name in ("jax", "jaxlib"):
        platform = getattr(next(iter(array.devices())), "platform", "cpu") if hasattr(array, "devices") else "cpu"
        if platform not in ("gpu", "cuda"):
            return None
        kind = Jax
    elif hasattr(array, "__cuda_array_interface__") or \
            (hasattr(array, "__dlpack_device__") and int(array.__dlpack_device__()[0]) in _DEVICE_CUDA):
        kind = Other
    else:
        return None
    return door_to(kind)


def checked(door: Any, name: str, array: Any, shape: Tuple[Optional[int], ...], dtype: Optional[str]) -> View:
    """The view of an array that is taken as it is, with this shape and type. None in the shape is any length, None as type any float."""
    found: Any = library_of(array)
    if door is None or found is not door:
        raise refuse(name, "it must be an array of the same library and on a device, as the positions are")
    view = door.view(array)
    if len(view.shape) != len(shape) or any(want is not None and want != have for want, have in zip(shape, view.shape)):
        raise refuse(name, f"it has the shape {view.shape}, it must be {' x '.join('n' if want is None else str(want) for want in shape)}")
    if view.dtype not in (("float32", "float64") if dtype is None else (dtype,)):
        raise refuse(name, f"it has the type {view.dtype}, it must be {dtype or 'float32 or float64'}: arrays of a device are not converted")
    if not view.contiguous:
        raise refuse(name, "its rows do not follow each other in memory: make it contiguous")
    return view


def to_host(name: str, array: Any) -> Any:
    """What numpy takes. An array of a device is copied, and its stream waited for. A tensor of the host goes without its gradients."""
    if type(array) is np.ndarray:
        return array
    door = library_of(array)
    if door is not None:
        return door.host(array)
    return array.detach().numpy() if type(array).__module__.split(".")[0] == "torch" else array


_driver: Optional[Any] = None


def _call(what: str, *arguments: Any) -> None:
    """Calls the driver of the machine."""
    global _driver
    if _driver is None:
        _driver = ctypes.CDLL("libcuda.so.1" if sys.platform.startswith("linux") else "nvcuda")
    code = getattr(_driver, what)(*arguments)
    if code:
        raise Error("GMXFMM_ERROR_DEVICE", f"{what} failed with the driver's code {code}")


def wait(device: int, stream: int) -> None:
    """Waits for a stream of a device, by the driver of that machine."""
    context, handle = ctypes.c_void_p(), ctypes.c_int()
    _call("cuDeviceGet", ctypes.byref(handle), device)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
    _call("cuCtxPushCurrent_v2", context)
    _call("cuStreamSynchronize", ctypes.c_void_p(stream))
    _call("cuCtxPopCurrent_v2", ctypes.byref(context))
    _call("cuDevicePrimaryCtxRelease_v2", handle)


@contextmanager
def _in_context_of(stream: int) -> Iterator[None]:
    context = ctypes.c_void_p()
    _call("cuStreamGetCtx", ctypes.c_void_p(stream), ctypes.byref(context))
    _call("cuCtxPushCurrent_v2", context)
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(context))


def device_of(stream: int) -> int:
    """The device that a stream is of."""
    device = ctypes.c_int()
    with _in_context_of(stream):
        _call("cuCtxGetDevice", ctypes.byref(device))
    return device.value


def wait_for_all(stream: int) -> None:
    """Waits for all that is put on any stream of this one's device."""
    with _in_context_of(stream):
        _call("cuCtxSynchronize")


_FETCH, _SEND = "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"


def _copy(what: str, pairs: Sequence[Tuple[View, np.ndarray]]) -> None:
    pairs = [(view, array) for view, array in pairs if array.size]
    if not pairs:
        return
    if pairs[0][0].device == HOST:
        for view, array in pairs:
            ctypes.memmove(*((view.pointer, array.ctypes.data) if what == _SEND else (array.ctypes.data, view.pointer)), array.nbytes)
        return
    stream = ctypes.c_void_p(pairs[0][0].stream)
    with _in_context_of(pairs[0][0].stream):
        for view, array in pairs:
            ends = ctypes.c_uint64(view.pointer), ctypes.c_void_p(array.ctypes.data)
            _call(what, *(ends if what == _SEND else ends[::-1]), ctypes.c_size_t(array.nbytes), stream)
        _call("cuStreamSynchronize", stream)  # the host's arrays may go


def fetch(pairs: Sequence[Tuple[View, np.ndarray]]) -> None:
    """Copies from memory of a device, or of the host, to contiguous arrays of the host, all of one stream, and waits."""
    _copy(_FETCH, pairs)


def send(pairs: Sequence[Tuple[View, np.ndarray]]) -> None:
    """Copies to memory of a device, or of the host, from contiguous arrays of the host, all of one stream, and waits."""
    _copy(_SEND, pairs)
