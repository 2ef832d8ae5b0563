#!/usr/bin/env bash
# CPU speed of mdrun with FMM against PME at default accuracy on a cube of water.
# Usage: benchmarks/mdrun.sh [--gmx GMX] [--copies N] [--steps N] [--pairs N] [--threads N] [--output FILE]
#   --gmx GMX      patched gmx (default: build/install/bin/gmx of ./quickstart.sh)
#   --copies N     water boxes of 648 atoms along each edge (default 5: 81,000 atoms)
#   --steps N      steps of a run, of which the second half is timed (default 200)
#   --pairs N      runs of each, in turns (default 3)
#   --threads N    OpenMP threads (default: the cores)
#   --fmm OPTION=VALUE  settings of FMM, any number of times (default: all automatic, which is more exact than PME)
#   --output FILE  default: benchmarks/results/<device>/mdrun-water-cpu.json
# Prints the ratio of the times per step and where they go. Nothing else should run meanwhile: the pairs of runs that it prints should
# agree within a few percent.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONDONTWRITEBYTECODE=1
export GMXFMM_BENCHMARK_COMMAND="benchmarks/mdrun.sh $*"
exec python3 "$root/benchmarks/mdrun.py" "$@"
