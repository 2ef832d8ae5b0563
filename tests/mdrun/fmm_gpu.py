#!/usr/bin/env python3
"""mdrun -fmm gpu gives what -fmm cpu and tight PME give: in every kind of box, by every method, and in everything mdrun does.

fmm_gpu.py [SECTION]...   sections: forces, methods, measured, slabs, runs, virial, coupling, modes, choice, devices, graphs, drift, long (default: all but long)
Needs a GPU. The reference is tight PME in mixed precision on the CPU, whose force error is about 1e-5.
"""
import collections
import math
import os
import re
import shutil
import sys
import traceback

from harness import (COUPLING, FMM, NO_COULOMB, TIGHT_MIXED, Failure, Point, alike, changed, charmm_water, chosen_settings, compare, complaint, drift, environment, fmm_on,
                     fmm_parameters, force_error, gpus, leaving, main, make_frames, mean, measured_error, need, need_gpu, read_log, read_trr, regression,
                     rms_distance, rock_salt, single_points, version, water, without_swaps, work_folder)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks"))
from mdrun_systems import amber_protein  # noqa: E402

gmx = need("GMXFMM_GMX")

GPU = ["-fmm", "gpu"]
Still = collections.namedtuple("Still", "force")
ACCURACY = 4e-4
METHODS = ("fft", "rotation", "symmetric", "naive", "dynamic")
# Both sum the same terms in single precision in another order. The near field's terms cancel to a tenth of their size or less,
# and an expansion's too: 6e-8 for each, some tens of them.
ROUNDING = 1e-5
# Relative to the near field's energy: how near and far divide the sum is arbitrary, and the far part may be near zero.
ENERGY_ROUNDING = 2e-6


