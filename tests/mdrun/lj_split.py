#!/usr/bin/env python3
"""fmm-lj = split: Lennard-Jones of pairs of atoms up to a radius, and of groups at their centres beyond.

With rvdw as the radius, and its switch, the sum is that of all pairs of atoms, to rounding. With a smaller one forces and energies
differ by what a loop over all pairs says, and with one that grompp chooses by what grompp and mdrun say, and no more than is allowed.
"""
import collections
import itertools
import math
import os
import random
import re
import shutil

from harness import (CPU_KERNELS, FMM, PLAIN_MDP, TIP3P, Failure, System, alike, changed, charmm_topology, charmm_water, drift, environment, four_site_water,
                     main, make_frames, mean, need, read_log, read_trr, rms_difference, single_points, water, work_folder)

gmx = need("GMXFMM_GMX")

SPLIT = {**FMM, "fmm-lj": "split"}
ALLOWED = 4e-4 / 4  # of the RMS Coulomb force, for the default accuracy
PRESSURE = 0.5      # bar
ATOMS = 8 * 648     # of the water


def errors(text):
    """Relative force difference, pressure along x, y, z and its deviation, as md.log has them."""
    found = re.search(r"forces\s+(\S+)\s+\(\+-\s+\S+\)\s+of\s+the\s+RMS\s+Coulomb\s+force,\s+pressure\s+(\S+)\s+(\S+)\s+(\S+)\s+bar\s+\(\+-\s+(\S+)\)", text)
    if not found:
        raise Failure("no errors of the split are told")
    return float(found.group(1)), [float(found.group(k)) for k in (2, 3, 4)], float(found.group(5))


def correction(text):
    """What md.log says that the pressure is corrected by, along x, y, z."""
    found = re.search(r"pressure\s+is\s+corrected\s+by\s+(\S+)\s+(\S+)\s+(\S+)\s+bar", text)
    if not found:
        raise Failure("no correction of the pressure is told")
    return [float(found.group(k)) for k in (1, 2, 3)]


def same(checks, what, split, full, limit=3e-6):
    worst = max(rms_difference(s.force, f.force) / rms_difference(f.force, [0.0] * len(f.force)) for s, f in zip(split, full))
    checks.below(f"{what}: forces, RMS difference over RMS", worst, limit, "", "single precision, pairs added in another order")
    worst = max(abs(s.energy["Potential"] / f.energy["Potential"] - 1) for s, f in zip(split, full))
    checks.below(f"{what}: potential, relative difference", worst, 3e-6, "", "single precision")
    worst = max(abs(s.energy[t] - f.energy[t]) for s, f in zip(split, full) for t in ("Pressure", "Pres-XX", "Pres-XY", "Pres-ZZ"))
    checks.below(f"{what}: pressure tensor, difference", worst, 0.5, "bar", "rounding of sums that are 1e5 times larger")


# Where pair interactions are, as options of single_points.
CPU, GPU = {}, {"nb": "gpu", "more": ["-fmm", "gpu"]}
# With this as the radius, and the switch of the split, pairs of sites have nothing.
EQUAL = {"rvdw": "1.0", "rcoulomb": "1.0", "rvdw-switch": "0.8", "vdw-modifier": "Force-switch", "fmm-order": "8"}


def equal_radius(checks, what, folder, system, frames, kernels, where=CPU, **more):
    """Forces, potential and pressure with that radius. kernels: numbers of threads for each that is tried; more: settings of the .mdp."""
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
                checks.that("Lennard-Jones interactions are split" in read_log(folder, "split-0"), f"{what}, {name}: md.log tells of the split")
                same(checks, f"{what}, {name}, {number} thread(s)", split, full)


