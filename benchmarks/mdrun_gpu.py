#!/usr/bin/env python3
"""Speed of mdrun with PME, FMM and reaction field on a GPU, each at its best settings, with the force errors of both.

mdrun_gpu.py GMX OUTPUT [SYSTEM]...   (as scripts/run-mdrun-bundle.sh calls it, whose header has the systems; --help lists the options)
Without a GPU, to try it: mdrun_gpu.py GMX out/mdrun.json water2 --cpu --threads 1,2 --nstlist 20,40 --steps 40 --equilibration 100

For each system, made and equilibrated here:
1. PME: pairs of rcoulomb and fourierspacing that have one ratio and so one accuracy, until one is a tenth slower than the best; then
   nstlist and threads.
2. Force errors on one frame against tight PME: of the fastest PME, and of FMM at several orders and cells.
3. FMM: every setting that is no less exact than that PME; then nstlist and threads. Reaction field, for the record.
4. The best of PME and of FMM in turns: these are the figures; the others only choose. Where hydrogens have Lennard-Jones, FMM with
   it of groups (fmm-lj = split), too.
5. Both as mdrun runs them when it is given a number of threads and nothing else, where the system has `defaults`.
OUTPUT, a list of records, is written after each of these measurements. What it has of the same commit is not measured again, so
that a run that was stopped goes on; other records are kept. Beside it, the ends of the md.log files in mdrun-logs.tar.gz.

Systems are equilibrated by PME, 2.25 ps at constant volume from random velocities, and run with steps of 2 fs, everything on the GPU,
output every 1000 and energies every 100 steps. Of GROMACS 2026.3 the records have tried of FMM what it chooses by itself and what was
best with 2022.5 (--fmm-settings-of). What a record has:
pme_ns_per_day, fmm_ns_per_day, reaction_field_ns_per_day  from md.log, the second half of a run of some seconds (-resethway); of PME
    and FMM the median of runs in turns (..._runs). PME: order 4, ewald-rtol 1e-5, its own tuning off; nstlist 100 and 200, 8 and 16
    threads, in systems of users bonded interactions on GPU and CPU; in GROMACS 2026.3 with and without GMX_CUDA_GRAPH (`graph`)
pme_default_ns_per_day, fmm_default_ns_per_day  a number of threads and no other option
rlist            of a timing: the radius of the (outer) pair list and how often it is made
pme_force_error, fmm_force_error  RMS difference of the forces of one frame from tight PME (order 8, rcoulomb 1.2 nm, spacing 0.08 nm,
    ewald-rtol 1e-7), over the RMS Coulomb force without intramolecular pairs; of more than 300,000 atoms on a smaller system of the
    same kind (force_errors_of), with cells of the same size or smaller
tried, errors    every timing with settings, command and cycle table, those that failed with the message; every force error
complete         false where time ran out: figures are then those of the timings so far
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mdrun_systems  # noqa: E402
from harness import (CORES, FMM, NO_COULOMB, TIGHT_MIXED, Failure, Gmx, changed, chosen_settings, device, fmm_on,  # noqa: E402
                     fmm_parameters, force_error, made, read_log, run_info, single_points, version)

# Factors on rcoulomb and fourierspacing: what mdrun's own tuning of PME tries.
LADDER = (1.0, 1.1, 1.2, 1.35)
SPARSE_LADDER = (1.25, 1.5, 1.75)

# Settings of FMM around those that are fastest in water by the library's own benchmarks (water.json): method, order, edge of a
# cell (nm), separation.
DENSE = [("fft", 8, 0.47, 1), ("fft", 8, 0.52, 1), ("fft", 8, 0.58, 1), ("fft", 9, 0.47, 1), ("fft", 7, 0.62, 1), ("fft", 9, 0.43, 1),
         ("fft", 10, 0.47, 1), ("fft", 10, 0.56, 1), ("fft", 9, 0.62, 1), ("fft", 5, 0.33, 2)]
SPARSE = [("rotation", 8, 0.83, 1), ("rotation", 7, 0.83, 1), ("rotation", 7, 1.0, 1), ("rotation", 8, 0.71, 1), ("rotation", 9, 0.71, 1),
          ("rotation", 5, 0.42, 2), ("fft", 8, 0.58, 1)]

SPLIT = {"fmm-lj": "split"}
ERROR_ATOMS = 300000  # of larger systems the errors are measured on a smaller one of the same kind, with cells of the same size


class Case:
    """A system to measure: how it is made, what is tried."""

    def __init__(self, make, small=None, ladder=LADDER, settings=tuple(DENSE), seconds=4.0, thorough=True, bondeds=(), estimate=2.5e-6,
                 update="gpu", defaults=False, split=False):
        self.make = make            # (gmx, folder) -> System
        self.small = small          # the same for the system whose force errors are measured, if that is another
        self.ladder, self.settings = ladder, settings
        self.seconds = seconds      # of one timing
        self.thorough = thorough    # all threads and lists, and the best in turns
        self.bondeds = bondeds      # what -bonded is tried with, where there are bonded forces; the first counts in the search
        self.update = update        # where the update is, as it can be
        self.defaults = defaults    # whether mdrun's own choices are measured, too
        self.split = split          # whether fmm-lj = split is, too
        self.estimate = estimate    # ms per atom of a step, until the first timing tells


def water_case(copies, thorough):
    big = 648 * copies ** 3 > ERROR_ATOMS
    return Case(lambda gmx, folder: mdrun_systems.water(gmx, folder, copies),
                (lambda gmx, folder: mdrun_systems.water(gmx, folder, 5)) if big else None, seconds=4.0 if thorough else 3.0, thorough=thorough,
                defaults=copies in (2, 5, 12))


CASES = {f"water{n}": water_case(n, thorough=n in (5, 12)) for n in (2, 3, 4, 5, 6, 8, 10, 12, 15, 25)}
CASES["membrane"] = Case(mdrun_systems.membrane, bondeds=("gpu",))
CASES["tip3p"] = Case(mdrun_systems.tip3p, defaults=True, split=True)
CASES["protein"] = Case(mdrun_systems.membrane_protein, bondeds=("gpu", "cpu"), defaults=True, split=True)
CASES["protein-as-written"] = Case(lambda gmx, folder: mdrun_systems.membrane_protein(gmx, folder, update="cpu"), bondeds=("gpu", "cpu"),
                                   update="cpu", defaults=True, split=True)
CASES["protein18"] = Case(lambda gmx, folder: mdrun_systems.membrane_protein(gmx, folder, (3, 3, 2)), mdrun_systems.membrane_protein,
                          bondeds=("gpu", "cpu"), defaults=True, split=True)
CASES["amber"] = Case(mdrun_systems.amber_protein, bondeds=("gpu", "cpu"), defaults=True)
CASES["droplets"] = Case(lambda gmx, folder: mdrun_systems.droplets(gmx, folder, 2, 125001, 40.0),
                         lambda gmx, folder: mdrun_systems.droplets(gmx, folder, 1, 125001, 40.0), ladder=SPARSE_LADDER, settings=tuple(SPARSE),
                         thorough=False, estimate=1.5e-5, defaults=True)


class OutOfTime(Exception):
    """What is left to measure does not fit into the time that was given."""


def smooth_near(wanted):
    """The number without prime factors above 7, hence good for an FFT, that is nearest to this one in ratio."""
    def smooth(n):
        for p in (2, 3, 5, 7):
            while n % p == 0:
                n //= p
        return n == 1
    return min((n for n in range(2, 1000) if smooth(n)), key=lambda n: abs(math.log(n / wanted)))


def leaves_near(wanted):
    """Leaves along an edge, 1, 3, 5 or 7 roots times a power of two, nearest to this number in ratio, and the octree's depth."""
    return min(((roots << depth, depth) for roots in (1, 3, 5, 7) for depth in range(1, 10)), key=lambda n: abs(math.log(n[0] / wanted)))


