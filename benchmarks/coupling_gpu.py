#!/usr/bin/env python3
"""What pressure coupling every 10 steps costs on a GPU, with FMM and with PME: the membrane of mdrun_gpu.py.

coupling_gpu.py GMX OUTPUT [--repeats N] [--limit SECONDS]   (as scripts/run-mdrun-bundle.sh calls it)

Semi-isotropic NPT is compared with constant volume twice: with energies as often as the coupling needs them, which leaves the
changes of the box, and with energies every 100 steps. Runs are made in turns, OUTPUT has the medians; it is written after each
turn, and no turn begins that would end after the limit.
"""
import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mdrun_systems  # noqa: E402
from harness import FMM, Gmx, changed, made, run_info  # noqa: E402
from mdrun_gpu import gpu  # noqa: E402

ENSEMBLES = {"npt": {}, "nvt_energies_every_10": {"pcoupl": "no", "nstcalcenergy": "10"}, "nvt_energies_every_100": {"pcoupl": "no"}}
METHODS = {"fmm": (FMM, ["-fmm", "gpu"]), "pme": ({"coulombtype": "PME"}, ["-pme", "gpu", "-notunepme"])}
STEPS = 12000


def records_of(found):
    records = []
    for method, ensembles in found.items():
        ms = {e: statistics.median(run["ms_per_step"] for run in runs) for e, runs in ensembles.items()}
        records.append({"method": method, "ns_per_day": {e: [run["ns_per_day"] for run in runs] for e, runs in ensembles.items()},
                        "us_per_step": {e: round(1e3 * t, 1) for e, t in ms.items()},
                        "loss": {e: round(1 - t / ms["npt"], 4) for e, t in ms.items() if e != "npt"}})
    return records


def main():
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gmx")
    parser.add_argument("output")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds for all of it")
    parser.add_argument("--work", default="/tmp/gmxfmm-coupling", help="folder for files (default %(default)s)")
    options = parser.parse_args()
    gmx, folder = Gmx(os.path.abspath(options.gmx)), os.path.abspath(options.work)
    os.makedirs(folder, exist_ok=True)
    offload = ["-nb", "gpu", "-ntomp", str(min(16, os.cpu_count()))]
    system = mdrun_systems.membrane(gmx, folder)
    mdrun_systems.equilibrated(gmx, folder, system, 2000, [*offload, "-pme", "gpu"])
    frames, at = system.frame
    for method, (settings, _) in METHODS.items():
        for ensemble, coupling in ENSEMBLES.items():
            gmx.grompp(folder, changed(system.mdp, **settings, **coupling), system, "-t", frames, "-time", f"{at:g}", name=f"{method}-{ensemble}")
    head = {"benchmark": "coupling", "system": system.name, **gpu(), "cores": os.cpu_count(), **made()}
    found, turn = {}, 0.0
    for repeat in range(options.repeats):
        start = time.monotonic()
        if start - began + turn > options.limit:
            print(f"no time for more than {repeat} of {options.repeats} turns")
            break
        for method, (_, choice) in METHODS.items():
            for ensemble in ENSEMBLES:
                name = f"{method}-{ensemble}"
                gmx("mdrun", "-s", name + ".tpr", "-deffnm", name, "-ntmpi", "1", "-pin", "on", *offload, *choice, "-bonded", "gpu", "-update", "gpu",
                    "-nsteps", str(STEPS), "-resethway", "-noconfout", folder=folder)
                found.setdefault(method, {}).setdefault(ensemble, []).append(run_info(folder, name, float(system.mdp["dt"])))
        turn = time.monotonic() - start
        with open(options.output, "w") as out:
            json.dump({**head, "records": records_of(found)}, out, indent=1)
    for record in records_of(found):
        print(f"{record['method']}: " + ", ".join(f"{e} {t} us a step" for e, t in record["us_per_step"].items())
              + "".join(f"; loss against {e}: {100 * loss:.1f} %" for e, loss in record["loss"].items()))
    if turn == 0:
        sys.exit("no time for any turn")


if __name__ == "__main__":
    main()
