#!/usr/bin/env python3
"""fmm-lj = split: Lennard-Jones in two lists, a long one of heavy atoms and a short one with light atoms.

With the radius of the short list as long as that of the other the sum is that of one list, to rounding. With a radius that grompp
chooses, forces and pressure differ by what grompp and mdrun say, and no more than is allowed.
"""
import os
import re
import shutil

from harness import (CPU_KERNELS, FMM, Failure, alike, changed, charmm_topology, charmm_water, drift, environment, main, make_frames, mean, need, read_log,
                     read_trr, rms_difference, single_points, water, work_folder)

gmx = need("GMXFMM_GMX")

SPLIT = {**FMM, "fmm-lj": "split"}
ALLOWED = 4e-4 / 4  # of the RMS Coulomb force, for the default accuracy
PRESSURE = 0.5      # bar
ATOMS = 8 * 648     # of the water


def errors(text):
    """Relative force difference, pressure along x, y, z and its deviation, as md.log has them."""
    found = re.search(r"forces\s+(\S+)\s+\(\+-\s+\S+\)\s+of\s+the\s+RMS\s+Coulomb\s+force,\s+pressure\s+(\S+)\s+(\S+)\s+(\S+)\s+bar\s+\(\+-\s+(\S+)\)", text)
    if not found:
        raise Failure("no errors of the two lists are told")
    return float(found.group(1)), [float(found.group(k)) for k in (2, 3, 4)], float(found.group(5))


def same(checks, what, split, full, limit=3e-6):
    worst = max(rms_difference(s.force, f.force) / rms_difference(f.force, [0.0] * len(f.force)) for s, f in zip(split, full))
    checks.below(f"{what}: forces, RMS difference over RMS", worst, limit, "", "single precision, pairs added in another order")
    worst = max(abs(s.energy["Potential"] / f.energy["Potential"] - 1) for s, f in zip(split, full))
    checks.below(f"{what}: potential, relative difference", worst, 3e-6, "", "single precision")
    worst = max(abs(s.energy[t] - f.energy[t]) for s, f in zip(split, full) for t in ("Pressure", "Pres-XX", "Pres-XY", "Pres-ZZ"))
    checks.below(f"{what}: pressure tensor, difference", worst, 0.5, "bar", "rounding of sums that are 1e5 times larger")


# Where pair interactions are, as options of single_points.
CPU, GPU = {}, {"nb": "gpu", "more": ["-fmm", "gpu"]}
# The two lists with one radius and one switch: all pairs as in one list.
EQUAL = {"rvdw": "1.0", "rcoulomb": "1.0", "rvdw-switch": "0.9", "vdw-modifier": "Force-switch", "fmm-order": "8"}


def equal_radius(checks, what, folder, system, frames, kernels, where=CPU, **more):
    """Forces, potential and pressure with such lists. kernels: numbers of threads for each that is tried; more: settings of the .mdp."""
    settings = {**EQUAL, **more}
    for name, threads in kernels.items():
        with environment(**CPU_KERNELS[name]):
            try:
                full = single_points(gmx, folder, system, {**FMM, **settings}, *frames, "full", **where)
            except Failure as failure:
                if "without support for these kernels" not in str(failure):
                    raise
                print(f"{what}, {name}: this gmx has no such kernels")
                continue
            for number in threads:
                split = single_points(gmx, folder, system, {**SPLIT, **settings, "fmm-lj-radius": "1.0"}, *frames, "split",
                                      threads=str(number), **where)
                checks.that("in two pair lists" in read_log(folder, "split-0"), f"{what}, {name}: md.log tells of two lists")
                same(checks, f"{what}, {name}, {number} thread(s)", split, full)


def chosen_radius(checks, what, folder, system, frames, note):
    """A radius that grompp chose: differences are those that it measured."""
    # With the same cells and order the Coulomb forces are the same
    full = single_points(gmx, folder, system, {**FMM, "fmm-order": "10"}, *frames, "full")
    split = single_points(gmx, folder, system, {**SPLIT, "fmm-order": "10"}, *frames, "split")
    zero = single_points(gmx, folder, system, {"coulombtype": "Cut-off", "coulomb-modifier": "None", "epsilon-r": "0"}, *frames, "zero")
    for s, f, z, number in zip(split, full, zero, range(len(full))):
        coulomb = rms_difference(f.force, z.force)
        force = rms_difference(s.force, f.force) / coulomb
        told, pressure, deviation = errors(read_log(folder, f"split-{number}"))
        checks.below(f"{what}, frame {number}: forces, difference from one list over RMS Coulomb force", force, ALLOWED, "", "what is allowed")
        checks.that(0.75 < told / force < 1.33, f"{what}, frame {number}: md.log says {told:.1e}, measured at some of the atoms")
        for axis, p in zip(("XX", "YY", "ZZ"), pressure):
            true = s.energy["Pres-" + axis] - f.energy["Pres-" + axis]
            checks.below(f"{what}, frame {number}: Pres-{axis}, difference from one list", abs(true), PRESSURE, "bar", "what is allowed")
            checks.below(f"{what}, frame {number}: the same against md.log", abs(true - p), 4 * deviation + 0.1, "bar",
                         "four standard deviations, and rounding of sums that are 1e5 times larger")
    checks.that(re.search(note, read_log(folder, "split-0")) is not None, f"{what}: md.log tells of {note}")


