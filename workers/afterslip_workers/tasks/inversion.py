"""Slip from data sets and accepted Green's functions."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from afterslip.archive import GreensStore
from afterslip.error_class import ErrorClass
from afterslip.exports import write_geojson
from afterslip.frame import Frame
from afterslip.readers.rows import Rows
from afterslip.report import write_report
from afterslip.report.caveats import caveats
from afterslip.result import fit_by_dataset
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.inversion import Inversion
from afterslip_solver.inversion import (
    InversionProblem,
    InversionSolution,
    make_regulariser,
    reweighted,
)
from afterslip_solver.model import Float
from afterslip_workers.engines.base import SlipModel
from afterslip_workers.errors import TaskError
from afterslip_workers.inverting import data as data_of
from afterslip_workers.inverting import in_time, predict, result, rupture
from afterslip_workers.inverting.resolution import resolution_variables
from afterslip_workers.inverting.solving import Solved, solve
from afterslip_workers.inverting.uncertainty import uncertainty_variables
from afterslip_workers.inverting.unmoved import unmoved_warning
from afterslip_workers.inverting.warnings import warnings_of, windows_of
from afterslip_workers.messages import (
    InversionManifest,
    Manifest,
    NamedInversion,
    Stats,
)
from afterslip_workers.store import manifest
from afterslip_workers.store.result_folders import INVERSION_FOLDER
from afterslip_workers.tasks.context import Context
from afterslip_workers.tasks.posing import Posed, pose, settings_of
from afterslip_workers.tasks.results import write_result
from afterslip_workers.versions import versions


def run(context: Context) -> tuple[Manifest, Stats]:
    """Invert, write result and report, and seal them in the attempt's folder."""
    envelope = context.envelope
    asked = dict(envelope.inversion or {})
    identity = str(asked.pop("id"))
    posed = pose(
        context.store_backend,
        context.files,
        envelope.campaign,
        envelope.spec,
        asked,
        context.phase,
        envelope.max_elements,
    )
    campaign, request, model = posed.campaign, posed.request, posed.model
    rows, store, problem = posed.rows, posed.store, posed.problem
    context.phase("choosing the smoothness")
    solved = _solve(context, posed)
    solution = solved.solution
    context.phase("writing the result")
    found = _assemble(campaign, model, store, rows, solved)
    found.update(result.beside_variables(posed.beside, solution, solved.weight))
    found.update(result.model_error_variables(solved.model_error))
    found.attrs.update(result.figures(found, solution))
    drawn, stated = uncertainty_variables(model.unit_slip(), found, problem, solved)
    found = found.assign(drawn)
    found.attrs.update(stated)
    if solved.history is None and solved.rupture is None:
        weighed = reweighted(solved.problem, solved.weight)
        found = found.assign(_resolved(request, weighed, solution, found))
    _annotate(found, context, posed, solution)
    found.attrs["greens_digest"] = _digest(problem.G)
    found.attrs["solver"] = json.dumps(model.solver_facts(store.dataset))
    found.attrs["datasets"] = json.dumps(
        data_of.dataset_facts(rows, posed.datasets, posed.variograms)
    )
    inversion = NamedInversion(id=identity, name=request.name)
    write = partial(_write, context, found, posed.facts["digest"], inversion)
    stats = Stats(solves=0, iterations=0)
    written, refused = write_result(envelope, INVERSION_FOLDER, write)
    return written, stats if refused is None else stats.but(spooled=refused)


def _write(
    context: Context,
    found: xr.Dataset,
    model_digest: str,
    inversion: NamedInversion,
    folder: Path,
) -> Manifest:
    part = folder / INVERSION_FOLDER
    manifest.clear(part)
    part.mkdir()
    result.write_netcdf(found, part / "result.nc")
    write_geojson(found, part / "slip.geojson")
    context.phase("drawing the report")
    write_report(part, found)
    written = InversionManifest(
        token=context.envelope.token,
        kind="inversion",
        campaign=context.envelope.campaign,
        model_digest=model_digest,
        inversion=inversion,
        summary=_summary(found),
        files=manifest.seal(part),
    )
    manifest.commit(folder, written)
    return written


def _solve(context: Context, posed: Posed) -> Solved:
    """Solve, and tell the service how far the choice has come."""

    def report(trials: int, score: float) -> None:
        context.phase("choosing the smoothness")
        context.report({"solves_done": trials, "residual": float(score)})

    request, problem, rows = posed.request, posed.problem, posed.rows
    robust = data_of.robust_rows(rows, posed.datasets)
    try:
        settings = settings_of(request, len(np.unique(problem.station)))
        where = posed.store, rows, report, posed.windows
        return solve(request, problem, settings, robust, *where)
    except ValueError as error:
        raise TaskError(ErrorClass.BAD_INPUT, str(error)) from error


