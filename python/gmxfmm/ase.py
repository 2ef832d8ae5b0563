# SPDX-License-Identifier: LGPL-2.1-or-later
"""A calculator of ASE: the Coulomb energy of the charges of the atoms, in eV, with lengths in Angstrom."""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import numpy as np
from ase import Atoms, units
from ase.calculators.calculator import Calculator, all_changes
from ase.stress import full_3x3_to_voigt_6_stress

from ._inputs import check_options, refuse
from ._options import KeptOptions
from ._plan import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Coulomb"]

_ARGUMENTS = {"charges", "exclusions", "widths", "measure", "assign_every"}  # not the library's options


class Coulomb(Calculator):
    """Energy (eV), forces (eV/Angstrom), stress (eV/Angstrom^3, in ASE's order), and potential (V) at the atoms.

    charges   None: the initial charges of the atoms (e); or an array (n)
    options   of Plan: accuracy, measure, precision, exclusions, assign_every, device, ... The prefactor, 14.3996 eV Angstrom / e^2,
              may be divided by a relative permittivity

    Atoms that are periodic in all directions have conducting surroundings. Those in two are a slab, open along the normal of the
    two vectors. Those in one are a wire (FMM on the CPU). Other vectors do not matter. Those in none are an open system, which has
    no stress. The stress of a slab or a wire is by the volume of the cell. A plan is kept as long as the number of atoms and pbc
    stay, and is measured when it is made. There is no short-ranged repulsion: without one ions of opposite charge fall together
    (ase.calculators.mixing.SumCalculator).
    """

    implemented_properties: List[str] = ["energy", "free_energy", "forces", "stress", "potential"]
    default_parameters: Dict[str, Any] = {"charges": None, "prefactor": units.Hartree * units.Bohr}

    def __init__(self, charges: Any = None, **options: Unpack[KeptOptions]) -> None:
        super().__init__()
        self._plan: Optional[Plan] = None
        self._charges: Optional[np.ndarray] = None
        self._periodic: Tuple[int, ...] = ()
        self.set(charges=charges, **options)

    def set(self, **changes: Any) -> Dict[str, Any]:
        """Sets other charges or options, from the next energy on. Other options make a new plan. Gives what has changed."""
        if "periodic" in changes:
            raise refuse("periodic", "it is the pbc of the atoms: leave it out")
        check_options({name: value for name, value in changes.items() if name not in _ARGUMENTS})
        changed = super().set(**copy.deepcopy(changes))
        if set(changed) - {"charges"}:
            self.close()
        if changed:
            self.reset()
        return changed

    @property
    def plan(self) -> Optional[Plan]:
        """The plan of the atoms that were computed last."""
        return self._plan

    def _follow(self, atoms: Atoms) -> Plan:
        """The plan, with the cell and the charges of these atoms."""
        x = atoms.get_positions()
        given = dict(self.parameters)
        charges = given.pop("charges")
        charges = atoms.get_initial_charges() if charges is None else np.asarray(charges, dtype=float)
        if not charges.any():
            raise refuse("charges", "all are zero: give the atoms initial charges, or the calculator charges")
        box = np.array(atoms.cell) if atoms.pbc.any() else None
        periodic = (*(int(flag) for flag in atoms.pbc),)
        plan = self._plan
        if plan is None or len(plan) != len(atoms) or self._periodic != periodic:
            self.close()
            self._plan = plan = Plan(x, charges, box, **dict(given, periodic=periodic))
            self._periodic = periodic
        else:
            is_other = box is not None and plan.box is not None and not np.array_equal(box, plan.box)
            if self._charges is None or not np.array_equal(charges, self._charges):
                plan.set_charges(charges, x, box=box if is_other else None)  # at once: x is in this box
            elif is_other:
                plan.set_box(box, x)
        self._charges = charges.copy()
        return plan

    def calculate(self, atoms: Optional[Atoms] = None, properties: Any = ("energy",), system_changes: Any = all_changes) -> None:
        super().calculate(atoms, properties, system_changes)
        plan = self._follow(self.atoms)
        wants_stress = "stress" in properties and plan.box is not None and self.atoms.cell.rank == 3
        step = plan.step(self.atoms.get_positions(), potential="potential" in properties, virial=wants_stress)
        self.results = {"energy": step.energy, "free_energy": step.energy, "forces": np.asarray(step.forces, dtype=float)}
        if step.potential is not None:
            self.results["potential"] = np.asarray(step.potential, dtype=float)
        if wants_stress:  # the derivative of the energy by a strain, over the volume
            self.results["stress"] = full_3x3_to_voigt_6_stress(2 * step.virial / self.atoms.get_volume())

    def close(self) -> None:
        """Gives the plan's memory back."""
        if self._plan is not None:
            self._plan.close()
            self._plan = None
