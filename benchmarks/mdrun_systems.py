"""The systems that mdrun_gpu.py measures: coordinates, topologies and .mdp settings, made from GROMACS's own files, and one from
the archive of a membrane protein, where that is."""
import json
import math
import os
import random
import re
import sys
import tarfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "mdrun"))
from harness import PLAIN_MDP, TIP3P, Failure, System, changed, data_folder, read_mdp, regression, stored, without_swaps  # noqa: E402


class Missing(Failure):
    """What a system is made from is not on this machine."""


def keep(path, head, record, **defaults):
    """Stores a record in the place of the one that has the same of these keys. Older ones may lack a key: then it is the default."""
    records = [r for r in stored(path, {"records": []})["records"] if any(r.get(key, default) != record[key] for key, default in defaults.items())]
    with open(path, "w") as file:
        json.dump({**head, "records": [*records, record]}, file, indent=1)
        file.write("\n")


SPCE = """#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
"""

# Output and coupling as seldom as a production run has them. Coupling every 100 steps of 2 fs needs tau-t of 1 ps or more.
NVT = changed(PLAIN_MDP, nsteps=-1, rcoulomb=1.0, rvdw=1.0, nstlist=100, tcoupl="V-rescale", tc_grps="System", tau_t=1, ref_t=300,
              nsttcouple=100, nstcalcenergy=100, nstenergy=1000, nstlog=0, nstcomm=100, gen_vel="no", continuation="yes")


def spc216(gmx):
    """Molecules of GROMACS's water box, each three positions (nm), whole; and the edge of the box."""
    with open(os.path.join(data_folder(gmx), "spc216.gro")) as lines:
        lines = lines.read().splitlines()
    x = [tuple(float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)) for line in lines[2:-1]]
    return [x[i:i + 3] for i in range(0, len(x), 3)], float(lines[-1].split()[0])


def write_water(folder, molecules, count, box, forcefield, name, mdp):
    """conf.gro and topol.top of `count` water molecules, given as three positions each (any iterable)."""
    conf, top = os.path.join(folder, "conf.gro"), os.path.join(folder, "topol.top")
    atoms = (("   OW", 1), ("  HW1", 2), ("  HW2", 3))
    with open(conf, "w") as out:
        out.write(f"water\n{3 * count}\n")
        written = 0
        for number, molecule in enumerate(molecules):
            residue = f"{(number + 1) % 100000:5d}SOL  "
            for (atom, k), (x, y, z) in zip(atoms, molecule):
                out.write(f"{residue}{atom}{(3 * number + k) % 100000:5d}{x:8.3f}{y:8.3f}{z:8.3f}\n")
            written += 1
        out.write(" ".join(f"{edge:.5f}" for edge in box) + "\n")
    if written != count:
        raise Failure(f"{conf}: {written} molecules in place of {count}")
    with open(top, "w") as out:
        out.write(f"{forcefield}[ system ]\nwater\n[ molecules ]\nSOL {count}\n")
    system = System(name, conf, top, mdp)
    system.atoms, system.box = 3 * count, box
    return system


def copies_of(molecules, edge, copies):
    """The molecules of a cube copied along x, y and z."""
    for i in range(copies):
        for j in range(copies):
            for k in range(copies):
                shift = i * edge, j * edge, k * edge
                for molecule in molecules:
                    yield [tuple(a + s for a, s in zip(x, shift)) for x in molecule]


def cube(gmx, folder, copies, forcefield, name, mdp):
    molecules, edge = spc216(gmx)
    return write_water(folder, copies_of(molecules, edge, copies), copies ** 3 * len(molecules), [copies * edge] * 3, forcefield, name, mdp)


def water(gmx, folder, copies):
    """SPC/E water, 648 copies^3 atoms."""
    return cube(gmx, folder, copies, SPCE, f"SPC/E water, {648 * copies ** 3} atoms", dict(NVT))


def tip3p(gmx, folder, copies=5):
    """Water with Lennard-Jones on every atom, cut off as CHARMM has it."""
    mdp = changed(NVT, rvdw=1.2, rcoulomb=1.2, rvdw_switch=1.0, vdw_modifier="Force-switch", dispcorr="no")
    return cube(gmx, folder, copies, TIP3P, f"CHARMM TIP3P water, LJ on every atom, {648 * copies ** 3} atoms", mdp)


