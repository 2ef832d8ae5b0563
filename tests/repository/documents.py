#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Holds every Markdown file to the sources: links and anchors, names of files, messages, commands.

Usage: documents.py ROOT [PROGRAM]      PROGRAM: a built gmxfmm, without which commands are only looked up
       documents.py --test              its own test: what figures of a paragraph are

- Links lead to files that are there, and to headings of theirs.
- What stands in backquotes and looks like a file of this repository is one; in gromacs-patch it may be one that is patched.
- A page of docs says at its top whether it is a guide, a reference or background, and docs/README.md lists it there. A figure with
  a unit is on at most one guide and one page of background.
- Messages in the tables of docs/refused.md are in the sources.
- Together the documents have at most 3,100 lines: all Markdown files but CHANGELOG.md, which grows.
- A paragraph of a guide, and an item of a list there, has at most one figure.
- Figures in the table of README.md are those of the records that benchmarks/plot.py draws, and its picture is what that draws of them.
- Figures in docs/measurements.md in rows that name records are those of benchmarks/results/nvidia-h200/mdrun.json, those of Lennard-Jones
  of groups of lj-split-2026.3.json, those beside FMM3D of fmm3d.json.
- Blocks of code say what they are (sh, c, cmake, text, ...). Each command in a block `sh`, and each that stands in backquotes,
  is one of COMMANDS. gmxfmm is run, in a scratch folder with the files that the documents speak of; what needs root, a build of
  GROMACS or a GPU is not, for the reason given there: then the script has to be there and to know the options.
