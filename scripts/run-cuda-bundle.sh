#!/usr/bin/env bash
# Runs all tests and benchmarks of the library on a GPU, from a folder made by make-cuda-bundle.sh:
#   FOLDER/run.sh OUT
# Writes OUT/cuda-tests.json, OUT/water.json and, with Nsight Compute, OUT/kernels.json, logs beside them.
set -uo pipefail
bundle=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "${1:?usage: run.sh OUT}")
mkdir -p "$out"
cuda=${CUDA_HOME:-/usr/local/cuda}
export LD_LIBRARY_PATH=$bundle/lib:$cuda/lib64:${LD_LIBRARY_PATH:-} PATH=$PATH:$cuda/bin
export GMXFMM_SPC216=$bundle/spc216.gro GMXFMM_REFERENCE_DATA=$bundle/data GMXFMM_TESTS_DEVICE=cuda
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}
chmod +x "$bundle"/bin/*
failed=0

for test in "$bundle"/bin/gmxfmm_test_*; do
    name=$(basename "$test")
    "$test" --gtest_brief=1 >"$out/$name.log" 2>&1
    code=$?
    echo "$name $code $(grep -c '^\[  SKIPPED' "$out/$name.log") $(grep -E '^\[  PASSED' "$out/$name.log")"
    [ $code -eq 0 ] || failed=1
done | tee "$out/tests.txt"
grep -q -v -E '^[^ ]+ 0 ' "$out/tests.txt" && failed=1

if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        compute-sanitizer --tool $tool --error-exitcode 9 "$bundle/bin/benchmark-water_cuda" "$GMXFMM_SPC216" 1 --once \
            6 4 1 8 5 1 3 7 2 12 3 1 >"$out/$tool.log" 2>&1
        echo "compute-sanitizer-$tool $? 0 $(tail -1 "$out/$tool.log")" | tee -a "$out/tests.txt"
    done
fi

water=$bundle/bin/benchmark-water_cuda
: >"$out/water.txt"
"$water" "$GMXFMM_SPC216" 5 0 0 0 8 18 1 8 20 1 8 16 1 7 15 1 7 16 1 9 20 1 5 28 2 5 30 2 6 24 2 | tee -a "$out/water.txt"
"$water" "$GMXFMM_SPC216" 12 0 0 0 8 45 1 8 42 1 8 40 1 7 36 1 9 50 1 9 48 1 5 64 2 | tee -a "$out/water.txt"
if command -v ncu >/dev/null; then
    ncu --clock-control none --csv --metrics gpu__time_duration.sum,smsp__issue_active.avg.pct_of_peak_sustained_active,\
dram__throughput.avg.pct_of_peak_sustained_elapsed,sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active,\
l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed \
        "$water" "$GMXFMM_SPC216" 12 --once 8 45 1 >"$out/ncu.csv" 2>&1
fi
python3 "$bundle/cuda-results.py" "$out" "$(cat "$bundle/commit")" "$0 $*"
exit $failed
