"""Rigid motion, constant strain and block slip: exact in every P2 mesh."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from afterslip_solver.mesh import Box, MeshSize, PlaneFault, build_mesh
from afterslip_solver.model import Float, TetMesh
from afterslip_solver.operators.checks import rigid_motions
from afterslip_solver.verification.blocks import (
    FAULT,
    cut_box,
    on_sides,
    uniform_materials,
    varied_materials,
)
from afterslip_solver.verification.check import Check, Size, at_most
from afterslip_solver.verification.system import System

NAME = "patch"
ROUNDING = "exact in exact arithmetic; leaves rounding of sums of about 100 terms"
GRADIENT = np.array([[0.3, -0.2, 0.5], [0.1, 0.7, -0.4], [-0.6, 0.2, -0.1]])
JUMP = np.array([0.4, -1.0, 0.7])


def run(size: Size) -> Iterator[Check]:
    """Check operators on an unstructured mesh and split nodes on a cut box."""
    edge = 8.0 if size == "small" else 4.0
    mesh = _unstructured(edge)
    yield from _operators(mesh)
    yield from _across_the_fault()


def _unstructured(edge: float) -> TetMesh:
    """Gmsh's mesh around a dipping rectangle."""
    fault = PlaneFault("f", 1.0, -2.0, 5.0, 20.0, 35.0, 20.0, 12.0)
    box = Box((-40.0, 40.0), (-40.0, 40.0), 40.0)
    return build_mesh(box, [fault], MeshSize(edge, 3 * edge)).mesh


def _operators(mesh: TetMesh) -> Iterator[Check]:
    free = np.zeros((len(mesh.nodes), 3), dtype=np.bool_)
    system = System.build(mesh, varied_materials(mesh), free)
    rigid = rigid_motions(mesh.nodes)
    unit = float(np.abs(system.elasticity.host.diagonal).max())
    for part, form in ((slice(0, 3), "translations"), (slice(3, 6), "rotations")):
        u = rigid[:, :, part]
        forces = (system.apply(u), system.apply_elements(u))
        worst = max(float(np.abs(f).max()) for f in forces) / unit
        yield at_most(
            NAME,
            f"largest force of rigid {form}, relative to the stiffness",
            worst,
            1e-12,
            "K r = 0 for rigid r",
            ROUNDING,
        )
    even = System.build(mesh, uniform_materials(mesh, 1.3, 0.8), free)
    force = even.apply((mesh.nodes @ GRADIENT.T)[:, :, None])[:, :, 0]
    yield at_most(
        NAME,
        "largest inner force of constant strain, relative to that on the sides",
        _inner_share(mesh, force),
        1e-11,
        "constant stress has no divergence",
        ROUNDING,
    )


def _inner_share(mesh: TetMesh, force: Float) -> float:
    low, high = on_sides(mesh)
    inner = ~(low | high).any(axis=1)
    return float(np.abs(force[inner]).max() / np.abs(force[~inner]).max())


def _across_the_fault() -> Iterator[Check]:
    geometry = cut_box()
    mesh, fault = geometry.mesh, geometry.faults[FAULT]
    split = geometry.splits[FAULT]
    slip = np.tile(JUMP, (len(fault.nodes), 1))[:, :, None]
    side = np.sign(np.round(mesh.nodes[:, 0], 9))
    linear = mesh.nodes @ GRADIENT.T + 0.5 * side[:, None] * JUMP

    low, _ = on_sides(mesh)
    free = np.zeros((len(mesh.nodes), 3), dtype=np.bool_)
    even = System.build(mesh, uniform_materials(mesh, 1.3, 0.8), free)
    force = even.apply(linear[:, :, None]) - even.offset_load(split, slip)
    yield at_most(
        NAME,
        "largest inner force of constant strain with a constant jump across the fault",
        _inner_share(mesh, force[:, :, 0]),
        1e-11,
        "u = A x + s/2 on the + side, A x - s/2 on the - side",
        ROUNDING,
    )
    fixed = np.repeat(low[:, :1], 3, axis=1)
    system = System.build(mesh, varied_materials(mesh), fixed)
    u = system.solve(system.offset_load(split, slip), 1e-12)[:, :, 0]
    # a fault node carries the mean of its two sides
    exact = np.where(side > 0, 1.0, np.where(side == 0, 0.5, 0.0))[:, None] * JUMP
    yield at_most(
        NAME,
        "rigid motion of a block that slips freely, relative error",
        float(np.abs(u - exact).max() / np.abs(JUMP).max()),
        1e-8,
        "the + block moves by the slip, the fixed block not at all",
        "the linear solver stops at a relative residual of 1e-12",
    )
