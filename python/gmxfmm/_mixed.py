# SPDX-License-Identifier: LGPL-2.1-or-later
"""Second derivatives of the energy by fields of charges and dipoles: THEORY (52)."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from . import _check


class Mixed(NamedTuple):
    """The energy of charges q with sources that are their derivative along a way, charges w and dipoles q u; and its derivatives.

    forces     (n, 3), less the derivative by positions with the way as it is
    potential  (n), the derivative by charges
    virial     (3, 3), half that by a strain of positions and box; zeros where it is not wanted
    energy     the first derivative of the energy by the way
    """

    forces: np.ndarray
    potential: np.ndarray
    virial: np.ndarray
    energy: float


def has_dipoles(plan: Any) -> bool:
    """Whether a plan takes dipoles."""
    return bool(plan._can("DIPOLES")) and not plan._options.min_distance > 0


def along(plan: Any, x: np.ndarray, q: np.ndarray, u: np.ndarray, w: np.ndarray, box: Optional[np.ndarray],
          strain: bool) -> Tuple[Mixed, Optional[np.ndarray]]:
    """Evaluates both by a plan that has the charges and the box. Gives the forces of the charges, too. There are no dipoles afterwards."""
    mu = np.ascontiguousarray(q[:, None] * u, dtype=x.dtype)
    try:
        if not strain:
            return _of_two(plan, x, q, u, w, mu)
        return _of_sum_and_difference(plan, x, q, u, w, mu, box)
    finally:
        plan.set_dipoles(None, measure=False)
        plan.set_charges(q)


def _of_two(plan: Any, x: np.ndarray, q: np.ndarray, u: np.ndarray, w: np.ndarray, mu: np.ndarray) -> Tuple[Mixed, np.ndarray]:
    """The fields of either."""
    plan.set_dipoles(np.zeros_like(mu), measure=False)
    of_q = plan.step(x, energy=False, forces=False, potential=True, field=True, field_gradient=True, assign=True)
    plan.set_charges(w)
    plan.set_dipoles(mu, measure=False)
    of_way = plan.step(x, energy=False, forces=False, potential=True, field=True, assign=False)
    forces, potential, energies, felt = _put_together(q, u, w, mu, of_q.potential, of_q.field, of_q.field_gradient, of_way.potential, of_way.field)
    return Mixed(forces, potential, np.zeros((3, 3)), float(energies.sum())), felt


def _put_together(q: np.ndarray, u: np.ndarray, w: np.ndarray, mu: np.ndarray, phi: np.ndarray, field: np.ndarray, gradient: np.ndarray,
                  way_phi: np.ndarray, way_field: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Forces and potential as of Mixed, and the terms of its energy, from potential, field and its gradient of q and the former two of the way.
    And the forces on q.
    """
    xx, yy, zz, xy, xz, yz = gradient.T
    a, b, c = mu.T
    turned = np.stack([xx * a + xy * b + xz * c, xy * a + yy * b + yz * c, xz * a + yz * b + zz * c], axis=1)
    return (q[:, None] * way_field + w[:, None] * field + turned, way_phi - (u * field).sum(axis=1), w * phi - (mu * field).sum(axis=1),
            q[:, None] * field)


def of_systems(plan: Any, x: np.ndarray, q: np.ndarray, u: np.ndarray, w: np.ndarray, bounds: np.ndarray,
               boxes: Optional[np.ndarray]) -> Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What along gives without a strain, of systems one behind the other: forces, potentials, energies, and forces on q."""
    mu = q[:, None] * u
    of_q, of_way = plan.fields_of_systems(x, (q, np.zeros_like(mu)), (w, mu), bounds, boxes)
    forces, potential, terms, felt = _put_together(q, u, w, mu, of_q["potential"], of_q["field"], of_q["field_gradient"], of_way["potential"],
                                                   of_way["field"])
    return forces, potential, np.add.reduceat(terms, bounds[:-1], dtype=float), felt


def _of_sum_and_difference(plan: Any, x: np.ndarray, q: np.ndarray, u: np.ndarray, w: np.ndarray, mu: np.ndarray,
                           box: Optional[np.ndarray]) -> Tuple[Mixed, np.ndarray]:
    """Energy, forces and virial are quadratic in the sources: those of q + way less those of q - way are twice the mixed ones. The way is made
    as large as q, so that rounding is least.
    """
    size = np.sqrt(np.mean(w * w)) + np.sqrt(np.mean(mu * mu)) / _check.spacing(x, box)
    scale = float(np.sqrt(np.mean(q * q)) / size)
    steps = []
    for sign in (1, -1):
        plan.set_charges(q + sign * scale * w)
        plan.set_dipoles(sign * scale * mu, measure=False)
        steps.append(plan.step(x, energy=False, potential=True, field=True, virial=True, assign=sign > 0))
    plus, minus = steps
    half = 0.5 / scale
    field, potential = 0.5 * (plus.field + minus.field), 0.5 * (plus.potential + minus.potential)
    return Mixed(half * (plus.forces - minus.forces), half * (plus.potential - minus.potential) - (u * field).sum(axis=1),
                 half * (plus.virial - minus.virial), float(np.vdot(w, potential) - np.vdot(mu, field))), q[:, None] * field
