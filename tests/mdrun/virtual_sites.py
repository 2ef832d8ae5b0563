#!/usr/bin/env python3
"""Hydrogens as virtual sites and steps of 4 fs: a protein in water in a dodecahedron moves as with PME.

The forces of this system are checked in against_pme.py; here it is its motion: the first steps against tight PME, then 8 ps.
"""
from harness import FMM, TIGHT, changed, main, mean, need, read_trr, regression, rms_distance, slope, work_folder

gmx = need("GMXFMM_GMX")

STEPS = 2000
ATOMS = 923


def test(checks):
    folder = work_folder()
    system = regression("complex/nbnxn_vsite")
    base = changed(system.mdp, dt=0.004, nsteps=STEPS, nstenergy=20, nstcalcenergy=20, nstxout=25, nstvout=0, nstfout=0, pcoupl="no",
                   tau_t=0.5, ld_seed=7)
    energies, frames = {}, {}
    for method, extra in (("pme", {}), ("fmm", FMM), ("tight", TIGHT)):
        gmx.grompp(folder, {**base, **extra, "nsteps": 25 if method == "tight" else STEPS}, system, name=method)
        gmx.mdrun(folder, name=method)
        energies[method] = gmx.energies(folder, ["Temperature", "Conserved En."], name=method)
        frames[method] = read_trr(f"{folder}/{method}.trr")
    checks.that(len(energies["fmm"]) == STEPS // 20 + 1, "FMM ran to the end")
    moved = rms_distance(frames["tight"][1].x, frames["tight"][0].x, frames["tight"][0].box)
    apart = {m: rms_distance(frames[m][1].x, frames["tight"][1].x, frames["tight"][0].box) for m in ("pme", "fmm")}
    checks.below(f"positions after 0.1 ps, in which the atoms moved by {moved:.3f} nm: difference from tight PME ({apart['pme']:.1e} by PME)",
                 apart["fmm"], 1e-3, "nm", "the force error, and chaos growing it")
    temperature = {m: mean(r["Temperature"] for r in energies[m][STEPS // 40:]) for m in ("pme", "fmm")}
    checks.below(f"temperature of the last half {temperature['fmm']:.1f} K, {temperature['pme']:.1f} K by PME, difference",
                 abs(temperature["fmm"] - temperature["pme"]), 10, "K", "the mean over 4 ps of 923 atoms scatters by 3 K")
    # The conserved energy fluctuates by 4 kJ/mol with steps of 4 fs: by a line through it, not by its ends, which are 1e-3 apart by that.
    drift = {m: abs(slope([r["Time"] for r in e], [r["Conserved En."] for r in e])) / ATOMS for m, e in energies.items()}
    checks.below(f"conserved energy drift per atom ({drift['pme']:.2g} by PME)", drift["fmm"], drift["pme"] + 1e-3, "kJ/mol/ps",
                 "PME's and a fifth of the usual pair-list buffer's tolerance")


main(test)
