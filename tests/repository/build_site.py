#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds docs as a site by mkdocs.yml, strictly: no warning, every page in the table at the left, links and anchors that lead
somewhere, formulas with indices. And that a broken link is found.

Usage: build_site.py ROOT      status 77 where mkdocs is missing, or older than 1.6
"""
import sys

sys.path.pop(0)  # types.py beside this file is not Python's

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()


def build(config, site):
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(site)],
                          capture_output=True, text=True)


def main():
    version = importlib.metadata.version("mkdocs") if importlib.util.find_spec("mkdocs") else "0.0"
    if tuple(map(int, version.split(".")[:2])) < (1, 6):  # anchors are looked at since
        print("there is no mkdocs here, or one before 1.6")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        done = build(ROOT / "mkdocs.yml", site)
        if done.returncode or "WARNING" in done.stderr:
            print(done.stdout + done.stderr)
            return 1
        pages = sorted((ROOT / "docs").glob("*.md"))
        for page in pages:
            built = site / ("index.html" if page.stem == "README" else f"{page.stem}/index.html")
            assert built.exists(), f"{page.name} is not in the site"
        theory = (site / "theory" / "index.html").read_text(encoding="utf-8")
        prose = re.sub(r"<(code|script|nav|head)\b.*?</\1>|<[^>]*>", "", theory, flags=re.S)
        left = [word for word in re.findall(r"\S*\S[_^]\S*", prose) if not re.search(r"\.[ch]\)", word)]  # names of files, in the table of headings
        assert theory.count("<sub>") > 200 and not left, f"formulas of theory.md that do not show: {left[:5]}"
        # a copy with a link that leads nowhere
        for name in ("docs", "tests/repository"):
            shutil.copytree(ROOT / name, Path(folder) / name)
        (Path(folder) / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text().replace("  - tests/repository/site_links.py", "  - no_hooks.py"))
        (Path(folder) / "no_hooks.py").write_text("")
        (Path(folder) / "docs" / "slabs.md").write_text("# Slabs\n\n[nowhere](nowhere.md)\n")
        assert build(Path(folder) / "mkdocs.yml", Path(folder) / "broken").returncode, "a broken link was not found"
    print(f"{len(pages)} pages, no warning")
    return 0


if __name__ == "__main__":
    sys.exit(main())
