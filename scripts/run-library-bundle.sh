#!/usr/bin/env bash
# Runs tests and benchmarks of the library on a GPU, from a folder made by make-library-bundle.sh:
#   FOLDER/run.sh OUT [PART]...
# Parts (all without an argument), and what they write into OUT:
#   tests     all suites on the GPU; memcheck and racecheck on small cases      cuda-tests.json
#   water     a step in water                                                   water.json
#   slab      a step of a film of water in a slab, beside the same cells in a box   slab.json
#   charges   derivatives of the energy by parameters of charges                 charge_gradient.json
#   m2l       M2L of the octree alone, and its bounds                           m2l.json
#   points    charges and targets in a cube, to 64 million of each; far field by both ways   points.json, far.json
#   choice    settings chosen by measurement in water, against those of the model     choice.json
#   treecode  whole calls: 1 to 64 million charges, both kernels, both precisions   treecode.json
#   ranks     the treecode on ranks that are threads, on 1, 2, 4, 8 GPUs, as many as there are (GMXFMM_RANKS_COUNTS: others). Cases
#             KERNEL-TRAVERSAL-SIZE, of coulomb or yukawa, particle or dual, strong (64 million charges), weak (16 million a GPU) or
#             largest (GMXFMM_RANKS_LARGEST charges, once, on the most GPUs alone): GMXFMM_RANKS_CASES, all without it, largest ones
#             only where that is set. GMXFMM_RANKS_SETTING: other than theta 0.8, degree 8, leaves of 4,000 (0.8,8,4000).
#             GMXFMM_SECONDS: nothing goes on after so many                                 treecode-ranks.json
#   kernels   what each kernel uses of the device (Nsight Compute)              kernels.json
#   devices   a step on one GPU and on several, only where it is asked for   devices.json
#   python    the package's tests with arrays of PyTorch, CuPy and JAX; a step from Python   python-tests.json, python-gpu.json
# and OUT/logs.tar.gz. The status is 0 only if everything that was asked for ran and passed; 3 if there is no GPU.
set -uo pipefail
bundle=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "${1:?usage: run.sh OUT [tests|water|slab|charges|m2l|points|choice|treecode|ranks|kernels|devices|python]...}")
command="$(basename "$bundle")/run.sh OUT ${*:2}"
shift
parts=("$@")
((${#parts[@]})) || parts=(tests water slab charges m2l points choice treecode ranks kernels python)
for part in "${parts[@]}"; do
    case $part in tests | water | slab | charges | m2l | points | choice | treecode | ranks | kernels | devices | python) ;; *) echo "run.sh: unknown part '$part'" >&2 && exit 2 ;; esac
done
cuda=${CUDA_HOME:-/usr/local/cuda}
export LD_LIBRARY_PATH=$bundle/lib:$cuda/lib64:${LD_LIBRARY_PATH:-} PATH=$PATH:$cuda/bin
export GMXFMM_SPC216=$bundle/spc216.gro GMXFMM_REFERENCE_DATA=$bundle/data
export GMXFMM_TESTS_OWN_DATA=$bundle/own GMXFMM_TESTS_WATER=$bundle/own/water216.gro
if [[ $(nvidia-smi -L 2>/dev/null) != *GPU* ]]; then
    echo "run.sh: there is no NVIDIA GPU here (nvidia-smi lists none): nothing was run" >&2
    exit 3
fi
gpus=${GMXFMM_GPUS:-$(nvidia-smi -L | grep -c GPU)} # over which tests are spread
bin=$bundle/bin
water=$bin/benchmark-water_cuda points=$bin/benchmark-points_cuda
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/logs" "$work/kernels"
export GMXFMM_CACHE=$work/kernels
cp "$bundle"/kernels/* "$work/kernels" 2>/dev/null
chmod +x "$bin"/*
failed=0

# store PART [quiet]: results of what is there, and all logs so far: a command that is stopped loses nothing
store() {
    python3 "$bundle/library-results.py" "$work/logs" "$out" "$(cat "$bundle/commit")" "$command" "$@" || failed=1
    tar -C "$work" -czf "$out/logs.tar.gz" logs
}

# measure PART NAME PROGRAM [ARGUMENT]...: appends what it prints to the log NAME.txt
measure() {
    local part=$1 name=$2
    shift 2
    if ! "$@" 2> >(tee -a "$work/logs/$name.err" >&2) >>"$work/logs/$name.txt"; then
        echo "FAILED: ${*##*/}"
        failed=1
    fi
    store "$part" quiet
}

