#!/usr/bin/env python3
"""Perturbed charges: energy, its derivative by lambda, energies at other lambdas and forces equal those of tight PME.

Reference: PME of order 12, spacing 0.05 nm, ewald-rtol 1e-10, in double precision, by an unpatched gmx_d, on frames of a short run; for
derivatives, of which Lennard-Jones is a part, PME by the program under test.
All systems of GROMACS's regression tests that perturb charges: a molecule that is decoupled, its charges first, and others that become
another; an ion whose charge appears; charges of virtual sites; molecules decoupled from all but themselves, or longer than the pair list;
lambda that grows at each step; soft-core Coulomb interactions, also of atoms that are at one place; a molecule that moves through the box.
"""
import os
import random
import re
import statistics

from harness import (FMM, TIGHT, TIGHT_MIXED, Failure, System, changed, main, make_frames, need, read_log, read_trr, rms_difference, want,
                     work_folder)
from perturbed import (OF_REGRESSION_TESTS, coupled_to_itself, dhdl, ion_that_appears, long_molecule, points, points_of_rerun, sites_that_change,
                       soft_core_systems, still, system_of)

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), want("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")
FEW = 3  # frames at the default accuracy
FRAMES = 20 if gmx_d else FEW
FINE = {**FMM, "fmm-accuracy": "1e-6"}


def compare(checks, what, found, exact, same, limits, force, each=False):
    """limits: of the energy, of the derivative and of energies at other lambdas, kJ/mol, of their means or of each frame. same: PME by the
    same program, whose Lennard-Jones terms of the last two are not those of another version of GROMACS."""
    energy, slope, foreign = limits
    over = (lambda values: max(map(abs, values))) if each else (lambda values: abs(statistics.mean(values)))
    which = f"each of {len(found)} frames" if each else "mean"
    checks.below(what + ": Coulomb energy", max(abs(a.energy - b.energy) for a, b in zip(found, exact, strict=True)), energy, "kJ/mol",
                 "some 1e-5 of it, and what is asked at 1e-6")
    checks.below(f"{what}: its derivative, {which}", over([a.slope - b.slope for a, b in zip(found, same, strict=True)]), slope, "kJ/mol",
                 "what is asked at 1e-6" if each else "a hundredth of kT")
    apart = [over([a.foreign[k] - b.foreign[k] for a, b in zip(found, same)]) for k in range(len(same[0].foreign))]
    checks.that(len(apart) > 2, f"{what}: {len(apart)} other lambdas")
    checks.below(f"{what}: energies at other lambdas, {which}", max(apart), foreign, "kJ/mol", "the derivative times their distance")
    worst = max(rms_difference(a.force, b.force) for a, b in zip(found, exact))
    checks.below(what + ": forces", worst, force, "kJ/mol/nm", "RMS: the accuracy, of Coulomb forces of some 1,000")


def log_of_pair_list(checks, system, log, softened):
    """Only soft-core Coulomb interactions need pairs of atoms without Van der Waals interactions; of flexible water all atoms are listed."""
    listed, atoms = map(int, re.search(r"FMM: (\d+) of (\d+) atoms are in the pair list", log).groups())
    said = re.search(r"FMM: \d+ atoms? ha(?:s|ve) perturbed charges;.*With soft-core Coulomb interactions all atoms are in the pair list", log)
    whole = softened or "FLEXIBLE" in system.mdp.get("define", "")
    checks.that(bool(said) == softened and (listed == atoms) == whole,
                f"{system.name}: md.log says that {listed} of {atoms} atoms are in the pair list{', all for soft-core Coulomb' if said else ''}")


def one_system(checks, system, folder, states, softened=False, fmm=None):
    """fmm: settings beside those of the system that only the FMM has."""
    name = system.name
    trajectory, times = make_frames(gmx, folder, system, steps=10 * FRAMES, every=10)
    for state in states:
        exact = points_of_rerun(stock_d, folder, system, TIGHT, state, trajectory, "tight")
        same = points_of_rerun(gmx, folder, system, {**TIGHT_MIXED, "rcoulomb": system.mdp["rcoulomb"]}, state, trajectory, "pme")
        mixed = points(gmx, folder, system, {**FMM, **(fmm or {})}, state, trajectory, times[:FEW], "fmm")
        compare(checks, f"{name}, state {state}, default accuracy", mixed, exact[:FEW], same[:FEW], (0.5, 0.02, 0.02), 0.3)
        log_of_pair_list(checks, system, read_log(folder, f"fmm-{state}-0"), softened)
        if gmx_d:
            same = points_of_rerun(gmx_d, folder, system, TIGHT, state, trajectory, "pme-d")
            fine = points_of_rerun(gmx_d, folder, system, {**FINE, **(fmm or {})}, state, trajectory, "fine")
            compare(checks, f"{name}, state {state}, fmm-accuracy 1e-6", fine, exact, same, (0.01, 0.01, 0.01), 0.002, each=True)


