#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Steps and assignments of two versions of the library on the CPU, in one process and in turns, so that a busy machine meets both.

  pairs.py BEFORE AFTER [--rounds N] [--threads N] [--cases WORD]... [--python] [--store]

BEFORE and AFTER: checkouts, each with the shared library in build/library or build/library-cuda. Of each case a plan of both is made with the
same settings; each round times the two one after the other, the first one changing, and the figure is the median of the rounds' ratios.
--python: steps of gmxfmm.Plan instead, each with the package and the library of its checkout.
--store: -> pairs-cpu.json, with --python pairs-python.json
"""
import argparse
import ctypes
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))
import library as results  # noqa: E402

# alone: the package would load a library
spec = importlib.util.spec_from_file_location("header", ROOT / "python" / "gmxfmm" / "_header.py")
header = importlib.util.module_from_spec(spec)
spec.loader.exec_module(header)

CASES = {  # copies of 648 atoms along an edge, or points; options; whether energy and virial are wanted
    "water, 648 atoms, order 8, 3^3 cells": (1, {"order": 8, "grid": (3, 3, 3)}),
    "1,000 points in an open cube, order 8, 3^3 cells": (1000, {"order": 8, "grid": (3, 3, 3), "boundary": "OPEN"}),
    "5,000 points in an open cube, order 8, 4^3 cells": (5000, {"order": 8, "grid": (4, 4, 4), "boundary": "OPEN"}),
    "water, 5,184 atoms, order 8, 7^3 cells": (2, {"order": 8, "grid": (7, 7, 7)}),
    "water, 17,496 atoms, order 8, 10^3 cells": (3, {"order": 8, "grid": (10, 10, 10)}),
    "water, 81,000 atoms, order 8, 16^3 cells": (5, {"order": 8, "grid": (16, 16, 16)}),
    "water, 81,000 atoms, the same, energy and virial": (5, {"order": 8, "grid": (16, 16, 16)}, True),
    "water, 17,496 atoms, double precision, order 12, 10^3 cells": (3, {"order": 12, "grid": (10, 10, 10), "precision": "DOUBLE"}),
    "1,000 points in an open cube, double precision, order 8, 3^3 cells": (1000, {"order": 8, "grid": (3, 3, 3), "boundary": "OPEN", "precision": "DOUBLE"}),
    "water, 81,000 atoms, octree by rotation, order 8, 16^3 leaves": (5, {"order": 8, "grid": (16, 16, 16), "depth": 2, "m2l": "ROTATION"}),
    "100,000 points in an open cube, order 8": (100_000, {"order": 8, "boundary": "OPEN"}),
    "100,000 points in an open cube, treecode, theta 0.7, degree 6": (100_000, {"boundary": "OPEN", "method": "TREECODE", "theta": 0.7, "degree": 6}),
}


def water(copies):
    """Positions, charges, the edges of the box, and the excluded pairs of each atom: its molecule's."""
    with open(ROOT / "tests" / "data" / "water216.gro", encoding="utf-8") as file:
        rows = file.read().splitlines()
    x = np.array([[float(row[a:a + 8]) for a in (20, 28, 36)] for row in rows[2:650]])
    edge = np.array([float(word) for word in rows[650].split()])
    steps = np.array(np.meshgrid(*[range(copies)] * 3, indexing="ij")).reshape(3, -1).T * edge
    x = (steps[:, None, :] + x[None, :, :]).reshape(-1, 3)
    n = len(x)
    first = np.arange(n) // 3 * 3
    return x, np.tile([-0.82, 0.41, 0.41], n // 3), copies * edge, (np.arange(n + 1, dtype=np.int32) * 3,
                                                                    np.ascontiguousarray(first[:, None] + np.arange(3), dtype=np.int32))


def points(n):
    random = np.random.default_rng(1)
    return random.random((n, 3)), np.where(np.arange(n) % 2, -1.0, 1.0), None, None


def address(array):
    return None if array is None else array.ctypes.data


class Version:
    """The library of a checkout."""

    def __init__(self, checkout):
        found = [path for name in ("library", "library-cuda") if (path := checkout / "build" / name / "src" / "fmm" / "libgmxfmm.so").exists()]
        if not found:
            sys.exit(f"pairs.py: no build/library or build/library-cuda with libgmxfmm.so in {checkout}")
        self.header = header.Header(checkout / "src" / "fmm" / "gmxfmm.h")
        self.path = str(found[0].resolve())
        self.library = ctypes.CDLL(self.path)
        self.options, self.output = (self.header.structure("gmxfmm_" + name) for name in ("options", "output"))
        self.constants = {name: value for enum in self.header.enums.values() for name, value in enum.items()}
        self.library.gmxfmm_default_options_of_size.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.library.gmxfmm_message.restype = ctypes.c_char_p
        self.commit = subprocess.run(["git", "-C", str(checkout), "describe", "--always", "--dirty"], capture_output=True, text=True, check=True).stdout.strip()

    def constant(self, value):
        return self.constants.get(f"GMXFMM_{value}", self.constants.get(f"GMXFMM_M2L_{value}"))


