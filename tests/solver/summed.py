"""Rows as sums of squares, for tests that have no faults."""

import numpy as np

from afterslip_solver.inversion.normal import Quadratic


def groups_of(design, data, dataset):
    """Sum up rows with errors of variance one by data set."""
    found = []
    for k in range(int(np.max(dataset)) + 1):
        part, right = design[dataset == k], data[dataset == k]
        found.append(
            Quadratic(part.T @ part, part.T @ right, float(right @ right), len(right))
        )
    return tuple(found)
