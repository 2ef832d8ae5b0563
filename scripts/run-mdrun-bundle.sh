#!/usr/bin/env bash
# Runs tests and benchmarks of gmx mdrun on a GPU, from a folder made by make-mdrun-bundle.sh. Usage: run-mdrun-bundle.sh FOLDER OUT [PART]...
# Tests, into OUT/mdrun-tests.json and .log:
#   forces     FMM on the GPU against CPU and tight PME, every method, measured errors; Lennard-Jones on the GPU and FMM on the CPU;
#              Lennard-Jones of groups (fmm-lj = split)
#   runs       motion: update and bondeds on either, virtual sites, md-vv, MTS, virial, pressure coupling, minimisation, rerun, -cpi, refusals;
#              nstlist by times
#   perturbed  perturbed charges: energies, derivatives, forces, runs
#   devices    one and several GPUs: the same bits; parts of one GPU where there is one
#   ranks      several ranks on one GPU, and with one each (processes where the bundle is of a gmx_mpi: GMXFMM_GMX of
#              make-mdrun-bundle.sh); one of its parts: ranks-forces ranks-runs ranks-coupling ranks-parts ranks-each
#              ranks-choice
#   graphs     whole steps as GPU graphs (GMX_CUDA_GRAPH), with GROMACS 2026.3
#   drift      100 ps at constant energy; 1,000,000 steps
# Benchmarks, into OUT/mdrun.json (a result of the same device in benchmarks/results is continued):
#   water5 water12             81,000 and 1,119,744 atoms of SPC/E water, spc216.gro copied n times along each edge: 648 n^3 atoms; NVT, rvdw 1.0 nm
#   small medium large         the same: water2 to water4, water6 water8 water10, water15 (2,187,000 atoms)
#   membrane                   complex/swap_z of the regression tests, copied 2 x 2 x 2; steps of 2 fs, no ion swapping, NPT, semi-isotropic
#   tip3p                      TIP3P water with CHARMM36's Lennard-Jones parameters on every atom, rvdw 1.2 nm, force-switch from 1.0 nm
#   protein                    a membrane protein as CHARMM-GUI writes it (CHARMM36m, POPC), with V-rescale and C-rescale
#   protein-as-written         the same with its own Nose-Hoover and Parrinello-Rahman, update on the CPU
#   protein18                  18 copies of it
#   amber                      freeenergy/restraints of the regression tests: 162 residues in TIP3P water, dodecahedron, rvdw 0.9 nm, NPT
#   droplets                   8 droplets of SPC/E water, 125,001 atoms each, in 2 % of a cube of 80 nm
# Into OUT/coupling.json:
#   coupling   what pressure coupling costs in the membrane
# Into OUT/gpus.json:
#   gpus       1,119,744 and 81,000 atoms of water on one and on several GPUs, FMM and PME; only where it is asked for
#   gpus-NAME  the same of another system: gpus-droplets, gpus-water15; gpus-water25, 10,125,000 atoms, with
#              GMXFMM_BENCHMARK_OPTIONS="--fmm-alone --equilibration 40" takes some five minutes
# Into OUT/mdrun-ranks.json, only where it is asked for:
#   speed-NAME  ranks and one rank of a system of mdrun_gpu.py, as water5, water12, protein18, FMM and PME; GMXFMM_GPUS: on so many GPUs
#              (default: all), GMXFMM_RANKS: numbers of ranks (default: "1 2"), GMXFMM_STEPS (default 8000), GMXFMM_ROUNDS (default 3)
# Into OUT/lj-split.json, only where it is asked for:
#   split-NAME  Lennard-Jones of all pairs of atoms and of groups, in a system of lj_split.py, as protein; GMXFMM_STEPS, GMXFMM_ROUNDS as above
# Into OUT/mdrun-slab.json:
#   slab       81,000 atoms of water: a film without walls beside a box, 60 s, and FMM and PME between walls, 100 s; one of its parts:
#              slab-film slab-walls
# Into OUT/drift.json:
#   nve        energy drift of water at constant energy, 1 ns
# Into OUT/lj-split-observables.json:
#   observables  what Lennard-Jones of groups changes: energy, pressure, surface tension, density, diffusion; one of its parts:
#                frames-water frames-protein bulk
# Into OUT/fep.json:
#   fep        a perturbed molecule in 41,472 and 81,000 atoms of water; GMXFMM_FEP_COPIES: "4" or "5" is one of these alone,
#              GMXFMM_FEP_OPTIONS: more arguments of free_energy.py, as "3 charges soft"
# Into OUT/bar.json (a result of the same device in benchmarks/results is continued):
#   bar        free energies by BAR from runs of FMM and PME on all GPUs and cores; GMXFMM_BAR_OPTIONS: systems and options of bar.py, as
#              "ion relative --seed 2" (another seed adds to what is known) or "--gpus 0" (all on the CPU)
# Into OUT/timeline.json:
#   timeline   when the kernels of a step run, in five of these systems
# With another version of GROMACS than 2022.5, which make-mdrun-bundle.sh takes where GMXFMM_GROMACS names it, the names have it in them:
# mdrun-2026.3.json, mdrun-tests-2026.3.json.
# GMXFMM_BENCHMARK_OPTIONS: more options for benchmarks/mdrun_gpu.py or mdrun_gpus.py, separated by spaces.
# Without a PART all of them but gpus. What has been found is stored after each step; nothing goes on after GMXFMM_SECONDS (default 540), so
# that a command which may run for ten minutes ends by itself: called again, with its results in benchmarks/results, it goes on.
# The status is 0 only if everything asked for ran to its end and passed; 3 if there is no GPU.
set -uo pipefail
bundle=$(realpath "${1:?usage: run-mdrun-bundle.sh FOLDER OUT [PART]...}")
out=$(realpath -m "${2:?usage: run-mdrun-bundle.sh FOLDER OUT [PART]...}")
command_line="scripts/run-mdrun-bundle.sh FOLDER OUT ${*:3}"
shift 2
parts=("$@")
((${#parts[@]})) || parts=(forces runs perturbed devices graphs ranks drift water5 water12 membrane tip3p protein protein-as-written protein18 amber droplets small medium large coupling slab timeline fep nve observables bar)
cd "$(dirname "$0")/.." || exit 2
root=$PWD
mkdir -p "$out"

work=${GMXFMM_WORK:-/tmp/gmxfmm-gpu}
mkdir -p "$work"
if ! cmp -s "$bundle/programs.sha256" "$work/programs.sha256"; then
    tar -C "$work" -xJf "$bundle/programs.tar.xz" || exit 2
    cp "$bundle/programs.sha256" "$work/"
fi
export LD_LIBRARY_PATH=$work/lib:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# Open MPI, where the bundle has it, finds its parts here
export PATH=$work/bin:$PATH OPAL_PKGLIBDIR=$work/mpi/components OPAL_PKGDATADIR=$work/mpi/data
export GMXLIB=$bundle/top GMXFMM_GMX=$work/bin/gmx GMXFMM_REGRESSION=$bundle/regression GMXFMM_WORK=$work
export GMXFMM_MEMBRANE_PROTEIN=$bundle/membrane-protein.tar.xz
export GMXFMM_BENCHMARK_COMMAND=$command_line GMXFMM_BENCHMARK_COMMIT
GMXFMM_BENCHMARK_COMMIT=$(cat "$bundle/commit")
name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
if [ -z "$name" ]; then
    echo "run-mdrun-bundle.sh: there is no NVIDIA GPU here (nvidia-smi lists none): nothing was run" >&2
    exit 3
fi
"$GMXFMM_GMX" --version | grep -E 'GROMACS version|GPU support|SIMD|CUDA' || true
version=$("$GMXFMM_GMX" --version | sed -n 's/^GROMACS version: *\([0-9]*[.][0-9]*\).*/\1/p')
suffix=$([ "$version" = 2022.5 ] || echo "-$version")
# what the ranks of this gmx are
ranks=$("$GMXFMM_GMX" --version | grep '^MPI library: *MPI' >/dev/null && echo processes || echo ranks)
status=0

# What is left of the time, in seconds, at least one.
left() {
    local seconds=$((${GMXFMM_SECONDS:-540} - SECONDS))
    echo $((seconds > 1 ? seconds : 1))
}

# tests NAME SCRIPT [ARGUMENT]...: runs a script of tests/mdrun; its checks go into mdrun-tests.json, its output into OUT
tests() {
    local name=$1 code=0 begin=$SECONDS
    shift
    echo "== $name"
    timeout "$(left)" python3 "tests/mdrun/$1" "${@:2}" 2>&1 | tee "$work/test-$name.log" | tee -a "$out/mdrun-tests.log"
    code=${PIPESTATUS[0]}
    ((code == 0)) || status=1
    python3 scripts/mdrun-test-results.py "$work/test-$name.log" "$out" "$root/benchmarks/results" "$name" "$code" $((SECONDS - begin)) \
        "$suffix" || status=1
}

# The folder of benchmarks/results that is this device's.
slug() {
    tr '[:upper:]' '[:lower:]' <<<"$name" | sed 's/[^a-z0-9]\+/-/g'
}

benchmarks() {
    local earlier
    earlier=$root/benchmarks/results/$(slug)/mdrun$suffix.json
    [ -f "$out/mdrun$suffix.json" ] && earlier=$out/mdrun$suffix.json
    echo "== $*"
    # shellcheck disable=SC2086
    GMXFMM_NTOMP=$(nproc) python3 benchmarks/mdrun_gpu.py "$GMXFMM_GMX" "$out/mdrun$suffix.json" "$@" --earlier "$earlier" \
        --work "$work/mdrun" --limit "$(left)" ${GMXFMM_BENCHMARK_OPTIONS:-} 2>&1 | tee -a "$out/mdrun.log"
    ((PIPESTATUS[0] == 0)) || status=1
}

for part in "${parts[@]}"; do
    case $part in
        forces)
            tests lj-on-gpu nb_gpu.py
            tests lj-split-on-gpu lj_split_gpu.py
            tests forces fmm_gpu.py forces methods measured slabs
            ;;
        runs)
            tests lists-by-time list_by_time.py gpu
            tests runs fmm_gpu.py runs virial modes choice coupling
            ;;
        devices) tests devices fmm_gpu.py devices ;;
        graphs) tests graphs fmm_gpu.py graphs ;;
        split-*)
            echo "== $part"
            results=lj-split$suffix.json
            [ -f "$out/$results" ] || cp "benchmarks/results/$(slug)/$results" "$out/" 2>/dev/null
            timeout "$(left)" python3 benchmarks/lj_split.py "$out/$results" "${part#split-}" "${GMXFMM_STEPS:-20000}" "${GMXFMM_ROUNDS:-3}" gpu || status=1
            ;;
        gpus | gpus-*)
            echo "== $part"
            best=benchmarks/results/$(slug)/mdrun$suffix.json
            [ -f "$best" ] || best=benchmarks/results/nvidia-h200/mdrun$suffix.json
            systems=$([ "$part" = gpus ] && echo water12 water5 || echo "${part#gpus-}")
            # shellcheck disable=SC2086
            timeout "$(left)" python3 benchmarks/mdrun_gpus.py "$GMXFMM_GMX" "$out/gpus$suffix.json" $systems --work "$work/gpus" \
                --best-of "$best" --limit "$(left)" ${GMXFMM_BENCHMARK_OPTIONS:-} || status=1
            ;;
        ranks) tests "$ranks" domains_gpu.py ;;
        ranks-*) tests "$ranks-${part#ranks-}" domains_gpu.py "${part#ranks-}" ;;
        speed-*)
            echo "== $part"
            # shellcheck disable=SC2086
            GMXFMM_NB=gpu timeout "$(left)" python3 benchmarks/mdrun_ranks.py "$out/mdrun-ranks$suffix.json" "${part#speed-}" \
                "${GMXFMM_STEPS:-8000}" "${GMXFMM_ROUNDS:-3}" ${GMXFMM_RANKS:-1 2} 2>&1 | tee -a "$out/mdrun-ranks.log"
            ((PIPESTATUS[0] == 0)) || status=1
            ;;
        perturbed) tests perturbed free_energy_gpu.py ;;
        drift) tests drift fmm_gpu.py drift long ;;
        small) benchmarks water2 water3 water4 ;;
        medium) benchmarks water6 water8 water10 ;;
        large) benchmarks water15 ;;
        coupling)
            echo "== coupling"
            timeout "$(left)" python3 benchmarks/coupling_gpu.py "$GMXFMM_GMX" "$out/coupling$suffix.json" --work "$work/coupling" \
                --limit "$(left)" || status=1
            ;;
        slab | slab-film | slab-walls)
            for kind in $([ "$part" = slab ] && echo film walls || echo "${part#slab-}"); do
                echo "== slab: $kind"
                GMXFMM_NB=gpu timeout "$(left)" python3 benchmarks/mdrun_slab.py "$out/mdrun-slab$suffix.json" 5 10000 5 "$(($(left) - 10))" \
                    "$kind" || status=1
            done
            ;;
        nve)
            echo "== nve"
            timeout "$(left)" python3 benchmarks/drift_gpu.py "$GMXFMM_GMX" "$out/drift$suffix.json" || status=1
            ;;
        observables | frames-water | frames-protein | bulk)
            echo "== $part"
            for kind in $([ "$part" = observables ] && echo frames-water frames-protein bulk || echo "$part"); do
                timeout "$(left)" python3 benchmarks/lj_split_observables.py "$out/lj-split-observables$suffix.json" "$kind" || status=1
            done
            ;;
        fep)
            echo "== fep"
            for copies in ${GMXFMM_FEP_COPIES:-4 5}; do
                # shellcheck disable=SC2086
                GMXFMM_NB=gpu GMXFMM_BENCHMARK_COMMAND="${GMXFMM_FEP_COPIES:+GMXFMM_FEP_COPIES=$GMXFMM_FEP_COPIES }${GMXFMM_FEP_OPTIONS:+GMXFMM_FEP_OPTIONS=\"$GMXFMM_FEP_OPTIONS\" }$command_line" \
                    GMXFMM_TIMELINE_LIBRARY=$work/lib/libgmxfmm_timeline.so timeout "$(left)" \
                    python3 benchmarks/free_energy.py "$out/fep$suffix.json" "$copies" $((copies == 4 ? 16000 : 8000)) ${GMXFMM_FEP_OPTIONS:-} || status=1
            done
            ;;
        bar)
            echo "== bar"
            if [ ! -f "$out/bar$suffix.json" ] && [ -f "benchmarks/results/$(slug)/bar$suffix.json" ]; then
                cp "benchmarks/results/$(slug)/bar$suffix.json" "$out/"
            fi
            # shellcheck disable=SC2086
            GMXFMM_BENCHMARK_COMMAND="${GMXFMM_BAR_OPTIONS:+GMXFMM_BAR_OPTIONS=\"$GMXFMM_BAR_OPTIONS\" }$command_line" \
                timeout "$(left)" python3 benchmarks/bar.py runs "$out/bar$suffix.json" --seconds "$(left)" --gpus "$(nvidia-smi -L | wc -l)" \
                ${GMXFMM_BAR_OPTIONS:-} || status=1
            ;;
        timeline)
            echo "== timeline"
            timeout "$(left)" python3 benchmarks/timeline.py "$GMXFMM_GMX" "$work/lib/libgmxfmm_timeline.so" "$out/timeline$suffix.json" || status=1
            ;;
        water[0-9]* | membrane | tip3p | droplets | protein | protein-as-written | protein18 | amber) benchmarks "$part" ;;
        *) echo "run-mdrun-bundle.sh: unknown part '$part'" >&2 && exit 2 ;;
    esac
done
exit "$status"
