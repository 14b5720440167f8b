"""Green's functions of an earth that is known only within limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from afterslip_solver.inversion.model_error import ModelError, with_model_error
from afterslip_solver.inversion.normal import Quadratic, quadratics
from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.model import Float


@dataclass(frozen=True, slots=True)
class Bilinear:
    """What the posterior needs to know of the rows of one data set in every earth.

    The Green's functions are A_0 + sum_k x_k A_k, with x_k ~ N(0, 1).

    Attributes
    ----------
    matrix : (n_pair, n, n) float64, A_k' W A_l + A_l' W A_k of each pair k < l and
        A_k' W A_k of each k, in the order of `numpy.triu_indices`.
    right : (1 + n_change, n) float64, A_k' W d.
    power : d' W d.
    count : number of rows.
    """

    matrix: Float
    right: Float
    power: float
    count: float

    def at(self, earth: Float) -> Quadratic:
        """Return the data set in one earth (n_change,)."""
        x = np.append(1.0, earth)
        first, second = np.triu_indices(len(x))
        flat = (x[first] * x[second]) @ self.matrix.reshape(len(first), -1)
        matrix = flat.reshape(self.matrix.shape[1:])
        return Quadratic(matrix, x @ self.right, self.power, self.count)

    def products(self, value: Float) -> Float:
        """(1 + n_change, 1 + n_change) float64, (A_k a)' W (A_l a) of a slip."""
        size = len(self.right)
        upper = np.zeros((size, size))
        upper[np.triu_indices(size)] = self.matrix @ value @ value
        return 0.5 * (upper + upper.T)


def bilinear_groups(problem: InversionProblem) -> tuple[Bilinear, ...]:
    """Sum up rows by data set in every earth; none where the earth is certain."""
    if not problem.changes.size:
        return ()
    size = 1 + len(problem.changes)
    basis = problem.basis
    wide = replace(
        problem,
        G=np.hstack((problem.G, *problem.changes)),
        basis=np.asarray(np.kron(np.eye(size), basis)) if basis.size else basis,
    )
    n = problem.n_unknown
    slip = (wide.n_unknown - n) // (size - 1)
    # the columns of one earth, and those of the wide problem that are not there
    place = [np.r_[:slip, wide.n_unknown - (n - slip) : wide.n_unknown]]
    place += [np.arange(k * slip, (k + 1) * slip) for k in range(1, size)]
    found = []
    for group in quadratics(wide):
        matrix, right = [], np.zeros((size, n))
        for k in range(size):
            right[k, : len(place[k])] = group.right[place[k]]
            for m in range(k, size):
                one = np.zeros((n, n))
                part = group.matrix[np.ix_(place[k], place[m])]
                one[: part.shape[0], : part.shape[1]] = part
                matrix.append(one if k == m else one + one.T)
        found.append(Bilinear(np.stack(matrix), right, group.power, group.count))
    return tuple(found)


def draw_earth(
    groups: Sequence[Bilinear],
    value: Float,
    variance: Float,
    rng: np.random.Generator,
) -> Float:
    """(n_change,) draw of the earth given slip: a regression on what it changes."""
    n = len(groups[0].right) - 1
    precision, right = np.eye(n), np.zeros(n)
    for group, v in zip(groups, variance, strict=False):
        by_pair = group.products(value)
        precision += by_pair[1:, 1:] / v
        right += (group.right[1:] @ value - by_pair[1:, 0]) / v
    factor = scipy.linalg.cholesky(precision, lower=True)
    mean = scipy.linalg.cho_solve((factor, True), right)
    noise = rng.standard_normal(n)
    away = scipy.linalg.solve_triangular(factor, noise, trans=1, lower=True)
    return np.asarray(mean + away)


def earth_error(problem: InversionProblem, slip: Float) -> ModelError:
    """Return what the changes of the earth do to the predictions of a slip (n_par,)."""
    nothing = np.zeros((1, len(problem.data)))
    alone = np.arange(len(problem.data))
    return ModelError(nothing, alone, problem.changes @ slip)


def with_earths(problem: InversionProblem, slip: Float) -> InversionProblem:
    """Return the problem in the middle earth, whose data have the others' errors.

    The covariance C_p = sum_k (A_k a)(A_k a)' of a slip ``a`` (Duputel et al. 2014,
    Geophys. J. Int. 197, 464) then stands beside that of the data, and the changes are
    gone from the problem, so that nothing counts them twice.
    """
    none = replace(problem, changes=np.zeros((0, 0, 0)))
    return with_model_error(none, earth_error(problem, slip))
