#!/usr/bin/env python3
"""FMM's forces, Coulomb energy and pressure equal those of tight PME, in every kind of periodic box, with every far-field method.

Reference: PME of order 12, spacing 0.05 nm, ewald-rtol 1e-10, in double precision, by an unpatched gmx_d, on frames of a short
run. What the Coulomb part of a force is comes from a calculation of the same frames without Coulomb.
"""
from harness import (FMM, NO_COULOMB, TIGHT, Checks, compare, force_error, main, make_frames, need, read_log, regression, single_points,
                     want, water, work_folder)

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), want("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")


def one_system(checks: Checks, system, folder):
    trajectory, times = make_frames(gmx, folder, system)
    reference = single_points(stock_d, folder, system, TIGHT, trajectory, times, "tight")
    nothing = single_points(stock_d, folder, system, NO_COULOMB, trajectory, times, "none")
    pme = single_points(gmx, folder, system, {}, trajectory, times, "pme")
    print(f"{system.name}: PME as in the .mdp has force error {force_error(pme, reference, nothing):.3g}", flush=True)
    mixed = single_points(gmx, folder, system, FMM, trajectory, times, "fmm")
    compare(checks, f"{system.name}, default accuracy, mixed precision", mixed, reference, nothing, 4e-4)
    if not gmx_d:
        return
    double = single_points(gmx_d, folder, system, FMM, trajectory, times, "fmm-d")
    compare(checks, f"{system.name}, default accuracy, double precision", double, reference, nothing, 4e-4)
    fine = single_points(gmx_d, folder, system, {**FMM, "fmm-accuracy": "1e-6"}, trajectory, times[:1], "fine")
    # Energy and pressure go down with the force error; two orders of magnitude are asked of the 2.6 that it has gone down.
    compare(checks, f"{system.name}, fmm-accuracy 1e-6, double precision", fine, reference[:1], nothing[:1], 1e-6, 1e-5, 0.01)


def all_methods(checks, folder):
    """The methods with an octree, in a box of three different edges, cells at automatic depth and at one that is too great."""
    system = water(gmx, folder, (1, 2, 3))
    trajectory, times = make_frames(gmx, folder, system)
    reference = single_points(stock_d, folder, system, TIGHT, trajectory, times, "tight")
    nothing = single_points(stock_d, folder, system, NO_COULOMB, trajectory, times, "none")
    for method in ("fft", "rotation", "symmetric", "naive"):
        chosen = {**FMM, "fmm-m2l": method}
        mixed = single_points(gmx, folder, system, chosen, trajectory, times, method)
        checks.that(f"far field by {method}" in read_log(folder, method + "-0"), f"md.log says: far field by {method}")
        compare(checks, f"{method}, default accuracy, mixed precision", mixed, reference, nothing, 4e-4)
        if gmx_d:
            fine = single_points(gmx_d, folder, system, {**chosen, "fmm-accuracy": "1e-6"}, trajectory, times[:1], method + "-fine")
            compare(checks, f"{method}, fmm-accuracy 1e-6, double precision", fine, reference[:1], nothing[:1], 1e-6, 1e-5, 0.01)
    deep = single_points(gmx, folder, system, {**FMM, "fmm-m2l": "rotation", "fmm-tree-depth": "3"}, trajectory, times, "deep")
    checks.that("octree of depth 3" in read_log(folder, "deep-0"), "md.log says: octree of depth 3")
    compare(checks, "rotation, fmm-tree-depth 3", deep, reference, nothing, 4e-4)


def test(checks):
    all_methods(checks, work_folder("methods"))
    for name in ("swap_z", "octahedron", "nbnxn_vsite"):
        one_system(checks, regression("complex/" + name), work_folder(name))
    folder = work_folder("cube")
    one_system(checks, water(gmx, folder, (2, 2, 2)), folder)


main(test)
