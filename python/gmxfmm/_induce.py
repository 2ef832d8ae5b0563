# SPDX-License-Identifier: LGPL-2.1-or-later
"""Induced dipoles: those of the least energy, of particles with charges and polarizabilities."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np

from ._arrays import to_host
from ._inputs import BoxLike, Info, numbers, refuse
from ._library import Error
from ._mixed import has_dipoles
from ._options import KeptOptions
from ._pairs import near_pairs
from ._plan import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack

_DAMPED = 40  # a u^3 beyond which damping is less than rounding


class Induced(NamedTuple):
    """What induce found. Energies are charge^2 / length times prefactor f.

    dipoles             (n, 3), charge times length
    energy              1/2 sum (q phi - mu . E) + f/2 sum mu^2 / alpha, with what damping changes. As it is the least one, its derivatives
                        are those with fixed dipoles
    forces              (n, 3), less its derivatives by positions
    potential           (n), its derivatives by charges
    by_polarizability   (n), its derivatives by alpha; zero where alpha is
    field               (n, 3), f mu / alpha where alpha is not zero
    virial              (3, 3), half of its derivatives by a strain; None unless asked for
    residual            RMS of f mu - alpha E over that of f mu
    iterations          number of products with dipoles
    measured_error      relative RMS error of the forces of the charges alone; nan: it was not measured
    info                of the plan
    """

    dipoles: np.ndarray
    energy: float
    forces: np.ndarray
    potential: np.ndarray
    by_polarizability: np.ndarray
    field: np.ndarray
    virial: Optional[np.ndarray]
    residual: float
    iterations: int
    measured_error: float
    info: Info


class _Damping:
    """What near pairs have less than point dipoles, after Thole (1981) with the exponential density. Fields have the factors 1 - e and
    1 - (1 + a u^3) e. There e = exp(-a u^3) and u^3 = r^3 / sqrt(alpha alpha). Charges act on charges as points.
    """

    def __init__(self, strength: float, x: np.ndarray, alpha: np.ndarray, plan: Plan) -> None:
        cutoff = float((_DAMPED / strength * alpha.max()) ** (1 / 3))
        pairs = near_pairs(x, plan.box, plan._periodic, cutoff, plan._exclusions)
        both = alpha[pairs.i] * alpha[pairs.j] > 0
        self.n, self.i, self.j, self.r = len(x), pairs.i[both], pairs.j[both], pairs.r[both]
        self.factor, self.alpha = plan.prefactor, alpha
        self.square = np.einsum("pd,pd->p", self.r, self.r)
        self.over = self.square**-1.5
        au3 = strength / (self.over * np.sqrt(alpha[self.i] * alpha[self.j]))
        e = np.exp(-au3)
        self.three, self.five = -e, -(1 + au3) * e
        self.three_by_r, self.five_by_r = 3 * au3 * e, 3 * au3**2 * e  # derivatives, times r

    def _sum(self, terms: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(self.i, term, self.n) for term in terms.T], axis=1)

    def of_dipoles(self, mu: np.ndarray) -> np.ndarray:
        """Their field."""
        source = mu[self.j]
        along = np.einsum("pd,pd->p", source, self.r)
        each = (3 * self.five * along / self.square * self.over)[:, None] * self.r - (self.three * self.over)[:, None] * source
        return self.factor * self._sum(each)

    def of_charges(self, q: np.ndarray) -> np.ndarray:
        """Their field on dipoles."""
        return self.factor * self._sum((q[self.j] * self.three * self.over)[:, None] * self.r)

    def energy(self, q: np.ndarray, mu: np.ndarray) -> float:
        """The energy of charges with dipoles and of these with each other."""
        return -float(np.vdot(mu, self.of_charges(q) + 0.5 * self.of_dipoles(mu)))

    def potential(self, mu: np.ndarray) -> np.ndarray:
        """The potential of dipoles, at charges."""
        along = np.einsum("pd,pd->p", mu[self.j], self.r)
        return self.factor * np.bincount(self.i, self.three * self.over * along, self.n)

    def slopes(self, q: np.ndarray, mu: np.ndarray) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
        """Forces, the virial, and derivatives by polarizabilities."""
        r, here, there = self.r, mu[self.i], mu[self.j]
        a, b = np.einsum("pd,pd->p", here, r), np.einsum("pd,pd->p", there, r)
        by_a, by_b = -q[self.j], q[self.i]  # of charges with dipoles: (q_i b - q_j a) / r^3
        single, product = by_b * b + by_a * a, np.einsum("pd,pd->p", here, there)
        first, second = self.three * self.over, self.five * self.over / self.square
        # energy of the pair: first (single + product) - 3 second a b
        lengthwise = (-3 * first * (single + product) + 15 * second * a * b) / self.square
        stretched = (self.three_by_r * self.over * (single + product) - 3 * self.five_by_r * self.over * a * b / self.square)
        force = -(lengthwise + stretched / self.square)[:, None] * r
        force -= (first * by_a - 3 * second * b)[:, None] * here + (first * by_b - 3 * second * a)[:, None] * there
        # u^3 goes as the root of either alpha: its derivative by one is -r / (6 alpha) of that by r
        by_alpha = -np.bincount(self.i, stretched, self.n) / (6 * np.where(self.alpha > 0, self.alpha, 1))
        return self.factor * self._sum(force), -0.25 * self.factor * r.T @ force, self.factor * by_alpha


def _rms(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(array * array))) if array.size else 0.0


class _Minimum:
    """Preconditioned conjugate gradients for f mu / alpha - E(mu) = E(q); mu of particles whose alpha is not zero."""

    def __init__(self, plan: Plan, x: np.ndarray, q: np.ndarray, alpha: np.ndarray, damping: Optional[_Damping]) -> None:
        self.plan, self.x, self.q, self.damping = plan, x, q, damping
        self.share = alpha / plan.prefactor
        self.iterations = 0
        self._step: Any = None

    def field(self, q: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """The field of charges and dipoles, on dipoles."""
        self.plan.set_charges(q, measure=False)
        self.plan.set_dipoles(mu, measure=False)
        self._step = self.plan.step(self.x, self._step, energy=False, forces=False, field=True, assign=False)
        found = np.array(self._step.field, dtype=np.float64)
        if self.damping is not None:
            found += self.damping.of_dipoles(mu) + self.damping.of_charges(q)
        return found

    def find(self, mu: np.ndarray, tolerance: float, most: int) -> np.ndarray:
        some = self.share[:, None] > 0
        nothing = np.zeros_like(self.q)
        over = np.divide(1, self.share, out=np.zeros_like(self.share), where=self.share > 0)[:, None]
        gradient = np.where(some, over * mu - self.field(self.q, mu), 0)
        direction, before = np.zeros_like(mu), 1.0
        while True:
            step = self.share[:, None] * gradient
            if _rms(step) <= tolerance * _rms(mu):
                return mu
            if self.iterations >= most:
                raise Error("GMXFMM_ERROR_OPTION", f"tolerance {tolerance:g} is not reached in {most} iterations, but "
                            f"{_rms(step) / (_rms(mu) or 1):.2g}: give more, or a larger tolerance", "tolerance")
            now = float(np.vdot(gradient, step))
            direction = -step + now / before * direction
            before = now
            self.iterations += 1
            product = np.where(some, over * direction - self.field(nothing, direction), 0)
            curvature = float(np.vdot(direction, product))
            if not curvature > 0:
                raise Error("GMXFMM_ERROR_OPTION", "polarizability: the energy has no minimum, as dipoles of near particles gain more than they "
                            "cost: give smaller ones, damping, or exclude these pairs", "polarizability")
            length = now / curvature
            mu, gradient = mu + length * direction, gradient + length * product


def induce(positions: Any, charges: Any, polarizability: Any, box: BoxLike = None, *, damping: Optional[float] = None, start: Any = None,
           plan: Optional[Plan] = None, tolerance: float = 1e-8, max_iterations: int = 200, virial: bool = False,
           **options: Unpack[KeptOptions]) -> Induced:
    """Dipoles mu of the least energy 1/2 sum (q phi - mu . E) + f/2 sum mu^2 / alpha, by conjugate gradients.

    positions       (n, 3), arrays of the host
    charges         q (n)
    polarizability  alpha (n), length^3; zero: of no dipole
    box             as of Plan
    damping         a of Thole's exponential damping of near dipoles, with each other and with charges, as 0.39; None: there is none
    start           (n, 3), dipoles to begin with. None: those of the plan, or without one alpha E of the charges
    plan            a plan for these positions and this box; it is kept, and has the dipoles afterwards. None: one is made
    tolerance       RMS residual of the dipoles over their RMS
    max_iterations  largest number of products with dipoles
    virial          True: also the virial
    options         of Plan: accuracy, exclusions, prefactor, periodic, ...; always the FMM. Excluded pairs have nothing, no dipoles either

    Settings are measured with the charges alone. Torques on induced dipoles are zero, and so have no relative error.
    """
    dtype = np.dtype(np.float64)
    x = numbers("positions", to_host("positions", positions), (None, 3), dtype)
    n = len(x)
    q = numbers("charges", to_host("charges", charges), (n,), dtype)
    alpha = numbers("polarizability", to_host("polarizability", polarizability), (n,), dtype)
    if not (np.isfinite(alpha).all() and (alpha >= 0).all()):
        raise refuse("polarizability", "all must be finite, and none negative")
    if damping is not None and not 0 < damping < np.inf:
        raise refuse("damping", f"it is {damping!r}, it must be positive and finite, or None")
    if not tolerance > 0:
        raise refuse("tolerance", f"it is {tolerance!r}, it must be positive")
    if options.get("method", "fmm") != "fmm":
        raise refuse("method", "dipoles are the FMM's: leave it out")
    if plan is not None and (options or box is not None):
        raise refuse("plan", "it has its own box and options: leave others out")
    if plan is not None and len(plan) != n:
        raise refuse("plan", f"it has {len(plan)} particles, and there are {n} positions")
    if n == 0 or not q.any():
        raise refuse("charges", "there are none that could induce dipoles")

    work = Plan(x, q, box, **options) if plan is None else plan
    try:
        if not has_dipoles(work):
            raise refuse("plan" if plan is not None else "device", "it has no dipoles: take the FMM, one device and no min_distance")
        before = work._dipoles
        if plan is not None:  # charges alone, as they are measured
            work.set_dipoles(None, measure=False)
            work.set_charges(q, x)
        measured = work.measured_error
        damped = _Damping(damping, x, alpha, work) if damping is not None and alpha.any() else None
        search = _Minimum(work, x, q, alpha, damped)
        if start is not None:
            mu = numbers("start", to_host("start", start), (n, 3), dtype)
        elif before is not None:
            mu = before.astype(dtype)
        else:
            work.set_dipoles(np.zeros((n, 3)), measure=False)
            work.assign(x)
            mu = search.share[:, None] * search.field(q, np.zeros((n, 3)))
        mu = np.where(alpha[:, None] > 0, mu, 0)
        work.set_dipoles(mu, measure=False)
        work.assign(x)
        mu = search.find(mu, tolerance, max_iterations)
        work.set_charges(q, measure=False)
        work.set_dipoles(mu, measure=False)
        final = work.step(x, potential=True, field=True, virial=virial, assign=True)
        some, f = alpha > 0, work.prefactor
        energy, forces, potential, field = final.energy, final.forces.astype(dtype), final.potential.astype(dtype), final.field.astype(dtype)
        by_alpha = np.where(some, -0.5 * f * (mu * mu).sum(axis=1) / np.where(some, alpha, 1) ** 2, 0)
        energy += float(-(by_alpha * alpha).sum())
        strain = final.virial
        if damped is not None:
            force, own, slope = damped.slopes(q, mu)
            energy += damped.energy(q, mu)
            forces, potential, by_alpha = forces + force, potential + damped.potential(mu), by_alpha + slope
            field = field + damped.of_dipoles(mu) + damped.of_charges(q)
            strain = None if strain is None else strain + own
        off = np.where(some[:, None], f * mu - alpha[:, None] * field, 0)
        return Induced(mu, energy, forces, potential, by_alpha, field, strain, _rms(off) / (_rms(f * mu) or 1), search.iterations, measured,
                       work.info)
    finally:
        if plan is None:
            work.close()
