#!/usr/bin/env python3
"""What pressure coupling every 10 steps costs on a GPU, with FMM and with PME: the membrane of mdrun_gpu.py.

coupling_gpu.py GMX OUTPUT [--repeats N]   (as scripts/run-gpu-bundle.sh calls it)

Semi-isotropic NPT is compared with constant volume twice: with energies as often as the coupling needs them, which leaves the
changes of the box, and with energies every 100 steps. Runs are made in turns, OUTPUT has the medians.
"""
import argparse
import datetime
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mdrun_systems  # noqa: E402
from harness import FMM, Gmx, changed, commit, run_info  # noqa: E402
from mdrun_gpu import gpu  # noqa: E402

ENSEMBLES = {"npt": {}, "nvt_energies_every_10": {"pcoupl": "no", "nstcalcenergy": "10"}, "nvt_energies_every_100": {"pcoupl": "no"}}
METHODS = {"fmm": (FMM, ["-fmm", "gpu"]), "pme": ({"coulombtype": "PME"}, ["-pme", "gpu", "-notunepme"])}
STEPS = 12000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gmx")
    parser.add_argument("output")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--work", default="/tmp/gmxfmm-coupling", help="folder for files (default %(default)s)")
    options = parser.parse_args()
    gmx, folder = Gmx(os.path.abspath(options.gmx)), os.path.abspath(options.work)
    os.makedirs(folder, exist_ok=True)
    offload = ["-nb", "gpu", "-ntomp", str(min(16, os.cpu_count()))]
    system = mdrun_systems.membrane(gmx, folder)
    mdrun_systems.equilibrated(gmx, folder, system, 2000, [*offload, "-pme", "gpu"])
    frames, at = system.frame
    found = {}
    for repeat in range(options.repeats):
        for method, (settings, choice) in METHODS.items():
            for ensemble, coupling in ENSEMBLES.items():
                name = f"{method}-{ensemble}"
                if repeat == 0:
                    gmx.grompp(folder, changed(system.mdp, **settings, **coupling), system, "-t", frames, "-time", f"{at:g}", name=name)
                gmx("mdrun", "-s", name + ".tpr", "-deffnm", name, "-ntmpi", "1", "-pin", "on", *offload, *choice, "-bonded", "gpu", "-update", "gpu",
                    "-nsteps", str(STEPS), "-resethway", "-noconfout", folder=folder)
                found.setdefault(method, {}).setdefault(ensemble, []).append(run_info(folder, name, float(system.mdp["dt"])))
    records = []
    for method, ensembles in found.items():
        ms = {e: statistics.median(run["ms_per_step"] for run in runs) for e, runs in ensembles.items()}
        records.append({"method": method, "ns_per_day": {e: [run["ns_per_day"] for run in runs] for e, runs in ensembles.items()},
                        "us_per_step": {e: round(1e3 * t, 1) for e, t in ms.items()},
                        "loss": {e: round(1 - t / ms["npt"], 4) for e, t in ms.items() if e != "npt"}})
        print(f"{method}: " + ", ".join(f"{e} {1e3 * t:.1f} us a step" for e, t in ms.items())
              + "".join(f"; loss against {e}: {100 * loss:.1f} %" for e, loss in records[-1]["loss"].items()))
    head = {"benchmark": "coupling", "system": system.name, **gpu(), "cores": os.cpu_count(), "date": datetime.date.today().isoformat(),
            "commit": os.environ.get("GMXFMM_BENCHMARK_COMMIT") or commit(),
            "command": os.environ.get("GMXFMM_BENCHMARK_COMMAND", " ".join(sys.argv)), "records": records}
    with open(options.output, "w") as out:
        json.dump(head, out, indent=1)


if __name__ == "__main__":
    main()
