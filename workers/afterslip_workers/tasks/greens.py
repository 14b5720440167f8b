"""One group of unit sources: solve, write, synchronise, read back, say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import zarr
from numpy.typing import NDArray

from afterslip.archive import (
    StationTable,
    SurfaceInterpolator,
    chunk_file,
    create_group_store,
    group_arrays,
)
from afterslip.archive.layout import POLYGON_ORDER
from afterslip.error_class import ErrorClass
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign as Campaign
from afterslip.schemas.fault import Sources
from afterslip_solver.greens import Prepared, StateError, evaluate_curve
from afterslip_solver.mesh.slit_surface import Trace, two_sided
from afterslip_solver.model import Float, GroupResult, Int, Model
from afterslip_solver.parallel import DistributedModel
from afterslip_workers.errors import CancelledError, TaskError
from afterslip_workers.machine import device, exchange
from afterslip_workers.store import manifest
from afterslip_workers.store.checkpoint import Checkpoints, digest_of
from afterslip_workers.store.result_folders import GROUP_FOLDER
from afterslip_workers.tasks.context import Context
from afterslip_workers.tasks.results import write_result
from afterslip_workers.viscoelastic import preflight, reuse
from afterslip_workers.viscoelastic.cache import campaign_facts, campaign_model
from afterslip_workers.viscoelastic.settings import (
    backend_of,
    prepared_for,
    settings_of,
    stricter,
)
from afterslip_workers.viscoelastic.sources import UnitSources, unit_slip
from afterslip_workers.viscoelastic.template import Template, template_of

_FAILURES = {str(kind): kind for kind in (ErrorClass.NOT_CONVERGED, ErrorClass.NAN)}


@dataclass(frozen=True, slots=True)
class _Ready:
    """A model with everything that its groups share, cached between them.

    Campaigns on one model may ask for different sources and stations: ``units`` holds
    each list, ``weights`` where the stations are.
    """

    model: Model
    prepared: Prepared | DistributedModel
    trace: Trace
    bytes: int
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

    def sources(self, spec: Sources, order: Sequence[int] | None) -> UnitSources:
        """Return a campaign's sources, which takes a second on a fine fault."""
        key = f"{spec!r} {order}"
        if key not in self.units:
            self.units[key] = UnitSources.of(spec, self.model, order)
        return self.units[key]


@dataclass(frozen=True, slots=True)
class _Solved:
    """A group as it will be stored.

    Attributes
    ----------
    values : arrays of `group_arrays`.
    taken : those of its sources that other campaigns had solved.
    """

    values: dict[str, Any]
    taken: list[int]
    stats: dict[str, Any]
    history: list[dict[str, Any]]


