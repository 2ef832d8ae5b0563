#!/usr/bin/env python3
"""Speed of mdrun on several ranks of one machine's CPU, FMM's and PME's -> mdrun-ranks.json.

Usage: mdrun_ranks.py OUT COPIES STEPS [ROUNDS [RANKS ...]]: SPC water, 648 COPIES^3 atoms; RANKS (default 1 and 2) that share the cores
(GMXFMM_NTOMP threads in all). Layouts and methods take turns; the second half of each run is timed. FMM has the order and cells that one rank
chose on all ranks. The record takes the place of the system's in OUT. Needs GMXFMM_GMX. What is stored of a run: ms per step, the cycle table, the
FMM's stages on the first rank, and ms of a partition ("Domain decomp.").
"""
import json
import os
import re
import statistics
import sys

import mdrun_systems  # also finds the harness  # noqa: F401
from harness import FMM, NTOMP, changed, chosen_settings, device, fmm_parameters, made, need, read_log, run_info, stored, version, water, work_folder

PME = {"coulombtype": "PME"}
DT = 0.002


def partition(log):
    """ms of a partition of atoms over domains, 0 on one rank."""
    found = re.search(r"^ Domain decomp\. +\d+ +\d+ +(\d+) +([0-9.]+)", log, re.M)
    return 1e3 * float(found.group(2)) / int(found.group(1)) if found else 0


def main():
    out, copies, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    layouts = [int(n) for n in sys.argv[5:]] or [1, 2]
    gmx = need("GMXFMM_GMX")
    folder = work_folder()
    system = water(gmx, folder, (copies,) * 3)
    base = changed(system.mdp, nsteps=steps, rcoulomb=1.0, rvdw=1.0, tcoupl="V-rescale", tc_grps="System", tau_t=0.5, ref_t=300)
    gmx.grompp(folder, {**base, **FMM}, system, name="choose")
    gmx.mdrun(folder, "-nsteps", "0", "-noconfout", name="choose")
    parameters = fmm_parameters(read_log(folder, "choose"))
    for name, settings in (("pme", PME), ("fmm", {**FMM, **chosen_settings(parameters), "fmm-measure": "no"})):
        gmx.grompp(folder, {**base, **settings}, system, name=name)
    runs = {f"{name}, {ranks} x {int(NTOMP) // ranks}": [] for name in ("pme", "fmm") for ranks in layouts}
    for _ in range(rounds):
        for ranks in layouts:
            for name in ("pme", "fmm"):
                gmx.mdrun(folder, "-noconfout", "-resethway", name=name, ranks=ranks)
                run = run_info(folder, name, DT)
                run["ms_of_a_partition"] = partition(read_log(folder, name))
                runs[f"{name}, {ranks} x {int(NTOMP) // ranks}"].append(run)
    median = {key: statistics.median(run["ms_per_step"] for run in of) for key, of in runs.items()}
    title = f"SPC water, {648 * copies ** 3} atoms"
    records = [record for record in stored(out, []) if record["system"] != title]
    records.append({"benchmark": "mdrun-ranks", "system": title, "device": device(), **made(), "gromacs": version(gmx), "steps_timed": steps // 2,
                    "fmm_parameters": parameters, "ms_per_step": median, "runs": runs})
    with open(out, "w") as file:
        json.dump(records, file, indent=1)
        file.write("\n")
    for key, ms in median.items():
        print(f"{key}: {ms:.2f} ms per step (" + ", ".join(f"{run['ms_per_step']:.2f}" for run in runs[key]) + ")")
    for ranks in layouts[1:]:
        one, several = (median[f"fmm, {n} x {int(NTOMP) // n}"] for n in (layouts[0], ranks))
        pme = median[f"pme, {ranks} x {int(NTOMP) // ranks}"]
        print(f"{ranks} ranks: FMM over that of {layouts[0]} rank {several / one:.3f}, FMM over PME {several / pme:.3f}")


main()
