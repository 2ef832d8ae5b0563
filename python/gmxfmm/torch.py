# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Coulomb energy as a function of PyTorch, with first derivatives by positions, charges and cell. On a GPU it needs a library
with CUDA; what leaves the device then is a cell that is there, and what Batch checks."""
from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor

from ._batch import Batch
from ._inputs import refuse
from ._library import Error
from ._options import BatchOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Coulomb", "coulomb"]

_MOST = 16  # sets of options that coulomb() keeps plans for
_kept: "OrderedDict[Tuple, Coulomb]" = OrderedDict()


def _tensor(array: Any, like: Tensor) -> Tensor:
    """A result of a batch as a tensor."""
    return torch.from_numpy(array) if isinstance(array, np.ndarray) else array.to(like.device)


def _key(value: Any) -> Any:
    """What is the same for equal options only: the repr of a long array leaves most of it out."""
    if isinstance(value, (list, tuple, np.ndarray, Tensor)):
        array = np.asarray(value)
        return array.shape, array.dtype.str, array.tobytes()
    return repr(value)


class _Energy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, q: Tensor, cell: Optional[Tensor], batch: Batch, offsets: Optional[Sequence[int]]) -> Tensor:
        by_x, by_q, by_cell = ctx.needs_input_grad[:3]
        step = batch.step(x.detach(), q.detach(), None if cell is None else cell.detach(), offsets, forces=by_x or by_cell, potential=by_q,
                          virial=by_cell)
        empty = x.new_empty(0)
        ctx.save_for_backward(x, q, empty if cell is None else cell, *(empty if array is None else _tensor(array, x)
                                                                       for array in (step.forces, step.potential, step.virial)))
        ctx.offsets, ctx.is_open, ctx.periodic = offsets, cell is None, batch.periodic
        return _tensor(step.energy, x).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, weight: Tensor) -> Tuple[Optional[Tensor], ...]:
        found = _Gradient.apply(weight, *ctx.saved_tensors, ctx.offsets, ctx.periodic, ctx.needs_input_grad[:3])
        return (*found, None, None)


class _Gradient(torch.autograd.Function):
    """Weighted derivatives of the energies. A function of its own, so that it can say that it has no derivatives itself."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Tensor, q: Tensor, cell: Tensor, forces: Tensor, potential: Tensor, virial: Tensor,
                offsets: Optional[Sequence[int]], periodic: Tuple[int, int, int], wanted: Tuple[bool, bool, bool]) -> Tuple[Optional[Tensor], ...]:
        by_x, by_q, by_cell = wanted
        if offsets is None:
            each = weight[:, None]
        else:
            lengths = torch.as_tensor(np.diff(np.asarray(offsets)), device=x.device)
            each = torch.repeat_interleave(weight, lengths, output_size=len(x))
        gradients = (-each[..., None] * forces if by_x else None, each * potential if by_q else None,
                     _by_cell(weight, x, cell, forces, virial, offsets, periodic) if by_cell else None)
        return gradients

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise Error("GMXFMM_ERROR_UNSUPPORTED", "gmxfmm.torch.coulomb has first derivatives alone: second derivatives, as of a loss of forces, "
                    "are not offered")


def _by_cell(weight: Tensor, x: Tensor, cell: Tensor, forces: Tensor, virial: Tensor, offsets: Optional[Sequence[int]],
             periodic: Tuple[int, int, int]) -> Tensor:
    """Derivative by the vectors of the cell with the positions as they are: of that by a strain of both, 2 virial, the positions'
    part is taken off, -sum F x; what is left is of the rows of the cell."""
    cells = (cell if cell.ndim == 3 else cell.expand(len(weight), 3, 3)).to(device=x.device, dtype=torch.float64)
    outer = forces.double()[..., :, None] * x.double()[..., None, :]
    if offsets is None:
        moved = outer.sum(dim=1)
    else:
        bounds = np.asarray(offsets)
        sums = torch.zeros((len(x) + 1, 3, 3), dtype=torch.float64, device=x.device)
        torch.cumsum(outer, 0, out=sums[1:])
        at = torch.as_tensor(bounds, device=x.device)
        moved = sums[at[1:]] - sums[at[:-1]]
    strain = weight.double()[:, None, None] * (2 * virial + moved.transpose(1, 2))  # last index: of the force
    # strain = cell^T G with the derivative G, whose rows belong to the cell's. The inverse of the transposed cell has reciprocal
    # vectors in rows: unlike a solver these products do not wait for a device
    rows = list(cells.unbind(dim=1))
    if sum(periodic) == 1:  # nothing depends on vectors without images
        k = periodic.index(1)
        axis = torch.eye(3, dtype=cells.dtype, device=cells.device)[rows[k].abs().argmin(dim=-1)]
        rows[(k + 1) % 3] = torch.linalg.cross(rows[k], axis)
        rows[(k + 2) % 3] = torch.linalg.cross(rows[k], rows[(k + 1) % 3])
    elif sum(periodic) == 2:
        k = periodic.index(0)
        rows[k] = torch.linalg.cross(rows[(k + 1) % 3], rows[(k + 2) % 3])
    a, b, c = rows
    volume = (a * torch.linalg.cross(b, c)).sum(dim=-1)[:, None, None]
    reciprocal = torch.stack([torch.linalg.cross(b, c), torch.linalg.cross(c, a), torch.linalg.cross(a, b)], dim=1) / volume
    gradient = reciprocal @ strain
    for k in range(3):
        if not periodic[k]:
            gradient[:, k] = 0
    gradient = gradient if cell.ndim == 3 else gradient.sum(dim=0)
    return gradient.to(device=cell.device, dtype=cell.dtype)


