"""Charges of molten salt by charge equilibration with Gaussian charges: energy, forces, and the charges as atoms move along these.

216 atoms displaced from rock salt. Electronegativities and hardnesses are those of Rappe and Goddard (1991), to which a Gaussian's own
energy is added. Near Gaussians interact less than points do, erf(r / s) / r: the difference is a matrix of near pairs.
"""
import math

import numpy as np

import gmxfmm

PREFACTOR, EDGE = 14.399645, 16.92  # eV Angstrom / e^2; Angstrom
CHI, HARDNESS, WIDTH = {"Na": 2.843, "Cl": 8.564}, {"Na": 4.592, "Cl": 9.892}, {"Na": 1.66, "Cl": 1.02}  # eV / e, eV / e^2, Angstrom
OFF_DIAGONAL = 1 - np.eye(216)


def pairs(x, s):
    """What Gaussians have less than points, of nearest images: potential of a unit charge, and its slope over the distance."""
    d = x[:, None] - x[None]
    d -= EDGE * np.round(d / EDGE)
    r = np.sqrt((d**2).sum(axis=2)) + np.eye(len(x))
    less = -PREFACTOR * np.vectorize(math.erfc)(r / s) / r * OFF_DIAGONAL
    slope = -less / r + 2 * PREFACTOR / math.sqrt(math.pi) * np.exp(-((r / s) ** 2)) / (s * r) * OFF_DIAGONAL
    return less, d * (slope / r)[..., None]


def main():
    sites = np.argwhere(np.ones((6, 6, 6)))
    names = np.where(sites.sum(axis=1) % 2, "Cl", "Na")
    x = EDGE / 6 * sites + np.random.default_rng(1).normal(0, 0.25, sites.shape)
    chi, hardness, width = (np.array([table[name] for name in names]) for table in (CHI, HARDNESS, WIDTH))
    eta = hardness + PREFACTOR / (math.sqrt(math.pi) * width)
    s = np.sqrt(2 * (width[:, None] ** 2 + width[None] ** 2))

    # measured with these charges; those that are found differ from them, and are measured once more
    with gmxfmm.Plan(x, np.where(names == "Na", 0.5, -0.5), EDGE, accuracy=1e-6, prefactor=PREFACTOR) as plan:
        for step in range(5):
            less, slopes = pairs(x, s)
            found = gmxfmm.qeq(x, chi, eta, plan=plan, correction=less)  # from the charges of the step before
            q = found.charges
            forces = found.forces - np.einsum("ijd,i,j->id", slopes, q, q)
            if step:
                print(f"energy fell by {before - found.energy:.6f} eV, {0.5 * np.sum((forces + forces_before) * moved):.6f} by forces")
            before, forces_before, moved = found.energy, forces, 0.01 * forces / np.abs(forces).max()
            x = x + moved
            print(f"sodium {q[names == 'Na'].mean():.4f} e, spread {q[names == 'Na'].std():.4f}, sum {q.sum():.0e}: {found.iterations} products")
    print(f"relative error of Coulomb forces {found.measured_error:.1e}")


if __name__ == "__main__":
    main()
