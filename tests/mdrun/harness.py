"""Shared by the end-to-end tests: runs gmx, reads its files, prints one line per check.

Environment (run-tests.sh sets it):
  GMXFMM_GMX         patched gmx, mixed precision
  GMXFMM_GMX_D       patched gmx, double precision
  GMXFMM_GMX_MPI     patched gmx_mpi, mixed precision
  GMXFMM_STOCK_GMX   unpatched gmx of the same version, mixed     (default: gmx in PATH)
  GMXFMM_STOCK_GMX_D unpatched gmx of the same version, double    (default: gmx_d in PATH)
  GMXFMM_REGRESSION  folder of GROMACS's regression tests
  GMXFMM_WORK        where the runs are made (default: build/mdrun-tests); each test has a folder there
  GMXFMM_NTOMP       OpenMP threads of mdrun (default: the cores, at most 8)
"""
import array
import contextlib
import datetime
import functools
import itertools
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CORES = len(os.sched_getaffinity(0))  # that this program may use
NTOMP = os.environ.get("GMXFMM_NTOMP") or str(min(CORES, 8))
BAR_PER_KJ_MOL_NM3 = 16.6054  # 1 kJ/mol/nm^3 in bar
KT = 2.494  # kJ/mol at 300 K
SKIP = 77  # exit status of a test that could not run


class Failure(Exception):
    """A gmx command did not do what the test needs; the text says which and shows the end of its output."""


# ---------------------------------------------------------------------------------------------------------------- running

