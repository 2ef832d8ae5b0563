#!/usr/bin/env python3
"""Compares FMM with PME on one system: energies, pressure, forces and speed.

compare-with-pme.py GMX OUTPUT_FOLDER [-f MDP -c CONF -p TOP [-n INDEX]] [--steps N]

GMX is a patched gmx, or its name in PATH. With -f, -c and -p, as those of gmx grompp, the system is your own. Both methods
have its .mdp, with coulombtype = FMM and PME. Without them it is complex/swap_z of GROMACS's regression tests, a membrane
channel with ions and water of 13,821 atoms, as quickstart.sh has it.

Energies, pressure and forces are those of the same frames of a short run. The reference is PME with everything tightened, in
double precision if an unpatched gmx_d is there. Speed is the median of runs of N steps that take turns.
Prints a table, and writes results.txt, results.json and results.svg into the folder.
"""
import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests", "mdrun"))
from harness import (FMM, NO_COULOMB, TIGHT, TIGHT_MIXED, Failure, Gmx, System, changed, commit, device, force_error, make_frames, mean,  # noqa: E402
                     program, read_log, read_mdp, regression, run_info, single_points, version)

PAIRS = 3


def own_system(given):
    """The system of the files given, with PME, and the options of the FMM in its .mdp."""
    mdp = read_mdp(given.f)
    options = {name: value for name, value in mdp.items() if name.startswith("fmm-")}
    mdp = {name: value for name, value in mdp.items() if name not in options}
    index = os.path.abspath(given.n) if given.n else None
    return System(os.path.basename(given.c), os.path.abspath(given.c), os.path.abspath(given.p), changed(mdp, coulombtype="PME"), index), options


def reference_program(gmx, system, is_own):
    """The program and settings of the reference, and what to call it."""
    stock = program("GMXFMM_STOCK_GMX_D", "gmx_d")
    # swap_z has the same reference for all versions; a program of another version may not know an .mdp
    if stock and version(stock) == (version(gmx) if is_own else "2022.5"):
        return stock, TIGHT, "tight PME, double precision, unpatched gmx_d"
    cutoff = max(float(TIGHT_MIXED["rcoulomb"]), float(system.mdp.get("rvdw", 1)))
    return gmx, {**TIGHT_MIXED, "rcoulomb": str(cutoff)}, "tight PME, mixed precision"


def speeds(gmx, folder, system, fmm, steps):
    """Timings of PME and FMM runs that take turns."""
    # Output of every step, as the test has it, would be timed too.
    mdp = changed(system.mdp, nsteps=steps, nstxout=0, nstvout=0, nstfout=0, nstxout_compressed=0, nstlog=0, nstenergy=100,
                  nstcalcenergy=100)
    runs = {"pme": [], "fmm": []}
    for method, settings in (("pme", {}), ("fmm", fmm)):
        gmx.grompp(folder, {**mdp, **settings}, system, name="speed-" + method)
    for _ in range(PAIRS):
        for method, results in runs.items():
            gmx.mdrun(folder, "-noconfout", "-resethway", name="speed-" + method)
            results.append(run_info(folder, "speed-" + method, float(mdp["dt"])))
    return runs


PLOT = """
set terminal svg size 960,360 font "sans,13" background "white"
set output "results.svg"
set multiplot layout 1,3 title "{system}, {atoms} atoms, {cpu}, {threads} threads" noenhanced
set style fill solid 0.8
set boxwidth 0.6
set xrange [-0.6:1.6]
set xtics ("PME" 0, "FMM" 1)
unset key
set ylabel "RMS force error / RMS Coulomb force"
set yrange [0:*]
set format y "%.1te%T"
plot "-" using 1:2:3 with boxes linecolor variable
0 {pme_error} 1
1 {fmm_error} 2
e
set format y "%g"
set ylabel "pressure less that of tight PME (bar)"
set yrange [-{spread}:{spread}]
set xzeroaxis
plot "-" using 1:2:3 with points pointtype 7 pointsize 1 linecolor variable
{pressures}
e
set ylabel "ms per step"
set yrange [0:*]
plot "-" using 1:2:3 with boxes linecolor variable, "-" using 1:2 with points pointtype 7 pointsize 0.7 linecolor "black"
0 {pme_ms} 1
1 {fmm_ms} 2
e
{times}
e
"""


def plot(folder, result, points, reference, runs):
    errors = [result[m]["force_error"] for m in ("pme", "fmm")]
    pressures = "\n".join(f"{i + 0.08 * (k - 2)} {p.energy['Pressure'] - r.energy['Pressure']} {i + 1}"
                          for i, m in enumerate(("pme", "fmm")) for k, (p, r) in enumerate(zip(points[m], reference)))
    spread = 1.2 * max(abs(float(row.split()[1])) for row in pressures.splitlines())
    times = "\n".join(f"{i} {run['ms_per_step']}" for i, m in enumerate(("pme", "fmm")) for run in runs[m])
    script = PLOT.format(system=os.path.basename(result["system"]), atoms=result["atoms"], cpu=result["device"]["cpu"], threads=result["device"]["threads"], spread=spread, pme_error=errors[0], fmm_error=errors[1], pressures=pressures,
                         pme_ms=result["pme"]["ms_per_step"], fmm_ms=result["fmm"]["ms_per_step"], times=times)
    with open(os.path.join(folder, "results.gnuplot"), "w") as out:
        out.write(script)
    if shutil.which("gnuplot"):
        subprocess.run(["gnuplot", "results.gnuplot"], cwd=folder, check=True)


