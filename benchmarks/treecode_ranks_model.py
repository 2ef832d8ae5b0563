#!/usr/bin/env python3
"""A model of the treecode on 1 to 1,024 GPUs, from what was measured on one and two and from what ranks send each other.

  treecode_ranks_model.py --count [--build FOLDER] [--ranks 1,2,4] [--points 5.6e6]   runs benchmark-treecode_ranks on this CPU, without sums
  treecode_ranks_model.py                                                the model alone, of what is stored

Strong scaling of 64 million charges in a cube, Coulomb, double precision, theta 0.8, degree 8, leaves of 4,000 (Vaughn, Wilson & Krasny
2020, section 4.2). Counted are 5.6 million charges with degree 3 and leaves of 350 on ranks that are threads: as many leaves, and as many
points for a leaf's charges within 1 %, so that trees and lists are the same. Of these come evaluations of the kernel, messages, and what
lists name: clusters, each with 729 modified charges and a box, and particles, of which there are 4,000 for 350. In
results/nvidia-h200/treecode-ranks.json stand seconds of the stages on one H200 and on two of one host.

Assumed, all of it in the record:
- sums take as long an evaluation on each GPU as on one; nothing of the exchange is hidden behind them
- stages of the host and the tree cost as much a particle as on two ranks; bisection, as much a level; lists grow with the trees that each
  batch meets, one test a rank beside as many as one rank's batches have clusters
- ranks on hosts of their own, with a port of NDR InfiniBand each: 400 Gb/s (NVIDIA, ConnectX-7 user manual); latency 2 us a step of a
  collective call, 1 us a message, as published for MPI on slower networks (osu_latency: 1.26 us, QLogic, InfiniPath manual IB6054601-00;
  NetPIPE: 1.93 us, Cisco 2014, MPI over 40Gb Ethernet). A second row has a tenth of that: 40 Gb/s, 20 us, 10 us
- all particles travel, 32 bytes there at an assignment and at a step, and 8 back; of a tree 72 bytes a cluster go to all
-> results/nvidia-h200/treecode-ranks-model.json
"""
import argparse
import datetime
import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import library  # noqa: E402

FOLDER = os.path.join(HERE, "results", "nvidia-h200")
OUT = os.path.join(FOLDER, "treecode-ranks-model.json")
POINTS, LEAF, MODIFIED = 64e6, 4000, 9 ** 3
COUNT_LEAF, COUNT_MODIFIED, COUNT_SETTING = 350, 4 ** 3, "0.8,3,350"
NUMBER, BOX, PARTICLE, RESULT, CLUSTER = 8, 48, 32, 8, 72  # bytes
NETWORKS = [{"gigabit_per_s": 400, "latency_us": 2, "message_us": 1}, {"gigabit_per_s": 40, "latency_us": 20, "message_us": 10}]


def count(options):
    """What ranks send each other, one row a number of ranks, as it is counted on this CPU."""
    rows = []
    for row in library.stream(options.build, "treecode_ranks", "--count", "--assign", "--ranks", options.ranks, "--points", options.points, "--threads", 1,
                              "--calls", 1, COUNT_SETTING):
        ranks = row["of_ranks"]
        rows.append({"ranks": row["ranks"], "particles": row["particles"], "clusters": row["clusters"], "pairs_per_target": row["pairs_per_target"],
                     **{key: sum(r[key] for r in ranks) / len(ranks) for key in
                        ("imported", "bytes_sent", "gathers", "gathered_bytes", "exchanges", "parcels", "parcel_bytes")}})
    return {"device": library.device(1), "date": datetime.date.today().isoformat(), "commit": library.commit(), "setting": COUNT_SETTING,
            "command": f"benchmarks/treecode_ranks_model.py --count --ranks {options.ranks} --points {options.points:g}", "rows": rows}


def essential_bytes(row):
    """What lists name of other ranks, a rank, with the large system's leaves and degree."""
    clusters = (row["bytes_sent"] - PARTICLE * row["imported"]) / (NUMBER * COUNT_MODIFIED + BOX)
    return clusters * (NUMBER * MODIFIED + BOX) + PARTICLE * row["imported"] * LEAF / COUNT_LEAF


