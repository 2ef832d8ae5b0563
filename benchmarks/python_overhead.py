#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What Python adds to the calls of the C library that it makes, on the CPU with one thread.

  python_overhead.py [--repeats N] [--store] [--fronts | --training]   needs the package gmxfmm (python/), or PYTHONPATH and GMXFMM_LIBRARY

A step of a kept plan, of 64 and 2,000 ions, beside gmxfmm_execute by ctypes with everything prepared; and solve(measure=False) of
2,000 ions beside create, set_charges, assign and execute. The two are called in turn, as the machine's speed changes; processor time of the one
thread, lower quartiles, and their difference, which other programs disturb least.
--fronts: what stands on plans, instead. A Batch of systems of 20 ions beside gmxfmm_execute_systems, and gmxfmm.torch.coulomb with its
derivatives by positions and charges beside a plan's step with forces and potential, of the same settings (measure=False). In turn by blocks
of calls, as a loop makes them, whose first two have caches to fill; medians and the least of processor time, of PyTorch also of the clock.
--training: a training step of gmxfmm.torch.coulomb, a loss of energy and forces with its derivatives by positions and charges, beside
energy and forces alone; in turn, with the processor's time of the one thread, least of all calls.
--store: -> python-overhead.json, python-fronts.json, python-training.json
"""
import argparse
import ctypes
import os
import statistics
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402

import gmxfmm  # noqa: E402
import library as results  # noqa: E402
from gmxfmm import _library  # noqa: E402

library = _library.library


def melt(sites):
    """Ions near sites of rock salt, at distance 1 of each other."""
    x = np.argwhere(np.ones(sites)).astype(float)
    q = 1 - 2.0 * (x.sum(axis=1) % 2)
    return x + np.random.default_rng(1).normal(0, 0.1, x.shape), q, np.array(sites, dtype=float)


def in_turn(calls, repeats):
    """Lower quartile of the processor's seconds of each."""
    times = [[] for _ in calls]
    for turn in range(repeats + 5):
        for k, call in enumerate(calls):
            begin = time.thread_time()
            call()
            if turn >= 5:  # the first have caches to fill
                times[k].append(time.thread_time() - begin)
    return [statistics.quantiles(one, n=4)[0] for one in times]


def check(status):
    if status:
        raise SystemExit(f"the library failed with status {status}")


def step_row(sites, repeats):
    x, q, box = melt(sites)
    with gmxfmm.Plan(x, q, box, measure=False, precision="single", assign_every=10**9) as plan:
        out = plan.step(x, energy=False)
        handle = plan._handle
        output = _library.Output(size=ctypes.sizeof(_library.Output), force=out.forces.ctypes.data)
        address, reference = x.ctypes.data, ctypes.byref(output)

        def in_c():
            check(library.gmxfmm_execute(handle, address, reference))

        mine, theirs, fresh = in_turn((lambda: plan.step(x, out, energy=False), in_c, lambda: plan.step(x, energy=False)), repeats)
    return {"what": "step", "ions": len(q), "python_s": mine, "c_s": theirs, "overhead_s": mine - theirs, "without_out_s": fresh}


def solve_row(sites, repeats):
    x, q, box = melt(sites)
    vectors = np.diag(box)
    options = _library.Options()
    library.gmxfmm_default_options_of_size(options, ctypes.sizeof(options))
    options.reproducible, options.array_type = 1, _library.header.enums["gmxfmm_precision"]["GMXFMM_DOUBLE"]
    options.precision = options.array_type
    arrays = [np.empty_like(x), np.empty_like(x), np.empty_like(q)]
    output = _library.Output(ctypes.sizeof(_library.Output), *(array.ctypes.data for array in arrays), 1)

    def in_c():
        plan = ctypes.c_void_p()
        check(library.gmxfmm_create(plan, options, len(q), vectors.ctypes.data, None, 0))
        check(library.gmxfmm_set_charges(plan, len(q), q.ctypes.data))
        check(library.gmxfmm_assign(plan, x.ctypes.data))
        check(library.gmxfmm_execute(plan, x.ctypes.data, output))
        library.gmxfmm_destroy(plan)

    mine, theirs = in_turn((lambda: gmxfmm.solve(x, q, box, measure=False), in_c), repeats)
    return {"what": "solve", "ions": len(q), "python_s": mine, "c_s": theirs, "overhead_s": mine - theirs, "ratio": mine / theirs}


