#!/usr/bin/env python3
"""Without periodicity (pbc = no) FMM is the plain sum over all pairs, wherever the molecules are and whatever the box.

Reference: Coulomb by a direct sum written here, over charges, exclusions and 1-4 pairs as they are in the .tpr; all other forces
by an unpatched gmx_d, in a periodic box much larger than the molecules.
"""
import math
import os
import re

from harness import (FMM, KT, NO_COULOMB, System, changed, complaint, continues_bit_for_bit, droplet_of, main, mean, need, read_log, read_trr, regression, rms_difference, slope,
                     version, water, work_folder, write_mdp)

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), need("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")

COULOMB = 138.935457644  # kJ/mol nm/e^2, GROMACS's value
OPEN = {**FMM, "pbc": "no", "dispcorr": "no", "comm-mode": "angular"}
FINE = {**OPEN, "fmm-accuracy": "1e-6"}
DIRECT = {**OPEN, "fmm-grid": "1 1 1", "fmm-order": "12"}  # a single cell: all pairs are near; few are not where ions fly off
WIDE = 60.0  # nm


# ---------------------------------------------------------------------------------------------------------------- systems

def moved(folder, name, system, shift, box):
    """The system with its .gro moved by the same shift along x, y, z, and with another box line."""
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    count = int(lines[1])
    atoms = [line[:20] + "".join(f"{float(line[20 + 8 * d:28 + 8 * d]) + shift:8.3f}" for d in range(3)) for line in lines[2:2 + count]]
    conf = os.path.join(folder, name + ".gro")
    with open(conf, "w") as out:
        out.write("\n".join([name, str(count), *atoms, box]) + "\n")
    return System(name, conf, system.top, system.mdp)


def droplet(folder, radius, sodium=3):
    """A sphere of water with sodium ions, so with a net charge, around the origin; the box is 0 0 0."""
    block = moved(folder, "block", water(gmx, folder, (2, 2, 2), sodium), -1.862, "0 0 0")
    with open(block.conf) as lines:
        lines = lines.read().splitlines()[2:-1]
    inside = lines[:sodium]
    for at in range(sodium, len(lines), 3):
        x = [float(lines[at][20 + 8 * d:28 + 8 * d]) for d in range(3)]
        if math.hypot(*x) < radius:
            inside += lines[at:at + 3]
    # The ions are at a corner of the block; their places relative to each other are kept.
    for i in range(sodium):
        inside[i] = inside[i][:20] + f"{-radius + 0.5 * i:8.3f}{radius:8.3f}{0.1 * i:8.3f}"
    return droplet_of(folder, block, inside, sodium)


def protein(folder):
    """A protein of 1007 atoms in the gas phase, from GROMACS's regression tests."""
    system = regression("complex/aminoacids")
    mdp = changed(droplet(folder, 0.5, 0).mdp, rvdw=1.2, rcoulomb=1.2)
    return moved(folder, "protein", System("protein", system.conf, system.top, mdp), -5, "0 0 0")


# -------------------------------------------------------------------------------------------------------------- reference

def topology(program, folder, name):
    """Of a .tpr: the charges, for each atom the set of excluded ones, the 1-4 pairs, and their factor."""
    text = program("dump", "-s", name + ".tpr", folder=folder)
    fudge = float(re.search(r"fudgeQQ\s*= (\S+)", text).group(1))
    molecules = []
    for part in re.split(r"\n   moltype \(\d+\):\n", text)[1:]:
        charges = [float(q) for q in re.findall(r" q=\s*([-+.e\d]+)", part)]
        lists = re.findall(r"excls\[\d+\]\[num=\d+\]=\{([^}]*)\}", part)
        pairs = [(int(i), int(j)) for i, j in re.findall(r"\(LJ14\)\s+(\d+)\s+(\d+)", part)]
        molecules.append((charges, [set(map(int, row.replace(",", " ").split())) for row in lists], pairs))
    q, excluded, pairs14 = [], [], []
    for kind, count in re.findall(r"moltype\s+= (\d+) .*\n\s*#molecules\s+= (\d+)", text):
        charges, lists, pairs = molecules[int(kind)]
        for _ in range(int(count)):
            first = len(q)
            q += charges
            excluded += [{first + j for j in row} for row in lists]
            pairs14 += [(first + i, first + j) for i, j in pairs]
    return q, excluded, pairs14, fudge


