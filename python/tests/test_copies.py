# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is copied, stored and sent to other processes: errors, plans, batches, calculators, results."""
import multiprocessing
import pickle
import unittest

import gmxfmm
from systems import rock_salt


def energy(box):
    x, q = rock_salt(4)
    return gmxfmm.solve(x, q, box, measure=False, num_threads=1).energy


class Errors(unittest.TestCase):
    def test_are_stored(self):
        with self.assertRaises(gmxfmm.Error) as caught:
            energy(-4)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertIs(type(again), gmxfmm.Error)
        self.assertEqual((str(again), again.status, again.argument), (str(caught.exception), "GMXFMM_ERROR_BOX", "box"))

    def test_of_a_worker_reach_its_parent(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assertEqual(pool.map_async(energy, [4]).get(60), [energy(4)])
            with self.assertRaisesRegex(gmxfmm.Error, "box") as caught:
                pool.map_async(energy, [4, -4]).get(60)  # an error that cannot be read would never come: 60 s
            self.assertEqual(caught.exception.argument, "box")


if __name__ == "__main__":
    unittest.main()
