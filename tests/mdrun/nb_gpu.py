#!/usr/bin/env python3
"""With -nb gpu -fmm cpu the GPU computes Lennard-Jones without Coulomb and the CPU the FMM: the same results as all on the CPU."""
from harness import (FMM, NO_COULOMB, changed, force_error, main, make_frames, need, need_gpu, read_log, read_trr, regression, rms_difference,
                     single_points, water, without_swaps, work_folder)

gmx = need("GMXFMM_GMX")


def without_periodicity(checks, folder):
    """A block of water with nothing around it; its box is not used."""
    system = water(gmx, folder, (2, 2, 1))
    # Parameters as expected, not as measured: on a GPU, where FMM goes with -nb gpu, others may be the cheapest.
    alone = {**FMM, "pbc": "no", "dispcorr": "no", "comm-mode": "angular", "fmm-measure": "no"}
    single = changed(system.mdp, nsteps=0, nstfout=1, nstenergy=1, nstcalcenergy=1, gen_vel="no", continuation="yes", **alone)
    found = {}
    for nb in ("cpu", "gpu"):
        gmx.grompp(folder, single, system, name=nb)
        gmx.mdrun(folder, nb=nb, name=nb)
        found[nb] = read_trr(folder + f"/{nb}.trr")[0].f, gmx.energies(folder, ["Potential"], name=nb)[0]["Potential"]
    (cpu, cpu_energy), (gpu, gpu_energy) = found["cpu"], found["gpu"]
    checks.below("pbc = no: forces, RMS difference over RMS force", rms_difference(gpu, cpu) / rms_difference(cpu, [0.0] * len(cpu)), 1e-5, "",
                 "single precision in another order")
    checks.below("pbc = no: Potential, relative difference", abs(gpu_energy / cpu_energy - 1), 1e-6, "", "single precision in another order")
    settings = changed(system.mdp, nsteps=200, tcoupl="V-rescale", tc_grps="System", tau_t=0.5, ref_t=300, **alone)
    gmx.grompp(folder, settings, system, name="run")
    gmx.mdrun(folder, nb="gpu", name="run")
    checks.that("Finished mdrun" in read_log(folder, "run"), "pbc = no: 200 steps with -nb gpu")
    status, output = gmx.run(["mdrun", "-s", "run.tpr", "-deffnm", "run", "-nb", "gpu", "-update", "gpu"], folder)
    checks.that(status != 0 and "pbc = no is not supported" in output, "pbc = no: -update gpu is refused")


def test(checks):
    need_gpu(gmx)
    without_periodicity(checks, work_folder("open"))
    folder = work_folder()
    system = regression("complex/swap_z")
    trajectory, times = make_frames(gmx, folder, system)
    nothing = single_points(gmx, folder, system, NO_COULOMB, trajectory, times, "none")
    cpu = single_points(gmx, folder, system, FMM, trajectory, times, "cpu")
    gpu = single_points(gmx, folder, system, FMM, trajectory, times, "gpu", nb="gpu", more=["-fmm", "cpu"])
    checks.below("forces, RMS difference over RMS Coulomb force", force_error(gpu, cpu, nothing), 1e-5, "", "single precision in another order")
    for term in ("Potential", "Coulomb (SR)", "Coul. recip."):
        # Relative to the near field's energy: how near and far divide the sum is arbitrary, and the far part may be near zero.
        worst = max(abs(g.energy[term] - c.energy[term]) / abs(c.energy["Coulomb (SR)"]) for g, c in zip(gpu, cpu))
        checks.below(f"{term}, difference over Coulomb (SR)", worst, 1e-6, "", "single precision in another order")
    worst = max(abs(g.energy["Pressure"] - c.energy["Pressure"]) for g, c in zip(gpu, cpu))
    checks.below("Pressure, difference", worst, 0.5, "bar", "half of what is asked against PME")

    # A run, with what GROMACS can do on the GPU by itself and with all of it there. No ions swapped: that jumps in energy.
    settings = changed(without_swaps(system.mdp), nsteps=100, nstxout=0, nstvout=0, nstfout=0, nstxout_compressed=0, nstenergy=20, nstcalcenergy=20,
                       pcoupl="no", dt=0.002, **FMM)
    gmx.grompp(folder, settings, system, name="run")
    for more in ([], ["-bonded", "gpu", "-update", "gpu"]):
        gmx.mdrun(folder, "-fmm", "cpu", *more, nb="gpu", name="run")
        options = " ".join(["-nb gpu", *more])
        checks.that("Finished mdrun" in read_log(folder, "run"), f"100 steps with {options}")
        first, last = (gmx.energies(folder, ["Conserved En."], name="run")[i]["Conserved En."] for i in (0, -1))
        checks.below(f"conserved energy drift per atom with {options}", abs(last - first) / 13821 / 0.2, 0.05, "kJ/mol/ps",
                     "the start is not at equilibrium; a lost force would give far more")


main(test)
