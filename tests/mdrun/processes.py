#!/usr/bin/env python3
"""mdrun on ranks that are processes: forces of one rank, and a rank that is killed in a step ends the job.

Needs GMXFMM_GMX_MPI (scripts/build-gromacs.sh mpi) and its mpirun in PATH.
"""
import os
import re
import shutil
import signal
import subprocess
import time

from harness import FMM, changed, main, need, read_log, read_trr, rms_difference, skip, water, work_folder

gmx, gmx_mpi = need("GMXFMM_GMX"), need("GMXFMM_GMX_MPI")

LIMIT = 60  # seconds for the job to end in


def launcher():
    """mpirun as root, as in a container, and with more ranks than cores."""
    mpirun = shutil.which("mpirun") or skip("there is no mpirun in PATH")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    return [mpirun, *(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"] if "Open MPI" in version or "OpenRTE" in version else [])]


def command(name, ranks, *more):
    return [*launcher(), "-n", str(ranks), gmx_mpi.path, "mdrun", "-s", name + ".tpr", "-deffnm", name, "-ntomp", "1", "-nb", "cpu", *more]


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
        done = subprocess.run(command("run", ranks), cwd=folder, capture_output=True, text=True, env={**os.environ, "GMX_MAXBACKUP": "-1"})
        if not checks.that(done.returncode == 0, f"{ranks} processes: mdrun ends well"):
            print((done.stdout + done.stderr)[-2000:])
            continue
        several = read_trr(folder + "/run.trr")[0]
        checks.below(f"{ranks} processes: forces, RMS difference over RMS", rms_difference(several.f, one.f) / rms(one.f), 2e-6, "",
                     "pairs added in another order")
        if ranks > 1:
            log = read_log(folder, "run")
            checks.that(f"FMM: divided over {ranks} ranks" in " ".join(log.split()), f"{ranks} processes: md.log says that the FMM is divided")


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
    killed(checks, folder, system)


main(test)
