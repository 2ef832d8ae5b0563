#!/usr/bin/env python3
"""A run continued with -cpi ends in the same bits as one that was never interrupted (-reprod, nsteps a multiple of nstlist)."""
from harness import FMM, changed, main, need, read_trr, water, work_folder

gmx = need("GMXFMM_GMX")

STEPS = 200


def test(checks):
    folder = work_folder()
    system = water(gmx, folder, (1, 1, 2))
    coupled = {"tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "0.5", "ref-t": "300", "ld-seed": "3"}
    pressure = {"pcoupl": "C-rescale", "pcoupltype": "semiisotropic", "tau-p": "2", "compressibility": "4.5e-5 4.5e-5", "ref-p": "1 1"}
    # The box changes more seldom than atoms are assigned to cells, as by default in 2026
    seldom = {**pressure, "nstpcouple": "25", "nsttcouple": "50"}
    # The box grows by a percent, so that the pair-search grid would differ if it depended on the box at the start of a run.
    growth = {"pcoupl": "Berendsen", "pcoupltype": "isotropic", "tau-p": "0.2", "compressibility": "4.5e-5", "ref-p": "-1000"}
    for name, settings in (("nve", {}), ("nvt", coupled), ("npt", {**coupled, **pressure}), ("npt, seldom", {**coupled, **seldom}),
                           ("npt, growth", {**coupled, **growth}), ("octree, npt", {**coupled, **pressure, "fmm-m2l": "rotation"})):
        # A list radius well below half the box: near it mdrun decides by the size of the box at its start whether to use update
        # groups, and with them molecules are put into the box in another way.
        base = changed(system.mdp, nsteps=STEPS, nstlist=10, verlet_buffer_tolerance=-1, rcoulomb=0.7, rvdw=0.7, rlist=0.74,
                       nstxout=STEPS // 2, nstvout=STEPS // 2, nstfout=STEPS // 2, nstenergy=10, nstcalcenergy=10)
        base.update({**FMM, **settings})
        gmx.grompp(folder, base, system, name="whole")
        gmx.mdrun(folder, "-reprod", name="whole")
        gmx.grompp(folder, base, system, name="parts")
        gmx.mdrun(folder, "-reprod", "-nsteps", str(STEPS // 2), name="parts")
        gmx.mdrun(folder, "-reprod", "-cpi", "parts.cpt", name="parts")
        whole, parts = read_trr(folder + "/whole.trr"), read_trr(folder + "/parts.trr")
        checks.that([f.step for f in whole] == [f.step for f in parts], f"{name}: frames at steps {[f.step for f in parts]}")
        for what in ("box", "x", "v", "f"):
            checks.that(all(getattr(a, what) == getattr(b, what) for a, b in zip(whole, parts)), f"{name}: {what} equal in every bit")
        terms = ["Potential", "Coulomb (SR)", "Coul. recip.", "Pressure"]
        energies = [gmx.energies(folder, terms, name=part)[-1] for part in ("whole", "parts")]
        checks.that(energies[0] == energies[1], f"{name}: energies of the last step equal in every bit")


main(test)
