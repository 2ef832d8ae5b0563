# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Coulomb energy as a function of PyTorch, with derivatives by positions, charges, dipoles and cell. The library has first derivatives, and
those of dipoles give second ones. On a GPU it needs a library with CUDA. Only a cell that is on the device leaves it, and what Batch
checks.

There are three operators of PyTorch: energies, gradient and second. torch.compile and torch.export put them into their graphs as they
are. Those of autograd are around them, as torch.func wants.
"""
from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union, get_type_hints
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from ._arrays import library_of
from ._batch import Batch
from ._derivatives import Keeper, by_cell, check_dipoles, check_type, no_third, second as second_on_host, systems_of
from ._inputs import refuse
from ._options import BatchOptions
from ._results import Wanted

if TYPE_CHECKING:
    from typing_extensions import Unpack

if not hasattr(torch.library, "custom_op"):
    raise ImportError(f"gmxfmm.torch needs PyTorch 2.4 or newer, and this is {torch.__version__}")

__all__ = ["Coulomb", "coulomb"]

_objects: "WeakValueDictionary[str, Coulomb]" = WeakValueDictionary()  # by what operators call them


def _tensor(array: Any, like: Tensor) -> Tensor:
    """A result of a batch as a tensor."""
    if isinstance(array, np.ndarray):
        array = torch.from_numpy(array)
        return array if like.device.type == "cpu" else array.to(like.device)
    return array.to(like.device)


def _batch_of(name: str) -> Batch:
    """The batch that an operator computes with: that of the object, or of its options where the object is gone, as in another process."""
    found = _objects.get(name)
    return (found or _keeper.of(json.loads(name.partition(" ")[2]))).batch


# ----------------------------------------------------------------------------------------------------------------------- operators
# x (systems, n, 3), q (systems, n), or (all particles, 3) and (all particles) with bounds (systems + 1); mu, dipoles, as x or None; cell
# (systems, 3, 3) or None. What is not computed has no elements.

_Parts = Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def _energies(x: Tensor, q: Tensor, mu: Optional[Tensor], cell: Optional[Tensor], bounds: Optional[Tensor], name: str, forces: bool,
              potential: bool, field: bool, virial: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    batch = _batch_of(name)
    given: Any = (x.detach().contiguous(), q.detach().contiguous(), None if mu is None else mu.detach().contiguous(),
                  None if cell is None else cell.detach(), bounds)
    if x.device.type == "cpu" or mu is not None:  # with dipoles plans of the device have arrays of the host
        given = (*(None if one is None else one.numpy(force=True) for one in given),)
        place = () if x.device.type == "cpu" else (None, x.device.index, library_of(x))
        step = batch.of_host(*given, Wanted(True, forces, potential, field, virial), *place)
    else:
        step = batch.step(given[0], given[1], *given[3:], forces=forces, potential=potential, virial=virial)
    parts = (x.new_empty(0) if array is None else _tensor(array, x) for array in (step.forces, step.potential, step.field, step.virial))
    by_x, by_q, by_mu, strain = parts
    return _tensor(step.energy, x).to(x.dtype), by_x, by_q, by_mu, strain


def _systems(x: Tensor, bounds: Optional[Tensor]) -> Any:
    return x.shape[0] if bounds is None else bounds.shape[0] - 1


def _energies_fake(x: Tensor, q: Tensor, mu: Optional[Tensor], cell: Optional[Tensor], bounds: Optional[Tensor], name: str, forces: bool,
                   potential: bool, field: bool, virial: bool) -> _Parts:
    systems = _systems(x, bounds)
    return (x.new_empty(systems), x.new_empty(x.shape if forces else (0,)), x.new_empty(q.shape if potential else (0,)),
            x.new_empty(x.shape if field else (0,)), x.new_empty((systems, 3, 3), dtype=torch.float64) if virial else x.new_empty(0))


def _each(of_systems: Tensor, x: Tensor, bounds: Optional[Tensor]) -> Tensor:
    """Repeats what belongs to systems for each of their particles."""
    if bounds is None:
        return of_systems[:, None]
    return torch.repeat_interleave(of_systems, torch.diff(bounds).to(x.device), output_size=len(x))


def _sums(of_particles: Tensor, bounds: Optional[Tensor]) -> Tensor:
    """Sums over the particles of each system, in double precision."""
    of_particles = of_particles.double()
    if bounds is None:
        return of_particles.sum(dim=1)
    sums = of_particles.new_zeros((len(of_particles) + 1, *of_particles.shape[1:]))
    torch.cumsum(of_particles, 0, out=sums[1:])
    at = bounds.to(sums.device)
    return sums[at[1:]] - sums[at[:-1]]


def _by_cell(x: Tensor, cell: Tensor, forces: Tensor, virial: Tensor, bounds: Optional[Tensor], periodic: Sequence[int]) -> Tensor:
    """Derivatives of the energies by the vectors of the cells, with the positions as they are."""
    cells = cell.to(device=x.device, dtype=torch.float64)
    moved = _sums(forces.double()[..., :, None] * x.double()[..., None, :], bounds)
    return by_cell(torch, torch.eye(3, dtype=cells.dtype, device=cells.device), cells, virial, moved, periodic)


def _gradient(weight: Tensor, x: Tensor, q: Tensor, mu: Optional[Tensor], cell: Optional[Tensor], bounds: Optional[Tensor], name: str,
              forces: Tensor, potential: Tensor, field: Tensor, virial: Tensor, by_x: bool, by_q: bool, by_mu: bool,
              by_cell: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """Derivatives of the weighted energies, from those of forces, potential, field and virial that are there."""
    missing = ((by_x or by_cell) and forces.ndim == 1, by_q and potential.shape != q.shape, by_mu and field.ndim == 1, by_cell and virial.ndim == 1)
    if any(missing):
        computed = _energies(x, q, mu, cell, bounds, name, *missing)[1:]
        forces, potential, field, virial = (new if wanted else old
                                            for wanted, new, old in zip(missing, computed, (forces, potential, field, virial)))
    each, empty = _each(weight, x, bounds), x.new_empty(0)
    by_cells = empty
    if by_cell and cell is not None:
        of_each = _by_cell(x, cell, forces, virial, bounds, _batch_of(name).periodic)
        by_cells = (weight.double()[:, None, None] * of_each).to(device=cell.device, dtype=cell.dtype)
    return ((-each)[..., None] * forces if by_x else empty, each * potential if by_q else empty.clone(),
            (-each)[..., None] * field if by_mu else empty.clone(), by_cells if by_cell else empty.clone())


def _gradient_fake(weight: Tensor, x: Tensor, q: Tensor, mu: Optional[Tensor], cell: Optional[Tensor], bounds: Optional[Tensor], name: str,
                   forces: Tensor, potential: Tensor, field: Tensor, virial: Tensor, by_x: bool, by_q: bool, by_mu: bool,
                   by_cell: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return (x.new_empty(x.shape if by_x else (0,)), x.new_empty(q.shape if by_q else (0,)), x.new_empty(x.shape if by_mu else (0,)),
            torch.empty_like(cell) if by_cell and cell is not None else x.new_empty(0))


def _second_on_device(weight: Tensor, way_x: Tensor, way_q: Tensor, x: Tensor, q: Tensor, cell: Optional[Tensor], bounds: Optional[Tensor],
                      name: str) -> Optional[_Parts]:
    """What _second gives along positions and charges, without leaving the device. None: a plan takes no dipoles."""
    at, charges, by_x, by_q = (one.detach().to(x.dtype).contiguous() for one in (x, q, way_x, way_q))
    offsets: Any = bounds
    found = _batch_of(name).along(at, charges, None if cell is None else cell.detach(), offsets, by_x, by_q)
    if found is None:
        return None
    forces, potential, along = found
    each = _each(weight.to(x.dtype), x, bounds)
    return (-each)[..., None] * forces, each * potential, x.new_empty(0), x.new_empty(0) if cell is None else torch.zeros_like(cell), along.to(weight)


def _second(weight: Tensor, way_x: Tensor, way_q: Tensor, way_mu: Optional[Tensor], way_cell: Optional[Tensor], x: Tensor, q: Tensor,
            mu: Optional[Tensor], cell: Optional[Tensor], bounds: Optional[Tensor], name: str,
            of_cell: bool = True) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Second derivatives of the weighted energies by a way and by x, q, mu and cell, and first derivatives of each energy by the way. of_cell:
    whether those by cell are wanted, which are zeros otherwise.
    """
    if mu is None and (cell is None or not of_cell and way_cell is None) and x.device.type != "cpu":
        found = _second_on_device(weight, way_x, way_q, x, q, cell, bounds, name)
        if found is not None:
            return found

    def host(tensor: Tensor, *shape: int, dtype: torch.dtype = torch.float64) -> np.ndarray:
        return tensor.detach().to(device="cpu", dtype=dtype).contiguous().reshape(shape).numpy()

    systems = _systems(x, bounds)
    edges = np.arange(systems + 1) * x.shape[1] if bounds is None else bounds.cpu().numpy()
    ways = [host(way_x, -1, 3), host(way_q, -1), None if cell is None or way_cell is None else host(way_cell, systems, 3, 3),
            None if way_mu is None else host(way_mu, -1, 3)]
    on_device = library_of(x)
    results = second_on_host(_batch_of(name), host(weight, -1), ways, host(x, -1, 3, dtype=x.dtype), host(q, -1, dtype=x.dtype),
                           None if cell is None else host(cell, systems, 3, 3), edges, -1 if on_device is None else x.device.index, on_device, of_cell,
                           None if mu is None else host(mu, -1, 3, dtype=x.dtype))
    by_x, by_q, by_cells, along, *by_mu = (torch.from_numpy(array) for array in results)
    return (by_x.reshape(x.shape).to(x), by_q.reshape(q.shape).to(q), by_mu[0].reshape(x.shape).to(x) if by_mu else x.new_empty(0),
            x.new_empty(0) if cell is None else by_cells.to(cell), along.to(weight))