def direct_sum(x, q, excluded, pairs14, fudge):
    """Energy of all pairs that are not excluded, of the 1-4 pairs, and the forces of both (flat)."""
    n, energy, force = len(q), 0.0, [0.0] * len(x)
    px, py, pz = x[0::3], x[1::3], x[2::3]

    def pair(i, j, factor):
        dx, dy, dz = px[i] - px[j], py[i] - py[j], pz[i] - pz[j]
        r2 = dx * dx + dy * dy + dz * dz
        e = factor * q[i] * q[j] / math.sqrt(r2)
        for k, d in enumerate((dx, dy, dz)):
            force[3 * i + k] += e / r2 * d
            force[3 * j + k] -= e / r2 * d
        return e
    for i in range(n):
        left_out = excluded[i]
        for j in range(i + 1, n):
            if j not in left_out:
                energy += pair(i, j, COULOMB)
    return energy, sum(pair(i, j, COULOMB * fudge) for i, j in pairs14), force


class Point:
    """Energies, positions and forces of the coordinates of a system."""

    def __init__(self, program, folder, system, settings, name, env=None):
        mdp = changed(system.mdp, nsteps=0, nstxout=1, nstfout=1, nstenergy=1, nstcalcenergy=1, gen_vel="no", continuation="yes")
        program.grompp(folder, {**mdp, **settings}, system, name=name)
        program.mdrun(folder, name=name, env=env)
        terms = ["LJ (SR)", "Coulomb (SR)", "Potential", "Pressure"]
        self.energy = program.energies(folder, terms + (["Coul. recip."] if settings.get("coulombtype") == "FMM" else []), name=name)[0]
        self.coulomb = self.energy["Coulomb (SR)"] + self.energy.get("Coul. recip.", 0)
        frame = read_trr(os.path.join(folder, name + ".trr"))[0]
        self.x, self.force = frame.x, frame.f


def difference(a, b):
    return [p - q for p, q in zip(a, b)]


def relative(a, b):
    return rms_difference(a, b) / rms_difference(b, [0.0] * len(b))


# ------------------------------------------------------------------------------------------------------------------ tests

def forces_and_energies(checks, folder, system):
    atoms = len(read_lines(system.conf)) - 3
    wide = moved(folder, "wide", system, WIDE / 2, f"{WIDE} {WIDE} {WIDE}")
    rest = Point(stock_d, folder, wide, NO_COULOMB, "rest")
    exact = None
    octrees = [(f"{method}, fmm-accuracy 1e-6", {**FINE, "fmm-m2l": method}, 1e-6, 1e-5) for method in ("rotation", "symmetric")]
    for what, settings, accuracy, energy in (("default accuracy", OPEN, 4e-4, 1e-3), ("fmm-accuracy 1e-6", FINE, 1e-6, 1e-5), *octrees):
        point = Point(gmx_d, folder, system, settings, "double")
        if exact is None:
            exact = direct_sum(point.x, *topology(gmx_d, folder, "double"))
        reference = [c + r for c, r in zip(exact[2], rest.force)]
        error = rms_difference(point.force, reference) / rms_difference(exact[2], [0.0] * len(reference))
        checks.below(f"{system.name}, {what}, double precision: error of all forces over RMS Coulomb force", error, accuracy, "", "the accuracy asked")
        checks.below(f"{system.name}, {what}, double precision: Coulomb energy {point.coulomb:.3f}, error per atom",
                     abs(point.coulomb - exact[0]) / atoms, energy, "kJ/mol", "0.04 % of kT" if energy == 1e-3 else "accuracy")
    # The pair search: a lost or doubled pair would be much more.
    checks.below(f"{system.name}: LJ (SR) {point.energy['LJ (SR)']:.3f}, relative difference to a periodic box of {WIDE:.0f} nm",
                 abs(point.energy["LJ (SR)"] / rest.energy["LJ (SR)"] - 1), 1e-8, "", "rounding of coordinates 30 nm from the origin")
    checks.that(point.energy["Pressure"] == 0, f"{system.name}: pressure {point.energy['Pressure']}, as there is no volume")
    mixed(checks, folder, system, "around the origin")
    mixed(checks, folder, moved(folder, "far", system, -50, "0 0 0"), "50 nm to the left of the origin")
    return exact


