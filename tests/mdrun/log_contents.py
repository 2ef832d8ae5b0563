#!/usr/bin/env python3
"""md.log says what the FMM does; gmx energy shows its parts; mdout.mdp shows its options with their defaults."""
import re

from harness import FMM, changed, main, need, read_log, read_mdp, regression, water, work_folder

gmx = need("GMXFMM_GMX")

DEFAULTS = {"fmm-accuracy": 4e-4, "fmm-order": 0, "fmm-grid": "0 0 0", "fmm-tree-depth": -1, "fmm-separation": None, "fmm-m2l": "auto",
            "fmm-measure": "yes", "fmm-lj": "full", "fmm-lj-radius": "0", "fmm-boundary": "tinfoil", "fmm-backend": "gmxfmm"}

LOG = [
    ("the method", r"^FMM: far field by fft"),
    ("order", r"expansion order \d+"),
    ("grid of cells", r"\d+ x \d+ x \d+ cells"),
    ("separation and near atoms", r"separation [12] \(\d+ near cells, \d+ atoms\)"),
    ("expected force error", r"expected relative RMS force error \d.\de-\d+, measured \d\.\de-\d+ to \d\.\de-\d+$"),
    ("measured force error", r"^FMM: force errors measured, to \de-\d+, when atoms are assigned to cells and when they have$"),
    ("what was tried", r"^ +fft +\d+ +\d+ x \d+ x \d+ +[12] +\d\.\de-\d+ +\d\.\de-\d+ +\d\.\de-\d+ +\d\.\de-\d+ +\d+\.\d\d +\d+\.\d\d$"),
    ("device and threads", r"near and far field in single precision on the CPU, \d+ OpenMP threads?"),
    ("request to cite", r"fast multipole method for stellar dynamics"),
    ("times of the stages", r"^ *Far: +multipoles to local +[0-9.]+ s +[0-9.]+ %"),
]


def test(checks):
    folder = work_folder()
    system = regression("complex/swap_z")
    settings = changed(system.mdp, nsteps=20, nstxout=0, nstvout=0, nstfout=0, nstxout_compressed=0, **FMM)
    gmx.grompp(folder, settings, system)
    # No -ntmpi: one rank and all threads must be what mdrun chooses by itself.
    gmx("mdrun", "-s", "topol.tpr", "-deffnm", "topol", "-nb", "cpu", folder=folder)
    log = read_log(folder)
    for what, pattern in LOG:
        found = re.search(pattern, log, re.M)
        checks.that(found is not None, f"md.log: {what}: {found.group(0).strip() if found else 'not found: ' + pattern}")
    ranks = re.search(r"^Using (\d+) MPI (?:thread|process)", log, re.M)
    checks.that(ranks is not None and ranks.group(1) == "1", f"mdrun chose one rank: {ranks.group(0) if ranks else 'no line about ranks'}")
    table = log[log.find("C Y C L E"):] if "C Y C L E" in log else ""
    for line in ("near", "far"):
        found = re.search(r"^ *(FMM.*" + line + r".*)$", table, re.M | re.I)
        checks.that(found is not None, f"cycle table: {' '.join(found.group(1).split()) if found else 'no line for the ' + line + ' field'}")
    first = gmx.energies(folder, ["Coulomb (SR)", "Coul. recip."])[0]
    checks.that(first["Coulomb (SR)"] != 0 and first["Coul. recip."] != 0, f"energies: near {first['Coulomb (SR)']:.1f}, far {first['Coul. recip.']:.1f} kJ/mol")

    report = " ".join(gmx("report-methods", "-s", "topol.tpr", folder=folder).split())
    checks.that("FMM algorithm was used for electrostatic interactions. without a cut-off" in report, "gmx report-methods tells of no cut-off")

    mdout = read_mdp(folder + "/topol-out.mdp")
    for name, value in DEFAULTS.items():
        given = mdout.get(name)
        right = given is not None and (value is None or (float(given) == value if isinstance(value, (int, float)) else given.split() == value.split()))
        checks.that(right, f"mdout.mdp: {name} = {given}" + ("" if value is None else f", default {value}"))

    # Options that are set win over what the accuracy would choose.
    cube = water(gmx, folder, (2, 2, 2))
    chosen = {**FMM, "fmm-order": "9", "fmm-grid": "7 7 7", "fmm-separation": "1", "fmm-m2l": "fft"}
    gmx.grompp(folder, {**cube.mdp, **chosen}, cube, name="set")
    gmx.mdrun(folder, name="set")
    log = read_log(folder, "set")
    checks.that(re.search(r"7 x 7 x 7 cells", log) is not None, "fmm-grid = 7 7 7 is used")
    checks.that(re.search(r"expansion order 9\b", log) is not None, "fmm-order = 9 is used")


main(test)
