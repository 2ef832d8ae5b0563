#!/usr/bin/env python3
"""Two versions of the library and of gmx in turns on one GPU, to see what a change costs or gains.

pairs_gpu.py BEFORE AFTER OUTPUT [--rounds N] [--library | --mdrun]

BEFORE and AFTER: folders with benchmark-water_cuda, benchmark-points_cuda, benchmark-treecode and, without --library, gmx of
each; with --mdrun gmx alone. OUTPUT, .json, gets a record for
each problem, with the times of all rounds: a step in water and of random points by the library alone, near and far field
together, the assignment to cells; whole calls of the treecode; a step of mdrun, all on the GPU, settings fixed. Needs GMXFMM_SPC216, GROMACS's box of water.

Stored results: pairs.json; pairs-octree.json; pairs-library.json (--library) and pairs-mdrun-2026.3.json (--mdrun), an earlier state and a later
one; pairs-plan.json and pairs-mdrun.json, before and after the plan became four objects. By hand: pairs-rotation.json, M2L of one level of
which 0.65 are occupied; pairs-coupling.json, runs of coupling_gpu.py; pairs-choice.json, on a CPU, settings measured and those of the
model before there was a measurement; pairs-left-cells.json, steps before and after they look for particles that have left their cells;
pairs-devices.json, the same and random points in an octree, after a GPU's objects were made equal.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mdrun_systems  # noqa: E402
from harness import FMM, Gmx, changed, commit, run_info  # noqa: E402
from mdrun_gpu import gpu  # noqa: E402

GPU = ["-ntmpi", "1", "-pin", "on", "-nb", "gpu"]
# Copies of the box of water, cells at order 8; steps of mdrun that take some two seconds, 0: by the library alone
TREECODE = "seconds"  # of a whole call
WATER = ((2, 7, 0), (3, 11, 0), (5, 18, 12000), (12, 45, 0))


def library(folder, program, *arguments):
    """The records that a benchmark of the library prints, one a line."""
    done = subprocess.run([os.path.join(folder, program), *map(str, arguments)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def steps(folder, work, copies, cells, num):
    """ms a step of mdrun. Each version makes and equilibrates a system of its own, in its first round."""
    gmx, here = Gmx(os.path.join(folder, "gmx")), os.path.join(work, os.path.basename(folder), f"water{copies}")
    threads = ["-ntomp", str(min(16, os.cpu_count()))]
    if not os.path.exists(os.path.join(here, "fmm.tpr")):
        os.makedirs(here, exist_ok=True)
        system = mdrun_systems.water(gmx, here, copies)
        mdrun_systems.equilibrated(gmx, here, system, 1000, [*GPU[2:], *threads, "-pme", "gpu"])
        frames, at = system.frame
        settings = {"fmm-order": 8, "fmm-grid": f"{cells} {cells} {cells}", "fmm-m2l": "fft"}
        gmx.grompp(here, changed(system.mdp, **FMM, **settings), system, "-t", frames, "-time", f"{at:g}", name="fmm")
    gmx("mdrun", "-s", "fmm.tpr", "-deffnm", "fmm", *GPU, *threads, "-fmm", "gpu", "-update", "gpu", "-nstlist", "200", "-nsteps", str(num),
        "-resethway", "-noconfout", folder=here)
    return run_info(here, "fmm", 0.002)["ms_per_step"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("output")
    parser.add_argument("--rounds", type=int, default=3)
    alone = parser.add_mutually_exclusive_group()
    alone.add_argument("--library", action="store_true", help="the library alone, without gmx")
    alone.add_argument("--mdrun", action="store_true", help="gmx mdrun alone, without programs of the library")
    parser.add_argument("--work", default="/tmp/gmxfmm-pairs", help="folder for files (default %(default)s)")
    options = parser.parse_args()
    if "GMXFMM_SPC216" not in os.environ:
        parser.error("GMXFMM_SPC216 must name GROMACS's box of water, spc216.gro")
    box, found = os.environ["GMXFMM_SPC216"], {}
    for _ in range(options.rounds):
        for which in ("before", "after"):
            folder = os.path.abspath(getattr(options, which))
            for copies, cells, num in WATER:
                for r in () if options.mdrun else library(folder, "benchmark-water_cuda", box, copies, 8, cells, 1):
                    for time in ("total_ms", "total_in_flight_ms", "assign_enqueued_ms"):
                        found.setdefault((f"water, {r['atoms']} atoms, order 8, {cells}^3 cells: {time}", which), []).append(r[time])
                if num and not options.library:
                    found.setdefault((f"mdrun, the same {648 * copies ** 3} atoms: ms a step", which), []).append(
                        steps(folder, options.work, copies, cells, num))
            if options.mdrun:
                continue
            for r in library(folder, "benchmark-points_cuda", 1048576, "rotation", 8, 5, 1, "fft", 8, 32, 1):
                found.setdefault((f"{r['points']} points and targets, {r['method']}, order 8: total_ms", which), []).append(r["total_ms"])
            for r in library(folder, "benchmark-treecode", "--device", "cuda", "--single", "--samples", 100, "0.8,8,2000"):
                found.setdefault((f"treecode, {r['particles']} charges: {TREECODE}", which), []).append(r[TREECODE])
    records = []
    for what in dict.fromkeys(what for what, _ in found):
        before, after = found[what, "before"], found[what, "after"]
        ratio = statistics.median(after) / statistics.median(before)
        records.append({"what": what, "before": before, "after": after, "after_over_before": round(ratio, 4)})
        print(f"{what}: {statistics.median(before):.4g} before, {statistics.median(after):.4g} after, {ratio:.3f}")
    head = {"benchmark": "pairs", **gpu(), "cores": os.cpu_count(), "date": datetime.date.today().isoformat(),
            "before": os.environ.get("GMXFMM_COMMIT_BEFORE", "unknown"), "after": commit(),
            "command": os.environ.get("GMXFMM_BENCHMARK_COMMAND", "benchmarks/pairs_gpu.py BEFORE AFTER OUTPUT"), "records": records}
    with open(options.output, "w") as out:
        json.dump(head, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
