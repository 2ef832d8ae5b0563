#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""grompp refuses a neural-network potential of GROMACS 2026 beside coulombtype = FMM, and only that.

Usage: neural_network_potential.py TREE BUILD [JOBS]      a patched source tree, and a folder that cmake has configured for it

All of GROMACS takes 15 minutes to compile. What its grompp does with such an .mdp takes the files below: they are linked with
neural_network_potential.cpp. Whatever else they name is left unresolved, and would end the program with a crash if it were called.
"""
import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).with_suffix(".cpp")
COMPILED_LIKE = "fmm/fmmpreprocess.cpp"
FILES = [
    COMPILED_LIKE, "fmm/fmmslab.cpp", "fmm/fmmversion.cpp", "fmm/gmxfmmbackend.cpp", "fmm/gmxfmmoptions.cpp", "fmm/fmm_md*.cpp",
    "fmm/fmmforceprovider*.cpp", "fmm/fmmoptions.cpp", "applied_forces/nnpot/nnpot.cpp", "applied_forces/nnpot/nnpotoptions.cpp", "fileio/warninp.cpp",
    "mdtypes/inputrec.cpp", "mdtypes/md_enums.cpp", "options/*.cpp", "pbcutil/pbc.cpp", "utility/any.cpp", "utility/cstringutil.cpp",
    "utility/exceptions.cpp", "utility/fatalerror.cpp", "utility/gmxassert.cpp", "utility/*keyvaluetree*.cpp", "utility/smalloc.cpp",
    "utility/strconvert.cpp", "utility/stringutil.cpp"]

# coulombtype, nnpot-active: what the errors must say
CASES = [("FMM", "yes", r"FMM does not work with neural-network potentials.*nnpot-active = no.*PME"), ("FMM", "no", None), ("PME", "yes", None)]


def main():
    tree, build, jobs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), (sys.argv[3:] or ["2"])[0]
    rules = {Path(rule["file"]): rule for rule in json.loads(subprocess.check_output(("ninja", "-C", build, "-t", "compdb"), text=True))
             if rule["file"].endswith(".cpp")}
    sources = [file for pattern in FILES for file in sorted((tree / "src/gromacs").glob(pattern)) if file in rules]
    subprocess.run(("ninja", "-C", build, "-j", jobs, *(rules[file]["output"] for file in sources)), check=True)
    with tempfile.TemporaryDirectory() as scratch:
        rule = rules[tree / "src/gromacs" / COMPILED_LIKE]
        command = [PROGRAM if word == rule["file"] else f"{scratch}/program.o" if word == rule["output"] else word
                   for word in shlex.split(rule["command"])]
        command = command[:command.index("-MD")] + command[command.index("-o"):]
        subprocess.run(command, cwd=build, check=True)
        subprocess.run(("c++", "-no-pie", "-fopenmp", "-Wl,--unresolved-symbols=ignore-all", "-o", f"{scratch}/program", f"{scratch}/program.o",
                        *(build / rules[file]["output"] for file in sources)), check=True)
        failed = 0
        for coulombtype, active, pattern in CASES:
            done = subprocess.run((f"{scratch}/program", coulombtype, active), capture_output=True, text=True)
            text = " ".join(done.stderr.split())
            good = done.returncode == 0 and done.stdout == f"{1 if pattern else 0} errors\n" and re.search(pattern or "^$", text)
            failed += not good
            print(f"{'PASS' if good else 'FAIL'} coulombtype = {coulombtype}, nnpot-active = {active}: {done.stdout.strip()} {text}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
