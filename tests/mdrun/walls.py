#!/usr/bin/env python3
"""Forces of walls with the FMM, where each thread has a part of the atoms, are those that one thread computes, as it does with PME."""
import os

from harness import FMM, System, changed, main, need, read_trr, rms_difference, water, work_folder

gmx = need("GMXFMM_GMX")

WALLS = {"pbc": "xy", "dispcorr": "no", "nwall": "2", "wall-type": "9-3", "wall-atomtype": "opls_135 opls_135", "wall-density": "50 50",
         "ewald-geometry": "3dc", "energygrps": "Ion Water"}
WALL_TERMS = ["LJ-SR:Ion-wall0", "LJ-SR:Ion-wall1", "LJ-SR:Water-wall0", "LJ-SR:Water-wall1"]


def point(folder, system, settings, threads, name):
    """Energies with the walls, the virial along z, and forces."""
    mdp = changed(system.mdp, nsteps=0, nstfout=1, nstenergy=1, nstcalcenergy=1, gen_vel="no", continuation="yes", **settings)
    gmx.grompp(folder, mdp, system, name=name)
    gmx.mdrun(folder, name=name, threads=str(threads))
    return gmx.energies(folder, [*WALL_TERMS, "Vir-ZZ"], name=name)[0], read_trr(os.path.join(folder, name + ".trr"))[0].f


def test(checks):
    folder = work_folder()
    system = water(gmx, folder, (2, 2, 1), 2)
    gmx("editconf", "-f", system.conf, "-o", "walls.gro", "-box", "3.724", "3.724", "2.8", "-c", folder=folder)
    system = System("walls", os.path.join(folder, "walls.gro"), system.top, {**system.mdp, **WALLS})
    pme, _ = point(folder, system, {"coulombtype": "PME"}, 1, "pme")
    one, force = point(folder, system, FMM, 1, "fmm1")
    without, bare = point(folder, system, {**FMM, "wall-density": "1e-6 1e-6"}, 1, "without")
    checks.that(abs(one["Vir-ZZ"] - without["Vir-ZZ"]) > 100 and rms_difference(force, bare) > 0.5, "walls' share of the virial and of forces")
    for term in WALL_TERMS:
        checks.that(pme[term] != 0, f"{term} is {pme[term]:g} kJ/mol with PME")
    for threads in (2, 5):
        energies, forces = point(folder, system, FMM, threads, f"fmm{threads}")
        for term in WALL_TERMS:
            checks.below(f"FMM on {threads} threads and PME: {term}, difference", abs(energies[term] - pme[term]) / abs(pme[term]), 1e-5, "",
                         "single precision, sums of 900 terms")
        checks.below(f"FMM on {threads} threads and on one: Vir-ZZ, difference", abs(energies["Vir-ZZ"] - one["Vir-ZZ"]), 0.5, "kJ/mol",
                     "single precision; the walls' share is more than 100")
        checks.below(f"FMM on {threads} threads and on one: forces, RMS difference", rms_difference(forces, force), 0.01, "kJ/mol/nm",
                     "1e-5 of forces of some 1,000; those of the walls are more than 0.5")

    gmx("editconf", "-f", system.conf, "-o", "beyond.gro", "-translate", "0", "0", "1.5", folder=folder)
    gmx.grompp(folder, changed(system.mdp, nsteps=0, gen_vel="no", continuation="yes", **FMM),
               System("beyond", os.path.join(folder, "beyond.gro"), system.top, system.mdp), name="beyond")
    status, output = gmx.run(["mdrun", "-s", "beyond.tpr", "-deffnm", "beyond", "-ntmpi", "1", "-ntomp", "5", "-nb", "cpu"], folder)
    checks.that(status != 0 and output.count("An atom is beyond the wall") == 1, "atoms beyond a wall on several threads: one error")


main(test)
