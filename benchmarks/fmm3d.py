#!/usr/bin/env python3
"""The problem of `library.py points` by FMM3D (Flatiron Institute) and by this library, one thread, in one run.

  fmm3d.py [--points N] [--build FOLDER]      needs the Python package fmm3dpy, of which nothing is part of this project

Charges in [-1, 1) uniform in the unit cube, open, potential and gradient at the charges. FMM3D is asked for more and more
accuracy until its error, against direct sums at 1000 of the points, is below 1e-3, 1e-6 and 1e-9. This library then computes, by
`rotation` and by `fft` in cells of its own choice, at the least order with which neither of its two errors is above the one that
FMM3D has reached: speeds are compared at equal error, not at what was asked for. -> fmm3d.json
"""
import argparse
import json
import math
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import library  # noqa: E402

SAMPLES = 1000


def direct(numpy, x, q, samples):
    """Potential and gradient of all others at some of the points."""
    potential, gradient = numpy.zeros(len(samples)), numpy.zeros((3, len(samples)))
    for k, i in enumerate(samples):
        r = x - x[:, i:i + 1]
        r2 = (r * r).sum(axis=0)
        r2[i] = numpy.inf
        u = q / numpy.sqrt(r2)
        potential[k] = u.sum()
        gradient[:, k] = (r * (u / r2)).sum(axis=1)
    return potential, gradient


def relative(numpy, found, exact):
    return float(numpy.sqrt(((found - exact) ** 2).sum() / (exact ** 2).sum()))


def theirs(numpy, fmm3dpy, x, q, samples, exact, eps):
    seconds = math.inf
    for _ in range(2):  # the faster, as of ours
        begin = time.perf_counter()
        out = fmm3dpy.lfmm3d(eps=eps, sources=x, charges=q, pg=2)
        seconds = min(seconds, time.perf_counter() - begin)
    scale = 4 * numpy.pi  # its potential is q/(4 pi r)
    errors = [relative(numpy, scale * found, right) for found, right in zip((out.pot[samples], out.grad[:, samples]), exact)]
    return {"code": "FMM3D", "eps": eps, "seconds": seconds, "points_per_second": len(q) / seconds,
            "potential_error": errors[0], "gradient_error": errors[1]}


def least_order(options, method, separation, precision, reached):
    """One way through the far field at the least order that is as exact, or None."""
    def at(order):
        row, = library.run(options.build, "points", options.points, method, order, 0, separation, precision, 1, 3)
        return row, row["potential_error"] <= reached[0] and row["gradient_error"] <= reached[1]

    order = max(2, int((1.6 if separation == 1 else 1.0) * -math.log10(max(reached))))  # a guess
    found, enough = at(order)
    step = -1 if enough else 1
    while True:
        order += step
        if order < 2 or order > (40 if precision == "double" else 20):
            return found if enough else None
        other, is_enough = at(order)
        if step == -1 and not is_enough:
            return found
        found, enough = other, is_enough
        if step == 1 and enough:
            return found


def ours(options, reached):
    """Both ways, each with the number of near layers that is faster; a step with and without sorting into cells."""
    precision = "single" if max(reached) > 1e-5 else "double"
    for method in ("rotation", "fft"):
        tried = [least_order(options, method, separation, precision, reached) for separation in (1, 2)]
        tried = [found for found in tried if found]
        if tried:
            found = min(tried, key=lambda row: row["execute_s"] + row["assign_s"])
            seconds = found["execute_s"] + found["assign_s"]
            yield {"code": "gmx-fmm " + method, "order": found["order"], "separation": found["separation"], "precision": precision,
                   "seconds": seconds, "seconds_without_sorting": found["execute_s"], "points_per_second": options.points / seconds,
                   "potential_error": found["potential_error"], "gradient_error": found["gradient_error"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--build", default=os.path.join(library.ROOT, "build", "library"))
    parser.add_argument("--note", help="stored with the results: what else ran, say")
    options = parser.parse_args()
    import fmm3dpy
    import numpy
    from importlib.metadata import version
    head = library.header(options, "fmm3d", 1)
    random = numpy.random.default_rng(1)
    x, q = numpy.asfortranarray(random.random((3, options.points))), 2 * random.random(options.points) - 1
    samples = numpy.arange(SAMPLES) * (options.points // SAMPLES)
    exact = direct(numpy, x, q, samples)
    rows = []
    for accuracy in (1e-3, 1e-6, 1e-9):
        for eps in (10 * accuracy, accuracy, 0.1 * accuracy):
            row = theirs(numpy, fmm3dpy, x, q, samples, exact, eps)
            if max(row["potential_error"], row["gradient_error"]) <= accuracy:
                break
        for found in (row, *ours(options, (row["potential_error"], row["gradient_error"]))):
            rows.append({"accuracy": accuracy, "points": options.points, "threads": 1, **found})
            print(json.dumps(rows[-1]), flush=True)
    library.store(options, "fmm3d.json", {**head, "command": f"benchmarks/fmm3d.py --points {options.points}", "fmm3dpy": version("fmm3dpy")},
                  table=rows)


if __name__ == "__main__":
    main()
