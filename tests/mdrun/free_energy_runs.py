#!/usr/bin/env python3
"""Runs with perturbed charges as users have them: decoupling with 42 states, expanded ensemble, -rerun, continuation.

Energies along the runs are compared with tight PME's of the same frames, so that nothing depends on two runs that drift apart. These are
not by -rerun: with PME it has another Lennard-Jones energy than a run from the same frame, in an unpatched GROMACS, too.
"""
import re

from harness import FMM, TIGHT_MIXED, changed, main, mean, need, read_log, read_trr, regression, water, work_folder
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


def expanded(checks, folder, tempering=False):
    """The state changes during the run; at each frame energies are those of a rerun in the state that the run had there, and tight PME's."""
    what = "simulated tempering" if tempering else "expanded ensemble"
    system = regression("freeenergy/expanded")
    plain = {k: v for k, v in system.mdp.items() if k not in ("coulombtype", "vdw-type", "rcoulomb-switch", "pme-order")}
    mdp = changed(plain, integrator="md-vv", coulombtype="FMM", coulomb_modifier="None", vdwtype="Cut-off", vdw_modifier="Potential-switch", rvdw="1.0",
                  rcoulomb="1.0", nsteps="60", nstxout="2", nstvout="0", nstfout="0", nstenergy="2", nstdhdl="2", nstexpanded="2", dhdl_print_energy="potential",
                  tcoupl="no", mc_temperature="300", init_wl_delta="10", comm_mode="Linear", nstcomm="10")
    if tempering:
        # The temperature changes with the charges.
        mdp = changed(mdp, simulated_tempering="yes", simulated_tempering_scaling="linear", sim_temp_low="300", sim_temp_high="302",
                      temperature_lambdas=" ".join(str(k / 11) for k in range(12)), tcoupl="V-rescale", tau_t="0.5", ref_t="300", nsttcouple="2")
    gmx.grompp(folder, mdp, system, name="run")
    gmx.mdrun(folder, "-dhdl", "run.xvg", name="run")
    legends, rows = dhdl(folder, "run")
    checks.that(legends[0] == "Thermodynamic state", what + ": the state is written")
    states = {round(row[0] / 0.002): int(row[1]) for row in rows}
    checks.that(len(set(states.values())) > 2, f"{what}: states {list(states.values())}")
    potential = {round(row["Time"] / 0.002): row["Potential"] for row in gmx.energies(folder, ["Potential"], name="run")}
    worst, only_expanded = 0, ("lmc-", "wl-", "weight-", "init-wl", "nstexpanded", "mc-", "mininum", "nst-trans", "symm", "init-lambda-w", "sim", "temperature-l")
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
    checks.below(what + ": potential energy of the run and of a rerun in the same state", worst, 0.4, "kJ/mol",
                 "1e-5 of 37,000 kJ/mol, in single precision")
    checks.that(mean(apart) > 2, f"{what}: in a neighbouring state it is another by {mean(apart):.1f} kJ/mol")
    frames = read_trr(folder + "/run.trr")[::5]
    still = changed(fixed, free_energy="yes", nsteps=0, integrator="md", continuation="yes", nstdhdl=1, nstenergy=1, nstcalcenergy=1, calc_lambda_neighbors="-1",
                    tcoupl="no", gen_vel="no", **{**TIGHT_MIXED, "rcoulomb": "1.0"})
    of_run = [next(row for row in rows if abs(row[0] - frame.time) < 1e-4) for frame in frames]
    columns, apart = less_pme(folder, system, still, legends, of_run, [int(row[1]) for row in of_run], frames)
    checks.that(columns == 13, f"{what}: columns are understood")
    # Beside tempering GROMACS writes energies of other states as those times temperatures say, which runs in one state do not know.
    those, compared = ("derivative", 1) if tempering else ("derivative and energies of all states", 13)
    checks.below(f"{what}: {those} less tight PME's, the mean of {len(apart)} frames", max(abs(mean(column)) for column in list(zip(*apart))[:compared]), 0.02,
                 "kJ/mol", "a hundredth of kT")


