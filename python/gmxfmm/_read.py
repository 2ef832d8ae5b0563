# SPDX-License-Identifier: LGPL-2.1-or-later
"""Structures from files of other programs, through ASE."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from ._inputs import refuse

if TYPE_CHECKING:
    from ase import Atoms


class Structure(NamedTuple):
    """What solve, Plan and Batch take: `gmxfmm.solve(*structure[:3])`, and `periodic=structure.periodic` where pbc is mixed."""

    positions: np.ndarray  # (n, 3), Angstrom
    charges: np.ndarray  # (n), e
    box: Optional[np.ndarray]  # (3, 3), vectors in rows; None: open
    periodic: Tuple[int, int, int]
    symbols: Tuple[str, ...]


def read(path: Any, charges: Any = None, *, format: Optional[str] = None) -> Structure:
    """The last structure of a file that ASE reads: POSCAR, LAMMPS data, .gro, .cif, .xyz and many more.

    charges  None: the file's; (n); or a charge for each element, as {"Na": 1, "Cl": -1}
    format   ASE's name of the format, where the name of the file does not say it ("lammps-data", say)
    """
    try:
        return list(frames(path, charges, format=format, index="-1"))[0]
    except IndexError:
        raise refuse("path", f"{path} has no structure") from None


def frames(path: Any, charges: Any = None, *, format: Optional[str] = None, index: str = ":") -> Iterator[Structure]:
    """The structures of a trajectory, one after the other; index: which, as of a slice."""
    try:
        from ase.io import iread
        from ase.io.formats import UnknownFileTypeError
    except ImportError:
        raise refuse("path", "files are read through ASE, which is not installed: pip install ase") from None
    try:
        for atoms in iread(path, index=index, format=format):
            yield _structure(atoms, path, charges)
    except UnknownFileTypeError as error:
        raise refuse("path", f"ASE does not know the format of {path} ({error}): give its name as format") from None


def _structure(atoms: "Atoms", path: Any, charges: Any) -> Structure:
    symbols = tuple(atoms.get_chemical_symbols())
    if charges is None:
        found = [name for name in ("initial_charges", "charge", "charges", "q", "mmcharges") if name in atoms.arrays]
        q = np.asarray(atoms.arrays[found[0]], dtype=float) if found else np.empty(0)
        if not found:
            raise refuse("charges", f"{path} has none: give one of each element, as {{'Na': 1, 'Cl': -1}}, or of each atom")
    elif isinstance(charges, Mapping):
        missing = sorted(set(symbols) - set(charges))
        if missing:
            raise refuse("charges", f"there is none for {', '.join(missing)}")
        q = np.array([charges[symbol] for symbol in symbols], dtype=float)
    else:
        q = np.asarray(charges, dtype=float)
        if q.shape != (len(atoms),):
            raise refuse("charges", f"they have the shape {q.shape}, there are {len(atoms)} atoms")
    pbc = atoms.pbc
    periodic = (int(pbc[0]), int(pbc[1]), int(pbc[2]))
    return Structure(atoms.get_positions(), np.asarray(q, dtype=float), np.array(atoms.cell) if any(periodic) else None, periodic, symbols)
