#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds docs as a site by mkdocs.yml, strictly: no warning, every page in the table at the left, links and anchors that lead
somewhere, formulas with indices. And that a broken link is found.

Usage: build_site.py ROOT [WORK]   mkdocs of this version is fetched by pip into WORK, and kept there; without WORK into a folder that is removed.
                                   Status 77 where that cannot be done, as without a network
"""
import sys

sys.path.pop(0)  # types.py beside this file is not Python's

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
MKDOCS = "1.6.1"  # 1.6 is the first that looks at anchors


def fetched(work):
    """A Python that has mkdocs; or None."""
    python = work / "venv" / "bin" / "python"
    version = "import importlib.metadata as m; print(m.version('mkdocs'))"
    if python.exists() and subprocess.run([python, "-c", version], capture_output=True, text=True).stdout.strip() == MKDOCS:
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", work / "venv"], capture_output=True, check=True)
        subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "-q", "--retries", "1", "--timeout", "15", "install", f"mkdocs=={MKDOCS}"],
                       capture_output=True, check=True, timeout=120)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        shutil.rmtree(work / "venv", ignore_errors=True)
        return None
    return python


def build(python, config, site):
    return subprocess.run([python, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(site)],
                          capture_output=True, text=True)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        python = fetched(Path(sys.argv[2] if len(sys.argv) > 2 else scratch).resolve())
        if python is None:
            print(f"SKIPPED: no mkdocs {MKDOCS}, and pip cannot fetch it (Debian: python3-venv)")
            return 77
        return check(python)


def check(python):
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        done = build(python, ROOT / "mkdocs.yml", site)
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
        assert build(python, Path(folder) / "mkdocs.yml", Path(folder) / "broken").returncode, "a broken link was not found"
    print(f"{len(pages)} pages, no warning")
    return 0


if __name__ == "__main__":
    sys.exit(main())
