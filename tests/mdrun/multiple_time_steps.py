#!/usr/bin/env python3
"""Multiple time stepping with the FMM in level 2 moves the atoms as with PME there, and keeps the energy."""
from harness import FMM, TIGHT, changed, main, need, read_trr, rms_distance, slope, water, work_folder

gmx_d = need("GMXFMM_GMX_D")

STEPS = 2000
ATOMS = 648


def test(checks):
    folder = work_folder()
    system = water(gmx_d, folder)
    base = changed(system.mdp, dt=0.001, nsteps=STEPS, rcoulomb=0.85, rvdw=0.85, nstlist=10, verlet_buffer_tolerance=-1, rlist=0.92,
                   dispcorr="no", nstxout=50, nstvout=50, nstenergy=20, nstcalcenergy=20, mts="yes", mts_level2_factor=2,
                   mts_level2_forces="longrange-nonbonded")
    frames, energies = {}, {}
    for method, extra in (("tight", TIGHT), ("fmm", {**FMM, "fmm-accuracy": "1e-6"}), ("default", FMM), ("once", {**FMM, "mts": "no"})):
        settings = {**base, **extra}
        if settings["mts"] == "no":
            settings = changed(settings, mts_level2_factor=None, mts_level2_forces=None)
        gmx_d.grompp(folder, changed(settings, nsteps=100 if method == "tight" else STEPS), system, name=method)
        gmx_d.mdrun(folder, name=method)
        frames[method] = read_trr(f"{folder}/{method}.trr")
        energies[method] = gmx_d.energies(folder, ["Total Energy"], name=method)
    for index, limit in ((1, 1e-6), (2, 1e-5)):
        apart = rms_distance(frames["fmm"][index].x, frames["tight"][index].x, frames["fmm"][0].box)
        checks.below(f"positions after {frames['fmm'][index].step} steps, RMS difference from tight PME with the same levels", apart, limit, "nm",
                     "force errors of 1e-6 move an atom less than 1e-7 nm in 50 fs; chaos multiplies that by ten in 50 fs")
    drift = {}
    for method in ("default", "once"):
        rows = energies[method]
        drift[method] = abs(slope([r["Time"] for r in rows], [r["Total Energy"] / ATOMS for r in rows]))
    checks.below(f"drift per atom ({drift['once']:.1e} without levels)", drift["default"], drift["once"] + 2e-3, "kJ/mol/ps",
                 "less than 1 kT per atom and ns above that of single stepping")


main(test)
