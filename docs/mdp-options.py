#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes docs/mdp-options.md: every .mdp option of the FMM, with the range and help of the library's table of options
(src/fmm/options.def) and the defaults of the GROMACS side (gmxfmmoptions.h).

Usage: mdp-options.py            writes the page
       mdp-options.py --check    status 1 if the committed page is another, or if share/mdp/fmm.mdp has other defaults

It stops where the two sides contradict each other: where grompp has ranges and names of its own, not those of the table.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "mdp-options.md"
ADAPTER = ROOT / "gromacs-patch" / "common" / "files" / "src" / "gromacs" / "fmm"

MOST_IN_TABLE = 150  # characters that the table takes of an option; others have a section of their own
# tag of the .mdp option: member of gmxfmm_options, member of FmmParameters, what stands for automatic, what is to be added
OPTIONS = {
    "accuracy": ("accuracy", "accuracy", None,
                 "The RMS error of the Coulomb forces over their RMS, without excluded pairs. The default is what PME has "
                 "at GROMACS's default settings in water. Below 1e-6 GROMACS in double precision is needed. See "
                 "[Errors](accuracy.md)."),
    "order": ("order", "order", "0",
              "GROMACS in double precision: up to {GMXFMM_MAX_ORDER}; on a GPU up to 20, or 24 with `rotation` in double precision. "
              "A translation costs order³ with `rotation`, order⁴ with the other octree methods."),
    "grid": ("grid", None, "0 0 0",
             "Three numbers, or `0 0 0`. With an octree they count leaves and are multiples of 2^depth; with `pbc = no` and an octree "
             "leaves follow the atoms, so use `fmm-tree-depth` there. With `pbc = xy` the third is the number of layers at the start."),
    "tree-depth": ("depth", "treeDepth", "-1", "Only with `fmm-m2l` = `rotation`, `symmetric`, `dynamic` or `naive`."),
    "separation": ("separation", "separation", "0",
                   "Near cells interact atom by atom. The default, 1, also means automatic where order and cells are automatic: 2 is then "
                   "used where it is better."),
    "m2l": ("m2l", None, None,
            "`fft`: cells on one level, any box. On an octree, in rectangular boxes and with `pbc = no`: `rotation`, `symmetric`, "
            "and for comparison `naive` and, on a GPU, `dynamic`. `auto`: `fft`, or `rotation` where most of the box is empty and nothing may tilt it."),
    "boundary": ("boundary", None, None,
                 "`tinfoil`: a conductor around the periodic system, as PME has it with `epsilon-surface = 0`. `vacuum`: nothing "
                 "around it; molecules must be whole, which mdrun sees to. `open`: no periodicity, goes with `pbc = no` and is "
                 "what `tinfoil` means there, too. With `pbc = xy` there are no surroundings: leave it out."),
}
# Options that the library does not have.
OWN = {
    "measure": ("measure", "yes, no",
                "measure force errors at the start of mdrun, and choose automatic options by them. With `no` a model of liquids "
                "chooses: too exact in a liquid, and not exact enough in a crystal. See [md.log](md-log.md)."),
    "lj": ("lj", "full, split",
           "Lennard-Jones interactions of all pairs of atoms, or of groups beyond a radius. `full`: all pairs of atoms have them up to `rvdw`. "
           "`split`: atoms have them up to a shorter radius. Beyond it groups of a heavy atom and its hydrogens have them, from "
           "their centres. grompp chooses the radius. See [Lennard-Jones of groups](lennard-jones.md)."),
    "lj-radius": ("ljRadius", "at least 0.4; 0: automatic",
                  "cut-off of pairs of atoms with `fmm-lj = split`, in nm"),
    "backend": (None, "gmxfmm", "the library that computes. There is no other choice in 2022.5; 2026.3 has two of its own beside "
                                "it, which come without a library."),
}


def fail(text):
    sys.exit(f"mdp-options.py: {text}")


def number(text, macros):
    return float(macros.get(text.strip(), text.strip()))


