#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Holds documents, public headers, docstrings and messages to the words of the glossary in docs/theory.md.

Usage: words.py ROOT      words.txt has the words that are not written, and what is written in their place
       words.py --test    its own test

Blocks and spans of code are left out; tables of documents are not.
"""
import re
import sys
from pathlib import Path

from prose import sources

KINDS = {"document", "header", "docstring", "message"}


def table(text):
    """(pattern, words in its place, kinds, whether they are of the glossary, names of files without the rule) of each line."""
    found = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            cells = [cell.strip() for cell in re.split(r" \| ", line)]
            of_glossary = cells[0] == "glossary"
            pattern, instead, kinds, *without = cells[of_glossary:]
            kinds = KINDS if kinds == "all" else set(kinds.split())
            assert kinds <= KINDS, f"words.txt: {line}"
            found.append((re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.I), instead, kinds, of_glossary, without))
    return found


def glossary(page):
    """The words of the glossary: the first column of its table."""
    rows = re.findall(r"^\| ([^|]+) \|", page[page.index("\n## Glossary"):], re.M)
    return {word.strip() for row in rows[1:] for word in re.split(r"[,;]", row)} - {"---", "word"}


def without_code(text):
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    for pattern in (r"^```.*?^```$", r"<!--.*?-->", r"`[^`\n]+`", r"\]\([^)\s]*\)"):
        text = re.sub(pattern, blank, text, flags=re.M | re.S)
    return text


def problems(words, kind, name, blocks):
    found = []
    for pattern, instead, kinds, _, without in words:
        if kind in kinds and Path(name).name not in without:
            found += [f"{name}:{line + text.count(chr(10), 0, match.start())}: '{match[0]}': write {instead}"
                      for line, text in blocks for match in pattern.finditer(text)]
    return found


def test():
    words = table("# note\n\nglossary | receivers?|sub-?box(es)? | target | all\ntree[- ]code | treecode | header message | b.h\n")
    assert problems(words, "document", "a", [(1, "Two\nReceivers of a tree code.")]) == ["a:2: 'Receivers': write target"]
    assert problems(words, "header", "a", [(4, "A tree code in subboxes")]) == ["a:4: 'subboxes': write target", "a:4: 'tree code': write treecode"]
    assert not problems(words, "header", "a", [(1, "num_receivers, treecode, receivers-")])
    assert problems(words, "header", "x/b.h", [(1, "A tree code of receivers")]) == ["x/b.h:1: 'receivers': write target"]
    assert glossary("# a\n| x | y |\n\n## Glossary\n\n| word | meaning |\n|---|---|\n| source, target | a |\n| rotate; flip | b |\n") == {"source", "target", "rotate", "flip"}
    assert "code" not in without_code("```sh\ncode\n```\n`code` and [text](code.md)")
    print("words are found where they are not written")


def main():
    if sys.argv[1:] == ["--test"]:
        return test()
    root = Path(sys.argv[1])
    words = table((Path(__file__).parent / "words.txt").read_text())
    known = glossary((root / "docs/theory.md").read_text(encoding="utf-8"))
    found = [f"words.txt: '{instead}' is not in the glossary" for _, instead, _, of_glossary, _ in words if of_glossary and instead not in known]
    count = 0
    for kind, path, blocks in sources(root):
        if kind == "document":
            blocks = [(1, without_code(path.read_text(encoding="utf-8")))]
        count += sum(len(text.split()) for _, text in blocks)
        found += problems(words, kind, path.relative_to(root), blocks)
    assert count > 50000 and len(known) > 15, "hardly any words: is this the root of the repository?"
    for problem in found:
        print(problem)
    print(f"{len(words)} rows of words.txt, {len(known)} words of the glossary, {count} words read, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
