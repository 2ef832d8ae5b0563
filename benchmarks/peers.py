#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""This library beside torch-pme, nvalchemi-toolkit-ops, a direct sum, FMM3D and pytreegrav, at the error that each of them reaches: one
thread of a CPU, or a GPU with one thread of its host.

  peers.py [--device cpu|cuda] [--peers NAME,...] [--also training,batch,direct] [--ions N,...] [--charges N,...] [--accuracies A,...]
           [--precision double,single] [--rounds N] [--seconds S] [--note TEXT]

Needs the package gmxfmm. A peer that is not installed is left out: torch-pme (with vesin), nvalchemi-toolkit-ops, fmm3dpy, pytreegrav. Of
the first two ions near the sites of rock salt, at distance 1, in a periodic box; of the last two Plummer's model, open. Errors are of
forces, RMS over RMS: of the periodic systems against this library asked for 1e-10, which is compared with Ewald's sums at 10 ions; of the
open ones against direct sums, of Plummer's model at 1,000. A peer has the fastest of the settings below whose error is no more than what is
asked for. This library is then asked for the error that the peer has reached, and for less until its own is not above it.

--also, by default all on a GPU:
  training  a training step: derivatives by positions and charges of a loss of forces and energies, at the same settings
  batch     100 systems of 64 to 200 ions in cubes at density 1, at once
  direct    the same ions without a box, beside all pairs by PyTorch. This library is asked for the accuracy as it is
--device cuda has tensors of the device, and peers that have PyTorch alone. --precision single: what is asked for 1e-4 and more.
--seconds: no row begins later.

