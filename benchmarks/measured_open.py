#!/usr/bin/env python3
"""What measuring costs in open systems, beside FMM3D's whole call at equal error: seconds of the processor, of all threads together.

  measured_open.py [--charges N,...] [--accuracies A,...] [--threads N] [--rounds N] [--note TEXT]     needs the Python package, FMM3D's (fmm3dpy) where there is one

Plummer's model, masses and charges of both signs. Whole calls in turns: solve without measuring and with it, each for the accuracy
asked, and FMM3D at the coarsest eps whose error is not above the measured solve's (null: at none). Errors are of forces, by direct sums at 1,000 of
the charges. Seconds are the least of the rounds; seconds of the processor are compared, as other programs may run.
-> measured-open.json, of several threads measured-open-N-threads.json
"""
import argparse
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import library  # noqa: E402


def plummer(numpy, n):
    random = numpy.random.default_rng(1)
    r = 1 / numpy.sqrt((0.999 * random.random(n)) ** (-2 / 3) - 1)
    way = random.normal(size=(n, 3))
    return r[:, None] * way / numpy.linalg.norm(way, axis=1)[:, None]


def exact(numpy, x, q, which):
    forces = numpy.empty((len(which), 3))
    for k, i in enumerate(which):
        d = x[i] - x
        square = (d * d).sum(axis=1)
        square[i] = numpy.inf
        forces[k] = (q[i] * q / square**1.5) @ d
    return forces


def timed(call):
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def row(numpy, gmxfmm, fmm3dpy, x, q, kind, accuracy, rounds):
    which = numpy.arange(1000) * (len(x) // 1000)
    right = exact(numpy, x, q, which)

    def error(forces):  # of a sample over the norm of all
        wrong = ((forces[which] - right) ** 2).sum() * len(x) / len(which)
        return float((wrong / (forces**2).sum()) ** 0.5)

    calls = {"unmeasured": lambda: gmxfmm.solve(x, q, accuracy=accuracy, measure=False), "measured": lambda: gmxfmm.solve(x, q, accuracy=accuracy)}
    seconds = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            took, result = timed(call)
            seconds[name].append(took)
            if name == "measured":
                found = result
    out = {"system": "plummer, " + kind, "charges": len(x), "accuracy": accuracy, "order": found.info.order, "measured_error": found.measured_error,
           "error": error(found.forces), **{name + "_s": min(times) for name, times in seconds.items()}}
    out["measured_over_unmeasured"] = out["measured_s"] / out["unmeasured_s"]
    if fmm3dpy is not None:
        sources = numpy.asfortranarray(x.T)
        for eps in (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
            took, theirs = timed(lambda: fmm3dpy.lfmm3d(eps=eps, sources=sources, charges=q, pg=2))
            reached = error(-4 * numpy.pi * (q * theirs.grad).T)
            if reached <= out["error"]:
                break
        else:
            out.update(fmm3d_eps=None, fmm3d_error=None, fmm3d_s=None, fmm3d_over_measured=None)
            print(json.dumps(out), flush=True)
            return out
        took = min([took] + [timed(lambda: fmm3dpy.lfmm3d(eps=eps, sources=sources, charges=q, pg=2))[0] for _ in range(rounds - 1)])
        out.update(fmm3d_eps=eps, fmm3d_error=reached, fmm3d_s=took, fmm3d_over_measured=took / out["measured_s"])
    print(json.dumps(out), flush=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--charges", default="10000,100000")
    parser.add_argument("--accuracies", default="1e-3,1e-5")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--note", help="stored with the results: what else ran, say")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # before anything loads OpenMP
    import gmxfmm
    import numpy
    try:
        import fmm3dpy
    except ImportError:
        fmm3dpy = None
    head = library.header(options, "measured_open", options.threads)
    head["command"] = f"benchmarks/measured_open.py --charges {options.charges} --accuracies {options.accuracies} --threads {options.threads} --rounds {options.rounds}"
    rows = []
    for n in map(int, options.charges.split(",")):
        x = plummer(numpy, n)
        for kind, q in (("masses", numpy.full(n, 1 / n)), ("charges", numpy.where(numpy.arange(n) % 2, 1.0, -1.0))):
            rows += [row(numpy, gmxfmm, fmm3dpy, x, q, kind, float(accuracy), options.rounds) for accuracy in options.accuracies.split(",")]
    library.store(options, "measured-open.json" if options.threads == 1 else f"measured-open-{options.threads}-threads.json", head, rows=rows)


if __name__ == "__main__":
    main()
