# SPDX-License-Identifier: LGPL-2.1-or-later
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ._inputs import BoxLike
from ._options import Options, Precision
from ._plan import Plan
from ._results import Out, Result

if TYPE_CHECKING:
    from typing_extensions import Unpack


def solve(positions: Any, charges: Any, box: BoxLike = None, *, widths: Any = None, exclusions: Any = None, targets: Any = None,
          virial: bool = False, precision: Optional[Precision] = None, measure: bool = True, out: Out = None, **options: Unpack[Options]) -> Result:
    """Energy, forces, potential and field of point charges.

    positions   (n, 3), any length unit: numpy, lists; arrays of a device of PyTorch, CuPy, JAX or with DLPack
    charges     (n), any unit of charge
    box         None: an open system; a length: a cube; three: a brick; (3, 3): its vectors in rows
    periodic    three flags, as of ASE: along which box vectors there are images. Two of them: a slab, open along the normal of
                their plane. One: a wire (FMM on the CPU). Left out: along all
    widths      (n), standard deviations of Gaussian charges; None: points. The energy has nothing of a Gaussian with itself
    exclusions  pairs of particles that do not interact, integers (m, 2)
    targets     (m, 3): potential and field are computed there, and not at the charges; no forces, no energy
    virial      True: also the virial. method="auto" then means the FMM
    precision   "single" or "double"; None: that of the positions' type, which is the type of the results, too
    measure     True: errors are measured on this system, in some ten times the time of the solve itself. Open systems of
                5,000 charges or more take less than three times a solve without measuring. Errors choose the automatic
                options. With order, grid or depth given and no accuracy, these are measured as they are.
                False: a model of liquids chooses, which in crystals may be wrong by a thousand times
    out         a dictionary with arrays to write to, by the names forces, potential and field
    options     members of gmxfmm_options (docs/python.md, gmxfmm help), choices by their names: accuracy, m2l, boundary, device,
                prefactor, ...; for the treecode method="treecode", kernel="yukawa", kappa, theta, degree, ...
                Leave numbers out that the library is to choose, or give -1. Here reproducible is 1 by default, as one solve
                is not worth timing FFT plans. With method="auto" it is 0, as times decide.

    Potentials are prefactor * sum q / r. What is wrong raises Error, which names the argument and the cause. An accuracy that no
    settings reach does so, too. Take Plan for many systems of one kind.
    """
    if virial and options.get("method") == "auto":
        options["method"] = "fmm"  # the treecode has no virial
    options.setdefault("reproducible", 0 if options.get("method") == "auto" else 1)
    with Plan(positions, charges, box, widths=widths, exclusions=exclusions, targets=targets, precision=precision, measure=measure, **options) as plan:
        # the plan has just been assigned
        step = plan.step(positions, out, potential=True, field=True, virial=virial, assign=False)
        step.check()
        return Result(step, plan.info, plan.measured_error)