ROWS = [
    ("Coulomb (SR)", "kJ/mol", "coulomb_sr", "{:.1f}"),
    ("Coul. recip.", "kJ/mol", "coul_recip", "{:.1f}"),
    ("Coulomb, the sum", "kJ/mol", "coulomb", "{:.1f}"),
    ("Potential", "kJ/mol", "potential", "{:.1f}"),
    ("Pressure", "bar", "pressure", "{:.2f}"),
    ("Force error, RMS, relative", "", "force_error", "{:.1e}"),
    ("Coulomb error per atom", "kJ/mol", "energy_error_per_atom", "{:.1e}"),
    ("Pressure error, mean", "bar", "pressure_error", "{:.2f}"),
    ("Time per step", "ms", "ms_per_step", "{:.2f}"),
    ("Speed", "ns/day", "ns_per_day", "{:.2f}"),
]


def table(result):
    lines = [f"{'':28s}{'':>8s}{'PME':>14s}{'FMM':>14s}{'reference':>14s}"]
    for label, unit, name, form in ROWS:
        cells = [form.format(result[m][name]) if name in result[m] else "" for m in ("pme", "fmm", "reference")]
        lines.append(f"{label:28s}{unit:>8s}" + "".join(f"{cell:>14s}" for cell in cells))
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gmx")
    parser.add_argument("output", metavar="OUTPUT_FOLDER")
    parser.add_argument("-f", metavar="MDP", help="run parameters, as for gmx grompp")
    parser.add_argument("-c", metavar="CONF", help="coordinates")
    parser.add_argument("-p", metavar="TOP", help="topology")
    parser.add_argument("-n", metavar="INDEX", help="index file")
    parser.add_argument("--steps", metavar="N", type=int, default=400, help="steps of a run that is timed (default 400)")
    given = parser.parse_args()
    if len({given.f is None, given.c is None, given.p is None}) > 1:
        parser.error("a system of your own needs -f, -c and -p")
    for path in (given.f, given.c, given.p, given.n):
        if path and not os.path.exists(path):
            parser.error(f"there is no {path}")
    if shutil.which(given.gmx) is None:
        parser.error(f"there is no program {given.gmx}: give the path of a patched gmx")
    return given


def main():
    given = arguments()
    gmx, output = Gmx(os.path.abspath(shutil.which(given.gmx))), os.path.abspath(given.output)
    folder = os.path.join(output, "runs")
    os.makedirs(folder, exist_ok=True)
    is_own = given.f is not None
    system, options = own_system(given) if is_own else (regression("complex/swap_z"), {})
    fmm = {**FMM, **options}
    trajectory, times = make_frames(gmx, folder, system, steps=50, every=10)
    exact, tight, described = reference_program(gmx, system, is_own)
    reference = single_points(exact, folder, system, tight, trajectory, times, "tight")
    nothing = single_points(exact, folder, system, NO_COULOMB, trajectory, times, "none")
    points = {m: single_points(gmx, folder, system, s, trajectory, times, m) for m, s in (("pme", {}), ("fmm", fmm))}
    runs = speeds(gmx, folder, system, fmm, given.steps)

    atoms = len(reference[0].force) // 3
    called, what = (system.name, "your own system") if is_own else ("complex/swap_z", "a membrane channel with ions and water")
    result = {"system": called, "atoms": atoms, "frames": len(times), "reference_is": described, "device": device(),
              "date": datetime.date.today().isoformat(), "commit": commit(), "command": " ".join(sys.argv) if is_own else "./quickstart.sh"}
    for method, these in {**points, "reference": reference}.items():
        result[method] = {name: mean(p.energy[term] for p in these) for term, name in
                          (("Coulomb (SR)", "coulomb_sr"), ("Coul. recip.", "coul_recip"), ("Potential", "potential"), ("Pressure", "pressure"))}
        result[method]["coulomb"] = mean(p.coulomb() for p in these)
    for method, these in points.items():
        entry = result[method]
        entry["force_error"] = force_error(these, reference, nothing)
        entry["energy_error_per_atom"] = max(abs(p.coulomb() - r.coulomb()) for p, r in zip(these, reference)) / atoms
        entry["pressure_error"] = mean(p.energy["Pressure"] - r.energy["Pressure"] for p, r in zip(these, reference))
        for name in ("ms_per_step", "ns_per_day"):
            entry[name] = statistics.median(run[name] for run in runs[method])
        entry["ms_per_step_runs"] = [run["ms_per_step"] for run in runs[method]]
    result["pme_time_over_fmm_time"] = result["pme"]["ms_per_step"] / result["fmm"]["ms_per_step"]
    chosen = re.search(r"^FMM: .*\n.*", read_log(folder, "fmm-0"), re.M)
    result["fmm_parameters"] = " ".join(chosen.group(0).split()) if chosen else ""
    ran = re.search(r"near and far field in \w+ precision on the .*?(?=, [0-9.]+ MB)", read_log(folder, "fmm-0"))
    result["fmm_ran"] = f"FMM: {ran.group(0)}" if ran else ""

    whose = "the" if is_own else "the test's"
    text = (f"{called}: {what}, {atoms} atoms; {device()['cpu']}, {device()['threads']} threads\n"
            f"energies, pressure, forces: {len(times)} frames of a short PME run, the same for all; speed: median of {PAIRS} runs of {given.steps} steps\n"
            f"PME: as in {whose} .mdp; FMM: the same with coulombtype = FMM; reference: {described}\n"
            f"{result['fmm_parameters']}\n{result['fmm_ran']}\n\n{table(result)}\n")
    with open(os.path.join(output, "results.txt"), "w") as out:
        out.write(text)
    with open(os.path.join(output, "results.json"), "w") as out:
        json.dump(result, out, indent=1)
        out.write("\n")
    plot(output, result, points, reference, runs)
    if is_own:
        print(text)


try:
    main()
except Failure as failure:
    sys.exit(f"error: {failure}")
