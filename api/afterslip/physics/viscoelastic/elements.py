"""How many elements a mesh will have, before it is built."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from afterslip.schemas.earth import MeshSize, Model
from afterslip.schemas.fault import Fault
from afterslip.spec.coverage import plane_fault
from afterslip.spec.inputs import Inputs, Interface
from afterslip.units import KM

Float = NDArray[np.float64]

# of a regular tetrahedron with unit edges
VOLUME = math.sqrt(2.0) / 12.0
# as the mesher has it: size in a layer over its thickness
FLATNESS = 5.0
# as the mesher has it: a body's thickness over the size on faults
THINNEST = 0.25
# bytes that an element and its share of the nodes take in a mesh file, at most
BYTES = 200
# share of elements that cutting them along one side of a body adds
SIDE = 0.2
# a surface is taken to be at most this many times larger than its map
STEEPEST = 10.0


def elements(model: Model, inputs: Inputs, size: int | None = None) -> dict[str, float]:
    """Return about how many elements a mesh will have at least, by their cause.

    The causes end a sentence that says what to make coarser.

    Parameters
    ----------
    size : bytes of the file, where the mesh is imported.
    """
    mesh = model.mesh
    if mesh.size is None:
        parts = {"in model.mesh.file: use a coarser mesh": (size or 0) / BYTES}
    else:
        parts = _built(model, mesh.size, inputs)
    if mesh.refine:
        most = max(parts, key=lambda part: parts[part])
        parts = {f"{most}, or lower model.mesh.refine": sum(parts.values())}
    return {cause: count * 8.0**mesh.refine for cause, count in parts.items()}


def _built(model: Model, size: MeshSize, inputs: Inputs) -> dict[str, float]:
    """Divide volumes by those of elements of the sizes asked for."""
    box = inputs.box
    area = (box.x[1] - box.x[0]) * (box.y[1] - box.y[0]) / KM**2
    far = area * box.depth / KM / (VOLUME * size.far**3)
    parts = {"far from the faults: make mesh.size.far or the domain coarser": far}
    # both sides of a fault: one size of it that stays, then growth up to far
    reach = 1.0 + (1.0 - (size.fault / size.far) ** 2) / (2.0 * size.growth)
    on_fault = 2.0 * reach / (VOLUME * size.fault**2)
    for fault in model.faults:
        cause = f"on the fault {fault.name}: make mesh.size.fault coarser"
        parts[cause] = on_fault * _area(fault, inputs)
        cause = f"near the top of the fault {fault.name}: raise mesh.size.ends"
        parts[cause] = _near_top(fault, inputs, size)
    parts["in thin layers: join layers"] = area * sum(
        _in_layer(thickness, size, bool(number) + 1)
        for number, thickness in enumerate(thicknesses(model, inputs))
        if 0.5 * size.fault <= thickness < size.far / FLATNESS
    )
    # bodies below one file have one top
    followed = [b for b in model.bodies if b.thickness >= THINNEST * size.fault]
    sides = len(followed) + len({body.below for body in model.bodies})
    cut = "along the sides of bodies: leave some out, or make model.mesh.size coarser"
    parts[cut] = SIDE * sides * sum(parts.values())
    return parts


def _in_layer(thickness: float, size: MeshSize, sides: int) -> float:
    """Count those of a thin layer and beyond its sides, for a square km.

    Beyond a side their size grows up to ``far`` within twice their size in the layer.
    """
    own = max(FLATNESS * thickness, size.fault)
    beyond = (size.far + own) / (own * size.far**2)
    return (thickness / own**3 + sides * beyond) / VOLUME


def _near_top(fault: Fault, inputs: Inputs, size: MeshSize) -> float:
    """Count those of shorter edges around the top of a shallow fault, below the ground.

    Their size grows with the distance from a line, so that their number falls with its
    first power; a curved fault's line is taken to be as long as a square's side.
    """
    if not 0.0 < top_depth(fault, inputs) < size.fault:
        return 0.0
    plane = fault.plane
    length = math.sqrt(_area(fault, inputs)) if plane is None else plane.length
    around = 0.5 * math.pi / (VOLUME * size.growth**2)
    return around * length / size.fault * (1.0 / size.ends - 1.0)


def top_depth(fault: Fault, inputs: Inputs) -> float:
    """Return the depth of a fault's top, km; 0 where its surface is not known."""
    if fault.plane is not None:
        return float(plane_fault(fault.name, fault.plane, inputs.frame).top) / KM
    found = inputs.interfaces.get(fault.name)
    return 0.0 if found is None else float(-found.points[:, 2].max()) / KM


def thicknesses(model: Model, inputs: Inputs) -> list[float]:
    """Return those of the layers inside the domain, km; the last one fills it."""
    depth = inputs.box.depth / KM
    bottoms = [min(layer.bottom, depth) for layer in model.layers[:-1]] + [depth]
    return [low - high for high, low in pairwise([0.0, *bottoms])]


def _area(fault: Fault, inputs: Inputs) -> float:
    """Return the area of a fault, km2."""
    if fault.plane is not None:
        return fault.plane.length * fault.plane.width
    found = inputs.interfaces.get(fault.name)
    return 0.0 if found is None else surface_area(found) / KM**2


def surface_area(interface: Interface) -> float:
    """Return the area of a curved fault from its outline, or else its points, m2.

    What bounds it in the map is stretched by the mean slope of the points.
    """
    points = interface.points
    bounds = points[:, :2] if interface.outline is None else interface.outline
    centred = points - points.mean(axis=0)
    # the direction in which the points vary least
    normal = np.linalg.eigh(centred.T @ centred)[1][:, 0]
    stretch = 1.0 / max(abs(float(normal[2])), 1.0 / STEEPEST)
    try:
        # of a flat set Qhull calls the area volume
        return float(ConvexHull(bounds).volume) * stretch
    except (QhullError, ValueError):
        return 0.0  # of no width: the mesher refuses it
