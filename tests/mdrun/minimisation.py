#!/usr/bin/env python3
"""Energy minimisation, steepest descent and then conjugate gradients, ends where it ends with PME."""
import re

from harness import FMM, TIGHT, System, changed, main, need, read_log, water, work_folder

gmx, gmx_d = need("GMXFMM_GMX"), need("GMXFMM_GMX_D")


def minimised(program, folder, system, settings, name):
    """Potential energy after steep and cg, and whether cg converged."""
    base = changed(system.mdp, nsteps=100, emstep=0.01, emtol=10, define="-DFLEXIBLE", constraints="none", nstenergy=1, nstcalcenergy=1,
                   gen_vel="no", nstcgsteep=1000)
    base.update(settings)
    program.grompp(folder, changed(base, integrator="steep"), system, name=name + "-steep")
    program.mdrun(folder, name=name + "-steep")
    relaxed = System(system.name, folder + f"/{name}-steep.gro", system.top, system.mdp)
    program.grompp(folder, changed(base, integrator="cg", nsteps=500, emtol=200), relaxed, "-t", name + "-steep.trr", name=name)
    program.mdrun(folder, name=name)
    converged = re.search(r"converged to Fmax < 200", read_log(folder, name)) is not None
    return program.energies(folder, ["Potential"], name=name)[-1]["Potential"], converged


def test(checks):
    folder = work_folder()
    system = water(gmx, folder)
    pme, _ = minimised(gmx_d, folder, system, TIGHT, "tight")
    # With nearly exact forces both methods walk the same way down, hundreds of steps long.
    fine, converged = minimised(gmx_d, folder, system, {**FMM, "fmm-accuracy": "1e-6"}, "fine")
    checks.that(converged, "steep and cg with FMM converged to Fmax < 200 kJ/mol/nm (accuracy 1e-6, double precision)")
    checks.below(f"energy {fine:.3f} against tight PME's {pme:.3f} kJ/mol, relative difference", abs(fine / pme - 1), 1e-4, "",
                 "the same way down, apart from the rounding that hundreds of steps amplify")
    plain, converged = minimised(gmx, folder, system, FMM, "default")
    checks.that(converged, "steep and cg with FMM converged to Fmax < 200 kJ/mol/nm (default accuracy, mixed precision)")
    checks.below(f"energy {plain:.1f} against tight PME's {pme:.1f} kJ/mol, relative difference", abs(plain / pme - 1), 5e-3, "",
                 "water has many minima close by")


main(test)