def minimised(checks, folder, system):
    """Steepest descent goes the same way."""
    last = []
    for name, settings in (("full", FMM), ("split", {**SPLIT, "fmm-lj-radius": "1.0"})):
        gmx.grompp(folder, changed({**system.mdp, **EQUAL, **settings}, integrator="steep", nsteps=5, nstenergy=1), system, name="steep-" + name)
        gmx.mdrun(folder, name="steep-" + name)
        last.append(gmx.energies(folder, ["Potential"], name="steep-" + name)[-1]["Potential"])
    checks.below("minimisation: potential after 5 steps, relative difference", abs(last[1] / last[0] - 1), 1e-5, "", "single precision")


def repeated(checks, folder):
    """A rerun has the energies of the runs that chosen_radius made of the same frames."""
    energies = []
    for name in ("split-0", "split-1"):
        energies.append(gmx.energies(folder, ["LJ (SR)", "Potential"], name=name)[0])
    shutil.copy(os.path.join(folder, "split-0.tpr"), os.path.join(folder, "rerun.tpr"))
    gmx.mdrun(folder, "-rerun", "frames.trr", name="rerun")
    again = gmx.energies(folder, ["LJ (SR)", "Potential"], name="rerun")[-len(energies):]
    worst = max(abs(a[t] / b[t] - 1) for a, b in zip(again, energies) for t in ("LJ (SR)", "Potential"))
    checks.below("rerun: energies, relative difference", worst, 1e-5, "", "single precision")


def slabs(checks, where=CPU):
    """pbc = xy, without walls and between two, which have Lennard-Jones interactions of their own: as one list; and a radius that grompp chose."""
    for what, more in (("film", {}), ("between walls", {"nwall": "2", "wall-type": "9-3", "wall-atomtype": "OT OT", "wall-density": "50 50"})):
        folder = work_folder(what.replace(" ", "-"))
        system = charmm_water(gmx, folder, (2, 2, 2))
        edges = ["3.72412", "3.72412", "4.6" if more else "3.8"]  # molecules of the file are whole, and 0.1 nm beyond the box at most
        gmx("editconf", "-f", system.conf, "-o", "slab.gro", "-box", *edges, "-c", folder=folder)
        system.conf = os.path.join(folder, "slab.gro")
        system.mdp = changed(system.mdp, pbc="xy", **more)
        system.mdp.update(FMM)
        frames = make_frames(gmx, folder, system, steps=20, every=10)
        equal_radius(checks, what, folder, system, frames, {"chosen": (2,)}, where)
        one = single_points(gmx, folder, system, {**FMM, "fmm-order": "10"}, frames[0], frames[1][-1:], "one", **where)[0]
        two = single_points(gmx, folder, system, {**SPLIT, "fmm-order": "10"}, frames[0], frames[1][-1:], "two", **where)[0]
        zero = single_points(gmx, folder, system, {"coulombtype": "FMM", "epsilon-r": "1e6"}, frames[0], frames[1][-1:], "zero", **where)[0]
        checks.below(f"{what}: forces, difference from one list over RMS Coulomb force",
                     rms_difference(two.force, one.force) / rms_difference(one.force, zero.force), ALLOWED, "", "what is allowed")
        checks.that(errors(read_log(folder, "two-0"))[0] > 0, f"{what}: md.log tells of the errors of two lists")


def no_light_atoms(checks, folder):
    """Water without Lennard-Jones on hydrogen: a note, and nothing else is different."""
    system = water(gmx, folder, (1, 1, 1))
    results = []
    for name, settings in (("full", FMM), ("split", SPLIT)):
        output = gmx.grompp(folder, changed(system.mdp, nsteps=20, nstxout=20, **settings), system, name=name)
        gmx.mdrun(folder, "-reprod", name=name)
        results.append(read_trr(os.path.join(folder, name + ".trr"))[-1].x)
    checks.that("fmm-lj = split changes nothing here" in " ".join(output.split()), "no light atoms: grompp says that there is no split")
    checks.that(results[0] == results[1], "no light atoms: 20 steps are those of one list, bit for bit")