def slow_growth(checks, system, folder):
    """Lambda changes at each step: along the same few steps the derivative is that of tight PME."""
    mdp = changed(system.mdp, init_lambda="0.2", coul_lambdas=None, delta_lambda="0.02", free_energy="yes", nsteps="20", nstenergy="5",
                  nstcalcenergy="5", nstdhdl="5", nstlist="10", gen_vel="yes", constraints="all-bonds", dhdl_print_energy="no")
    cases = [("slow growth", gmx, {**TIGHT_MIXED, "rcoulomb": "0.85"}, FMM, 0.2, "a thousandth of what it moves by")]
    if gmx_d:
        cases.append(("slow growth, fmm-accuracy 1e-6", gmx_d, TIGHT, FINE, 0.01, "what is asked at 1e-6"))
    for what, program, pme, fmm, limit, why in cases:
        found = {}
        for name, settings in (("pme", pme), ("fmm", fmm)):
            program.grompp(folder, {**mdp, **settings}, system, name=name)
            program.mdrun(folder, "-dhdl", name + ".xvg", name=name)
            found[name] = dhdl(folder, name)[1]
        checks.that([row[0] for row in found["fmm"]] == [row[0] for row in found["pme"]] and len(found["fmm"]) == 5, f"{what}: five derivatives")
        apart = max(abs(a[1] - b[1]) for a, b in zip(found["fmm"], found["pme"]))
        span = max(row[1] for row in found["pme"]) - min(row[1] for row in found["pme"])
        checks.that(span > 20, f"{what}: the derivative moves by {span:.3g} kJ/mol")
        checks.below(f"{what}: derivative", apart, limit, "kJ/mol", why)


def at_other_places(checks, folder):
    """A molecule that is elsewhere in the box, as in time it will be by diffusion, has the same derivative, whatever cells it is in then.

    All parameters are chosen where it is at first. Frames are the same coordinates, moved.
    """
    system, state, numbers = system_of("coulandvdwsequential_coul"), 8, random.Random(3)
    with open(system.conf) as conf:
        title, count, *rows, box = conf.read().splitlines()
    edges = [float(word) for word in box.split()[:3]]
    moves = [[0, 0, 0]] + [[round(numbers.uniform(0, edge), 3) for edge in edges] for _ in range(59)]

    def write(name, these):
        with open(os.path.join(folder, name), "w") as out:
            for time, move in enumerate(these):
                moved = [row[:20] + "".join(f"{float(row[20 + 8 * d:28 + 8 * d]) + move[d]:8.3f}" for d in range(3)) for row in rows]
                out.write("\n".join([f"{title.split(' t=')[0]} t= {time}.0", count, *moved, box]) + "\n")

    write("first.gro", moves[:1])
    write("moved.gro", moves)
    cases = [("default accuracy", gmx, {**TIGHT_MIXED, "rcoulomb": system.mdp["rcoulomb"]}, FMM, 0.02, 0.05,
              "two hundredths of kT: without measured parameters the worst has 0.03")]
    if gmx_d:
        cases.append(("fmm-accuracy 1e-6", gmx_d, TIGHT, FINE, 0.01, 0.01, "what is asked at 1e-6"))
    for what, program, pme, fmm, mean, worst, why in cases:
        exact = points_of_rerun(program, folder, system, pme, state, "first.gro", "pme", first=True)[0].slope
        apart = [point.slope - exact for point in points_of_rerun(program, folder, system, fmm, state, "moved.gro", "fmm", first=True)]
        text = f"a molecule in {len(apart)} places, {what}: derivative"
        checks.below(f"{text}, mean", abs(statistics.mean(apart)), mean, "kJ/mol", "a hundredth of kT" if mean > 0.01 else why)
        checks.below(f"{text}, each", max(map(abs, apart)), worst, "kJ/mol", why)


