#!/usr/bin/env python3
"""Speed of mdrun with slabs of water, FMM's and PME's -> mdrun-slab.json.

Usage: mdrun_slab.py OUT COPIES STEPS [ROUNDS [SECONDS [PART]]]: SPC water, 648 COPIES^3 atoms, of which PART, film or walls, asks for some:
  FMM, box      periodic along all vectors
  FMM, film     the same atoms with pbc = xy and no walls
  FMM, walls    the same atoms between two walls, with 0.45 nm to each
  PME, walls 3  the same with ewald-geometry = 3dc and wall-ewald-zfac = 3, the default; with 5: PME, walls 5
Runs take turns; the second half of each is timed. Force errors between walls are those of the start, against tight PME with
wall-ewald-zfac = 7. The record takes the place of the system's and the part's in OUT, after each round; with SECONDS no round is begun after the first
that would end later. Needs GMXFMM_GMX. With GMXFMM_NB = gpu pairs, FMM or PME and the update (GMXFMM_UPDATE = cpu: not that) are on
a GPU, with lists of 100 steps.
"""
import json
import math
import os
import statistics
import sys
import time

import mdrun_systems  # also finds the harness
from harness import (CORES, FMM, NO_COULOMB, NTOMP, TIGHT_MIXED, System, changed, device, fmm_parameters, gpus, made, need, read_log, read_trr, rms_difference,
                     run_info, version, water, work_folder)

ON_GPU = os.environ.get("GMXFMM_NB") == "gpu"
UPDATE = os.environ.get("GMXFMM_UPDATE", "gpu") if ON_GPU else "cpu"
GAP = 0.45  # nm
ASKED = 4e-4  # fmm-accuracy, by default
SLAB = {"pbc": "xy", "dispcorr": "no", "rcoulomb": 1.0, "rvdw": 1.0}
WALLS = {**SLAB, "nwall": "2", "wall-type": "9-3", "wall-atomtype": "opls_135 opls_135", "wall-density": "50 50", "ewald-geometry": "3dc"}
PME = {"coulombtype": "PME"}
PARTS = ("film", "walls")


def between_walls(gmx, folder, system):
    with open(system.conf) as lines:
        edges = [float(edge) for edge in lines.read().splitlines()[-1].split()]
    box = [f"{edge:.5f}" for edge in [*edges[:2], edges[2] + 2 * GAP]]
    gmx("editconf", "-f", system.conf, "-o", "walls.gro", "-box", *box, "-c", folder=folder)
    return System("walls", os.path.join(folder, "walls.gro"), system.top, system.mdp)


def place(settings):
    """Where mdrun computes what. Forces of walls are computed by one thread of the host, which is best kept where it is."""
    if not ON_GPU:
        return {"nb": "cpu", "threads": NTOMP}, []
    method = "-fmm" if settings["coulombtype"] == "FMM" else "-pme"
    return {"nb": "gpu", "threads": str(CORES)}, [method, "gpu", "-update", UPDATE, "-pin", "on"]


def forces(gmx, folder, system, settings, name):
    mdp = changed(system.mdp, nsteps=0, nstfout=1, gen_vel="no", continuation="yes")
    mdp.update(settings)
    if settings.get("epsilon-r") == "0":  # no step is made, so that no buffer is needed, which would not be finite
        mdp.update({"verlet-buffer-tolerance": "-1", "rlist": "1.0"})
    gmx.grompp(folder, mdp, system, name=name)
    if settings.get("coulombtype") == "FMM":  # which chooses otherwise on a GPU
        where, options = place(settings)
        gmx.mdrun(folder, *options, name=name, **where)
    else:
        gmx.mdrun(folder, name=name, threads=NTOMP)
    return read_trr(os.path.join(folder, name + ".trr"))[0].f


def wall_errors(gmx, folder, walls, kinds):
    """Relative RMS errors of the forces between walls."""
    tight = forces(gmx, folder, walls, {**WALLS, **TIGHT_MIXED, "wall-ewald-zfac": "7"}, "tight")
    nothing = forces(gmx, folder, walls, {**WALLS, **NO_COULOMB, "ewald-geometry": "3d"}, "nothing")
    return {kind: rms_difference(forces(gmx, folder, walls, settings, "point"), tight) / rms_difference(tight, nothing)
            for kind, (_, settings) in kinds.items() if "walls" in kind}


