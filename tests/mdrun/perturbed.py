"""Systems with perturbed charges, and what a frame of one gives: shared by tests on a CPU and a GPU."""
import math
import os
import re

from harness import changed, four_site_water, read_trr, regression, water

TERMS = ["Coulomb (SR)", "Coul. recip."]

# As in tutorials and scripts of decoupling: charges first, then Lennard-Jones with soft cores, no Coulomb between the molecule's own atoms.
COUL = [k / 20 for k in range(21)] + [1.0] * 21
VDW = [0.0] * 21 + [k / 20 for k in range(21)]
DECOUPLING = {
    "integrator": "sd", "tinit": "0", "dt": "0.002", "nsteps": "40", "nstcomm": "100", "nstxout": "20", "nstvout": "0", "nstfout": "0", "nstlog": "20",
    "nstenergy": "20", "nstcalcenergy": "10", "cutoff-scheme": "verlet", "nstlist": "20", "pbc": "xyz", "rlist": "0.9", "rcoulomb": "0.9",
    "vdwtype": "cutoff", "vdw-modifier": "potential-switch", "rvdw-switch": "0.8", "rvdw": "0.9", "dispcorr": "EnerPres", "tc-grps": "system", "tau-t": "1.0",
    "ref-t": "300", "pcoupl": "Parrinello-Rahman", "tau-p": "1.0", "compressibility": "4.5e-05", "ref-p": "1.0", "free-energy": "yes",
    "init-lambda-state": "0", "calc-lambda-neighbors": "-1", "coul-lambdas": " ".join(map(str, COUL)), "vdw-lambdas": " ".join(map(str, VDW)),
    "sc-alpha": "0.5", "sc-coul": "no", "sc-power": "1", "sc-sigma": "0.3", "couple-moltype": "ASNJ", "couple-lambda0": "vdw-q", "couple-lambda1": "none",
    "couple-intramol": "no", "nstdhdl": "10", "gen-vel": "yes", "gen-temp": "300", "gen-seed": "1", "ld-seed": "1", "constraints": "h-bonds",
    "constraint-algorithm": "lincs", "continuation": "no", "lincs-order": "12"}


def dhdl(folder, name):
    """Legends and rows of the file with derivatives."""
    with open(os.path.join(folder, name + ".xvg")) as file:
        lines = file.read().splitlines()
    return ([re.search('"(.*)"', line).group(1) for line in lines if re.match(r"@ s\d+ legend", line)],
            [[float(word) for word in line.split()] for line in lines if line[0] not in "#@"])


# Those of GROMACS's freeenergy tests whose topologies have other charges in state B, by themselves or by couple-moltype, and a state of each.
# A seventh is coulandvdwtogether, among those with soft-core Coulomb interactions; the others, vdwalone, restraints and simtemp, have
# Lennard-Jones, restraints or temperatures perturbed alone.
OF_REGRESSION_TESTS = {"coulandvdwsequential_coul": 7, "coulandvdwsequential_vdw": 3, "transformAtoB": 2, "expanded": 2, "relative": 4,
                       "relative-position-restraints": 2}


def system_of(name):
    """With options that FMM and PME both take: no switched PME, the names that grompp writes; an expanded ensemble's state is fixed."""
    system = regression("freeenergy/" + name)
    without = ("coulomb-type", "vdw-type", "nstexpanded", "lmc-", "mc-", "wl-", "weight-", "init-wl", "init-lambda-w", "mininum", "nst-trans", "symm")
    mdp = {k: v for k, v in system.mdp.items() if not k.startswith(without)}
    if "free-energy" in mdp:
        mdp["free-energy"] = "yes"
    system.mdp = changed(mdp, coulombtype="PME", coulomb_modifier="Potential-shift", vdwtype="Cut-off", vdw_modifier="Force-switch",
                         rvdw_switch="0.8", rvdw="0.9", rcoulomb="0.9", integrator="md", tcoupl="no", pcoupl="no", rlist="1",
                         verlet_buffer_tolerance=None, nstcalcenergy="1", dhdl_print_energy="total", calc_lambda_neighbors="-1",
                         fourier_nx="0", fourier_ny="0", fourier_nz="0", gen_vel="no")
    return system


class Point:
    """One frame: Coulomb energy, its derivative by lambda, energies at other lambdas less that here, forces."""

    def __init__(self, energies, legends, numbers, frame):
        self.energy = energies["Coulomb (SR)"] + energies["Coul. recip."]
        self.slope = sum(n for text, n in zip(legends, numbers) if text.startswith("dH") and ("coul" in text or "fep" in text))
        self.foreign = [n for text, n in zip(legends, numbers) if "xD" in text and "H" in text]
        self.force = frame.f


def still(system, settings, state):
    """Settings of a run of zero steps in this state."""
    mdp = changed(system.mdp, nsteps=0, nstxout=0, nstvout=0, nstfout=1, nstxout_compressed=0, nstenergy=1, nstlog=1, nstdhdl=1,
                  separate_dhdl_file="yes", continuation="yes", gen_vel="no", init_lambda_state=state, free_energy="yes")
    return {**mdp, **settings}


