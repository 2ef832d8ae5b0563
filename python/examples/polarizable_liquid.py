# SPDX-License-Identifier: LGPL-2.1-or-later
"""Polarizable water: molecular dynamics of the liquid of polarizable_water.py's model, and the mean dipole of its molecules.

Usage: polarizable_liquid.py [PICOSECONDS]     as many for equilibrium, for averages and at constant energy; else 0.1

216 rigid molecules are in a periodic box (tin foil), at the density 0.997 g/cm^3 and at 298 K by Langevin dynamics. One plan is kept for all
steps. Induced dipoles begin with those of earlier steps, extrapolated.
"""
import sys
from pathlib import Path

import numpy as np

import gmxfmm
from polarizable_water import ALPHA, CHARGES, DEBYE, EPSILON, MOLECULE, PREFACTOR, SIGMA

START = Path(__file__).resolve().parents[2] / "tests" / "data" / "water216.gro"  # liquid SPC water
DENSITY, TEMPERATURE, CUTOFF = 0.997, 298.0, 9.0  # g/cm^3, as of water; K; Angstrom, of Lennard-Jones
BOLTZMANN = 1.987204e-3  # kcal/mol/K
MASSES = np.array([15.9994, 1.008, 1.008, 0])  # of O, H, H, M
AMU = 1 / 418.4  # kcal/mol ps^2 / Angstrom^2
MASS = AMU * MASSES.sum()
BODY = MOLECULE - MASSES @ MOLECULE / MASSES.sum()  # its axes are the principal ones
INERTIA = AMU * MASSES @ ((BODY**2).sum(axis=1)[:, None] - BODY**2)
NEXT = np.array([4, -6, 4, -1])  # the next value of the cubic through the last four, latest first


def start():
    """Centres of mass, rotations and the box: molecules of SPC water, which is near to equilibrium, with this model's geometry."""
    lines = START.read_text().splitlines()
    box = 10 * float(lines[-1].split()[0])
    atoms = 10 * np.array([[float(line[20 + 8 * k:28 + 8 * k]) for k in range(3)] for line in lines[2:-1]]).reshape(-1, 3, 3)
    arms = atoms[:, 1:] - atoms[:, :1]
    arms -= box * np.round(arms / box)
    z, y = arms.sum(axis=1), np.cross(arms[:, 0], arms[:, 1])  # orthogonal, although the file has three digits only
    z, y = (axis / np.linalg.norm(axis, axis=1)[:, None] for axis in (z, -y))
    turns = np.stack([np.cross(y, z), y, z], axis=2)
    size = (len(atoms) * MASSES.sum() / (DENSITY * 0.602214)) ** (1 / 3)
    return atoms[:, 0] * size / box - turns @ BODY[0], turns, size


class Liquid:
    """Molecules that move. Velocities are of centres of mass, spins are angular momenta along a molecule's own axes."""

    def __init__(self, seed=1):
        self.random = np.random.default_rng(seed)
        self.centres, self.turns, self.box = start()
        self.n = n = len(self.centres)
        self.velocities, self.spins = np.zeros((n, 3)), np.zeros((n, 3))
        self.rub(np.inf)
        self.i, self.j = np.triu_indices(n, 1)
        inside = [(4 * m + a, 4 * m + b) for m in range(n) for a in range(4) for b in range(a)]
        self.charges, self.alpha = np.tile(CHARGES, n), np.tile([0, 0, 0, ALPHA], n)
        self.plan = gmxfmm.Plan(self.sites().reshape(-1, 3), self.charges, self.box, exclusions=inside, prefactor=PREFACTOR, order=14,
                                grid=(4, 4, 4), separation=1)
        self.error = self.plan.measured_error
        self.before = []  # induced dipoles of the last steps, along a molecule's own axes, with which they turn
        self.evaluate()

    def sites(self):
        return self.centres[:, None] + BODY @ self.turns.transpose(0, 2, 1)

    def evaluate(self):
        """Energies, forces and torques. The potential energy is that of Lennard-Jones which is zero at the cut-off, and so continuous."""
        n, sites = self.n, self.sites()
        guess = None
        if len(self.before) == len(NEXT):
            guess = np.zeros((n, 4, 3))
            guess[:, 3] = (self.turns @ np.tensordot(NEXT, self.before, 1)[:, :, None])[:, :, 0]
            guess = guess.reshape(-1, 3)
        found = gmxfmm.induce(sites.reshape(-1, 3), self.charges, self.alpha, plan=self.plan, start=guess, tolerance=1e-5)
        own = (found.dipoles.reshape(n, 4, 3)[:, 3, None] @ self.turns)[:, 0]
        self.before = [own] + self.before[:len(NEXT) - 1]
        self.dipoles, self.iterations = CHARGES @ BODY + own, found.iterations  # of molecules, along their axes

        r = sites[self.i, 0] - sites[self.j, 0]
        r -= self.box * np.round(r / self.box)
        square = np.einsum("pd,pd->p", r, r)
        near = np.flatnonzero(square < CUTOFF**2)
        r, square, i, j = r[near], square[near], self.i[near], self.j[near]
        sixth, end = (SIGMA**2 / square) ** 3, (SIGMA / CUTOFF) ** 6
        push = (24 * EPSILON * (2 * sixth**2 - sixth) / square)[:, None] * r
        forces = found.forces.reshape(n, 4, 3)
        for d in range(3):
            forces[:, 0, d] += np.bincount(i, push[:, d], n) - np.bincount(j, push[:, d], n)
        shift = 4 * EPSILON * (end**2 - end)
        self.potential = found.energy + float((4 * EPSILON * (sixth**2 - sixth) - shift).sum())
        # without the shift, and with pairs beyond the cut-off as of a uniform liquid (Allen and Tildesley, Computer Simulation of Liquids)
        tail = 8 / 3 * np.pi * n * n / self.box**3 * EPSILON * SIGMA**3 * (end**1.5 / 3 - end**0.5)
        self.whole = self.potential + len(near) * shift + tail
        self.distances = np.sqrt(square)
        self.forces = forces.sum(axis=1)
        self.torques = np.cross(BODY, forces @ self.turns).sum(axis=1)  # along a molecule's own axes

    def rub(self, amount):
        """Friction and noise for friction times time: Langevin's equation, exactly. Infinite: momenta are drawn anew."""
        keep = np.exp(-amount)
        for momenta, weight in ((self.velocities, 1 / MASS), (self.spins, INERTIA)):
            noise = np.sqrt((1 - keep**2) * BOLTZMANN * TEMPERATURE * weight) * self.random.normal(size=(self.n, 3))
            momenta[:] = keep * momenta + noise

    def turn(self, axis, time):
        """A free turn about one of the own axes."""
        a, b = (axis + 1) % 3, (axis + 2) % 3
        angle = time / INERTIA[axis] * self.spins[:, axis]
        c, s = np.cos(angle), np.sin(angle)
        for of, (p, q) in ((self.spins, (self.spins[:, a].copy(), self.spins[:, b].copy())),
                           (self.turns, (self.turns[..., a].copy(), self.turns[..., b].copy()))):
            wide = (slice(None),) + (None,) * (p.ndim - 1)
            of[..., a], of[..., b] = c[wide] * p + s[wide] * q, c[wide] * q - s[wide] * p

    def step(self, time, friction):
        """Friction, half a kick, motion, half a kick, friction (Bussi and Parrinello 2007). A free rotation is one about each axis in turn
        (Dullweber, Leimkuhler and McLachlan, J. Chem. Phys. 107, 5840 (1997)): symplectic and reversible.
        """
        self.rub(friction * time / 2)
        self.velocities += time / 2 / MASS * self.forces
        self.spins += time / 2 * self.torques
        self.centres += time * self.velocities
        for axis, part in ((0, 0.5), (1, 0.5), (2, 1), (1, 0.5), (0, 0.5)):
            self.turn(axis, part * time)
        self.evaluate()
        self.velocities += time / 2 / MASS * self.forces
        self.spins += time / 2 * self.torques
        self.rub(friction * time / 2)

    def kinetic(self):
        return 0.5 * MASS * float((self.velocities**2).sum()) + 0.5 * float((self.spins**2 / INERTIA).sum())


