#!/usr/bin/env python3
"""What a simulation gives with Lennard-Jones of all pairs of atoms and with fmm-lj = split -> lj-split-observables.json.

Usage: lj_split_observables.py OUT PART...; PART:
  frames-water frames-protein   energy, pressure tensor and surface tension on the same frames of a run
  bulk                          density and diffusion of CHARMM's water, PME's, too, each from a run at constant pressure
The record of a part takes the place of the one in OUT. Runs are made on a GPU, single points on all processors, two a point. Needs
GMXFMM_GMX; GMXFMM_FRAMES (200) and GMXFMM_STEPS (1,000,000: 2 ns) make it shorter, GMXFMM_NB = cpu does without a GPU.
"""
import concurrent.futures
import json
import math
import os
import re
import sys

import mdrun_systems  # also finds the harness
from harness import CORES, FMM, Failure, block_error, changed, device, gpus, made, mean, need, read_log, single_points, stored, work_folder

SPLIT = {**FMM, "fmm-lj": "split"}
NB = os.environ.get("GMXFMM_NB", "gpu")
TERMS = ("Potential", "Pressure", "Pres-XX", "Pres-YY", "Pres-ZZ")


def of_point(point, edge_z, surfaces):
    """Terms of a frame, and the surface tension of a membrane normal to z in mN/m, by 0.1 mN/m = 1 bar nm."""
    terms = {t: point.energy[t] for t in TERMS}
    if surfaces:
        terms["surface tension"] = 0.1 * edge_z / surfaces * (terms["Pres-ZZ"] - 0.5 * (terms["Pres-XX"] + terms["Pres-YY"]))
    return terms


def frames(gmx, folder, system, surfaces):
    """Means over the same frames, and of the differences of split from full with their standard errors."""
    num, every = int(os.environ.get("GMXFMM_FRAMES", "200")), 250
    start = changed(system.mdp, nsteps=(num + 40) * every, nstxout=every, nstvout=every, nstfout=0, nstxout_compressed=0, pcoupl="no",
                    gen_vel="yes", gen_seed=1, continuation="no", **FMM)
    gmx.grompp(folder, start, system, name="frames")
    gmx.mdrun(folder, name="frames", nb=NB)
    times = [(40 + k) * every * float(start["dt"]) for k in range(1, num + 1)]  # after 20 ps
    found = {}
    with concurrent.futures.ThreadPoolExecutor(max(1, CORES // 2)) as pool:
        for kind, settings in (("full", FMM), ("split", SPLIT)):
            def point(k, kind=kind, settings=settings):
                return single_points(gmx, folder, system, settings, f"{folder}/frames.trr", [times[k]], f"{kind}{k}", threads="2",
                                     more=("-pin", "off"))[0]
            found[kind] = [of_point(p, p.frame.box[8], surfaces) for p in pool.map(point, range(num))]
    radii = {re.search(r"those\s+of\s+atoms\s+up\s+to\s+([\d.]+)\s+nm", read_log(folder, f"split{k}-0")).group(1) for k in range(num)}
    result = {"frames": num, "apart_ps": every * float(start["dt"]), "fmm_lj_radius_nm": sorted(radii)}
    for term in found["full"][0]:
        apart = [s[term] - f[term] for f, s in zip(found["full"], found["split"])]
        result[term] = {"full": mean(f[term] for f in found["full"]), "split_less_full": mean(apart),
                        "standard_error": math.sqrt(mean((a - mean(apart)) ** 2 for a in apart) / num), "largest": max(map(abs, apart))}
    return result


def bulk(gmx, folder):
    """Density, kg/m^3, and diffusion coefficient of oxygen, 1e-5 cm^2/s, with standard errors."""
    system = mdrun_systems.tip3p(gmx, folder, 3)
    steps = int(os.environ.get("GMXFMM_STEPS", "1000000"))
    result, kinds = {"steps": steps}, {"PME": {"coulombtype": "PME"}, "full": FMM, "split": SPLIT}
    for kind, settings in kinds.items():
        mdp = changed(system.mdp, nsteps=steps, gen_vel="yes", gen_seed=1, continuation="no", pcoupl="C-rescale", tau_p=2, ref_p=1,
                      compressibility=4.5e-5, nstpcouple=100, nstenergy=max(steps // 2000, 1), nstcalcenergy=100, nstxout_compressed=max(steps // 1000, 500),
                      compressed_x_grps="System", **settings)
        gmx.grompp(folder, mdp, system, name=kind)
    devices = len(gpus())
    with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:  # side by side: no time is measured
        threads = str(max(1, CORES // len(kinds)))

        def run(k, kind):
            where = ("-update", "gpu", "-gpu_id", str(k % devices)) if NB == "gpu" else ()
            gmx.mdrun(folder, "-pin", "off", *where, name=kind, nb=NB, threads=threads)
        list(pool.map(run, range(len(kinds)), kinds))
    for kind in kinds:
        rows = gmx.energies(folder, ["Density", "Temperature", "Pressure"], name=kind)
        rows = rows[len(rows) // 10:]  # the first tenth is left out
        time = steps * float(mdp["dt"])
        gmx("msd", "-f", kind + ".xtc", "-s", kind + ".tpr", "-o", kind + "-msd.xvg", "-sel", "name OW", "-beginfit",
            str(max(0.01 * time, 1)), "-endfit", str(max(0.1 * time, 3)), "-trestart", str(max(0.025 * time, 1)), folder=folder)
        with open(f"{folder}/{kind}-msd.xvg") as file:
            diffusion = re.search(r"D\[.*?\]\s*=\s*(\S+)\s*\(\+/-\s*(\S+)\)", file.read())
        if not diffusion:
            raise Failure(f"{kind}-msd.xvg in {folder} has no coefficient")
        result[kind] = {term: [mean(r[term] for r in rows), block_error([r[term] for r in rows])] for term in ("Density", "Temperature", "Pressure")}
        result[kind]["diffusion"] = [float(diffusion.group(1)), float(diffusion.group(2))]
    return {**result, "system": system.name}


def main():
    output, *parts = sys.argv[1:]
    gmx = need("GMXFMM_GMX")
    records = stored(output, {"records": {}})["records"]
    for part in parts:
        folder = work_folder("observables", part)
        if part == "bulk":
            record = bulk(gmx, folder)
        elif part == "frames-water":
            system = mdrun_systems.tip3p(gmx, folder, 3)
            record = {**frames(gmx, folder, system, 0), "system": system.name}
        elif part == "frames-protein":
            system = mdrun_systems.membrane_protein(gmx, folder)
            record = {**frames(gmx, folder, system, 2), "system": system.name}
        else:
            sys.exit(f"lj_split_observables.py: unknown part {part!r}")
        records[part] = {**record, **made()}
        print(json.dumps(records[part], indent=1), flush=True)
        with open(output, "w") as file:
            json.dump({"benchmark": "lj-split-observables", "device": {**device(), "gpu": gpus()[0] if NB == "gpu" else None}, "records": records}, file, indent=1)
            file.write("\n")


main()
