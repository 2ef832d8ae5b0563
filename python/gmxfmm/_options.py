# SPDX-License-Identifier: LGPL-2.1-or-later
"""Types of the keyword options, for type checkers. They are members of gmxfmm_options, whose meaning, defaults and ranges are in
docs/python.md. At run time the library's own table is used.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, TypedDict, Union

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import Unpack  # which type checkers have; at run time annotations are text

Precision = Literal["single", "double"]
Three = Union[int, Sequence[int], np.ndarray]


class Options(TypedDict, total=False):
    """Options of solve, Plan, Batch, qeq and induce."""

    accuracy: float
    boundary: Literal["tinfoil", "vacuum", "open"]
    cache_dir: Union[str, "os.PathLike[str]", None]
    check: Literal["error", "report", "off"]
    degree: int
    depth: int
    device: Literal["cpu", "cuda"]
    device_id: int
    devices: Union[int, Sequence[int]]
    far_shares: Sequence[float]
    grid: Three
    kappa: float
    kernel: Literal["coulomb", "yukawa"]
    leaf: int
    m2l: Literal["auto", "fft", "rotation", "symmetric", "dynamic", "naive"]
    m2l_to_parent: int
    m2l_truncate: int
    method: Literal["fmm", "treecode", "auto"]
    min_distance: float
    num_threads: int
    order: int
    pairs_beside: int
    periodic: Three
    prefactor: float
    reproducible: int
    separation: int
    shares: Sequence[float]
    theta: float
    traversal: Literal["particle", "dual"]
    vertical_rotation: int


class PlanOptions(Options, total=False):
    """Options of classes that make plans themselves."""

    exclusions: Any
    widths: Any
    precision: Optional[Precision]


class KeptOptions(PlanOptions, total=False):
    """Options of the calculator of ASE and of charge equilibration."""

    assign_every: int
    measure: bool


class BatchOptions(PlanOptions, total=False):
    """Options of the functions of PyTorch and JAX."""

    max_plans: int
    measure: bool
