#!/usr/bin/env python3
"""Grids of the program gmxfmm: .dx and .cube read back as a viewer does, against sums and against --targets.

Usage: program_grids.py PROGRAM
"""
import gzip
import math
import os
import sys
import tempfile

from program_files import BOX, HEADER, check, counts, field_at, ions, refused, run, table, text_of, value, write

BOHR = 0.529177210903  # in Angstrom, CODATA 2018


def points_of(count, origin, step):
    """Places of a grid, the third axis being the fastest."""
    return [[origin[e] + i * step[0][e] + j * step[1][e] + k * step[2][e] for e in range(3)]
            for i in range(count[0]) for j in range(count[1]) for k in range(count[2])]


def read_dx(name):
    """Counts, origin, steps and values, from the lines that APBS writes and readers ask for."""
    lines = (gzip.open if name.endswith(".gz") else open)(name, "rt").read().splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    count = list(map(int, lines[0].split()[5:]))
    check(f"{name}: lines of OpenDX", lines[0].startswith("object 1 class gridpositions counts ")
          and lines[5] == lines[0].replace("object 1 class gridpositions", "object 2 class gridconnections")
          and lines[6] == f"object 3 class array type double rank 0 items {math.prod(count)} data follows"
          and lines[-5:] == ['attribute "dep" string "positions"', 'object "regular positions regular connections" class field',
                             'component "positions" value 1', 'component "connections" value 2', 'component "data" value 3'])
    check(f"{name}: three values a line", all(len(line.split()) == 3 for line in lines[7:-6]))
    origin, *step = (list(map(float, line.split()[1:])) for line in lines[1:5])
    return count, origin, step, [float(word) for line in lines[7:-5] for word in line.split()]


def read_cube(name):
    """The same in Angstrom, and the rows of atoms."""
    lines = open(name).read().splitlines()
    head = [list(map(float, line.split())) for line in lines[2:6]]
    num = int(head[0][0])
    atoms = [list(map(float, line.split())) for line in lines[6:6 + num]]
    count = [int(row[0]) for row in head[1:]]
    per_row = (count[2] + 5) // 6
    check(f"{name}: rows along z begin lines", len(lines) == 6 + num + count[0] * count[1] * per_row)
    return count, [x * BOHR for x in head[0][1:]], [[x * BOHR for x in row[1:]] for row in head[1:]], \
        [float(word) for line in lines[6 + num:] for word in line.split()], atoms


def differ(values, others):
    return max(abs(a - b) for a, b in zip(values, others)) if len(values) == len(others) else math.inf


def in_a_box(rows):
    """A triclinic box: what --targets gives at the same places, and no point twice."""
    write("ions.txt", text_of(rows, HEADER))
    done = run("solve", "ions.txt", "--accuracy", "1e-9", "--grid-targets", "0.9", "--output", "pot.dx")
    check("a grid in a box is solved", done.returncode == 0 and done.stderr == "")
    count, origin, step, values = read_dx("pot.dx")
    lengths = [math.dist(BOX[k:k + 3], (0, 0, 0)) for k in (0, 3, 6)]
    check("as many steps as a vector needs", count == [math.ceil(length / 0.9) for length in lengths])
    check("from the origin along the box", origin == [0, 0, 0]
          and all(abs(n * s - b) < 1e-12 for n, row, k in zip(count, step, (0, 3, 6)) for s, b in zip(row, BOX[k:k + 3])))
    check("the targets are counted", value(done, "targets") == str(math.prod(count)) == str(len(values)))
    write("points.txt", text_of(points_of(count, origin, step)))
    run("solve", "ions.txt", "--accuracy", "1e-9", "--targets", "points.txt", "--output", "points.out.txt")
    # the same sums at the same places, which differ by rounding
    check("the values of --targets", differ(values, [row[3] for row in table("points.out.txt")]) < 1e-11)
    run("solve", "ions.txt", "--accuracy", "1e-9", "--grid-targets=0.9", "--output", "pot.dx.gz", "--units", "eV")
    check("a gzipped one, in eV", differ([14.3996454784 * v for v in values], read_dx("pot.dx.gz")[3]) < 1e-9)
    # five digits behind the first, of values below 100
    run("solve", "ions.txt", "--accuracy", "1e-9", "--grid-targets", "0.9", "--output", "pot.cube")
    in_cube = read_cube("pot.cube")
    check("the cube has the grid", in_cube[0] == count and max(map(abs, in_cube[1])) == 0
          and all(differ(a, b) < 1e-6 for a, b in zip(in_cube[2], step)))
    check("... and the values", all(abs(a - b) <= 5.1e-6 * abs(b) + 1e-12 for a, b in zip(in_cube[3], values)))
    check("... and charges without an element", [row[0] for row in in_cube[4]] == [0] * len(rows))
    check("... and says in which unit", "charge/length" in open("pot.cube").readline())


