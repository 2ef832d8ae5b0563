#!/usr/bin/env bash
# Runs the tests that need a GPU from a folder made by make-gpu-bundle.sh. Usage: run-gpu-bundle.sh FOLDER OUT
# Writes OUT/nb-gpu.json (results with device, driver, date, commit, command), logs beside it, and prints a short table.
set -euo pipefail
bundle=$(realpath "${1:?usage: run-gpu-bundle.sh FOLDER OUT}")
out=$(realpath -m "${2:?usage: run-gpu-bundle.sh FOLDER OUT}")
command_line="$0 $*"
cd "$(dirname "$0")/.."
mkdir -p "$out"

export LD_LIBRARY_PATH=$bundle/lib:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
export GMXLIB=$bundle/top GMXFMM_GMX=$bundle/bin/gmx GMXFMM_REGRESSION=$bundle/regression GMXFMM_WORK=/tmp/gmxfmm-gpu
chmod +x "$GMXFMM_GMX"
"$GMXFMM_GMX" --version | grep -E 'GROMACS version|GPU support|SIMD|CUDA' || true
status=0
python3 tests/mdrun/nb_gpu.py >"$out/nb-gpu.log" 2>&1 || status=$?
cp /tmp/gmxfmm-gpu/*/run.log "$out/mdrun-run.log" 2>/dev/null || true
python3 - "$out" "$(cat "$bundle/commit")" "$command_line" "$status" <<'PY'
import datetime, json, re, subprocess, sys
out, commit, command, status = sys.argv[1:]
device, driver = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                capture_output=True, text=True).stdout.strip().split(", ")
lines = [l for l in open(out + "/nb-gpu.log") if re.match("PASS|FAIL|SKIP", l)]
json.dump({"device": device, "driver": driver, "date": datetime.date.today().isoformat(), "commit": commit,
           "command": command, "status": int(status), "checks": [l.strip() for l in lines]},
          open(out + "/nb-gpu.json", "w"), indent=1)
PY
cat "$out/nb-gpu.log"
exit "$status"
