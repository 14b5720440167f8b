"""Roughness of slip on the source grid."""

from __future__ import annotations

import numpy as np

from afterslip_solver.model import Bool, Float, Int


def laplacian(grid: Int, spacing: Float, open_top: Bool) -> Float:
    """Five-point Laplacian of each component on each fault.

    Beyond a buried edge (and a hole in the grid) slip is zero, so slip that ends
    there counts as rough. Beyond an open top edge slip continues with the value of
    the edge (natural condition), so slip may be largest at the trench at no cost.

    Parameters
    ----------
    grid : (n_par, 4) fault, component, along strike, down dip (0 at the top).
    spacing : (n_fault, 2) m. Weights are 1/h^2 of each direction divided by their
        mean, so the matrix has no unit and equals the usual one on squares.
    open_top : (n_fault,)

    Returns
    -------
    (n_par, n_par) float64, positive on the diagonal.
    """
    place = {tuple(cell): k for k, cell in enumerate(grid.tolist())}
    matrix = np.zeros((len(grid), len(grid)))
    for k, (fault, component, i, j) in enumerate(grid.tolist()):
        inverse = 1.0 / spacing[fault] ** 2
        along, down = inverse / inverse.mean()
        neighbours = (
            (i - 1, j, along),
            (i + 1, j, along),
            (i, j - 1, down),
            (i, j + 1, down),
        )
        for a, b, weight in neighbours:
            if b < 0 and open_top[fault]:
                continue
            matrix[k, k] += weight
            other = place.get((fault, component, a, b))
            if other is not None:
                matrix[k, other] -= weight
    return matrix


def roughness(grid: Int, spacing: Float, open_top: Bool) -> Float:
    """L of the objective: the Laplacian's transpose times itself.

    Returns
    -------
    (n_par, n_par) float64, symmetric, positive definite as long as one edge of every
    fault is buried.
    """
    matrix = laplacian(grid, spacing, open_top)
    return np.asarray(matrix.T @ matrix)
