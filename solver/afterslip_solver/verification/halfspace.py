"""Slip in a large box against the elastic half-space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from afterslip_solver.mesh import Box, MeshSize, PlaneFault, build_mesh, surface_trace
from afterslip_solver.model import FaultMesh, Float, Model, SolverSettings, SplitNodes
from afterslip_solver.reference import (
    Rectangles,
    dislocation_surface,
    surface_displacement,
)
from afterslip_solver.sources import uniform_slip
from afterslip_solver.verification.blocks import (
    FAULT,
    held_sides_and_bottom,
    uniform_materials,
)
from afterslip_solver.verification.check import Check, Size, at_least, at_most
from afterslip_solver.verification.device import prepared

NAME = "halfspace"
LENGTH, WIDTH = 40e3, 20e3
HALF = 300e3  # half the box's width, and its depth
NEAR, FAR = 1500, 300  # surface nodes compared: the nearest, and some of the others
CASES = {
    "buried thrust": (5e3, 0.0, 30.0, (0.0, 1.0)),
    "surface-breaking thrust": (0.0, 0.0, 30.0, (0.0, 1.0)),
    "vertical strike-slip": (0.0, 15.0, 90.0, (1.0, 0.0)),
    "dipping rectangle, oblique slip": (5e3, 37.0, 60.0, (0.6, 0.8)),
}


@dataclass(frozen=True, slots=True)
class Misfit:
    """Largest errors at the surface, relative to the largest displacement.

    Attributes
    ----------
    tapered : tapered slip against the same slip in the half-space.
    uniform : uniform slip against the same nodal slip in the half-space.
    rectangle : uniform slip against Okada's rectangle.
    """

    tapered: float
    uniform: float
    rectangle: float


def run(size: Size) -> Iterator[Check]:
    """All cases on a sequence of meshes; truncation of the box for one of them."""
    parts = (8, 16) if size == "small" else (4, 8, 16)
    for words in CASES:
        errors = [misfit(words, WIDTH / n) for n in parts]
        yield from _judge(words, errors, parts)
    near = _surface("buried thrust", WIDTH / 4, HALF)
    far = _surface("buried thrust", WIDTH / 4, 2 * HALF)
    yield at_most(
        NAME,
        f"box of {2 * HALF / 1e3:.0f} km against half-space, median error 50 to "
        "150 km away",
        _median_error("buried thrust", *near),
        2e-3,
        "Boussinesq and Cerruti by reciprocity, the same slip",
        "the box cuts off a field that decays as 1/r^2: (40/300)^2 of 0.1",
        1e-3,
    )
    yield at_least(
        NAME,
        "the same error over that of a box twice as large",
        _median_error("buried thrust", *near) / _median_error("buried thrust", *far),
        1.5,
        "Boussinesq and Cerruti by reciprocity, the same slip",
        "far from the fault only the truncation is left, and it falls with the box",
    )


def _judge(words: str, errors: list[Misfit], parts: tuple[int, ...]) -> Iterator[Check]:
    finest = parts[-1]
    at = f"{words}, {finest} elements down dip"
    same = "Boussinesq and Cerruti by reciprocity, the same slip"
    note = (
        "beyond one element of the tip: 2 % of the largest displacement with 16 "
        "elements down dip, in proportion with fewer"
    )
    measured = (
        ("tapered slip", errors[-1].tapered, same),
        ("uniform slip", errors[-1].uniform, same),
        ("uniform rectangle", errors[-1].rectangle, "Okada (1985), rectangle"),
    )
    for form, error, reference in measured:
        tolerance = 0.02 * 16 / finest
        yield at_most(NAME, f"{at}, {form}", error, tolerance, reference, note, 1e-3)
    yield at_least(
        NAME,
        f"{words}, fall of the tapered error from {parts[0]} to {finest} elements",
        errors[0].tapered / errors[-1].tapered,
        1.5 * finest / parts[0] / 2.0,
        same,
        "at least nearly first order near the tip, where the field is least smooth",
    )


def misfit(words: str, edge: float) -> Misfit:
    """Errors of one case on a mesh with the given size of fault elements, m."""
    top, strike, dip, slip = CASES[words]
    xy, u, corners, nodal = _surface(words, edge, HALF)
    references = [dislocation_surface(xy, corners, s) for s in nodal]
    plane = Rectangles(0.0, 0.0, top, strike, dip, LENGTH, WIDTH)
    references.append(surface_displacement(xy, plane, [*slip, 0.0]))
    found = (u[0], u[1], u[1])
    return Misfit(
        *(
            float(np.abs(a - b).max() / np.abs(b).max())
            for a, b in zip(found, references, strict=True)
        )
    )


def _surface(
    words: str, edge: float, half: float
) -> tuple[Float, Float, Float, list[Float]]:
    """Solve for tapered and uniform slip.

    Returns
    -------
    xy : (n_point, 2) m, surface nodes further than an element from the slipping
        rectangle. u : (2, n_point, 3) m. corners : (n_tri, 3, 3) m. slips : two of
        (n_tri, 6, 3) m, as the split nodes see them.
    """
    top, strike, dip, slip = CASES[words]
    plane = PlaneFault(FAULT, 0.0, 0.0, top, strike, dip, LENGTH, WIDTH)
    box = Box((-half, half), (-half, half), half)
    geometry = build_mesh(box, [plane], MeshSize(edge, half / 5.0, 0.3))
    mesh, fault = geometry.mesh, geometry.faults[FAULT]
    surface = surface_trace(mesh)
    model = Model(
        mesh,
        uniform_materials(mesh, 30e9, 30e9),
        held_sides_and_bottom(mesh),
        surface,
        geometry.faults,
        geometry.splits,
    )
    slips = np.stack([uniform_slip(fault, *slip, taper=t) for t in (True, False)], 2)
    result = prepared(model, SolverSettings()).solve(slips, surface.nodes)
    if result.outcome != "converged":
        raise ArithmeticError(result.advice)
    inside = (np.abs(fault.along / LENGTH - 0.5) < 0.5 + 1e-6) & (
        np.abs(fault.down / WIDTH - 0.5) < 0.5 + 1e-6
    )
    points = mesh.nodes[surface.nodes]
    distance = KDTree(mesh.nodes[fault.nodes[inside]]).query(points)[0]
    order = np.argsort(distance, kind="stable")
    order = order[distance[order] > edge]
    others = order[NEAR:]
    keep = np.concatenate((order[:NEAR], others[:: len(others) // FAR + 1]))
    seen = _seen(fault, geometry.splits[FAULT])
    place = np.searchsorted(fault.nodes, fault.triangles)
    nodal = [(slips[:, :, k] * seen[:, None])[place] for k in range(2)]
    active = np.abs(nodal[1]).max(axis=(1, 2)) > 0
    return (
        points[keep, :2],
        result.response[:, 0, keep],
        mesh.nodes[fault.triangles[active, :3]],
        [s[active] for s in nodal],
    )


def _seen(fault: FaultMesh, split: SplitNodes) -> Float:
    """(n_fault_node,) 1 where a node is split, 0 on the rim."""
    seen = np.zeros(len(fault.nodes))
    seen[split.index[split.sign != 0]] = 1.0
    return seen


def _median_error(
    words: str, xy: Float, u: Float, corners: Float, slips: list[Float]
) -> float:
    """Error of the tapered slip where only the truncation of the box is left."""
    radius = np.linalg.norm(xy, axis=1)
    ring = (radius > 50e3) & (radius < 150e3)
    exact = dislocation_surface(xy, corners, slips[0])
    error = np.linalg.norm(u[0] - exact, axis=1)[ring]
    return float(np.median(error) / np.abs(exact).max())
