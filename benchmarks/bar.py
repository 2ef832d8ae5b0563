#!/usr/bin/env python3
"""Free energies by BAR, FMM's and PME's -> bar.json.

Usage: bar.py frames OUT [SYSTEM]... [--frames N] [--workers N]
       bar.py runs OUT [SYSTEM]... [--seconds S] [--ps T] [--jobs N] [--gpus N] [--mps] [--md] [--nbfe WHERE] [--method M] [--seed N]
frames: windows are run with PME on a CPU; energies of the same frames, by -rerun, with FMM and with tight PME, both in mixed precision.
  What is between the two free energies, and between means of the derivative by lambda, is the method's alone.
runs: every window is run with FMM and with PME, both as users have them, for so many seconds all together: --jobs at a time (the cores), each
  on as many cores as that leaves it, pairs and FMM or PME on GPU k of --gpus (0: all on the CPU) in turn. Where there are more windows than
  jobs they run in rounds, and several times each where there are fewer. With --ps windows are T ps long (an eighth of it where little happens),
  one begins where another has ended, and --seconds is only what it must not take longer. --mps: runs share GPUs by NVIDIA's multi-process service, which a GPU that has many
  small ones needs: without it one waits for another. With --md not Langevin's equations are integrated but Newton's, with a thermostat for
  water and one for the solute, which GROMACS 2026 can do wholly on a GPU, but for bonded interactions and what --nbfe cpu leaves on the CPU: perturbed
  pairs, as always where FMM softens Coulomb. --method: FMM or PME alone. Records are written after each round and, while one runs, every
  minute. Another seed gives another record, and all seeds together a weighted mean.
SYSTEM: ion (a sodium ion is charged), molecule (one of 9 atoms is decoupled, its charges first), together (the same at once, soft-core
  Coulomb), relative (one of 74 atoms becomes another; in runs with its bonded interactions as they are), conformer (the same with its
  torsions restrained); all by default. A record takes the place of one with the same part, system, version of GROMACS, seed and --method in
  OUT, and says on what device it was made; OUT's own device is its first record's. Needs GMXFMM_GMX.
"""
import argparse
import concurrent.futures
import contextlib
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import mdrun_systems  # also finds the harness  # noqa: F401
from harness import (CORES, FMM, PLAIN_MDP, TIGHT_MIXED, Failure, System, changed, device, fmm_on, fmm_parameters, gpus, made, mean, need, read_log,
                     regression, version, work_folder)
from perturbed import dhdl

TIMESTEP = 0.002  # ps
# Free energies do not depend on masses, and with heavy hydrogens steps can be longer. GROMACS has that since 2024.
# Velocities are drawn for the masses of before: with 144 K a run begins at 300 K, with 300 K it would at 625 K, and cool down in some ps.
HEAVY = {"dt": "0.004", "mass-repartition-factor": "3", "gen-temp": "144"}
# A GPU waits for the host where energies are computed: each 0.4 ps only.
NEWTON = {"integrator": "md", "tcoupl": "V-rescale", "tc-grps": "Water non-Water", "tau-t": "1 1", "ref-t": "300 300", "nsttcouple": "25",
          "nstcalcenergy": "100", "nstdhdl": "100"}
# Of runs: GROMACS's manual has 2 ps as less friction than water's own, so that less than that hardly slows what is sampled.
FRICTION = {"tau-t": "4"}
BLOCK = 20.0  # ps, of which errors are made; errors_with_blocks in bar-2026.3.json: those of the molecule are smaller with blocks of 5 ps alone
SETTLED = 5.0  # ps at the start of a window that count for nothing
SETTLED_OF_RUNS = 25.0  # where friction is less
SHORTEST = 5.0  # ps after that without which a window does not count
MDP = changed(PLAIN_MDP, integrator="sd", dt=TIMESTEP, tc_grps="System", tau_t=1, ref_t=300, nstlist=20, rcoulomb=0.9, rvdw=0.9, nstcomm=100, nstlog=50000,
              nstcalcenergy=25, nstenergy=5000, nstdhdl=25, free_energy="yes", calc_lambda_neighbors=1, dhdl_print_energy="no", separate_dhdl_file="yes",
              sc_coul="no", sc_alpha=0.5, sc_power=1, sc_sigma=0.3)
