#!/usr/bin/env python3
"""Checks the options and the version of the manual page against the program's.

Usage: manual.py PROGRAM PAGE [--write]    --write: replaces what differs
"""
import re
import subprocess
import sys

BEGIN, END = '.\\" begin of options\n', '.\\" end of options\n'


def say(*arguments):
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def options(help_text):
    """The lines "  --name ARGUMENT  meaning" as items of a list."""
    page = ""
    for line in help_text[help_text.index("\noptions:"):].splitlines():
        match = re.match(r"  (--\S+) ?(\S*)\s+(.*)$", line)
        if match:
            name, argument, meaning = map(roff, match.groups())
            page += f".TP\n.B {name} \\fI{argument}\\fR\n{meaning}\n" if argument else f".TP\n.B {name}\n{meaning}\n"
    return page


def main():
    program, path = sys.argv[1:3]
    page = open(path).read()
    expected = options(say(program, "help"))
    assert expected.count(".TP") > 20, "no options in the program's help"
    head, rest = page.split(BEGIN)
    written, tail = rest.split(END)
    version = say(program, "--version").strip()
    new_head = re.sub(r'(\.TH GMXFMM 1 \S+ )"[^"]*"', rf'\1"{version}"', head)
    if "--write" in sys.argv:
        open(path, "w").write(new_head + BEGIN + expected + END + tail)
    elif (head, written) != (new_head, expected):
        sys.exit(f"{path} is not what the program says: tests/repository/manual.py PROGRAM PAGE --write renews it")


if __name__ == "__main__":
    main()
