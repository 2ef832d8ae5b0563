#!/usr/bin/env python3
"""What FMM does not support ends with an error that names the cause, at grompp where that can know; nothing is ignored."""
import os
import re

from harness import FMM, changed, complaint, main, need, read_log, regression, version, water, work_folder, write_mdp

gmx = need("GMXFMM_GMX")

# Settings beside coulombtype = FMM, and what the error must say.
AT_GROMPP = [
    ({"vdwtype": "PME"}, r"vdw-?type|LJ-PME"),
    ({"ewald-geometry": "3dc"}, r"ewald-geometry.*pbc = xy"),
    ({"epsilon-surface": "1"}, r"epsilon-surface.*fmm-boundary"),
    ({"nwall": "2", "wall-atomtype": "opls_116 opls_116", "wall-density": "30 30"}, r"walls only work with pbc=xy"),
    ({"pbc": "screw"}, r"pbc"),
    ({"integrator": "tpi"}, r"TPI|[Tt]est.?particle"),
    ({"integrator": "tpic"}, r"TPI|[Tt]est.?particle"),
    ({"integrator": "mimic"}, r"(?i)mimic"),
    ({"coulomb-modifier": "Potential-switch"}, r"coulomb-modifier"),
    ({"fmm-boundary": "vacuum", "periodic-molecules": "yes"}, r"fmm-boundary.*periodic|periodic.*fmm-boundary"),
    ({"mts": "yes", "mts-level2-forces": "nonbonded", "mts-level2-factor": "2"}, r"long-range.*mts-level2-forces"),
    ({"energygrps": "Water Ion", "energygrp-excl": "Ion Ion"}, r"energygrp-excl"),
    ({"integrator": "nm"}, r"(?i)normal.mode"),
    ({"fmm-accuracy": "0"}, r"fmm-accuracy"),
    ({"fmm-accuracy": "0.5"}, r"fmm-accuracy"),
    ({"fmm-order": "21"}, r"fmm-order"),
    ({"fmm-order": "-1"}, r"fmm-order"),
    ({"fmm-grid": "4 4"}, r"fmm-grid"),
    ({"fmm-grid": "4 -4 4"}, r"fmm-grid"),
    ({"fmm-separation": "3"}, r"fmm-separation"),
    ({"fmm-m2l": "fastest"}, r"fmm-m2l"),
    ({"fmm-m2l": "rotation", "fmm-grid": "4 4 5"}, r"fmm-grid = 4 4 5.*multiples of 2"),
    ({"fmm-m2l": "rotation", "fmm-tree-depth": "10"}, r"fmm-tree-depth"),
    ({"fmm-tree-depth": "3"}, r"fmm-tree-depth.*fmm-m2l = rotation"),
    # What these leave to choose does not reach the accuracy: found by measuring, as mdrun does
    ({"fmm-order": "6"}, r"fmm-accuracy = 0.0004.*out of reach.*fmm-measure = no"),
    # Cells of 0.06 nm, which atoms leave at once
    ({"fmm-m2l": "rotation", "fmm-tree-depth": "5", "fmm-order": "4"}, r"cells are too small.*after 0.05 ps more.*fmm-tree-depth"),
    ({"fmm-m2l": "rotation", "deform": "0 0 0 0.01 0 0"}, r"rectangular box.*deform.*fmm-m2l = fft"),
    ({"fmm-m2l": "rotation", "pcoupl": "Parrinello-Rahman", "pcoupltype": "anisotropic", "ref-p": "1 1 1 0 0 0",
      "compressibility": "4.5e-5 4.5e-5 4.5e-5 0 0 4.5e-5"}, r"rectangular box.*compressibility.*fmm-m2l = fft"),
    ({"fmm-boundary": "water"}, r"fmm-boundary"),
    ({"fmm-lj": "some"}, r"fmm-lj.*full, split"),
    ({"fmm-lj-radius": "0.6"}, r"fmm-lj-radius.*fmm-lj = split"),
    ({"fmm-lj": "split", "fmm-lj-radius": "0.3"}, r"fmm-lj-radius = 0.3.*0.4 at least, or 0 for automatic"),
    ({"fmm-lj": "split", "fmm-lj-radius": "0.9"}, r"fmm-lj-radius beyond rvdw"),
    ({"fmm-backend": "other"}, r"fmm-backend|other"),
    ({"fmm-acuracy": "1e-4"}, r"fmm-acuracy"),
    # Names that another GROMACS with an FMM has: beside the warning a note tells what to use
    ({"fmm-override-multipole-order": "8"}, r"NOTE.*'fmm-override-multipole-order' is an option of another GROMACS.*Use fmm-order.*Unknown left-hand"),
    ({"fmm_override_tree_depth": "1"}, r"NOTE.*'fmm_override_tree_depth' is an option of another GROMACS.*Use fmm-tree-depth.*Unknown left-hand"),
    ({"fmm-sparse": "no"}, r"NOTE.*'fmm-sparse' is an option of another GROMACS.*fmm-m2l.*Unknown left-hand"),
    # The options belong to coulombtype = FMM; elsewhere they would do nothing.
    ({"coulombtype": "PME", "fmm-order": "8"}, r"fmm-order"),
]