def read_points(program, folder, name):
    legends, rows = dhdl(folder, name)
    frames = read_trr(os.path.join(folder, name + ".trr"))
    energies = program.energies(folder, TERMS, name=name)
    return [Point(energy, legends, row[1:], frame) for energy, row, frame in zip(energies, rows, frames, strict=True)]


def points(program, folder, system, settings, state, trajectory, times, name, more=(), nb="cpu"):
    """Of each frame by a run of its own, for which the FMM chooses its parameters."""
    found = []
    for k, time in enumerate(times):
        this = f"{name}-{state}-{k}"
        program.grompp(folder, still(system, settings, state), system, "-t", trajectory, "-time", str(time), name=this)
        program.mdrun(folder, "-dhdl", this + ".xvg", *more, name=this, nb=nb)
        found += read_points(program, folder, this)
    return found


def points_of_rerun(program, folder, system, settings, state, trajectory, name, first=False):
    """Of all frames by one rerun with parameters for where the system begins; without the first, which make_frames leaves out, too."""
    this = f"{name}-{state}"
    mdp = still(system, settings, state)
    if mdp.get("verlet-buffer-tolerance") != "-1":
        # Each frame has a list of its own, which needs no buffer; with one it may be too long for the box.
        mdp.update({"verlet-buffer-tolerance": "-1", "rlist": max(mdp["rcoulomb"], mdp["rvdw"], key=float)})
    program.grompp(folder, mdp, system, name=this)
    program.mdrun(folder, "-rerun", trajectory, "-dhdl", this + ".xvg", name=this)
    return read_points(program, folder, this)[0 if first else 1:]


def soft_core_systems():
    """Coulomb interactions that are softened: with lambdas of their own, by fep-lambdas alone, by the other function, in a transformation."""
    beutler = system_of("coulandvdwsequential_coul")
    beutler.name, beutler.mdp = "soft-core Coulomb", changed(beutler.mdp, sc_coul="yes", sc_alpha="0.5", sc_power="1", sc_sigma="0.3")
    together = system_of("coulandvdwtogether")
    together.mdp = changed(together.mdp, init_lambda="-1", init_lambda_state="2", fep_lambdas="0 0.25 0.5 0.75 1")
    gapsys = system_of("coulandvdwsequential_coul")
    gapsys.name, gapsys.mdp = "soft-core function of Gapsys", changed(gapsys.mdp, sc_function="gapsys")
    other = system_of("relative")
    other.name, other.mdp = "soft-core Coulomb of atoms that vanish", changed(other.mdp, sc_coul="yes")
    # Also where all or some of the perturbed atoms have no charge.
    return (beutler, (3, 7)), (together, (2, 4)), (gapsys, (3, 7)), (other, (4, 12))


def coupled_to_itself():
    """A molecule of nine atoms whose own interactions vanish with those with water, without and with soft-core Coulomb; state, if softened."""
    for name, state, softened in (("coulandvdwsequential_coul", 7, False), ("coulandvdwtogether", 2, True)):
        system = system_of(name)
        system.name, system.mdp = f"couple-intramol {'softened' if softened else 'hard'}", changed(system.mdp, couple_intramol="yes")
        if softened:
            system.mdp = changed(system.mdp, init_lambda="-1", init_lambda_state="2", fep_lambdas="0 0.25 0.5 0.75 1")
        yield system, state, softened


def ion_that_appears(gmx, folder):
    """A sodium ion whose charge grows, and so the charge of the box."""
    system = water(gmx, folder, (1, 1, 1), sodium=1)
    system.mdp = changed(system.mdp, couple_moltype="NA", couple_lambda0="vdw", couple_lambda1="vdw-q", couple_intramol="yes",
                         init_lambda="-1", coul_lambdas="0 0.3 0.6 1", dhdl_print_energy="total", calc_lambda_neighbors="-1", gen_vel="no")
    return system