METHODS = ("PME", "FMM")
SHARE = {"PME": 1, "FMM": 0.65}  # of the time: a step with FMM takes about so much of one with PME on a CPU
TIGHT = {**TIGHT_MIXED, "rcoulomb": "0.9"}


def numbers(values):
    return " ".join(f"{value:g}" for value in values)


def ion(gmx, folder, edge=3):
    """The charge of a sodium ion grows in a box of water, edge nm wide; in equal steps, as the response is nearly linear."""
    conf, top = os.path.join(folder, "conf.gro"), os.path.join(folder, "topol.top")
    gmx("solvate", "-cs", "spc216.gro", "-box", *3 * [str(edge)], "-o", "water.gro", folder=folder)
    with open(os.path.join(folder, "water.gro")) as file:
        title, _, *rows, box = file.read().splitlines()
    rows = [f"{1:5d}NA      NA{1:5d}{rows[0][20:44]}"] + [row[:44] for row in rows[3:]]
    with open(conf, "w") as file:
        file.write("\n".join([title, str(len(rows)), *rows, box, ""]))
    with open(top, "w") as file:
        file.write('#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spc.itp"\n#include "oplsaa.ff/ions.itp"\n[ system ]\nion\n'
                   f"[ molecules ]\nNA 1\nSOL {(len(rows) - 1) // 3}\n")
    return System("ion", conf, top, changed(MDP, couple_moltype="NA", couple_lambda0="vdw", couple_lambda1="vdw-q", couple_intramol="yes",
                                            coul_lambdas=numbers(k / 10 for k in range(11))))


def in_water(gmx, folder, name, atoms, edge):
    """The solute of a regression test, its first atoms, in a box of water of its own, edge nm wide; as the test has it with edge None."""
    system = regression(name)
    if not edge:
        return system
    for file in os.listdir(os.path.dirname(system.top)):
        if file.endswith((".itp", ".top")):
            shutil.copy(os.path.join(os.path.dirname(system.top), file), folder)
    with open(system.conf) as file:
        rows = file.read().splitlines()
    solute, conf, top = (os.path.join(folder, file) for file in ("solute.gro", "conf.gro", os.path.basename(system.top)))
    with open(solute, "w") as file:
        file.write("\n".join([rows[0], str(atoms), *(row[:44] for row in rows[2:2 + atoms]), rows[-1], ""]))
    gmx("editconf", "-f", "solute.gro", "-box", *3 * [str(edge)], "-o", "solute.gro", folder=folder)
    gmx("solvate", "-cp", "solute.gro", "-cs", "spc216.gro", "-o", "conf.gro", folder=folder)
    with open(conf) as file:
        molecules = (int(file.read().splitlines()[1]) - atoms) // 3
    with open(top) as file:
        text = re.sub(r"^SOL\s+\d+", f"SOL {molecules}", file.read(), flags=re.M)
    with open(top, "w") as file:
        file.write(text)
    system.conf, system.top = conf, top
    return system


def decoupled(gmx, folder, name, edge, **settings):
    system = in_water(gmx, folder, "freeenergy/coulandvdwsequential_coul", 9, edge)
    return System(name, system.conf, system.top,
                  changed(MDP, couple_moltype="ASNJ", couple_lambda0="vdw-q", couple_lambda1="none", couple_intramol="no", **settings))


def molecule(gmx, folder, edge=None):
    vdw = [0.2, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1]
    return decoupled(gmx, folder, "molecule", edge, coul_lambdas=numbers([0, 0.2, 0.4, 0.6, 0.8] + [1] * 11), vdw_lambdas=numbers([0] * 6 + vdw))


def together(gmx, folder, edge=None):
    both = numbers([0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1])
    return decoupled(gmx, folder, "together", edge, sc_coul="yes", coul_lambdas=both, vdw_lambdas=both)


def relative(gmx, folder, edge=None):
    """In a box of its own bonded interactions stay: where those of the ring that vanishes are taken away, it goes from chair to boat and back
    once in ns, which is what such a free energy then waits for (bar-2026.3.json of an H100: 107 ns with either method, +- 0.3 and 0.4 kJ/mol; of an EPYC: its torsions along a run)."""
    system = in_water(gmx, folder, "freeenergy/relative", 74, edge)
    states = {key: system.mdp[key] for key in ("coul-lambdas", "vdw-lambdas", "bonded-lambdas")}
    if edge:
        states["bonded-lambdas"] = numbers([0] * len(states["coul-lambdas"].split()))
    return System("relative", system.conf, system.top, changed(MDP, **states))


