"""One forward run: given slip in, displacement at points out. No service needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from afterslip.error_class import ErrorClass
from afterslip.errors import one_problem
from afterslip.identity import canonical_spec, digest, model_digest
from afterslip.physics.viscoelastic.solver import Solver
from afterslip.physics.viscoelastic.spec import ViscoelasticForward
from afterslip.readers.places import Points
from afterslip.schemas.forward import SlipFile
from afterslip.spec import load
from afterslip.spec.files import Files, LocalFiles
from afterslip.spec.inputs import Inputs, resolve
from afterslip_common.terms import SLIP_COMPONENTS, YEAR
from afterslip_solver.greens import Prepared
from afterslip_solver.greens.nested_guess import Solutions
from afterslip_solver.greens.space_error import space_error
from afterslip_solver.inversion import magnitude_of
from afterslip_solver.mesh import placed, placed_slip
from afterslip_solver.mesh.split import elements_beside
from afterslip_solver.model import Float, GroupResult, Model, SolverSettings
from afterslip_solver.parallel import DistributedModel
from afterslip_solver.sources import interpolated_slip, potency, uniform_slip
from afterslip_workers.engines.forward import place_coordinates, write
from afterslip_workers.engines.variables import variable
from afterslip_workers.engines.viscoelastic import preflight, probes
from afterslip_workers.engines.viscoelastic.accuracy import Walls, adapted
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.engines.viscoelastic.error_shares import Errors
from afterslip_workers.engines.viscoelastic.faults import fault_variables
from afterslip_workers.engines.viscoelastic.ground import local_motion
from afterslip_workers.engines.viscoelastic.places import (
    Places,
    at_points,
    elastic_and_change,
    locate,
)
from afterslip_workers.engines.viscoelastic.settings import prepared_for, settings_of
from afterslip_workers.engines.viscoelastic.space import (
    coarse_model,
    nested_guess,
    prepared_coarse,
    richardson_of,
    was_refined,
)
from afterslip_workers.errors import TaskError
from afterslip_workers.versions import versions

if TYPE_CHECKING:
    import xarray as xr

Report = Callable[[dict[str, Any]], None]


def run_forward(
    spec: str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    report: Report | None = None,
    backend: str | None = None,
    base: str | Path | None = None,
) -> xr.Dataset:
    """Compute the displacement of points for the slip of a forward spec.

    Parameters
    ----------
    spec : path of a YAML or JSON file, or its content.
    out : NetCDF file to write; None for none.
    report : called with {"phase", ...} and, while solving, with the solver's
        progress.
    backend : "auto", "cpu" or "gpu"; None for the spec's own.
    base : folder of the spec's files, where ``spec`` is its content.

    Returns
    -------
    Data set with ``displacement(time, point, component)`` in m, the slip on the
    faults' nodes, and its moment (N m), magnitude and peak (m) as attributes.

    Raises
    ------
    SpecError
        With everything that is wrong in the spec and its files.
    MeshError
        If no mesh can be made of it.
    TaskError
        If the solver gave up; the message says what to try.
    """
    if isinstance(spec, str | Path):
        forward = ViscoelasticForward.from_dict(load(Path(spec)), Path(spec).parent)
    else:
        forward = ViscoelasticForward.from_dict(dict(spec), base)
    files = LocalFiles(forward.base)
    say = report or (lambda _: None)
    say({"phase": "reading files"})
    inputs = resolve(forward, files)

    def phase(text: str) -> None:
        say({"phase": text})

    if forward.model.mesh.accuracy is None:
        model, facts = build_model(forward.model, inputs, files, phase)
        result, _ = _solved(forward, inputs, model, facts, say, backend)
    else:
        results: list[xr.Dataset] = []

        def measure(model: Model, facts: dict[str, Any]) -> Errors:
            made, errors = _solved(forward, inputs, model, facts, say, backend)
            results[:] = [made]
            return errors

        def room(model: Model) -> float:
            settings, solver, device = _how(forward, backend)
            return preflight.room(model, settings, device, solver.gpus)

        walls = walls_of_slip(forward, inputs, say, backend)
        given = forward.model, inputs, files, phase, measure
        _, facts = adapted(*given, room=room, walls=walls)
        result = results[0]
    result.attrs.update(_attributes(forward, files, facts, result))
    if out is not None:
        write(result, Path(out))
    return result


def walls_of_slip(
    forward: ViscoelasticForward,
    inputs: Inputs,
    say: Report = lambda _: None,
    backend: str | None = None,
) -> Walls:
    """Return what compares a run's domain with one of opposite walls.

    Parameters
    ----------
    say, backend : as ``report`` and ``backend`` of `run_forward`.
    """
    times = np.array([float(time) for time in forward.times.output])

    def motion(model: Model) -> Float:
        return _coarse(forward, inputs, model, times, say, backend).motion[None]

    def walls(model: Model) -> Errors | None:
        coarse = coarse_model(model, forward.solver)
        if coarse is None:
            return None
        assert inputs.points is not None  # noqa: S101 - resolve reads them
        at = inputs.points.xyz
        return probes.between_walls(coarse, forward.model.boundary, motion, at)

    return walls


def _solved(
    forward: ViscoelasticForward,
    inputs: Inputs,
    model: Model,
    facts: dict[str, Any],
    say: Report,
    backend: str | None,
) -> tuple[xr.Dataset, Errors]:
    """Return displacement, slip and the error of the mesh on a model, and as shares."""
    say({"phase": "preparing", "n_unknowns": facts["n_unknowns"]})
    given = _slip(forward, inputs, model)
    slip = placed_slip(model, given)
    points = inputs.points
    assert points is not None  # noqa: S101 - resolve reads them for forward specs
    places = locate(model, points, inputs.topography)
    times = np.array([float(time) for time in forward.times.output])
    coarse = coarse_model(model, forward.solver)
    prepared = prepared_for(model, *_how(forward, backend))
    there = None
    if coarse is not None:
        say({"phase": "estimating the error of the mesh"})
        fine = prepared, was_refined(model)
        there = _coarse(forward, inputs, coarse, times, say, backend, *fine)
    say({"phase": "solving"})
    found = _solve(prepared, slip, places, say, there and there.guesses)
    motion = at_points(found, model, slip, places, times)
    motion = local_motion(motion, inputs.frame, places.xy)
    result = _dataset(inputs, points, times, motion)
    result = _with_slip(result, model, inputs, given)
    result.attrs.update(_size(model, slip))
    result.attrs.update(_numbers(found))
    if coarse is None or there is None:
        return result, Errors.everywhere(np.inf)
    parts = elastic_and_change(found, model, slip, places, times)
    parts = local_motion(parts, inputs.frame, places.xy)
    error = space_error(parts, there.motion, richardson_of(model))
    result["space_error"] = _error_variable(error)
    share = len(coarse.mesh.nodes) / len(model.mesh.nodes)
    result.attrs["space_error_cost"] = share * there.iterations / found.iterations
    at = points.xyz
    off = probes.off_traces(model, at)
    ends, elements = probes.off_ends(model, given, at)
    near = (elements < 1.0) & (off > 1.0)
    result.attrs["points_near_ends"] = int(near.sum())
    return result, Errors.of(parts[None], error[None], at, off, ends)


def _slip(
    forward: ViscoelasticForward, inputs: Inputs, model: Model
) -> dict[str, Float]:
    """Return fault name → (n_fault_node, 3, 1) float64, m."""
    if isinstance(forward.slip, SlipFile):
        name = forward.slip.fault or forward.model.faults[0].name
        table = inputs.slip_table
        assert table is not None  # noqa: S101 - resolve reads it for forward specs
        fault = model.faults[name]
        values = interpolated_slip(fault, model.mesh, table.points, table.slip)
        if not values.any():
            text = f"is zero on all of the fault {name!r}"
            hint = "give slip in m, not zero, at places on this fault"
            raise one_problem("slip.file", forward.slip.file, text, hint)
        return {name: values[:, :, None]}
    return {
        item.fault: uniform_slip(
            model.faults[item.fault], item.strike, item.dip, forward.tapered(item)
        )[:, :, None]
        for item in forward.slip
    }


def _with_slip(
    result: xr.Dataset, model: Model, inputs: Inputs, slip: dict[str, Float]
) -> xr.Dataset:
    """Add the faults' nodes and triangles, and the slip that was put on them."""
    on_nodes = {}
    for name, values in slip.items():
        fault = model.faults[name]
        axes = np.stack([fault.strike, fault.updip], axis=1)
        on_nodes[name] = np.einsum("nac,nc->na", axes, values[:, :, 0])
    faults = fault_variables(model, inputs.frame, on_nodes, list(model.faults))
    components = {"slip_component": list(SLIP_COMPONENTS)}
    return result.assign(faults).assign_coords(components)


