#!/usr/bin/env python3
"""Speed of mdrun with FMM and with PME on one GPU and on several of the machine, each at its best settings.

mdrun_gpus.py GMX OUTPUT [SYSTEM]...   (as scripts/run-mdrun-bundle.sh calls it; systems: those of mdrun_gpu.py; default: water12 water5)

For each system, made and equilibrated here, and for 1, 2, 4 and 8 GPUs as far as there are that many:
1. Settings are what was best on one GPU (--best-of, results of mdrun_gpu.py, which has their force errors, too).
2. FMM, one rank, -fmmgpus: larger cells as long as that is faster, where it is not smaller ones. With the same order larger ones are no
  less exact.
3. PME: layouts of ranks on the GPUs, one of which has PME (without cuFFTMp no more can), GPUs communicating directly; with the best,
   another list, and a longer cut-off with a coarser grid, which moves work from the GPU of PME to the others.
4. The best of both on each number in turns, three runs in all: these are the figures. Then the force errors that are not known.
OUTPUT has a record for each system and number, with the fields of mdrun.json, `gpus`, their names, and in `missing` what was not
measured, for want of time or because it failed. It is written after each run; records of other systems that it has are kept.
"""
import argparse
import concurrent.futures
import json
import math
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mdrun_systems import Missing  # noqa: E402, which finds harness
from harness import CORES, FMM, Failure, fmm_on, fmm_parameters, gpus, read_log, run_info  # noqa: E402
from mdrun_gpu import CASES, Bench, OutOfTime, Run, identity, list_radius  # noqa: E402

TURNS = 3
SHARES_TRIED = 20  # pair searches, at most, until mdrun keeps shares of the near field
OWN_LENGTHS = sorted({a * b for a in range(1, 11) for b in range(1, 11)})  # of the library's own transforms, which several GPUs can share
LARGER = 0.93  # cells along an edge, over those tried before, at most
WEIGHTS = (1.0, 1.1, 1.2)  # factors on rcoulomb and fourierspacing


def layouts(number):
    """GPUs of PP ranks and that of the PME rank, as words of -gputasks; one GPU: one rank."""
    if number == 1:
        return [("0", "")]
    ids = "".join(map(str, range(number)))
    last = ids[-1]
    twice = "".join(2 * i for i in ids[:-1])
    return [(ids[:-1], last), (ids, last), (twice + last, last)] + ([(twice, last)] if number > 2 else [])


def scaled(settings, factor):
    return {**settings, **{key: f"{float(settings[key]) * factor:.4g}" for key in ("rcoulomb", "fourierspacing")}}


def smaller_cells(settings):
    """These settings of FMM with the next smaller cells; an octree's stay."""
    if settings.get("fmm-m2l") != "fft":
        return settings
    return {**settings, "fmm-grid": " ".join(str(min(n for n in OWN_LENGTHS if n > int(old))) for old in settings["fmm-grid"].split())}


def larger_cells(settings):
    """These settings of FMM and others with ever larger cells; of an octree these alone."""
    result = [settings]
    if settings.get("fmm-m2l") != "fft":
        return result
    grid = [int(n) for n in settings["fmm-grid"].split()]
    for _ in range(4):
        grid = [max(n for n in OWN_LENGTHS if n <= LARGER * old) for old in grid]
        result.append({**settings, "fmm-grid": " ".join(map(str, grid))})
    return result


