#!/usr/bin/env python3
"""The guides of docs do what they say: their commands, as they stand, one after the other, in a folder with the files that the
page writes or names.

Commands that need a GPU, or several, run where they are. Elsewhere gmx has to know their options, and the words behind them."""
import json
import os
import re
import shutil
import subprocess

from harness import NTOMP, ROOT, changed, charmm_water, gpus, main, need, regression, water, work_folder

gmx = need("GMXFMM_GMX")
# Of a peptide in GROMACS's test of all amino acids.
RESIDUES = range(18, 34)


def blocks(page, kind):
    with open(os.path.join(ROOT, "docs", page)) as file:
        return re.findall(rf"^```{kind}\n(.*?)^```$", file.read(), re.M | re.S)


def follow(page, folder, commands=None):
    """Runs the blocks of commands, or some of them, in one shell that stops at the first failure; returns what was printed."""
    tools = os.path.join(folder, "bin")
    os.makedirs(tools)
    os.symlink(gmx.path, os.path.join(tools, "gmx"))
    for name in ("share", "scripts"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    text = "set -eo pipefail\n" + "".join(commands or blocks(page, "sh"))
    done = subprocess.run(["bash", "-c", text], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          env={**os.environ, "PATH": tools + ":" + os.environ["PATH"], "OMP_NUM_THREADS": NTOMP, "GMX_MAXBACKUP": "-1", "GMX_NO_QUOTES": "1"})
    with open(os.path.join(folder, "page.out"), "w") as out:
        out.write(done.stdout)
    return done.returncode, done.stdout


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def read(folder, name):
    with open(os.path.join(folder, name)) as file:
        return file.read()


def last(text):
    return " ".join(text.split())[-500:]


def own_system(checks):
    folder = work_folder("own-system")
    rows = read(os.path.dirname(regression("complex/aminoacids").conf), "conf.gro").splitlines()
    atoms = [row for row in rows[2:-1] if row[:5].strip().isdigit() and int(row[:5]) in RESIDUES and row[5:8] != "SOL"
             and not row[10:15].strip().startswith("H")]  # as crystallographers have it
    write(folder, "protein.gro", "\n".join(["a peptide", str(len(atoms)), *atoms, rows[-1], ""]))
    gmx("editconf", "-f", "protein.gro", "-o", "protein.pdb", folder=folder)
    write(folder, "em.mdp", blocks("own-system.md", "text")[0])
    commands = [line for block in blocks("own-system.md", "sh") for line in block.splitlines() if line.strip() and not line.startswith((" ", "#"))]
    checks.that(len(commands) <= 10, f"own-system.md: {len(commands)} commands, at most 10")
    status, output = follow("own-system.md", folder)
    if not checks.that(status == 0, "own-system.md: all commands from a .pdb to a comparison with PME" + ("" if status == 0 else ": " + last(output))):
        return
    log = read(folder, "fmm.log")
    measured = re.search(r"^ +expected relative RMS force error \S+, measured \S+ to (\S+)", log, re.M)
    checks.that(bool(measured) and float(measured[1]) <= 4e-4, f"md.log has the error measured: {measured and measured[1]}")
    result = json.loads(read(folder, "comparison/results.json"))
    checks.that("Force error, RMS, relative" in output and "Speed" in output, "the comparison prints its table")
    checks.below("force error of FMM against the reference", result["fmm"]["force_error"], 4e-4, "", "fmm-accuracy")
    checks.below("force error of PME at its defaults", result["pme"]["force_error"], 2e-3, "", "4e-4 in water, more around a peptide")
    # PME is off by some 1e-3 kJ/mol an atom at its defaults, as in the table of quickstart.sh
    checks.below("potentials of the same frames, FMM and PME", abs(result["fmm"]["potential"] - result["pme"]["potential"]), 2e-3 * result["atoms"],
                 "kJ/mol", "as PME's own error")
    checks.that(min(result[method]["ns_per_day"] for method in ("fmm", "pme")) > 0, "both methods are timed")


def free_energies(checks):
    folder = work_folder("free-energies")
    source = os.path.dirname(regression("freeenergy/coulandvdwsequential_coul").conf)
    for name in ("topol.top", "ana.itp"):
        write(folder, name, read(source, name).replace("ASNJ", "LIG"))
    shutil.copy(os.path.join(source, "conf.gro"), folder)
    write(folder, "decouple.mdp", blocks("free-energies.md", "text")[0])
    status, output = follow("free-energies.md", folder)
    total = re.search(r"^total +0 - +10, +DG +(\S+)", output, re.M)
    # 39 kJ/mol by long runs of other lambdas and another box; of 2 ps only that it is no nonsense
    checks.that(status == 0 and bool(total) and 20 < float(total[1]) < 80, "free-energies.md: 11 states and BAR: " + (f"{total[1]} kJ/mol" if total else last(output)))
    checks.that("9 atoms have perturbed charges" in read(folder, "lambda0.log"), "md.log tells of perturbed charges")


def slabs(checks):
    folder = work_folder("slabs")
    for name, text in zip(("topol.top", "em.mdp"), blocks("slabs.md", "text")):
        write(folder, name, text)
    status, output = follow("slabs.md", folder)
    checks.that(status == 0, "slabs.md: a film of water" + ("" if status == 0 else ": " + last(output)))
    checks.that("periodic along x and y, open along z" in read(folder, "film.log"), "md.log says that it is a slab")


def lennard_jones(checks):
    folder = work_folder("lennard-jones")
    charmm_water(gmx, folder, (2, 2, 2))
    write(folder, "split.mdp", blocks("lennard-jones.md", "text")[0])
    status, output = follow("lennard-jones.md", folder)
    checks.that(status == 0, "lennard-jones.md: CHARMM's water with groups" + ("" if status == 0 else ": " + last(output)))
    checks.that("Lennard-Jones interactions are split" in read(folder, "split.log"), "md.log tells of the split")


def unknown_to_mdrun(command):
    """The options of a command that gmx mdrun does not have, and words that they do not take."""
    text = gmx.run(["mdrun", "-h"], "/tmp", log=False)[1]
    words, unknown = command.split()[2:], []
    for option, value in zip(words, words[1:] + [""]):
        if option.startswith("-"):
            found = re.search(rf"^ {option} +<(\w+)>.*\n((?: {{8,}}.*\n)+)", text, re.M)
            taken = {"enum": lambda: value in re.split(r"[:,\s]+", found[2]), "int": value.isdigit}
            if not found or not taken.get(found[1], lambda: True)():
                unknown.append(f"{option} {value}")
    return unknown


def gpus_and_ranks(checks):
    folder = work_folder("gpus-and-ranks")
    system = water(gmx, folder, (2, 2, 2))
    gmx.grompp(folder, changed(system.mdp, coulombtype="FMM", nsteps=20), system)
    devices = len(gpus()) if shutil.which("nvidia-smi") else 0
    number = 0
    for command in "".join(blocks("gpus-and-ranks.md", "sh")).splitlines():
        several = re.search(r"-fmmgpus (\d+)", command)
        needed = int(several[1]) if several else 1 if "gpu" in command else 0
        unknown = unknown_to_mdrun(command)
        checks.that(not unknown, f"mdrun knows the options of '{command}'" + "".join(f", but not {what}" for what in unknown))
        if needed > devices:
            print(f"not run, as it needs {needed} of {devices} GPUs: {command}")
            continue
        number += 1
        status, output = follow("gpus-and-ranks.md", os.path.join(folder, str(number)), [f"cp ../topol.tpr .\n{command}\n"])
        checks.that(status == 0, f"gpus-and-ranks.md: {command}" + ("" if status == 0 else ": " + last(output)))
        checks.that("near and far field in" in read(folder, f"{number}/md.log"), "  and md.log tells of the FMM")
    checks.that(number >= 2, f"{number} commands of gpus-and-ranks.md were run")


def test(checks):
    own_system(checks)
    free_energies(checks)
    slabs(checks)
    lennard_jones(checks)
    gpus_and_ranks(checks)


main(test)
