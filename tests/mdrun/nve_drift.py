#!/usr/bin/env python3
"""At constant energy FMM drifts no more than PME of the same force accuracy, over 20 ps.

Rigid water in double precision, and with a pair-list buffer that costs nothing, so that what drifts is the Coulomb method:
FMM's cells are kept between pair searches, and each new assignment may shift the energy a little.
"""
import math

from harness import FMM, NO_COULOMB, TIGHT, changed, drift, force_error, main, mean, need, single_points, water, work_folder

gmx_d = need("GMXFMM_GMX_D")

STEPS = 20000
ATOMS = 648
KT = 2.494  # kJ/mol at 300 K
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
    base = changed(system.mdp, dt=0.001, nsteps=STEPS, verlet_buffer_tolerance=-1, rlist=0.92, nstlist=10, vdw_modifier="Potential-switch",
                   rvdw_switch=0.75, dispcorr="no", nstenergy=20, nstcalcenergy=20, nstxout=STEPS // 4, nstvout=STEPS // 4)
    system.mdp = base
    result, walk = {}, {}

    def run(method, settings):
        gmx_d.grompp(folder, {**base, **settings}, system, name=method)
        gmx_d.mdrun(folder, name=method)
        rows = gmx_d.energies(folder, ["Total Energy"], name=method)
        result[method] = drift([r for r in rows if r["Time"] >= 0.5], ATOMS)
        walk[method] = wander(rows)

    run("fmm", FMM)
    times = [STEPS / 1000 / 4 * i for i in range(1, 5)]

    def points(settings, name):
        return single_points(gmx_d, folder, system, settings, folder + "/fmm.trr", times, name)

    reference, nothing = points(TIGHT, "tight"), points(NO_COULOMB, "none")
    fmm_error = force_error(points(FMM, "fmm-point"), reference, nothing)
    for settings in PME:
        pme_error = force_error(points(settings, "pme-point"), reference, nothing)
        if pme_error <= fmm_error:
            break
    checks.that(0.1 * fmm_error < pme_error <= fmm_error, f"force error {fmm_error:.2g} by FMM, {pme_error:.2g} by PME with {settings}")
    run("pme", settings)

    (pme, pme_noise), (fmm, fmm_noise) = result["pme"], result["fmm"]
    checks.below(f"drift per atom {fmm:.2e} +- {fmm_noise:.1e} by FMM, {pme:.2e} +- {pme_noise:.1e} by PME; magnitude", abs(fmm),
                 abs(pme) + 2 * math.hypot(pme_noise, fmm_noise), "kJ/mol/ps", "PME's plus twice the statistical error")
    checks.below("drift per atom", abs(fmm), 1e-4 * KT, "kJ/mol/ps", "0.1 kT per atom and ns, which a thermostat would not notice")
    # Each new assignment of cells shifts the energy by a little, up or down: a random walk, whose steps do not grow with the
    # system's energy but with the root of it.
    checks.below(f"wander of the energy in 5 ps {walk['fmm']:.2f} kJ/mol ({walk['pme']:.2f} by PME); taken as a random walk, in 1 ns, over the "
                 "kinetic energy", walk["fmm"] * math.sqrt(200) / KINETIC, 0.02, "", "2 % in the temperature of 216 molecules")


main(test)
