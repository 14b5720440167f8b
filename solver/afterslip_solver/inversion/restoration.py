"""Data that slip which is known would make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.model import Float


def with_data_of(
    problem: InversionProblem, slip: Float, seed: int | None = None
) -> InversionProblem:
    """Return the problem with the data, and known sums, that a slip would make.

    Parameters
    ----------
    slip : (n_par,) float64, m.
    seed : of errors with the covariance of the data's; None: data without errors.
    """
    data = problem.G @ slip
    if seed is not None:
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal(len(data))
        error = problem.sigma * noise
        for block in problem.covariance:
            factor = np.linalg.cholesky(block.matrix)
            error[block.rows] = factor @ noise[block.rows]
        if problem.common.size:
            error += rng.standard_normal(len(problem.common)) @ problem.common
        data = data + error
    known = tuple(replace(item, value=float(item.row @ slip)) for item in problem.known)
    return replace(problem, data=data, known=known)
