"""Slip that grows through time: coseismic slip, then increments at a steady rate.

The unknowns are blocks of all sources: the coseismic slip first, then what each
interval adds. A block is to the inversion a set of faults of its own, so that priors
in space, signs and moments need to know nothing of time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from afterslip_solver.inversion.covariance import whiten
from afterslip_solver.inversion.posterior import limits
from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.inversion.regularisers import Regulariser, SourceGrid
from afterslip_solver.inversion.solution import (
    InversionSolution,
    magnitude_of,
    moment_of,
    moment_parts,
)
from afterslip_solver.inversion.solve import UNRESOLVED
from afterslip_solver.model import Float


@dataclass(frozen=True, slots=True)
class InTime:
    """Prior of coseismic slip and increments, from a prior of slip in space.

    Without coseismic slip the increments are windows of a rupture.

    With L of the space: coseismic slip has L, an increment over a share d of the
    whole time has L / d (a random walk: Segall & Matthews 1997, J. Geophys. Res. 102,
    22391), and ``coupling`` times L weighs how the rate changes from one interval to
    the next, over the root of the share of time between their middles.

    Attributes
    ----------
    space : prior of slip at one time.
    durations : of the intervals, any unit.
    coupling : weight of changes of the rate; 0 for none.
    amplitude : size of all afterslip over that of the coseismic slip, which is usually
        far larger: all precisions of increments are divided by its square.
    coseismic : whether the first block is coseismic slip; False: all are intervals.
    """

    space: Regulariser
    durations: tuple[float, ...]
    coupling: float = 0.0
    amplitude: float = 1.0
    coseismic: bool = field(default=True, kw_only=True)

    def precision(self, sources: SourceGrid) -> Float:
        """(n_par, n_par) float64, blocks in the order of the unknowns."""
        blocks = int(self.coseismic) + len(self.durations)
        n = len(sources.place) // blocks
        n_fault = len(sources.spacing) // blocks
        one = SourceGrid(
            sources.place[:n], sources.spacing[:n_fault], sources.open_top[:n_fault]
        )
        return np.asarray(np.kron(self.in_time(), self.space.precision(one)))

    def in_time(self) -> Float:
        """(n_block, n_block) float64, precision of a single source's blocks."""
        share = np.array(self.durations) / sum(self.durations)
        k = len(share)
        matrix = np.zeros((k + 1, k + 1))
        matrix[0, 0] = 1.0
        matrix[1:, 1:] = np.diag(1.0 / share)
        if k > 1:
            middle = np.cumsum(share) - 0.5 * share
            change = np.diff(np.diag(1.0 / share), axis=0)
            change /= np.sqrt(np.diff(middle))[:, None]
            matrix[1:, 1:] += self.coupling * change.T @ change
        matrix[1:, 1:] /= self.amplitude**2
        return matrix if self.coseismic else matrix[1:, 1:]


def in_blocks(problem: InversionProblem, design: Float) -> InversionProblem:
    """Return the problem whose unknowns are blocks of the problem's sources.

    Bounds hold for each block, known sums for all slip together.

    Parameters
    ----------
    problem : for one block; its ``G`` is not used.
    design : (n_obs, n_block, n_par) float64, response of the data to a unit of each.
    """
    blocks, n = design.shape[1:]
    n_fault = len(problem.spacing)
    grid = np.tile(problem.grid, (blocks, 1))
    grid[:, 0] += np.repeat(np.arange(blocks) * n_fault, n)
    return replace(
        problem,
        G=design.reshape(len(design), -1),
        grid=grid,
        area=np.tile(problem.area, blocks),
        rigidity=np.tile(problem.rigidity, blocks),
        sign=np.tile(problem.sign, blocks),
        spacing=np.tile(problem.spacing, (blocks, 1)),
        open_top=np.tile(problem.open_top, blocks),
        basis=np.asarray(np.kron(np.eye(blocks), problem.basis), dtype=np.float64),
        lower=np.tile(problem.lower, blocks),
        upper=np.tile(problem.upper, blocks),
        known=tuple(
            replace(known, row=np.tile(known.row, blocks)) for known in problem.known
        ),
    )


def total(
    problem: InversionProblem, design: Float, solution: InversionSolution
) -> InversionSolution:
    """Return the solution for the slip that all blocks add up to.

    Its resolution and detectable slip are of slip spread evenly over the blocks.

    Parameters
    ----------
    problem : for one block, the weights of data far off in its errors.
    design : as for `in_blocks`.
    solution : of the problem in blocks.
    """
    blocks, n = design.shape[1:]
    slip = solution.slip.reshape(blocks, n).sum(axis=0)
    covariance = _block_sum(solution.covariance, blocks)
    resolution = _block_sum(solution.resolution, blocks) / blocks
    # detectable above the noise of the data, not above what was stated of it
    posed = problem.reweighted(solution.variance)
    mean = whiten(posed.covariance, posed.sigma, design.mean(axis=1))
    with np.errstate(divide="ignore"):
        detectable = 1.0 / np.sqrt((mean**2).sum(axis=0))
    posterior = solution.posterior
    if posterior is not None:
        whole = {
            name: getattr(posterior, name).reshape(-1, blocks, n).sum(axis=1)
            for name in ("slip", "free", "held")
        }
        posterior = replace(posterior, **whole)
    moment = moment_of(problem, slip)
    largest = float(np.abs(slip).max())
    return replace(
        solution,
        slip=slip,
        posterior=posterior,
        covariance=covariance,
        resolution=resolution,
        detectable_slip=detectable,
        moment=moment,
        magnitude=magnitude_of(moment),
        unseen=(detectable > largest) | (np.diag(resolution) < UNRESOLVED),
    )


def _block_sum(matrix: Float, blocks: int) -> Float:
    n = len(matrix) // blocks
    return np.asarray(matrix.reshape(blocks, n, blocks, n).sum(axis=(0, 2)))


def moment_history(
    problem: InversionProblem, solution: InversionSolution
) -> tuple[Float, Float | None]:
    """Moment of the slip so far at the end of each block, and its limits.

    Parameters
    ----------
    problem : for one block.
    solution : of the problem in blocks.

    Returns
    -------
    (n_block,) N m, and (2, n_block) N m, limits that hold 95 % of the draws, with the
    signs in them; None without draws.
    """
    moment = _so_far(problem, solution.slip[None, :])[0]
    if solution.posterior is None:
        return moment, None
    return moment, np.stack(
        limits(
            _so_far(problem, solution.posterior.free),
            _so_far(problem, solution.posterior.slip),
        )
    )


def _so_far(problem: InversionProblem, slip: Float) -> Float:
    """(n, n_block) N m, moment at the end of each block, in several slips."""
    blocks = slip.reshape(len(slip), -1, len(problem.area))
    added = np.cumsum(blocks, axis=1)
    columns = [
        moment_parts(problem, added[:, k]).sum(axis=1) for k in range(added.shape[1])
    ]
    return np.column_stack(columns)
