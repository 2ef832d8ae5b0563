#!/usr/bin/env python3
"""Perturbed charges with the FMM on a GPU: energy, its derivative, energies at other lambdas and forces are those on the CPU, and runs.

On the CPU they are held to tight PME (free_energy.py, free_energy_runs.py). With GROMACS 2026 the free-energy kernels run on either.
"""
from harness import (FMM, Failure, changed, chosen_settings, fmm_on, fmm_parameters, main, make_frames, need, need_gpu, read_log, regression,
                     rms_difference, version, work_folder)
from perturbed import DECOUPLING, dhdl, ion_that_appears, points, soft_core_systems, system_of

gmx = need("GMXFMM_GMX")
GPU = ("-fmm", "gpu")
# What computes perturbed pairs, and the end of its name.
PERTURBED_PAIRS = ((("-nbfe", "cpu"), ""), (("-nbfe", "gpu"), ", perturbed pairs on the GPU")) if version(gmx) >= "2026" else (((), ""),)


def same_points(checks, system, folder, states, kinds=PERTURBED_PAIRS):
    """Frames on the GPU, and on the CPU with the parameters that the GPU's log names."""
    trajectory, times = make_frames(gmx, folder, system, steps=20, every=10)
    for state in states:
        for options, name in kinds:
            what = f"{system.name}, state {state}{name}"
            gpu = points(gmx, folder, system, {**FMM, "fmm-measure": "no"}, state, trajectory, times, "gpu", (*GPU, *options), "gpu")
            log = read_log(folder, f"gpu-{state}-0")
            checks.that(fmm_on(log, "GPU") and "perturbed charges" in log, f"{what}: md.log says that it ran on the GPU, with perturbed charges")
            same = {**chosen_settings(fmm_parameters(log)), "fmm-measure": "no"}
            cpu = points(gmx, folder, system, same, state, trajectory, times, "cpu", ("-fmm", "cpu"))
            checks.below(f"{what}: Coulomb energy", max(abs(a.energy - b.energy) for a, b in zip(gpu, cpu)), 0.1, "kJ/mol",
                         "3e-6 of 37,000: single precision in another order, and terms that cancel")
            checks.below(f"{what}: its derivative", max(abs(a.slope - b.slope) for a, b in zip(gpu, cpu)), 0.01, "kJ/mol", "rounding")
            checks.that(len(gpu[0].foreign) == len(cpu[0].foreign) > 2, f"{what}: {len(gpu[0].foreign)} other lambdas")
            checks.below(f"{what}: energies at other lambdas", max(abs(x - y) for a, b in zip(gpu, cpu) for x, y in zip(a.foreign, b.foreign)),
                         0.01, "kJ/mol", "rounding")
            checks.below(f"{what}: forces", max(rms_difference(a.force, b.force) for a, b in zip(gpu, cpu)), 0.02, "kJ/mol/nm",
                         "RMS: 1e-5 of Coulomb forces of some 1,000")


def runs_on_gpu(checks, folder, name, what, times):
    """Runs a .tpr with the update and perturbed pairs on either processor: what runs, and the rows of derivatives."""
    for update in ("cpu", "gpu"):
        for options, pairs in PERTURBED_PAIRS:
            text = f"{what}, -update {update}{pairs}"
            gmx.mdrun(folder, *GPU, *options, "-update", update, "-dhdl", name + ".xvg", name=name, nb="gpu")
            rows = dhdl(folder, name)[1]
            checks.that(fmm_on(read_log(folder, name), "GPU"), f"{text}: on the GPU")
            checks.that(len(rows) == times, f"{text}: {len(rows)} times")
            yield text, rows


def slow_growth(checks, folder):
    """Charges change in the stream at each step, also where steps are graphs."""
    system = ion_that_appears(gmx, folder)
    mdp = changed(system.mdp, init_lambda="0.2", coul_lambdas=None, delta_lambda="0.01", free_energy="yes", nsteps="60", nstenergy="5", nstcalcenergy="5",
                  nstdhdl="5", nstlist="20", gen_vel="yes", constraints="all-bonds", dhdl_print_energy="no", **FMM)
    mdp["fmm-measure"] = "no"
    gmx.grompp(folder, mdp, system, name="slow")
    gmx.mdrun(folder, "-fmm", "cpu", "-dhdl", "slow.xvg", name="slow")
    cpu = dhdl(folder, "slow")[1]
    for what, gpu in runs_on_gpu(checks, folder, "slow", "slow growth", 13):
        # Later atoms have moved differently: rounding grows along a trajectory.
        apart = max(abs(a[1] - b[1]) for a, b in zip(gpu[:7], cpu[:7]))
        checks.below(f"{what}: derivative in 30 steps", apart, 0.2, "kJ/mol", "a thousandth of what it moves by")
        late = max(abs(a[1] - b[1]) for a, b in zip(gpu, cpu))
        checks.below(f"{what}: derivative in 60 steps", late, 3, "kJ/mol", "with a charge of an earlier step it is another by some 10 at each step")


