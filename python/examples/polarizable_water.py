# SPDX-License-Identifier: LGPL-2.1-or-later
"""Polarizable water: the dimer of least energy of Dang and Chang's rigid model (J. Chem. Phys. 106, 8149 (1997)).

A molecule has a Lennard-Jones site at oxygen, and charges at its hydrogens and at a site M on their bisector. There it is polarizable. Its
sites do not act on each other. Forces on all sites, the induced dipole included, turn and move the molecules until they are at rest.
"""
import numpy as np

import gmxfmm

PREFACTOR, DEBYE = 332.06371, 4.80320  # kcal/mol Angstrom / e^2; of an e Angstrom
SIGMA, EPSILON, ALPHA, BOND, ANGLE, TO_M = 3.234, 0.1825, 1.444, 0.9572, np.radians(104.52), 0.215
CHARGES = np.array([0, 0.519, 0.519, -1.038])  # of O, H, H, M
MOLECULE = np.array([[0, 0, 0], [BOND * np.sin(ANGLE / 2), 0, BOND * np.cos(ANGLE / 2)], [-BOND * np.sin(ANGLE / 2), 0, BOND * np.cos(ANGLE / 2)],
                     [0, 0, TO_M]])
INSIDE = [(4 * m + a, 4 * m + b) for m in range(2) for a in range(4) for b in range(a)]


def turn(vector):
    """The matrix of a rotation about a vector by its length."""
    x, y, z = vector
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.linalg.norm(vector) or 1e-300
    return np.eye(3) + np.sin(angle) / angle * cross + (1 - np.cos(angle)) / angle**2 * cross @ cross


def evaluate(x, dipoles):
    """Energy and forces of all sites, and induced dipoles."""
    found = gmxfmm.induce(x, np.tile(CHARGES, 2), np.tile([0, 0, 0, ALPHA], 2), exclusions=INSIDE, prefactor=PREFACTOR, measure=False, start=dipoles)
    r = x[4] - x[0]
    sixth = (SIGMA**2 / (r @ r)) ** 3
    push = 24 * EPSILON * (2 * sixth**2 - sixth) / (r @ r) * r
    forces = found.forces
    forces[0] -= push
    forces[4] += push
    return found.energy + 4 * EPSILON * (sixth**2 - sixth), forces, found.dipoles


def main():
    x = np.concatenate([MOLECULE @ turn([0.3, 0.5, 0]).T, MOLECULE @ turn([1.2, 0.9, 0.4]).T + [2.2, 0.2, 1.9]])
    dipoles, pace, speed = None, 0.02, np.zeros((4, 3))  # of each molecule: moving and turning
    energy, forces, dipoles = evaluate(x, dipoles)
    for step in range(600):
        arms = x - np.repeat(x[[0, 4]], 4, axis=0)
        torques = np.cross(arms, forces)
        pull = np.concatenate([forces.reshape(2, 4, 3).sum(axis=1), torques.reshape(2, 4, 3).sum(axis=1)])
        if np.abs(pull).max() < 1e-4:
            break
        if np.vdot(pull, speed) < 0:  # uphill: begins anew, as FIRE does (Bitzek et al. 2006)
            speed, pace = np.zeros((4, 3)), pace / 2
        else:
            speed = 0.9 * speed + 0.1 * pull * np.linalg.norm(speed) / np.linalg.norm(pull)
            pace = min(1.1 * pace, 0.06)
        speed = speed + pace * pull
        for m in range(2):
            own = slice(4 * m, 4 * m + 4)
            x[own] = arms[own] @ turn(pace * speed[2 + m]).T + x[4 * m] + pace * speed[m]
        energy, forces, dipoles = evaluate(x, dipoles)
    moments = (np.tile(CHARGES, 2)[:, None] * x + dipoles).reshape(2, 4, 3).sum(axis=1)
    print(f"{step} steps; dipole of a molecule by itself {DEBYE * np.linalg.norm(CHARGES @ MOLECULE):.3f} D")
    print(f"dimer: energy {energy:.4f} kcal/mol, O-O {np.linalg.norm(x[4] - x[0]):.4f} Angstrom")
    print("dipoles of its molecules {:.3f} and {:.3f} D".format(*sorted(DEBYE * np.linalg.norm(moments, axis=1))))


if __name__ == "__main__":
    main()
