#!/usr/bin/env python3
"""Multiple time stepping with the FMM in level 2 moves the atoms as with PME there, and keeps the energy."""
from harness import FMM, TIGHT, changed, main, need, read_trr, rms_distance, slope, water, work_folder

gmx_d = need("GMXFMM_GMX_D")

STEPS = 2000
ATOMS = 648


def test(checks):
    folder = work_folder()
    system = water(gmx_d, folder)
    base = changed(system.mdp, dt=0.001, nsteps=STEPS, nstlist=10, verlet_buffer_tolerance=-1, rlist=0.92, dispcorr="no", nstxout=50,
                   nstvout=50, nstenergy=20, nstcalcenergy=20)
    levels = {"mts": "yes", "mts-level2-factor": "2", "mts-level2-forces": "longrange-nonbonded"}
    # Longrange-nonbonded is all of FMM but only the mesh part of PME: with nonbonded in level 2 too, both have the same there.
    same = {**levels, "mts-level2-forces": "longrange-nonbonded nonbonded", "nsteps": "100"}
    frames, energies = {}, {}
    for name, settings in (("tight", {**TIGHT, **same}), ("fine", {**FMM, "fmm-accuracy": "1e-6", **same}), ("default", {**FMM, **levels}),
                           ("once", FMM)):
        gmx_d.grompp(folder, {**base, **settings}, system, name=name)
        gmx_d.mdrun(folder, name=name)
        frames[name] = read_trr(f"{folder}/{name}.trr")
        energies[name] = gmx_d.energies(folder, ["Total Energy"], name=name)
    for index, limit in ((1, 1e-6), (2, 1e-5)):
        fine, tight = frames["fine"][index], frames["tight"][index]
        checks.below(f"positions after {fine.step} steps, RMS difference from tight PME with the same levels",
                     rms_distance(fine.x, tight.x, fine.box), limit, "nm",
                     "force errors of 1e-6 move an atom by less than 1e-7 nm in 50 fs; chaos multiplies that by ten in 50 fs")
    drift = {}
    for name in ("default", "once"):
        rows = energies[name]
        drift[name] = abs(slope([r["Time"] for r in rows], [r["Total Energy"] / ATOMS for r in rows]))
    checks.below(f"drift per atom ({drift['once']:.1e} without levels)", drift["default"], drift["once"] + 2e-3, "kJ/mol/ps",
                 "less than 1 kT per atom and ns above that of single stepping")


main(test)
