#!/usr/bin/env python3
"""When the kernels of a step of the library run on each of several GPUs.

devices_trace.py PROGRAM SPC216.GRO LIBRARY OUTPUT SYSTEM:PARTS:FAR_SHARE...
(PROGRAM: devices_cuda.c, LIBRARY: timeline.c, both compiled; what the last words mean: devices_cuda.c)

Of the last steps, each one launch of a graph, the medians: start and length of each kernel in microseconds, and when the step ends.
OUTPUT is a list of records, written after each.
"""
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel_times import records  # noqa: E402

STEPS = 40


def steps(rows):
    """Lists of (start, end, device, stream, name) from one permute, with which a step begins, to the next, relative to its start."""
    found, begin = [], 0
    for row in rows:
        if row[4].startswith("permute"):
            begin = row[0]
            found.append([])
        if found:
            found[-1].append((row[0] - begin, row[1] - begin, *row[2:]))
    return found[:-1][-STEPS:]


def typical(found):
    """The medians over the steps of the kind that most of them are of."""
    def kind(step):
        return tuple(sorted((row[2], row[4]) for row in step))
    most = collections.Counter(map(kind, found)).most_common(1)[0][0]
    places = collections.defaultdict(list)
    for step in (s for s in found if kind(s) == most):
        seen = collections.Counter()
        for start, end, device, _, name in step:
            places[device, name, seen[device, name]].append((start, end))
            seen[device, name] += 1
    rows = sorted((round(statistics.median(s for s, _ in v) / 1e3, 1), round(statistics.median(e - s for s, e in v) / 1e3, 1), device, name)
                  for (device, name, _), v in places.items())
    return {"start, length, device, kernel": rows, "step_us": round(statistics.median(max(r[1] for r in s) for s in found) / 1e3, 1)}


def main():
    program, water, library, output = sys.argv[1:5]
    traces = []
    for word in sys.argv[5:]:
        system, parts, far_share = word.split(":")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "records.txt")
            environment = {**os.environ, "CUDA_INJECTION64_PATH": os.path.abspath(library), "GMXFMM_TIMELINE": path}
            subprocess.run([program, water, "trace", system, parts, far_share], env=environment, check=True)
            found = steps(records(path))
        if not found:
            sys.exit(f"{word}: no steps were recorded")
        traces.append({"system": system, "parts": int(parts), "given_far_share": float(far_share), "unit": "us", **typical(found)})
        print(f"{word}: {traces[-1]['step_us']} us")
        for start, length, device, name in traces[-1]["start, length, device, kernel"]:
            print(f"{start:9.1f} {length:8.1f}  {device}  {name[:90]}")
        with open(output, "w") as file:
            json.dump(traces, file)


if __name__ == "__main__":
    main()