def continued(checks, folder, system):
    """A run in two parts is that in one; one with a note for those who have one list."""
    mdp = changed(system.mdp, nsteps=200, nstlist=20, nstxout=200, tcoupl="V-rescale", tc_grps="System", tau_t=0.1, ref_t=300, **SPLIT)
    gmx.grompp(folder, mdp, system, name="whole")
    gmx.mdrun(folder, "-reprod", name="whole")
    gmx.grompp(folder, mdp, system, name="parts")
    gmx.mdrun(folder, "-reprod", "-nsteps", "100", name="parts")
    gmx.mdrun(folder, "-reprod", "-cpi", "parts.cpt", name="parts")
    last = [read_trr(os.path.join(folder, name + ".trr"))[-1].x for name in ("whole", "parts")]
    checks.that(last[0] == last[1], "a continued run is exact")
    output = gmx.grompp(folder, changed(mdp, fmm_lj="full"), system, name="noted")
    noted = re.search(r"fmm-lj\s*=\s*split\s+would\s+compute\s+(\d+)\s+%", output)
    checks.that(noted is not None and 10 < int(noted.group(1)) < 80, "with one list grompp notes what two would save")


def conserved(checks, folder, system):
    """Energy is conserved, by lists that are pruned and whose atoms move."""
    drifts = []
    for name, settings in (("split-nve", SPLIT), ("full-nve", FMM)):
        mdp = changed(system.mdp, nsteps=1200, dt=0.001, nstlist=20, nstenergy=20, nstcalcenergy=20, **settings)
        gmx.grompp(folder, mdp, system, name=name)
        gmx.mdrun(folder, name=name)
        drifts.append(drift(gmx.energies(folder, ["Total Energy"], name=name)[10:], ATOMS, lag=0.2)[0])
    checks.below("drift at constant energy, difference from one list", abs(drifts[0] - drifts[1]), 5e-4, "kJ/mol/ps per atom",
                 "chance gives 2e-4 in so short a run")


# A cut-off at which forces jump, and lists have the most to lose.
SHIFT = {"rvdw": "1.0", "rcoulomb": "1.0", "vdw-modifier": "Potential-shift"}


def lists_are_long_enough(checks, folder, system, *options, nb="cpu", settings=None):
    """While both lists grow old, the pressure is that of lists that miss nothing (as in list_buffer.py)."""
    base = changed(system.mdp, nsteps=99, nstlist=100, tcoupl="V-rescale", tc_grps="System", tau_t=1, ref_t=300, nsttcouple=100,
                   nstcalcenergy=1, nstenergy=1, **SPLIT)
    base.update(settings or {})
    rows = {}
    for name, more in (("chosen", {}), ("complete", {"verlet-buffer-tolerance": "-1", "rlist": "1.4"})):
        gmx.grompp(folder, {**base, **more}, system, name=name)
        gmx.mdrun(folder, *(alike(gmx) if nb == "gpu" else ["-reprod"]), *options, name=name, nb=nb)
        rows[name] = [row["Pressure"] for row in gmx.energies(folder, ["Pressure"], name=name)]
    error = mean(a - b for a, b in zip(rows["chosen"], rows["complete"]))
    checks.below(f"pressure{', potential shift' if settings else ''}, mean error of two lists for 100 steps", abs(error), PRESSURE / 3, "bar",
                 "a second list that is pruned at 0.06 nm less than its cut-off has 0.3 bar")


def test(checks):
    folder = work_folder("water")
    system = charmm_water(gmx, folder, (2, 2, 2))
    frames = make_frames(gmx, folder, system, steps=20, every=10)
    equal_radius(checks, "water", folder, system, frames, {"chosen": (1, 5), "4xN": (2,), "2xNN": (2,), "plain C": (2,)})
    chosen_radius(checks, "water", folder, system, frames, r"0 others")
    repeated(checks, folder)
    minimised(checks, folder, system)
    equal_radius(checks, "pbc = no", folder, system, (frames[0], frames[1][:1]), {"chosen": (2,)}, pbc="no", **{"comm-mode": "angular"})
    continued(checks, folder, system)
    conserved(checks, folder, system)
    lists_are_long_enough(checks, folder, system)
    lists_are_long_enough(checks, folder, system, settings=SHIFT)

    slabs(checks)
    no_light_atoms(checks, work_folder("no-light-atoms"))

    folder = work_folder("dodecahedron")
    system = charmm_water(gmx, folder)
    gmx("editconf", "-f", system.conf, "-o", "box.gro", "-bt", "dodecahedron", "-box", "3.2", folder=folder)
    gmx("solvate", "-cp", "box.gro", "-cs", "spc216.gro", "-o", "conf.gro", folder=folder)
    with open(system.conf) as conf:
        atoms = int(conf.read().splitlines()[1])
    charmm_topology(system, atoms // 3)
    equal_radius(checks, "water in a dodecahedron", folder, system, make_frames(gmx, folder, system, steps=10, every=10), {"chosen": (2,)})


if __name__ == "__main__":
    main(test)