def mixed(checks, folder, system, where):
    """Mixed precision, whose forces between bonded atoms change by more than the accuracy when rounded coordinates move."""
    point = Point(gmx, folder, system, OPEN, "mixed")
    nothing = Point(gmx, folder, system, {**OPEN, "epsilon-r": "1e10"}, "nothing")
    energy, _, force = direct_sum(point.x, *topology(gmx, folder, "mixed"))
    checks.below(f"{system.name}, {where}, mixed precision: Coulomb force error", relative(difference(point.force, nothing.force), force), 4e-4, "",
                 "the accuracy asked")
    checks.below(f"{system.name}, {where}, mixed precision: Coulomb energy error per atom", abs(point.coulomb - energy) / (len(force) / 3), 1e-3,
                 "kJ/mol", "0.04 % of kT")


def read_lines(path):
    with open(path) as lines:
        return lines.read().splitlines()


def place_and_box(checks, folder, system):
    here = Point(gmx_d, folder, system, FINE, "here")
    there = Point(gmx_d, folder, moved(folder, "there", system, -50, "0 0 0"), FINE, "there")
    checks.below("droplet moved by (-50, -50, -50) nm: relative change of the potential energy",
                 abs(there.energy["Potential"] / here.energy["Potential"] - 1), 1e-10, "", "rounding of the coordinates")
    checks.below("droplet moved by (-50, -50, -50) nm: relative change of the forces", relative(there.force, here.force), 1e-9, "",
                 "rounding of the coordinates")
    for box in ("1 1 1", "500 500 500", "3 3 3 0 0 1 0 1 1"):
        other = Point(gmx_d, folder, moved(folder, "boxed", system, 0, box), FINE, "boxed")
        checks.that(other.force == here.force and other.energy == here.energy, f"droplet with the box {box}: forces and energies equal in every bit")
    # Forces are left out: the emulation's are wrong in double precision, without our patches and with PME, too.
    emulated = Point(gmx_d, folder, system, FINE, "emulated", env={"GMX_EMULATE_GPU": "1"})
    worst = max(abs(emulated.energy[term] / here.energy[term] - 1) for term in ("LJ (SR)", "Coulomb (SR)", "Potential"))
    checks.below("pair list as for a GPU, emulated: worst relative difference of an energy", worst, 1e-10, "", "rounding, in another order")


