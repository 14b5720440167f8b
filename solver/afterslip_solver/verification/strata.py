"""Elastic layer over a Maxwell half-space in three dimensions.

Smooth reverse slip on a buried rectangle in the layer; the reference is a sum of point
dislocations by wavenumber and frequency, which knows nothing of elements or steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from afterslip_solver.greens import evaluate_curve
from afterslip_solver.mesh import (
    Box,
    MeshSize,
    PlaneFault,
    build_mesh,
    surface_trace,
)
from afterslip_solver.model import Float, Materials, Model, SolverSettings
from afterslip_solver.reference import PointSources, Stratum, layered_displacement
from afterslip_solver.verification.blocks import FAULT, held_sides_and_bottom
from afterslip_solver.verification.check import Check, Size, at_most
from afterslip_solver.verification.device import prepared

NAME = "strata"
LID = Stratum(30e3, 35e9, 35e9)
MANTLE = Stratum(float("inf"), 75e9, 65e9, 1e19)
TAU = MANTLE.viscosity / MANTLE.mu
TIMES = TAU * np.array([0.0, 1.0, 3.0, 10.0])
PLANE = PlaneFault(FAULT, 0.0, 0.0, 8e3, 0.0, 30.0, 60e3, 30e3)
COMPARED = 100e3
REFERENCE = "propagation in wavenumber, inverse Laplace transform (own, see reference)"


@dataclass(frozen=True, slots=True)
class Misfit:
    """Errors in L2, and of the change in time over its peak.

    Attributes
    ----------
    elastic : at t = 0. transient : (n_time - 1,) of the change since t = 0.
    x, found, exact : (n,) m and (n_time, n, 3) m, for figures.
    """

    elastic: float
    transient: Float
    points: Float
    found: Float
    exact: Float


def run(size: Size) -> Iterator[Check]:
    """Elastic response, then the relaxation up to ten relaxation times."""
    edge, half, growth, refine = 4e3, 1200e3, 0.2, 0
    if size == "full":
        edge, half, growth, refine = 6e3, 2400e3, 0.3, 2
    result = misfit(edge, half, growth, refine)
    finest = edge / 2**refine
    at = f"elements of {finest / 1e3:g} km, box of {2 * half / 1e3:g} km"
    yield at_most(
        NAME,
        f"elastic displacement of a layered half-space, L2, {at}",
        result.elastic,
        1e-2,
        REFERENCE,
        "relative to the L2 norm, within 100 km",
        1e-3,
    )
    for time, error in zip(TIMES[1:] / TAU, result.transient, strict=True):
        yield at_most(
            NAME,
            f"relaxation until {time:g} relaxation times, {at}",
            float(error),
            3e-2,
            REFERENCE,
            "relative to the peak of the transient at that time, within 100 km",
            1e-2,
        )


def bump(along: Float, down: Float) -> Float:
    """Slip (m) at relative positions 0 to 1 on the rectangle, smooth at its edges."""
    inside = (along > 0) & (along < 1) & (down > 0) & (down < 1)
    value = np.sin(np.pi * along) ** 2 * np.sin(np.pi * down) ** 2
    return np.where(inside, value, 0.0)


def point_sources(n_along: int = 24, n_down: int = 16) -> PointSources:
    """Place the same slip at Gauss points of the rectangle."""
    a, wa = np.polynomial.legendre.leggauss(n_along)
    d, wd = np.polynomial.legendre.leggauss(n_down)
    along, down = np.meshgrid(0.5 * (a + 1.0), 0.5 * (d + 1.0), indexing="ij")
    weight = 0.25 * np.outer(wa, wd) * PLANE.length * PLANE.width * bump(along, down)
    strike, updip, normal = PLANE.axes
    position = (
        PLANE.origin
        + along.reshape(-1, 1) * PLANE.length * strike
        - down.reshape(-1, 1) * PLANE.width * updip
    )
    n = len(position)
    return PointSources(
        position, weight.reshape(-1, 1) * updip, np.repeat(normal[None], n, axis=0)
    )


def misfit(edge: float, half: float, growth: float, refine: int = 0) -> Misfit:
    """Compare one mesh with the reference at nodes of the surface.

    Parameters
    ----------
    edge : m, size of elements on the fault before they are refined. half : m, half
        the box's width, its depth. growth : of those elements, per metre from the
        fault. refine : how often each edge is halved.
    """
    box = Box((-half, half), (-half, half), half)
    size = MeshSize(edge, half / 5.0, growth)
    geometry = build_mesh(box, [PLANE], size, [LID.bottom], refine)
    mesh, fault = geometry.mesh, geometry.faults[FAULT]
    below = mesh.nodes[mesh.cells].mean(axis=1)[:, 2] < -LID.bottom
    materials = Materials(
        np.where(below, MANTLE.lam, LID.lam),
        np.where(below, MANTLE.mu, LID.mu),
        np.full(len(below), 3000.0),
        np.where(below, MANTLE.viscosity, np.inf),
    )
    surface = surface_trace(mesh)
    model = Model(
        mesh,
        materials,
        held_sides_and_bottom(mesh),
        surface,
        geometry.faults,
        geometry.splits,
    )
    settings = SolverSettings(
        times=tuple(TIMES), until=float(TIMES[-1]), time_tolerance=1e-5
    )
    slip = bump(fault.along / fault.length, fault.down / fault.width)
    slip = (slip[:, None] * fault.updip)[:, :, None]
    result = prepared(model, settings).solve(slip, surface.nodes)
    if result.outcome != "converged":
        raise ArithmeticError(result.advice)
    points = mesh.nodes[surface.nodes]
    near = np.flatnonzero(np.linalg.norm(points[:, :2], axis=1) < COMPARED)
    near = near[:: max(1, len(near) // 200)]
    found = evaluate_curve(result, TIMES)[0][:, near]
    exact = layered_displacement(
        points[near, :2], point_sources(), [LID, MANTLE], TIMES
    )
    change = exact[1:] - exact[0]
    error = np.abs(found[1:] - found[0] - change).max(axis=(1, 2))
    return Misfit(
        float(np.linalg.norm(found[0] - exact[0]) / np.linalg.norm(exact[0])),
        np.asarray(error / np.abs(change).max(axis=(1, 2))),
        points[near],
        found,
        exact,
    )