# shellcheck disable=SC2317 # called by way of xargs
# one_test NAME COMMAND...: a line of tests.txt: name, status, seconds
one_test() {
    local name=$1 begin=$SECONDS code k devices=
    shift
    for ((k = 0; k < gpus; k++)); do devices+=${devices:+,}$(((${slot:-0} + k) % gpus)); done # all, another one first
    CUDA_VISIBLE_DEVICES=$devices timeout 540 "$@" >"$work/logs/$name.log" 2>&1
    code=$?
    echo "$name $code $((SECONDS - begin))"
}
export -f one_test
export work bin water points gpus

run_tests() {
    export GMXFMM_TESTS_DEVICE=cuda OMP_NUM_THREADS=2
    local tool kind test number jobs=()
    for test in octree parts charges box assign; do # the longest first
        jobs+=("one_test gmxfmm_test_cuda_$test $bin/gmxfmm_test_cuda_$test")
    done
    # kernels that launch kernels (dynamic) are not seen by these tools
    for tool in racecheck memcheck; do
        local check="compute-sanitizer --tool $tool --error-exitcode 9" api=
        # whether a device may reach another one's memory already, nothing tells but the error of asking for it again
        [ "$tool" = memcheck ] && api=" --report-api-errors no"
        jobs+=("one_test $tool-water $check $water $GMXFMM_SPC216 1 --once 6 4 1 8 5 1 3 7 2 12 3 1"
            "one_test $tool-octree $check $points 3000 --once rotation 6 2 1 symmetric 5 2 1 naive 3 2 1 rotation 8 3 2 symmetric 3 2 2 fft 5 4 1"
            "one_test $tool-octree-periodic $check $points 3000 --once --signed --periodic --no-targets rotation 7 2 1 symmetric 6 3 1 rotation 4 2 2"
            "one_test $tool-octree-double $check $points 2000 --once --double rotation 5 2 1 symmetric 7 2 1 naive 2 1 2"
            "one_test $tool-assign $check $bin/gmxfmm_test_cuda_assign --gtest_filter=*CudaAssignIn.CrowdsMayComeAndGo/RectangularSingleOfFloats:*CudaAssignIn.CrowdsMayComeAndGo/TriclinicDoubleOfDoubles:*CudaAssignIn.ComesInParts/TriclinicSingleOfFloats"
            "one_test $tool-min-distance $check $bin/gmxfmm_test_min_distance --gtest_filter=*LimitsPairs/FftTriclinicSingle"
            "one_test $tool-box $check $bin/gmxfmm_test_cuda_box --gtest_filter=*CudaBox.GraphsFollow*/RectangularSingle"
            "one_test $tool-box-line $check $bin/gmxfmm_test_cuda_box --gtest_filter=*CudaBox.*BetweenNodes/TriclinicDouble"
            "one_test $tool-slab $check $bin/gmxfmm_test_cuda_slab --gtest_filter=*CudaSlab.Agrees/SquareSingle:*CudaSlab.AgreesAlongOtherAxes/ObliqueDouble:*CudaSlab.FollowsTheBoxOnAStream/UnevenSingle"
            "one_test $tool-streams $check $bin/gmxfmm_test_cuda_streams --gtest_filter=*AnEventTells*"
            "one_test $tool-ranks $check$api $bin/gmxfmm_test_cuda_ranks --gtest_filter=CudaRanks.AgreeWithTheCpu/CoulombDouble2:CudaRanks.AgreeWithTheCpu/YukawaSingleDual3"
            "one_test $tool-parts $check$api $bin/gmxfmm_test_cuda_parts --gtest_filter=CudaParts.MoreThanTiles:CudaParts.LeaveTheCallersDeviceAlone"
            "one_test $tool-octree-virial $check $bin/gmxfmm_test_cuda_tree_agrees --gtest_filter=*CudaTree.OfSeveralRoots/RotationSingle:*CudaTree.OfADroplet/SymmetricDouble")
    done
    for kind in cuda_ ""; do
        for test in "$bin"/gmxfmm_test_"$kind"*; do
            [[ ${jobs[*]} == *"one_test $(basename "$test") "* ]] || jobs+=("one_test $(basename "$test") $test")
        done
    done
    for number in 2 3 4 8; do # the treecode's suite on ranks, as tests/CMakeLists.txt has it
        jobs+=("one_test treecode_on_$number env GMXFMM_TESTS_RANKS=$number $bin/gmxfmm_test_treecode --gtest_filter=-TreecodePlan.*:TreecodeTiles.*:TreecodeErrors.AreThoseOfThePaper:*ClustersAre*:*ChargesOfParents*")
    done
    jobs+=("one_test gmxfmm_cli bash $bundle/cli.sh $bin/gmxfmm $bundle/own")
    printf '%s\n' "${jobs[@]}" | xargs -P $((12 * gpus)) --process-slot-var=slot -I{} bash -c '{}' | tee "$work/logs/tests.txt"
    if grep -q -v -E '^[^ ]+ 0 ' "$work/logs/tests.txt" ||
        (($(wc -l <"$work/logs/tests.txt") != ${#jobs[@]})); then
        failed=1
        (cd "$work/logs" && grep -aE '^\[  FAILED  \].* ms\)$|^FAILED: |error:|ERROR|[Rr]ace reported' -- *.log | head -n 60)
    fi
    unset GMXFMM_TESTS_DEVICE OMP_NUM_THREADS
}

run_water() {
    measure water water "$water" "$GMXFMM_SPC216" 5 0 0 0 8 18 1 8 20 1 8 16 1 7 15 1 7 16 1 9 20 1 5 28 2 5 30 2 6 24 2
    measure water water "$water" "$GMXFMM_SPC216" 12 0 0 0 8 45 1 8 42 1 8 40 1 7 36 1 9 50 1 9 48 1 5 64 2
}

run_slab() {
    measure slab slab "$bin/benchmark-slab_cuda" "$GMXFMM_SPC216" 5 0 0 0 0 8 18 18 1 8 20 20 1 8 16 16 1 7 16 16 1 8 20 10 1 8 18 5 1 5 28 28 2
}

run_charges() {
    local copies
    for copies in 3 5 12; do # groups of 20 atoms, one for 1,100 atoms
        measure charges charges "$bin/benchmark-charge_gradient" "$GMXFMM_SPC216" $copies $((copies * copies * copies * 648 / 1100)) 20 cuda
    done
}

run_points() {
    local p far=()
    # Gumerov & Duraiswami 2008
    measure points points "$points" 1048576 rotation 0 1e-5 0 fft 0 1e-5 0 rotation 3 5 1 rotation 7 5 1 rotation 8 5 1 rotation 9 5 1 \
        rotation 11 5 1 symmetric 8 5 1 fft 3 32 1 fft 6 32 1 fft 7 32 1 fft 8 32 1 fft 9 32 1 fft 11 32 1
    measure points points "$points" 1048576 --signed rotation 8 5 1 rotation 9 5 1 fft 7 32 1 fft 8 32 1
    for p in "16384 3" "131072 4" "8388608 6"; do
        measure points points "$points" "${p% *}" rotation 8 "${p#* }" 1
    done
    measure points points "$points" 64000000 rotation 6 8 1 rotation 10 8 1
    # the far field by both ways, 100 charges a leaf
    for p in 4 5 6 7 8 9 10 11 12; do far+=(fft "$p" 16 1 rotation "$p" 4 1); done
    measure points far "$points" 409600 --far --periodic --no-targets --signed "${far[@]}"
    far=()
    for p in 4 5 6 7 8 9 10 11 12; do far+=(fft "$p" 32 1 rotation "$p" 5 1); done
    measure points far "$points" 3276800 --far --periodic --no-targets --signed "${far[@]}"
}

run_choice() {
    local copies how
    # shellcheck disable=SC2086 # words of an option
    for copies in 3 5 12; do
        for how in "" costs; do
            measure choice choice "$bin/benchmark-choice" "$GMXFMM_SPC216" $copies 4e-4 11 cuda $how
        done
    done
}

# Vaughn, Wilson & Krasny 2020: Fig. 4 (a million charges) and the cases of the strong scaling
run_treecode() {
    local kernel precision traversal theta n kind table=() tree=("$bin/benchmark-treecode" --device cuda)
    for theta in 0.5 0.7 0.9; do for n in 1 3 5 7 9 11 13; do table+=("$theta,$n,2000"); done; done
    measure treecode treecode "${tree[@]}" fmm,1e-2 fmm,1e-3 fmm,1e-4 fmm,1e-5 fmm,1e-6 fmm,1e-8
    # shellcheck disable=SC2086 # words of an option
    for kernel in "" "--kappa 0.5"; do
        measure treecode treecode "${tree[@]}" $kernel "${table[@]}"
        for traversal in "" --dual; do
            for precision in "" --single; do
                measure treecode treecode "${tree[@]}" $kernel $traversal $precision 0.8,8,2000 0.8,7,400 0.8,6,400 0.9,8,400
                measure treecode treecode "${tree[@]}" $kernel $traversal $precision --field 0.8,8,2000
                for kind in plummer sphere; do
                    measure treecode treecode "${tree[@]}" $kernel $traversal $precision --distribution $kind 0.8,8,2000 0.8,7,400 0.9,8,400
                done
            done
        done
    done
    measure treecode treecode "${tree[@]}" --dual 0.9,3,2000 0.9,5,2000 0.9,7,2000 0.9,9,2000 0.8,6,2000 0.8,10,4000 0.7,10,4000
    measure treecode treecode "${tree[@]}" --points 16e6 --samples 400 0.8,8,4000
    # shellcheck disable=SC2086
    for kernel in "" "--kappa 0.5"; do
        measure treecode treecode "${tree[@]}" $kernel --points 64e6 --samples 100 --single --dual 0.8,7,2000 0.8,6,2000
        measure treecode treecode "${tree[@]}" $kernel --points 64e6 --samples 100 --single 0.8,8,2000
        measure treecode treecode "${tree[@]}" $kernel --points 64e6 --samples 100 --dual 0.8,8,4000
        measure treecode treecode "${tree[@]}" $kernel --points 64e6 --samples 100 0.8,8,4000
    done
}

# Vaughn, Wilson & Krasny 2020, section 4.2: 64 million charges and the largest that fits; 16 million a rank
run_ranks() {
    local one kernel traversal size counts=1 n left begin=$SECONDS cases=() arguments
    for n in 2 4 8; do ((n <= $(nvidia-smi -L | grep -c GPU))) && counts+=,$n; done
    counts=${GMXFMM_RANKS_COUNTS:-$counts}
    for kernel in coulomb yukawa; do
        for size in strong weak largest; do
            for traversal in particle dual; do
                [ "$size" = largest ] && [ -z "${GMXFMM_RANKS_LARGEST:-}" ] || cases+=("$kernel-$traversal-$size")
            done
        done
    done
    if [ -n "${GMXFMM_RANKS_CASES:-}" ]; then read -ra cases <<<"$GMXFMM_RANKS_CASES"; fi
    for one in "${cases[@]}"; do
        IFS=- read -r kernel traversal size <<<"$one"
        left=$((${GMXFMM_SECONDS:-3600} - (SECONDS - begin)))
        ((left > 0)) || { echo "left out: $one" && continue; }
        arguments=(--device cuda --ranks "$counts" --seconds "$left")
        case $kernel in coulomb) ;; yukawa) arguments+=(--kappa 0.5) ;; *) size=none ;; esac
        case $traversal in particle) ;; dual) arguments+=(--dual) ;; *) size=none ;; esac
        case $size in
            strong) arguments+=(--points 64e6) ;;
            weak) arguments+=(--per-rank 16e6) ;;
            largest) arguments+=(--ranks "${counts##*,}" --calls 1 --points "${GMXFMM_RANKS_LARGEST:?how many charges}") ;;
            *) echo "FAILED: there is no case '$one'" && failed=1 && continue ;;
        esac
        measure ranks ranks timeout "$left" "$bin/benchmark-treecode_ranks" "${arguments[@]}" "${GMXFMM_RANKS_SETTING:-0.8,8,4000}"
    done
}

