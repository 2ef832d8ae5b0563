#!/usr/bin/env python3
"""Runs the benchmarks of the library alone and stores what they print under benchmarks/results/<device>.

  library.py [operators] [points] [accuracy] [choice] [treecode] [ranks] [open] [--build FOLDER] [--threads N] [--points N] [--largest N] [--note TEXT]

operators  time of each operator of the octree over orders and depths, one thread     -> operators.json, operators.txt
points     points per second, uniform in a cube, open, at 1e-3, 1e-6 and 1e-9 by the fastest setting that reaches them;
           time against the number of points at 1e-3, cells as the library chooses    -> points.json
treecode   whole calls of the treecode and of the FMM, both kernels                    -> treecode.json, or, of half a million
           points and more, a few settings                                            -> treecode-million.json
ranks      whole calls of the treecode on ranks that are threads: strong and weak scaling, on a CPU or, with --device cuda, on all
           GPUs that there are, in no more than --seconds                              -> treecode-ranks.json
open       whole calls of the FMM, and of the treecode, on charges distributed unevenly, beside those in a cube, in
           turns in one run; --device cuda: on a GPU, from and to the host                     -> open.json
accuracy   error in water over method, order, cells and ws                             -> accuracy.txt
choice     settings chosen by measurement in water against those of the model alone: errors, times in one run, in turns,
           what the choice costs; on one thread and on all                            -> choice.json
FOLDER: a build with -DGMXFMM_BENCHMARKS=ON (default: build/library).
"""
import argparse
import datetime
import itertools
import json
import math
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "mdrun"))
from harness import commit, device  # noqa: E402
from mdrun_gpu import gpu  # noqa: E402
from scaling import add_scaling  # noqa: E402

SPC216 = os.environ.get("GMXFMM_SPC216", "/usr/share/gromacs/top/spc216.gro")


def run(build, program, *arguments):
    """The JSON lines, or the text, that a benchmark prints."""
    command = [os.path.join(build, "benchmarks", "benchmark-" + program), *map(str, arguments)]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    lines = done.stdout.splitlines()
    return [json.loads(line) for line in lines] if lines and lines[0].startswith("{") else done.stdout


def header(options, name, threads):
    head = {"benchmark": name, "device": device(threads), "date": datetime.date.today().isoformat(), "commit": commit(),
            "command": "benchmarks/library.py " + name}
    if options.note:
        head["note"] = options.note
    return head