def droplets(gmx, folder, along, atoms, edge):
    """SPC/E water in along^3 equal droplets of `atoms` atoms each, on a jittered lattice, in a cube of along * edge nm.

    edge: room of a droplet, nm. One droplet (along = 1) has the density and the surroundings of many.
    """
    molecules, unit = spc216(gmx)
    count = atoms // 3
    # A ball of that many molecules, and half a nanometre more, so that the sphere that holds them lies in the block.
    radius = (count * 3 / (4 * math.pi) * unit ** 3 / len(molecules)) ** (1 / 3)
    block = math.ceil(2 * (radius + 0.5) / unit)
    middle = block * unit / 2

    def squared(molecule):
        return sum((a - middle) ** 2 for a in molecule[0])
    ball = sorted(copies_of(molecules, unit, block), key=squared)[:count]
    radius = math.sqrt(squared(ball[-1])) + 0.1
    room = edge / 2 - radius - 0.5  # so far may a centre move without droplets coming within 1 nm of one another
    if room <= 0:
        raise Failure(f"droplets of radius {radius:.1f} nm have no room in {edge} nm")
    random_numbers = random.Random(2022)

    def placed():
        for i in range(along):
            for j in range(along):
                for k in range(along):
                    centre = [(n + 0.5) * edge + random_numbers.uniform(-room, room) for n in (i, j, k)]
                    # Mirrored along some axes, so that droplets are not copies of one another in the same orientation.
                    sign = [random_numbers.choice((-1, 1)) for _ in range(3)]
                    for molecule in ball:
                        yield [tuple(c + s * (a - middle) for c, s, a in zip(centre, sign, x)) for x in molecule]
    name = f"{along ** 3} droplet{'s' if along > 1 else ''} of SPC/E water in {along * edge:g} nm, {3 * count * along ** 3} atoms"
    return write_water(folder, placed(), count * along ** 3, [along * edge] * 3, SPCE, name, changed(NVT, dispcorr="no"))


def membrane(gmx, folder, copies=2):
    """complex/swap_z of the regression tests, a channel protein in octane in SPC/E water with ions, copied along x, y and z.

    As in that test, with steps of 2 fs, no swapping of ions, C-rescale and V-rescale in place of Berendsen's coupling, and without
    its position restraints, for which every step would wait for the CPU, with either method.
    """
    del gmx
    source = regression("complex/swap_z")
    conf, top = os.path.join(folder, "conf.gro"), os.path.join(folder, "topol.top")
    atoms, box = copied(source.conf, conf, [copies] * 3)
    with open(source.top) as text:
        head, molecules = text.read().split("[ molecules ]")
    # The test's own topologies lie beside its topol.top. The restraints are the last part of one.
    for part in ("coco.itp", "octane.itp"):
        with open(os.path.join(os.path.dirname(source.top), part)) as text:
            topology = text.read().split("[ position_restraints ]")[0]
        with open(os.path.join(folder, part), "w") as out:
            out.write(topology)
    with open(top, "w") as out:
        out.write(head + "[ molecules ]\n" + (molecules.strip() + "\n") * copies ** 3)
    mdp = changed(without_swaps(source.mdp), dt=0.002, nsteps=-1, tcoupl="V-rescale", nsttcouple=10, pcoupl="C-rescale", nstpcouple=10,
                  nstcomm=100, nstcalcenergy=100, nstenergy=1000, nstlog=0, nstxout=0, nstvout=0, nstfout=0, nstxout_compressed=0,
                  nstlist=100, continuation="yes", gen_vel="no", ld_seed=1)
    system = System(f"membrane channel, {atoms} atoms", conf, top, mdp)
    system.atoms, system.box = atoms, box
    return system


def copied(source, target, copies):
    """Writes a .gro file copied along the vectors of its rectangular box; returns the number of atoms and the new edges."""
    with open(source) as lines:
        lines = lines.read().splitlines()
    edges = [float(v) for v in lines[-1].split()]
    atoms = [(line[:20], [float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)]) for line in lines[2:-1]]
    number = len(atoms) * copies[0] * copies[1] * copies[2]
    with open(target, "w") as out:
        out.write(f"{lines[0]}\n{number}\n")
        for i in range(copies[0]):
            for j in range(copies[1]):
                for k in range(copies[2]):
                    shift = [n * edge for n, edge in zip((i, j, k), edges)]
                    for label, x in atoms:
                        out.write(label + "".join(f"{a + s:8.3f}" for a, s in zip(x, shift)) + "\n")
        out.write(" ".join(f"{n * edge:.5f}" for n, edge in zip(copies, edges)) + "\n")
    return number, [n * edge for n, edge in zip(copies, edges)]