def beyond_the_list(checks, folder):
    """A molecule longer than the FMM's pair list; PME ends there with an error, and has one that is longer."""
    system = long_molecule(gmx, folder)
    short = {"rlist": "0.6", "rcoulomb": "0.6"}
    one_system(checks, system, folder, (1, 2), fmm=short)
    gmx.grompp(folder, {**still(system, TIGHT_MIXED, 1), **short}, system, name="short")
    try:
        gmx.mdrun(folder, name="short")
        checks.that(False, f"{system.name}: PME ends with an error")
    except Failure as failure:
        checks.that("beyond the pair-list" in str(failure), f"{system.name}: PME ends with an error")
    # Soft-core Coulomb interactions are those within rcoulomb, so that there it is the list alone that may be longer.
    system.mdp = changed(system.mdp, sc_coul="yes", rcoulomb="0.6", fmm_measure="no")
    (one,), (other,) = (points(gmx, folder, system, {**FMM, "rlist": length}, 2, "frames.trr", [0], "soft-" + length) for length in ("0.6", "0.92"))
    for what, apart, limit, unit in (("Coulomb energy", abs(one.energy - other.energy), 0.005, "kJ/mol"), ("its derivative", abs(one.slope - other.slope), 0.002, "kJ/mol"),
                                     ("forces", rms_difference(one.force, other.force), 0.005, "kJ/mol/nm")):
        checks.below(f"{system.name}, soft-core Coulomb: {what} with a long list and a short one", apart, limit, unit, "rounding")


# Positions in single precision can have this distance, where 1e-7 nm become 1.2e-7; to Gapsys's forces that close it matters.
LEAST = 2.0 ** -24


def write_close(path, lines, apart):
    """An ion comes so near (nm) to the first hydrogen; all positions with the same number of digits, as the format wants it."""
    ion = next(k for k, line in enumerate(lines) if line[5:10].strip() == "NA")
    hydrogen = next(line for line in lines if line[10:15].strip() == "HW1")
    with open(path, "w") as out:
        for k, line in enumerate(lines):
            if 2 <= k < len(lines) - 1:
                x = [float((hydrogen if k == ion else line)[20 + 8 * d:28 + 8 * d]) for d in range(3)]
                if line == hydrogen or k == ion:
                    x[0] = round(x[0] * 2 ** 20) / 2 ** 20  # has all its digits in single precision, also with LEAST added
                line = line[:20] + "".join(f"{value:15.10f}" for value in (x[0] + apart * (k == ion), x[1], x[2]))
            out.write(line + "\n")


SOFT = {"Beutler": {"sc-coul": "yes", "sc-alpha": "0.5", "sc-power": "1", "sc-sigma": "0.3"}, "Gapsys": {"sc-function": "gapsys"}}


def soft_ion(folder, function):
    """An ion without Lennard-Jones in state A, and the lines of its file."""
    system = ion_that_appears(gmx, folder)
    system.mdp = changed(system.mdp, couple_lambda0="none", couple_lambda1="vdw-q", coul_lambdas="0 0.5 1", vdw_lambdas="0 0.5 1", nstlist="10",
                         **FMM, **SOFT[function])
    with open(system.conf) as conf:
        return system, conf.read().splitlines()


def overlap(checks, folder, function):
    """An ion without Lennard-Jones comes to a water's hydrogen: forces stay finite, and all is that of tight PME."""
    system, lines = soft_ion(folder, function)
    conf = os.path.join(folder, "close.gro")
    for apart in (0.0, LEAST, 1e-3, 0.005, 0.009, 0.02):
        found = {}
        write_close(conf, lines, apart)
        for name, program, settings in (("mixed", gmx, {}), ("double", gmx_d, {}), ("exact", stock_d, TIGHT)):
            if program:
                mdp = changed(system.mdp, nsteps=0, nstfout=1, init_lambda_state=1, free_energy="yes", nstenergy=1, nstcalcenergy=1, continuation="yes",
                              **settings)
                program.grompp(folder, mdp, System(system.name, conf, system.top, mdp), name=name)
                program.mdrun(folder, name=name)
                found[name] = (program.energies(folder, ["Potential"], name=name)[0]["Potential"], read_trr(os.path.join(folder, name + ".trr"))[0].f)
        what = f"{function}, an ion {apart:.2g} nm from a hydrogen"
        checks.that(all(abs(value) < 1e5 for kind in found.values() for value in kind[1]), f"{what}: forces are finite")
        for name in [kind for kind in found if kind != "exact"]:
            checks.below(f"{what}, {name} precision: energy less tight PME's", abs(found[name][0] - found["exact"][0]), 0.5, "kJ/mol", "5e-5 of 11,000")
            checks.below(f"{what}, {name} precision: forces", rms_difference(found[name][1], found["exact"][1]), 0.3, "kJ/mol/nm",
                         "RMS: the accuracy, of Coulomb forces of some 1,000")


