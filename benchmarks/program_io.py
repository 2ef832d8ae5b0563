#!/usr/bin/env python3
"""How long the program gmxfmm reads and writes, on one core, and the memory that reading takes.

Usage: program_io.py PROGRAM [--particles N] [--repeats N] [--note TEXT] [--store]

Random ions in a cube, numbers with 17 digits, in each format. read_s: wall time of a whole run that ends when the file is
read and checked (its output exists already); read_cpu_s: processor time of the same; read_bytes: its largest resident
set, beside bytes_of_numbers of x y z q. write_s: as the program says, of x y z q potential fx fy fz. Each is the median
of the repeats, which go through the formats in turns. --store: to results/<device>/program-io.json.
"""
import argparse
import datetime
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests", "mdrun"))
from harness import commit, device  # noqa: E402

FORMATS = ("txt", "txt.gz", "npy", "xyz", "pqr")
EDGE = 100.0


def on_one_core():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def run(program, *arguments):
    """Exit status, stdout, wall time, processor time and largest resident set of gmxfmm solve."""
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        process = subprocess.Popen([program, "solve", *arguments], stdout=out, stderr=subprocess.DEVNULL, preexec_fn=on_one_core,
                                   env={**os.environ, "OMP_NUM_THREADS": "1"})
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return process.returncode, out.read(), wall, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss


def make(folder, n):
    """Random ions in text."""
    source = random.Random(1)
    plain = os.path.join(folder, "ions.txt")
    with open(plain, "w") as out:
        out.write(f"# box: {EDGE} 0 0 0 {EDGE} 0 0 0 {EDGE}\n")
        for i in range(n):
            out.write(f"{EDGE * source.random():.17g} {EDGE * source.random():.17g} {EDGE * source.random():.17g} {1 - 2 * (i % 2)}\n")
    return plain


def solve(program, source, target):
    cells = "64,64,64"
    status, out, *_ = run(program, source, "--box", str(EDGE), "--order", "2", "--grid", cells, "--measure", "no", "--output", target,
                          "--force", "--json")
    if status:
        sys.exit(f"{source} could not be solved")
    return json.loads(out)["seconds"]["write"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--particles", type=int, default=1000000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--note")
    parser.add_argument("--store", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plain = make(folder, options.particles)
        seconds = {ending: {"read": [], "cpu": [], "bytes": [], "write": []} for ending in ("x y z q", *FORMATS)}
        for _ in range(options.repeats):
            for ending in seconds:
                name = plain if ending == "x y z q" else os.path.join(folder, f"out.{ending}")
                if name != plain:
                    seconds[ending]["write"].append(solve(options.program, plain, name))
                status, _, wall, cpu, size = run(options.program, name, "--output", plain)
                assert status == 2, "an output that exists is an error"
                for key, found in (("read", wall), ("cpu", cpu), ("bytes", size)):
                    seconds[ending][key].append(found)
        for ending, found in seconds.items():
            columns = 4 if ending == "x y z q" else 8
            row = {"format": "txt" if columns == 4 else ending, "columns": columns, "bytes_of_numbers": 8 * columns * options.particles,
                   "read_s": round(statistics.median(found["read"]), 4), "read_cpu_s": round(statistics.median(found["cpu"]), 4),
                   "read_bytes": int(statistics.median(found["bytes"]))}
            if found["write"]:
                row["write_s"] = round(statistics.median(found["write"]), 4)
            rows.append(row)
            print(row)
    if options.store:
        machine = device(1)
        head = {"benchmark": "program-io", "device": machine, "date": datetime.date.today().isoformat(), "commit": commit(),
                "command": f"benchmarks/program_io.py PROGRAM --particles {options.particles} --repeats {options.repeats}"}
        if options.note:
            head["note"] = options.note
        name = re.sub(r"[^a-z0-9]+", "-", f"{machine['cpu']} {machine['cores']} cores".lower()).strip("-")
        path = os.path.join(HERE, "results", name, "program-io.json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            json.dump({**head, "rows": rows}, out, indent=1)
            out.write("\n")
        print("written:", os.path.relpath(path))


if __name__ == "__main__":
    main()
