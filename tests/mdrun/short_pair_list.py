#!/usr/bin/env python3
"""With FMM the pair list holds only atoms with Van der Waals interactions: the same forces, energies and pressure as with all.

GMX_FMM_FULL_PAIRLIST puts all atoms on the list. The two differ in which pairs stand in a cluster, thus in rounding alone.
"""
import os
import re

from harness import (CPU_KERNELS, FMM, Failure, changed, environment, main, make_frames, need, read_log, read_trr, regression, rms_difference, single_points, water,
                     without_swaps, work_folder)

gmx = need("GMXFMM_GMX")

# The last emulates a GPU's lists.
KERNELS = {**CPU_KERNELS, "GPU geometry": {"GMX_EMULATE_GPU": "1"}}


def listed(folder, name):
    """Atoms on the list, and all, as md.log says."""
    return tuple(map(int, re.search(r"FMM: (\d+) of (\d+) atoms are in the pair list", read_log(folder, name)).groups()))


def compare_lists(checks, what, folder, system, settings, frames, on_list, **kernel):
    trajectory, times = frames
    with environment(**kernel):
        short = single_points(gmx, folder, system, settings, trajectory, times, "short")
        with environment(GMX_FMM_FULL_PAIRLIST="1"):
            full = single_points(gmx, folder, system, settings, trajectory, times, "full")
    atoms = len(short[0].force) // 3
    checks.that(listed(folder, "full-0") == (atoms, atoms), f"{what}: GMX_FMM_FULL_PAIRLIST puts all {atoms} atoms on the list")
    found = listed(folder, "short-0")
    checks.that(found == (on_list(atoms), atoms), f"{what}: {found[0]} of {found[1]} atoms are on the short list")
    worst = max(rms_difference(s.force, f.force) / rms_difference(f.force, [0.0] * len(f.force)) for s, f in zip(short, full))
    checks.below(f"{what}: forces, RMS difference over RMS", worst, 2e-6, "", "single precision, pairs added in another order")
    worst = max(abs(s.energy["Potential"] / f.energy["Potential"] - 1) for s, f in zip(short, full))
    checks.below(f"{what}: potential, relative difference", worst, 2e-6, "", "single precision")
    worst = max(abs(s.energy[t] - f.energy[t]) for s, f in zip(short, full) for t in ("Pressure", "Pres-XX", "Pres-XY", "Pres-ZZ"))
    checks.below(f"{what}: pressure tensor, difference", worst, 0.5, "bar", "rounding of sums that are 1e5 times larger")


def run_alike(checks, folder, system):
    """The first steps of a run, in which lists are made and pruned, are those with the full list until chaos parts them."""
    mdp = changed(system.mdp, nsteps=40, nstlist=10, nstxout=20, nstenergy=20, nstcalcenergy=20, **FMM)
    gmx.grompp(folder, mdp, system, name="run")
    frames = {}
    for name, env in (("short", {}), ("full", {"GMX_FMM_FULL_PAIRLIST": "1"})):
        with environment(**env):
            gmx.mdrun(folder, name="run")
        frames[name] = read_trr(folder + "/run.trr")
    moved = rms_difference(frames["full"][-1].x, frames["full"][0].x)
    checks.below(f"40 steps, in which atoms moved by {moved:.3f} nm: positions, RMS difference",
                 rms_difference(frames["short"][-1].x, frames["full"][-1].x), 1e-4, "nm", "rounding, and chaos growing it")


def test(checks):
    folder = work_folder("water")
    system = water(gmx, folder, (1, 2, 2), sodium=2)
    system.mdp = changed(system.mdp, rcoulomb=0.8, rvdw=0.8)
    frames = make_frames(gmx, folder, system, 20, 10)

    def thirds(atoms):
        return 2 + (atoms - 2) // 3
    for kernel, env in KERNELS.items():
        try:
            compare_lists(checks, f"water, kernel {kernel}", folder, system, FMM, frames, thirds, **env)
        except Failure as failure:
            # A build with CUDA pins the lists of GPU geometry even where it emulates a GPU, which takes a driver.
            reason = {"compiled without support": "not in this build", "page locking": "not without a GPU in this build"}
            found = [said for text, said in reason.items() if text in str(failure)]
            if not found:
                raise
            print(f"water, kernel {kernel}: {found[0]}", flush=True)
    run_alike(checks, folder, system)
    alone = {**FMM, "pbc": "no", "dispcorr": "no", "comm-mode": "angular"}
    compare_lists(checks, "pbc = no", folder, system, alone, frames, thirds)

    for name in ("swap_z", "octahedron", "nbnxn_vsite", "tip4p"):
        folder = work_folder(name)
        system = regression("complex/" + name)
        system.mdp = without_swaps(system.mdp)
        frames = make_frames(gmx, folder, system, 20, 10)
        with environment():
            gmx.grompp(folder, {**system.mdp, **FMM, "nsteps": "0"}, system, name="count")
            gmx.mdrun(folder, name="count")
        count = listed(folder, "count")[0]
        compare_lists(checks, name, folder, system, FMM, frames, lambda atoms, count=count: count)


main(test)
