#!/usr/bin/env python3
"""Turns the logs of run-cuda-bundle.sh into JSON with device, driver, CUDA version, date, commit and command:
cuda-results.py OUT COMMIT COMMAND"""
import csv
import datetime
import json
import os
import re
import subprocess
import sys


def environment(commit, command):
    names = ["name", "driver_version", "clocks.max.sm"]
    line = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(names), "--format=csv,noheader"],
                          capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    smi = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=True).stdout
    return {"device": line[0], "driver": line[1], "max_clock": line[2],
            "cuda": re.search(r"CUDA Version: *([\d.]+)", smi).group(1),
            "date": datetime.date.today().isoformat(), "commit": commit, "command": command}


def write(path, data):
    with open(path, "w") as f:
        json.dump(data, f, indent=1)
        f.write("\n")


def tests(out, common):
    with open(out + "/tests.txt") as f:
        rows = [line.split(maxsplit=3) for line in f]
    write(out + "/cuda-tests.json",
          {**common, "programs": [{"name": r[0], "exit": int(r[1]), "skipped_lines": int(r[2]),
                                   "last": r[3].strip() if len(r) > 3 else ""} for r in rows]})


def water(out, common):
    with open(out + "/water.txt") as f:
        write(out + "/water.json", [{**json.loads(line), **common} for line in f])


def kernels(out, common):
    if not os.path.exists(out + "/ncu.csv"):
        return
    found = {}
    with open(out + "/ncu.csv") as f:
        for row in csv.DictReader(line for line in f if line.startswith('"')):
            entry = found.setdefault(int(row["ID"]), {"kernel": re.sub(r"^void |\(.*", "", row["Kernel Name"])})
            value = float(row["Metric Value"].replace(",", ""))
            entry[row["Metric Name"]] = value
    # the step is what follows the spectra
    last = max(i for i, k in found.items() if "add_reciprocal" in k["kernel"])
    records = []
    for i in sorted(found):
        k = found[i]
        if i > last:
            records.append({"kernel": k["kernel"], "us": k["gpu__time_duration.sum"] / 1e3,
                            "issue_fraction": k["smsp__issue_active.avg.pct_of_peak_sustained_active"] / 100,
                            "fma_pipe_fraction": k["sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"] / 100,
                            "dram_fraction": k["dram__throughput.avg.pct_of_peak_sustained_elapsed"] / 100,
                            "shared_fraction":
                                k["l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"] / 100})
            print("{kernel:32.32} {us:8.1f} us  issue {issue_fraction:.2f}  fma {fma_pipe_fraction:.2f}  "
                  "dram {dram_fraction:.2f}  shared {shared_fraction:.2f}".format(**records[-1]))
    write(out + "/kernels.json", {**common, "system": "1119744 atoms, order 8, 45 x 45 x 45 cells", "kernels": records})


def main():
    out, commit, command = sys.argv[1:]
    common = environment(commit, command)
    tests(out, common)
    water(out, common)
    kernels(out, common)


main()