def _size(model: Model, slip: dict[str, Float]) -> dict[str, float]:
    """Return moment (N m), magnitude and peak (m) of the slip.

    M0 is the integral of rigidity times the length of the slip, the rigidity that of
    the rock beside each triangle, mean of both sides; Mw as Hanks & Kanamori (1979).
    """
    moment = peak = 0.0
    mesh = placed(model).mesh
    for name, values in slip.items():
        fault = model.faults[name]
        length = np.linalg.norm(values[:, :, 0], axis=1)
        beside = elements_beside(model.mesh, fault)
        mu = model.materials.mu[beside].mean(axis=1)
        moment += float(mu @ potency(length, fault, mesh))
        peak = max(peak, float(length.max()))
    return {"moment": moment, "magnitude": magnitude_of(moment), "peak_slip": peak}


def _how(
    forward: ViscoelasticForward, backend: str | None
) -> tuple[SolverSettings, Solver, str]:
    """Return settings, the spec's part that says more, and the backend."""
    solver = forward.solver
    return settings_of(forward.times, solver), solver, backend or solver.backend


def _solve(
    prepared: Prepared | DistributedModel,
    slip: dict[str, Float],
    places: Places,
    report: Report,
    guesses: Any,
) -> GroupResult:
    """Solve the model; see `Prepared.solve`."""
    found = prepared.solve(slip, places.trace, report, guesses=guesses)
    if found.outcome != "converged":
        bad = found.outcome == "nan"
        kind = ErrorClass.NAN if bad else ErrorClass.NOT_CONVERGED
        raise TaskError(kind, f"{found.advice} (residual {found.residual.max():.1e})")
    return found