def launcher():
    """mpirun as root, as in a container, and with more ranks than cores."""
    mpirun = shutil.which("mpirun") or skip("there is no mpirun in PATH")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    return [mpirun, *(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"] if "Open MPI" in version or "OpenRTE" in version else [])]


class Gmx:
    """One gmx program."""

    def __init__(self, path):
        self.path = path

    @functools.cached_property
    def has_processes(self):
        """Whether it is built for an MPI library, so that its ranks are processes."""
        return re.search(r"^MPI library: +MPI", self.run(["--version"], "/tmp", log=False)[1], re.M) is not None

    def command(self, command):
        """The whole command of `gmx command...`: ranks that are processes are started by mpirun."""
        if "-ntmpi" not in command or not self.has_processes:
            return [self.path, *command]
        at = command.index("-ntmpi")
        return [*launcher(), "-n", command[at + 1], self.path, *command[:at], *command[at + 2:]]

    def run(self, command, folder, stdin="", env=None, log=True):
        """Runs `gmx command...` in folder; returns (status, output). The output is also in folder/<subcommand>.out."""
        full = {**os.environ, "GMX_MAXBACKUP": "-1", "GMX_NO_QUOTES": "1", **(env or {})}
        done = subprocess.run(self.command(list(command)), cwd=folder, input=stdin, env=full, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if log:
            with open(os.path.join(folder, command[0] + ".out"), "w") as out:
                out.write("$ " + " ".join(command) + "\n" + done.stdout)
        return done.returncode, done.stdout

    def __call__(self, *command, folder, stdin="", env=None):
        """As run, but a failure raises."""
        status, output = self.run(command, folder, stdin, env)
        if status != 0:
            tail = complaint(output) or "\n".join(output.strip().splitlines()[-25:])
            raise Failure(f"{os.path.basename(self.path)} {' '.join(command)} (in {folder}) ended with {status}:\n{tail}")
        return output

    def grompp(self, folder, mdp, system, *more, name="topol"):
        """Writes the .mdp and makes folder/name.tpr."""
        write_mdp(os.path.join(folder, name + ".mdp"), mdp)
        return self("grompp", "-f", name + ".mdp", "-po", name + "-out.mdp", "-c", system.conf, "-r", system.conf, "-p", system.top,
                    "-o", name + ".tpr", *(["-n", system.index] if system.index else []), "-maxwarn", "5", *more, folder=folder)

    def mdrun(self, folder, *more, name="topol", threads=NTOMP, nb="cpu", env=None, ranks=1):
        """Runs folder/name.tpr on ranks that share the threads, with pair interactions on nb."""
        each = str(max(1, int(threads) // ranks))
        return self("mdrun", "-s", name + ".tpr", "-deffnm", name, "-ntmpi", str(ranks), "-ntomp", each, "-nb", nb, *more,
                    folder=folder, env=env)

    def energies(self, folder, terms, name="topol"):
        """Rows of the .edr as dicts with Time and the terms asked for, at full precision."""
        self("energy", "-f", name + ".edr", "-o", name + "-energy.xvg", "-dp", folder=folder,
             stdin="\n".join(t.replace(" ", "-") for t in terms) + "\n\n")
        with open(os.path.join(folder, name + "-energy.xvg")) as lines:
            lines = lines.read().splitlines()
        names = ["Time"] + [re.search('"(.*)"', line).group(1) for line in lines if re.match(r"@ s\d+ legend", line)]
        missing = set(terms) - set(names)
        if missing:
            raise Failure(f"{name}.edr in {folder} has no {', '.join(sorted(missing))}")
        return [dict(zip(names, map(float, line.split()))) for line in lines if line[0] not in "#@"]


def complaint(output):
    """The errors that a gmx command gave, as one text ("" if none)."""
    found = re.findall(r"^(?:ERROR \d+.*?|Fatal error:|Error in user input:|Inconsistency in user input:|Program:.*?rror:)\n(.*?)(?=\n\n|\n---)",
                       output, re.M | re.S)
    found = [" ".join(text.split()) for text in found]
    return " / ".join(text for text in found if not re.match("There (was|were) .* error", text))


def program(variable, default=None):
    """The gmx that an environment variable names, or None."""
    path = os.environ.get(variable) or (shutil.which(default) if default else None)
    return Gmx(os.path.abspath(path)) if path else None


def need(variable, default=None):
    """As program, but its absence ends the test as skipped."""
    found = program(variable, default)
    if not found:
        skip(f"{variable} is not set" + (f" and {default} is not in PATH" if default else ""))
    return found


def want(variable):
    """As program, for parts of a test that are left out where it is not set."""
    found = program(variable)
    if not found:
        print(f"SKIP {os.path.basename(sys.argv[0])}: {variable} is not set, so what it is for is left out")
    return found


def version(gmx):
    """The version of GROMACS, as 2022.5, whatever is appended to it."""
    found = re.search(r"^GROMACS version: +(\d+\.\d+)", gmx.run(["--version"], "/tmp", log=False)[1], re.M)
    return found.group(1) if found else "unknown"


def alike(gmx):
    """Options of runs with pairs on the GPU that are to take the same order and cells, which mdrun else chooses by times: 2026 has no -reprod there."""
    return ["-reprod"] if version(gmx) == "2022.5" else ["-notunefmm"]


@contextlib.contextmanager
def environment(**values):
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


# Pair kernels of the CPU: what GROMACS chooses here, both layouts of SIMD, and plain C; a build need not have all of them.
CPU_KERNELS = {"chosen": {}, "4xN": {"GMX_NBNXN_SIMD_4XN": "1"}, "2xNN": {"GMX_NBNXN_SIMD_2XNN": "1"},
               "plain C": {"GMX_DISABLE_SIMD_KERNELS": "1"}}


def need_gpu(gmx):
    """Ends the test as skipped without an NVIDIA GPU, or where this gmx cannot use one."""
    found = shutil.which("nvidia-smi") and subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
    if not found or "GPU " not in found:
        skip("no GPU here")
    if not re.search(r"GPU support: +CUDA", gmx.run(["--version"], "/tmp", log=False)[1]):
        skip("this gmx was built without CUDA")


def skip(why):
    print(f"SKIP {os.path.basename(sys.argv[0])}: {why}")
    sys.exit(SKIP)


def work_folder(*parts):
    """An empty folder for the runs of this test."""
    top = os.environ.get("GMXFMM_WORK") or os.path.join(ROOT, "build", "mdrun-tests")
    folder = os.path.join(top, os.path.splitext(os.path.basename(sys.argv[0]))[0], *parts)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


# ----------------------------------------------------------------------------------------------------------------- checks

class Checks:
    """Counts and prints the checks of one test; finish() ends the program with status 1 if any failed."""

    def __init__(self):
        self.failed = 0

    def that(self, good, what):
        print(("PASS " if good else "FAIL ") + what, flush=True)
        self.failed += not good
        return good

    def below(self, what, value, limit, unit, why):
        unit = unit and " " + unit
        return self.that(value <= limit, f"{what}: {value:.3g}{unit}, limit {limit:.3g}{unit} ({why})")

    def finish(self):
        sys.exit(1 if self.failed else 0)


def main(test):
    """Runs test(checks); a failed gmx command is a failed check."""
    checks = Checks()
    try:
        test(checks)
    except Failure as failure:
        checks.that(False, str(failure))
    checks.finish()


# ------------------------------------------------------------------------------------------------------- systems and .mdp

class System:
    """Files that grompp needs, all absolute, and the .mdp settings that go with them (a dict)."""

    def __init__(self, name, conf, top, mdp, index=None):
        self.name, self.conf, self.top, self.mdp, self.index = name, conf, top, mdp, index


# Names that the regression tests use and grompp takes, but not beside their successors.
OLD_NAMES = {"nstxtcout": "nstxout-compressed", "xtc-precision": "compressed-x-precision", "xtc-grps": "compressed-x-grps",
             "verlet-buffer-drift": "verlet-buffer-tolerance"}


def key(name):
    name = name.strip().lower().replace("_", "-")
    return OLD_NAMES.get(name, name)


def read_mdp(path):
    settings = {}
    with open(path) as lines:
        for line in lines:
            left, equals, right = line.split(";")[0].partition("=")
            if equals:
                settings[key(left)] = right.strip()
    return settings


def write_mdp(path, settings):
    with open(path, "w") as out:
        for name, value in settings.items():
            out.write(f"{name} = {value}\n")


def changed(settings, **changes):
    """Settings with changes; an underscore in a name stands for a dash, None removes the setting."""
    result = dict(settings)
    for name, value in changes.items():
        if value is None:
            result.pop(key(name), None)
        else:
            result[key(name)] = value
    return result


def without_swaps(settings):
    """Settings without ion/water swapping, whose keys are unknown to grompp when it is off."""
    swap = re.compile("swap|iontype|split-group|massw-split|solvent-group|cyl[01]-|coupl-steps|bulk-offset|threshold$")
    return {name: value for name, value in settings.items() if not swap.match(name)}


def regression(name):
    """A system of GROMACS's regression tests, e.g. complex/swap_z."""
    top = os.environ.get("GMXFMM_REGRESSION") or os.path.join(ROOT, "build", "regressiontests-2022.5")
    folder = os.path.join(top, name)
    if not os.path.isdir(folder):
        skip(f"{folder} is not there (GMXFMM_REGRESSION)")
    index = os.path.join(folder, "index.ndx")
    conf = next((c for c in ("conf.gro", "conf.g96") if os.path.exists(os.path.join(folder, c))), "conf.gro")
    return System(os.path.basename(name), os.path.join(folder, conf), os.path.join(folder, "topol.top"),
                  read_mdp(os.path.join(folder, "grompp.mdp")), index if os.path.exists(index) else None)


def data_folder(gmx):
    """GROMACS's share/top, where spc216.gro and the force fields are."""
    places = [os.environ.get("GMXLIB", "")]
    if not places[0]:
        _, output = gmx.run(["--version"], "/tmp", log=False)
        prefix = re.search(r"^Data prefix: +(.*?)(?: \(source tree\))?$", output, re.M)
        places = [os.path.join(prefix.group(1), sub) for sub in ("share/gromacs/top", "share/top")] if prefix else []
    for place in places:
        if os.path.exists(os.path.join(place, "spc216.gro")):
            return place
    raise Failure(f"spc216.gro is not in {places}; set GMXLIB to GROMACS's share/top")


PLAIN_MDP = {
    "integrator": "md", "dt": "0.002", "nsteps": "0", "cutoff-scheme": "Verlet", "nstlist": "10", "coulombtype": "PME",
    "rcoulomb": "0.85", "rvdw": "0.85", "dispcorr": "EnerPres", "constraints": "h-bonds", "nstcomm": "100", "nstlog": "0",
    "nstenergy": "100", "nstcalcenergy": "100", "tcoupl": "no", "pcoupl": "no", "gen-vel": "yes", "gen-temp": "300", "gen-seed": "2022",
    "ld-seed": "1",  # a fixed one, so that runs can be compared
}

WATER_TOP = """#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spc.itp"
#include "oplsaa.ff/ions.itp"
[ system ]
water
[ molecules ]
"""


# Water in which every atom has Lennard-Jones: TIP3P as CHARMM36 has it, Rmin/2 1.7682 A and 0.2245 A, 0.1521 and 0.046 kcal/mol.
TIP3P = """[ defaults ]
1 2 yes 1.0 1.0
[ atomtypes ]
OT 8 15.9994 0.0 A 0.315057 0.636386
HT 1 1.0080 0.0 A 0.0400013 0.192464
[ moleculetype ]
SOL 2
[ atoms ]
1 OT 1 SOL OW 1 -0.834 15.9994
2 HT 1 SOL HW1 1 0.417 1.0080
3 HT 1 SOL HW2 1 0.417 1.0080
[ settles ]
1 1 0.09572 0.15139
[ exclusions ]
1 2 3
2 1 3
3 1 2
"""


def rock_salt(folder, along, off=0.05):
    """along^3 ions, off their places by up to this part of their distance in each direction."""
    distance = 0.282  # nm
    numbers = random.Random(5)
    rows = {"NA": [], "CL": []}
    for i in range(along ** 3):
        place = [i % along, i // along % along, i // along ** 2]
        rows["CL" if sum(place) % 2 else "NA"].append([distance * (p + numbers.uniform(-off, off)) for p in place])
    conf, top = os.path.join(folder, "conf.gro"), os.path.join(folder, "topol.top")
    ions = [(name, x) for name in rows for x in rows[name]]
    with open(conf, "w") as out:
        out.write(f"rock salt\n{len(ions)}\n")
        for number, (name, x) in enumerate(ions, 1):
            out.write(f"{number:5d}{name:<5s}{name:>5s}{number:5d}" + "".join(f"{v:8.3f}" for v in x) + "\n")
        out.write(3 * f" {along * distance:.5f}" + "\n")
    with open(top, "w") as out:
        out.write(WATER_TOP + "".join(f"{name} {len(rows[name])}\n" for name in rows))
    return System(f"rock salt of {along ** 3} ions", conf, top, changed(PLAIN_MDP, gen_vel="no", constraints="none"))


def water(gmx, folder, copies=(1, 1, 1), sodium=0):
    """SPC water: GROMACS's spc216.gro, 1.862 nm wide, copied along the box vectors; sodium ions replace the first molecules."""
    with open(os.path.join(data_folder(gmx), "spc216.gro")) as lines:
        lines = lines.read().splitlines()
    edge = float(lines[-1].split()[0])
    atoms = [(line[10:15], [float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)]) for line in lines[2:-1]]
    images = itertools.product(*map(range, copies))
    rows = []
    for image in images:
        for name, x in atoms:
            rows.append((name, [x[d] + image[d] * edge for d in range(3)]))
    out, count = [], 0
    for molecule in range(len(rows) // 3):
        three = rows[3 * molecule:3 * molecule + 3]
        for residue, name, x in [("NA", "NA", three[0][1])] if molecule < sodium else [("SOL", n.strip(), x) for n, x in three]:
            count += 1
            out.append(f"{(molecule + 1) % 100000:5d}{residue:<5s}{name:>5s}{count % 100000:5d}" + "".join(f"{v:8.3f}" for v in x))
    conf, top = os.path.join(folder, "conf.gro"), os.path.join(folder, "topol.top")
    with open(conf, "w") as f:
        f.write("\n".join(["water", str(count), *out, " ".join(f"{n * edge:.5f}" for n in copies)]) + "\n")
    with open(top, "w") as f:
        f.write(WATER_TOP + (f"NA {sodium}\n" if sodium else "") + f"SOL {len(rows) // 3 - sodium}\n")
    return System(f"water{count}", conf, top, dict(PLAIN_MDP))


def droplet_of(folder, block, rows, sodium=0):
    """A system without a box: these rows of the .gro of a block of water, sodium ions first."""
    conf, top = os.path.join(folder, "droplet.gro"), os.path.join(folder, "droplet.top")
    with open(conf, "w") as out:
        out.write("\n".join(["droplet", str(len(rows)), *rows, "0 0 0"]) + "\n")
    with open(block.top) as text:
        text = re.sub(r"SOL \d+", f"SOL {(len(rows) - sodium) // 3}", text.read())
    with open(top, "w") as out:
        out.write(text)
    return System("droplet", conf, top, changed(block.mdp, rvdw=0.9, rcoulomb=0.9, dispcorr="no"))


def leaving(folder, system, up=2, speed=5):
    """The system at rest, but for its last molecule of three atoms, which is moved up (nm) and flies on (nm/ps)."""
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    last = int(lines[1]) - 3
    rows = [f"{line[:36]}{float(line[36:44]) + up * (i >= last):8.3f}{0:8.4f}{0:8.4f}{speed * (i >= last):8.4f}" for i, line in enumerate(lines[2:-1])]
    conf = os.path.join(folder, "leaving.gro")
    with open(conf, "w") as out:
        out.write("\n".join([*lines[:2], *rows, lines[-1]]) + "\n")
    return System("leaving", conf, system.top, system.mdp)


def charmm_topology(system, molecules):
    """Writes the topology of so many molecules of CHARMM's water."""
    with open(system.top, "w") as top:
        top.write(f"{TIP3P}[ system ]\nwater\n[ molecules ]\nSOL {molecules}\n")


def charmm_water(gmx, folder, copies=(1, 1, 1)):
    """As water, but with Lennard-Jones on every atom, switched off between 0.8 and 1.0 nm."""
    system = water(gmx, folder, copies)
    with open(system.top) as top:
        charmm_topology(system, int(top.read().split()[-1]))
    system.mdp = changed(system.mdp, rvdw=1.0, rcoulomb=1.0, rvdw_switch=0.8, vdw_modifier="Force-switch", dispcorr="no")
    return system


def four_site_water(gmx, folder, place, topology):
    """Water with a fourth site at place(O, H, H), and the topology that this makes of that of three sites."""
    system = water(gmx, folder)
    with open(system.conf) as lines:
        lines = lines.read().splitlines()
    rows = []
    for at in range(2, len(lines) - 1, 3):
        atoms = [[float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)] for line in lines[at:at + 3]]
        for name, x in zip(("OW", "HW1", "HW2", "MW"), [*atoms, place(*atoms)]):
            rows.append(f"{lines[at][:10]}{name:>5s}{len(rows) + 1:5d}" + "".join(f"{v:8.3f}" for v in x))
    with open(system.conf, "w") as out:
        out.write("\n".join([lines[0], str(len(rows)), *rows, lines[-1]]) + "\n")
    with open(system.top) as top:
        text = top.read()
    with open(system.top, "w") as out:
        out.write(topology(text))
    return system


# Constant pressure, in boxes that may change in these ways.
COUPLING = {
    "isotropic": {"pcoupl": "C-rescale", "compressibility": "4.5e-5", "ref-p": "1"},
    "semiisotropic": {"pcoupl": "C-rescale", "compressibility": "4.5e-5 4.5e-5", "ref-p": "1 1"},
    "anisotropic": {"pcoupl": "Parrinello-Rahman", "compressibility": "4.5e-5 4.5e-5 4.5e-5 0 0 0", "ref-p": "1 1 1 0 0 0"},
}

# PME as exact as GROMACS lets it be; error about 1e-9 of the force in double precision.
TIGHT = {"coulombtype": "PME", "pme-order": "12", "fourierspacing": "0.05", "ewald-rtol": "1e-10",
         "fourier-nx": "0", "fourier-ny": "0", "fourier-nz": "0"}
# In mixed precision a large Ewald parameter costs more by rounding than it gains: this is the most exact that there is.
TIGHT_MIXED = {**TIGHT, "pme-order": "8", "fourierspacing": "0.08", "ewald-rtol": "1e-7", "rcoulomb": "1.2"}
# No Coulomb at all, the 1-4 interactions included: what is left out of a force to get its Coulomb part.
NO_COULOMB = {"coulombtype": "Cut-off", "coulomb-modifier": "None", "epsilon-r": "0"}
FMM = {"coulombtype": "FMM"}


# ------------------------------------------------------------------------------------------------------ frames and results

class Frame:
    """One frame of a .trr: time, step, box (9 reals), x, v, f (flat arrays, empty where absent)."""

    def __init__(self, time, step, box, x, v, f):
        self.time, self.step, self.box, self.x, self.v, self.f = time, step, box, x, v, f

    def volume(self):
        b = self.box
        return b[0] * b[4] * b[8]  # GROMACS boxes are lower triangular


def read_trr(path):
    """Frames of a .trr (XDR: big-endian), of either precision."""
    with open(path, "rb") as file:
        data = file.read()
    at, frames = 0, []
    while at < len(data):
        magic, _, length = struct.unpack_from(">iii", data, at)
        if magic != 1993:
            raise Failure(f"{path}: not a .trr at byte {at}")
        at += 12 + (length + 3) // 4 * 4
        sizes = struct.unpack_from(">13i", data, at)
        at += 52
        box_size, x_size, v_size, f_size, atoms, step = sizes[2], sizes[7], sizes[8], sizes[9], sizes[10], sizes[11]
        width = box_size // 9 if box_size else (x_size or v_size or f_size) // (3 * atoms)
        code = "d" if width == 8 else "f"
        time = struct.unpack_from(">" + code, data, at)[0]
        at += 2 * width

        def take(size):
            nonlocal at
            part = array.array(code, data[at:at + size])
            if sys.byteorder == "little":
                part.byteswap()
            at += size
            return part
        box = take(box_size)
        at += sum(sizes[3:7])
        frames.append(Frame(time, step, box, take(x_size), take(v_size), take(f_size)))
    return frames


def make_frames(gmx, folder, system, steps=40, every=10):
    """A short PME run; returns its .trr and the times of its frames, the first left out (it is the start, often at rest)."""
    mdp = changed(system.mdp, nsteps=steps, nstxout=every, nstvout=every, nstfout=0, nstxout_compressed=0)
    gmx.grompp(folder, mdp, system, name="frames")
    gmx.mdrun(folder, name="frames")
    trajectory = os.path.join(folder, "frames.trr")
    return trajectory, [frame.time for frame in read_trr(trajectory)][1:]


def continues_bit_for_bit(checks, what, gmx, folder, system, settings, ranks=1):
    """A run of 100 steps and one that is continued after 50; returns the frames of the former and the settings of both."""
    # A fixed list: with a buffer by tolerance mdrun raises nstlist, and step 50 would have a pair search in the continued run alone.
    mdp = {**changed(system.mdp, nsteps=100, nstlist=10, verlet_buffer_tolerance=-1, rlist=1.0, nstxout=50, nstvout=50, nstfout=50, nstenergy=10,
                     nstcalcenergy=10), **settings}
    gmx.grompp(folder, mdp, system, name="whole")
    gmx.mdrun(folder, "-reprod", name="whole", ranks=ranks)
    gmx.grompp(folder, mdp, system, name="parts")
    gmx.mdrun(folder, "-reprod", "-nsteps", "50", name="parts", ranks=ranks)
    gmx.mdrun(folder, "-reprod", "-cpi", "parts.cpt", name="parts", ranks=ranks)
    whole, parts = (read_trr(os.path.join(folder, part + ".trr")) for part in ("whole", "parts"))
    same = [f.step for f in whole] == [f.step for f in parts] and all(a.x == b.x and a.v == b.v and a.f == b.f for a, b in zip(whole, parts))
    checks.that(same, f"{what}: a continued run has the same positions, velocities, forces in every bit")
    return whole, mdp


class Point:
    """What one method gives for one frame."""

    def __init__(self, energy, frame):
        self.energy, self.frame, self.force = energy, frame, frame.f

    def coulomb(self):
        return self.energy["Coulomb (SR)"] + self.energy.get("Coul. recip.", 0.0)


POINT_TERMS = ["Coulomb (SR)", "Coul. recip.", "Potential", "Pressure", "Pres-XX", "Pres-XY", "Pres-YY", "Pres-XZ", "Pres-YZ", "Pres-ZZ"]


def single_points(gmx, folder, system, settings, trajectory, times, name, nb="cpu", more=(), threads=NTOMP, ranks=1):
    """Energy, pressure and forces of the frames at these times, each by a run of zero steps; more: options of mdrun.

    Not by -rerun, because a rerun has no pressure.
    """
    mdp = changed(without_swaps(system.mdp), nsteps=0, nstxout=0, nstvout=0, nstfout=1, nstxout_compressed=0, nstenergy=1, nstcalcenergy=1, nstlog=1,
                  gen_vel="no", continuation="yes", pcoupl="no", tcoupl="no", integrator="md")
    mdp.update(settings)
    if settings.get("epsilon-r") == "0":
        # No step is made, so that no buffer is needed; that of these settings is not finite to 2026.3
        mdp.update({"verlet-buffer-tolerance": "-1", "rlist": str(max(float(mdp["rcoulomb"]), float(mdp["rvdw"])))})
    points = []
    for number, time in enumerate(times):
        this = f"{name}-{number}"
        gmx.grompp(folder, mdp, system, "-t", trajectory, "-time", str(time), name=this)
        gmx.mdrun(folder, *more, name=this, nb=nb, threads=threads, ranks=ranks)
        terms = [t for t in POINT_TERMS if t != "Coul. recip." or settings.get("coulombtype") != "Cut-off"]
        points.append(Point(gmx.energies(folder, terms, name=this)[0], read_trr(os.path.join(folder, this + ".trr"))[0]))
    return points


def rms_difference(a, b):
    """sqrt(mean |a_i - b_i|^2) over the particles of flat arrays."""
    return math.sqrt(sum((p - q) ** 2 for p, q in zip(a, b)) / (len(a) / 3))


def rms_distance(a, b, box):
    """As rms_difference for positions, between nearest images: where a molecule is put into the box is a matter of taste."""
    total = 0.0
    for i in range(0, len(a), 3):
        d = [a[i + k] - b[i + k] for k in range(3)]
        for row in (2, 1, 0):  # lower triangular, so that undoing c, then b, then a is enough for small distances
            turns = round(d[row] / box[4 * row]) if box[4 * row] else 0  # the box of a film has no height
            for k in range(row + 1):
                d[k] -= turns * box[3 * row + k]
        total += sum(v * v for v in d)
    return math.sqrt(total / (len(a) / 3))


def force_error(points, reference, without_coulomb):
    """RMS force difference over RMS Coulomb force, all frames taken together."""
    wrong = sum(rms_difference(p.force, r.force) ** 2 for p, r in zip(points, reference))
    coulomb = sum(rms_difference(r.force, z.force) ** 2 for r, z in zip(reference, without_coulomb))
    return math.sqrt(wrong / coulomb)


def compare(checks, what, points, reference, without_coulomb, accuracy, energy=1e-3, pressure=1.0):
    """The checks that any FMM calculation must pass against PME, on the same frames.

    accuracy: relative RMS force error asked; energy: kJ/mol per atom; pressure: bar, for the mean over the frames
    (None: not compared). One diagonal element of the pressure tensor may be off three times as much, the pressure being a
    third of their sum.
    """
    atoms = len(reference[0].force) // 3
    checks.below(f"{what}: force error", force_error(points, reference, without_coulomb), accuracy, "", "the accuracy asked")
    wrong = max(abs(p.coulomb() - r.coulomb()) for p, r in zip(points, reference)) / atoms
    checks.below(f"{what}: Coulomb energy error per atom, worst frame", wrong, energy, "kJ/mol", "0.04 % of kT" if energy == 1e-3 else "accuracy")
    if pressure is None:
        return
    for term, factor in [("Pressure", 1), ("Pres-XX", 3), ("Pres-YY", 3), ("Pres-ZZ", 3)]:
        wrong = abs(mean(p.energy[term] - r.energy[term] for p, r in zip(points, reference)))
        checks.below(f"{what}: {term} error, mean of {len(points)} frames", wrong, factor * pressure, "bar",
                     "as with PME" if factor == 1 else "three times that, a third of the sum")


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def block_error(values, blocks=10):
    """Standard error of the mean, from block averages."""
    size = len(values) // blocks
    means = [mean(values[b * size:(b + 1) * size]) for b in range(blocks)]
    centre = mean(means)
    return math.sqrt(sum((m - centre) ** 2 for m in means) / (blocks * (blocks - 1)))


def slope(x, y):
    """Least-squares slope of y over x."""
    mx, my = mean(x), mean(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)


def run_info(folder, name, dt):
    """From md.log: ms per step, ns per day, and the rows of the cycle table as {name: share of the wall time}."""
    log = read_log(folder, name)
    performance = re.search(r"^Performance: +([0-9.]+)", log, re.M)
    if not performance:
        raise Failure(f"{name}.log in {folder} has no performance")
    ns_per_day = float(performance.group(1))
    shares = {}
    table = log[log.rfind("C Y C L E"):]
    table = table[:table.find("\n Total ")]  # what follows divides rows of the table further
    for row in re.finditer(r"^ (\S.{1,20}?) +\d+ +\d+ +\d+ +[0-9.]+ +[0-9.]+ +([0-9.]+)$", table, re.M):
        shares[row.group(1)] = float(row.group(2)) / 100
    stages = {}
    for row in re.finditer(r"^ +((?:Near|Far): .*?) +([0-9.]+) s +([0-9.]+) %$", log, re.M):
        stages[" ".join(row.group(1).split())] = float(row.group(3)) / 100
    return {"ms_per_step": 86400e3 * dt * 1e-3 / ns_per_day, "ns_per_day": ns_per_day, "cycles": shares, "fmm_stages": stages}


def device(threads=NTOMP):
    """What a timing was made on."""
    model = "unknown"
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"cpu": model, "cores": CORES, "threads": int(threads)}


def gpus():
    """Names and drivers of NVIDIA GPUs."""
    found = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    return found.stdout.splitlines()


def commit():
    """The commit of this repository, with + when the work tree differs ("unknown" outside git), or GMXFMM_BENCHMARK_COMMIT."""
    if os.environ.get("GMXFMM_BENCHMARK_COMMIT"):
        return os.environ["GMXFMM_BENCHMARK_COMMIT"]
    found = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--abbrev=12", "--dirty=+"], text=True, capture_output=True)
    return found.stdout.strip() or "unknown"


def made():
    """When, by which commit and by which command a result was made."""
    return {"date": datetime.date.today().isoformat(), "commit": commit(), "command": os.environ.get("GMXFMM_BENCHMARK_COMMAND", " ".join(sys.argv))}


def stored(path, empty):
    """What a .json has, or this where there is none."""
    if not os.path.exists(path):
        return empty
    with open(path) as file:
        return json.load(file)


def fmm_parameters(log):
    """The lines of an md.log that say what the FMM has chosen, with the error that it expects, "" if there are none."""
    found = re.search(r"^FMM: .*\n(?:(?:.*\n){0,3}?.*expected relative RMS.*|.*)", log, re.M)
    return " ".join(found.group(0).split()) if found else ""


def chosen_settings(parameters):
    """The same as .mdp settings, None where it is not understood."""
    found = re.search(r"far field by (\w+), expansion order (\d+), (?:octree of depth (\d+), )?(\d+) x (\d+) x (\d+) cells.*?separation (\d)",
                      parameters)
    if not found:
        return None
    method, order, depth, nx, ny, nz, separation = found.groups()
    cells = {"fmm-grid": f"{nx} {ny} {nz}", **({"fmm-tree-depth": int(depth)} if depth else {})}
    return {**FMM, "fmm-m2l": method, "fmm-order": int(order), "fmm-separation": int(separation), **cells}


def measured_error(log):
    """The force errors that an md.log says were measured at the start, when atoms are assigned to cells and later, or None."""
    found = re.search(r"expected relative RMS force error \S+, measured (\d\S+) to (\d\S+)", log)
    return (float(found.group(1)), float(found.group(2))) if found else None


def fmm_on(log, where):
    """Whether an md.log says that the FMM ran on the CPU or the GPU."""
    return re.search(rf"near and far field in \w+ precision on the {where}", log) is not None


def drift(rows, atoms, lag=2.0):
    """Least-squares slope of the total energy per atom (kJ/mol/ps), and its standard error.

    Where cells are assigned anew the energy does a random walk; the variance of its slope is 6/5 of that of the change from
    begin to end, the sum of the changes over each lag (ps) squared. These are of means over a quarter of a lag, which leaves
    out how the energy oscillates.
    """
    t, e = [r["Time"] for r in rows], [r["Total Energy"] / atoms for r in rows]
    each, window = round(lag / (t[1] - t[0])), max(1, round(lag / 4 / (t[1] - t[0])))
    means = [mean(e[i:i + window]) for i in range(0, len(e) - window + 1, each)]
    changes = [b - a for a, b in zip(means, means[1:])]
    return slope(t, e), math.sqrt(1.2 * sum(c * c for c in changes)) / (lag * len(changes))


def heating(rows, atoms, lag=2.0):
    """What a random walk of the total energy heats by at 300 K, per atom (kJ/mol/ps), and its standard error.

    An energy that walks by a variance of D t rises by D / (2 kT), if the walk is the same forward and backward in time, which that
    of assignments is about: a step down is as probable as its reverse, weighted with the states at both ends. D is known better from short runs than the slope. It is of means over a lag each (ps), whose
    differences have two thirds of a lag's variance; what oscillates faster is left out.
    """
    t, e = [r["Time"] for r in rows], [r["Total Energy"] for r in rows]
    each = round(lag / (t[1] - t[0]))
    means = [mean(e[i:i + each]) for i in range(0, len(e) - each + 1, each)]
    squares = [1.5 * (b - a) ** 2 for a, b in zip(means, means[1:])]
    rate = mean(squares) / lag / (2 * KT) / atoms
    return rate, rate * math.sqrt(2 / len(squares))


def read_log(folder, name="topol"):
    with open(os.path.join(folder, name + ".log"), errors="replace") as log:
        return log.read()
