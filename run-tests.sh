#!/usr/bin/env bash
# All tests. Usage: ./run-tests.sh [--gromacs VERSION] [--all] [--only PART]...
#   --only library   the library's own tests, also with sanitizers, with x86-64-v2 alone, and its package
#   --only gromacs   GROMACS's own tests on the patched build: some of its unit tests, the regression tests `complex`
#   --only mdrun     end-to-end tests with the patched gmx (tests/mdrun)
#   --only newer     the patches of GROMACS 2026.3 applied, what they touch compiled, and what grompp does with neural-network
#                    potentials; with --all its end-to-end tests instead, PLUMED's among them, which need all of it, built
#                    quickly, without CUDA. Skipped without its source: GMXFMM_NEWER_SOURCE, a tree, a tarball, or the
#                    tarball's folder (default ../shared/sources)
#   --gromacs VERSION  2022.5 (default) or 2026.3
#   --all            also what takes long: the treecode on two and four ranks, GROMACS in double precision and the end-to-end
#                    tests that need it, the whole of 2026.3, order 40 with sanitizers, conda's recipe run, a wheel for other
#                    distributions, and the library for 64-bit Arm under qemu-user (NEON, SVE)
# GMXFMM_MINUTES  what would begin later than that is skipped, and said to be: for a machine that stops tests after some time
# What these need is installed and built first, as in quickstart.sh. The last line has the counts; the status is 1 if any failed.
set -euo pipefail
# Paths that the user gave count from where the user is.
for name in GROMACS_SOURCE GMXFMM_NEWER_SOURCE REGRESSIONTESTS GMXFMM_BUILD_DIR; do
    if [ -n "${!name:-}" ]; then export "$name=$(realpath -m "${!name}")"; fi
done
parts=() all=0
while (($#)); do
    case $1 in
        --only)
            case ${2:-} in
                library | gromacs | mdrun | newer) parts+=("$2") ;;
                *) echo "run-tests.sh: --only library, gromacs, mdrun or newer" >&2 && exit 2 ;;
            esac
            shift
            ;;
        --gromacs)
            (($# > 1)) || { echo "run-tests.sh: --gromacs needs a version" >&2 && exit 2; }
            export GMXFMM_GROMACS=$2
            shift
            ;;
        --all) all=1 ;;
        -h | --help) sed -n '2,15s/^# \{0,1\}//p' "$0" && exit 0 ;;
        *) echo "run-tests.sh: unknown option $1 (see --help)" >&2 && exit 2 ;;
    esac
    shift
