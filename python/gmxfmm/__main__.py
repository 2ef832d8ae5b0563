# SPDX-License-Identifier: LGPL-2.1-or-later
"""The program gmxfmm: python -m gmxfmm, and the command that an install makes."""
import importlib.util
import os
import sys
from pathlib import Path


def find_program() -> str:
    """Path of the program that came with the package, or that GMXFMM_PROGRAM in the environment names."""
    places = [Path(__file__).resolve().parent]
    editable = importlib.util.find_spec("gmxfmm_library")  # beside an editable install
    if editable is not None and editable.origin:
        places.append(Path(editable.origin).parent)
    own = [str(place / "gmxfmm-program") for place in places]
    for path in (os.environ.get("GMXFMM_PROGRAM"), *own):
        if path and os.access(path, os.X_OK):
            return path
    sys.exit("gmxfmm: the program is not in this package: install zlib's headers and the package anew, or name it in GMXFMM_PROGRAM")


def main() -> None:
    """Becomes the program, with the arguments of this process."""
    path = find_program()
    sys.stdout.flush()
    os.execv(path, ["gmxfmm", *sys.argv[1:]])


if __name__ == "__main__":
    main()
