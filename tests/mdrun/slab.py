#!/usr/bin/env python3
"""Slabs (pbc = xy): between two walls all that PME offers there; with one wall or none films, which GROMACS does not have.

Reference: tight PME of an unpatched gmx_d, which corrects a box with much empty space along z for slabs (ewald-geometry = 3dc). Between
walls this is wall-ewald-zfac = 7: images are 16 nm apart, four times the width of the box, which leaves 1e-11 of them. The virial of PME lacks the
correction's share, so that virials are held to differences of the energy under strain.
"""
import os
import re

from harness import (BAR_PER_KJ_MOL_NM3, FMM, KT, NO_COULOMB, TIGHT, System, changed, complaint, continues_bit_for_bit, drift, leaving, main, need, read_log, read_trr,
                     rms_difference, version, water, work_folder, write_mdp)

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), need("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")

HEIGHT = 2.8  # nm between walls; spc216.gro is 1.862 nm high, around the origin
PLAIN = {"dispcorr": "no", "vdw-modifier": "Force-switch", "rvdw-switch": "0.7"}
WALLS = {**PLAIN, "pbc": "xy", "nwall": "2", "wall-type": "9-3", "wall-atomtype": "opls_135 opls_135", "wall-density": "50 50",
         "ewald-geometry": "3dc"}
FILM = {**PLAIN, "pbc": "xy"}
TALL = {**PLAIN, "pbc": "xyz", "ewald-geometry": "3dc"}
FINE = {"fmm-accuracy": "1e-6"}


# ---------------------------------------------------------------------------------------------------------------- systems

def placed(folder, name, system, up, height, lift=None):
    """The system moved up, in a box of this height; lift: (atoms, z): the last so many atoms are moved up by z."""
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    count, rows = int(lines[1]), []
    for i, line in enumerate(lines[2:-1]):
        z = float(line[36:44]) + up + (lift[1] if lift and i >= count - lift[0] else 0)
        rows.append(line[:36] + f"{z:8.3f}" + line[44:])
    conf = os.path.join(folder, name + ".gro")
    with open(conf, "w") as out:
        out.write("\n".join([name, str(count), *rows, " ".join(lines[-1].split()[:2] + [f"{height:.5f}"])]) + "\n")
    return System(name, conf, system.top, system.mdp)


def strained(folder, name, system, strain):
    """The system, whose .gro is taken as exact, with x_a += sum_b strain[a][b] x_b, at the precision of a .g96."""
    with open(system.conf) as lines:
        lines = lines.read().splitlines()

    def of(x):
        return [x[a] + sum(strain[a][b] * x[b] for b in range(3)) for a in range(3)]
    edges = [float(v) for v in lines[-1].split()]
    box = [of([edges[k] if d == k else 0.0 for d in range(3)]) for k in range(2)] + [[0.0, 0.0, edges[2] * (1 + strain[2][2])]]
    rows = [f"{line[:5]} {line[5:10].strip():<5s} {line[10:15].strip():<5s}{i % 10**7:7d}" +
            "".join(f"{v:15.9f}" for v in of([float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)])) for i, line in enumerate(lines[2:-1], 1)]
    order = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    conf = os.path.join(folder, name + ".g96")
    with open(conf, "w") as out:
        out.write("\n".join(["TITLE", name, "END", "POSITION", *rows, "END", "BOX", "".join(f"{box[i][j]:15.9f}" for i, j in order), "END"]) + "\n")
    return System(name, conf, system.top, system.mdp)


class Point:
    """Energies and forces of the coordinates of a system."""

    def __init__(self, program, folder, system, settings, name, terms=()):
        mdp = {**changed(system.mdp, nsteps=0, nstfout=1, nstenergy=1, nstcalcenergy=1, nstlog=1, gen_vel="no", continuation="yes"), **settings}
        if settings.get("epsilon-r") == "0":
            # No step is made, so that no buffer is needed; that of these settings is not finite to 2026.3
            mdp.update({"verlet-buffer-tolerance": "-1", "rlist": mdp["rvdw"]})
        program.grompp(folder, mdp, system, name=name)
        program.mdrun(folder, name=name)
        wanted = ["Potential", "Coulomb (SR)", *terms] + (["Coul. recip."] if settings.get("coulombtype") in ("FMM", "PME") else [])
        self.energy = program.energies(folder, wanted, name=name)[0]
        self.coulomb = self.energy["Coulomb (SR)"] + self.energy.get("Coul. recip.", 0)
        self.force = read_trr(os.path.join(folder, name + ".trr"))[0].f


