# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pairs of near particles, with all images, for what near pairs have beside 1/r."""
from __future__ import annotations

import itertools
from typing import NamedTuple, Optional, Tuple

import numpy as np

from ._inputs import lattice


class Pairs(NamedTuple):
    """Particles i and j, each pair from both sides, and the vectors r (pairs, 3) from j to i."""

    i: np.ndarray
    j: np.ndarray
    r: np.ndarray


def near_pairs(x: np.ndarray, box: Optional[np.ndarray], periodic: Tuple[int, int, int], cutoff: float,
               exclusions: Tuple[Optional[np.ndarray], Optional[np.ndarray]]) -> Pairs:
    """All pairs within a distance, less the nearest image of each that is excluded."""
    n = len(x)
    places, which = x, np.arange(n)
    if box is not None:  # particles in the box, and their images as far as the distance about it
        vectors = lattice(box, periodic)
        inverse = np.linalg.inv(vectors)
        images = np.array(periodic, dtype=bool)
        fraction = x @ inverse
        fraction = np.where(images, fraction - np.floor(fraction), fraction)
        margin = cutoff * np.linalg.norm(inverse, axis=0)
        most = np.where(images, np.ceil(margin), 0).astype(int)
        x = fraction @ vectors
        all_places, all_which = [x], [which]
        for shift in itertools.product(*(range(-m, m + 1) for m in most)):
            if any(shift):
                at = fraction + shift
                keep = ((at > -margin) & (at < 1 + margin) | ~images).all(axis=1)
                all_places.append(at[keep] @ vectors)
                all_which.append(which[keep])
        places, which = np.concatenate(all_places), np.concatenate(all_which)
    # bins as wide as the distance, numbered along the last direction first, so that three of a row stand together
    low = places.min(axis=0) - cutoff
    bins = np.floor((places - low) / cutoff).astype(np.int64)
    size = bins.max(axis=0) + 2
    number = (bins[:, 0] * size[1] + bins[:, 1]) * size[2] + bins[:, 2]
    order = np.argsort(number, kind="stable")
    number = number[order]
    found = []
    for a, b in itertools.product((-1, 0, 1), repeat=2):
        middle = ((bins[:n, 0] + a) * size[1] + bins[:n, 1] + b) * size[2] + bins[:n, 2]
        start, end = np.searchsorted(number, middle - 1, "left"), np.searchsorted(number, middle + 1, "right")
        count = end - start
        i = np.repeat(np.arange(n), count)
        k = order[np.repeat(start - np.cumsum(count) + count, count) + np.arange(count.sum())]
        r = x[i] - places[k]
        near = (np.einsum("pd,pd->p", r, r) < cutoff * cutoff) & (i != k)
        found.append((i[near], which[k[near]], r[near]))
    i, j, r = (np.concatenate([part[k] for part in found]) for k in range(3))
    rows, others = exclusions
    if rows is None or others is None:
        return Pairs(i, j, r)
    out = np.repeat(np.arange(n), np.diff(rows)) * n + others
    pair, distance = i * n + j, np.linalg.norm(r, axis=1)
    keep = ~np.isin(pair, out)
    same, inverse_of = np.unique(pair, return_inverse=True)
    nearest = np.full(len(same), np.inf)
    np.minimum.at(nearest, inverse_of, distance)
    keep |= distance > nearest[inverse_of] * (1 + 1e-9)
    return Pairs(i[keep], j[keep], r[keep])
