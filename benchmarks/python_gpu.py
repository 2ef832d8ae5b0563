#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A step in water on a GPU from Python, with arrays of PyTorch or CuPy on the device.

  python_gpu.py [--library torch|cupy] [--copies N] [--accuracy A] [--json FILE]
      needs the package gmxfmm with CUDA (python/), and that library; tests/data/water216.gro is copied N times along each edge, 5 for
      81,000 atoms

In flight: steps are put on the stream one after the other, and the last is waited for; ms a step by the wall clock, the fastest and
the median of several rounds. host: the time that Python takes to put a step there, without a wait. Each gives energy, forces,
potential and virial: the energy with all its first derivatives.

  step        the same box and cells
  assign      particles put into cells anew before each step
  scaled      a box and positions scaled by another factor before each step, and an assignment
  stretched   a box stretched along z by another factor, and an assignment
  sheared     a box of any other shape, and an assignment: lattice sums are computed anew
  coulomb     forward and backward of gmxfmm.torch.coulomb by positions and charges, a box stretched along z each time (PyTorch)
  unchecked   the same with measure=False: settings by a model, the host does not wait
  second      second derivatives along a way of positions and charges (gmxfmm_enqueue_along), the same box and cells
  forces      energy and forces by gmxfmm.torch.coulomb with measure=False, the same box (PyTorch)
  training    the same and a loss of both differentiated by positions and charges; ratio: its time over that of forces
"""
import argparse
import ctypes
import json
import re
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import gmxfmm

ROOT = Path(__file__).resolve().parent.parent
PREFACTOR = 138.935458  # kJ mol^-1 nm e^-2


def water(copies):
    """Positions (nm), charges (e), edge (nm) and excluded pairs of SPC water."""
    lines = (ROOT / "tests" / "data" / "water216.gro").read_text().splitlines()
    unit = np.array([[float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)] for line in lines[2:-1]])
    edge = float(lines[-1].split()[0])
    shifts = edge * np.argwhere(np.ones((copies, copies, copies)))
    x = (shifts[:, None, :] + unit[None]).reshape(-1, 3)
    first = 3 * np.arange(len(x) // 3)
    pairs = np.concatenate([np.stack([first + i, first + j], axis=1) for i, j in ((0, 1), (0, 2), (1, 2))])
    return x, np.tile([-0.82, 0.41, 0.41], len(x) // 3), copies * edge, pairs


class Door:
    """What differs between the libraries."""

    def __init__(self, name):
        self.name = name
        if name == "torch":
            import torch
            self.device = lambda array: torch.tensor(array, dtype=torch.float32, device="cuda")
            self.wait, self.version = torch.cuda.synchronize, torch.__version__
            self.gpu = torch.cuda.get_device_name()
        else:
            import cupy
            self.device = lambda array: cupy.asarray(array, dtype=cupy.float32)
            self.wait, self.version = cupy.cuda.Device().synchronize, cupy.__version__
            self.gpu = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()


def timed(door, call, steps, rounds):
    """Seconds a step: the fastest round, their median, and the host's part. Each round begins with nothing in flight."""
    for k in range(10):
        call(k)
    door.wait()
    whole, host = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        for k in range(steps):
            call(k)
        put = time.perf_counter()
        door.wait()
        whole.append((time.perf_counter() - begin) / steps)
        host.append((put - begin) / steps)
    return {"ms": 1e3 * min(whole), "median_ms": 1e3 * statistics.median(whole), "host_ms": 1e3 * min(host)}


def boxes(edge, kind, count=16):
    """Boxes of one kind, each a little different from the one before."""
    found = []
    for k in range(count):
        by = 1 + 1e-3 * np.sin(2.4 * k)
        shape = {"scaled": np.diag([by, by, by]), "stretched": np.diag([1, 1, by]),
                 "sheared": np.array([[by, 0, 0], [by - 1, 2 - by, 0], [1 - by, by - 1, 1]])}[kind]
        found.append(edge * shape)
    return found


def differentiated(door, x, q, edge, given, steps, rounds):
    """Forward and backward of the function of PyTorch, which sets charges and box and assigns each time."""
    import torch
    from gmxfmm.torch import Coulomb
    function = Coulomb(**given)
    positions, charges = door.device(x).requires_grad_(), door.device(q).requires_grad_()
    cells = [torch.tensor(box) for box in boxes(edge, "stretched")]

    def call(k):
        positions.grad = charges.grad = None
        function(positions, charges, cells[k % len(cells)]).backward()

    return timed(door, call, steps, rounds)


def second(door, plan, positions, steps, rounds):
    """The library's call with a plan that is assigned."""
    from gmxfmm._arrays import library_of
    from gmxfmm._library import DeviceAlong
    random, n = np.random.default_rng(2), len(plan)
    u, w, force, potential = (door.device(random.normal(size=shape)) for shape in ((n, 3), n, (n, 3), n))
    at, *pointers = (library_of(array).view(array) for array in (positions, u, w, force, potential))
    along = DeviceAlong(ctypes.sizeof(DeviceAlong), *(view.pointer for view in pointers))

    def call(_):
        plan._call("enqueue_along", at.pointer, ctypes.byref(along), at.stream)

    return timed(door, call, steps, rounds)