"""
import json
import os
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

sys.dont_write_bytecode = True
from prose import document_blocks  # noqa: E402

ROOT = Path(sys.argv[1]).resolve()
PROGRAM = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None

# What a command begins with: why it is not run here. None: it is run.
COMMANDS = {
    "gmxfmm": None,
    "./quickstart.sh": "builds GROMACS",
    "./run-tests.sh": "runs this test",
    "scripts/": "installs packages, or builds, or needs a GPU",
    "gromacs-patch/apply.sh": "needs a source of GROMACS: the tests patches_2022.5 and patches_2026.3",
    "benchmarks/": "takes minutes, and figures of a busy machine are worth nothing",
    "tests/": "a test of its own, or needs a patched gmx",
    "docs/mdp-options.py": "writes into the sources: the test mdp_options_page",
    "build-own/own": "tests/repository/first_hour.sh",
    "apt-get": "needs root",
    "./own-shared": "tests/repository/first_hour.sh",
    "cc": "tests/repository/first_hour.sh",
    "export": "tests/repository/first_hour.sh",
    "cmake": "tests/repository/first_hour.sh",
    "ctest": "runs this test",
    "clang-format": "the test format",
    "git": "changes the repository, or the test patches",
    "gmx": "needs a patched GROMACS: tests/mdrun",
    "python3": "a script of its own",
    "pip": "the test package.python",
    "source": "needs an installed GROMACS",
    "plumed": "needs PLUMED: the test plumed_places",
    "for": "tests/mdrun/guides.py",
    "sed": "tests/mdrun/guides.py",
    "done": "tests/mdrun/guides.py",
    "grep": "tests/mdrun/guides.py",
}
# Names that are no files of this repository, and those of files that are made.
NOT_HERE = {"CMakeLists.txt", "gmxtest.pl", "conf.gro", "topol.top", "salt.txt", "result.txt", "cloud.txt", "own.c", "errors.svg", "OUT.svg",
            "spc216.gro", "run.sh", "build/quickstart/results.json", "results.json", "results.svg",
            "GMXRC", "em.mdp", "split.mdp", "decouple.mdp", "protein.pdb", "libnvrtc.so.13",
            "mdp-options.rst", "gmxfmmoptions.def"}
SUFFIXES = "md|c|h|cpp|cu|cuh|py|sh|mdp|json|svg|txt|def|cmake|patch|rst|gro"

problems = []


def complain(path, text, offset, message):
    line = text.count("\n", 0, offset) + 1
    problems.append(f"{path.relative_to(ROOT)}:{line}: {message}")


def tracked():
    """All files but what git ignores."""
    listed = subprocess.run(("git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"), capture_output=True, text=True)
    if listed.returncode == 0:
        return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
            if path.is_file() and not re.match(r"(build|\.git|out)\b", str(path.relative_to(ROOT)))]


def without_code(text):
    """The same length, with blocks of code, spans and comments blank."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    for pattern in (r"^```.*?^```$", r"<!--.*?-->", r"`[^`\n]+`"):
        text = re.sub(pattern, blank, text, flags=re.M | re.S)
    return text


def anchors(path):
    """Anchors of headings, as GitHub makes them."""
    found = []
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#+ +(.+?)\s*$", text, re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        kept = "".join(c for c in heading if c in "-_ " or unicodedata.category(c)[0] in "LN")
        anchor = kept.replace(" ", "-")
        number = found.count(anchor)
        found.append(anchor if number == 0 else f"{anchor}-{number}")
    return found


def check_links(path, text):
    for match in re.finditer(r"\[[^\]]*\]\(([^)\s]+)\)", without_code(text)):
        target = match[1]
        if re.match(r"https?://|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            complain(path, text, match.start(), f"a link to {target}, which is not there")
        elif anchor and anchor not in anchors(file):
            complain(path, text, match.start(), f"a link to {target}, but there is no such heading")


def patched():
    """Files of GROMACS that the patches change."""
    return sorted({name for patch in (ROOT / "gromacs-patch").glob("*/*.patch")
                   for name in re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.M)})


def check_names(path, text, files):
    files = files + patched() if path.parent.name == "gromacs-patch" else files
    prose = re.sub(r"^```.*?^```$", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.M | re.S)
    for match in re.finditer(rf"`([\w.][\w./*-]*\.(?:{SUFFIXES}))`", prose):
        name = match[1]
        pattern = re.compile("(.*/)?" + re.escape(re.sub(r"^(\.\.?/)+|^VERSION/", "", name)).replace(r"\*", "[^/]*") + "$")
        if name not in NOT_HERE and not any(pattern.match(file) for file in files):
            complain(path, text, match.start(), f"`{name}` is no file of this repository")


def literals():
    """All string literals of the sources, adjacent ones joined."""
    text = []
    for folder in ("src", "gromacs-patch"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".c", ".h", ".cpp", ".cu", ".patch"):
                text.append(re.sub(r'"\s*\n[+ ]?\s*"', "", path.read_text()))
    return "\n".join(text)


def check_messages():
    path = ROOT / "docs" / "refused.md"
    text, sources = path.read_text(), literals()
    found = list(re.finditer(r"^\| `([^`]+)` \|", text, re.M))
    if len(found) < 20:
        problems.append("docs/refused.md: hardly any messages")
    for match in found:
        if match[1] not in sources:
            complain(path, text, match.start(), f"no source has the message '{match[1]}'")


# Of what is measured; a setting or a limit has other units, or none.
NUMBER, UNIT = r"(?<![\w.,−-])(\d[\d.,]*(?: to \d[\d.,]*)?)", r"(ns/day|ms|µs|us|%|s|seconds?|minutes?|hours?|bar|kJ/mol|[kMG]B)(?![\w/])"
FIGURE = re.compile(rf"{NUMBER} ?{UNIT}|{NUMBER} (times)(?!\w)")


def figures_of(block):
    """The figures of a paragraph: numbers with units."""
    return [match[0].strip() for match in FIGURE.finditer(re.sub(r"`[^`]+`", "", block))]


def check_kinds():
    """Each page is of one kind, stands in the table of its kind, and has no figure of another page of this kind."""
    tables = dict(re.findall(r"^\| (guides|reference|background) \| \|\n((?:\|.*\n)+)", (ROOT / "docs/README.md").read_text(), re.M))
    figures = {}
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text()
        if path.name == "README.md":
            continue
        kind = re.search(r"^\*(Guide|Reference|Background)\.\* ", text[:400], re.M)
        if not kind:
            complain(path, text, 0, "does not say at its top whether it is a guide, a reference or background")
            continue
        if f"]({path.name})" not in tables.get({"Guide": "guides"}.get(kind[1], kind[1].lower()), ""):
            complain(path, text, kind.start(), f"docs/README.md does not list it under {kind[1].lower()}")
        if kind[1] == "Guide":
            problems.extend(f"docs/{path.name}:{line}: figures of one paragraph: {', '.join(figures_of(block))}"
                            for line, block in document_blocks(text) if len(figures_of(block)) > 1)
        if kind[1] != "Reference":
            for match in re.finditer(r"(?<![\w.,−-])(\d[\d.,]*(?: to \d[\d.,]*)?)\s(ns/day|ms|µs|bar|kJ/mol|GB)(?!\w)", without_code(text)):
                figure = (kind[1], match[1], match[2])
                if figures.setdefault(figure, path.name) != path.name:
                    complain(path, text, match.start(), f"{match[1]} {match[2]} is in {figures[figure]}, too")


LINES = 3100  # at b43d755 the same files had 3,138, and some 3,530 before they were cut


def check_length(documents):
    lines = sum(path.read_text().count("\n") for path in documents if path.name != "CHANGELOG.md")
    if lines > LINES:
        problems.append(f"the documents have {lines} lines, more than {LINES}: leave out what another page says")
    return lines


def check_row(path, text, row, cells, values):
    """The cells that are numbers are the values, as far as they have digits."""
    for cell, value in zip(cells, values, strict=True):
        if cell == "" and value is None:
            continue
        digits = len(cell.partition(".")[2].partition("e")[0])
        exponent = float(cell.partition("e")[2]) if "e" in cell else 0
        if cell == "" or value is None or abs(float(cell) - value) > 0.5001 * 10 ** (exponent - digits):
            complain(path, text, row.start(), f"'{cell}' in {row[0]}, but the record has {value}")


def over(a, b):
    return a / b if a and b else None


RESULTS = ROOT / "benchmarks/results/nvidia-h200"


def check_readme():
    """Its table has the speeds that are drawn as bars, a row each of six of these systems; the picture is what is drawn."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import plot
    systems = list(plot.compared(str(RESULTS)))
    if plot.bars(str(RESULTS)) != (RESULTS / "mdrun-bars.svg").read_text():
        problems.append("mdrun-bars.svg is not what its records say: run benchmarks/plot.py on lj-split-2026.3.json")
    path = ROOT / "README.md"
    text = path.read_text()
    found = list(re.finditer(r"^\| (\S+)[^|]*\| ([\d,]+) \|(.*)\|$", text, re.M))
    if len(found) != 6:
        problems.append("README.md: its table of speeds has not six rows")
    for row in found:
        speeds = [(pme, fmm, over(fmm, pme)) for words, atoms, pme, fmm, *_ in systems if words.startswith(row[1]) and f"{atoms:,}" == row[2]]
        if len(speeds) != 1:
            complain(path, text, row.start(), f"no record, or several: {row[0]}")
        else:
            check_row(path, text, row, [cell.strip() for cell in row[3].split("|")], speeds[0])


def check_split():
    """The rows of Lennard-Jones of groups: all records, one row each, and none else."""
    path = ROOT / "docs" / "measurements.md"
    text = path.read_text()
    section = re.search(r"^## Lennard-Jones of groups\n.*?(?=^## )", text, re.M | re.S)
    records = {re.search(r"(\d+) atoms", record["system"])[1]: record["ns_per_day"] for record in json.loads((RESULTS / "lj-split-2026.3.json").read_text())["records"]}
    found = list(re.compile(r"^\| [^|]* \| ([\d,]+) \|(.*)\|$", re.M).finditer(text, section.start(), section.end()))
    if sorted(row[1].replace(",", "") for row in found) != sorted(records):
        problems.append("docs/measurements.md: Lennard-Jones of groups has not the systems of lj-split-2026.3.json")
        return
    for row in found:
        speeds = {kind: statistics.median(runs) for kind, runs in records[row[1].replace(",", "")].items()}
        pme, full, split = (max(speeds[kind], speeds[f"{kind}, graph"]) for kind in ("PME", "FMM, full", "FMM, split"))
        defaults = [speeds[f"{kind}, default options"] for kind in ("PME", "FMM, split")]
        check_row(path, text, row, [cell.strip() for cell in row[2].split("|")], [pme, full, split, split / pme, *defaults, defaults[1] / defaults[0]])


def check_figures():
    records = {record["name"]: record for record in json.loads((RESULTS / "mdrun.json").read_text())}
    path = ROOT / "docs" / "measurements.md"
    text = path.read_text()
    found = list(re.finditer(r"^\| `([a-z]\w*(?:-\w+)*)` \|((?:[^|\n]*\|)+)$", text, re.M))
    if len(found) < 14:
        problems.append("docs/measurements.md: hardly any rows that name a record of mdrun.json")
    for row in found:
        cells, record = [cell.strip() for cell in row[2].split("|")[:-1]], records.get(row[1])
        if len(cells) not in (4, 7) or record is None:
            continue
        if len(cells) == 7:  # system, atoms, speeds and errors
            pme, speed = record["pme_ns_per_day"], record["fmm_ns_per_day"]
            values = [record["atoms"], pme, record["pme_force_error"], speed, record["fmm_force_error"], speed / pme]
            cells = cells[1:]
        else:  # with default options
            pme, speed = (record.get(key + "_default_ns_per_day") for key in ("pme", "fmm"))
            values = [record["atoms"], pme, speed, over(speed, pme)]
        check_row(path, text, row, [cell.replace(",", "") for cell in cells], values)


def check_fmm3d():
    """The rows of the comparison with FMM3D: errors reached and seconds, all of them, and none else."""
    path = ROOT / "docs" / "measurements.md"
    text = path.read_text()
    name = re.search(r"`(benchmarks/results/\S+/fmm3d\.json)`", text)[1]
    wanted = {(f"{row['potential_error']:.1e}", f"{row['gradient_error']:.1e}", f"{row['seconds']:.2f}")
              for row in json.loads((ROOT / name).read_text())["table"]}
    found = re.findall(r"^\| (?:FMM3D|gmx-fmm), [^|]* \| (\S+) \| (\S+) \| (\S+) \|$", text, re.M)
    given = {(f"{float(row[0]):.1e}", f"{float(row[1]):.1e}", row[2]) for row in found}
    for row in wanted ^ given:
        problems.append(f"docs/measurements.md: {', '.join(row)} in {'the page' if row in given else name} alone")


# ------------------------------------------------------------------------------------------------------------ commands

def make_inputs(folder):
    """The files that the documents speak of."""
    page = (ROOT / "docs" / "program.md").read_text()
    (folder / "salt.txt").write_text(re.search(r"^```text\n(# box:.*?)^```$", page, re.M | re.S)[1])
    numbers = random.Random(1)
    rows = [[numbers.random() for _ in range(3)] + [numbers.choice((-1, 1))] for _ in range(1000)]
    (folder / "cloud.txt").write_text("".join(" ".join(map(str, row)) + "\n" for row in rows))


def entry(words):
    for begin in COMMANDS:
        if words[0] == begin or (begin.endswith("/") and words[0].startswith(begin)):
            return begin
    return None


def known_options(words, files):
    """Why a command that is not run cannot be right, or None."""
    script = words[1] if words[0] == "python3" and len(words) > 1 else words[0]
    script = script[2:] if script.startswith("./") else script
    if "/" not in script and not script.endswith((".sh", ".py")):
        return None  # a program of the system's
    if script in ("build-own/own", "own-shared"):
        return None
    if script not in files:
        return f"there is no {script}"
    text = (ROOT / script).read_text()
    for word in words[1:]:
        option = re.match(r"--?[a-zA-Z][\w-]*", word)
        if option and option[0] not in text:
            return f"{script} knows no {option[0]}"
    return None


def program_options():
    text = subprocess.run((str(PROGRAM), "--help"), capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"--[a-z][\w-]*", text))


def check_command(path, text, offset, line, files, folder, options):
    line = re.split(r" {2,}(?=# |here|on a )| +# ", line)[0].strip()
    try:
        words = shlex.split(line)
    except ValueError as error:
        complain(path, text, offset, f"'{line}': {error}")
        return None
    while words and re.fullmatch(r"[A-Z_0-9]+=.*", words[0]):
        words.pop(0)
    if not words:
        return None
    begin = entry(words)
    if begin is None:
        complain(path, text, offset, f"'{line}' is neither run nor listed (COMMANDS in tests/repository/documents.py)")
    elif COMMANDS[begin] is not None:
        wrong = known_options(words, files)
        if wrong:
            complain(path, text, offset, f"'{line}': {wrong}")
    elif folder is not None and PROGRAM:
        done = subprocess.run([str(PROGRAM), *words[1:]], cwd=folder, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode:
            complain(path, text, offset, f"'{line}' ended with {done.returncode}: {done.stderr.strip()}")
        return "run"
    elif PROGRAM:
        for word in words[1:]:
            option = re.match(r"--[a-z][\w-]*", word)
            if option and option[0] not in options:
                complain(path, text, offset, f"'{line}': gmxfmm knows no {option[0]}")
    return begin


def check_commands(path, text, files, folder, options):
    """The commands of one document, in its order; how many were run and looked up."""
    counts = {"run": 0, "listed": 0}
    for match in re.finditer(r"^```(.*?)\n(.*?)^```$", text, re.M | re.S):
        if not match[1]:
            complain(path, text, match.start(), "a block that does not say what it is (sh, text, c, ...)")
        if match[1] == "sh":
            offset = match.start(2)
            for line in re.sub(r"\\\n", "  ", match[2]).split("\n"):
                if line.strip() and not line.lstrip().startswith("#"):
                    done = check_command(path, text, offset, line, files, folder, options)
                    counts["run" if done == "run" else "listed"] += 1
                offset += len(line) + 1
    prose = re.sub(r"^```.*?^```$", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.M | re.S)
    for match in re.finditer(r"`([^`\n]+ [^`\n]+)`", prose):
        words = match[1].split()
        if words[0] in ("gmxfmm", "./quickstart.sh", "./run-tests.sh") or re.match(r"(scripts|benchmarks|tests)/\S+\.(sh|py)$", words[0]):
            check_command(path, text, match.start(), match[1], files, None, options)
            counts["listed"] += 1
    return counts


def check_result():
    """What docs/program.md says of its crystal: Madelung's constant, to the accuracy asked for."""
    with tempfile.TemporaryDirectory() as name:
        make_inputs(Path(name))
        text = subprocess.run((str(PROGRAM), "solve", "salt.txt", "--accuracy", "1e-8"), cwd=name, capture_output=True, text=True).stdout
        energy = float(re.search(r"^energy: (\S+)$", text, re.M)[1])
        if abs(energy + 4 * 1.747564594633182) > 1e-6:  # 8 ions; accuracy 1e-8 of forces, far better than this
            problems.append(f"docs/program.md: the energy of salt.txt is {energy}, not four Madelung constants")


def test():
    def count(text):
        return [figures_of(block) for _, block in document_blocks(text)]

    assert count("It takes 20 minutes on 2 cores, and 0.6 GB.") == [["20 minutes", "0.6 GB"]]
    assert count("FMM makes 1.5 times\nPME's speed, 300 ns/day.\n\n- 0.25 bar\n- 12 µs, 5 %\n") == [["1.5 times", "300 ns/day"], ["0.25 bar"], ["12 µs", "5 %"]]
    assert count("Take 8 to 16 threads, 0.55 nm, order 8, 1e-4, GROMACS 2022.5 and `-maxh 2 hours`.") == [[]]
    assert count("| 3 ms | 5 ms |\n\n```text\n3 ms, 5 ms\n```\n") == []
    print("figures are found where they are")


def main():
    if sys.argv[1:] == ["--test"]:
        return test()
    files = tracked()
    documents = sorted(ROOT / name for name in files if name.endswith(".md"))
    assert len(documents) > 10, "hardly any documents: is this the root of the repository?"
    options = program_options() if PROGRAM else set()
    total = {"run": 0, "listed": 0}
    for path in documents:
        text = path.read_text()
        check_links(path, text)
        check_names(path, text, files)
        with tempfile.TemporaryDirectory() as folder:
            make_inputs(Path(folder))
            for key, count in check_commands(path, text, files, Path(folder), options).items():
                total[key] += count
    lines = check_length(documents)
    check_kinds()
    check_messages()
    check_readme()
    check_figures()
    check_split()
    check_fmm3d()
    if PROGRAM:
        check_result()
    for problem in problems:
        print(problem)
    print(f"{len(documents)} documents, {lines} lines of {LINES}, {total['run']} commands run, {total['listed']} looked up, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
