# SPDX-License-Identifier: LGPL-2.1-or-later
"""Charge equilibration: charges that minimise an energy which is quadratic in them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Tuple

import numpy as np

from ._arrays import to_host
from ._inputs import BoxLike, Info, numbers, refuse
from ._library import Error
from ._options import KeptOptions
from ._plan import Plan
from ._results import Step

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ROUNDING = 1e-14  # of a chemical potential, over that of electronegativities
_ROUNDS = 5  # a measurement for each at most; the charges of the second are hardly ever another kind


class Equilibrium(NamedTuple):
    """What qeq found. Energies are charge^2 / length times prefactor.

    charges             (n), with the sum that was asked for
    energy              sum chi q + 1/2 sum eta q^2 + 1/2 sum q phi, and 1/2 q C q with a correction. As it is the least one, its derivatives
                        are those with fixed charges. By positions they are -forces, by chi charges, by eta charges^2 / 2. By the total
                        charge it is chemical_potential, by a strain 2 virial
    forces              (n, 3), those of the Coulomb energy
    potential           (n), phi
    virial              (3, 3), of the Coulomb energy; None unless asked for
    chemical_potential  chi + eta q + phi, which is the same for all particles
    residual            RMS of its differences, over the RMS of eta q
    iterations          number of products of the potential with charges
    measured_error      relative RMS error of the forces, measured with charges that differ by a tenth at most; nan: the plan does not measure
    info                of the plan
    """

    charges: np.ndarray
    energy: float
    forces: np.ndarray
    potential: np.ndarray
    virial: Optional[np.ndarray]
    chemical_potential: float
    residual: float
    iterations: int
    measured_error: float
    info: Info


def _rms(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(array * array))) if len(array) else 0.0


def _settings(plan: Plan) -> Tuple[Any, ...]:
    info = plan.info
    return info.order, info.grid, info.depth, info.separation, info.m2l


class _Minimum:
    """Preconditioned conjugate gradients for A q = mu - chi with the sum of q fixed; A: eta, the potential, and the correction.

    All directions have the sum zero: the preconditioner is 1 / eta, projected.
    """

    def __init__(self, chi: np.ndarray, eta: np.ndarray, potential: Callable[[np.ndarray], np.ndarray], correction: Any) -> None:
        self._chi, self._eta, self._potential, self._correction = chi, eta, potential, correction
        self.shares = (1 / eta) / np.sum(1 / eta)
        self.iterations = 0

    def without_interaction(self, total: float) -> np.ndarray:
        """Charges by chi and eta alone."""
        mu = self.shares @ self._chi + total / np.sum(1 / self._eta)
        return (mu - self._chi) / self._eta

    def extra(self, q: np.ndarray) -> np.ndarray:
        """Potential of the correction."""
        return np.zeros_like(q) if self._correction is None else np.asarray(self._correction @ q, dtype=np.float64)

    def _times(self, q: np.ndarray) -> np.ndarray:
        self.iterations += 1
        return self._eta * q + self._potential(q) + self.extra(q)

    def find(self, q: np.ndarray, tolerance: float, most: int) -> np.ndarray:
        """Finds the charges, from a first guess with the right sum."""
        gradient, total = self._chi + self._times(q), q.sum()
        direction, before = np.zeros_like(q), 1.0
        while True:
            uneven = gradient - self.shares @ gradient
            if _rms(uneven) <= tolerance * _rms(self._eta * q) + _ROUNDING * _rms(self._chi):
                return q + (total - q.sum()) * self.shares  # what rounding adds up to
            if self.iterations >= most:
                raise Error("GMXFMM_ERROR_OPTION", f"tolerance {tolerance:g} is not reached in {most} iterations, but "
                            f"{_rms(uneven) / _rms(self._eta * q):.2g}: give more, or a larger tolerance", "tolerance")
            step = uneven / self._eta
            now = float(uneven @ step)
            direction = -step + now / before * direction
            before = now
            product = self._times(direction)
            curvature = float(direction @ product)
            if not curvature > 0:
                raise Error("GMXFMM_ERROR_OPTION", "hardness: the energy has no minimum, as charges of near particles gain more than hardness "
                            "costs: give larger ones, a correction that damps near pairs, or exclude these", "hardness")
            length = now / curvature
            q, gradient = q + length * direction, gradient + length * product


def qeq(positions: Any, electronegativity: Any, hardness: Any, box: BoxLike = None, *, total_charge: float = 0.0, correction: Any = None,
        start: Any = None, plan: Optional[Plan] = None, tolerance: float = 1e-8, max_iterations: int = 500, virial: bool = False,
        **options: Unpack[KeptOptions]) -> Equilibrium:
    """Charges q of the least energy sum chi q + 1/2 sum eta q^2 + 1/2 sum q phi(q) with a given sum, by conjugate gradients.

    positions          (n, 3), arrays of the host
    electronegativity  chi (n), energy / charge, in units of prefactor * charge / length
    hardness           eta (n), energy / charge^2, all positive: the second derivative by the particle's own charge
    box                as of Plan
    total_charge       sum of the charges
    correction         C for 1/2 q C q beside 1/r, as of damped near pairs: symmetric (n, n), or an object with @, as a sparse matrix. Its
                       forces are the caller's
    start              (n), charges to begin with. None: those of the plan, or without one what chi and eta alone give
    plan               a plan for these positions and this box; it is kept, and has the charges afterwards. None: one is made
    tolerance          RMS residual of the chemical potential over the RMS of eta q
    max_iterations     largest number of products with the potential
    virial             True: also the virial
    options            of Plan: accuracy, exclusions, prefactor, periodic, ...; always the FMM

    Settings are measured with the first guess and stay while charges are found. The charges found are measured if they differ by more than
    a tenth. They are found once more if that chooses other settings.
    """
    dtype = np.dtype(np.float64)
    x = numbers("positions", to_host("positions", positions), (None, 3), dtype)
    n = len(x)
    chi = numbers("electronegativity", to_host("electronegativity", electronegativity), (n,), dtype)
    eta = numbers("hardness", to_host("hardness", hardness), (n,), dtype)
    if not np.isfinite(chi).all():
        raise refuse("electronegativity", "one is not finite")
    if not (np.isfinite(eta).all() and (eta > 0).all()):
        raise refuse("hardness", "all must be positive and finite")
    if not np.isfinite(total_charge):
        raise refuse("total_charge", f"it is {total_charge!r}, it must be a finite number")
    if not tolerance > 0:
        raise refuse("tolerance", f"it is {tolerance!r}, it must be positive")
    if correction is not None and tuple(getattr(correction, "shape", ())) != (n, n):
        raise refuse("correction", f"it has the shape {getattr(correction, 'shape', None)}, it must be {n} x {n}")
    if options.get("method", "fmm") != "fmm":
        raise refuse("method", "charges are found by the FMM, whose potentials are derivatives of one energy, unlike the treecode's")
    if plan is not None and (options or box is not None):
        raise refuse("plan", "it has its own box and options: leave others out")
    if plan is not None and len(plan) != n:
        raise refuse("plan", f"it has {len(plan)} particles, and there are {n} positions")
    if n == 0:
        raise refuse("positions", "there are no particles")

    step: Optional[Step] = None

    def potential(charges: np.ndarray) -> np.ndarray:
        nonlocal step
        work.set_charges(charges, measure=False)
        step = work.step(x, step, energy=False, forces=False, potential=True, assign=False)
        return np.asarray(step.potential, dtype=np.float64)

    search = _Minimum(chi, eta, potential, correction)
    if start is None and plan is not None:
        start = plan.charges
    if start is None:
        q = search.without_interaction(float(total_charge))
    else:
        q = numbers("start", to_host("start", start), (n,), dtype)
        q = q + (total_charge - q.sum()) * search.shares
    if _rms(eta * q) <= _ROUNDING * _rms(chi):  # chi is the same of all, and there is no charge to divide: nothing to measure with
        q = np.zeros(n)
    if plan is None:
        work = Plan(x, q, box, **(options if q.any() else dict(options, measure=False)))
    else:
        work = plan
        work.set_charges(q, x, measure=None if q.any() else False)
    try:
        if work.info.method != "fmm":
            raise refuse("plan", "it is a treecode: charges are found by the FMM")
        for _ in range(_ROUNDS):
            work.assign(x)
            q = search.find(q, tolerance, search.iterations + max_iterations)
            before = _settings(work)
            work.set_charges(q, x, measure=None if q.any() else False)
            if _settings(work) == before:
                break
        final = work.step(x, potential=True, virial=virial, assign=True)
        phi = np.asarray(final.potential, dtype=np.float64)
        extra = search.extra(q)
        each = chi + eta * q + phi + extra
        mu = float(search.shares @ each)
        energy = float(chi @ q + 0.5 * (eta * q) @ q + 0.5 * extra @ q) + final.energy
        return Equilibrium(q, energy, final.forces, phi, final.virial, mu, _rms(each - mu) / (_rms(eta * q) or 1), search.iterations,
                           work.measured_error, work.info)
    finally:
        if plan is None:
            work.close()
