# SPDX-License-Identifier: LGPL-2.1-or-later
"""The prose of this repository: blocks of documents, of comments in public headers, of Python docstrings and of messages.

A block is a paragraph, an item of a list, a row of a table in a comment or docstring, or one message.
"""
import ast
import re
from pathlib import Path

LITERAL = r'"(?:[^"\\\n]|\\.)*"'


def document_blocks(text):
    """Paragraphs and items of lists of a Markdown page, each as (line, text)."""
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


def plain_blocks(first, text):
    """Paragraphs of a comment or docstring. One with columns is a table: each line that is not indented further is a row."""
    found, lines = [], text.split("\n")
    for match in re.finditer(r"(?:^.*\S.*\n?)+", text, re.M):
        number = text.count("\n", 0, match.start())
        rows = lines[number:number + match[0].rstrip("\n").count("\n") + 1]
        margin = min(len(row) - len(row.lstrip()) for row in rows)
        table = any(re.search(r"\S {2,}\S", row) for row in rows)
        for row, line in enumerate(rows):
            item = re.match(r"\s*- +", line)
            if row == 0 or item or (table and len(line) - len(line.lstrip()) == margin):
                found.append((first + number + row, line[item.end():].strip() if item else line.strip()))
            else:
                found[-1] = (found[-1][0], found[-1][1] + " " + line.strip())
    return found


def comment_blocks(text):
    """Those of comments in C."""
    found = []
    for match in re.finditer(r"/\*(.*?)\*/", text, re.S):
        body = re.sub(r"^[ \t]*\* ?", "", match[1], flags=re.M)
        lines = [re.sub(r"^ +", "", body.split("\n")[0]), *body.split("\n")[1:]]
        if len(lines) > 1 and lines[0]:  # the text begins behind the sign of the comment
            margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
            lines[0] = " " * margin + lines[0]
        if "SPDX" not in match[1]:
            found += plain_blocks(text.count("\n", 0, match.start()) + 1, "\n".join(lines))
    return found


def docstring_blocks(text):
    """Those of docstrings of Python."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            found += plain_blocks(node.body[0].lineno, ast.get_docstring(node))
    return found


def messages(text):
    """String literals of C, adjacent ones joined, as (line, text); a line of text for each."""
    text = re.sub(rf'//[^\n]*|/\*.*?\*/|({LITERAL})', lambda match: match[0] if match[1] else re.sub(r"[^\n]", " ", match[0]), text, flags=re.S)
    found = []
    for match in re.finditer(rf"{LITERAL}(?:\s*(?:PRI\w+\s*)?{LITERAL})*", text):
        joined = "".join(part[1:-1] for part in re.findall(LITERAL, match[0])).replace('\\"', '"')
        found += [(text.count("\n", 0, match.start()) + 1, " ".join(line.split())) for line in joined.split("\\n") if line.strip()]
    return found


def python_messages(text):
    """Strings of Python that are no docstrings."""
    tree, found = ast.parse(text), []
    docstrings = {id(node.body[0].value) for node in ast.walk(tree)
                  if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            found.append((node.lineno, "".join(part.value if isinstance(part, ast.Constant) else "it" for part in node.values)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | parts:
            found.append((node.lineno, node.value))
    return found


def sources(root):
    """(kind, path, blocks) of everything: kinds document, header, docstring and message."""
    root = Path(root)
    documents = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md")),
                 *(root / name / "README.md" for name in ("benchmarks", "gromacs-patch", "python", "tests", "tests/mdrun"))]
    for path in documents:
        yield "document", path, document_blocks(path.read_text(encoding="utf-8"))
    for path in sorted((root / "src/fmm").glob("gmxfmm*.h")):
        yield "header", path, comment_blocks(path.read_text())
    for path in sorted((root / "python").glob("**/*.py")):
        if not {"build", "__pycache__"} & set(path.relative_to(root).parts):
            yield "docstring", path, docstring_blocks(path.read_text())
            if "gmxfmm" in path.parts[-2:-1]:
                yield "message", path, python_messages(path.read_text())
    for folder in ("src", "gromacs-patch"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".cpp", ".cu", ".def") and "tests" not in path.relative_to(root).parts:
                yield "message", path, messages(path.read_text())