def _resolved(
    request: Inversion,
    problem: InversionProblem,
    solution: InversionSolution,
    found: xr.Dataset,
) -> dict[str, xr.Variable]:
    ((prior, parameters),) = request.prior.items()
    place = found["source_position"].values.astype(np.float64)
    made = make_regulariser(prior, parameters)
    return resolution_variables(problem, solution, made, place)


def _assemble(
    campaign: Campaign,
    model: SlipModel,
    store: GreensStore,
    rows: Rows,
    solved: Solved,
) -> xr.Dataset:
    frame = Frame.of(campaign.model.frame)
    times = predict.series_times(store.until)
    through_time: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    solution, history = solved.solution, solved.history
    if solved.rupture is not None:
        times, series = rupture.station_series(store, rows.x, rows.y, solved.rupture)
        through_time = rupture.rupture_variables(solved.rupture)
        figures = rupture.rupture_figures(solved.rupture)
    elif history is None:
        series = predict.station_series(store, rows.x, rows.y, solution.slip, times)
    else:
        ends = history.ends[1:].tolist()
        series = in_time.series(store, rows.x, rows.y, history.slip, ends, times)
        of_block = [model.variables(frame, slip) for slip in history.slip]
        through_time = result.history_variables(
            history, [made["fault_slip"].values for made in of_block]
        )
        figures = result.history_figures(history)
    return xr.Dataset(
        {
            **result.source_variables(store.dataset, solution),
            **model.variables(frame, solution.slip),
            **result.data_variables(rows, solution, frame),
            **result.choice_variables(solution),
            **result.series_variables(times, series),
            **through_time,
            **rupture.data_seconds(rows),
        },
        attrs=figures,
    )


def _annotate(
    found: xr.Dataset,
    context: Context,
    posed: Posed,
    solution: InversionSolution,
) -> None:
    spec = context.envelope.spec
    campaign, request, facts = posed.campaign, posed.request, posed.facts
    # caveats read it
    found.attrs["request"] = json.dumps(request.model_dump(mode="json"))
    found.attrs.update(
        Conventions="CF-1.11",
        campaign=context.envelope.campaign,
        campaign_name=campaign.name,
        inversion=request.name,
        frame=json.dumps(campaign.model.frame.model_dump(mode="json")),
        spec=json.dumps(spec),
        model=json.dumps({k: facts[k] for k in _MODEL_FACTS if k in facts}),
        digest=str(facts.get("campaign_digest", "")),
        versions=json.dumps(versions()),
        # what the finished slip shows stands beside what its solution said
        warnings=json.dumps(
            [
                *unmoved_warning(posed.problem.G, posed.store.dataset),
                *warnings_of(solution, facts.get("notes") or []),
                *windows_of(found, request.windows),
                *caveats(found),
            ]
        ),
    )


def _digest(values: Float) -> str:
    """Digest of numbers, to the last bit."""
    content = np.ascontiguousarray(values, dtype="<f8")
    return f"sha256:{hashlib.sha256(content.data).hexdigest()}"


_MODEL_FACTS = ("n_unknowns", "n_elements", "n_node", "quality", "notes")


_SUMMARY = (
    "magnitude",
    "magnitude_interval",
    "moment",
    "moment_interval",
    "peak_slip",
    "peak_slip_average",
    "peak_slip_length",
    "peak_slip_interval",
    "centroid_time",
    "variance_reduction",
    "variance_reduction_unweighted",
    "score",
    "score_se",
    "folds",
    "smoothness",
    "sparsity",
)


def _summary(found: xr.Dataset) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        key: found.attrs[key] for key in _SUMMARY if key in found.attrs
    }
    summary: dict[str, Any] = {
        key: value if np.isfinite(value).all() else None
        for key, value in numbers.items()
    }
    summary["warnings"] = json.loads(found.attrs["warnings"])
    summary["fit_by_dataset"] = [
        {"dataset": row.name, "count": row.count, "rms": _finite(row.rms),
         "unit": row.unit, "chi": row.chi,
         "variance_reduction": _finite(row.variance_reduction),
         "variance_reduction_unweighted": _finite(row.variance_reduction_unweighted)}
        for row in fit_by_dataset(found)
    ]  # fmt: skip
    return summary


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
