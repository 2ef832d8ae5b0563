#!/usr/bin/env python3
"""energygrps: Coul-SR:A-B is the whole Coulomb energy between two groups, images included.

Reference: tight PME in double precision, of the same coordinates where only the charges of A, of B, or of both are there: the energy
between A and B is what both have more than each alone. Groups are ions with oxygens of some waters, the hydrogens of these, so that
excluded pairs lie between groups, and the other waters. Also in a run and its rerun, with a charge that is perturbed, with Lennard-Jones
of groups at their centres; energygrp-excl is refused.
"""
import collections
import itertools

from harness import FMM, TIGHT, Failure, System, changed, charmm_water, main, need, want, water, work_folder

gmx, gmx_d, stock_d = need("GMXFMM_GMX"), want("GMXFMM_GMX_D"), need("GMXFMM_STOCK_GMX_D", "gmx_d")

IONS, FIRST, ALL = 2, 40, 216
NAMES = ("Heavy", "Hydrogens", "Rest")
PAIRS = list(itertools.combinations_with_replacement(NAMES, 2))
TOP = """[ defaults ]
1 2 yes 1.0 1.0
[ atomtypes ]
OT 8 15.9994 0.0 A 0.3165492 0.650629
HT 1 1.0080 0.0 A 0.0 0.0
NA 11 22.98977 0.0 A 0.333045 0.0115980
"""
SETTLES = "[ settles ]\n1 1 0.1 0.1633"  # of one kind of molecule, GROMACS has it
CONSTRAINTS = "[ constraints ]\n1 2 1 0.1\n1 3 1 0.1\n2 3 1 0.1633"
MOLECULE = """[ moleculetype ]
{name} 2
[ atoms ]
1 OT 1 SOL OW 1 {oxygen} 15.9994
2 HT 1 SOL HW1 1 {hydrogen} 1.0080
3 HT 1 SOL HW2 1 {hydrogen} 1.0080
{rigid}
[ exclusions ]
1 2 3
2 1 3
3 1 2
"""


def topology(path, charged, sodium=1.0):
    """Charges of these groups alone."""
    q = {name: float(name in charged) for name in NAMES}
    with open(path, "w") as top:
        top.write(TOP + f"[ moleculetype ]\nNA 1\n[ atoms ]\n1 NA 1 NA NA 1 {sodium * q['Heavy']} 22.98977\n")
        top.write(MOLECULE.format(name="FIRST", rigid=CONSTRAINTS, oxygen=-0.82 * q["Heavy"], hydrogen=0.41 * q["Hydrogens"]))
        top.write(MOLECULE.format(name="SOL", rigid=SETTLES, oxygen=-0.82 * q["Rest"], hydrogen=0.41 * q["Rest"]))
        top.write(f"[ system ]\nwater\n[ molecules ]\nNA {IONS}\nFIRST {FIRST}\nSOL {ALL - IONS - FIRST}\n")


def write_index(path):
    last = IONS + 3 * FIRST
    heavy = [*range(1, IONS + 1), *range(IONS + 1, last, 3)]
    groups = {"Heavy": heavy, "Hydrogens": [a for a in range(1, last + 1) if a not in heavy], "Rest": range(last + 1, 3 * ALL - 2 * IONS + 1)}
    with open(path, "w") as index:
        index.write(f"[ System ]\n{' '.join(map(str, range(1, 3 * ALL - 2 * IONS + 1)))}\n")
        for name, atoms in groups.items():
            index.write(f"[ {name} ]\n{' '.join(map(str, atoms))}\n")


def coulomb(program, folder, system, settings, name):
    program.grompp(folder, changed(system.mdp, **settings), system, name=name)
    program.mdrun(folder, name=name)
    row = program.energies(folder, ["Coulomb (SR)", "Coul. recip."], name=name)[0]
    return row["Coulomb (SR)"] + row["Coul. recip."]


def by_pme(folder, system, sodium=1.0):
    """Energies of pairs of groups, by PME of subsets of charges."""
    of = {}
    for charged in [{name} for name in NAMES] + [set(pair) for pair in itertools.combinations(NAMES, 2)]:
        name = "-".join(sorted(charged)) + str(sodium)
        top = f"{folder}/{name}.top"
        topology(top, charged, sodium)
        of[frozenset(charged)] = coulomb(stock_d, folder, System("subset", system.conf, top, system.mdp, system.index), TIGHT, "pme-" + name)
    return {(a, b): of[frozenset({a})] if a == b else of[frozenset({a, b})] - of[frozenset({a})] - of[frozenset({b})] for a, b in PAIRS}


def terms(kind):
    return {pair: f"{kind}:{pair[0]}-{pair[1]}" for pair in PAIRS}


def rows_of(program, folder, name):
    """The energies of pairs of groups in an .edr file, a dict for each of its frames, with totals."""
    wanted = terms("Coul-SR")
    rows = program.energies(folder, [*wanted.values(), "Coul. recip.", "Coulomb (SR)", "Potential"], name=name)
    return [{**{pair: row[term] for pair, term in wanted.items()}, **{t: row[t] for t in ("Coul. recip.", "Coulomb (SR)", "Potential")}} for row in rows]


