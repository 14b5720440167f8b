"""Patches as unit sources, against the rectangles of Okada (1985)."""

import numpy as np

from afterslip_common.terms import KM
from afterslip_solver.greens import prepare
from afterslip_solver.materials import Layer, assign
from afterslip_solver.mesh import (
    Box,
    MeshSize,
    PlaneFault,
    boundary_conditions,
    build_mesh,
    surface_trace,
)
from afterslip_solver.model import Model, SolverSettings
from afterslip_solver.reference import Rectangles, surface_displacement
from afterslip_solver.sources import slips_of, uniform_slip, unit_sources

TOP, DIP, LENGTH, WIDTH = 10 * KM, 30.0, 80 * KM, 60 * KM
HALF = 900 * KM


def model() -> Model:
    """A buried thrust in a box so wide that its sides play no part."""
    plane = PlaneFault("main", 0.0, 0.0, TOP, 0.0, DIP, LENGTH, WIDTH)
    wide = (-HALF, HALF)
    size = MeshSize(5 * KM, 200 * KM, 0.35)
    geometry = build_mesh(Box(wide, wide, HALF), [plane], size)
    mesh = geometry.mesh
    # Poisson's ratio of 0.25
    rock = [Layer("rock", HALF, 6000.0, 6000.0 / 3**0.5, 2700.0)]
    return Model(
        mesh,
        assign(mesh, rock),
        boundary_conditions(mesh, "roller", "fixed"),
        surface_trace(mesh),
        geometry.faults,
        geometry.splits,
        None,
    )


def test_every_patch_is_as_exact_as_uniform_slip():
    """Root mean squares over the peak; both end abruptly, at edges and inside."""
    case = model()
    fault, nodes = case.faults["main"], case.surface.nodes
    n, m = 4, 3
    sources = unit_sources(fault, n, m, "patch", ["dip"])
    slips = np.dstack([uniform_slip(fault, dip=1.0), slips_of(sources, fault)])
    prepared = prepare(case, SolverSettings(), "cpu")
    shown = np.concatenate(
        [
            prepared.solve({"main": slips[:, :, k : k + 4]}, nodes).response[:, 0]
            for k in range(0, slips.shape[2], 4)
        ]
    )
    xy = case.mesh.nodes[nodes, :2]
    near = (np.abs(xy[:, 0] - 20 * KM) < 100 * KM) & (np.abs(xy[:, 1]) < 90 * KM)
    a, b, dip = LENGTH / n, WIDTH / m, np.radians(DIP)
    rectangles = [Rectangles(0, 0, TOP, 0, DIP, LENGTH, WIDTH)]
    for source in sources:
        i, j = source.patch
        x, y = j * b * np.cos(dip), -LENGTH / 2 + (i + 0.5) * a
        rectangles.append(Rectangles(x, y, TOP + j * b * np.sin(dip), 0, DIP, a, b))
    shares = []
    for found, rectangle in zip(shown, rectangles, strict=True):
        okada = surface_displacement(xy, rectangle, (0, 1, 0))
        off = np.linalg.norm(found - okada, axis=1)[near]
        shares.append(np.sqrt(np.mean(off**2)) / np.linalg.norm(okada, axis=1).max())
    uniform, *patches = shares
    assert uniform < 0.006
    # measured: 0.38 to 0.63 % beside 0.46 %
    assert max(patches) < 1.6 * uniform
