#!/usr/bin/env python3
"""A pair list for Lennard-Jones alone is long enough: while it grows old, the pressure is that of a list that misses nothing.

Two runs from one start, one with the list that is chosen for 100 steps and one with a list that nothing leaves in that time, stay
together for so long: their difference is what the first list misses. It always has one sign, so its mean over the list's life is
what a long run would have.
"""
import re

from harness import FMM, changed, main, mean, need, read_log, water, work_folder

gmx = need("GMXFMM_GMX")

BOUND = 0.5  # bar: verlet-buffer-pressure-tolerance of GROMACS 2026.3, and of the patch for 2022.5
LIFE = 100   # steps of 2 fs


def pressures(folder, system, mdp, name):
    gmx.grompp(folder, mdp, system, name=name)
    gmx.mdrun(folder, name=name)
    rows = gmx.energies(folder, ["Pressure", "LJ (SR)"], name=name)
    return [row["Pressure"] for row in rows], [row["LJ (SR)"] for row in rows]


def test(checks):
    for rvdw in (0.85, 1.0):
        folder = work_folder(f"rvdw-{rvdw}")
        system = water(gmx, folder, (2, 2, 2))
        base = changed(system.mdp, nsteps=LIFE - 1, dt=0.002, rcoulomb=rvdw, rvdw=rvdw, nstlist=LIFE, tcoupl="V-rescale", tc_grps="System",
                       tau_t=1, ref_t=300, nsttcouple=100, nstcalcenergy=1, nstenergy=1, nstcomm=100, **FMM)
        # (an atom moves by 0.1 nm in that time)
        complete, complete_lj = pressures(folder, system, changed(base, verlet_buffer_tolerance=-1, rlist=rvdw + 0.45), "complete")
        chosen, chosen_lj = pressures(folder, system, base, "chosen")
        radius = re.search(r"updated every +100 steps?, buffer +(\S+) nm", read_log(folder, "chosen"))
        checks.that(radius is not None and float(radius.group(1)) > 0, f"rvdw {rvdw}: a list for {LIFE} steps has a buffer")
        error = mean(a - b for a, b in zip(chosen, complete))
        checks.below(f"rvdw {rvdw}: pressure, mean error of a list of buffer {radius.group(1) if radius else '?'} nm", abs(error), BOUND, "bar",
                     "what the list is made for")
        without, without_lj = pressures(folder, system, changed(base, verlet_buffer_tolerance=-1, rlist=rvdw), "without")
        missing = mean(a - b for a, b in zip(without, complete))
        checks.that(missing > 2 * BOUND * (rvdw < 1), f"rvdw {rvdw}: without a buffer the error is {missing:.2f} bar, which this test sees")
        print(f"      Lennard-Jones, kJ/mol off on average: {mean(a - b for a, b in zip(chosen_lj, complete_lj)):.3f}, without a buffer "
              f"{mean(a - b for a, b in zip(without_lj, complete_lj)):.3f}")


main(test)
