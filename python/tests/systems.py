# SPDX-License-Identifier: LGPL-2.1-or-later
"""Systems of the tests, and slow sums to compare with."""
import math

import numpy as np


def rock_salt(edge):
    positions = np.argwhere(np.ones((edge, edge, edge))).astype(float)
    return positions, 1 - 2.0 * (positions.sum(axis=1) % 2)


def cloud(n):
    random = np.random.default_rng(7)
    return random.uniform(0, 1, (n, 3)), random.choice([-1.0, 1.0], n)


def direct(x, q, kappa=0.0, excluded=()):
    """Potential and field by the sum over pairs."""
    d = x[:, None, :] - x[None, :, :]
    r = np.sqrt((d**2).sum(axis=2)) + np.diag(np.full(len(x), np.inf))
    term = np.exp(-kappa * np.where(np.isinf(r), 0, r)) / r
    for i, j in excluded:
        term[i, j] = term[j, i] = 0
    slope = np.where(np.isinf(r), 0, term * (kappa + 1 / r) / r)
    return term @ q, np.einsum("ij,ijd,j->id", slope, d, q)


def direct_with_dipoles(x, q, mu):
    """Potential, field and its gradient (n, 3, 3) at all particles, by the sum over pairs (Stone 2013, chapter 3)."""
    n = len(x)
    r = x[:, None] - x
    d = np.linalg.norm(r, axis=-1) + np.eye(n)
    w, a, b, c = (f * (1 - np.eye(n)) / d**k for f, k in ((1, 1), (1, 3), (3, 5), (15, 7)))
    along = np.einsum("ijk,jk->ij", r, mu)
    field = np.einsum("ij,ijk->ik", q * a + along * b, r) - a @ mu
    both = np.einsum("jk,ijl->ijkl", mu, r)
    gradient = np.einsum("ij,kl->ikl", q * a + along * b, np.eye(3)) - np.einsum("ij,ijk,ijl->ikl", q * b + along * c, r, r)
    return w @ q + (along * a).sum(axis=1), field, gradient + np.einsum("ij,ijkl->ikl", b, both + both.swapaxes(2, 3))


def direct_at(places, x, q):
    """Potential and field there."""
    d = places[:, None, :] - x[None, :, :]
    r = np.sqrt((d**2).sum(axis=2))
    return (1 / r) @ q, np.einsum("ijd,ij,j->id", d, r**-3, q)


def scattered(random, n, edge):
    """n places in and about a cube of that edge, up to a thousand times as far away."""
    ways = random.standard_normal((n, 3))
    return edge * (0.5 + ways / np.linalg.norm(ways, axis=1)[:, None] * 10 ** random.uniform(-0.5, 3, (n, 1)))


def ewald_forces(x, q, edge):
    """Forces in a cube by Ewald's sums, to 1e-14 of those between neighbours: the real part within half an edge."""
    alpha = 12 / edge
    d = x[:, None, :] - x[None, :, :]
    d -= edge * np.round(d / edge)
    r = np.sqrt((d**2).sum(axis=2)) + np.diag(np.full(len(x), np.inf))
    with np.errstate(invalid="ignore"):
        slope = (np.vectorize(math.erfc)(alpha * r) / r + 2 * alpha / np.sqrt(np.pi) * np.exp(-((alpha * r) ** 2))) / r**2
    forces = np.einsum("ij,ijd,j,i->id", np.where(np.isinf(r), 0, slope), d, q, q)
    most = math.ceil(12 * alpha * edge / (2 * np.pi))
    waves = np.arange(-most, most + 1)
    across = np.exp(2j * np.pi / edge * x[:, :, None] * waves)  # of a particle, along each direction
    k = 2 * np.pi / edge * np.stack(np.meshgrid(waves, waves, waves, indexing="ij"))
    square = (k**2).sum(axis=0)
    square[most, most, most] = np.inf  # k = 0 has no force
    weight = 4 * np.pi / edge**3 * np.exp(-square / (4 * alpha**2)) / square
    n, size = len(x), len(waves)
    sheet = np.einsum("j,jx,jy->xyj", q, across[:, 0], across[:, 1]).reshape(-1, n)
    sums = (sheet @ across[:, 2]).reshape(size, size, size)
    for d in range(3):
        ofz = (weight * k[d] * np.conj(sums)).reshape(-1, size) @ across[:, 2].T
        forces[:, d] += q * np.einsum("jx,jy,xyj->j", across[:, 0], across[:, 1], ofz.reshape(size, size, n), optimize=True).imag
    return forces


def rms_error(a, reference):
    return np.sqrt(((a - reference) ** 2).sum() / (reference**2).sum())


def melt(edge, seed=1):
    """Ions about the sites of rock salt, at distance 1 of each other."""
    x, q = rock_salt(edge)
    return x + np.random.default_rng(seed).normal(0, 0.1, x.shape), q


def of_any_kind(kind, edge, random):
    """edge^3 charges in or about a cube of that edge."""
    n = edge**3
    x, q = rock_salt(edge)
    if kind == "melt":
        x += random.normal(0, 0.1, x.shape)
    elif kind == "one ion moved":
        x += random.uniform(0, 1, 3)
        x[random.integers(n)] += random.uniform(-1, 1, 3) * 10 ** random.uniform(-1.5, -0.5)
    elif kind == "cold crystal":
        x += random.uniform(0, 1, 3) + random.normal(0, 10 ** random.uniform(-3, -1.5), x.shape)
    elif kind == "cluster":
        x = random.uniform(0, edge, 3) + x * 10 ** random.uniform(-1.3, -0.3) + random.normal(0, 0.02, x.shape)
    elif kind == "charges of any size":
        x, q = x + random.normal(0, 0.15, x.shape), random.normal(0, 1, n)
    else:
        x = random.uniform(0, edge, (n, 3))
        if kind == "close pair":
            x[1] = x[0] + random.normal(0, 1, 3) * 10 ** random.uniform(-4, -2)
        elif kind == "dipoles":
            d = random.normal(0, 1, (n // 2, 3))
            d *= 10 ** random.uniform(-2, -0.7) / np.linalg.norm(d, axis=1)[:, None]
            x[1::2] = x[::2] + d
            q = np.tile([1.0, -1.0], n // 2)
        elif kind == "slab":
            x[:, 2] *= 10 ** random.uniform(-1.5, -0.3)
    return x, q


KINDS = ("melt", "gas", "one ion moved", "cold crystal", "cluster", "charges of any size", "close pair", "dipoles", "slab")
