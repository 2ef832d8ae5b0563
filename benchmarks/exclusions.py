#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What long lists of excluded pairs cost, on the CPU: a molecule of 3,000 atoms that exclude one another.

  exclusions.py [--before LIBRARY] [--note TEXT] [--store]      needs the package gmxfmm (python/), or PYTHONPATH and GMXFMM_LIBRARY
  exclusions.py --gmx GMX [--note TEXT] [--store]               a patched gmx

The molecule is alone in its box, or among 20,000 other atoms that exclude nothing; single precision, forces alone, two threads. Of each call its
processor time in all threads, the least of some calls, which other programs disturb least, and the same without excluded pairs; the list, the
assignment and the step for order and cells given, beside the measurement by which mdrun chooses. --before: another build of the library, called in
turn with the first. --store: -> exclusions.json
--gmx: mdrun's time for 10 steps of such a molecule, that of tests/mdrun/exclusions.py, with the choice by measuring and without, and with no
excluded pairs. --store: -> exclusions-mdrun.json
"""
import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

THREADS = 2
MOLECULE = 3000
SYSTEMS = {"alone": (15, MOLECULE), "among 20,000 others": (29, 23000)}  # sites along an edge, atoms on them
CALLS = 5


def processor_time(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin


def measure(name, is_excluded):
    """Seconds of each call, with the library of this process."""
    import numpy as np

    import gmxfmm
    from gmxfmm import _library
    library = _library.library
    sites, n = SYSTEMS[name]
    numbers = np.random.default_rng(1)
    x = np.argwhere(np.ones((sites, sites, sites)))[:n].astype(np.float32)
    x = ((x + numbers.uniform(0, 0.5, x.shape)) * 0.3).astype(np.float32)  # the molecule is a slab: most of its pairs are far
    q = np.where(np.arange(n) % 2 == 0, 0.5, -0.5).astype(np.float32)
    box = 0.3 * sites * np.eye(3)
    start = np.concatenate([np.arange(0, MOLECULE * MOLECULE + 1, MOLECULE), np.full(n - MOLECULE, MOLECULE * MOLECULE)]).astype(np.int32)
    others = np.tile(np.arange(MOLECULE, dtype=np.int32), MOLECULE)
    pairs = (start, others) if is_excluded else None
    seconds = {}
    with gmxfmm.Plan(x, q, box, precision="single", measure=False, order=6, grid=(6, 6, 6), num_threads=THREADS, assign_every=10**9) as plan:
        handle, force = plan._handle, np.empty_like(x)
        output = _library.Output(size=ctypes.sizeof(_library.Output), force=force.ctypes.data)
        calls = {"set_exclusions_s": lambda: library.gmxfmm_set_exclusions(handle, *([a.ctypes.data for a in pairs] if pairs else [None, None])),
                 "assign_s": lambda: library.gmxfmm_assign(handle, x.ctypes.data),
                 "step_s": lambda: library.gmxfmm_execute(handle, x.ctypes.data, output)}
        for _ in range(CALLS):
            for what, call in calls.items():
                seconds[what] = min(seconds.get(what, float("inf")), processor_time(call))
    options = _library.Options()
    library.gmxfmm_default_options_of_size(options, ctypes.sizeof(options))
    options.accuracy, options.reproducible, options.num_threads = 4e-4, 1, THREADS
    single = _library.header.enums["gmxfmm_precision"]["GMXFMM_SINGLE"]
    options.precision = options.array_type = single
    lists = [a.ctypes.data for a in pairs] if pairs else [None, None]
    system = _library.System(ctypes.sizeof(_library.System), n, box.ctypes.data, x.ctypes.data, q.ctypes.data, *lists)
    plan, message = ctypes.c_void_p(), ctypes.create_string_buffer(512)
    begin = time.process_time()
    if library.gmxfmm_create_measured(plan, options, system, None, None, None, message, 512):
        raise SystemExit(message.value.decode())
    seconds["create_measured_s"] = time.process_time() - begin
    library.gmxfmm_destroy(plan)
    return seconds


def of_library(path, name, is_excluded):
    """The same in a process of its own."""
    environment = {**os.environ, **({"GMXFMM_LIBRARY": path} if path else {})}
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--one", name, str(int(is_excluded))], env=environment,
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def of_mdrun(gmx, folder):
    """Seconds of the wall and of processors that mdrun takes from its start to its end, the least of two runs."""
    os.environ["GMXFMM_GMX"] = gmx
    sys.path.insert(0, os.path.join(HERE, os.pardir, "tests", "mdrun"))
    import exclusions as molecules
    rows = []
    for is_excluded in (False, True):
        system = molecules.molecule(folder, MOLECULE, is_excluded)
        molecules.gmx.grompp(folder, {**system.mdp, **molecules.FMM}, system)
        for choice in ([], ["-notunefmm"]):
            times = []
            for _ in range(2):
                before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
                molecules.gmx.mdrun(folder, *choice, threads=str(THREADS))
                now = resource.getrusage(resource.RUSAGE_CHILDREN)
                times.append((now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime, time.time() - begin))
            processor, wall = (min(each) for each in zip(*times))
            rows.append({"atoms": MOLECULE, "excluded": is_excluded, "options": " ".join(choice), "steps": 10, "processor_s": processor, "wall_s": wall})
            print(f"{'all' if is_excluded else 'no':3} pairs excluded {' '.join(choice):11} {processor:6.1f} s of processors, {wall:6.1f} s", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="another build of the library to compare with")
    parser.add_argument("--before-commit", help="what that was built from")
    parser.add_argument("--store", action="store_true", help="write benchmarks/results/<device>/exclusions.json")
    parser.add_argument("--gmx", help="time mdrun alone")
    parser.add_argument("--note", help="what else the machine did")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], arguments.one[1] == "1")))
        return
    import library as results
    if arguments.gmx:
        with tempfile.TemporaryDirectory() as folder:
            rows = of_mdrun(os.path.abspath(arguments.gmx), folder)
        if arguments.store:
            head = results.header(arguments, "exclusions", THREADS)
            head["command"] = "benchmarks/exclusions.py --gmx GMX --store"
            results.store(arguments, "exclusions-mdrun.json", head, rows=rows)
        return
    rows = []
    for name in SYSTEMS:
        row = {"molecule": name, "atoms": SYSTEMS[name][1], "entries": MOLECULE ** 2, "without": of_library(None, name, False)}
        if arguments.before:
            row["before"] = of_library(arguments.before, name, True)
        row["now"] = of_library(None, name, True)
        rows.append(row)
        for state in ("without", "before", "now"):
            if state in row:
                print(f"{name:20} {state:8}", *(f"{what[:-2]} {1e3 * value:9.1f} ms" for what, value in row[state].items()))
    if arguments.store:
        head = results.header(arguments, "exclusions", THREADS)
        head["command"] = "benchmarks/exclusions.py" + (" --before LIBRARY" if arguments.before else "") + " --store"
        more = {"before_commit": arguments.before_commit} if arguments.before_commit else {}
        results.store(arguments, "exclusions.json", head, **more, rows=rows)


if __name__ == "__main__":
    main()