def attempt(checks, what, function, *arguments):
    """Calls function(checks, *arguments); what goes wrong in it is one failed check, and the rest goes on."""
    try:
        function(checks, *arguments)
    except Failure as failure:
        checks.that(False, f"{what}: {' '.join(str(failure).split())[:500]}")
    except (ArithmeticError, LookupError, OSError, ValueError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        checks.that(False, f"{what}: {type(error).__name__} at {place.filename.rsplit('/', 1)[-1]}:{place.lineno}: {error}")


def reference_settings(system):
    """Tight PME with the longest cut-off up to 1.2 nm that the box has room for, and a grid as fine in relation to it."""
    with open(system.conf) as lines:
        box = [float(v) for v in lines.read().splitlines()[-1].split()]
    cutoff = max(float(system.mdp["rcoulomb"]), min(1.2, min(box[:3]) / 2 - 0.1))
    spacing = float(TIGHT_MIXED["fourierspacing"]) * cutoff / float(TIGHT_MIXED["rcoulomb"])
    return {**TIGHT_MIXED, "rcoulomb": f"{cutoff:.3f}", "fourierspacing": f"{spacing:.4f}"}


def agree(checks, what, gpu, cpu, nothing):
    """GPU and CPU with the same parameters, on the same frames."""
    checks.below(f"{what}: forces of GPU and CPU, RMS difference over RMS Coulomb force", force_error(gpu, cpu, nothing), ROUNDING, "",
                 "single precision in another order")
    for term in ("Potential", "Coulomb (SR)", "Coul. recip."):
        worst = max(abs(g.energy[term] - c.energy[term]) / abs(c.energy["Coulomb (SR)"]) for g, c in zip(gpu, cpu))
        checks.below(f"{what}: {term} of GPU and CPU, difference over Coulomb (SR)", worst, ENERGY_ROUNDING, "", "single precision in another order")
    worst = max(abs(g.energy["Pressure"] - c.energy["Pressure"]) for g, c in zip(gpu, cpu))
    checks.below(f"{what}: pressure of GPU and CPU, difference", worst, 0.5, "bar", "half of what is asked against PME")


def on_both(checks, what, folder, system, settings, theirs=None, pressure=1.0, method=None, accuracy=ACCURACY):
    """Two frames on the GPU, on the CPU with the parameters that the GPU's log names, and by tight PME.

    settings: of FMM; theirs: what belongs to them with PME; pressure: bar, None if PME does not have all of it.
    """
    trajectory, times = make_frames(gmx, folder, system, steps=20)
    nothing = single_points(gmx, folder, system, NO_COULOMB, trajectory, times, "none")
    # Parameters as expected, which are the same for all frames; what is measured: measured().
    gpu = single_points(gmx, folder, system, {**FMM, "fmm-measure": "no", **settings}, trajectory, times, "gpu", nb="gpu", more=GPU)
    log = read_log(folder, "gpu-0")
    checks.that(fmm_on(log, "GPU"), f"{what}: md.log says that the FMM ran on the GPU: {fmm_parameters(log)}")
    if method:
        checks.that(f"far field by {method}," in log, f"{what}: md.log says: far field by {method}")
    reference = single_points(gmx, folder, system, {**reference_settings(system), **(theirs or {})}, trajectory, times, "tight")
    compare(checks, f"{what}, GPU against tight PME", gpu, reference, nothing, accuracy, pressure=pressure)
    same = chosen_settings(fmm_parameters(log))
    if not checks.that(same is not None, f"{what}: the parameters in md.log are understood"):
        return
    same.update({k: v for k, v in settings.items() if k not in same and k != "fmm-accuracy"}, **{"fmm-measure": "no"})
    if same["fmm-m2l"] == "dynamic":  # a way to launch kernels; its sums are those of naive
        same["fmm-m2l"] = "naive"
    cpu = single_points(gmx, folder, system, same, trajectory, times, "cpu", more=["-fmm", "cpu"])
    checks.that(fmm_on(read_log(folder, "cpu-0"), "CPU"), f"{what}: md.log says that the FMM ran on the CPU")
    agree(checks, what, gpu, cpu, nothing)


def forces(checks):
    """Boxes, and what else changes the Coulomb sum."""
    for name in ("swap_z", "octahedron", "nbnxn_vsite"):
        attempt(checks, name, on_both, name, work_folder(name), regression("complex/" + name), {})
    folder = work_folder("water")
    attempt(checks, "water", on_both, "water", folder, water(gmx, folder, (2, 2, 2)), {})
    folder = work_folder("charge")
    # PME leaves out the virial of the background and of the surface (boundaries.py): these pressures are compared with the CPU's alone.
    attempt(checks, "net charge +4", lambda c: on_both(c, "net charge +4", folder, water(gmx, folder, (2, 2, 2), 4), {}, pressure=None))
    folder = work_folder("vacuum")
    attempt(checks, "vacuum boundary", lambda c: on_both(c, "vacuum boundary", folder, water(gmx, folder, (2, 2, 2)), {"fmm-boundary": "vacuum"},
                                                         {"epsilon-surface": "1"}, pressure=None))
    folder = work_folder("permittivity")
    attempt(checks, "epsilon-r 4", lambda c: on_both(c, "epsilon-r 4", folder, water(gmx, folder, (2, 2, 2)), {"epsilon-r": "4"}, {"epsilon-r": "4"}))
    folder = work_folder("exact")
    attempt(checks, "fmm-accuracy 5e-5", lambda c: on_both(c, "fmm-accuracy 5e-5", folder, water(gmx, folder, (2, 2, 2)), {"fmm-accuracy": "5e-5"},
                                                           accuracy=5e-5))


def methods(checks):
    """Every way through the far field, in a box of three different edges."""
    for method in METHODS:
        folder = work_folder(method)
        attempt(checks, method, lambda c: on_both(c, method, folder, water(gmx, folder, (2, 3, 4)), {"fmm-m2l": method}, method=method))
    folder = work_folder("deep")
    attempt(checks, "rotation, depth 4", lambda c: on_both(c, "rotation, depth 4", folder, water(gmx, folder, (2, 3, 4)),
                                                           {"fmm-m2l": "rotation", "fmm-tree-depth": "4"}, method="rotation"))


def measured(checks):
    """What is automatic is chosen by errors that are measured on the device: in a crystal and in water."""
    folder, wet = work_folder("measured-crystal"), work_folder("measured-water")
    for what, system, here, least in (("rock salt", rock_salt(folder, 10), folder, 0), ("water", water(gmx, wet, (3, 3, 3)), wet, 1.5e-4)):
        def one(c):
            # Copies of one box are a crystal, whose pressure is worse than water's; after 4 ps they have parted
            trajectory, times = make_frames(gmx, here, system, steps=2000, every=2000) if least else (here + "/start.trr", [0.0])
            if not least:
                gmx.grompp(here, changed(system.mdp, nsteps=0, nstxout=1, nstvout=1), system, name="start")
                gmx.mdrun(here, name="start")
            reference = single_points(gmx, here, system, TIGHT_MIXED, trajectory, times[:1], "tight")
            nothing = single_points(gmx, here, system, NO_COULOMB, trajectory, times[:1], "none")
            points = single_points(gmx, here, system, FMM, trajectory, times[:1], "gpu", nb="gpu", more=GPU)
            error, said = force_error(points, reference, nothing), measured_error(read_log(here, "gpu-0"))
            c.below(f"{what}, measured on the GPU: force error", error, ACCURACY, "", "the accuracy asked")
            c.that(said is not None and abs(said[0] / error - 1) < 0.1, f"{what}: md.log says {said}, the first of which is true within 10 %: {error:.3e}")
            c.that(error > least, f"{what}: not overpaid, above {least:g}")
        attempt(checks, f"measured, {what}", one)


# --------------------------------------------------------------------------------------------------------------------- motion

def motion(checks, what, folder, system, settings, options, steps=100, dt=0.002, forces_at=None):
    """A run on the GPU moves the atoms as one on the CPU: 5 steps of each; then the run to its end, and its own frames' forces.

    The frames are of steps between pair searches, so that the cells are as old as they get.
    """
    every = forces_at or 5
    mdp = changed(without_output(system.mdp), nsteps=steps, dt=dt, nstlist=50, nstxout=every, nstvout=every, nstfout=every, nstenergy=5,
                  nstcalcenergy=5, ld_seed=1, **FMM)
    mdp.update(settings)
    start = changed(mdp, nsteps=5, nstxout=5, nstvout=5, nstfout=5)
    gmx.grompp(folder, start, system, name="start")
    gmx.mdrun(folder, "-fmm", "cpu", name="start")
    cpu, cpu_energy = read_trr(folder + "/start.trr"), gmx.energies(folder, ["Potential", "Pressure"], name="start")
    gmx.mdrun(folder, *GPU, *options, nb="gpu", name="start")
    gpu, gpu_energy = read_trr(folder + "/start.trr"), gmx.energies(folder, ["Potential", "Pressure"], name="start")
    checks.below(f"{what}: Potential at step 0, relative difference of GPU and CPU", abs(gpu_energy[0]["Potential"] / cpu_energy[0]["Potential"] - 1),
                 1e-5, "", "single precision in another order, and parts of the energy that cancel")
    moved = rms_distance(cpu[1].x, cpu[0].x, cpu[0].box)
    checks.below(f"{what}: positions after 5 steps, in which the atoms moved by {moved:.3f} nm, RMS difference of GPU and CPU",
                 rms_distance(gpu[1].x, cpu[1].x, cpu[0].box), 1e-3 * moved, "nm",
                 "a force error of 4e-4 in parameters chosen otherwise, and rounding of positions of 10 nm, 1e-6 nm")
    gmx.grompp(folder, mdp, system, name="run")
    gmx.mdrun(folder, *GPU, *options, nb="gpu", name="run")
    log = read_log(folder, "run")
    checks.that("Finished mdrun" in log and fmm_on(log, "GPU"), f"{what}: {steps} steps, FMM on the GPU")
    frames = read_trr(folder + "/run.trr")
    rows = gmx.energies(folder, ["Potential", "Total Energy"], name="run")
    checks.that(all(math.isfinite(r["Total Energy"]) for r in rows) and len(rows) > steps // 5, f"{what}: {len(rows)} finite energies")
    return frames, rows


PLAIN_SLAB = {"pbc": "xy", "dispcorr": "no", "vdw-modifier": "Force-switch", "rvdw-switch": "0.7"}
VIRIALS = [f"Vir-{a}{b}" for a in "XYZ" for b in "XYZ"]


def slabs(checks):
    """pbc = xy: films, one of them with a net charge, and what is between walls. slab.py compares the CPU with PME."""
    walls = {"nwall": "2", "wall-type": "9-3", "wall-atomtype": "opls_135 opls_135", "wall-density": "50 50", "ewald-geometry": "3dc"}
    for what, sodium, settings in (("film", 0, {}), ("film, net charge +4", 4, {}), ("between walls", 0, walls)):
        attempt(checks, what, slab, what, sodium, {**PLAIN_SLAB, **settings})
    attempt(checks, "a molecule leaves", leaves)


def slab(checks, what, sodium, settings):
    folder = work_folder(re.sub(r"\W+", "-", what))
    system = water(gmx, folder, (3, 3, 1), sodium)
    if "nwall" in settings:  # room for the atoms, which fill the box
        with open(system.conf) as lines:
            edges = lines.read().splitlines()[-1].split()
        gmx("editconf", "-f", system.conf, "-o", "tall.gro", "-box", *edges[:2], "2.8", folder=folder)
        system.conf = folder + "/tall.gro"
    trajectory, times = folder + "/run.trr", [0.1, 0.2]
    # given, as what is chosen depends on the device and, for a film, on the extent of each frame
    same = {**FMM, "fmm-m2l": "fft", "fmm-order": "9", "fmm-separation": "1", "fmm-grid": "9 9 3", "fmm-measure": "no", **settings}
    for update in ("cpu", "gpu"):
        frames, _ = motion(checks, f"{what}, -update {update}", folder, system, same, ["-update", update])
        late = [frame for frame in frames if frame.step in (35, 85)]  # cells are 18 steps old, and the list is of step 0 and 50
        cpu = single_points(gmx, folder, system, same, trajectory, [frame.time for frame in late], "late", more=["-fmm", "cpu"])
        checks.below(f"{what}, -update {update}: forces of the run's own frames, RMS difference to those of the CPU over RMS",
                     force_error([Point({}, frame) for frame in late], cpu, [Still([0.0] * len(point.force)) for point in cpu]), 2 * ACCURACY, "",
                     "the accuracy asked of both; here cells are new")
    gpu = single_points(gmx, folder, system, same, trajectory, times, "gpu", nb="gpu", more=[*GPU, "-update", "cpu"])
    log = read_log(folder, "gpu-0")
    checks.that(fmm_on(log, "GPU") and "periodic along x and y, open along z" in log, f"{what}: md.log says what is periodic, and that the FMM ran on the GPU")
    cpu = single_points(gmx, folder, system, same, trajectory, times, "cpu", more=["-fmm", "cpu"])
    agree(checks, what, gpu, cpu, [Still([0.0] * len(point.force)) for point in cpu])  # over all forces, not those of Coulomb interactions
    mdp = changed(without_output(system.mdp), nsteps=20, nstlist=20, nstenergy=5, nstcalcenergy=5, tcoupl="no", ld_seed=1)
    gmx.grompp(folder, {**mdp, **same}, system, name="virial")
    rows = {}
    for update in ("cpu", "gpu"):
        gmx.mdrun(folder, *GPU, "-update", update, "-nstlist", "20", nb="gpu", name="virial")
        rows[update] = gmx.energies(folder, VIRIALS, name="virial")
    worst = max(abs(a[term] - b[term]) for a, b in zip(rows["gpu"][:3], rows["cpu"][:3]) for term in VIRIALS)
    checks.below(f"{what}: elements of the virial in 10 steps, -update gpu against -update cpu, worst difference", worst, 1, "kJ/mol",
                 "0.6 bar in the volume of the film, as of a box (virial)")


def leaves(checks):
    """A molecule flies off from a film with the update on the GPU, and cells follow it; slab.py has the same on a CPU."""
    folder = work_folder("leaves")
    system = leaving(folder, water(gmx, folder))
    mdp = changed(without_output(system.mdp), nsteps=2000, dt=0.001, verlet_buffer_tolerance=-1, rlist=0.92, nstlist=20, nstenergy=20, nstcalcenergy=20,
                  nstxout=2000, gen_vel="no", comm_mode="none", fmm_accuracy="1e-5", **FMM)
    gmx.grompp(folder, {**mdp, **PLAIN_SLAB, "vdw-modifier": "Potential-switch"}, system, name="leaving")
    gmx.mdrun(folder, *GPU, "-update", "gpu", nb="gpu", name="leaving")
    z = read_trr(folder + "/leaving.trr")[-1].x[2::3]
    energies = [row["Total Energy"] for row in gmx.energies(folder, ["Total Energy"], name="leaving") if row["Time"] >= 0.1]
    checks.that(max(z) > 10, f"a molecule is at z = {max(z):.1f} nm")
    checks.below(f"energy while it leaves: {energies[0]:.2f} to {energies[-1]:.2f} kJ/mol, spread", max(energies) - min(energies), 3, "kJ/mol",
                 "0.15 % of the kinetic energy of the rest at 300 K")


def own_frames(checks, what, folder, system, frames, which, strain=0):
    """Forces that the run wrote against tight PME on the same frames, boxes included.

    strain: by how much the box has changed. Parameters are chosen for the box of the .tpr, and the ratio on which the error depends, of a
    cell's extent to the distance of far cells, is kept by a change of size alone.
    """
    limit, reason = ACCURACY, "the accuracy asked; the cells are as old as they get"
    if strain > 0.03:
        limit, reason = 1.5 * ACCURACY, "where mdrun warns at the end of a run that the system is another than that of the .tpr"
    times = [frames[i].time for i in which]
    trajectory = folder + "/run.trr"
    reference = single_points(gmx, folder, system, reference_settings(system), trajectory, times, "tight")
    nothing = single_points(gmx, folder, system, NO_COULOMB, trajectory, times, "none")
    points = [Point({}, frames[i]) for i in which]
    checks.below(f"{what}: force error of the run's own frames, at {', '.join(f'{t:g}' for t in times)} ps", force_error(points, reference, nothing),
                 limit, "", reason)


def without_output(mdp):
    return changed(without_swaps(mdp), nstxout=0, nstvout=0, nstfout=0, nstxout_compressed=0, nstlog=0, pcoupl="no", integrator="md")


PRESSURES = [f"Pres-{a}{b}" for a in "XYZ" for b in "XYZ"]


def virial(checks):
    """Pressures between pair searches: with -update gpu all forces stay on the device and their virial is summed there."""
    folder = work_folder("virial-water")
    octahedron = regression("complex/octahedron"), work_folder("virial-octahedron")
    for what, system, box, bonded in (("octahedron", *octahedron, ["-bonded", "gpu"]),
                                      ("octahedron, bonded interactions on the CPU", *octahedron, ["-bonded", "cpu"]),
                                      ("water", water(gmx, folder, (2, 2, 3)), folder, [])):
        def one(c):
            mdp = changed(without_output(system.mdp), nsteps=20, nstlist=20, nstenergy=5, nstcalcenergy=5, tcoupl="no", ld_seed=1, **FMM)
            gmx.grompp(box, mdp, system, name="virial")
            rows = {}
            for update in ("cpu", "gpu"):
                gmx.mdrun(box, *GPU, *bonded, *alike(gmx), "-update", update, "-nstlist", "20", nb="gpu", name="virial")
                rows[update] = gmx.energies(box, PRESSURES, name="virial")
                reduced = re.search(r"NB X/F buffer ops\.\s+\d+\s+\d+\s+(\d+)", read_log(box, "virial"))
            # Rows of steps 0, 5, 10, 15, 20, the first and the last with a pair search.
            c.that(len(rows["gpu"]) == 5 and (reduced is None or int(reduced.group(1)) < 5),
                   f"{what}: the host reduced forces in {reduced.group(1) if reduced else 'none'} of 21 steps, of which 5 have a virial")
            # Rounding of the two kinds of update grows with the steps: after 15 it once was 0.501 bar.
            worst = max(abs(a[term] - b[term]) for a, b in zip(rows["gpu"][:3], rows["cpu"][:3]) for term in PRESSURES)
            c.below(f"{what}: elements of the pressure in 10 steps, -update gpu against -update cpu, worst difference", worst, 0.5, "bar",
                    "rounding of forces and positions; what one surface of the box contributes is hundreds of bar")
        attempt(checks, "virial, " + what, one)


LEVELS = {"mts": "yes", "mts-level2-factor": "2", "mts-level2-forces": "longrange-nonbonded", "nstcalcenergy": "10", "nstenergy": "10",
          "nstxout": "10", "nstvout": "10", "nstfout": "10"}


def runs(checks):
    """Update and bonded forces on either device, in a system that has everything but virtual sites."""
    for options in (["-bonded", "cpu", "-update", "cpu"], ["-bonded", "gpu", "-update", "cpu"], ["-bonded", "cpu", "-update", "gpu"],
                    ["-bonded", "gpu", "-update", "gpu"]):
        what = "swap_z " + " ".join(options)
        folder = work_folder("-".join(o.strip("-") for o in options))

        def one(c):
            system = regression("complex/swap_z")
            # Steps 49 and 98: the cells were renewed 24 and 23 steps ago, of 25, and the list is of step 0 and 50.
            frames, rows = motion(c, what, folder, system, {"tcoupl": "no"}, options, steps=98, forces_at=49)
            own_frames(c, what, folder, system, frames, [1, 2])
            change = abs(rows[-1]["Total Energy"] - rows[0]["Total Energy"]) / (len(frames[0].x) / 3) / (rows[-1]["Time"] - rows[0]["Time"])
            c.below(f"{what}: drift of the total energy per atom", change, 0.05, "kJ/mol/ps",
                    "the start is not at equilibrium; a lost force would give far more")
        attempt(checks, what, one)
    folder = work_folder("octree")

    def octree(c):
        system = water(gmx, folder, (2, 2, 3))
        frames, _ = motion(c, "octree, -update gpu", folder, system, {"fmm-m2l": "rotation"}, ["-update", "gpu"], steps=98, forces_at=49)
        own_frames(c, "octree, -update gpu", folder, system, frames, [1, 2])
    attempt(checks, "octree in a run", octree)
    for what, name, settings, dt in (("virtual sites", "nbnxn_vsite", {}, 0.004), ("Verlet velocities", None, {"integrator": "md-vv"}, 0.002),
                                     ("stochastic dynamics", None, {"integrator": "sd", "tc-grps": "System", "tau-t": "2", "ref-t": "300"}, 0.002),
                                     ("multiple time steps", None, LEVELS, 0.001)):
        folder = work_folder(what.replace(" ", "-"))

        def other(c):
            system = regression("complex/" + name) if name else water(gmx, folder, (2, 2, 2))
            if "mts" in settings:
                levels(c, what, folder, system, settings, dt)
            else:
                motion(c, what, folder, system, settings, ["-update", "cpu"], dt=dt)
        attempt(checks, what, other)


def levels(checks, what, folder, system, settings, dt):
    """As motion, with forces of every second step: ten steps of each."""
    mdp = changed(without_output(system.mdp), nsteps=10, dt=dt, ld_seed=1, **FMM)
    mdp.update(settings)
    gmx.grompp(folder, mdp, system, name="mts")
    frames = []
    for options, nb in ((["-fmm", "cpu"], "cpu"), ([*GPU, "-update", "cpu"], "gpu")):
        gmx.mdrun(folder, *options, nb=nb, name="mts")
        frames.append(read_trr(folder + "/mts.trr"))
    checks.that(fmm_on(read_log(folder, "mts"), "GPU"), f"{what}: FMM on the GPU")
    moved = rms_distance(frames[0][1].x, frames[0][0].x, frames[0][0].box)
    checks.below(f"{what}: positions after 10 steps, in which the atoms moved by {moved:.3f} nm, RMS difference of GPU and CPU",
                 rms_distance(frames[1][1].x, frames[0][1].x, frames[0][0].box), 1e-3 * moved, "nm", "the force error")


def coupling(checks):
    """Constant pressure with all on the GPU: the forces of its own frames, boxes included, and densities as with PME."""
    for kind, settings in COUPLING.items():
        for method in ("fft", "rotation") if kind == "semiisotropic" else ("fft",):
            what, folder = f"{kind}, {method}", work_folder(f"{kind}-{method}")

            def one(c):
                system = water(gmx, folder, (2, 2, 3))
                mdp = changed(without_output(system.mdp), nsteps=10000, nstlist=50, nstxout=2524, nstvout=2524, nstfout=2524, nstenergy=50,
                              nstcalcenergy=50, tcoupl="V-rescale", tc_grps="System", tau_t=0.5, ref_t=300, pcoupltype=kind, tau_p=2, nstpcouple=10,
                              nsttcouple=10, ld_seed=1)
                mdp.update(settings)
                density = {}
                for name, extra, options in (("pme", {}, ["-update", "gpu"]), ("run", {**FMM, "fmm-m2l": method}, [*GPU, "-update", "gpu"])):
                    gmx.grompp(folder, {**mdp, **extra}, system, name=name)
                    gmx.mdrun(folder, *options, "-nstlist", "50", nb="gpu", name=name)
                    rows = gmx.energies(folder, ["Density", "Temperature", "Conserved En."], name=name)
                    c.that(len(rows) == 201 and all(math.isfinite(r["Conserved En."]) for r in rows), f"{what}: {name} ran to the end")
                    density[name] = [r["Density"] for r in rows if r["Time"] >= 5]
                c.that(fmm_on(read_log(folder, "run"), "GPU"), f"{what}: FMM on the GPU")
                c.below(f"{what}: density {mean(density['run']):.1f} by FMM, {mean(density['pme']):.1f} by PME, difference",
                        abs(mean(density["run"]) - mean(density["pme"])), 15.0, "kg/m^3",
                        "four standard errors: 7776 atoms fluctuate by 5 kg/m^3, a mean of 15 ps by half of that")
                frames = read_trr(folder + "/run.trr")
                moved = max(abs(f.box[d] / frames[0].box[d] - 1) for f in frames[1:] for d in (0, 4, 8))
                c.that(moved > 1e-4, f"{what}: the box moved, by up to {100 * moved:.2f} %")
                own_frames(c, what, folder, system, frames, [1, 2], moved)  # 24 and 48 steps after a search
            attempt(checks, what, one)


# ---------------------------------------------------------------------------------------------------------------------- modes

def modes(checks):
    """Minimisation, rerun, continuation."""
    attempt(checks, "minimisation", minimisation)
    attempt(checks, "rerun", rerun)
    attempt(checks, "continuation", continuation)


def minimisation(checks):
    folder = work_folder("minimisation")
    system = water(gmx, folder, (2, 2, 2))
    mdp = changed(without_output(system.mdp), nsteps=100, emstep=0.01, emtol=10, define="-DFLEXIBLE", constraints="none", nstenergy=1,
                  nstcalcenergy=1, gen_vel="no", **FMM)
    # Line searches part: settings of like error differ by 1e-4 at most in the first 25 steps of cg, by 1e-2 after 60
    for integrator, row, when, limit in (("steep", -1, "at the end", 1e-4), ("cg", 25, "after 25 steps", 3e-4)):
        gmx.grompp(folder, changed(mdp, integrator=integrator), system, name=integrator)
        energy = {}
        for where, nb in (("cpu", "cpu"), ("gpu", "gpu")):
            gmx.mdrun(folder, "-fmm", where, nb=nb, name=integrator)
            checks.that(fmm_on(read_log(folder, integrator), where.upper()), f"{integrator}: FMM on the {where.upper()}")
            energy[where] = [r["Potential"] for r in gmx.energies(folder, ["Potential"], name=integrator)]
        cpu, gpu = energy["cpu"], energy["gpu"]
        checks.that(cpu[-1] < cpu[0] and gpu[-1] < gpu[0], f"{integrator}: the energy went down, from {gpu[0]:.0f} to {gpu[-1]:.0f} kJ/mol")
        checks.below(f"{integrator}: energy {when}, relative difference of GPU and CPU", abs(gpu[row] / cpu[row] - 1), limit, "", "the same way down")


def rerun(checks):
    folder = work_folder("rerun")
    system = water(gmx, folder, (2, 2, 2))
    # Boxes that change from frame to frame
    mdp = changed(without_output(system.mdp), nsteps=100, nstxout=20, tcoupl="V-rescale", tc_grps="System", tau_t=0.5, ref_t=300, pcoupl="C-rescale",
                  pcoupltype="semiisotropic", tau_p=1, compressibility="4.5e-5 4.5e-5", ref_p="1 1")
    gmx.grompp(folder, mdp, system, name="path")
    gmx.mdrun(folder, name="path")
    gmx.grompp(folder, {**mdp, **FMM}, system, name="again")
    energy = []
    for where, nb in (("cpu", "cpu"), ("gpu", "gpu")):
        gmx.mdrun(folder, "-rerun", "path.trr", "-fmm", where, nb=nb, name="again")
        checks.that(fmm_on(read_log(folder, "again"), where.upper()), f"rerun: FMM on the {where.upper()}")
        energy.append(gmx.energies(folder, ["Potential", "Coulomb (SR)", "Coul. recip."], name="again"))
    checks.that(len(energy[0]) == len(energy[1]) == 6, f"rerun: {len(energy[1])} frames")
    # The parameters may be chosen otherwise on a GPU, so the parts of the sum are not compared.
    worst = max(abs(a["Potential"] / b["Potential"] - 1) for a, b in zip(*energy))
    checks.below("rerun: Potential, worst relative difference of GPU and CPU", worst, 1e-4, "",
                 "the energy error of the accuracy asked, 1e-3 kJ/mol per atom")


def continuation(checks):
    for name, pressure in (("nvt", {}), ("npt", {"pcoupl": "C-rescale", "pcoupltype": "semiisotropic", "tau-p": "2",
                                                 "compressibility": "4.5e-5 4.5e-5", "ref-p": "1 1"})):
        folder = work_folder("continuation-" + name)
        system = water(gmx, folder, (2, 2, 2))
        mdp = changed(without_output(system.mdp), nsteps=105, nstlist=50, nstxout=5, nstvout=5, nstenergy=5, nstcalcenergy=5, tcoupl="V-rescale",
                      tc_grps="System", tau_t=0.5, ref_t=300, ld_seed=1, **FMM)
        mdp.update(pressure)
        gmx.grompp(folder, mdp, system, name="part")
        gmx.mdrun(folder, *GPU, "-update", "gpu", "-nsteps", "100", nb="gpu", name="part")
        shutil.copy(folder + "/part.cpt", folder + "/at100.cpt")
        last = []
        chosen = chosen_settings(fmm_parameters(read_log(folder, "part")))
        # Both go on from the same checkpoint; appended to the same files or not, the last frame counts.
        for options, nb in ((["-fmm", "cpu"], "cpu"), ([*GPU, "-update", "gpu"], "gpu")):
            gmx.mdrun(folder, *options, "-cpi", "at100.cpt", "-noappend", nb=nb, name="part")
            last.append(read_trr(folder + "/part.part0002.trr")[-1])
            # By times on the GPU, of which the CPU's run knows by the checkpoint alone
            kept = chosen_settings(fmm_parameters(read_log(folder, "part.part0002")))
            checks.that(chosen and kept == chosen, f"{name} on the {nb}: {kept} goes on with {chosen}")
        checks.that(last[0].step == last[1].step == 105, f"{name}: continued to step {last[1].step}")
        start = next(f for f in read_trr(folder + "/part.trr") if f.step == 100)
        moved = rms_distance(last[0].x, start.x, start.box)
        checks.below(f"{name}: positions 5 steps after the checkpoint, in which the atoms moved by {moved:.3f} nm, RMS difference of GPU and CPU",
                     rms_distance(last[1].x, last[0].x, last[0].box), 1e-3 * moved, "nm", "the force error")


# --------------------------------------------------------------------------------------------------------------------- choice

def choice(checks):
    """Where the FMM runs, and what is refused."""
    folder = work_folder("choice")
    system = water(gmx, folder, (2, 2, 2))
    mdp = changed(without_output(system.mdp), nsteps=10)
    gmx.grompp(folder, {**mdp, **FMM}, system, name="run")
    no_gpu = {"CUDA_VISIBLE_DEVICES": ""}
    for options, env, where in ((["-nb", "gpu"], None, "GPU"), (["-nb", "gpu", "-fmm", "auto"], None, "GPU"), ([], None, "GPU"),
                                (["-nb", "gpu", "-fmm", "gpu"], None, "GPU"), (["-nb", "gpu", "-fmm", "cpu"], None, "CPU"),
                                # as job scripts of PME have it
                                (["-nb", "gpu", "-pme", "gpu"], None, "GPU"), (["-nb", "gpu", "-pme", "gpu", "-pmefft", "gpu"], None, "GPU"),
                                (["-nb", "gpu", "-pme", "cpu"], None, "CPU"),
                                (["-nb", "cpu"], None, "CPU"), (["-nb", "cpu", "-fmm", "auto"], None, "CPU"), ([], no_gpu, "CPU")):
        what = " ".join(options) + (" no GPU visible" if env else "") or "no options"

        def one(c):
            gmx("mdrun", "-s", "run.tpr", "-deffnm", "run", "-ntmpi", "1", *options, folder=folder, env=env)
            log = read_log(folder, "run")
            c.that(fmm_on(log, where), f"{what}: FMM on the {where}: {' '.join(re.findall(r'precision on the .*', log))}")
        attempt(checks, what, one)

    # What is not given runs where it is fastest: all of a step on the GPU, unless a line of md.log says why not
    def by_default(c, what, settings, options, where, reason=None):
        gmx.grompp(folder, {**mdp, **FMM, **settings}, system, name="default")
        gmx("mdrun", "-s", "default.tpr", "-deffnm", "default", "-ntmpi", "1", *options, folder=folder)
        log = read_log(folder, "default")
        c.that(f"PP task will update and constrain coordinates on the {where}" in log, f"{what}, no -update: update on the {where}")
        if reason:
            c.that(reason in log, f"{what}: md.log says why: {reason}")
    attempt(checks, "-update auto", by_default, "no options", {}, [], "GPU")
    attempt(checks, "-update auto with the FMM on the CPU", by_default, "-fmm cpu", {}, ["-nb", "gpu", "-fmm", "cpu"],
            "CPU" if version(gmx) == "2022.5" else "GPU")
    attempt(checks, "-update auto with Nose-Hoover", by_default, "Nose-Hoover", dict(tcoupl="nose-hoover", tc_grps="System", tau_t=1, ref_t=300), [],
            "CPU", "Nose-Hoover temperature coupling is not supported")

    def refused(what, name, options, pattern, env=None):
        status, output = gmx.run(["mdrun", "-s", name + ".tpr", "-deffnm", name, "-ntmpi", "1", *options], folder, env=env)
        text = complaint(output) or " ".join(output.split())[-300:]
        checks.that(status != 0 and re.search(pattern, text) is not None, f"{what}: refused, and it says why (/{pattern}/): {text[:300]}")
    refused("-fmm gpu without a GPU", "run", GPU, r"GPU", no_gpu)
    refused("-fmm gpu -nb cpu", "run", ["-nb", "cpu", *GPU], r"(?i)fmm|nonbonded")
    refused("-fmm with a word it does not know", "run", ["-fmm", "tpu"], r"(?i)fmm|tpu")
    gmx.grompp(folder, {**mdp, **FMM, "fmm-boundary": "vacuum"}, system, name="vacuum")
    refused("vacuum boundary, -update gpu", "vacuum", ["-nb", "gpu", *GPU, "-update", "gpu"], r"vacuum")
    gmx.grompp(folder, changed(mdp, pbc="no", dispcorr="no", comm_mode="angular", **FMM), system, name="open")
    refused("pbc = no, -update gpu", "open", ["-nb", "gpu", "-update", "gpu"], r"pbc = no is not supported")
    vsites = regression("complex/nbnxn_vsite")
    gmx.grompp(folder, changed(without_output(vsites.mdp), nsteps=10, **FMM), vsites, name="vsite")
    refused("virtual sites, -update gpu", "vsite", ["-nb", "gpu", *GPU, "-update", "gpu"], r"Virtual sites are not supported")


# -------------------------------------------------------------------------------------------------------------------- devices

# Without Lennard-Jones, as GROMACS's kernels for pairs and for bonds on a GPU add forces in any order. Restraints keep hydrogens off oxygens.
BARE_WATER = """#include "oplsaa.ff/forcefield.itp"
[ atomtypes ]
 opls_116 OW 8 15.99940 -0.820 A 0 0
[ moleculetype ]
SOL 2
[ atoms ]
1 opls_116 1 SOL OW  1 -0.82
2 opls_117 1 SOL HW1 1  0.41
3 opls_117 1 SOL HW2 1  0.41
[ bonds ]
1 2 1 0.1 345000
1 3 1 0.1 345000
[ angles ]
2 1 3 1 109.47 383
[ position_restraints ]
1 1 1000000 1000000 1000000
2 1 100000 100000 100000
3 1 100000 100000 100000
[ system ]
water
[ molecules ]
SOL """


def bare_water(folder, copies):
    system = water(gmx, folder, copies)
    with open(system.top) as top:
        molecules = int(top.read().split()[-1])
    with open(system.top, "w") as top:
        top.write(f"{BARE_WATER}{molecules}\n")
    system.mdp = changed(system.mdp, dispcorr="no", constraints="none", dt=0.0005, nstcomm=0, comm_mode="None")
    return system


def used_gpus(log):
    """How many parts of the near field md.log names."""
    several = re.search(r"precision on the GPUs \(near field: (.*?); far field: .*?\)", log)
    return several.group(1).count(" on ") if several else int(fmm_on(log, "GPU"))


def devices(checks):
    """Several GPUs give the bits of one. Where there is one, it stands for all of them."""
    there = len(gpus())
    checks.that(True, f"{there} GPU{'s' if there > 1 else ''}: {', '.join(gpus())}; further ones of those below are parts of the same")
    with environment(GMX_FMM_SHARE_GPUS="1"):
        for method in ("fft", "rotation"):
            attempt(checks, f"GPUs, {method}", lambda c: same_forces(c, method))
        attempt(checks, "GPUs, NPT", same_run)
    attempt(checks, "GPUs, choice", choice_of_gpus)


def same_forces(checks, method):
    folder = work_folder("devices-" + method)
    system = bare_water(folder, (2, 3, 3))
    mdp = changed(system.mdp, nsteps=0, nstfout=1, nstenergy=1, nstcalcenergy=1, gen_vel="no", **FMM)
    gmx.grompp(folder, {**mdp, "fmm-m2l": method}, system, name="point")
    found = {}
    for number in (1, 2, 3, 8):
        gmx.mdrun(folder, *GPU, *alike(gmx), "-bonded", "cpu", "-fmmgpus", str(number), nb="gpu", name="point")
        used = used_gpus(read_log(folder, "point"))
        checks.that(used == number, f"{method}: -fmmgpus {number}: md.log names {used}")
        # The program that reads an .edr has 6 digits or more; bits are those of the forces
        found[number] = read_trr(folder + "/point.trr")[0].f, gmx.energies(folder, ["Potential", *PRESSURES], name="point")
    size = math.sqrt(sum(v * v for v in found[1][0]) / len(found[1][0]))
    checks.that(size > 100, f"{method}: forces of {size:.0f} kJ/mol/nm")
    for number in (2, 3, 8):
        checks.that(found[number] == found[1], f"{method}: forces, energy and pressure of {number} GPUs are those of one, to the bit")


def same_run(checks):
    """200 steps with pressure coupling, all on the GPU; and continued on another number of them."""
    folder = work_folder("devices-npt")
    system = bare_water(folder, (2, 2, 3))
    mdp = changed(without_output(system.mdp), nsteps=200, nstlist=50, nstxout=50, nstvout=50, nstfout=50, nstenergy=50, nstcalcenergy=10,
                  tcoupl="V-rescale", tc_grps="System", tau_t=0.5, ref_t=300, pcoupl="C-rescale", pcoupltype="semiisotropic", tau_p=2, nstpcouple=10,
                  nsttcouple=10, compressibility="1e-6 1e-6", ref_p="1 1", refcoord_scaling="all", gen_vel="yes", ld_seed=1, **FMM)
    gmx.grompp(folder, mdp, system, name="run")
    options = [*GPU, *alike(gmx), "-bonded", "cpu", "-update", "gpu"]

    def run(number, *more):
        gmx.mdrun(folder, *options, "-fmmgpus", str(number), *more, nb="gpu", name="run")
        return [(f.step, f.box, f.x, f.v, f.f) for f in read_trr(folder + "/run.trr")]
    one = run(1)
    again = run(1)
    boxes = {tuple(frame[1]) for frame in one}
    checks.that(len(one) == 5 and len(boxes) == 5, f"{len(one)} frames on one GPU, {len(boxes)} boxes")
    checks.that(again == one, "one GPU twice: the same frames, to the bit")
    for number in (2, 3):
        checks.that(run(number) == one, f"200 steps of NPT with -update gpu on {number} GPUs: the frames of one, to the bit")
    last = {}
    for first, second in ((1, 1), (1, 2), (2, 1), (2, 3)):
        run(first, "-nsteps", "100")
        shutil.copy(folder + "/run.cpt", folder + "/at100.cpt")
        gmx.mdrun(folder, *options, "-fmmgpus", str(second), "-cpi", "at100.cpt", "-noappend", nb="gpu", name="run")
        frame = read_trr(folder + "/run.part0002.trr")[-1]
        used = used_gpus(read_log(folder, "run.part0002"))
        last[first, second] = frame.step, frame.box, frame.x, frame.v, frame.f
        checks.that(used == second and frame.step == 200 and last[first, second] == last[1, 1],
                    f"100 steps on {first} and 100 more on {second}: step {frame.step} is that of one all along, to the bit")


def choice_of_gpus(checks):
    folder = work_folder("devices-choice")
    system = bare_water(folder, (2, 2, 2))
    gmx.grompp(folder, changed(without_output(system.mdp), nsteps=10, **FMM), system, name="run")
    there = len(gpus())
    alone = [["-gpu_id", "0"], ["-gputasks", "0"], ["-fmmgpus", "1"], *([["-reprod"]] if version(gmx) == "2022.5" else [])]
    for options, most in (([], there), *((options, 1) for options in alone)):
        gmx.mdrun(folder, *GPU, *options, nb="gpu", name="run")
        log, what = read_log(folder, "run"), " ".join(options) or "no options"
        told = re.search(r"FMM: a step of it takes (\S+) ms on one GPU and (\S+) ms on (\d+): (all are|one is) used", log)
        checks.that(1 <= used_gpus(log) <= most and (told is not None) == (most > 1), f"{what}: {used_gpus(log)} of {there} used"
                    f"{': ' + told.group(0) if told else ''}")
        if told:
            one, several = float(told.group(1)), float(told.group(2))
            # Times have three digits after the point in the log
            checks.that((used_gpus(log) > 1) == (told.group(4) == "all are") and (several < one + 0.001 or used_gpus(log) == 1), f"{what}: the faster is used")
    for options, pattern in ((["-fmmgpus", str(there + 1)], rf"mdrun may use {there} "), (["-gpu_id", "0", "-fmmgpus", "2"], r"mdrun may use 1 ")):
        status, output = gmx.run(["mdrun", "-s", "run.tpr", "-deffnm", "run", "-ntmpi", "1", "-nb", "gpu", *options], folder)
        text = complaint(output) or " ".join(output.split())[-300:]
        checks.that(status != 0 and re.search(pattern, text) is not None, f"{' '.join(options)}: refused (/{pattern}/): {text[:300]}")


# --------------------------------------------------------------------------------------------------------------------- graphs

def graphs(checks):
    """Whole steps as GPU graphs of mdrun's (GMX_CUDA_GRAPH): atoms move as without, and forces of the run's own frames are right."""
    if version(gmx) == "2022.5":
        print("SKIP graphs of whole steps: GROMACS 2022.5 has none")
        return
    for what, make, settings in (("water", lambda folder: water(gmx, folder, (2, 2, 3)), {}),
                                 ("octree", lambda folder: water(gmx, folder, (2, 2, 3)), {"fmm-m2l": "rotation"}),
                                 ("protein", lambda folder: amber_protein(gmx, folder), {}),
                                 ("Lennard-Jones of groups", lambda folder: charmm_water(gmx, folder, (2, 2, 3)), {"fmm-lj": "split"})):
        folder = work_folder("graphs-" + what.split()[0])

        def one(c):
            system = make(folder)
            # Steps 49 and 98 are between pair searches, with cells 15 and 14 steps old, of up to 20
            mdp = changed(without_output(system.mdp), nsteps=98, dt=0.002, nstlist=50, nstxout=49, nstvout=49, nstfout=49, nstenergy=50,
                          nstcalcenergy=50, ld_seed=1, tcoupl="no", **FMM)
            mdp.update(settings)
            gmx.grompp(folder, mdp, system, name="run")
            frames, energies = [], []
            for env in (None, {"GMX_CUDA_GRAPH": "1"}):
                gmx.mdrun(folder, *GPU, *alike(gmx), "-update", "gpu", "-nstlist", "50", nb="gpu", name="run", env=env)
                frames.append(read_trr(folder + "/run.trr"))
                energies.append(gmx.energies(folder, ["Total Energy"], name="run"))
            c.that(re.search(r"^ *MD Graph", read_log(folder, "run"), re.M) is not None, f"{what}: md.log counts graphs of whole steps")
            moved = rms_distance(frames[0][2].x, frames[0][0].x, frames[0][0].box)
            c.below(f"{what}: positions after 98 steps, in which the atoms moved by {moved:.3f} nm, RMS difference with graphs and without",
                    rms_distance(frames[1][2].x, frames[0][2].x, frames[0][0].box), 1e-3 * moved, "nm",
                    "rounding in another order, as pair kernels add; a step with other cells' forces is off by far more")
            change = abs(energies[1][-1]["Total Energy"] - energies[0][-1]["Total Energy"]) / abs(energies[0][-1]["Total Energy"])
            c.below(f"{what}: total energy, relative difference with graphs and without", change, 1e-5, "", "rounding")
            if "fmm-lj" not in settings:  # tight PME of own_frames() has other Lennard-Jones forces
                own_frames(c, what, folder, system, frames[1], [1, 2])
        attempt(checks, what, one)
    for kind, section in (("constant pressure", coupling), ("virial", virial)):
        with environment(GMX_CUDA_GRAPH="1"):
            print(f"      {kind}, with graphs of whole steps:")
            section(checks)


# ---------------------------------------------------------------------------------------------------------------------- drift

def equilibrated(folder, system):
    """The system after 5 ps with PME; a .trr's name."""
    mdp = changed(without_output(system.mdp), nsteps=2500, nstxout=2500, nstvout=2500, tcoupl="V-rescale", tc_grps="System", tau_t=0.2, ref_t=300,
                  rcoulomb=1.0, rvdw=1.0)
    gmx.grompp(folder, mdp, system, name="equilibration")
    gmx.mdrun(folder, "-update", "gpu", nb="gpu", name="equilibration")
    return "equilibration.trr"


def drift_of_both(checks):
    """100 ps at constant energy, all on the GPU, lists of 100 steps (which mdrun keeps without a thermostat), everything else by default."""
    folder = work_folder("drift")
    system = water(gmx, folder, (2, 2, 2))
    start = equilibrated(folder, system)
    mdp = changed(without_output(system.mdp), nsteps=50000, nstlist=100, rcoulomb=1.0, rvdw=1.0, gen_vel="no", continuation="yes", nstenergy=100,
                  nstcalcenergy=100)
    found = {}
    for name, settings, options in (("pme", {"coulombtype": "PME"}, ["-pme", "gpu", "-notunepme"]), ("fmm", FMM, GPU),
                                    ("octree", {**FMM, "fmm-m2l": "rotation"}, GPU), ("fine", {**FMM, "fmm-accuracy": "1e-5"}, GPU)):
        gmx.grompp(folder, {**mdp, **settings}, system, "-t", start, name=name)
        gmx.mdrun(folder, *options, "-update", "gpu", nb="gpu", name=name)
        rows = gmx.energies(folder, ["Total Energy"], name=name)
        checks.that(len(rows) == 501, f"{name}: 100 ps")
        found[name] = drift(rows, 5184)
    pme, pme_noise = found["pme"]
    for name, what in (("fmm", "fmm"), ("octree", "fmm by rotation"), ("fine", "fmm with an accuracy of 1e-5")):
        slope, noise = found[name]
        checks.below(f"drift per atom {slope:.2e} +- {noise:.1e} by {what}, {pme:.2e} +- {pme_noise:.1e} by PME; magnitude",
                     abs(slope), min(abs(pme) + 3 * math.hypot(pme_noise, noise), 2.5e-4), "kJ/mol/ps",
                     "PME's at its defaults plus what chance does in 299 of 300 runs, 0.1 kT per atom and ns at most; see nve_drift.py")
    # With a temperature to go by, lists are as short as they may be; they serve Lennard-Jones alone.
    for name, settings, options in (("pme", {"coulombtype": "PME"}, ["-pme", "gpu", "-notunepme"]), ("fmm", FMM, GPU)):
        gmx.grompp(folder, changed(mdp, gen_vel="yes", gen_temp=300, continuation="no", **settings), system, "-t", start, name="list")
        gmx.mdrun(folder, *options, "-update", "gpu", nb="gpu", name="list")
        found[name] = drift(gmx.energies(folder, ["Total Energy"], name="list"), 5184)
    (slope, noise), (pme, pme_noise) = found["fmm"], found["pme"]
    checks.below(f"drift per atom {pme:.2e} +- {pme_noise:.1e} by PME with a list for 300 K; magnitude", abs(pme), 0.005, "kJ/mol/ps",
                 "verlet-buffer-tolerance")
    checks.below(f"drift per atom {slope:.2e} +- {noise:.1e} by fmm with a list for 300 K; magnitude",
                 abs(slope), min(abs(pme) + 3 * math.hypot(pme_noise, noise), 2.5e-4), "kJ/mol/ps",
                 "PME's at its defaults plus what chance does in 299 of 300 runs, 0.1 kT per atom and ns at most")


def long(checks):
    """A million steps of 5184 atoms."""
    folder = work_folder("long")
    system = water(gmx, folder, (2, 2, 2))
    start = equilibrated(folder, system)
    mdp = changed(without_output(system.mdp), nsteps=1000000, nstlist=100, rcoulomb=1.0, rvdw=1.0, gen_vel="no", continuation="yes", nstenergy=1000,
                  nstcalcenergy=100, tcoupl="V-rescale", tc_grps="System", tau_t=1, ref_t=300, nsttcouple=100, **FMM)
    gmx.grompp(folder, mdp, system, "-t", start, name="run")
    gmx.mdrun(folder, *GPU, "-update", "gpu", "-nstlist", "100", nb="gpu", name="run")
    rows = gmx.energies(folder, ["Temperature", "Conserved En.", "Potential"], name="run")
    checks.that(len(rows) == 1001 and all(math.isfinite(r["Conserved En."]) for r in rows), "1,000,000 steps with -fmm gpu -update gpu")
    temperature = mean(r["Temperature"] for r in rows[100:])
    checks.below(f"temperature {temperature:.2f} K, off 300 K", abs(temperature - 300), 1.0, "K",
                 "5184 atoms fluctuate by 4 K, the mean of 2 ns by 0.1 K; half a percent is what the heat of list and cells may do")
    change = abs(rows[-1]["Conserved En."] - rows[0]["Conserved En."]) / 5184 / 2000
    checks.below("conserved energy drift per atom", change, 0.005, "kJ/mol/ps", "verlet-buffer-tolerance")


SECTIONS = {"forces": forces, "methods": methods, "measured": measured, "slabs": slabs, "runs": runs, "virial": virial, "coupling": coupling, "modes": modes, "choice": choice,
            "devices": devices, "graphs": graphs, "drift": drift_of_both, "long": long}


def test(checks):
    need_gpu(gmx)
    for name in sys.argv[1:] or [s for s in SECTIONS if s != "long"]:
        attempt(checks, name, SECTIONS[name])


main(test)
