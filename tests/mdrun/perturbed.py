"""Systems with perturbed charges, and what a frame of one gives: shared by tests on a CPU and a GPU."""
import os
import re

from harness import changed, read_trr, regression, water

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


def system_of(name):
    """With options that FMM and PME both take: no switched PME, the names that grompp writes."""
    system = regression("freeenergy/" + name)
    mdp = {k: v for k, v in system.mdp.items() if k not in ("coulomb-type", "vdw-type")}
    system.mdp = changed(mdp, coulombtype="PME", coulomb_modifier="Potential-shift", vdwtype="Cut-off", vdw_modifier="Force-switch",
                         rvdw_switch="0.8", rvdw="0.9", rcoulomb="0.9", integrator="md", tcoupl="no", pcoupl="no", rlist="1",
                         verlet_buffer_tolerance=None, nstcalcenergy="1", dhdl_print_energy="total", calc_lambda_neighbors="-1",
                         fourier_nx="0", fourier_ny="0", fourier_nz="0", gen_vel="no")
    return system


class Point:
    """One frame: Coulomb energy, its derivative by lambda, energies at other lambdas less that here, forces."""

    def __init__(self, program, folder, system, settings, state, trajectory, time, name, more, nb):
        mdp = changed(system.mdp, nsteps=0, nstxout=0, nstvout=0, nstfout=1, nstxout_compressed=0, nstenergy=1, nstlog=1, nstdhdl=1,
                      separate_dhdl_file="yes", continuation="yes", init_lambda_state=state, free_energy="yes")
        mdp.update(settings)
        program.grompp(folder, mdp, system, "-t", trajectory, "-time", str(time), name=name)
        program.mdrun(folder, "-dhdl", name + ".xvg", *more, name=name, nb=nb)
        row = program.energies(folder, TERMS, name=name)[0]
        self.energy = row["Coulomb (SR)"] + row["Coul. recip."]
        legends, rows = dhdl(folder, name)
        numbers = rows[0][1:]
        self.slope = sum(n for text, n in zip(legends, numbers) if text.startswith("dH") and ("coul" in text or "fep" in text))
        self.foreign = [n for text, n in zip(legends, numbers) if "xD" in text and "H" in text]
        self.force = read_trr(os.path.join(folder, name + ".trr"))[0].f


def points(program, folder, system, settings, state, trajectory, times, name, more=(), nb="cpu"):
    return [Point(program, folder, system, settings, state, trajectory, time, f"{name}-{state}-{k}", more, nb) for k, time in enumerate(times)]


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


def ion_that_appears(gmx, folder):
    """A sodium ion whose charge grows, and so the charge of the box."""
    system = water(gmx, folder, (1, 1, 1), sodium=1)
    system.mdp = changed(system.mdp, couple_moltype="NA", couple_lambda0="vdw", couple_lambda1="vdw-q", couple_intramol="yes",
                         init_lambda="-1", coul_lambdas="0 0.3 0.6 1", dhdl_print_energy="total", calc_lambda_neighbors="-1", gen_vel="no")
    return system
