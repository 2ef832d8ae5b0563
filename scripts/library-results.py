#!/usr/bin/env python3
"""Turns the logs of a part of run-library-bundle.sh into JSON with device, driver, CUDA version, date, commit and command:
library-results.py LOGS OUT COMMIT COMMAND PART [quiet]"""
import csv
import datetime
import glob
import json
import os
import re
import subprocess
import sys

from scaling import add_scaling  # beside this file in a bundle

SYSTEMS = {"water": "1119744 atoms of water, order 8, 45 x 45 x 45 cells",
           "rotation": "2^20 charges, 2^20 targets, open, m2l = rotation, order 9, depth 5",
           "symmetric": "2^20 charges, 2^20 targets, open, m2l = symmetric, order 9, depth 5",
           "treecode-single": "10^6 charges in a cube, treecode, theta 0.8, degree 8, leaf 2000, single precision",
           "treecode-double": "10^6 charges in a cube, treecode, theta 0.8, degree 8, leaf 2000, double precision"}


def environment(commit, command):
    names = ["name", "driver_version", "clocks.max.sm"]
    gpus = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(names), "--format=csv,noheader"],
                          capture_output=True, text=True, check=True).stdout.splitlines()
    line = gpus[0].split(", ")
    smi = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=True).stdout
    return {"device": line[0], "devices": len(gpus), "driver": line[1], "max_clock": line[2],
            "cuda": re.search(r"CUDA Version: *([\d.]+)", smi).group(1),
            "date": datetime.date.today().isoformat(), "commit": commit, "command": command}


def lines(logs, name):
    """The JSON lines of a log, none if there is no log yet."""
    path = os.path.join(logs, name + ".txt")
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f]


def write_list(path, records, common):
    """A list with one record a line; no file without records."""
    if not records:
        return
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(" " + json.dumps({**record, **common}) for record in records) + "\n]\n")


def read_words(path):
    """The words of each line, in order; nothing without the file."""
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return sorted(line.split() for line in f)


def outcome(log):
    """What a test program's log tells: cases by outcome, and why some were skipped; or a sanitizer's summary; or checks."""
    with open(log, errors="replace") as f:
        text = f.read()
    summary = re.findall(r"^=+ ((?:ERROR|RACECHECK) SUMMARY.*)$", text, re.M)
    if summary:
        return {"summary": summary[-1]}
    checks = re.findall(r"^cli: (\d+) checks passed, (\d+) failed$", text, re.M)
    if checks:
        return {"passed": int(checks[-1][0]), "failed": int(checks[-1][1]), "skipped": 0}
    counts = {name: len(re.findall(rf"^\[ +{word} +\] .* \(\d+ ms\)$", text, re.M))
              for name, word in (("passed", "OK"), ("failed", "FAILED"), ("skipped", "SKIPPED"))}
    reasons = {}
    for reason in re.findall(r": Skipped\n(.*)$", text, re.M):
        reasons[reason] = reasons.get(reason, 0) + 1
    return {**counts, "why_skipped": reasons} if reasons else counts


def tests(logs, out, common):
    programs = []
    for name, code, seconds in read_words(os.path.join(logs, "tests.txt")):
        programs.append({"name": name, "exit": int(code), "seconds": int(seconds), **outcome(os.path.join(logs, name + ".log"))})
        print(" ".join(f"{value}" if key == "name" else f"{key} {value}" for key, value in programs[-1].items() if key != "why_skipped"))
    with open(os.path.join(out, "cuda-tests.json"), "w") as f:
        json.dump({**common, "programs": programs}, f, indent=1)
        f.write("\n")
    print("passed {} failed {} skipped {}".format(*(sum(p.get(key, 0) for p in programs) for key in ("passed", "failed", "skipped"))))
    if any("no CUDA device" in p.get("why_skipped", {}) for p in programs):
        sys.exit("FAILED: tests of the GPU found none")