done
cd "$(dirname "$0")"
# shellcheck source-path=SCRIPTDIR source=scripts/common.sh
source scripts/common.sh
newer=2026.3
if ((${#parts[@]} == 0)); then
    parts=(library gromacs mdrun)
    if [ "$GROMACS_VERSION" = "$DEFAULT_VERSION" ]; then parts+=(newer); fi
fi

# Tests of GROMACS, and kernels where no GPU runs them, compile longer than they run
if ((all)); then export GMXFMM_ALL=1; else export GMXFMM_OPTIMIZE=${GMXFMM_OPTIMIZE:-off}; fi

wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

passed=0 failed=0 skipped=0 finished=0
# count NAME PASSED FAILED SKIPPED: one line for a group of tests
count() {
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    printf '    %s: %d of %d passed%s (%s)\n' "$1" "$2" "$(($2 + $3))" "$(if (($4)); then printf ", %d skipped" "$4"; fi)" "$(elapsed)"
}

# out_of_time NAME [MINUTES]: whether fewer than these (0) of GMXFMM_MINUTES are left; then NAME counts as skipped
out_of_time() {
    [ -n "${GMXFMM_MINUTES:-}" ] && (($(date +%s) - GMXFMM_START > 60 * (GMXFMM_MINUTES - ${2:-0}))) || return 1
    count "$1: not in $GMXFMM_MINUTES minutes" 0 0 1
}

# The closing line comes also when a build fails, which then counts as one failure.
summary() {
    ((finished)) || failed=$((failed + 1))
    printf '\n'
    if ((skipped)); then
        printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    else
        printf '%d passed, %d failed\n' "$passed" "$failed"
    fi
}
trap summary EXIT

# run_ctest NAME FOLDER [OPTION...]: runs and counts; of failed tests twelve lines are shown, from the first that tells a failure
run_ctest() {
    local name=$1 folder=$2 counts status=0
    shift 2
    rm -f "$LOG_DIR/$name.xml"
    run_followed "$LOG_DIR/$name.log" ctest --test-dir "$folder" --output-on-failure --output-junit "$LOG_DIR/$name.xml" \
        --timeout 900 -j "$JOBS" "$@" || status=$?
    counts=$(python3 - "$LOG_DIR/$name.xml" 2>"$LOG_DIR/$name.failed" <<'PY' || echo "0 1 0"
import sys
import xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
total, failed, skipped = (int(suite.get(key, 0)) for key in ("tests", "failures", "skipped"))
skipped += int(suite.get("disabled", 0))
print(total - failed - skipped, failed, skipped)
for case in [case for case in suite.iter("testcase") if case.find("failure") is not None][:8]:
    lines = (case.findtext("system-out") or "").rstrip().split("\n")
    first = next((k for k, line in enumerate(lines) if any(mark in line for mark in ("Failure", "runtime error:", "ERROR", "FAIL"))), len(lines))
    print(f"{case.get('name')}:", *lines[max(0, min(first, len(lines) - 12)):][:12], sep="\n    ", file=sys.stderr)
PY
    )
    # shellcheck disable=SC2086
    set -- $counts
    # No test at all, or a failure that ctest counts in another way, must not look like success.
    if (($1 + $2 == 0)) || { ((status != 0)) && (($2 == 0)); }; then set -- "$1" "$(($2 + 1))" "$3"; fi
    count "$name" "$1" "$2" "$3"
    if (($2)); then
        sed -n '/^The following tests FAILED/,$p' "$LOG_DIR/$name.log"
        cat "$LOG_DIR/$name.failed"
    fi
}

STEPS=1
if wants library; then STEPS=$((STEPS + 4 + 2 * all)); fi
if wants library && [ "$(uname -m)" = x86_64 ]; then STEPS=$((STEPS + 1)); fi
if wants gromacs || wants mdrun; then STEPS=$((STEPS + 2)); fi
if wants gromacs; then STEPS=$((STEPS + 2)); fi
if wants mdrun; then STEPS=$((STEPS + 2 + all)); fi
if wants mdrun && ((all)) && command -v mpicxx >/dev/null; then STEPS=$((STEPS + 1)); fi
if wants newer; then STEPS=$((STEPS + 1)); fi

step "packages"
scripts/install-packages.sh "$(if ((all)); then echo --all; else echo --tests; fi)"
# The package's tests build the library again, each in a folder of its own, with the same options
if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

if wants library; then
    # without the CUDA part: the build with sanitizers, and what first_hour and the package's subproject build
    if find_nvcc >/dev/null; then kind=cuda with="with CUDA; its tests are skipped where there is no GPU"; else kind=release with="CPU only, no nvcc found"; fi
    step "library: build and tests ($with)"
    scripts/build-library.sh $kind --tests
    # the treecode's suite on two and on four ranks has the same cases as on three and on eight; conda's recipe builds the library again
    if ((all)); then without=(); else without=(-E '^treecode_on_[24]\.|^package\.conda$'); fi
    run_ctest library "$BUILD_DIR/library-$kind" "${without[@]}"
    if [ "$(uname -m)" = x86_64 ]; then
        step "library: unit tests with the instructions of x86-64-v2 only"
        # but what is about memory, stacks, files, choices and errors over orders: other instructions change nothing of these
        GMXFMM_SIMD=v2 GMXFMM_SLOW=1 run_ctest library-v2 "$BUILD_DIR/library-$kind" -L unit \
            -E "^(memory|ranks_memory|sites_memory|small_stack|automatic_method|leaks|program_$( ((all)) || echo '|cli$|model_accuracy|error_over_order|proportions'))"
    fi
    step "library: build and unit tests with address and undefined-behaviour sanitizers"
    scripts/build-library.sh sanitize --tests
    # what takes longest of them, and has more arithmetic than memory to look at, with --all
    if ((all)); then without=(); else without=(-E 'Order40|ReproducibleForgets'); fi
    run_ctest library-sanitized "$BUILD_DIR/library-sanitize" -L unit "${without[@]}"
    step "library: plans and ranks in several threads with the thread sanitizer"
    scripts/build-library.sh thread --tests
    # but those that did not end within their five minutes with it: other tests of the same functions go through the same code
    run_ctest library-thread "$BUILD_DIR/library-thread" -R '^plans_in_threads|^ranks' \
        -E 'Exact|Choose|RanksMeasure.(TheErrorOfTheirLists|AccuraciesAskedForAreReached)'
    step "program: a minute of made-up files for the reader, with sanitizers"
    if scripts/fuzz-reader.sh 60; then count fuzz-reader 1 0 0; else count fuzz-reader 0 1 0; fi
    if ((all)); then
        step "Python: a wheel for other distributions, in a fresh environment of every Python"
        if scripts/build-wheel.sh >"$LOG_DIR/wheel.log" 2>&1; then count wheel 1 0 0; else tail -n 20 "$LOG_DIR/wheel.log" && count wheel 0 1 0; fi
        step "library: 64-bit Arm under qemu-user"
        for march in "" -march=armv8-a+sve; do
            status=0
            scripts/test-aarch64.sh ${march:+"$march"} || status=$?
            case $status in
                0) count "aarch64 ${march:-NEON}" 1 0 0 ;;
                77) count "aarch64 ${march:-NEON}" 0 0 1 ;;
                *) count "aarch64 ${march:-NEON}" 0 1 0 ;;
            esac
        done
    fi
