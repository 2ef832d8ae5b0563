#!/usr/bin/env python3
"""At constant energy: FMM with an accuracy of 1e-5 drifts no more than PME of the same force error; by default a little.

Rigid water in double precision, and with a pair-list buffer that costs nothing, so that what drifts is the Coulomb method:
FMM's cells are kept for 0.02 ps, and each new assignment shifts the energy a little. That is a random walk, and it leads up: one
of variance D t heats by D/(2 kT). With the default accuracy the mean of six runs of 60 ps with other velocities was 2.1e-5 +- 1.6e-5
kJ/mol/ps an atom; of ten of 40 and 120 ps with cells kept for 0.05 ps, as on a GPU, 4.2e-5 +- 1.2e-5, 1.9e-5 by that formula.
"""
import math

from harness import FMM, KT, NO_COULOMB, TIGHT, changed, drift, force_error, main, mean, need, single_points, water, work_folder

gmx_d = need("GMXFMM_GMX_D")

STEPS = {"fmm": 60000, "fmm, 1e-5": 40000, "pme": 40000}
FINE = {**FMM, "fmm-accuracy": "1e-5"}
CHANCE = {"fmm, 1e-5": 6e-6, "pme": 3e-6}  # kJ/mol/ps: standard deviation of six and of four such runs, lists of 10 steps
ATOMS = 648
KINETIC = ATOMS / 3 * 6 / 2 * KT  # rigid molecules


def wander(rows, time=5.0):
    """RMS change of the total energy in this time (ps), in kJ/mol."""
    lag = round(time / (rows[1]["Time"] - rows[0]["Time"]))
    e = [r["Total Energy"] for r in rows]
    return math.sqrt(mean((b - a) ** 2 for a, b in zip(e, e[lag:])))


# Settings of PME, ever more exact: the first that is at least as exact as FMM is what FMM is compared with.
PME = [{"fourierspacing": spacing, "pme-order": order, "ewald-rtol": rtol} for spacing, order, rtol in
       [("0.12", "4", "1e-5"), ("0.1", "4", "1e-5"), ("0.09", "4", "1e-5"), ("0.09", "5", "3e-6"), ("0.08", "5", "2e-6"), ("0.08", "6", "1e-6"),
        ("0.07", "6", "3e-7"), ("0.06", "8", "1e-8")]]


def test(checks):
    folder = work_folder()
    system = water(gmx_d, folder)
    base = changed(system.mdp, dt=0.001, verlet_buffer_tolerance=-1, rlist=0.92, nstlist=50, vdw_modifier="Potential-switch", rvdw_switch=0.75,
                   dispcorr="no", nstenergy=20, nstcalcenergy=20, nstxout=STEPS["pme"] // 4, nstvout=STEPS["pme"] // 4)
    system.mdp = base
    result, noise, walk = {}, {}, {}

    def run(method, settings, name):
        gmx_d.grompp(folder, {**base, **settings, "nsteps": str(STEPS[method])}, system, name=name)
        gmx_d.mdrun(folder, name=name)
        rows = gmx_d.energies(folder, ["Total Energy"], name=name)
        result[method], noise[method] = drift([r for r in rows if r["Time"] >= 0.5], ATOMS)
        walk[method] = wander(rows)

    run("fmm", FMM, "fmm")
    run("fmm, 1e-5", FINE, "fine")
    times = [STEPS["pme"] / 1000 / 4 * i for i in range(1, 5)]

    def points(settings, name):
        return single_points(gmx_d, folder, system, settings, folder + "/fine.trr", times, name)

    reference, nothing = points(TIGHT, "tight"), points(NO_COULOMB, "none")
    fmm_error = force_error(points(FINE, "fmm-point"), reference, nothing)
    for settings in PME:
        pme_error = force_error(points(settings, "pme-point"), reference, nothing)
        if pme_error <= fmm_error:
            break
    checks.that(0.1 * fmm_error < pme_error <= fmm_error, f"force error {fmm_error:.2g} by FMM, {pme_error:.2g} by PME with {settings}")
    run("pme", settings, "pme")

    checks.below(f"drift per atom {result['fmm, 1e-5']:.2e} by FMM with an accuracy of 1e-5, {result['pme']:.2e} by PME; magnitude",
                 abs(result["fmm, 1e-5"]), abs(result["pme"]) + 3 * math.hypot(*CHANCE.values()), "kJ/mol/ps",
                 "PME's plus what chance does in 299 of 300 runs")
    checks.below(f"drift per atom {result['fmm']:.2e} +- {noise['fmm']:.1e} by FMM; magnitude", abs(result["fmm"]), 1e-4 * KT, "kJ/mol/ps",
                 "0.1 kT per atom and ns, which a thermostat would not notice; a twentieth of what lists may cost by default")
    # The steps of the random walk do not grow with the system's energy but with the root of it.
    checks.below(f"wander of the energy in 5 ps {walk['fmm']:.2f} kJ/mol ({walk['pme']:.2f} by PME); taken as a random walk, in 1 ns, over the "
                 "kinetic energy", walk["fmm"] * math.sqrt(200) / KINETIC, 0.02, "", "2 % in the temperature of 216 molecules")


main(test)
