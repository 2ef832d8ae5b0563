"""Dynamics of molten salt with ASE at constant energy: Coulomb by gmxfmm, and the repulsion of Fumi and Tosi (1964).

216 ions of NaCl at 1500 K, 100 steps of 2 fs. Dispersion is left out.
"""
import numpy as np
from ase import build, units
from ase.calculators.calculator import Calculator, all_changes
from ase.calculators.mixing import SumCalculator
from ase.md.verlet import VelocityVerlet

from gmxfmm.ase import Coulomb


class Repulsion(Calculator):
    """b c_ij exp((s_i + s_j - r) / rho) between nearest images."""

    implemented_properties = ["energy", "forces"]
    RHO, B = 0.317, 0.2110  # Angstrom, eV
    RADIUS = {"Na": 1.170, "Cl": 1.585}  # Angstrom

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        radius = np.array([self.RADIUS[name] for name in self.atoms.get_chemical_symbols()])
        sign = self.atoms.get_initial_charges()
        factor = 1 + 0.125 * (sign[:, None] + sign[None, :])  # Pauling's: 1.25 for ++, 1 for +-, 0.75 for --
        edges = self.atoms.cell.lengths()
        x = self.atoms.positions
        d = x[:, None] - x[None]
        d -= edges * np.round(d / edges)
        r = np.sqrt((d**2).sum(axis=2)) + np.diag(np.full(len(x), np.inf))
        pair = self.B * factor * np.exp((radius[:, None] + radius[None] - r) / self.RHO)
        self.results = {"energy": 0.5 * pair.sum(), "forces": np.einsum("ij,ijd->id", pair / (self.RHO * r), d)}


def main():
    atoms = build.bulk("NaCl", "rocksalt", a=6.2, cubic=True) * (3, 3, 3)
    atoms.set_initial_charges([1 if name == "Na" else -1 for name in atoms.get_chemical_symbols()])
    random = np.random.default_rng(1)
    atoms.rattle(0.2, rng=random)
    coulomb = Coulomb(accuracy=1e-5)
    atoms.calc = SumCalculator([coulomb, Repulsion()])
    velocities = random.normal(size=(len(atoms), 3)) * np.sqrt(1500 * units.kB / atoms.get_masses())[:, None]
    atoms.set_velocities(velocities - np.average(velocities, axis=0, weights=atoms.get_masses()))
    totals, potentials = [], []

    def note():
        potentials.append(atoms.get_potential_energy() / len(atoms))
        totals.append(potentials[-1] + atoms.get_kinetic_energy() / len(atoms))

    dynamics = VelocityVerlet(atoms, timestep=2 * units.fs)
    dynamics.attach(note)
    dynamics.run(100)
    print(f"{len(atoms)} ions, {atoms.get_temperature():.0f} K, relative error of Coulomb forces {coulomb.plan.measured_error:.1e}")
    print(f"potential energy: spread {1e3 * np.ptp(potentials):.1f} meV an ion")
    print(f"total energy: spread {1e3 * np.ptp(totals):.3f} meV an ion")


if __name__ == "__main__":
    main()
