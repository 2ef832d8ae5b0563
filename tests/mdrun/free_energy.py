#!/usr/bin/env python3
"""Perturbed charges: energy, its derivative by lambda, energies at other lambdas and forces equal those of tight PME.

Reference: PME of order 12, spacing 0.05 nm, ewald-rtol 1e-10, in double precision, by an unpatched gmx_d, on frames of a short run; for
derivatives, of which Lennard-Jones is a part, PME by the program under test.
Systems of GROMACS's regression tests: a molecule that is decoupled, its charges first, and others that become another; an ion whose
charge appears; lambda that grows at each step; soft-core Coulomb interactions, also of atoms that are at one place.
"""
import os
import statistics

from harness import FMM, TIGHT, TIGHT_MIXED, changed, main, make_frames, need, read_trr, rms_difference, want, work_folder
from perturbed import ion_that_appears, points, soft_core_systems, system_of

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


def overlap(checks, folder):
    """An ion without Lennard-Jones comes to a water's hydrogen: forces stay finite, and all is that of tight PME."""
    system = ion_that_appears(gmx, folder)
    system.mdp = changed(system.mdp, couple_lambda0="none", couple_lambda1="vdw-q", coul_lambdas="0 0.5 1", vdw_lambdas="0 0.5 1", sc_coul="yes",
                         sc_alpha="0.5", sc_power="1", sc_sigma="0.3", nstlist="10", **FMM)
    with open(system.conf) as conf:
        lines = conf.read().splitlines()
    ion = next(k for k, line in enumerate(lines) if line[5:10].strip() == "NA")
    hydrogen = next(line for line in lines if line[10:15].strip() == "HW1")
    for apart in (0.0, 1e-7, 1e-3, 0.005, 0.009, 0.02):
        x = [float(hydrogen[20 + 8 * d:28 + 8 * d]) for d in range(3)]
        found = {}
        for name, program, settings in (("mixed", gmx, {}), ("double", gmx_d, {}), ("exact", stock_d, TIGHT)):
            if program:
                conf = os.path.join(folder, "close.gro")
                with open(conf, "w") as out:
                    moved = "".join(f"{value:15.10f}" for value in (x[0] + apart, x[1], x[2]))
                    # All positions with the same number of digits, as the format wants it.
                    for k, line in enumerate(lines):
                        if 2 <= k < len(lines) - 1:
                            numbers = [float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)]
                            line = line[:20] + (moved if k == ion else "".join(f"{value:15.10f}" for value in numbers))
                        out.write(line + "\n")
                mdp = changed(system.mdp, nsteps=0, nstfout=1, init_lambda_state=1, free_energy="yes", nstenergy=1, nstcalcenergy=1, continuation="yes",
                              **settings)
                (stock_d if settings else gmx).grompp(folder, mdp, type(system)(system.name, conf, system.top, mdp), name=name)
                program.mdrun(folder, name=name)
                found[name] = (program.energies(folder, ["Potential"], name=name)[0]["Potential"], read_trr(os.path.join(folder, name + ".trr"))[0].f)
        what = f"an ion {apart:g} nm from a hydrogen"
        checks.that(all(abs(value) < 1e5 for kind in found.values() for value in kind[1]), f"{what}: forces are finite")
        for name in [kind for kind in found if kind != "exact"]:
            checks.below(f"{what}, {name} precision: energy less tight PME's", abs(found[name][0] - found["exact"][0]), 0.5, "kJ/mol", "5e-5 of 11,000")
            checks.below(f"{what}, {name} precision: forces", rms_difference(found[name][1], found["exact"][1]), 0.3, "kJ/mol/nm",
                         "RMS: the accuracy, of Coulomb forces of some 1,000")


def test(checks):
    for name, state in (("coulandvdwsequential_coul", 7), ("coulandvdwsequential_vdw", 3), ("transformAtoB", 2), ("relative", 4)):
        one_system(checks, system_of(name), work_folder(name), (state,))
    folder = work_folder("ion")
    ion = ion_that_appears(gmx, folder)
    one_system(checks, ion, folder, (1, 3))
    slow_growth(checks, ion, work_folder("slow"))
    for system, states in soft_core_systems():
        one_system(checks, system, work_folder(system.name.replace(" ", "-")), states)
    overlap(checks, work_folder("overlap"))


main(test)
