#!/usr/bin/env python3
"""mdrun on ranks that are processes: forces of one rank, replica exchange with two ranks each, and a rank that is killed ends the job.

Needs GMXFMM_GMX_MPI (scripts/build-gromacs.sh mpi) and its mpirun in PATH.
"""
import os
import re
import signal
import subprocess
import time

from harness import FMM, changed, main, need, read_log, read_trr, rms_difference, water, work_folder

gmx, gmx_mpi = need("GMXFMM_GMX"), need("GMXFMM_GMX_MPI")

LIMIT = 60  # seconds for the job to end in
EXCHANGE = 20  # steps between exchanges


def command(name, ranks, *more):
    return gmx_mpi.command(["mdrun", "-ntmpi", str(ranks), "-s", name + ".tpr", "-deffnm", name, "-ntomp", "1", "-nb", "cpu", *more])


def run_on(ranks, folder, name, *more):
    return subprocess.run(command(name, ranks, *more), cwd=folder, capture_output=True, text=True, env={**os.environ, "GMX_MAXBACKUP": "-1"})


def rms(values):
    return rms_difference(values, [0.0] * len(values))


def same_as_one_rank(checks, folder, system):
    # a run of no steps on two ranks writes coordinates inside the box
    settings = changed(system.mdp, nsteps=0, nstxout=1, nstfout=1, **FMM)
    gmx.grompp(folder, settings, system, name="start")
    gmx.mdrun(folder, name="start", ranks=2)
    gmx.grompp(folder, settings, system, "-t", "start.trr", name="run")
    gmx.mdrun(folder, name="run")
    one = read_trr(folder + "/run.trr")[0]
    for ranks in (1, 2, 3):
        done = run_on(ranks, folder, "run")
        if not checks.that(done.returncode == 0, f"{ranks} processes: mdrun ends well"):
            print((done.stdout + done.stderr)[-2000:])
            continue
        several = read_trr(folder + "/run.trr")[0]
        checks.below(f"{ranks} processes: forces, RMS difference over RMS", rms_difference(several.f, one.f) / rms(one.f), 2e-6, "",
                     "pairs added in another order")
        if ranks > 1:
            log = read_log(folder, "run")
            checks.that(f"FMM: divided over {ranks} ranks" in " ".join(log.split()), f"{ranks} processes: md.log says that the FMM is divided")


def replicas(checks):
    """Two simulations that exchange their states, on two ranks each: what each has after an exchange is right."""
    folder, kelvin = work_folder("replicas"), (300, 301)
    for number, temperature in enumerate(kelvin):
        own = os.path.join(folder, str(number))
        os.makedirs(own)
        system = water(gmx, own, (2, 2, 2))
        # a list of each age is as good as a new one only within its buffer; a given one stays as it is in the rerun
        settings = changed(system.mdp, rcoulomb=0.8, rvdw=0.8, rlist=0.85, verlet_buffer_tolerance=-1, nsteps=EXCHANGE * 6, nstlist=10, nstxout=EXCHANGE,
                           nstenergy=EXCHANGE, nstcalcenergy=10, tcoupl="V-rescale", tc_grps="System", tau_t=1, ref_t=temperature, gen_vel="yes",
                           gen_temp=temperature, gen_seed=7 + number, continuation="no", **FMM)
        for name in ("run", "again"):
            gmx.grompp(own, settings, system, name=name)
    done = run_on(4, folder, "run", "-multidir", "0", "1", "-replex", str(EXCHANGE), "-reseed", "1")
    if not checks.that(done.returncode == 0, "two simulations on two ranks each, with exchange of states: mdrun ends well"):
        print((done.stdout + done.stderr)[-2000:])
        return
    exchanges = re.findall(r"^Repl ex +0 (x|  ) +1", read_log(folder + "/0", "run"), re.M)
    checks.that(len(exchanges) >= 2 and "x" in exchanges, f"states were exchanged: {exchanges.count('x')} of {len(exchanges)} times")
    for number in range(len(kelvin)):
        own = os.path.join(folder, str(number))
        checks.that("FMM: divided over 2 ranks" in " ".join(read_log(own, "run").split()), f"simulation {number}: md.log says that the FMM is divided")
        ran = gmx.energies(own, ["Potential"], name="run")
        gmx.mdrun(own, "-rerun", "run.trr", name="again")
        again = gmx.energies(own, ["Potential"], name="again")
        checks.that(len(ran) == len(again) == 7, f"simulation {number}: {len(ran)} frames")
        worst = max(abs(a["Potential"] - b["Potential"]) / abs(b["Potential"]) for a, b in zip(ran, again))
        checks.below(f"simulation {number}: potential in the run and of its frames on one rank, relative difference", worst, 2e-5, "",
                     "single-precision sums; the atoms are sorted anew")


def ranks_of(job):
    """Processes of gmx_mpi that are below the job."""
    parent, found = {}, []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            if os.path.realpath(f"/proc/{name}/exe") == os.path.realpath(gmx_mpi.path):
                found.append(int(name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass  # it has ended, or is another user's

    def is_below(process):
        while process in parent and process != job:
            process = parent[process]
        return process == job
    return [process for process in found if is_below(process)]


def killed(checks, folder, system):
    gmx.grompp(folder, changed(system.mdp, nsteps=100000000, nstlog=10, **FMM), system, name="long")
    with open(folder + "/long.out", "w") as out:
        job = subprocess.Popen(command("long", 2), cwd=folder, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "GMX_MAXBACKUP": "-1"})
    try:
        begin, log = time.monotonic(), folder + "/long.log"
        while job.poll() is None and time.monotonic() - begin < 300:
            if os.path.exists(log) and len(re.findall(r"^ +Step +Time", read_log(folder, "long"), re.M)) > 2:
                break
            time.sleep(0.5)
        ranks = ranks_of(job.pid)
        if not checks.that(job.poll() is None and len(ranks) == 2, f"two processes are at work: {ranks}"):
            return
        os.kill(max(ranks), signal.SIGKILL)
        begin = time.monotonic()
        try:
            status = job.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            status = 0
        left = ranks_of(job.pid)
        checks.that(status != 0 and not left, f"a rank that is killed ends the job: status {status} after {time.monotonic() - begin:.1f} s")
    finally:
        if job.poll() is None:
            job.terminate()
            job.wait()


def test(checks):
    folder = work_folder()
    system = water(gmx, folder, (2, 2, 2))
    system.mdp = changed(system.mdp, rcoulomb=0.8, rvdw=0.8)
    same_as_one_rank(checks, folder, system)
    replicas(checks)
    killed(checks, folder, system)


main(test)
