#!/usr/bin/env python3
"""Checks what the files below src include against the table in includes.txt, and that there are no circles.

Usage: includes.py SRC TABLE

A row of the table is a folder of SRC, or a file of its own: what it may include. A folder may include its own files, a row
only rows above it: so there are no circles between them, and files of one row are looked at one by one.
"""
import re
import sys
from pathlib import Path


def read_table(path):
    table = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            unit, _, allowed = line.partition(":")
            table[unit.strip()] = allowed.split()
    return table


def unit_of(name, table):
    """The row that a file belongs to: its own, or its folder's."""
    return name if name in table else name.rpartition("/")[0]


def includes_of(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)


def find_circle(graph):
    done, trail = set(), []

    def visit(name):
        if name in trail:
            return trail[trail.index(name):] + [name]
        if name in done:
            return None
        trail.append(name)
        for other in graph.get(name, []):
            circle = visit(other)
            if circle:
                return circle
        trail.pop()
        done.add(name)
        return None

    for name in graph:
        circle = visit(name)
        if circle:
            return circle
    return None


def main():
    src, table = Path(sys.argv[1]), read_table(Path(sys.argv[2]))
    errors, rows = [], list(table)
    for row, allowed in table.items():
        for other in allowed:
            if other not in rows:
                errors.append(f"table: {row} names {other}, which is not a row")
            elif rows.index(other) >= rows.index(row):
                errors.append(f"table: {row} may include {other}, which does not stand above it")
    graph = {}
    for path in sorted(src.rglob("*")):
        if path.suffix not in (".h", ".c", ".cu", ".cpp"):
            continue
        name = path.relative_to(src).as_posix()
        row = unit_of(name, table)
        if row not in table:
            errors.append(f"{name}: the table has no row for {row}")
            continue
        graph[name] = []
        for include in includes_of(path):
            beside = (path.parent / include).resolve()
            if "/" not in include and beside.exists():
                include = beside.relative_to(src.resolve()).as_posix()
            elif include == "gmxfmm.h":
                include = "fmm/gmxfmm.h"  # the installed header, as any other program has it
            elif not (src / include).exists():
                errors.append(f'{name}: includes "{include}", which is not a path from src')
                continue
            graph[name].append(include)
            other = unit_of(include, table)
            if other != row and other not in table[row]:
                errors.append(f'{name}: {row} must not include {other} ("{include}")')
    circle = find_circle(graph)
    if circle:
        errors.append("a circle of includes: " + " -> ".join(circle))
    for error in errors:
        print(error)
    print(f"{len(graph)} files, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
