#!/usr/bin/env python3
"""Speed of mdrun on a CPU with Lennard-Jones in one list and in two (fmm-lj) -> lj-split.json, and of PME.

Usage: lj_split.py OUT SYSTEM STEPS [ROUNDS]; SYSTEM: waterN (CHARMM's TIP3P, 648 N^3 atoms) or protein (a membrane protein as
CHARMM-GUI writes it). Runs of PME, full and split take turns; the second half of each is timed. The record, with what grompp
and mdrun said of errors and lists, takes the place of the system's in OUT. Needs GMXFMM_GMX.
"""
import json
import re
import sys

import mdrun_systems  # also finds the harness
from harness import FMM, changed, device, made, need, read_log, work_folder

KINDS = {"PME": {"coulombtype": "PME"}, "FMM, full": FMM, "FMM, split": {**FMM, "fmm-lj": "split"}}


def lists(log):
    """Radii of the lists, as md.log has them before the ones that it compares with."""
    return [" ".join(line.split()) for line in re.findall(r"updated every.*rlist.*", log)]


def main():
    output, name, steps, *more = sys.argv[1:]
    rounds = int(more[0]) if more else 3
    gmx = need("GMXFMM_GMX")
    folder = work_folder(name)
    if name == "protein":
        system = mdrun_systems.membrane_protein(gmx, folder)
    else:
        system = mdrun_systems.tip3p(gmx, folder, int(name.removeprefix("water")))
    speeds = {kind: [] for kind in KINDS}
    for kind, settings in KINDS.items():
        gmx.grompp(folder, changed(system.mdp, nsteps=steps, nstlist=20, gen_vel="yes", continuation="no", **settings), system,
                   name=kind.replace(", ", "-"))
    for _ in range(rounds):
        for kind in KINDS:
            gmx.mdrun(folder, "-resethway", "-notunepme", name=kind.replace(", ", "-"))
            speeds[kind].append(float(re.search(r"Performance:\s+(\S+)", read_log(folder, kind.replace(", ", "-"))).group(1)))
    split = read_log(folder, "FMM-split")
    record = {"system": system.name, **made(),
              "ns_per_day": speeds, "lists": {kind: lists(read_log(folder, kind.replace(", ", "-"))) for kind in KINDS},
              "split": " ".join(re.search(r"Lennard-Jones interactions are in two.*?kJ/mol", split, re.S).group(0).split()),
              "time_over_pme": {kind: sorted(p / s for p, s in zip(speeds["PME"], speeds[kind]))[rounds // 2] for kind in KINDS}}
    mdrun_systems.keep(output, {"benchmark": "lj-split", "device": device()}, record, system=None)
    print(json.dumps(record, indent=1))


main()
