#!/usr/bin/env python3
"""What PME does between walls (ewald-geometry = 3dc), against sums without images along z -> pme-slab.json.

Usage: pme_slab.py OUT
Between two walls, water cut out of GROMACS's box. Tight PME, so that what is wrong is the empty space and its correction:
  forces    relative RMS errors over wall-ewald-zfac, in a slab 1.5 times as wide as high, and in one 4 times, against wall-ewald-zfac = 13:
            of ions and of molecules turned at random, whose field above a slab nothing screens, and of these after 20 ps; PME and FMM by
            default beside them
  virial    of molecules turned so that the slab has a dipole: what PME's differs by from FMM's, and half the energy of the correction for
            the dipole, 2 pi D^2 / V of the padded volume; the pressure
  charged   Coulomb energies with 6 sodium ions over wall-ewald-zfac, less FMM's
Needs GMXFMM_GMX, and GMXFMM_STOCK_GMX_D, an unpatched gmx_d (default: gmx_d in PATH).
"""
import datetime
import json
import math
import os
import random
import sys

import mdrun_systems  # also finds the harness  # noqa: F401
from harness import (FMM, NO_COULOMB, PLAIN_MDP, TIGHT, WATER_TOP, System, changed, commit, device, need, read_trr, rms_difference, version, water,
                     work_folder)

GAP = 0.25  # nm from the outermost atoms to a wall
ONE_4PI_EPS0 = 138.935458  # kJ nm / (mol e^2)
CHARGES = {"OW": -0.82, "HW1": 0.41, "HW2": 0.41, "NA": 1.0}
WALLS = {"pbc": "xy", "nwall": "2", "wall-type": "9-3", "wall-atomtype": "opls_135 opls_135", "wall-density": "50 50", "ewald-geometry": "3dc",
         "dispcorr": "no", "rcoulomb": "1.0", "rvdw": "1.0", "vdw-modifier": "Force-switch", "rvdw-switch": "0.9"}
# Flexible molecules, as constraints have a virial of their own
SOFT = {"define": "-DFLEXIBLE", "constraints": "none"}
PADDINGS = ("2", "3", "5", "7")
EXACT = "13"
COMPONENTS = ("XX", "YY", "ZZ")


def slab(gmx, folder, copies, ratio, sodium=0, turned=None):
    """Molecules that are within a height of 1/ratio of the width. turned: whether one of a number is, whose dipole is down or up."""
    os.makedirs(folder, exist_ok=True)
    system = water(gmx, folder, (copies, copies, 1), sodium)
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    width = float(lines[-1].split()[0])
    height = width / ratio
    atoms = [(line[:20], [float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)]) for line in lines[2:-1]]
    molecules = [[atom] for atom in atoms[:sodium]] + [atoms[i:i + 3] for i in range(sodium, len(atoms), 3)]
    low = min(x[2] for _, x in atoms)
    kept, ions = [], 0
    for number, molecule in enumerate(molecules):
        if max(x[2] for _, x in molecule) - low > height - 2 * GAP:
            continue
        middle = molecule[0][1][2]
        if turned and len(molecule) == 3 and turned(number, molecule[1][1][2] + molecule[2][1][2] < 2 * middle):
            molecule = [(label, [x[0], x[1], 2 * middle - x[2]]) for label, x in molecule]
        ions += len(molecule) == 1
        kept += [(label, [x[0], x[1], x[2] - low + GAP]) for label, x in molecule]
    dipole = sum(CHARGES[label[10:15].strip()] * x[2] for label, x in kept)
    conf = os.path.join(folder, "slab.gro")
    with open(conf, "w") as out:
        out.write(f"slab\n{len(kept)}\n" + "".join(label + "".join(f"{v:8.3f}" for v in x) + "\n" for label, x in kept))
        out.write(f"{width:.5f} {width:.5f} {height:.5f}\n")
    with open(system.top) as top:
        text = top.read()
    with open(system.top, "w") as top:
        top.write(text[:text.index("[ molecules ]")] + "[ molecules ]\n" + (f"NA {ions}\n" if ions else "") + f"SOL {(len(kept) - ions) // 3}\n")
    found = System("slab", conf, system.top, changed(system.mdp, **{key.replace("-", "_"): value for key, value in WALLS.items()}))
    found.atoms, found.edges, found.dipole = len(kept), [width, width, height], dipole
    return found


