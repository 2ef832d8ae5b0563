#!/usr/bin/env python3
"""The treecode beside FMM3D (Flatiron Institute) and BaryTree (the authors of its method), one thread, the same points, one run.

  treecode_others.py --fmm3d libfmm3d.so --barytree libBaryTree_cpu.so --library libgmxfmm.so [--points N] [--runs N] [--note TEXT]
  treecode_others.py --ranks 1,2 --barytree libBaryTree_cpu.so --library libgmxfmm.so [--mpirun mpirun.mpich] [--points N] ...

Charges in [-1, 1] uniform in [-1, 1]^3, open, potentials at the charges; errors are relative 2-norms against direct sums at 1000 of
the points. A library that is not named is left out. Needs numpy; nothing of the others is part of this project. Built by gcc and
gfortran, as their documents say:
  FMM3D      make lib OMP=OFF -> lib/libfmm3d.so (-O3 -march=native -funroll-loops); or make lib FAST_KER=ON, with its vectorised
             kernels, which needs OMP=ON: --fmm3d may be given twice, the second with "fast" in its path
  BaryTree   all files of src/ by gcc -O3 -march=native -fopenmp -fPIC -std=gnu99 -shared, with MPI (-lmpich); or with
             -ffast-math, by which its loops are vectorised: --barytree may be given twice, the second with "fast" in its name
Yukawa (kappa = 0.5): FMM3D's Helmholtz kernel with zk = i kappa, asked for less and less until its error is just below 1e-4; this
library in single precision by the fastest of a few settings whose error is below that, too. Coulomb, double precision: BaryTree's
particle-cluster treecode at a few settings, and this library at the same theta and degree; at BaryTree's own choice (beta), whose
leaves are small, by leaves of 500. Times are processor times of the one thread, so that what else runs disturbs them little; whole
calls, the fastest of several in turns. -> treecode-others.json

--ranks: BaryTree on ranks of MPI and this library on ranks that are threads, one thread each, Coulomb in double precision at the
settings RANKS, of the points that --points has; rows of other numbers of points stay. BaryTree leaves the bisection of the points to
who calls it: it is made here, and not timed; this library's is part of its calls, as are the ways of points to their owners and back.
Times are of the rank with the most processor time (`of_ranks` has all of them), which of BaryTree counts waiting, as MPICH polls, and
of this library does not, as threads sleep. -> treecode-others.json, ranks
"""
import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
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
RANKS = [(0.8, 8, 2000, 2000), (0.8, 8, 4000, 4000)]  # the paper's on a CPU and on GPUs
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
        from gmxfmm import _inputs, _library, _ranks
        self.of, self.options_of, self.comm = _library, _inputs.make_options, _ranks.CommStructure

    def check(self, status, message):
        if status:
            raise RuntimeError(message.decode())

    def asked(self, **options):
        double = self.of.header.enums["gmxfmm_precision"]["GMXFMM_DOUBLE"]
        return self.options_of({**options, "boundary": "open", "method": "treecode", "num_threads": 1}, double)

    def call(self, plan, name, *arguments):
        self.check(getattr(self.of.library, "gmxfmm_" + name)(plan, *arguments), self.of.library.gmxfmm_message(plan))

    def steps(self, plan, x, q, potential, clock):
        """Seconds of a second call with charges, assignment and sums."""
        output = self.of.Output(size=ctypes.sizeof(self.of.Output), potential=potential.ctypes.data)
        for _ in range(2):
            begin = clock()
            self.call(plan, "set_charges", len(q), q.ctypes.data)
            self.call(plan, "assign", x.ctypes.data)
            self.call(plan, "execute", x.ctypes.data, output)
            seconds = clock() - begin
        info = self.of.Info(size=ctypes.sizeof(self.of.Info))
        self.call(plan, "get_info", info)
        return seconds, {"pairs_per_target": info.pairs_per_target}

    def __call__(self, numpy, x, q, **options):
        plan, message, potential = ctypes.c_void_p(), ctypes.create_string_buffer(512), numpy.empty(len(q))
        self.check(self.of.library.gmxfmm_create(plan, self.asked(**options), len(q), None, message, len(message)), message.value)
        seconds, more = self.steps(plan, x, q, potential, time.process_time)
        self.of.library.gmxfmm_destroy(plan)
        return seconds, potential, more

    def on_ranks(self, numpy, x, q, num, **options):
        """Threads, each with every num-th point."""
        threads, all_seconds, potential, told = ctypes.c_void_p(), [0.0] * num, numpy.empty(len(q)), {}
        library_ = self.of.library
        library_.gmxfmm_threads_comm.restype = self.comm
        library_.gmxfmm_threads_comm.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.check(library_.gmxfmm_threads_create(ctypes.byref(threads), num), b"no threads")

        def rank(k):
            own_x, own_q = numpy.ascontiguousarray(x[k::num]), numpy.ascontiguousarray(q[k::num])
            plan, message, own = ctypes.c_void_p(), ctypes.create_string_buffer(512), numpy.empty(len(own_q))
            comm = library_.gmxfmm_threads_comm(threads, k)
            self.check(library_.gmxfmm_create_parallel(plan, self.asked(**options), ctypes.byref(comm), len(own_q), None, message, len(message)),
                       message.value)
            all_seconds[k], more = self.steps(plan, own_x, own_q, own, time.thread_time)
            library_.gmxfmm_destroy(plan)
            potential[k::num] = own
            told.update(more)

        ranks = [threading.Thread(target=rank, args=(k,)) for k in range(num)]
        for one in ranks:
            one.start()
        for one in ranks:
            one.join()
        library_.gmxfmm_threads_destroy(threads)
        if not told:
            sys.exit("treecode_others: a rank failed")
        return all_seconds, potential, told


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


