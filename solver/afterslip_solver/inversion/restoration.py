"""What an inversion makes of slip that is known: checkerboard, spike, its own model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from afterslip_solver.inversion.problem import InversionError, InversionProblem
from afterslip_solver.model import Float


def checkerboard(problem: InversionProblem, cells: int, amount: float = 1.0) -> Float:
    """(n_par,) float64, m: squares of sources with and without slip by turns.

    The slip has the sign that is allowed, and is positive where both are.

    Parameters
    ----------
    cells : sources along the side of a square.
    amount : m.
    """
    along, down = problem.grid[:, 2] // cells, problem.grid[:, 3] // cells
    side = np.where(problem.sign < 0, -1.0, 1.0)
    return np.asarray(amount * side * ((along + down) % 2 == 0))


def spike(
    problem: InversionProblem, along: int, down: int, amount: float = 1.0
) -> Float:
    """(n_par,) float64, m: slip of one place of the source grid alone.

    Raises
    ------
    InversionError
        Where there is no source at this place.
    """
    here = (problem.grid[:, 2] == along) & (problem.grid[:, 3] == down)
    if not here.any():
        most = problem.grid[:, 2:].max(axis=0)
        raise InversionError(
            f"there is no source at {along}, {down}: the grid ends at "
            f"{most[0]}, {most[1]}, counted from 0"
        )
    return np.asarray(amount * np.where(problem.sign < 0, -1.0, 1.0) * here)


def with_data_of(
    problem: InversionProblem, slip: Float, seed: int | None = None
) -> InversionProblem:
    """Return the problem with data that a slip would make.

    Parameters
    ----------
    slip : (n_par,) float64, m.
    seed : of errors with the covariance of the data's; None: data without errors.
    """
    data = problem.G @ slip
    if seed is not None:
        noise = np.random.default_rng(seed).standard_normal(len(data))
        error = problem.sigma * noise
        for block in problem.covariance:
            factor = np.linalg.cholesky(block.matrix)
            error[block.rows] = factor @ noise[block.rows]
        data = data + error
    return replace(problem, data=data)