def check_pairs(checks, what, found, exact, limit, why):
    for pair in PAIRS:
        checks.below(f"{what}: {pair[0]} with {pair[1]}, {exact[pair]:.1f} kJ/mol", abs(found[pair] - exact[pair]), limit, "kJ/mol", why)
    checks.that(found["Coul. recip."] == 0, f"{what}: Coul. recip. is zero")


GROUPS = {"energygrps": " ".join(NAMES)}


def against_pme(checks, folder, system):
    exact = by_pme(folder, system)
    topology(system.top, NAMES)
    cases = [("mixed, default", gmx, {}, 0.1, "1e-5 of the largest energy, 9,000 kJ/mol: 4e-4 of the forces is less of the energy")]
    if gmx_d:
        cases.append(("double, 1e-6", gmx_d, {"fmm-accuracy": "1e-6"}, 0.01, "some 1e-7 of the largest"))
    for what, program, settings, limit, why in cases:
        name = what.split(",")[0]
        alone = coulomb(program, folder, system, {**FMM, **settings}, name + "-one")
        coulomb(program, folder, system, {**FMM, **settings, **GROUPS}, name)
        found = rows_of(program, folder, name)[0]
        check_pairs(checks, what, found, exact, limit, why)
        together = sum(found[pair] for pair in PAIRS)
        checks.below(f"{what}: sum of the groups and the total without groups", abs(together - alone), 2e-7 * abs(alone) + 1e-3, "kJ/mol",
                     "rounding of the terms in the file")


def in_any_order(checks, folder, system):
    """The energy between two groups is the same whichever of them is named first: that of one's charges in the other's potential, and reverse."""
    topology(system.top, NAMES)
    found = {}
    for order in (NAMES, NAMES[::-1]):
        name = "first-" + order[0]
        gmx.grompp(folder, changed(system.mdp, **FMM, energygrps=" ".join(order), fmm_measure="no"), system, name=name)
        gmx.mdrun(folder, name=name)
        pairs = [f"Coul-SR:{a}-{b}" for a, b in itertools.combinations_with_replacement(order, 2)]
        row = gmx.energies(folder, pairs, name=name)[0]
        found[order] = {frozenset(pair[8:].split("-")): row[pair] for pair in pairs}
    for pair, energy in found[NAMES].items():
        checks.below(f"{' with '.join(sorted(pair))}, {energy:.1f} kJ/mol, in either order", abs(energy - found[NAMES[::-1]][pair]), 2e-3, "kJ/mol",
                     "two units of the last digit of the largest")


def in_a_run(checks, folder, system):
    """Groups change nothing of the motion, a rerun has the energies of the run."""
    base = changed(system.mdp, nsteps=40, nstxout=20, nstvout=20, nstenergy=20, nstcalcenergy=20, nstlist=10, verlet_buffer_tolerance=-1, rlist="0.9",
                   rcoulomb="0.8", rvdw="0.8", pcoupl="C-rescale", tau_p=2, compressibility=4.5e-5, ref_p=1, tcoupl="V-rescale",
                   tc_grps="System", tau_t=0.5, ref_t=300, **FMM)
    totals = {}
    for name, settings in (("with", GROUPS), ("without", {})):
        gmx.grompp(folder, {**base, **settings}, system, name=name)
        gmx.mdrun(folder, "-reprod", name=name)
        totals[name] = [row["Total Energy"] for row in gmx.energies(folder, ["Total Energy"], name=name)]
    apart = max(abs(a - b) for a, b in zip(totals["with"], totals["without"]))
    checks.below("total energy of runs with groups and without", apart, 0.02, "kJ/mol", "rounding, of 8,000 kJ/mol, the same forces in every bit")
    gmx.grompp(folder, {**base, **GROUPS, "pcoupl": "no"}, system, name="again")
    gmx.mdrun(folder, "-rerun", "with.trr", name="again")
    first, second = rows_of(gmx, folder, "with"), rows_of(gmx, folder, "again")
    checks.that(len(first) == len(second) == 3, f"{len(second)} frames computed again of {len(first)}")
    for pair in PAIRS:
        worst = max(abs(a[pair] - b[pair]) for a, b in zip(first, second))
        checks.below(f"rerun: {pair[0]} with {pair[1]}", worst, 0.1, "kJ/mol", "1e-5 of the largest energy: atoms are sorted anew")


