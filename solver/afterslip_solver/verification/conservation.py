"""Forces of a split-node slip: no net force, no torque, the right moment tensor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from afterslip_solver.mesh import Box, Geometry, MeshSize, PlaneFault, build_mesh
from afterslip_solver.model import Float
from afterslip_solver.testing.box import box_with_fault
from afterslip_solver.verification.blocks import (
    FAULT,
    slip_moment,
    smooth_slip,
    uniform_materials,
    varied_materials,
)
from afterslip_solver.verification.check import Check, Size, at_most
from afterslip_solver.verification.system import System

NAME = "conservation"
LAM, MU = 40e9, 30e9
ROUNDING = "exact in exact arithmetic; leaves rounding of sums over the fault's nodes"


def run(size: Size) -> Iterator[Check]:
    """Dipping faults, buried and at the surface, structured and not."""
    edge = 8.0 if size == "small" else 4.0
    box = Box((-60.0, 60.0), (-60.0, 60.0), 50.0)
    buried = PlaneFault(FAULT, 1.0, -2.0, 6.0, 20.0, 35.0, 24.0, 20.0)
    breaking = PlaneFault(FAULT, 1.0, -2.0, 0.0, 20.0, 35.0, 24.0, 20.0)
    cases = {
        "buried fault, unstructured": build_mesh(
            box, [buried], MeshSize(edge, 3 * edge)
        ),
        "surface-breaking fault, unstructured": build_mesh(
            box, [breaking], MeshSize(edge, 3 * edge)
        ),
        "45-degree fault, structured": box_with_fault(
            dip=45.0, length=2.0, top=1.0, width=float(np.sqrt(2.0))
        ),
    }
    for words, geometry in cases.items():
        yield from _case(words, geometry)


def _case(words: str, geometry: Geometry) -> Iterator[Check]:
    mesh, fault = geometry.mesh, geometry.faults[FAULT]
    split = geometry.splits[FAULT]
    free = np.zeros((len(mesh.nodes), 3), dtype=np.bool_)
    slip = smooth_slip(fault)
    system = System.build(mesh, uniform_materials(mesh, LAM, MU), free)
    force = system.offset_load(split, slip[:, :, None])[:, :, 0]
    size = float(np.abs(force).sum())
    extent = float(np.ptp(mesh.nodes[fault.nodes], axis=0).max())
    yield at_most(
        NAME,
        f"net force over the sum of forces ({words})",
        float(np.abs(force.sum(axis=0)).max()) / size,
        1e-12,
        "a slip is an inner source",
        ROUNDING,
    )
    centre = mesh.nodes[fault.nodes].mean(axis=0)
    dipole = force.T @ (mesh.nodes - centre)
    yield at_most(
        NAME,
        f"net torque over forces times the fault's extent ({words})",
        float(np.abs(dipole - dipole.T).max()) / (size * extent),
        1e-12,
        "a slip is an inner source",
        ROUNDING,
    )
    yield at_most(
        NAME,
        f"moment tensor of the nodal forces, relative error ({words})",
        _moment_error(dipole, slip_moment(mesh, fault, slip), fault.open_top),
        1e-10,
        "M = mu (s n + n s) A + lambda (s.n) A 1, slip integrated over the triangles",
        "at the surface only its three parts that work on traction-free strain count; "
        + ROUNDING,
    )
    rough = System.build(mesh, varied_materials(mesh), free)
    force = rough.offset_load(split, slip[:, :, None])[:, :, 0]
    torque = force.T @ (mesh.nodes - centre)
    size = float(np.abs(force).sum())
    worst = max(
        float(np.abs(force.sum(axis=0)).max()) / size,
        float(np.abs(torque - torque.T).max()) / (size * extent),
    )
    yield at_most(
        NAME,
        f"net force and torque where moduli vary tenfold ({words})",
        worst,
        1e-12,
        "a slip is an inner source",
        ROUNDING,
    )


def _moment_error(dipole: Float, potency: Float, at_surface: bool) -> float:
    """Work on uniform stress: sigma : (s n) A against strain : (force x).

    The offsets of a fault that reaches the surface lie in elements with a free
    side, so only stress without traction on that side may be used.
    """
    pairs = [(0, 0), (1, 1), (0, 1), (2, 2), (0, 2), (1, 2)]
    work, exact = [], []
    for i, j in pairs[: 3 if at_surface else 6]:
        stress = np.zeros((3, 3))
        stress[i, j] = stress[j, i] = 1.0
        share = LAM / (3.0 * LAM + 2.0 * MU) * np.trace(stress)
        strain = (stress - share * np.eye(3)) / (2.0 * MU)
        work.append((strain * dipole).sum())
        exact.append((stress * potency).sum())
    return float(np.abs(np.subtract(work, exact)).max() / np.abs(exact).max())
