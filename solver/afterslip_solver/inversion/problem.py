"""What is known, what is sought and how to choose: checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from afterslip_common.errors import InputError
from afterslip_solver.inversion.covariance import Block, is_positive_definite
from afterslip_solver.inversion.regularisers import SourceGrid
from afterslip_solver.model import Bool, Float, Int


class InversionError(InputError, ValueError):
    """A problem that has no answer as posed; the message says how to repair it."""


@dataclass(frozen=True, slots=True)
class KnownSum:
    """A weighted sum of slip that is known with an error.

    Attributes
    ----------
    row : (n_par,) float64, weights.
    value, sigma : of the sum, in any one unit.
    """

    row: Float
    value: float
    sigma: float


@dataclass(frozen=True, slots=True)
class InversionProblem:
    """Observations, Green's functions and the grid of unit sources.

    Attributes
    ----------
    G : (n_obs, n_par) float64, response of each row to each unit source (m per m).
    data : (n_obs,) float64, m.
    sigma : (n_obs,) float64, m, standard deviation, positive.
    station : (n_obs,) int64, index of the station of each row; all components and
        epochs of a station carry the same index and stay in one fold.
    kind : (n_obs,) label of each row (gnss, gnssa, obp, insar).
    grid : (n_par, 4) int64: fault, component (0 strike, 1 dip), along strike, down
        dip.
    area : (n_par,) float64, m2, integral of the unit slip over the fault.
    rigidity : (n_par,) float64, Pa.
    sign : (n_par,) int64, 1 for a >= 0, -1 for a <= 0, 0 without constraint.
    spacing : (n_fault, 2) float64, m, of the grid along strike and down dip.
    open_top : (n_fault,) bool, slip may reach the top edge (trench).
    nuisance : (n_obs, n_nuisance) float64, columns of unknowns that are neither
        smoothed nor sparse, such as an offset for each dataset.
    position : (n_station, 2) float64, m, of the stations; only for spatial blocks.
    dataset : (n_obs,) int64, index of the data set of each row; all one where empty.
    variance_free : (n_dataset,) bool, the variance of the data set's errors is known
        only up to a factor, which is to be estimated; False: ``sigma`` and
        ``covariance`` hold as they are. All True where empty.
    covariance : correlated rows, each block within one data set; ``sigma`` is the
        root of its diagonal. Rows in no block have independent errors.
    common : (n_cause, n_obs) float64, m, errors beside these: what one standard
        deviation of something does to all rows. Causes are independent, so that
        common' common adds to the covariance; variances hold as they are then.
    counted : (n_obs,) float64, independent data as which each row counts where
        variances are estimated; all one where empty.
    basis : (n_par, n_coefficient) float64, slip is this times the unknown coefficients:
        rakes instead of components. The identity where empty.
    lower, upper : (n_coefficient,) float64, m, bounds of the coefficients; those that
        ``sign`` means where empty.
    known : sums of slip that are known beside the data, such as the moment.
    changes : (n_change, n_obs, n_par) float64, what a standard deviation of something
        in the earth adds to ``G``; such things are independent.
    rigidity_changes : (n_change, n_par) float64, Pa, and to the rigidity.
    """

    G: Float
    data: Float
    sigma: Float
    station: Int
    kind: NDArray[np.str_]
    grid: Int
    area: Float
    rigidity: Float
    sign: Int
    spacing: Float
    open_top: Bool
    nuisance: Float = field(default_factory=lambda: np.zeros((0, 0)))
    position: Float = field(default_factory=lambda: np.zeros((0, 2)))
    dataset: Int = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    variance_free: Bool = field(default_factory=lambda: np.zeros(0, dtype=bool))
    covariance: tuple[Block, ...] = ()
    common: Float = field(default_factory=lambda: np.zeros((0, 0)))
    counted: Float = field(default_factory=lambda: np.zeros(0))
    basis: Float = field(default_factory=lambda: np.zeros((0, 0)))
    lower: Float = field(default_factory=lambda: np.zeros(0))
    upper: Float = field(default_factory=lambda: np.zeros(0))
    known: tuple[KnownSum, ...] = ()
    changes: Float = field(default_factory=lambda: np.zeros((0, 0, 0)))
    rigidity_changes: Float = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def n_unknown(self) -> int:
        """Number of coefficients of slip and of unknowns beside it."""
        slip = int((self.basis if self.basis.size else self.G).shape[1])
        return slip + (self.nuisance.shape[1] if self.nuisance.size else 0)

    def slip_of(self, values: Float) -> Float:
        """(n_par, ...) float64, slip of coefficients (n_coefficient, ...)."""
        return np.asarray(self.basis @ values) if self.basis.size else values

    def on_coefficients(self, values: Float) -> Float:
        """(n_coefficient, ...) float64, the transpose of `slip_of` on (n_par, ...)."""
        return np.asarray(self.basis.T @ values) if self.basis.size else values

    @property
    def bounds(self) -> tuple[Float, Float]:
        """(n,) float64 each, m, of all unknowns; infinite where there is none."""
        lower, upper = self.lower, self.upper
        if not lower.size:
            lower = np.where(self.sign > 0, 0.0, -np.inf)
            upper = np.where(self.sign < 0, 0.0, np.inf)
        free = np.full(self.nuisance.shape[1] if self.nuisance.size else 0, np.inf)
        return np.concatenate((lower, -free)), np.concatenate((upper, free))

    @property
    def dataset_of_row(self) -> Int:
        """(n_obs,) int64, index of the data set of each row."""
        if self.dataset.size:
            return self.dataset
        return np.zeros(len(self.data), dtype=np.int64)

    @property
    def counts(self) -> Float:
        """(n_obs,) float64, data as which rows count where variances are estimated."""
        return self.counted if self.counted.size else np.ones(len(self.data))

    @property
    def free_variances(self) -> Bool:
        """(n_dataset,) bool, whose variances are to be estimated."""
        if self.variance_free.size:
            return self.variance_free
        return np.ones(int(self.dataset_of_row.max()) + 1, dtype=bool)

    @property
    def deviation(self) -> Float:
        """(n_obs,) float64, m, standard deviation of each row with all its errors."""
        if not self.common.size:
            return self.sigma
        return np.asarray(np.hypot(self.sigma, np.linalg.norm(self.common, axis=0)))

    def reweighted(self, variance: Float) -> InversionProblem:
        """Return the same problem with the errors' variances multiplied.

        Parameters
        ----------
        variance : (n_dataset,) float64, factors.
        """
        factor = variance[self.dataset_of_row]
        blocks = tuple(
            Block(block.rows, block.matrix * factor[block.rows[0]])
            for block in self.covariance
        )
        root = np.sqrt(factor)
        common = self.common * root if self.common.size else self.common
        return replace(self, sigma=self.sigma * root, covariance=blocks, common=common)

    def design_of(self, rows: Int | slice) -> Float:
        """(k, n_unknown) float64, columns of all unknowns in some rows."""
        columns = self.G[rows] @ self.basis if self.basis.size else self.G[rows]
        if self.nuisance.size == 0:
            return columns
        return np.hstack((columns, self.nuisance[rows]))

    def predicted(self, value: Float) -> Float:
        """(n_obs,) float64, m, what all unknowns (n_unknown,) make of the data."""
        n = self.n_unknown - (self.nuisance.shape[1] if self.nuisance.size else 0)
        made = self.G @ self.slip_of(value[:n])
        return made + self.nuisance @ value[n:] if self.nuisance.size else made

    @property
    def sources(self) -> SourceGrid:
        """Places of the unit sources, for a regulariser."""
        return SourceGrid(self.grid, self.spacing, self.open_top)

    def check(self) -> None:
        """Refuse what cannot be inverted.

        Raises
        ------
        InversionError
            With the rows or sources concerned and what to do.
        """
        _check_shapes(self)
        _check_rows(self)
        _check_sources(self)
        _check_errors(self)
        _check_constraints(self)


def offset_columns(
    dataset: Sequence[int] | Int, component: Sequence[int] | Int
) -> Float:
    """Columns for one constant offset per dataset and component.

    Parameters
    ----------
    dataset : (n_obs,) index of the dataset of each row, -1 for no offset.
    component : (n_obs,) index of the component (east, north, up, line of sight).

    Returns
    -------
    (n_obs, n_nuisance) float64, ones where a row shares the offset.
    """
    pair = np.column_stack((np.asarray(dataset), np.asarray(component)))
    wanted = np.unique(pair[pair[:, 0] >= 0], axis=0)
    return np.asarray(
        (pair[:, None, :] == wanted[None, :, :]).all(axis=2), dtype=np.float64
    )


def _check_shapes(p: InversionProblem) -> None:
    if p.G.ndim != 2:
        raise InversionError(f"G must have two axes, not shape {p.G.shape}")
    n_obs, n_par = p.G.shape
    if n_obs == 0:
        raise InversionError("no data: give at least one observation")
    if n_par == 0:
        raise InversionError("no sources: give at least one unit source")
    n_fault = len(p.spacing)
    expected = {
        "data": (n_obs,),
        "sigma": (n_obs,),
        "station": (n_obs,),
        "kind": (n_obs,),
        "grid": (n_par, 4),
        "area": (n_par,),
        "rigidity": (n_par,),
        "sign": (n_par,),
        "spacing": (n_fault, 2),
        "open_top": (n_fault,),
    }
    for name, shape in expected.items():
        found = np.shape(getattr(p, name))
        if found != shape:
            raise InversionError(f"{name} has shape {found}, expected {shape}")
    if p.nuisance.size and len(p.nuisance) != n_obs:
        raise InversionError(
            f"nuisance has {len(p.nuisance)} rows, expected {n_obs}, one per datum"
        )


def _rows(mask: Bool) -> str:
    where = np.flatnonzero(mask)
    listed = ", ".join(str(i) for i in where[:5])
    return listed + (f" and {len(where) - 5} more" if len(where) > 5 else "")


def _check_rows(p: InversionProblem) -> None:
    for name in ("data", "sigma", "G", "nuisance"):
        array = getattr(p, name)
        if not array.size:
            continue
        bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        if bad.any():
            raise InversionError(
                f"{name} is not finite in row {_rows(bad)}: leave out missing data"
            )
    if (p.sigma <= 0).any():
        raise InversionError(
            f"sigma is zero or negative in row {_rows(p.sigma <= 0)}: "
            "give every datum a standard deviation in metres"
        )
    if (p.station < 0).any():
        raise InversionError(f"station is negative in row {_rows(p.station < 0)}")


def _check_sources(p: InversionProblem) -> None:
    for name in ("area", "rigidity"):
        bad = ~(np.isfinite(getattr(p, name)) & (getattr(p, name) > 0))
        if bad.any():
            raise InversionError(f"{name} of source {_rows(bad)} must be positive")
    if not np.isin(p.sign, (-1, 0, 1)).all():
        raise InversionError("sign must be -1, 0 or 1 for every source")
    if (p.grid < 0).any() or (p.grid[:, 0] >= len(p.spacing)).any():
        raise InversionError("grid names a fault that has no spacing, or is negative")
    if not (np.isfinite(p.spacing) & (p.spacing > 0)).all():
        raise InversionError("spacing of the source grid must be positive")
    if len(np.unique(p.grid, axis=0)) != len(p.grid):
        raise InversionError("two sources share fault, component and place on the grid")


def _check_errors(p: InversionProblem) -> None:
    if p.dataset.size:
        n = len(p.variance_free) or int(p.dataset.max()) + 1
        if len(p.dataset) != len(p.data):
            raise InversionError(
                f"dataset has {len(p.dataset)} rows, expected {len(p.data)}"
            )
        wrong = (p.dataset < 0) | (p.dataset >= n)
        if wrong.any():
            raise InversionError(f"dataset is unknown in row {_rows(wrong)}")
    if p.counted.size and p.counted.shape != p.data.shape:
        raise InversionError(
            f"counted has shape {p.counted.shape}, expected {p.data.shape}: give each "
            "datum the number that it counts as, or none"
        )
    if p.common.size and (p.common.shape[1] != len(p.data) or any(p.free_variances)):
        raise InversionError(
            "errors in common need a value for every row, and variances that are fixed"
        )
    taken = np.zeros(len(p.data), dtype=bool)
    for block in p.covariance:
        _check_block(p, block, taken)
        taken[block.rows] = True


def _check_block(p: InversionProblem, block: Block, taken: Bool) -> None:
    k = len(block.rows)
    if block.matrix.shape != (k, k):
        raise InversionError(
            f"covariance has shape {block.matrix.shape} for {k} rows of data"
        )
    if taken[block.rows].any() or len(np.unique(block.rows)) < k:
        raise InversionError("a row stands in two blocks of the covariance")
    if len(np.unique(p.dataset_of_row[block.rows])) > 1:
        raise InversionError("a block of the covariance joins two data sets")
    if not np.allclose(np.diag(block.matrix), p.sigma[block.rows] ** 2, rtol=1e-9):
        raise InversionError("the covariance's diagonal must be sigma squared")
    if not is_positive_definite(block.matrix):
        raise InversionError(
            "covariance is not positive definite: raise its diagonal, or shorten its "
            "correlation length"
        )


def _check_constraints(p: InversionProblem) -> None:
    n = (p.basis if p.basis.size else p.G).shape[1]
    if p.basis.size and len(p.basis) != p.G.shape[1]:
        raise InversionError(
            f"basis has {len(p.basis)} rows, expected {p.G.shape[1]}, one per source"
        )
    if p.basis.size and not p.lower.size:
        raise InversionError("a basis needs bounds of its coefficients")
    if not p.lower.size:
        return
    if np.shape(p.lower) != (n,) or np.shape(p.upper) != (n,):
        raise InversionError(f"lower and upper must have {n} values, one per unknown")
    empty = ~(p.lower < p.upper)
    if empty.any():
        raise InversionError(
            f"the upper bound of unknown {_rows(empty)} is not above the lower one"
        )