def seconds(row, one, measured, network):
    """Seconds of the stages of a rank. row: counts; one: those of one rank; measured: rows of one and two ranks."""
    ranks, alone, two = row["ranks"], measured[1], measured[2]
    slowest = {key: max(r[key] for r in two["of_ranks"]) for key in two["of_ranks"][0]}
    own, levels = POINTS / ranks, math.log2(ranks)
    share = own / (POINTS / 2)
    pairs = row["pairs_per_target"] / one["pairs_per_target"]
    clusters_met = one["pairs_per_target"] / COUNT_MODIFIED
    other = slowest["assign_s"] - slowest["bisection_s"] - slowest["lists_s"] + slowest["charges_s"] + slowest["output_s"]
    travel = own * (1 - 1 / ranks) * (2 * PARTICLE + RESULT)
    trees = CLUSTER * row["clusters"] * (1 - 1 / ranks)
    calls = row["exchanges"] + 2 * levels + 4 + (row["gathers"] + 3) * levels  # a step: see fmm/treecode/ranks/backend.c
    messages = row["parcels"] + 3 * (ranks - 1)
    gathered = row["gathered_bytes"] * ranks
    per_byte = 8 / (network["gigabit_per_s"] * 1e9)
    of = {"sums_s": alone["of_ranks"][0]["sums_s"] * pairs / ranks, "bisection_s": slowest["bisection_s"] * share * levels,
          "lists_s": slowest["lists_s"] * share * (1 + (ranks - 1) / clusters_met), "particles_s": other * share,
          "network_latency_s": 1e-6 * (network["latency_us"] * calls + network["message_us"] * messages),
          "network_bytes_s": per_byte * (travel + trees + gathered + essential_bytes(row))}
    if network is not NETWORKS[0]:
        return {"seconds": sum(of.values())}
    return {"seconds": sum(of.values()), **of, "travel_bytes": travel, "trees_bytes": trees, "essential_bytes": essential_bytes(row)}


def model(counts):
    with open(os.path.join(FOLDER, "treecode-ranks.json")) as f:
        stored = json.load(f)
    rows = stored if isinstance(stored, list) else stored["rows"]
    measured = {r["ranks"]: r for r in rows if r["particles"] == POINTS and r["kernel"] == "coulomb" and r["traversal"] == "particle" and
                r["precision"] == "double" and (r["theta"], r["degree"], r["leaf"]) == (0.8, 8, LEAF)}
    one, table = next(r for r in counts["rows"] if r["ranks"] == 1), []
    for row in counts["rows"]:
        ranks = row["ranks"]
        entry = {"ranks": ranks, "pairs_over_one": round(row["pairs_per_target"] / one["pairs_per_target"], 4)}
        if ranks == 1:
            entry.update(seconds=measured[1]["seconds"], efficiency=1.0)
        else:
            of = seconds(row, one, measured, NETWORKS[0])
            entry.update({key: float(f"{value:.4g}") for key, value in of.items()})
            entry["efficiency"] = round(measured[1]["seconds"] / ranks / of["seconds"], 3)
            entry["efficiency_slow_network"] = round(measured[1]["seconds"] / ranks / seconds(row, one, measured, NETWORKS[1])["seconds"], 3)
        if ranks in measured:
            entry["measured_seconds"] = measured[ranks]["seconds"]
            if ranks > 1:
                of_ranks = measured[ranks]["of_ranks"]
                entry["measured_essential_bytes"] = sum(r["bytes_received"] for r in of_ranks) / len(of_ranks)
        table.append(entry)
    return {"measured": [{key: r[key] for key in ("ranks", "device", "date", "commit", "command")} for r in measured.values()], "networks": NETWORKS,
            "rows": table}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--build", default=os.path.join(library.ROOT, "build", "library"))
    parser.add_argument("--ranks", default="1,2,4,8,16,32,64,128,256,512,1024")
    parser.add_argument("--points", type=float, default=POINTS / LEAF * COUNT_LEAF)
    options = parser.parse_args()
    if options.count:
        counts = count(options)
    else:
        with open(OUT) as f:
            counts = json.load(f)["counts"]
    record = {"benchmark": "treecode-ranks-model", "system": "64 million charges in a cube, Coulomb, double, theta 0.8, degree 8, leaves of 4000",
              "counts": counts, **model(counts)}
    with open(OUT, "w") as out:
        json.dump(record, out, indent=1)
        out.write("\n")
    for row in record["rows"]:
        print(f"{row['ranks']:5} ranks: {row['seconds']:.4g} s, efficiency {row['efficiency']:.3f}, evaluations over one rank's {row['pairs_over_one']:.3f}")
    print("written:", os.path.relpath(OUT))


if __name__ == "__main__":
    main()