def around_a_molecule():
    """An open system: sums over all charges, elements, and points where charges stand."""
    write("molecule.pqr", "ATOM 1 N GLY 1 0 0 0 -0.4 1.8\nATOM 2 CA GLY 1 1.5 0 0 0.3 1.7\nATOM 3 1HA GLY 1 1.9 1 0.2 0.1 1\n"
                          "HETATM 4 CL CL 2 4.25 0.5 1 -1 1.8\nHETATM 5 Br1 LIG 3 -3 0.25 1 0.1 1.8\nATOM 6 XX GLY 1 0 -3 0 0.2 1\n")
    rows = [(0, 0, 0, -0.4), (1.5, 0, 0, 0.3), (1.9, 1, 0.2, 0.1), (4.25, 0.5, 1, -1), (-3, 0.25, 1, 0.1), (0, -3, 0, 0.2)]
    for name in ("m.dx", "m.cube"):
        done = run("solve", "molecule.pqr", "--accuracy", "1e-9", "--grid-targets", "0.5", "--output", name, "--units", "kcal/mol")
        check(f"{name} is written", done.returncode == 0)
    check("the cube says the unit", "kcal/mol/e" in open("m.cube").readline() and "kcal/mol/e" in open("m.dx").readline())
    count, origin, step, values = read_dx("m.dx")
    places = points_of(count, origin, step)
    check("open: the step is the one given", step == [[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]])
    # 5 steps are more than a quarter of the longest edge, 7.25
    check("open: the margin is there", all(min(r[e] for r in rows) - min(p[e] for p in places) >= 2.5 - 1e-9
                                           and max(p[e] for p in places) - max(r[e] for r in rows) >= 2.5 - 1e-9 for e in range(3)))
    sums = [1389.35457644 / 4.184 * field_at(place, rows)[0] for place in places]
    check("open: the sums over charges", differ(values, sums) < 1e-6 * max(map(abs, sums)))
    in_cube = read_cube("m.cube")
    check("elements", [row[0] for row in in_cube[4]] == [7, 6, 1, 17, 35, 0])
    check("charges", [row[1] for row in in_cube[4]] == [row[3] for row in rows])
    check("atoms where they are, in bohr", all(differ([x * BOHR for x in a[2:]], r[:3]) < 1e-6 for a, r in zip(in_cube[4], rows)))
    write("one.xyz", "1\nProperties=species:S:1:pos:R:3:charge:R:1\nNa 0.1 0.2 0.3 1\n")
    done = run("solve", "one.xyz", "--grid-targets", "0.1", "--output", "one.cube")
    count, origin, step, values, atoms = read_cube("one.cube")
    places = points_of(count, origin, step)
    check("one charge has a grid, in the middle", count == [11, 11, 11] and atoms[0][0] == 11)
    check("... which it is told of", "charges stand at 1 of the points" in done.stderr)
    # six digits of a place of which 0.1 is the least distance
    check("... where the others have no potential", values[665] == 0 and all(
        abs(v * math.dist(p, (0.1, 0.2, 0.3)) - 1) < 1e-4 for k, (v, p) in enumerate(zip(values, places)) if k != 665))


