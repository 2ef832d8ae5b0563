#!/usr/bin/env python3
"""Checks that what GROMACS's manual says of the fmm options (gromacs-patch) is what options.def says.

Usage: mdp_options.py OPTIONS_DEF PATCH_FOLDER MDP

In each version's manual: the ends of a range, the default accuracy and all words of a choice; in MDP, the commented
example, the ends of ranges.
"""
import re
import sys
from pathlib import Path

# key in the .mdp (after fmm-): option of the library; lowest: not where 0 is the .mdp's word for automatic
KEYS = {"accuracy": "accuracy", "order": "order", "grid": "grid", "tree-depth": "depth", "separation": "separation"}
CHOICES = {"m2l": "m2l", "boundary": "boundary"}


def read_options(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    number = r"([-+.\de]+)"
    ranges, standards, choices = {}, {}, {}
    for kind, name, standard, low, high in re.findall(
        r'^(REAL|AUTOMATIC|AUTOMATIC_0|GRID_0)\((\w+), ([^,]+), ' + number + ", " + number + ",", text, re.M
    ):
        ranges[name] = [high] if float(low) == 0 else [low, high]
        if kind == "REAL":
            standards[name] = standard
    for name, names in re.findall(r'^CHOICE\((\w+), \w+, "\w+", \w+, "([^"]+)"', text, re.M):
        choices[name] = names.split("|")
    for name, high in re.findall(r"^IN_SINGLE\((\w+), (\d+)\)", text, re.M):
        ranges[name].append(high)
    return ranges, standards, choices


def manual_entries(path):
    added = "\n".join(line[1:] for line in path.read_text().splitlines() if line.startswith("+"))
    parts = re.split(r"^\.\. mdp:: fmm-(\S+)$", added, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def has_number(text, number):
    return re.search(r"(?<![\d.e-])" + re.escape(number) + r"(?![\de])(?!\.\d)", text) is not None


def main():
    (ranges, standards, choices), errors, manuals = read_options(Path(sys.argv[1])), [], 0
    for path in sorted(Path(sys.argv[2]).glob("*/*documentation.patch")):
        entries = manual_entries(path)
        manuals += 1
        for key, name in KEYS.items():
            entry = entries.get(key, "")
            for number in ranges[name]:
                if not has_number(entry, number):
                    errors.append(f"{path}: fmm-{key} does not say {number}")
            if name in standards and f"({standards[name]})" not in entry:
                errors.append(f"{path}: fmm-{key} does not have the default ({standards[name]})")
        for key, name in CHOICES.items():
            told = {word for line in re.findall(r"mdp-value:: (.*)", entries.get(key, "")) for word in line.split(", ")}
            for word in set(choices[name]) ^ told:
                errors.append(f"{path}: fmm-{key}: {word} is told in one place only")
    example = Path(sys.argv[3]).read_text()
    for key, name in KEYS.items():
        found = re.search(rf"((?:^;.*\n)+)fmm-{key} ", example, re.M)
        for number in ranges[name]:
            if found is None or not has_number(found[1], number):
                errors.append(f"{sys.argv[3]}: the comment of fmm-{key} does not say {number}")
    for error in errors:
        print(error)
    print(f"{manuals} manuals, {len(errors)} errors")
    return 1 if errors or manuals == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
