"""Build the mesh of a box with faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_common.geometry import Box, PlaneFault
from afterslip_solver.mesh.conform import (
    Boundary,
    Plate,
    boundaries_of,
    conform,
)
from afterslip_solver.mesh.curved import CurvedSurface, place_curved
from afterslip_solver.mesh.geometry import (
    CurvedFault,
    Geometry,
    MeshSize,
)
from afterslip_solver.mesh.mesher import Mesher, RawMesh, quiet_gmsh
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.order import in_space_order
from afterslip_solver.mesh.planar import (
    CLEAR,
    EmbeddedPlane,
    check_rectangle,
    place_plane,
)
from afterslip_solver.mesh.quality import check_quality
from afterslip_solver.mesh.refine import Projection, refine_uniformly
from afterslip_solver.mesh.split import split_nodes
from afterslip_solver.mesh.thin import ThinPlates
from afterslip_solver.model import Int

# elements in a layer are at most this many times its thickness
_FLATNESS = 5.0
# in sizes of fault elements: surfaces this close would leave slivers between them
_APART = 0.1
_THIN = 0.5
_ROUNDING = 1e-6


def build_mesh(
    box: Box,
    faults: Sequence[PlaneFault | CurvedFault],
    size: MeshSize,
    horizons: Sequence[float] = (),
    refine: int = 0,
    clearance: float | None = None,
    plates: Sequence[Plate] = (),
) -> Geometry:
    """Tetrahedra that conform to faults, layers, plates and the free surface.

    Parameters
    ----------
    horizons : m, depths of the bottoms of layers. Faces follow them unless a note says
        why not.
    refine : number of uniform refinements, each making eight elements of one.
    clearance : m, size of elements that margins of faults, and what is too close to
        each other, are measured by; default: that on the faults.
    plates : whose sides faces follow too, thin ones as `thin` says; later ones lie in
        place of earlier ones.

    Returns
    -------
    Geometry. The same input gives the same mesh. Raises MeshError.
    """
    _check(box, faults, size)
    notes: list[str] = []
    depths = sorted({h for h in horizons if 0.0 < h < box.depth})
    clearance = clearance or size.fault
    surfaces = [_place(fault, box, clearance, depths, notes) for fault in faults]
    horizons, layers = _thick(depths, box, size, clearance, notes)
    try:
        raw = _meshed(box, size, clearance, horizons, layers, surfaces)
    except MeshError:
        # without those of layers, which are then followed like those of plates
        if not horizons or all(isinstance(s, EmbeddedPlane) for s in surfaces):
            raise
        raw = _meshed(box, size, clearance, [], [], surfaces)
    near = partial(ThinPlates(size, clearance).near, raw)
    boundaries = boundaries_of(plates, horizons, near)
    raw, faces = conform(raw, boundaries, box)
    return _finish(raw, surfaces, refine, notes, _sides(boundaries, faces, box))


def _meshed(
    box: Box,
    size: MeshSize,
    clearance: float,
    horizons: Sequence[float],
    layers: Sequence[tuple[float, float, float]],
    surfaces: Sequence[EmbeddedPlane | CurvedSurface],
) -> RawMesh:
    with quiet_gmsh():
        mesher = Mesher(box, size)
        for surface in surfaces:
            surface.embed(mesher)
            if surface.top < size.fault and size.ends < 1.0:
                mesher.tops[surface.name] = surface.top
        _check_apart(mesher)
        for depth in horizons:
            # beside the edge of a fault there would be slivers
            if not _ROUNDING < _nearest_edge(depth, surfaces) < CLEAR * clearance:
                mesher.add_horizon(depth)
        return mesher.mesh(layers)


def _place(
    fault: PlaneFault | CurvedFault,
    box: Box,
    size: float,
    depths: Sequence[float],
    notes: list[str],
) -> EmbeddedPlane | CurvedSurface:
    if isinstance(fault, PlaneFault):
        return place_plane(fault, box, size, depths)
    surface = place_curved(fault, box, size, depths)
    notes.append(f"fault {fault.name}: {surface.smooth.report()}")
    if fault.tolerance is not None and surface.smooth.misfit_rms > fault.tolerance:
        notes.append(
            f"warning: fault {fault.name}: the misfit is more than mesh.fit, "
            f"{fault.tolerance / 1e3:g} km, with the finest spline too: the points are "
            "too rough"
        )
    return surface


def _sides(
    boundaries: Sequence[Boundary], faces: Sequence[Int], box: Box
) -> dict[str, tuple[Int, Projection]]:
    """Faces on boundaries, and what moves new vertices on them onto the boundary."""
    return {
        f"boundary {number}": (some, partial(boundary.project, box=box))
        for number, (boundary, some) in enumerate(zip(boundaries, faces, strict=True))
    }


def _finish(
    raw: RawMesh,
    surfaces: Sequence[EmbeddedPlane | CurvedSurface],
    refine: int,
    notes: list[str],
    sides: dict[str, tuple[Int, Projection]],
) -> Geometry:
    """Number, refine and split the raw mesh."""  # noqa: D401
    followed = {name: faces for name, (faces, _) in sides.items()} if refine else {}
    raw = replace(raw, surfaces=raw.surfaces | followed)
    vertices, cells, triangles = in_space_order(raw)
    mesh = second_order(vertices, cells)
    check_quality(mesh)
    curved: dict[str, Projection] = {
        s.name: s.project for s in surfaces if isinstance(s, CurvedSurface)
    }
    curved |= {name: sides[name][1] for name in followed}
    for level in range(1, refine + 1):
        mesh, triangles, left = refine_uniformly(mesh, triangles, curved)
        if left:
            notes.append(
                f"refinement {level}: {left} new vertices stay on straight edges, "
                "because moving them onto a curved surface would spoil elements"
            )
    check_quality(mesh)
    meshes = {s.name: s.fault_mesh(mesh, triangles[s.name]) for s in surfaces}
    splits = {name: split_nodes(mesh, fault) for name, fault in meshes.items()}
    return Geometry(mesh, meshes, splits, tuple(notes))


def _check(
    box: Box, faults: Sequence[PlaneFault | CurvedFault], size: MeshSize
) -> None:
    """Refuse what gmsh would only fail on later."""
    if not (box.x[0] < box.x[1] and box.y[0] < box.y[1] and box.depth > 0.0):
        raise MeshError("model.domain is empty: give x and y as [low, high], depth > 0")
    if not 0.0 < size.fault <= size.far:
        raise MeshError(
            f"mesh.size: fault ({size.fault / 1e3:g} km) must be positive and at most "
            f"far ({size.far / 1e3:g} km)"
        )
    if size.growth <= 0.0:
        raise MeshError("mesh.size.growth must be positive; 0.2 to 0.4 is usual")
    for fault in faults:
        if isinstance(fault, PlaneFault):
            check_rectangle(fault)
    names = [fault.name for fault in faults]
    if len(set(names)) < len(names):
        raise MeshError(f"two faults share a name among {', '.join(names)}; rename one")


def _check_apart(mesher: Mesher) -> None:
    """Refuse faults that nearly touch; those that touch or cross share nodes."""
    size = mesher.size
    for first, second in combinations(mesher.surfaces, 2):
        apart = mesher.distance(first, second)
        if _ROUNDING * size.fault < apart < _APART * size.fault:
            raise MeshError(
                f"faults {first} and {second} come closer than their margins of one "
                f"element ({size.fault / 1e3:g} km) without touching; move them "
                "apart or together, or reduce mesh.size.fault"
            )


def _thick(
    depths: Sequence[float],
    box: Box,
    size: MeshSize,
    clearance: float,
    notes: list[str],
) -> tuple[list[float], list[tuple[float, float, float]]]:
    """Return the bottoms of layers that elements can follow, and sizes they need.

    Returns
    -------
    depths : m. layers : (top, bottom, largest size), m, of thin ones.
    """
    used = [0.0]
    for depth in depths:
        thin = min(depth - used[-1], box.depth - depth)
        if thin < _THIN * clearance:
            notes.append(
                f"the mesh does not follow the layer's bottom at {depth / 1e3:g} km, "
                f"because the layer is {thin / 1e3:.2g} km thin beside elements of "
                f"{size.fault / 1e3:g} km: mesh.size.fault of "
                f"{0.95e-3 * thin / _THIN:.2g} km would do"
            )
        else:
            used.append(depth)
    layers = [
        (top, bottom, max(_FLATNESS * (bottom - top), size.fault))
        for top, bottom in pairwise([*used, box.depth])
        if _FLATNESS * (bottom - top) < size.far
    ]
    return used[1:], layers


def _nearest_edge(
    depth: float, surfaces: Sequence[EmbeddedPlane | CurvedSurface]
) -> float:
    """Smallest vertical distance of a depth from the edges of surfaces, m."""
    return min(
        (float(np.abs(surface.edge_depths - depth).min()) for surface in surfaces),
        default=np.inf,
    )
