#!/usr/bin/env python3
"""Every .mdp in share/mdp is accepted as it stands, without a warning, and runs."""
import glob
import os

from harness import ROOT, main, need, read_mdp, regression, water, work_folder

gmx = need("GMXFMM_GMX")


def test(checks):
    examples = sorted(glob.glob(os.path.join(ROOT, "share", "mdp", "*.mdp")))
    checks.that(len(examples) >= 4, f"{len(examples)} example inputs")
    for path in examples:
        name = os.path.splitext(os.path.basename(path))[0]
        folder = work_folder(name)
        system = regression("complex/swap_z") if "membrane" in name else water(gmx, folder, (2, 2, 2))
        status, output = gmx.run(["grompp", "-f", path, "-c", system.conf, "-r", system.conf, "-p", system.top, "-o", "topol.tpr",
                                  "-maxwarn", "0", *(["-n", system.index] if system.index else [])], folder)
        if not checks.that(status == 0, f"grompp takes {name}.mdp" + ("" if status == 0 else ": " + " ".join(output.split())[-600:])):
            continue
        steps = "0" if "tight" in name else "20"
        gmx("mdrun", "-s", "topol.tpr", "-deffnm", "topol", "-ntmpi", "1", "-nb", "cpu", "-nsteps", steps, folder=folder)
        kind = read_mdp(path).get("coulombtype")
        energy = gmx.energies(folder, ["Coulomb (SR)", "Coul. recip."])[-1]
        checks.that(energy["Coul. recip."] != 0, f"{name}.mdp runs {steps} steps with {kind}: Coul. recip. {energy['Coul. recip.']:.1f} kJ/mol")


main(test)
