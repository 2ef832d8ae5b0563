#!/usr/bin/env python3
"""A net charge (with the uniform background) and vacuum surroundings give what tight PME gives."""
from harness import FMM, NO_COULOMB, TIGHT, compare, main, make_frames, need, single_points, water, work_folder

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), need("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")

CASES = [
    # what, sodium ions, setting of FMM, setting of PME
    ("net charge +4", 4, {}, {}),
    ("vacuum boundary", 0, {"fmm-boundary": "vacuum"}, {"epsilon-surface": "1"}),
    # 4 is a permittivity that neither limit has: a wrong factor cannot hide
    ("epsilon-r 4", 0, {"epsilon-r": "4"}, {"epsilon-r": "4"}),
]


def test(checks):
    for what, sodium, ours, theirs in CASES:
        folder = work_folder(what.split()[0])
        system = water(gmx, folder, (1, 1, 2), sodium)
        system.mdp.update({"rcoulomb": "0.85", "rvdw": "0.85"})
        trajectory, times = make_frames(gmx, folder, system)
        reference = single_points(stock_d, folder, system, {**TIGHT, **theirs}, trajectory, times, "tight")
        nothing = single_points(stock_d, folder, system, NO_COULOMB, trajectory, times, "none")
        default = single_points(gmx, folder, system, {**FMM, **ours}, trajectory, times, "fmm")
        compare(checks, f"{what}, default accuracy, mixed precision", default, reference, nothing, 4e-4)
        fine = single_points(gmx_d, folder, system, {**FMM, **ours, "fmm-accuracy": "1e-6"}, trajectory, times[:1], "fine")
        compare(checks, f"{what}, fmm-accuracy 1e-6, double precision", fine, reference[:1], nothing[:1], 1e-6, 1e-5, 0.01)


main(test)