run_kernels() {
    local metrics=gpu__time_duration.sum,smsp__issue_active.avg.pct_of_peak_sustained_active
    metrics+=,dram__throughput.avg.pct_of_peak_sustained_elapsed,sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active
    metrics+=,l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed
    metrics+=,sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active,sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active
    if ! command -v ncu >/dev/null; then
        echo "FAILED: ncu (Nsight Compute) is not there"
        failed=1
        return
    fi
    local profile=(ncu --clock-control none --profile-from-start off --csv --metrics "$metrics")
    "${profile[@]}" "$water" "$GMXFMM_SPC216" 12 --once 8 45 1 >"$work/logs/kernels-water.csv" 2>&1 || failed=1
    "${profile[@]}" "$points" 1048576 --once rotation 9 5 1 >"$work/logs/kernels-rotation.csv" 2>&1 || failed=1
    "${profile[@]}" "$points" 1048576 --once symmetric 9 5 1 >"$work/logs/kernels-symmetric.csv" 2>&1 || failed=1
    # sums alone: the benchmark is the library's user, and marks no step
    profile=(ncu --clock-control none --csv --metrics "$metrics" --kernel-name regex:tileSums --launch-count 1)
    profile+=("$bin/benchmark-treecode" --device cuda --samples 8)
    "${profile[@]}" --single 0.8,8,2000 >"$work/logs/kernels-treecode-single.csv" 2>&1 || failed=1
    "${profile[@]}" 0.8,8,2000 >"$work/logs/kernels-treecode-double.csv" 2>&1 || failed=1
}