class Coulomb:
    """The Coulomb energy with plans of its own, which are kept from call to call: one for each number of particles and shape of
    the cell that it meets.

    options  of Batch: accuracy, measure, precision, exclusions, prefactor, max_plans, ...
    """

    def __init__(self, **options: Unpack[BatchOptions]) -> None:
        self.batch = Batch(**options)

    def __call__(self, x: Tensor, q: Tensor, cell: Optional[Tensor] = None, offsets: Union[Sequence[int], Tensor, None] = None) -> Tensor:
        """Energies, as of coulomb()."""
        for name, value in (("x", x), ("q", q)) + ((("cell", cell),) if cell is not None else ()):
            if not isinstance(value, Tensor):
                raise refuse(name, f"it is a {type(value).__name__}, it must be a tensor")
            if not value.dtype.is_floating_point or value.dtype in (torch.float16, torch.bfloat16):
                raise refuse(name, f"it has the type {value.dtype}, it must be float32 or float64")
        if x.shape[-1:] != (3,) or x.shape[:-1] != q.shape or q.ndim not in (1, 2) or (offsets is not None and q.ndim != 1):
            raise refuse("x", f"it has the shape {tuple(x.shape)} and q {tuple(q.shape)}; they must be n x 3 and n, or systems x n x 3 and "
                         "systems x n, with offsets n x 3 and n")
        if q.device != x.device:
            raise refuse("q", f"it is on {q.device}, and x on {x.device}")
        alone = q.ndim == 1 and offsets is None
        systems = 1 if alone else len(q) if offsets is None else len(offsets) - 1
        if cell is not None and tuple(cell.shape) not in ((3, 3), (systems, 3, 3)):
            raise refuse("cell", f"it has the shape {tuple(cell.shape)}, it must be 3 x 3" + ("" if alone else f" or {systems} x 3 x 3"))
        if alone:
            x, q = x[None], q[None]
        if isinstance(offsets, Tensor):
            offsets = offsets.tolist()
        energy = _Energy.apply(x.contiguous(), q.to(x.dtype).contiguous(), cell, self.batch, offsets)
        return energy[0] if alone else energy


def coulomb(x: Tensor, q: Tensor, cell: Optional[Tensor] = None, offsets: Union[Sequence[int], Tensor, None] = None,
            **options: Unpack[BatchOptions]) -> Tensor:
    """Coulomb energy 1/2 sum q phi, prefactor * charge^2 / length, with first derivatives by x, q and cell.

    x        (n, 3), float32 or float64, on the CPU or a GPU; of many systems (systems, n, 3), or (all particles, 3) with offsets
    q        (n); (systems, n); or (all particles)
    cell     (3, 3), vectors in rows; (systems, 3, 3): one each; None: open. A cell on a GPU is waited for: keep it on the CPU
    offsets  (systems + 1) integers: system s has the particles offsets[s] to offsets[s + 1] - 1
    options  of Batch: accuracy, measure, exclusions, prefactor, ...

    Gives a tensor of no dimension, or (systems), of the type and device of x. The derivative by cell leaves the positions where
    they are; a strain of both is x @ s, cell @ s. Second derivatives raise Error. The first call with a number of particles, a
    shape of the cell and these options makes a plan, which is measured unless measure=False; the last 16 sets of options keep
    their plans. An object Coulomb keeps its own.
    """
    key = (*((name, _key(value)) for name, value in sorted(options.items())),)
    found = _kept.pop(key, None)
    if found is None:
        found = Coulomb(**options)
        while len(_kept) >= _MOST:
            _kept.popitem(last=False)[1].batch.close()
    _kept[key] = found
    return found(x, q, cell, offsets)