# -------------------------------------------------------------------------------------------------- forces and energies

def against(checks, what, point, exact, nothing, accuracy, energy):
    """energy: the limit per atom in kJ/mol, None where only forces can be compared."""
    atoms = len(exact.force) // 3
    error = rms_difference(point.force, exact.force) / rms_difference(exact.force, nothing.force)
    checks.below(f"{what}: force error", error, accuracy, "", "the accuracy asked")
    if energy is not None:
        checks.below(f"{what}: Coulomb energy {point.coulomb:.3f}, error per atom", abs(point.coulomb - exact.coulomb) / atoms, energy, "kJ/mol",
                     "0.04 % of kT" if energy == 1e-3 else "accuracy")


METHODS = [("default, mixed", gmx, {}, 4e-4, 1e-3), ("1e-6", gmx_d, FINE, 1e-6, 1e-5), ("1e-6, octree", gmx_d, {**FINE, "fmm-m2l": "rotation"}, 1e-6, 1e-5)]


def between_walls(checks, folder):
    for sodium in (0, 2):
        system = placed(folder, f"walls{sodium}", water(gmx, folder, (2, 2, 1), sodium), HEIGHT / 2, HEIGHT)
        exact = Point(stock_d, folder, system, {**WALLS, **TIGHT, "wall-ewald-zfac": "7"}, "pme")
        nothing = Point(stock_d, folder, system, {**WALLS, **NO_COULOMB, "ewald-geometry": "3d"}, "nothing")
        for what, program, settings, accuracy, energy in METHODS:
            # the .mdp of PME with one line changed
            point = Point(program, folder, system, {**WALLS, "wall-ewald-zfac": "7", **FMM, **settings}, "fmm", ["Pressure", "Vir-XX", "Kinetic En."])
            # Of a charged slab PME's energy has constants of its own (and depends on wall-ewald-zfac).
            against(checks, f"{sodium} ions between walls, {what}", point, exact, nothing, accuracy, None if sodium else energy)
        log = read_log(folder, "fmm")
        checks.that("periodic along x and y, open along z between two walls" in log, "md.log says what is periodic")


def films(checks, folder):
    """Without walls, with the box and place along z that the file happens to have; and with one wall."""
    for sodium in (0, 2):
        flat = water(gmx, folder, (2, 2, 1), sodium)
        tall = placed(folder, "tall", flat, 8, 18)
        exact, nothing = (Point(stock_d, folder, tall, {**TALL, **settings}, name) for settings, name in ((TIGHT, "pme"), (NO_COULOMB, "nothing")))
        for what, program, settings, accuracy, energy in METHODS:
            point = Point(program, folder, placed(folder, "film", flat, -50, 0.5), {**FILM, **FMM, **settings}, "fmm", ["Pressure"])
            against(checks, f"film with {sodium} ions, {what}, 50 nm below the origin", point, exact, nothing, accuracy, None if sodium else energy)
        checks.that(point.energy["Pressure"] == 0, f"pressure of a film {point.energy['Pressure']}, as there is no height")
        checks.that("periodic along x and y, open along z" in read_log(folder, "fmm"), "md.log says what is periodic")
    # One wall is the first of two whose second is far off
    # Order and cells are given: those that are chosen depend on the pressure, and so on a height that a film does not have.
    same = {**FMM, "fmm-m2l": "fft", "fmm-order": "10", "fmm-separation": "1", "fmm-grid": "7 7 4", "fmm-measure": "no"}
    single = {**WALLS, "wall-atomtype": "opls_135", "wall-density": "50", "nwall": "1", **same}
    one = Point(gmx_d, folder, placed(folder, "one", flat, HEIGHT / 2, 3), single, "one")
    two = Point(gmx_d, folder, placed(folder, "two", flat, HEIGHT / 2, 500), {**WALLS, **same}, "two")
    none = Point(gmx_d, folder, placed(folder, "one", flat, HEIGHT / 2, 3), {**FILM, **same}, "none")
    scale = rms_difference(none.force, [0.0] * len(none.force))
    checks.below("one wall: forces, against two of which one is far; relative difference", rms_difference(one.force, two.force) / scale, 1e-9, "",
                 "the other wall's")
    checks.that(rms_difference(one.force, none.force) > 1e-5 * scale, "one wall: it acts on the film")


