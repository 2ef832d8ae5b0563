# SPDX-License-Identifier: LGPL-2.1-or-later
"""The library's communicator, made from one of mpi4py."""
from __future__ import annotations

import ctypes
from typing import Any, List

from ._library import header

Parcel = header.structure("gmxfmm_parcel")
_GATHER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_EXCHANGE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(Parcel))
_MOST = 1 << 30  # bytes of a message, which MPI counts by an int
_TAG = 25937


class CommStructure(ctypes.Structure):
    """gmxfmm_comm, which Header cannot read, as it has functions."""

    _fields_ = [("rank", ctypes.c_int), ("size", ctypes.c_int), ("context", ctypes.c_void_p), ("all_gather", _GATHER), ("exchange", _EXCHANGE),
                ("device_memory", ctypes.c_int)]


def _bytes(address: int, number: int) -> Any:
    return (ctypes.c_char * number).from_address(address)


class Communicator:
    """structure: what the library is given. It is good as long as this object lives."""

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self._comm, self._byte, self._wait = comm, MPI.BYTE, MPI.Request.Waitall
        self.size = comm.Get_size()
        self.structure = CommStructure(comm.Get_rank(), self.size, None, _GATHER(self._all_gather), _EXCHANGE(self._exchange), 0)

    def _all_gather(self, _: Any, send: int, number: int, receive: int) -> int:
        try:
            if number > _MOST:
                return 1
            if number > 0:
                self._comm.Allgather([_bytes(send, number), self._byte], [_bytes(receive, number * self.size), self._byte])
            return 0
        except Exception:  # pylint: disable=broad-except  # none can pass through the library, which tells that this failed
            return 1

    def _exchange(self, _: Any, number: int, parcels: Any) -> int:
        try:
            requests: List[Any] = []
            for call, address, length in ((self._comm.Irecv, "receive", "receive_bytes"), (self._comm.Isend, "send", "send_bytes")):
                for parcel in parcels[:number]:
                    begin, left = getattr(parcel, address), getattr(parcel, length)
                    while left > 0:
                        piece = min(left, _MOST)
                        requests.append(call([_bytes(begin, piece), self._byte], parcel.peer, _TAG))
                        begin, left = begin + piece, left - piece
            self._wait(requests)
            return 0
        except Exception:  # pylint: disable=broad-except
            return 1