first_s: a call from arrays to forces, with lists of neighbours and, of this library, with measuring; step_s: another call, of which lists and
plans are kept. FMM3D and pytreegrav keep nothing. On the CPU seconds of the processor, on a GPU of the clock until it has ended; the least of
the rounds. warm_up_s: the very first calls, in which some compile. training_error: of the derivatives by positions, RMS over RMS.
memory_bytes: the most that PyTorch had on the GPU, and of this library the change of free memory; training_memory_bytes: also for training steps.
-> peers.json; with --also on a CPU peers-training.json
"""
import argparse
import functools
import gc
import importlib
import json
import os
import time
from importlib.metadata import version

for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
import numpy  # noqa: E402

import library  # noqa: E402
from measured_open import exact, plummer  # noqa: E402
from python_overhead import melt  # noqa: E402

try:
    import torch  # noqa: E402

    import peers_torch  # noqa: E402
except ImportError:
    torch = None

# of Ewald's sums: cutoff in distances of ions, alpha times cutoff, mesh spacing or least wave length over smearing; coarse ones first
REACHES = [{"cutoff": cutoff, "alpha_cutoff": reach} for cutoff in (2.5, 3.5, 4.5) for reach in (2.5, 3.8)]
EWALD = [[{**reach, "mesh_over_smearing": mesh} for mesh in (2.0, 1.4, 1.0, 0.7, 0.5)] for reach in REACHES]
WAVES = [[{**reach, "wave_over_smearing": wave} for wave in (2.0, 1.6, 1.4, 1.2, 1.0)] for reach in REACHES]  # of small systems
ALCHEMI = [[{**one, "matrix": matrix} for one in settings] for settings in EWALD for matrix in (False, True)]
ALCHEMI += [[{**reach, "mesh_over_smearing": mesh, "spline_order": 6} for mesh in (1.0, 0.7, 0.5, 0.35, 0.25)] for reach in REACHES]


def fmm3d(system, eps):
    import fmm3dpy
    x, q = system
    sources = numpy.asfortranarray(x.T)
    return {"step": lambda: -4 * numpy.pi * (q * fmm3dpy.lfmm3d(eps=eps, sources=sources, charges=q, pg=2).grad).T}  # its potential is q/(4 pi r)


def pytreegrav(system, theta):
    import pytreegrav as of
    x, q = system
    return {"step": lambda: -q[:, None] * of.Accel(x, q, theta=theta, method="tree", quadrupole=True)}  # masses attract each other


def ours(system, accuracy):
    import gmxfmm
    if not isinstance(system, tuple):
        return peers_torch.ours(system, accuracy)
    plan = gmxfmm.Plan(*system, None, accuracy=accuracy)
    return {"step": lambda: plan.step(system[0]).forces}


def of_torch(name):
    return lambda *arguments, **setting: getattr(peers_torch, name)(*arguments, **setting)


# package, module, function, kind of systems, lists of settings, from coarse ones on
PEERS = (("torch-pme", "torchpme", of_torch("torch_pme"), "ions, periodic", EWALD),
         ("nvalchemi-toolkit-ops", "nvalchemiops", of_torch("nvalchemi"), "ions, periodic", ALCHEMI),
         ("direct", "torch", of_torch("direct"), "ions, open", [[{}]]),
         ("fmm3dpy", "fmm3dpy", fmm3d, "plummer, masses, open", [[{"eps": eps} for eps in (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6, 1e-7)]]),
         ("pytreegrav", "pytreegrav", pytreegrav, "plummer, masses, open", [[{"theta": theta} for theta in (1.0, 0.7, 0.5, 0.35, 0.25, 0.18)]]))


def cubes(systems):
    """Ions of small cubes, near some of the sites of a lattice of alternating charges, at density 1."""
    random = numpy.random.default_rng(1)
    x, q, edges = [], [], []
    for n in 2 * random.integers(32, 101, systems):
        sites = numpy.argwhere(numpy.ones((int(numpy.ceil(n**(1 / 3))),) * 3)).astype(float)
        odd = sites.sum(axis=1) % 2
        taken = numpy.concatenate([random.choice(numpy.flatnonzero(odd == one), n // 2, replace=False) for one in (0, 1)])
        edges.append([n**(1 / 3)] * 3)
        x.append((sites[taken] + random.normal(0, 0.1, (n, 3))) * edges[-1] / (sites.max() + 1))
        q.append(1 - 2 * odd[taken])
    return numpy.concatenate(x), numpy.concatenate(q), numpy.array(edges), numpy.cumsum([0] + [len(one) for one in q])


def rms(array):
    return float((array**2).sum()**0.5)


@functools.lru_cache(None)
def system_of(kind, n, single, device):
    """A system, n ions or -n small systems of them; functions of the errors of forces and derivatives; the error of the reference, if known."""
    if kind.startswith("plummer"):
        x, q = plummer(numpy, n), numpy.full(n, 1 / n)
        which = numpy.arange(1000) * (n // 1000)
        right = exact(numpy, x, q, which)
        return (x, q), lambda forces: rms(forces[which] - right) / rms(right), None, {}
    if n < 0:
        x, q, edges, start = cubes(-n)
    else:
        side = round(n**(1 / 3))
        x, q, box = melt((side,) * 3 if side % 2 == 0 else (side - 1, side + 1, side + 1))  # even: alternating across the box
        edges, start = box[None], [0, len(q)]
    given = x, q, edges if kind == "ions, periodic" else None, start, device
    of_reference = {}
    for device_of_it, accuracy in ((device, 1e-10), (device, 1e-9), ("cpu", 1e-10)):  # as this library can on a GPU
        try:
            reference = peers_torch.System(*given[:4], device_of_it)
            right = peers_torch.direct(reference) if kind == "ions, open" else peers_torch.ours(reference, accuracy)
            forces = torch.as_tensor(right["step"]()).clone().to(device)
            break
        except (RuntimeError, ValueError) as error:
            print(f"reference of {n} {kind}, {accuracy:g}, {device_of_it}: {error}", flush=True)
    if kind == "ions, periodic":
        which = numpy.arange(10) * (start[1] // 10)
        of_reference["reference_error"] = rms(peers_torch.ewald(reference, which).to(device) - forces[which]) / rms(forces[which])
    derivatives = functools.lru_cache(None)(lambda: right["training"]()[0].clone().to(device))
    return (peers_torch.System(*given, single), lambda found: rms(torch.as_tensor(found).double() - forces) / rms(forces),
            lambda found: rms(found.double() - derivatives()) / rms(derivatives()), of_reference)


def timed(call, device):
    """Of a CPU seconds of the processor, of a GPU seconds until it has done everything."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    if device == "cuda":
        torch.cuda.synchronize()
    begin = clock()
    result = call()
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - begin, result


