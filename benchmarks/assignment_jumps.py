#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Jumps of the FMM's energy where atoms are assigned to cells, and ways to assign that might make them smaller.

  assignment_jumps.py [--ps N] [--orders P,P...] [--jobs N] [--folder FOLDER] [--store] [--note TEXT]
                     needs numpy, the package gmxfmm (python/), or PYTHONPATH and GMXFMM_LIBRARY, and GMXFMM_GMX, a gmx

mdrun with PME makes a trajectory of 648 atoms of SPC water at constant energy, steps of 1 fs, a frame each 5 fs; one that is in FOLDER
already is taken. On its frames the library computes energies in double precision, 4 x 4 x 4 cells as mdrun chooses. A jump is the
energy with the cells of a frame less that with the cells of the assignment before, both at the positions of that frame.

plain       cells by the positions of now
ahead       by positions half an interval ahead, x + v T/2
middle      by the positions that atoms will have half an interval ahead, from the trajectory: what no run knows, the most that ahead
            could gain
hysteresis  an atom keeps its cell as long as it is no farther outside than delta
shared      an atom within delta of a face is in both cells, with parts of its charge that are a smooth function of its distance to
            the face. The parts stay as they are until the next assignment, so that forces are the gradient of one energy
shared, ahead; hysteresis, ahead      both
weighted    shared, but the parts follow the positions at each step, and forces have the derivatives of the parts: one energy, without
            jumps as long as all atoms within delta are in both cells. Only its force error is measured

Of each, for T fs between assignments:
jump        standard deviation of a jump, kJ/mol
heating     what a random walk of such jumps heats by, D / (2 kT) an atom, kJ/mol/ps: of the sum of all jumps so far, in the way
            that drift.py takes D from the energy of a run, over lags of 2 ps, so that jumps that undo one another, or go on, are
            counted as that. Their mean is left out: between jumps energies change, too. The standard error is from parts of
            the trajectory
independent the same with the variance of one jump over T, as if jumps were independent
error       relative RMS force error against order 24, just after an assignment and just before the next
extra       particles added by sharing, a part of the atoms

