#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The liquid of python/examples/polarizable_liquid.py for long enough that averages mean something -> polarizable-liquid.json.

Usage: polarizable_liquid.py OUT MINUTES EQUILIBRIUM AVERAGE CONSTANT [NOTE]     ps for equilibrium, for averages, at constant energy

Averages end after so many MINUTES at the latest, and count as far as they came.
Needs the package gmxfmm (python/), or PYTHONPATH and GMXFMM_LIBRARY. One thread.
"""
import json
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
sys.dont_write_bytecode = True
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(ROOT, "python", "examples"), os.path.join(ROOT, "tests", "mdrun")]
from harness import device, made  # noqa: E402
from polarizable_liquid import run  # noqa: E402


def main():
    output, minutes, *lengths = sys.argv[1:6]
    end = time.time() + 60 * float(minutes)
    head = {"benchmark": "polarizable-liquid", "device": device(1), **made(), "note": " ".join(sys.argv[6:])}

    def report(ps, means):
        print(f"{ps:.1f} ps:", *(f"{one:.4f}" for one in means), flush=True)
        return time.time() > end

    found = run(*map(float, lengths), report=report)
    with open(output, "w") as file:
        json.dump({**head, **found}, file, indent=1)
        file.write("\n")


main()