def chosen_radius(checks, what, folder, system, frames, groups):
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
        for axis, p, corrected in zip(("XX", "YY", "ZZ"), pressure, correction(read_log(folder, f"split-{number}"))):
            true = s.energy["Pres-" + axis] - f.energy["Pres-" + axis]
            checks.below(f"{what}, frame {number}: Pres-{axis}, difference from one list", abs(true), PRESSURE, "bar", "what is allowed")
            checks.below(f"{what}, frame {number}: the same against md.log", abs(true - p - corrected), 4 * deviation + 0.1, "bar",
                         "four standard deviations, and rounding of sums that are 1e5 times larger")
    checks.that(f"of {groups} groups" in read_log(folder, "split-0"), f"{what}: md.log tells of {groups} groups")


# Molecules by the atoms of their groups, heavy ones first, and their topologies: none, one, two, three and four hydrogens.
MOLECULES = {
    "AR": ["A"],
    "SOL": ["OHH"],
    "MEO": ["CMMM", "QP"],
    "CH4": ["DMMMM"],
}
MIXTURE = TIP3P.replace("[ moleculetype ]", """AR 18 39.948 0.0 A 0.34 0.996
CT 6 12.011 0.0 A 0.365 0.33
HC 1 1.008 0.0 A 0.24 0.11
OH 8 15.9994 0.0 A 0.315 0.80
HO 1 1.008 0.0 A 0.04 0.19
CM 6 12.011 0.0 A 0.37 0.46
[ moleculetype ]""", 1) + """[ moleculetype ]
AR 1
[ atoms ]
1 AR 1 AR AR 1 0.0 39.948
[ moleculetype ]
MEO 3
[ atoms ]
1 CT 1 MEO C 1 -0.04 12.011
2 HC 1 MEO H1 1 0.09 1.008
3 HC 1 MEO H2 1 0.09 1.008
4 HC 1 MEO H3 1 0.09 1.008
5 OH 1 MEO O 1 -0.65 15.9994
6 HO 1 MEO HO 1 0.42 1.008
[ bonds ]
1 2 1 0.111 2.7e5
1 3 1 0.111 2.7e5
1 4 1 0.111 2.7e5
1 5 1 0.142 3.0e5
5 6 1 0.096 4.5e5
[ angles ]
2 1 3 1 109.5 300
2 1 4 1 109.5 300
3 1 4 1 109.5 300
2 1 5 1 109.5 400
3 1 5 1 109.5 400
4 1 5 1 109.5 400
1 5 6 1 108.5 450
[ moleculetype ]
CH4 3
[ atoms ]
1 CM 1 CH4 C 1 -0.36 12.011
2 HC 1 CH4 H1 1 0.09 1.008
3 HC 1 CH4 H2 1 0.09 1.008
4 HC 1 CH4 H3 1 0.09 1.008
5 HC 1 CH4 H4 1 0.09 1.008
[ bonds ]
1 2 1 0.111 2.7e5
1 3 1 0.111 2.7e5
1 4 1 0.111 2.7e5
1 5 1 0.111 2.7e5
[ angles ]
2 1 3 1 109.5 300
2 1 4 1 109.5 300
2 1 5 1 109.5 300
3 1 4 1 109.5 300
3 1 5 1 109.5 300
4 1 5 1 109.5 300
"""
TIP4P = (TIP3P.replace("[ moleculetype ]", "MW 0 0.0 0.0 V 0.0 0.0\n[ moleculetype ]").replace("OW 1 -0.834", "OW 1 0.0").replace("0.417", "0.52")
         .replace("[ settles ]", "4 MW 1 SOL MW 1 -1.04 0.0\n[ virtual_sites3 ]\n4 1 2 3 1 0.128012065 0.128012065\n[ settles ]")
         .replace("1 2 3\n2 1 3\n3 1 2\n", "1 2 3 4\n2 1 3 4\n3 1 2 4\n4 1 2 3\n"))
