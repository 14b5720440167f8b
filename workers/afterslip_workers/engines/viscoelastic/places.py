"""Points inside a mesh, and how they move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip.readers.places import Points
from afterslip.readers.topography import Topography
from afterslip_solver.greens import evaluate_curve
from afterslip_solver.mesh import Locator
from afterslip_solver.model import Float, GroupResult, Int, Model


@dataclass(frozen=True, slots=True)
class Places:
    """Points in the mesh.

    Attributes
    ----------
    element : (n_point,) int64.
    trace : (n_trace,) int64, mesh nodes that the points need.
    rows : (n_point, 10) int64, positions in ``trace``.
    weights : (n_point, 10) float64.
    xy : (n_point, 2) float64, m, in the plane.
    """

    element: Int
    trace: Int
    rows: Int
    weights: Float
    xy: Float


def locate(model: Model, points: Points, ground: Topography | None) -> Places:
    """Find points in the mesh; depth 0 is the top of the mesh."""
    depth = points.depth
    if ground is not None:
        depth = ground.depth_in_box(points.x, points.y, depth)
    top = float(model.mesh.nodes[:, 2].max())
    xyz = np.column_stack([points.x, points.y, np.minimum(top - depth, top)])
    element, nodes, weights = Locator(model.mesh).find(xyz)
    trace, rows = np.unique(nodes, return_inverse=True)
    return Places(element, trace, rows.reshape(nodes.shape), weights, xyz[:, :2])


def at_points(
    found: GroupResult,
    model: Model,
    slip: dict[str, Float],
    places: Places,
    times: Float,
) -> Float:
    """(n_time, n_point, 3) float64, m.

    An element beside the fault moves by the nodes' mean and its own half of the
    slip, so a point there gets the offset that its element sees.
    """
    curve = evaluate_curve(found, times)[0]
    motion = np.einsum("pk,tpkc->tpc", places.weights, curve[:, places.rows])
    for name, values in slip.items():
        split = model.splits[name]
        order = np.argsort(split.elements)
        place = np.searchsorted(split.elements[order], places.element)
        touch = order[np.minimum(place, len(order) - 1)]
        beside = split.elements[touch] == places.element
        offsets = split.offsets(values)[touch[beside], :, :, 0]
        motion[:, beside] += np.einsum("pk,pkc->pc", places.weights[beside], offsets)
    return np.asarray(motion)


def elastic_and_change(
    found: GroupResult,
    model: Model,
    slip: dict[str, Float],
    places: Places,
    times: Float,
) -> Float:
    """(1 + n_time, n_point, 3) float64, m, the elastic displacement and the change."""
    motion = at_points(found, model, slip, places, np.append(0.0, times))
    motion[1:] -= motion[0]
    return motion
