# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies, forces and potentials of point charges by the fast multipole method, and Yukawa's by a treecode.

solve     one system, once
Plan      a system that is stepped: charges, box and cells are kept
Batch     many systems in one call
qeq       charges of the least energy
induce    induced dipoles of the least energy
read      positions, charges and box of a file, through ASE; frames: of a trajectory
gmxfmm.ase, gmxfmm.torch, gmxfmm.jax
          a calculator of ASE, differentiable energies of PyTorch and JAX; import them by name
"""
from ._batch import Batch, BatchStep
from ._induce import Induced, induce
from ._inputs import Info, Measured, check_device
from ._library import Error, version
from ._plan import Plan
from ._qeq import Equilibrium, qeq
from ._read import Structure, frames, read
from ._results import Result, Step
from ._solve import solve

__all__ = ["Batch", "BatchStep", "Equilibrium", "Error", "Induced", "Info", "Measured", "Plan", "Result", "Step", "Structure", "check_device", "frames", "induce", "qeq", "read", "solve", "version"]
__version__ = version()
