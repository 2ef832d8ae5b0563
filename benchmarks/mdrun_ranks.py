#!/usr/bin/env python3
"""Speed of mdrun on several ranks of one machine, FMM's and PME's -> mdrun-ranks.json.

Usage: mdrun_ranks.py OUT COPIES STEPS [ROUNDS [RANKS ...]]: SPC water, 648 COPIES^3 atoms; RANKS (default 1 and 2) that share the cores
(GMXFMM_NTOMP threads in all). Layouts and methods take turns; the second half of each run is timed. FMM has the order and cells that one rank
chose on all ranks. The record takes the place of the system's in OUT. Needs GMXFMM_GMX. What is stored of a run: ms per step, the cycle table, the
FMM's stages on the first rank, and ms of a partition ("Domain decomp."). GMXFMM_NSTLIST: steps between these, for all; short ones measure partitions.

With GMXFMM_NB=gpu all is on GPUs, of which there are GMXFMM_GPUS (default: all): ranks have them in turn, and one rank is measured on one and, for
the FMM, on all of them. PME has a rank more for itself, on the last. COPIES may be a system of mdrun_gpu.py then, as protein18.
"""
import json
import os
import re
import statistics
import sys

import mdrun_systems  # also finds the harness  # noqa: F401
from harness import (CORES, FMM, NTOMP, Failure, changed, chosen_settings, device, fmm_parameters, gpus, made, need, read_log, run_info, stored, version, water,
                     work_folder)

PME = {"coulombtype": "PME"}
DT = 0.002
ON_GPU = os.environ.get("GMXFMM_NB") == "gpu"
GPUS = (int(os.environ.get("GMXFMM_GPUS") or 0) or len(gpus())) if ON_GPU else 0
NSTLIST = os.environ.get("GMXFMM_NSTLIST") or ("200" if ON_GPU else "")
THREADS = min(CORES, 16 * max(1, GPUS)) if ON_GPU else int(NTOMP)


def partition(log):
    """ms of a partition of atoms over domains, 0 on one rank."""
    found = re.search(r"^ Domain decomp\. +\d+ +\d+ +(\d+) +([0-9.]+)", log, re.M)
    return 1e3 * float(found.group(2)) / int(found.group(1)) if found else 0


