"""One group of unit sources: prepared, solved and evaluated at the stations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip.archive import StationTable, SurfaceInterpolator
from afterslip.archive.tables import POLYGON_ORDER
from afterslip.error_class import ErrorClass
from afterslip.frame import Frame
from afterslip.physics.viscoelastic import physics
from afterslip.physics.viscoelastic.store import error_times
from afterslip.schemas.fault import Sources
from afterslip_solver.greens import StateError, evaluate_curve
from afterslip_solver.jit.threads import copy_rows
from afterslip_solver.mesh import placed_slip
from afterslip_solver.mesh.slit_surface import Trace, two_sided
from afterslip_solver.model import Float, GroupResult, Int, Model
from afterslip_workers.engines.base import GroupWork, Phase, Solved
from afterslip_workers.engines.viscoelastic import preflight
from afterslip_workers.engines.viscoelastic.ground import local_motion
from afterslip_workers.engines.viscoelastic.settings import (
    backend_of,
    prepared_for,
    settings_of,
    stricter,
)
from afterslip_workers.engines.viscoelastic.solvers import Solver, Solvers
from afterslip_workers.engines.viscoelastic.sources import UnitSources, unit_slip
from afterslip_workers.engines.viscoelastic.space import (
    Coarse,
    CoarseGroup,
    coarse_model,
    prepared_coarse,
    slipping,
    was_refined,
)
from afterslip_workers.errors import CancelledError, TaskError
from afterslip_workers.machine import device
from afterslip_workers.store.checkpoint import Checkpoints, digest_of

_FAILURES = {str(kind): kind for kind in (ErrorClass.NOT_CONVERGED, ErrorClass.NAN)}


@dataclass(frozen=True, slots=True)
class _Ready:
    """A model with everything that its groups share, cached between them.

    Campaigns on one model may ask for different sources and stations: ``units`` holds
    each list, ``weights`` where the stations are.
    """

    model: Model
    solvers: Solvers
    trace: Trace
    coarse: Coarse | None = None
    units: dict[str, UnitSources] = field(default_factory=dict)
    weights: dict[str, tuple[Int, Float]] = field(default_factory=dict)

    def stations(self, campaign: str, table: StationTable) -> tuple[Int, Float]:
        """Return nodes of the trace and weights, (n_station, 6), of stations.

        A search through the whole surface, done once for a campaign.
        """
        if campaign not in self.weights:
            xy = self.model.mesh.nodes[self.trace.nodes, :2]
            faces = self.trace.faces[:, list(POLYGON_ORDER)]
            found = SurfaceInterpolator(xy, faces)
            self.weights[campaign] = found.weights(table.x, table.y, list(table.name))
        return self.weights[campaign]

    def sources(
        self, spec: Sequence[Sources], order: Sequence[int] | None
    ) -> UnitSources:
        """Return a campaign's sources, which takes a second on a fine fault."""
        key = f"{spec!r} {order}"
        if key not in self.units:
            self.units[key] = UnitSources.of(spec, self.model, order)
        return self.units[key]


def begin(work: GroupWork) -> Callable[[Phase], Solved]:
    """Solve sources together, each a lane of the linear solver.

    Returns
    -------
    Evaluates them; see `EvaluatingEngine`.

    Raises
    ------
    TaskError
        The solver gave up, or too little memory is free.
    CancelledError
        It was asked to stop.
    """
    ready = _ready(work)
    work.phase("making sources")
    units = ready.sources(work.spec.grids, work.facts.get("order"))
    slip = placed_slip(ready.model, unit_slip(units, work.sources))
    keeper = _keeper(work)
    with ready.solvers.one(work.should_stop) as prepared:
        coarse = _coarse_group(work, ready, units)
        work.phase("solving")
        found = _run(work, ready, prepared, slip, keeper, coarse)
    _refuse(found)
    stats = {**_stats(found, prepared), **keeper.stats()}
    # its solutions are in the device's memory, which the next group takes
    compared = coarse and replace(coarse, guesses=None)

    def evaluate(phase: Phase) -> Solved:
        phase("evaluating")
        values = _evaluated(work, ready, found, slip, compared, phase)
        return Solved(values, stats, found.history)

    return evaluate


