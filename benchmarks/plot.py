#!/usr/bin/env python3
"""Plots of the stored results: plot.py [RESULT...] draws an .svg beside each (default: all under benchmarks/results).

mdrun-water-cpu.json  time per step of PME and FMM, divided into the stages that md.log lists
operators.json        time of a translation by M2L over the order, by method and precision
points.json           time a point over the number of points, and points per second at three accuracies
m2l.json              time of M2L on a GPU over the order, by method, d = 5, single precision
far.json              time of the far field on a GPU over the order, fft and rotation
mdrun.json            ns/day of mdrun on a GPU over the number of atoms of water: PME, FMM, reaction field; the other systems as points
asked.json            force errors reached over those asked for, by choices that are measured and that are not
treecode.json         time over error of the treecode by theta and degree, and of the FMM
accuracy.txt          force error in water over the order, by method and ws
"""
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

HEAD = """
set terminal svg size 720,420 font "sans,13" background "white"
set output "{output}"
set title "{title}" noenhanced
set datafile separator "\\t"
"""

BARS = """
set style data histograms
set style histogram {kind}
set style fill solid 0.8 border rgb "white"
set boxwidth {width}
set yrange [0:*]
set key outside right reverse Left noenhanced
"""


def gnuplot(script):
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def curves(output, title, xlabel, ylabel, lines, more="", styles=None):
    """lines: name -> points; both axes as `more` says; styles: of gnuplot, one for each line."""
    styles = styles or ["linespoints"] * len(lines)
    script = HEAD.format(output=output, title=title) + f'set xlabel "{xlabel}"\nset ylabel "{ylabel}"\nset key outside right reverse Left noenhanced\nset grid\n{more}\n'
    script += "plot " + ", ".join(f'"-" using 1:2 with {style}{" pointsize 0.6" if "point" in style else ""} title "{name}"' for name, style in zip(lines, styles)) + "\n"
    for points in lines.values():
        script += "".join(f"{x}\t{y}\n" for x, y in points) + "e\n"
    gnuplot(script)


def bars(output, title, ylabel, rows, kind, width, script=""):
    """rows: the first has the names of the columns, each other one begins with its name."""
    data = "\n".join("\t".join(map(str, row)) for row in rows) + "\ne\n"
    script = HEAD.format(output=output, title=title) + BARS.format(kind=kind, width=width) + f'set ylabel "{ylabel}"\n' + script
    gnuplot(script + f'plot for [i=2:{len(rows[0])}] "-" using i:xtic(1) title columnheader(i)\n' + data * (len(rows[0]) - 1))


def machine(result):
    return f"{result['device']['cpu']}, {result['device']['threads']} threads"