class Layout:
    """How a method runs: on so many ranks with domains, and of one rank on how many GPUs."""

    def __init__(self, method, ranks, several=False):
        self.method, self.ranks = method, ranks
        self.pme_rank = ON_GPU and method == "pme" and ranks > 1
        self.threads = max(1, THREADS // (ranks + self.pme_rank))
        self.env = {"GMX_ENABLE_DIRECT_GPU_COMM": "1"} if ON_GPU and ranks > 1 else {}
        self.name = f"{method}, {ranks} x {self.threads}" + (f", {GPUS if several or ranks > 1 else 1} GPUs" if ON_GPU else "")
        self.options = ["-nstlist", NSTLIST] if NSTLIST else []
        if ON_GPU:
            tasks = [str(rank * GPUS // ranks) for rank in range(ranks)] + [str(GPUS - 1)] * self.pme_rank
            self.options = [*self.options, "-pin", "on", *(["-fmm", "gpu"] if method == "fmm" else ["-pme", "gpu", "-notunepme"]),
                            *(["-npme", "1"] if self.pme_rank else []),
                            *(["-gputasks", "".join(tasks)] if ranks > 1 else ["-fmmgpus", str(GPUS)] if several else ["-gpu_id", "0"])]

    def run(self, gmx, folder, update):
        gmx("mdrun", "-s", self.method + ".tpr", "-deffnm", self.method, "-ntmpi", str(self.ranks + self.pme_rank), "-ntomp", str(self.threads), "-nb",
            "gpu" if ON_GPU else "cpu", "-noconfout", "-resethway", *self.options, *(["-update", update] if ON_GPU else []), folder=folder, env=self.env)


def layouts(rank_counts):
    found = [Layout(method, ranks) for ranks in rank_counts for method in ("pme", "fmm")]
    return found + ([Layout("fmm", 1, several=True)] if GPUS > 1 else [])


def make_system(gmx, folder, name):
    """The system, and what it is called."""
    settings = {"rcoulomb": "1.0", "rvdw": "1.0", "tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "0.5", "ref-t": "300"}
    if name.isdigit():
        system = water(gmx, folder, (int(name),) * 3)
        system.mdp = {**system.mdp, **settings, **({"tau-t": "1", "nsttcouple": "100"} if ON_GPU else {})}
        return system, f"SPC water, {648 * int(name) ** 3} atoms"
    from mdrun_gpu import CASES
    system = CASES[name].make(gmx, folder)
    system.mdp = changed(system.mdp, gen_vel="yes", gen_temp="300", continuation="no")
    return system, system.name


def main():
    out, name, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    rank_counts = [int(n) for n in sys.argv[5:]] or [1, 2]
    gmx = need("GMXFMM_GMX")
    folder = work_folder()
    system, title = make_system(gmx, folder, name)
    title += f", {GPUS} GPU{'s' * (GPUS > 1)}" if ON_GPU else ""
    if gmx.has_processes:
        title += ", processes" + ", positions by the host" * ("GMX_DISABLE_DIRECT_GPU_COMM" in os.environ)
    title += f", lists of {NSTLIST} steps" if NSTLIST and not ON_GPU else ""
    base = changed(system.mdp, nsteps=steps)
    gmx.grompp(folder, {**base, **FMM}, system, name="choose")
    choose = ["-fmm", "gpu", "-gpu_id", "0", "-ntmpi", "1", "-ntomp", str(min(16, CORES)), "-nb", "gpu"] if ON_GPU else []
    if ON_GPU:
        gmx("mdrun", "-s", "choose.tpr", "-deffnm", "choose", "-nsteps", "0", "-noconfout", *choose, folder=folder)
    else:
        gmx.mdrun(folder, "-nsteps", "0", "-noconfout", name="choose")
    parameters = fmm_parameters(read_log(folder, "choose"))
    for method, settings in (("pme", PME), ("fmm", {**FMM, **chosen_settings(parameters), "fmm-measure": "no"})):
        gmx.grompp(folder, {**base, **settings}, system, name=method)
    dt = float(system.mdp.get("dt", DT))
    used, runs, failed = layouts(rank_counts), {}, {}
    update = {layout.name: "gpu" for layout in used}
    for _ in range(rounds):
        for layout in used:
            if layout.name in failed:
                continue
            try:
                try:
                    layout.run(gmx, folder, update[layout.name])
                except Failure:
                    if not ON_GPU or update[layout.name] == "cpu":
                        raise
                    # Constraints beyond update groups have no update on the GPU with domains
                    update[layout.name] = "cpu"
                    layout.run(gmx, folder, "cpu")
            except Failure as failure:
                failed[layout.name] = " ".join(str(failure).split())[-500:]
                print(f"FAILED {layout.name}: {failed[layout.name]}", flush=True)
                continue
            run = run_info(folder, layout.method, dt)
            run["ms_of_a_partition"] = partition(read_log(folder, layout.method))
            if ON_GPU:
                run["update"] = update[layout.name]
                log = " ".join(read_log(folder, layout.method).split())
                where = re.search(r"precision on the (CPU|GPUs \(near field: .*?\)|GPU)", log)
                run["fmm_on"] = where.group(1) if where else ""
            runs.setdefault(layout.name, []).append(run)
            print(f"{layout.name}: {run['ms_per_step']:.3f} ms per step, update on the {run.get('update', 'cpu')}, {run.get('fmm_on', '')}", flush=True)
    median = {key: statistics.median(run["ms_per_step"] for run in of) for key, of in runs.items()}
    records = [record for record in stored(out, []) if record["system"] != title]
    records.append({"benchmark": "mdrun-ranks", "system": title, "device": device(THREADS), **({"gpus": gpus()[:GPUS]} if ON_GPU else {}), **made(),
                    "gromacs": version(gmx), "steps_timed": steps // 2, "fmm_parameters": parameters, "ms_per_step": median, "runs": runs,
                    **({"failed": failed} if failed else {})})
    with open(out, "w") as file:
        json.dump(records, file, indent=1)
        file.write("\n")
    for key, ms in median.items():
        print(f"{key}: {ms:.3g} ms per step (" + ", ".join(f"{run['ms_per_step']:.3g}" for run in runs[key]) + ")")
    first = {layout.method: median.get(layout.name) for layout in reversed(used) if layout.ranks == rank_counts[0] and layout.name in median}
    for layout in used:
        if layout.name in median and layout.ranks != rank_counts[0] and first.get(layout.method):
            print(f"{layout.name} over that of {rank_counts[0]} rank: {median[layout.name] / first[layout.method]:.3f}")
    for ranks in rank_counts:
        pme, fmm = (median.get(Layout(method, ranks).name) for method in ("pme", "fmm"))
        if pme and fmm:
            print(f"{ranks} ranks: FMM over PME {fmm / pme:.3f}")
            pme, fmm = (statistics.median(run["ms_of_a_partition"] for run in runs[Layout(method, ranks).name]) for method in ("pme", "fmm"))
            if pme and fmm:
                print(f"{ranks} ranks: partition of atoms, FMM over PME {fmm / pme:.3f}")
    sys.exit(1 if failed else 0)


main()