def less_pme(folder, system, still, legends, rows, states, frames):
    """The number of columns that have the derivative by coul-lambda and energies at all states, and these less PME's of the same frames."""
    columns, apart = [k for k, text in enumerate(legends, 1) if "xD" in text or "coul-lambda" in text], []
    for row, state, frame in zip(rows, states, frames, strict=True):
        gmx.grompp(folder, changed(still, init_lambda_state=state), system, "-t", "run.trr", "-time", str(frame.time), name="pme")
        gmx.mdrun(folder, "-dhdl", "pme.xvg", name="pme")
        found, pme = dhdl(folder, "pme")[0], dhdl(folder, "pme")[1][0]
        same = [k for k, text in enumerate(found, 1) if "xD" in text or "coul-lambda" in text]
        apart.append([row[k] - pme[j] for k, j in zip(columns, same, strict=True)])
    return len(columns), apart


def own_state(legends, row):
    """The state that a row was computed in: the one whose energy is not another."""
    energies = [value for text, value in zip(legends, row[1:]) if "xD" in text]
    return min(range(len(energies)), key=lambda k: abs(energies[k]))


def along_lambda(checks, folder):
    """AWH moves lambda: derivatives and energies of all states are tight PME's of the same frames, in the state of each."""
    system = regression("freeenergy/coulandvdwsequential_coul")
    # Charges and Lennard-Jones at once, with soft-core Coulomb interactions; near enough that states change often.
    both = "0.5 0.52 0.54 0.56 0.58"
    mdp = changed(DECOUPLING, coul_lambdas=both, vdw_lambdas=both, sc_coul="yes", pcoupl="no", init_lambda_state=0, nsteps=60, nstxout=10, nstdhdl=10,
                  nstcalcenergy=10, nstenergy=10, nstlist=10, dhdl_print_energy="no",
                  awh="yes", awh_seed=1, awh_nbias=1, awh1_ndim=1, awh1_dim1_coord_provider="fep-lambda", awh1_dim1_coord_index=1, awh1_dim1_start=0,
                  awh1_dim1_end=4, awh1_dim1_diffusion="1e-2", awh1_error_init=10, awh_potential="umbrella", awh_nstsample=10, awh_nsamples_update=1,
                  awh_share_multisim="no", awh_nstout=10)
    gmx.grompp(folder, {**mdp, **FMM}, system, name="run")
    gmx.mdrun(folder, "-dhdl", "run.xvg", name="run")
    legends, rows = dhdl(folder, "run")
    states = [own_state(legends, row) for row in rows]
    checks.that(len(rows) == 7 and len(set(states)) > 2, f"AWH: states {states}")
    still = {key: value for key, value in mdp.items() if not key.startswith("awh")}
    still = changed(still, nsteps=0, nstdhdl=1, nstenergy=1, nstcalcenergy=1, gen_vel="no", continuation="yes", **{**TIGHT_MIXED, "rcoulomb": "0.9"})
    frames = read_trr(folder + "/run.trr")
    checks.that([round(row[0], 6) for row in rows] == [round(frame.time, 6) for frame in frames], "AWH: frames and energies of the same times")
    columns, apart = less_pme(folder, system, still, legends, rows, states, frames)
    checks.that(columns == 6, "AWH: columns are understood")
    worst = max(abs(mean(column)) for column in zip(*apart))
    checks.below(f"AWH: derivative and energies of all states less tight PME's, the mean of {len(apart)} frames", worst, 0.02, "kJ/mol", "a hundredth of kT")


def other_charges(checks, folder):
    """The log tells when charges are others than those for which order and cells were chosen, once, and only then."""
    system = water(gmx, folder)
    mdp = changed(system.mdp, free_energy="yes", couple_moltype="SOL", couple_lambda0="vdw-q", couple_lambda1="vdw", couple_intramol="yes", init_lambda="0",
                  nsteps="20", nstlist="5", nstcalcenergy="5", nstenergy="5", **FMM)
    mdp["fmm-measure"] = "no"
    # Squares are halved at a lambda of 0.29.
    for last, times in ((0.2, 0), (0.6, 1)):
        gmx.grompp(folder, changed(mdp, delta_lambda=last / 20), system, name="run")
        gmx.mdrun(folder, name="run")
        told = read_log(folder, "run").count("WARNING: The squares of charges now add up to")
        checks.that(told == times, f"charges of all water become less by a factor of {1 - last:.1f}: {told} warnings")


def test(checks):
    for state in (0, 10, 30):
        decoupled(checks, work_folder(f"decoupling{state}"), state)
    continued(checks, work_folder("continued"))
    expanded(checks, work_folder("expanded"))
    expanded(checks, work_folder("tempering"), tempering=True)
    along_lambda(checks, work_folder("awh"))
    other_charges(checks, work_folder("other-charges"))


main(test)
