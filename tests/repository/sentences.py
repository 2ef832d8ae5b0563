#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts the words of sentences in README.md and docs/*.md: none has more than 30, and on each page their mean is below 16.

Usage: sentences.py ROOT [--list]     --list: a line for each page, with its number of sentences, the mean and the longest
       sentences.py --test            its own test: how it splits text, and that it finds what is too long

What is left out: blocks of code, tables, headings, comments, references, and equations, which are paragraphs that begin with
a number in parentheses, and words with signs of formulas (_ ^ = | Σ ...). A span of code is one word. A paragraph and an item of a list end a sentence.
"""
import re
import sys
from pathlib import Path

LONGEST, MEAN = 30, 16
# A dot behind these ends no sentence.
ABBREVIATIONS = {"e.g.", "i.e.", "vs.", "fig.", "eq.", "eqs.", "al.", "cf.", "no.", "sec."}


def blocks(text):
    """Paragraphs and items of lists, each as (line, text)."""
    references, code, found, start = False, False, [], None
    text = re.sub(r"<!--.*?-->", lambda match: re.sub(r"[^\n]", "", match[0]), text, flags=re.S)
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if bare.startswith("```"):
            code, start = not code, None
        elif code:
            pass
        elif re.match(r"#+ ", bare):
            references, start = bare.lower().endswith(" references"), None
        elif not bare or bare.startswith(("|", "![")):
            start = None
        elif not references:
            item = re.match(r"([-*]|\d+\.) +", bare)
            if start is None or item:
                start = len(found)
                found.append((number, bare[item.end():] if item else bare))
            else:
                found[start] = (found[start][0], found[start][1] + " " + bare)
    return [block for block in found if not re.match(r"\(\d+\) ", block[1])]


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


def measure(text):
    """(line, words, sentence) of each sentence of a page."""
    return [(line, words(s), s) for line, block in blocks(text) for s in sentences(block) if words(s)]


def problems(name, text):
    counted = measure(text)
    found = [f"{name}:{line}: {count} words: {s}" for line, count, s in counted if count > LONGEST]
    mean = sum(count for _, count, _ in counted) / max(1, len(counted))
    if counted and mean >= MEAN:
        found.append(f"{name}: {mean:.1f} words a sentence, and not less than {MEAN}")
    return found


def test():
    page = ("# A heading of a page\n\nOne sentence in `md.log`, e.g. this one. mdrun writes\na second (with a\nlink to [two words](a.md#b.c)). Is it 1.5?\n\n"
            "| a | table. with. dots. |\n|---|---|\n\n```sh\ncode. here.\n```\n\n- An item without a dot\n- another one:\n  it goes on\n1. by W. Dehnen et al. in x, y and z. New k_2 = 5\n\n"
            "(12) S = T. An equation.\n\n<!-- A comment.\nOf two lines. -->\n![a picture.](b.svg)\n\n## References\n\n- A. Author, A paper. In a journal.\n")
    counts = [count for _, count, _ in measure(page)]
    assert counts == [7, 10, 3, 5, 5, 10, 2], (counts, measure(page))
    assert [line for line, _, _ in measure(page)] == [3, 3, 3, 14, 15, 17, 17]
    thirty = " ".join(["word"] * 30)
    short = "\n\nTwo words."
    assert not problems("a", thirty + "." + short * 3)
    assert len(problems("a", thirty + " more." + short * 3)) == 1  # one sentence is too long
    assert not problems("a", " ".join(["word"] * 15) + ".")
    assert len(problems("a", " ".join(["word"] * 16) + ".")) == 1  # the mean is too large
    assert len(problems("a", thirty + " `a b` c.")) == 2
    print("sentences are split and counted as they should be")


def main():
    if sys.argv[1:] == ["--test"]:
        return test()
    root = Path(sys.argv[1])
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    assert len(pages) > 8, "hardly any pages: is this the root of the repository?"
    found, every = [], []
    for path in pages:
        text, name = path.read_text(encoding="utf-8"), path.relative_to(root)
        found += problems(name, text)
        counted = [count for _, count, _ in measure(text)]
        every += counted
        if "--list" in sys.argv:
            print(f"{name}: {len(counted)} sentences, {sum(counted) / max(1, len(counted)):.1f} words a sentence, {sum(c > LONGEST for c in counted)} too long")
    for problem in found:
        print(problem)
    print(f"{len(pages)} pages, {len(every)} sentences, {sum(every) / len(every):.1f} words a sentence, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