def _evaluated(
    work: GroupWork,
    ready: _Ready,
    found: GroupResult,
    slip: dict[str, Float],
    coarse: CoarseGroup | None,
    phase: Phase,
) -> dict[str, Any]:
    """Arrays of the group's store, in its order."""
    ready.trace.add_offsets(slipping(found), slip)
    at = ready.model.mesh.nodes[ready.trace.nodes]
    motion = local_motion(found.response, Frame.of(work.spec.model.frame), at)
    found = replace(found, response=motion)
    values = _values(work, found, ready)
    if "error_time" in _dims(work):
        phase("estimating the error of the mesh")
        values["space_error"] = _space_error(work, ready, coarse, found)
    return {v.name: values[v.name] for v in physics.layout(work.facts).grouped}


def _dims(work: GroupWork) -> set[str]:
    return {dim for v in physics.layout(work.facts).grouped for dim in v.dims}


def _coarse_group(
    work: GroupWork, ready: _Ready, units: UnitSources
) -> CoarseGroup | None:
    """Solve the group on the coarse model, if there is one."""
    if ready.coarse is None:
        return None
    work.phase("solving on the coarse mesh")
    chosen, times = list(work.sources), _error_times(work)
    return ready.coarse.solve(units, chosen, times, work.should_stop, _reporter(work))


def _error_times(work: GroupWork) -> Float:
    """(n_time,) s, after the slip, at which the error of the mesh is estimated."""
    count = physics.layout(work.facts).of("error_time")
    return error_times([float(time) for time in work.spec.times.output])[: count - 1]


def _space_error(
    work: GroupWork, ready: _Ready, coarse: CoarseGroup | None, found: GroupResult
) -> NDArray[np.floating[Any]]:
    """(n_lane, error_time, n_trace), m per m; NaN: nothing is estimated."""
    error, times = None, _error_times(work)
    if ready.coarse is not None and coarse is not None:
        error = ready.coarse.error(found, coarse, times)
    if error is None:
        shape = len(work.sources), 1 + len(times), len(ready.trace.nodes)
        return np.full(shape, np.nan)
    return error


def _keeper(work: GroupWork) -> Checkpoints:
    """Return the checkpoints of these lanes' numerics, the same for any process."""
    spec, facts = work.spec, work.facts
    settings = settings_of(spec.times, spec.solver)
    sources = [grid.model_dump(mode="json") for grid in spec.grids]
    order = facts.get("order")
    what = (facts["digest"], repr(settings), sources, order, list(work.sources))
    backend = backend_of(spec.solver, work.backend)
    return Checkpoints(work.store, digest_of(what, backend, work.escalation))


def _run(
    work: GroupWork,
    ready: _Ready,
    prepared: Solver,
    slip: dict[str, Float],
    keeper: Checkpoints,
    coarse: CoarseGroup | None,
) -> GroupResult:
    """Solve, from where an earlier attempt was ended if there is such a state."""
    send = _reporter(work)

    def report(news: dict[str, Any]) -> None:
        keeper.note_progress(news)
        send(news)

    arguments = slip, ready.trace.nodes, report, work.should_stop, keeper
    guesses = None if coarse is None else coarse.guesses
    solve = partial(prepared.solve, *arguments, guesses)
    try:
        return solve()
    except StateError as error:
        keeper.notes.append(f"a checkpoint was ignored: {error}")
        keeper.drop()
        return solve()


