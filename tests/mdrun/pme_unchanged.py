#!/usr/bin/env python3
"""Without coulombtype = FMM the patched gmx is the gmx it was: same .mdp output, .tpr files that the unpatched one reads and
runs, same results. The bits are those of another compilation, so results agree to rounding, and only where chaos has not grown
it: at step 0, over a few steps, and in frames of one trajectory that both programs compute again."""
import os
import re

from harness import Failure, changed, main, mean, need, read_trr, rms_difference, rms_distance, skip, version, water, work_folder

gmx = need("GMXFMM_GMX")
stock = need("GMXFMM_STOCK_GMX", "gmx")

TERMS = ["Potential", "LJ (SR)", "Coulomb (SR)"]
# The Coulomb terms of the 7e4 pairs within the cut-off are 3e6 kJ/mol in magnitude, each rounded to 6e-8 of itself: the sum, of
# 9e3 kJ/mol, may be off by 0.17 kJ/mol if all are rounded to the same side. PME has the largest difference, 1.2e-5 between SSE4.1
# and AVX-512, where the Ewald correction is tabulated and analytical.
ENERGY, ENERGY_WHY = 2e-5, "single-precision pair energies, all rounded to one side"


def settings_of(path):
    """An .mdp without the comments, which name the program, the time and the user."""
    with open(path) as lines:
        return [" ".join(line.split(";")[0].split()) for line in lines if line.split(";")[0].strip()]


def dump(program, folder, name):
    """gmx dump of a .tpr without the lines that name the file."""
    return [line for line in program("dump", "-s", name + ".tpr", folder=folder).splitlines() if name + ".tpr" not in line]


def run(program, folder):
    """Frames and energies of mdrun of ours.tpr."""
    program.mdrun(folder, name="ours")
    return read_trr(folder + "/ours.trr"), program.energies(folder, [*TERMS, "Pressure"], name="ours")


def worst_energy(a, b, term):
    """Largest difference of a term between rows, over the potential energy."""
    return max(abs(p[term] - q[term]) for p, q in zip(a, b)) / max(abs(q["Potential"]) for q in b)


def test(checks):
    if version(stock) != version(gmx):
        skip(f"the unpatched gmx is version {version(stock)} and not {version(gmx)}")
    folder = work_folder()
    for method in ("PME", "Reaction-Field", "Cut-off"):
        system = water(gmx, folder)
        settings = changed(system.mdp, coulombtype=method, rcoulomb=0.8, rvdw=0.8, nsteps=20, nstxout=5, nstvout=20, nstfout=20, nstenergy=5,
                           nstcalcenergy=5)
        gmx.grompp(folder, settings, system, name="ours")
        stock.grompp(folder, settings, system, name="theirs")
        checks.that(settings_of(folder + "/ours-out.mdp") == settings_of(folder + "/theirs-out.mdp"), f"{method}: both write the same mdout.mdp")
        try:
            ours, theirs = dump(stock, folder, "ours"), dump(stock, folder, "theirs")
            checks.that(len(ours) > 100 and ours == theirs, f"{method}: the unpatched gmx reads our .tpr, and finds in it what it wrote itself")
            there, there_energy = run(stock, folder)
            os.rename(folder + "/ours.trr", folder + "/path.trr")
        except Failure as failure:
            checks.that(False, f"{method}: the unpatched gmx runs our .tpr: {failure}")
            continue
        here, here_energy = run(gmx, folder)
        size = mean(abs(v) for v in there[0].f)
        checks.below(f"{method}: forces of the same .tpr, relative RMS difference at step 0", rms_difference(here[0].f, there[0].f) / size, 1e-4, "",
                     "other SIMD instructions, single precision")
        checks.below(f"{method}: potential energy at step 0, relative difference", worst_energy(here_energy[:1], there_energy[:1], "Potential"),
                     ENERGY, "", ENERGY_WHY)
        checks.below(f"{method}: pressure at step 0, difference", abs(here_energy[0]["Pressure"] - there_energy[0]["Pressure"]), 1.0, "bar",
                     "the same rounding of pair terms is 0.15 bar; mesh and constraints have theirs")
        moved = rms_distance(there[1].x, there[0].x, there[0].box)
        checks.below(f"{method}: positions after 5 steps, in which the atoms moved by {moved:.3f} nm, RMS difference",
                     rms_distance(here[1].x, there[1].x, there[0].box), 1e-4, "nm",
                     "a pair at the cut-off, inside for one program alone, turns one molecule by 1e-3 nm")
        # Later steps of two runs differ as chaos has it, but not the energies of one and the same frame.
        again = []
        for program in (gmx, stock):
            program.mdrun(folder, "-rerun", "path.trr", name="ours")
            again.append(program.energies(folder, TERMS, name="ours"))
        checks.that(len(again[0]) == len(again[1]) == 5, f"{method}: both compute {len(again[0])} frames of one trajectory again")
        for term in TERMS:
            checks.below(f"{method}: {term} of these frames, worst difference over the potential energy", worst_energy(*again, term), ENERGY, "",
                         ENERGY_WHY)
    # The regression tests `complex` (run-tests.sh) compare many more settings with stored results.
    output = gmx("mdrun", "-h", folder=folder)
    checks.that(re.search(r"-pme ", output) is not None, "mdrun -h still lists its options")


main(test)
