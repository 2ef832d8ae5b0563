#!/usr/bin/env python3
"""The problem of `library.py points` by FMM3D (Flatiron Institute), for comparison on the same machine.

  fmm3d.py [--points N] [--threads N]      needs the Python package fmm3dpy, of which nothing is part of this project

Charges in [-1, 1) uniform in the unit cube, open, potential and gradient at the charges; FMM3D is asked for less and less
accuracy until its error, against direct sums at 1000 of the points, is just below 1e-3, 1e-6 and 1e-9. -> fmm3d.json
"""
import argparse
import json
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
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


def measure(numpy, fmm3dpy, x, q, samples, exact, eps):
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        out = fmm3dpy.lfmm3d(eps=eps, sources=x, charges=q, pg=2)
        seconds.append(time.perf_counter() - begin)
    errors = [relative(numpy, found, right) for found, right in zip((out.pot[samples], out.grad[:, samples]), exact)]
    return {"eps": eps, "seconds": min(seconds), "points_per_second": len(q) / min(seconds),
            "potential_error": errors[0], "gradient_error": errors[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--note")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import fmm3dpy
    import numpy
    from importlib.metadata import version
    random = numpy.random.default_rng(1)
    x, q = numpy.asfortranarray(random.random((3, options.points))), 2 * random.random(options.points) - 1
    samples = numpy.arange(SAMPLES) * (options.points // SAMPLES)
    exact = direct(numpy, x, q, samples)
    rows = []
    for accuracy in (1e-3, 1e-6, 1e-9):
        best = None
        for factor in (30, 10, 3, 1, 0.3, 0.1):
            row = measure(numpy, fmm3dpy, x, q, samples, exact, factor * accuracy)
            print(json.dumps({"accuracy": accuracy, **row}), flush=True)
            if max(row["potential_error"], row["gradient_error"]) <= accuracy:
                best = row
                break
        if best:
            rows.append({"accuracy": accuracy, "points": options.points, "threads": options.threads, **best})
    head = library.header(options, "fmm3d", options.threads)
    library.store(options, "fmm3d.json", {**head, "command": "benchmarks/fmm3d.py", "fmm3dpy": version("fmm3dpy")}, table=rows)


if __name__ == "__main__":
    main()