def least(call, rounds, device):
    """Seconds of the fastest of some calls, fewer of long ones, and the last result."""
    times, begin = [], time.monotonic()
    while len(times) < rounds and (len(times) < 2 or time.monotonic() - begin < 3):
        took, result = timed(call, device)
        times.append(took)
    return min(times), result


def measure(make, errors, rounds, options, system, training=False, **setting):
    """Errors, seconds and, on a GPU, memory of one setting."""
    steps, first, row, begin = [], [], {"setting": setting}, time.monotonic()
    cuda = options.device == "cuda"

    def whole():
        made = make(system, **setting)
        return made, made["step"]()

    for _ in range(rounds):
        if first and time.monotonic() - begin > 5:
            break
        made = forces = None
        if cuda:
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]

        def memory():
            return free - torch.cuda.mem_get_info()[0] if make is ours else torch.cuda.max_memory_allocated() - before

        took, (made, forces) = timed(whole, options.device)
        first.append(took)
        took, forces = least(made["step"], max(rounds, (10 if rounds > 1 else 3) if cuda else 1), options.device)
        steps.append(took)
    row.update(first_s=min(first), step_s=min(steps), **({"memory_bytes": memory()} if cuda else {}))
    row["error"] = errors[0](forces)
    if training:
        try:
            row["training_s"], found = least(made["training"], max(rounds, 10 if cuda else 2), options.device)
            row.update({"training_memory_bytes": memory()} if cuda else {})
            row["training_error"] = errors[1](found[0])
        except Exception as error:
            row["training_failed"] = f"{type(error).__name__}: {error}"[:300]
    return row


def fastest(make, lists, asked, errors, rounds, options, system, training):
    """The setting with the fastest step of those that reach what is asked; of a list only the first that does is tried. Or why there is none."""
    best, failed = None, None
    for settings in lists:
        for setting in settings:
            try:
                tried = measure(make, errors, 1, options, system, **setting)
            except Exception as error:
                failed = {"failed": f"{type(error).__name__}: {error}"[:300]}
                break
            if best and tried["step_s"] > 2 * best["step_s"]:
                break  # a finer one is slower still
            if tried["error"] <= asked:
                best = tried if best is None or tried["step_s"] < best["step_s"] else best
                break
    return measure(make, errors, rounds, options, system, training, **best["setting"]) if best else failed


def row_of(name, make, kind, lists, n, asked, single, options):
    system, *errors, of_reference = system_of(kind, n, single, options.device)
    charges = len(system[0] if kind.startswith("plummer") else system.x)
    row = {"system": kind, **({"systems": -n} if n < 0 else {}), "charges": charges, "precision": "single" if single else "double",
           "asked": asked, **of_reference, "peer": name}
    training = "training" in options.also and name not in ("fmm3dpy", "pytreegrav")
    if kind == "ions, periodic" and n <= 1000:
        lists = WAVES + lists  # a loop over systems, slow, stops early beside these
    theirs = row["theirs"] = fastest(make, lists, asked, errors, options.rounds, options, system, training)  # None: no setting reaches it
    if not theirs or "failed" in theirs:
        return row
    wanted = accuracy = asked if name == "direct" else theirs["error"]
    try:
        while True:  # alone first: training and rounds of settings that miss it are of no use
            own = measure(ours, errors, 1, options, system, accuracy=accuracy)
            if own["error"] <= wanted:
                own = measure(ours, errors, options.rounds, options, system, training, accuracy=accuracy)
                if own["error"] <= wanted:
                    break
            accuracy *= 0.7
    except ValueError as error:  # it refuses what it cannot reach
        return {**row, "gmxfmm": {"setting": {"accuracy": accuracy}, "failed": f"{error}"[:300]}}
    row.update(gmxfmm=own, step_ratio=theirs["step_s"] / own["step_s"], first_ratio=theirs["first_s"] / own["first_s"])
    if "training_s" in theirs and "training_s" in own:
        row["training_ratio"] = theirs["training_s"] / own["training_s"]
    return row


