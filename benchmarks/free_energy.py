#!/usr/bin/env python3
"""Speed of mdrun with a perturbed molecule, FMM's and PME's -> fep.json.

Usage: free_energy.py OUT COPIES STEPS [ROUNDS [KIND]...]: SPC water, 648 COPIES^3 atoms, of which 51 are one molecule (17 waters without
bonds to one another). Runs without perturbation and of each KIND, of all by default, take turns; the second half of each is timed:
  charges  the molecule's charges are half decoupled: coul-lambda 0.5, Lennard-Jones not perturbed yet, no soft-core Coulomb
  soft     the same with soft-core Coulomb, with which FMM has all atoms in the pair list
  lj       on a GPU: Lennard-Jones perturbed and charges equal, so that the difference is what perturbed charges add to a step
The record takes the place of the system's in OUT. Needs GMXFMM_GMX. With GMXFMM_NB = gpu all but perturbed pairs is computed on a GPU
(GROMACS 2026: these on both, as far as it can), with lists of 100 steps.
GMXFMM_TIMELINE_LIBRARY: timeline.c, compiled, by which the record tells how long in a step kernels of the FMM run on the device, with
perturbed charges and without.
"""
import json
import os
import statistics
import sys

import mdrun_systems  # also finds the harness
from kernel_times import records as kernel_records
from harness import CORES, FMM, NTOMP, changed, device, gpus, made, need, run_info, version, water, work_folder

PERTURBED = 17  # molecules of water
KINDS = ("charges", "soft", "lj")
FREE_ENERGY = {"free_energy": "yes", "couple_moltype": "LIG", "couple_lambda0": "vdw-q", "couple_lambda1": "none", "couple_intramol": "yes",
               "coul_lambdas": "0 0.5 1 1", "vdw_lambdas": "0 0 0 1", "init_lambda_state": "1", "sc_alpha": "0.5", "sc_coul": "no", "nstdhdl": "100",
               "calc_lambda_neighbors": "-1"}
ON_GPU = os.environ.get("GMXFMM_NB") == "gpu"
SOFT = {**FREE_ENERGY, "sc_coul": "yes"}
LENNARD_JONES = {**FREE_ENERGY, "couple_lambda0": "vdw", "coul_lambdas": "0 0 0 0", "vdw_lambdas": "0 0.5 1 1"}


def with_molecule(gmx, folder, copies):
    """Water whose first molecules are one."""
    system = water(gmx, folder, (copies, copies, copies))
    atoms, bonds, angles, exclusions = [], [], [], []
    for w in range(PERTURBED):
        first = 3 * w + 1
        for k, (kind, name, charge, mass) in enumerate((("opls_116", "OW", -0.82, 15.9994), ("opls_117", "HW1", 0.41, 1.008), ("opls_117", "HW2", 0.41, 1.008))):
            atoms.append(f"{first + k} {kind} {w + 1} SOL {name} {w + 1} {charge} {mass}")
        bonds += [f"{first} {first + 1} 1 0.1 345000", f"{first} {first + 2} 1 0.1 345000"]
        angles += [f"{first + 1} {first} {first + 2} 1 109.47 383"]
        exclusions += [f"{first} {first + 1} {first + 2}", f"{first + 1} {first + 2}"]
    molecule = "\n".join(["[ moleculetype ]", "LIG 0", "[ atoms ]", *atoms, "[ bonds ]", *bonds, "[ angles ]", *angles, "[ exclusions ]", *exclusions, ""])
    with open(system.top) as top:
        before, after = top.read().split("[ system ]")
    number = int(after.split()[-1])
    with open(system.top, "w") as top:
        top.write(f"{before}{molecule}[ system ]\nwater\n[ molecules ]\nLIG 1\nSOL {number - PERTURBED}\n")
    return system


def busy(rows):
    """How long at least one of these records runs, in ns; they are in order of their start."""
    total, until = 0, 0
    for start, end, *_ in rows:
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def fastest(middle, kind):
    """ms a step with the settings of this kind that are best."""
    return min(times["ms"] for name, times in middle.items() if name.startswith(kind))


