#!/usr/bin/env python3
"""mdrun on several ranks with domains: forces, energies and pressure of one rank, and runs of every kind.

Frames are those of a run of no steps on two ranks: domains put atoms into the box, which rounds their coordinates, and forces
with them by up to 9e-6.
"""
import os
import re

from harness import (CORES, COUPLING, FMM, System, changed, charmm_topology, charmm_water, continues_bit_for_bit, environment, main, make_frames, need, program, read_log, read_trr,
                     regression, rms_difference, single_points, water, without_swaps, work_folder)
from perturbed import DECOUPLING, dhdl

gmx = need("GMXFMM_GMX")
double = program("GMXFMM_GMX_D")

# Domains along one, two and three axes. Each is tried in water, of which all fit into the box.
DOMAINS = {2: "2 1 1", 3: "1 3 1", 4: "2 1 2", 6: "1 2 3", 8: "2 2 2"}

# What md.log says of the FMM on several ranks
DIVIDED = "FMM: divided over {} ranks"
WHOLE = "FMM: each of the {} ranks computes the interactions of all atoms and keeps the forces on its own. That is so with an octree and with pbc = xy."

PLAIN = {"dispcorr": "no", "pbc": "xy"}
WALLS = {**PLAIN, "nwall": "2", "wall-type": "9-3", "wall-atomtype": "opls_135 opls_135", "wall-density": "50 50", "ewald-geometry": "3dc"}
ONE_WALL = {**PLAIN, "nwall": "1", "wall-type": "9-3", "wall-atomtype": "opls_135", "wall-density": "50"}
HEIGHT = 2.8  # nm between walls, of which water has 1.86


def wrapped(program_, folder, system, frames):
    """The same frames with all atoms in the box: a trajectory, and the times in it."""
    trajectory, times = frames
    single_points(program_, folder, system, {**FMM, "nstxout": "1"}, trajectory, times[-1:], "wrapped", ranks=2)
    trajectory = os.path.join(folder, "wrapped-0.trr")
    return trajectory, [read_trr(trajectory)[0].time]


def rms(force):
    return rms_difference(force, [0.0] * len(force))


def compare(checks, what, one, several, atoms, forces, energies):
    worst = max(rms_difference(s.force, o.force) / rms(o.force) for s, o in zip(several, one))
    checks.below(f"{what}: forces, RMS difference over RMS", worst, forces, "", "pairs added in another order")
    worst = max(abs(s.coulomb() - o.coulomb()) / abs(o.coulomb()) for s, o in zip(several, one))
    checks.below(f"{what}: Coulomb energy, relative difference", worst, energies, "", "coordinates are the same")
    worst = max(abs(s.energy["Pressure"] - o.energy["Pressure"]) for s, o in zip(several, one))
    # 0.05 bar is a small part of what parameters of the FMM are allowed; in few atoms it is less than a bit of the virial
    checks.below(f"{what}: pressure", worst, max(0.05, 50.0 / atoms), "bar", "rounding of sums")


