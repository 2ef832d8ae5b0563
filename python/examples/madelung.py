"""Madelung's constant of rock salt: 8 x 8 x 8 ions at distance 1."""
import numpy as np

import gmxfmm

positions = np.argwhere(np.ones((8, 8, 8))).astype(float)
charges = 1 - 2.0 * (positions.sum(axis=1) % 2)
result = gmxfmm.solve(positions, charges, box=8, accuracy=1e-8)
print("Madelung's constant:", -2 * result.energy / len(charges))
print("largest force:", abs(result.forces).max(), "at order", result.info["order"])