def fmm_settings(choice, box):
    """The .mdp settings of a choice in this box, a cube if it is an octree's."""
    method, order, size, separation = choice
    settings = {**FMM, "fmm-m2l": method, "fmm-order": order, "fmm-separation": separation}
    if method == "fft":
        settings["fmm-grid"] = " ".join(str(smooth_near(edge / size)) for edge in box)
    else:
        leaves, settings["fmm-tree-depth"] = leaves_near(box[0] / size)
        settings["fmm-grid"] = f"{leaves} {leaves} {leaves}"
    return settings


def on_smaller(settings, box, small):
    """Settings of FMM in a box for the smaller box of another system: cells of the same size or, where they do not fit, smaller
    ones, with which the error is no smaller."""
    result = dict(settings)
    if "fmm-grid" in settings:
        cells = map(int, settings["fmm-grid"].split())
        result["fmm-grid"] = " ".join(str(math.ceil(n * b / a - 1e-6)) for n, a, b in zip(cells, box, small))
    if settings.get("fmm-tree-depth", -1) > 0:
        result["fmm-tree-depth"] = settings["fmm-tree-depth"] - round(math.log2(max(box) / max(small)))
    return result


def identity(settings):
    return json.dumps(settings, sort_keys=True)


class Bench:
    """All that one call measures; writes what it has after each step."""

    def __init__(self, options):
        self.options, self.gmx = options, Gmx(os.path.abspath(options.gmx))
        self.work, self.output = os.path.abspath(options.work), os.path.abspath(options.output)
        os.makedirs(os.path.dirname(self.output), exist_ok=True)
        self.end = time.monotonic() + options.limit
        machine = gpu() if not options.cpu else {"device": device()["cpu"], "driver": "none"}
        self.common = {**machine, "gromacs": version(self.gmx), "cpu": device()["cpu"], "cores": CORES, **made()}
        self.records = []
        for path in (options.earlier, self.output):
            if path and os.path.exists(path):
                with open(path) as file:
                    self.records = merged(self.records, json.load(file))
        self.known_best = {}  # system -> settings of FMM
        if options.fmm_settings_of:
            with open(options.fmm_settings_of) as file:
                self.known_best = {r["name"]: r["settings"]["fmm"]["settings"] for r in json.load(file)}
        self.found, self.errors = {}, {}  # system -> settings of each method; force errors, and of which commit they are
        if options.best_of:
            with open(options.best_of) as file:
                found = json.load(file)
                self.found, self.errors = {r["name"]: r["settings"] for r in found}, {r["name"]: (r["errors"], r["commit"]) for r in found}
        self.threads = [int(t) for t in options.threads.split(",")]
        self.lists = [int(n) for n in options.nstlist.split(",")]

    def pins(self, threads):
        """Options of mdrun that spread its threads over the cores of this program, where those are a part of the machine. (With -pin on
        mdrun does not heed which they are.)"""
        if self.options.pin_offset is None:
            return []
        return ["-pinoffset", str(self.options.pin_offset), "-pinstride", str(max(1, CORES // threads))]

    def store(self):
        with open(self.output + ".new", "w") as file:
            file.write("[\n" + ",\n".join(" " + json.dumps(record) for record in self.records) + "\n]\n")
        os.replace(self.output + ".new", self.output)

    def keep_log(self, label, text):
        """Adds the end of an md.log to what mdrun-logs.tar.gz holds."""
        folder = os.path.join(self.work, "logs")
        os.makedirs(folder, exist_ok=True)
        parts = re.findall(r"^FMM: .*?\n\n|^(?:Mapping of GPU IDs|PP task|.*Update task|.*on the list|Initial vector).*?\n\n", text, re.M | re.S)
        at = text.rfind("M E G A - F L O P S")
        with open(os.path.join(folder, label + ".log"), "w") as file:
            file.write("\n".join(parts) + (text[at:] if at >= 0 else text[-5000:]))
        with tarfile.open(os.path.join(os.path.dirname(self.output), "mdrun-logs.tar.gz"), "w:gz") as archive:
            archive.add(folder, "logs")

    def measure(self, name):
        case = CASES[name]
        record = next((r for r in self.records if r["name"] == name), None)
        if not record or any(record.get(key) != self.common[key] for key in ("commit", "device", "driver")):
            record = {"name": name, "tried": [], "errors": []}
            self.records = [r for r in self.records if r["name"] != name] + [record]
        record.update(self.common, complete=False)
        run = Run(self, name, case, record)
        try:
            run.all()
            record["complete"] = True
        except OutOfTime:
            print(f"{name}: out of time; the next call goes on", flush=True)
        except mdrun_systems.Missing as missing:
            print(f"{name}: skipped: {missing}", flush=True)
            self.records.remove(record)
            return True
        except Failure as failure:
            record["failed"] = str(failure)
            print(f"FAILED {name}: {failure}", flush=True)
        self.store()
        return record["complete"]


class Run:
    """The measurements of one system."""

    def __init__(self, bench, name, case, record):
        self.bench, self.name, self.case, self.record, self.gmx = bench, name, case, record, bench.gmx
        self.folder = os.path.join(bench.work, name)
        self.cpu = bench.options.cpu
        if not record["errors"] and name in bench.errors:
            record["errors"], record["errors_of_commit"] = bench.errors[name]
        self.made = {}  # .tpr files: settings -> name
        self.longest = 0.0
        record.pop("failed", None)

    def build(self, make, folder):
        os.makedirs(folder, exist_ok=True)
        system = make(self.gmx, folder)
        pp = ["-ntomp", str(self.bench.threads[-1]), *(["-nb", "cpu"] if self.cpu else ["-nb", "gpu", "-pme", "gpu"])]
        mdrun_systems.equilibrated(self.gmx, folder, system, self.bench.options.equilibration, pp)
        system.mdp = changed(system.mdp, gen_vel="no", continuation="yes")
        return system

    def all(self):
        self.check_time(60 if not self.cpu else 0)
        began = time.monotonic()
        self.system = self.build(self.case.make, self.folder)
        self.record.update(system=self.system.name, atoms=self.system.atoms, box_nm=self.system.box)
        self.say(f"{self.system.name}: made and equilibrated in {time.monotonic() - began:.0f} s")
        first, most = self.bench.lists[0], self.bench.threads[-1]

        rcoulomb, spacing = float(self.system.mdp["rcoulomb"]), float(self.system.mdp.get("fourierspacing", 0.12))
        ladder = [{"coulombtype": "PME", "rcoulomb": f"{rcoulomb * f:.4g}", "fourierspacing": f"{spacing * f:.4g}", "pme-order": 4,
                   "ewald-rtol": "1e-5"} for f in (self.case.ladder if self.case.thorough else self.case.ladder[:3])]
        pme = self.found("pme", lambda: self.search("pme", ladder, first, most))
        self.set_result("pme", pme)

        self.error_frame()
        limit = self.error(pme["settings"])
        self.record.update(pme_force_error=limit)
        self.bench.store()

        def search_fmm():
            known = self.bench.known_best.get(self.name)
            settings = [known] if known else [fmm_settings(c, self.system.box) for c in self.case.settings]
            choices = self.with_automatic(settings, limit, first, most)
            exact = [s for s in choices if (self.error(s) or 1) <= limit]
            if not exact:
                raise Failure(f"no setting of FMM has a force error of {limit:.2e} or less")
            return self.search("fmm", exact[:len(exact) if self.case.thorough else 4], first, most)
        fmm = self.found("fmm", search_fmm)
        self.set_result("fmm", fmm)
        self.record["fmm_force_error"] = self.error(fmm["settings"])
        if self.record["fmm_force_error"] > limit:
            raise Failure(f"the force error of FMM, {self.record['fmm_force_error']:.3e}, is above PME's, {limit:.3e}")
        self.bench.store()

        split = None
        if self.case.split:
            split = self.found("fmm_split", lambda: self.search("fmm", [{**fmm["settings"], **SPLIT}], fmm["nstlist"], fmm["threads"]))
            self.set_result("fmm_split", split)
            self.record["fmm_split_force_error"] = self.error(split["settings"])
            self.bench.store()

        if self.name not in self.bench.found:
            field = self.time("reaction_field", {"coulombtype": "Reaction-Field", "rcoulomb": self.system.mdp["rcoulomb"], "epsilon-rf": 0},
                              pme["nstlist"], pme["threads"])
            self.set_result("reaction_field", field)
        # The figures: runs in turns, so that a disturbance of the machine meets both.
        best_of = {"pme": pme, "fmm": fmm, **({"fmm_split": split} if split else {})}
        found = {method: [best] for method, best in best_of.items()}
        for repeat in range(1, 3 if self.case.thorough else 2):
            for method, best in best_of.items():
                found[method].append(self.time(best["method"], best["settings"], best["nstlist"], best["threads"], repeat, best["bonded"],
                                               best.get("graph", False)))
        for method, runs in found.items():
            speeds = [r["ns_per_day"] for r in runs if "ns_per_day" in r]
            self.record[method + "_ns_per_day"], self.record[method + "_ns_per_day_runs"] = statistics.median(speeds), speeds
        for method in list(best_of)[1:]:
            self.record[method + "_speed_over_pme_speed"] = self.record[method + "_ns_per_day"] / self.record["pme_ns_per_day"]
        if self.case.defaults:
            defaults = {"pme": {"coulombtype": "PME"}, "fmm": dict(FMM), **({"fmm_split": {**FMM, **SPLIT}} if split else {})}
            for name, settings in defaults.items():
                self.record[f"{name}_default_ns_per_day"] = self.time(name.split("_")[0], settings, None, most).get("ns_per_day")

    def set_result(self, method, best):
        self.record[method + "_ns_per_day"] = best.get("ns_per_day")
        self.record.setdefault("settings", {})[method] = {k: best[k] for k in ("settings", "nstlist", "threads", "bonded", "graph", "rlist", "command", "chosen")
                                                               if k in best}
        self.bench.store()

    def found(self, result, search):
        """What was best in the results of --best-of, or what this search finds."""
        best = self.bench.found.get(self.name, {}).get(result)
        if not best:
            return search()
        method = result.split("_")[0]
        return self.best(method, [self.time(method, best["settings"], best["nstlist"], best["threads"], bonded=best.get("bonded"), graph=graph)
                                  for graph in self.graphs()])

    def graphs(self):
        """Whether steps are launched as graphs, where they can be both."""
        return (False, True) if self.bench.common["gromacs"] != "2022.5" and not self.cpu and self.case.update == "gpu" else (False,)

    def search(self, method, candidates, nstlist, threads):
        """The fastest of these settings, and then of the lists and threads. The ladder of PME is left where it only leads down."""
        tried = []
        for settings in candidates:
            tried.append(self.time(method, settings, nstlist, threads))
            fastest = min((t["ms_per_step"] for t in tried if "ms_per_step" in t), default=math.inf)
            if method == "pme" and tried[-1].get("ms_per_step", 0) > 1.1 * fastest:
                break
        if method == "pme":  # once more: a disturbance of the machine is not to decide which is fastest
            tried += [self.time(method, t["settings"], nstlist, threads, repeat=10) for t in tried]
        best = self.best(method, tried)
        for other_list in self.bench.lists[1:]:
            tried.append(self.time(method, best["settings"], other_list, threads))
        best = self.best(method, tried)
        for other in self.bench.threads[:-1]:
            tried.append(self.time(method, best["settings"], best["nstlist"], other))
        best = self.best(method, tried)
        for other in self.case.bondeds[1:]:
            tried.append(self.time(method, best["settings"], best["nstlist"], best["threads"], bonded=other))
        best = self.best(method, tried)
        tried += [self.time(method, best["settings"], best["nstlist"], best["threads"], bonded=best["bonded"], graph=graph)
                  for graph in self.graphs()[1:]]
        return self.best(method, tried)

    def best(self, method, tried):
        good = [t for t in tried if "ns_per_day" in t]
        if not good:
            raise Failure(f"no setting of {method} ran: " + "; ".join(t.get("failed", "") for t in tried))
        return max(good, key=lambda t: t["ns_per_day"])

    def with_automatic(self, choices, accuracy, nstlist, threads):
        """These settings, and first the ones that FMM chooses by itself for this accuracy."""
        automatic = self.time("fmm", {**FMM, "fmm-accuracy": f"{accuracy:.2e}"}, nstlist, threads)
        own = chosen_settings(automatic.get("chosen", ""))
        return list({identity(c): c for c in ([own] if own else []) + choices}.values())

    # ------------------------------------------------------------------------------------------------------------- one timing

    def offload(self, method, bonded):
        if self.cpu:
            return ["-nb", "cpu"]
        return ["-nb", "gpu", *{"pme": ["-pme", "gpu", "-notunepme"], "fmm": ["-fmm", "gpu"], "reaction_field": []}[method],
                *(["-bonded", bonded] if bonded else []), *(["-update", "gpu"] if self.case.update == "gpu" else [])]

    def time(self, method, settings, nstlist, threads, repeat=0, bonded=None, graph=False):
        """One run, the second half of which is timed; found in the record if it was made before. nstlist None: mdrun chooses it and
        where its tasks run. graph: with GMX_CUDA_GRAPH, by which GROMACS 2026.3 launches whole steps as graphs."""
        bonded = bonded or (self.case.bondeds[0] if self.case.bondeds and nstlist else None)
        for known in self.record["tried"]:
            if (known["method"], identity(known["settings"]), known["nstlist"], known["threads"], known["repeat"], known.get("bonded"),
                    known.get("graph", False)) == (method, identity(settings), nstlist, threads, repeat, bonded, graph):
                return known
        self.check_time(self.longest)
        began = time.monotonic()
        entry = {"method": method, "settings": settings, "nstlist": nstlist, "threads": threads, "repeat": repeat, "bonded": bonded, "graph": graph}
        label = f"{method}-{len(self.record['tried'])}"
        try:
            tpr = self.tpr(method, settings)
            steps = self.bench.options.steps or math.ceil(1e3 * (self.bench.options.seconds or self.case.seconds) / self.ms_per_step(method, settings) / 400) * 400
            if not nstlist:
                steps *= 4 # PME is tuned in the first half
            command = ["mdrun", "-s", tpr + ".tpr", "-deffnm", "speed", "-ntmpi", "1", "-ntomp", str(threads), "-pin", "on",
                       *self.bench.pins(threads), *([*self.offload(method, bonded), "-nstlist", str(nstlist)] if nstlist else []), "-resethway", "-noconfout", "-maxh", "0.03"]

            def run(length):
                whole = [*command, "-nsteps", str(length)]
                entry["command"] = "GMX_CUDA_GRAPH=1 " * graph + "gmx " + " ".join(whole)
                self.gmx(*whole, folder=self.folder, env={"GMX_CUDA_GRAPH": "1"} if graph else None)
            steps = mdrun_systems.when_tuned(run, steps)
            log = read_log(self.folder, "speed")
            info = run_info(self.folder, "speed", float(self.system.mdp["dt"]))
            entry.update(ns_per_day=info["ns_per_day"], ms_per_step=info["ms_per_step"], steps_timed=steps // 2, rlist=list_radius(log))
            for shares in ("cycles", "fmm_stages"):
                if info[shares]:
                    entry[shares] = {name: round(share, 3) for name, share in info[shares].items()}
            if method == "fmm":
                entry["chosen"] = fmm_parameters(log)
                if not self.cpu and not fmm_on(log, "GPU"):
                    raise Failure("md.log does not say that the FMM ran on the GPU")
            self.bench.keep_log(f"{self.name}-{label}", log)
        except Failure as failure:
            entry["failed"] = " ".join(str(failure).split())[-600:]
        self.record["tried"].append(entry)
        self.bench.store()
        self.longest = max(self.longest, time.monotonic() - began)
        speed = f"{entry['ns_per_day']:9.2f} ns/day" if "failed" not in entry else "FAILED " + entry["failed"]
        shown = ", ".join(f"{k} {v}" for k, v in settings.items() if k not in ("coulombtype", "pme-order", "ewald-rtol"))
        self.say(f"{method + ' graph' * graph:14} nstlist {nstlist} threads {threads:2} {speed}  {shown}  ({time.monotonic() - began:.0f} s)")
        return entry

    def ms_per_step(self, method, settings):
        """What the last run of the same settings or method took, or else the estimate."""
        known = [t for t in self.record["tried"] if t["method"] == method and "ms_per_step" in t]
        same = [t for t in known if t["settings"] == settings]
        if same or known:
            return (same or known)[-1]["ms_per_step"]
        return max(0.06, self.case.estimate * self.system.atoms)

    def tpr(self, method, settings):
        key = identity(settings)
        if key not in self.made:
            name = f"{method}-{len(self.made)}"
            frames, at = self.system.frame
            self.gmx.grompp(self.folder, {**self.system.mdp, **settings}, self.system, "-t", frames, "-time", f"{at:g}", name=name)
            self.made[key] = name
        return self.made[key]

    # ----------------------------------------------------------------------------------------------------------- force errors

    def error_frame(self):
        """Reference forces of one frame, of this system or of the smaller one."""
        self.errors = {e["of"]: e["force_error"] for e in self.record["errors"]}
        self.exact = None
        if self.case.small:
            self.record["force_errors_of"] = "a smaller system of the same kind"

    def reference(self):
        if self.exact is None:
            self.check_time(0 if self.cpu else 60)
            self.error_folder, self.error_system = self.folder, self.system
            if self.case.small:
                self.error_folder = os.path.join(self.folder, "errors")
                self.error_system = self.build(self.case.small, self.error_folder)
                self.record["force_errors_of"] = self.error_system.name
            self.exact = self.point(TIGHT_MIXED, "tight", nb="cpu")
            self.nothing = self.point(NO_COULOMB, "none", nb="cpu")
        return self.exact, self.nothing

    def point(self, settings, name, nb):
        frames, at = self.error_system.frame
        return single_points(self.gmx, self.error_folder, self.error_system, settings, frames, [at], name, nb=nb)

    def error(self, settings):
        """Relative RMS force error of these settings, None if they fail."""
        key = identity(settings)
        if key not in self.errors:
            exact, nothing = self.reference()
            self.check_time(5)
            small = on_smaller(settings, self.system.box, self.error_system.box) if self.case.small else settings
            entry = {"of": key, "force_error": None}
            if small != settings:
                entry["measured_with"] = small
            try:
                entry["force_error"] = force_error(self.point(small, "error", "cpu" if self.cpu else "gpu"), exact, nothing)
            except Failure as failure:
                entry["failed"] = " ".join(str(failure).split())[-600:]
            self.record["errors"].append(entry)
            self.errors[key] = entry["force_error"]
            self.bench.store()
            self.say(f"force error {entry['force_error'] or math.nan:.3e}  " +
                     ", ".join(f"{k} {v}" for k, v in small.items() if k not in ("coulombtype", "pme-order", "ewald-rtol")) + entry.get("failed", ""))
        return self.errors[key]

    def check_time(self, needed):
        if time.monotonic() + needed > self.bench.end:
            raise OutOfTime

    def say(self, text):
        print(f"{self.name}: {text}", flush=True)


def list_radius(log):
    """What md.log says of the radius of the (outer) pair list, nm, and of how often it is made; None if it says nothing."""
    outer = re.search(r"^ *outer list: updated every +(\d+) steps?, buffer +\S+ nm, rlist +(\S+) nm", log, re.M)
    single = re.search(r"^ *updated every +(\d+) steps?, buffer +\S+ nm, rlist +(\S+) nm", log, re.M)
    by_time = re.search(r"FMM: changing\s+nstlist\s+from\s+\d+\s+to\s+(\d+),\s+rlist\s+from\s+\S+\s+to\s+(\S+)\s+nm", log)
    found = by_time or outer or single
    return {"nstlist": int(found.group(1)), "rlist_nm": float(found.group(2))} if found else None


def gpu():
    found = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    if found.returncode != 0:
        raise Failure("nvidia-smi finds no GPU")
    name, driver = found.stdout.splitlines()[0].split(", ")
    return {"device": name, "driver": driver}


def merged(old, new):
    """Records of both, by system; the new one's where both have it, unless it is incomplete and the old one is not."""
    result = {r["name"]: r for r in old}
    for record in new:
        known = result.get(record["name"])
        if not known or record["complete"] or not known["complete"]:
            result[record["name"]] = record
    order = list(CASES)
    return sorted(result.values(), key=lambda r: order.index(r["name"]) if r["name"] in order else len(order))


def table(records):
    print(f"\n{'system':12}{'atoms':>9}{'PME':>10}{'FMM':>10}{'RF':>10}  ns/day{'FMM/PME':>9}{'error PME':>11}{'FMM':>9}  settings")
    for r in records:
        def number(key, form):
            return format(r[key], form) if r.get(key) is not None else "-"
        best = r.get("settings", {})
        shown = "; ".join(m + " " + " ".join(f"{v}" for k, v in best[m]["settings"].items() if k not in ("coulombtype", "pme-order", "ewald-rtol"))
                          + f" list {best[m]['nstlist']} threads {best[m]['threads']}" for m in ("pme", "fmm") if m in best)
        print(f"{r['name']:12}{r.get('atoms', 0):9}{number('pme_ns_per_day', '10.2f'):>10}{number('fmm_ns_per_day', '10.2f'):>10}"
              f"{number('reaction_field_ns_per_day', '10.2f'):>10}        {number('fmm_speed_over_pme_speed', '9.3f'):>9}"
              f"{number('pme_force_error', '11.2e'):>11}{number('fmm_force_error', '9.1e'):>9}  {shown}{'' if r['complete'] else '  INCOMPLETE'}")


def main():
    parser = argparse.ArgumentParser(description="Systems: " + ", ".join(CASES))
    parser.add_argument("gmx")
    parser.add_argument("output", help=".json")
    parser.add_argument("systems", nargs="*", choices=[*CASES, []], metavar="SYSTEM")
    parser.add_argument("--earlier", help="results of earlier runs, which are kept or continued")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which nothing more is begun")
    parser.add_argument("--work", default="/tmp/gmxfmm-mdrun", help="folder for the runs")
    parser.add_argument("--threads", default="8,16", help="numbers of OpenMP threads to try")
    parser.add_argument("--nstlist", default="100,200", help="list update intervals to try")
    parser.add_argument("--fmm-settings-of", metavar="RESULTS", help="of FMM try only what is best in these results, and what it chooses by itself")
    parser.add_argument("--best-of", metavar="RESULTS", help="what was best in these results, in turns, without a search, and with their force errors")
    parser.add_argument("--steps", type=int, default=0, help="steps of a timing (default: some seconds)")
    parser.add_argument("--seconds", type=float, default=0, help="of a timing (default: those of the system, three or four)")
    parser.add_argument("--equilibration", type=int, default=1000, help="steps of 2 fs before the measurements")
    parser.add_argument("--pin-offset", type=int, help="the first of this program's cores, where others run beside it (mdrun's -pinoffset)")
    parser.add_argument("--cpu", action="store_true", help="all on the CPU: to try this program where there is no GPU")
    options = parser.parse_args()
    bench = Bench(options)
    good = [bench.measure(name) for name in options.systems or CASES]
    table(bench.records)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"error: {failure}")
