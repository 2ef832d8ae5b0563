#!/usr/bin/env python3
"""Speed of mdrun with Lennard-Jones of all pairs of atoms and with fmm-lj = split -> lj-split.json, and of PME.

Usage: lj_split.py OUT SYSTEM STEPS [ROUNDS [gpu]]; SYSTEM: waterN (CHARMM's TIP3P, 648 N^3 atoms), protein (a membrane protein as
CHARMM-GUI writes it), protein18 (18 copies), bilayer (its lipids and water) or amber (a protein with AMBER's force field). Runs of PME,
full and split take turns; the second half of each is timed. With gpu all that can be is on a GPU, PME's and full's lists are of 100
steps, and PME and split also run by mdrun's default options; with GROMACS 2026.3 the others run with GMX_CUDA_GRAPH, too. The record,
with what mdrun said of errors and lists, takes the place of the system's in OUT. Needs GMXFMM_GMX.
"""
import json
import re
import sys

import mdrun_systems  # also finds the harness
from harness import CORES, FMM, NTOMP, changed, device, gpus, made, need, read_log, version, work_folder

KINDS = {"PME": {"coulombtype": "PME"}, "FMM, full": FMM, "FMM, split": {**FMM, "fmm-lj": "split"}}


def lists(log):
    """Radii of the lists, as md.log has them before the ones that it compares with."""
    return [" ".join(line.split()) for line in re.findall(r"updated every.*rlist.*", log)]


def force_errors(log):
    """FMM's, as mdrun has measured them at the end: where atoms are assigned to cells, anywhere, and when they have moved since."""
    rows = re.findall(r"^ +\w+ +\d+ +\d+ x \d+ x \d+ +\d+ +\S+ +(\S+) +(\S+) +(\S+)", log, re.M)
    return dict(zip(("assigned", "anywhere", "moved"), map(float, rows[-1])))


def options(name, kind):
    """Of mdrun on a GPU."""
    bonded = [] if name.startswith("water") else ["-bonded", "gpu"]
    lists = [] if kind == "FMM, split" else ["-nstlist", "100"]
    return ["-update", "gpu", "-pin", "on", *bonded, *lists, *(["-pme", "gpu"] if kind == "PME" else [])]


def system_of(gmx, name, folder, is_on_gpu):
    if name in ("protein", "protein18"):
        return mdrun_systems.membrane_protein(gmx, folder, (3, 3, 2) if name == "protein18" else (1, 1, 1))
    if name == "amber":
        return mdrun_systems.amber_protein(gmx, folder)
    if name == "bilayer":
        return mdrun_systems.bilayer(gmx, folder, ["-nb", "gpu", "-ntomp", str(CORES)] if is_on_gpu else [])
    return mdrun_systems.tip3p(gmx, folder, int(name.removeprefix("water")))


def main():
    output, name, steps, *more = sys.argv[1:]
    rounds, is_on_gpu = int(more[0]) if more else 3, more[1:] == ["gpu"]
    gmx = need("GMXFMM_GMX")
    folder = work_folder(name)
    system = system_of(gmx, name, folder, is_on_gpu)
    speeds, ways = {}, {kind: options(name, kind) if is_on_gpu else [] for kind in KINDS}
    for kind, settings in KINDS.items():
        gmx.grompp(folder, changed(system.mdp, nsteps=steps, nstlist=20, gen_vel="yes", continuation="no", **settings), system,
                   name=kind.replace(", ", "-"))
    graphs = (False, True) if is_on_gpu and version(gmx) != "2022.5" else (False,)
    for _ in range(rounds):
        for kind in KINDS:
            file = kind.replace(", ", "-")
            for graph in graphs:
                gmx.mdrun(folder, "-resethway", "-noconfout", "-notunepme", *ways[kind], name=file, nb="gpu" if is_on_gpu else "cpu",
                          threads=CORES if is_on_gpu else NTOMP, env={"GMX_CUDA_GRAPH": "1"} if graph else None)
                speeds.setdefault(kind + ", graph" * graph, []).append(speed(folder, file))
        for kind in ("PME", "FMM, split") if is_on_gpu else ():
            by_default(gmx, folder, kind.replace(", ", "-"), 4 * int(steps))
            speeds.setdefault(kind + ", default options", []).append(speed(folder, "default"))
    split = read_log(folder, "FMM-split")
    record = {"system": system.name, **made(), **({"gpu": gpus(), "options": ways} if is_on_gpu else {}), "steps": int(steps),
              "ns_per_day": speeds, "lists": {kind: lists(read_log(folder, kind.replace(", ", "-"))) for kind in KINDS},
              "force_errors": {kind: force_errors(read_log(folder, kind.replace(", ", "-"))) for kind in KINDS if kind != "PME"},
              "split": " ".join(re.search(r"Lennard-Jones interactions are split.*?measured it\.", split, re.S).group(0).split()),
              "time_over_pme": {kind: sorted(p / s for p, s in zip(speeds["PME"], of_kind))[rounds // 2] for kind, of_kind in speeds.items()}}
    mdrun_systems.keep(output, {"benchmark": "lj-split", "device": device()}, record, system=None)
    print(json.dumps(record, indent=1))


def by_default(gmx, folder, name, steps):
    """A run with threads and no other option."""
    mdrun_systems.when_tuned(lambda length: gmx("mdrun", "-s", name + ".tpr", "-deffnm", "default", "-ntomp", str(CORES), "-nsteps", str(length), "-resethway",
                                                "-noconfout", folder=folder), steps)


def speed(folder, name):
    return float(re.search(r"Performance:\s+(\S+)", read_log(folder, name)).group(1))


main()
