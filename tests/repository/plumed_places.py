#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The patches of GROMACS 2022.5 and those of PLUMED 2.9 go onto one tree, in either order, and what comes out is the same.

Usage: plumed_places.py PATCHES PLACE...

PLACE as in patches.py. Exit status 77 if there is no source of 2022.5. PLUMED's text is not here: lines of our own stand where
it inserts or replaces lines, and become a diff with five lines of context, as `plumed patch` makes it. That must apply without
fuzz, of which `plumed patch` would let everything pass: then it may end up in another function.
"""
import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

from patches import blobs, files_of, series

VERSION = "2022.5"
CONTEXT = 5

# What PLUMED 2.9.0 to 2.9.5, and 2.10, do to the files of 2022.5: (line, lines replaced from there on, lines of its own).
# Where none is replaced its own come after that line.
PLACES = {
    "src/gromacs/CMakeLists.txt": [(33, 0, 2), (332, 0, 1)],
    "src/gromacs/mdlib/expanded.cpp": [
        (33, 0, 7), (856, 1, 2), (1171, 1, 2), (1223, 1, 2), (1335, 1, 2), (1440, 12, 37), (1454, 0, 1), (1576, 0, 1), (1582, 1, 1)],
    "src/gromacs/mdlib/expanded.h": [(39, 0, 1), (46, 0, 1), (68, 0, 1), (88, 1, 2)],
    "src/gromacs/mdlib/sim_util.cpp": [(136, 0, 6), (2070, 0, 8)],
    "src/gromacs/mdrun/legacymdrunoptions.cpp": [(166, 0, 33)],
    "src/gromacs/mdrun/legacymdrunoptions.h": [(56, 0, 10), (57, 0, 1), (122, 0, 1), (169, 1, 1), (339, 0, 2)],
    "src/gromacs/mdrun/md.cpp": [
        (71, 0, 1), (155, 0, 10), (182, 1, 1), (201, 0, 8), (293, 1, 1), (782, 0, 47), (798, 0, 1), (904, 0, 1), (1025, 0, 7),
        (1081, 1, 140), (1182, 0, 22), (1211, 0, 16), (1290, 0, 1), (1922, 0, 4)],
    "src/gromacs/mdrun/minimize.cpp": [
        (88, 0, 1), (119, 0, 6), (366, 0, 1), (518, 0, 36), (1026, 0, 16), (1057, 0, 14), (1322, 0, 1), (2044, 0, 1), (2836, 0, 1),
        (3180, 0, 1)],
    "src/gromacs/mdrun/replicaexchange.cpp": [
        (71, 0, 11), (177, 5, 6), (183, 2, 3), (353, 0, 4), (362, 1, 1), (366, 0, 1), (383, 0, 2), (598, 1, 3), (622, 1, 3),
        (846, 0, 5), (958, 0, 5), (1038, 0, 25), (1047, 0, 12), (1073, 0, 3), (1078, 0, 8), (1093, 0, 9), (1275, 0, 4),
        (1401, 0, 9)],
    "src/gromacs/mdrun/replicaexchange.h": [(105, 0, 8)],
    "src/gromacs/mdrun/rerun.cpp": [(67, 0, 1), (139, 0, 6), (191, 0, 8), (426, 0, 36), (594, 0, 7), (658, 0, 19), (698, 0, 14)],
    "src/gromacs/mdrun/runner.cpp": [(177, 0, 10), (1029, 1, 1), (2119, 0, 26), (2230, 0, 6)],
    "src/gromacs/modularsimulator/expandedensembleelement.cpp": [(63, 0, 1), (70, 1, 2)],
}


def own_lines(file, place, count):
    return [f"// {Path(file).name} {place} {number} of {count}, not of GROMACS\n" for number in range(1, count + 1)]


def with_own_lines(file, text):
    lines = text.splitlines(keepends=True)
    for line, replaced, count in reversed(PLACES[file]):
        begin = line - 1 if replaced else line
        lines[begin:begin + replaced] = own_lines(file, line, count)
    return lines


def own_diff(tree):
    diff = []
    for file in PLACES:
        text = (tree / file).read_text()
        diff += difflib.unified_diff(text.splitlines(keepends=True), with_own_lines(file, text), f"a/{file}", f"b/{file}", n=CONTEXT)
    return "".join(diff)


def apply_series(patches, tree):
    found = subprocess.run((str(patches / "apply.sh"), str(tree)), capture_output=True, text=True)
    return [f"apply.sh: {found.stdout}{found.stderr}"] if found.returncode else []


def apply_own(diff, tree):
    found = subprocess.run(("patch", "-p1", "-u", "-l", "-N", "-F0", "--no-backup-if-mismatch"), input=diff, cwd=tree,
                           capture_output=True, text=True)
    return [f"patch: {found.stdout}{found.stderr}"] if found.returncode else []


def check(patches, places, scratch):
    names = {file for name in series(patches / VERSION) for file, _, _ in blobs((patches / VERSION / name).read_text())}
    unpatched, before, after = scratch / "unpatched", scratch / "before", scratch / "after"
    if not any(files_of(place, VERSION, names | set(PLACES) | {"CMakeLists.txt"}, unpatched) for place in places):
        print(f"SKIP: no source of GROMACS {VERSION} in {', '.join(places)}")
        sys.exit(77)
    for tree in (before, after):
        subprocess.run(("cp", "-r", str(unpatched), str(tree)), check=True)
    diff = own_diff(unpatched)

    problems = [f"own lines before ours: {problem}" for problem in apply_own(diff, before) + apply_series(patches, before)]
    problems += [f"own lines after ours: {problem}" for problem in apply_series(patches, after) + apply_own(diff, after)]
    if problems:
        return problems
    for file in sorted(names | set(PLACES)):
        if (before / file).read_bytes() != (after / file).read_bytes():
            problems.append(f"{file} depends on the order of the patches")
    for file, edits in PLACES.items():
        text = (before / file).read_text()
        problems += [f"{file}: the own lines at {line} are torn apart or gone" for line, _, count in edits
                     if "".join(own_lines(file, line, count)) not in text]
    return problems


def main():
    with tempfile.TemporaryDirectory() as scratch:
        problems = check(Path(sys.argv[1]), sys.argv[2:], Path(scratch))
    for problem in problems:
        print(problem)
    print(f"{sum(len(edits) for edits in PLACES.values())} places in {len(PLACES)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
