"""Compile the kernels of a curve before a model is there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np

from afterslip_common.terms import KM, YEAR
from afterslip_solver.array_cache import NO_CACHE
from afterslip_solver.backend import LANES, compile_kernels
from afterslip_solver.greens.nested_guess import NestedGuess, Solutions
from afterslip_solver.greens.prepared import prepare
from afterslip_solver.greens.space_error import (
    BUILT,
    elastic_and_change,
    space_error_between,
)
from afterslip_solver.jit.ahead import compile_listed
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import (
    Box,
    Geometry,
    Interface,
    boundary_conditions,
    coarsened,
    surface_trace,
)
from afterslip_solver.mesh.imported import imported_geometry
from afterslip_solver.mesh.smoothing import on_walls, smoothed
from afterslip_solver.model import Materials, Model, SolverSettings
from afterslip_solver.multigrid import Cycle, MultigridSettings
from afterslip_solver.multigrid.local_smoothing import smooth_slow_elements
from afterslip_solver.testing.box import box_mesh, box_with_fault

_SHEAR, _VISCOSITY = 30e9, 1e19
_TIMES = np.array([10 * YEAR])
_SETTINGS = SolverSettings(
    (0.0, *_TIMES), 10 * YEAR, tolerance=1e-5, time_tolerance=1e-3
)
# stencils of macro elements take meshes that were refined so often
_REFINE = 3


def compile_ahead(backend: str = "cpu") -> None:
    """Compile what is listed, then whatever else `solve_samples` calls.

    Kernels are stored on disk, those of the CPU as `jit.compiling` says, so that other
    processes only load them. Processes that do this at once share the work on the
    CPU's; those of a GPU are compiled beside them.
    """
    with ThreadPoolExecutor(1) as beside:
        kernels = beside.submit(compile_kernels, backend)
        compile_listed(backend)
    kernels.result()
    solve_samples(backend)


def solve_samples(backend: str = "cpu") -> None:
    """Solve a box of Maxwell rock, and compare it with itself.

    On a GPU also a box that was refined as often as stencils need, beside the mesh
    that it was refined from.
    """
    _move_vertices()
    box = box_with_fault(
        (6, 6, 4), (60e3, 60e3, 40e3), 45.0, length=20e3, top=10e3, width=14.142135e3
    )
    model = _model(box)
    nodes = model.surface.nodes
    prepared = prepare(model, _SETTINGS, backend)
    # so small a mesh is slow nowhere
    system, everywhere = prepared.elastic.system, MultigridSettings(local_share=1.0)
    cycle = cast("Cycle", system.cycle)
    smooth_slow_elements(system.operator, cycle, everywhere, NO_CACHE)
    found = prepared.solve(_slip(model), nodes)
    itself = np.arange(len(nodes))[:, None], np.ones((len(nodes), 1))
    coarse = elastic_and_change(found, _TIMES)
    space_error_between(found, _TIMES, coarse, *itself, BUILT)
    if backend != "cpu":
        solve_nested(backend)


def _move_vertices() -> None:
    """Move the vertices of a mesh as beside curved faults; find depths of a surface."""
    size = 60 * KM
    mesh = box_mesh((4, 4, 4), (size, size, size))
    vertices = mesh.nodes[: mesh.n_vertex].copy()
    box = Box((-size / 2, size / 2), (-size / 2, size / 2), size)
    inner = np.asarray(~on_walls(vertices, box).any(axis=1))
    # so far that elements beside one are poor
    vertices[np.flatnonzero(inner)[0]] += 0.45 * size / 4 * np.array([1.0, 0.0, 1.0])
    smoothed(vertices, mesh.cells.copy(), inner, box, [])
    points = vertices.copy()
    points[:, 2] = 0.3 * points[:, 0] - size
    Interface.fit(points).depth_and_dip(*points.T[:2])


def small_refined(refine: int = _REFINE) -> Model:
    """Return a model on a mesh that was refined, so often that stencils take it."""
    lengths = 20 * KM, 30 * KM, 20 * KM
    small = box_with_fault((2, 3, 2), lengths, 90.0, 10 * KM, 0.0, 10 * KM)
    triangles = {n: fault.triangles[:, :3] for n, fault in small.faults.items()}
    return _model(imported_geometry(small.mesh, triangles, refine))


def _model(geometry: Geometry) -> Model:
    """Return rock of two stiffnesses, which change in the middle of elements."""
    mesh = geometry.mesh
    uniform, count = np.full, len(mesh.cells)
    shear = uniform(count, _SHEAR)
    shear[0] *= 2.0
    return Model(
        mesh=mesh,
        materials=Materials(
            lam=uniform(count, _SHEAR),
            mu=shear,
            rho=uniform(count, 3000.0),
            viscosity=uniform(count, _VISCOSITY),
        ),
        fixed=boundary_conditions(mesh, "roller", "fixed"),
        surface=surface_trace(mesh),
        faults=geometry.faults,
        splits=geometry.splits,
    )


def _slip(model: Model) -> dict[str, np.ndarray]:
    ((name, fault),) = model.faults.items()
    slip = np.zeros((len(fault.nodes), 3, LANES))
    slip[:, 0] = 1.0
    return {name: slip}


def solve_nested(backend: str, refine: int = _REFINE) -> None:
    """Solve on a refined mesh from the solutions on the one before."""
    fine = small_refined(refine)
    coarse = coarsened(fine, restoring_force)
    if coarse is None:
        raise AssertionError("a mesh that was refined has no mesh before it")
    first, second = (prepare(one, _SETTINGS, backend) for one in (coarse, fine))
    keep = Solutions()
    first.solve(_slip(coarse), coarse.surface.nodes, keep=keep)
    guesses = NestedGuess(first.elastic, second.elastic).guesses(keep)
    second.solve(_slip(fine), fine.surface.nodes, guesses=guesses)
