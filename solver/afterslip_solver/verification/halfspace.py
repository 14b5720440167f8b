"""Slip in a large box against the elastic half-space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

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
from afterslip_solver.verification.check import Check, Part, Size, at_least, at_most
from afterslip_solver.verification.device import prepared

NAME = "halfspace"
LENGTH, WIDTH = 40e3, 20e3
HALF = 1200e3  # half the box's width, and its depth
AWAY = WIDTH / 8  # m, about an element of the coarsest mesh
WITHIN = 150e3  # m from the slip
NEAR, FAR = 300, 500  # surface nodes compared: the nearest, and some of the others
CASES = {
    "buried thrust": (5e3, 0.0, 30.0, (0.0, 1.0)),
    "surface-breaking thrust": (0.0, 0.0, 30.0, (0.0, 1.0)),
    "vertical strike-slip": (0.0, 15.0, 90.0, (1.0, 0.0)),
    "dipping rectangle, oblique slip": (5e3, 37.0, 60.0, (0.6, 0.8)),
}
FORMS = ("tapered slip", "uniform slip", "uniform rectangle")
SAME = "Boussinesq and Cerruti by reciprocity, the same slip"
OKADA = "Okada (1985), rectangle"


@dataclass(frozen=True, slots=True)
class Misfit:
    """Errors at the surface beyond one element of the slip.

    Attributes
    ----------
    norm : L2 over L2, of the surface nodes. largest : over the largest displacement.
        away : the same beyond `AWAY`, hence in the same places on all meshes.
    """

    norm: float
    largest: float
    away: float


@dataclass(frozen=True, slots=True)
class Surface:
    """Solution and what a reference needs.

    Attributes
    ----------
    xy : (n_point, 2) m, stations further than an element from the slipping
        rectangle. distance : (n_point,) m, from it. weight : (n_point,) surface nodes
        that each stands for. u : (2, n_point, 3) m, tapered and uniform. corners :
        (n_tri, 3, 3) m. slips : two of (n_tri, 6, 3) m, as the split nodes see them.
    """

    xy: Float
    distance: Float
    weight: Float
    u: Float
    corners: Float
    slips: list[Float]


def run(size: Size) -> Iterator[Check]:
    """All parts."""
    for part in PARTS.values():
        yield from part(size)


def _case(words: str, size: Size) -> Iterator[Check]:
    """Tapered and uniform slip on a sequence of nested meshes."""
    count, growth, times = (8, 0.6, 1) if size == "small" else (10, 0.4, 2)
    parts = [count * 2**k for k in range(times + 1)]
    errors = [misfits(words, WIDTH / count, growth, k) for k in range(times + 1)]
    finest = parts[-1]
    at = f"{words}, {finest} elements down dip"
    limit = 0.02 * 16 / finest
    for form, error in zip(FORMS, errors[-1], strict=True):
        reference = OKADA if form == FORMS[2] else SAME
        yield at_most(
            NAME,
            f"{at}, {form}, L2 error beyond one element of the slip",
            error.norm,
            1e-2,
            reference,
            f"relative to the L2 norm, within {WITHIN / 1e3:g} km",
            1e-3,
        )
        yield at_most(
            NAME,
            f"{at}, {form}, largest error beyond {AWAY / 1e3:g} km of the slip",
            error.away,
            limit,
            reference,
            "of the largest displacement; 2 % with 16 elements down dip, in proportion",
            1e-3,
        )
        yield at_most(
            NAME,
            f"{at}, {form}, largest error beyond one element of the slip",
            error.largest,
            max(limit, 0.02),
            reference,
            "2 % of the largest displacement; an abrupt end at the surface is as sharp "
            "for every mesh, and so errs the element beside it",
            1e-3,
        )
    yield at_least(
        NAME,
        f"{words}, fall of the tapered error from {parts[0]} to {finest} elements",
        errors[0][0].largest / errors[-1][0].largest,
        1.5 * finest / parts[0] / 2.0,
        SAME,
        "at least nearly first order near the tip, where the field is least smooth",
    )


def _box(size: Size) -> Iterator[Check]:
    """Measure the truncation, with one mesh for both sizes."""
    del size
    words, half = "buried thrust", 300e3
    near, far = (
        _median_error(solve(words, WIDTH / 4, h, 0.3)) for h in (half, 2 * half)
    )
    yield at_most(
        NAME,
        f"box of {2 * half / 1e3:.0f} km against half-space, median error 50 to "
        "150 km away",
        near,
        2e-3,
        SAME,
        "the box cuts off a field that decays as 1/r^2: (40/300)^2 of 0.1",
        1e-3,
    )
    yield at_least(
        NAME,
        "the same error over that of a box twice as large",
        near / far,
        1.5,
        SAME,
        "far from the fault only the truncation is left, and it falls with the box",
    )


PARTS: dict[str, Part] = {
    **{words: partial(_case, words) for words in CASES},
    "box": _box,
}


def misfits(words: str, edge: float, growth: float, refine: int) -> list[Misfit]:
    """Errors of tapered slip, uniform slip, and uniform slip against Okada's.

    Parameters
    ----------
    edge : m, of elements on the fault of the coarsest mesh. growth : of its elements
        per metre from the fault. refine : how often each of its edges is halved.
    """
    top, strike, dip, slip = CASES[words]
    found = solve(words, edge, HALF, growth, refine)
    references = [dislocation_surface(found.xy, found.corners, s) for s in found.slips]
    plane = Rectangles(0.0, 0.0, top, strike, dip, LENGTH, WIDTH)
    references.append(surface_displacement(found.xy, plane, [*slip, 0.0]))
    away = found.distance > AWAY
    root = np.sqrt(found.weight)[:, None]
    out = []
    for lane, exact in zip((0, 1, 1), references, strict=True):
        error, scale = found.u[lane] - exact, np.abs(exact).max()
        out.append(
            Misfit(
                float(np.linalg.norm(root * error) / np.linalg.norm(root * exact)),
                float(np.abs(error).max() / scale),
                float(np.abs(error[away]).max() / scale),
            )
        )
    return out


def solve(
    words: str, edge: float, half: float, growth: float, refine: int = 0
) -> Surface:
    """Solve for tapered and uniform slip.

    Parameters
    ----------
    edge : m, of elements on the fault before they are refined. half : m, half the
        box's width, and its depth.
    """
    top, strike, dip, slip = CASES[words]
    plane = PlaneFault(FAULT, 0.0, 0.0, top, strike, dip, LENGTH, WIDTH)
    box = Box((-half, half), (-half, half), half)
    size = MeshSize(edge, half / 5.0, growth)
    geometry = build_mesh(box, [plane], size, refine=refine)
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
    chosen = order[(distance[order] > edge / 2**refine) & (distance[order] < WITHIN)]
    step = max(1, (len(chosen) - NEAR) // FAR)
    keep = np.concatenate((chosen[:NEAR], chosen[NEAR::step]))
    split_nodes = _split_nodes(fault, geometry.splits[FAULT])
    place = np.searchsorted(fault.nodes, fault.triangles)
    nodal = [(slips[:, :, k] * split_nodes[:, None])[place] for k in range(2)]
    active = np.abs(nodal[1]).max(axis=(1, 2)) > 0
    return Surface(
        points[keep, :2],
        distance[keep],
        np.where(np.arange(len(keep)) < NEAR, 1.0, step),
        result.response[:, 0, keep],
        mesh.nodes[fault.triangles[active, :3]],
        [s[active] for s in nodal],
    )


def _split_nodes(fault: FaultMesh, split: SplitNodes) -> Float:
    """(n_fault_node,) 1 where a node is split, 0 on the rim."""
    split_nodes = np.zeros(len(fault.nodes))
    split_nodes[split.index[split.sign != 0]] = 1.0
    return split_nodes


def _median_error(found: Surface) -> float:
    """Error of the tapered slip where only the truncation of the box is left."""
    radius = np.linalg.norm(found.xy, axis=1)
    ring = (radius > 50e3) & (radius < 150e3)
    exact = dislocation_surface(found.xy, found.corners, found.slips[0])
    error = np.linalg.norm(found.u[0] - exact, axis=1)[ring]
    return float(np.median(error) / np.abs(exact).max())