def mdrun(result, output):
    """Stacked bars; what takes less than 2 % in both is added up."""
    stages, parts = [], {}
    for method in ("pme", "fmm"):
        runs = sorted(result["runs"][method], key=lambda r: r["ms_per_step"])
        run = runs[len(runs) // 2]
        parts[method] = {name: part * run["ms_per_step"] for name, part in run["cycles"].items()}
        total = run["ms_per_step"]
        stages += [n for n, ms in parts[method].items() if ms > 0.02 * total and n not in stages]
        parts[method]["other"] = total
    for bar in parts.values():
        bar["other"] -= sum(bar.get(name, 0) for name in stages)
    stages.append("other")
    rows = [["method", *stages]]
    rows += [[method.upper(), *(f"{max(bar.get(name, 0), 0):.4f}" for name in stages)] for method, bar in parts.items()]
    bars(output, f"{result['system']}, {machine(result)}: FMM/PME {result['fmm_time_over_pme_time']:.2f}", "ms per step", rows, "rowstacked", 0.6)


def operators(result, output):
    """The sweep over all orders is the one at depth 4."""
    lines = {}
    for row in result["rows"]:
        if row["depth"] == 4 and row["separation"] == 1 and not row["to_parent"] and not row["truncate"]:
            lines.setdefault(f"{row['method']}, {row['precision']}", []).append((row["order"], row["m2l_ns"]))
    curves(output, f"M2L, {machine(result)}", "order", "ns a translation", lines, "set logscale y")


def points(result, output):
    lines = {}
    for row in result["growth"]:
        lines.setdefault(f"{row['method']}, 1e-3", []).append((row["points"], 1e9 * row["execute_s"] / row["points"]))
    curves(output, f"points in a cube, open, {machine(result)}", "points", "ns a point", lines, 'set logscale x\nset yrange [0:*]\nset format x "10^{%L}"')
    methods = list(dict.fromkeys(row["method"] for row in result["table"]))
    rows = [["accuracy", *methods]]
    for accuracy in dict.fromkeys(row["accuracy"] for row in result["table"]):
        speed = {row["method"]: row["points_per_second"] for row in result["table"] if row["accuracy"] == accuracy}
        rows.append([f"{accuracy:g}", *(f"{speed.get(method, 0):.4g}" for method in methods)])
    number = max((row["points"] for row in result["table"]), default=0)
    bars(os.path.splitext(output)[0] + "-speed.svg", f"{number} points in a cube, open, {machine(result)}", "points per second", rows, "clustered", 0.9,
         "set logscale y\nset yrange [1e4:*]\n")


def m2l(records, output):
    lines = {}
    for r in records:
        if r["depth"] == 5 and r["precision"] == "single":
            lines.setdefault(r["method"], []).append((r["order"], r["ms"]))
    curves(output, f"M2L of 32768 cells, single precision, {records[0]['device']}", "order", "ms", lines, "set logscale y")


def far(records, output):
    lines = {}
    for r in records:
        lines.setdefault(f"{r['method']}, {r['points']} points, {r['precision']}", []).append((r["order"], r["far_ms"]))
    curves(output, f"far field, 100 points a leaf, periodic, {records[0]['device']}", "order", "ms", lines, "set logscale y")


def speeds(records, output):
    lines = {}
    for prefix, where in (("water", ""), ("", ", other systems")):
        for method, name in (("pme", "PME"), ("fmm", "FMM"), ("reaction_field", "reaction field")):
            found = [(r["atoms"], r[method + "_ns_per_day"]) for r in records
                     if r.get(method + "_ns_per_day") and r["name"].startswith("water") == (prefix == "water")]
            if found:
                lines[name + where] = sorted(found)
    styles = ["linespoints" if ", " not in name else "points" for name in lines]
    curves(output, f"mdrun, water, all on the GPU, equal force error, {records[0]['device']}", "atoms", "ns/day", lines,
           'set logscale xy\nset format x "10^{%L}"\nset key inside bottom left', styles)


def accuracy(lines, output):
    """Of the rows in double precision: cells of one size, 8 along an edge."""
    found = {}
    for line in lines:
        if not line.startswith("#"):
            method, ws, cells, order, precision, error = line.split()[:6]
            if precision == "double" and cells == "8":
                found.setdefault(f"{method}, ws {ws}", []).append((int(order), float(error)))
    curves(output, "SPC water, 5184 atoms, cells of 0.47 nm", "order", "relative RMS force error", found, 'set logscale y\nset format y "10^{%L}"')


def asked(result, output):
    lines, records = {}, [r for r in result["records"] if "reached" in r]
    for measure, name in (("no", "model"), ("yes", "measured")):
        lines[name] = [(r["asked"], r["reached"]) for r in records if r["measure"] == measure]
    lines["asked"] = [(3e-9, 3e-9), (3e-2, 3e-2)]
    curves(output, "Force errors reached in reference systems", "asked", "reached", lines,
           'set logscale xy\nset format "10^{%T}"\nset xrange [3e-9:3e-2]\nset yrange [1e-11:1]', ["points", "points", "lines"])


def treecode(result, output):
    """As Fig. 4 of Vaughn, Wilson & Krasny 2020: charges in a cube, a million if there are, Coulomb, potentials; a curve a theta,
    degrees along it; what single precision and dual traversal are worth; and the FMM."""
    records, lines = result["rows"] if isinstance(result, dict) else result, {}
    shown = [r for r in records if r["distribution"] == "cube" and r["kernel"] == "coulomb" and r["field_error"] is None]
    most = max((r["particles"] for r in shown if r["particles"] <= 1000000), default=0)
    shown = [r for r in shown if r["particles"] == most]
    leaves = [r["leaf"] for r in shown if r["traversal"] == "particle" and r["precision"] == "double" and r["method"] == "treecode"]
    usual = max(leaves, key=leaves.count, default=0)  # of the curves
    for r in shown:
        asked = r["setting"].split(",")[0]
        name = {"fmm": "FMM", "treecode": "chosen"}.get(asked, f"theta {asked}")
        if asked not in ("fmm", "treecode") and (r["traversal"] == "dual" or r["precision"] == "single" or r["leaf"] != usual):
            name = "treecode"  # of several theta
        name += (", dual" if r["traversal"] == "dual" and asked != "fmm" else "") + (", single" if r["precision"] == "single" else "")
        lines.setdefault(name, []).append((r["potential_error"], r["seconds"]))
    if not lines:
        return
    name = machine(result) if isinstance(result, dict) else records[0]["device"]
    curves(output, f"Potentials of {most:,} charges, {name}", "relative error", "seconds",
           {name: sorted(points) for name, points in lines.items()},
           'set logscale xy\nset format x "10^{%L}"\nset xrange [*:*] reverse',
           ["points" if name.startswith("treecode") else "linespoints" for name in lines])


PLOTS = {"treecode": treecode, "mdrun-water-cpu": mdrun, "operators": operators, "points": points, "asked": asked}
LISTS = {"treecode.json": treecode, "m2l.json": m2l, "far.json": far, "mdrun.json": speeds}  # lists of records


def main():
    paths = sys.argv[1:] or sorted(glob.glob(os.path.join(HERE, "results", "*", "*.json")) + glob.glob(os.path.join(HERE, "results", "*", "accuracy.txt")))
    for path in paths:
        output = os.path.splitext(path)[0] + ".svg"
        with open(path) as file:
            if path.endswith(".txt"):
                accuracy(file.readlines(), output)
            else:
                result = json.load(file)
                draw = PLOTS.get(result.get("benchmark")) if isinstance(result, dict) else LISTS.get(os.path.basename(path))
                if not draw:
                    continue
                draw(result, output)
        print(output)


main()