class System(Run):
    """The measurements of one system, in a record for each number of GPUs."""

    def __init__(self, bench, name):
        self.records = {r["gpus"]: r for r in bench.records if r["name"] == name}
        super().__init__(bench, name, CASES[name], self.records[1])
        for record in self.records.values():  # errors do not depend on the number
            record["errors"] = self.record["errors"]
        self.best_on = {}  # (method, number of GPUs) -> entry
        known = bench.found.get(name, {})
        self.settings = {"pme": known.get("pme", {}).get("settings") or {
            "coulombtype": "PME", "rcoulomb": "1", "fourierspacing": "0.12", "pme-order": 4, "ewald-rtol": "1e-5"},
            "fmm": known.get("fmm", {}).get("settings") or {**FMM, "fmm-accuracy": "3.8e-4"}}
        self.nstlist = {method: known.get(method, {}).get("nstlist") or 200 for method in self.settings}

    def all(self):
        began = time.monotonic()
        self.system = self.build(self.case.make, self.folder)
        for record in self.records.values():
            record.update(system=self.system.name, atoms=self.system.atoms, box_nm=self.system.box)
        self.cells = larger_cells(self.settings["fmm"]) if "fmm-grid" in self.settings["fmm"] else [self.settings["fmm"]]
        self.make_inputs([("pme", scaled(self.settings["pme"], w)) for w in WEIGHTS] + [("fmm", s) for s in self.cells[:4]])
        self.say(f"{self.system.name}: made, equilibrated and preprocessed in {time.monotonic() - began:.0f} s")
        numbers = list(self.records)
        cells = 0
        for number in numbers:
            cells = self.search_fmm(number, cells)
            if not self.bench.options.fmm_alone:
                self.search_pme(number)
        for repeat in range(1, TURNS):
            for number in numbers:
                for method in ("pme", "fmm"):
                    best = self.best_on.get((method, number))
                    if best:
                        self.run(number, method, best["settings"], best["nstlist"], best["tasks"], repeat, best["update"])
        self.measure_errors()

    def make_inputs(self, wanted):
        """All .tpr files at once: grompp has one thread, and takes long for a million atoms."""
        frames, at = self.system.frame
        for method, settings in wanted:
            self.made.setdefault(identity(settings), f"{method}-{len(self.made)}")
        settings_of = {identity(settings): settings for _, settings in wanted}

        def make(key):
            self.gmx.grompp(self.folder, {**self.system.mdp, **settings_of[key]}, self.system, "-t", frames, "-time", f"{at:g}", name=self.made[key])
        with concurrent.futures.ThreadPoolExecutor(max(1, min(8, CORES))) as pool:
            list(pool.map(make, settings_of))

    def search_pme(self, number):
        first, nstlist = self.settings["pme"], self.nstlist["pme"]
        for update in ("gpu", "cpu"):  # the latter where no layout can have it on the GPU
            for tasks in layouts(number):
                self.run(number, "pme", first, nstlist, tasks, update=update)
            best = self.best_on.get(("pme", number))
            if best:
                break
        if number == 1 or not best:
            return
        self.run(number, "pme", first, 100 if nstlist == 200 else 200, best["tasks"], update=update)
        for weight in WEIGHTS[1:]:
            best = self.best_on["pme", number]
            if self.run(number, "pme", scaled(first, weight), best["nstlist"], best["tasks"], update=update) is not self.best_on["pme", number]:
                break

    def search_fmm(self, number, first):
        """Where in the list of cells the best are."""
        best = first
        for at in range(first, len(self.cells) if number > 1 else first + 1):
            if self.run(number, "fmm", self.cells[at], self.nstlist["fmm"], ("0", "")) is not self.best_on.get(("fmm", number)):
                break
            best = at
        if number > 1 and best == 0:
            self.run(number, "fmm", smaller_cells(self.cells[0]), self.nstlist["fmm"], ("0", ""))
        return best

    def ranks(self, number, method, tasks):
        """Options of mdrun, and threads of a rank."""
        if method == "fmm":
            return ["-ntmpi", "1", "-fmm", "gpu", "-fmmgpus", str(number)], min(16, CORES)
        if number == 1:
            return ["-ntmpi", "1", "-pme", "gpu", "-notunepme"], min(16, CORES)
        count = len(tasks[0]) + 1
        return ["-ntmpi", str(count), "-npme", "1", "-gputasks", tasks[0] + tasks[1], "-pme", "gpu", "-notunepme"], max(1, min(16, CORES // count))

    def run(self, number, method, settings, nstlist, tasks, repeat=0, update="gpu"):
        """One run, the second half of which is timed; the best of its method and number so far is in best_on."""
        self.check_time(self.longest)
        began = time.monotonic()
        record = self.records[number]
        options, threads = self.ranks(number, method, tasks)
        entry = {"method": method, "gpus": number, "settings": settings, "nstlist": nstlist, "threads": threads, "repeat": repeat, "bonded": None,
                 "tasks": tasks, "update": update}
        try:
            if identity(settings) not in self.made:
                self.make_inputs([(method, settings)])
            steps = math.ceil(1e3 * self.bench.options.seconds / self.ms(number, method) / 400) * 400
            if method == "fmm" and number > 1:  # shares are tried in the first half
                steps = max(steps, 2 * SHARES_TRIED * nstlist)
            steps = self.bench.options.steps or steps
            command = ["mdrun", "-s", self.made[identity(settings)] + ".tpr", "-deffnm", "speed", *options, "-ntomp", str(threads), "-pin", "on", "-nb",
                       "gpu", "-update", update, "-nstlist", str(nstlist), "-nsteps", str(steps), "-resethway", "-noconfout", "-maxh", "0.03"]
            environment = {} if method == "fmm" or number == 1 else {"GMX_ENABLE_DIRECT_GPU_COMM": "1"}  # of 2022; 2026 has it without being asked
            entry["command"] = " ".join([*(f"{k}={v}" for k, v in environment.items()), "gmx", *command])
            self.gmx(*command, folder=self.folder, env=environment)
            log = read_log(self.folder, "speed")
            info = run_info(self.folder, "speed", float(self.system.mdp["dt"]))
            entry.update(ns_per_day=info["ns_per_day"], ms_per_step=info["ms_per_step"], steps_timed=steps // 2, rlist=list_radius(log))
            for shares in ("cycles", "fmm_stages"):
                if info[shares]:
                    entry[shares] = {name: round(share, 3) for name, share in info[shares].items()}
            if method == "fmm":
                shared = re.search(r"precision on the (GPUs? ?(?:\(.*?\))?)", log)
                at_end = re.search(r"near field at the end: (.*?), as", log)
                entry.update(chosen=fmm_parameters(log), shares=shared.group(1).strip() if shared else "",
                             near_field_at_end=at_end.group(1) if at_end else "")
                if not fmm_on(log, "GPU"):
                    raise Failure("md.log does not say that the FMM ran on the GPU")
            self.bench.keep_log(f"{self.name}-{number}-{method}-{len(record['tried'])}", log)
        except Failure as failure:
            entry["failed"] = " ".join(str(failure).split())[-600:]
        record["tried"].append(entry)
        best = self.best_on.get((method, number))
        if not repeat and "failed" not in entry and (not best or entry["ns_per_day"] > best["ns_per_day"]):
            self.best_on[method, number] = entry
        self.summarise(number)
        self.bench.store()
        self.longest = max(self.longest, time.monotonic() - began)
        speed = f"{entry['ns_per_day']:9.2f} ns/day" if "failed" not in entry else "FAILED " + entry["failed"]
        shown = entry.get("chosen", "").split("expected")[0] + " " + entry.get("shares", "") + " " + entry.get("near_field_at_end", "") if method == "fmm" else f"rcoulomb {settings['rcoulomb']}"
        self.say(f"{number} GPUs {method} {'|'.join(tasks)} nstlist {nstlist} threads {threads:2} {speed}  {shown}  ({time.monotonic() - began:.0f} s)")
        return entry

    def ms(self, number, method):
        """ms of a step, as a run like this took, or as it may take on so many GPUs."""
        for entries, share in ((self.records[number]["tried"], 1), (self.records[1]["tried"], math.sqrt(number))):
            known = [t["ms_per_step"] for t in entries if t["method"] == method and "ms_per_step" in t]
            if known:
                return min(known) / share
        return max(0.06, self.case.estimate * self.system.atoms * (0.4 if method == "fmm" else 1))

    def summarise(self, number):
        """The figures of a number of GPUs, from its runs so far."""
        record, missing = self.records[number], []
        for method in ("pme", "fmm"):
            best = self.best_on.get((method, number))
            if not best:
                missing.append(method)
                continue
            speeds = [t["ns_per_day"] for t in record["tried"] if "ns_per_day" in t and t["repeat"] + (t is best) > 0 and t["method"] == method]
            record[method + "_ns_per_day"], record[method + "_ns_per_day_runs"] = statistics.median(speeds), speeds
            record.setdefault("settings", {})[method] = {k: best[k] for k in ("settings", "nstlist", "threads", "bonded", "tasks", "update", "rlist", "command", "chosen",
                                                                              "shares", "near_field_at_end") if k in best}
            one = self.records[1].get(method + "_ns_per_day")
            if one:
                record[method + "_speed_over_one"] = record[method + "_ns_per_day"] / one
            if len(speeds) < TURNS:
                missing.append(f"{method}: {TURNS - len(speeds)} of {TURNS} turns")
            error = self.errors.get(identity(best["settings"]))
            record[method + "_force_error"] = error
            if error is None:
                missing.append(f"{method}: force error")
        if "pme_ns_per_day" in record and "fmm_ns_per_day" in record:
            record["fmm_speed_over_pme_speed"] = record["fmm_ns_per_day"] / record["pme_ns_per_day"]
        pme, fmm = record.get("pme_force_error"), record.get("fmm_force_error")
        record["fmm_no_less_exact"] = fmm <= pme if pme and fmm else None
        record.update(missing=missing, complete=not missing)

    def measure_errors(self):
        """Those of the best settings that are not known yet."""
        try:
            for best in [self.best_on[method, n] for method in ("pme", "fmm") for n in self.records if (method, n) in self.best_on]:
                self.error(best["settings"])
        finally:
            for number in self.records:
                self.summarise(number)
            self.bench.store()


class Several(Bench):
    """All that one call measures."""

    def __init__(self, options, numbers):
        known, self.known = [], {}
        if os.path.exists(options.output):
            with open(options.output) as file:
                known = json.load(file)
        super().__init__(options)
        names = [line.split(", ")[0] for line in gpus()]
        if options.best_of:
            with open(options.best_of) as file:
                self.known = {r["name"]: r for r in json.load(file)}
        self.records = [r for r in known if r["name"] not in options.systems]
        for name in options.systems:
            for number in numbers:
                self.records.append({"name": name, "gpus": number, "gpu_names": names[:number], **self.common, "complete": False, "missing": ["pme", "fmm"],
                                     "settings_from": self.known.get(name, {}).get("commit"), "tried": [], "errors": []})
        self.store()

    def measure(self, name):
        try:
            run = System(self, name)
            run.record["errors"] += [{**e, "measured_at": self.known[name]["commit"]} for e in self.known.get(name, {}).get("errors", [])]
            run.error_frame()
            run.all()
        except OutOfTime:
            print(f"{name}: out of time", flush=True)
        except Missing as missing:
            print(f"{name}: skipped: {missing}", flush=True)
        except Failure as failure:
            print(f"FAILED {name}: {failure}", flush=True)
            for record in self.records:
                if record["name"] == name:
                    record["failed"] = str(failure)
        self.store()
        return all(r["complete"] and r["fmm_no_less_exact"] for r in self.records if r["name"] == name)


def table(records):
    print(f"\n{'system':10}{'GPUs':>5}{'PME':>10}{'over one':>10}{'FMM':>10}{'over one':>10}{'FMM/PME':>9}  missing")
    for r in records:
        def number(key, form):
            return format(r[key], form) if r.get(key) is not None else "-"
        print(f"{r['name']:10}{r['gpus']:5}{number('pme_ns_per_day', '.2f'):>10}{number('pme_speed_over_one', '.2f'):>10}"
              f"{number('fmm_ns_per_day', '.2f'):>10}{number('fmm_speed_over_one', '.2f'):>10}{number('fmm_speed_over_pme_speed', '.2f'):>9}"
              f"  {'; '.join(r['missing'])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gmx")
    parser.add_argument("output", help=".json")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help="systems of mdrun_gpu.py (default: water12 water5)")
    parser.add_argument("--best-of", metavar="RESULTS", help="results of mdrun_gpu.py, whose best settings and force errors are taken over")
    parser.add_argument("--seconds", type=float, default=2.5, help="of a run's steps (default %(default)s)")
    parser.add_argument("--steps", type=int, default=0, help="steps of a run, in place of seconds")
    parser.add_argument("--equilibration", type=int, default=400, help="steps of 2 fs before the measurements; positions are those of a liquid before, too")
    parser.add_argument("--fmm-alone", action="store_true", help="without PME, which is then missing")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which nothing more is begun")
    parser.add_argument("--work", default="/tmp/gmxfmm-gpus", help="folder for the runs")
    options = parser.parse_args()
    options.systems = options.systems or ["water12", "water5"]
    unknown = [name for name in options.systems if name not in CASES]
    if unknown:
        parser.error(f"no system {', '.join(unknown)}: there are {', '.join(CASES)}")
    if not options.best_of or not os.path.exists(options.best_of):
        options.best_of = None
    options.cpu, options.earlier, options.fmm_settings_of, options.pin_offset = False, None, None, None
    options.threads, options.nstlist = str(min(16, CORES)), "200"
    numbers = [n for n in (1, 2, 4, 8) if n <= len(gpus())]
    if len(numbers) < 2:
        sys.exit("mdrun_gpus.py: needs two GPUs or more")
    bench = Several(options, numbers)
    good = [bench.measure(name) for name in options.systems]
    table(bench.records)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"error: {failure}")