def run(context: Context) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Solve the envelope's group and seal it in the attempt's folder.

    Returns
    -------
    Manifest and counts; None if another process is to write the group.
    """
    envelope = context.envelope
    campaign = Campaign.from_dict(envelope.spec)
    facts = campaign_facts(context.store_backend, envelope.campaign)
    template = template_of(facts)
    group = envelope.group or {}
    chosen = [int(source) for source in group["sources"]]
    if context.handed is not None:
        passed, values = exchange.load(context.handed)
        solved = _Solved(values, **passed)
    else:
        solved = _gather(context, campaign, facts, template, chosen)
    if context.hand_to is not None:
        context.phase("handing over")
        passed = {name: getattr(solved, name) for name in ("taken", "stats", "history")}
        exchange.save(context.hand_to, passed, solved.values)
        return None
    stats = solved.stats
    context.phase("writing")

    def write(folder: Path) -> dict[str, Any]:
        context.lap("writing")
        part = folder / GROUP_FOLDER
        manifest.clear(part)
        written = context.manifest(
            model_digest=facts["digest"],
            group={"index": int(group["index"]), "sources": chosen},
            files=_write(context, part, template, solved.values),
            stats=stats,
            history=solved.history,
            covers=_covers(context, facts, solved.taken, chosen),
        )
        manifest.commit(folder, written)
        return written

    written, refused = write_result(envelope, write)
    return written, stats if refused is None else {**stats, "spooled": refused}


def _gather(
    context: Context,
    campaign: Campaign,
    facts: dict[str, Any],
    template: Template,
    chosen: list[int],
) -> _Solved:
    """Take what other campaigns have solved of a group, and solve the rest."""
    taken = _take(context, campaign, facts, template)
    missing = [source for source in chosen if source not in taken]
    if not taken:
        return _solve(context, campaign, facts, missing)
    solved = _Solved({}, [], {"solves": 0, "iterations": 0}, [])
    lanes = dict(taken)
    if missing:
        solved = _solve(context, campaign, facts, missing)
        for lane, source in enumerate(missing):
            lanes[source] = {n: v[lane] for n, v in solved.values.items()}
    values = reuse.stack([lanes[source] for source in chosen])
    stats = {**solved.stats, "taken": len(taken)}
    return _Solved(values, list(taken), stats, solved.history)


def _take(
    context: Context, campaign: Campaign, facts: dict[str, Any], template: Template
) -> dict[int, reuse.Lane]:
    """Read the lanes that the plan found in other campaigns."""
    origins = (context.envelope.group or {}).get("taken")
    if not origins:
        return {}
    context.phase("taking what is stored")
    stations = StationTable(**facts["stations"]) if facts.get("stations") else None
    wanted = reuse.Wanted(
        template=template,
        times=np.array([float(time) for time in campaign.times.output]),
        until=float(campaign.times.until),
        time_tolerance=campaign.solver.time_tolerance,
        stations=stations,
    )
    return reuse.take(context.store_backend, origins, wanted)


def _covers(
    context: Context,
    facts: dict[str, Any],
    taken: Sequence[int],
    chosen: list[int],
) -> dict[str, dict[str, Any]]:
    """Say of each lane what it is good for, and where it came from."""
    origins = (context.envelope.group or {}).get("taken") or {}
    own = facts.get("covers") or {}
    covers = {}
    for source in chosen:
        origin = origins[str(source)] if source in taken else None
        covers[str(source)] = {
            "quality": origin["quality"] if origin else own,
            "origin": origin and origin["campaign"],
            "origin_position": origin and origin["position"],
        }
    return covers if own else {}


def _solve(
    context: Context, campaign: Campaign, facts: dict[str, Any], missing: list[int]
) -> _Solved:
    """Solve lanes together."""
    ready = _ready(context, campaign, facts)
    context.phase("making sources")
    units = ready.sources(campaign.sources, facts.get("order"))
    slip = unit_slip(units, missing)
    context.phase("solving")
    keeper = _keeper(context, campaign, facts, missing)
    found = _run(context, ready, slip, keeper)
    _refuse(found)
    context.phase("evaluating")
    ready.trace.add_offsets(_slipping(found), slip)
    stations = StationTable(**facts["stations"]) if facts.get("stations") else None
    values = _values(context, found, ready, stations, campaign)
    template = template_of(facts)
    names = [v.name for v in group_arrays(template.sizes, template.integrator)]
    stats = {**_stats(found, ready.prepared), **keeper.stats()}
    return _Solved({n: values[n] for n in names}, [], stats, found.history)


def _keeper(
    context: Context, campaign: Campaign, facts: dict[str, Any], missing: list[int]
) -> Checkpoints:
    """Return the checkpoints of these lanes' numerics, the same for any process."""
    settings = settings_of(campaign.times, campaign.solver)
    sources = campaign.sources.model_dump(mode="json")
    what = (facts["digest"], repr(settings), sources, facts.get("order"), missing)
    backend = backend_of(campaign.solver, context.envelope.backend)
    return Checkpoints(
        context.store_backend, digest_of(what, backend, context.envelope.escalation)
    )


def _run(
    context: Context, ready: _Ready, slip: dict[str, Float], keeper: Checkpoints
) -> GroupResult:
    """Solve, from where an earlier attempt was ended if there is such a state."""
    send = _reporter(context)

    def report(news: dict[str, Any]) -> None:
        keeper.note_progress(news)
        send(news)

    arguments = slip, ready.trace.nodes, report, context.should_stop, keeper
    try:
        return ready.prepared.solve(*arguments)
    except StateError as error:
        keeper.notes.append(f"a checkpoint was ignored: {error}")
        keeper.drop()
        return ready.prepared.solve(*arguments)


