"""Errors of a campaign's model, from some of its unit sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from afterslip.frame import Frame
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
from afterslip.schemas import earth
from afterslip_solver.greens.space_error import elastic_and_change, loosened
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import coarsened, opposite_conditions, placed_slip
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_solver.model import Float, Model
from afterslip_solver.sources import element_width
from afterslip_workers.engines.viscoelastic.accuracy import Measure, Walls
from afterslip_workers.engines.viscoelastic.error_shares import Errors
from afterslip_workers.engines.viscoelastic.settings import prepared_for, settings_of
from afterslip_workers.engines.viscoelastic.sources import UnitSources, unit_slip
from afterslip_workers.engines.viscoelastic.space import (
    Coarse,
    prepared_coarse,
    slipping,
)

# share of the largest slip by which it differs within a triangle where it ends abruptly
_ABRUPT = 0.4
# of a triangle, a quarter of its sides apart: weights of its corners
_PLACES = 0.25 * np.array(
    [(a, b, 4 - a - b) for a in range(5) for b in range(5 - a)], dtype=np.float64
)
# of the curve, at which sources are looked at
_MOMENTS = (0.1, 1.0)


def off_traces(model: Model, points: Float) -> Float:
    """(n_point,) distances to the nearest trace of a fault, in elements on that fault.

    Parameters
    ----------
    points : (n_point, 2 or 3) m.
    """
    apart = np.full(len(points), np.inf)
    top = float(model.mesh.nodes[:, 2].max())
    for fault in model.faults.values():
        nodes = model.mesh.nodes[fault.nodes]
        trace = nodes[nodes[:, 2] >= top - 1.0, :2]
        if len(trace):
            distance, _ = cKDTree(trace).query(points[:, :2])
            apart = np.minimum(apart, distance / element_width(fault))
    return apart


def off_ends(
    model: Model, slip: dict[str, Float], points: Float
) -> tuple[Float, Float]:
    """(n_point,) m and elements on that fault, distances from abrupt ends of slip.

    Within an element errors are larger than elsewhere on every mesh, and estimates
    little related to them.

    Parameters
    ----------
    slip : fault name → (n_fault_node, 3, 1) m. points : (n_point, 3) m.
    """
    apart, elements = np.full((2, len(points)), np.inf)
    for name, values in slip.items():
        fault = model.faults[name]
        length = np.linalg.norm(values[:, :, 0], axis=1)
        of_triangles = length[np.searchsorted(fault.nodes, fault.triangles)]
        ends = np.ptp(of_triangles, axis=1) > _ABRUPT * length.max()
        if ends.any():
            corners = model.mesh.nodes[fault.triangles[ends, :3]]
            places = np.einsum("pc,tcx->tpx", _PLACES, corners).reshape(-1, 3)
            distance, _ = cKDTree(places).query(points)
            apart = np.minimum(apart, distance)
            elements = np.minimum(elements, distance / element_width(fault))
    return apart, elements


def of_sources(spec: ViscoelasticCampaign, backend: str) -> Measure:
    """Return what measures a campaign's models by some of its unit sources."""

    def measure(model: Model, _: dict[str, Any]) -> Errors:
        coarse = coarsened(model, restoring_force)
        assert coarse is not None  # noqa: S101 - `sized` refines
        units = UnitSources.of(spec.grids, model)
        settings = settings_of(spec.times, spec.solver)
        times = _moments(spec)
        prepared = prepared_for(model, loosened(settings), spec.solver, backend)
        given = settings, spec.solver, backend, prepared
        second = prepared_coarse(coarse, *given)
        trace = two_sided(model)
        frame = Frame.of(spec.model.frame)
        compared = Coarse.of(coarse, second, model, trace, frame).guessing(prepared)
        at = model.mesh.nodes[trace.nodes]
        off = off_traces(model, at)
        found: list[Errors] = []
        for chosen in _probes(units):
            slip = unit_slip(units, chosen)
            there = compared.solve(units, chosen, times, lambda: False)
            fine = prepared.solve(slip, trace.nodes, guesses=there.guesses)
            trace.add_offsets(slipping(fine), slip)
            error = compared.error(fine, there, times)
            if fine.outcome != "converged" or error is None:
                return Errors.everywhere(np.inf)
            motion = elastic_and_change(fine, times)
            found.append(Errors.of(motion, error, at, off))
        return Errors.of_all(found)

    return measure


def walls_of_sources(spec: ViscoelasticCampaign, backend: str) -> Walls:
    """Return what compares a campaign's domain with one of opposite walls."""
    times = _moments(spec)

    def motion(model: Model) -> Float:
        units = UnitSources.of(spec.grids, model)
        settings = settings_of(spec.times, spec.solver)
        prepared = prepared_coarse(model, settings, spec.solver, backend)
        trace, found = two_sided(model), []
        for chosen in _probes(units):
            slip = placed_slip(model, unit_slip(units, chosen))
            solved = prepared.solve(slip, trace.nodes)
            trace.add_offsets(slipping(solved), slip)
            found.append(elastic_and_change(solved, times))
            if solved.outcome != "converged":
                found[-1][:] = np.nan
        return np.concatenate(found)

    def walls(model: Model) -> Errors:
        coarse = coarsened(model, restoring_force)
        assert coarse is not None  # noqa: S101 - `sized` refines
        at = coarse.mesh.nodes[two_sided(coarse).nodes]
        return between_walls(coarse, spec.model.boundary, motion, at)

    return walls


def between_walls(
    model: Model,
    boundary: earth.Boundary,
    motion: Callable[[Model], Float],
    points: Float,
) -> Errors:
    """Compare a model with the same between walls of the opposite kind.

    Parameters
    ----------
    model : a coarse one will do, as the difference hardly depends on the mesh.
    motion : of a model, (n_lane, 1 + n_time, n_point, 3) m, elastic and changes.
    points : (n_point, 3) m, where that is.
    """
    held = opposite_conditions(model.mesh, boundary.sides, boundary.bottom)
    here, there = motion(model), motion(replace(model, fixed=held))
    error = 0.5 * np.linalg.norm(here - there, axis=3)
    return Errors.of(here, error, points, off_traces(model, points))


def _moments(spec: ViscoelasticCampaign) -> Float:
    until = float(spec.times.until)
    return np.array(_MOMENTS) * until if until > 0.0 else np.zeros(0)


def _probes(units: UnitSources) -> list[list[int]]:
    """Return, for each fault, the sources of a group at its top and of one below.

    Those in the middle along strike; the shallowest have the finest displacements, the
    deepest the smallest.
    """
    found = []
    for name in units.faults:
        rows = units.rows(name)
        counts = units.first(name).counts
        for down in {0, counts[1] - 1}:
            wanted = (counts[0] // 2, down)
            found.append([k for k in rows if tuple(units.sources[k].patch) == wanted])
    return [chosen for chosen in found if chosen]
