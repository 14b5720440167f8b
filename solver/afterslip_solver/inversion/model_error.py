"""Errors of the Green's functions as a covariance of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from afterslip_solver.inversion.covariance import Block
from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.model import Bool, Float, Int


@dataclass(frozen=True, slots=True)
class ModelError:
    """How wrong the predictions of a slip may be.

    C_p is the covariance of the predictions' errors (Duputel, Agram, Simons, Minson &
    Beck 2014, Geophys. J. Int. 197, 464), which adds to that of the data's errors.

    Attributes
    ----------
    sigma : (n_cause, n_obs) float64, m, standard deviations; causes are independent.
    shared : (n_obs,) int64; rows of one data set with one index have one error.
    difference : (n_change, n_obs) float64, m, what one standard deviation of
        something in the model changes; causes are independent, so that the sum of
        their products is a covariance of all rows.
    """

    sigma: Float
    shared: Int
    difference: Float = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def total(self) -> Float:
        """(n_obs,) float64, m, standard deviation of each prediction."""
        variance = (self.sigma**2).sum(axis=0)
        if self.difference.size:
            variance = variance + (self.difference**2).sum(axis=0)
        return np.asarray(np.sqrt(variance))

    def matrix(self, rows: Int) -> Float:
        """(k, k) float64, m2, C_p of some rows, but for ``difference``."""
        same = self.shared[rows][:, None] == self.shared[rows]
        sigma = self.sigma[:, rows]
        return np.asarray(np.where(same, sigma.T @ sigma, 0.0))


def with_model_error(problem: InversionProblem, error: ModelError) -> InversionProblem:
    """Return the problem whose data have the errors of the predictions as well.

    Their variances hold as they are from here on: what residuals say of a common
    factor says nothing of an error that slip takes up. Errors that a row shares with
    other epochs of its station are left out where data share errors with other
    stations (scenes of pixels), so that scenes stay apart. What differences do to all
    rows becomes ``common`` of the problem, which needs no matrix of data by data.
    """
    count = len(problem.data)
    sigma = np.sqrt(problem.sigma**2 + (error.sigma**2).sum(axis=0))
    blocks = []
    place = np.zeros(count, dtype=np.int64)
    first_row = {int(block.rows[0]): block for block in problem.covariance}
    for rows in _joined(problem, error):
        matrix = np.diag(problem.sigma[rows] ** 2)
        place[rows] = np.arange(len(rows))
        for row in rows.tolist():
            if (block := first_row.get(row)) is not None:
                at = place[block.rows]
                matrix[np.ix_(at, at)] = block.matrix
        matrix += error.matrix(rows)
        matrix[np.diag_indices(len(rows))] = sigma[rows] ** 2
        if np.count_nonzero(matrix) > len(rows):
            blocks.append(Block(rows, matrix))
    # variances are fixed, so that one block may hold rows of several data sets
    dataset = np.zeros(count, dtype=np.int64)
    both = [part for part in (problem.common, error.difference) if part.size]
    return replace(
        problem,
        sigma=sigma,
        covariance=tuple(blocks),
        common=np.vstack(both) if both else np.zeros((0, 0)),
        dataset=dataset,
        variance_free=np.array([False]),
    )


def _joined(problem: InversionProblem, error: ModelError) -> Iterator[Int]:
    """Yield the rows whose errors are correlated, apart from those of single rows."""
    count = len(problem.data)
    pairs = [_chain(block.rows) for block in problem.covariance]
    scene = np.zeros(count, dtype=bool)
    for block in problem.covariance:
        scene[block.rows] = len(np.unique(problem.station[block.rows])) > 1
    pairs += [
        _chain(rows) for rows in _groups(problem.dataset_of_row, error.shared, ~scene)
    ]
    ends = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), dtype=np.int64)
    graph = sp.coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(count, count))
    _, label = connected_components(graph, directed=False)
    order = np.argsort(label, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        if len(rows) > 1:
            yield rows


def _groups(dataset: Int, shared: Int, which: Bool) -> Sequence[Int]:
    """Return rows of one data set and one error."""
    chosen = np.flatnonzero(which)
    if not len(chosen):
        return []
    key = np.column_stack((dataset[chosen], shared[chosen]))
    _, number = np.unique(key, axis=0, return_inverse=True)
    order = np.argsort(number.ravel(), kind="stable")
    ends = np.flatnonzero(np.diff(number.ravel()[order])) + 1
    return np.split(chosen[order], ends)


def _chain(rows: Int) -> Int:
    """(2, k - 1) pairs of neighbours, which join all of the rows."""
    return np.stack((rows[:-1], rows[1:]))
