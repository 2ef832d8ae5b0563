#!/usr/bin/env python3
"""A GPU's part of a plan stays as it is divided: so many objects, files and lines, no flags of who waits for whom, and no
words that nobody else has.

Usage: device.py ROOT
"""
import re
import sys
from pathlib import Path

from includes import without_comments

FLAGS = r"_in_graph|_pending|has_room|left_cells"  # a version says that
PRIVATE = r"(?:->|\.)(?:loaded|turns|places|part)\b|\bfmm_has_places\b|\w_door\b"  # members; GROMACS and the literature have others
SEVERAL = ("src/cuda/devices/*", "src/cuda/near/range.h", "src/cuda/runtime/copy_rows.h")  # of a step on several GPUs


def members_of(text, struct):
    """Names of the members of a struct, in their order."""
    body = re.search(rf"^struct {struct}\n{{\n(.*?)^}};", without_comments(text), re.M | re.S)[1]
    return [re.match(r"\W*(\w+)", name)[1] for line in body.split(";")
            for name in re.sub(r"^\s*(?:const\s+)?\w+", "", line).split(",") if name.strip()]


def lines(paths):
    return sum(path.read_text().count("\n") for path in paths)


def touched(text, members):
    """Members of a GPU that a file names."""
    return {name for name in re.findall(r"\bd(?:evice)?->(\w+)", text) if name in members}


def main():
    root = Path(sys.argv[1])
    cuda = root / "src/cuda"
    state = (cuda / "state.h").read_text()
    table = (root / "tests/repository/includes.txt").read_text()
    members = members_of(state, "fmm_device")
    sources = [path for path in cuda.rglob("*") if path.suffix in (".h", ".cu") and "treecode" not in path.parts]
    several = [path for pattern in SEVERAL for path in root.glob(pattern)]
    assert several and "schedule" in members, "another layout"
    counts = [  # what, how many, at least, at most
        ("members of struct fmm_device", len(members), 8, 16),
        ("flags in state.h", len(re.findall(FLAGS, state)), 0, 0),
        ("lines of execute.cu", lines([cuda / "execute.cu"]), 1, 220),
        ("lines of several GPUs", lines(several), 1, 1150),
        ("files that touch more than 12 members", sum(len(touched(path.read_text(), members)) > 12 for path in sources), 0, 3),
        ("rows of single files of cuda", len(re.findall(r"^cuda/\S+\.(?:h|cu)\b", table, re.M)), 1, 5),
        ("rows of who writes a GPU's objects", len(re.findall(r"^@ device->", table, re.M)), 5, 100),
        ("private words", sum(len(re.findall(PRIVATE, without_comments(path.read_text())))
                              for path in (root / "src").rglob("*.[ch]*")), 0, 0),
    ]
    wrong = [count for count in counts if not count[2] <= count[1] <= count[3]]
    for what, number, least, most in counts:
        print(f"{'ok    ' if least <= number <= most else 'FAILED'} {number} {what}, allowed is {least} to {most}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