def perturbed(checks, folder, system):
    """The ions' charge at lambda = 0.3: energies go linearly between those of both states, as PME's do."""
    states = [by_pme(folder, system, sodium) for sodium in (1.0, 0.0)]
    exact = {pair: 0.7 * states[0][pair] + 0.3 * states[1][pair] for pair in PAIRS}
    topology(system.top, NAMES)
    program, accuracy, limit = (gmx_d, "1e-6", 0.01) if gmx_d else (gmx, "4e-4", 0.1)
    coulomb(program, folder, system, {**FMM, **GROUPS, "fmm-accuracy": accuracy, "free_energy": "yes", "couple_moltype": "NA", "couple_lambda0": "vdw-q",
                                      "couple_lambda1": "vdw", "coul_lambdas": "0.3", "vdw_lambdas": "0", "init_lambda_state": "0", "sc_alpha": "0",
                                      "couple_intramol": "yes"}, "perturbed")
    check_pairs(checks, "perturbed charge", rows_of(program, folder, "perturbed")[0], exact, limit, "as without perturbation")


def split(checks, folder):
    """Lennard-Jones energies of groups add up to that of one group, with the split and without; and both are alike."""
    system = charmm_water(gmx, folder, (2, 2, 2))
    system.index = folder + "/index.ndx"
    # Oxygens of some waters, their hydrogens, which count where their oxygens do, other waters, and a half of a water
    atoms, some = 3 * 8 * ALL, 3 * 500
    groups = {"System": range(1, atoms + 1), "A": range(1, some, 3), "B": [a for a in range(1, some + 1) if a % 3 != 1], "C": range(some + 1, 2 * some)}
    with open(system.index, "w") as index:
        for name, members in groups.items():
            index.write(f"[ {name} ]\n" + "\n".join(map(str, members)) + "\n")
    parts, one = {}, {}
    for energygrps in ("C", "A B C"):
        names = [*energygrps.split(), "rest"]
        pairs = [f"{a}-{b}" for a, b in itertools.combinations_with_replacement(names, 2)]
        # With this radius sites have nothing but constants; with that of grompp they have more
        for kind, settings in (("full", {}), ("equal", {"fmm-lj": "split", "fmm-lj-radius": "1.0"}), ("split", {"fmm-lj": "split"})):
            settings = changed(system.mdp, vdw_modifier="Force-switch", rvdw=1.0, rcoulomb=1.0, rvdw_switch=0.8, fmm_order=10, **{**FMM, **settings})
            gmx.grompp(folder, settings, system, name=kind + "-one")
            gmx.mdrun(folder, name=kind + "-one")
            one[kind] = gmx.energies(folder, ["LJ (SR)"], name=kind + "-one")[0]["LJ (SR)"]
            gmx.grompp(folder, {**settings, "energygrps": energygrps}, system, name=kind)
            gmx.mdrun(folder, name=kind)
            row = gmx.energies(folder, [f"LJ-SR:{pair}" for pair in pairs], name=kind)[0]
            parts[kind] = [row[f"LJ-SR:{pair}"] for pair in pairs]
            what = f"{kind}, groups {' '.join(names)}"
            checks.that(all(part != 0 for part in parts[kind]), f"{what}: {len(pairs)} energies of groups")
            checks.below(f"{what}: sum of Lennard-Jones energies of groups and that of one", abs(sum(parts[kind]) - one[kind]), 5e-5 * abs(one[kind]), "kJ/mol",
                         "kernels add up in single precision")
        worst = max(abs(a - b) for a, b in zip(parts["equal"], parts["full"]))
        checks.below(f"groups {' '.join(names)}: Lennard-Jones energies, with rvdw as the radius and without a split", worst, 1e-5 * abs(one["full"]), "kJ/mol", "rounding")
        # by groups of heavy atoms
        join = {"A": "A", "B": "A"}
        sums = {kind: collections.Counter() for kind in ("full", "split")}
        for kind in sums:
            for pair, energy in zip(pairs, parts[kind]):
                sums[kind]["-".join(sorted(join.get(name, name) for name in pair.split("-")))] += energy
        worst = max(abs(sums["full"][pair] - sums["split"][pair]) for pair in sums["full"])
        checks.below(f"groups {' '.join(names)}, of whole waters: Lennard-Jones energies, difference with the split", worst, 2e-4 * abs(one["full"]), "kJ/mol",
                     "what it changes of the total, a part of that of each group")


def refused(checks, folder, system):
    try:
        gmx.grompp(folder, changed(system.mdp, **FMM, **GROUPS, energygrp_excl="Rest Rest"), system, name="refused")
        checks.that(False, "energygrp-excl is refused")
    except Failure as failure:
        checks.that("energygrp-excl" in str(failure), "energygrp-excl is refused")


def test(checks):
    folder = work_folder()
    system = water(gmx, folder, sodium=IONS)
    system.index = folder + "/index.ndx"
    system.mdp = changed(system.mdp, dispcorr="no", nsteps=0, nstenergy=1, nstcalcenergy=1)
    write_index(system.index)
    topology(system.top, NAMES)
    against_pme(checks, folder, system)
    in_any_order(checks, folder, system)
    in_a_run(checks, folder, system)
    perturbed(checks, folder, system)
    split(checks, work_folder("split"))
    refused(checks, folder, system)


main(test)