# Water of four sites: a charge that is on a virtual site goes, and comes on another site, on whose oxygen there is none.
FOUR_SITES = """[ defaults ]
1 2 yes 0.5 0.8333
[ atomtypes ]
OW 8 15.9994 0.0 A 0.315365 0.648520
HW 1 1.008 0.0 A 0.0 0.0
MW 0 0.0 0.0 V 0.0 0.0
[ moleculetype ]
FIRST 2
[ atoms ]
1 OW 1 SOL OW 1 0.0 15.9994 OW 0.0 15.9994
2 HW 1 SOL HW1 1 0.52 1.008 HW 0.4 1.008
3 HW 1 SOL HW2 1 0.52 1.008 HW 0.4 1.008
4 MW 1 SOL MW 1 -1.04 0.0 MW 0.0 0.0
5 MW 1 SOL LP 1 0.0 0.0 MW -0.5 0.0
[ constraints ]
1 2 1 0.09572
1 3 1 0.09572
2 3 1 0.15139
[ virtual_sites3 ]
4 1 2 3 1 0.128012065 0.128012065
5 1 2 3 4 -0.344908262 -0.344908262 -6.4437903493
[ exclusions ]
1 2 3 4 5
2 1 3 4 5
3 1 2 4 5
4 1 2 3 5
5 1 2 3 4
[ moleculetype ]
SOL 2
[ atoms ]
1 OW 1 SOL OW 1 0.0 15.9994
2 HW 1 SOL HW1 1 0.52 1.008
3 HW 1 SOL HW2 1 0.52 1.008
4 MW 1 SOL MW 1 -1.04 0.0
[ settles ]
1 1 0.09572 0.15139
[ virtual_sites3 ]
4 1 2 3 1 0.128012065 0.128012065
[ exclusions ]
1 2 3 4
2 1 3 4
3 1 2 4
4 1 2 3
[ system ]
water
[ molecules ]
FIRST 1
"""


def sites_that_change(gmx, folder):
    """One water of four sites becomes another, whose charge is on another virtual site; the charge of the box grows by 0.3."""
    system = four_site_water(gmx, folder, lambda oxygen, *_: oxygen, lambda text: f"{FOUR_SITES}SOL {int(text.split()[-1]) - 1}\n")
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    rows = [line[20:] for line in lines[2:-1]]
    rows.insert(4, rows[3])  # mdrun puts sites in their places
    names = ["LP" if k == 4 else ("OW", "HW1", "HW2", "MW")[(k - (k > 4)) % 4] for k in range(len(rows))]
    with open(system.conf, "w") as out:
        out.write(f"{lines[0]}\n{len(rows)}\n")
        for k, (name, row) in enumerate(zip(names, rows)):
            out.write(f"{1 if k < 5 else (k - 1) // 4 + 1:5d}SOL  {name:>5s}{k + 1:5d}{row}\n")
        out.write(lines[-1] + "\n")
    system.name = "charges of virtual sites"
    system.mdp = changed(system.mdp, coul_lambdas="0 0.3 0.6 1", dhdl_print_energy="total", calc_lambda_neighbors="-1", gen_vel="no", rcoulomb="0.8", rvdw="0.8")
    return system


CHAIN = """[ moleculetype ]
LONG 1
[ atoms ]
"""
CHARGES = (0.8, -0.3, -0.6, 0.5, -0.4)
APART = 0.2  # nm, of neighbours in the chain: its ends are four times that


def long_molecule(gmx, folder):
    """A chain of five charges, 0.8 nm long, which vanish but are not decoupled from one another."""
    system = water(gmx, folder)
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    edge = float(lines[-1].split()[0])
    chain = [[edge / 2 + APART * (k - 2), edge / 2, edge / 2] for k in range(len(CHARGES))]

    def is_free(rows):
        at = [[float(row[20 + 8 * d:28 + 8 * d]) for d in range(3)] for row in rows]
        return all(math.hypot(*(math.remainder(a - b, edge) for a, b in zip(x, y))) > 0.28 for x in at for y in chain)
    molecules = [lines[k:k + 3] for k in range(2, len(lines) - 1, 3)]
    kept = [row for rows in molecules if is_free(rows) for row in rows]
    rows = ["    1LONG    NA    1" + "".join(f"{v:8.3f}" for v in x) for x in chain] + [row[:44] for row in kept]
    with open(system.conf, "w") as out:
        out.write("\n".join([lines[0], str(len(rows)), *rows, lines[-1]]) + "\n")
    with open(system.top) as top:
        text = top.read()
    atoms = "".join(f"{k} opls_407 1 LONG NA 1 {q} 22.98977\n" for k, q in enumerate(CHARGES, 1))
    bonds = "[ bonds ]\n" + "".join(f"{k} {k + 1} 1 {APART} 100000\n" for k in range(1, len(CHARGES)))
    text = text[:text.index("[ system ]")] + CHAIN + atoms + bonds + f"[ system ]\nchain\n[ molecules ]\nLONG 1\nSOL {len(kept) // 3}\n"
    with open(system.top, "w") as top:
        top.write(text)
    system.name = "molecule longer than the list"
    system.mdp = changed(system.mdp, couple_moltype="LONG", couple_lambda0="vdw-q", couple_lambda1="none", couple_intramol="no", init_lambda="-1",
                         coul_lambdas="0 0.4 1 1", vdw_lambdas="0 0 0.5 1", sc_alpha="0.5", sc_coul="no", sc_power="1", sc_sigma="0.3", constraints="none",
                         dhdl_print_energy="total", calc_lambda_neighbors="-1", gen_vel="no", rvdw="0.6", rcoulomb="0.9", rlist="0.92",
                         verlet_buffer_tolerance="-1", dt="0.001")
    return system