# sigma and epsilon of the atoms above
LENNARD_JONES = {"O": (0.315057, 0.636386), "H": (0.0400013, 0.192464), "A": (0.34, 0.996), "C": (0.365, 0.33), "M": (0.24, 0.11), "Q": (0.315, 0.80),
                 "P": (0.04, 0.19), "D": (0.37, 0.46)}
TETRAHEDRON = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]


def mixture(folder):
    """These molecules at places of a lattice, minimised; some lie across the box's edges."""
    along, edge = 5, 2.15
    names = sorted((list(MOLECULES) * along ** 3)[:along ** 3])
    places = list(itertools.product(range(along), repeat=3))
    random.Random(7).shuffle(places)
    bond = [0.111 / math.sqrt(3) * v for v in (1, 1, 1)]
    shapes = {
        "AR": [(0, 0, 0)],
        "SOL": [(0, 0, 0), (0.0757, 0.0586, 0), (-0.0757, 0.0586, 0)],
        "CH4": [(0, 0, 0)] + [tuple(b * s for b, s in zip(bond, signs)) for signs in TETRAHEDRON],
        "MEO": [(0, 0, 0)] + [tuple(b * s for b, s in zip(bond, signs)) for signs in TETRAHEDRON[1:]] + [(0.082, 0.082, 0.082), (0.137, 0.137, 0.027)],
    }
    rows = []
    for name, place in zip(names, places):
        for at in shapes[name]:
            x = "".join(f"{(edge / along * p + v) % edge:8.3f}" for p, v in zip(place, at))
            rows.append(f"{1:5d}{name:<5s}{'X':>5s}{len(rows) + 1:5d}{x}")
    conf, top = os.path.join(folder, "lattice.gro"), os.path.join(folder, "topol.top")
    with open(conf, "w") as out:
        out.write("\n".join(["mixture", str(len(rows)), *rows, 3 * f" {edge}"]) + "\n")
    with open(top, "w") as out:
        numbers = collections.Counter(names)
        out.write(MIXTURE + "[ system ]\nmixture\n[ molecules ]\n" + "".join(f"{name} {numbers[name]}\n" for name in sorted(numbers)))
    system = System("mixture", conf, top, changed(PLAIN_MDP, rvdw=0.8, rcoulomb=0.8, rvdw_switch=0.65, vdw_modifier="Force-switch", dispcorr="no"))
    gmx.grompp(folder, changed(system.mdp, integrator="steep", nsteps=200, gen_vel="no"), system, name="minimise")
    gmx.mdrun(folder, "-c", "conf.gro", name="minimise")
    system.conf = os.path.join(folder, "conf.gro")
    return system, [MOLECULES[name] for name in names]


def switched(r, p, start, cutoff):
    """r^-p with a force that is switched to zero, and that force (reference manual, modified non-bonded interactions)."""
    if r >= cutoff:
        return 0, 0
    d, t = cutoff - start, max(0, r - start)
    a = -p * ((p + 4) * cutoff - (p + 1) * start) / (cutoff ** (p + 2) * d ** 2)
    b = p * ((p + 3) * cutoff - (p + 1) * start) / (cutoff ** (p + 2) * d ** 3)
    return (r ** -p - cutoff ** -p + a / 3 * (d ** 3 - t ** 3) + b / 4 * (d ** 4 - t ** 4),
            p * r ** (-p - 1) + a * t ** 2 + b * t ** 3)


def rest(r, c6, c12, full, start, radius):
    """The potential up to full = (start, cut-off) without that of pairs of atoms up to a radius, and its force."""
    e, f = 0, 0
    for p, c in ((6, -c6), (12, c12)):
        of_all, of_atoms = switched(r, p, *full), switched(r, p, start, radius)
        e, f = e + c * (of_all[0] - of_atoms[0]), f + c * (of_all[1] - of_atoms[1])
    return e, f


