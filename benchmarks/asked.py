#!/usr/bin/env python3
"""Force errors that gmxfmm solve reaches over those that it was asked for, with and without measuring.

  asked.py GMXFMM FILE...   -> results/<device>/asked.json; plot.py draws it

FILE: systems with reference fields, in the format that gmxfmm reads.
"""
import datetime
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "tests", "mdrun"))
from harness import commit, device  # noqa: E402

ASKED = {"double": (1e-2, 4e-4, 1e-5, 1e-6, 1e-8), "single": (1e-2, 4e-4, 1e-5)}


def solve(program, path, asked, precision, measure):
    done = subprocess.run([program, "solve", path, "--accuracy", f"{asked:g}", "--precision", precision, "--measure", measure],
                          text=True, capture_output=True)
    values = dict(re.findall(r"^(\w+): (\S+)$", done.stdout, re.M))
    if done.returncode == 0 and "force_error" not in values:
        sys.exit(f"{path} has no reference fields")
    record = {"system": os.path.basename(path).removesuffix(".gz").removesuffix(".txt"), "precision": precision, "asked": asked, "measure": measure}
    if done.returncode != 0:
        return {**record, "refused": done.stderr.strip().split(": ", 2)[-1]}
    if "force_error_unit" in values:  # forces that vanish by symmetry
        return None
    return {**record, "reached": float(values["force_error"]), "predicted": float(values["predicted_error"]),
            **({"measured": float(values["measured_error"])} if "measured_error" in values else {})}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, files = sys.argv[1], sys.argv[2:]
    records = [solve(program, path, asked, precision, measure) for path in files for precision, accuracies in ASKED.items()
               for asked in accuracies for measure in ("yes", "no")]
    records = [r for r in records if r]
    head = {"benchmark": "asked", "device": device(0), "date": datetime.date.today().isoformat(), "commit": commit(),
            "command": "benchmarks/asked.py " + " ".join(map(os.path.basename, sys.argv[1:]))}
    machine = head["device"]
    folder = os.path.join(HERE, "results", re.sub(r"[^a-z0-9]+", "-", f"{machine['cpu']} {machine['cores']} cores".lower()).strip("-"))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "asked.json"), "w") as out:
        rows = ",\n".join("  " + json.dumps(r) for r in records)
        out.write(json.dumps(head, indent=1)[:-2] + f',\n "records": [\n{rows}\n ]\n}}\n')
    for measure in ("yes", "no"):
        mine = [r for r in records if r["measure"] == measure and "reached" in r]
        missed = [r for r in mine if r["reached"] > r["asked"]]
        print(f"measure {measure}: {len(mine)} solved, {len(missed)} above what was asked")


main()
