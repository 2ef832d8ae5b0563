#!/usr/bin/env python3
"""Small source trees for types.py: a type that is defined twice is found, and nothing else.

Usage: types_test.py TYPES_PY
"""
import subprocess
import sys
import tempfile
from pathlib import Path

# name: ({file: text}, lines that are told)
CASES = {
    "nothing": ({}, []),
    "types with names of their own": (
        {"a.h": "struct A\n{\n    int n;\n};\n", "b/b.cu": "struct B\n{\n    int n;\n} b;\nstruct A* a;\nstruct A;\nA f() {}\n"}, []),
    "one name, two types": (
        {"a.h": "struct alignas(16) A\n{\n    int n;\n};\n", "b/b.h": "struct A : Base\n{\n    double x;\n};\n"},
        ["A is defined in a.h and in b/b.h"]),
    "of other kinds": (
        {"a.cu": "template <class R>\nclass A\n{\n};\nenum class B\n{\n    One\n};\nunion C\n{\n    int i;\n};\n",
         "b.c": "typedef struct\n{\n    int n;\n} A;\ntypedef enum b\n{\n    FMM_ONE\n} B;\n", "c.cpp": 'extern "C"\n{\nstruct C\n{\n};\n}\n'},
        ["A is defined in a.cu and in b.c", "B is defined in a.cu and in b.c", "C is defined in a.cu and in c.cpp"]),
    "a namespace without a name": (
        {"a.cu": "struct A\n{\n};\n", "b.cu": "namespace\n{\nstruct A\n{\n};\n}\n"}, []),
    "a special case of a template": (
        {"a.cu": "template <class R>\nstruct A\n{\n};\n", "b.cu": "template <>\nstruct A<float>\n{\n};\n"}, []),
    "types in comments, functions and values": (
        {"a.h": "struct A\n{\n};\n", "b.cu": "/* struct A {}; */\nstatic struct A f()\n{\n}\nconst struct A a = {1}, b[] = {{2}};\n"}, []),
}


def main():
    failed = 0
    for name, (files, expected) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            for file, text in files.items():
                path = Path(folder) / file
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, sys.argv[1], folder], capture_output=True, text=True)
        *told, summary = (done.stdout or done.stderr or "nothing").splitlines()
        good = told == expected and done.returncode == bool(expected) and summary.endswith(f", {len(expected)} errors")
        failed += not good
        print("ok    " if good else "FAILED", name)
        if not good:
            print(f"told:\n{done.stdout}{done.stderr}expected:", *expected, sep="\n")
    print(f"{len(CASES)} trees, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