def _second_fake(weight: Tensor, way_x: Tensor, way_q: Tensor, way_mu: Optional[Tensor], way_cell: Optional[Tensor], x: Tensor, q: Tensor,
                 mu: Optional[Tensor], cell: Optional[Tensor], bounds: Optional[Tensor], name: str, of_cell: bool = True) -> _Parts:
    return (torch.empty_like(x), torch.empty_like(q), x.new_empty(0) if mu is None else torch.empty_like(mu),
            x.new_empty(0) if cell is None else torch.empty_like(cell), torch.empty_like(weight))


def _operator(function: Any, fake: Any) -> Any:
    function.__annotations__ = get_type_hints(function)  # which are text as they stand, and PyTorch looks for types
    made = torch.library.custom_op("gmxfmm::" + function.__name__[1:], function, mutates_args=())
    made.register_fake(fake)
    return made


energies, gradient, second = _operator(_energies, _energies_fake), _operator(_gradient, _gradient_fake), _operator(_second, _second_fake)


_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)  # what looks at operators as they are called


def _by(operator: Any, function: Any, arguments: Sequence[Any]) -> Any:
    """Calls the operator. Where nothing looks at it, calls its function: PyTorch takes some 100 us for an operator written in Python."""
    if torch.compiler.is_compiling() or _modes() or type(arguments[0]) is not Tensor:
        return operator(*arguments)
    return function(*arguments)


