#!/usr/bin/env python3
"""mdrun -rerun: gives the energies of the run that made the frames, and forces as exact as a run's, also when boxes change."""
from harness import (FMM, NO_COULOMB, TIGHT, changed, main, mean, need, read_trr, rms_difference, want, water, work_folder)

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), want("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")

TERMS = ["Potential", "Coulomb (SR)", "Coul. recip.", "LJ (SR)"]


def rerun(program, folder, system, settings, frames, name):
    """Energies and frames with forces, of -rerun."""
    program.grompp(folder, changed(settings, nstfout=1, nstenergy=1, nstcalcenergy=1), system, name=name)
    program.mdrun(folder, "-rerun", frames, name=name)
    return program.energies(folder, TERMS[:2], name=name), read_trr(f"{folder}/{name}.trr")


def test(checks):
    folder = work_folder()
    system = water(gmx, folder, (1, 1, 2))
    # Frames at pair-search steps, where a run and a rerun put the atoms into the same cells; a fixed list buffer keeps nstlist.
    base = changed(system.mdp, nsteps=200, nstlist=10, verlet_buffer_tolerance=-1, rcoulomb=0.75, rvdw=0.75, rlist=0.8, nstxout=20,
                   nstvout=20, nstenergy=20, nstcalcenergy=10, tcoupl="V-rescale", tc_grps="System", tau_t=0.5, ref_t=300,
                   pcoupl="C-rescale", pcoupltype="semiisotropic", tau_p=1, compressibility="4.5e-5 4.5e-5", ref_p="1 1")
    gmx.grompp(folder, {**base, **FMM}, system, name="run")
    gmx.mdrun(folder, name="run")
    first = gmx.energies(folder, TERMS, name="run")
    gmx.grompp(folder, {**base, **FMM}, system, name="again")
    gmx.mdrun(folder, "-rerun", "run.trr", name="again")
    second = gmx.energies(folder, TERMS, name="again")
    checks.that(len(first) == len(second) == 11, f"{len(second)} frames computed again of {len(first)}")
    for term in TERMS:
        size = mean(abs(row[term]) for row in first)
        worst = max(abs(a[term] - b[term]) for a, b in zip(first, second)) / size
        checks.below(f"{term} of rerun and run, relative difference", worst, 2e-5, "", "single-precision sums; the atoms are sorted anew")

    # Forces of one set of frames, each with its own box, all in double precision.
    frames = "run.trr"
    settings = changed(base, pcoupl="no", pcoupltype=None, tau_p=None, compressibility=None, ref_p=None)
    _, exact = rerun(stock_d, folder, system, {**settings, **TIGHT}, frames, "tight")
    _, nothing = rerun(stock_d, folder, system, {**settings, **NO_COULOMB}, frames, "none")
    coulomb = mean(rms_difference(r.f, z.f) ** 2 for r, z in zip(exact, nothing)) ** 0.5
    for accuracy, program in (("4e-4", gmx_d or gmx), ("1e-6", gmx_d)):
        if not program:
            continue
        _, found = rerun(program, folder, system, {**settings, **FMM, "fmm-accuracy": accuracy}, frames, "fmm" + accuracy)
        wrong = mean(rms_difference(p.f, r.f) ** 2 for p, r in zip(found, exact)) ** 0.5
        checks.below(f"fmm-accuracy {accuracy}: force error over {len(found)} frames with their own boxes", wrong / coulomb, float(accuracy),
                     "", "the accuracy asked")


main(test)
