#!/usr/bin/env python3
"""mdrun on several ranks that share one GPU, or have one each: forces, energies and pressure of one rank, and runs.

domains_gpu.py [SECTION]...   sections: forces, runs, coupling, parts, each, choice (default: all). Needs a GPU.
Where GMXFMM_GMX is a gmx_mpi, ranks are processes; else they are threads. Frames are those of a run of no steps on two ranks, as in
domains.py. GMXFMM_RANKS: numbers of ranks (default: 2 4 8). A run that takes longer than GMXFMM_RUN_SECONDS (default 60) has failed.
"""
import os
import re
import sys

from harness import (COUPLING, FMM, Failure, Gmx, changed, charmm_water, chosen_settings, complaint, environment, fmm_on, fmm_parameters, gpus, main, make_frames, need,
                     need_gpu, read_log, read_trr, regression, rms_difference, rms_distance, single_points, version, water, without_swaps, work_folder)
from perturbed import DECOUPLING

found = need("GMXFMM_GMX")
GPU = ["-fmm", "gpu"]
RANKS = [int(n) for n in os.environ.get("GMXFMM_RANKS", "2 4 8").split()]
DOMAINS = {2: "2 1 1", 4: "2 1 2", 8: "2 2 2"}
# GPUs of ranks communicate directly in 2026 without being asked
DIRECT = {"GMX_ENABLE_DIRECT_GPU_COMM": "1"}
VIRIALS = [f"Pres-{a}{b}" for a in "XYZ" for b in "XYZ"]


class Limited(Gmx):
    """gmx whose mdrun may take so long; where it fails the ends of what it printed and of its log are printed."""

    def command(self, command):
        return ["timeout", "-k", "5", os.environ.get("GMXFMM_RUN_SECONDS", "60"), *super().command(command)]

    def __call__(self, *command, folder, stdin="", env=None):
        try:
            return super().__call__(*command, folder=folder, stdin=stdin, env=env)
        except Failure:
            if command[0] == "mdrun":
                for name in ("mdrun.out", command[command.index("-deffnm") + 1] + ".log"):
                    path = os.path.join(folder, name)
                    if os.path.exists(path):
                        with open(path, errors="replace") as lines:
                            print(f"--- end of {path}\n{''.join(lines.readlines()[-25:])}---", flush=True)
            raise


def attempt(checks, what, function, *arguments):
    """Calls function(checks, *arguments); what goes wrong in it is one failed check, and the rest goes on."""
    try:
        function(checks, *arguments)
    except Failure as failure:
        checks.that(False, f"{what}: {' '.join(str(failure).split())[:500]}")
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError) as error:
        checks.that(False, f"{what}: {type(error).__name__}: {error}")


def rms(force):
    return rms_difference(force, [0.0] * len(force))


def compare(checks, what, one, several, forces, energies=2e-6, with_pressure=True, devices=0):
    worst = max(rms_difference(s.force, o.force) / rms(o.force) for s, o in zip(several, one))
    checks.below(f"{what}: forces, RMS difference over RMS", worst, forces, "", "single precision, pairs added in another order")
    for term in ("Potential", "Coulomb (SR)", "Coul. recip."):
        worst = max(abs(s.energy[term] - o.energy[term]) / abs(o.energy["Coulomb (SR)"]) for s, o in zip(several, one))
        checks.below(f"{what}: {term}, difference over Coulomb (SR)", worst, energies, "", "coordinates are the same")
    if with_pressure:
        pressure(checks, what, one, several, devices)


def difference(one, other):
    """Of pressures, bar."""
    return max(abs(s.energy["Pressure"] - o.energy["Pressure"]) for s, o in zip(other, one))