# ---------------------------------------------------------------------------------------------------------------------- derivatives


def _folded(info: Any, dims: Sequence[Any], arguments: Sequence[Any], names: Sequence[str]) -> List[Any]:
    """Arguments of an operator for all systems of a vmap, one after the other. names: of arguments. Tensors that have systems or particles
    first are folded.
    """
    folded = []
    for name, dim, value in zip(names, dims, arguments):
        if not isinstance(value, Tensor) or (dim is None and name in _PARTS and value.ndim == 1 and value.shape[0] == 0):
            folded.append(value)
            continue
        many = value.movedim(dim, 0) if dim is not None else value.expand(info.batch_size, *value.shape)
        if name == "bounds":
            length = many[:, -1:]
            before = torch.cumsum(length, 0) - length
            folded.append(torch.cat([(many[:, :-1] + before).reshape(-1), (before + length)[-1]]))
        else:
            folded.append(many.reshape(-1, *many.shape[2:]))
    return folded


def _unfolded(info: Any, results: Sequence[Tensor], there: Sequence[bool]) -> Tuple[Tuple, Tuple]:
    """Results of systems in a vmap again, and their dimensions. Missing ones have none."""
    parts = [one.reshape(info.batch_size, -1, *one.shape[1:]) if is_there else one for one, is_there in zip(results, there)]
    return (*parts,), (*(0 if is_there else None for is_there in there),)


