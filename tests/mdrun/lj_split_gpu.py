#!/usr/bin/env python3
"""fmm-lj = split with pair interactions on a GPU: forces, energies and pressure are those of all pairs of atoms, or of the CPU."""
import os
import sys

from harness import charmm_water, main, make_frames, need, need_gpu, single_points, work_folder
from lj_split import GPU, SPLIT, equal_radius, lists_are_long_enough, loop_over_all_pairs, same, slabs

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks"))
import mdrun_systems  # noqa: E402

gmx = need("GMXFMM_GMX")


def protein(checks):
    """Groups of many types, and pairs of groups that exclude each other."""
    folder = work_folder("membrane-protein")
    try:
        system = mdrun_systems.membrane_protein(gmx, folder)
    except mdrun_systems.Missing as missing:
        print(f"membrane protein: {missing}")
        return
    trajectory, times = make_frames(gmx, folder, system, steps=10, every=10)
    equal_radius(checks, "membrane protein", folder, system, (trajectory, times[:1]), {"chosen": (16,)}, GPU)
    split = {**SPLIT, "fmm-order": "9"}
    cpu = single_points(gmx, folder, system, split, trajectory, times[:1], "cpu")
    gpu = single_points(gmx, folder, system, split, trajectory, times[:1], "gpu", **GPU)
    same(checks, "membrane protein, GPU against CPU", gpu, cpu, limit=1e-5)


def test(checks):
    need_gpu(gmx)
    folder = work_folder()
    system = charmm_water(gmx, folder, (2, 2, 2))
    frames = make_frames(gmx, folder, system, steps=20, every=10)
    equal_radius(checks, "GPU", folder, system, frames, {"chosen": (2,)}, GPU)
    cpu = single_points(gmx, folder, system, {**SPLIT, "fmm-order": "8"}, *frames, "cpu")
    gpu = single_points(gmx, folder, system, {**SPLIT, "fmm-order": "8"}, *frames, "gpu", **GPU)
    # As FMM on the GPU and on the CPU differ (fmm_gpu.py): other cells' order, other kernels
    same(checks, "a radius that grompp chose, GPU against CPU", gpu, cpu, limit=1e-5)
    slabs(checks, GPU)
    loop_over_all_pairs(checks, GPU)
    protein(checks)
    for options in ((), ("-update", "gpu")):
        print(f"      with {' '.join(options) or 'the update on the CPU'}:")
        lists_are_long_enough(checks, folder, system, "-fmm", "gpu", *options, nb="gpu")


main(test)
