#!/usr/bin/env python3
"""The treecode beside FMM3D (Flatiron Institute) and BaryTree (the authors of its method), one thread, the same points, one run.

  treecode_others.py --fmm3d libfmm3d.so --barytree libBaryTree_cpu.so --library libgmxfmm.so [--points N] [--runs N] [--note TEXT]

Charges in [-1, 1] uniform in [-1, 1]^3, open, potentials at the charges; errors are relative 2-norms against direct sums at 1000 of
the points. A library that is not named is left out. Needs numpy; nothing of the others is part of this project. Built by gcc and
gfortran, as their documents say:
  FMM3D      make lib OMP=OFF -> lib/libfmm3d.so (-O3 -march=native -funroll-loops); or make lib FAST_KER=ON, with its vectorised
             kernels, which needs OMP=ON: --fmm3d may be given twice, the second with "fast" in its path
  BaryTree   all files of src/ by gcc -O3 -march=native -fopenmp -fPIC -std=c99 -shared, with MPI (-lmpich), for one rank; or with
             -ffast-math, by which its loops are vectorised: --barytree may be given twice, the second with "fast" in its name
Yukawa (kappa = 0.5): FMM3D's Helmholtz kernel with zk = i kappa, asked for less and less until its error is just below 1e-4; this
library in single precision by the fastest of a few settings whose error is below that, too. Coulomb, double precision: BaryTree's
particle-cluster treecode at a few settings, and this library at the same theta and degree; at BaryTree's own choice (beta), whose
leaves are small, by leaves of 500. Times are processor times of the one thread, so that what else runs disturbs them little; whole
calls, the fastest of several in turns. -> treecode-others.json
"""
import argparse
import ctypes
import json
import math
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "python"))
import library  # noqa: E402

SAMPLES = 1000
KAPPA = 0.5
YUKAWA_SINGLE = [("dual", theta, degree, leaf) for theta, degree in ((0.8, 3), (0.8, 4), (0.9, 4), (0.9, 5)) for leaf in (100, 200, 400)]
BARYTREE = [(0.8, 5, 500, 500), (0.8, 8, 2000, 2000)]  # theta, degree, leaf, batch: its example, the paper's
BETA = 0.5
SKIPPING, LAGRANGE, PARTICLE_CLUSTER, COULOMB = 1, 1, 1, 1  # of BaryTreeInterface.h


