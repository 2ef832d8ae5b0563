# SPDX-License-Identifier: LGPL-2.1-or-later
"""Strong and weak scaling of the rows that benchmark-treecode_ranks prints."""


def add_scaling(rows):
    """Beside one rank at the same settings and on the same kind of device: the speedup with as many particles, and of as many a rank the time
    of one for an evaluation of the kernel over that of a rank among several."""
    for row in rows:
        ones = [r for r in rows if r["ranks"] == 1 and
                all(r.get(key) == row.get(key) for key in ("device", "kernel", "traversal", "precision", "field", "theta", "degree", "leaf"))]
        alone = next((r for r in ones if r["particles"] == row["particles"]), None)
        same = next((r for r in ones if r["particles"] * row["ranks"] == row["particles"]), None)
        if alone and row["ranks"] > 1:
            row["speedup"] = round(alone["seconds"] / row["seconds"], 3)
        if same and row["ranks"] > 1:
            row["weak_efficiency"] = round(same["ns_per_pair"] / row["ns_per_pair"], 3)