def speeds(middle, errors):
    """The ratios that are asked for, of those that ran."""
    result = {"speed_film_over_box": middle["FMM, box"] / middle["FMM, film"]} if "FMM, film" in middle else {}
    if errors:
        # the first that has the error that FMM is asked for; errors differ by a per cent from frame to frame
        exact = [kind for kind in ("PME, walls 3", "PME, walls 5") if errors[kind] <= 1.02 * max(ASKED, errors["FMM, walls"])] or ["PME, walls 5"]
        result.update(compared_with=exact[0], speed_walls_fmm_over_pme=middle[exact[0]] / middle["FMM, walls"])
    return result


def main():
    output, copies, steps, *more = sys.argv[1:]
    began, rounds, limit = time.monotonic(), int(more[0]) if more else 3, float(more[1]) if more[1:] else math.inf
    part = more[2] if more[2:] else None
    if part not in (None, *PARTS):
        sys.exit(f"mdrun_slab.py: there is no part '{part}': {' or '.join(PARTS)}")
    gmx = need("GMXFMM_GMX")
    folder = work_folder("mdrun-slab" + copies)
    system = water(gmx, folder, (int(copies),) * 3)
    walls = between_walls(gmx, folder, system)
    kinds = {"FMM, box": (system, {"rcoulomb": 1.0, "rvdw": 1.0, "dispcorr": "no", **FMM}), "FMM, film": (system, {**SLAB, **FMM}),
             "FMM, walls": (walls, {**WALLS, **FMM}), "PME, walls 3": (walls, {**WALLS, **PME, "wall-ewald-zfac": "3"}),
             "PME, walls 5": (walls, {**WALLS, **PME, "wall-ewald-zfac": "5"})}
    kinds = {kind: what for kind, what in kinds.items() if part is None or ("walls" in kind) == (part == "walls")}
    errors = wall_errors(gmx, folder, walls, kinds) if part != "film" else {}
    files = {kind: kind.replace(", ", "-").replace(" ", "-") for kind in kinds}
    # coupling as seldom as in production where it needs the host
    coupling = {"tau-t": 1, "nsttcouple": 100, "nstenergy": 1000} if ON_GPU else {"tau-t": 0.5}
    for kind, (start, settings) in kinds.items():
        mdp = changed(start.mdp, nsteps=steps, nstlist=100 if ON_GPU else 20, tcoupl="V-rescale", tc_grps="System", ref_t=300)
        gmx.grompp(folder, {**mdp, **coupling, **settings}, start, name=files[kind])
    found, chosen, cycles, ready = {kind: [] for kind in kinds}, {}, {}, time.monotonic()
    for number in range(1, rounds + 1):
        for kind, (_, settings) in kinds.items():
            where, options = place(settings)
            gmx.mdrun(folder, "-resethway", "-notunepme", *options, name=files[kind], **where)
            info = run_info(folder, files[kind], 0.002)
            found[kind].append(info["ms_per_step"])
            cycles[kind] = {name: round(share, 3) for name, share in info["cycles"].items()}
            chosen[kind] = fmm_parameters(read_log(folder, files[kind]))
        middle = {kind: statistics.median(runs) for kind, runs in found.items()}
        record = {"system": system.name, "part": part, **made(), "gromacs": version(gmx),
                  "update": UPDATE, "threads_pinned": ON_GPU, "rounds": number, "steps": int(steps), "fmm": {kind: text for kind, text in chosen.items() if text}, "ms_a_step": found, "cycles_of_the_last": cycles,
                  "medians": middle, "force_errors_between_walls": errors, **speeds(middle, errors)}
        mdrun_systems.keep(output, {"benchmark": "mdrun-slab", "device": {**device(NTOMP), **({"gpu": gpus()[0]} if ON_GPU else {})}}, record,
                           system=None, gromacs=None, update="cpu", part=None)
        now = time.monotonic()
        if now - began + (now - ready) / number > limit:
            break
    print(json.dumps({key: value for key, value in record.items() if key not in ("ms_a_step", "cycles_of_the_last")}, indent=1))


if __name__ == "__main__":
    main()