def at_charges():
    """Rock salt on its own grid: all points are charges, or some; with the far face, and outside of the box."""
    salt = [(i, j, k, (-1) ** (i + j + k)) for i in range(2) for j in range(2) for k in range(2)]
    moved = [(x + 2 * (k % 3 - 1), y, z - 2 * (k % 2), q) for k, (x, y, z, q) in enumerate(salt)]
    write("salt.txt", text_of(moved, "# box: 2 0 0 0 2 0 0 0 2\n"))
    for step, others in (("1", 0), ("0.5", 56)):
        done = run("solve", "salt.txt", "--accuracy", "1e-9", "--grid-targets", step, "--output", f"salt{step}.dx")
        check(f"salt, step {step}: is solved", done.returncode == 0 and "charges stand at 8 of the points" in done.stderr)
        count, origin, step, values = read_dx(f"salt{step}.dx")
        at = {tuple(place): v for place, v in zip(points_of(count, origin, step), values)}
        check("... the potential at charges is Madelung's", len(at) == others + 8
              and all(abs(at[tuple(map(float, s[:3]))] + s[3] * 1.7475645946331822) < 1e-7 for s in salt))
    check("... and zero in the middle of a cube", abs(at[0.5, 0.5, 0.5]) < 1e-7)


def slabs(rows):
    write("slab.txt", text_of(rows, HEADER + "# periodic: 1 0 1\n"))
    done = run("solve", "slab.txt", "--accuracy", "1e-6", "--grid-targets", "1.5", "--output", "slab.dx")
    check("a slab is solved", done.returncode == 0)
    count, origin, step, values = read_dx("slab.dx")
    check("a slab: steps along the normal", abs(math.dist(step[1], (0, 0, 0)) - 1.5) < 1e-12
          and max(abs(sum(a * b for a, b in zip(step[1], BOX[k:k + 3]))) for k in (0, 6)) < 1e-12)
    write("points.txt", text_of(points_of(count, origin, step)))
    run("solve", "slab.txt", "--accuracy", "1e-6", "--targets", "points.txt", "--output", "points.out.txt", "--force")
    check("a slab: the values of --targets", differ(values, [row[3] for row in table("points.out.txt")]) < 1e-11)


def what_is_refused():
    for name, cause, arguments in (
            ("a grid without a file", "--grid-targets needs --output", ("--grid-targets", "1")),
            ("a grid in a text", "ends with .dx or .cube", ("--grid-targets", "1", "--output", "new.txt")),
            ("a .cube without a grid", "new.cube: this is a file of a grid: --grid-targets H", ("--output", "new.cube")),
            ("a .dx without a grid", "new.dx.gz: this is a file of a grid", ("--output", "new.dx.gz")),
            ("a grid and targets", "exclude each other", ("--grid-targets", "1", "--targets", "points.txt", "--output", "new.dx")),
            ("a step of nothing", "a finite number above 0", ("--grid-targets", "0", "--output", "new.dx")),
            ("a step backwards", "a finite number above 0", ("--grid-targets", "-1", "--output", "new.dx")),
            ("a step without end", "a finite number above 0", ("--grid-targets", "inf", "--output", "new.dx")),
            ("a file that exists", "m.dx: exists already", ("--grid-targets", "1", "--output", "m.dx")),
            ("too many points", "points are too many for a grid, of at most 67108864: a step of ", ("--grid-targets", "1e-3", "--output", "new.dx")),
            ("far too many points", "points are too many for a grid", ("--grid-targets", "1e-300", "--output", "new.dx"))):
        refused(name, cause, "solve", "molecule.pqr", *arguments)
    refused("a grid of errors", "--grid-targets belongs to gmxfmm solve", "error", "molecule.pqr", "--grid-targets", "1")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows = ions()
        in_a_box(rows)
        around_a_molecule()
        at_charges()
        slabs(rows)
        what_is_refused()
        os.chdir("/")
    print(f"program_grids: {counts['passed']} checks passed, {counts['failed']} failed")
    return counts["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())
