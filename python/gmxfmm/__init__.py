# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies, forces and potentials of point charges by the fast multipole method (and Yukawa's by a treecode)."""
from ._library import Error, version
from ._solve import Result, solve

__all__ = ["Error", "Result", "solve", "version"]
__version__ = version()
