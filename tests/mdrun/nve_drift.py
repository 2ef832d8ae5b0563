#!/usr/bin/env python3
"""At constant energy FMM drifts no more than PME of the same force accuracy, over 20 ps.

Rigid water in double precision, and with a pair-list buffer that costs nothing, so that what drifts is the Coulomb method:
FMM's cells are kept between pair searches, and each new assignment may shift the energy a little.
"""
import math

from harness import FMM, NO_COULOMB, TIGHT, changed, force_error, main, mean, need, single_points, slope, water, work_folder

gmx_d = need("GMXFMM_GMX_D")

STEPS = 20000
ATOMS = 648
KT = 2.494  # kJ/mol at 300 K
KINETIC = ATOMS / 3 * 6 / 2 * KT  # rigid molecules


def drift(rows):
    """Slope of the total energy per atom (kJ/mol/ps) and its error, from the slopes of five pieces."""
    t, e = [r["Time"] for r in rows], [r["Total Energy"] / ATOMS for r in rows]
    size = len(t) // 5
    pieces = [(mean(t[i * size:(i + 1) * size]), mean(e[i * size:(i + 1) * size])) for i in range(5)]
    steps = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(pieces, pieces[1:])]
    centre = mean(steps)
    return slope(t, e), math.sqrt(sum((s - centre) ** 2 for s in steps) / (len(steps) * (len(steps) - 1)))


def wander(rows, time=5.0):
    """RMS change of the total energy in this time (ps), in kJ/mol."""
    lag = round(time / (rows[1]["Time"] - rows[0]["Time"]))
    e = [r["Total Energy"] for r in rows]
    return math.sqrt(mean((b - a) ** 2 for a, b in zip(e, e[lag:])))


def test(checks):
    folder = work_folder()
    system = water(gmx_d, folder)
    # With this grid PME has the force error that FMM has by default, checked below.
    base = changed(system.mdp, dt=0.001, nsteps=STEPS, rcoulomb=0.85, rvdw=0.85, verlet_buffer_tolerance=-1, rlist=0.92, nstlist=10,
                   vdw_modifier="Potential-switch", rvdw_switch=0.75, dispcorr="no", nstenergy=20, nstcalcenergy=20, nstxout=STEPS // 4,
                   nstvout=STEPS // 4, fourierspacing=0.1)
    result, walk = {}, {}
    for method, extra in (("pme", {}), ("fmm", FMM)):
        gmx_d.grompp(folder, {**base, **extra}, system, name=method)
        gmx_d.mdrun(folder, name=method)
        rows = gmx_d.energies(folder, ["Total Energy"], name=method)
        result[method] = drift([r for r in rows if r["Time"] >= 0.5])
        walk[method] = wander(rows)
    (pme, pme_error), (fmm, fmm_error) = result["pme"], result["fmm"]

    system.mdp = base
    times = [STEPS / 1000 / 4 * i for i in range(1, 5)]
    arguments = (folder + "/pme.trr", times)
    reference = single_points(gmx_d, folder, system, TIGHT, *arguments, "tight")
    nothing = single_points(gmx_d, folder, system, NO_COULOMB, *arguments, "none")
    errors = {m: force_error(single_points(gmx_d, folder, system, extra, *arguments, m + "-point"), reference, nothing)
              for m, extra in (("pme", {}), ("fmm", FMM))}
    print(f"force error {errors['pme']:.2g} by PME, {errors['fmm']:.2g} by FMM")
    checks.below("ratio of these errors", max(errors.values()) / min(errors.values()), 2.0, "", "about equal accuracy, so that the drifts compare")
    noise = math.hypot(pme_error, fmm_error)
    checks.below(f"drift per atom {fmm:.2e} +- {fmm_error:.1e} by FMM, {pme:.2e} +- {pme_error:.1e} by PME; magnitude", abs(fmm),
                 abs(pme) + 2 * noise, "kJ/mol/ps", "PME's plus twice the statistical error")
    checks.below("drift per atom", abs(fmm), 1e-4 * KT, "kJ/mol/ps", "0.1 kT per atom and ns, which a thermostat would not notice")
    # Each new assignment of cells shifts the energy by a little, up or down: a random walk, whose steps do not grow with the
    # system's energy but with the root of it.
    checks.below(f"wander of the energy in 5 ps {walk['fmm']:.2f} kJ/mol ({walk['pme']:.2f} by PME); taken as a random walk, in 1 ns, over the "
                 "kinetic energy", walk["fmm"] * math.sqrt(200) / KINETIC, 0.02, "", "2 % in the temperature of 216 molecules")


main(test)