def far_off(checks, folder):
    """A molecule that has left: forces on the film as without it, nearly, and on itself by its field."""
    flat = water(gmx, folder, (2, 2, 1))
    tall = placed(folder, "tall", flat, 6, 80, (3, 40))
    exact, nothing = (Point(stock_d, folder, tall, {**TALL, **settings}, name) for settings, name in ((TIGHT, "pme"), (NO_COULOMB, "nothing")))
    for what, program, settings, accuracy, energy in METHODS[:2]:
        point = Point(program, folder, placed(folder, "left", flat, 6, 3, (3, 40)), {**FILM, **FMM, **settings}, "left")
        against(checks, f"a molecule 40 nm above the film, {what}", point, exact, nothing, accuracy, energy)
    near = Point(gmx, folder, placed(folder, "left", flat, 0, 3), {**FILM, **FMM}, "near")
    far = Point(gmx, folder, placed(folder, "left", flat, 0, 3, (3, 9000)), {**FILM, **FMM}, "far")
    checks.below("a molecule 9 um above: forces on others, relative difference to when it is in the film, twice the accuracy and its own share",
                 rms_difference(near.force[:-600], far.force[:-600]) / rms_difference(near.force[:-600], [0.0] * (len(near.force) - 600)), 0.05, "",
                 "nothing is broken")
    megabytes = float(re.search(r"on the CPU, .*?, ([\d.]+) MB", read_log(folder, "far")).group(1))
    checks.below("a molecule 9 um above: memory of the FMM", megabytes, 2000, "MB", "cells of one level over all of that; 1 um is far")


# ------------------------------------------------------------------------------------------------------------------ virial

COMPONENTS = {"XX": (0, 0), "YY": (1, 1), "ZZ": (2, 2), "XY": (0, 1), "XZ": (0, 2), "YZ": (1, 2)}
# Flexible molecules, as constraints have a virial of their own. The energy of a low order jumps where an atom gets into another cell.
SOFT = {"define": "-DFLEXIBLE", "constraints": "none", "fmm-accuracy": "1e-9"}


ION = "[ moleculetype ]\n{0} 1\n[ atoms ]\n1 opls_407 1 {0} {0} 1 {1} 22.98977 {2}\n"


def perturbed_net_charge(checks, folder):
    """One of two ions has lost its charge at lambda = 1: forces are those of the same charges without a perturbation.

    Those of GROMACS's PME are not: its correction of a net charge (ewald/long_range_correction.cpp) lacks the charges of that state.
    """
    systems = {}
    for name, charges in (("perturbed", ("1", "opls_407 0 22.98977")), ("same", ("0", ""))):
        system = placed(folder, name, water(gmx, folder, (2, 2, 1), 2), HEIGHT / 2, HEIGHT)
        with open(system.top) as top:
            text = top.read().replace("[ system ]", ION.format("N0", *charges) + "[ system ]").replace("NA 2", "N0 1\nNA 1")
        system.top = os.path.join(folder, name + ".top")
        with open(system.top, "w") as top:
            top.write(text)
        systems[name] = system
    tight = {**WALLS, **TIGHT, "wall-ewald-zfac": "7"}
    state = {"free-energy": "yes", "init-lambda": "1", "nstdhdl": "0"}
    exact = Point(stock_d, folder, systems["same"], tight, "pme")
    nothing = Point(stock_d, folder, systems["same"], {**WALLS, **NO_COULOMB, "ewald-geometry": "3d"}, "nothing")
    perturbed = Point(stock_d, folder, systems["perturbed"], {**tight, **state}, "pme-perturbed")
    apart = max(abs(a - b) for a, b in zip(perturbed.force, exact.force))
    point = Point(gmx, folder, systems["perturbed"], {**WALLS, **FMM, **state}, "fmm")
    against(checks, "a net charge by a perturbation", point, exact, nothing, 4e-4, None)
    checks.that(version(stock_d) != "2022.5" or 20 < apart < 35, f"PME's forces with it are up to {apart:.3g} kJ/mol/nm off (docs/measured-errors.md)")