fi

if wants gromacs || wants mdrun; then
    step "GROMACS $GROMACS_VERSION: source, checksum, patches"
    scripts/fetch-gromacs.sh
    # held_to NAME LOG SCRIPT [ARG...]: a test that needs an unpatched source
    held_to() {
        local name=$1 log=$LOG_DIR/$2$suffix.log status=0
        python3 "${@:3}" ${GROMACS_SOURCE:+"$GROMACS_SOURCE"} "$SOURCE_DIR" >"$log" 2>&1 || status=$?
        case $status in
            0) count "$name" 1 0 0 ;;
            77) count "$name" 0 0 1 ;;
            *) tail -n 20 "$log" && count "$name" 0 1 0 ;;
        esac
    }
    held_to "patches by git am -3" patches tests/repository/patches.py gromacs-patch "$GROMACS_VERSION"
    if [ "$GROMACS_VERSION" = 2022.5 ]; then
        held_to "patches with PLUMED's, both orders" plumed-places tests/repository/plumed_places.py gromacs-patch
    fi
    if ! wants library; then scripts/build-library.sh; fi
    if [ "${GMXFMM_GPU:-}" = off ]; then with="without CUDA"; elif find_nvcc >/dev/null; then with="with CUDA"; else with="CPU only, no nvcc found"; fi
    step "GROMACS: build, mixed precision ($with)"
    # its build, and what is never left out of its tests, take some 25 minutes
    if out_of_time "GROMACS: build and tests" 10; then
        for part in gromacs mdrun; do parts=("${parts[@]/#$part/}"); done
    else
        scripts/build-gromacs.sh mixed
    fi
fi

if wants gromacs; then
    # What the patches touch: options and their reference data, MTS checks, pair kernels and buffers, task assignment, counters,
    # the .tpr format, PME itself; mdrun's input, output, exact continuation, minimisation and rerun.
    step "GROMACS's own unit and integration tests"
    programs=(fmm-test gmxpreprocess-test mdtypes-test nbnxm-test mdlib-test taskassignment-test timing-test fileio-test ewald-test
        mdrun-output-test mdrun-io-test mdrun-non-integrator-test mdrun-single-rank-algorithms-test)
    names='FmmUnitTests|GmxPreprocessTests|MdtypesUnitTest|NbnxmTests|MdlibUnitTest|TaskAssignmentUnitTests|GmxTimingTests|FileIOTests|EwaldUnitTests'
    if [ "$GROMACS_VERSION" != 2022.5 ]; then programs+=(fmm-interface-tests) names+='|FmmInterfaceUnitTests'; fi
    names+='|MdrunOutputTests|MdrunIOTests|MdrunNonIntegratorTests|MdrunSingleRankAlgorithmsTests'
    scripts/build-gromacs.sh mixed "${programs[@]}"
    run_ctest "gromacs$suffix-unit" "$GROMACS_BUILD-mixed" -R "^($names)\$"

    step "GROMACS's regression tests complex"
    # run_complex BIN: by the gmx of that folder
    run_complex() {
        (cd "$BUILD_DIR/complex$suffix" && PATH=$1:$PATH perl gmxtest.pl complex -noverbose -nosuffix -ntomp 2) \
            >"$LOG_DIR/gromacs$suffix-complex.log" 2>&1 || true
    }
    log=$LOG_DIR/gromacs$suffix-complex.log stock=${GMXFMM_STOCK_GMX:-/usr/bin/gmx} references=yes
    rm -rf "$BUILD_DIR/complex$suffix"
    cp -r "$REGRESSION_TREE/." "$BUILD_DIR/complex$suffix" # the tests write where they are
    if [ "$GROMACS_VERSION" != 2022.5 ]; then
        # the references are of 2022.5, other versions have other defaults: an unpatched gmx of this one makes them where none are
        if "$stock" --version 2>/dev/null | grep "GROMACS version: *$GROMACS_VERSION" >/dev/null; then
            find "$BUILD_DIR/complex$suffix" -name 'reference_*' -delete
            run_complex "$(dirname "$stock")"
        else
            references=no
        fi
    fi
    if out_of_time gromacs-complex; then
        :
    elif [ $references = no ]; then
        say "    skipped: references are made by an unpatched gmx $GROMACS_VERSION, which GMXFMM_STOCK_GMX can name"
        count gromacs-complex 0 0 1
    else
        run_complex "$INSTALL_PREFIX/bin"
        if line=$(grep -oE 'All [0-9]+ complex tests PASSED' "$log"); then
            count gromacs-complex "$(grep -oE '[0-9]+' <<<"$line")" 0 0
        elif line=$(grep -oE '[0-9]+ out of [0-9]+ complex tests FAILED' "$log"); then
            read -r bad total <<<"$(grep -oE '[0-9]+' <<<"$line" | tr '\n' ' ')"
            count gromacs-complex $((total - bad)) "$bad" 0
            grep -a FAILED "$log" || true
        else
            count gromacs-complex 0 1 0
            tail -n 20 "$log"
        fi
    fi
