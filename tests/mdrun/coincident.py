#!/usr/bin/env python3
"""Two atoms at one place: a minimisation moves them apart, as with PME; a run is refused and names both.

coincident.py [gpu]      gpu: with the FMM and pair interactions there

GROMACS's pair kernels take 6.2e-4 nm for a smaller distance. So does the FMM in minimisations: the energy of such a start is PME's.
"""
import re
import sys

from harness import FMM, TIGHT_MIXED, System, changed, main, need, need_gpu, water, work_folder

gmx = need("GMXFMM_GMX")
DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"


def coincident(folder):
    """Water whose second molecule is moved so that one of its hydrogens is at one of the first molecule's."""
    system = water(gmx, folder)
    with open(system.conf) as conf:
        lines = conf.read().splitlines()
    place = lambda line: [float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)]
    moved = [a - b for a, b in zip(place(lines[3]), place(lines[6]))]
    for i in range(5, 8):
        lines[i] = lines[i][:20] + "".join(f"{x + m:8.3f}" for x, m in zip(place(lines[i]), moved)) + lines[i][44:]
    with open(system.conf, "w") as conf:
        conf.write("\n".join(lines) + "\n")
    assert place(lines[3]) == place(lines[6])
    system.mdp = changed(system.mdp, define="-DFLEXIBLE", constraints="none", gen_vel="no", rvdw=0.8, rcoulomb=0.8, nstenergy=1, nstcalcenergy=1)
    return system


def apart(conf):
    """The least distance of hydrogens of the first two molecules, nm."""
    with open(conf) as lines:
        lines = lines.read().splitlines()
    x = [[float(line[20 + 8 * d:28 + 8 * d]) for d in range(3)] for line in lines[2:8]]
    edge = float(lines[-1].split()[0])
    return min(sum((a - b - edge * round((a - b) / edge)) ** 2 for a, b in zip(x[i], x[j])) ** 0.5 for i in (1, 2) for j in (4, 5))


def minimised(folder, system, name, extra):
    """The energies along a minimisation."""
    gmx.grompp(folder, changed({**system.mdp, **extra}, nsteps=50, emtol=10, emstep=0.005), system, name=name)
    gmx.mdrun(folder, name=name, nb="cpu" if name == "pme" else DEVICE)
    return [row["Potential"] for row in gmx.energies(folder, ["Potential"], name=name)]


def minimisations(checks, folder, system):
    pme = minimised(folder, system, "pme", {**TIGHT_MIXED, "rcoulomb": "0.8", "fourierspacing": "0.05", "integrator": "steep"})
    for name, extra in (("steep", {}), ("cg", {"integrator": "cg"}), ("l-bfgs", {"integrator": "l-bfgs"}), ("rotation", {"fmm-m2l": "rotation"}),
                        ("unmeasured", {"fmm-measure": "no"})):
        energies = minimised(folder, system, name, {**FMM, "integrator": "steep", **extra})
        checks.below(f"{name}: energy of the start {energies[0]:.2f} kJ/mol, {pme[0]:.2f} by tight PME, difference", abs(energies[0] - pme[0]), 0.5,
                     "kJ/mol", "that of two charges so near is 38,000")
        # The pair has no force until it is 6.2e-4 nm apart, and a large one then: the line searches of cg end there at machine precision.
        checks.that(energies[-1] < energies[0] - 3e4 and (name == "cg" or apart(f"{folder}/{name}.gro") > 0.05),
                    f"{name}: after it {energies[-1]:.1f} kJ/mol, hydrogens {apart(f'{folder}/{name}.gro'):.3f} nm apart"
                    + f" (PME by steep: {pme[-1]:.1f}, {apart(f'{folder}/pme.gro'):.3f})")
    relaxed = System("relaxed", f"{folder}/steep.gro", system.top, system.mdp)
    gmx.grompp(folder, changed({**system.mdp, **FMM}, nsteps=10, dt=0.0002), relaxed, name="relaxed")
    gmx.mdrun(folder, name="relaxed", nb=DEVICE)
    checks.that(len(gmx.energies(folder, ["Potential"], name="relaxed")) == 11, "a run goes on from there")


def ions(folder):
    """Two ions at one place."""
    system = water(gmx, folder, sodium=2)
    with open(system.conf) as conf:
        lines = conf.readlines()
    lines[3] = lines[3][:20] + lines[2][20:44] + lines[3][44:]
    with open(system.conf, "w") as conf:
        conf.writelines(lines)
    system.mdp = changed(system.mdp, rvdw=0.8, rcoulomb=0.8)
    return system


def refused(checks, folder, system, names):
    """Found by measuring before the first step, or in that; in a box and in an open system."""
    names += " stand at one place.*Minimise"
    for what, extra, options in (("measured", {}, []), ("not measured", {}, ["-notunefmm"]), ("open", {"pbc": "no", "dispcorr": "no"}, []),
                                 ("octree", {"fmm-m2l": "rotation"}, ["-notunefmm"]), ("velocity Verlet", {"integrator": "md-vv"}, [])):
        gmx.grompp(folder, changed({**system.mdp, **FMM, **extra}, nsteps=10), system, name="refused")
        status, output = gmx.run(["mdrun", "-s", "refused.tpr", "-deffnm", "refused", "-ntmpi", "1", "-nb", DEVICE, *options], folder)
        text = " ".join(output.split())
        # A step on a GPU does not tell which
        found = re.search(names if DEVICE == "cpu" or not options else r"two atoms stand at one place \(mdrun -fmm cpu names them\)", text)
        checks.that(status != 0 and found is not None, f"a run is refused ({what}): {found[0] if found else text[-500:]}")


def test(checks):
    if DEVICE == "gpu":
        need_gpu(gmx)
    folder = work_folder()
    system = coincident(folder)
    minimisations(checks, folder, system)
    refused(checks, folder, system, r"atom 2 \(HW1 of SOL 1\) and atom 5 \(HW1 of SOL 2\)")
    folder = work_folder("ions")
    refused(checks, folder, ions(folder), r"atom 1 \(NA of NA 1\) and atom 2 \(NA of NA 2\)")


main(test)