def softened(checks):
    """Soft-core Coulomb interactions: perturbed pairs are on the CPU."""
    for system, states in soft_core_systems():
        folder = work_folder(system.name.replace(" ", "-"))
        same_points(checks, system, folder, states, PERTURBED_PAIRS[:1])
        for options, name in PERTURBED_PAIRS[1:]:
            try:
                gmx.mdrun(folder, *GPU, *options, name=f"gpu-{states[0]}-0", nb="gpu")
                checks.that(False, f"{system.name}{name}: runs")
            except Failure as failure:
                checks.that(any(word in str(failure) for word in ("Soft-core Coulomb", "softcore function")), f"{system.name}{name}: is refused for what is soft: {' '.join(str(failure).split())[-200:]}")


def decoupled(checks, folder):
    """A molecule is decoupled at constant pressure as users do it, and continued."""
    system = regression("freeenergy/coulandvdwsequential_coul")
    # Stochastic dynamics has its update on the CPU.
    mdp = changed(DECOUPLING, init_lambda_state=7, nsteps="100", integrator="md", tcoupl="V-rescale", pcoupl="C-rescale", **FMM)
    mdp["fmm-measure"] = "no"
    gmx.grompp(folder, mdp, system, name="run")
    gmx.mdrun(folder, "-fmm", "cpu", "-dhdl", "run.xvg", name="run")
    legends, cpu = dhdl(folder, "run")
    columns = [1 + k for k, text in enumerate(legends) if "xD" in text or "dH" in text]
    for what, gpu in runs_on_gpu(checks, folder, "run", "decoupling", 11):
        apart = max(abs(a[i] - b[i]) for a, b in zip(gpu[:3], cpu[:3]) for i in columns)
        checks.below(f"{what}: derivatives and energies of 42 states in 20 steps", apart, 0.05, "kJ/mol", "rounding of forces, and what it grows to")
        checks.that(all(abs(value) < 1e6 for row in gpu for value in row), f"{what}: finite in 100 steps")
    gmx.grompp(folder, changed(mdp, nsteps="40"), system, name="part")
    gmx.mdrun(folder, *GPU, "-update", "gpu", "-dhdl", "part.xvg", name="part", nb="gpu")
    gmx.mdrun(folder, *GPU, "-update", "gpu", "-dhdl", "part.xvg", "-cpi", "part.cpt", "-noappend", "-nsteps", "40", name="part", nb="gpu")
    before, after = dhdl(folder, "part")[1], dhdl(folder, "part.part0002")[1]
    # The step at which it was stopped is computed again, from positions in single precision.
    checks.that(before[-1][0] == after[0][0] and len(after) == 5, f"decoupling: continued at {after[0][0]:g} ps for {len(after)} times")
    apart = max(abs(before[-1][i] - after[0][i]) for i in columns)
    checks.below("decoupling, continued: derivatives and energies of 42 states at that step", apart, 0.05, "kJ/mol", "rounding")


def moved(checks, folder):
    """A molecule of 74 atoms that becomes another: most steps are without energies, for which there are other kernels."""
    system = system_of("relative")
    for state in (4, 12):  # charges between two states, and soft cores with the last charges
        mdp = changed(system.mdp, init_lambda_state=state, nsteps="40", nstdhdl="20", nstcalcenergy="20", nstenergy="20", nstlist="20", nstxout="0", nstvout="0",
                      nstfout="0", free_energy="yes", separate_dhdl_file="yes", gen_vel="yes", gen_seed="1", **{**FMM, "fmm-measure": "no"})
        gmx.grompp(folder, mdp, system, name="moved")
        gmx.mdrun(folder, "-fmm", "cpu", "-dhdl", "moved.xvg", name="moved")
        cpu = dhdl(folder, "moved")[1]
        for what, gpu in runs_on_gpu(checks, folder, "moved", f"{system.name}, state {state}", 3):
            apart = max(abs(x - y) for a, b in zip(gpu, cpu) for x, y in zip(a[1:], b[1:]))
            checks.below(f"{what}: derivatives and energies of other states in 40 steps", apart, 0.1, "kJ/mol", "rounding of forces, and what it grows to")


def test(checks):
    need_gpu(gmx)
    for part, function, *arguments in (
            *((name, lambda c, n, s: same_points(c, system_of(n), work_folder(n), s), name, states)
              for name, states in (("coulandvdwsequential_coul", (7,)), ("transformAtoB", (2,)), ("relative", (4,)))),
            ("ion", lambda c: same_points(c, ion_that_appears(gmx, work_folder("ion")), work_folder("ion-points"), (1, 3))),
            ("soft-core", softened),
            ("slow growth", lambda c: slow_growth(c, work_folder("slow"))),
            ("decoupling", lambda c: decoupled(c, work_folder("decoupled"))),
            ("relative, moved", lambda c: moved(c, work_folder("moved")))):
        try:
            function(checks, *arguments)
        except Failure as failure:
            checks.that(False, f"{part}: {' '.join(str(failure).split())[-700:]}")


main(test)
