#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Time of a step and of a whole call on one thread, on all and on as many as the library chooses, on a machine that is idle or busy.

  busy.py [--build FOLDER] [--busy N[,...]] [--spins default|N[,...]] [--cases METHOD:ACCURACY[,...]] [--particles N[,...]] [--seconds S] [--wait S] [--store]

Beside it run N processes that only count (without any: when the machine is quiet), and threads that wait spin as often as GOMP_SPINCOUNT says: as OpenMP does by itself (default),
3000 times as in the program and in Python, or not at all (0, OMP_WAIT_POLICY=passive). The three take turns. What other programs took of
the processors meanwhile is stored as `others`, in cores; of up to --tries runs on an idle machine the one is kept with the least.
--store: -> busy.json
FOLDER: a build with -DGMXFMM_BENCHMARKS=ON (default: build/library).
"""
import argparse
import itertools
import os
import resource
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import library as results  # noqa: E402

QUIET = 0.1  # cores that others may take of a run that is not repeated


def processor_seconds():
    """All processors' seconds that were not idle, and those of this program's children that have ended."""
    with open("/proc/stat") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK"), used.ru_utime + used.ru_stime


def wait_for_quiet(seconds):
    """Until other programs leave the processors alone, or so many seconds have gone by."""
    end, before = time.monotonic() + seconds, processor_seconds()[0]
    while time.monotonic() < end:
        time.sleep(0.2)
        now = processor_seconds()[0]
        if now - before < 0.2 * QUIET:
            return
        before = now


def measured(options, case, particles, busy):
    """A run beside `busy` processes, and how many cores others took."""
    method, accuracy = case.split(":")
    before, begin = processor_seconds(), time.monotonic()
    counting = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        row, = results.run(options.build, "busy", method, accuracy, options.seconds, particles)
    finally:
        for process in counting:
            process.kill()
            process.wait()
    after, seconds = processor_seconds(), time.monotonic() - begin
    row["others"] = round(max(0, after[0] - before[0] - (after[1] - before[1])) / seconds, 2)
    return row


def rows(options):
    for busy, spins, case, particles in itertools.product(options.busy, options.spins, options.cases, options.particles):
        os.environ.pop("GOMP_SPINCOUNT", None)
        if spins != "default":
            os.environ["GOMP_SPINCOUNT"] = spins
        best = None
        for _ in range(1 if busy else options.tries):
            if not busy:
                wait_for_quiet(options.wait)
            row = measured(options, case, particles, busy)
            best = row if best is None or row["others"] < best["others"] else best
            if best["others"] <= QUIET:
                break
        yield {"busy": busy, "spins": spins, **best}


def shown(row):
    one = row["one_median_us"]
    return (f"busy {row['busy']} spins {row['spins']:>7} {row['method']:8} {row['accuracy']:.0e} {row['particles']:6}: one {one:9.1f} us; over it: "
            f"all {row['all_median_us'] / one:6.2f} (mean {row['all_mean_us'] / row['one_mean_us']:6.2f}), auto, {row['auto']}, "
            f"{row['auto_median_us'] / one:6.2f} ({row['auto_mean_us'] / row['one_mean_us']:6.2f}); a call: all "
            f"{row['all_call_median_us'] / row['one_call_median_us']:6.2f}, auto {row['auto_call_median_us'] / row['one_call_median_us']:6.2f}; "
            f"others {row['others']}")


def main():
    words = lambda text: text.split(",")  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(os.environ.get("GMXFMM_BUILD_DIR") or os.path.join(results.ROOT, "build"), "library"))
    parser.add_argument("--busy", type=lambda text: [int(word) for word in text.split(",")], default=[0, 2, 4])
    parser.add_argument("--spins", type=words, default=["default", "3000", "0"])
    parser.add_argument("--cases", type=words, default=["fmm:1e-3", "fmm:1e-6", "treecode:1e-3", "treecode:1e-6"])
    parser.add_argument("--particles", type=words, default=["100", "300", "1000", "3000", "10000", "30000"])
    parser.add_argument("--seconds", type=float, default=0.15, help="for steps, and for calls")
    parser.add_argument("--tries", type=int, default=4)
    parser.add_argument("--wait", type=float, default=5, help="seconds that a run on an idle machine waits for it to be so")
    parser.add_argument("--store", action="store_true", help="write benchmarks/results/<device>/busy.json")
    parser.add_argument("--note", help="what else the machine did")
    options = parser.parse_args()
    kept = []
    for row in rows(options):
        kept.append(row)
        print(shown(row), flush=True)
    if options.store:
        head = results.header(options, "busy", os.cpu_count())
        head["command"] = "benchmarks/busy.py " + " ".join(f"'{word}'" if " " in word else word for word in sys.argv[1:])
        results.store(options, "busy.json", head, rows=kept)


if __name__ == "__main__":
    main()
