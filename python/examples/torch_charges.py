"""A fit of charges by gradient with PyTorch: those of three-site water, from energies of droplets alone.

The function has the derivative by the charges, which is the potential; here they belong to two parameters.
"""
import numpy as np
import torch

from gmxfmm.torch import Coulomb

MOLECULES, DROPLETS, TRUE = 27, 8, (-0.82, 0.41)


def droplets():
    """Positions (droplets, atoms, 3) in nm: rigid molecules in a jittered lattice, turned at random."""
    random = np.random.default_rng(1)
    molecule = np.array([[0, 0, 0], [0.1, 0, 0], [-0.0333, 0.0943, 0]])
    found = []
    for _ in range(DROPLETS):
        sites = 0.31 * np.argwhere(np.ones((3, 3, 3))) + random.normal(0, 0.01, (MOLECULES, 3))
        turns = np.linalg.qr(random.normal(size=(MOLECULES, 3, 3)))[0]
        found.append((sites[:, None] + np.einsum("ad,mde->mae", molecule, turns)).reshape(-1, 3))
    return torch.tensor(np.array(found))


def main():
    x = droplets()
    first = 3 * np.arange(MOLECULES)
    pairs = np.concatenate([np.stack([first + i, first + j], axis=1) for i, j in ((0, 1), (0, 2), (1, 2))])
    coulomb = Coulomb(accuracy=1e-6, prefactor=138.935458, exclusions=pairs)  # kJ/mol, nm, e

    def energies(oxygen, hydrogen):
        return coulomb(x, torch.stack([oxygen, hydrogen, hydrogen]).repeat(DROPLETS, MOLECULES))

    wanted = energies(*torch.tensor(TRUE, dtype=torch.float64)).detach()
    charges = torch.tensor([-0.5, 0.1], dtype=torch.float64, requires_grad=True)
    fit = torch.optim.LBFGS([charges], max_iter=100, line_search_fn="strong_wolfe", tolerance_grad=1e-9, tolerance_change=1e-12)

    def misfit():
        fit.zero_grad()
        found = ((energies(*charges) - wanted) ** 2).mean() / (wanted**2).mean()
        found.backward()
        return found

    fit.step(misfit)
    print("charges found:", ", ".join(f"{charge:.4f}" for charge in charges.tolist()), "true:", TRUE)
    print(f"plans made: {len(coulomb.batch.plans)}")


if __name__ == "__main__":
    main()