def library_options():
    """Member of gmxfmm_options: (kind, lowest, highest, names, help), and the macros of the headers."""
    macros = {}
    for header in (ROOT / "src/fmm").rglob("*.h"):
        macros.update(re.findall(r"^#define ((?:GMX)?FMM_MAX_\w+) (\d+)", header.read_text(), re.M))
        macros.update(re.findall(r"^ +(FMM_MAX_\w+) += (\d+)", header.read_text(), re.M))
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "src/fmm/options.def").read_text(), flags=re.S)
    options = {}
    for kind, inside in re.findall(r"^([A-Z_0-9]+)\((.*?)\)$", text, re.M | re.S):
        fields = [field.strip() for field in re.findall(r'(?:"[^"]*"|[^,"])+', inside)]
        fields = [field[1:-1] if field.startswith('"') else field for field in fields]
        if kind == "IN_SINGLE":
            macros["GMXFMM_MAX_" + fields[0].upper() + "_SINGLE"] = fields[1]
        elif kind == "CHOICE":
            name, _, _, _, names, words = fields
            options[name] = (kind, None, None, names.split("|"), words)
        elif kind in ("REAL", "INTEGER", "AUTOMATIC", "GRID"):
            name, standard, lowest, highest, words = fields
            macros[name + "_default"] = standard
            if highest != "INT32_MAX":
                options[name] = (kind, number(lowest, macros), number(highest, macros), None, words)
    return options, macros


def adapter(macros):
    """Tags, defaults by tag, and the source of the checks of grompp."""
    header, source = ((ADAPTER / f"gmxfmmoptions.{suffix}").read_text() for suffix in ("h", "cpp"))
    tags = re.findall(r'^constexpr char c_\w+Tag\[\] += "([\w-]+)";', source, re.M)
    members = dict(re.findall(r"^    [\w:<>, ]+? (\w+) += (.+?);", header, re.M))
    defaults = {tag: members[member] for tag, (_, member, _, _) in OPTIONS.items() if member}
    defaults = {tag: macros.get(text.replace("fmmlibrary::", ""), text) for tag, text in defaults.items()}
    defaults["measure"] = {"true": "yes", "false": "no"}[members["measure"]]
    defaults.update((tag, members[tag + "_"].strip('"')) for tag in ("grid", "m2l", "boundary", "lj", "backend"))
    defaults["lj-radius"] = members["ljRadius"]
    if sorted(tags) != sorted([*OPTIONS, *OWN]):
        fail(f"the options of gmxfmmoptions.cpp are {tags}, but those described here {[*OPTIONS, *OWN]}")
    return defaults, re.sub(r'"\s*\n\s*"', "", source)


def compare(options, macros, source):
    """What grompp checks by itself has to be what the library checks, unless it has the table itself."""
    if "fmmlibrary::" in source:
        return

    def has(pattern, what):
        if not re.search(pattern, source):
            fail(f"grompp's check of {what} differs from the library's table: no /{pattern}/ in gmxfmmoptions.cpp")
    accuracy, depth, separation = (options[name] for name in ("accuracy", "depth", "separation"))
    has(f"between {accuracy[1]:g} and {accuracy[2]:g}\"", "fmm-accuracy")
    has(f"c_maxOrder = GMX_DOUBLE \\? {macros['GMXFMM_MAX_ORDER']} : {macros['GMXFMM_MAX_ORDER_SINGLE']};", "fmm-order")
    has(f"between {depth[1]:g} and {depth[2]:g}, or -1", "fmm-tree-depth")
    has(f"\"{separation[1]:g} or {separation[2]:g}, or 0", "fmm-separation")
    for name in ("m2l", "boundary"):
        has(r"\{\s*\{\s*" + r",\s*".join(f'"{word}"' for word in options[name][3]) + r"\s*\}\s*\}", f"fmm-{name}")


def range_of(option, automatic, macros, tag):
    kind, lowest, highest, names, _ = option
    if names:
        return ", ".join(names)
    if tag == "order":
        lowest, highest = 1, float(macros["GMXFMM_MAX_ORDER_SINGLE"])
    text = f"{lowest:g} to {highest:g}" if highest - lowest != 1 else f"{lowest:g}, {highest:g}"
    return text + (f"; {automatic}: automatic" if automatic else "")


