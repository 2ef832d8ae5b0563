#!/usr/bin/env python3
"""Files of the program gmxfmm: formats there and back, targets, exclusions, prefactor, JSON, what is overwritten and what not,
and every kind of bad input.

Usage: program_files.py PROGRAM
"""
import gzip
import json
import math
import os
import random
import re
import stat
import struct
import subprocess
import sys
import tempfile

PROGRAM = os.path.realpath(sys.argv[1])
DATA = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "data")
BOX = (6.0, 0, 0, 1.1, 5.5, 0, -0.7, 0.9, 6.25)
HEADER = "# box: " + " ".join(map(repr, BOX)) + "\n"
counts = {"passed": 0, "failed": 0}


def check(name, holds):
    counts["passed" if holds else "failed"] += 1
    if not holds:
        print("FAILED:", name)


def run(*arguments, binary=False, **more):
    """gmxfmm solve or error; nothing is measured unless that is asked for, which is the slower part."""
    words = [str(a) if not isinstance(a, bytes) else a for a in arguments]
    if "--measure" not in words and words[0] == "solve":
        words += ["--measure", "no"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PROGRAM, *words], capture_output=True, env=environment, **more)
    if not binary:
        done.stdout, done.stderr = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return done


def value(done, key):
    found = re.search(rf"^{key}: (.*)$", done.stdout, re.M)
    return found[1] if found else None


def write(name, text):
    with open(name, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)


def table(name):
    """Rows of numbers in a text file."""
    text = (gzip.open if name.endswith(".gz") else open)(name, "rt").read()
    return [list(map(float, line.split())) for line in text.splitlines() if line and line[0] != "#"]


def npy(rows, kind="<f8", by_columns=False, version=1, header=None, shape=None):
    """The bytes of a .npy file."""
    shape = shape or (len(rows), len(rows[0]))
    header = header or f"{{'descr': '{kind}', 'fortran_order': {by_columns}, 'shape': {shape}, }}"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    numbers = [x for line in (zip(*rows) if by_columns else rows) for x in line]
    form = f"{kind[0].replace('=', '<')}{len(numbers)}{'f' if kind[1:] == 'f4' else 'd'}"
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + struct.pack(form, *numbers)


def read_npy(name):
    data = open(name, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length])  # of our own making
    check(f"{name}: numbers begin at a multiple of 64 bytes", (10 + length) % 64 == 0 and data[9 + length] == 10)
    check(f"{name}: float64 by rows", header["descr"][1:] == "f8" and not header["fortran_order"])
    rows, columns = header["shape"]
    numbers = struct.unpack(f"{header['descr'][0]}{rows * columns}d", data[10 + length:])
    return [list(numbers[columns * i:columns * (i + 1)]) for i in range(rows)]


def columns_of(name, *keys):
    """Columns of an .xyz by their names."""
    lines = open(name).read().splitlines()
    at, found = 0, {}
    words = re.search(r"Properties=(\S+)", lines[1])[1].split(":")
    for key, count in zip(words[::3], map(int, words[2::3])):
        found[key] = range(at, at + count)
        at += count
    return [[float(line.split()[k]) for key in keys for k in found[key]] for line in lines[2:]]


