"""Roughness of slip on the source grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip_solver.inversion.regularisers.protocol import SourceGrid
from afterslip_solver.model import Float


@dataclass(frozen=True, slots=True)
class Laplacian:
    """Squared Laplacian of slip.

    Yabuki & Matsu'ura 1992, Geophys. J. Int. 109, 363.
    """

    def precision(self, sources: SourceGrid) -> Float:
        """(n_par, n_par) float64, the Laplacian's transpose times itself.

        Positive definite as long as one edge of every fault is buried.
        """
        matrix = laplacian(sources)
        return np.asarray(matrix.T @ matrix)


def laplacian(sources: SourceGrid) -> Float:
    """Five-point Laplacian of each component on each fault.

    Beyond a buried edge (and a hole in the grid) slip is zero, so slip that ends
    there counts as rough. Beyond an open top edge slip continues with the value of
    the edge (natural condition), so slip may be largest at the trench at no cost.

    Weights are 1/h^2 of each direction divided by their mean, so the matrix has no
    unit and equals the usual one on squares.

    Returns
    -------
    (n_par, n_par) float64, positive on the diagonal.
    """
    place = {tuple(cell): k for k, cell in enumerate(sources.place.tolist())}
    matrix = np.zeros((len(sources.place), len(sources.place)))
    for k, (fault, component, i, j) in enumerate(sources.place.tolist()):
        inverse = 1.0 / sources.spacing[fault] ** 2
        along, down = inverse / inverse.mean()
        neighbours = (
            (i - 1, j, along),
            (i + 1, j, along),
            (i, j - 1, down),
            (i, j + 1, down),
        )
        for a, b, weight in neighbours:
            if b < 0 and sources.open_top[fault]:
                continue
            matrix[k, k] += weight
            other = place.get((fault, component, a, b))
            if other is not None:
                matrix[k, other] -= weight
    return matrix
