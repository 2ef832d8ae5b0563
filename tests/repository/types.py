#!/usr/bin/env python3
"""No type is defined twice below a folder of src.

Usage: types.py FOLDER

C++ knows a type by its name alone. Where two sources define two types of one name, the linker takes the functions of one of
them for both, its destructor for example. It says nothing of that. So a name stands for one type, unless the others are in a
namespace without a name. Types are found in the text, as includes.py finds functions; special cases of a template are no
types of their own.
"""
import collections
import re
import sys
from pathlib import Path

from includes import is_function, statements, tokens_of

KINDS = ("struct", "class", "union", "enum")


def type_of(head):
    """The type that a statement with braces, made plain, defines: `struct name ...` or `typedef struct {} name`."""
    if "=" in head or is_function(head):
        return None
    for kind, name, after in zip(head, head[1:], head[2:] + [""]):
        if kind in KINDS and name not in KINDS and re.match(r"[A-Za-z_]\w*$", name):
            return None if after == "<" else name if "typedef" not in head else head[-1]
    return head[-1] if "typedef" in head else None


def types_of(text):
    """Those that other files can have, too."""
    return {name for head, _, braces, hidden in statements(tokens_of(text)) if braces and not hidden and (name := type_of(head))}


def main():
    root, files = Path(sys.argv[1]), collections.defaultdict(list)
    sources = [path for path in sorted(root.rglob("*")) if path.suffix in (".h", ".c", ".cu", ".cpp")]
    for path in sources:
        for name in types_of(path.read_text()):
            files[name].append(path.relative_to(root).as_posix())
    errors = [f"{name} is defined in {' and in '.join(where)}" for name, where in sorted(files.items()) if len(where) > 1]
    for error in errors:
        print(error)
    print(f"{len(sources)} files, {len(files)} types, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
