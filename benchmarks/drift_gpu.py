#!/usr/bin/env python3
"""Energy drift of rigid water at constant energy with everything on a GPU -> drift.json. Usage: drift_gpu.py GMX OUT [--ps N] [--only NAME]...

5,184 atoms of SPC/E water, steps of 1 fs, mixed precision: PME and FMM at their defaults, FMM with atoms assigned to cells more often,
FMM with accuracies below the default. The list of pairs has the same cutoff and buffer for all. All runs share the GPU, each with
its part of the threads. A record has the slope of the total energy, what its random walk heats by, and the settings.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mdrun_systems  # noqa: E402
from harness import FMM, Gmx, changed, commit, complaint, device, drift, fmm_parameters, heating, read_log, stored, work_folder  # noqa: E402
from mdrun_gpu import gpu  # noqa: E402

# name: settings, steps between assignments at the most (each is a pair search here)
RUNS = {
    "PME": ({"coulombtype": "PME", "fourierspacing": "0.12", "pme-order": 4, "ewald-rtol": "1e-5"}, 50),
    "FMM": (FMM, 50),
    "FMM, 0.02 ps": (FMM, 20),
    "FMM, 0.01 ps": (FMM, 10),
    "FMM, 2e-4": ({**FMM, "fmm-accuracy": "2e-4"}, 50),
    "FMM, 1e-4": ({**FMM, "fmm-accuracy": "1e-4"}, 50),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gmx")
    parser.add_argument("output")
    parser.add_argument("--ps", type=float, default=1000)
    parser.add_argument("--only", action="append", choices=RUNS)
    args = parser.parse_args()
    gmx, folder = Gmx(os.path.abspath(args.gmx)), work_folder("drift")
    chosen = args.only or list(RUNS)
    system = mdrun_systems.water(gmx, folder, 2)
    mdrun_systems.equilibrated(gmx, folder, system, 5000, ["-ntomp", str(min(16, os.cpu_count())), "-nb", "gpu", "-pme", "gpu"])
    frames, at = system.frame
    threads = str(max(1, min(16, os.cpu_count()) // len(chosen)))
    base = changed(system.mdp, tcoupl="no", dt=0.001, nsteps=round(args.ps * 1000), verlet_buffer_tolerance=-1, rcoulomb=0.9, rvdw=0.9,
                   rlist=1.05, vdw_modifier="Potential-switch", rvdw_switch=0.8, dispcorr="no", nstcalcenergy=100, nstenergy=100, nstcomm=100)
    begun = {}
    for number, name in enumerate(chosen):
        settings, nstlist = RUNS[name]
        run = f"run{number}"
        gmx.grompp(folder, {**base, **settings, "nstlist": nstlist}, system, "-t", frames, "-time", f"{at:g}", name=run)
        where = ["-pme", "gpu", "-notunepme"] if name == "PME" else ["-fmm", "gpu"]
        command = ["mdrun", "-s", run + ".tpr", "-deffnm", run, "-ntmpi", "1", "-ntomp", threads, "-nb", "gpu", *where, "-update", "gpu",
                   "-pin", "off", "-noconfout"]
        with open(os.path.join(folder, run + ".err"), "w") as out:
            begun[name] = run, subprocess.Popen([gmx.path, *command], cwd=folder, stdout=out, stderr=out), " ".join(["gmx", *command])
    records = stored(args.output, [])
    failed = False
    for name, (run, process, command) in begun.items():
        if process.wait() != 0:
            with open(os.path.join(folder, run + ".err")) as said:
                print(f"{name}: gmx mdrun ended with {process.returncode}: {complaint(said.read())}", file=sys.stderr)
            failed = True
            continue
        rows = [row for row in gmx.energies(folder, ["Total Energy"], name=run) if row["Time"] >= 0.5]
        (slope, noise), (rate, chance) = drift(rows, system.atoms), heating(rows, system.atoms)
        print(f"{name:16} slope {slope:9.2e} +- {noise:.1e}, random walk {rate:8.2e} +- {chance:.1e} kJ/mol/ps an atom", flush=True)
        records.append({**gpu(), **device(threads), "date": datetime.date.today().isoformat(),
                        "commit": commit(), "command": command, "name": name,
                        "system": system.name, "atoms": system.atoms, "ps": args.ps, "settings": RUNS[name][0], "nstlist": RUNS[name][1],
                        "fmm": fmm_parameters(read_log(folder, run)), "drift_kj_mol_ps_atom": slope, "standard_error": noise,
                        "walk_kj_mol_ps_atom": rate, "walk_standard_error": chance})
        with open(args.output, "w") as file:
            file.write("[" + ",\n ".join(json.dumps(record) for record in records) + "]\n")
    sys.exit(failed)


main()
