#!/usr/bin/env python3
"""The guides of docs do what they say: their commands, as they stand, one after the other, in a folder with the files that the
page writes or names."""
import os
import re
import shutil
import subprocess

from harness import NTOMP, ROOT, main, need, regression, work_folder

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
    os.makedirs(os.path.join(folder, "share"))
    os.symlink(os.path.join(ROOT, "share", "mdp"), os.path.join(folder, "share", "mdp"))
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


def first_potential(log):
    rows = log.split("Energies (kJ/mol)")[1].splitlines()
    for names, values in zip(rows, rows[1:]):
        if "Potential" in names:
            at = names.index("Potential") // 15
            return float(values[at * 15:(at + 1) * 15])
    return None


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
    status, output = follow("own-system.md", folder)
    if not checks.that(status == 0, "own-system.md: all commands from a .pdb to a comparison with PME" + ("" if status == 0 else ": " + last(output))):
        return
    checks.that(len(re.findall(r"^Potential +-\d", output, re.M)) == 2, "gmx energy gives the mean potential of both runs")
    log = read(folder, "fmm.log")
    measured = re.search(r"^ +expected relative RMS force error \S+, measured \S+ to (\S+)", log, re.M)
    checks.that(bool(measured) and float(measured[1]) <= 4e-4, f"md.log has the error measured: {measured and measured[1]}")
    fmm, pme = first_potential(log), first_potential(read(folder, "pme.log"))
    # PME is off by some 1e-3 kJ/mol an atom at its defaults, as in the table of quickstart.sh
    checks.below("potentials of the first step, FMM and PME", abs(fmm - pme), 2e-3 * 9700, "kJ/mol", "as PME's own error")


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


def test(checks):
    own_system(checks)
    free_energies(checks)
    slabs(checks)


main(test)
