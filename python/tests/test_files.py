# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that numpy and ASE write, read by the program gmxfmm, and the program's files, read by them."""
import os
import re
import subprocess
import tempfile
import unittest

import numpy as np

import gmxfmm
from systems import melt

try:
    import ase
except ImportError:
    ase = None
else:
    import ase.io

PROGRAM = os.environ.get("GMXFMM_PROGRAM")
EDGE = 6.0
# A file of ASE has eight decimals of positions some tens apart: forces change by 1e-8 of themselves, energies by less.
ROUNDED = 1e-7


@unittest.skipIf(PROGRAM is None, "GMXFMM_PROGRAM does not name the program")
class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.x, self.q = melt(6)
        self.exact = gmxfmm.solve(self.x, self.q, EDGE, accuracy=1e-9)

    def path(self, name):
        return os.path.join(self.folder, name)

    def energy(self, name, *more):
        done = subprocess.run([PROGRAM, "solve", self.path(name), "--accuracy", "1e-9", *more], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return float(re.search("^energy: (.*)$", done.stdout, re.M)[1])

    def hold(self, name, *more, to=1e-9):
        self.assertAlmostEqual(self.energy(name, *more) / self.exact.energy, 1, delta=to)


class OfNumpy(Program):
    def test_arrays_of_every_order_and_type(self):
        rows = np.column_stack([self.x, self.q])
        box = ("--box", str(EDGE))
        np.save(self.path("rows.npy"), rows)
        self.hold("rows.npy", *box)
        np.save(self.path("columns.npy"), np.asfortranarray(rows))
        self.hold("columns.npy", *box)
        np.save(self.path("swapped.npy"), rows.astype(rows.dtype.newbyteorder()))
        self.hold("swapped.npy", *box)
        np.save(self.path("floats.npy"), rows.astype(np.float32))
        self.hold("floats.npy", *box, to=1e-6)  # positions have seven digits

    def test_text(self):
        rows = np.column_stack([self.x, self.q])
        np.savetxt(self.path("rows.txt"), rows, header=f"box: {EDGE} 0 0 0 {EDGE} 0 0 0 {EDGE}")
        self.hold("rows.txt")
        np.savetxt(self.path("rows.txt.gz"), rows)
        self.hold("rows.txt.gz", "--box", str(EDGE))

    def test_reads_what_the_program_writes(self):
        np.save(self.path("rows.npy"), np.column_stack([self.x, self.q]))
        self.energy("rows.npy", "--box", str(EDGE), "--output", self.path("out.npy"))
        out = np.load(self.path("out.npy"))
        np.testing.assert_array_equal(out[:, :3], self.x)
        np.testing.assert_allclose(out[:, 4], self.exact.potential, rtol=0, atol=1e-7)
        np.testing.assert_allclose(out[:, 5:], self.exact.field, rtol=0, atol=1e-7)
        self.energy("rows.npy", "--box", str(EDGE), "--output", self.path("out.txt"))
        np.testing.assert_array_equal(np.loadtxt(self.path("out.txt"))[:, :4], out[:, :4])


@unittest.skipIf(ase is None, "there is no ASE here")
class OfAse(Program):
    def atoms(self):
        names = np.where(self.q > 0, "Na", "Cl")
        return ase.Atoms(list(names), positions=self.x, cell=[EDGE] * 3, pbc=True, charges=self.q)

    def test_extended_xyz(self):
        atoms = self.atoms()
        for name in ("atoms.xyz", "atoms.xyz.gz", "atoms.extxyz"):
            ase.io.write(self.path(name), atoms, format="extxyz")
        self.hold("atoms.xyz", to=ROUNDED)
        self.hold("atoms.xyz.gz", to=ROUNDED)
        self.hold("atoms.extxyz", to=ROUNDED)

    def test_an_open_system(self):
        atoms = self.atoms()
        atoms.pbc = False
        ase.io.write(self.path("open.xyz"), atoms)
        open_energy = gmxfmm.solve(self.x, self.q, accuracy=1e-9).energy
        self.assertAlmostEqual(self.energy("open.xyz") / open_energy, 1, delta=ROUNDED)

    def test_a_slab(self):
        atoms = self.atoms()
        atoms.pbc = (True, False, True)
        ase.io.write(self.path("slab.xyz"), atoms)
        energy = gmxfmm.solve(self.x, self.q, EDGE, periodic=(1, 0, 1), accuracy=1e-9).energy
        self.assertAlmostEqual(self.energy("slab.xyz") / energy, 1, delta=ROUNDED)

    def test_a_wire(self):
        atoms = self.atoms()
        atoms.pbc = (True, False, False)
        ase.io.write(self.path("wire.xyz"), atoms)
        energy = gmxfmm.solve(self.x, self.q, EDGE, periodic=(1, 0, 0), accuracy=1e-9).energy
        self.assertAlmostEqual(self.energy("wire.xyz") / energy, 1, delta=ROUNDED)

    def test_reads_what_the_program_writes(self):
        ase.io.write(self.path("atoms.xyz"), self.atoms())
        energy = self.energy("atoms.xyz", "--output", self.path("out.xyz"))
        atoms = ase.io.read(self.path("out.xyz"))
        np.testing.assert_allclose(atoms.positions, self.x, rtol=0, atol=1e-8)
        self.assertTrue(all(atoms.pbc))
        self.assertAlmostEqual(atoms.get_potential_energy(), energy, delta=1e-12 * abs(energy))
        np.testing.assert_allclose(atoms.get_forces(), self.exact.forces, rtol=0, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