# Of these grompp warns as of every misspelt option
UNKNOWN = {"fmm-acuracy", "fmm-override-multipole-order", "fmm_override_tree_depth", "fmm-sparse"}

# Of GROMACS 2026.3 alone
AT_GROMPP_2026 = [
    ({"nnpot-active": "yes", "nnpot-modelfile": "model.pt", "nnpot-input-group": "System"}, r"FMM.*neural-network potentials.*PME"),
]

# With settings of the .mdp beside those of a good run, which grompp cannot refuse: it does not know where the run will be made
AT_MDRUN = [
    ({}, ["-ntmpi", "3", "-npme", "1"], r"-npme 1.*no PME.*Leave -npme out"),
    ({}, ["-ntmpi", "2", "-fmm", "gpu"], r"-fmm gpu.*nonbonded interactions do not run on the GPU|-fmm gpu.*no CUDA support"),
    ({}, ["-ntmpi", "2", "-pme", "gpu"], r"-fmm gpu.*nonbonded interactions do not run on the GPU|-fmm gpu.*no CUDA support"),
    ({}, ["-ntmpi", "2", "-fmmgpus", "2"], r"-fmmgpus 2.*on several ranks.*Leave -fmmgpus out"),
    ({"pbc": "no", "comm-mode": "angular", "dispcorr": "no"}, ["-ntmpi", "2"], r"pbc = no runs on one rank only.*-ntmpi 1.*-ntomp"),
    ({"pbc": "xy", "dispcorr": "no"}, ["-ntmpi", "2", "-fmm", "gpu"], r"pbc = xy runs on GPUs of one rank only.*-ntmpi 1.*-nb cpu"),
    ({"pbc": "xy", "dispcorr": "no"}, ["-ntmpi", "2", "-dd", "1", "1", "2"], r"-dd with 2 along z.*nothing bounds.*Give 1 as the last number"),
    ({"fmm-boundary": "vacuum"}, ["-ntmpi", "2"], r"fmm-boundary = vacuum runs on one rank only.*-ntmpi 1.*-ntomp"),
    ({}, ["-fmm", "gpu"], r"-fmm gpu.*nonbonded interactions do not run on the GPU|-fmm gpu.*no CUDA support"),
    # As job scripts have it
    ({}, ["-pme", "gpu", "-bonded", "auto"], r"-fmm gpu.*nonbonded interactions do not run on the GPU|-fmm gpu.*no CUDA support"),
    ({}, ["-pme", "gpu", "-fmm", "cpu"], r"-pme gpu contradicts -fmm cpu"),
    ({}, ["-pme", "cpu", "-fmm", "gpu"], r"-pme cpu contradicts -fmm gpu"),
    ({"coulombtype": "PME"}, ["-fmm", "gpu"], r"-fmm gpu.*coulombtype is not FMM"),
    ({"fmm-m2l": "dynamic"}, [], r"m2l = dynamic needs a GPU"),
    ({}, ["-fmmgpus", "2"], r"-fmmgpus.*does not run on a GPU"),
    ({}, ["-fmmgpus", "1", "-fmm", "cpu"], r"-fmmgpus.*does not run on a GPU.*no -fmm cpu"),
    ({}, ["-fmmgpus", "-1"], r"-fmmgpus -1.*ask for 1 to 8"),
    ({}, ["-fmmgpus", "9"], r"-fmmgpus 9.*ask for 1 to 8"),
    ({"coulombtype": "PME"}, ["-fmmgpus", "2"], r"-fmmgpus.*coulombtype = FMM"),
]