def continuous(checks, folder, function):
    """The energy changes by its derivative times what lambda changes by. In mixed precision one water is left, with which the energy has digits
    enough for that; parameters are not measured, as with others the energy is another in its last digits."""
    system, lines = soft_ion(folder, function)
    conf, top = os.path.join(folder, "close.gro"), os.path.join(folder, "one.top")
    with open(system.top) as whole, open(top, "w") as one:
        one.write(re.sub(r"SOL \d+", "SOL 1", whole.read()))
    fixed = changed(system.mdp, nsteps=0, free_energy="yes", nstenergy=1, nstcalcenergy=1, nstdhdl=1, continuation="yes", init_lambda_state=None,
                    coul_lambdas=None, vdw_lambdas=None, calc_lambda_neighbors="0", dhdl_print_energy="no", dispcorr="no", fmm_measure="no")

    def at(program, those, settings, lam):
        """Energy and derivative."""
        mdp = {**fixed, **settings, "init-lambda": str(lam)}
        program.grompp(folder, mdp, System(system.name, conf, those, mdp), name="at")
        program.mdrun(folder, "-dhdl", "at.xvg", name="at")
        return program.energies(folder, ["Potential"], name="at")[0]["Potential"], dhdl(folder, "at")[1][0][1]

    cases = [("mixed precision", gmx, [lines[0], "4", *lines[2:6], lines[-1]], top, {})]
    if gmx_d:
        cases.append(("double precision", gmx_d, lines, system.top, {"fmm-accuracy": "1e-6"}))
    for what, program, those, topology, settings in cases:
        for apart in (LEAST, 0.005, 0.2):
            write_close(conf, those, apart)
            if program is gmx_d:
                limit, why = 1e-6, "rounding of 11,000 kJ/mol"
            elif apart < 0.01:
                limit, why = 2e-3, "rounding of 2,800 kJ/mol, of the charges at 0.01 nm, that cancel"
            else:
                limit, why = 1e-4, "rounding of 60 kJ/mol"
            slope = at(program, topology, settings, 0.5)[1]
            text = f"{function}, an ion {apart:.2g} nm from a hydrogen, {what}"
            checks.that(abs(slope) > 10, f"{text}: the derivative is {slope:.1f} kJ/mol")
            for step in (1e-4,) if program is gmx_d else (1e-4, 0.005):
                above, below = (at(program, topology, settings, 0.5 + change)[0] for change in (step, -step))
                checks.below(f"{text}: energy at lambdas {2 * step:g} apart, less the derivative times that", abs(above - below - 2 * step * slope), limit,
                             "kJ/mol", why)


def test(checks):
    for name, state in OF_REGRESSION_TESTS.items():
        one_system(checks, system_of(name), work_folder(name), (state,))
    folder = work_folder("ion")
    ion = ion_that_appears(gmx, folder)
    one_system(checks, ion, folder, (1, 3))
    slow_growth(checks, ion, work_folder("slow"))
    for system, those in soft_core_systems():
        one_system(checks, system, work_folder(system.name.replace(" ", "-")), those, softened=True)
    folder = work_folder("sites")
    one_system(checks, sites_that_change(gmx, folder), folder, (1,))
    for system, state, softened in coupled_to_itself():
        one_system(checks, system, work_folder(system.name.replace(" ", "-")), (state,), softened)
    beyond_the_list(checks, work_folder("long"))
    at_other_places(checks, work_folder("places"))
    for function in SOFT:
        overlap(checks, work_folder("overlap", function), function)
        continuous(checks, work_folder("continuous", function), function)


main(test)
