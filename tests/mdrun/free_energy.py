#!/usr/bin/env python3
"""Perturbed charges: energy, its derivative by lambda, energies at other lambdas and forces equal those of tight PME.

Reference: PME of order 12, spacing 0.05 nm, ewald-rtol 1e-10, in double precision, by an unpatched gmx_d, on frames of a short run; for
derivatives, of which Lennard-Jones is a part, PME by the program under test.
Systems of GROMACS's regression tests: a molecule that is decoupled, its charges first, and others that become another; an ion whose
charge appears; lambda that grows at each step. Soft-core Coulomb interactions are refused.
"""
import os
import statistics

from harness import FMM, TIGHT, TIGHT_MIXED, Failure, changed, main, make_frames, need, regression, rms_difference, want, work_folder
from perturbed import ion_that_appears, points, system_of

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), want("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")


def compare(checks, what, found, exact, same, limits, force):
    """limits: of the energy, of the means of the derivative and of energies at other lambdas, kJ/mol. same: PME by the same program,
    whose Lennard-Jones terms of the last two are not those of another version of GROMACS."""
    energy, slope, foreign = limits
    checks.below(what + ": Coulomb energy", max(abs(a.energy - b.energy) for a, b in zip(found, exact)), energy, "kJ/mol",
                 "some 1e-5 of it, and what is asked at 1e-6")
    checks.below(what + ": its derivative, mean", abs(statistics.mean(a.slope - b.slope for a, b in zip(found, same))), slope, "kJ/mol",
                 "a hundredth of kT")
    apart = [statistics.mean(a.foreign[k] - b.foreign[k] for a, b in zip(found, same)) for k in range(len(same[0].foreign))]
    checks.that(len(apart) > 2, f"{what}: {len(apart)} other lambdas")
    checks.below(what + ": energies at other lambdas, mean", max(map(abs, apart)), foreign, "kJ/mol", "the derivative times their distance")
    worst = max(rms_difference(a.force, b.force) for a, b in zip(found, exact))
    checks.below(what + ": forces", worst, force, "kJ/mol/nm", "RMS: the accuracy, of Coulomb forces of some 1,000")


def one_system(checks, system, folder, states):
    name = system.name
    trajectory, times = make_frames(gmx, folder, system, steps=30, every=10)
    for state in states:
        exact = points(stock_d, folder, system, TIGHT, state, trajectory, times, "tight")
        same = points(gmx, folder, system, {**TIGHT_MIXED, "rcoulomb": system.mdp["rcoulomb"]}, state, trajectory, times, "pme")
        mixed = points(gmx, folder, system, FMM, state, trajectory, times, "fmm")
        compare(checks, f"{name}, state {state}, default accuracy", mixed, exact, same, (0.5, 0.02, 0.02), 0.3)
        if gmx_d:
            same = points(gmx_d, folder, system, TIGHT, state, trajectory, times, "pme-d")
            fine = points(gmx_d, folder, system, {**FMM, "fmm-accuracy": "1e-6"}, state, trajectory, times, "fine")
            compare(checks, f"{name}, state {state}, fmm-accuracy 1e-6", fine, exact, same, (0.01, 0.01, 0.01), 0.002)


def slow_growth(checks, system, folder):
    """Lambda changes at each step: along the same few steps the derivative is that of tight PME."""
    mdp = changed(system.mdp, init_lambda="0.2", coul_lambdas=None, delta_lambda="0.02", free_energy="yes", nsteps="20", nstenergy="5",
                  nstcalcenergy="5", nstdhdl="5", nstlist="10", gen_vel="yes", constraints="all-bonds", dhdl_print_energy="no")
    found = {}
    for name, settings in (("pme", {**TIGHT_MIXED, "rcoulomb": "0.85"}), ("fmm", FMM)):
        gmx.grompp(folder, {**mdp, **settings}, system, name=name)
        gmx.mdrun(folder, "-dhdl", name + ".xvg", name=name)
        with open(os.path.join(folder, name + ".xvg")) as file:
            found[name] = [[float(word) for word in line.split()] for line in file if line[0] not in "#@"]
    checks.that([row[0] for row in found["fmm"]] == [row[0] for row in found["pme"]] and len(found["fmm"]) == 5, "slow growth: five derivatives")
    apart = max(abs(a[1] - b[1]) for a, b in zip(found["fmm"], found["pme"]))
    span = max(row[1] for row in found["pme"]) - min(row[1] for row in found["pme"])
    checks.that(span > 20, f"slow growth: the derivative moves by {span:.3g} kJ/mol")
    checks.below("slow growth: derivative", apart, 0.2, "kJ/mol", "a thousandth of what it moves by")


def refusals(checks, folder):
    """Soft-core Coulomb, said or by fep-lambdas alone; what says so names what to change."""
    for what, system, changes in (("fep-lambdas alone", regression("freeenergy/coulandvdwtogether"), {"coulomb-type": "FMM"}),
                                  ("sc-coul = yes", system_of("coulandvdwsequential_coul"), {"coulombtype": "FMM", "sc-coul": "yes"})):
        try:
            gmx.grompp(folder, changed(system.mdp, **{k.replace("-", "_"): v for k, v in changes.items()}), system)
            checks.that(False, f"{what}: refused")
        except Failure as failure:
            checks.that("soft-core Coulomb" in str(failure) and "sc-coul = no" in str(failure), f"{what}: refused, with what to change")


def test(checks):
    for name, state in (("coulandvdwsequential_coul", 7), ("coulandvdwsequential_vdw", 3), ("transformAtoB", 2), ("relative", 4)):
        one_system(checks, system_of(name), work_folder(name), (state,))
    folder = work_folder("ion")
    ion = ion_that_appears(gmx, folder)
    one_system(checks, ion, folder, (1, 3))
    slow_growth(checks, ion, work_folder("slow"))
    refusals(checks, work_folder("refused"))


main(test)
