#!/usr/bin/env python3
"""Constant pressure: isotropic, semi-isotropic and anisotropic coupling run as with PME.

Each run's own frames, boxes included, are computed again with tight PME: the pressure tensor that moves the box must be right.
The densities of the two runs must agree within their statistical errors.
"""
import math

from harness import (COUPLING, FMM, NO_COULOMB, TIGHT, block_error, changed, compare, main, mean, need, read_trr, single_points, water, work_folder)

gmx, stock_d = need("GMXFMM_GMX"), need("GMXFMM_STOCK_GMX_D", "gmx_d")

STEPS = 7500  # 15 ps


def test(checks):
    for kind, settings in COUPLING.items():
        folder = work_folder(kind)
        # Two cubes long, and short cut-offs, so that the box may change its shape freely.
        system = water(gmx, folder, (1, 1, 2))
        base = changed(system.mdp, nsteps=STEPS, rcoulomb=0.75, rvdw=0.75, tcoupl="V-rescale", tc_grps="System", tau_t=0.5, ref_t=300,
                       pcoupltype=kind, tau_p=2, nstenergy=50, nstcalcenergy=10, ld_seed=1)
        base.update(settings)
        series = {}
        for method, extra in (("pme", {}), ("fmm", FMM)):
            mdp = {**base, **extra, "nstxout": STEPS // 5, "nstvout": STEPS // 5}
            gmx.grompp(folder, mdp, system, name=method)
            gmx.mdrun(folder, name=method)
            rows = gmx.energies(folder, ["Density", "Temperature", "Pressure", "Conserved En."], name=method)
            series[method] = [row for row in rows if row["Time"] >= 3]  # the first 3 ps settle the box
            checks.that(len(rows) == STEPS // 50 + 1 and all(math.isfinite(r["Conserved En."]) for r in rows), f"{kind}: {method} ran to the end")
        density = {m: mean(r["Density"] for r in s) for m, s in series.items()}
        error = math.hypot(*(block_error([r["Density"] for r in s], 5) for s in series.values()))
        checks.below(f"{kind}: density {density['fmm']:.1f} by FMM, {density['pme']:.1f} by PME, difference",
                     abs(density["fmm"] - density["pme"]), max(4 * error, 0.5), "kg/m^3", "four standard errors")
        temperature = {m: mean(r["Temperature"] for r in s) for m, s in series.items()}
        checks.below(f"{kind}: temperature off 300 K", abs(temperature["fmm"] - 300), 6.0, "K",
                     "2 %; 1296 atoms fluctuate by 7 K, the mean of 12 ps by 2 K")
        drift = {m: abs(s[-1]["Conserved En."] - s[0]["Conserved En."]) / (s[-1]["Time"] - s[0]["Time"]) / 1296 for m, s in series.items()}
        checks.below(f"{kind}: conserved energy drift per atom ({drift['pme']:.1g} by PME)", drift["fmm"],
                     drift["pme"] + 0.005, "kJ/mol/ps",
                     "PME's, which varies by twice from run to run, and what verlet-buffer-tolerance allows")

        frames = read_trr(folder + "/fmm.trr")
        moved = [max(abs(frame.box[d] / frames[0].box[d] - 1) for d in (0, 4, 8)) for frame in frames[1:]]
        checks.that(max(moved) > 1e-4, f"{kind}: the box moved, by up to {100 * max(moved):.2f} %")
        trajectory, times = folder + "/fmm.trr", [frame.time for frame in frames[1:]]
        bare = changed(base, pcoupl=None, pcoupltype=None, tau_p=None, compressibility=None, ref_p=None)
        system.mdp = bare
        reference = single_points(stock_d, folder, system, TIGHT, trajectory, times, "tight")
        nothing = single_points(stock_d, folder, system, NO_COULOMB, trajectory, times, "none")
        again = single_points(gmx, folder, system, FMM, trajectory, times, "again")
        compare(checks, f"{kind}: frames of the run", again, reference, nothing, 4e-4)


main(test)