def what_changes(frame, molecules, full, radius):
    """Forces and energy with the split minus those of all pairs of atoms, by a loop over all pairs of a rectangular box."""
    edges = [frame.box[4 * d] for d in range(3)]
    pair = {}
    for i, j in itertools.product(LENNARD_JONES, repeat=2):
        sigma = (LENNARD_JONES[i][0] + LENNARD_JONES[j][0]) / 2
        epsilon = math.sqrt(LENNARD_JONES[i][1] * LENNARD_JONES[j][1])
        pair[i, j] = 4 * epsilon * sigma ** 6, 4 * epsilon * sigma ** 12
    count = collections.Counter("".join("".join(m) for m in molecules))
    strength = {i: sum(pair[i, j][0] * n for j, n in count.items()) for i in count}

    def nearest(a, b):
        return [p - q - edge * round((p - q) / edge) for p, q, edge in zip(a, b, edges)]

    # Each group: molecule, atoms, types, weights, site
    groups, atom, broken = [], 0, 0
    for number, molecule in enumerate(molecules):
        for types in molecule:
            atoms = list(range(atom, atom + len(types)))
            atom += len(types)
            x = [frame.x[3 * a:3 * a + 3] for a in atoms]
            weights = [strength[t] / sum(strength[u] for u in types) for t in types]
            site = [x[0][d] + sum(w * nearest(y, x[0])[d] for w, y in zip(weights, x)) for d in range(3)]
            broken += any(abs(y[d] - x[0][d]) > edges[d] / 2 for y in x for d in range(3))
            groups.append((number, atoms, types, weights, site))
    force, energy = [0.0] * len(frame.x), 0.0
    for g, h in itertools.combinations(groups, 2):
        away = nearest(g[4], h[4])
        r = math.sqrt(sum(v * v for v in away))
        if g[0] == h[0] or r > full[1] + 0.5:
            continue
        c6, c12 = (sum(pair[i, j][k] for i in g[2] for j in h[2]) for k in (0, 1))
        e, f = rest(r, c6, c12, full, radius - 0.2, radius)
        energy += e
        for d in range(3):
            for (_, atoms, _, weights, _), sign in ((g, 1), (h, -1)):
                for a, w in zip(atoms, weights):
                    force[3 * a + d] += sign * w * f * away[d] / r
        for (a, i), (b, j) in itertools.product(zip(g[1], g[2]), zip(h[1], h[2])):
            between = nearest(frame.x[3 * a:3 * a + 3], frame.x[3 * b:3 * b + 3])
            s = math.sqrt(sum(v * v for v in between))
            e, f = rest(s, *pair[i, j], full, radius - 0.2, radius)
            energy -= e
            for d in range(3):
                force[3 * a + d] -= f * between[d] / s
                force[3 * b + d] += f * between[d] / s
    return force, energy, broken


def loop_over_all_pairs(checks, where=CPU):
    """Groups with none to four hydrogens: forces and energy change as a loop over all pairs says."""
    folder = work_folder("mixture")
    system, molecules = mixture(folder)
    trajectory, times = make_frames(gmx, folder, system, steps=100, every=50)
    settings = {"fmm-accuracy": "1e-2", "fmm-order": "9", "fmm-grid": "4 4 4"}  # the same Coulomb forces, and a large error allowed
    for radius in (0.6, 0.7):
        full = single_points(gmx, folder, system, {**FMM, **settings}, trajectory, times[-1:], "full", **where)[0]
        split = single_points(gmx, folder, system, {**SPLIT, **settings, "fmm-lj-radius": str(radius)}, trajectory, times[-1:], "split", **where)[0]
        frame = next(f for f in read_trr(trajectory) if abs(f.time - times[-1]) < 1e-6)
        force, energy, broken = what_changes(frame, molecules, (0.65, 0.8), radius)
        what = f"mixture, radius {radius}"
        checks.that(broken > 0, f"{what}: {broken} groups lie across the box's edges")
        size = rms_difference(force, [0.0] * len(force))
        change = [s - f for s, f in zip(split.force, full.force)]
        checks.below(f"{what}: change of forces ({size:.2g} kJ/mol/nm), relative difference from a loop over all pairs",
                     rms_difference(change, force) / size, 0.05, "", "forces are in single precision")
        checks.below(f"{what}: change of the energy ({energy:.3g} kJ/mol), difference from a loop over all pairs",
                     abs(split.energy["Potential"] - full.energy["Potential"] - energy), 0.01 + 0.01 * abs(energy), "kJ/mol", "single precision")


