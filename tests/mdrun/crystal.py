#!/usr/bin/env python3
"""In a crystal mdrun reaches the accuracy asked for, by measuring at its start what a model of liquids cannot know.

Rock salt, ions a twentieth of their distance off their places: by that model alone the error is twice to twenty times what was
asked, and worst where cells are commensurate with the lattice. Reference: tight PME in double precision.
"""
import os
import re

from harness import FMM, NO_COULOMB, TIGHT, Failure, changed, force_error, main, measured_error, need, read_log, rock_salt, single_points, work_folder

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), need("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")

def test(checks):
    for along, asked in ((8, "4e-4"), (10, "4e-4"), (10, "1e-2")):
        folder = work_folder(f"{along}-{asked}")
        system = rock_salt(folder, along)
        # The frame is the start: with a run of no steps as trajectory.
        gmx.grompp(folder, changed(system.mdp, nsteps=0, nstxout=1, nstvout=1), system, name="start")
        gmx.mdrun(folder, name="start")
        frame = (os.path.join(folder, "start.trr"), [0.0])
        reference = single_points(stock_d, folder, system, TIGHT, *frame, "tight")
        nothing = single_points(stock_d, folder, system, NO_COULOMB, *frame, "none")
        for program, name in ((gmx, "mixed"), (gmx_d, "double")):
            error = {}
            for measure in ("yes", "no"):
                settings = {**FMM, "fmm-accuracy": asked, "fmm-measure": measure}
                error[measure] = force_error(single_points(program, folder, system, settings, *frame, f"{name}-{measure}"), reference, nothing)
            log = read_log(folder, f"{name}-yes-0")
            said = measured_error(log)
            what = f"{system.name}, asked {asked}, {name} precision"
            checks.below(f"{what}: force error ({error['no']:.1e} without measuring)", error["yes"], float(asked), "", "the accuracy asked")
            checks.that(said is not None and abs(said[0] / error["yes"] - 1) < 0.1,
                        f"{what}: md.log says {said}, the first of which is true within 10 %")
            checks.that("measured" not in read_log(folder, f"{name}-no-0"), f"{what}: nothing is measured with fmm-measure = no")
    at_the_end(checks)
    refused(checks)


def refused(checks):
    """Cells that no memory holds end in grompp, which says what to change."""
    folder = work_folder("refused")
    system = rock_salt(folder, 8)
    try:
        gmx.grompp(folder, changed(system.mdp, nsteps=0, **{**FMM, "fmm-grid": "1000 1000 1000"}), system, name="run")
        checks.that(False, "a billion cells: refused")
    except Failure as failure:
        checks.that(all(word in str(failure) for word in ("out of memory", "fewer cells")), "a billion cells: refused, with what to change")


def at_the_end(checks):
    """Ions far off their places that are cooled down: forces become those of a crystal, and what was good enough is no longer."""
    folder = work_folder("end")
    system = rock_salt(folder, 8, 0.2)
    for temperature, warned in (("10", True), ("2000", False)):
        gmx.grompp(folder, changed(system.mdp, nsteps=2000, dt=0.001, gen_vel="yes", gen_temp=temperature, tcoupl="V-rescale", tc_grps="System",
                                   tau_t=0.02, ref_t=temperature, **FMM), system, name="run")
        gmx.mdrun(folder, name="run")
        log = read_log(folder, "run")
        checks.that("At the end of the run\nFMM: force errors measured" in log and max(measured_error(log)) <= 4e-4,
                    f"2000 steps at {temperature} K: errors are measured at the start and at the end")
        found = re.search(r"WARNING: At the end of the run the relative RMS error of the FMM forces is (\S+), while fmm-accuracy = 0.0004", log)
        checks.that((found is not None) == warned, f"2000 steps at {temperature} K: {'a' if warned else 'no'} warning: {found.group(1) if found else ''}")
    gmx.mdrun(folder, "-notunefmm", name="run")
    checks.that("measured" not in read_log(folder, "run"), "with -notunefmm nothing is measured")


main(test)
