"""Betti's reciprocity between a slip and a force at a station."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from afterslip_solver.mesh import Box, MeshSize, PlaneFault, build_mesh, surface_trace
from afterslip_solver.verification.blocks import (
    FAULT,
    held_sides_and_bottom,
    smooth_slip,
    varied_materials,
)
from afterslip_solver.verification.check import Check, Size, at_most
from afterslip_solver.verification.system import System

NAME = "reciprocity"
TOLERANCE = 1e-10  # of the linear solver


def run(size: Size) -> Iterator[Check]:
    """Displacement of a station by slip against traction on the fault by a force."""
    edge = 10.0 if size == "small" else 5.0
    plane = PlaneFault(FAULT, 0.0, 0.0, 0.0, 10.0, 30.0, 40.0, 30.0)
    box = Box((-80.0, 80.0), (-80.0, 80.0), 60.0)
    geometry = build_mesh(box, [plane], MeshSize(edge, 3 * edge))
    mesh, fault = geometry.mesh, geometry.faults[FAULT]
    system = System.build(mesh, varied_materials(mesh), held_sides_and_bottom(mesh))
    bump = np.linalg.norm(smooth_slip(fault), axis=1)[:, None]
    slips = np.stack((bump * fault.strike, bump * fault.updip), axis=2)
    load = system.offset_load(geometry.splits[FAULT], slips)
    station = _station(surface_trace(mesh).nodes, mesh.nodes, np.array([15.0, 10.0]))
    force = np.zeros((len(mesh.nodes), 3, 3))
    force[station] = np.eye(3)

    direct = system.solve(load, TOLERANCE)[station]
    conjugate = np.einsum("nxs,nxc->cs", load, system.solve(force, TOLERANCE))
    yield at_most(
        NAME,
        "displacement by slip against slip-conjugate work of a unit force, 3 x 2",
        float(np.abs(direct - conjugate).max() / np.abs(direct).max()),
        1e-8,
        "Betti: c' K^-1 f = f' K^-1 c, each side solved on its own",
        "the linear solver stops at 1e-10; the error of a functional may be larger",
        1e-10,
    )
    exact = system.factorised(load)[station]
    yield at_most(
        NAME,
        "displacement by multigrid conjugate gradients against a factorisation",
        float(np.abs(direct - exact).max() / np.abs(exact).max()),
        1e-8,
        "Cholesky factorisation of the assembled matrix",
        "the linear solver stops at 1e-10",
    )


def _station(trace: np.ndarray, nodes: np.ndarray, near: np.ndarray) -> int:
    distance = np.linalg.norm(nodes[trace, :2] - near, axis=1)
    return int(trace[np.argmin(distance)])
