#!/usr/bin/env python3
"""Speed of mdrun with FMM on one GPU and on several of the machine: 1,119,744 atoms of water.

mdrun_gpus.py GMX OUTPUT [--copies N] [--repeats N] [--limit SECONDS]   (as scripts/run-mdrun-bundle.sh calls it)

Runs on each number of GPUs are made in turns, with what mdrun chooses for it in each run; OUTPUT has all of them and the medians; it
is written after each turn, and no turn begins that would end after the limit.
"""
import argparse
import datetime
import json
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mdrun_systems  # noqa: E402
from harness import CORES, FMM, Gmx, changed, commit, device, fmm_parameters, gpus, read_log, run_info, version  # noqa: E402
from mdrun_gpu import gpu  # noqa: E402


def run(gmx, folder, number, options, dt):
    """Speed, and what md.log says of the FMM."""
    threads = min(16, CORES)
    gmx("mdrun", "-s", "speed.tpr", "-deffnm", "speed", "-ntmpi", "1", "-ntomp", str(threads), "-pin", "on", "-nb", "gpu", "-fmm", "gpu", "-update", "gpu",
        "-nstlist", "200", "-fmmgpus", str(number), "-nsteps", str(options.steps), "-resethway", "-noconfout", folder=folder)
    log, info = read_log(folder, "speed"), run_info(folder, "speed", dt)
    shared = re.search(r"precision on the (GPUs? ?(?:\(.*?\))?)", log)
    return {"ns_per_day": info["ns_per_day"], "ms_per_step": info["ms_per_step"], "threads": threads, "fmm": fmm_parameters(log),
            "shares": shared.group(1).strip() if shared else ""}


def main():
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gmx")
    parser.add_argument("output")
    parser.add_argument("--copies", type=int, default=12, help="copies of 216 molecules along each edge (default %(default)s)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6000, help="of a run, the second half of which is timed (default %(default)s)")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds for all of it")
    parser.add_argument("--work", default="/tmp/gmxfmm-gpus", help="folder for files (default %(default)s)")
    options = parser.parse_args()
    numbers = [n for n in (1, 2, 4, 8) if n <= len(gpus())]
    if len(numbers) < 2:
        sys.exit("mdrun_gpus.py: needs two GPUs or more")
    gmx, folder = Gmx(os.path.abspath(options.gmx)), os.path.abspath(options.work)
    os.makedirs(folder, exist_ok=True)
    system = mdrun_systems.water(gmx, folder, options.copies)
    mdrun_systems.equilibrated(gmx, folder, system, 1000, ["-nb", "gpu", "-pme", "gpu", "-ntomp", str(min(16, CORES))])
    frames, at = system.frame
    gmx.grompp(folder, changed(system.mdp, gen_vel="no", continuation="yes", **FMM), system, "-t", frames, "-time", f"{at:g}", name="speed")
    head = {"benchmark": "mdrun on several GPUs", "system": system.name, "atoms": system.atoms, **gpu(), "gromacs": version(gmx), "cpu": device()["cpu"],
            "cores": CORES, "date": datetime.date.today().isoformat(), "commit": commit(),
            "command": os.environ.get("GMXFMM_BENCHMARK_COMMAND", " ".join(sys.argv))}
    found, turn = {n: [] for n in numbers}, 0.0
    for repeat in range(options.repeats):
        start = time.monotonic()
        if start - began + turn > options.limit:
            print(f"no time for more than {repeat} of {options.repeats} turns")
            break
        for number in numbers:
            found[number].append(run(gmx, folder, number, options, float(system.mdp["dt"])))
            print(f"{number} GPUs: {found[number][-1]['ns_per_day']:.2f} ns/day, {found[number][-1]['shares']}", flush=True)
        turn = time.monotonic() - start
        speed = {n: statistics.median(r["ns_per_day"] for r in runs) for n, runs in found.items()}
        records = [{"gpus": n, "ns_per_day": speed[n], "speed_over_one": speed[n] / speed[1], "runs": runs} for n, runs in found.items()]
        with open(options.output, "w") as out:
            json.dump({**head, "records": records}, out, indent=1)
    if turn == 0:
        sys.exit("no time for any turn")


if __name__ == "__main__":
    main()