def in_blocks(calls, repeats, block=12):
    """Seconds of each call, the processor's and those of the clock."""
    times = [([], []) for _ in calls]
    for turn in range(repeats + 1):
        for k, call in enumerate(calls):
            for i in range(block):
                begin = time.thread_time(), time.perf_counter()
                call()
                end = time.thread_time(), time.perf_counter()
                if turn and i > 1:
                    for these, first, last in zip(times[k], begin, end):
                        these.append(last - first)
    return times


def batch_row(systems, is_open, measure, repeats):
    x, q, box = melt((2, 2, 5))
    n = len(q)
    x = np.stack([x + np.random.default_rng(s).normal(0, 0.02, x.shape) for s in range(systems)])
    q = np.tile(q, (systems, 1))
    boxes = None if is_open else np.diag(box) * (1 + 1e-4 * np.arange(systems))[:, None, None]
    with gmxfmm.Batch(measure=measure) as batch:
        for _ in range(100):  # until kinds are trusted
            out = batch.step(x, q, boxes)
        energy, start = np.empty(systems), n * np.arange(systems + 1)
        structure = _library.Systems(ctypes.sizeof(_library.Systems), systems, start.ctypes.data, x.ctypes.data, q.ctypes.data,
                                     None if is_open else boxes.ctypes.data, out.forces.ctypes.data, None, None, energy.ctypes.data, None, 0)
        handle = batch.plans[0]._handle
        times = in_blocks((lambda: batch.step(x, q, boxes), lambda: check(library.gmxfmm_execute_systems(handle, structure))), repeats)
    mine, theirs = (statistics.median(processor) for processor, _ in times)
    least = [min(processor) for processor, _ in times]
    return {"what": "batch", "ions": n, "systems": systems, "open": is_open, "measure": measure, "python_s": mine, "c_s": theirs,
            "overhead_s": mine - theirs, "overhead_of_a_system_s": (mine - theirs) / systems, "of_a_system_s": mine / systems,
            "least_python_s": least[0], "least_c_s": least[1], "least_overhead_of_a_system_s": (least[0] - least[1]) / systems}


def torch_row(sites, repeats):
    import torch
    from gmxfmm.torch import coulomb
    torch.set_num_threads(1)
    x, q, box = melt(sites)
    options = {"measure": False}
    at, charges, cell = torch.tensor(x, requires_grad=True), torch.tensor(q, requires_grad=True), torch.diag(torch.tensor(box))
    with gmxfmm.Plan(x, q, box, **options) as plan:
        def differentiated():
            at.grad = charges.grad = None
            coulomb(at, charges, cell, **options).backward()

        times = in_blocks((differentiated, lambda: plan.step(x, forces=True, potential=True)), repeats)
    mine, theirs = (statistics.median(processor) for processor, _ in times)
    row = {"what": "torch", "ions": len(q), "torch_s": mine, "step_s": theirs, "overhead_s": mine - theirs, "ratio": mine / theirs}
    for name, pick, clock in (("least", min, 0), ("wall", statistics.median, 1), ("least_wall", min, 1)):
        mine, theirs = (pick(one[clock]) for one in times)
        row.update({name + "_torch_s": mine, name + "_step_s": theirs, name + "_ratio": mine / theirs})
    return row


def training_row(name, x, q, box, single, repeats):
    import torch
    from gmxfmm.torch import Coulomb
    torch.set_num_threads(1)
    kind = torch.float32 if single else torch.float64
    function = Coulomb(measure=False, num_threads=1)
    at, charges = torch.tensor(x, dtype=kind, requires_grad=True), torch.tensor(q, dtype=kind, requires_grad=True)
    cell = None if box is None else torch.diag(torch.tensor(box, dtype=kind))

    def forces():
        torch.autograd.grad(function(at, charges, cell), at)

    def trained():
        energy = function(at, charges, cell)
        slope, = torch.autograd.grad(energy, at, create_graph=True)
        torch.autograd.grad((slope**2).mean() + energy**2, (at, charges))

    times = [[], []]
    for turn in range(repeats + 3):
        for k, call in enumerate((forces, trained)):
            begin = time.thread_time()
            call()
            if turn >= 3:
                times[k].append(time.thread_time() - begin)
    least, middle = ([pick(one) for one in times] for pick in (min, statistics.median))
    return {"what": "training", "system": name, "ions": len(q), "precision": "single" if single else "double", "forces_s": least[0],
            "training_s": least[1], "ratio": least[1] / least[0], "ratio_of_medians": middle[1] / middle[0]}


