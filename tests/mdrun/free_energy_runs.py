#!/usr/bin/env python3
"""Runs with perturbed charges as users have them: decoupling with 42 states, expanded ensemble, -rerun, continuation.

Energies along the runs are compared with tight PME's of the same frames, so that nothing depends on two runs that drift apart. These are
not by -rerun: with PME it has another Lennard-Jones energy than a run from the same frame, in an unpatched GROMACS, too.
"""
import re

from harness import FMM, TIGHT_MIXED, changed, main, mean, need, read_log, read_trr, regression, work_folder
from perturbed import DECOUPLING, dhdl

gmx = need("GMXFMM_GMX")


def decoupled(checks, folder, state):
    """One line of the .mdp is another than with PME. A rerun has the run's energies; PME has the same derivatives and energies."""
    system = regression("freeenergy/coulandvdwsequential_coul")
    mdp = changed(DECOUPLING, init_lambda_state=state)
    gmx.grompp(folder, {**mdp, "coulombtype": "FMM"}, system, name="run")
    gmx.mdrun(folder, "-dhdl", "run.xvg", name="run")
    legends, rows = dhdl(folder, "run")
    checks.that(sum("xD" in text for text in legends) == 42 and len(rows) == 5, f"state {state}: 42 energies, {len(rows)} times")
    perturbed = re.search(r"FMM: (\d+) atoms have perturbed charges", read_log(folder, "run"))
    checks.that(perturbed and int(perturbed.group(1)) == 9, f"state {state}: md.log says how many charges are perturbed")
    still = changed(mdp, nsteps="0", nstlist="10", pcoupl="no", nstdhdl="1", nstenergy="1", nstcalcenergy="1", gen_vel="no", continuation="yes")
    gmx.grompp(folder, {**still, **FMM}, system, name="again")
    gmx.mdrun(folder, "-rerun", "run.trr", "-dhdl", "again.xvg", name="again")
    again = dhdl(folder, "again")
    pme = []
    for frame in read_trr(folder + "/run.trr"):
        gmx.grompp(folder, {**still, **TIGHT_MIXED, "rcoulomb": "0.9"}, system, "-t", "run.trr", "-time", str(frame.time), name="pme")
        gmx.mdrun(folder, "-dhdl", "pme.xvg", name="pme")
        pme.append(dhdl(folder, "pme")[1][0])
    # derivative by coul-lambda, energies at all states
    columns = [1 + k for k, text in enumerate(legends) if "xD" in text or "coul-lambda" in text]
    same = [1 + k for k, text in enumerate(again[0]) if "xD" in text or "coul-lambda" in text]
    checks.that(len(columns) == len(same) == 43, f"state {state}: columns are understood")
    of_run = [row for row in rows if round(row[0] / 0.002) % 20 == 0]
    apart = max(abs(a[i] - b[j]) for a, b in zip(of_run, again[1]) for i, j in zip(columns, same))
    checks.below(f"state {state}: derivative and energies of the run and of its rerun", apart, 0.02, "kJ/mol", "single precision, atoms sorted anew")
    differences = [mean(a[j] - b[j] for a, b in zip(again[1], pme)) for j in same]
    checks.below(f"state {state}: derivative and energies less tight PME's, the mean of {len(of_run)} frames", max(map(abs, differences)), 0.02,
                 "kJ/mol", "a hundredth of kT")