def small_systems(checks, folder):
    """What a grid of the pair search could stumble over: few atoms, flat molecules, molecules far apart."""
    def made(name, ions, molecules):
        rows = [("NA", "NA", x) for x in ions]
        for x in molecules:
            rows += [("SOL", a, [x[d] + r[d] for d in range(3)]) for a, r in (("OW", (0, 0, 0)), ("HW1", (0.1, 0, 0)), ("HW2", (-0.033, 0.094, 0)))]
        conf, top = os.path.join(folder, name + ".gro"), os.path.join(folder, name + ".top")
        with open(conf, "w") as out:
            out.write("\n".join([name, str(len(rows)), *(f"{1:5d}{r:<5s}{a:>5s}{1:5d}" + "".join(f"{v:10.4f}" for v in x) for r, a, x in rows),
                                 "0 0 0"]) + "\n")
        with open(top, "w") as out:
            present = [f"{kind} {count}" for kind, count in (("NA", len(ions)), ("SOL", len(molecules))) if count]
            out.write(re.sub("NA 1\nSOL .*", "\n".join(present), water_top))
        return System(name, conf, top, mdp)
    base = water(gmx, folder, (1, 1, 1), 1)
    with open(base.top) as text:
        water_top = text.read()
    mdp = changed(base.mdp, rvdw=0.9, rcoulomb=0.9, dispcorr="no")
    for name, ions, molecules in (("one-ion", [(-3, -3, -3)], []), ("one-molecule", [], [(-1, 2, 0)]), ("two-ions", [(0, 0, 0), (-0.5, 0, 0)], []),
                                  ("flat", [], [(0.4 * i, 0.4 * j, 1) for i in range(-4, 5) for j in range(-4, 5)]),
                                  ("far-apart", [(-900, 0, 0), (900, 0, 0)], [(0, 0.4 * i, 0) for i in range(30)])):
        system = made(name, ions, molecules)
        settings = {**FINE, "comm-mode": "none"}  # otherwise there may be no degree of freedom left
        point = Point(gmx_d, folder, system, settings, name)
        energy, _, force = direct_sum(point.x, *topology(gmx_d, folder, name))
        checks.below(f"{name}: Coulomb energy {point.coulomb:.6f} kJ/mol, error", abs(point.coulomb - energy), 1e-5 * len(force), "kJ/mol", "the accuracy")
        settings = {**OPEN, "tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "0.5", "ref-t": "300", "nsteps": "20", "comm-mode": "none"}
        gmx.grompp(folder, {**mdp, **settings}, system, name=name)
        gmx.mdrun(folder, name=name)
        checks.that("Finished mdrun" in read_log(folder, name), f"{name}: 20 steps in mixed precision")


def conserves_energy(checks, folder, system):
    """Rigid water, with ions that fly off, so that the grid grows; against a run where FMM has one cell and so is the direct sum."""
    base = changed(system.mdp, dt=0.001, verlet_buffer_tolerance=-1, rlist=1.0, nstlist=10, vdw_modifier="Potential-switch",
                   rvdw_switch=0.75, nstenergy=20, nstcalcenergy=20)
    atoms = len(read_lines(system.conf)) - 3
    kinetic = atoms / 3 * 6 / 2 * KT
    drift, walk = {}, {}
    tree = {**OPEN, "fmm-m2l": "rotation"}
    for name, steps, settings in (("fmm", 4000, OPEN), ("octree", 8000, tree), ("direct", 4000, DIRECT),
                                  ("fine", 4000, {**OPEN, "fmm-accuracy": "1e-5"}), ("fine-octree", 4000, {**tree, "fmm-accuracy": "1e-5"})):
        gmx_d.grompp(folder, {**base, **settings, "nsteps": str(steps)}, system, name=name)
        gmx_d.mdrun(folder, name=name)
        rows = [r for r in gmx_d.energies(folder, ["Total Energy"], name=name) if r["Time"] >= 0.5]
        e, lag = [r["Total Energy"] for r in rows], 50  # rows of 0.02 ps: 1 ps
        drift[name] = slope([r["Time"] for r in rows], e) / atoms
        walk[name] = math.sqrt(mean((b - a) ** 2 for a, b in zip(e, e[lag:])))
    chance = 4e-5  # kJ/mol/ps: standard deviation, six runs each with other velocities: 2.7e-5, and 3.8e-5 by the octree
    for name in ("fine", "fine-octree"):
        checks.below(f"{name}, accuracy 1e-5: NVE drift per atom {drift[name]:.2e}, by the direct sum {drift['direct']:.2e}; magnitude",
                     abs(drift[name]), abs(drift["direct"]) + 3 * math.sqrt(2) * chance, "kJ/mol/ps",
                     "the direct sum's plus what chance does in 299 of 300 runs")
    for name in ("fmm", "octree"):
        # Each assignment of cells shifts the energy by a little, which adds up as a random walk (nve_drift.py).
        checks.below(f"{name}: wander of the energy in 1 ps {walk[name]:.2f} kJ/mol ({walk['direct']:.2f} by the direct sum); as a random walk, in "
                     "1 ns, over the kinetic energy", walk[name] * math.sqrt(1000) / kinetic, 0.02, "", "2 % in the temperature")


def continues(checks, folder, system):
    """Restart, rerun, leap-frog and velocity Verlet."""
    coupled = {"tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "0.5", "ref-t": "300", "ld-seed": "3"}
    for name, more in (("octree", {**coupled, "fmm-m2l": "rotation"}), ("nve", {}), ("nvt", coupled),
                       ("velocity Verlet", {**coupled, "integrator": "md-vv"})):
        whole, base = continues_bit_for_bit(checks, name, gmx, folder, system, {**OPEN, **more})
    gmx.grompp(folder, {**base, **coupled, "integrator": "md", "nsteps": "20", "nstxout": "10", "nstenergy": "10"}, system, name="run")
    gmx.mdrun(folder, name="run")
    terms = ["Coulomb (SR)", "Coul. recip.", "LJ (SR)"]
    run = gmx.energies(folder, terms, name="run")
    gmx("mdrun", "-s", "run.tpr", "-rerun", "run.trr", "-deffnm", "again", "-ntmpi", "1", "-nb", "cpu", folder=folder)
    again = gmx.energies(folder, terms, name="again")
    worst = max(abs(sum(a[t] - b[t] for t in terms)) / (len(whole[0].x) / 3) for a, b in zip(run, again))
    checks.below("rerun: worst difference of the non-bonded energy per atom", worst, 1e-3, "kJ/mol", "cells of another pair search, and the accuracy")


def pair_list_buffer(checks, folder, system):
    """From verlet-buffer-tolerance, which needs a density: that of the molecules, whatever the box line says."""
    def output(system, settings, tolerance, thermostat):
        mdp = changed(system.mdp, verlet_buffer_tolerance=tolerance, nstlist=25, tcoupl=thermostat, tc_grps="System", tau_t=0.5, ref_t=300,
                      gen_vel="yes", gen_temp=300, dt=0.002, nsteps=500_000)
        return gmx.grompp(folder, {**mdp, **settings}, system)

    def rlist(system, settings, tolerance=5e-4, thermostat="V-rescale"):
        return float(re.search(r"rlist for 1x1 atom pair-list as (\S+) nm", output(system, settings, tolerance, thermostat)).group(1))
    bulk = water(gmx, folder, (2, 2, 2))
    bulk.mdp = system.mdp
    in_bulk, alone = rlist(bulk, FMM), [rlist(moved(folder, "boxed", system, 0, box), OPEN) for box in ("0 0 0", "0.5 0.5 0.5", "500 500 500")]
    checks.that(len(set(alone)) == 1, f"rlist of a droplet {alone[0]} nm, with any box")
    checks.below(f"rlist of bulk water {in_bulk} nm, of a droplet {alone[0]} nm; difference of the buffers over the larger",
                 1 - (min(in_bulk, alone[0]) - 0.9) / (max(in_bulk, alone[0]) - 0.9), 0.25, "", "nearly the same density, with a surface")
    # 2026.3 has a bound on the error of the pressure as well, and needs nothing of its own at constant energy.
    if version(gmx) == "2022.5":
        # (at 5e-3, the default, the bound on the pressure is the one that counts)
        free, coupled = (rlist(bulk, FMM, 5e-4, thermostat) for thermostat in ("no", "V-rescale"))
        tenth = rlist(bulk, FMM, 5e-5)
        checks.that(free == tenth and free > coupled,
                    f"rlist of bulk water at constant energy {free} nm, that of a tenth of the tolerance {tenth} nm; {coupled} nm with a thermostat")
        # 5e-4 kJ/mol/ps over 1 ns are 10 % of the 2 kT = 4.99 kJ/mol that grompp counts for an atom
        note = " ".join(output(bulk, FMM, 5e-3, "no").split())
        checks.that("final drift of 10%" in note and "set verlet-buffer-tolerance to 5.0e-04" in note,
                    "grompp's note about the drift at constant energy speaks of that tenth, and of the tolerance that is to be given")


def minimises(checks, folder, system):
    base = changed(system.mdp, integrator="steep", nsteps=50, emstep=0.01, emtol=10, define="-DFLEXIBLE", constraints="none", nstenergy=1,
                   gen_vel="no")
    found = {}
    for name, settings in (("fmm", FINE), ("direct", DIRECT)):
        gmx_d.grompp(folder, {**base, **settings}, system, name=name)
        gmx_d.mdrun(folder, name=name)
        found[name] = gmx_d.energies(folder, ["Potential"], name=name)[-1]["Potential"]
    checks.below(f"steepest descent: {found['fmm']:.3f} kJ/mol, by the direct sum {found['direct']:.3f}; relative difference",
                 abs(found["fmm"] / found["direct"] - 1), 1e-5, "", "ten times the accuracy")


REFUSED = [
    ({"coulombtype": "PME"}, r"With Verlet lists only full pbc"),
    ({"coulombtype": "Cut-off"}, r"With Verlet lists only full pbc"),
    ({"coulombtype": "Reaction-Field", "epsilon-rf": "0"}, r"With Verlet lists only full pbc"),
    ({"pcoupl": "C-rescale", "tau-p": "2", "compressibility": "4.5e-5", "ref-p": "1"}, r"FMM with pbc = no.*volume"),
    ({"fmm-m2l": "rotation", "fmm-grid": "4 4 4"}, r"FMM with pbc = no.*fmm-tree-depth"),
    ({"dispcorr": "EnerPres"}, r"dispersion correction with pbc=no"),
    ({"fmm-boundary": "vacuum"}, r"fmm-boundary = open"),
    ({"periodic-molecules": "yes", "comm-mode": "linear"}, r"periodic-molecules"),
    ({"deform": "0.1 0 0 0 0 0"}, r"deform"),
    ({"pbc": "xyz", "fmm-boundary": "open", "comm-mode": "linear"}, r"pbc = no"),
    ({"integrator": "tpi"}, r"TPI|[Tt]est.?particle"),
]


def refuses(checks, folder, system):
    for settings, pattern in REFUSED:
        write_mdp(folder + "/bad.mdp", {**system.mdp, **OPEN, **settings})
        status, output = gmx.run(["grompp", "-f", "bad.mdp", "-c", system.conf, "-p", system.top, "-o", "bad.tpr", "-maxwarn", "9"], folder)
        what, text = ", ".join(f"{k} = {v}" for k, v in settings.items()), complaint(output)
        checks.that(status != 0 and re.search(pattern, text) is not None, f"grompp refuses {what} with pbc = no (/{pattern}/): {text[:200]}")
    gmx.grompp(folder, {**system.mdp, **OPEN, "fmm-boundary": "open"}, system, name="good")
    for options, pattern in ((["-ntmpi", "2"], r"FMM.*rank|rank.*FMM"), (["-ntmpi", "1", "-update", "gpu"], r"pbc = no is not supported")):
        status, output = gmx.run(["mdrun", "-s", "good.tpr", "-deffnm", "good", "-nb", "cpu", *options], folder)
        text = " ".join(output.split())
        found = re.search(pattern, text)
        checks.that(status != 0 and found is not None, f"mdrun refuses {' '.join(options)} (/{pattern}/)")


def test(checks):
    folder = work_folder()
    drop = droplet(folder, 1.6)
    forces_and_energies(checks, work_folder("droplet"), drop)
    forces_and_energies(checks, work_folder("protein"), protein(folder))
    drop = droplet(folder, 1.3)
    place_and_box(checks, work_folder("place"), drop)
    small_systems(checks, work_folder("small"))
    conserves_energy(checks, work_folder("nve"), drop)
    continues(checks, work_folder("run"), drop)
    pair_list_buffer(checks, work_folder("buffer"), drop)
    minimises(checks, work_folder("minimise"), drop)
    refuses(checks, work_folder("refuse"), drop)


main(test)