fi

if wants mdrun; then
    step "quickstart.sh, all of whose parts are built by now"
    status=0
    env -u GMXFMM_START -u GMXFMM_STEP ./quickstart.sh >"$LOG_DIR/quickstart.log" 2>&1 || status=$?
    # Its table, too, must hold what the README says: forces within the default accuracy of the reference.
    python3 - "$BUILD_DIR/quickstart$suffix/results.json" >>"$LOG_DIR/quickstart.log" 2>&1 <<'PY' || status=1
import json
import sys
fmm = json.load(open(sys.argv[1]))["fmm"]
assert fmm["force_error"] <= 4e-4, fmm["force_error"]
assert abs(fmm["energy_error_per_atom"]) < 1e-3, fmm["energy_error_per_atom"]
assert abs(fmm["pressure_error"]) < 1, fmm["pressure_error"]
PY
    if ((status)); then tail -n 20 "$LOG_DIR/quickstart.log" && count quickstart 0 1 0; else count quickstart 1 0 0; fi

    export GMXFMM_GMX=$INSTALL_PREFIX/bin/gmx GMXFMM_REGRESSION=$REGRESSION_TREE GMXFMM_WORK=$BUILD_DIR/mdrun-tests$suffix
    if ((all)); then
        step "GROMACS: build, double precision"
        scripts/build-gromacs.sh double
        export GMXFMM_GMX_D=$INSTALL_PREFIX/bin/gmx_d
        if command -v mpicxx >/dev/null; then
            step "GROMACS: build for MPI"
            GMXFMM_OPTIMIZE=off GMXFMM_GPU=off scripts/build-gromacs.sh mpi
            export GMXFMM_GMX_MPI=$INSTALL_PREFIX/bin/gmx_mpi
        fi
    fi
    step "end-to-end tests with gmx mdrun"
    # Debian's unpatched programs, whatever a GMXRC may have put in front of PATH
    export GMXFMM_STOCK_GMX=${GMXFMM_STOCK_GMX:-/usr/bin/gmx} GMXFMM_STOCK_GMX_D=${GMXFMM_STOCK_GMX_D:-/usr/bin/gmx_d}
    # end_to_end NAME THREADS: leaves its output and its status
    end_to_end() {
        local log=$LOG_DIR/mdrun$suffix-$1.log status=0
        GMXFMM_NTOMP=$2 timeout 1800 python3 "tests/mdrun/$1.py" >"$log" 2>&1 || status=$?
        echo "$status" >"$log.status"
    }
    # Much of their time is Python's and grompp's, which have one thread: two run at once, but those that want all cores
    scripts=() alone=(against_pme domains list_by_time) threads=$(($(nproc) < 8 ? $(nproc) : 8))
    for script in tests/mdrun/*.py; do
        name=$(basename "$script" .py)
        [ "$name" != harness ] || continue
        if ((!all)) && grep -q 'need("GMXFMM_GMX_[A-Z]*")' "$script"; then
            count "mdrun/$name, in double precision or for MPI (--all)" 0 0 1
            continue
        fi
        scripts+=("$name")
    done
    begun=()
    for name in "${scripts[@]}"; do
        if [[ " ${alone[*]} " != *" $name "* ]] || out_of_time "mdrun/$name"; then continue; fi
        begun+=("$name")
        end_to_end "$name" "$threads"
    done
    half=$((threads > 1 ? threads / 2 : 1))
    for name in "${scripts[@]}"; do
        if [[ " ${alone[*]} " == *" $name "* ]]; then continue; fi
        while (($(jobs -rp | wc -l) >= (threads > 1 ? 2 : 1))); do wait -n || true; done
        if out_of_time "mdrun/$name"; then continue; fi
        begun+=("$name")
        end_to_end "$name" "$half" &
    done
    wait
    for name in "${begun[@]}"; do
        log=$LOG_DIR/mdrun$suffix-$name.log status=$(cat "$LOG_DIR/mdrun$suffix-$name.log.status")
        rm -f "$log.status"
        good=$(grep -c '^PASS ' "$log" || true) bad=$(grep -c '^FAIL ' "$log" || true) not=$(grep -c '^SKIP ' "$log" || true)
        # A script that broke off has failed, whatever it printed.
        if ((bad == 0)) && ((status != 0 && status != 77)); then bad=1 && tail -n 5 "$log"; fi
        count "mdrun/$name" "$good" "$bad" "$not"
        grep -E '^(FAIL|SKIP) ' "$log" | sed 's/^/      /' || true
    done
fi

if wants newer; then
    source=${GMXFMM_NEWER_SOURCE:-$ROOT/../shared/sources} log=$LOG_DIR/run-tests-$newer.log
    # with -O1: its tests compile longer than they run
    with=(env -u GMXFMM_GMX_D -u GMXFMM_PREFIX GROMACS_SOURCE="$source" GMXFMM_GROMACS="$newer" GMXFMM_GPU=off GMXFMM_OPTIMIZE=off)
    if [ ! -e "$source" ]; then
        step "GROMACS $newer"
        say "    skipped: no source of GROMACS $newer, which GMXFMM_NEWER_SOURCE can name"
        count "GROMACS $newer" 0 0 1
    elif out_of_time "GROMACS $newer"; then
        :
    elif ((all)); then
        step "GROMACS $newer without CUDA: end-to-end tests"
        "${with[@]}" ./run-tests.sh --gromacs "$newer" --all --only mdrun 2>&1 | tee "$log" | sed -u '$d; s/^/    /' || true
        counts=$(tail -n 1 "$log" | tr -dc '0-9 ')
        # shellcheck disable=SC2086
        set -- $counts
        # a run that ends without its line has failed
        count "all with GROMACS $newer" "${1:-0}" "${2:-1}" "${3:-0}"
    else
        step "GROMACS $newer: source, patches, what they touch compiled"
        if ! wants library && ! wants gromacs && ! wants mdrun; then scripts/build-library.sh; fi
        "${with[@]}" scripts/fetch-gromacs.sh
        "${with[@]}" scripts/build-gromacs.sh mixed build.ninja # configured
        # of the files in C++ those that are compiled without CUDA; ninja: FILE^ is what is made of FILE
        tree=$BUILD_DIR/gromacs-$newer rules=$BUILD_DIR/gromacs-$newer-mixed/build.ninja
        mapfile -t touched < <({
            sed -n 's,^+++ b/\(src/gromacs/.*\.cpp\)$,\1,p' gromacs-patch/$newer/*.patch
            (cd gromacs-patch/common/files && find src -name '*.cpp' ! -path '*/tests/*')
            (cd gromacs-patch/$newer/files && find src -name '*.cpp' ! -path '*/tests/*')
        } | sort -u | while read -r file; do if grep -qF "$tree/$file " "$rules"; then echo "$tree/$file^"; fi; done)
        status=$((${#touched[@]} == 0)) # without a target all would be built
        ((status)) || "${with[@]}" scripts/build-gromacs.sh mixed "${touched[@]}" || status=1
        count "files of GROMACS $newer compiled" $((status ? 0 : ${#touched[@]})) "$status" 0
        log=$LOG_DIR/neural-network-potential-$newer.log
        python3 tests/gromacs/neural_network_potential.py "$tree" "$BUILD_DIR/gromacs-$newer-mixed" "$JOBS" >"$log" 2>&1 || true
        good=$(grep -c '^PASS ' "$log" || true) bad=$(grep -c '^FAIL ' "$log" || true)
        if ((good + bad == 0)); then bad=1 && tail -n 20 "$log"; fi
        count "neural-network potentials at grompp $newer" "$good" "$bad" 0
        grep '^FAIL ' "$log" | sed 's/^/      /' || true
    fi
fi

finished=1
say ""
say "all logs: $LOG_DIR; $(elapsed) in all"
((failed == 0))