def folder(head):
    machine = head["device"]
    name = head["gpu"]["device"] if "gpu" in head else f"{machine['cpu']} {machine['cores']} cores"
    return os.path.join(HERE, "results", re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"))


def store(options, name, head, text=None, **parts):
    machine = head["device"]
    os.makedirs(folder(head), exist_ok=True)
    path = os.path.join(folder(head), name)
    with open(path, "w") as out:
        if text is None:
            json.dump({**head, **parts}, out, indent=1)
            out.write("\n")
        else:
            note = f"; {head['note']}" if "note" in head else ""
            out.write(f"# device: {machine['cpu']}, {machine['cores']} cores; date: {head['date']}; commit: {head['commit']}{note}\n")
            out.write(f"# command: {head['command']}\n" + text)
    print("written:", os.path.relpath(path))


# -------------------------------------------------------------------------------------------------------------- operators

COLUMNS = ("method", "precision", "separation", "order", "depth", "to_parent", "truncate", "p2m_ns", "m2m_ns", "m2l_ns", "l2l_ns", "l2p_ns", "p2p_ns", "m2l_ms")


def operators(options):
    rows = []
    for precision in ("single", "double"):
        def sweep(*arguments):
            rows.extend(run(options.build, "operators", "--precision", precision, "--limit", options.limit, *arguments))
        sweep("--orders", "0..20", "--depths", "4")
        sweep("--orders", "4,8,12", "--depths", "2,3,5,6", "--methods", "rotation,symmetric", "--per-leaf", "8")
        sweep("--orders", "4,8,12,16", "--depths", "3", "--shortened")
        sweep("--orders", "4,8,12,16", "--depths", "3", "--separation", "2")
    rows = list({tuple(row[c] for c in COLUMNS[:7]): row for row in reversed(rows)}.values())[::-1]  # each case once
    head = header(options, "operators", 1)
    store(options, "operators.json", head, rows=rows)
    lines = ["# nanoseconds: P2M, L2P a particle; M2M, L2L a child; M2L a translation of the full list; P2P a pair\n",
             "# " + " ".join(COLUMNS) + "\n"]
    lines += [" ".join(str(row[c]) for c in COLUMNS) + "\n" for row in rows]
    store(options, "operators.txt", head, text="".join(lines))


# ----------------------------------------------------------------------------------------------------------------- points

def least_order(options, method, precision, ws, size, n, accuracy):
    """The lowest order that reaches accuracy on an eighth of the points in an eighth of the cells, with what it took."""
    small = size - 1 if method != "fft" else max(size // 2, 1)

    def trial(order):
        row, = run(options.build, "points", n // 8, method, order, small, ws, precision, options.threads, 1)
        return row, max(row["potential_error"], row["gradient_error"]) <= accuracy

    # from the usual convergence, 0.43 or 0.21 an order, up or down
    order = max(1, round(math.log(accuracy / 0.03) / math.log(0.43 if ws == 1 else 0.21)))
    row, good = trial(order)
    while good and order > 1:
        below, still = trial(order - 1)
        if not still:
            return row
        row, order = below, order - 1
    while not good and order < (20 if precision == "single" else 40):
        order += 1
        row, good = trial(order)
    return row


def measure(options, method, precision, ws, size, n, accuracy, order):
    """One setting at the least order from `order` on that reaches accuracy with all points, or None."""
    for p in range(order, order + 4):
        row, = run(options.build, "points", n, method, p, size, ws, precision, options.threads, 3 if n <= 2000000 else 1)
        if max(row["potential_error"], row["gradient_error"]) <= accuracy:
            return row
    return None


def best_setting(options, method, precision, n, accuracy):
    """ws, size and order that are fastest on an eighth of the points: from coarse cells to fine as long as that helps."""
    best = None
    for ws in (1, 2) if accuracy < 1e-4 else (1,):
        last = None
        for size in sizes(method, n, precision):
            row = least_order(options, method, precision, ws, size, n, accuracy)
            if last is not None and row["execute_s"] > last:
                break
            last = row["execute_s"]
            if best is None or last < best[0]:
                best = last, ws, size, row["order"]
    return best[1:]


def sizes(method, n, precision):
    if method == "fft":
        return [max(2, round((n / per_cell) ** (1 / 3))) for per_cell in (120, 60, 30)]
    fit = round(math.log(n / (30 if precision == "single" else 60), 8))
    return [depth for depth in (fit - 1, fit, fit + 1) if depth >= 1]


def points(options):
    table, growth = [], []
    for accuracy, precision in ((1e-3, "single"), (1e-6, "double"), (1e-9, "double")):
        for method in ("rotation", "symmetric", "fft"):
            ws, size, order = best_setting(options, method, precision, options.points, accuracy)
            row = measure(options, method, precision, ws, size, options.points, accuracy, order)
            if row:
                table.append({"accuracy": accuracy, **row})
                print(f"{accuracy:g} {method}: {row['points_per_second']:.3g} points/s, order {row['order']}, "
                      f"depth {row['depth']}, grid {row['grid']}, ws {row['separation']}, errors {row['potential_error']:.2g} {row['gradient_error']:.2g}", flush=True)
    for method in ("rotation", "fft"):
        order = next((row["order"] for row in table if row["method"] == method and row["accuracy"] == 1e-3), None)
        n = 10000
        while order and n <= options.largest:
            row = measure(options, method, "single", 1, 0, n, 1e-3, order)
            if row:
                growth.append(row)
                print(f"{method}, {n} points: {1e9 * row['execute_s'] / n:.0f} ns a point", flush=True)
            n = n * 3 if str(n)[0] == "1" else n // 3 * 10  # 1e4, 3e4, 1e5, ...
    store(options, "points.json", header(options, "points", options.threads), table=table, growth=growth)


# --------------------------------------------------------------------------------------------------------------- accuracy

def accuracy(options):
    store(options, "accuracy.txt", header(options, "accuracy", options.threads), text=run(options.build, "accuracy", SPC216, 2))


# ----------------------------------------------------------------------------------------------------------------- choice

def choice(options):
    cases = [(1, 4e-4, "costs"), (2, 4e-4, "costs"), (3, 4e-4), (3, 4e-4, "costs"), (5, 4e-4), (5, 4e-4, "costs"), (5, 1e-6, "double")]
    rows = []
    for threads, (copies, accuracy, *words) in itertools.product(sorted({1, options.threads}), cases):
        os.environ["OMP_NUM_THREADS"] = str(threads)
        row, = run(options.build, "choice", SPC216, copies, accuracy, options.pairs, *words)
        rows.append(row)
        print(f"{row['atoms']} atoms, {threads} threads, {accuracy:g}, by {row['compared_by']}: {row['model']['measured']:.2g} to "
              f"{row['chosen']['measured']:.2g}, time of a step times {row['time_chosen_over_model']:.2f}; choice: {row['cost_in_steps']} steps",
              flush=True)
    store(options, "choice.json", header(options, "choice", options.threads), rows=rows)


# --------------------------------------------------------------------------------------------------------------- treecode

def treecode(options):
    """Curves of error over time by theta, degrees as in Fig. 4 of Vaughn, Wilson & Krasny 2020, and what is chosen for an
    accuracy; the FMM beside them. Leaves are smaller than on a GPU: cores have no threads to fill. Half a million points and more:
    one call of a few settings, which takes some eight minutes of two cores with a million -> treecode-million.json"""
    rows = []
    if options.points >= 500000:
        common = ["--points", options.points, "--threads", options.threads, "--calls", 1]
        for theta, degrees in ((0.5, (3, 5)), (0.7, (1, 3, 5, 7, 9)), (0.9, (1, 3, 5, 7, 9, 11))):
            rows += run(options.build, "treecode", *common, *(f"{theta},{degree},500" for degree in degrees))
            print(f"theta {theta}: {rows[-1]['seconds']} s, error {rows[-1]['potential_error']}", flush=True)
        rows += run(options.build, "treecode", *common, "--dual", *(f"0.9,{degree},200" for degree in (3, 5, 7, 9)))
        rows += run(options.build, "treecode", *common, *(f"fmm,{accuracy:g}" for accuracy in (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)))
        store(options, "treecode-million.json", header(options, "treecode", options.threads), rows=rows)
        return
    chosen = [f"treecode,{accuracy:g}" for accuracy in (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)]
    for kernel in ([], ["--kappa", "0.5"]):
        common = ["--points", options.points, "--threads", options.threads, *kernel]
        for theta in (0.5, 0.7, 0.9):
            settings = [f"{theta},{degree},500" for degree in range(1, 14, 2)]
            rows += run(options.build, "treecode", *common, *settings)
            print(f"theta {theta} {' '.join(kernel)}: {rows[-1]['seconds']} s, error {rows[-1]['potential_error']}", flush=True)
        rows += run(options.build, "treecode", *common, *chosen)
        rows += run(options.build, "treecode", *common, "--dual", *chosen)
        rows += run(options.build, "treecode", *common, "--single", *chosen[:3])
    rows += run(options.build, "treecode", "--points", options.points, "--threads", options.threads,
                *(f"fmm,{accuracy:g}" for accuracy in (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)))
    store(options, "treecode.json", header(options, "treecode", options.threads), rows=rows)


# ------------------------------------------------------------------------------------------------------------------ ranks

def stream(build, program, *arguments):
    """The JSON lines of a program, printed as they come."""
    command = [os.path.join(build, "benchmarks", "benchmark-" + program), *map(str, arguments)]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as running:
        for line in running.stdout:
            print(line, end="", flush=True)
            yield json.loads(line)
    if running.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {running.returncode}")


def of_ranks(row):
    """What is known of a case by its ranks: stages by the slowest one, particles and bytes by the mean."""
    ranks = row["of_ranks"]
    return {**{key: max(r[key] for r in ranks) for key in ranks[0] if key.endswith("_s")},
            **{"mean_" + key: sum(r[key] for r in ranks) / len(ranks) for key in ("imported", "bytes_sent", "bytes_received")}}


def treecode_ranks(options):
    """Strong and weak scaling, which stand beside one rank at the same settings; rows are stored after each case."""
    rows, begin = [], time.monotonic()
    head = header(options, "ranks", options.threads)
    if options.device == "cuda":
        head["gpu"] = gpu()
        head["command"] += " --device cuda"
        cases = [[*kernel, *traversal, *size, "--samples", 100] for kernel in ([], ["--kappa", 0.5]) for traversal in ([], ["--dual"])
                 for size in (["--points", 64e6], ["--per-rank", 16e6])]
        ranks, common = options.ranks or [1, 2, 4], ["--device", "cuda", "0.8,8,4000"]
    else:
        cases = [[*traversal, "--per-rank", 250000, "--threads", 1, "--samples", 200] for traversal in ([], ["--dual"])]
        ranks, common = options.ranks or [1, 2], ["0.8,8,2000"]
    for case in cases:
        left = options.seconds - (time.monotonic() - begin)
        if left <= 0:
            print("left out:", *case)
            continue
        for row in stream(options.build, "treecode_ranks", "--ranks", ",".join(map(str, ranks)), "--seconds", left, *case, *common):
            row.update(of_ranks(row))
            rows.append(row)
            add_scaling(rows)
            store(options, "treecode-ranks.json", head, rows=rows)


# ------------------------------------------------------------------------------------------------------------------- open

def uneven(options):
    """The time of a call over that of the FMM with as many charges in a cube, the least of some rounds each: on the CPU processor time,
    which other programs disturb less; there the treecode, which is slower, has no more than 100,000. --sphere: the FMM alone with so many on a sphere, over the time a charge of the largest cube."""
    rows, time = {}, "seconds" if options.device == "cuda" else "processor_s"
    sizes = options.sizes or [options.points]
    head = header(options, "open", options.threads)
    head["command"] += f" --threads {options.threads} --sizes {' '.join(map(str, sizes))} --rounds {options.rounds}"
    head["command"] += f" --sphere {options.sphere}" if options.sphere else ""
    if options.device == "cuda":
        head["command"] += " --device cuda"
        head["gpu"] = gpu()

    def take(points, distribution, setting):
        row = run(options.build, "treecode", "--points", points, "--threads", options.threads, "--samples", 200, "--field", "--dual",
                  "--device", options.device, "--distribution", distribution, setting)[0]
        key = points, distribution, setting
        row["runs"] = rows.get(key, {"runs": 0})["runs"] + 1
        rows[key] = {**min(rows.get(key, row), row, key=lambda one: one[time]), "runs": row["runs"]}
        print(f"{points} {distribution} {setting}: {row[time]} s", flush=True)

    def store_rows():
        """After each round: a command that is stopped loses none before."""
        for (points, distribution, setting), row in rows.items():
            cube = rows[min(points, max(sizes)), "cube", "fmm,1e-4"]
            row["time_over_cube"] = round(row[time] / points / (cube[time] / cube["particles"]), 2)
        store(options, "open.json", head, rows=list(rows.values()))

    for points in sizes:
        for _ in range(options.rounds):
            for distribution in ("cube", "outlier", "cluster", "plummer", "sphere"):
                for setting in ("fmm,1e-4", "treecode,1e-4")[:1 if options.device == "cpu" and points > 100000 else 2]:
                    take(points, distribution, setting)
            store_rows()
    if options.sphere:
        take(options.sphere, "sphere", "fmm,1e-4")
        store_rows()
    for (points, distribution, setting), row in rows.items():
        print(f"{points} {distribution} {setting}: {row[time]} s, {row['time_over_cube']} of the FMM's in a cube, error {row['field_error']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[[], "operators", "points", "accuracy", "choice", "treecode", "ranks", "open"])
    parser.add_argument("--build", default=os.path.join(os.environ.get("GMXFMM_BUILD_DIR") or os.path.join(ROOT, "build"), "library"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--sizes", type=int, nargs="+", help="charges of each system, in place of --points (open)")
    parser.add_argument("--sphere", type=int, help="charges on a larger sphere (open)")
    parser.add_argument("--largest", type=int, default=10000000)
    parser.add_argument("--limit", type=float, default=10, help="seconds that one case of operators may take")
    parser.add_argument("--pairs", type=int, default=21, help="rounds in which steps of both choices are timed")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each case, in turns (open)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="(open, ranks)")
    parser.add_argument("--ranks", type=int, nargs="+", help="numbers of them, the first of which is 1 (ranks)")
    parser.add_argument("--seconds", type=float, default=3600, help="no case begins that would end later (ranks)")
    parser.add_argument("--note", help="stored with the results: what else ran, say")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    for name in options.what or ("operators", "points", "accuracy", "choice"):
        {"operators": operators, "points": points, "accuracy": accuracy, "choice": choice, "treecode": treecode, "ranks": treecode_ranks, "open": uneven}[name](options)


if __name__ == "__main__":
    main()