_PARTS = ("forces", "potential", "field", "virial")
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


def _apply(function: Any, *arguments: Any) -> Any:
    """Takes the function of autograd that torch.func can transform, or outside of torch.func a simple one, which takes 100 us less."""
    if torch.compiler.is_compiling() or _transforms():
        return function.apply(*arguments)
    return _ALONE[function].apply(*arguments)


def _is_plain(x: Tensor) -> bool:
    """Whether nothing looks at operators or transforms functions."""
    return not (torch.compiler.is_compiling() or _transforms() or _modes() or type(x) is not Tensor)


def _first(*arguments: Any) -> Any:
    """First derivatives. They are differentiable where PyTorch asks for it."""
    if torch.compiler.is_compiling():  # the operator has derivatives, and PyTorch 2.11 follows no function within the backward of another
        return _by(gradient, _gradient, arguments)
    if torch.is_grad_enabled() or not _is_plain(arguments[0]):
        return _apply(_Gradient, *arguments)
    return _gradient(*arguments)


def _alone(function: Any) -> Any:
    class Alone(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            output = function.forward(*arguments)
            function.setup_context(ctx, arguments, output)
            return output

        backward = staticmethod(function.backward)

    return Alone


class _Energy(torch.autograd.Function):
    @staticmethod
    def forward(*arguments: Any) -> Any:
        return _by(energies, _energies, arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, q, mu, cell, bounds, ctx.name = inputs[:6]
        ctx.save_for_backward(x, q, mu, cell, bounds, *output[1:])
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, weight: Tensor, *_: Any) -> Any:
        x, q, mu, cell, bounds, *parts = ctx.saved_tensors
        by = ctx.needs_input_grad[:4]
        found = _first(weight, x, q, mu, cell, bounds, ctx.name, *parts, *by)
        return (*(one if wanted else None for one, wanted in zip(found, by)), *(6 * (None,)))

    @staticmethod
    def vmap(info: Any, dims: Any, *arguments: Any) -> Any:
        given = _folded(info, dims, arguments, ("x", "q", "mu", "cell", "bounds", "name", "f", "p", "e", "v"))
        return _unfolded(info, _Energy.apply(*given), (True, *given[6:]))


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(*arguments: Any) -> Any:
        return _by(gradient, _gradient, arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        weight, x, q, mu, cell, bounds, ctx.name = inputs[:7]
        ctx.by = inputs[11:]
        ctx.save_for_backward(weight, x, q, mu, cell, bounds)

    @staticmethod
    def backward(ctx: Any, way_x: Tensor, way_q: Tensor, way_mu: Tensor, way_cell: Tensor) -> Any:
        weight, x, q, mu, cell, bounds = ctx.saved_tensors
        by_x, by_q, by_mu, by_cell = ctx.by
        ways = (way_x if by_x else torch.zeros_like(x), way_q if by_q else torch.zeros_like(q), way_mu if by_mu else None, way_cell if by_cell else None)
        by_x, by_q, by_mu, by_cell, by_weight = _apply(_Second, weight, *ways, x, q, mu, cell, bounds, ctx.name, ctx.needs_input_grad[4])
        return (by_weight, by_x, by_q, None if mu is None else by_mu, None if cell is None else by_cell, *(10 * (None,)))

    @staticmethod
    def vmap(info: Any, dims: Any, *arguments: Any) -> Any:
        given = _folded(info, dims, arguments, ("weight", "x", "q", "mu", "cell", "bounds", "name", *_PARTS, "x", "q", "m", "c"))
        return _unfolded(info, _Gradient.apply(*given), given[11:])


class _Second(torch.autograd.Function):
    @staticmethod
    def forward(*arguments: Any) -> Any:
        return _by(second, _second, arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """There is nothing to keep."""

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise no_third("gmxfmm.torch.coulomb")

    @staticmethod
    def vmap(info: Any, dims: Any, *arguments: Any) -> Any:
        given = _folded(info, dims, arguments, ("weight", "way_x", "way_q", "way_mu", "way_cell", "x", "q", "mu", "cell", "bounds", "name", "of_cell"))
        return _unfolded(info, _Second.apply(*given), (True, True, given[7] is not None, given[8] is not None, True))


class _One(torch.autograd.Function):
    """One system, where nothing transforms. What makes it a batch of one stands inside: outside PyTorch would differentiate that, too, and
    take half as much time again.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, q: Tensor, mu: Optional[Tensor], cell: Optional[Tensor], name: str, *parts: bool) -> Tensor:
        energy, *ctx.parts = _energies(x[None], q[None], None if mu is None else mu[None], None if cell is None else cell.reshape(1, 3, 3), None, name,
                                       *parts)
        ctx.name = name
        ctx.save_for_backward(x, q, mu, cell)
        return energy[0]

    @staticmethod
    def backward(ctx: Any, weight: Tensor) -> Any:
        x, q, mu, cell = ctx.saved_tensors
        by = ctx.needs_input_grad[:4]
        found = _first(weight[None], x[None], q[None], None if mu is None else mu[None], None if cell is None else cell.reshape(1, 3, 3), None, ctx.name,
                       *ctx.parts, *by)
        return (*(one.reshape(given.shape) if wanted else None for one, given, wanted in zip(found, (x, q, mu, cell), by)), *(5 * (None,)))


_ALONE = {function: _alone(function) for function in (_Energy, _Gradient, _Second)}
for _op, _function in ((energies, _Energy), (gradient, _Gradient), (second, _Second)):  # of exported programs
    _op.register_autograd(_function.backward, setup_context=_function.setup_context)


# ------------------------------------------------------------------------------------------------------------------ what callers have


def _bounds(x: Tensor, offsets: Any, batch: Optional[Tensor], systems: Optional[int], cell: Optional[Tensor]) -> Optional[Tensor]:
    """offsets (systems + 1) of either."""
    if batch is None:
        return None if offsets is None else offsets if isinstance(offsets, Tensor) else torch.tensor(list(offsets), dtype=torch.int64)
    if offsets is not None:
        raise refuse("batch", "there are offsets, too: leave out one of them")
    if batch.dtype not in (torch.int32, torch.int64) or batch.ndim != 1 or batch.shape != x.shape[:1]:
        raise refuse("batch", f"it has the type {batch.dtype} and the shape {tuple(batch.shape)}, it must be integers, one for each particle")
    if systems is None:
        systems = cell.shape[0] if cell is not None and cell.ndim == 3 else int(batch.max()) + 1 if len(batch) else 0
    return starts(batch, systems)


def _starts(batch: Tensor, systems: int) -> Tensor:
    """Offsets of systems, from the number of the system of each particle."""
    if len(batch) and (bool((batch[1:] < batch[:-1]).any()) or int(batch[0]) < 0 or int(batch[-1]) >= systems):
        raise refuse("batch", f"it must rise from 0 to {systems - 1} at most, the last system: sort the particles by it")
    return torch.searchsorted(batch.contiguous(), torch.arange(systems + 1, dtype=batch.dtype, device=batch.device))


def _starts_fake(batch: Tensor, systems: int) -> Tensor:
    return batch.new_empty(systems + 1, dtype=torch.int64)


starts = _operator(_starts, _starts_fake)


class Coulomb:
    """The Coulomb energy with plans of its own, which are kept from call to call. There is one for each number of particles and shape of
    the cell.

    options  of Batch: accuracy, measure, precision, exclusions, prefactor, max_plans, ...
    """

    def __init__(self, **options: Unpack[BatchOptions]) -> None:
        self.batch = Batch(**options)
        self._options: Dict[str, Any] = dict(options)
        # an operator has the object by this name, and its options where the object is not, as in an exported program of another process
        self._name = f"{uuid.uuid4().hex} {json.dumps(options, default=lambda value: value.tolist() if hasattr(value, 'tolist') else str(value))}"
        _objects[self._name] = self

    def __reduce__(self) -> Any:
        return _made, (type(self), self._options)

    def __call__(self, x: Tensor, q: Tensor, cell: Optional[Tensor] = None, offsets: Union[Sequence[int], Tensor, None] = None, *,
                 dipoles: Optional[Tensor] = None, batch: Optional[Tensor] = None, systems: Optional[int] = None) -> Tensor:
        """Energies, as of coulomb()."""
        return _call(self._name, x, q, dipoles, cell, offsets, batch, systems)


def _made(kind: Any, options: Dict[str, Any]) -> Any:
    return kind(**options)


def _call(name: str, x: Tensor, q: Tensor, mu: Optional[Tensor], cell: Optional[Tensor], offsets: Any, batch: Optional[Tensor],
          systems: Optional[int]) -> Tensor:
    for argument, value in (("x", x), ("q", q), ("cell", cell), ("dipoles", mu)):
        if value is None and argument in ("cell", "dipoles"):
            continue
        if not isinstance(value, Tensor):
            raise refuse(argument, f"it is a {type(value).__name__}, it must be a tensor")
        check_type(argument, value.dtype)
    if q.device != x.device:
        raise refuse("q", f"it is on {q.device}, and x on {x.device}")
    if mu is not None and mu.device != x.device:
        raise refuse("dipoles", f"they are on {mu.device}, and x on {x.device}")
    bounds = _bounds(x, offsets, batch, systems, cell)
    number, alone = systems_of(x.shape, q.shape, None if cell is None else cell.shape, None if bounds is None else bounds.shape[0])
    if mu is not None:
        check_dipoles(mu.shape, x.shape)
        mu = mu.to(x.dtype)
    differentiable = torch.is_grad_enabled()
    by_x, by_q, by_mu, by_cell = (differentiable and value is not None and value.requires_grad for value in (x, q, mu, cell))
    q, parts = q.to(x.dtype), (by_x or by_cell, by_q, by_mu, by_cell)
    if alone and _is_plain(x):
        return _One.apply(x, q, mu, cell, name, *parts)
    if alone:
        x, q, mu = x[None], q[None], None if mu is None else mu[None]
    if cell is not None and cell.ndim == 2:
        cell = cell.expand(number, 3, 3)
    energy = _apply(_Energy, x, q, mu, cell, bounds, name, *parts)[0]
    return energy[0] if alone else energy


_keeper = Keeper(Coulomb)


@torch.compiler.assume_constant_result
def _name_of(options: Any) -> str:
    return _keeper.of(dict(options))._name


def coulomb(x: Tensor, q: Tensor, cell: Optional[Tensor] = None, offsets: Union[Sequence[int], Tensor, None] = None, *,
            dipoles: Optional[Tensor] = None, batch: Optional[Tensor] = None, systems: Optional[int] = None,
            **options: Unpack[BatchOptions]) -> Tensor:
    """Coulomb energy 1/2 sum (q phi - mu . E), prefactor * charge^2 / length, with derivatives by x, q, mu (dipoles) and cell.

    x        (n, 3), float32 or float64, on the CPU or a GPU. For many systems (systems, n, 3), or (all particles, 3) with offsets or batch
    q        (n); (systems, n); or (all particles)
    cell     (3, 3), vectors in rows. (systems, 3, 3): one each; zeros are an open system. None: open. A cell on a GPU is waited for: keep
             it on the CPU
    offsets  (systems + 1) integers: system s has the particles offsets[s] to offsets[s + 1] - 1
    dipoles  as x, charge times length, of the FMM; None: there are none
    batch    in place of offsets, (all particles): the number of the system of each particle, in rising order
    systems  number of systems, with batch. None: that of the cells, or the last in batch, for which a GPU is waited for
    options  of Batch: accuracy, measure, exclusions, prefactor, ...

    Gives a tensor of no dimension, or (systems), of the type and device of x. The derivative by cell leaves the positions where they are. A
    strain of both is x @ s, cell @ s. Second derivatives are exact, but for those along a strain of the cell, and where dipoles move
    (docs/python.md). Third ones raise Error. The first call with a number of particles, a shape of the cell and these options
    makes a plan. It is measured unless measure=False. The last 16 sets of options keep their plans. An object Coulomb keeps its own.
    """
    return _call(_name_of(options), x, q, dipoles, cell, offsets, batch, systems)
