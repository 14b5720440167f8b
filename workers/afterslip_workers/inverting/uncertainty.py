"""What the posterior's draws say of slip on the fault and of its sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from afterslip_solver.inversion import (
    InversionProblem,
    Posterior,
    interval,
    limits,
    magnitude_of,
    moment_parts,
    rigidity_in,
)
from afterslip_solver.jit.threads import over
from afterslip_solver.model import Float
from afterslip_workers.inverting.resolution import resolution_length
from afterslip_workers.inverting.solving import Solved

MOST_DRAWS = 400  # on the nodes and in the file: an interval's ends to a tenth
NODES_AT_ONCE = 1024
PREDICTED = "errors of the Green's functions"
HOLDS = "data errors with estimated variances, signs, the choice of smoothness"
GAUSSIAN = "data errors and smoothness as they were chosen; no signs"


@dataclass(frozen=True, slots=True)
class NodeDraws:
    """Amount of slip at the fault's nodes over the draws.

    Attributes
    ----------
    sigma, low, high, exceeds : (n_fault_node,) float64, standard deviation and limits
        of 95 %, m, and the share of the draws that exceed a level.
    """

    sigma: Float
    low: Float
    high: Float
    exceeds: Float


def signs_of(problem: InversionProblem) -> tuple[Float, Float]:
    """(2,) float64 each, m, least and most strike and dip slip that signs allow.

    Bounds at zero of all sources of a component; slip between B-splines keeps them.
    """
    low, high = np.full(2, -np.inf), np.full(2, np.inf)
    if problem.basis.size:
        return low, high
    n = problem.G.shape[1]
    lower, upper = (side[:n] for side in problem.bounds)
    for component in range(2):
        mine = problem.grid[:, 1] == component
        if mine.any() and (lower[mine] >= 0.0).all():
            low[component] = 0.0
        if mine.any() and (upper[mine] <= 0.0).all():
            high[component] = 0.0
    return low, high


def on_nodes(
    unit_slip: Float,
    draws: Float,
    level: float,
    signs: tuple[Float, Float] | None = None,
) -> NodeDraws:
    """Evaluate draws of the coefficients on a fault.

    Parameters
    ----------
    unit_slip : (n_source, n_fault_node, 2) float64, strike and dip of unit sources.
    draws : (n_draw, n_source) float64, m.
    level : m, that slip may exceed.
    signs : (2,) float64 each, m, least and most of each component; None: any.
    """
    low, high = signs or (np.full(2, -np.inf), np.full(2, np.inf))
    count = unit_slip.shape[1]
    found = np.empty((4, count))

    def fill(start: int, stop: int) -> None:
        for first in range(start, stop):
            part = slice(first * NODES_AT_ONCE, (first + 1) * NODES_AT_ONCE)
            size = np.hypot(
                np.clip(draws @ unit_slip[:, part, 0], low[0], high[0]),
                np.clip(draws @ unit_slip[:, part, 1], low[1], high[1]),
            )
            found[:2, part] = size.std(axis=0, ddof=1), (size > level).mean(axis=0)
            found[2:, part] = interval(size)

    over(-(-count // NODES_AT_ONCE), fill, few=1)
    sigma, exceeds, least, most = found
    return NodeDraws(sigma, least, most, exceeds)


def uncertainty_variables(
    unit_slip: Float,
    found: xr.Dataset,
    problem: InversionProblem,
    solved: Solved,
) -> tuple[dict[str, xr.Variable], dict[str, Any]]:
    """Variables and attributes of the result that the draws make.

    Parameters
    ----------
    unit_slip : (n_source, n_fault_node, 2) float64, strike and dip of unit sources at
        all faults' nodes.
    found : the result so far, with the slip that was chosen.
    """
    metres = {"units": "m"}
    solution = solved.solution
    facts: dict[str, Any] = {"optimality_gap": solution.optimality_gap}
    posterior = solution.posterior
    if posterior is None:
        sigma = np.sqrt(np.maximum(np.diag(solution.covariance), 0.0))
        variable = xr.Variable(("source",), sigma, {**metres, "holds": GAUSSIAN})
        return {"slip_sigma": variable}, facts
    step = max(1, len(posterior.slip) // MOST_DRAWS)
    draws = posterior.slip[::step]
    level = 0.5 * float(found.attrs["peak_slip"])
    nodes = on_nodes(unit_slip, posterior.free[::step], level, signs_of(problem))
    within = on_nodes(unit_slip, draws, level)
    known = HOLDS if solved.model_error is None else f"{HOLDS}, {PREDICTED}"
    holds = {**metres, "holds": known}
    made = {
        "slip_sigma": xr.Variable(("source",), posterior.sigma, holds),
        "slip_interval": xr.Variable(
            ("source", "limit"), np.column_stack(posterior.interval()), holds
        ),
        "slip_draws": xr.Variable(("draw", "source"), draws.astype(np.float32), holds),
        "fault_slip_interval": xr.Variable(
            ("fault_node", "limit"),
            np.column_stack(
                [np.minimum(nodes.low, within.low), np.maximum(nodes.high, within.high)]
            ),
            holds,
        ),
        "fault_slip_sigma": xr.Variable(("fault_node",), nodes.sigma, holds),
        "fault_slip_exceeds": xr.Variable(
            ("fault_node",), nodes.exceeds, {"level_m": level}
        ),
    }
    facts.update(_sums(found, problem, posterior))
    facts.update(_peak(unit_slip, found, solution.resolution, posterior))
    facts["effective_draws"] = posterior.effective
    facts["variance_factors"] = solved.variance.tolist()
    return made, facts


def _sums(
    found: xr.Dataset, problem: InversionProblem, posterior: Posterior
) -> dict[str, Any]:
    """Limits of moment, magnitude, potency and centroid."""
    place = np.asarray(found["source_position"].values, dtype=np.float64)
    rigidity = rigidity_in(problem, posterior.earth)
    made = []
    for draws in (posterior.free, posterior.slip):
        part = moment_parts(problem, draws, posterior.earth)
        moment = part.sum(axis=1)
        potency = (part / rigidity).sum(axis=1)
        made.append((moment, potency, (part / moment[:, None]) @ place))
    moment, potency, centroid = (limits(*pair) for pair in zip(*made, strict=True))
    said: dict[str, Any] = {
        "moment_interval": [float(end) for end in moment],
        "magnitude_interval": [magnitude_of(float(end)) for end in moment],
        "potency_interval": [float(end) for end in potency],
    }
    for axis, name in enumerate("xyz"):
        said[f"centroid_{name}"] = float(np.median(made[1][2][:, axis]))
        said[f"centroid_{name}_interval"] = [float(end[axis]) for end in centroid]
    return said


def _peak(
    unit_slip: Float, found: xr.Dataset, resolution: Float, posterior: Posterior
) -> dict[str, Any]:
    """Slip averaged about the largest one, over the length that is resolved there.

    The largest slip itself varies over less than data resolve, and no draw holds it.
    """
    weight, length = about_peak(found, resolution)
    mean = weight @ found["fault_slip"].values
    of_source = np.einsum("j,ijc->ic", weight, unit_slip)
    made = (np.hypot(*(d @ of_source).T) for d in (posterior.free, posterior.slip))
    return {
        "peak_slip_average": float(np.hypot(*mean)),
        "peak_slip_length": length,
        "peak_slip_interval": [float(end) for end in limits(*made)],
    }


def about_peak(found: xr.Dataset, resolution: Float) -> tuple[Float, float]:
    """Weights of an average of slip about its largest value.

    Parameters
    ----------
    found : the result so far.
    resolution : (n, n) float64, of the sources; of something else in time.

    Returns
    -------
    (n_fault_node,) float64, areas of the nodes of the same fault within half a length
    of the largest slip, with the sum one; the length, m: twice the resolution length
    of the nearest source, or the size of that source where it is larger.
    """
    slip = found["fault_slip"].values
    node = np.column_stack([found[f"fault_{axis}"].values for axis in "xyz"])
    most = int(np.argmax(np.hypot(*slip.T)))
    component = int(np.argmax(np.abs(slip[most])))
    block = np.column_stack(
        [found[f"source_{n}"].values for n in ("fault", "component")]
    )
    place = np.asarray(found["source_position"].values, dtype=np.float64)
    apart = ((place - node[most]) ** 2).sum(axis=1)
    near = int(np.argmin(np.where(block[:, 1] == component, apart, np.inf)))
    length = float(np.sqrt(found["source_area"].values[near]))
    if len(resolution) == len(place):
        row = resolution_length(resolution, block, place, [near])
        length = max(length, 2.0 * float(row[0]))
    corners = found["fault_triangles"].values
    first, second, third = (node[corners[:, k]] for k in range(3))
    area = 0.5 * np.linalg.norm(np.cross(second - first, third - first), axis=1)
    weight = np.bincount(corners.ravel(), np.repeat(area, 3) / 3.0, len(node))
    within = ((node - node[most]) ** 2).sum(axis=1) <= 0.25 * length**2
    weight *= within & (
        found["fault_index"].values == found["fault_index"].values[most]
    )
    if not weight.any():
        weight[most] = 1.0
    return weight / weight.sum(), length