def virial(checks, folder):
    """The virial is half the derivative of the energy by strain, of the energy as it is computed, walls and all."""
    step = 5e-5
    for what, settings, sodium in (("between walls", WALLS, 0), ("film", FILM, 0), ("film with 2 ions", FILM, 2)):
        system = placed(folder, "rest", water(gmx, folder, (2, 2, 1), sodium), HEIGHT / 2, HEIGHT)
        settings = {**settings, **FMM, **SOFT}
        rest = Point(gmx_d, folder, strained(folder, "unstrained", system, [[0] * 3] * 3), settings, "unstrained",
                     ["Kinetic En.", "Pressure"] + ["Vir-" + c for c in COMPONENTS])
        for component, (a, b) in COMPONENTS.items():
            energies = []
            for sign in (1, -1):
                strain = [[sign * step if (i, j) == (a, b) else 0.0 for j in range(3)] for i in range(3)]
                energies.append(Point(gmx_d, folder, strained(folder, "strained", system, strain), settings, "strained").energy["Potential"])
            found, expected = rest.energy["Vir-" + component], (energies[0] - energies[1]) / (4 * step)
            checks.below(f"{what}: virial {component} {found:.3f} kJ/mol, from differences of the energy {expected:.3f}; difference",
                         abs(found - expected), 0.02, "kJ/mol", "third derivative of Lennard-Jones and bonds; 0.01 to 0.04 bar")
        if settings["pbc"] == "xy" and "nwall" in settings:
            volume = (2 * 1.86206) ** 2 * HEIGHT
            trace = sum(rest.energy["Vir-" + c] for c in ("XX", "YY", "ZZ"))
            pressure = 2 / 3 * (rest.energy["Kinetic En."] - trace) / volume * BAR_PER_KJ_MOL_NM3
            checks.below(f"{what}: pressure {rest.energy['Pressure']:.1f} bar, of energy, virial and volume {pressure:.1f}; relative difference",
                         abs(rest.energy["Pressure"] / pressure - 1), 1e-4, "", "digits of the box")


# ------------------------------------------------------------------------------------------------------------------- runs

