"""Sizes of elements for an accuracy that is asked for, before anything is solved.

The rules are those with which the problems of ``benchmarks/accuracy.py`` come out near
the accuracy at once; what a mesh reaches is estimated on it, and sizes follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from afterslip.physics.viscoelastic.elements import (
    surface_area,
    thicknesses,
    top_depth,
)
from afterslip.schemas.earth import Mesh, MeshSize, Model
from afterslip.schemas.fault import Fault, Sources
from afterslip.spec.coverage import plane_fault
from afterslip.spec.inputs import Inputs
from afterslip.units import KM

# of the mesh before it is refined once, at 1 %: its edges on a fault over what slips as
# one, and its growth; with a growth of 1 estimates were below true errors
EDGES, GROWTH = 0.4, 0.7
# slip that reaches the ground ends there within little: edges at its ends over those
# on the fault, so that it is not the whole fault that is meshed for them
ENDS = 0.4
# all edges of a buried fault over the depth of its top: nearer to the ground slip ends
# more sharply. Where the top is less deep than ENDS of the edges, only those near it
# are shorter, by as much as at ends at the ground
TOP = 1.0
# longer edges see too little of the fault for their error to be estimated
LONGEST = 0.4
# errors fall with the second power of the edges
ORDER = 2.0
# a B-spline of spacing s is as a patch of this many spacings
SUPPORT = 2.5
# edges far away over the shortest side of the domain
FAR = 0.6
# a layer thinner than this share of an edge on a fault is not embedded
THIN = 0.5
# layers thinner than this share of what slips do not decide the edges on faults
NEGLIGIBLE = 0.05


def sized(model: Model, inputs: Inputs, grids: Sequence[Sources] = ()) -> Model:
    """Return a model whose mesh has sizes, chosen where it has an accuracy.

    Parameters
    ----------
    inputs : the spec's files.
    grids : unit sources; without them a fault slips as a whole.
    """
    asked = model.mesh.accuracy
    if asked is None:
        return model
    smallest = min(_slipping(fault, inputs, grids) for fault in model.faults)
    share = asked ** (1.0 / ORDER)
    edge = min(EDGES * share, LONGEST) * smallest
    layers = thicknesses(model, inputs)
    thinnest = min(t for t in layers if t > NEGLIGIBLE * smallest or t == max(layers))
    edge = min(edge, thinnest / THIN)
    tops = [_by_depth(fault, inputs, share) for fault in model.faults]
    edge = min([edge, *(top for top in tops if top >= ENDS * edge)])
    box = inputs.box
    spans = (box.x[1] - box.x[0]) / KM, (box.y[1] - box.y[0]) / KM, box.depth / KM
    far = min(max(FAR * min(*spans), edge), 5000.0)
    growth = min(GROWTH * share, GROWTH)
    size = MeshSize(fault=edge, far=far, growth=growth, ends=ENDS)
    return with_mesh(model, size)


def with_mesh(model: Model, size: MeshSize) -> Model:
    """Return the model on a mesh of these sizes, refined once."""
    mesh = Mesh(size=size, refine=1, fit=model.mesh.fit)
    return model.model_copy(update={"mesh": mesh})


def scaled(
    model: Model, edges: float, away: float | None = None, ends: float = 1.0
) -> Model:
    """Return the model with sizes of its mesh times factors.

    Parameters
    ----------
    edges : for those on faults. away : for growth and what is far; None: the same.
    ends : for ends of slip at or near the ground, over those on faults.
    """
    size = model.mesh.size
    if size is None:
        return model
    away = edges if away is None else away
    fault, far = size.fault * edges, max(size.far * away, size.fault * edges)
    growth = float(np.clip(size.growth * away, 0.05, GROWTH))
    found = MeshSize(fault=fault, far=far, growth=growth, ends=ends * size.ends)
    return with_mesh(model, found)


def _by_depth(fault: Fault, inputs: Inputs, share: float) -> float:
    """Return the longest edge that the depth of a fault's top allows, km."""
    top = top_depth(fault, inputs)
    return TOP * top * share if top > 0.0 else np.inf


def _slipping(fault: Fault, inputs: Inputs, grids: Sequence[Sources]) -> float:
    """Return the shorter side of what slips as one on a fault, km."""
    length, width = _extent(fault, inputs)
    grid = next((g for g in grids if g.fault == fault.name), None)
    if grid is None:
        return min(length, width)
    support = SUPPORT if grid.shape == "bspline" else 1.0
    sides = length / grid.along_strike, width / grid.down_dip
    return min(*(support * side for side in sides), length, width)


def _extent(fault: Fault, inputs: Inputs) -> tuple[float, float]:
    """Return length and width of a fault, km."""
    if fault.plane is not None:
        found = plane_fault(fault.name, fault.plane, inputs.frame)
        return found.length / KM, found.width / KM
    known = inputs.interfaces[fault.name]
    bounds = known.points[:, :2] if known.outline is None else known.outline
    centred = bounds - bounds.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    length = max(float(np.ptp(along)), 1.0)
    width = surface_area(known) / length
    return length / KM, max(min(width, length), 1e-3 * length) / KM