def python(logs, out, common):
    """Programs of unittest: how many cases passed, failed and were skipped, and why; the benchmark's records."""
    programs = []
    for name, code, seconds in read_words(os.path.join(logs, "python-tests.txt")):
        with open(os.path.join(logs, name + ".log"), errors="replace") as f:
            text = f.read()
        ran = sum(map(int, re.findall(r"^Ran (\d+) tests? in", text, re.M)))
        bad, left_out = (sum(int(n) for n in re.findall(rf"\b(?:{words})=(\d+)", text)) for words in ("failures|errors", "skipped"))
        reasons = sorted(set(re.findall(r"\.\.\. skipped ['\"](.*)['\"]$", text, re.M)))
        programs.append({"name": name, "exit": int(code), "seconds": int(seconds), "passed": ran - bad - left_out, "failed": bad,
                         "skipped": left_out, "why_skipped": reasons})
        print(" ".join(f"{value}" if key == "name" else f"{key} {value}" for key, value in programs[-1].items()))
    with open(os.path.join(out, "python-tests.json"), "w") as f:
        json.dump({**common, "programs": programs}, f, indent=1)
        f.write("\n")
    records = []
    for path in sorted(glob.glob(os.path.join(logs, "python-gpu-*.json"))):
        with open(path) as f:
            records.append(json.load(f))
    write_list(os.path.join(out, "python-gpu.json"), records, common)
    if any(reason.startswith("no GPU") for program in programs for reason in program["why_skipped"]):
        sys.exit("FAILED: tests of the GPU found none")


def water(logs, out, common):
    records = lines(logs, "water")
    write_list(os.path.join(out, "water.json"), records, common)
    for r in records:
        print("{atoms} atoms, order {order}, cells {cells}, ws {separation}: far {far_ms:.4f} near {near_ms:.4f} both {both_ms:.4f} "
              "total {total_ms:.4f} ms, {useful_pairs_per_s:.3g} pairs/s, error {relative_force_error:.2e}".format(**r))


def slab(logs, out, common):
    records = lines(logs, "slab")
    write_list(os.path.join(out, "slab.json"), records, common)
    for r in records:
        print("{atoms} atoms, order {order}, cells {cells} in a ring of {ring}, ws {separation}, {m2l}: far {far_over_box:.2f}, step "
              "{total_over_box:.2f} of the box's, spectra {spectra_over_padded_box:.2f} of the padded one's, error "
              "{relative_force_error:.2e}".format(**r))


def charges(logs, out, common):
    records = lines(logs, "charges")
    write_list(os.path.join(out, "charge_gradient.json"), records, common)
    for r in records:
        print("{atoms} atoms, {groups} groups: forces {forces_ms:.4f} ms, gradient {gradient_costs:+.1%}, and new charges {both_cost:+.1%}".format(**r))


def m2l(logs, out, common):
    records = lines(logs, "m2l")
    write_list(os.path.join(out, "m2l.json"), records, common)
    ms = {(r["method"], r["precision"], r["depth"], r["order"]): r["ms"] for r in records}
    print("M2L, d = 5: times of symmetric over those of rotation, naive over symmetric, symmetric over the compute-bound kernel")
    for precision in ("single", "double"):
        for order in range(3, 21):
            time = {method: ms.get((method, precision, 5, order)) for method in ("rotation", "symmetric", "naive", "compute-bound")}
            ratios = [time[a] / time[b] if time[a] and time[b] else float("nan")
                      for a, b in (("symmetric", "rotation"), ("naive", "symmetric"), ("symmetric", "compute-bound"))]
            print(f"{precision} p = {order:2}: " + " ".join(f"{ratio:7.2f}" for ratio in ratios))


def points(logs, out, common):
    write_list(os.path.join(out, "points.json"), lines(logs, "points"), common)
    records = lines(logs, "far")
    write_list(os.path.join(out, "far.json"), records, common)
    far = {(r["method"], r["precision"], r["points"], r["order"]): r["far_ms"] for r in records}
    print("far field, ms: fft, rotation, rotation over fft")
    for (method, precision, n, order), ms in sorted(far.items()):
        other = far.get(("rotation", precision, n, order))
        if method == "fft" and other:
            print(f"{precision} {n} points, p = {order:2}: {ms:.4f} {other:.4f} {other / ms:.2f}")


def choice(logs, out, common):
    records = lines(logs, "choice")
    write_list(os.path.join(out, "choice.json"), records, common)
    for r in records:
        print("{atoms} atoms, by {compared_by}: {model[measured]:.2g} to {chosen[measured]:.2g}, time of a step times {time_chosen_over_model:.2f} "
              "({chosen[ms]:.3f} ms); reference {reference_s:.2f} s, choice {choice_s:.2f} s".format(**r))


def treecode(logs, out, common):
    records = lines(logs, "treecode")
    write_list(os.path.join(out, "treecode.json"), records, common)
    for r in records:
        print("{particles} {distribution} {method} {kernel} {precision} {setting}: {seconds:.4g} s (assign {assign_s:.4g}, charges "
              "{charges_s:.4g}, sums {sums_s:.4g}), error {potential_error:.2e}".format(**r))