def training(arguments):
    cloud = np.random.default_rng(7)
    open_ions = cloud.uniform(0, 10, (1000, 3)), cloud.choice([-1.0, 1.0], 1000), None
    rows = []
    for name, system in (("open", open_ions), ("periodic", melt((10, 10, 10))), ("periodic", melt((20, 20, 20)))):
        for single in (False, True):
            rows.append(training_row(name, *system, single, arguments.repeats))
            row = rows[-1]
            print(f"{row['ions']:5} {name:8} {row['precision']}: energy and forces {1e3 * row['forces_s']:7.3f} ms, a training step "
                  f"{1e3 * row['training_s']:7.3f} ms, ratio {row['ratio']:.2f}, of medians {row['ratio_of_medians']:.2f}", flush=True)
    return rows


def fronts(arguments):
    rows = []
    for systems in (1, 64):
        for is_open in (False, True):
            for measure in (False, True):
                rows.append(batch_row(systems, is_open, measure, arguments.repeats if systems == 1 else arguments.repeats // 8 + 1))
                row = rows[-1]
                print(f"batch of {systems:3} {'open' if is_open else 'periodic'} systems of {row['ions']} ions, measure={measure}: "
                      f"{1e6 * row['of_a_system_s']:6.1f} us a system, of these Python {1e6 * row['overhead_of_a_system_s']:6.1f} us, "
                      f"least {1e6 * row['least_overhead_of_a_system_s']:6.1f} us", flush=True)
    for sites in ((10, 10, 10), (12, 16, 16), (20, 20, 26)):
        rows.append(torch_row(sites, arguments.repeats // 2 + 1))
        row = rows[-1]
        print(f"torch {row['ions']:6} ions: {1e6 * row['torch_s']:7.0f} us, a step {1e6 * row['step_s']:7.0f} us, ratio {row['ratio']:.2f}, "
              f"least {row['least_ratio']:.2f}, of the clock {row['wall_ratio']:.2f}, least {row['least_wall_ratio']:.2f}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--store", action="store_true", help="write benchmarks/results/<device>/python-overhead.json")
    parser.add_argument("--note", help="what else the machine did")
    parser.add_argument("--fronts", action="store_true", help="Batch and PyTorch, instead")
    parser.add_argument("--training", action="store_true", help="second derivatives of PyTorch, instead")
    arguments = parser.parse_args()
    if arguments.training:
        rows = training(arguments)
        if arguments.store:
            head = results.header(arguments, "python-training", 1)
            head["command"] = f"benchmarks/python_overhead.py --training --repeats {arguments.repeats} --store"
            results.store(arguments, "python-training.json", head, rows=rows)
        return
    if arguments.fronts:
        rows = fronts(arguments)
        if arguments.store:
            head = results.header(arguments, "python-fronts", 1)
            head["command"] = f"benchmarks/python_overhead.py --fronts --repeats {arguments.repeats} --store"
            results.store(arguments, "python-fronts.json", head, rows=rows)
        return
    rows = [step_row((4, 4, 4), arguments.repeats), step_row((10, 10, 20), arguments.repeats),
            solve_row((10, 10, 20), arguments.repeats // 4 + 1)]
    for row in rows:
        print(f"{row['what']:6} {row['ions']:6} ions: Python {1e6 * row['python_s']:9.1f} us, C {1e6 * row['c_s']:9.1f} us, "
              f"overhead {1e6 * row['overhead_s']:6.1f} us, ratio {row['python_s'] / row['c_s']:.3f}")
    if arguments.store:
        head = results.header(arguments, "python-overhead", 1)
        head["command"] = f"benchmarks/python_overhead.py --repeats {arguments.repeats} --store"
        results.store(arguments, "python-overhead.json", head, rows=rows)


if __name__ == "__main__":
    main()
