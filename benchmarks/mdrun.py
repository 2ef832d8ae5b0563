"""The work of mdrun.sh, which documents the options."""
import argparse
import json
import os
import re
import statistics
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "mdrun"))
from harness import (FMM, Failure, Gmx, changed, device, made, read_log, run_info, water)  # noqa: E402

# PME as GROMACS has it by default; a cut-off of 1 nm gives it a force error of 4.0e-4 in water.
PME = {"coulombtype": "PME", "rcoulomb": "1.0", "fourierspacing": "0.12", "pme-order": "4", "ewald-rtol": "1e-5"}


def arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/mdrun.sh")
    parser.add_argument("--gmx", default=os.path.join(os.environ.get("GMXFMM_BUILD_DIR") or os.path.join(ROOT, "build"), "install/bin/gmx"))
    parser.add_argument("--copies", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--fmm", action="append", default=[], metavar="OPTION=VALUE", help="settings of FMM, e.g. --fmm fmm-order=8")
    parser.add_argument("--output")
    return parser.parse_args()


def report(title, runs):
    """Stages of the median run."""
    run = sorted(runs, key=lambda r: r["ms_per_step"])[len(runs) // 2]
    print(f"{title}: " + ", ".join(f"{r['ms_per_step']:.2f}" for r in runs) + " ms per step; of the median run")
    for name, part in sorted(run["cycles"].items(), key=lambda item: -item[1]):
        if part >= 0.005:
            print(f"    {100 * part:5.1f} %  {name}")
    if run["fmm_stages"]:
        print("  of the FMM")
        for name, part in run["fmm_stages"].items():
            print(f"    {100 * part:5.1f} %  {name}")


def main():
    options = arguments()
    gmx = Gmx(os.path.abspath(options.gmx))
    machine = device(options.threads)
    name = re.sub(r"[^a-z0-9]+", "-", f"{machine['cpu']} {machine['cores']} cores".lower()).strip("-")
    output = options.output or os.path.join(ROOT, "benchmarks", "results", name, "mdrun-water-cpu.json")
    folder = os.path.join(os.environ.get("GMXFMM_BUILD_DIR") or os.path.join(ROOT, "build"), "benchmark-mdrun")
    os.makedirs(folder, exist_ok=True)

    system = water(gmx, folder, (options.copies,) * 3)
    base = changed(system.mdp, nsteps=options.steps, rvdw=1.0, rcoulomb=1.0, tcoupl="V-rescale", tc_grps="System", tau_t=0.5, ref_t=300)
    runs = {"pme": [], "fmm": []}
    chosen = dict(setting.split("=", 1) for setting in options.fmm)
    for method, settings in (("pme", PME), ("fmm", {**FMM, **chosen})):
        gmx.grompp(folder, {**base, **settings}, system, name=method)
    for _ in range(options.pairs):
        for method, results in runs.items():
            gmx.mdrun(folder, "-noconfout", "-resethway", name=method, threads=str(options.threads))
            results.append(run_info(folder, method, float(base["dt"])))

    median = {method: statistics.median(r["ms_per_step"] for r in results) for method, results in runs.items()}
    # Each pair ran side by side in time, so that a disturbance of the machine shows as scatter of these.
    ratios = [f["ms_per_step"] / p["ms_per_step"] for p, f in zip(runs["pme"], runs["fmm"])]
    parameters = re.search(r"^FMM: .*\n.*", read_log(folder, "fmm"), re.M)
    result = {
        "benchmark": "mdrun-water-cpu", "system": f"SPC water, {648 * options.copies ** 3} atoms", "device": machine,
        **made(),
        "gromacs": re.search(r"GROMACS version: +(\S+)", read_log(folder, "fmm")).group(1), "steps_timed": options.steps // 2,
        "fmm_parameters": " ".join(parameters.group(0).split()) if parameters else "",
        "pme_parameters": PME, "ms_per_step": median, "fmm_time_over_pme_time": median["fmm"] / median["pme"], "ratios": ratios, "runs": runs,
    }
    os.makedirs(os.path.dirname(output), exist_ok=True)
    with open(output, "w") as out:
        json.dump(result, out, indent=1)
        out.write("\n")

    print(f"{result['system']}, {machine['cpu']}, {machine['threads']} threads")
    print(result["fmm_parameters"])
    report("PME", runs["pme"])
    report("FMM", runs["fmm"])
    print(f"time per step, FMM over PME: {result['fmm_time_over_pme_time']:.3f} (pairs: " + ", ".join(f"{r:.3f}" for r in ratios) + ")")
    print(f"written: {os.path.relpath(output)}")


try:
    main()
except Failure as failure:
    sys.exit(f"error: {failure}")
