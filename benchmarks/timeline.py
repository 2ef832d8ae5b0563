#!/usr/bin/env python3
"""What a step of mdrun is on a GPU: when each kernel runs, with PME, FMM and FMM with Lennard-Jones of groups (fmm-lj = split).

timeline.py GMX LIBRARY OUTPUT [SYSTEM]...   (LIBRARY: timeline.c, compiled; systems as those of mdrun_gpu.py)

A step begins after one kernel of the leap-frog integrator ends, and ends with the next. Of steps that consist of the same kernels and
copies, those of the most frequent kind are averaged: start and length of each in microseconds, by stream. Settings are the defaults,
the pair list is made every 100 steps, and everything that can be is on the GPU. OUTPUT is a JSON file, whose other entries stay.
"""
import collections
import datetime
import json
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mdrun_systems  # noqa: E402
from harness import FMM, Gmx, changed, stored, version  # noqa: E402
from kernel_times import records  # noqa: E402
from mdrun_gpu import CASES, SPLIT, gpu  # noqa: E402


def steps(rows):
    """Lists of records of a step, relative to the end of the step before."""
    found, current, begin = [], [], None
    for start, end, _, stream, name in rows:
        current.append((start, end, stream, name))
        if name.lower().startswith("leapfrog"):
            if begin is not None:
                found.append((end - begin, [(s - begin, e - begin, q, n) for s, e, q, n in current]))
            begin, current = end, []
    return found


def kind(step):
    return tuple(sorted(collections.Counter((q, n) for _, _, q, n in step[1]).items()))


def typical(found):
    """Lengths of all steps; of the most frequent kind its share, length and (start, length, stream, name); a step with energies."""
    kinds = collections.Counter(kind(s) for s in found)
    chosen = [s for s in found if kind(s) == kinds.most_common(1)[0][0]]
    places = collections.defaultdict(list)
    for _, step in chosen:
        seen = collections.Counter()
        for s, e, q, n in step:
            places[q, n, seen[q, n]].append((s, e - s))
            seen[q, n] += 1
    rows = [(statistics.median(s for s, _ in v) / 1000, statistics.median(d for _, d in v) / 1000, q, n) for (q, n, _), v in places.items()]
    return {"step, median": statistics.median(s[0] for s in found) / 1000, "step, mean": statistics.mean(s[0] for s in found) / 1000,
            "lengths of 40 steps": [round(s[0] / 1000, 1) for s in found[-41:-1]],
            "a step with energies or virial and the next": with_energies(found),
            "share of this kind": len(chosen) / len(found), "step of this kind, median": statistics.median(s[0] for s in chosen) / 1000,
            "start, length, stream, name": sorted(rows)}


def with_energies(found):
    """The records of the last such step, as its pair kernel tells, but one with a pair search, and of that after it."""
    for first, second in zip(found[-2::-1], found[:0:-1]):
        if any("_VF_" in n for _, _, _, n in first[1]) and not any("VF" in n for _, _, _, n in second[1]):
            return [[(round(s / 1000, 1), round((e - s) / 1000, 1), q, n) for s, e, q, n in step[1]] for step in (first, second)]
    return []


def show(name, result):
    print(f"{name}: median {result['step, median']:.1f} us, mean {result['step, mean']:.1f}; {100 * result['share of this kind']:.0f} % "
          f"of one kind, {result['step of this kind, median']:.1f} us:")
    for rows in (result["start, length, stream, name"], *result["a step with energies or virial and the next"]):
        for start, length, stream, kernel in rows:
            print(f"{start:8.1f} {length:7.1f}  {stream:4d}  {kernel[:100]}")
        print()
    print("steps one after another:", *result["lengths of 40 steps"])


def measured(gmx, library, folder, name):
    """(name of the method, averages) of a system."""
    case = CASES[name]
    system = case.make(gmx, folder)
    mdrun_systems.equilibrated(gmx, folder, system, 1000, ["-nb", "gpu", "-pme", "gpu", "-ntomp", str(os.cpu_count())])
    frames, at = system.frame
    for method, settings in (("PME", {}), ("FMM", FMM), *([("FMM, split", {**FMM, **SPLIT})] if case.split else [])):
        gmx.grompp(folder, changed({**system.mdp, **settings}, gen_vel="no", continuation="yes"), system, "-t", frames, "-time", f"{at:g}", name="timeline")
        env = {"CUDA_INJECTION64_PATH": os.path.abspath(library), "GMXFMM_TIMELINE": os.path.join(folder, "records.txt")}
        gmx("mdrun", "-s", "timeline.tpr", "-deffnm", "timeline", "-ntmpi", "1", "-ntomp", str(os.cpu_count()), "-pin", "on", "-nb", "gpu",
            *(["-pme", "gpu", "-notunepme"] if method == "PME" else ["-fmm", "gpu"]), *(["-bonded", "gpu"] if case.bondeds else []),
            *(["-update", "gpu"] if case.update == "gpu" else []), "-nstlist", "100", "-nsteps", "3000", "-noconfout", folder=folder, env=env)
        found = steps(records(os.path.join(folder, "records.txt")))
        yield method, typical(found[len(found) // 2:]) # what is measured at the start is over then


def main():
    gmx, (library, output), names = Gmx(os.path.abspath(sys.argv[1])), sys.argv[2:4], sys.argv[4:] or ["tip3p", "protein", "amber", "water2", "water3"]
    common = {**gpu(), "gromacs": version(gmx), "date": datetime.date.today().isoformat(), "commit": os.environ.get("GMXFMM_BENCHMARK_COMMIT", ""),
              "command": os.environ.get("GMXFMM_BENCHMARK_COMMAND", " ".join(sys.argv)), "unit": "us"}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            for method, result in measured(gmx, library, folder, name):
                show(f"{name}, {method}", result)
                entries = stored(output, {})
                entries.setdefault(name, {})[method] = {**common, **result}
                with open(output, "w") as file:
                    json.dump(entries, file, indent=1)


if __name__ == "__main__":
    main()