def pressure(checks, what, one, several, devices=0):
    """devices: by how much pressures of one rank differ between GPU and CPU, where these are compared."""
    why = "rounding of sums, as in domains.py" + (f", and {devices:.2g} bar between GPU and CPU on one rank" if devices else "")
    checks.below(f"{what}: pressure", difference(one, several), max(0.05, 50.0 / (len(one[0].force) // 3)) + devices, "bar", why)


def shared(ranks):
    """Options of ranks that have one GPU."""
    return [*GPU, "-gpu_id", "0"] if ranks > 1 else GPU


def divided(cells):
    """Options of domains, those of mdrun where there is no word of them."""
    return ["-dd", *cells.split()] if cells else []


def is_on_ranks(checks, what, log, ranks, env=()):
    told = " ".join(log.split())
    checks.that(fmm_on(log, "GPU") and f"FMM: the first of {ranks} ranks computes it for all" in told,
                f"{what}: md.log says that the first rank computes the FMM on the GPU")
    by_host = re.search(r"Those of (\d+) ranks? go by the host's memory", told)
    wanted = ranks - 1 if gmx.has_processes and "GMX_DISABLE_DIRECT_GPU_COMM" in env else 0
    checks.that((int(by_host.group(1)) if by_host else 0) == wanted, f"{what}: positions of {wanted} ranks go by the host, as md.log says")


def same_as_one_rank(checks, what, system, rank_counts, flexible=False):
    """Forces, energies and pressure of ranks on GPUs: those of one rank on the GPU, and of as many ranks on the CPU.

    Ranks have molecules whole where one rank has their atoms in the box. Constraints divide this rounding of coordinates by the square
    of the time step: in methanol up to 0.07 bar between ranks of the CPU. So the pressure is compared with that of ranks on the CPU, and
    with that of one rank on the GPU either as it is, or, where system is to be flexible, without constraints.
    """
    folder = work_folder(what.replace(" ", "-"))
    system.mdp = without_swaps(system.mdp)
    trajectory, times = make_frames(gmx, folder, system, 20, 10)
    single_points(gmx, folder, system, {**FMM, "nstxout": "1"}, trajectory, times[-1:], "wrapped", ranks=2, more=["-fmm", "cpu"])
    trajectory, times = folder + "/wrapped-0.trr", times[-1:]
    times = [read_trr(trajectory)[0].time]
    single_points(gmx, folder, system, {**FMM, "fmm-measure": "no"}, trajectory, times, "choose", nb="gpu", more=GPU)
    chosen = chosen_settings(fmm_parameters(read_log(folder, "choose-0")))
    if not checks.that(chosen is not None, f"{what}: the parameters in md.log are understood"):
        return
    chosen["fmm-measure"] = "no"
    on_cpu = single_points(gmx, folder, system, chosen, trajectory, times, "cpu", more=["-fmm", "cpu"])
    one = single_points(gmx, folder, system, chosen, trajectory, times, "one", nb="gpu", more=GPU)
    kept, devices = {}, difference(on_cpu, one)
    checks.below(f"{what}, one rank: pressure on the GPU against the CPU", devices, 0.5, "bar", "rounding of forces and positions: virial() of fmm_gpu.py")

    def of_cpus(ranks):
        if ranks not in kept:
            more = ["-fmm", "cpu", *divided(rank_counts.get(ranks))]
            kept[ranks] = single_points(gmx, folder, system, chosen, trajectory, times, f"cpus{ranks}", ranks=ranks, more=more)
        return kept[ranks]
    for ranks, cells in rank_counts.items():
        def several(c):
            domains = divided(cells)
            found = single_points(gmx, folder, system, chosen, trajectory, times, f"ranks{ranks}", nb="gpu", ranks=ranks, more=[*shared(ranks), *domains])
            is_on_ranks(c, f"{what}, {ranks} ranks", read_log(folder, f"ranks{ranks}-0"), ranks)
            compare(c, f"{what}, {ranks} ranks, against one on the GPU", one, found, 5e-6, with_pressure=not flexible)
            compare(c, f"{what}, {ranks} ranks, against one on the CPU", on_cpu, found, 1e-5, with_pressure=False)
            compare(c, f"{what}, {ranks} ranks, against as many on the CPU", of_cpus(ranks), found, 1e-5, devices=devices)
            if flexible:
                free = {**chosen, "constraints": "none"}
                alone = single_points(gmx, folder, system, free, trajectory, times, "free", nb="gpu", more=GPU)
                found = single_points(gmx, folder, system, free, trajectory, times, f"free{ranks}", nb="gpu", ranks=ranks, more=[*shared(ranks), *domains])
                pressure(c, f"{what} without constraints, {ranks} ranks, against one on the GPU", alone, found)
        attempt(checks, f"{what}, {ranks} ranks", several)

    def full_list(c):
        with environment(GMX_FMM_FULL_PAIRLIST="1"):
            full = single_points(gmx, folder, system, chosen, trajectory, times, "full", nb="gpu", ranks=2, more=shared(2))
        compare(c, f"{what}, 2 ranks, all atoms on the list", one, full, 5e-6, with_pressure=False)
        pressure(c, f"{what}, 2 ranks, all atoms on the list, against two on the CPU", of_cpus(2), full, devices)

    def on_cpus(c):
        found = single_points(gmx, folder, system, chosen, trajectory, times, "both", nb="gpu", ranks=2, more=["-fmm", "cpu", "-gpu_id", "0"])
        c.that(fmm_on(read_log(folder, "both-0"), "CPU"), f"{what}, 2 ranks, -nb gpu -fmm cpu: md.log says that the FMM ran on the CPU")
        compare(c, f"{what}, 2 ranks, -nb gpu -fmm cpu", on_cpu, found, 1e-5, with_pressure=False)
        pressure(c, f"{what}, 2 ranks, -nb gpu -fmm cpu, against two on the CPU", of_cpus(2), found, devices)
    attempt(checks, f"{what}, all atoms on the list", full_list)
    attempt(checks, f"{what}, -nb gpu -fmm cpu", on_cpus)


def forces(checks):
    folder = work_folder("water-made")
    system = water(gmx, folder, (2, 2, 2), sodium=2)
    system.mdp = changed(system.mdp, rcoulomb=0.8, rvdw=0.8)
    same_as_one_rank(checks, "water", system, {n: DOMAINS.get(n) for n in RANKS})
    for name in ("octahedron", "nbnxn_vsite", "swap_z"):
        attempt(checks, name, same_as_one_rank, name, regression("complex/" + name), {n: "" for n in RANKS if n <= 4}, name == "octahedron")
    # Lennard-Jones of groups at their centres, which the first rank computes
    system = charmm_water(gmx, work_folder("split-made"), (2, 2, 2))
    system.mdp = changed(system.mdp, **FMM, fmm_lj="split")
    attempt(checks, "split", same_as_one_rank, "split", system, {n: DOMAINS.get(n) for n in RANKS})


def plain(system, **settings):
    """Dynamics with frequent output of energies, pair search and assignments to cells, a virial in some steps."""
    mdp = changed(without_swaps(system.mdp), integrator="md", nstxout=0, nstvout=0, nstfout=0, nstxout_compressed=0, nstlog=0, tcoupl="no", pcoupl="no",
                  ld_seed=1, rlist=0.9, verlet_buffer_tolerance=-1, nstlist=20)
    return changed({**mdp, **FMM}, **settings)


def ways():
    """How ranks do a step: options, environment and what it is called."""
    halo_on_cpu = {"GMX_DISABLE_DIRECT_GPU_COMM": "1"} if version(gmx) != "2022.5" else {}
    return ((["-update", "cpu"], halo_on_cpu, "-update cpu"), (["-update", "gpu"], halo_on_cpu, "-update gpu, halo by the host"),
            (["-update", "gpu"], DIRECT, "-update gpu, halo on the GPU"))


def runs(checks):
    folder = work_folder("runs-water")
    system = water(gmx, folder, (2, 2, 2), sodium=2)
    system.mdp = changed(system.mdp, rcoulomb=0.8, rvdw=0.8)
    atoms = 8 * 648 - 4
    base = plain(system, nstcalcenergy=5, nstenergy=5)
    gmx.grompp(folder, {**base, "nsteps": "0"}, system, name="choose")
    gmx.mdrun(folder, *GPU, nb="gpu", name="choose")
    chosen = {**chosen_settings(fmm_parameters(read_log(folder, "choose"))), "fmm-measure": "no"}
    gmx.grompp(folder, changed({**base, **chosen}, nsteps=20, nstxout=10, nstvout=10), system, name="start")
    gmx.grompp(folder, changed({**base, **chosen}, nsteps=1000, nstxout=49, nstfout=49, nstenergy=50, nstcalcenergy=50), system, name="nve")

    def run(name, ranks, options, env):
        gmx.mdrun(folder, *shared(ranks), *options, nb="gpu", ranks=ranks, env=env, name=name)
        terms = ["Potential", "Total Energy", *VIRIALS]
        return read_trr(f"{folder}/{name}.trr"), gmx.energies(folder, terms, name=name), read_log(folder, name)
    first, first_rows, _ = run("start", 1, ["-update", "cpu"], {})
    moved = rms_distance(first[1].x, first[0].x, first[0].box)
    _, alone, _ = run("nve", 1, ["-update", "gpu"], {})
    spread = max(abs(r["Total Energy"] - alone[0]["Total Energy"]) for r in alone) / atoms

    def one(c, what, ranks, options, env):
        frames, rows, log = run("start", ranks, options, env)
        is_on_ranks(c, what, log, ranks, env)
        c.that(("update and constrain coordinates on the GPU" in log) == ("gpu" in options), f"{what}: md.log says where the update is")
        if ranks == 2:  # domains of more may be too small for it
            # mdrun gives the memory of GPUs to threads, and to an MPI library that takes it
            direct = env == DIRECT and not gmx.has_processes
            c.that(("GPU direct communication will be used" in log) == direct, f"{what}: md.log says where the halo is")
        c.below(f"{what}: positions after 10 steps, in which atoms moved by {moved:.3f} nm, RMS difference to one rank",
                rms_distance(frames[1].x, first[1].x, first[0].box), 2e-4 * moved, "nm", "rounding, and chaos growing it")
        worst = max(abs(a[t] - b[t]) for a, b in zip(rows[:3], first_rows[:3]) for t in VIRIALS)
        c.below(f"{what}: elements of the pressure in 10 steps, worst difference to one rank", worst, 1.0, "bar",
                "rounding of forces and positions; one domain's share is hundreds of bar")
        frames, rows, log = run("nve", ranks, options, env)
        off = max(abs(r["Total Energy"] - alone[0]["Total Energy"]) for r in rows) / atoms
        c.below(f"{what}: 1000 steps, total energy per atom stays", off, max(2 * spread, 5e-3), "kJ/mol", "twice what one rank has")
        late = [f for f in frames if f.step in (49, 98, 931)]
        points = single_points(gmx, folder, system, chosen, folder + "/nve.trr", [f.time for f in late], "late", nb="gpu", more=GPU)
        worst = max(rms_difference(f.f, p.force) / rms(p.force) for f, p in zip(late, points))
        c.below(f"{what}: forces of the run's own frames, RMS difference to those of one rank, over RMS", worst, 5e-4, "",
                "cells and the pair list are up to 19 steps old")
    for ranks in RANKS:
        for options, env, name in ways():
            what = f"{ranks} ranks, {name}"
            attempt(checks, what, one, what, ranks, options, env)


def coupling(checks):
    """Pressure coupling every 10 steps: virials and boxes of all ranks."""
    folder = work_folder("coupling-water")
    system = water(gmx, folder, (2, 2, 1))
    thermostat = {"tcoupl": "V-rescale", "tc-grps": "System", "tau-t": "0.5", "ref-t": "300", "ld-seed": "3"}

    def kind(c, what, settings):
        mdp = {**plain(system, rcoulomb=0.7, rvdw=0.7, nsteps=100, nstenergy=50, nstcalcenergy=10), **settings, **thermostat,
               "pcoupltype": what, "tau-p": "2", "nstpcouple": "10", "nsttcouple": "10", "rlist": "0.74", "nstlist": "10"}
        gmx.grompp(folder, mdp, system, name="npt")
        ends = {}
        for ranks, env in ((1, {}), (2, {}), (2, DIRECT)):
            gmx.mdrun(folder, *shared(ranks), "-update", "gpu", nb="gpu", ranks=ranks, name="npt", env=env)
            ends[ranks, len(env)] = gmx.energies(folder, ["Potential", "Volume"], name="npt")
        for key, rows in ends.items():
            c.below(f"{what} coupling, {key[0]} ranks{', halo on the GPU' * key[1]}: volume after 50 steps, relative difference",
                    abs(rows[1]["Volume"] / ends[1, 0][1]["Volume"] - 1), 1e-5, "", "rounding, and chaos growing it")
    for what, settings in COUPLING.items():
        attempt(checks, f"{what} coupling", kind, what, settings)


def parts(checks):
    """The first rank's plan over the GPUs of all ranks that are threads; here one of them stands for several."""
    if gmx.has_processes:
        print("SKIP parts: of processes the first has a plan on its GPU alone", flush=True)
        return
    folder = work_folder("parts-water")
    system = water(gmx, folder, (2, 3, 3))
    mdp = plain(system, rcoulomb=0.8, rvdw=0.8, nsteps=100, nstxout=10, nstvout=10, nstfout=10, nstenergy=5, nstcalcenergy=5)
    gmx.grompp(folder, changed(mdp, nsteps=0), system, name="choose")
    gmx.mdrun(folder, *GPU, nb="gpu", name="choose")
    gmx.grompp(folder, {**mdp, **chosen_settings(fmm_parameters(read_log(folder, "choose"))), "fmm-measure": "no"}, system, name="run")

    def some(c, ranks):
        found = {}
        for name, env in (("one", {}), ("several", {"GMX_FMM_SHARE_GPUS": "1"})):
            gmx.mdrun(folder, *shared(ranks), "-update", "gpu", nb="gpu", ranks=ranks, name="run", env={**env, **DIRECT})
            log = read_log(folder, "run")
            used = re.search(r"precision on the GPUs \(near field: (.*?); far field: .*?\)", log)
            number = used.group(1).count(" on ") if used else int(fmm_on(log, "GPU"))
            c.that(number == (ranks if env else 1), f"{ranks} ranks, {name}: md.log names {number} parts")
            found[name] = read_trr(folder + "/run.trr")
        first, other = (found[name][0] for name in ("one", "several"))
        c.below(f"{ranks} ranks, parts of one GPU: forces at the start, RMS difference to one plan over RMS",
                rms_difference(other.f, first.f) / rms(first.f), 2e-6, "", "the bits of one, but for pairs added in any order")
        last, other = (found[name][1] for name in ("one", "several"))
        c.below(f"{ranks} ranks, parts of one GPU: velocities after 10 steps, RMS difference to one plan over RMS",
                rms_difference(other.v, last.v) / rms(last.v), 1e-4, "", "rounding, and chaos growing it")
    for ranks in RANKS:
        attempt(checks, f"{ranks} ranks, parts", some, ranks)


def each(checks):
    """A GPU for each rank, where there are several."""
    there = len(gpus())
    if there < 2:
        print(f"SKIP a GPU for each rank: there is {there}", flush=True)
        return
    folder = work_folder("each-water")
    system = water(gmx, folder, (3, 3, 3))
    mdp = plain(system, rcoulomb=0.9, rvdw=0.9, rlist=1.0, nsteps=200, nstxout=10, nstvout=10, nstfout=10, nstenergy=10, nstcalcenergy=10)
    gmx.grompp(folder, changed(mdp, nsteps=0), system, name="choose")
    gmx.mdrun(folder, *GPU, "-fmmgpus", "1", nb="gpu", name="choose")
    gmx.grompp(folder, {**mdp, **chosen_settings(fmm_parameters(read_log(folder, "choose"))), "fmm-measure": "no"}, system, name="run")
    gmx.mdrun(folder, *GPU, "-fmmgpus", "1", "-update", "gpu", nb="gpu", name="run")
    one = read_trr(folder + "/run.trr"), gmx.energies(folder, ["Total Energy"], name="run")

    def some(c, ranks, env, name, used_by="", more=()):
        what = f"{ranks} ranks with a GPU each, {name}"
        gmx.mdrun(folder, *GPU, *more, "-gpu_id", "".join(map(str, range(ranks))), "-update", "gpu", nb="gpu", ranks=ranks, name="run", env=env)
        frames, rows, log = read_trr(folder + "/run.trr"), gmx.energies(folder, ["Total Energy"], name="run"), read_log(folder, "run")
        told = re.search(r"FMM: a step of it takes .*", log)
        used = re.search(r"precision on the (GPUs?(?: \(near field: .*?\))?)", " ".join(log.split()))
        number = used.group(1).split("; far field")[0].count(" on ") or 1 if used else 0  # GPUs that have a share of the near field
        wanted = {"": (1, ranks), "all": (ranks,), "one": (1,)}["one" if gmx.has_processes else used_by]
        c.that(number in wanted and bool(told) == (used_by == "" and not gmx.has_processes),
               f"{what}: on the {used.group(1) if used else '?'}; {told.group(0) if told else 'no choice by times'}")
        c.below(f"{what}: forces at the start, RMS difference to one rank over RMS", rms_difference(frames[0].f, one[0][0].f) / rms(one[0][0].f), 1e-5, "",
                "single precision, coordinates wrapped into the box")
        c.below(f"{what}: velocities after 10 steps, RMS difference to one rank over RMS", rms_difference(frames[1].v, one[0][1].v) / rms(one[0][1].v), 1e-4,
                "", "rounding, and chaos growing it")
        off = max(abs(r["Total Energy"] - one[1][0]["Total Energy"]) for r in rows) / (len(frames[0].x) / 3)
        c.below(f"{what}: 200 steps, total energy per atom stays", off, 5e-3, "kJ/mol", "as in runs")
    for ranks in [n for n in RANKS if n <= there]:
        for env, name in (({}, "halo by the host"), (DIRECT, "halo on GPUs")):
            attempt(checks, f"{ranks} GPUs", some, ranks, env, name)
        if version(gmx) == "2022.5":
            attempt(checks, f"{ranks} GPUs", some, ranks, DIRECT, "-reprod, the FMM on one of them", "one", ["-reprod"])
        attempt(checks, f"{ranks} GPUs", some, ranks, {**DIRECT, "GMX_FMM_SHARE_GPUS": "1"}, "the FMM on all", "all")


def choice(checks):
    """Where the FMM runs, and what is refused."""
    folder = work_folder("choice-water")
    system = water(gmx, folder, (2, 2, 2))
    mdp = plain(system, nsteps=10)
    gmx.grompp(folder, mdp, system, name="run")
    decoupling = changed(DECOUPLING, init_lambda_state=7, nsteps=10, nstdhdl=10, nstenergy=10, nstcalcenergy=10, rlist="0.95", verlet_buffer_tolerance="-1")
    gmx.grompp(folder, {**decoupling, **FMM}, regression("freeenergy/coulandvdwsequential_coul"), name="perturbed")
    for options, where in (([], "GPU"), (["-nb", "gpu"], "GPU"), (["-nb", "gpu", "-fmm", "cpu"], "CPU"), (["-nb", "cpu"], "CPU"), (["-pme", "gpu"], "GPU")):
        def one(c):
            gmx("mdrun", "-s", "run.tpr", "-deffnm", "run", "-ntmpi", "2", "-ntomp", "2", "-gpu_id", "0", *options, folder=folder)
            c.that(fmm_on(read_log(folder, "run"), where), f"2 ranks, {' '.join(options) or 'no options'}: FMM on the {where}")
        attempt(checks, f"2 ranks, {' '.join(options)}", one)
    for name, options, pattern in (("run", ["-fmmgpus", "1"], r"-fmmgpus 1: on several ranks"), ("run", ["-npme", "1"], r"-npme 1"),
                                   ("run", ["-nb", "cpu", "-fmm", "gpu"], r"nonbonded"), ("perturbed", ["-fmm", "gpu"], r"perturbed charges")):
        status, output = gmx.run(["mdrun", "-s", name + ".tpr", "-deffnm", name, "-ntmpi", "2", "-ntomp", "2", "-gpu_id", "0", *options], folder)
        # threads that fail at once print into each other's complaints
        told = " ".join(output.split())
        text = complaint(output) or told[-300:]
        checks.that(status != 0 and re.search(pattern, told) is not None, f"2 ranks, {name}, {' '.join(options)}: refused (/{pattern}/): {text[:300]}")

    def later(c):
        gmx.mdrun(folder, "-gpu_id", "0", nb="gpu", ranks=2, name="perturbed")
        log = read_log(folder, "perturbed")
        c.that(fmm_on(log, "CPU"), "perturbed charges, 2 ranks: FMM on the CPU")
    attempt(checks, "perturbed charges", later)


SECTIONS = {"forces": forces, "runs": runs, "coupling": coupling, "parts": parts, "each": each, "choice": choice}


def test(checks):
    global gmx
    need_gpu(found)
    gmx = Limited(found.path)
    for name in sys.argv[1:] or SECTIONS:
        attempt(checks, name, SECTIONS[name])


main(test)
