"""Slip on a curved interface against triangular dislocations in the half-space.

The triangles are those of the mesh, so that only the elements' error and the box are
left; their displacement is the integral of the point force's stress over each triangle
(Boussinesq and Cerruti by reciprocity), refined towards each station until it is
resolved. A triangle with uniform slip has no artefact lines in this form.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.spatial import KDTree

from afterslip_solver.mesh import Box, CurvedFault, MeshSize, build_mesh, surface_trace
from afterslip_solver.model import Float, Model, SolverSettings
from afterslip_solver.reference import dislocation_surface
from afterslip_solver.sources import uniform_slip
from afterslip_solver.verification.blocks import (
    FAULT,
    held_sides_and_bottom,
    uniform_materials,
)
from afterslip_solver.verification.check import Check, Part, Size, at_least, at_most
from afterslip_solver.verification.device import prepared

NAME = "curved"
DEEP = 40e3
HALF = 4800e3  # m, half the box's width, and its depth
COARSE = 8e3  # m, element of the mesh that the others refine
STATIONS = 500
CASES = {"buried, bent along strike": 12e3, "through the surface, bent": 0.0}
SAME = "triangles of the mesh in the half-space, the same slip"


def interface(top: float) -> Float:
    """(n, 3) m, points of a thrust that steepens downwards and bends along strike."""
    s, depth = np.meshgrid(
        np.linspace(-60e3, 60e3, 41), np.linspace(top, DEEP + 6e3, 31), indexing="ij"
    )
    across = 2.6 * depth - 2.2e-5 * depth**2 + 1.2e-6 * s**2
    return np.column_stack((across.ravel(), s.ravel(), -depth.ravel()))


def run(size: Size) -> Iterator[Check]:
    """All parts."""
    for part in PARTS.values():
        yield from part(size)


def _case(words: str, size: Size) -> Iterator[Check]:
    """Smooth and uniform slip on nested meshes."""
    growth, times = (0.6, 1) if size == "small" else (0.4, 2)
    errors = np.array([misfit(CASES[words], growth, k) for k in range(times + 1)])
    at = f"{words}, elements of {COARSE / 2**times / 1e3:g} km"
    for form, error in zip(("tapered", "uniform"), errors[-1], strict=True):
        yield at_most(
            NAME,
            f"{at}, {form} slip, L2 error of the surface beyond an element",
            error,
            1e-2 if size == "full" else 2e-2,
            SAME,
            "relative to the L2 norm of the surface's motion",
            1e-3,
        )
    yield at_least(
        NAME,
        f"{words}, order of the tapered error, last two meshes",
        float(np.log2(errors[-2, 0] / errors[-1, 0])),
        1.0,
        SAME,
        "slip's second derivative jumps; what the box cuts off stays",
        2.0,
    )


PARTS: dict[str, Part] = {words: partial(_case, words) for words in CASES}


def misfit(top: float, growth: float, refine: int) -> tuple[float, float]:
    """Relative L2 errors of tapered and of uniform slip.

    Parameters
    ----------
    growth : of the coarsest mesh's elements per metre from the fault. refine : how
        often each edge of that mesh is halved.
    """
    shape = CurvedFault(FAULT, interface(top), max_depth=DEEP)
    box = Box((-HALF, HALF), (-HALF, HALF), HALF)
    size = MeshSize(COARSE, HALF / 4.0, growth)
    geometry = build_mesh(box, [shape], size, refine=refine)
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
    slips = np.stack(
        [uniform_slip(fault, 0.3, 1.0, taper=taper) for taper in (True, False)], axis=2
    )
    result = prepared(model, SolverSettings()).solve(slips, surface.nodes)
    if result.outcome != "converged":
        raise ArithmeticError(result.advice)
    split = geometry.splits[FAULT]
    split_nodes = np.zeros(len(fault.nodes))
    split_nodes[split.index[split.sign != 0]] = 1.0
    nodal = (slips * split_nodes[:, None, None])[
        np.searchsorted(fault.nodes, fault.triangles)
    ]
    points = mesh.nodes[surface.nodes]
    slipping = fault.nodes[np.abs(slips).max(axis=(1, 2)) > 0]
    distance = KDTree(mesh.nodes[slipping]).query(points)[0]
    order = np.argsort(distance, kind="stable")
    order = order[(distance[order] > COARSE / 2**refine) & (distance[order] < 100e3)]
    keep = order[:: max(1, len(order) // STATIONS)]
    active = np.abs(nodal).max(axis=(1, 2, 3)) > 0
    corners = mesh.nodes[fault.triangles[active, :3]]
    errors = []
    for lane in range(2):
        slip = nodal[active][..., lane]
        exact = dislocation_surface(points[keep, :2], corners, slip)
        error = result.response[lane, 0, keep] - exact
        errors.append(float(np.linalg.norm(error) / np.linalg.norm(exact)))
    return errors[0], errors[1]