def address(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def direct(numpy, x, q, samples, kappa):
    potential = numpy.zeros(len(samples))
    for k, i in enumerate(samples):
        r = numpy.sqrt(((x - x[i]) ** 2).sum(axis=1))
        r[i] = numpy.inf
        potential[k] = (q * numpy.exp(-kappa * numpy.where(numpy.isinf(r), 0, r)) / r).sum()
    return potential


class Ours:
    def __init__(self, path):
        os.environ["GMXFMM_LIBRARY"] = os.path.abspath(path)
        from gmxfmm import _solve
        self.of = _solve

    def __call__(self, numpy, x, q, **options):
        """A plan's second call with charges, assignment and sums."""
        s, asked = self.of, self.of.Options()
        s.library.gmxfmm_default_options_of_size(asked, ctypes.sizeof(asked))
        for name, value in dict(options, boundary="open", method="treecode", num_threads=1).items():
            s._set(asked, name, value)
        asked.array_type = s.header.enums["gmxfmm_precision"]["GMXFMM_DOUBLE"]
        potential = numpy.empty(len(q))
        output, info = s.Output(size=ctypes.sizeof(s.Output), potential=potential.ctypes.data), s.Info(size=ctypes.sizeof(s.Info))
        with s._Plan(asked, len(q), None) as plan:
            for _ in range(2):
                begin = time.process_time()
                plan.call("set_charges", len(q), q.ctypes.data)
                plan.call("assign", x.ctypes.data)
                plan.call("execute", x.ctypes.data, output)
                seconds = time.process_time() - begin
            plan.call("get_info", info)
        return seconds, potential, {"pairs_per_target": info.pairs_per_target}


def fmm3d(path, numpy, x, q, eps):
    call = ctypes.CDLL(path).hfmm3d_s_c_p_
    charge, pot = q.astype(complex), numpy.zeros(len(q), dtype=complex)
    zk, ier, source = numpy.array([1j * KAPPA]), ctypes.c_int64(0), x.copy()
    begin = time.process_time()
    call(ctypes.byref(ctypes.c_double(eps)), address(zk), ctypes.byref(ctypes.c_int64(len(q))), address(source), address(charge),
         address(pot), ctypes.byref(ier))
    seconds = time.process_time() - begin
    if ier.value:
        sys.exit(f"FMM3D: ier = {ier.value}")
    return seconds, 4 * math.pi * pot.real, {"eps": eps}  # its potential is q exp(i zk r)/(4 pi r)


class BaryTree:
    def __init__(self, path):
        self.of, started = ctypes.CDLL(path), ctypes.c_int()
        self.of.MPI_Initialized(ctypes.byref(started))
        if not started.value:
            self.of.MPI_Init(None, None)

    def __call__(self, numpy, x, q, theta, degree, leaf, batch, beta=-1):
        arrays = [numpy.ascontiguousarray(x[:, d]) for d in range(3)] + [numpy.ones(len(q))]
        sources = [a.copy() for a in arrays[:3]] + [q.copy(), numpy.ones(len(q))]
        potential = numpy.zeros(len(q))
        number, integer = ctypes.c_double, ctypes.c_int
        begin = time.process_time()
        self.of.BaryTreeInterface(
            integer(len(q)), integer(len(q)), *map(address, arrays), *map(address, sources), address(potential), integer(COULOMB),
            integer(0), address(numpy.zeros(1)), integer(SKIPPING), integer(LAGRANGE), integer(PARTICLE_CLUSTER), number(theta),
            integer(degree), integer(leaf), integer(batch), number(1), number(beta), integer(0))
        return time.process_time() - begin, potential, {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--library", required=True)
    parser.add_argument("--fmm3d", action="append", default=[])
    parser.add_argument("--barytree", action="append", default=[])
    parser.add_argument("--note", help="stored with the results: what else ran, say")
    options = parser.parse_args()
    import numpy
    head = library.header(options, "treecode-others", 1)
    head["command"] = f"benchmarks/treecode_others.py --points {options.points} --runs {options.runs}"
    random = numpy.random.default_rng(1)
    x, q = 2 * random.random((options.points, 3)) - 1, 2 * random.random(options.points) - 1
    samples = numpy.arange(SAMPLES) * (options.points // SAMPLES)
    ours = Ours(options.library)
    rows = []

    def compare(comparison, kappa, cases):
        """Runs all cases in turns; case: what is stored of it, and a function of the points."""
        exact, best = direct(numpy, x, q, samples, kappa), {}
        for _ in range(options.runs):
            for k, (named, call) in enumerate(cases):
                seconds, potential, more = call()
                error = float(numpy.sqrt(((potential[samples] - exact) ** 2).sum() / (exact ** 2).sum()))
                if k not in best or seconds < best[k]["seconds"]:
                    best[k] = {"comparison": comparison, "points": options.points, "threads": 1, **named, **more, "seconds": seconds,
                               "points_per_second": options.points / seconds, "potential_error": error}
                print(json.dumps(best[k]), flush=True)
        return list(best.values())

    def our_case(precision, traversal, theta, degree, leaf, **more):
        named = {"code": "gmx-fmm treecode", "precision": precision, "traversal": traversal, "theta": theta, "degree": degree, "leaf": leaf}
        return named, lambda: ours(numpy, x, q, precision=precision, traversal=traversal, theta=theta, degree=degree, leaf=leaf, **more)

    if options.fmm3d:
        cases = [({"code": "FMM3D" + (" with vectorised kernels" if "fast" in path.lower() else ""), "kernel": "yukawa"},
                  lambda path=path, eps=eps: fmm3d(path, numpy, x, q, eps)) for path in options.fmm3d for eps in (1e-2, 1e-3, 1e-4)]
        cases += [our_case("single", *setting, kernel="yukawa", kappa=KAPPA) for setting in YUKAWA_SINGLE]
        rows += compare("Yukawa, error below 1e-4", KAPPA, cases)
        below = [r for r in rows if r["potential_error"] <= 1e-4]
        for code in sorted({r["code"] for r in below}):
            fastest = min((r for r in below if r["code"] == code), key=lambda r: r["seconds"])
            print(f"{code}: {fastest['seconds']:.3g} s, error {fastest['potential_error']:.2g}")
    for path in options.barytree:
        barytree, code, cases = BaryTree(path), "BaryTree" + (" with -ffast-math" if "fast" in path.lower() else ""), []
        for theta, degree, leaf, batch in BARYTREE:
            named = {"code": code, "kernel": "coulomb", "theta": theta, "degree": degree, "leaf": leaf, "batch": batch}
            cases += [(named, lambda of=barytree, s=(theta, degree, leaf, batch): of(numpy, x, q, *s)), our_case("double", "particle", theta, degree, leaf)]
        theta, degree = 0.95 - 0.4 * BETA ** 2, int(12 - 11 * (1 - BETA) ** 3)  # as it computes them
        cases += [({"code": code, "kernel": "coulomb", "beta": BETA, "theta": theta, "degree": degree, "leaf": 50, "batch": 5},
                   lambda of=barytree: of(numpy, x, q, theta, degree, 50, 5, BETA)), our_case("double", "particle", theta, degree, 500)]
        found = compare("Coulomb, double precision, the same theta and degree", 0, cases)
        for other, own in zip(found[::2], found[1::2]):
            print(f"theta {own['theta']:g} degree {own['degree']}: {other['code']} {other['seconds']:.3g} s ({other['potential_error']:.2g}), "
                  f"treecode {own['seconds']:.3g} s ({own['potential_error']:.2g}): {other['seconds'] / own['seconds']:.2f}")
        rows += found
    library.store(options, "treecode-others.json", head, table=rows)


if __name__ == "__main__":
    main()
