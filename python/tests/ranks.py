# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plans on the ranks of mpi4py: mpirun -n N python3 ranks.py. Status 77: mpi4py or numpy is not there."""
import sys

try:
    import numpy as np
    from mpi4py import MPI
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

import gmxfmm
from systems import direct


def main():
    comm, failures = MPI.COMM_WORLD, []
    rank, size = comm.Get_rank(), comm.Get_size()

    def check(what, good):
        if not good:
            failures.append(what)

    random = np.random.default_rng(3)
    x, q, y = random.uniform(-1, 1, (1500, 3)), random.uniform(-1, 1, 1500), random.uniform(-1, 2, (400, 3))
    own = slice(rank, None, size)
    exact, field = direct(x, q)
    with gmxfmm.Plan(x[own], q[own], comm=comm, method="treecode", accuracy=1e-4, num_threads=1) as plan:
        step = plan.step(x[own], potential=True)
        error = np.sqrt(comm.allreduce(np.sum((step.potential - exact[own]) ** 2)) / np.sum(exact**2))
        check(f"potentials: {error}", error < 1e-4)
        error = np.sqrt(comm.allreduce(np.sum((step.forces - (q[:, None] * field)[own]) ** 2)) / np.sum((q[:, None] * field) ** 2))
        check(f"forces: {error}", error < 1e-4)
        check("energies are not the same", len(set(comm.allgather(step.energy))) == 1)
        check("energy", abs(step.energy - 0.5 * q @ exact) < 1e-3 * np.abs(0.5 * q * exact).sum())
        plan.set_targets(y[own])
        there = plan.step(x[own])
        check("targets", there.potential.shape == (len(y[own]),) and np.isfinite(there.potential).all())
        bad = x[own].copy()
        bad[1, 2] = np.nan if rank == size - 1 else bad[1, 2]
        try:
            plan.step(bad)
            check("a position that is not finite", False)
        except gmxfmm.Error as error:
            check(str(error), size == 1 or f"rank {size - 1}: the position of particle 1" in str(error))
    # targets are measured with the plan, the last rank has none; later ones are not, unless it is asked for
    mine = slice(0, 0) if rank == size - 1 and size > 1 else slice(rank, None, max(1, size - 1))
    r = y[:, None] - x[None]
    phi = (1 / np.sqrt((r**2).sum(axis=2))) @ q
    with gmxfmm.Plan(x[own], q[own], targets=y[mine], comm=comm, method="treecode", accuracy=1e-5, num_threads=1) as plan:
        error = np.sqrt(comm.allreduce(np.sum((plan.step(x[own]).potential - phi[mine]) ** 2)) / np.sum(phi**2))
        check(f"measured targets: {error} {plan.measured_error}", error < 1e-5 and error < 1.2 * plan.measured_error + 1e-12)
        check("of all ranks", len(set(comm.allgather(plan.measured_error))) == 1)
        if size > 1:
            plan.set_targets(y[mine])
            check("are not measured again", np.isnan(plan.measured_error))
            plan.set_targets(y[mine], x[own], measure=True)
            check("are measured again", plan.measured_error < 1e-5)
        check("error_targets", 0 < plan.measure(x[own]).error_targets < 1e-5)
    try:
        gmxfmm.Plan(x[own], q[own], comm=comm, measure=False)  # the FMM
        check("the FMM on several ranks", size == 1)
    except gmxfmm.Error as error:
        check(str(error), size > 1 and "method = treecode" in str(error))
    # the FMM in a box, with excluded pairs anywhere: the bits of one rank
    box, ids, pairs = 2.0, np.arange(rank, 1500, size), np.stack([np.arange(0, 1500, 2), np.arange(1, 1500, 2)], axis=1)
    here = pairs[np.isin(pairs, ids).any(axis=1)]
    settings = {"measure": False, "order": 5, "grid": 4, "separation": 1, "num_threads": 1}
    with gmxfmm.Plan(x[ids], q[ids], box, exclusions=here, ids=ids, comm=comm, **settings) as plan, \
            gmxfmm.Plan(x, q, box, exclusions=pairs, **settings) as alone:
        for _ in range(2):
            several, one = plan.step(x[ids], potential=True), alone.step(x, potential=True)
            check("the FMM's forces", np.array_equal(several.forces, one.forces[ids]))
            check("its potentials", np.array_equal(several.potential, one.potential[ids]))
            check("its energy", several.energy == one.energy)
    for wrong, words in (({"ids": ids[:1]}, "ids"), ({"exclusions": here}, "ids")):
        try:
            gmxfmm.Plan(x[ids], q[ids], box, comm=comm, **settings, **wrong)
            check(f"{words} that are wrong", False)
        except gmxfmm.Error as error:
            check(str(error), words in str(error))
    # all particles on one rank
    some = own if size == 1 else slice(None) if rank == 0 else slice(0, 0)
    with gmxfmm.Plan(x[some], q[some], comm=comm, method="treecode", theta=0.6, degree=8, leaf=60, num_threads=1) as plan:
        potential = plan.step(x[some], potential=True).potential
        check("all on one rank", len(potential) == 0 or np.linalg.norm(potential - exact[some]) < 1e-5 * np.linalg.norm(exact[some]))
    # what is given is measured, of all ranks: 1500 targets are few enough to be all in the sample
    given = {"comm": comm, "method": "treecode", "theta": 0.8, "leaf": 40, "num_threads": 1}
    with gmxfmm.Plan(x[own], q[own], degree=3, **given) as plan:
        step = plan.step(x[own], potential=True, field=True)
        errors = [np.sqrt(comm.allreduce(np.sum((a - b[own]) ** 2)) / np.sum(b**2)) for a, b in ((step.potential, exact), (step.field, field))]
        # the larger of two measures, with and without what is far above the median
        check(f"measured {plan.measured_error} of {errors}", 0.999 * max(errors) <= plan.measured_error < 2 * max(errors))
        check("not the same on all", len(set(comm.allgather(plan.measured_error))) == 1)
        check("measured again", abs(plan.measure(x[own]).error - plan.measured_error) < 1e-6 * plan.measured_error)
    with gmxfmm.Plan(x[own], q[own], degree=3, measure=False, **given) as plan:
        check("nothing is measured", np.isnan(plan.measured_error))
    try:
        gmxfmm.Plan(x[own], q[own], degree=1, accuracy=1e-8, **given)
        check("an accuracy that is missed", False)
    except gmxfmm.Error as error:
        check(str(error), "out of reach" in str(error) and error.status == "GMXFMM_ERROR_OPTION")
    for failure in failures:
        print(f"FAILED on rank {rank}: {failure}", flush=True)
    sys.exit(comm.allreduce(len(failures)) > 0)


main()