def fmm_on_device(gmx, folder, files, options, threads, library):
    """us in a step in which kernels of the FMM run, for each kind of run with FMM: those that no run with PME has, but pair kernels."""
    rows = {}
    for kind, name in files.items():
        env = {"CUDA_INJECTION64_PATH": os.path.abspath(library), "GMXFMM_TIMELINE": os.path.join(folder, "records.txt")}
        gmx.mdrun(folder, "-nsteps", "3000", "-notunepme", "-noconfout", *options[kind], name=name, nb="gpu", threads=threads, env=env)
        found = kernel_records(os.path.join(folder, "records.txt"))
        rows[kind] = found[len(found) // 2:]  # what is measured at the start is over then
    others = {row[-1] for kind in rows if kind.startswith("PME") for row in rows[kind]}
    return {kind: busy([row for row in found if row[-1] not in others and not row[-1].startswith(("nbnxn", "nbfe"))]) / 1000
            / sum(row[-1].lower().startswith("leapfrog") for row in found) for kind, found in rows.items() if kind.startswith("FMM")}


def store(output, record, common):
    mdrun_systems.keep(output, {"benchmark": "fep", "device": common}, record, system=None, gromacs="2022.5")


def main():
    output, copies, steps, *more = sys.argv[1:]
    rounds, asked, gmx = int(more[0]) if more else 3, more[1:] or KINDS, need("GMXFMM_GMX")
    if not set(asked) <= set(KINDS):
        sys.exit(f"free_energy.py: kinds are {', '.join(KINDS)}, not {' '.join(asked)}")
    folder = work_folder("fep" + copies)
    system = with_molecule(gmx, folder, int(copies))
    perturbations = [("", {})]
    perturbations += [(", perturbed", FREE_ENERGY)] if "charges" in asked else []
    perturbations += [(", soft-core Coulomb, perturbed", SOFT)] if "soft" in asked else []
    perturbations += [(", Lennard-Jones perturbed", LENNARD_JONES)] if "lj" in asked and ON_GPU else []
    kinds = {f"{method}{name}": {**settings, **fep} for method, settings in (("PME", {"coulombtype": "PME"}), ("FMM", FMM))
             for name, fep in perturbations}
    files = {kind: kind.replace(", ", "-").replace(" ", "-") for kind in kinds}
    for kind, settings in kinds.items():
        gmx.grompp(folder, changed(system.mdp, nsteps=steps, nstlist=100 if ON_GPU else 20, rcoulomb=1.0, rvdw=1.0, constraints="h-bonds", tcoupl="V-rescale", tc_grps="System",
                                   tau_t=0.5, ref_t=300, **settings), system, name=files[kind])
    options, nb, threads = {kind: () for kind in kinds}, "cpu", NTOMP
    if ON_GPU:
        nb, threads = "gpu", str(CORES)
        options = {kind: ("-update", "gpu", *(("-pme", "gpu") if kind.startswith("PME") else ("-fmm", "gpu"))) for kind in kinds}
        if version(gmx) >= "2026":
            for kind in [k for k in kinds if "perturbed" in k]:
                if not kind.startswith("FMM, soft"):  # which mdrun refuses
                    other = kind + ", pairs on the GPU"
                    kinds[other], files[other], options[other] = kinds[kind], files[kind], (*options[kind], "-nbfe", "gpu")
                options[kind] = (*options[kind], "-nbfe", "cpu")
    found = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            gmx.mdrun(folder, "-resethway", "-notunepme", *options[kind], name=files[kind], nb=nb, threads=threads)
            info = run_info(folder, files[kind], 0.002)
            share = sum(part for name, part in info["cycles"].items() if name.startswith("FMM"))
            found[kind].append({"ms": info["ms_per_step"], "fmm_ms": share * info["ms_per_step"]})
    middle = {kind: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for kind, runs in found.items()}
    record = {"system": system.name, "perturbed_atoms": 3 * PERTURBED, **made(), "runs": found, "medians": middle,
              "gromacs": version(gmx), "rounds": rounds, "steps": int(steps),
              "step_fmm_over_pme": statistics.median(a["ms"] / b["ms"] for a, b in zip(found["FMM"], found["PME"]))}
    if "charges" in asked:
        record["step_fmm_over_pme_perturbed"] = fastest(middle, "FMM, perturbed") / fastest(middle, "PME, perturbed")
        record["fmm_perturbed_over_not"] = None if ON_GPU else statistics.median(
            a["fmm_ms"] / b["fmm_ms"] for a, b in zip(found["FMM, perturbed"], found["FMM"]))
    if "soft" in asked:
        record["step_fmm_over_pme_soft"] = fastest(middle, "FMM, soft") / fastest(middle, "PME, soft")
    common = {**device(threads), **({"gpu": gpus()[0]} if ON_GPU else {})}
    store(output, record, common)
    library = os.environ.get("GMXFMM_TIMELINE_LIBRARY", "")
    if ON_GPU and "charges" in asked and os.path.exists(library):
        record["fmm_us_a_step_on_device"] = found = fmm_on_device(gmx, folder, files, options, threads, library)
        record["fmm_perturbed_over_not"] = found["FMM, perturbed"] / found["FMM"]
        store(output, record, common)
    print(json.dumps({k: v for k, v in record.items() if k != "runs"}, indent=1))


if __name__ == "__main__":
    main()
