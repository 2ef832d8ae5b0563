"""A plan stepped in a loop: ions of one charge in a neutralising background, at constant energy (velocity Verlet)."""
import numpy as np

import gmxfmm

EDGE, IONS, TIME_STEP, STEPS = 10.0, 512, 0.02, 100

random = np.random.default_rng(1)
x = (np.argwhere(np.ones((8, 8, 8))) + 0.5) * EDGE / 8 + random.normal(0, 0.15, (IONS, 3))
v = random.normal(0, 0.1, (IONS, 3))
v -= v.mean(axis=0)

# measured once, here; ions are put into cells anew every 5 steps, in which they move a twentieth of their distance
with gmxfmm.Plan(x, np.ones(IONS), EDGE, accuracy=1e-5, assign_every=5) as plan:
    step = plan.step(x)
    energies = []
    for _ in range(STEPS):
        v += 0.5 * TIME_STEP * step.forces
        x += TIME_STEP * v
        plan.step(x, step)  # the arrays of the step before are written to again
        v += 0.5 * TIME_STEP * step.forces
        energies.append((0.5 * (v**2).sum() + step.energy, step.energy))
    total, potential = np.array(energies).T
    print(f"order {plan.info.order}, cells {plan.info.grid}, error {plan.measured_error:.1e}")
    print(f"potential energy from {potential[0]:.3f} to {potential[-1]:.3f}")
    print(f"total energy: spread {np.ptp(total):.2e}")