def write_index(source, target, atoms, copies):
    """Writes an index file for as many copies of a system of that many atoms, one behind the other."""
    with open(source) as text, open(target, "w") as out:
        for group, numbers in re.findall(r"\[ (\S+) \]([^\[]*)", text.read()):
            numbers = [int(n) for n in numbers.split()]
            out.write(f"[ {group} ]\n")
            for copy in range(copies):
                for first in range(0, len(numbers), 15):  # GROMACS reads lines of some thousand characters
                    out.write(" ".join(str(n + copy * atoms) for n in numbers[first:first + 15]) + "\n")


# What no benchmark needs: output of a production run.
SILENT = {"nsteps": -1, "nstlog": 0, "nstxout": 0, "nstvout": 0, "nstfout": 0, "nstxout-compressed": 0, "continuation": "yes", "gen-vel": "no"}


def membrane_protein(gmx, folder, copies=(1, 1, 1), update="gpu"):
    """A membrane protein as CHARMM-GUI writes it, 50,183 atoms: CHARMM36m, POPC, TIP3P with Lennard-Jones on hydrogen.

    update: "cpu": production.mdp as it is, with Nose-Hoover, which GROMACS does not have on a GPU. "gpu": V-rescale and C-rescale
    in place of Nose-Hoover and Parrinello-Rahman. GMXFMM_MEMBRANE_PROTEIN names the archive.
    """
    del gmx
    archive = os.environ.get("GMXFMM_MEMBRANE_PROTEIN") or os.path.join(ROOT, "..", "shared", "systems", "membrane-protein-charmm.tar.xz")
    if not os.path.exists(archive):
        raise Missing(f"{archive} is not there (GMXFMM_MEMBRANE_PROTEIN)")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    conf, top, index = (os.path.join(folder, name) for name in ("copies.gro", "copies.top", "copies.ndx"))
    number = copies[0] * copies[1] * copies[2]
    atoms, box = copied(os.path.join(folder, "conf.gro"), conf, copies)
    write_index(os.path.join(folder, "index.ndx"), index, atoms // number, number)
    with open(os.path.join(folder, "topol.top")) as text:
        head, molecules = text.read().split("[ molecules ]")
    with open(top, "w") as out:
        out.write(head + "[ molecules ]\n" + (molecules.strip() + "\n") * number)
    mdp = {**read_mdp(os.path.join(folder, "production.mdp")), **SILENT}
    if update == "gpu":
        mdp = changed(mdp, tcoupl="V-rescale", pcoupl="C-rescale", ld_seed=1)
    name = "membrane protein" if number == 1 else f"{number} copies of the membrane protein"
    system = System(f"{name}, {'as CHARMM-GUI writes it' if update == 'cpu' else 'update on the GPU'}, {atoms} atoms", conf, top, mdp, index)
    system.atoms, system.box = atoms, box
    return system


def bilayer(gmx, folder, mdrun=()):
    """Lipids, water and ions of the membrane protein alone, 45,838 atoms, minimised, then 70 ps at constant pressure with PME.

    mdrun: options of mdrun. The hole that the protein leaves closes partly: the box gets smaller along x and y.
    """
    system = membrane_protein(gmx, folder)
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    groups = {"MEMB": [], "SOLV": []}
    kept, numbers = [], {"POPC": 0, "POT": 0, "CLA": 0, "TIP3": 0}
    for line, before in zip(lines[2:-1], ["", *lines[2:-2]]):
        name = line[5:10].strip()
        if name in numbers:
            numbers[name] += line[:10] != before[:10]
            kept.append(line)
            groups["MEMB" if name == "POPC" else "SOLV"].append(str(len(kept)))
    conf, top, index = (os.path.join(folder, name) for name in ("bilayer.gro", "bilayer.top", "bilayer.ndx"))
    with open(conf, "w") as out:
        out.write("\n".join(["bilayer", str(len(kept)), *kept, lines[-1], ""]))
    with open(index, "w") as out:
        for name, atoms in groups.items():
            out.write(f"[ {name} ]\n" + "".join(" ".join(atoms[i:i + 15]) + "\n" for i in range(0, len(atoms), 15)))
    with open(system.top) as text:
        head = "".join(line + "\n" for line in text.read().split("[ molecules ]")[0].splitlines() if "PROA" not in line and "PROB" not in line)
    with open(top, "w") as out:
        out.write(head + "[ molecules ]\n" + "".join(f"{name} {number}\n" for name, number in numbers.items()))
    mdp = changed(system.mdp, tc_grps="MEMB SOLV", tau_t="1 1", ref_t="303.15 303.15", comm_grps="MEMB SOLV", nstcomm=100, nstcalcenergy=100,
                  nstenergy=1000)
    made = System(f"bilayer of POPC, CHARMM36, {len(kept)} atoms", conf, top, mdp, index)
    made.atoms = len(kept)
    plain = {"tcoupl": "no", "pcoupl": "no"}
    for name, settings in (("em", {"integrator": "steep", "nsteps": 150, **plain}),
                           ("npt1", {"dt": 0.001, "nsteps": 10000, "gen-vel": "yes", "gen-temp": 303, "continuation": "no"}),
                           ("npt2", {"nsteps": 30000})):
        gmx.grompp(folder, changed({**mdp, "coulombtype": "PME", **settings}), made, name=name)
        gmx("mdrun", "-s", name + ".tpr", "-deffnm", name, "-ntmpi", "1", *mdrun, folder=folder)
        made.conf = os.path.join(folder, name + ".gro")
    return made


def amber_protein(gmx, folder):
    """freeenergy/restraints of the regression tests, 162 residues in TIP3P water in a dodecahedron, 21,157 atoms.

    As a production run has it: no free energy, no restraints of a ligand, rigid water, constrained bonds with hydrogen, steps of
    2 fs, V-rescale and C-rescale.
    """
    del gmx
    source = regression("freeenergy/restraints")
    top = os.path.join(folder, "topol.top")
    with open(source.top) as text:
        text = text.read()
    begin, end = text.index("[ dihedral_restraints ]"), text.index("; Include water topology")
    water = text.index("[ bonds ]", end)
    exclusions = text.index("[ exclusions ]", water)
    with open(top, "w") as out:
        out.write(text[:begin] + text[end:water] + "[ settles ]\n1 1 0.09572 0.15139\n\n" + text[exclusions:])
    with open(source.conf) as lines:
        lines = lines.read().splitlines()
    vectors = [float(v) for v in lines[-1].split()]
    mdp = changed(PLAIN_MDP, **{name.replace("-", "_"): value for name, value in SILENT.items()}, dt=0.002, nstlist=20, rvdw=0.9, rcoulomb=0.9,
                  dispcorr="EnerPres", constraints="h-bonds", tcoupl="V-rescale", tc_grps="System", tau_t=1, ref_t=298, pcoupl="C-rescale",
                  tau_p=5, compressibility=4.5e-5, ref_p=1, nstcomm=100, nstcalcenergy=100, nstenergy=1000, ld_seed=1)
    system = System(f"AMBER protein in TIP3P, dodecahedron, {int(lines[1])} atoms", source.conf, top, mdp)
    system.atoms, system.box = int(lines[1]), vectors[:3]
    return system


def when_tuned(run, steps):
    """run(steps), with twice as many, or four times, where PME is still tuned when counters are to be reset; gives the steps that served."""
    for length in (steps, 2 * steps, 4 * steps):
        try:
            run(length)
            return length
        except Failure as failure:
            if "PME tuning was still active" not in str(failure) or length == 4 * steps:
                raise


def equilibrated(gmx, folder, system, steps, mdrun):
    """Runs the system with PME at constant volume from random velocities; system.frame is then its last frame (.trr, time).

    mdrun: options of mdrun. The first steps are short, since the molecules' geometry and surroundings are not yet theirs.
    """
    groups = len(system.mdp["tc-grps"].split())
    mdp = changed(system.mdp, coulombtype="PME", tcoupl="V-rescale", pcoupl="no", tau_t=" ".join(["0.1"] * groups), nsttcouple=10, gen_vel="yes",
                  gen_temp=300, continuation="no")
    for name, dt, these in (("settle", 0.0005, steps // 2), ("relaxed", 0.002, steps)):
        gmx.grompp(folder, changed(mdp, dt=dt, nsteps=these, nstxout=these, nstvout=these), system,
                   *(["-t", "settle.trr"] if name == "relaxed" else []), name=name)
        gmx(*["mdrun", "-s", name + ".tpr", "-deffnm", name, "-ntmpi", "1", "-notunepme", *mdrun], folder=folder)
        mdp = changed(mdp, gen_vel="no", continuation="yes")
    system.frame = os.path.join(folder, name + ".trr"), these * dt
