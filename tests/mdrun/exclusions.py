#!/usr/bin/env python3
"""A molecule that excludes all its atoms from one another has the energy of its images alone.

Reference: PME without exclusions, less a sum over all pairs of nearest images written here. (PME refuses excluded pairs beyond its cut-off.)
"""
import math
import os
import random

from harness import FMM, PLAIN_MDP, TIGHT_MIXED, System, changed, main, need, work_folder

gmx = need("GMXFMM_GMX")


COULOMB = 138.935457644  # kJ/mol nm/e^2, GROMACS's value


def charge(i, atoms):
    """Charges of one sign in one half of the box: images then have an energy that is not small."""
    return 0.5 if i <= atoms // 2 else -0.5


def molecule(folder, atoms, are_excluded=True):
    """So many atoms with charges of both signs in one molecule, without bonded forces."""
    numbers = random.Random(3)
    along = next(n for n in range(100) if n ** 3 >= atoms)
    edge = 0.3 * along
    conf, top = os.path.join(folder, "conf.gro"), os.path.join(folder, "topol.top")
    with open(conf, "w") as out:
        out.write(f"one molecule\n{atoms}\n")
        for i in range(atoms):
            place = (i % along, i // along % along, i // along ** 2)
            out.write(f"{1:5d}{'MOL':<5s}{'A':>5s}{i + 1:5d}" + "".join(f"{0.3 * (p + numbers.uniform(0, 0.3)):8.3f}" for p in place) + "\n")
        out.write(3 * f" {edge:.5f}" + "\n")
    with open(top, "w") as out:
        out.write("[ defaults ]\n1 2 yes 1 1\n[ atomtypes ]\nA 6 12.0 0 A 0.2 0.1\n[ moleculetype ]\nMOL 0\n[ atoms ]\n")
        out.write("".join(f"{i} A 1 MOL A {i} {charge(i, atoms)} 12\n" for i in range(1, atoms + 1)))
        if are_excluded:
            out.write("[ bonds ]\n1 2 5\n[ exclusions ]\n")  # grompp takes exclusions after bonds; long lines take it long
            for i in range(1, atoms):
                for first in range(i + 1, atoms + 1, 20):
                    out.write(f"{i} " + " ".join(map(str, range(first, min(first + 20, atoms + 1)))) + "\n")
        out.write("[ system ]\none molecule\n[ molecules ]\nMOL 1\n")
    return System("molecule", conf, top, changed(PLAIN_MDP, constraints="none", dispcorr="no", gen_temp=10, dt=0.001, nsteps=10, rvdw=0.9,
                                                 rcoulomb=0.9, nstcalcenergy=1, nstenergy=1))


def images(checks, atoms, energy):
    system = molecule(work_folder("all-pairs"), atoms, are_excluded=False)
    folder = os.path.dirname(system.conf)
    gmx.grompp(folder, {**system.mdp, **TIGHT_MIXED, "rvdw": "1.2", "nsteps": "0"}, system)
    gmx.mdrun(folder, threads="1")
    terms = gmx.energies(folder, ["Coulomb (SR)", "Coul. recip."])[0]
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    x = [[float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)] for line in lines[2:-1]]
    edge, pairs = float(lines[-1].split()[0]), 0
    for i in range(atoms):
        for j in range(i):
            apart = (a - b for a, b in zip(x[i], x[j]))
            pairs += charge(i + 1, atoms) * charge(j + 1, atoms) / math.hypot(*(d - edge * round(d / edge) for d in apart))
    right = terms["Coulomb (SR)"] + terms["Coul. recip."] - COULOMB * pairs
    checks.below(f"energy of {right:.2f} kJ/mol with all {atoms} atoms excluded from one another, difference per atom", abs(energy - right) / atoms, 0.01,
                 "kJ/mol", "1e-4 of the energy of an atom among the others, which cancels")


def test(checks):
    # In the box of 1000 atoms, 3 nm, many pairs are just half a box apart in the three decimals of the file: which image is
    # excluded must not depend on cells, or mdrun refuses to run as no error can be measured
    for atoms in (700, 1000):
        folder = work_folder(str(atoms))
        system = molecule(folder, atoms)
        gmx.grompp(folder, {**system.mdp, **FMM}, system)
        gmx.mdrun(folder, threads="1")
        energy = gmx.energies(folder, ["Coulomb (SR)", "Coul. recip."])[0]
        images(checks, atoms, energy["Coulomb (SR)"] + energy["Coul. recip."])


if __name__ == "__main__":
    main(test)