def continued(checks, folder):
    system = regression("freeenergy/coulandvdwsequential_coul")
    mdp = changed(DECOUPLING, init_lambda_state=7, integrator="md", tcoupl="V-rescale", pcoupl="C-rescale", nsteps="80", nstxout="40", nstvout="40",
                  nstfout="40", nstenergy="40", verlet_buffer_tolerance="-1", rlist="0.95", coulombtype="FMM")
    for slow in (False, True):
        what = "slow growth" if slow else "state 7"
        if slow:
            mdp = changed(mdp, init_lambda_state=None, coul_lambdas=None, vdw_lambdas=None, sc_alpha="0", couple_lambda1="vdw", init_lambda="0.1", delta_lambda="0.005",
                          calc_lambda_neighbors="0")
        gmx.grompp(folder, mdp, system, name="whole")
        gmx.mdrun(folder, "-reprod", name="whole")
        gmx.grompp(folder, mdp, system, name="parts")
        gmx.mdrun(folder, "-reprod", "-nsteps", "40", name="parts")
        gmx.mdrun(folder, "-reprod", "-cpi", "parts.cpt", name="parts")
        whole, parts = read_trr(folder + "/whole.trr"), read_trr(folder + "/parts.trr")
        checks.that(len(whole) == len(parts) == 3, f"{what}: three frames")
        for kind in ("x", "v", "f"):
            checks.that(all(getattr(a, kind) == getattr(b, kind) for a, b in zip(whole, parts)), f"{what}, continued: {kind} equal in every bit")
        terms = ["Potential", "Coulomb (SR)", "Coul. recip."]
        energies = [gmx.energies(folder, terms, name=part)[-1] for part in ("whole", "parts")]
        checks.that(energies[0] == energies[1], f"{what}, continued: energies equal in every bit")


def expanded(checks, folder):
    """The state changes during the run; at each frame energies are those of a rerun in the state that the run had there."""
    system = regression("freeenergy/expanded")
    plain = {k: v for k, v in system.mdp.items() if k not in ("coulombtype", "vdw-type", "rcoulomb-switch", "pme-order")}
    mdp = changed(plain, integrator="md-vv", coulombtype="FMM", coulomb_modifier="None", vdwtype="Cut-off", vdw_modifier="Potential-switch", rvdw="1.0",
                  rcoulomb="1.0", nsteps="60", nstxout="2", nstvout="0", nstfout="0", nstenergy="2", nstdhdl="2", nstexpanded="2", dhdl_print_energy="potential",
                  tcoupl="no", mc_temperature="300", init_wl_delta="10", comm_mode="Linear", nstcomm="10")
    gmx.grompp(folder, mdp, system, name="run")
    gmx.mdrun(folder, "-dhdl", "run.xvg", name="run")
    legends, rows = dhdl(folder, "run")
    checks.that(legends[0] == "Thermodynamic state", "expanded ensemble: the state is written")
    states = {round(row[0] / 0.002): int(row[1]) for row in rows}
    checks.that(len(set(states.values())) > 2, f"expanded ensemble: states {list(states.values())}")
    potential = {round(row["Time"] / 0.002): row["Potential"] for row in gmx.energies(folder, ["Potential"], name="run")}
    worst, only_expanded = 0, ("lmc-", "wl-", "weight-", "init-wl", "nstexpanded", "mc-", "mininum", "nst-trans", "symm", "init-lambda-w")
    fixed = {k: v for k, v in mdp.items() if not k.startswith(only_expanded)}
    apart = []
    for state in range(12):
        name = f"state{state}"
        gmx.grompp(folder, changed(fixed, free_energy="yes", init_lambda_state=state, nstenergy=1, integrator="md"), system, name=name)
        gmx.mdrun(folder, "-rerun", "run.trr", name=name)
        for row in gmx.energies(folder, ["Potential"], name=name):
            step = round(row["Time"] / 0.002)
            difference = abs(row["Potential"] - potential[step])
            if states[step] == state:
                worst = max(worst, difference)
            elif abs(states[step] - state) == 1:
                apart.append(difference)
    checks.below("expanded ensemble: potential energy of the run and of a rerun in the same state", worst, 0.4, "kJ/mol",
                 "1e-5 of 37,000 kJ/mol, in single precision")
    checks.that(mean(apart) > 2, f"expanded ensemble: in a neighbouring state it is another by {mean(apart):.1f} kJ/mol")


def test(checks):
    for state in (0, 10, 30):
        decoupled(checks, work_folder(f"decoupling{state}"), state)
    continued(checks, work_folder("continued"))
    expanded(checks, work_folder("expanded"))


main(test)
