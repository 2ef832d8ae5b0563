#!/usr/bin/env python3
"""fmm-lj = split with pair interactions on a GPU: forces, energies and pressure are those of one list, or of the CPU."""
from harness import charmm_water, main, make_frames, need, need_gpu, single_points, work_folder
from lj_split import GPU, SPLIT, equal_radius, lists_are_long_enough, same

gmx = need("GMXFMM_GMX")


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
    for options in ((), ("-update", "gpu")):
        print(f"      with {' '.join(options) or 'the update on the CPU'}:")
        lists_are_long_enough(checks, folder, system, "-fmm", "gpu", *options, nb="gpu")


main(test)