class Point:
    def __init__(self, gmx, folder, system, settings, terms=()):
        mdp = {**changed(system.mdp, nsteps=0, nstfout=1, nstenergy=1, nstcalcenergy=1, gen_vel="no", continuation="yes"), **settings}
        if settings.get("epsilon-r") == "0":
            mdp.update({"verlet-buffer-tolerance": "-1", "rlist": mdp["rvdw"], "ewald-geometry": "3d"})
        gmx.grompp(folder, mdp, system, name="point")
        gmx.mdrun(folder, name="point")
        wanted = [*terms, "Coulomb (SR)"] + (["Coul. recip."] if settings["coulombtype"] != "Cut-off" else [])
        self.energy = gmx.energies(folder, wanted, name="point")[0]
        self.coulomb = self.energy["Coulomb (SR)"] + self.energy.get("Coul. recip.", 0)
        self.force = read_trr(os.path.join(folder, "point.trr"))[0].f


def pme(padding, **more):
    return {**TIGHT, "wall-ewald-zfac": padding, **more}


def ions(folder, width, ratio):
    """Ions of either sign at random on a lattice, off their places."""
    os.makedirs(folder, exist_ok=True)
    distance, numbers = 0.35, random.Random(2)  # nm
    height = width / ratio
    along, layers = int(width / distance), 2 * int((height - 2 * GAP) / distance / 2 + 1)
    sites = [[(i + 0.5) * width / along, (j + 0.5) * width / along, GAP + k * (height - 2 * GAP) / (layers - 1)]
             for i in range(along) for j in range(along) for k in range(layers)]
    numbers.shuffle(sites)
    half = len(sites) // 2
    conf, top = os.path.join(folder, "slab.gro"), os.path.join(folder, "topol.top")
    with open(conf, "w") as out:
        out.write(f"ions\n{2 * half}\n")
        for number, site in enumerate(sites[:2 * half]):
            name = "NA" if number < half else "CL"
            out.write(f"{number + 1:5d}{name:<5s}{name:>5s}{number + 1:5d}" + "".join(f"{v + numbers.uniform(-0.03, 0.03):8.3f}" for v in site) + "\n")
        out.write(f"{width:.5f} {width:.5f} {height:.5f}\n")
    with open(top, "w") as out:
        out.write(f"{WATER_TOP}NA {half}\nCL {half}\n")
    found = System("ions", conf, top, changed(PLAIN_MDP, **{key.replace("-", "_"): value for key, value in WALLS.items()}))
    found.atoms, found.edges = 2 * half, [width, width, height]
    return found


def after(gmx, system, steps):
    """The system after so many steps of 2 fs."""
    here = os.path.dirname(system.conf)
    mdp = changed(system.mdp, nsteps=steps, nstlist=20, tcoupl="V-rescale", tc_grps="System", tau_t=0.1, ref_t=300, gen_seed=1)
    gmx.grompp(here, {**mdp, **FMM}, system, name="run")
    gmx.mdrun(here, name="run")
    later = System("later", os.path.join(here, "run.gro"), system.top, system.mdp)
    later.atoms, later.edges = system.atoms, system.edges
    return later


