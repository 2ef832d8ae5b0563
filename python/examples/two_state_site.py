"""A site of three particles that goes from charges A to B, as in lambda dynamics: dE/dlambda of a step, and the energy between."""
import numpy as np

import gmxfmm

random = np.random.default_rng(1)
x = np.argwhere(np.ones((8, 8, 8))) + random.normal(0, 0.1, (512, 3))
q = np.tile([1.0, -1.0], 256)
site, state_a, state_b = [100, 101, 102], np.array([1.0, -1.0, 1.0]), np.array([0.6, -0.4, 0.3])

with gmxfmm.Plan(x, q, 8, accuracy=1e-5) as plan:
    plan.set_charge_derivatives([(site, state_b - state_a)])
    energies, slopes = [], []
    for fraction in (0.0, 0.5, 1.0):
        q[site] = (1 - fraction) * state_a + fraction * state_b
        plan.set_charges(q)
        step = plan.step(x, charge_gradient=True)
        energies.append(step.energy)
        slopes.append(step.charge_gradient[0])
        print(f"lambda {fraction}: energy {energies[-1]:.6f}, dE/dlambda {slopes[-1]:.6f}")
    # the energy is quadratic in the charges: the mean of the slopes at both ends is what there is between them
    print(f"from A to B: {energies[-1] - energies[0]:.8f} by energies, {0.5 * (slopes[0] + slopes[-1]):.8f} by slopes")