def ions(n=60):
    """Ions that keep a distance, so that forces are moderate; charges of several sizes, neutral."""
    source = random.Random(5)
    rows = []
    while len(rows) < n:
        f = [source.random() for _ in range(3)]
        x = [sum(f[k] * BOX[3 * k + d] for k in range(3)) for d in range(3)]
        if all(math.dist(x, row[:3]) > 0.7 for row in rows):
            rows.append([*x, (1 if len(rows) % 2 else -1) * (1 + (len(rows) // 2 % 3) / 3)])
    return rows


def text_of(rows, header=""):
    return header + "".join(" ".join(map(repr, row)) + "\n" for row in rows)


def formats_there_and_back(rows):
    write("ions.txt", text_of(rows, HEADER))
    check("text is solved", run("solve", "ions.txt", "--output", "out.txt").returncode == 0)
    out = table("out.txt")
    check("coordinates and charges are written to the last bit", [row[:4] for row in out] == rows)
    for ending in ("txt.gz", "npy", "xyz", "xyz.gz", "XYZ"):
        name = f"out.{ending}"
        check(f"{name} is written", run("solve", "ions.txt", "--output", name).returncode == 0)
        done = run("solve", name, "--output", "back.txt", "--force", *(("--box", ",".join(map(str, BOX))) if ending == "npy" else ()))
        check(f"{name} is read", done.returncode == 0 and done.stderr == "")
        check(f"{name}: there and back to the last bit", table("back.txt") == out)
        check(f"{name}: its reference values are found", float(value(done, "force_error") or "nan") < 1e-14)
    check("a .gz is gzipped", open("out.txt.gz", "rb").read(2) == b"\x1f\x8b" and table("out.txt.gz") == out)
    check(".npy has the numbers of the text", read_npy("out.npy") == out)
    names = ("pos", "charge", "gmxfmm_potential", "gmxfmm_field")
    check(".xyz has the numbers of the text", columns_of("out.xyz", *names) == out)
    forces = columns_of("out.xyz", "forces")
    check(".xyz has forces", all(f[d] == row[3] * row[5 + d] for f, row in zip(forces, out) for d in range(3)))
    check(".xyz has the energy", f" energy={value(run('solve', 'ions.txt'), 'energy')} " in open("out.xyz").read() + " ")
    check("no temporary files are left", not [name for name in os.listdir() if re.search(r"\.\d+-\d+$", name)])
    return out


def arrays(rows, out):
    """.npy of all kinds; numbers that float32 holds exactly give the same bits from it."""
    box = ("--box", ",".join(map(str, BOX)))
    short = [list(struct.unpack("<4f", struct.pack("<4f", *row))) for row in rows]
    write("short.txt", text_of(short, HEADER))
    energy = {"8": value(run("solve", "ions.txt"), "energy"), "4": value(run("solve", "short.txt"), "energy")}
    for kind in ("<f8", ">f8", "<f4", ">f4"):
        for by_columns in (False, True):
            for version in (1, 2, 3):
                write("a.npy", npy(rows if kind[2] == "8" else short, kind, by_columns, version))
                done = run("solve", "a.npy", *box)
                check(f"{kind}, by columns: {by_columns}, version {version}", value(done, "energy") == energy[kind[2]])
    write("a.npy", npy(out, by_columns=True))
    check("columns with reference values", float(value(run("solve", "a.npy", *box), "potential_error") or "nan") < 1e-14)
    spaced = '{ "shape" :( %d,4L ) , "fortran_order":False,"descr" : "<f8"}   \n' % len(rows)
    write("a.npy", npy(rows, header=spaced))
    check("a header in another hand", value(run("solve", "a.npy", *box), "energy") == energy["8"])
    check("without --box it is open", value(run("solve", "a.npy"), "system") == "open (no box in the file)")


def molecules(rows):
    """.pqr and .xyz as others write them."""
    energy = value(run("solve", "ions.txt"), "energy")
    lattice = " ".join(map(repr, BOX))
    for comment, energy_of, columns in (
            (f'Lattice="{lattice}" Properties=species:S:1:pos:R:3:charge:R:1', energy, "{s} {x} {y} {z} {q}"),
            (f"lattice='{lattice}' config=\"a \\\" = b\" note properties=pos:R:3:initial_charges:R:1:id:I:2", energy, "{x} {y} {z} {q} 1 2"),
            (f'pbc="T T T" Properties=q:R:1:species:S:1:pos:R:3 Lattice="{lattice}" energy=-1e3', energy, "{q} {s} {x} {y} {z}"),
            (f'pbc=[1 1 1] Lattice="{lattice}" Properties=species:S:1:pos:R:3:charges:R:1:forces:R:3', energy, "{s} {x} {y} {z} {q} 0 0 0"),
            (f'Lattice="{lattice}" pbc="F F F" Properties=species:S:1:pos:R:3:charge:R:1', None, "{s} {x} {y} {z} {q}")):
        body = "".join(columns.format(s="Na", x=repr(x), y=repr(y), z=repr(z), q=repr(q)) + "\n" for x, y, z, q in rows)
        write("a.xyz", f"{len(rows)}\n{comment}\n{body}\n")
        done = run("solve", "a.xyz", "--output", "a.out.xyz", "--force")
        if energy_of:
            check(f".xyz: {comment[-40:]}", value(done, "energy") == energy_of)
        else:
            check(".xyz: open, with a Lattice", value(done, "system") == "open (periodic: 0 0 0)")
    check("species are kept", [line[:3] for line in open("a.out.xyz").read().splitlines()[2:]] == ["Na "] * len(rows))
    check("integers are charges", value(run("solve", "integer.xyz"), "energy") == "-0.5"
          if not write("integer.xyz", "2\nProperties=species:S:1:pos:R:3:charge:I:1\nX 0 0 0 1\nX 2 0 0 -1\n") else False)

    # a hexagonal cell, whose vectors in text are b = (-a/2, a sqrt(3)/2, 0)
    atoms = [(0.5, 0.5, 0.5, 0.4), (3.0, 1.0, 2.0, -0.4), (1.0, 3.0, 4.0, 0.8), (-1.0, 2.5, 1.0, -0.8)]
    write("hexagonal.txt", text_of(atoms, f"# box: 6 0 0 -3 {6 * math.sqrt(0.75)!r} 0 0 0 7\n"))
    expected = float(value(run("solve", "hexagonal.txt", "--accuracy", "1e-6"), "energy"))
    pqr = ("REMARK  1  a comment\nCRYST1    6.000    6.000    7.000  90.00  90.00 120.00 P 1           1\n"
           "ATOM      1  N   MET A   1       0.500   0.500   0.500  0.4000 1.8240\n"
           "ATOM      2  HN1 MET A   1       3.000   1.000   2.000 -0.4000 0.6000\nTER\n"
           "HETATM    3  O   HOH     2       1.000   3.000   4.000  0.8000 1.6612\n"
           "HETATM    4  H1  HOH     2      -1.000   2.500   1.000 -0.8000 0.6000\nEND\n")
    write("a.pqr", pqr)
    done = run("solve", "a.pqr", "--accuracy", "1e-6", "--output", "b.pqr")
    check(".pqr with a hexagonal cell", abs(float(value(done, "energy") or "nan") - expected) < 1e-9 * abs(expected))
    kept = [line.split() for line in open("b.pqr") if line.startswith(("ATOM", "HETATM"))]
    check(".pqr keeps names, chains and radii", kept[0][:6] == "ATOM 1 N MET A 1".split() and kept[0][10] == "1.8240"
          and kept[2][:5] == "HETATM 3 O HOH 2".split() and kept[2][9] == "1.6612")
    done = run("solve", "b.pqr", "--accuracy", "1e-6", "--output", "c.xyz")
    check(".pqr is read again, with reference values", float(value(done, "force_error") or "nan") < 1e-9)
    check("names of atoms are species", [line.split()[0] for line in open("c.xyz").read().splitlines()[2:]] == "N HN1 O H1".split())
    # as PDB2PQR 3.8 wrote it of a peptide far from the origin, whose coordinates touch each other
    peptide = [line for line in open(os.path.join(DATA, "peptide.pqr")) if line.startswith("ATOM")]
    places = [([float(line[k:k + 8]) for k in (30, 38, 46)], float(line[54:62])) for line in peptide]
    coulomb = sum(q * p / math.dist(x, y) for i, (x, q) in enumerate(places) for y, p in places[:i])
    done = run("solve", os.path.join(DATA, "peptide.pqr"), "--accuracy", "1e-9", "--output", "peptide.pqr")
    check("coordinates that touch", abs(float(value(done, "energy") or "nan") - coulomb) < 1e-8 * abs(coulomb))
    write("touch.pqr", "ATOM      1  N   GLY A1000    -250.000-300.000-120.000 10.2943 1.8240\n"
                       "HETATM10000  OW  HOH A10001   1050.0001300.0009120.000-10.2943 1.8240\n")
    done = run("solve", "touch.pqr", "--prefactor", "-1", "--accuracy", "1e-6", "--output", "apart.pqr")
    check("all columns that touch", abs(float(value(done, "energy") or "nan") - 10.2943 ** 2 / math.dist((-250, -300, -120), (1050, 1300, 9120))) < 1e-8)
    check("... are written with blanks", [line.split()[:9] for line in open("apart.pqr") if line.startswith(("ATOM", "HETATM"))] == [
        "ATOM 1 N GLY A 1000 -250 -300 -120".split(), "HETATM 10000 OW HOH A 10001 1050 1300 9120".split()])
    # words that only look as if they were in columns
    for line, x in (("ATOM      1  N   GLY     1   12345.678   1.000   2.000 0.5000 1.8", "12345.678 1 2"),
                    ("ATOM  1 Na NaCl 1  12.345            1       2       1 1.8", "12.345 1 2")):
        write("words.pqr", line + "\nATOM 2 N GLY 1 0 0 0 1 1\n")
        done = run("solve", "words.pqr", "--output", "words.txt", "--force")
        check(f"not in columns: {line}", done.returncode == 0 and list(map(float, x.split())) == table("words.txt")[0][:3])
    # all records that are in files of the Protein Data Bank and no atoms; blanks before them, and comments
    records = ("HEADER OBSLTE TITLE SPLIT CAVEAT COMPND SOURCE KEYWDS EXPDTA NUMMDL MDLTYP AUTHOR REVDAT SPRSDE JRNL REMARK DBREF DBREF1 "
               "DBREF2 SEQADV SEQRES MODRES HET HETNAM HETSYN FORMUL HELIX SHEET TURN SSBOND LINK CISPEP SITE ORIGX1 ORIGX2 ORIGX3 SCALE1 "
               "SCALE2 SCALE3 MTRIX1 MTRIX2 MTRIX3 MODEL ANISOU TER ENDMDL CONECT MASTER END").split()
    write("records.pqr", "".join(f"{record} 1 2 3\n" for record in records) + "CONECT1000010001\n# a comment\n\n  \n ATOM 1 N GLY 1 0 0 0 1 1\n"
          "\tATOM 2 N GLY 1 2 0 0 -1 1\n  TER\nEND\n")
    done = run("solve", "records.pqr", "--accuracy", "1e-6")
    check("records that are no atoms", value(done, "particles") == "2" and abs(float(value(done, "energy") or "nan") + 0.5) < 1e-9)
    write("dummy.pqr", pqr.replace("6.000    6.000    7.000", "1.000    1.000    1.000").replace("120.00", "90.00"))
    check("a CRYST1 of 1 x 1 x 1 is none", value(run("solve", "dummy.pqr"), "system") == "open (no box in the file)")
    check("--box none: open", value(run("solve", "a.pqr", "--box", "none"), "system") == "open (--box none)")
    done = run("solve", "hexagonal.txt", "--box", "5,6,7", "--accuracy", "1e-6")
    write("brick.txt", text_of(atoms, "# box: 5 0 0 0 6 0 0 0 7\n"))
    check("--box wins over the file's", value(done, "energy") == value(run("solve", "brick.txt", "--accuracy", "1e-6"), "energy"))


def field_at(place, charges):
    """Potential and field of charges without a box."""
    potential, field = 0, [0, 0, 0]
    for *x, q in charges:
        r = math.dist(place, x)
        potential += q / r
        field = [f + q * (p - c) / r**3 for f, p, c in zip(field, place, x)]
    return [potential, *field]


def targets(rows):
    source = random.Random(7)
    places = [[source.uniform(-3, 9) for _ in range(3)] for _ in range(40)]
    write("open.txt", text_of(rows))
    write("points.txt", "# a comment\n" + text_of(places))
    accurate = ("--order", "20", "--measure", "no")
    done = run("solve", "open.txt", "--targets", "points.txt", "--output", "at.txt", *accurate)
    check("targets are counted", value(done, "targets") == "40")
    at = table("at.txt")
    check("targets are written", [row[:3] for row in at] == places)
    exact = [field_at(place, rows) for place in places]
    check("potential and field at targets", all(math.isclose(a, b, rel_tol=1e-7, abs_tol=1e-7)
                                                for row, line in zip(at, exact) for a, b in zip(row[3:], line)))
    same = run("solve", "open.txt", *accurate)
    # 1e-13: cells that hold targets, too, have another origin, so that distances are rounded in another way
    check("the energy is that of the charges", math.isclose(float(value(done, "energy")), float(value(same, "energy")), rel_tol=1e-13))
    write("points.npy", npy(places))
    write("points.xyz", "40\n\n" + "".join("X " + line for line in open("points.txt").readlines()[1:]))
    write("points.pqr", "".join(f"ATOM {i} X Y 1 {x!r} {y!r} {z!r} 5 1\n" for i, (x, y, z) in enumerate(places)))
    write("points4.txt", text_of([[*place, 5] for place in places]))
    for name in ("points.npy", "points.xyz", "points.pqr", "points4.txt", "at.txt"):
        done = run("solve", "open.txt", "--targets", name, "--output", "-", *accurate)
        check(f"the same targets from {name}", done.stdout == open("at.txt").read())
    for name, read in (("at.npy", read_npy), ("at.xyz", lambda name: columns_of(name, "pos", "gmxfmm_potential", "gmxfmm_field"))):
        run("solve", "open.txt", "--targets", "points.txt", "--output", name, *accurate)
        check(f"the same results in {name}", read(name) == at)
    run("solve", "open.txt", "--targets", "points.txt", "--output", "at.pqr", *accurate)
    words = [line.split() for line in open("at.pqr") if line.startswith("ATOM")]
    check("... and in at.pqr", [[float(w[k]) for k in (5, 6, 7, 10, 11, 12, 13)] for w in words] == at)


def exclusions_and_prefactor(rows):
    pairs = [(1, 2), (3, 60), (2, 59), (1, 2), (2, 1)]
    write("pairs.txt", "# pairs\n" + "".join(f"{i} {j}\n" for i, j in pairs) + "\n")
    with gzip.open("pairs.txt.gz", "wt") as file:
        file.write(open("pairs.txt").read())
    accurate = ("--order", "20", "--measure", "no")
    all_pairs = float(value(run("solve", "open.txt", *accurate), "energy"))
    left_out = sum(rows[i - 1][3] * rows[j - 1][3] / math.dist(rows[i - 1][:3], rows[j - 1][:3]) for i, j in pairs[:3])
    done = run("solve", "open.txt", "--exclude", "pairs.txt", *accurate)
    energy = float(value(done, "energy"))
    check("excluded pairs are left out", math.isclose(energy, all_pairs - left_out, rel_tol=1e-9))
    check("... and counted", value(done, "excluded_pairs") == "3")
    check("... from a gzipped file, too", value(run("solve", "open.txt", "--exclude", "pairs.txt.gz", *accurate), "energy") == value(done, "energy"))
    measured = run("solve", "open.txt", "--exclude", "pairs.txt", "--accuracy", "1e-4", "--measure", "yes")
    check("... where errors are measured", math.isclose(float(value(measured, "energy")), energy, rel_tol=1e-4))
    write("same.txt", "0 0 0 1\n0 0 0 -1\n3 0 0 1\n")
    write("same_pairs.txt", "1 2\n")
    check("excluded charges may stand at one place", value(run("solve", "same.txt", "--exclude", "same_pairs.txt"), "energy") == "0")

    plain = run("solve", "ions.txt", "--output", "plain.txt")
    scaled = run("solve", "ions.txt", "--prefactor", "138.935458", "--output", "scaled.txt")
    for key in ("energy", "energy_far"):
        check(f"the prefactor multiplies {key}", math.isclose(float(value(scaled, key)), 138.935458 * float(value(plain, key)), rel_tol=1e-12))
    check("... and potentials", all(math.isclose(a, 138.935458 * b, rel_tol=1e-9, abs_tol=1e-9)
                                    for x, y in zip(table("scaled.txt"), table("plain.txt")) for a, b in zip(x[4:], y[4:])))
    again = run("solve", "scaled.txt")
    check("the prefactor of reference values is in the file", float(value(again, "force_error")) < 1e-14 and value(again, "prefactor") == "138.93545800000001")
    other = run("solve", "scaled.txt", "--prefactor", "1")
    check("... and another one is noted", "belong to another prefactor" in other.stderr)
    other = run("solve", "plain.txt", "--prefactor", "2")
    check("... also where the file has none, which is 1", "belong to another prefactor" in other.stderr)
    check("--reproducible 0 is taken", run("solve", "ions.txt", "--reproducible", "0").returncode == 0)


def objects(rows):
    done = run("solve", "ions.txt")
    result = json.loads(run("solve", "ions.txt", "--json").stdout)
    for key in ("energy", "energy_near", "energy_far"):
        check(f"--json: {key}", result[key] == float(value(done, key)))
    check("--json: virial", result["virial"] == [list(map(float, value(done, f"virial_{d}").split())) for d in "xyz"])
    choice = result["choice"]
    check("--json: choice", [choice["method"], str(choice["order"]), " ".join(map(str, choice["grid"]))]
          == [value(done, "method"), value(done, "order"), value(done, "grid")])
    check("--json: nothing measured", result["errors"]["source"] == "model" and result["errors"]["measured"] is None)
    check("--json: box, particles, times", result["box"] == [list(BOX[k:k + 3]) for k in (0, 3, 6)]
          and result["particles"] == len(rows) and result["seconds"]["total"] > 0)
    result = json.loads(run("solve", "out.txt", "--json", "--measure", "yes", "--accuracy", "1e-3").stdout)
    errors = result["errors"]
    check("--json: a measured error", 0 < errors["measured"] <= 1e-3 and 0 < errors["measured_limited"] <= 1e-3)
    check("--json: of reference values", 0 < errors["force"] < 2e-3 and errors["force_unit"] is None)
    check("--json: relative to the RMS of the forces", errors["measured_relative_to"] is None)
    # forces that are zero by symmetry have no RMS
    unit = "(mean |q| / spacing)^2, as the forces are zero"
    write("single.txt", "# box: 3 0 0 0 3 0 0 0 3\n0.5 1 2 2\n")
    write("salt.txt", "# box: 2 0 0 0 2 0 0 0 2\n" + "".join(f"{i & 1} {i >> 1 & 1} {i >> 2} {1 - 2 * (bin(i).count('1') & 1)}\n" for i in range(8)))
    for name in ("single.txt", "salt.txt"):
        done = run("solve", name, "--measure", "yes", "--accuracy", "1e-4")
        check(f"{name}: what the error is relative to", value(done, "error_relative_to") == unit and float(value(done, "measured_error")) <= 1e-4)
        done = run("solve", name, "--measure", "yes", "--accuracy", "1e-4", "--prefactor", "2", "--json")
        check(f"{name}: ... in JSON", json.loads(done.stdout)["errors"]["measured_relative_to"] == "prefactor " + unit)
        check(f"{name}: ... of gmxfmm error", value(run("error", name, "--accuracy", "1e-3", "--precision", "double"), "error_relative_to") == unit)
    check("no such line elsewhere", value(run("solve", "out.txt", "--measure", "yes"), "error_relative_to") is None)
    result = json.loads(run("solve", "open.txt", "--method", "treecode", "--json").stdout)
    check("--json: a treecode has no virial", result["virial"] is None and result["choice"]["degree"] > 0)
    odd = b'a "quoted"\\ name\n\t\xc3\xa9 \xff \xed\xa0\x80'
    write(odd, "0 0 0 1\n2 0 0 -1\n")
    result = json.loads(run("solve", odd, "--json", binary=True).stdout.decode("utf-8"))
    check("--json: any name of a file", result["file"] == 'a "quoted"\\ name\n\t\u00e9 \ufffd \ufffd\ufffd\ufffd')
    done = run("solve", "ions.txt", "--json=result.json")
    check("--json=OUT: lines on stdout", value(done, "particles") == "60")
    check("--json=OUT: the object in OUT", json.load(open("result.json"))["particles"] == 60)
    done = run("solve", "ions.txt", "--json", "--output", "beside.txt")
    check("--json and --output OUT", json.loads(done.stdout)["particles"] == 60 and os.path.exists("beside.txt"))
    done = run("solve", "ions.txt", "--output", "-")
    check("--output -: the charges alone", done.stdout == open("out.txt").read() and done.stderr == "")
    done = run("solve", "ions.txt", "--output", "-", "--json=result2.json")
    check("--output - beside a file of JSON", done.stdout == open("out.txt").read() and os.path.exists("result2.json"))


def refused(name, cause, *arguments):
    """Exit status 2, one line on stderr with the cause, nothing on stdout, no file made or changed."""
    before = {entry.name: entry.stat().st_mtime_ns for entry in os.scandir()}
    done = run(*arguments)
    check(f"{name}: exit status 2, not {done.returncode}", done.returncode == 2)
    check(f"{name}: one line", done.stderr.count("\n") == 1 and done.stderr.endswith("\n"))
    check(f"{name}: says '{cause}', not {done.stderr!r}", cause in done.stderr)
    check(f"{name}: nothing on stdout", done.stdout == "")
    check(f"{name}: files are as they were", before == {entry.name: entry.stat().st_mtime_ns for entry in os.scandir()})


def overwriting():
    write("kept.txt", "what was here before\n")
    write("kept.svg", "what was here before\n")
    os.symlink("kept.txt", "link.txt")
    exists = "exists already; --force overwrites it"
    refused("an output that exists", f"gmxfmm: kept.txt: {exists}", "solve", "ions.txt", "--output", "kept.txt")
    refused("an output through a link", f"gmxfmm: link.txt: {exists}", "solve", "ions.txt", "--output", "link.txt")
    refused("JSON that exists", f"gmxfmm: kept.txt: {exists}", "solve", "ions.txt", "--json=kept.txt")
    refused("a picture that exists", f"gmxfmm: kept.svg: {exists}", "error", "ions.txt", "--plot", "kept.svg")
    refused("two outputs of one name", "--output and --json both write to new.txt", "solve", "ions.txt", "--output", "new.txt", "--json=new.txt")
    refused("two outputs on stdout", "--output and --json both write to standard output", "solve", "ions.txt", "--output", "-", "--json")
    os.chmod("kept.txt", 0o640)
    check("--force overwrites", run("solve", "ions.txt", "--output", "link.txt", "--force").returncode == 0
          and table("kept.txt") == table("out.txt"))
    check("... what a link leads to, which stays a link", os.path.islink("link.txt") and not os.path.islink("kept.txt"))
    umask = os.umask(0)
    os.umask(umask)
    check("... with the rights of a new file", stat.S_IMODE(os.stat("kept.txt").st_mode) == 0o666 & ~umask)
    check("an input may be its own output", run("solve", "kept.txt", "--output", "kept.txt", "--force").returncode == 0)
    os.symlink("nowhere.txt", "dangling.txt")
    run("solve", "ions.txt", "--output", "dangling.txt")
    check("a link to nothing yet", os.path.islink("dangling.txt") and table("nowhere.txt") == table("out.txt"))
    check("/dev/null is no file that exists", run("solve", "ions.txt", "--output", "/dev/null").returncode == 0)


def bad_files(rows):
    refused("a .pqr of a box that it cannot hold", "a .pqr has no place for this box", "solve", "turned.txt", "--output", "new.pqr") \
        if not write("turned.txt", "# box: 0 4 0 4 0 0 0 0 4\n0 0 0 1\n1 1 1 -1\n") else None
    refused("a gzipped .npy as output", "a .npy is not gzipped", "solve", "ions.txt", "--output", "new.npy.gz")
    refused("a gzipped .npy as input", "a .npy is not gzipped", "solve", "out.npy.gz")

    head, good = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), }", [[0, 0, 0, 1.0], [2, 0, 0, -1.0]]
    whole = npy(good)
    for name, cause, data in (
            ("empty", "is not a .npy file", b""),
            ("text", "is not a .npy file", b"0 0 0 1\n"),
            ("a cut magic", "is not a .npy file", whole[:7]),
            ("version 4", "version 4 of the .npy format is not known", whole[:6] + b"\4" + whole[7:]),
            ("version 0", "version 0 of the .npy format is not known", whole[:6] + b"\0" + whole[7:]),
            ("a cut length", "the header is cut short", whole[:9]),
            ("a cut header", "the header is cut short", whole[:40]),
            ("a long header", "the header has 4294967295 bytes", whole[:6] + b"\2\0" + b"\xff" * 4 + whole[10:]),
            ("no numbers", "has 0 bytes of numbers, which are not the 2 rows of 32 bytes", whole[:-64]),
            ("a number cut short", "has 63 bytes of numbers", whole[:-1]),
            ("a byte too many", "has 65 bytes of numbers", whole + b"\0"),
            ("a huge shape", "which are not the 4611686018427387904 rows", npy(good, header=head.replace("(2, 4)", "(4611686018427387904, 4)"))),
            ("a shape beyond 64 bits", "has 64 bytes of numbers", npy(good, header=head.replace("(2, 4)", "(99999999999999999999999, 4)"))),
            ("columns beyond 64 bits", "but the columns must be 4", npy(good, header=head.replace("(2, 4)", "(2, 99999999999999999999999)"))),
            ("a negative shape", "the header is not that of a .npy file", npy(good, header=head.replace("(2, 4)", "(-2, -4)"))),
            ("no rows", "has no particles", npy([], shape=(0, 4))),
            ("no columns", "but the columns must be 4", npy([], shape=(5, 0))),
            ("three columns", "the shape is (2, 3), but the columns must be 4 x y z q", npy([row[:3] for row in good])),
            ("one dimension", "the array has 1 dimensions, but must have 2", npy(good, header=head.replace("(2, 4)", "(8,)"))),
            ("no dimension", "the array has 0 dimensions", npy(good, header=head.replace("(2, 4)", "()"))),
            ("three dimensions", "the array has 3 dimensions", npy(good, header=head.replace("(2, 4)", "(2, 2, 2)"))),
            ("integers", "the numbers are '<i8', but must be float32 or float64", npy(good, header=head.replace("f8", "i8"))),
            ("objects", "the numbers are '|O', but must be", npy(good, header=head.replace("<f8", "|O"))),
            ("half precision", "the numbers are '<f2', but must be", npy(good, header=head.replace("f8", "f2"))),
            ("an empty type", "the numbers are '', but must be", npy(good, header=head.replace("<f8", ""))),
            ("fields", "the array has fields", npy(good, header=head.replace("'<f8'", "[('x', '<f8')]"))),
            ("no shape", "the header is not that of a .npy file", npy(good, header="{'descr': '<f8', 'fortran_order': False}")),
            ("no end", "the header is not that of a .npy file", npy(good, header=head[:-1])),
            ("an unknown key", "the header is not that of a .npy file", npy(good, header=head.replace("descr", "kind"))),
            ("a quote without end", "the header is not that of a .npy file", npy(good, header="{'descr: '<f8'")),
            ("nan", "bad.npy:2: column 2 is not finite", npy([good[0], [0, math.nan, 0, 1]])),
            ("infinity, by columns", "bad.npy:1: column 4 is not finite", npy([[0, 0, 0, math.inf], good[1]], by_columns=True)),
            ("two at one place", "bad.npy:2: two charges at one place: this one and that of row 1", npy([good[0], good[0]]))):
        write("bad.npy", data)
        refused(f".npy, {name}", f"bad.npy" if cause.startswith("bad") else cause, "solve", "bad.npy", "--output", "new.txt")
        if cause.startswith("bad"):
            refused(f".npy, {name}, by row", cause, "solve", "bad.npy")

    for name, cause, text in (
            ("empty", ":1: the file ends before the number", ""),
            ("no number", ":1: the first line is not the number of particles alone", "H 0 0 0\n"),
            ("two numbers", ":1: the first line is not the number of particles alone", "2 3\n"),
            ("a negative number", ":1: the first line is not", "-1\n\n"),
            ("one line", ":2: the file ends before its second line", "1\n"),
            ("no particles", ": has no particles", "0\nProperties=pos:R:3:q:R:1\n"),
            ("no charges", ":2: Properties have no column charge:R:1", "1\n\nH 0 0 0\n"),
            ("no positions", ":2: Properties have no pos:R:3", "1\nProperties=species:S:1:q:R:1\nH 1\n"),
            ("two columns of charges", ":2: Properties: 'charges' is the second", "1\nProperties=pos:R:3:q:R:1:charges:R:1\n0 0 0 1 1\n"),
            ("charges in three columns", ":2: Properties: 'q' must have one column", "1\nProperties=pos:R:3:q:R:3\n0 0 0 1 1 1\n"),
            ("positions that are words", ":2: Properties: 'pos' must have three columns", "1\nProperties=pos:S:3:q:R:1\n0 0 0 1\n"),
            ("broken Properties", ":2: Properties are not name:type:count, one after the other, at 'q'", "1\nProperties=pos:R:3:q:R\n0 0 0 1\n"),
            ("a count that is none", ":2: Properties are not name:type:count", "1\nProperties=pos:R:x\n0 0 0 1\n"),
            ("a huge count", ":2: Properties are not name:type:count", "1\nProperties=pos:R:3:q:R:1:a:R:99999999999\n0 0 0 1\n"),
            ("a quote without end", ":2: a quote or bracket has no end", '1\nLattice="4 0 0\n0 0 0 1\n'),
            ("a Lattice of 3", ":2: Lattice needs 9 numbers", '1\nLattice="4 4 4" Properties=pos:R:3:q:R:1\n0 0 0 1\n'),
            ("a Lattice with a word", ":2: Lattice component 5 is not a number: 'x'", '1\nLattice="4 0 0 0 x 0 0 0 4" Properties=pos:R:3:q:R:1\n0 0 0 1\n'),
            ("a flat Lattice", ":2: the box is singular", '1\nLattice="4 0 0 0 4 0 0 4 0" Properties=pos:R:3:q:R:1\n0 0 0 1\n'),
            ("two Lattices", ":2: Lattice is given twice", '1\nLattice="4 0 0 0 4 0 0 0 4" Lattice="4 0 0 0 4 0 0 0 4"\n'),
            ("a wire of no length", ":2: the periodic vectors of the box are zero",
             '1\nLattice="0 0 0 0 4 0 0 0 4" pbc="T F F" Properties=pos:R:3:q:R:1\n0 0 0 1\n'),
            ("pbc of two", ":2: pbc needs three flags", '1\npbc="T T" Properties=pos:R:3:q:R:1\n0 0 0 1\n'),
            ("pbc without Lattice", ":2: periodic: 1 1 1 needs a box", '1\npbc="T T T" Properties=pos:R:3:q:R:1\n0 0 0 1\n'),
            ("too few rows", ":4: the file ends before the number of particles", "2\nProperties=pos:R:3:q:R:1\n0 0 0 1\n"),
            ("a huge number", ":4: the file ends before the number of particles", "9223372036854775807\nProperties=pos:R:3:q:R:1\n0 0 0 1\n"),
            ("a second frame", ":4: something follows the 1 particles", "1\nProperties=pos:R:3:q:R:1\n0 0 0 1\n1\n\n0 0 0 1\n"),
            ("too few columns", ":3: a row has 5 columns, as Properties say, found 4", "1\nProperties=species:S:1:pos:R:3:q:R:1\nH 0 0 0\n"),
            ("too many columns", ":3: a row has 4 columns, as Properties say, found 5", "1\nProperties=pos:R:3:q:R:1\n0 0 0 1 1\n"),
            ("a word", ":3: position 2 is not a number: 'x'", "1\nProperties=pos:R:3:q:R:1\n0 x 0 1\n"),
            ("nan", ":3: charge 1 is not finite: 'nan'", "1\nProperties=pos:R:3:q:R:1\n0 0 0 nan\n")):
        write("bad.xyz", text)
        refused(f".xyz, {name}", "bad.xyz" + cause, "solve", "bad.xyz", "--output", "new.txt")

    atom = "ATOM 1 N MET 1 0 0 0 1 1.5\n"
    for name, cause, text in (
            ("empty", ": has no particles", ""),
            ("no atoms", ": has no particles", "REMARK nothing\n"),
            *((f"a record {record}", f":2: {record} is no record of a .pqr file", atom + atom.replace("ATOM", record).replace("0 0 0", "3 0 0") + atom.replace("0 0 0", "9 0 0"))
              for record in ("ATAM", "atom", "HETATOM", "ATOM1", "HETATM10000", "AT", "CONECTX", "TERM", "end", "Remark", "3")),
            ("no radius", ":2: an atom has 10 words", atom + "ATOM 2 N MET 1 1 0 0 1\n"),
            ("words too many", ":1: an atom has 10 words, 11 with a chain", "ATOM 1 N MET A 1 0 0 0 1 1 1\n"),
            ("a word", ":1: number 1 is not a number: 'x'", "HETATM 1 N MET 1 x 0 0 1 1\n"),
            ("nan", ":1: number 4 is not finite", "ATOM 1 N MET 1 0 0 0 nan 1\n"),
            ("reference values in some atoms", ":2: found 9 numbers from x on, but the atoms before have 5", atom + "ATOM 2 N MET 1 1 0 0 1 1 0 0 0 0\n"),
            ("a second model", ":3: a second MODEL", "MODEL 1\n" + atom + "MODEL 2\n"),
            ("a short cell", ":1: CRYST1 needs a b c alpha beta gamma, found 3", "CRYST1 4 4 4\n" + atom),
            ("a cell with a word", ":1: CRYST1 value 4 is not a number", "CRYST1 4 4 4 x 90 90\n" + atom),
            ("impossible angles", ":1: CRYST1 4 4 4 10 90 170 is no cell", "CRYST1 4 4 4 10 90 170\n" + atom),
            ("two cells", ":2: CRYST1 is given twice, first in line 1", "CRYST1 4 4 4 90 90 90\nCRYST1 4 4 4 90 90 90\n" + atom),
            ("two at one place", ":2: two charges at one place: this one and that of line 1", atom + atom)):
        write("bad.pqr", text)
        refused(f".pqr, {name}", "bad.pqr" + cause, "solve", "bad.pqr", "--output", "new.txt")

    for name, cause, text in (
            ("one number", ":2: a row has the numbers of two particles, found 1", "1 2\n3\n"),
            ("three numbers", ":1: a row has the numbers of two particles, found 3", "1 2 3\n"),
            ("a word", ":1: column 2 is not a whole number: 'x'", "1 x\n"),
            ("a fraction", ":1: column 1 is not a whole number: '1.5'", "1.5 2\n"),
            ("no such particle", ":1: there is no particle 61: they count from 1 to 60", "1 61\n"),
            ("particle 0", ":3: there is no particle 0", "# from 0 on?\n\n0 1\n"),
            ("a number beyond 64 bits", ":1: column 1 is not a whole number", "99999999999999999999 1\n"),
            ("a particle and itself", ":1: particle 7 cannot exclude itself", "7 7\n")):
        write("bad.pairs", text)
        refused(f"exclusions, {name}", "bad.pairs" + cause, "solve", "ions.txt", "--exclude", "bad.pairs", "--output", "new.txt")
    refused("exclusions that are not there", "missing.pairs: cannot be opened", "solve", "ions.txt", "--exclude", "missing.pairs")
    refused("exclusions of a treecode", "excludes no pairs", "solve", "open.txt", "--method", "treecode", "--exclude", "pairs.txt")

    for name, cause, text in (
            ("two columns", ":1: a row has 3 columns x y z, 4 with q", "1 2\n"),
            ("none", ": has no points", "# nothing\n"),
            ("on a charge", ":2: this point stands where a charge does", "9 9 9\n" + " ".join(map(repr, rows[5][:3])) + "\n"),
            ("nan", ":1: column 3 is not finite", "1 2 nan\n")):
        write("bad.points", text)
        refused(f"targets, {name}", "bad.points" + cause, "solve", "open.txt", "--targets", "bad.points", "--output", "new.txt")
    for arguments, cause in (
            (("--prefactor", "0"), "must be a finite number other than 0"), (("--prefactor", "nan"), "other than 0"),
            (("--box", "4,5"), "must be 1, 3 or 9 numbers with commas, or none"), (("--box", "4,"), "must be 1, 3"),
            (("--box", "0"), "the box is singular"), (("--box", "1,2,3,4,5,6,7,8,9,10"), "must be 1, 3"),
            (("--reproducible", "2"), "an integer in 0..1"), (("--json=",), "is empty")):
        refused(" ".join(arguments), cause, "solve", "ions.txt", *arguments)
    write("bad.txt", "# prefactor: 0\n0 0 0 1\n")
    refused("a prefactor of 0 in a file", "bad.txt:1: prefactor is 0", "solve", "bad.txt")
    refused("JSON of errors", "--json belongs to gmxfmm solve", "error", "ions.txt", "--json")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows = ions()
        out = formats_there_and_back(rows)
        arrays(rows, out)
        molecules(rows)
        targets(rows)
        exclusions_and_prefactor(rows)
        objects(rows)
        overwriting()
        bad_files(rows)
        os.chdir("/")
    print(f"program_files: {counts['passed']} checks passed, {counts['failed']} failed")
    return counts["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())
