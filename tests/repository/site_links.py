# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hooks of mkdocs.yml: files that the pages of docs link to outside of docs are in the site, too; formulas have indices.

On GitHub ../benchmarks/results/... and ../src/... are files of the repository. In the site they are under files/; Markdown is
shown as text there. documents.py holds links and anchors to the repository.
"""
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
# Indices and powers in the formulas of theory.md: X_n, X_{n+1}, X^m, X^{m+1}.
INDEX = re.compile(r"([_^])(?:\{([^{}]*)\}|([^\W\d_]+|[+−±]?\d+|[+*]))")
OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files, config):
    """Adds the files that pages link to outside of docs."""
    wanted = set()
    for page in files.documentation_pages():
        wanted |= {match[1] for match in OUTSIDE.finditer(Path(page.abs_src_path).read_text(encoding="utf-8"))}
    for name in sorted(wanted):
        # a name that is no page's: Markdown would be built
        to = "files/" + name + (".txt" if name.endswith(".md") else "")
        files.append(File.generated(config, to, content=(ROOT / name).read_bytes()))
    return files


def with_indices(text):
    """Formulas outside of code, set with indices and powers."""
    def shown(match):
        tag, inside = ("sub" if match[1] == "_" else "sup"), match[2] or match[3]
        return f"<{tag}>{inside}</{tag}>"
    parts = re.split(r"(`[^`\n]+`|\[[^\]]*\]\([^)]*\))", text)
    return "".join(part if at % 2 else INDEX.sub(shown, part) for at, part in enumerate(parts))


def on_page_markdown(markdown, page, **_):
    """Lets links lead there; anchors are of pages, and these are none."""
    if page.file.src_uri == "theory.md":
        markdown = with_indices(markdown)
    return OUTSIDE.sub(lambda match: f"](files/{match[1]}" + (".txt" if match[1].endswith(".md") else "") + ")", markdown)