def points_of(numpy, number):
    random = numpy.random.default_rng(1)
    return 2 * random.random((number, 3)) - 1, 2 * random.random(number) - 1


def parts(numpy, x, indices, num):
    """Recursive coordinate bisection: indices of the points of each rank."""
    if num == 1:
        return [indices]
    length = x[indices].max(axis=0) - x[indices].min(axis=0)
    order = indices[numpy.argsort(x[indices, length.argmax()], kind="stable")]
    cut = len(order) * (num // 2) // num
    return parts(numpy, x, order[:cut], num // 2) + parts(numpy, x, order[cut:], num - num // 2)


def as_rank(numpy, path, folder, points, *setting):
    """One rank of BaryTree, started by MPICH: its points, potentials and seconds go to a file of the folder."""
    barytree, rank, num = BaryTree(path), ctypes.c_int(), ctypes.c_int()
    world = ctypes.c_int(0x44000000)  # MPICH's MPI_COMM_WORLD
    barytree.of.MPI_Comm_rank(world, ctypes.byref(rank))
    barytree.of.MPI_Comm_size(world, ctypes.byref(num))
    x, q = points_of(numpy, int(points))
    own = numpy.sort(parts(numpy, x, numpy.arange(len(q)), num.value)[rank.value])
    theta, degree, leaf, batch = float(setting[0]), *map(int, setting[1:])
    barytree.of.MPI_Barrier(world)
    seconds, potential, _ = barytree(numpy, x[own], q[own], theta, degree, leaf, batch)
    numpy.savez(os.path.join(folder, f"{rank.value}.npz"), own=own, potential=potential, seconds=seconds)
    barytree.of.MPI_Finalize()


def barytree_on_ranks(numpy, mpirun, path, points, num, setting):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([mpirun, "-n", str(num), sys.executable, os.path.abspath(__file__), "--as-rank", path, folder, str(points), *map(str, setting)],
                       check=True, stdout=subprocess.DEVNULL)
        potential, seconds = numpy.empty(points), []
        for rank in range(num):
            found = numpy.load(os.path.join(folder, f"{rank}.npz"))
            potential[found["own"]] = found["potential"]
            seconds.append(float(found["seconds"]))
    return seconds, potential, {}


def on_ranks(numpy, options, head):
    """Rows of the numbers of ranks, one after the other."""
    x, q = points_of(numpy, options.points)
    samples = numpy.arange(SAMPLES) * (options.points // SAMPLES)
    exact, ours, rows = direct(numpy, x, q, samples, 0), Ours(options.library), []
    for theta, degree, leaf, batch in RANKS:
        for num in map(int, options.ranks.split(",")):
            cases = [("BaryTree" + (" with -ffast-math" if "fast" in path.lower() else ""), {"batch": batch},
                      lambda path=path: barytree_on_ranks(numpy, options.mpirun, os.path.abspath(path), options.points, num, (theta, degree, leaf, batch)))
                     for path in options.barytree]
            cases.append(("gmx-fmm treecode", {}, lambda: ours.on_ranks(numpy, x, q, num, precision="double", traversal="particle", theta=theta,
                                                                          degree=degree, leaf=leaf)))
            for code, named, call in cases:
                of_ranks, potential, more = min((call() for _ in range(options.runs)), key=lambda found: max(found[0]))
                error = float(numpy.sqrt(((potential[samples] - exact) ** 2).sum() / (exact ** 2).sum()))
                rows.append({"points": options.points, "ranks": num, "code": code, "theta": theta, "degree": degree, "leaf": leaf, **named, **more,
                             "seconds": max(of_ranks), "of_ranks": of_ranks, "potential_error": error, "date": head["date"],
                             "commit": head["commit"], "command": head["command"], **({"note": options.note} if options.note else {})})
                print(json.dumps(rows[-1]), flush=True)
    for row in rows:
        one = next((r for r in rows if r["ranks"] == 1 and all(r[key] == row[key] for key in ("code", "theta", "degree", "leaf"))), None)
        if one and row["ranks"] > 1:
            row["speedup"] = round(one["seconds"] / row["seconds"], 3)
    return rows


def stored(head):
    path = os.path.join(library.folder(head), "treecode-others.json")
    return json.load(open(path)) if os.path.exists(path) else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--library", required=True)
    parser.add_argument("--fmm3d", action="append", default=[])
    parser.add_argument("--barytree", action="append", default=[])
    parser.add_argument("--ranks", help="numbers of ranks, as 1,2")
    parser.add_argument("--mpirun", default="mpirun.mpich")
    parser.add_argument("--note", help="stored with the results: what else ran, say")
    options = parser.parse_args()
    import numpy
    head = library.header(options, "treecode-others", 1)
    head["command"] = f"benchmarks/treecode_others.py --points {options.points} --runs {options.runs}"
    before = stored(head)
    if options.ranks:
        head["command"] += f" --ranks {options.ranks}"
        rows = on_ranks(numpy, options, head)
        kept = [r for r in before.get("ranks", []) if r["points"] != options.points]
        library.store(options, "treecode-others.json", {**(before or head), "ranks": sorted(kept + rows, key=lambda r: r["points"])})
        return
    x, q = points_of(numpy, options.points)
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
    library.store(options, "treecode-others.json", head, table=rows, **{key: before[key] for key in ("ranks",) if key in before})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-rank"]:
        import numpy as np
        as_rank(np, *sys.argv[2:])
    else:
        main()