def _ready(work: GroupWork) -> _Ready:
    """Prepare the model, unless an earlier group left it warm."""
    solver, digest = work.spec.solver, work.facts["digest"]
    settings = stricter(settings_of(work.spec.times, solver), work.escalation)
    backend, gpus = backend_of(solver, work.backend), solver.gpus

    def build() -> _Ready:
        work.phase("preparing the model")
        model = work.model()
        compared = "error_time" in _dims(work)
        needed = preflight.require(
            model, settings, backend, gpus, work.warm.clear, compared=compared
        )

        def comparison(fine: Solver | None = None) -> tuple[Trace, Coarse | None]:
            trace = two_sided(model)
            like = coarse_model(model, solver) if compared else None
            if like is None:
                return trace, None
            given = settings, solver, backend, fine, was_refined(model)
            second = prepared_coarse(like, *given)
            frame = Frame.of(work.spec.model.frame)
            return trace, Coarse.of(like, second, model, trace, frame)

        with ThreadPoolExecutor(1) as beside:
            # small beside the fine one, but several GPUs set up one model at a time
            found = beside.submit(comparison) if gpus == 1 else None
            prepared = prepared_for(model, settings, solver, backend)
            trace, coarse = found.result() if found else comparison(prepared)
        coarse = coarse and coarse.guessing(prepared)
        twice = preflight.fits_twice(needed, backend, gpus)
        return _Ready(model, Solvers(prepared, twice), trace, coarse)

    ready: _Ready = work.warm.get(f"{digest} {settings} {backend} {gpus}", build)
    return ready


def _reporter(work: GroupWork) -> Callable[[dict[str, Any]], None]:
    def report(news: dict[str, Any]) -> None:
        known = {key: value for key, value in news.items() if key != "solve"}
        work.report({**known, "solves_done": news.get("solve", 0)})

    return report


def _refuse(found: GroupResult) -> None:
    """Turn an outcome without a result into the error that it is."""
    if found.outcome == "stopped":
        raise CancelledError
    if found.outcome in _FAILURES:
        worst = float(np.max(found.residual))
        raise TaskError(
            _FAILURES[found.outcome],
            f"{found.advice} "
            f"(residual {worst:.1e} after {found.iterations} iterations)",
        )


def _values(work: GroupWork, found: GroupResult, ready: _Ready) -> dict[str, Any]:
    """Arrays of the group's store; lanes first."""
    lanes = len(found.response)
    # as it is stored, which halves what is copied from here on
    response = np.empty(found.response.shape, dtype=np.float32)
    copy_rows(found.response, response)
    for lane, count in enumerate(found.mode_count):
        response[lane, count:] = np.nan
    values: dict[str, Any] = {
        "response": response,
        "recurrence": found.recurrence,
        "start_norm": found.start_norm,
        "shift": found.shift,
        "mode_count": found.mode_count,
        "residual": found.residual,
        "time_error": found.time_error,
        "iterations": np.full(lanes, found.iterations),
    }
    if work.stations is not None and len(work.stations):
        times = np.array([float(time) for time in work.spec.times.output])
        at = ready.stations(work.campaign, work.stations)
        values["displacement"] = _at_stations(found, times, *at)
    return values


def _at_stations(found: GroupResult, times: Float, nodes: Int, weights: Float) -> Float:
    """(n_lane, n_time, n_station, 3) float64, m per m."""
    # the few nodes around stations, not the whole surface at every time
    here, place = np.unique(nodes, return_inverse=True)
    used = replace(found, response=found.response[:, :, here])
    curve = evaluate_curve(used, times)[:, :, place.reshape(nodes.shape)]
    return np.asarray(np.einsum("sk,ltskc->ltsc", weights, curve))


def _stats(found: GroupResult, prepared: Solver) -> dict[str, Any]:
    return {
        "solves": found.solves,
        "iterations": found.iterations,
        "residual": float(np.max(found.residual)),
        "time_error": float(np.max(found.time_error)),
        "modes": [int(count) for count in found.mode_count],
        "scheme": prepared.scheme,
        "device": device.name_of(prepared.backend.name),
    }