def smaller_box(checks, folder, system):
    """In a box that was compressed the change of the pressure is that of the first one, by the square of the density."""
    told, volume = [], []
    gmx.grompp(folder, changed(system.mdp, nsteps=500, nstxout=250, nstvout=250, tcoupl="V-rescale", tc_grps="System", tau_t=0.1, ref_t=300,
                               pcoupl="Berendsen", tau_p=0.5, ref_p=2000, compressibility=4.5e-5, **SPLIT), system, name="pressed")
    gmx.mdrun(folder, name="pressed")
    frames = read_trr(os.path.join(folder, "pressed.trr"))
    for number, frame in enumerate(frames[1:]):  # the first has the structure of SPC water
        name = f"box-{number}"
        gmx.grompp(folder, changed(system.mdp, nsteps=0, **{**SPLIT, "fmm-lj-radius": "0.6"}), system, "-t", "pressed.trr", "-time", str(frame.time), name=name)
        gmx.mdrun(folder, name=name)
        told.append(mean(correction(read_log(folder, name))))
        volume.append(frame.volume())
    checks.that(volume[1] < 0.995 * volume[0], f"the box shrinks by {100 * (1 - volume[1] / volume[0]):.1f} %")
    checks.below("smaller box: correction of the pressure, difference from that of the first", abs(told[1] - told[0] * (volume[0] / volume[1]) ** 2),
                 PRESSURE, "bar", "what is allowed")


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
    """pbc = xy, without walls and between two, which have Lennard-Jones interactions of their own: as all pairs; and a radius that grompp chose."""
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
        checks.that(errors(read_log(folder, "two-0"))[0] > 0, f"{what}: md.log tells of the errors")


def virtual_sites(checks, folder):
    """Water whose charge is at a virtual site, and which has Lennard-Jones on hydrogens."""
    system = four_site_water(gmx, folder, lambda o, a, b: [o[d] + 0.128012065 * (a[d] + b[d] - 2 * o[d]) for d in range(3)],
                             lambda text: f"{TIP4P}[ system ]\nwater\n[ molecules ]\nSOL {8 * int(text.split()[-1])}\n")
    gmx("genconf", "-f", system.conf, "-nbox", "2", "2", "2", "-o", "eight.gro", folder=folder)
    system.conf = os.path.join(folder, "eight.gro")
    system.mdp = changed(system.mdp, rvdw=1.0, rcoulomb=1.0, rvdw_switch=0.8, vdw_modifier="Force-switch", dispcorr="no")
    frames = make_frames(gmx, folder, system, steps=10, every=10)
    equal_radius(checks, "four sites", folder, system, frames, {"chosen": (2,)})
    chosen_radius(checks, "four sites", folder, system, frames, 8 * 216)


def no_hydrogens(checks, folder):
    """Water without Lennard-Jones on hydrogen: a note, and nothing else is different."""
    system = water(gmx, folder, (1, 1, 1))
    results = []
    for name, settings in (("full", FMM), ("split", SPLIT)):
        output = gmx.grompp(folder, changed(system.mdp, nsteps=20, nstxout=20, **settings), system, name=name)
        gmx.mdrun(folder, "-reprod", name=name)
        results.append(read_trr(os.path.join(folder, name + ".trr"))[-1].x)
    checks.that("fmm-lj = split changes nothing here" in " ".join(output.split()), "no hydrogens: grompp says that there is no split")
    checks.that(results[0] == results[1], "no hydrogens: 20 steps are those of one list, bit for bit")


