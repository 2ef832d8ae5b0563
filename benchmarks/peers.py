#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""This library beside torch-pme, nvalchemi-toolkit-ops, FMM3D and pytreegrav, at the error that each of them reaches: one thread of a CPU.

  peers.py [--peers NAME,...] [--ions N,...] [--charges N,...] [--accuracies A,...] [--rounds N] [--note TEXT]

Needs the package gmxfmm. A peer that is not installed is left out: torch-pme (with vesin), nvalchemi-toolkit-ops, fmm3dpy, pytreegrav. Of
the first two ions near the sites of rock salt, at distance 1, in a periodic cube; of the others Plummer's model, open. Errors are of
forces, RMS over RMS: of the periodic systems against this library asked for 1e-10, which is compared with Ewald's sums at 10 ions; of the
open ones against direct sums at 1,000. A peer has the fastest of the settings below whose error is no more than what is asked for. This
library is then asked for the error that the peer has reached, and for less until its own is not above it.

first_s: a call from arrays to forces, with lists of neighbours and, of this library, with measuring; step_s: another call, of which lists and
plans are kept. FMM3D and pytreegrav keep nothing. All in double precision. Seconds of the processor, the least of the rounds; warm_up_s: the
very first call, in which some compile. -> peers.json
"""
import argparse
import functools
import importlib
import json
import math
import os
from importlib.metadata import version

for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
import numpy  # noqa: E402

import library  # noqa: E402
from measured_open import exact, plummer, timed  # noqa: E402
from python_overhead import melt  # noqa: E402

# of Ewald's sums: cutoff in distances of ions, alpha times cutoff, mesh spacing over smearing; coarse meshes first
EWALD = [[{"cutoff": cutoff, "alpha_cutoff": reach, "mesh_over_smearing": mesh} for mesh in (2.0, 1.4, 1.0, 0.7, 0.5)]
         for cutoff in (2.5, 3.5, 4.5) for reach in (2.5, 3.8)]


def torch_pme(x, q, box, cutoff, alpha_cutoff, mesh_over_smearing):
    """P3M, of its calculators the one with the least error; pairs by vesin, distances by PyTorch, which makes forces of them."""
    import torch
    import torchpme
    import vesin
    torch.set_num_threads(1)
    smearing = cutoff / alpha_cutoff / 2**0.5
    of = torchpme.P3MCalculator(torchpme.CoulombPotential(smearing), mesh_spacing=smearing * mesh_over_smearing, interpolation_nodes=5).double()
    i, j, shift = vesin.NeighborList(cutoff=cutoff, full_list=False).compute(x, numpy.diag(box), True, "ijS")
    pairs = torch.tensor(numpy.stack((i, j), axis=1).astype(numpy.int64))
    cell, charges, moves = torch.tensor(numpy.diag(box)), torch.tensor(q)[:, None], torch.tensor(shift * box)

    def step():
        places = torch.tensor(x, requires_grad=True)
        distances = (places[pairs[:, 1]] - places[pairs[:, 0]] + moves).norm(dim=1)
        (charges * of(charges, cell, places, pairs, distances)).sum().backward()
        return -places.grad.numpy()
    return step


def nvalchemi(x, q, box, cutoff, alpha_cutoff, mesh_over_smearing):
    import torch
    from nvalchemiops.torch.interactions.electrostatics import particle_mesh_ewald
    from nvalchemiops.torch.neighbors import neighbor_list
    torch.set_num_threads(1)
    alpha = alpha_cutoff / cutoff
    places, charges, cell = torch.tensor(x), torch.tensor(q), torch.tensor(numpy.diag(box))[None]
    room = 32 + int(2 * 4 / 3 * numpy.pi * cutoff**3)  # of neighbours, twice as many as there are
    pairs, start, shifts = neighbor_list(places, cutoff, cell=cell, pbc=torch.tensor([[True] * 3]), return_neighbor_list=True, max_neighbors=room)

    def step():
        return particle_mesh_ewald(places, charges, cell, alpha=alpha, mesh_spacing=mesh_over_smearing / alpha / 2**0.5, spline_order=5,
                                   neighbor_list=pairs, neighbor_ptr=start, neighbor_shifts=shifts, compute_forces=True)[1].numpy()
    return step


def fmm3d(x, q, box, eps):
    import fmm3dpy
    sources = numpy.asfortranarray(x.T)
    return lambda: -4 * numpy.pi * (q * fmm3dpy.lfmm3d(eps=eps, sources=sources, charges=q, pg=2).grad).T  # its potential is q/(4 pi r)


def pytreegrav(x, q, box, theta):
    import pytreegrav as of
    return lambda: -q[:, None] * of.Accel(x, q, theta=theta, method="tree", quadrupole=True)  # masses attract each other


def ours(x, q, box, accuracy):
    import gmxfmm
    plan = gmxfmm.Plan(x, q, box, accuracy=accuracy)
    return lambda: plan.step(x).forces


# package, module, function, whether for periodic systems, lists of settings, from coarse ones on
PEERS = (("torch-pme", "torchpme", torch_pme, True, EWALD), ("nvalchemi-toolkit-ops", "nvalchemiops", nvalchemi, True, EWALD),
         ("fmm3dpy", "fmm3dpy", fmm3d, False, [[{"eps": eps} for eps in (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6, 1e-7)]]),
         ("pytreegrav", "pytreegrav", pytreegrav, False, [[{"theta": theta} for theta in (1.0, 0.7, 0.5, 0.35, 0.25, 0.18)]]))


def ewald(x, q, box, which):
    """Forces on some ions of a cube by Ewald's sums whose terms beyond are below 1e-12 of those next to an ion."""
    edge = box[0]
    alpha, most = 10.5 / edge, 18  # erfc(5.25) and exp(-(pi most / (alpha edge))^2)
    k = numpy.stack(numpy.meshgrid(*[numpy.arange(-most, most + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    k = 2 * numpy.pi / edge * k[(k @ [4 * most**2, 2 * most, 1] > 0) & ((k * k).sum(axis=1) <= most**2)]  # one of k and -k
    k2 = (k * k).sum(axis=1)
    sums = sum(q[part] @ numpy.exp(1j * x[part] @ k.T) for part in numpy.array_split(numpy.arange(len(q)), 20))
    forces = []
    for i in which:
        d = x[i] - x
        d -= edge * numpy.round(d / edge)
        r = numpy.sqrt((d * d).sum(axis=1))
        r[i] = numpy.inf
        erfc = numpy.array([math.erfc(alpha * s) if s < edge else 0 for s in r])
        pair = q * (erfc / r + 2 * alpha / numpy.pi**0.5 * numpy.exp(-(alpha * r)**2)) / r**2
        weight = 8 * numpy.pi / edge**3 * numpy.exp(-k2 / (4 * alpha**2)) / k2 * (numpy.exp(1j * x[i] @ k.T) * sums.conj()).imag
        forces.append(q[i] * (pair @ d + weight @ k))
    return numpy.array(forces)


@functools.lru_cache(None)
def system(n, periodic):
    """Places, charges, edges or None, and the error of forces; of periodic ones that of the reference, too."""
    if not periodic:
        x, q = plummer(numpy, n), numpy.full(n, 1 / n)
        which = numpy.arange(1000) * (n // 1000)
        right = exact(numpy, x, q, which)
        return x, q, None, lambda forces: float(numpy.sqrt(((forces[which] - right)**2).sum() / (right**2).sum())), None
    x, q, box = melt((round(n ** (1 / 3)),) * 3)
    right = ours(x, q, box, 1e-10)()
    which = numpy.arange(10) * (len(q) // 10)
    norm = numpy.sqrt((right**2).sum(axis=1).mean())
    of_reference = float(numpy.sqrt(((ewald(x, q, box, which) - right[which])**2).sum(axis=1).mean()) / norm)
    return x, q, box, lambda forces: float(numpy.sqrt(((forces - right)**2).sum(axis=1).mean()) / norm), of_reference


def measure(make, error, rounds, *arguments, **setting):
    """Error and seconds of one setting."""
    steps, first = [], []
    def whole():
        step = make(*arguments, **setting)
        return step, step()

    for _ in range(rounds):
        took, (step, forces) = timed(whole)
        first.append(took)
        steps += [timed(step)[0] for _ in range(rounds)]
    return {"setting": setting, "error": error(forces), "first_s": min(first), "step_s": min(steps)}


def fastest(make, lists, asked, error, rounds, *arguments):
    """The setting with the fastest step of those that reach what is asked; of a list only the first that does is tried."""
    best = None
    for settings in lists:
        for setting in settings:
            tried = measure(make, error, 1, *arguments, **setting)
            if best and tried["step_s"] > 2 * best["step_s"]:
                break  # a finer one is slower still
            if tried["error"] <= asked:
                best = tried if best is None or tried["step_s"] < best["step_s"] else best
                break
    return best and measure(make, error, rounds, *arguments, **best["setting"])


def rows_of(name, make, lists, n, periodic, options):
    x, q, box, error, of_reference = system(n, periodic)
    for asked in map(float, options.accuracies.split(",")):
        row = {"system": "ions, periodic" if periodic else "plummer, masses, open", "charges": len(q), "asked": asked,
               **({"reference_error": of_reference} if periodic else {}), "peer": name}
        theirs = fastest(make, lists, asked, error, options.rounds, x, q, box)
        if theirs:
            accuracy = theirs["error"]
            own = measure(ours, error, options.rounds, x, q, box, accuracy=accuracy)
            while own["error"] > theirs["error"]:
                accuracy *= 0.7
                own = measure(ours, error, options.rounds, x, q, box, accuracy=accuracy)
            row.update(theirs=theirs, gmxfmm=own, step_ratio=theirs["step_s"] / own["step_s"], first_ratio=theirs["first_s"] / own["first_s"])
        else:
            row["theirs"] = None  # no setting reaches it
        print(json.dumps(row), flush=True)
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=",".join(peer[0] for peer in PEERS))
    parser.add_argument("--ions", default="1000,8000")
    parser.add_argument("--charges", default="10000,100000")
    parser.add_argument("--accuracies", default="1e-3,1e-5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--note", help="stored with the results: what else ran, say")
    options = parser.parse_args()
    head = library.header(options, "peers", 1)
    head["command"] = f"benchmarks/peers.py --peers {options.peers} --ions {options.ions} --charges {options.charges} --accuracies {options.accuracies} --rounds {options.rounds}"
    versions, warm_up, rows = {"numpy": numpy.__version__}, {}, []
    there = []
    for peer in (peer for peer in PEERS if peer[0] in options.peers.split(",")):
        try:
            importlib.import_module(peer[1])
            there.append(peer)
        except ImportError as error:
            print(f"left out: {peer[0]}: {error}")
    # small systems of all first: what is stored after each peer is of use if the rest does not end
    for turn in range(max(len(sizes.split(",")) for sizes in (options.ions, options.charges))):
        for name, _, make, periodic, lists in there:
            sizes = (options.ions if periodic else options.charges).split(",")
            if turn == 0:
                x, q, box = melt((8, 8, 8)) if periodic else (plummer(numpy, 1000), numpy.full(1000, 1e-3), None)
                warm_up[name] = timed(lambda: make(x, q, box, **lists[0][0])())[0]
                versions.update({package: version(package) for package in (name, *(("torch",) if periodic else ()))})
            if turn < len(sizes):
                rows += rows_of(name, make, lists, int(sizes[turn]), periodic, options)
                library.store(options, "peers.json", head, versions=versions, warm_up_s=warm_up, rows=rows)


if __name__ == "__main__":
    main()