def angle_about_bond(a, b, c, d):
    """The dihedral angle of four places about the line from the second to the third, degrees."""
    def cross(u, v):
        return [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]

    def product(u, v):
        return sum(x * y for x, y in zip(u, v))
    first, bond, last = ([y - x for x, y in zip(*pair)] for pair in ((a, b), (b, c), (c, d)))
    left, right = cross(first, bond), cross(bond, last)
    return math.degrees(math.atan2(product(cross(left, right), bond) / math.sqrt(product(bond, bond)), product(left, right)))


def heavy_torsions(topology):
    """Of each bond between atoms heavier than hydrogen: itself and a heavy neighbour at either end, where there are such."""
    section, heavy, neighbours = "", set(), {}
    for line in topology.splitlines():
        words = line.split(";")[0].split()
        if words and words[0] == "[":
            section = words[1]
        elif words and section == "atoms" and float(words[7]) > 2:
            heavy.add(int(words[0]))
        elif words and section == "bonds":
            for a, b in ((0, 1), (1, 0)):
                neighbours.setdefault(int(words[a]), []).append(int(words[b]))
    for b in sorted(heavy):
        for c in neighbours[b]:
            ends = [next((k for k in neighbours[i] if k in heavy and k != j), None) for i, j in ((b, c), (c, b))]
            if b < c and c in heavy and None not in ends:
                yield ends[0], b, c, ends[1]


def conformer(gmx, folder, edge=2.7):
    """That transformation with a torsion of each bond between heavy atoms within 40 degrees of where it is at first. Without that some turn
    once in 100 ps to ns, in both windows that were looked at (bar-2026.3.json of an EPYC), and the free energy is uncertain by 0.4 kJ/mol
    after 87 ns, with that by 0.16 after 53 (of an H200)."""
    system = relative(gmx, folder, edge)
    with open(system.conf) as file:
        places = [[float(row[k:k + 8]) for k in (20, 28, 36)] for row in file.read().splitlines()[2:-1]]
    with open(system.top) as file:
        topology = file.read()
    water = '#include "amber99sb.ff/tip3p.itp"'  # which follows upon the molecule
    if topology.count(water) != 1:
        raise Failure(f"{system.top} has not one line {water}")
    rows = [(*atoms, 1, angle_about_bond(*(places[k - 1] for k in atoms)), 40, 100) for atoms in heavy_torsions(topology)]
    restraints = "[ dihedral_restraints ]\n" + "".join(" ".join(f"{value:g}" for value in row) + "\n" for row in rows)
    with open(system.top, "w") as file:
        file.write(topology.replace(water, restraints + water))
    system.name = "conformer"
    return system


SYSTEMS = {"ion": ion, "molecule": molecule, "together": together, "relative": relative, "conformer": conformer}
# Of runs of given length: states that an eighth of it is enough for, as the errors beside them are a tenth of the others' (bar-2026.3.json).
SHORT = {"relative": range(5), "conformer": range(5)}
SHARE_OF_SHORT = 1 / 8
EDGES = {"ion": 2.3, "molecule": 2.3, "together": 2.3, "relative": 2.7, "conformer": 2.7}  # nm; of runs, where the time that is sampled is what counts


