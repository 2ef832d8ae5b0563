#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Holds sentences of documents, public headers, Python docstrings and messages to plain English.

Usage: sentences.py ROOT [--list]     --list: a line for each file, with its number of sentences, the mean and how many are too long
       sentences.py --test            its own test: how it splits text, and that it finds what is wrong

- No sentence has more than 30 words. On each page and in each header, and in all docstrings together, the mean is below 16.
- A sentence begins with its subject: not "Of two things the cheaper is taken", nor "Refused are ...".

What is left out: blocks of code, tables, headings, comments, references, and equations, which are paragraphs that begin with
a number in parentheses, and words with signs of formulas (_ ^ = | Σ ...). A span of code is one word. A paragraph and an item of a list end a sentence.
"""
import re
import sys
from pathlib import Path

from prose import comment_blocks, docstring_blocks, document_blocks, messages, python_messages, sources

LONGEST, MEAN = 30, 16
# How sentences begin whose subject comes later.
TURNED = r"Of (?!course\b)|(Refused|Offered|Wanted|Needed|Given|Written|Printed|Near|Left|Asked|Taken) (is|are) "
# A dot behind these ends no sentence.
ABBREVIATIONS = {"e.g.", "i.e.", "vs.", "fig.", "eq.", "eqs.", "al.", "cf.", "no.", "sec."}


def sentences(text):
    """The sentences of a block."""
    text = re.sub(r"`[^`]+`", "`code`", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found, begin = [], 0
    for match in re.finditer(r"[.!?][\"')\]*_]*(?=\s|$)", text):
        last = text[begin:match.end()].split()[-1].lstrip("(\"'*_")
        if last[:1].lower() + last[1:] in ABBREVIATIONS or re.fullmatch(r"[A-Z]\.", last):  # of a name
            continue
        found.append(text[begin:match.end()].strip())
        begin = match.end()
    rest = text[begin:].strip()
    return found + [rest] if rest else found


def words(sentence):
    return sum(1 for word in sentence.split() if re.search(r"\w", word) and not re.search(r"[_^{}|=∂Σ∇⊗√]", word))


def measure(blocks):
    """(line, words, sentence) of each sentence of some blocks."""
    return [(line, words(s), s) for line, block in blocks for s in sentences(block) if words(s)]


def problems(name, blocks, has_mean=True):
    counted = measure(blocks)
    found = [f"{name}:{line}: {count} words: {s}" for line, count, s in counted if count > LONGEST]
    found += [f"{name}:{line}: does not begin with its subject: {s}" for line, _, s in counted if re.match(TURNED, s)]
    mean = sum(count for _, count, _ in counted) / max(1, len(counted))
    if has_mean and counted and mean >= MEAN:
        found.append(f"{name}: {mean:.1f} words a sentence, and not less than {MEAN}")
    return found


def test():
    page = ("# A heading of a page\n\nOne sentence in `md.log`, e.g. this one. mdrun writes\na second (with a\nlink to [two words](a.md#b.c)). Is it 1.5?\n\n"
            "| a | table. with. dots. |\n|---|---|\n\n```sh\ncode. here.\n```\n\n- An item without a dot\n- another one:\n  it goes on\n1. by W. Dehnen et al. in x, y and z. New k_2 = 5\n\n"
            "(12) S = T. An equation.\n\n<!-- A comment.\nOf two lines. -->\n![a picture.](b.svg)\n\n## References\n\n- A. Author, A paper. In a journal.\n")
    counts = [count for _, count, _ in measure(document_blocks(page))]
    assert counts == [7, 10, 3, 5, 5, 10, 2], counts
    assert [line for line, _, _ in measure(document_blocks(page))] == [3, 3, 3, 14, 15, 17, 17]
    thirty = " ".join(["word"] * 30)
    short = "\n\nTwo words."

    def wrong(text):
        return len(problems("a", document_blocks(text)))

    assert wrong(thirty + "." + short * 3) == 0
    assert wrong(thirty + " more." + short * 3) == 1  # one sentence is too long
    assert wrong(" ".join(["word"] * 15) + ".") == 0
    assert wrong(" ".join(["word"] * 16) + ".") == 1  # the mean is too large
    assert wrong(thirty + " `a b` c.") == 2
    assert wrong("Of two ways it takes one.") == 1 and wrong("Refused are wires.") == 1
    assert wrong("Of course. One of two ways. Refused calls fail.") == 0

    header = "/* SPDX-Licence */\n/* Does this. It needs\n * that.\n *\n *   a    one thing\n *   bb   another,\n *        and more\n */\nint a; /* [0] a member */\n"
    assert comment_blocks(header) == [(2, "Does this. It needs that."), (5, "a    one thing"), (6, "bb   another, and more"), (9, "[0] a member")], comment_blocks(header)
    code = '"""The module."""\ndef f(x):\n    """Gives it.\n\n    x   a number\n    """\n    return "not a" " docstring" + f"the {x} here"\n'
    assert docstring_blocks(code) == [(1, "The module."), (3, "Gives it."), (5, "x   a number")], docstring_blocks(code)
    assert sorted(python_messages(code)) == [(7, "not a docstring"), (7, "the it here")], python_messages(code)
    c = 'f("one %d "\n  "line\\ntwo"); // "not this"\n/* "nor this" */ g("a \\"b\\"");'
    assert messages(c) == [(1, "one %d line"), (1, "two"), (3, 'a "b"')], messages(c)
    print("sentences are split and counted as they should be")


def main():
    if sys.argv[1:] == ["--test"]:
        return test()
    root = Path(sys.argv[1])
    found, every, files = [], {}, 0
    for kind, path, blocks in sources(root):
        name = path.relative_to(root)
        found += problems(name, blocks, kind in ("document", "header"))
        counted = [count for _, count, _ in measure(blocks)]
        every.setdefault(kind, []).extend(counted)
        files += 1
        if "--list" in sys.argv and counted:
            print(f"{kind} {name}: {len(counted)} sentences, {sum(counted) / len(counted):.1f} words a sentence, {sum(c > LONGEST for c in counted)} too long")
    assert len(every) == 4 and all(len(counted) > 200 for counted in every.values()), "hardly any sentences: is this the root of the repository?"
    if sum(every["docstring"]) >= MEAN * len(every["docstring"]):
        found.append(f"docstrings: not less than {MEAN} words a sentence")
    for problem in found:
        print(problem)
    counts = ", ".join(f"{len(counted)} of a {kind} ({sum(counted) / len(counted):.1f} words)" for kind, counted in every.items())
    print(f"{files} files; sentences: {counts}; {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