def continued(checks, folder, system):
    """A run in two parts is that in one; without a split grompp notes what one would save."""
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
    checks.that(noted is not None and 10 < int(noted.group(1)) < 80, "without a split grompp notes what one would save")


def conserved(checks, folder, system):
    """Energy is conserved, by lists that are pruned and whose atoms move."""
    drifts = []
    for name, settings in (("split-nve", SPLIT), ("full-nve", FMM)):
        mdp = changed(system.mdp, nsteps=1200, dt=0.001, nstlist=20, nstenergy=20, nstcalcenergy=20, **settings)
        gmx.grompp(folder, mdp, system, name=name)
        gmx.mdrun(folder, name=name)
        drifts.append(drift(gmx.energies(folder, ["Total Energy"], name=name)[10:], ATOMS, lag=0.2)[0])
    checks.below("drift at constant energy, difference from all pairs of atoms", abs(drifts[0] - drifts[1]), 5e-4, "kJ/mol/ps per atom",
                 "chance gives 2e-4 in so short a run")


# A cut-off at which forces jump, and lists have the most to lose.
SHIFT = {"rvdw": "1.0", "rcoulomb": "1.0", "vdw-modifier": "Potential-shift"}


def lists_are_long_enough(checks, folder, system, *options, nb="cpu", settings=None, steps=100):
    """While lists of atoms and sites grow old, the pressure is that of lists that miss nothing (as in list_buffer.py)."""
    base = changed(system.mdp, nsteps=99, nstlist=steps, tcoupl="V-rescale", tc_grps="System", tau_t=1, ref_t=300, nsttcouple=100,
                   nstcalcenergy=1, nstenergy=1, **SPLIT)
    base.update(settings or {})
    rows = {}
    for name, more, kept in (("chosen", {}, ["-nstlist", str(steps)]), ("complete", {"verlet-buffer-tolerance": "-1", "rlist": "1.4"}, [])):
        gmx.grompp(folder, {**base, **more}, system, name=name)
        gmx.mdrun(folder, *(alike(gmx) if nb == "gpu" else ["-reprod"]), *options, *kept, name=name, nb=nb)
        rows[name] = [row["Pressure"] for row in gmx.energies(folder, ["Pressure"], name=name)]
    error = mean(a - b for a, b in zip(rows["chosen"], rows["complete"]))
    checks.below(f"pressure{', potential shift' if settings else ''}, mean error of lists for {steps} steps", abs(error), PRESSURE / 3, "bar",
                 "a third of what is allowed")


def test(checks):
    folder = work_folder("water")
    system = charmm_water(gmx, folder, (2, 2, 2))
    frames = make_frames(gmx, folder, system, steps=20, every=10)
    equal_radius(checks, "water", folder, system, frames, {"chosen": (1, 5), "4xN": (2,), "2xNN": (2,), "plain C": (2,)})
    chosen_radius(checks, "water", folder, system, frames, 8 * 216)
    repeated(checks, folder)
    minimised(checks, folder, system)
    equal_radius(checks, "pbc = no", folder, system, (frames[0], frames[1][:1]), {"chosen": (2,)}, pbc="no", **{"comm-mode": "angular"})
    continued(checks, folder, system)
    conserved(checks, folder, system)
    lists_are_long_enough(checks, folder, system)
    lists_are_long_enough(checks, folder, system, settings=SHIFT)
    # Atoms need no buffer for so few steps
    lists_are_long_enough(checks, folder, system, settings=SHIFT, steps=20)
    smaller_box(checks, folder, system)
    loop_over_all_pairs(checks)

    slabs(checks)
    virtual_sites(checks, work_folder("four-sites"))
    no_hydrogens(checks, work_folder("no-hydrogens"))

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
