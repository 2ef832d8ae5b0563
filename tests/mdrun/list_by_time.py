#!/usr/bin/env python3
"""Times of steps choose nstlist: md.log tells which, lists are right with each that is tried, and a continued run keeps it.

list_by_time.py [gpu]   gpu: all on a GPU, where no run has the bits of another
On two and four ranks of the CPU all choose the same, and domains follow. A value that is given stays. Nothing is tried with
-reprod, -notunefmm, at constant energy, with a given rlist, or with PME.
"""
import os
import re
import shutil
import sys

from harness import (CORES, FMM, NTOMP, changed, charmm_water, drift, main, need, need_gpu, read_log, read_trr, rms_difference, single_points, water,
                     work_folder)

gmx = need("GMXFMM_GMX")

ON_GPU = sys.argv[1:] == ["gpu"]
NB = "gpu" if ON_GPU else "cpu"
COPIES = (2, 2, 2) if ON_GPU else (1, 1, 1)
ATOMS = 648 * COPIES[0] * COPIES[1] * COPIES[2]
STEPS = 39970 if ON_GPU else 7970  # enough for the choice, which the box ends; the last list is then of some age, whatever was chosen
SPLIT_STEPS = 2970
LATER = 400 if ON_GPU else 200
TOLERANCE = 0.005  # kJ/mol/ps per atom, the default of verlet-buffer-tolerance
COUPLED = {"tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "1", "ref-t": "300", "nsttcouple": "10"}
CHOICE = re.compile(r"FMM: (?:changing nstlist from (\d+) to (\d+), rlist from \S+ to (\S+) nm|nstlist stays (\d+), rlist (\S+) nm), "
                    r"by times of steps in ms:([^\n]*(?:\n[^\n]+)*)")


def chosen(log):
    """nstlist before and after the choice, rlist, and the times by nstlist, or None."""
    found = CHOICE.search(log)
    if not found:
        return None
    before, after, radius, kept, kept_radius, times = found.groups()
    tried = {int(n): float(ms) for ms, n in re.findall(r"([\d.e+-]+)\s+with\s+(\d+)", times)}
    return int(before or kept), int(after or kept), float(radius or kept_radius), tried


def lists_are_right(checks, what, folder, system, settings, name):
    """The energies of the last step, with a list of some age, are those of a run of no step, with a new one."""
    last = gmx.energies(folder, ["LJ (SR)", "Potential"], name=name)[-1]
    trajectory = os.path.join(folder, name + ".trr")
    single_points(gmx, folder, system, settings, trajectory, [last["Time"]], "fresh", nb=NB)
    fresh = gmx.energies(folder, ["LJ (SR)", "Potential"], name="fresh-0")[0]
    for term in ("LJ (SR)",) if ON_GPU else ("LJ (SR)", "Potential"):  # a GPU chooses order and cells by times
        worst = abs((last[term] - fresh[term]) / fresh["Potential"])
        checks.below(f"{what}: {term} of the last step against that with a new list, difference over the potential", worst, 2e-5, "",
                     "the buffer's tolerance, cells of some age, and single precision")


def choice(checks, folder, system, mdp, atoms=ATOMS, ranks=1, more=()):
    """A run that chooses; returns what it has chosen."""
    gmx.grompp(folder, mdp, system, name="chosen")
    gmx.mdrun(folder, "-nsteps", str(STEPS), "-cpt", "0.01", "-cpnum", *more, name="chosen", threads=str(ranks), ranks=ranks, nb=NB)
    shutil.copy(f"{folder}/chosen_step{STEPS}.cpt", folder + "/chosen.cpt")
    log = read_log(folder, "chosen")
    found = chosen(log)
    if not checks.that(found is not None, "md.log tells which nstlist times of steps have chosen"):
        return None
    before, after, radius, tried = found
    print(f"      nstlist {before} to {after}, rlist {radius} nm, tried: {tried}")
    checks.that(len(tried) > 1 and min(tried) == before, "the value of mdrun's rule is timed first, then larger ones")
    checks.that(after in tried and tried[after] <= 1.006 * min(tried.values()), "the chosen one is as fast as the fastest")
    told = re.findall(r"updated every +(\d+) steps, buffer \S+ nm, rlist (\S+) nm", log)
    checks.that(before == after or (str(after), f"{radius:.3f}") in told, "md.log tells of the new list")
    rows = [{"Time": row["Time"], "Total Energy": row["Conserved En."]} for row in gmx.energies(folder, ["Conserved En."], name="chosen")]
    rate, _ = drift([row for row in rows if row["Time"] >= 2], atoms)
    checks.below("drift of the conserved energy per atom, while lists of all ages are tried", abs(rate), TOLERANCE, "kJ/mol/ps",
                 "what the buffer allows")
    return found


def same_lists(checks, folder, ranks=1, more=()):
    """A run that goes on from a checkpoint after the choice makes its list at the start, with the bits of one that has changed nstlist."""
    steps = sorted(int(re.search(r"step(\d+)", name).group(1)) for name in os.listdir(folder) if re.fullmatch(r"chosen_step\d+\.cpt", name))
    log = read_log(folder, "chosen")
    after = [int(step) for step in re.findall(r"Writing checkpoint, step (\d+)", log[CHOICE.search(log).end():])]
    steps = [step for step in steps if step in after and step < STEPS - 300]
    if not steps:
        print("SKIP no checkpoint was written between the choice and the end of the run")
        return
    gmx("mdrun", "-s", "chosen.tpr", "-deffnm", "same", "-cpi", f"chosen_step{steps[-1]}.cpt", "-noappend", "-nsteps", str(STEPS - steps[-1]),
        "-ntmpi", str(ranks), "-ntomp", "1", "-nb", "cpu", "-reprod", *more, folder=folder)
    terms = ["Potential", "LJ (SR)", "Pressure"]
    whole, part = (gmx.energies(folder, terms, name=name) for name in ("chosen", "same.part0002"))
    checks.that(len(part) > 1 and whole[-len(part) + 1:] == part[1:],
                f"continued at step {steps[-1]}: energies of the next {len(part) - 1} frames are those with the list that was changed in the run, in every bit")


def continuation(checks, folder, nstlist):
    """A continued run has the chosen value, and the bits of one to which it was given."""
    for name, options in (("kept", ()), ("given", ("-nstlist", str(nstlist)))):
        gmx("mdrun", "-s", "chosen.tpr", "-deffnm", name, "-cpi", "chosen.cpt", "-noappend", "-ntmpi", "1", "-ntomp", NTOMP, "-nb", NB, "-reprod",
            *options, folder=folder)
    logs = [read_log(folder, name + ".part0002") for name in ("kept", "given")]
    said = re.search(r"FMM: nstlist (\d+), rlist \S+ nm, is what an earlier part", logs[0])
    checks.that(said is not None and int(said.group(1)) == nstlist, f"md.log of a continued run tells that nstlist {nstlist} was chosen before")
    checks.that("an earlier part" not in logs[1], "where -nstlist is given, it does not")
    rows = [gmx.energies(folder, ["Potential", "LJ (SR)", "Pressure"], name=name + ".part0002") for name in ("kept", "given")]
    if not ON_GPU:
        checks.that(len(rows[0]) > 1 and rows[0] == rows[1], "a continued run has the energies of one with that -nstlist, in every bit")
    gmx("mdrun", "-s", "chosen.tpr", "-deffnm", "again", "-cpi", "kept.cpt", "-noappend", "-nsteps", str(STEPS // 2), "-ntmpi", "1", "-ntomp", NTOMP, "-nb", NB,
        folder=folder)
    log = read_log(folder, "again.part0003")
    checks.that("an earlier part" in log and chosen(log) is None, "nothing is tried in a continued run, nor in the one after it")


def nothing_tried(checks, folder, system, mdp):
    """Where nstlist is to stay."""
    fixed = changed(mdp, verlet_buffer_tolerance=-1, rlist=0.7, nstlist=20)
    for what, settings, options in (("-nstlist", mdp, ("-nstlist", "30")), ("-reprod", mdp, ("-reprod",)), ("-notunefmm", mdp, ("-notunefmm",)),
                                    ("constant energy", changed(mdp, tcoupl="no"), ()), ("a given rlist", fixed, ()),
                                    ("PME", changed({name: value for name, value in mdp.items() if not name.startswith("fmm")}, coulombtype="PME"), ())):
        gmx.grompp(folder, settings, system, name="stays")
        gmx.mdrun(folder, "-nsteps", str(STEPS // 2), *options, name="stays", nb=NB)
        log = read_log(folder, "stays")
        checks.that("by times of steps" not in log, f"{what}: nothing is tried")
        if what == "-nstlist":
            checks.that(re.search(r"updated every +30 steps", log) is not None, "-nstlist 30: lists for 30 steps")


def on_ranks(checks, ranks, copies, domains):
    """All ranks choose the same, with domains that have room for its lists; a continued run on as many ranks keeps it, on others it does not."""
    folder = work_folder(f"ranks{ranks}")
    system = water(gmx, folder, copies)
    system.mdp = changed(system.mdp, rvdw=0.6, rcoulomb=0.6)
    mdp = changed({**system.mdp, **COUPLED, **FMM}, nsteps=STEPS + LATER, nstxout=STEPS // 10, nstvout=STEPS // 10, nstfout=STEPS // 10)
    more = ("-dd", *domains.split(), "-dlb", "no")  # balanced by times, domains are others in each run
    found = choice(checks, folder, system, mdp, 648 * copies[0] * copies[1] * copies[2], ranks, more)
    if not found:
        return
    lists_are_right(checks, f"{ranks} ranks", folder, system, FMM, "chosen")
    run = read_trr(folder + "/chosen.trr")[1:]
    fresh = single_points(gmx, folder, system, FMM, folder + "/chosen.trr", [frame.time for frame in run], "forces")
    worst = max(rms_difference(frame.f, point.force) / rms_difference(point.force, [0.0] * len(point.force)) for frame, point in zip(run, fresh))
    checks.below(f"{ranks} ranks: forces of {len(run)} steps while lists are tried, against those of one rank with new lists, RMS difference over RMS",
                 worst, 8e-4, "", "fmm-accuracy with cells of some age and with new ones")
    same_lists(checks, folder, ranks, more)
    for name, number, *options in (("kept", ranks, *more), ("other", 1)):
        gmx("mdrun", "-s", "chosen.tpr", "-deffnm", name, "-cpi", "chosen.cpt", "-noappend", "-ntmpi", str(number), "-ntomp", "1", "-nb", "cpu", *options,
            folder=folder)
        said = re.search(r"FMM: nstlist (\d+), rlist \S+ nm, is what an earlier part", read_log(folder, name + ".part0002"))
        if number == ranks:
            checks.that(said is not None and int(said.group(1)) == found[1], f"continued on {ranks} ranks: nstlist {found[1]}, chosen before")
        else:
            checks.that(said is None, f"chosen on {ranks} ranks, continued on one: nothing is kept")


def test(checks):
    if ON_GPU:
        need_gpu(gmx)
    folder = work_folder("water")
    system = water(gmx, folder, COPIES)
    system.mdp = changed(system.mdp, rvdw=0.6, rcoulomb=0.6)
    mdp = changed({**system.mdp, **COUPLED, **FMM}, nsteps=STEPS + LATER, nstxout=STEPS // 10, nstvout=STEPS // 10)
    found = choice(checks, folder, system, mdp)
    if found:
        lists_are_right(checks, "one list", folder, system, FMM, "chosen")
        if not ON_GPU:
            same_lists(checks, folder)
        continuation(checks, folder, found[1])
    nothing_tried(checks, folder, system, mdp)
    if ON_GPU:
        return  # a GPU lists the pairs of the split itself, at intervals of its own
    on_ranks(checks, 2, (2, 2, 2), "2 1 1")
    if CORES >= 4:
        on_ranks(checks, 4, (2, 2, 2), "2 2 1")
    else:
        print("SKIP four ranks: fewer than four cores, which waiting ranks keep")

    folder = work_folder("split")
    system = charmm_water(gmx, folder, (2, 2, 2))
    system.mdp = changed(system.mdp, rvdw=1.6, rcoulomb=1.6, rvdw_switch=1.4)  # so that the box ends the choice, as above
    split = {**FMM, "fmm-lj": "split"}
    mdp = changed({**system.mdp, **COUPLED, **split}, nsteps=SPLIT_STEPS, nstxout=SPLIT_STEPS // 10, nstvout=SPLIT_STEPS // 10)
    gmx.grompp(folder, mdp, system, name="split")
    gmx.mdrun(folder, name="split")
    found = chosen(read_log(folder, "split"))
    checks.that(found is not None, f"fmm-lj = split: nstlist {found[0] if found else '?'} to {found[1] if found else '?'}")
    lists_are_right(checks, "fmm-lj = split", folder, system, split, "split")


main(test)
