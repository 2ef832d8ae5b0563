"""Steps on a GPU with arrays of CuPy: nothing is copied to the host but the energies that are printed."""
import cupy
import numpy as np

import gmxfmm

EDGE = 20
sites = np.argwhere(np.ones((EDGE, EDGE, EDGE)))
x = cupy.asarray(sites + np.random.default_rng(1).normal(0, 0.1, sites.shape), dtype=cupy.float32)
q = cupy.asarray(1 - 2 * (sites.sum(axis=1) % 2), dtype=cupy.float32)

with gmxfmm.Plan(x, q, EDGE, accuracy=1e-4) as plan:
    step = plan.step(x)
    before = step.energy.copy()
    for _ in range(20):  # down the slope
        x += 0.01 * step.forces
        plan.step(x, step)
    step.check()
    print(f"energy from {float(before):.1f} to {float(step.energy):.1f}, by {plan.info.num_executes} steps in {plan.info.bytes / 1e6:.0f} MB")