class Plan:
    """A plan of one version; step and assign are what is timed."""

    def __init__(self, version, system, settings, everything, threads):
        self.version, (self.x, q, edges, exclusions) = version, system
        options = version.options()
        version.library.gmxfmm_default_options_of_size(ctypes.byref(options), ctypes.sizeof(options))
        options.num_threads = threads
        for name, value in settings.items():
            if isinstance(value, tuple):
                getattr(options, name)[:] = value
            else:
                setattr(options, name, version.constant(value) if isinstance(value, str) else value)
        message = ctypes.create_string_buffer(1000)
        self.handle = ctypes.c_void_p()
        box = None if edges is None else np.diag(edges).copy()
        self.check(version.library.gmxfmm_create(ctypes.byref(self.handle), ctypes.byref(options), ctypes.c_int64(len(q)),
                                                 ctypes.c_void_p(address(box)), message, ctypes.c_size_t(1000)), message.value)
        self.call("set_charges", ctypes.c_int64(len(q)), ctypes.c_void_p(address(q)))
        if exclusions:
            self.call("set_exclusions", *(ctypes.c_void_p(address(array)) for array in exclusions))
        treecode = settings.get("method") == "TREECODE"
        self.results = np.zeros_like(self.x)
        self.out = version.output(size=ctypes.sizeof(version.output), want_energy=int(everything), want_virial=int(everything),
                                  **{"field" if treecode else "force": address(self.results)})
        self.assign()
        self.step()

    @staticmethod
    def check(status, text):
        if status:
            sys.exit(f"pairs.py: {text.decode()}")

    def call(self, name, *arguments):
        self.check(getattr(self.version.library, "gmxfmm_" + name)(self.handle, *arguments), self.version.library.gmxfmm_message(self.handle) or b"")

    def step(self):
        self.call("execute", ctypes.c_void_p(address(self.x)), ctypes.byref(self.out))

    def assign(self):
        self.call("assign", ctypes.c_void_p(address(self.x)))

    def destroy(self):
        self.version.library.gmxfmm_destroy(self.handle)


class Package:
    """The Python package of a checkout, with its library, under a name of its own."""

    def __init__(self, checkout, name):
        version = Version(checkout)
        self.commit = version.commit
        os.environ["GMXFMM_LIBRARY"], os.environ["GMXFMM_HEADER"] = version.path, str(checkout / "src" / "fmm" / "gmxfmm.h")
        folder = checkout / "python" / "gmxfmm"
        found = importlib.util.spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
        self.package = sys.modules[name] = importlib.util.module_from_spec(found)
        found.loader.exec_module(self.package)


class PlanOfPython:
    """A gmxfmm.Plan of one version; the ways that a step can be asked for."""

    def __init__(self, version, system, settings, threads):
        x, q, edges, lists = system
        exclusions = None if lists is None else np.stack([np.repeat(np.arange(len(x)), np.diff(lists[0])), lists[1].reshape(-1)], axis=1)
        settings = {name: value.lower() if isinstance(value, str) else value for name, value in settings.items() if name != "boundary"}
        self.x = x
        self.plan = version.package.Plan(x, q, edges, exclusions=exclusions, measure=False, assign_every=10**9, num_threads=threads,
                                         **{"precision": "single", **settings})
        self.out = self.plan.step(x)
        self.results = self.out.forces

    def step(self):
        self.plan.step(self.x)

    def step_into(self):
        self.plan.step(self.x, self.out)

    def destroy(self):
        self.plan.close()


def in_turns(plans, what, rounds):
    """Of what both do: milliseconds, medians, and the ratio's median and quartiles."""
    times = []
    for turn in range(rounds):
        row = [0.0, 0.0]
        for which in ((0, 1) if turn % 2 else (1, 0)):
            begin = time.perf_counter()
            getattr(plans[which], what)()
            row[which] = 1e3 * (time.perf_counter() - begin)
        times.append(row)
    ratios = [after / before for before, after in times]
    quartiles = statistics.quantiles(ratios, n=4)
    return {"before_ms": round(statistics.median(t[0] for t in times), 4), "after_ms": round(statistics.median(t[1] for t in times), 4), "rounds": rounds,
            "after_over_before": round(quartiles[1], 4), "quartiles": [round(quartiles[0], 4), round(quartiles[2], 4)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=61, help="of a case of 81,000 atoms, more of smaller ones (default %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", nargs="*", default=[], metavar="WORD", help="those whose names have one of these words")
    parser.add_argument("--python", action="store_true")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--note")
    options = parser.parse_args()
    checkouts = options.before.resolve(), options.after.resolve()
    if options.python:
        versions = [Package(checkout, f"gmxfmm_{which}") for checkout, which in zip(checkouts, ("before", "after"))]
    else:
        versions = [Version(checkout) for checkout in checkouts]
    records = []
    for name, (size, settings, *everything) in CASES.items():
        if options.cases and not any(word in name for word in options.cases):
            continue
        system = water(size) if size < 100 else points(size)
        rounds = options.rounds * (1 if len(system[0]) > 50_000 else 3)
        if options.python:
            if everything or settings.get("method") == "TREECODE":
                continue  # Python's steps have the energy in any case
            plans, timed = [PlanOfPython(version, system, settings, options.threads) for version in versions], ("step", "step_into")
        else:
            plans, timed = [Plan(version, system, settings, bool(everything), options.threads) for version in versions], ("step", "assign")
        record = {"case": name, "settings": settings, **{what: in_turns(plans, what, rounds) for what in timed}}
        record["same_bits"] = bool((plans[0].results == plans[1].results).all())
        for plan in plans:
            plan.destroy()
        records.append(record)
        print(f"{name:62}", *(f"{what} {record[what]['after_over_before']:.3f} {record[what]['quartiles']}" for what in timed),
              "same bits" if record["same_bits"] else "other bits", sep="  ", flush=True)
    if options.store:
        benchmark = "pairs-python" if options.python else "pairs-cpu"
        head = results.header(options, benchmark, options.threads)
        head["command"] = f"benchmarks/pairs.py BEFORE AFTER {'--python ' * options.python}--store"
        results.store(options, benchmark + ".json", head, before=versions[0].commit, after=versions[1].commit, records=records)


if __name__ == "__main__":
    main()