def page():
    options, macros = library_options()
    defaults, source = adapter(macros)
    compare(options, macros, source)
    lines = [
        "# The .mdp options of the FMM",
        "",
        "<!-- Written by mdp-options.py from src/fmm/options.def and the GROMACS side's defaults: change those, and run it. -->",
        "",
        "*Reference.* Every .mdp option with its default and range, and the options of mdrun.",
        "",
        "`coulombtype = FMM` makes GROMACS compute all Coulomb interactions by the fast multipole method. Only then are the options",
        "below allowed. All have defaults: with none of them forces are as exact as PME's at its default settings.",
        "",
        "| option | default | range | what it does |",
        "|---|---|---|---|",
    ]
    details = []
    for tag in (*OPTIONS, *OWN):
        if tag in OPTIONS:
            member, _, automatic, more = OPTIONS[tag]
            allowed, words = range_of(options[member], automatic, macros, tag), options[member][4]
            more = more.format(**macros)
        else:
            _, allowed, more = OWN[tag]
            words, _, more = more.partition(". ")
        if len(more) < MOST_IN_TABLE:
            lines.append(f"| `fmm-{tag}` | {defaults[tag]} | {allowed} | {words}. {more} |")
            continue
        lines.append(f"| [`fmm-{tag}`](#fmm-{tag}) | {defaults[tag]} | {allowed} | {words} |")
        details += ["", f"## fmm-{tag}", "", f"{words[0].upper()}{words[1:]}. {more}"]
    lines += details
    lines += [
        "",
        "## What has no meaning with FMM",
        "",
        "- `rcoulomb`: it is set to `rvdw`, with a note where it differs.",
        "- `coulomb-modifier`, and all options of PME: `fourierspacing`, `pme-order`, `ewald-rtol`.",
        "- With `pbc = xy` also `ewald-geometry = 3dc` and `wall-ewald-zfac`, the latter with a note.",
        "- `epsilon-surface` is refused: `fmm-boundary` is in its place. See [When something is refused](refused.md).",
        "",
        "## Options of mdrun",
        "",
        "| option | default | what it does |",
        "|---|---|---|",
        "| `-fmm auto`, `cpu` or `gpu` | auto | where near and far field are computed; `auto`: on the GPU if non-bonded interactions are |",
        "| `-fmmgpus N` | 0 | GPUs that share the FMM, of those of `-gpu_id`; 0: one or all, as is faster ([more](gpus-and-ranks.md#several-gpus)) |",
        "| `-notunefmm` | | measures no errors, neither at the start, as with `fmm-measure = no`, nor at the end, and tries no `nstlist` |",
        "",
        "The environment variable `GMX_FMM_FULL_PAIRLIST=1` puts all atoms into the pair list, to compare.",
        "mdrun times larger values of `nstlist`, up to 400, in the first steps, and keeps the fastest, also in checkpoints. It tries none with `-nstlist`,",
        "`-reprod`, `-multidir` or `md-vv`, in reruns, at constant energy, without `verlet-buffer-tolerance`, with `fmm-lj = split` on a GPU, or where several",
        "ranks use GPUs. [Several ranks](gpus-and-ranks.md#several-ranks) on CPUs try values for which their domains are large enough.",
        "",
    ]
    return "\n".join(lines), defaults


def check_example(defaults):
    """share/mdp/fmm.mdp states every option at its default."""
    text = (ROOT / "share/mdp/fmm.mdp").read_text()
    found = dict(re.findall(r"^fmm-([\w-]+) *= *([^;\n]+?) *(?:;.*)?$", text, re.M))
    if found != defaults:
        fail(f"share/mdp/fmm.mdp has {found}, but the defaults are {defaults}")


def main():
    text, defaults = page()
    check_example(defaults)
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text() != text:
            fail("docs/mdp-options.md is not what this script writes: run docs/mdp-options.py")
        print("docs/mdp-options.md is as generated")
    elif not sys.argv[1:]:
        PAGE.write_text(text)
    else:
        fail("usage: mdp-options.py [--check]")


if __name__ == "__main__":
    main()