def same_as_one_rank(checks, program_, what, system, settings, rank_counts, forces=2e-6, energies=1e-6, how=DIVIDED):
    folder = work_folder(what.replace(" ", "-"))
    system.mdp = without_swaps(system.mdp)
    trajectory, times = wrapped(program_, folder, system, make_frames(program_, folder, system, 20, 10))
    one = single_points(program_, folder, system, settings, trajectory, times, "one")
    for ranks, cells in rank_counts.items():
        several = single_points(program_, folder, system, settings, trajectory, times, f"ranks{ranks}", ranks=ranks, more=["-dd", *cells.split()] if cells else [])
        log = read_log(folder, f"ranks{ranks}-0")
        checks.that(how.format(ranks) in " ".join(log.split()), f"{what}, {ranks} ranks: md.log says what each computes")
        compare(checks, f"{what}, {ranks} ranks", one, several, len(one[0].force) // 3, forces, energies)
        if ranks == 2:
            with environment(GMX_FMM_FULL_PAIRLIST="1"):
                full = single_points(program_, folder, system, settings, trajectory, times, "full", ranks=2)
            compare(checks, f"{what}, 2 ranks, all atoms on the list", full, several, len(one[0].force) // 3, forces, energies)


def lists_are_short(checks, folder, system):
    """Atoms without Van der Waals interactions are in no rank's list: as many pairs as on one rank, not many times more.

    Nor do domains send them, as molecules of water are never divided.
    """
    counts, sent = {}, {}
    for name, ranks, env in (("one", 1, {}), ("two", 2, {}), ("two, all atoms", 2, {"GMX_FMM_FULL_PAIRLIST": "1"})):
        with environment(**env):
            gmx.grompp(folder, changed(system.mdp, nsteps=50, **FMM), system, name="pairs")
            gmx.mdrun(folder, name="pairs", ranks=ranks)
        log = read_log(folder, "pairs")
        found = re.search(r"^ *NxN (?:LJ|RF|VdW).*? ([0-9.]+) +[0-9.]+ +[0-9.]+ *$", log, re.M)
        counts[name] = float(found.group(1)) if found else None
        found = re.search(r"atoms communicated per step for force: +2 x ([0-9.]+)", log)
        sent[name] = float(found.group(1)) if found else None
    if checks.that(None not in counts.values(), f"md.log counts pairs: {counts}"):
        checks.that(counts["two"] < 0.5 * counts["two, all atoms"], "a third of the atoms on the list of two ranks has less than half the pairs")
    if checks.that(sent["two"] is not None and sent["two, all atoms"] is not None, f"md.log counts atoms that are sent: {sent}"):
        checks.below("atoms that two ranks send, over those with all atoms on the list", sent["two"] / sent["two, all atoms"], 0.35, "",
                     "a third of them, and one of a few thousand more")


def runs(checks):
    folder = work_folder("runs")
    system = water(gmx, folder, (2, 1, 1), sodium=2)
    base = changed(system.mdp, rcoulomb=0.7, rvdw=0.7, rlist=0.74, verlet_buffer_tolerance=-1, nstlist=10, nstenergy=50, nstcalcenergy=50)
    atoms = 2 * 648 - 4
    # A thousand steps with a hundred partitions; without an atom the energy would be off by a thousand times the limit
    gmx.grompp(folder, changed(base, nsteps=1000, nstxout=1000, fmm_accuracy="1e-5", **FMM), system, name="nve")
    energy = {}
    # Waiting ranks do not give their core to others: more ranks than cores take a hundred times as long
    many = [2] + [4] * (CORES >= 4)
    for ranks in [1, *many]:
        gmx.mdrun(folder, name="nve", ranks=ranks)
        rows = gmx.energies(folder, ["Total Energy"], name="nve")
        energy[ranks] = [row["Total Energy"] for row in rows]
    for ranks in many:
        off = max(abs(e - energy[1][0]) for e in energy[ranks]) / atoms
        alone = max(abs(e - energy[1][0]) for e in energy[1]) / atoms
        checks.below(f"NVE, {ranks} ranks: total energy per atom stays", off, max(2 * alone, 5e-3), "kJ/mol", "twice what one rank has")
        log = read_log(folder, "nve")
        checks.that(re.search(r"^ Domain decomp\.", log, re.M) is not None, f"NVE, {ranks} ranks: domains are counted")
        checks.that(re.search(r"^ FMM exchange ", log, re.M) is not None, f"NVE, {ranks} ranks: exchanges of the FMM are counted")
        table = re.search(rf"^FMM: its parts on {ranks} ranks.*?Imbalance of work[^\n]*? ([0-9.]+) %", log, re.M | re.S)
        cells = re.search(r"^ Atoms in them +([0-9]+)", log, re.M)
        checks.that(table is not None and cells is not None and int(cells.group(1)) == round(len(read_trr(folder + "/nve.trr")[-1].x) / 3 / ranks),
                    f"NVE, {ranks} ranks: md.log has what each rank did of the FMM")

    thermostat = {"tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "0.5", "ref-t": "300", "ld-seed": "3"}
    for kind, coupling in COUPLING.items():
        settings = {**coupling, **thermostat, "pcoupltype": kind, "tau-p": "2", "nsteps": "100"}
        gmx.grompp(folder, {**base, **FMM, **settings}, system, name="npt")
        ends = {}
        for ranks in (1, 2):
            gmx.mdrun(folder, name="npt", ranks=ranks)
            ends[ranks] = gmx.energies(folder, ["Potential", "Volume"], name="npt")
        checks.below(f"{kind} coupling, 2 ranks: volume after 50 steps, relative difference",
                     abs(ends[2][1]["Volume"] / ends[1][1]["Volume"] - 1), 1e-5, "", "rounding, and chaos growing it")
    for what, settings in (("md-vv", {"integrator": "md-vv"}), ("steepest descent", {"integrator": "steep", "emtol": "10", "constraints": "none"}),
                           ("MTS", {"mts": "yes", "mts-levels": "2", "mts-level2-forces": "longrange-nonbonded", "mts-level2-factor": "2"}),
                           ("energy groups", {"energygrps": "Water Ion"}), ("octree", {"fmm-m2l": "rotation"})):
        gmx.grompp(folder, {**base, "nsteps": "20", "nstenergy": "10", "nstcalcenergy": "10", **FMM, **settings}, system, name="kind")
        ends = {}
        # not of near and far field each: which pairs are near is another matter where domains are made anew in each step
        terms = ["Potential"] if what != "energy groups" else ["Potential", "Coul-SR:Water-Water", "Coul-SR:Water-Ion", "Coul-SR:Ion-Ion"]
        for ranks in (1, 2):
            gmx.mdrun(folder, name="kind", ranks=ranks)
            ends[ranks] = gmx.energies(folder, terms, name="kind")
        worst = max(abs(a[t] - b[t]) / abs(ends[1][0]["Potential"]) for a, b in zip(*ends.values()) for t in terms)
        checks.below(f"{what}, 2 ranks: energies of 20 steps, over the potential", worst, 1e-4, "", "rounding, and chaos growing it")
    return folder, system, base


def rerun_and_restart(checks, folder, system, base):
    gmx.grompp(folder, changed(base, nsteps=50, nstxout=10, nstenergy=10, nstcalcenergy=10, **FMM), system, name="run")
    gmx.mdrun(folder, name="run", ranks=2)
    before = gmx.energies(folder, ["Coulomb (SR)", "Coul. recip."], name="run")
    gmx.mdrun(folder, "-rerun", "run.trr", "-o", "rerun.trr", "-e", "rerun.edr", "-g", "rerun.log", name="run", ranks=2)
    after = gmx.energies(folder, ["Coulomb (SR)", "Coul. recip."], name="rerun")
    worst = max(abs(sum(a.values()) - sum(b.values()) - a["Time"] + b["Time"]) / abs(a["Coulomb (SR)"]) for a, b in zip(before, after))
    checks.below("rerun on 2 ranks: Coulomb energies, relative difference", worst, 1e-6, "", "single precision")

    settings = changed(base, nsteps=100, nstxout=50, nstvout=50, nstfout=50, **FMM)
    gmx.grompp(folder, settings, system, name="whole")
    gmx.mdrun(folder, "-reprod", name="whole", ranks=2)
    whole = read_trr(folder + "/whole.trr")
    for ranks in (1, 2, 4):
        gmx.grompp(folder, settings, system, name="parts")
        gmx.mdrun(folder, "-reprod", "-nsteps", "50", name="parts", ranks=2)
        gmx.mdrun(folder, *(["-reprod"] if ranks == 2 else []), "-cpi", "parts.cpt", name="parts", ranks=ranks)
        parts = read_trr(folder + "/parts.trr")
        checks.that([f.step for f in parts] == [0, 50, 100], f"begun on 2 ranks, continued on {ranks}: frames at steps {[f.step for f in parts]}")
        if ranks == 2:
            checks.that(all(a.x == b.x and a.v == b.v and a.f == b.f for a, b in zip(whole, parts)),
                        "continued on 2 ranks with -reprod: positions, velocities, forces in every bit")
        else:
            checks.below(f"begun on 2 ranks, continued on {ranks}: velocities, RMS difference over RMS",
                         rms_difference(parts[-1].v, whole[-1].v) / rms(whole[-1].v), 1e-3, "", "rounding, and chaos growing it")


def perturbed(checks):
    """Decoupling of a molecule, without and with soft-core Coulomb interactions: the main rank's derivatives are those of all atoms."""
    folder = work_folder("perturbed")
    system = regression("freeenergy/coulandvdwsequential_coul")
    film = {"pbc": "xy", "dispcorr": "no", "pcoupl": "no"}
    for what, settings, how in (("decoupling", {}, DIVIDED), ("decoupling with soft-core Coulomb", {"sc-coul": "yes"}, DIVIDED), ("decoupling in a film", film, WHOLE)):
        mdp = changed(DECOUPLING, init_lambda_state=7, nsteps=40, nstdhdl=20, nstenergy=20, nstcalcenergy=20, rlist="0.95", verlet_buffer_tolerance="-1")
        gmx.grompp(folder, {**mdp, **settings, **FMM}, system, name="run")
        rows = {}
        for ranks in (1, 2):
            gmx.mdrun(folder, "-dhdl", "run.xvg", name="run", ranks=ranks)
            rows[ranks] = dhdl(folder, "run")[1]
        checks.that(how.format(2) in " ".join(read_log(folder, "run").split()), f"{what}, 2 ranks: md.log says what each computes")
        worst = max(abs(a - b) for one, two in zip(*rows.values()) for a, b in zip(one, two))
        checks.below(f"{what}, 2 ranks: derivatives and energies of other states, 40 steps", worst, 0.02, "kJ/mol", "single precision, and chaos growing it")


def slab(folder, settings, copies, sodium=2, box=None):
    """Water with these settings, in the middle of a box of some height; box: its last line in the .gro."""
    system = water(gmx, folder, copies, sodium)
    width = [f"{copies[d] * 1.86206:.5f}" for d in range(2)]
    gmx("editconf", "-f", system.conf, "-o", "slab.gro", "-box", *width, str(HEIGHT), "-c", folder=folder)
    conf = os.path.join(folder, "slab.gro")
    if box:
        with open(conf) as lines:
            lines = lines.read().splitlines()
        with open(conf, "w") as out:
            out.write("\n".join([*lines[:-1], box]) + "\n")
    return System("slab", conf, system.top, {**changed(system.mdp, rcoulomb=0.7, rvdw=0.7, **FMM), **settings})


def slabs(checks):
    """pbc = xy: between two walls domains along all axes; with one wall or none, atoms are anywhere along z."""
    folder = work_folder("slabs")
    same_as_one_rank(checks, gmx, "between walls", slab(folder, WALLS, (2, 2, 1)), {}, {2: "1 1 2", 3: "3 1 1", 4: "2 1 2", 8: "2 2 2"}, how=WHOLE)
    same_as_one_rank(checks, gmx, "film", slab(folder, PLAIN, (2, 2, 1)), {}, {2: "1 2 1", 3: "3 1 1", 4: "2 2 1", 6: ""}, how=WHOLE)
    same_as_one_rank(checks, gmx, "film on a wall, octree", slab(folder, ONE_WALL, (2, 2, 1)), {"fmm-m2l": "rotation"}, {2: "", 4: ""}, how=WHOLE)
    # Half of the width is a period of the water, so that the second vector may lean by it
    skewed = slab(folder, PLAIN, (2, 2, 1), box=f"{2 * 1.86206:.5f} {2 * 1.86206:.5f} {HEIGHT} 0 0 1.86206 0 0 0")
    same_as_one_rank(checks, gmx, "film in a skewed cell", skewed, {}, {2: "2 1 1", 4: "2 2 1"}, how=WHOLE)
    # A molecule far above the others, as one that has evaporated
    with open(skewed.conf) as lines:
        lines = lines.read().splitlines()
    lines[-4:-1] = [f"{line[:36]}{float(line[36:44]) + 30:8.3f}{line[44:]}" for line in lines[-4:-1]]
    lines[-1] = f"{2 * 1.86206:.5f} {2 * 1.86206:.5f} {HEIGHT}"
    with open(skewed.conf, "w") as out:
        out.write("\n".join(lines) + "\n")
    same_as_one_rank(checks, gmx, "film, a molecule 30 nm above it", skewed, {}, {2: "2 1 1", 4: "2 2 1"}, how=WHOLE)

    in_plane = {"pcoupl": "C-rescale", "pcoupltype": "semiisotropic", "tau-p": "1", "compressibility": "4.5e-5 0", "ref-p": "1 1", "nstpcouple": "10",
                "tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "0.5", "ref-t": "300", "ld-seed": "3"}
    for what, settings in (("between walls, coupled", {**WALLS, **in_plane}), ("film", PLAIN)):
        system = slab(folder, settings, (2, 2, 1))
        whole, _ = continues_bit_for_bit(checks, f"{what}, 2 ranks", gmx, folder, system, {}, ranks=2)
        gmx.mdrun(folder, name="whole")
        one = read_trr(folder + "/whole.trr")
        checks.below(f"{what}, 2 ranks: velocities after 100 steps, RMS difference over RMS", rms_difference(whole[-1].v, one[-1].v) / rms(one[-1].v), 1e-3, "",
                     "rounding, and chaos growing it")
        checks.below(f"{what}, 2 ranks: width after 100 steps, relative difference", abs(whole[-1].box[0] / one[-1].box[0] - 1), 1e-6, "", "single precision")
        gmx.mdrun(folder, "-dd", "2", "2", "1", "-dlb", "yes", name="whole", ranks=4)
        four = read_trr(folder + "/whole.trr")
        checks.below(f"{what}, 4 ranks, -dlb yes: velocities after 100 steps, RMS difference over RMS", rms_difference(four[-1].v, one[-1].v) / rms(one[-1].v), 1e-3,
                     "", "rounding, and chaos growing it")

    groups = slab(folder, {**WALLS, "energygrps": "Water Ion"}, (2, 2, 1))
    terms = ["Potential", "Coul-SR:Water-Water", "Coul-SR:Water-Ion", "LJ-SR:Water-wall0", "LJ-SR:Ion-wall1"]
    gmx.grompp(folder, changed(groups.mdp, nsteps=20, nstenergy=10, nstcalcenergy=10), groups, name="groups")
    ends = {}
    for ranks in (1, 2):
        gmx.mdrun(folder, *(["-dd", "1", "1", "2"] if ranks > 1 else []), name="groups", ranks=ranks)
        ends[ranks] = gmx.energies(folder, terms, name="groups")
    worst = max(abs(a[t] - b[t]) / abs(ends[1][0]["Potential"]) for a, b in zip(*ends.values()) for t in terms)
    checks.below("energy groups between walls, 2 ranks: energies of 20 steps, over the potential", worst, 1e-4, "", "rounding, and chaos growing it")


def boiling_film(checks):
    """A film that boils: the main rank measures again and chooses anew, others follow it, and a continued run has the same bits."""
    folder = work_folder("boiling")
    system = slab(folder, PLAIN, (1, 1, 1), 0)
    mdp = changed(system.mdp, gen_vel="yes", gen_temp=2000, nsteps=4000, dt=0.001, nstlist=10, verlet_buffer_tolerance=-1, rlist=0.85, nstxout=2000, nstvout=2000,
                  nstfout=2000, nstenergy=100, nstcalcenergy=10)
    gmx.grompp(folder, mdp, system, name="whole")
    gmx.mdrun(folder, "-reprod", name="whole", ranks=2)
    log = read_log(folder, "whole")
    anew = re.search(r"FMM: errors were measured again .* order and cells chosen anew (\d+) time", log)
    checks.that(anew is not None and int(anew.group(1)) > 0, "boiling film, 2 ranks: order and cells were chosen anew")
    gmx.grompp(folder, mdp, system, name="parts")
    gmx.mdrun(folder, "-reprod", "-nsteps", "2000", name="parts", ranks=2)
    gmx.mdrun(folder, "-reprod", "-cpi", "parts.cpt", name="parts", ranks=2)
    whole, parts = read_trr(folder + "/whole.trr")[-1], read_trr(folder + "/parts.trr")[-1]
    checks.that(whole.step == parts.step == 4000 and whole.x == parts.x and whole.v == parts.v and whole.f == parts.f,
                "boiling film, 2 ranks: a continued run has the same positions, velocities, forces in every bit")


SPLIT = {**FMM, "fmm-lj": "split"}


def write_groups(path):
    """Energy groups of 1728 waters: oxygens of a part of them, their hydrogens, and the rest."""
    last, all_atoms = 3 * 400, 3 * 1728
    groups = {"System": range(1, all_atoms + 1), "A": range(1, last, 3), "B": [a for a in range(1, last + 1) if a % 3 != 1], "C": range(last + 1, all_atoms + 1)}
    with open(path, "w") as index:
        for name, atoms in groups.items():
            index.write(f"[ {name} ]\n" + "\n".join(map(str, atoms)) + "\n")


def energies_of_groups(checks, folder, system):
    """Lennard-Jones energies between energy groups, with the split: each rank has a part of them."""
    write_groups(folder + "/groups.ndx")
    groups = System("groups", system.conf, system.top, changed(system.mdp, nsteps=20, nstenergy=10, nstcalcenergy=10, energygrps="A B C", **SPLIT),
                    folder + "/groups.ndx")
    gmx.grompp(folder, groups.mdp, groups, name="groups")
    terms, ends = [f"LJ-SR:{pair}" for pair in ("A-A", "A-B", "A-C", "B-B", "B-C", "C-C")], {}
    for ranks in (1, 2, 4):
        gmx.mdrun(folder, name="groups", ranks=ranks)
        ends[ranks] = gmx.energies(folder, terms, name="groups")
    for ranks in (2, 4):
        worst = max(abs(a[t] - b[t]) / abs(ends[1][0]["LJ-SR:C-C"]) for a, b in zip(ends[1], ends[ranks]) for t in terms)
        checks.below(f"split, energy groups, {ranks} ranks: energies of 20 steps, over the largest", worst, 1e-4, "", "rounding, and chaos growing it")


def split(checks):
    """Lennard-Jones of atoms by domains, and of groups at their centres, some of which have atoms in two domains."""
    folder = work_folder("charmm-water")
    system = charmm_water(gmx, folder, (2, 2, 2))
    same_as_one_rank(checks, gmx, "split", system, SPLIT, DOMAINS)
    # As long as rvdw
    same_as_one_rank(checks, gmx, "split, a radius of 1 nm", system, {**SPLIT, "fmm-lj-radius": "1.0"}, {2: "1 2 1", 4: "1 2 2"})
    energies_of_groups(checks, folder, system)
    # Domains without atoms
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    edge = float(lines[-1].split()[0])
    lines[-1] = f"{2.5 * edge:.5f} {edge:.5f} {edge:.5f}"
    with open(folder + "/empty.gro", "w") as out:
        out.write("\n".join(lines) + "\n")
    same_as_one_rank(checks, gmx, "split, an empty part", System("empty", folder + "/empty.gro", system.top, system.mdp),
                     {**SPLIT, "fmm-lj-radius": "0.7", "fmm-accuracy": "1e-3"}, {4: "4 1 1"})
    system.mdp = changed(system.mdp, **SPLIT)
    whole, mdp = continues_bit_for_bit(checks, "split, 2 ranks", gmx, folder, system, {"rlist": "1.1"}, ranks=2)
    gmx.mdrun(folder, name="whole")
    one = read_trr(folder + "/whole.trr")
    checks.below("split, 2 ranks: velocities after 100 steps, RMS difference over RMS", rms_difference(whole[-1].v, one[-1].v) / rms(one[-1].v), 1e-3, "",
                 "rounding, and chaos growing it")
    # A thousand steps with fifty partitions: atoms of each kind move from domain to domain
    gmx.grompp(folder, changed(system.mdp, nsteps=1000, dt=0.001, nstlist=20, nstenergy=50, nstcalcenergy=50, verlet_buffer_tolerance=-1, rlist=1.1, fmm_order=14),
               system, name="nve")
    energy = {}
    for ranks in (1, 2):
        gmx.mdrun(folder, name="nve", ranks=ranks)
        energy[ranks] = [row["Total Energy"] for row in gmx.energies(folder, ["Total Energy"], name="nve")]
    checks.that("Lennard-Jones interactions are split" in read_log(folder, "nve"), "split, NVE: md.log tells of it")
    off, alone = (max(abs(e - energy[1][0]) for e in energy[ranks]) / (8 * 648) for ranks in (2, 1))
    checks.below("split, NVE, 2 ranks: total energy per atom stays", off, max(2 * alone, 5e-3), "kJ/mol", "twice what one rank has")

    folder = work_folder("charmm-dodecahedron")
    system = charmm_water(gmx, folder)
    gmx("editconf", "-f", system.conf, "-o", "box.gro", "-bt", "dodecahedron", "-box", "3.2", folder=folder)
    gmx("solvate", "-cp", "box.gro", "-cs", "spc216.gro", "-o", "conf.gro", folder=folder)
    with open(system.conf) as conf:
        charmm_topology(system, int(conf.read().splitlines()[1]) // 3)
    # water is put around the cube so close that the pressure is 25,000 bar, of which rounding is more than the limit
    gmx.grompp(folder, changed(system.mdp, integrator="steep", nsteps=200, emtol=500, nstxout_compressed=0), system, name="relaxed")
    gmx.mdrun(folder, name="relaxed")
    system.conf = os.path.join(folder, "relaxed.gro")
    same_as_one_rank(checks, gmx, "split in a dodecahedron", system, SPLIT, {2: "", 4: ""})


def errors(checks):
    """What is wrong with coordinates is found on all ranks, and said with numbers of the whole system."""
    folder = work_folder("errors")
    system = water(gmx, folder, sodium=2)
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    lines[3] = lines[3][:20] + lines[2][20:]
    with open(system.conf, "w") as out:
        out.write("\n".join(lines) + "\n")
    for when, settings in (("at the start", {}), ("in the first step", {"fmm-measure": "no"})):
        gmx.grompp(folder, changed({**system.mdp, **FMM, **settings}, rcoulomb=0.7, rvdw=0.7, nsteps=10), system, name="bad")
        status, output = gmx.run(["mdrun", "-s", "bad.tpr", "-deffnm", "bad", "-nb", "cpu", "-ntmpi", "2", "-ntomp", "1"], folder)
        checks.that(status != 0 and re.search(r"atom 1 .* and atom 2 .* stand at one\s+place", output) is not None,
                    f"two atoms at one place, 2 ranks: found {when}, with their numbers")


def sparse(checks):
    """Water in a quarter of the box: domains without atoms, and domains that follow the load."""
    folder = work_folder("sparse")
    system = water(gmx, folder)
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    edge = float(lines[-1].split()[0])
    lines[-1] = f"{4 * edge:.5f} {edge:.5f} {edge:.5f}"
    with open(system.conf, "w") as out:
        out.write("\n".join(lines) + "\n")
    settings = changed(system.mdp, rcoulomb=0.7, rvdw=0.7, nsteps=100, nstvout=100, dispcorr="no", **FMM)
    gmx.grompp(folder, settings, system, name="quarter")
    v = {}
    for ranks, more in ((1, []), (4, ["-dd", "4", "1", "1"]), (2, ["-dlb", "yes"])):
        gmx.mdrun(folder, *more, name="quarter", ranks=ranks)
        v[ranks] = read_trr(folder + "/quarter.trr")[-1].v
    for ranks, what in ((4, "domains without atoms"), (2, "-dlb yes")):
        checks.below(f"water in a quarter of the box, {ranks} ranks, {what}: velocities after 100 steps, RMS difference over RMS",
                     rms_difference(v[ranks], v[1]) / rms(v[1]), 1e-3, "", "rounding, and chaos growing it")


def test(checks):
    folder = work_folder()
    system = water(gmx, folder, (2, 2, 2), sodium=2)
    system.mdp = changed(system.mdp, rcoulomb=0.8, rvdw=0.8)
    same_as_one_rank(checks, gmx, "water", system, FMM, DOMAINS)
    lists_are_short(checks, folder, system)
    for name in ("octahedron", "nbnxn_vsite", "swap_z"):
        same_as_one_rank(checks, gmx, name, regression("complex/" + name), FMM, {2: "", 4: ""})
    if double:
        same_as_one_rank(checks, double, "water, double", water(double, folder, (2, 2, 1)), FMM, {2: "", 4: ""}, 1e-11, 1e-11)
    rerun_and_restart(checks, *runs(checks))
    perturbed(checks)
    sparse(checks)
    slabs(checks)
    boiling_film(checks)
    split(checks)
    errors(checks)


main(test)
