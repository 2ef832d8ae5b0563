#!/usr/bin/env python3
"""A droplet that boils is measured again during the run, order and cells follow it, and a continued run has the same ones."""
import math
import os
import re

from harness import FMM, changed, droplet_of, main, need, read_log, read_trr, water, work_folder

gmx = need("GMXFMM_GMX")

STEPS, PART = 3000, 2000
ASKED = 4e-4
RADIUS = 1.3  # nm
ANEW = r"FMM, step (\d+): order and cells no longer suit the atoms, with a relative RMS force error of (\S+); they are chosen anew\n(.*)\n(.*)"


def droplet(folder):
    """A sphere of water in the middle of a block, without a box."""
    block = water(gmx, folder, (2, 2, 2))
    with open(block.conf) as lines:
        lines = lines.read().splitlines()[2:-1]
    middle = 1.862
    inside = []
    for at in range(0, len(lines), 3):
        if math.hypot(*(float(lines[at][20 + 8 * d:28 + 8 * d]) - middle for d in range(3))) < RADIUS:
            inside += lines[at:at + 3]
    return droplet_of(folder, block, inside)


def last_error(log):
    """Both errors in the last line of the last table of errors."""
    table = log[log.index("At the end of the run"):]
    row = re.search(r"(?m)^ +(?:fft|rotation|symmetric|dynamic) .*$", table).group(0).split()
    return float(row[-3]), float(row[-2])


def test(checks):
    folder = work_folder()
    system = droplet(folder)
    # Hot enough to lose half of its density in 1 ps
    boiling = changed(system.mdp, pbc="no", comm_mode="angular", gen_vel="yes", gen_temp=1000, nsteps=STEPS, dt=0.001, nstlist=10,
                      verlet_buffer_tolerance=-1, rlist=0.95, nstxout=STEPS - PART, nstvout=STEPS - PART, nstfout=STEPS - PART,
                      nstenergy=100, nstcalcenergy=10, **FMM)
    gmx.grompp(folder, boiling, system, name="whole")
    # One thread: threads that wait for each other are most of such a run on a busy machine
    gmx.mdrun(folder, "-reprod", name="whole", threads="1")
    log = read_log(folder, "whole")
    changes = re.findall(ANEW, log)
    checks.that(len(changes) == 1 and PART > int(changes[0][0]) > 0, f"md.log says that order and cells were chosen anew: {changes}")
    checks.that(re.search(r"errors were measured again \d+ times? during the run, and order and cells chosen anew 1 time, in", log),
                "and how often, at the end")
    checks.below("force error at the end", max(last_error(log)), 1.5 * ASKED, "", "where mdrun warns; some 1e-4 is usual")
    checks.that("make a new .tpr" not in log, "no warning that the system has become another")

    gmx.grompp(folder, boiling, system, name="parts")
    gmx.mdrun(folder, "-reprod", "-nsteps", str(PART), name="parts", threads="1")
    gmx.mdrun(folder, "-reprod", "-cpi", "parts.cpt", "-noappend", name="parts", threads="1")
    # What a continued run begins with is what was chosen during the run before
    second = read_log(folder, "parts.part0002")
    checks.that(changes and changes[0][2].strip() in second and "chosen anew" not in second.split("Started mdrun")[0].replace(changes[0][2], ""),
                "the continued run begins with the order and cells of then")
    whole = read_trr(os.path.join(folder, "whole.trr"))[-1]
    last = read_trr(os.path.join(folder, "parts.part0002.trr"))[-1]
    checks.that(whole.step == last.step == STEPS, f"last frames at steps {whole.step} and {last.step}")
    for what in ("x", "v", "f"):
        checks.that(getattr(whole, what) == getattr(last, what), f"{what} of the last step equal in every bit")

    gmx.grompp(folder, changed(boiling, nsteps=PART), system, name="untuned")
    gmx.mdrun(folder, "-reprod", "-notunefmm", name="untuned", threads="1")
    checks.that("chosen anew" not in read_log(folder, "untuned"), "with -notunefmm nothing is measured")


main(test)
