#!/usr/bin/env python3
"""Where lambda changes in a run, parameters are chosen that reach what is asked for with the charges of later, too.

Water of which 17 molecules have charges at the one end, and all at the other: what serves the one is of too low an order for the
other, where the run goes to. Few charges, which may all be in the corners of cells, take the higher order.
"""
import re

from harness import FMM, changed, fmm_parameters, main, need, read_log, water, work_folder

gmx = need("GMXFMM_GMX")
CHARGED = 17
LIGAND = """[ moleculetype ]
LIG 2
[ atoms ]
1 opls_116 1 SOL OW 1 -0.82 15.9994
2 opls_117 1 SOL HW1 1 0.41 1.008
3 opls_117 1 SOL HW2 1 0.41 1.008
[ bonds ]
1 2 1 0.1 345000
1 3 1 0.1 345000
[ angles ]
2 1 3 1 109.47 383
"""


def some_are_others(system):
    """The system whose first molecules are of a type of their own."""
    with open(system.top) as file:
        before, after = file.read().split("[ system ]")
    number = int(after.split()[-1])
    with open(system.top, "w") as file:
        file.write(f"{before}{LIGAND}[ system ]\nwater\n[ molecules ]\nLIG {CHARGED}\nSOL {number - CHARGED}\n")
    return system


def run(folder, system, **settings):
    """md.log of a short run."""
    mdp = changed(system.mdp, free_energy="yes", couple_moltype="SOL", couple_lambda0="vdw", couple_lambda1="vdw-q", couple_intramol="yes", nsteps="20",
                  nstlist="5", nstcalcenergy="5", nstenergy="5", constraints="h-bonds", **FMM)
    gmx.grompp(folder, changed(mdp, **settings), system, name="run")
    gmx.mdrun(folder, name="run")
    return read_log(folder, "run")


def order(log):
    return int(re.search(r"expansion order (\d+)", fmm_parameters(log)).group(1))


def test(checks):
    folder = work_folder("charges-later")
    system = some_are_others(water(gmx, folder))
    few, every = (order(run(folder, system, init_lambda=value)) for value in ("0", "1"))
    checks.that(few != every, f"few charges have order {few}, all {every}")
    start = 0 if few < every else 2  # of the states of lambda
    forward, enough = ("0.05", every) if start == 0 else ("-0.05", few)
    for name, settings in (("slow growth", {"init_lambda": str(start / 2), "delta_lambda": forward}),
                           ("slow growth along states", {"init_lambda_state": str(start), "coul_lambdas": "0 0.5 1", "delta_lambda": forward})):
        log = run(folder, system, **settings)
        checks.that(order(log) >= enough, f"{name}: order {order(log)}")
        later = log.count("FMM: with the charges at lambda")
        checks.that(later > 1, f"{name}: md.log tells of {later} later charges")
        checks.that("WARNING: The squares of charges" not in log, f"{name}: no warning, as parameters serve these")
    log = run(folder, system, init_lambda_state=str(start), coul_lambdas="0 0.5 1")
    checks.that("FMM: with the charges at lambda" not in log and order(log) == min(few, every), f"lambda that stays: order {order(log)}")


main(test)
