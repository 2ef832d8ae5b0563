#!/usr/bin/env python3
"""Energy drift of rigid water at constant energy, run by run -> drift.json.

Usage: drift.py [--copies N] [--hours H] [--slab film|walls] OUT NAME SEED NSTLIST STEPS [KEY=VALUE]...

One run of tests/mdrun/nve_drift.py with other velocities, on one thread, and what the random walk of its energy heats by: SEED
for gen_seed; NSTLIST, steps of 1 fs between pair searches, at which atoms are assigned to cells (on a CPU mdrun does so every 20
steps at most, also in between); options of the .mdp, such as fmm-accuracy=1e-5 or coulombtype=PME. Of 648 N^3 atoms; after H hours
a run ends, and counts as far as it came. With --slab the box is that of mdrun_slab.py's film or of its walls, in steps of 2 fs. The
record is added to OUT.
Needs GMXFMM_GMX_D, a patched gmx_d, or else GMXFMM_GMX, a gmx in mixed precision.
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "mdrun"))
from harness import FMM, changed, device, drift, fmm_parameters, heating, made, need, program, read_log, stored, water, work_folder  # noqa: E402
from mdrun_slab import SLAB, WALLS, between_walls  # noqa: E402

# What is removed of the centre's motion, which walls change, would be missing in the energy. One cutoff for both, and one buffer.
SLABS = {"film": SLAB, "walls": {**WALLS, "wall-ewald-zfac": "3"}}
IN_SLABS = {"comm-mode": "None", "dt": "0.002", "rlist": "1.1", "rvdw-switch": "0.9"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=1, metavar="N")
    parser.add_argument("--hours", type=float, default=-1, metavar="H")
    parser.add_argument("--slab", choices=SLABS)
    for argument in ("output", "name", "seed", "nstlist", "steps"):
        parser.add_argument(argument)
    parser.add_argument("more", nargs="*", metavar="KEY=VALUE")
    args = parser.parse_args()
    output, nstlist, atoms = args.output, args.nstlist, 648 * args.copies ** 3
    extra = dict(word.split("=") for word in args.more)
    gmx_d = program("GMXFMM_GMX_D")
    gmx = gmx_d or need("GMXFMM_GMX")
    folder = work_folder(args.name)
    system = water(gmx, folder, [args.copies] * 3)
    mdp = changed(system.mdp, dt=0.001, verlet_buffer_tolerance=-1, rlist=0.92, nstlist=nstlist, vdw_modifier="Potential-switch",
                  rvdw_switch=0.75, dispcorr="no", nstenergy=20, nstcalcenergy=20, gen_seed=args.seed, nsteps=args.steps)
    if args.slab:
        mdp.update({**SLABS[args.slab], **IN_SLABS})
        system = between_walls(gmx, folder, system) if args.slab == "walls" else system
    gmx.grompp(folder, {**mdp, **FMM, **extra}, system)
    gmx.mdrun(folder, "-pin", "off", "-maxh", str(args.hours), threads="1")
    rows = [row for row in gmx.energies(folder, ["Total Energy"]) if row["Time"] >= 0.5]
    (slope, noise), (rate, chance) = drift(rows, atoms), heating(rows, atoms)
    records = stored(output, [])
    records.append({"cpu": device()["cpu"], **made(),
                    "atoms": atoms, "seed": int(args.seed), "nstlist": int(nstlist), **({"slab": args.slab} if args.slab else {}), "ps": rows[-1]["Time"], "settings": extra,
                    "precision": "double" if gmx_d else "mixed", "fmm": fmm_parameters(read_log(folder)), "drift_kj_mol_ps_atom": slope,
                    "standard_error": noise, "walk_kj_mol_ps_atom": rate, "walk_standard_error": chance})
    with open(output, "w") as file:
        file.write("[" + ",\n ".join(json.dumps(record) for record in records) + "]\n")


main()
