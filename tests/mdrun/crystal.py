#!/usr/bin/env python3
"""In a crystal mdrun reaches the accuracy asked for, by measuring at its start what a model of liquids cannot know.

Rock salt, ions a twentieth of their distance off their places: by that model alone the error is twice to twenty times what was
asked, and worst where cells are commensurate with the lattice. Reference: tight PME in double precision.
"""
import os
import random
import re

from harness import FMM, NO_COULOMB, PLAIN_MDP, TIGHT, WATER_TOP, System, changed, force_error, main, need, read_log, single_points, work_folder

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), need("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")

DISTANCE = 0.282  # nm


def rock_salt(folder, along):
    """along^3 ions."""
    numbers = random.Random(5)
    rows = {"NA": [], "CL": []}
    for i in range(along ** 3):
        place = [i % along, i // along % along, i // along ** 2]
        rows["CL" if sum(place) % 2 else "NA"].append([DISTANCE * (p + numbers.uniform(-0.05, 0.05)) for p in place])
    conf, top = os.path.join(folder, "conf.gro"), os.path.join(folder, "topol.top")
    ions = [(name, x) for name in rows for x in rows[name]]
    with open(conf, "w") as out:
        out.write(f"rock salt\n{len(ions)}\n")
        for number, (name, x) in enumerate(ions, 1):
            out.write(f"{number:5d}{name:<5s}{name:>5s}{number:5d}" + "".join(f"{v:8.3f}" for v in x) + "\n")
        out.write(3 * f" {along * DISTANCE:.5f}" + "\n")
    with open(top, "w") as out:
        out.write(WATER_TOP + "".join(f"{name} {len(rows[name])}\n" for name in rows))
    return System(f"rock salt of {along ** 3} ions", conf, top, changed(PLAIN_MDP, gen_vel="no", constraints="none"))


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
            said = re.search(r"expected relative RMS force error \S+, measured (\d\S+)", log)
            what = f"{system.name}, asked {asked}, {name} precision"
            checks.below(f"{what}: force error ({error['no']:.1e} without measuring)", error["yes"], float(asked), "", "the accuracy asked")
            checks.that(said is not None and abs(float(said.group(1)) / error["yes"] - 1) < 0.1,
                        f"{what}: md.log says {said.group(1) if said else 'nothing'}, which is true within 10 %")
            checks.that("measured" not in read_log(folder, f"{name}-no-0"), f"{what}: nothing is measured with fmm-measure = no")


main(test)
