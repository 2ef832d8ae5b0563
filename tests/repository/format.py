#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""All C, C++ and CUDA sources are as clang-format would write them: the project's by .clang-format, those that are copied
into GROMACS by GROMACS's style (gromacs-patch/.clang-format).

Usage: format.py ROOT      exit status 77 where there is no clang-format of the version that the sources are
written with (another one breaks other lines)
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDERS = ("src", "tests", "benchmarks", "examples", "python", "gromacs-patch")
SUFFIXES = (".c", ".h", ".cpp", ".cu", ".cuh")
VERSION = "14"  # Debian 12's


def main():
    root = Path(sys.argv[1])
    program = os.environ.get("CLANG_FORMAT") or shutil.which(f"clang-format-{VERSION}") or shutil.which("clang-format")
    if not program:
        print("SKIP: no clang-format here (Debian: clang-format)")
        return 77
    version = subprocess.run((program, "--version"), capture_output=True, text=True, check=True).stdout
    if re.search(r"version (\d+)", version)[1] != VERSION:
        print(f"SKIP: {version.strip()}, not {VERSION}")
        return 77
    files = sorted(str(path) for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SUFFIXES and path.is_file())
    assert len(files) > 100, "hardly any sources: is this the root of the repository?"
    found = subprocess.run((program, "--dry-run", "--Werror", "--style=file", *files), capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", found.stderr, re.M)))
    for file in wrong:
        print(f"{file}: clang-format -i would change it")
    if found.returncode and not wrong:
        print(found.stderr)
    print(f"{len(files)} files, {len(wrong)} not formatted")
    return 1 if found.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
