#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The GROMACS patches are as `git format-patch` writes them, follow from one another, and `git am -3` takes them.

Usage: patches.py PATCHES                       headers, and that each patch begins with the files that those before it leave
       patches.py PATCHES VERSION PLACE...      git am -3 on the source of that version, and apply.sh gives the same
       patches.py --write PATCHES VERSION PLACE...   after an edit by hand: writes the series anew, as git format-patch does

PLACE: an unpatched tree, a tarball, or a folder with one of these; the first in which there is a source counts. Exit status
77 if there is none.
"""
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FORMAT_PATCH = ("format-patch", "-k", "-U1", "--zero-commit", "--no-stat", "--no-signature", "--abbrev=10", "-o")
MOST_SUBJECT = 72  # git log shows it in one line of a terminal


def series(folder):
    return (folder / "series").read_text().split()


def check_header(path):
    """What git mailinfo reads: the From line, author, date, subject, and a body that says why."""
    head, _, body = path.read_text().partition("\n\n")
    lines = head.split("\n")
    problems = []
    if not re.fullmatch(r"From [0-9a-f]{40} Mon Sep 17 00:00:00 2001", lines[0]):
        problems.append("does not begin as git format-patch begins")
    for field in ("From: .+ <.+>", r"Date: \w+, \d+ \w+ \d{4} [\d:]+ [+-]\d{4}", "Subject: .+"):
        if not any(re.fullmatch(field, line) for line in lines[1:]):
            problems.append(f"has no header line '{field}'")
    subject = [line[len("Subject: "):] for line in lines if line.startswith("Subject: ")]
    if subject and len(subject[0]) > MOST_SUBJECT:
        problems.append(f"has a subject of {len(subject[0])} characters, at most {MOST_SUBJECT} are wanted")
    if body.startswith("diff --git"):
        problems.append("has no body that says why")
    return [f"{path}: {problem}" for problem in problems]


def blobs(text):
    """(file, blob before, blob after) of each file in a patch."""
    return [(match[1], match[2], match[3])
            for match in re.finditer(r"^diff --git a/(\S+) b/\1\nindex ([0-9a-f]+)\.\.([0-9a-f]+)", text, re.M)]


def check_series(folder):
    names, problems, left = series(folder), [], {}
    if sorted(names) != sorted(path.name for path in folder.glob("*.patch")):
        problems.append(f"{folder}/series does not list the patches that are there")
    for name in names:
        path = folder / name
        problems += check_header(path)
        text = path.read_text()
        if len(blobs(text)) != len(re.findall("^diff --git", text, re.M)):
            problems.append(f"{path}: a file without an index line, by which git am -3 finds what it was made for")
        for file, before, after in blobs(text):
            if left.get(file, before) != before:
                problems.append(f"{path}: made for {file} {before}, but the patches before it leave {left[file]}")
            left[file] = after
    return problems, left


def git(tree, *arguments):
    identity = ("-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "core.autocrlf=false", "-c", "commit.gpgsign=false")
    return subprocess.run(("git", *identity, "-C", str(tree), *arguments), capture_output=True, text=True)


def files_of(place, version, names, tree):
    """Copies these files of an unpatched source into a tree; False if there is none at this place."""
    place = Path(place)
    if (place / "CMakeLists.txt").is_file():
        if f"Gromacs VERSION {version}" not in (place / "CMakeLists.txt").read_text() or (place / ".gmxfmm-patched").exists():
            return False
        for name in names:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((place / name).read_bytes())
        return True
    if place.is_dir():
        inside = [path for path in sorted(place.iterdir()) if version in path.name and "regressiontests" not in path.name
                  and "debian" not in path.name and (path.is_dir() or ".tar." in path.name)]
        return any(files_of(path, version, names, tree) for path in inside)
    if not place.is_file():
        return False
    with tarfile.open(place) as archive:
        for member in archive:
            name = member.name.partition("/")[2]
            if name in names:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_bytes(archive.extractfile(member).read())
    return True


def check_am(patches, version, places, scratch, write):
    folder, problems = patches / version, []
    _, left = check_series(folder)
    tree, other = scratch / "am", scratch / "apply"
    if not any(files_of(place, version, set(left) | {"CMakeLists.txt"}, tree) for place in places):
        print(f"SKIP: no source of GROMACS {version} in {', '.join(places)}")
        sys.exit(77)
    subprocess.run(("cp", "-r", str(tree), str(other)), check=True)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "unpatched")
    found = git(tree, "am", "-3", *(str((folder / name).resolve()) for name in series(folder)))
    if found.returncode:
        problems.append(f"git am -3: {found.stdout}{found.stderr}")
    written = sorted(Path(line) for line in git(tree, *FORMAT_PATCH, str(scratch / "out"), "--root").stdout.split())[1:]
    for name, path in zip(series(folder), written):
        if write and not problems:
            (folder / name).write_text(path.read_text())
        if not problems and path.read_text() != (folder / name).read_text():
            problems.append(f"{folder / name} is not what git format-patch writes (gromacs-patch/README.md)")
    if write and not problems:
        return []
    for file, blob in left.items():
        now = git(tree, "hash-object", "--no-filters", file).stdout.strip()
        if not problems and not now.startswith(blob):
            problems.append(f"{file} is {now} after git am -3, but the last index line that names it says {blob}")
    applied = subprocess.run((str(patches / "apply.sh"), str(other)), capture_output=True, text=True)
    if applied.returncode:
        problems.append(f"apply.sh: {applied.stdout}{applied.stderr}")
    for file in left:
        if not problems and (tree / file).read_bytes() != (other / file).read_bytes():
            problems.append(f"{file} differs between git am -3 and apply.sh")
    return problems


def main():
    write = sys.argv[1] == "--write"
    if write:
        sys.argv.pop(1)
    patches = Path(sys.argv[1])
    if len(sys.argv) == 2:
        versions = sorted(path.parent for path in patches.glob("*/series"))
        problems = [problem for folder in versions for problem in check_series(folder)[0]]
    else:
        with tempfile.TemporaryDirectory() as scratch:
            os.environ["GIT_CEILING_DIRECTORIES"] = scratch
            problems = check_am(patches, sys.argv[2], sys.argv[3:], Path(scratch), write)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
