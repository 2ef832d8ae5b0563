"""The part of run-mdrun-bundle.sh that stores what a test script printed: mdrun-test-results.py LOG OUT RESULTS NAME STATUS SECONDS SUFFIX

The checks in the output LOG become the entry NAME of OUT/mdrun-testsSUFFIX.json, beside what is there, or in the
stored result of the same device under the folder RESULTS. Each entry has the commit that it is of.
"""
import datetime
import json
import os
import re
import subprocess
import sys

log_file, out, results, name, status, seconds, suffix = sys.argv[1:]
device, driver = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True,
                                check=True).stdout.splitlines()[0].split(", ")
file_name = f"mdrun-tests{suffix}.json"
path = os.path.join(out, file_name)
stored = os.path.join(results, re.sub(r"[^a-z0-9]+", "-", device.lower()), file_name)
entries = []
for place in (path, stored):
    if os.path.exists(place):
        with open(place) as file:
            known = json.load(file)
        entries = known["scripts"]
        break
with open(log_file, errors="replace") as log:
    checks = [line.strip() for line in log if re.match("PASS|FAIL|SKIP", line)]
entry = {"name": name, "driver": driver, "commit": os.environ["GMXFMM_BENCHMARK_COMMIT"], "status": int(status), "seconds": int(seconds), "date": datetime.date.today().isoformat(),
         "command": os.environ["GMXFMM_BENCHMARK_COMMAND"], "checks": checks}
entries = [e for e in entries if e["name"] != name] + [entry]
with open(path, "w") as file:
    json.dump({"device": device, "scripts": entries}, file, indent=1)
    file.write("\n")
counts = [sum(c.startswith(word) for c in checks) for word in ("PASS", "FAIL", "SKIP")]
print(f"{name}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped, status {status}, {seconds} s")