def warm_up(name, make, kind, lists, options):
    if kind.startswith("plummer"):
        return make((plummer(numpy, 1000), numpy.full(1000, 1e-3)), **lists[0][0])["step"]()
    for n in (-2, 512) if "batch" in options.also else (512,):
        system = peers_torch.System(*(cubes(-n) if n < 0 else (*melt((8, 8, 8))[:2], numpy.full((1, 3), 8.0), [0, n])), options.device)
        if kind == "ions, open":
            system.edges = system.cells = None
        made = make(system, **lists[0][0])
        made["step"]()
        if "training" in options.also:
            made["training"]()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--peers")
    parser.add_argument("--also")
    parser.add_argument("--ions")
    parser.add_argument("--charges", default="10000,100000")
    parser.add_argument("--accuracies", default="1e-3,1e-5")
    parser.add_argument("--precision", default="double")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", type=int, default=100, help="of a batch")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--note", help="stored with the results: what else ran, say")
    options = parser.parse_args()
    cuda = options.device == "cuda"
    head = library.header(options, "peers", 1)
    options.also = (("training,batch,direct" if cuda else "") if options.also is None else options.also)
    options.ions = options.ions or ("1000,8000,81000" if cuda else "1000,8000")
    options.peers = options.peers or ",".join(peer[0] for peer in PEERS if not cuda or not peer[3].startswith("plummer"))
    named = ("device", "peers", "ions", "charges", "accuracies", "precision", "rounds", "systems", *(("also",) if options.also else ()))
    head["command"] = " ".join(["benchmarks/peers.py", *(f"--{name} {getattr(options, name)}" for name in named)])
    if cuda:
        head["gpu"] = library.gpu()
    elif torch:
        torch.set_num_threads(1)
    versions, seconds, rows, there, begin = {"numpy": numpy.__version__}, {}, [], [], time.monotonic()
    name_of_file = "peers-training.json" if options.also and not cuda else "peers.json"
    for name, module, make, kind, lists in (peer for peer in PEERS if peer[0] in options.peers.split(",")):
        if name == "direct" and "direct" not in options.also:
            continue
        try:
            importlib.import_module(module)
            seconds[name] = timed(lambda: warm_up(name, make, kind, lists, options), options.device)[0]
            there.append((name, make, kind, lists))
            versions.update({package: version(package) for package in (name if name != "direct" else "torch", *(("torch",) if torch else ()))})
            print(f"{name}: {seconds[name]:.1f} s for the first calls", flush=True)
        except Exception as error:
            print(f"left out: {name}: {type(error).__name__}: {error}", flush=True)
    # small systems of all first: what is stored after each row is of use if the rest does not end
    ions = ([-options.systems] if "batch" in options.also else []) + [int(n) for n in options.ions.split(",")]
    sizes = {False: ions, True: [int(n) for n in options.charges.split(",")]}
    for turn in range(max(map(len, sizes.values()))):
        for precision in options.precision.split(","):
            for name, make, kind, lists in there:
                for asked in map(float, options.accuracies.split(",")):
                    of_kind, single = sizes[kind.startswith("plummer")], precision == "single"
                    if turn >= len(of_kind) or (single and (asked < 1e-4 or kind.startswith("plummer"))):
                        continue
                    if time.monotonic() - begin > options.seconds:
                        print(f"left out, as it is late: {name}, {of_kind[turn]}, {precision}, {asked:g}", flush=True)
                        continue
                    try:
                        row = row_of(name, make, kind, lists, of_kind[turn], asked, single, options)
                    except Exception as error:
                        row = {"system": kind, "size": of_kind[turn], "precision": precision, "asked": asked, "peer": name,
                               "failed": f"{type(error).__name__}: {error}"[:500]}
                    rows.append({**row, "ended_at_s": round(time.monotonic() - begin, 1)})
                    print(json.dumps(rows[-1]), flush=True)
                    library.store(options, name_of_file, head, versions=versions, warm_up_s=seconds, rows=rows)


if __name__ == "__main__":
    main()
