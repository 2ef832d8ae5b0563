#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A rank that is killed in a step ends the job: gmxfmm-mpi on two ranks, one of which gets SIGKILL while sums go on, of the treecode and
of the FMM.
mpi_killed.py GMXFMM-MPI MPIRUN..."""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

PARTICLES = 300000  # sums of all pairs: many minutes
BUSY = 2.0          # seconds of processor time after which a rank is in its sums: all before takes less than one
LIMIT = 60.0        # seconds for the job to end in
METHODS = {
    "treecode": ["--precision", "double", "--theta", "0.01", "--degree", "8", "--leaf", "2000"],
    "fmm": ["--box", "3", "--order", "2", "--grid", "3,3,3", "--separation", "1"],  # all cells are near each other
}


def runs(process, program):
    try:
        return os.path.realpath(f"/proc/{process}/exe", strict=True) == program
    except OSError:  # it has ended, or is another user's
        return False


def ranks_of(program, job):
    """Processes of that program which mpirun has started, each with its seconds of processor time."""
    found, parent = {}, {}
    for name in os.listdir("/proc"):
        try:
            if name.isdigit():
                with open(f"/proc/{name}/stat") as f:
                    fields = f.read().rpartition(")")[2].split()
                parent[int(name)] = int(fields[1])
                if runs(name, program):
                    found[int(name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended meanwhile

    def below(process):
        while process in parent and process != job:
            process = parent[process]
        return process == job
    return {process: seconds for process, seconds in found.items() if below(process)}


def kill_one(method, program, mpirun):
    numbers = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        charges, output = os.path.join(folder, "charges.txt"), os.path.join(folder, "output.txt")
        with open(charges, "w") as out:
            for _ in range(PARTICLES):
                print(*(f"{numbers.uniform(-1, 1):.6f}" for _ in range(4)), file=out)
        with open(output, "w") as out:
            job = subprocess.Popen([*mpirun, "-n", "2", program, "solve", charges, "--method", method, *METHODS[method],
                                    "--measure", "no", "--threads", "1"],
                                   stdout=out, stderr=subprocess.STDOUT)
        begin, ranks = time.monotonic(), {}
        try:
            while job.poll() is None and not (len(ranks) == 2 and min(ranks.values()) > BUSY):
                if time.monotonic() - begin > LIMIT:
                    break
                time.sleep(0.2)
                ranks = ranks_of(program, job.pid)
            if job.poll() is not None or len(ranks) != 2:
                print(f"FAILED: two ranks should be at work, there are {ranks}, the job's status is {job.poll()}:\n{open(output).read()}")
                return 1
            killed = time.monotonic()
            os.kill(max(ranks), signal.SIGKILL)  # the last one that was started: not the rank that prints
            try:
                status = job.wait(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                print(f"FAILED: the job has not ended in {LIMIT:.0f} s")
                return 1
            seconds = time.monotonic() - killed
            left = [process for process in ranks if runs(process, program)]
            while left and time.monotonic() - killed < LIMIT:
                time.sleep(0.1)
                left = [process for process in left if runs(process, program)]
            if status == 0 or left:
                print(f"FAILED: the job ended with status {status}, {left} still run:\n{open(output).read()}")
                return 1
            print(f"mpi_killed: {method} passed: status {status} after {seconds:.1f} s")
            return 0
        finally:
            if job.poll() is None:
                job.terminate()  # mpirun ends its ranks
                job.wait()


def main():
    program, *mpirun = sys.argv[1:]
    return max(kill_one(method, os.path.realpath(program), mpirun) for method in METHODS)


if __name__ == "__main__":
    sys.exit(main())