@dataclass(frozen=True, slots=True)
class _Coarse:
    """A coarse model, solved.

    ``motion`` (1 + n_time, n_point, 3) m is `elastic_and_change`; NaN where there is no
    solution. ``guesses`` are those of the fine model's solves, or None.
    """

    motion: Float
    iterations: int
    guesses: Any


def _coarse(
    forward: ViscoelasticForward,
    inputs: Inputs,
    coarse: Model,
    times: Float,
    report: Report,
    backend: str | None,
    fine: Prepared | DistributedModel | None = None,
    refined: bool = False,
) -> _Coarse:
    """Solve a coarse model, before the fine one; see `prepared_coarse`."""
    points = inputs.points
    assert points is not None  # noqa: S101 - resolve reads them for forward specs
    slip = placed_slip(coarse, _slip(forward, inputs, coarse))
    places = locate(coarse, points, inputs.topography)
    how = _how(forward, backend)
    prepared = prepared_coarse(coarse, *how, fine, refined)
    nested = nested_guess(prepared, fine) if fine and refined else None
    keep = None if nested is None else Solutions()
    found = prepared.solve(slip, places.trace, report, keep=keep)
    there = elastic_and_change(found, coarse, slip, places, times)
    if found.outcome != "converged":
        there[:] = np.nan
    there = local_motion(there, inputs.frame, places.xy)
    guesses = None
    if nested and keep and found.outcome == "converged":
        guesses = nested.guesses(keep)
    return _Coarse(there, found.iterations, guesses)


def _error_variable(error: Float) -> xr.Variable:
    """Of the elastic displacement and of the change until each time."""
    elastic = np.broadcast_to(error[0], error[1:].shape)
    text = "estimated error of the mesh: length of the error of the elastic "
    text += "displacement, and of the change since"
    attrs = {"units": "m", "long_name": text, "part": "elastic, change"}
    return variable(("part", "time", "point"), np.stack([elastic, error[1:]]), attrs)


def _dataset(inputs: Inputs, points: Points, times: Float, motion: Float) -> xr.Dataset:
    import xarray as xr

    coords = place_coordinates(inputs.frame, points)
    text = {"units": "yr", "long_name": "time after the slip, Julian years"}
    coords["time"] = "time", times / YEAR, text
    text = {"units": "m", "long_name": "displacement since before the slip"}
    moved = ("time", "point", "component"), motion, text
    return xr.Dataset({"displacement": moved}, coords)


def _attributes(
    forward: ViscoelasticForward,
    files: Files,
    facts: dict[str, Any],
    result: xr.Dataset,
) -> dict[str, Any]:
    """Return what the result was made from."""
    spec = canonical_spec(forward, files)
    return {
        "Conventions": "CF-1.11",
        "title": forward.name,
        "spec": json.dumps(spec),
        "digest": digest(spec),
        "model_digest": model_digest(forward, files),
        "versions": json.dumps(versions()),
        "integrator": forward.solver.integrator,
        "n_unknowns": facts["n_unknowns"],
        "n_elements": facts["n_elements"],
        "quality": json.dumps(facts["quality"]),
        "notes": json.dumps([*facts["notes"], *_warnings(forward, result)]),
        "accuracy": json.dumps(facts.get("accuracy")),
    }


def _numbers(found: GroupResult) -> dict[str, Any]:
    """Return what the solver says of its work."""
    return {
        "residual": float(found.residual.max()),
        "time_error": float(found.time_error.max()),
        "solves": found.solves,
        "iterations": found.iterations,
    }


def _warnings(forward: ViscoelasticForward, result: xr.Dataset) -> list[str]:
    """Say where a run has not, or may not have, reached what was asked."""
    said, near = [], result.attrs.get("points_near_ends", 0)
    if near and forward.model.mesh.accuracy is not None:
        said.append(
            "errors may be larger than is estimated at points within an element of "
            f"where slip ends abruptly: {near} of {result.sizes['point']}"
        )
    reached, asked = result.attrs["time_error"], forward.solver.time_tolerance
    if reached <= asked:
        return said
    hint = ": shorten solver.step" if forward.solver.integrator == "stepping" else ""
    return [
        *said,
        f"warning: the curve's estimated error in time is {reached:.1e}, more than the "
        f"time_tolerance of {asked:.1e}{hint}",
    ]
