#!/usr/bin/env python3
"""PLUMED beside FMM: what it adds to forces and pressure arrives as it does with PME, at the atoms where they are.

GROMACS 2026 can load PLUMED, 2022.5 only with PLUMED's patch. In its place stands plumed_kernel.c, a spring between two atoms.
"""
import os
import shutil
import subprocess

from harness import FMM, HERE, changed, main, need, read_trr, skip, water, work_folder

gmx = need("GMXFMM_GMX")

STIFFNESS = 1000  # kJ/mol/nm^2, as in plumed_kernel.c
FIRST, SECOND = 0, 3
STEPS = 20


def spring(frame):
    """The forces on all atoms, flat."""
    forces = [0.0] * len(frame.x)
    for i in range(3):
        apart = frame.x[3 * SECOND + i] - frame.x[3 * FIRST + i]
        forces[3 * FIRST + i], forces[3 * SECOND + i] = STIFFNESS * apart, -STIFFNESS * apart
    return forces


def test(checks):
    if "-plumed" not in gmx.run(["mdrun", "-h"], "/tmp", log=False)[1]:
        skip("this gmx has no PLUMED")
    compiler = shutil.which("cc") or skip("there is no C compiler here")
    folder = work_folder()
    kernel = os.path.join(folder, "kernel.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", kernel, os.path.join(HERE, "plumed_kernel.c")], check=True)
    with open(os.path.join(folder, "plumed.dat"), "w") as file:
        file.write("# the kernel of this test does not read it\n")
    system = water(gmx, folder)
    # The pair list is made anew at each step: so a rerun has the atoms in the same cells
    base = changed(system.mdp, nsteps=STEPS, nstlist=1, verlet_buffer_tolerance=-1, rcoulomb=0.75, rvdw=0.75, rlist=0.8, nstxout=1,
                   nstvout=1, nstfout=1, nstenergy=1, nstcalcenergy=1, tcoupl="no", pcoupl="no")
    added = {}
    for method, settings in (("fmm", FMM), ("pme", {})):
        name = method + "-biased"
        gmx.grompp(folder, {**base, **settings}, system, name=name)
        gmx.mdrun(folder, "-plumed", "plumed.dat", name=name, env={"PLUMED_KERNEL": kernel})
        biased = read_trr(f"{folder}/{name}.trr")
        gmx.grompp(folder, {**base, **settings}, system, name=method)
        gmx.mdrun(folder, "-rerun", name + ".trr", name=method)
        unbiased = read_trr(f"{folder}/{method}.trr")
        checks.that(len(biased) == len(unbiased) == STEPS + 1, f"{method}: {len(biased)} frames, {len(unbiased)} computed again without PLUMED")
        worst = max(abs(with_it - without - of_spring) for a, b in zip(biased, unbiased)
                    for with_it, without, of_spring in zip(a.f, b.f, spring(a)))
        largest = max(map(abs, spring(biased[0])))
        checks.below(f"{method}: forces that PLUMED adds, up to {largest:.0f} kJ/mol/nm: largest difference from the spring's", worst,
                     1e-3 * largest, "kJ/mol/nm", "single-precision sums")

        gmx.grompp(folder, {**base, **settings, "nsteps": 0}, system, name=method)
        gmx.mdrun(folder, name=method)
        pressures = [gmx.energies(folder, ["Pressure", "Potential"], name=which)[0] for which in (name, method)]
        checks.that(pressures[0]["Potential"] == pressures[1]["Potential"],
                    f"{method}: the potential energy at the start is that without PLUMED, {pressures[0]['Potential']}")
        added[method] = pressures[0]["Pressure"] - pressures[1]["Pressure"]
    checks.that(abs(added["pme"]) > 50, f"the spring changes the pressure, by {added['pme']:.1f} bar with PME")
    checks.below(f"the same with FMM, {added['fmm']:.1f} bar: difference", abs(added["fmm"] - added["pme"]), 0.5, "bar",
                 "single-precision sums of a pressure of some 1000 bar")


main(test)