def devices(logs, out, common):
    """Lines of devices_cuda, and which lines of the benchmark's systems there are not."""
    records = lines(logs, "devices")
    names = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout.splitlines()
    topology = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True).stdout
    rounds = {}
    for r in records:  # each by a call of its own
        rounds[r["system"]] = rounds.get(r["system"], -1) + (r["parts"] == 1)
        r["round"] = rounds[r["system"]]
    numbers = [n for n in (1, 2, 4, 8) if n <= max(2, len(names))]
    have = {(r["system"], r["parts"]) for r in records}
    missing = [f"{system} on {n}" for system in ("12", "5", "droplets", "25", "p64") for n in numbers if (system, n) not in have]
    with open(os.path.join(out, "devices.json"), "w") as f:
        json.dump({**common, "gpu_names": names, "connection": sorted(set(re.findall(r"\b(?:NV\d+|PIX|PXB|PHB|NODE|SYS)\b", topology.split("Legend")[0]))),
                   "missing": missing, "records": records}, f, indent=1)
        f.write("\n")
    one = {}
    for r in records:
        if r["parts"] == 1:
            one[r["system"]] = r["total_ms"]
        print("{system} {parts} parts: total {total_ms:.4f} near {near_ms:.4f} far {far_ms:.4f} both {both_ms:.4f} ms, shares {shares} far "
              "{far_shares}, same bits {same_bits}, {ratio:.2f}".format(**r, ratio=one.get(r["system"], float("nan")) / r["total_ms"]))


def ranks(logs, out, common):
    records = lines(logs, "ranks")
    add_scaling(records)
    # devices: those of a case, not all that there are
    write_list(os.path.join(out, "treecode-ranks.json"), records, {key: value for key, value in common.items() if key != "devices"})
    for r in records:
        scaling = "".join(f", {key.replace('_', ' ')} {r[key]}" for key in ("speedup", "weak_efficiency") if key in r)
        print("{particles} on {ranks} ranks, {devices} devices, {kernel} {traversal} {precision} {theta},{degree},{leaf}: {seconds:.4g} s{scaling}, "
              "error {potential_error}".format(**r, scaling=scaling))
        for number, rank in enumerate(r["of_ranks"]):
            print(f"  rank {number}: " + ", ".join(f"{key[:-2]} {value:.3g}" for key, value in rank.items() if key.endswith("_s")) +
                  f" s; sends {rank['bytes_sent'] / 1e6:.1f} MB, plan {rank['plan_bytes'] / 1e9:.2f} GB")


def kernel_records(path, system):
    found = {}
    with open(path) as f:
        for row in csv.DictReader(line for line in f if line.startswith('"')):
            entry = found.setdefault(int(row["ID"]), {"kernel": re.sub(r"^void |\(.*", "", row["Kernel Name"])})
            entry[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    for _, k in sorted(found.items()):
        yield {"system": system, "kernel": k["kernel"], "us": round(k["gpu__time_duration.sum"] / 1e3, 3),
               **{name: round(k[metric] / 100, 4) for name, metric in (
                   ("issue_fraction", "smsp__issue_active.avg.pct_of_peak_sustained_active"),
                   ("fma_pipe_fraction", "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"),
                   ("fp64_pipe_fraction", "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"),
                   ("special_function_fraction", "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"),
                   ("dram_fraction", "dram__throughput.avg.pct_of_peak_sustained_elapsed"),
                   ("shared_fraction", "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"))}}


def kernels(logs, out, common):
    records = [record for name, system in SYSTEMS.items()
               for record in kernel_records(os.path.join(logs, f"kernels-{name}.csv"), system)]
    for record in records:
        print("{system:.24} {kernel:36.36} {us:8.1f} us  issue {issue_fraction:.2f}  fma {fma_pipe_fraction:.2f}  "
              "fp64 {fp64_pipe_fraction:.2f}  special {special_function_fraction:.2f}  "
              "dram {dram_fraction:.2f}  shared {shared_fraction:.2f}".format(**record))
    write_list(os.path.join(out, "kernels.json"), records, common)


def main():
    logs, out, commit, command, part = sys.argv[1:6]
    if sys.argv[6:] == ["quiet"]:
        sys.stdout = open(os.devnull, "w")
    {"tests": tests, "water": water, "slab": slab, "charges": charges, "m2l": m2l, "points": points, "choice": choice, "treecode": treecode, "ranks": ranks,
     "kernels": kernels, "devices": devices, "python": python}[part](
        logs, out, environment(commit, command))


main()
