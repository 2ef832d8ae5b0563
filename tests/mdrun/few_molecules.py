#!/usr/bin/env python3
"""Few molecules in a periodic box: the settings that were measured at the start serve a whole run, wherever molecules go.

The error of a few molecules depends on where they are in the cells of the FMM. At the end of a run mdrun measures again, and warns
of an error 1.5 times what was asked. The energy jumps where molecules change cells; at constant energy it is as smooth as with PME.
"""
import os
import random
import re

from harness import FMM, PLAIN_MDP, WATER_TOP, System, changed, data_folder, drift, main, need, read_log, work_folder

gmx = need("GMXFMM_GMX")

RUNS = [(1, 2.6), (2, 2.6), (3, 1.9), (5, 2.6), (8, 2.0), (10, 2.6), (16, 2.2), (27, 1.9), (40, 2.6), (64, 2.2)]  # molecules, nm
SEEDS, PS = 2, 200
CONSERVED = [(5, 2.6), (40, 2.6)]
EDGE_OF_216 = 1.86206  # nm, GROMACS's spc216.gro


def molecules(folder, number, edge, seed):
    """So many molecules of GROMACS's liquid water, further apart in proportion to the box."""
    with open(os.path.join(data_folder(gmx), "spc216.gro")) as lines:
        rows = lines.read().splitlines()[2:-1]
    chosen = sorted(random.Random(seed).sample(range(len(rows) // 3), number))
    out = []
    for molecule in chosen:
        x = [[float(row[20 + 8 * d:28 + 8 * d]) for d in range(3)] for row in rows[3 * molecule:3 * molecule + 3]]
        away = [x[0][d] * (edge / EDGE_OF_216 - 1) for d in range(3)]
        for k, name in enumerate(("OW", "HW1", "HW2")):
            out.append(f"{len(out) // 3 + 1:5d}{'SOL':<5s}{name:>5s}{len(out) + 1:5d}" + "".join(f"{x[k][d] + away[d]:8.3f}" for d in range(3)))
    name = f"water{number}-{seed}"
    conf, top = os.path.join(folder, name + ".gro"), os.path.join(folder, name + ".top")
    with open(conf, "w") as f:
        f.write("\n".join(["water", str(len(out)), *out, 3 * f" {edge:.5f}"]) + "\n")
    with open(top, "w") as f:
        f.write(WATER_TOP + f"SOL {number}\n")
    return System(name, conf, top, dict(PLAIN_MDP))


def error_at_end(log):
    """The measured error of the last coordinates, by the table of md.log, and whether there is a warning of it."""
    end = log[log.find("At the end of the run"):]
    rows = [line.split() for line in end.splitlines() if re.match(r" +(fft|rotation|symmetric|naive) ", line)]
    return float(rows[0][9]), "WARNING: At the end of the run" in log


def runs(checks, folder, base):
    """No warning at the end of runs, and no error that is larger than what was asked."""
    worst, warned = 0, []
    for seed in range(SEEDS):
        for number, edge in RUNS:
            system = molecules(folder, number, edge, seed)
            settings = changed(base, tcoupl="v-rescale", tc_grps="System", tau_t=0.5, ref_t=300)
            gmx.grompp(folder, settings, system, name=system.name)
            gmx.mdrun(folder, name=system.name, threads="1")
            error, warning = error_at_end(read_log(folder, system.name))
            worst = max(worst, error)
            warned += [system.name] * warning
    what = f"{SEEDS * len(RUNS)} runs of {PS} ps with 1 to 64 molecules"
    checks.that(not warned, f"{what}: warnings at the end of {', '.join(warned) or 'none'}")
    checks.below(f"{what}: the worst error at the end", worst, 4e-4, "", "what was asked, by default")


def conserved(checks, folder, base):
    """The drift of PME's energy is of rounding: with steps of 1 fs it is larger."""
    for number, edge in CONSERVED:
        system = molecules(folder, number, edge, 9)
        found = {}
        for method in (FMM, {"rcoulomb": "0.9", "rlist": "1.05"}):
            gmx.grompp(folder, {**changed(base, nstenergy=20, nstcalcenergy=20), "coulombtype": "PME", **method}, system, name="nve")
            gmx.mdrun(folder, name="nve", threads="1")
            rows = [r for r in gmx.energies(folder, ["Total Energy"], name="nve") if r["Time"] >= 0.5]
            found[method["coulombtype"] if method is FMM else "PME"] = drift(rows, 3 * number)[0]
        fmm, pme = found["FMM"], found["PME"]
        checks.below(f"{number} molecules at constant energy, {PS} ps: drift {fmm:.1e} kJ/mol/ps an atom, {pme:.1e} with PME; magnitude", abs(fmm),
                     abs(pme) + 5e-5, "kJ/mol/ps", "PME's and 0.02 kT an atom and ns; 5 molecules had 9e-4 where errors were measured at one place")


def test(checks):
    folder = work_folder()
    base = changed({**PLAIN_MDP, **FMM}, nsteps=round(PS / 0.002), nstlist=10, nstxout=0, nstvout=0, nstenergy=1000, rvdw=0.8, rvdw_switch=0.7,
                   vdw_modifier="Potential-switch", rlist=0.9, verlet_buffer_tolerance=-1, dispcorr="no")
    conserved(checks, folder, base)
    runs(checks, folder, base)


main(test)