def forces(gmx, gmx_d, folder):
    records = []
    for ratio, copies in ((1.5, 2), (4, 3)):
        numbers = random.Random(1)
        begin = slab(gmx, os.path.join(folder, f"forces-{ratio}"), copies, ratio, turned=lambda number, down: numbers.random() < 0.5)
        salt = ions(os.path.join(folder, f"ions-{ratio}"), begin.edges[0], ratio)
        for what, system in (("ions at random", salt), ("water turned at random", begin), ("water after 20 ps", after(gmx, begin, 10000))):
            here = os.path.dirname(system.conf)
            exact, nothing = Point(gmx_d, here, system, pme(EXACT)), Point(gmx_d, here, system, NO_COULOMB)
            scale = rms_difference(exact.force, nothing.force)

            def error(program, settings):
                return rms_difference(Point(program, here, system, settings).force, exact.force) / scale
            default = {"coulombtype": "PME"}  # order 4, 0.12 nm, ewald-rtol 1e-5
            records.append({"system": what, "atoms": system.atoms, "box_nm": system.edges, "width_over_height": ratio,
                            "pme_tight": {padding: error(gmx_d, pme(padding)) for padding in PADDINGS},
                            "pme_by_default": {padding: error(gmx_d, {**default, "wall-ewald-zfac": padding}) for padding in PADDINGS},
                            "fmm_by_default": error(gmx, FMM), "fmm_1e-5": error(gmx, {**FMM, "fmm-accuracy": "1e-5"})})
    return records


def virial(gmx, gmx_d, folder):
    system = slab(gmx, os.path.join(folder, "virial"), 2, 1.5, turned=lambda number, down: number % 2 and down)
    here, terms = os.path.dirname(system.conf), [f"{kind}-{c}" for kind in ("Vir", "Pres") for c in COMPONENTS]
    fmm = Point(gmx, here, system, {**FMM, **SOFT, "fmm-accuracy": "1e-5"}, terms)
    area = system.edges[0] * system.edges[1]
    records = []
    for padding in ("3", "5", "7"):
        point = Point(gmx_d, here, system, pme(padding, **SOFT), terms)
        energy = 2 * math.pi * ONE_4PI_EPS0 * system.dipole ** 2 / (area * system.edges[2] * float(padding))
        records.append({"zfac": padding, "half_energy_of_correction": energy / 2, "coulomb_energy_less_fmm": point.coulomb - fmm.coulomb,
                        "virial_less_fmm": {c: point.energy["Vir-" + c] - fmm.energy["Vir-" + c] for c in COMPONENTS},
                        "pressure_less_fmm_bar": {c: point.energy["Pres-" + c] - fmm.energy["Pres-" + c] for c in COMPONENTS}})
    return {"atoms": system.atoms, "box_nm": system.edges, "dipole_e_nm": system.dipole, "pme": records}


def charged(gmx, gmx_d, folder):
    system = slab(gmx, os.path.join(folder, "charged"), 2, 1.5, sodium=6)
    here = os.path.dirname(system.conf)
    fmm = Point(gmx, here, system, {**FMM, "fmm-accuracy": "1e-5"})
    points = {padding: Point(gmx_d, here, system, pme(padding)) for padding in PADDINGS}
    nothing = Point(gmx_d, here, system, NO_COULOMB)
    return {"atoms": system.atoms, "box_nm": system.edges, "charge_e": round(sum(CHARGES[n] for n in names(system))),
            "energy_less_fmm": {padding: point.coulomb - fmm.coulomb for padding, point in points.items()},
            "force_difference_to_fmm": {padding: rms_difference(point.force, fmm.force) / rms_difference(fmm.force, nothing.force)
                                        for padding, point in points.items()}}


def names(system):
    with open(system.conf) as lines:
        return [line[10:15].strip() for line in lines.read().splitlines()[2:-1]]


def main():
    output = sys.argv[1]
    gmx, gmx_d, folder = need("GMXFMM_GMX"), need("GMXFMM_STOCK_GMX_D", "gmx_d"), work_folder("slabs")
    record = {"benchmark": "pme-slab", "device": device(), "date": datetime.date.today().isoformat(), "commit": commit(), "command": " ".join(sys.argv),
              "gromacs": {"fmm": version(gmx), "pme": version(gmx_d)}, "forces": forces(gmx, gmx_d, folder), "virial_kj_mol": virial(gmx, gmx_d, folder),
              "charged_kj_mol": charged(gmx, gmx_d, folder)}
    with open(output, "w") as file:
        json.dump(record, file, indent=1)
        file.write("\n")


main()
