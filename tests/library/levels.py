#!/usr/bin/env python3
"""The copies of the step for x86-64-v2, v3 and v4, as far as this processor has them: the same results to rounding, and
what GMXFMM_SIMD says that cannot be is refused.

Usage: levels.py PROGRAM DATA    DATA: the project's own reference systems
"""
import os
import re
import subprocess
import sys

PROGRAM, DATA = sys.argv[1:3]


def solve(level, system, *options):
    environment = dict(os.environ, GMXFMM_SIMD=level)
    command = [PROGRAM, "solve", os.path.join(DATA, f"own-{system}.txt.gz"), "--quiet", "--measure", "no", *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def values(text):
    found = dict(re.findall(r"^(\w+): (.*)$", text, re.M))
    return found, float(found["energy"]), float(found["force_error"])


def main():
    cases = [("melt_1331", "--m2l", "fft"), ("skewed_228", "--m2l", "fft"), ("melt_1331", "--m2l", "rotation"),
             ("melt_1331", "--m2l", "symmetric"), ("walls_800", "--m2l", "naive"), ("walls_800", "--method", "treecode"),
             ("walls_800", "--method", "treecode", "--kernel", "yukawa", "--kappa", "0.5")]
    automatic = values(solve("", "melt_1331").stdout)[0]["simd"]
    levels = [level for level in ("v2", "v3", "v4") if level <= automatic]
    failed = 0
    for case in cases:
        # over the energy, or where that cancels over one unit, charge^2 / distance, a particle: terms are some ten times as large
        for precision, rounding in (("double", 16 * 2.2e-16), ("single", 16 * 1.2e-7)):
            energies, errors = [], []
            for level in levels:
                done = solve(level, *case, "--precision", precision)
                if done.returncode != 0:
                    sys.exit(f"{level} {case}: {done.stderr}")
                told, energy, error = values(done.stdout)
                energies.append(energy)
                errors.append(error)
                failed += told["simd"] != level
            spread = (max(energies) - min(energies)) / max(int(told["particles"]), abs(energies[0]))
            good = spread < rounding and max(errors) - min(errors) < rounding
            failed += not good
            print("ok    " if good else "FAILED", *case, precision, f"energies differ by {spread:.1e}, errors from {min(errors):.3g} to {max(errors):.3g}")
    refused = [("v5", "v2, v3 or v4"), ("avx2", "v2, v3 or v4")] + [(level, "this processor") for level in ("v3", "v4") if level > automatic]
    for level, text in refused:
        done = solve(level, "melt_1331")
        good = done.returncode == 2 and text in done.stderr and level in done.stderr
        failed += not good
        print("ok    " if good else "FAILED", f"GMXFMM_SIMD={level} is refused: {done.stderr.strip()}")
    print(f"levels {', '.join(levels)}: {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
