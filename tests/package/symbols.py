#!/usr/bin/env python3
"""Checks that the shared library exports what the public headers declare, and nothing else.

Usage: symbols.py NM LIBRARY HEADER...
"""
import os
import re
import subprocess
import sys


def main():
    nm, library, *headers = sys.argv[1:]
    declared = set()
    for header in headers:
        text = re.sub(r"/\*.*?\*/", "", open(header).read(), flags=re.S)
        found = set(re.findall(r"GMXFMM_API[^;(]*?\b(gmxfmm_\w+)\(", text))
        least = 4 if os.path.basename(header) == "gmxfmm_parallel.h" else 5
        assert len(found) >= least, f"{header} has lost its declarations"
        declared |= found
    lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in lines.splitlines()}
    assert len(declared) > 20, "the headers have lost their declarations"
    missing, more = sorted(declared - exported), sorted(exported - declared)
    if missing or more:
        sys.exit(f"not exported: {missing}; exported, but in no header: {more}")
    print(f"{len(exported)} symbols")


if __name__ == "__main__":
    main()