def _ready(context: Context, campaign: Campaign, facts: dict[str, Any]) -> _Ready:
    """Prepare the model, unless an earlier group left it warm."""
    known = settings_of(campaign.times, campaign.solver)
    settings = stricter(known, context.envelope.escalation)
    backend = backend_of(campaign.solver, context.envelope.backend)
    gpus = campaign.solver.gpus

    def build() -> _Ready:
        context.phase("preparing the model")
        where = context.store_backend, campaign, context.files
        model = campaign_model(*where, facts, context.phase)
        preflight.require(model, settings, backend, gpus, context.warm.clear)
        prepared = prepared_for(model, settings, campaign.solver, backend)
        return _Ready(model, prepared, two_sided(model), prepared.bytes)

    key = f"{facts['digest']} {settings} {backend} {gpus}"
    return cast(_Ready, context.warm.get(key, build))


def _reporter(context: Context) -> Callable[[dict[str, Any]], None]:
    def report(news: dict[str, Any]) -> None:
        known = {key: value for key, value in news.items() if key != "solve"}
        context.report({**known, "solves_done": news.get("solve", 0)})

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


def _slipping(found: GroupResult) -> Float:
    """Modes that hold the slip itself: all steps, or the elastic response."""
    return found.response if len(found.step_times) else found.response[:, :1]


def _values(
    context: Context,
    found: GroupResult,
    ready: _Ready,
    stations: StationTable | None,
    campaign: Campaign,
) -> dict[str, Any]:
    """Arrays of the group's store; lanes first."""
    lanes = len(found.response)
    # as it is stored, which halves what is copied from here on
    response = found.response.astype(np.float32)
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
    if stations is not None and len(stations):
        times = np.array([float(time) for time in campaign.times.output])
        at = ready.stations(context.envelope.campaign, stations)
        values["displacement"] = _at_stations(found, times, *at)
    return values


def _at_stations(found: GroupResult, times: Float, nodes: Int, weights: Float) -> Float:
    """(n_lane, n_time, n_station, 3) float64, m per m."""
    # the few nodes around stations, not the whole surface at every time
    here, place = np.unique(nodes, return_inverse=True)
    used = replace(found, response=found.response[:, :, here])
    curve = evaluate_curve(used, times)[:, :, place.reshape(nodes.shape)]
    return np.asarray(np.einsum("sk,ltskc->ltsc", weights, curve))


def _write(
    context: Context, part: Path, template: Template, values: dict[str, Any]
) -> dict[str, str]:
    """Write the group's store and return the checksums of its chunk files."""
    create_group_store(
        part, template.sizes, values, template.integrator, crc32c=template.crc32c
    )
    context.lap("sealing")
    sums = manifest.seal(part)
    context.lap("reading back")
    _read_back(part, values)
    files = {}
    for variable in group_arrays(template.sizes, template.integrator):
        name = chunk_file(variable, 0)
        files[name] = sums[name]
    return files


def _read_back(part: Path, values: dict[str, Any]) -> None:
    """Compare what the disk holds with what was meant.

    Raises
    ------
    TaskError
        Class ``store_full``: the file system stored something else.
    """
    stored: Any = zarr.open_group(str(part), mode="r")
    for name, value in values.items():
        array = stored[name]
        there = array[tuple(slice(n) for n in np.shape(value))]
        meant = np.asarray(value).astype(array.dtype, copy=False)
        # bit for bit: NaN is the same NaN
        if there.shape != meant.shape or not np.array_equal(_bits(there), _bits(meant)):
            raise TaskError(
                ErrorClass.STORE_FULL,
                f"{name} reads back differently: check the store's disk",
            )


def _bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    flat: NDArray[np.uint8] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return flat


def _stats(found: GroupResult, prepared: Prepared | DistributedModel) -> dict[str, Any]:
    return {
        "solves": found.solves,
        "iterations": found.iterations,
        "residual": float(np.max(found.residual)),
        "time_error": float(np.max(found.time_error)),
        "modes": [int(count) for count in found.mode_count],
        "scheme": prepared.scheme,
        "device": device.name_of(prepared.backend.name),
    }