Atoms that are shared are particles at one place that exclude each other; positions that are assigned are moved into the cell wanted.
--store: -> assignment-jumps.json
"""
import argparse
import math
import multiprocessing
import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402

import gmxfmm  # noqa: E402
import library as results  # noqa: E402
from harness import KT, changed, need, read_trr, water  # noqa: E402

ATOMS, CELLS, EVERY = 648, 4, 5  # EVERY: fs between frames
INTERVALS = (5, 10, 20, 40, 50)  # fs between assignments
DELTAS = (0.01, 0.02, 0.05)  # nm
LAG = 2.0  # ps
PARTS = 10  # of the trajectory
STARTS = 2  # frames that a walk begins at, where each interval has walks of its own
REFERENCE_ORDER = 24
FORCE_FRAMES = 40  # that forces are compared at
CHARGES = np.tile([-0.82, 0.41, 0.41], ATOMS // 3)
LAST = 1 - 1e-6  # of a cell, still within it


# ----------------------------------------------------------------------------------------------------------------- frames

def trajectory(folder, ps):
    """The edge of the box, positions, unwrapped, and velocities, (frames, atoms, 3)."""
    path = os.path.join(folder, "topol.trr")
    if not os.path.exists(path):
        gmx = need("GMXFMM_GMX")
        os.makedirs(folder, exist_ok=True)
        system = water(gmx, folder)
        # As in drift.py; the first half picosecond is left out.
        mdp = changed(system.mdp, dt=0.001, verlet_buffer_tolerance=-1, rlist=0.92, nstlist=20, vdw_modifier="Potential-switch",
                      rvdw_switch=0.75, dispcorr="no", nsteps=500 + round(1000 * ps), nstxout=EVERY, nstvout=EVERY, nstfout=0)
        gmx.grompp(folder, mdp, system)
        gmx.mdrun(folder, "-pin", "off", threads="1")
    frames = [frame for frame in read_trr(path) if frame.time >= 0.5]
    edge = float(frames[0].box[0])
    x, v = (np.array([getattr(frame, name) for frame in frames], dtype=float).reshape(len(frames), ATOMS, 3) for name in "xv")
    steps = np.diff(x, axis=0)
    x[1:] -= edge * np.cumsum(np.rint(steps / edge), axis=0)
    return edge, x, v


# ------------------------------------------------------------------------------------------------------ ways of assigning

class Assignment:
    """Particles: the atom of each, the part of its charge, where it is assigned; atom None: the atoms, as they are."""

    def __init__(self, place, atom=None, part=None):
        self.place, self.atom, self.part = place, atom, part


def into(cell, u):
    """Positions u, in edges of cells, moved into cells."""
    return np.clip(u, cell + (1 - LAST), cell + LAST)


class Plain:
    def __init__(self, name, ahead=False, middle=False):
        self.name, self.ahead, self.middle, self.delta = name, ahead, middle, None

    def start(self):
        """Forgets what was assigned."""

    def assign(self, x, edge):
        return Assignment(x)


class Hysteresis(Plain):
    def __init__(self, name, delta, ahead=False):
        super().__init__(name, ahead)
        self.delta, self.cell = delta, None

    def start(self):
        self.cell = None

    def assign(self, x, edge):
        h = edge / CELLS
        u, delta = x / h, self.delta / h
        if self.cell is None:
            self.cell = np.floor(u)
        else:
            # one dimension by itself: a cell grown by delta on all sides
            keeps = (u >= self.cell - delta) & (u <= self.cell + 1 + delta)
            self.cell = np.where(keeps, self.cell, np.floor(u))
        return Assignment(into(self.cell, u) * h)


class Shared(Plain):
    def __init__(self, name, delta, ahead=False):
        super().__init__(name, ahead)
        self.delta = delta

    def assign(self, x, edge):
        atom, part, cell, _ = shared(x, edge, self.delta)
        h = edge / CELLS
        return Assignment(into(cell, x[atom] / h) * h, atom, part)


def shared(x, edge, delta):
    """Atom, part of its charge, cell and gradient of the part of each particle. The first are those of the atoms, in their order."""
    h = edge / CELLS
    u, delta = x / h, delta / h
    face = np.rint(u)
    t = np.clip((u - face + delta) / (2 * delta), 0, 1)
    above = t * t * (3 - 2 * t)  # part in the cell above the face
    slope = 6 * t * (1 - t) / (2 * delta * h)
    home = np.floor(u)
    other = np.where(home == face, face - 1, face)
    part_of = [np.where(home == face, above, 1 - above), np.where(home == face, 1 - above, above)]
    slope_of = [np.where(home == face, slope, -slope), np.where(home == face, -slope, slope)]
    near = np.abs(u - face) < delta
    out = []
    for choice in np.ndindex(2, 2, 2):
        which = np.array(choice)
        atom = np.flatnonzero((near | (which == 0)).all(axis=1))
        part = np.stack([part_of[w][atom, d] for d, w in enumerate(choice)], axis=1)
        slopes = np.stack([slope_of[w][atom, d] for d, w in enumerate(choice)], axis=1)
        cell = np.where(which == 0, home[atom], other[atom])
        gradient = np.stack([slopes[:, d] * np.delete(part, d, axis=1).prod(axis=1) for d in range(3)], axis=1)
        out.append((atom, part.prod(axis=1), cell, gradient))
    atom, part, cell, gradient = (np.concatenate(rows) for rows in zip(*out))
    return atom, part, cell, gradient


def molecules(atom):
    """Pairs of particles of one molecule."""
    order = np.argsort(atom // 3, kind="stable")
    sorted_molecules, pairs = atom[order] // 3, []
    for apart in range(1, 24):
        same = sorted_molecules[:-apart] == sorted_molecules[apart:]
        if not same.any():
            break
        pairs.append(np.stack([order[:-apart][same], order[apart:][same]], axis=1))
    return np.concatenate(pairs)


WAYS = [Plain("plain"), Plain("ahead", ahead=True), Plain("middle", middle=True),
        *(Hysteresis("hysteresis", delta) for delta in DELTAS), *(Shared("shared", delta) for delta in DELTAS),
        *(Shared("shared, ahead", delta, ahead=True) for delta in DELTAS[2:]),
        *(Hysteresis("hysteresis, ahead", delta, ahead=True) for delta in DELTAS[:2])]


# -------------------------------------------------------------------------------------------------------------- evaluation

class Evaluation:
    """Energies and forces of assignments, by one order."""

    def __init__(self, edge, x, order):
        self.plan = gmxfmm.Plan(x, CHARGES, edge, exclusions=molecules(np.arange(ATOMS)), precision="double", measure=False, assign_every=10**9,
                                order=order, grid=CELLS, separation=1, m2l="fft", num_threads=1, prefactor=138.935458)
        self.atom = None
        self.out = {}

    def set(self, assignment):
        atom, plan = assignment.atom, self.plan
        if atom is not None:
            plan.set_charges(assignment.part * CHARGES[atom])
            plan.set_exclusions(molecules(atom))
            self.out = {}
        self.atom = atom
        plan.assign(np.ascontiguousarray(assignment.place))

    def step(self, x, **wanted):
        x = x if self.atom is None else x[self.atom]
        return self.plan.step(np.ascontiguousarray(x), assign=False, **wanted)

    def energy(self, x):
        return self.step(x, energy=True, forces=False).energy

    def forces(self, x):
        forces = self.step(x, energy=False, forces=True).forces
        return forces if self.atom is None else self.total(forces)

    def total(self, of_particles):
        return np.stack([np.bincount(self.atom, of_particles[:, d], ATOMS) for d in range(3)], axis=1)


def positions_to_assign(way, x, v, k, interval):
    """What the way takes for the positions of frame k."""
    if way.middle:
        return x[k + interval // 2 // EVERY]
    return x[k] + v[k] * (interval / 2000) if way.ahead else x[k]


def jumps_of(evaluation, way, edge, x, v, intervals):
    """{interval: jumps, one row for each first frame}; and the mean number of particles."""
    rows, particles = {interval: [] for interval in intervals}, []

    def walk(frames, ages):
        """Energies at a frame and at others later with its cells, frame by frame."""
        now = np.full(len(x), np.nan)
        later = {age: np.full(len(x), np.nan) for age in ages}
        for k in frames:
            assignment = way.assign(positions_to_assign(way, x, v, k, EVERY * ages[0]), edge)
            particles.append(len(assignment.place))
            evaluation.set(assignment)
            now[k] = evaluation.energy(x[k])
            for age in ages:
                if k + age < len(x):
                    later[age][k + age] = evaluation.energy(x[k + age])
        return now, later

    ages = [interval // EVERY for interval in intervals]
    if isinstance(way, Hysteresis) or way.ahead or way.middle:
        for interval, age in zip(intervals, ages):
            for first in range(min(age, STARTS)):
                way.start()
                now, later = walk(range(first, len(x) - age, age), [age])
                now, later[age] = now[:len(x) - age], later[age][:len(x) - age]
                rows[interval].append((now - later[age])[first + age::age])
    else:  # cells depend on the positions of a frame alone
        now, later = walk(range(len(x)), ages)
        for interval, age in zip(intervals, ages):
            rows[interval] = [(now - later[age])[first + age::age] for first in range(age)]
    return rows, float(np.mean(particles))


def walked(rows, interval):
    """Standard deviation of a jump; heating by the walk and its standard error, and by jumps as if independent; the share of the
    variance of a jump that the next one repeats."""
    together = np.concatenate(rows)
    deviation = together.std()
    number = round(LAG * 1000 / interval)
    parts = [[] for _ in range(PARTS)]
    neighbours = []
    for row in rows:
        row = row - together.mean()
        neighbours.append(np.mean(row[1:] * row[:-1]))
        for part, energies in zip(parts, np.array_split(np.cumsum(row), PARTS)):
            sums = np.cumsum(np.concatenate([[0], energies]))
            means = (sums[number:] - sums[:-number]) / number  # over a lag from each jump on; as heating() in harness.py
            part.append(1.5 * np.mean((means[number:] - means[:-number]) ** 2))
    to_heating = 1 / (2 * KT * ATOMS)
    each = np.array([np.mean(part) for part in parts]) / LAG * to_heating
    return {"jump_kj_mol": deviation, "mean_kj_mol": together.mean(), "heating_kj_mol_ps_atom": each.mean(),
            "heating_standard_error": each.std(ddof=1) / math.sqrt(PARTS), "independent_kj_mol_ps_atom": deviation ** 2 / (interval / 1000) * to_heating,
            "correlation_of_next": np.mean(neighbours) / deviation ** 2}


def force_frames(x):
    """Frames at which forces are compared."""
    return np.linspace(20 * INTERVALS[-1] // EVERY, len(x) - 1 - INTERVALS[-1] // EVERY, FORCE_FRAMES).astype(int).tolist()


def force_errors(evaluation, way, edge, x, v, interval, reference):
    """Relative RMS force error just after assignments and just before the next; reference: {frame: forces}."""
    age, wrong, right = interval // EVERY, [0, 0], [0, 0]
    for k in force_frames(x):
        way.start()
        if way.name.startswith("hysteresis"):  # has kept cells for a while
            for before in range(max(k % age, k - 20 * age), k, age):
                way.assign(positions_to_assign(way, x, v, before, interval), edge)
        evaluation.set(way.assign(positions_to_assign(way, x, v, k, interval), edge))
        for n, at in enumerate((k, k + age)):
            wrong[n] += ((evaluation.forces(x[at]) - reference[at]) ** 2).sum()
            right[n] += (reference[at] ** 2).sum()
    return [math.sqrt(w / r) for w, r in zip(wrong, right)]


def weighted_error(evaluation, edge, x, delta, reference):
    """Relative RMS force error of one energy whose parts follow the positions, and the same without the derivatives of the parts."""
    wrong, fixed, right, h = 0, 0, 0, edge / CELLS
    for k in force_frames(x):
        exact = reference[k]
        atom, part, cell, gradient = shared(x[k], edge, delta)
        evaluation.set(Assignment(into(cell, x[k][atom] / h) * h, atom, part))
        step = evaluation.step(x[k], energy=False, forces=True, potential=True)
        forces = evaluation.total(step.forces)
        whole = forces - evaluation.total((CHARGES[atom] * step.potential)[:, None] * gradient)
        wrong, fixed, right = wrong + ((whole - exact) ** 2).sum(), fixed + ((forces - exact) ** 2).sum(), right + (exact ** 2).sum()
    return math.sqrt(wrong / right), math.sqrt(fixed / right)


def rows_of(order, edge, x, v, reference):
    rows = []
    for way in WAYS:
        intervals = [interval for interval in INTERVALS if not way.middle or interval // 2 % EVERY == 0]
        evaluation = Evaluation(edge, x[0], order)  # anew, as sharing leaves other charges in it
        jumps, particles = jumps_of(evaluation, way, edge, x, v, intervals)
        for interval in intervals:
            evaluation = Evaluation(edge, x[0], order)
            fresh, old = force_errors(evaluation, way, edge, x, v, interval, reference)
            row = {"way": way.name, "delta_nm": way.delta, "order": order, "interval_fs": interval, **walked(jumps[interval], interval),
                   "error_assigned": fresh, "error_before_next": old, "extra": particles / ATOMS - 1}
            rows.append(row)
            print(f"order {order:2} {way.name:18} {way.delta or '':5} T {interval:3} fs: jump {row['jump_kj_mol']:8.2e} kJ/mol, heating "
                  f"{row['heating_kj_mol_ps_atom']:.2e} +- {row['heating_standard_error']:.1e}, independent "
                  f"{row['independent_kj_mol_ps_atom']:.2e}, next {row['correlation_of_next']:5.2f}, error {fresh:.2e} {old:.2e}, "
                  f"extra {row['extra']:.3f}", flush=True)
    for delta in DELTAS:
        error, fixed = weighted_error(Evaluation(edge, x[0], order), edge, x, delta, reference)
        rows.append({"way": "weighted", "delta_nm": delta, "order": order, "error": error, "error_without_derivatives": fixed})
        print(f"order {order:2} weighted           {delta:5}: error {error:.2e}, {fixed:.2e} without derivatives of the parts", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ps", type=float, default=60, help="length of the trajectory, %g at least" % (3 * LAG * PARTS))
    parser.add_argument("--orders", default="8,9,11")
    parser.add_argument("--jobs", type=int, default=1, help="orders computed at the same time")
    parser.add_argument("--folder", default=os.path.join(results.ROOT, "build", "assignment-jumps"), help="where the trajectory is, or is made")
    parser.add_argument("--store", action="store_true", help="write benchmarks/results/<device>/assignment-jumps.json")
    parser.add_argument("--note", help="what else the machine did")
    arguments = parser.parse_args()
    if arguments.ps < 3 * LAG * PARTS:
        parser.error("too short a trajectory for its parts")
    edge, x, v = trajectory(arguments.folder, arguments.ps)
    print(f"{len(x)} frames", flush=True)

    exact = Evaluation(edge, x[0], REFERENCE_ORDER)
    reference = {}
    for k in force_frames(x):
        for age in [0] + [interval // EVERY for interval in INTERVALS]:
            exact.set(Assignment(x[k + age]))
            reference[k + age] = exact.forces(x[k + age])

    orders = [int(order) for order in arguments.orders.split(",")]
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        rows = sum(pool.starmap(rows_of, [(order, edge, x, v, reference) for order in orders], 1), [])

    if arguments.store:
        head = results.header(arguments, "assignment-jumps", 1)
        head["command"] = f"benchmarks/assignment_jumps.py --ps {arguments.ps:g} --orders {arguments.orders} --store"
        head.update({"system": "SPC water, 648 atoms, PME at constant energy", "cells": [CELLS] * 3, "ps": (len(x) - 1) * EVERY / 1000,
                     "lag_ps": LAG, "reference_order": REFERENCE_ORDER, "precision": "double"})
        results.store(arguments, "assignment-jumps.json", head, rows=rows)


if __name__ == "__main__":
    main()
