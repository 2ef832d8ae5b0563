# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of other programs, through ASE."""
import os
import tempfile
import unittest

import numpy as np

import gmxfmm

try:
    import ase.build
    import ase.io
except ImportError:
    ase = None


@unittest.skipIf(ase is None, "ASE is not installed")
class Files(unittest.TestCase):
    CHARGES = {"Na": 1, "Cl": -1}

    def setUp(self):
        self.atoms = ase.build.bulk("NaCl", "rocksalt", 5.64, cubic=True)
        self.atoms.rattle(0.1, seed=1)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, atoms=None, **options):
        path = os.path.join(self.folder, name)
        ase.io.write(path, self.atoms if atoms is None else atoms, **options)
        return path

    def test_of_each_format_give_the_same_energy(self):
        q = np.array([self.CHARGES[s] for s in self.atoms.get_chemical_symbols()], dtype=float)
        energy = gmxfmm.solve(self.atoms.positions, q, np.array(self.atoms.cell), accuracy=1e-6).energy
        self.atoms.set_initial_charges(q)
        # .gro has nm with three digits
        for path, charges, tolerance in ((self.write("POSCAR"), self.CHARGES, 1e-6), (self.write("salt.cif"), self.CHARGES, 1e-4),
                                         (self.write("salt.gro"), q, 5e-3), (self.write("salt.xyz"), None, 1e-6),
                                         (self.write("salt.data", format="lammps-data", atom_style="charge"), None, 1e-6)):
            with self.subTest(path=path):
                form = "lammps-data" if path.endswith(".data") else None
                options = {} if form is None else {"format": form}
                s = gmxfmm.read(path, charges, **options)
                self.assertEqual(s.periodic, (1, 1, 1))
                found = gmxfmm.solve(*s[:3], accuracy=1e-6).energy
                self.assertLess(abs(found - energy), tolerance * abs(energy))

    def test_of_a_trajectory_come_one_after_the_other(self):
        others = []
        for k in range(3):
            others.append(self.atoms.copy())
            others[-1].set_pbc(False)
            others[-1].set_initial_charges([1, -1] * 4)
            others[-1].positions *= 1 + 0.1 * k
        path = self.write("run.xyz", others)
        found = list(gmxfmm.frames(path))
        self.assertEqual(len(found), 3)
        for atoms, s in zip(others, found):
            np.testing.assert_allclose(s.positions, atoms.positions, atol=1e-7)
            np.testing.assert_array_equal(s.charges, [1, -1] * 4)
            self.assertIsNone(s.box)
        np.testing.assert_array_equal(gmxfmm.read(path).positions, found[-1].positions)

    def test_that_lack_something_say_what(self):
        path = self.write("POSCAR")
        for charges, word in ((None, "has none"), ({"Na": 1}, "Cl"), ([1, 2], "8 atoms")):
            with self.assertRaisesRegex(gmxfmm.Error, word):
                gmxfmm.read(path, charges)
        odd = os.path.join(self.folder, "odd.zzz")
        with open(odd, "w", encoding="ascii") as out:
            out.write("nothing\n")
        with self.assertRaisesRegex(gmxfmm.Error, "format"):
            gmxfmm.read(odd)


if __name__ == "__main__":
    unittest.main()