COUPLED = {"tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "0.5", "ref-t": "300", "ld-seed": "3"}


def continues(checks, folder):
    system = placed(folder, "walls", water(gmx, folder, (2, 2, 1)), HEIGHT / 2, HEIGHT)
    in_plane = {"pcoupl": "C-rescale", "pcoupltype": "semiisotropic", "tau-p": "1", "compressibility": "4.5e-5 0", "ref-p": "1 1", "nstpcouple": "10"}
    for what, settings in (("walls, semi-isotropic coupling", {**WALLS, **COUPLED, **in_plane}), ("film", {**FILM, **COUPLED}),
                           ("film, velocity Verlet, octree", {**FILM, "integrator": "md-vv", "fmm-m2l": "rotation"})):
        whole, _ = continues_bit_for_bit(checks, what, gmx, folder, system, {**settings, **FMM})
        if "pcoupl" in settings:
            first, last = whole[0].box, whole[-1].box
            checks.that(first[8] == last[8] and first[0] != last[0] and abs(first[0] / last[0] - first[4] / last[4]) < 1e-6,
                        f"{what}: width {first[0]:.4f} to {last[0]:.4f} nm, as much along y; height {last[8]:.3f} nm as before")
    # Frames of another box, whose height does not matter, give the same energies.
    terms = ["Coulomb (SR)", "Coul. recip.", "LJ (SR)"]
    gmx.grompp(folder, {**changed(system.mdp, nsteps=20, nstxout=10, nstenergy=10, nstcalcenergy=10), **FILM, **FMM}, system, name="run")
    gmx.mdrun(folder, name="run")
    gmx("trjconv", "-s", "run.tpr", "-f", "run.trr", "-o", "taller.trr", "-box", "3.72412", "3.72412", "9", "-ndec", "6", folder=folder, stdin="0\n")
    run = gmx.energies(folder, terms, name="run")
    for trajectory in ("run", "taller"):
        gmx("mdrun", "-s", "run.tpr", "-rerun", trajectory + ".trr", "-deffnm", "again", "-ntmpi", "1", "-nb", "cpu", folder=folder)
        again = gmx.energies(folder, terms, name="again")
        worst = max(abs(sum(a[t] - b[t] for t in terms)) / 2592 for a, b in zip(run, again))
        checks.below(f"rerun of {trajectory}.trr: worst difference of the non-bonded energy per atom", worst, 1e-3, "kJ/mol",
                     "cells of another pair search, and the accuracy")


def conserves_energy(checks, folder):
    """A film without walls; in the second run one molecule that is above it flies off, and cells follow it.

    At 5 nm/ps, eight times what is thermal: in the 0.02 ps between assignments it may not leave its cell by much.
    """
    system = water(gmx, folder, (1, 1, 1))
    mdp = {**changed(system.mdp, dt=0.001, verlet_buffer_tolerance=-1, rlist=0.92, nstlist=20, nstenergy=20, nstcalcenergy=20), **FILM,
           "vdw-modifier": "Potential-switch", **FMM}
    gmx_d.grompp(folder, {**mdp, "fmm-accuracy": "1e-5", "nsteps": "10000"}, system, name="nve")
    gmx_d.mdrun(folder, name="nve")
    found, noise = drift([r for r in gmx_d.energies(folder, ["Total Energy"], name="nve") if r["Time"] >= 0.5], 648)
    checks.below(f"film, accuracy 1e-5: NVE drift per atom {found:.2e} +- {noise:.1e}; magnitude", abs(found), 1e-4 * KT, "kJ/mol/ps",
                 "0.1 kT per atom and ns, as of a box (nve_drift.py)")
    gmx_d.grompp(folder, {**mdp, "fmm-accuracy": "1e-5", "nsteps": "2000", "nstxout": "2000", "gen-vel": "no", "comm-mode": "none"}, leaving(folder, system),
                 name="leaving")
    gmx_d.mdrun(folder, name="leaving")
    rows = [r["Total Energy"] for r in gmx_d.energies(folder, ["Total Energy"], name="leaving") if r["Time"] >= 0.1]
    z = read_trr(os.path.join(folder, "leaving.trr"))[-1].x[2::3]
    checks.that(max(z) > 10, f"a molecule is at z = {max(z):.1f} nm")
    checks.below(f"energy while it leaves: {rows[0]:.2f} to {rows[-1]:.2f} kJ/mol, spread", max(rows) - min(rows), 2, "kJ/mol",
                 "0.1 % of the kinetic energy of the rest at 300 K")


def energy_groups(checks, folder):
    """Walls are the last groups of energies, and are not counted where groups matter."""
    system = placed(folder, "walls", water(gmx, folder, (2, 2, 1), 2), HEIGHT / 2, HEIGHT)
    one = Point(gmx_d, folder, system, {**WALLS, **FMM}, "one")
    two = Point(gmx_d, folder, system, {**WALLS, **FMM, "energygrps": "Ion Water"}, "two",
                ["Coul-SR:Ion-Ion", "Coul-SR:Ion-Water", "Coul-SR:Water-Water", "Coul-SR:Ion-wall0", "Coul-SR:wall0-wall1", "LJ-SR:Water-wall0"])
    parts = [two.energy["Coul-SR:" + pair] for pair in ("Ion-Ion", "Ion-Water", "Water-Water")]
    checks.below("two groups between walls: sum of their energies, difference", abs(sum(parts) - one.coulomb), 1e-6 * abs(one.coulomb), "kJ/mol", "rounding")
    checks.that(all(parts) and two.energy["Coul-SR:Ion-wall0"] == 0 and two.energy["Coul-SR:wall0-wall1"] == 0 and two.energy["LJ-SR:Water-wall0"] != 0,
                "energies of groups with walls are those of Lennard-Jones alone")


# --------------------------------------------------------------------------------------------------------------- messages

REFUSED = [
    ({"pbc": "xyz", "ewald-geometry": "3dc"}, r"3dc.*pbc = xy"),
    ({"pbc": "no", "ewald-geometry": "3dc"}, r"ewald-geometry = 3d"),
    ({"fmm-boundary": "vacuum"}, r"with pbc = xy has no surroundings"),
    ({"fmm-boundary": "open"}, r"use pbc = no"),
    ({"pcoupl": "C-rescale", "pcoupltype": "semiisotropic", "tau-p": "1", "compressibility": "4.5e-5 0", "ref-p": "1 1"}, r"pressure coupling with pbc=xy"),
    ({"dispcorr": "EnerPres"}, r"dispersion correction with pbc=xy"),
    ({"deform": "0.1 0 0 0 0 0"}, r"no box to deform"),
    ({"coulombtype": "PME"}, r"only full pbc|Can not have Ewald"),
    ({"coulombtype": "Reaction-Field"}, r"only full pbc"),
    ({"epsilon-surface": "1"}, r"epsilon-surface"),
]


def messages(checks, folder):
    system = placed(folder, "walls", water(gmx, folder, (2, 2, 1)), HEIGHT / 2, HEIGHT)
    base = changed(system.mdp, tcoupl="V-rescale", tc_grps="System", tau_t=0.5, ref_t=300)

    def grompp(settings, name, most=0, conf=system):
        write_mdp(os.path.join(folder, name + ".mdp"), {**base, **settings})
        return gmx.run(["grompp", "-f", name + ".mdp", "-c", conf.conf, "-p", conf.top, "-o", name + ".tpr", "-maxwarn", str(most)], folder)
    for settings, pattern in REFUSED:
        status, output = grompp({**FILM, **FMM, **settings}, "bad", 9)
        what, text = ", ".join(f"{k} = {v}" for k, v in settings.items()), complaint(output)
        checks.that(status != 0 and re.search(pattern, text) is not None, f"grompp refuses {what} with a film (/{pattern}/): {text[:200]}")
    status, output = grompp({**FILM, **FMM, "pbc": "xyz", "ewald-geometry": "3dc"}, "bad", 9)
    checks.that(len(re.findall("^(?:ERROR|WARNING) ", output, re.M)) == 1 and "pbc = xy" in complaint(output), "that about 3dc is one message")
    for what, settings in (("walls as for PME", {**WALLS, **FMM}), ("walls, zfac below what PME needs", {**WALLS, **FMM, "wall-ewald-zfac": "1"})):
        status, output = grompp(settings, "walls")
        checks.that(status == 0 and " ".join(output.split()).count("wall-ewald-zfac is ignored") == 1, f"{what}: grompp has no warning, and one note about zfac")
    status, output = grompp({**WALLS, **FMM, "ewald-geometry": "3d"}, "walls")
    checks.that(status == 0 and "zfac" not in output, "walls without 3dc: no note")
    status, output = grompp({**FILM, **FMM}, "film", 0, placed(folder, "charged", water(gmx, work_folder("charged"), (2, 2, 1), 1), 0, 3))
    text = " ".join(output.split())
    checks.that(status == 0 and "net charge of 1 e" in text and "no background" in text.split("net charge of 1 e")[1][:100],
                "a net charge is told of in a note, without a warning")
    # The list's buffer is that of the density of the film, whatever its box says.
    lists = set()
    for height in (0.5, 3, 500):
        _, output = grompp({**FILM, **FMM, "nstlist": "25", "verlet-buffer-tolerance": "5e-4", "vdw-modifier": "Potential-shift"}, "film", 0, placed(folder, "boxed", system, 0, height))
        lists.add(re.search(r"rlist for 1x1 atom pair-list as (\S+) nm", output).group(1))
    checks.that(len(lists) == 1, f"{version(gmx)}: rlist of a film {lists} nm, with any height of the box")


def test(checks):
    between_walls(checks, work_folder("walls"))
    films(checks, work_folder("films"))
    far_off(checks, work_folder("far"))
    perturbed_net_charge(checks, work_folder("perturbed"))
    virial(checks, work_folder("virial"))
    continues(checks, work_folder("run"))
    conserves_energy(checks, work_folder("nve"))
    energy_groups(checks, work_folder("groups"))
    messages(checks, work_folder("messages"))


main(test)
