# SPDX-License-Identifier: LGPL-2.1-or-later
"""Second derivatives of the energy by fields of charges and dipoles: THEORY (52)."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from . import _check
from ._check import Felt, Sources


class Way(NamedTuple):
    """A way of positions u (n, 3), charges w (n) and dipoles v (n, 3); None: there are no dipoles. Dipoles do not move: where one is, u is zero,
    as its derivative would be a quadrupole.
    """

    u: np.ndarray
    w: np.ndarray
    v: Optional[np.ndarray] = None

    def of(self, some: slice) -> Way:
        return Way(self.u[some], self.w[some], None if self.v is None else self.v[some])

    def any(self) -> bool:
        return bool(self.u.any() or self.w.any()) or self.v is not None and bool(self.v.any())

    def dipoles(self, q: np.ndarray) -> np.ndarray:
        """Those of the sources that are the derivative of charges q and dipoles along the way; their charges are w."""
        moved = np.ascontiguousarray(q[:, None] * self.u, dtype=q.dtype)
        return moved if self.v is None else moved + self.v


class Mixed(NamedTuple):
    """The energy of charges q and dipoles with sources that are their derivative along a way, charges w and dipoles q u + v; and its derivatives.

    forces     (n, 3), less the derivative by positions with the way as it is
    potential  (n), the derivative by charges
    virial     (3, 3), half that by a strain of positions and box; zeros where it is not wanted
    energy     the first derivative of the energy by the way
    field      (n, 3), less the derivative by dipoles; None: there are none
    """

    forces: np.ndarray
    potential: np.ndarray
    virial: np.ndarray
    energy: float
    field: Optional[np.ndarray] = None


def has_dipoles(plan: Any) -> bool:
    """Whether a plan takes dipoles."""
    return bool(plan._can("DIPOLES")) and not plan._options.min_distance > 0


def along(plan: Any, x: np.ndarray, sources: Sources, way: Way, box: Optional[np.ndarray], strain: bool) -> Tuple[Mixed, Felt]:
    """Evaluates both by a plan that has the charges and the box. Gives what the sources feel, too. There are no dipoles afterwards."""
    if not strain:
        forces, potential, field, energies, felt = of_systems(plan, x, sources, way, np.array([0, len(x)]), None)
        return Mixed(forces, potential, np.zeros((3, 3)), float(energies[0]), field), felt
    try:
        return _of_sum_and_difference(plan, x, sources, way, box)
    finally:
        plan.set_dipoles(None, measure=False)
        plan.set_charges(sources.charges)


def _along(vectors: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """(vectors . nabla) E, which is what dipoles feel."""
    xx, yy, zz, xy, xz, yz = gradient.T
    a, b, c = vectors.T
    return np.stack([xx * a + xy * b + xz * c, xy * a + yy * b + yz * c, xz * a + yz * b + zz * c], axis=1)


def of_systems(plan: Any, x: np.ndarray, sources: Sources, way: Way, bounds: np.ndarray,
               boxes: Optional[np.ndarray]) -> Tuple[np.ndarray, np.ndarray, Optional[np.ndarray], np.ndarray, Felt]:
    """What along gives without a strain, of systems one behind the other: forces, potentials, fields, energies, and what is felt."""
    (q, mu), (u, w, _) = sources, way
    if mu is None:
        forces, potential, energies, alone = plan.along_of_systems(x, q, u, w, bounds, boxes)
        return forces, potential, None, energies, Felt(alone)
    moved = way.dipoles(q)
    own, others = plan.fields_of_systems(x, sources, Sources(w, moved), bounds, boxes)
    field, gradient = own["field"], own["field_gradient"]
    forces = q[:, None] * others["field"] + w[:, None] * field + _along(moved, gradient) + _along(mu, others["field_gradient"])
    potential, terms = others["potential"] - (u * field).sum(axis=1), w * own["potential"] - (moved * field).sum(axis=1)
    felt = Felt(q[:, None] * field + _along(mu, gradient), np.cross(mu, field))
    return forces, potential, others["field"] + _along(u, gradient), np.add.reduceat(terms, bounds[:-1], dtype=float), felt


def _of_sum_and_difference(plan: Any, x: np.ndarray, sources: Sources, way: Way, box: Optional[np.ndarray]) -> Tuple[Mixed, Felt]:
    """Energy, forces and virial are quadratic in the sources: those of sources + way less those of sources - way are twice the mixed ones. The way
    is made as large as the sources, so that rounding is least.
    """
    (q, mu), (u, w, _), distance = sources, way, _check.spacing(x, box)
    moved = way.dipoles(q)
    size, most = (float(np.sqrt(np.mean(one.strengths(distance) ** 2))) for one in (Sources(w, moved), sources))
    scale = most / size if most > 0 and size > 0 else 1.0
    steps = []
    for sign in (1, -1):
        plan.set_charges(q + sign * scale * w)
        plan.set_dipoles(sign * scale * moved if mu is None else mu + sign * scale * moved, measure=False)
        steps.append(plan.step(x, energy=False, potential=True, field=True, virial=True, field_gradient=mu is not None, assign=sign > 0))
    plus, minus = steps
    half = 0.5 / scale
    field, potential = 0.5 * (plus.field + minus.field), 0.5 * (plus.potential + minus.potential)
    felt, by_field = Felt(q[:, None] * field), None
    if mu is not None:
        gradient = 0.5 * (plus.field_gradient + minus.field_gradient)
        felt, by_field = Felt(felt.forces + _along(mu, gradient), np.cross(mu, field)), half * (plus.field - minus.field) + _along(u, gradient)
    return Mixed(half * (plus.forces - minus.forces), half * (plus.potential - minus.potential) - (u * field).sum(axis=1),
                 half * (plus.virial - minus.virial), float(np.vdot(w, potential) - np.vdot(moved, field)), by_field), felt
