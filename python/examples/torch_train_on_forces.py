# SPDX-License-Identifier: LGPL-2.1-or-later
"""A small model is trained on energies and forces of clusters of ions, with and without a long-range part.

The set is made here: two cations and two anions up to 1.2 nm apart, with charges of 0.8 e and a repulsion. The model has a network for pairs
within 0.5 nm, and with the long-range part a charge, which it has to find. A loss of forces wants second derivatives of the energy.
"""
import numpy as np
import torch

from gmxfmm.torch import Coulomb

PREFACTOR, CUTOFF, CHARGE = 138.935458, 0.5, 0.8  # kJ/mol nm / e^2; nm; e
SIGNS = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
FIRST, SECOND = torch.triu_indices(4, 4, 1)


def clusters(number, random):
    """Places of ions of which none are nearer than 0.25 nm."""
    found = []
    while len(found) < number:
        x = random.uniform(0, random.uniform(0.4, 1.2), (4, 3))
        if np.linalg.norm(x[FIRST] - x[SECOND], axis=1).min() > 0.25:
            found.append(x)
    return torch.tensor(np.array(found))


def distances(x):
    return (x[:, FIRST] - x[:, SECOND]).norm(dim=2)


def reference(x):
    """Energies and forces (kJ/mol, nm) by sums over pairs."""
    x = x.clone().requires_grad_()
    r = distances(x)
    energy = (PREFACTOR * CHARGE**2 * SIGNS[FIRST] * SIGNS[SECOND] / r + 5e4 * torch.exp(-r / 0.03)).sum(dim=1)
    return energy.detach(), -torch.autograd.grad(energy.sum(), x)[0]


class Model(torch.nn.Module):
    def __init__(self, long_range):
        super().__init__()
        self.pairs = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
        self.charge = torch.nn.Parameter(torch.tensor(0.3, dtype=torch.float64)) if long_range else None
        self.coulomb = Coulomb(prefactor=PREFACTOR, measure=False, accuracy=1e-6)

    def forward(self, x):
        r = distances(x)
        kinds = (SIGNS[FIRST] * SIGNS[SECOND]).expand_as(r)
        within = torch.clamp(1 - (r / CUTOFF) ** 2, min=0) ** 3
        energy = (100 * within * self.pairs(torch.stack([4 * r - 1, kinds], dim=2))[..., 0]).sum(dim=1)
        return energy if self.charge is None else energy + self.coulomb(x, (self.charge * SIGNS).expand(len(x), 4))


def loss_of(model, x, energies, forces, graph):
    x = x.clone().requires_grad_()
    energy = model(x)
    slope, = torch.autograd.grad(energy.sum(), x, create_graph=graph)
    return ((energy - energies) ** 2).mean() / energies.var() + ((slope + forces) ** 2).mean() / forces.var()


def main():
    torch.set_num_threads(1)  # the arrays are small
    random = np.random.default_rng(1)
    x, others = clusters(16, random), clusters(16, random)
    known, unseen = reference(x), reference(others)
    for long_range in (True, False):
        torch.manual_seed(1)
        model = Model(long_range)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=50, history_size=30, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, x, *known, True)
            loss.backward()
            return loss

        before = loss_of(model, x, *known, False).item()
        optimizer.step(closure)
        losses = [loss_of(model, at, *of, False).item() for at, of in ((x, known), (others, unseen))]
        print(f"{'with' if long_range else 'without'} the long-range part: loss {before:.3g} to {losses[0]:.2e}, of other clusters {losses[1]:.2e}"
              + (f", charge {abs(model.charge.item()):.4f} e" if long_range else ""))


if __name__ == "__main__":
    main()