def mean(values, blocks=10):
    """The mean, and its standard error by averages of blocks."""
    parts = [np.mean(part) for part in np.array_split(values, blocks)]
    return float(np.mean(values)), float(np.std(parts, ddof=1) / np.sqrt(blocks))


def run(equilibrium, average, constant, time=0.002, report=None):
    """Three stretches, in ps. Gives what was found. report is called in each ps of averages, which end early where it returns True."""
    liquid = Liquid()
    for _ in range(round(equilibrium / time)):
        liquid.step(time, 5)
    rows, peaks, edges = [], 0, np.arange(2, 4, 0.05)
    for k in range(round(average / time)):
        liquid.step(time, 1)
        rows.append((DEBYE * np.linalg.norm(liquid.dipoles, axis=1).mean(), liquid.whole / liquid.n,
                     2 * liquid.kinetic() / (6 * liquid.n * BOLTZMANN), liquid.iterations))
        peaks = peaks + np.histogram(liquid.distances, edges)[0]
        if report is not None and (k + 1) % round(1 / time) == 0 and report((k + 1) * time, np.mean(rows, axis=0)):
            break
    rows = np.array(rows)
    uniform = len(rows) * liquid.n * (liquid.n - 1) / 2 * 4 / 3 * np.pi * (edges[1:]**3 - edges[:-1]**3) / liquid.box**3
    energies = []
    for _ in range(round(constant / time)):
        liquid.step(time, 0)
        energies.append((liquid.potential / liquid.n, (liquid.potential + liquid.kinetic()) / liquid.n))
    potential, total = np.array(energies).T
    names = ("dipole_debye", "energy_kcal_mol", "temperature_kelvin", "iterations")
    return {**{name: mean(column) for name, column in zip(names, rows.T)}, "molecules": liquid.n, "box_angstrom": liquid.box,
            "time_step_ps": time, "ps": [equilibrium, len(rows) * time, constant], "force_error_of_charges": liquid.error,
            "g_oo_peak": [float(edges[np.argmax(peaks / uniform)] + 0.025), float((peaks / uniform).max())],
            "constant_energy": {"potential_spread": float(np.std(potential)), "total_spread": float(np.std(total)),
                                "total_drift_per_ps": float(np.polyfit(time * np.arange(len(total)), total, 1)[0])}}


def main():
    length = float(sys.argv[1]) if len(sys.argv) > 1 else 0.1
    found = run(length, length, length)
    print("mean dipole of a molecule {:.3f} +- {:.3f} D; {:.3f} by itself".format(*found["dipole_debye"], DEBYE * np.linalg.norm(CHARGES @ MOLECULE)))
    print("energy of a molecule {:.3f} +- {:.3f} kcal/mol, at {:.1f} K".format(*found["energy_kcal_mol"], found["temperature_kelvin"][0]))
    print("g_OO: first peak {1:.2f} at {0:.3f} Angstrom".format(*found["g_oo_peak"]))
    print("at constant energy, kcal/mol a molecule: spread of potential energy {potential_spread:.6f}, of total energy {total_spread:.6f},"
          " drift {total_drift_per_ps:.1e} in 1 ps".format(**found["constant_energy"]))
    print("iterations a step: {:.2f}".format(found["iterations"][0]))


if __name__ == "__main__":
    main()