def test(checks):
    folder = work_folder()
    system = water(gmx, folder, (1, 1, 1), sodium=1)
    system.mdp = changed(system.mdp, rcoulomb=0.8, rvdw=0.8, nsteps=10)
    command = ["grompp", "-f", "bad.mdp", "-po", "bad-out.mdp", "-c", system.conf, "-r", system.conf, "-p", system.top, "-o", "bad.tpr"]
    for settings, pattern in AT_GROMPP + (AT_GROMPP_2026 if version(gmx).startswith("2026") else []):
        if os.path.exists(folder + "/bad.tpr"):
            os.remove(folder + "/bad.tpr")
        write_mdp(folder + "/bad.mdp", {**system.mdp, **FMM, **settings})
        # An unknown key is a warning to grompp, as every misspelt option: enough to stop it, unless -maxwarn says otherwise.
        unknown = settings.get("coulombtype") == "PME" or not UNKNOWN.isdisjoint(settings)
        status, output = gmx.run(command + ["-maxwarn", "1" if unknown else "9"], folder)
        # One warning is always there, for the net charge of this system, so that -maxwarn 1 lets no other pass.
        text = " ".join(output.split()) if unknown else complaint(output)
        what = ", ".join(f"{k} = {v}" for k, v in settings.items())
        stopped = status != 0 and not os.path.exists(folder + "/bad.tpr")
        if checks.that(stopped, f"grompp refuses {what}"):
            checks.that(re.search(pattern, text) is not None, f"  and says why (/{pattern}/): {'...' if unknown else text[:300]}")

    skewed = regression("complex/octahedron")
    for method in ("rotation", "symmetric", "naive"):
        write_mdp(folder + "/bad.mdp", {**skewed.mdp, **FMM, "fmm-m2l": method})
        status, output = gmx.run(["grompp", "-f", "bad.mdp", "-c", skewed.conf, "-p", skewed.top, "-o", "bad.tpr", "-maxwarn", "9"], folder)
        text = complaint(output)
        checks.that(status != 0 and re.search(r"rectangular.*fft|fft.*rectangular", text) is not None,
                    f"grompp refuses fmm-m2l = {method} in a truncated octahedron, and says why: {text[:300]}")

    for settings, options, pattern in AT_MDRUN:
        gmx.grompp(folder, {**system.mdp, **FMM, **settings}, system, name="good")
        status, output = gmx.run(["mdrun", "-s", "good.tpr", "-deffnm", "good", "-nb", "cpu", *options], folder)
        what = " ".join([f"{k} = {v}" for k, v in settings.items()] + options)
        if checks.that(status != 0, f"mdrun refuses {what}"):
            text = complaint(output)
            checks.that(re.search(pattern, text) is not None, f"  and says why (/{pattern}/): {text[:300]}")

    # What was meant for PME is taken for the FMM, with one note
    gmx.grompp(folder, {**system.mdp, **FMM}, system, name="options")
    for options, noted in ((["-pme", "cpu"], "-pme cpu means -fmm cpu."), (["-pme", "cpu", "-fmm", "cpu"], "-pme cpu means -fmm cpu."),
                           (["-pmefft", "gpu"], "-pmefft gpu has no effect."), (["-pme", "auto", "-fmm", "cpu"], None),
                           (["-pme", "cpu", "-pmefft", "cpu"], "-pme cpu means -fmm cpu. -pmefft cpu has no effect.")):
        output = gmx.mdrun(folder, *options, name="options")
        for where, text in (("on stderr", output), ("in md.log", read_log(folder, "options"))):
            notes = " ".join(text.split()).split("NOTE: with coulombtype = FMM there is no PME: ")[1:]
            checks.that(len(notes) == (noted is not None) and (noted is None or notes[0].startswith(noted)),
                        f"mdrun {' '.join(options)} runs, with {'one' if noted else 'no'} note {where}: {notes[0][:80] if notes else ''}")

    # Good when atoms have just been assigned to cells of 0.12 nm, not when they have moved: said before the first step
    for settings, warned in (({"fmm-grid": "16 16 16", "fmm-order": "10"}, True),
                             ({"fmm-grid": "16 16 16", "fmm-order": "10", "integrator": "steep"}, False), ({}, False)):
        gmx.grompp(folder, {**system.mdp, **FMM, **settings}, system, name="cells")
        output = gmx.mdrun(folder, name="cells")
        for where, text in (("on stderr", output), ("in md.log", read_log(folder, "cells"))):
            warning = text.find("WARNING: With these FMM parameters")
            what = ", ".join(f"{k} = {v}" for k, v in settings.items()) or "all automatic"
            checks.that(0 <= warning < max(text.find("starting mdrun"), text.find("Started mdrun")) if warned else warning < 0,
                        f"{what}: {'a' if warned else 'no'} warning {where} of errors when atoms move")

    thermostat = {"tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "1", "ref-t": "300"}
    coarse = {"fmm-order": "8", "fmm-grid": "4 4 4", "fmm-measure": "no"} # errors of 4e-4; what is chosen for so small a system has 5e-5
    for settings, noted in ((coarse, True), ({**coarse, "integrator": "md-vv"}, True), ({}, False), ({**coarse, **thermostat}, False),
                            ({**coarse, "integrator": "steep"}, False)):
        output = " ".join(gmx.grompp(folder, {**system.mdp, **FMM, **settings}, system, name="heating").split())
        note = re.search(r"NOTE \d+[^:]*: Without temperature coupling, .{0,80} let the energy of water drift by some \S+ kJ/mol/ps per atom.*?fmm-accuracy = 5e-05", output)
        checks.that((note is not None) == noted, f"{settings or 'all automatic'}: grompp notes{'' if noted else ' not'} what errors of the forces "
                    f"do without a thermostat{': ' + note.group(0) if note else ''}")

    system = water(gmx, work_folder("ions"), (1, 1, 1), sodium=2)
    output = gmx.grompp(folder, {**system.mdp, **FMM, "fmm-boundary": "vacuum"}, system, name="ions")
    checks.that("WARNING" in output and "all molecules should be neutral" in " ".join(output.split()),
                "free ions in a vacuum boundary: grompp warns of jumps of the energy")


main(test)
