#!/usr/bin/env python3
"""Plots of the stored results that documents show: plot.py [RESULT...] draws an .svg beside each (default: all under benchmarks/results).

mdrun.json            ns/day of mdrun on a GPU over the number of atoms of water: PME, FMM, reaction field; the other systems as points
lj-split-2026.3.json  mdrun-bars.svg: the speed of FMM over that of PME, a bar each for the systems that README shows, also from
                      mdrun-2026.3.json beside it
asked.json            force errors reached over those asked for, by choices that are measured and that are not
treecode.json         time over error of the treecode by theta and degree, and of the FMM
"""
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

HEAD = """
set terminal svg size 720,420 font "sans,13" background "white"
set output "{output}"
set title "{title}" noenhanced
set datafile separator "\\t"
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


def machine(result):
    return f"{result['device']['cpu']}, {result['device']['threads']} threads"


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


# What the bars are of, as README calls it: words, file, and the record's name or the first words of its system.
MDRUN, SPLIT = "mdrun-2026.3.json", "lj-split-2026.3.json"
SYSTEMS = [("SPC/E water", MDRUN, "water2"), ("SPC/E water", MDRUN, "water5"), ("SPC/E water", MDRUN, "water12"),
           ("CHARMM's water, split", SPLIT, "CHARMM TIP3P water"), ("membrane protein, CHARMM, split", SPLIT, "membrane protein"),
           ("bilayer of POPC, CHARMM, split", SPLIT, "bilayer"), ("protein in water, AMBER", MDRUN, "amber"), ("eight droplets", MDRUN, "droplets")]
BARS = (("FMM, options set for speed", "#1f5fa8"), ("FMM, default options", "#9dbfe6"))


def compared(folder):
    """(words, atoms, PME, FMM, PME, FMM with default options) of each system, ns/day; PME's fastest where it has not been timed with default ones."""
    stored = {}
    for name in (MDRUN, SPLIT):
        with open(os.path.join(folder, name)) as file:
            stored[name] = json.load(file)
    for words, file, name in SYSTEMS:
        if file == SPLIT:
            record = next(r for r in stored[file]["records"] if r["system"].startswith(name))
            median = {kind: sorted(runs)[len(runs) // 2] for kind, runs in record["ns_per_day"].items()}
            atoms = int(re.search(r"(\d+) atoms", record["system"])[1])
            yield (words, atoms, *(max(median[kind], median[f"{kind}, graph"]) for kind in ("PME", "FMM, split")),
                   *(median[f"{kind}, default options"] for kind in ("PME", "FMM, split")))
        else:
            record = next(r for r in stored[file] if r["name"] == name)
            pme, fmm = record["pme_ns_per_day"], record["fmm_ns_per_day"]
            yield words, record["atoms"], pme, fmm, record.get("pme_default_ns_per_day") or pme, record["fmm_default_ns_per_day"]


def bars(folder):
    """The picture of FMM's speed over PME's; written without gnuplot, as each bar has its number."""
    left, scale, height, y, body = 250, 108, 15, 74, []

    def text(x, y, words, more=""):
        body.append(f'<text x="{x:g}" y="{y:g}" {more}>{words}</text>')

    for words, atoms, *speeds in compared(folder):
        top = y
        for (label, colour), pme, speed in zip(BARS, speeds[::2], speeds[1::2]):
            if speed and pme:
                width = scale * speed / pme
                body.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{height - 2}" fill="{colour}"><title>{label}: {speed:.4g} ns/day, PME {pme:.4g}</title></rect>')
                text(left + width + 5, y + height - 4, f"{speed / pme:.2f}")
                y += height
        text(left - 8, (top + y) / 2 - 3, words, 'text-anchor="end"')
        text(left - 8, (top + y) / 2 + 10, f"{atoms:,} atoms", 'text-anchor="end" fill="#666666"')
        y += 14 if y - top > height else 20
    line = left + scale
    for at, (label, colour) in enumerate(BARS):
        row = 42 + 16 * at
        body.append(f'<rect x="{left - 90}" y="{row - 10}" width="11" height="11" fill="{colour}"/>')
        text(left - 74, row, label)
    text(left - 240, 20, "Speed of mdrun with FMM over its speed with PME, one NVIDIA H200", 'font-size="14" font-weight="bold"')
    body.append(f'<line x1="{line}" y1="66" x2="{line}" y2="{y - 6}" stroke="#c0392b" stroke-dasharray="4 3"/>')
    text(line, y + 8, "PME = 1", 'text-anchor="middle" fill="#c0392b"')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{y + 18}" viewBox="0 0 760 {y + 18}" font-family="sans-serif" font-size="12">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n")


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


PLOTS = {"treecode": treecode, "asked": asked}
LISTS = {"treecode.json": treecode, "mdrun.json": speeds}  # lists of records


def main():
    for path in sys.argv[1:] or sorted(glob.glob(os.path.join(HERE, "results", "*", "*.json"))):
        output = os.path.splitext(path)[0] + ".svg"
        if os.path.basename(path) == SPLIT:
            output = os.path.join(os.path.dirname(path), "mdrun-bars.svg")
            with open(output, "w") as file:
                file.write(bars(os.path.dirname(path)))
            print(output)
            continue
        with open(path) as file:
            result = json.load(file)
        draw = PLOTS.get(result.get("benchmark")) if isinstance(result, dict) else LISTS.get(os.path.basename(path))
        if draw:
            draw(result, output)
            print(output)


if __name__ == "__main__":
    main()
