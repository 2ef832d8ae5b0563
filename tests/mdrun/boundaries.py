#!/usr/bin/env python3
"""A net charge (with the uniform background), vacuum surroundings and a permittivity give what tight PME gives.

The pressure of a net charge or of vacuum surroundings is not held against PME: GROMACS's PME leaves out the virial of the
background, so that its pressure changes with the cut-off, and that of the surface term. The test is the virial theorem instead:
the Coulomb energy goes with one over the length, so the Coulomb pressure is E/3V, whatever the boundary.
"""
from harness import (BAR_PER_KJ_MOL_NM3, FMM, NO_COULOMB, TIGHT, changed, compare, main, make_frames, need, read_trr, single_points, water,
                     work_folder)

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), need("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")

CASES = [
    # what, sodium ions, setting of FMM, setting of PME, whether PME has the whole pressure
    ("net charge +4", 4, {}, {}, False),
    ("vacuum boundary", 0, {"fmm-boundary": "vacuum"}, {"epsilon-surface": "1"}, False),
    # 4 is a permittivity that neither limit has: a wrong factor cannot hide
    ("epsilon-r 4", 0, {"epsilon-r": "4"}, {"epsilon-r": "4"}, True),
]


def virial_theorem(checks, what, folder, system, settings, trajectory, time):
    # Without constraints, whose forces would answer to the Coulomb forces, and with so short a step that the kinetic energy,
    # a mean of half a step before and after, does not depend on the forces.
    system.mdp = changed(system.mdp, define="-DFLEXIBLE", constraints="none", dt=1e-6)
    fmm = single_points(gmx_d, folder, system, {**FMM, **settings, "fmm-accuracy": "1e-6"}, trajectory, [time], "virial")[0]
    nothing = single_points(gmx_d, folder, system, NO_COULOMB, trajectory, [time], "virial-none")[0]
    found = fmm.energy["Pressure"] - nothing.energy["Pressure"]
    expected = fmm.coulomb() / (3 * read_trr(trajectory)[0].volume()) * BAR_PER_KJ_MOL_NM3
    checks.below(f"{what}: Coulomb pressure {found:.3f} bar, E/3V {expected:.3f} bar, difference", abs(found - expected), 0.02, "bar",
                 "the accuracy, 1e-6, of this pressure, and what the step leaves")


def test(checks):
    for what, sodium, ours, theirs, pressure_known in CASES:
        folder = work_folder(what.split()[0])
        system = water(gmx, folder, (1, 1, 2), sodium)
        trajectory, times = make_frames(gmx, folder, system)
        reference = single_points(stock_d, folder, system, {**TIGHT, **theirs}, trajectory, times, "tight")
        nothing = single_points(stock_d, folder, system, NO_COULOMB, trajectory, times, "none")
        default = single_points(gmx, folder, system, {**FMM, **ours}, trajectory, times, "fmm")
        compare(checks, f"{what}, default accuracy, mixed precision", default, reference, nothing, 4e-4,
                pressure=1.0 if pressure_known else None)
        fine = single_points(gmx_d, folder, system, {**FMM, **ours, "fmm-accuracy": "1e-6"}, trajectory, times[:1], "fine")
        compare(checks, f"{what}, fmm-accuracy 1e-6, double precision", fine, reference[:1], nothing[:1], 1e-6, 1e-5,
                pressure=0.01 if pressure_known else None)
        virial_theorem(checks, what, folder, system, ours, trajectory, times[0])


main(test)
