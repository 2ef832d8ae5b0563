#!/usr/bin/env python3
"""Sparse systems: a box that may tilt gets no octree, one that is compressed says so in time, a molecule far off costs no memory."""
import os
import re
import subprocess

from harness import FMM, System, changed, main, need, read_log, water, work_folder

gmx = need("GMXFMM_GMX")


def with_box(folder, name, system, box):
    """The system in another box."""
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    conf = os.path.join(folder, name + ".gro")
    with open(conf, "w") as out:
        out.write("\n".join(lines[:-1] + [box]) + "\n")
    return System(name, conf, system.top, system.mdp)


def test(checks):
    folder = work_folder()
    dense = water(gmx, folder)
    dense.mdp = changed(dense.mdp, rvdw=0.8, rcoulomb=0.8, dispcorr="no", nsteps=100, nstcalcenergy=10)
    tilting(checks, work_folder("tilting"))
    compressed(checks, folder, dense)
    far_off(checks, folder, dense)
    spread(checks, work_folder("spread"), dense)


def tilting(checks, folder):
    system = water(gmx, folder, (2, 1, 1))
    system.mdp = changed(system.mdp, rvdw=0.8, rcoulomb=0.8, dispcorr="no", nsteps=20, gen_vel="no")
    system = with_box(folder, "sparse", system, "30 30 30")
    anisotropic = {"tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "1", "ref-t": "300", "pcoupl": "Parrinello-Rahman",
                   "pcoupltype": "anisotropic", "tau-p": "5", "ref-p": "1 1 1 0 0 0"}
    for what, settings, method in (("as it is", {}, "rotation"),
                                   ("deform along z", {"deform": "0 0 0.1 0 0 0"}, "rotation"),
                                   ("deform of yx", {"deform": "0 0 0 1 0 0"}, "fft"),
                                   ("Parrinello-Rahman, compressible along the box", {**anisotropic, "compressibility": "4.5e-5 4.5e-5 4.5e-5 0 0 0"}, "rotation"),
                                   ("Parrinello-Rahman, compressible off the diagonal",
                                    {**anisotropic, "compressibility": "4.5e-5 4.5e-5 4.5e-5 4.5e-5 4.5e-5 4.5e-5"}, "fft")):
        gmx.grompp(folder, {**system.mdp, **FMM, **settings}, system, name="tilt")
        gmx.mdrun(folder, name="tilt")
        log = read_log(folder, "tilt")
        found = re.search(r"FMM: far field by (\w+)", log)
        checks.that(found is not None and found.group(1) == method and "Finished mdrun" in log,
                    f"water in a box mostly empty, {what}: runs with fmm-m2l = {method}, found {found and found.group(1)}")


def compressed(checks, folder, dense):
    """A start in eight times the volume; frames of a rerun are the compressed system."""
    wide = with_box(folder, "wide", dense, "3.724 3.724 3.724")
    gmx.grompp(folder, {**wide.mdp, **FMM, "nsteps": "0"}, wide, name="wide")
    for conf, warned in ((wide.conf, False), (dense.conf, True)):
        output = gmx.mdrun(folder, "-rerun", conf, name="wide")
        for where, text in (("on stderr", output), ("in md.log", read_log(folder, "wide"))):
            found = len(re.findall(r"WARNING: The volume of the box is now 0.1[23] times that of the .tpr file", " ".join(text.split())))
            checks.that(found == warned, f"{os.path.basename(conf)} in place of a box of 3.7 nm: {'a' if warned else 'no'} warning {where}")


def far_off(checks, folder, dense):
    """pbc = no: the last molecule 3 um from the others, along x and y."""
    with open(dense.conf) as lines:
        lines = lines.read().splitlines()
    for at in (-4, -3, -2):
        x = [float(lines[at][20 + 8 * d:28 + 8 * d]) for d in range(3)]
        lines[at] = lines[at][:20] + f"{x[0] + 3000:8.2f}{x[1] + 3000:8.2f}{x[2]:8.2f}"
    far = System("far", os.path.join(folder, "far.gro"), dense.top, dense.mdp)
    with open(far.conf, "w") as out:
        out.write("\n".join(lines) + "\n")
    most = {}
    for system in (dense, far):
        gmx.grompp(folder, changed(system.mdp, **FMM, pbc="no", nsteps=10, comm_mode="angular"), system, name="open")
        command = [gmx.path, "mdrun", "-s", "open.tpr", "-deffnm", "open", "-ntmpi", "1", "-ntomp", "2", "-nb", "cpu"]
        with open(os.path.join(folder, "open.out"), "w") as out, \
                subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT) as running:
            _, status, used = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        checks.that(running.returncode == 0, f"{system.name}: mdrun with pbc = no ends with {running.returncode}")
        most[system.name] = used.ru_maxrss / 1024
    checks.below(f"memory with a molecule 3 um away, beyond the {most[dense.name]:.0f} MiB without", most["far"] - most[dense.name], 300, "MiB",
                 "a million columns of the pair-search grid, 100 bytes each, and their lists; 4e7 columns take 2700 MiB")


def spread(checks, folder, system):
    """pbc = no: frames of a rerun in which molecules are where they were, or much farther from each other."""
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    gmx.grompp(folder, changed(system.mdp, **FMM, pbc="no", nsteps=0, comm_mode="angular"), system, name="open")
    for factor, warned in ((1.1, False), (1.7, True)):  # 1.1^3 is 1.3, 1.7^3 is 5
        with open(os.path.join(folder, "frames.gro"), "w") as out:
            for time, scale in enumerate((1, factor)):
                out.write(f"water t= {time}.0\n{lines[1]}\n")
                for first in range(2, len(lines) - 1, 3):
                    oxygen = [float(lines[first][20 + 8 * d:28 + 8 * d]) for d in range(3)]
                    for line in lines[first:first + 3]:
                        x = [float(line[20 + 8 * d:28 + 8 * d]) + (scale - 1) * oxygen[d] for d in range(3)]
                        out.write(line[:20] + "".join(f"{value:8.3f}" for value in x) + "\n")
                out.write(lines[-1] + "\n")
        output = gmx.mdrun(folder, "-rerun", "frames.gro", name="open")
        for where, text in (("on stderr", output), ("in md.log", read_log(folder, "open"))):
            found = len(re.findall(r"WARNING: An atom now has \d+ atoms in the cells near it, 0.\d+ times as many", " ".join(text.split())))
            checks.that(found == warned, f"a droplet {factor} times as wide: {'a' if warned else 'no'} warning {where}")


main(test)
