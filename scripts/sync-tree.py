#!/usr/bin/env python3
"""sync-tree.py FROM TO: makes the folder TO equal to FROM, touching only the files whose content differs.

A build system that goes by file times then recompiles only what has really changed.
"""
import filecmp
import os
import shutil
import sys


def files(top):
    for folder, _, names in os.walk(top):
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), top)


def main():
    source, target = sys.argv[1:3]
    wanted = set(files(source))
    for path in sorted(set(files(target)) - wanted):
        os.remove(os.path.join(target, path))
        print("removed", path)
    for path in sorted(wanted):
        new, old = os.path.join(source, path), os.path.join(target, path)
        if os.path.islink(new) or not os.path.exists(old) or not filecmp.cmp(new, old, shallow=False):
            os.makedirs(os.path.dirname(old), exist_ok=True)
            if os.path.lexists(old):
                os.remove(old)
            # copy, not copy2: the file must look newer than the objects made from its predecessor
            shutil.copy(new, old, follow_symlinks=False)
            print("copied", path)


main()
