#!/usr/bin/env python3
"""A perfect crystal, on whose ions no force acts, runs in mixed precision: dynamics and minimisation, rock salt and caesium chloride.

Errors are then relative to the natural unit of forces, (mean |q| / spacing)^2. Reference: energies by Madelung's constants.
"""
import itertools
import os

from harness import FMM, WATER_TOP, System, changed, main, measured_error, need, PLAIN_MDP, read_log, read_trr, work_folder

gmx = need("GMXFMM_GMX")

COULOMB = 138.935457644  # kJ/mol nm/e^2, GROMACS's value
# Places of the two ions in a cell of edge 1, Madelung's constant over the distance of neighbours, and that distance
CRYSTALS = {
    "rock salt": (list(itertools.product((0, 0.5), repeat=3)), lambda p: sum(p) % 1 == 0, 1.7475645946, 0.5),
    "caesium chloride": ([(0, 0, 0), (0.5, 0.5, 0.5)], lambda p: p[0] == 0, 1.7626747731, 0.75 ** 0.5),
}


def crystal(folder, name, edge, cells):
    """So many cells of this edge (nm) along x, y and z."""
    places, is_positive, _, _ = CRYSTALS[name]
    rows = {"NA": [], "CL": []}
    for cell in itertools.product(*map(range, cells)):
        for place in places:
            rows["NA" if is_positive(place) else "CL"].append([edge * (c + p) for c, p in zip(cell, place)])
    ions = [(kind, x) for kind in rows for x in rows[kind]]
    conf, top = os.path.join(folder, "conf.gro"), os.path.join(folder, "topol.top")
    with open(conf, "w") as out:
        out.write(f"{name}\n{len(ions)}\n")
        for number, (kind, x) in enumerate(ions, 1):
            out.write(f"{number:5d}{kind:<5s}{kind:>5s}{number:5d}" + "".join(f"{v:8.3f}" for v in x) + "\n")
        out.write(" ".join(f"{edge * c:.5f}" for c in cells) + "\n")
    with open(top, "w") as out:
        out.write(WATER_TOP + "".join(f"{kind} {len(rows[kind])}\n" for kind in rows))
    return System(name, conf, top, changed(PLAIN_MDP, constraints="none", dispcorr="no", rvdw=0.8, rcoulomb=0.8, nstcalcenergy=1, nstenergy=1)), len(ions)


def test(checks):
    for name, edge, cells in (("rock salt", 0.564, (4, 4, 4)), ("rock salt", 0.564, (6, 5, 4)), ("caesium chloride", 0.412, (6, 6, 6))):
        folder = work_folder(f"{name}-{cells[1]}".replace(" ", "-"))
        system, ions = crystal(folder, name, edge, cells)
        what = f"{name}, {ions} ions"
        _, _, madelung, neighbour = CRYSTALS[name]
        right = -0.5 * ions * madelung * COULOMB / (neighbour * edge)
        gmx.grompp(folder, changed(system.mdp, nsteps=20, **FMM), system, name="md")
        gmx.mdrun(folder, name="md")
        row = gmx.energies(folder, ["Coulomb (SR)", "Coul. recip."], name="md")[0]
        checks.below(f"{what}: Coulomb energy against Madelung's constant, relative", abs((row["Coulomb (SR)"] + row["Coul. recip."]) / right - 1),
                     1e-5, "", "coordinates have three decimals and forces are first order in what is wrong, the energy second; rounding is below 2e-6")
        said = measured_error(read_log(folder, "md"))
        checks.that(said is not None and max(said) <= 4e-4, f"{what}: md.log says errors of {said}, 4e-4 was asked")
        gmx.grompp(folder, changed(system.mdp, integrator="steep", nsteps=50, emtol=10, nstfout=1, **FMM), system, name="em")
        gmx.mdrun(folder, name="em")
        log = read_log(folder, "em")
        checks.that("converged to Fmax < 10" in log, f"{what}: the minimum is found to be one")
        largest = max(map(abs, read_trr(os.path.join(folder, "em.trr"))[0].f))
        # 4e-4 of the unit, of which a component of an ion may have 5 times the RMS
        unit = COULOMB / (edge * (1 / (len(CRYSTALS[name][0]) or 1)) ** (1 / 3)) ** 2
        checks.below(f"{what}: largest component of a force", largest, 5 * 4e-4 * unit, "kJ/mol/nm", "five times the RMS error asked")


main(test)