def equilibrated(gmx, name, folder, beside=1, **size):
    """The system with the end of a short run as its coordinates, made beside others of which there are so many."""
    threads = str(max(1, min(8, CORES // beside)))  # more than there are cores wait for one another
    system = SYSTEMS[name](gmx, folder, **size)
    still = changed(system.mdp, free_energy="no", nsteps=200, integrator="steep", constraints="none", define="-DFLEXIBLE")
    gmx.grompp(folder, still, system, name="minimum")
    gmx.mdrun(folder, name="minimum", threads=threads)
    system.conf = os.path.join(folder, "minimum.gro")
    gmx.grompp(folder, changed(system.mdp, init_lambda_state=0, nsteps=5000), system, name="start")
    gmx.mdrun(folder, name="start", threads=threads)
    system.conf = os.path.join(folder, "start.gro")
    system.states = len(system.mdp["coul-lambdas"].split())
    with open(system.conf) as file:
        system.atoms = int(file.read().splitlines()[1])
    return system


class FreeEnergy:
    """What gmx bar says of these files, of at least so many ps: between neighbouring states and in total, kJ/mol, with standard errors (None
    where not known)."""

    def __init__(self, gmx, folder, files, name, states, settled=SETTLED, shortest=0.0):
        blocks = str(max(5, min(20, int(shortest / BLOCK))))  # gmx bar has 5, and so few say little of their own spread
        # quiet, or what it says in the end may come in the middle of a line of its results
        output = gmx("-quiet", "bar", "-f", *files, "-b", str(settled + 0.5 * TIMESTEP), "-prec", "6", "-nbmin", blocks, "-nbmax", blocks, "-o",
                     name + ".xvg", "-oi", name + "-sum.xvg", folder=folder)
        found = re.findall(r"^(?:point|total) .*?DG\s+(\S+) \+/-\s+(\S+)", output, re.M)
        if len(found) != states:
            raise Failure(f"gmx bar says of {states} states: {output[-1000:]}")
        known = [(float(value), float(error) if math.isfinite(float(error)) else None) for value, error in found]
        self.steps, (self.total, self.error) = known[:-1], known[-1]


def lambdas(system):
    """Of all states, as in the .mdp."""
    return {key: value for key, value in system.mdp.items() if key.endswith("-lambdas")}


def derivative(folder, name):
    """The mean of dVcoul/dl over the frames that count."""
    legends, rows = dhdl(folder, name)
    column = next(k for k, text in enumerate(legends, 1) if text.startswith("dH") and "coul-lambda" in text)
    return mean(row[column] for row in rows if row[0] > SETTLED)


def of_frames(gmx, name, options):
    """The same frames by both methods."""
    folder = work_folder("bar-frames-" + name)
    system, every = equilibrated(gmx, name, folder), 25
    settled = round(SETTLED / TIMESTEP)

    def window(state):
        """Runs a window, or what is missing of it."""
        run, times = f"run{state}", {}
        mdp = changed(system.mdp, init_lambda_state=state, nsteps=settled + every * options.frames, nstxout=every, ld_seed=state + 1)
        gmx.grompp(folder, mdp, system, name=run)
        begin = time.monotonic()
        gmx.mdrun(folder, "-dhdl", run + ".xvg", name=run, threads="1")
        times["run"] = time.monotonic() - begin
        # what a rerun needs not
        still = changed(mdp, nstxout=0, nstcalcenergy=1, nstdhdl=1, nstenergy=1)
        for method, settings in (("pme", TIGHT), ("fmm", FMM)):
            gmx.grompp(folder, {**still, **settings}, system, name=f"{method}{state}")
            gmx.mdrun(folder, "-rerun", run + ".trr", "-dhdl", f"{method}{state}.xvg", name=f"{method}{state}", threads="1")
        os.remove(os.path.join(folder, run + ".trr"))
        print(f"{name}, window {state}: {times['run']:.0f} s", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(window, range(system.states)))
    states = range(system.states)
    own = FreeEnergy(gmx, folder, [f"run{k}.xvg" for k in states], "run", system.states)
    pme, fmm = (FreeEnergy(gmx, folder, [f"{method}{k}.xvg" for k in states], method, system.states) for method in ("pme", "fmm"))
    slopes = [derivative(folder, f"fmm{k}") - derivative(folder, f"pme{k}") for k in states]
    return {"part": "frames", "system": name, "atoms": system.atoms, "states": system.states, "lambdas": lambdas(system), "frames": options.frames,
            "ps_between_frames": every * TIMESTEP, "fmm": fmm_parameters(read_log(folder, "fmm0")),
            "dG_fmm": fmm.total, "dG_pme": pme.total, "dG_fmm_less_pme": fmm.total - pme.total,
            "of_neighbours_fmm_less_pme": [a[0] - b[0] for a, b in zip(fmm.steps, pme.steps)],
            "mean_dvcoul_dl_fmm_less_pme": slopes,
            "runs": {"dG": own.total, "error": own.error, "ps_a_window": every * options.frames * TIMESTEP,
                     "of_neighbours": own.steps}}


def mean_temperature(log):
    """Of all steps of a run that has ended, K."""
    found = re.search(r"A V E R A G E S(?s:.*?)\n(.*Temperature.*)\n(.*)\n", log)
    return float(found[2][found[1].index("Temperature") // 15 * 15:][:15]) if found else None


def whole_lines(folder, name):
    """A copy of a file that is being written, without the line that is not complete; "" where it has too little."""
    try:
        with open(os.path.join(folder, name + ".xvg")) as file:
            text = file.read()
    except FileNotFoundError:
        return ""
    text = text[:text.rfind("\n") + 1]
    rows = [line for line in text.splitlines() if line[0] not in "#@"]
    if not rows or float(rows[-1].split()[0]) < SETTLED_OF_RUNS + SHORTEST:
        return ""
    with open(os.path.join(folder, name + "-so-far.xvg"), "w") as file:
        file.write(text)
    return name + "-so-far.xvg"


@contextlib.contextmanager
def shared_gpus():
    """A multi-process service of our own, for what is started meanwhile with the environment that it gives."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        try:
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **environment}, check=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            raise Failure(f"--mps: {error}") from error
        try:
            yield environment
        finally:
            subprocess.run(["nvidia-cuda-mps-control"], env={**os.environ, **environment}, input="quit\n", text=True, stdout=subprocess.DEVNULL)


class Runs:
    """Windows of both methods in some systems, each several times if there are more jobs than windows."""

    def __init__(self, gmx, names, options, environment):
        self.gmx, self.options, self.environment, self.systems, self.replicas = gmx, options, environment, {}, 1
        folders = {name: work_folder("bar-runs-" + name) for name in names}
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            for name, system in zip(names, pool.map(lambda name: equilibrated(gmx, name, folders[name], len(names), edge=EDGES[name]), names)):
                self.systems[name] = (system, folders[name])
        methods = [options.method] if options.method else METHODS
        windows = len(methods) * sum(system.states for system, _ in self.systems.values())
        self.replicas = max(1, options.jobs // windows) if not options.ps else 1
        # Rounds are of one method as far as may be, so that their lengths can differ.
        order = [(name, method) for name in self.systems for method in methods] if options.ps else [
            (name, method) for method in methods for name in self.systems]
        self.tasks = [(name, method, state, replica) for name, method in order for replica in range(self.replicas)
                      for state in range(self.systems[name][0].states)]
        self.year = int(version(gmx).split(".")[0])
        if options.nbfe and self.year < 2026:
            raise Failure("--nbfe needs GROMACS 2026, earlier versions have perturbed pairs on the CPU")
        self.faster = {**(HEAVY if self.year >= 2024 else {}), **(NEWTON if options.md else FRICTION)}

    def nsteps(self, name, state):
        if not self.options.ps:
            return -1
        ps = self.options.ps * (SHARE_OF_SHORT if state in SHORT.get(name, ()) else 1)
        return round((ps + SETTLED_OF_RUNS) / float(self.faster.get("dt", TIMESTEP)))

    @staticmethod
    def file_of(method, state, replica):
        return f"{method}{state}-{replica}"

    def prepare(self):
        def grompp(task):
            name, method, state, replica = task
            system, folder = self.systems[name]
            seed = random.Random(f"{task} {self.options.seed}")
            mdp = changed(system.mdp, init_lambda_state=state, nsteps=self.nsteps(name, state), ld_seed=seed.randrange(1, 2 ** 30), gen_seed=seed.randrange(1, 2 ** 30),
                          coulombtype=method, **self.faster)
            self.gmx.grompp(folder, mdp, system, name=self.file_of(method, state, replica))

        with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
            list(pool.map(grompp, self.tasks))

    def start(self, slot, task, threads, seconds):
        """Begins a run on the cores of a slot. It ends by itself if nobody is there to end it, somewhat later."""
        name, method, state, replica = task
        folder, file, gpus_here = self.systems[name][1], self.file_of(method, state, replica), self.options.gpus
        environment = {**os.environ, **self.environment, "GMX_MAXBACKUP": "-1", "GMX_NO_QUOTES": "1", "OMP_NUM_THREADS": str(threads)}
        more = ("-nb", "cpu")
        if gpus_here:
            environment["CUDA_VISIBLE_DEVICES"] = str(slot % gpus_here)
            # Whether the FMM can run there is for mdrun to say.
            more = ("-nb", "gpu", "-bonded", "cpu", *(("-pme", "gpu") if method == "PME" else ()))
            if self.options.md and self.year >= 2026:
                softened = method == "FMM" and self.systems[name][0].mdp["sc-coul"] == "yes"
                more += ("-update", "gpu", "-nbfe", "cpu" if softened else self.options.nbfe or "gpu")
        command = [self.gmx.path, "mdrun", "-s", file + ".tpr", "-deffnm", file, "-dhdl", file + ".xvg", "-ntmpi", "1", "-ntomp", str(threads), "-pin", "off",
                   "-notunepme", "-cpt", "-1", "-maxh", str((seconds + 60) / 3600), *more]
        cores = sorted(os.sched_getaffinity(0))
        mine = {cores[(slot * threads + k) % len(cores)] for k in range(threads)}
        with open(os.path.join(folder, file + ".out"), "w") as out:
            return subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT,
                                    preexec_fn=lambda: os.sched_setaffinity(0, mine))

    @staticmethod
    def end_all(running):
        for p in running:
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)  # mdrun ends at the next pair search
        for p in running:
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def run_lengths(self, end, note):
        """All tasks to their ends, as far as the time is enough."""
        waiting, running, noted = list(self.tasks), {}, time.monotonic()
        threads = max(1, CORES // self.options.jobs)
        while (waiting or running) and time.monotonic() < end:
            running = {slot: p for slot, p in running.items() if p.poll() is None}
            for slot in range(self.options.jobs):
                if slot not in running and waiting:
                    running[slot] = self.start(slot, waiting.pop(0), threads, end - time.monotonic())
            time.sleep(0.5)
            if time.monotonic() > noted + 60:
                noted = time.monotonic()
                note(False)
        complete = not waiting and not running
        self.end_all(running.values())
        note(complete)

    def run(self, end, note):
        """All tasks until that time; note() is called every minute and in the end of a round."""
        rounds = math.ceil(len(self.tasks) / self.options.jobs)
        slots = math.ceil(len(self.tasks) / rounds)
        tasks_of = [self.tasks[r * slots:(r + 1) * slots] for r in range(rounds)]
        shares = [max(SHARE[task[1]] for task in tasks) for tasks in tasks_of]
        for r, tasks in enumerate(tasks_of):
            now = time.monotonic()
            stop = now + (end - now) * shares[r] / sum(shares[r:])
            threads = max(1, CORES // slots)
            running = [self.start(slot, task, threads, stop - now) for slot, task in enumerate(tasks)]
            while time.monotonic() < stop and any(p.poll() is None for p in running):
                time.sleep(min(60, max(0.1, stop - time.monotonic())))
                if time.monotonic() < stop - 20:
                    note(False)
            self.end_all(running)
            note(r == rounds - 1)

    def record(self, name, complete):
        """What is known of a system by now."""
        system, folder = self.systems[name]
        result = {"part": "runs", "system": name, "atoms": system.atoms, "states": system.states, "lambdas": lambdas(system), "seed": self.options.seed,
                  "method": self.options.method, "timestep_ps": float(self.faster.get("dt", TIMESTEP)), "hydrogens_masses_times": float(self.faster.get("mass-repartition-factor", 1)),
                  "integrator": self.faster.get("integrator", system.mdp["integrator"]), "tau_t": self.faster["tau-t"], "settled_ps": SETTLED_OF_RUNS,
                  "replicas": self.replicas, "complete": complete}
        for method in METHODS:
            files = [[whole_lines(folder, self.file_of(method, state, replica)) for replica in range(self.replicas)] for state in range(system.states)]
            times = [[dhdl(folder, file[:-4])[1][-1][0] - SETTLED_OF_RUNS for file in of_state if file] for of_state in files]
            ps = [sum(of_state) for of_state in times]
            found = result[method] = {"ps": [round(time, 1) for time in ps]}
            kelvin = [mean_temperature(self.log(folder, self.file_of(method, state, 0))) for state in range(system.states)]
            if any(kelvin):
                found["kelvin"] = kelvin
            log = next((text for text in (self.log(folder, self.file_of(method, 0, replica)) for replica in range(self.replicas)) if text), "")
            if method == "FMM" and log:
                found.update(parameters=fmm_parameters(log), on="GPU" if fmm_on(log, "GPU") else "CPU")
            if all(any(of_state) for of_state in files):
                every = [file for of_state in files for file in of_state if file]
                free = FreeEnergy(self.gmx, folder, every, method, system.states, SETTLED_OF_RUNS, shortest=min(map(min, times)))
                found.update(dG=free.total, error=free.error, of_neighbours=free.steps)
        compare(result)
        return result

    @staticmethod
    def log(folder, name):
        try:
            return read_log(folder, name)
        except FileNotFoundError:
            return ""


def compare(entry):
    """The difference of FMM's and PME's free energies, also in units of its standard error, where both are known."""
    if all(entry.get(method, {}).get("error") for method in METHODS):
        entry["dG_fmm_less_pme"] = entry["FMM"]["dG"] - entry["PME"]["dG"]
        entry["in_standard_errors"] = entry["dG_fmm_less_pme"] / math.hypot(entry["FMM"]["error"], entry["PME"]["error"])


def joined(records):
    """Of records of runs of each system that settled for as long as now: means of all seeds, weighted with their lengths, and their difference."""
    result = []
    records = [r for r in records if r["part"] == "runs" and r.get("settled_ps") == SETTLED_OF_RUNS]

    def kind(record):
        return record["system"], record["gromacs"], json.dumps(record["lambdas"])

    for key in sorted({kind(r) for r in records}):
        entry = {"system": key[0], "gromacs": key[1], "lambdas": json.loads(key[2])}
        for method in METHODS:
            of_seeds = [r[method] for r in records if kind(r) == key and r[method].get("error")]
            ps = sum(sum(r["ps"]) for r in of_seeds)
            if of_seeds:
                entry[method] = {"dG": sum(r["dG"] * sum(r["ps"]) for r in of_seeds) / ps,
                                 "error": math.hypot(*(r["error"] * sum(r["ps"]) for r in of_seeds)) / ps, "seeds": len(of_seeds), "ps": ps}
        compare(entry)
        result.append(entry)
    return result


def store(output, record, of_all):
    """Puts a record into OUT."""
    here = {**device("1"), **({"gpu": gpus()[0]} if of_all.get("gpus") else {})}
    record = {**record, **of_all, "device": here, **made()}
    stored = {"records": []}
    if os.path.exists(output):
        with open(output) as file:
            stored = json.load(file)
    names = ("part", "system", "gromacs", "seed", "method")
    records = [r for r in stored["records"] if [r.get(n) for n in names] != [record.get(n) for n in names]] + [record]
    with open(output, "w") as file:
        json.dump({"benchmark": "bar", "device": stored.get("device", here), "runs_of_all_seeds": joined(records), "records": records}, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("frames", "runs"))
    parser.add_argument("out")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--workers", type=int, default=CORES)
    parser.add_argument("--seconds", type=float, default=230)
    parser.add_argument("--ps", type=float)
    parser.add_argument("--jobs", type=int, default=CORES)
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--mps", action="store_true")
    parser.add_argument("--md", action="store_true")
    parser.add_argument("--nbfe", choices=("gpu", "cpu"))
    parser.add_argument("--method", choices=METHODS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_intermixed_args()
    systems = options.systems or list(SYSTEMS)
    if set(systems) - set(SYSTEMS):
        parser.error(f"unknown system {', '.join(set(systems) - set(SYSTEMS))}: {', '.join(SYSTEMS)} are known")
    if options.mps and not options.gpus:
        parser.error("--mps needs --gpus")
    if options.nbfe and not (options.gpus and options.md):
        parser.error("--nbfe needs --gpus and --md")
    if options.ps and options.ps * SHARE_OF_SHORT < SHORTEST:
        parser.error(f"--ps {options.ps:g}: give at least {SHORTEST / SHARE_OF_SHORT:g}, or windows are too short to count")
    gmx, end = need("GMXFMM_GMX"), time.monotonic() + options.seconds
    of_all = {"gromacs": version(gmx)}
    if options.part == "frames":
        for name in systems:
            record = of_frames(gmx, name, options)
            store(options.out, record, of_all)
            print(json.dumps({key: value for key, value in record.items() if key != "runs"}, indent=1), flush=True)
        return
    of_all.update(jobs=options.jobs, gpus=options.gpus, multi_process_service=options.mps, seconds=options.seconds)
    with shared_gpus() if options.mps else contextlib.nullcontext({}) as environment:
        runs = Runs(gmx, systems, options, environment)
        runs.prepare()
        # Runs take some seconds to end, and the free energies are computed after it.
        end -= 15
        if end - time.monotonic() < 20:
            raise Failure("no time is left after the preparation: raise --seconds, or ask for fewer systems")

        def note(complete):
            for name in systems:
                store(options.out, runs.record(name, complete), of_all)
        (runs.run_lengths if options.ps else runs.run)(end, note)
    with open(options.out) as file:
        print(json.dumps(json.load(file)["runs_of_all_seeds"], indent=1))


if __name__ == "__main__":
    main()