# What is wanted most first: a call may be stopped.
run_devices() {
    local system
    for system in 12 5 droplets 12 25 p64 12 5 droplets; do
        measure devices devices "$bin/benchmark-devices_cuda" "$GMXFMM_SPC216" 1 "$system"
    done
}

run_python() {
    local name code
    export PYTHONPATH=$bundle/checkout/python PYTHONDONTWRITEBYTECODE=1
    if ! python3 -c 'import numpy'; then
        echo "SKIP: python3 has no numpy here"
        return
    fi
    for name in gpu torch ase examples plan batch; do
        one_test "python_test_$name" python3 -m unittest discover -v -s "$bundle/checkout/python/tests" -p "test_$name.py"
    done | tee "$work/logs/python-tests.txt"
    if [ ! -s "$work/logs/python-tests.txt" ] || grep -q -v -E '^[^ ]+ 0 ' "$work/logs/python-tests.txt"; then
        failed=1
        (cd "$work/logs" && grep -aE '^(FAIL|ERROR|[A-Za-z.]*Error): ' -- python_test_*.log | head -n 60)
    fi
    for name in torch cupy; do
        if python3 -c "import $name" 2>/dev/null; then
            python3 "$bundle/checkout/benchmarks/python_gpu.py" --library $name --json "$work/logs/python-gpu-$name.json"
            code=$?
            [ $code = 0 ] || { echo "FAILED: python_gpu.py, status $code" && failed=1; }
        fi
    done
}

for part in "${parts[@]}"; do
    begin=$SECONDS
    case $part in
        tests) run_tests ;;
        water) run_water ;;
        slab) run_slab ;;
        charges) run_charges ;;
        m2l) measure m2l m2l "$bin/benchmark-m2l-gpu" ;;
        points) run_points ;;
        choice) run_choice ;;
        treecode) run_treecode ;;
        ranks) run_ranks ;;
        kernels) run_kernels ;;
        devices) run_devices ;;
        python) run_python ;;
    esac
    store "$part"
    echo "$part: $((SECONDS - begin)) s"
done
exit $failed
