#!/usr/bin/env python3
"""Without coulombtype = FMM the patched gmx is the gmx it was: same .mdp output, .tpr files that the unpatched one reads and
runs, same results (the bits are those of another compilation, so the results agree to rounding)."""
import re

from harness import Failure, changed, main, mean, need, read_trr, rms_difference, skip, water, work_folder

gmx = need("GMXFMM_GMX")
stock = need("GMXFMM_STOCK_GMX", "gmx")


def settings_of(path):
    """An .mdp without the comments, which name the program, the time and the user."""
    with open(path) as lines:
        return [" ".join(line.split(";")[0].split()) for line in lines if line.split(";")[0].strip()]


def dump(program, folder, name):
    """gmx dump of a .tpr without the lines that name the file."""
    return [line for line in program("dump", "-s", name + ".tpr", folder=folder).splitlines() if name + ".tpr" not in line]


def test(checks):
    _, version = stock.run(["--version"], "/tmp", log=False)
    if "2022.5" not in version:
        skip("the unpatched gmx is not version 2022.5")
    folder = work_folder()
    for method in ("PME", "Reaction-Field", "Cut-off"):
        system = water(gmx, folder)
        settings = changed(system.mdp, coulombtype=method, rcoulomb=0.8, rvdw=0.8, nsteps=20, nstxout=20, nstfout=20, nstenergy=20,
                           nstcalcenergy=20)
        gmx.grompp(folder, settings, system, name="ours")
        stock.grompp(folder, settings, system, name="theirs")
        checks.that(settings_of(folder + "/ours-out.mdp") == settings_of(folder + "/theirs-out.mdp"), f"{method}: both write the same mdout.mdp")
        try:
            ours, theirs = dump(stock, folder, "ours"), dump(stock, folder, "theirs")
            checks.that(len(ours) > 100 and ours == theirs, f"{method}: the unpatched gmx reads our .tpr, and finds in it what it wrote itself")
            stock.mdrun(folder, name="ours")
        except Failure as failure:
            checks.that(False, f"{method}: the unpatched gmx runs our .tpr: {failure}")
            continue
        there = read_trr(folder + "/ours.trr"), stock.energies(folder, ["Potential", "Pressure"], name="ours")
        gmx.mdrun(folder, name="ours")
        here = read_trr(folder + "/ours.trr"), gmx.energies(folder, ["Potential", "Pressure"], name="ours")
        size = mean(abs(v) for v in there[0][0].f)
        checks.below(f"{method}: forces of the same .tpr, relative RMS difference at step 0", rms_difference(here[0][0].f, there[0][0].f) / size,
                     1e-4, "", "other SIMD instructions, single precision")
        for a, b in zip(here[1], there[1]):
            checks.below(f"{method}: potential energy at {a['Time']:.2f} ps, relative difference", abs(a["Potential"] / b["Potential"] - 1), 5e-5,
                         "", "other SIMD instructions, single precision")
    # The regression tests `complex` (run-tests.sh) compare many more settings with stored results.
    output = gmx("mdrun", "-h", folder=folder)
    checks.that(re.search(r"-pme ", output) is not None, "mdrun -h still lists its options")


main(test)
