#!/usr/bin/env python3
"""Plots of the stored results: plot.py [RESULT.json...] writes an .svg beside each (default: all under benchmarks/results).

mdrun-water-cpu: time per step of PME and FMM, divided into the stages that md.log lists.
"""
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

MDRUN = """
set terminal svg size 720,420 font "sans,13" background "white"
set output "{output}"
set title "{title}" noenhanced
set style data histograms
set style histogram rowstacked
set style fill solid 0.8 border rgb "white"
set boxwidth 0.6
set ylabel "ms per step"
set yrange [0:*]
set key outside right reverse Left noenhanced
set datafile separator "\\t"
plot for [i=2:{columns}] "-" using i:xtic(1) title columnheader(i)
"""


def mdrun(result, output):
    """Stacked bars; what takes less than 2 % in both is added up."""
    stages, bars = [], {}
    for method in ("pme", "fmm"):
        runs = sorted(result["runs"][method], key=lambda r: r["ms_per_step"])
        run = runs[len(runs) // 2]
        bars[method] = {name: part * run["ms_per_step"] for name, part in run["cycles"].items()}
        total = run["ms_per_step"]
        stages += [n for n, ms in bars[method].items() if ms > 0.02 * total and n not in stages]
        bars[method]["other"] = total
    for bar in bars.values():
        bar["other"] -= sum(bar.get(name, 0) for name in stages)
    stages.append("other")
    rows = ["\t".join(["method", *stages])]
    rows += ["\t".join([method.upper(), *(f"{max(bar.get(name, 0), 0):.4f}" for name in stages)]) for method, bar in bars.items()]
    data = "\n".join(rows) + "\ne\n"
    script = MDRUN.format(output=output, columns=len(stages) + 1,
                          title=f"{result['system']}, {result['device']['cpu']}, {result['device']['threads']} threads: FMM/PME {result['fmm_time_over_pme_time']:.2f}")
    subprocess.run(["gnuplot"], input=script + data * len(stages), text=True, check=True)


PLOTS = {"mdrun-water-cpu": mdrun}


def main():
    paths = sys.argv[1:] or sorted(glob.glob(os.path.join(HERE, "results", "*", "*.json")))
    for path in paths:
        with open(path) as file:
            result = json.load(file)
        draw = PLOTS.get(result.get("benchmark"))
        if draw:
            output = os.path.splitext(path)[0] + ".svg"
            draw(result, output)
            print(output)


main()