def trained(door, x, q, edge, given, steps, rounds):
    """A step of a model's training: energy and forces, and the derivatives of a loss of both; and energy and forces alone."""
    import torch
    from gmxfmm.torch import Coulomb
    function = Coulomb(**given)
    positions, charges = door.device(x).requires_grad_(), door.device(q).requires_grad_()
    cell, target = torch.tensor(edge * np.eye(3)), door.device(np.random.default_rng(3).normal(size=x.shape))

    def forces(_):
        torch.autograd.grad(function(positions, charges, cell), positions)

    def training(_):
        positions.grad = charges.grad = None
        energy = function(positions, charges, cell)
        by_positions, = torch.autograd.grad(energy, positions, create_graph=True)
        (energy**2 + ((by_positions + target)**2).sum()).backward()

    rows = {name: timed(door, call, steps, rounds) for name, call in (("forces", forces), ("training", training))}
    rows["training"]["ratio"] = rows["training"]["ms"] / rows["forces"]["ms"]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=("torch", "cupy"), default="torch")
    parser.add_argument("--copies", type=int, default=5)
    parser.add_argument("--accuracy", type=float, default=4e-4)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="file for the results")
    arguments = parser.parse_args()
    try:
        gmxfmm.check_device("cuda")
    except gmxfmm.Error as error:
        print(f"SKIP: {error}")
        return 77
    door = Door(arguments.library)
    x, q, edge, pairs = water(arguments.copies)
    given = {"accuracy": arguments.accuracy, "prefactor": PREFACTOR, "exclusions": pairs}
    begin = time.perf_counter()
    plan = gmxfmm.Plan(door.device(x), door.device(q), edge, assign_every=10**9, **given)
    made = time.perf_counter() - begin
    positions = door.device(x)
    out = plan.step(positions, potential=True, virial=True)
    out.check()
    rows = {}

    def step(k):
        plan.step(positions, out, potential=True, virial=True)

    def assigned(k):
        plan.step(positions, out, potential=True, virial=True, assign=True)

    rows["step"] = timed(door, step, arguments.steps, arguments.rounds)
    rows["assign"] = timed(door, assigned, arguments.steps, arguments.rounds)
    for kind in ("scaled", "stretched", "sheared"):
        cells = boxes(edge, kind)
        placed = [door.device(x @ (box / edge)) for box in cells]

        def moved(k):
            plan.set_box(cells[k % len(cells)])
            plan.step(placed[k % len(cells)], out, potential=True, virial=True, assign=True)

        rows[kind] = timed(door, moved, arguments.steps, arguments.rounds)
        out.check()
    plan.set_box(edge)
    info = plan.info
    exact = gmxfmm.Plan(x, q, edge, device="cuda", **dict(given, accuracy=arguments.accuracy / 100)).step(x).forces
    forces = plan.step(positions, out, potential=True, virial=True, assign=True).forces
    forces = (forces.cpu().numpy() if door.name == "torch" else forces.get()).astype(float)
    error = float(np.sqrt(((forces - exact) ** 2).sum() / (exact ** 2).sum()))
    rows["second"] = second(door, plan, positions, arguments.steps, arguments.rounds)
    if door.name == "torch":
        for name, measure in (("coulomb", True), ("unchecked", False)):
            rows[name] = differentiated(door, x, q, edge, {**given, "measure": measure}, max(10, arguments.steps // 4), arguments.rounds)
        rows.update(trained(door, x, q, edge, {**given, "measure": False}, max(10, arguments.steps // 4), arguments.rounds))

    print(f"{len(q)} atoms of water, accuracy {arguments.accuracy:g}, {door.gpu}, {door.name} {door.version}")
    print(f"order {info.order}, grid {info.grid}, m2l {info.m2l}; error {error:.2e}, measured {plan.measured_error:.2e}; "
          f"plan made and measured in {made:.2f} s, its memory {info.bytes / 1e9:.3f} GB")
    print(f"{'':10} {'ms a step':>10} {'median':>8} {'host':>8}")
    for name, row in rows.items():
        print(f"{name:10} {row['ms']:10.4f} {row['median_ms']:8.4f} {row['host_ms']:8.4f}" + (f"  ratio {row['ratio']:.2f}" if "ratio" in row else ""))
    if arguments.json:
        settings = {name: info[name] for name in ("order", "grid", "separation", "m2l", "precision", "num_cells", "bytes")}
        record = {"atoms": len(q), "accuracy": arguments.accuracy, "gpu": door.gpu, "library": f"{door.name} {door.version}",
                  "gmxfmm": gmxfmm.version(), "python": re.match(r"[\d.]+", sys.version).group(), "steps": arguments.steps,
                  "rounds": arguments.rounds, "force_error": error, "measured_error": plan.measured_error, "made_s": made, **settings, "rows": rows}
        Path(arguments.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
