"""Slip from data sets and accepted Green's functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from afterslip.archive import GreensStore
from afterslip.error_class import ErrorClass
from afterslip.exports import write_geojson
from afterslip.frame import Frame
from afterslip.report import write_report
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.schemas.validation import validate
from afterslip.spec import parse_campaign
from afterslip.spec.inputs import read_dataset
from afterslip_solver.inversion import (
    InversionProblem,
    InversionSettings,
    InversionSolution,
    invert,
    make_regulariser,
)
from afterslip_solver.model import Float
from afterslip_workers.engines.base import SlipModel
from afterslip_workers.engines.models import campaign_facts, campaign_model
from afterslip_workers.engines.registry import find
from afterslip_workers.errors import TaskError
from afterslip_workers.inverting import predict, result
from afterslip_workers.inverting.rows import Rows, collect
from afterslip_workers.store import manifest, reading
from afterslip_workers.store.result_folders import INVERSION_FOLDER
from afterslip_workers.tasks.context import Context
from afterslip_workers.tasks.results import write_result
from afterslip_workers.versions import versions

_SIGN = {"positive": 1, "negative": -1, "free": 0}


def run(context: Context) -> tuple[dict[str, Any], dict[str, Any]]:
    """Invert, write result and report, and seal them in the attempt's folder."""
    envelope = context.envelope
    asked = dict(envelope.inversion or {})
    identity = str(asked.pop("id"))
    extra = [validate(Dataset, item) for item in asked.pop("extra_datasets", [])]
    request = validate(Inversion, asked)
    campaign = parse_campaign(envelope.spec)
    facts = campaign_facts(context.store_backend, envelope.campaign)
    context.phase("reading data")
    model = _slip_model(context, campaign, facts)
    rows = _rows(context, campaign, request, extra)
    store = GreensStore(reading.greens(context.store_backend, envelope.campaign))
    context.phase("sampling Green's functions")
    problem = _problem(model, request, store, rows)
    context.phase("cross-validation")
    solution = _solve(context, problem, request)
    context.phase("writing the result")
    found = _assemble(campaign, model, store, rows, solution)
    _annotate(found, context, campaign, request, facts, solution)
    found.attrs["solver"] = json.dumps(model.solver_facts(store.dataset))

    def write(folder: Path) -> dict[str, Any]:
        part = folder / INVERSION_FOLDER
        manifest.clear(part)
        part.mkdir()
        result.write_netcdf(found, part / "result.nc")
        write_geojson(found, part / "slip.geojson")
        context.phase("drawing the report")
        write_report(part, found)
        written = context.manifest(
            model_digest=facts["digest"],
            inversion={"id": identity, "name": request.name},
            summary=_summary(found),
            files=manifest.seal(part),
        )
        manifest.commit(folder, written)
        return written

    stats: dict[str, Any] = {"solves": 0, "iterations": 0}
    written, refused = write_result(envelope, write)
    return written, stats if refused is None else {**stats, "spooled": refused}


def _slip_model(
    context: Context, campaign: Campaign, facts: dict[str, Any]
) -> SlipModel:
    engine = find(campaign.physics)
    where = context.store_backend, campaign, context.files
    model = campaign_model(engine, *where, facts, context.phase)
    found = engine.slip_model(campaign, model, facts.get("order"))
    if found is None:
        text = f"Green's functions of the physics {campaign.physics} are not inverted"
        raise TaskError(ErrorClass.BAD_INPUT, text)
    return found


def _rows(
    context: Context,
    campaign: Campaign,
    request: Inversion,
    extra: list[Dataset],
) -> Rows:
    """Read the data sets of a request; those of the campaign come first."""
    files = context.files
    known = {item.name: item for item in [*extra, *campaign.datasets]}
    missing = [name for name in request.datasets if name not in known]
    if missing:
        raise TaskError(
            ErrorClass.BAD_INPUT, f"there is no data set {', '.join(missing)}"
        )
    tables = {
        name: read_dataset(known[name], campaign.model, campaign.end, files)
        for name in request.datasets
    }
    return collect(tables)


def _problem(
    model: SlipModel,
    request: Inversion,
    store: GreensStore,
    rows: Rows,
) -> InversionProblem:
    greens = store.dataset
    component = greens["source_component"].values.astype(np.int64)
    signs = np.array([_SIGN[request.sign.get(c, "free")] for c in ("strike", "dip")])
    grid = np.column_stack(
        [greens["source_fault"].values, component, greens["source_patch"].values]
    )
    return InversionProblem(
        G=predict.design_matrix(store, rows),
        data=rows.value,
        sigma=rows.sigma,
        station=rows.station,
        kind=rows.kind,
        grid=grid.astype(np.int64),
        area=greens["source_area"].values,
        rigidity=greens["source_rigidity"].values,
        sign=signs[component],
        spacing=model.spacing,
        open_top=model.open_top,
        position=np.column_stack([rows.x, rows.y]),
    )


def _solve(
    context: Context, problem: InversionProblem, request: Inversion
) -> InversionSolution:
    def report(trials: int, score: float) -> None:
        context.phase("cross-validation")
        context.report({"solves_done": trials, "residual": float(score)})

    ((prior, parameters),) = request.prior.items()
    try:
        settings = InversionSettings(
            smoothness=request.smoothness,
            sparsity=request.sparsity,
            folds=request.folds,
            regulariser=make_regulariser(prior, parameters),
        )
        solution = invert(problem, settings, report)
    except ValueError as error:
        raise TaskError(ErrorClass.BAD_INPUT, str(error)) from error
    if solution.outcome != "converged":
        raise TaskError(ErrorClass.NOT_CONVERGED, solution.advice)
    return solution


def _assemble(
    campaign: Campaign,
    model: SlipModel,
    store: GreensStore,
    rows: Rows,
    solution: InversionSolution,
) -> xr.Dataset:
    frame = Frame.of(campaign.model.frame)
    times = predict.series_times(store.until)
    return xr.Dataset(
        {
            **result.source_variables(store.dataset, solution),
            **model.variables(frame, solution.slip),
            **result.data_variables(rows, solution, frame),
            **result.choice_variables(solution),
            **result.series_variables(
                times,
                predict.station_series(store, rows.x, rows.y, solution.slip, times),
            ),
        }
    )


def _annotate(
    found: xr.Dataset,
    context: Context,
    campaign: Campaign,
    request: Inversion,
    facts: dict[str, Any],
    solution: InversionSolution,
) -> None:
    spec = context.envelope.spec
    found.attrs.update(result.figures(found, solution))
    found.attrs.update(
        Conventions="CF-1.11",
        campaign=context.envelope.campaign,
        campaign_name=campaign.name,
        inversion=request.name,
        frame=json.dumps(campaign.model.frame.model_dump(mode="json")),
        spec=json.dumps(spec),
        request=json.dumps(request.model_dump(mode="json")),
        model=json.dumps({k: facts[k] for k in _MODEL_FACTS if k in facts}),
        digest=str(facts.get("campaign_digest", "")),
        versions=json.dumps(versions()),
        warnings=json.dumps(_warnings(solution)),
    )


_MODEL_FACTS = ("n_unknowns", "n_elements", "n_node", "quality")


def _warnings(solution: InversionSolution) -> list[str]:
    said = [solution.advice] if solution.advice else []
    hidden = int(solution.unseen.sum())
    if hidden:
        said.append(
            f"{hidden} of {len(solution.unseen)} sources are hardly resolved: "
            "their slip comes from the smoothness"
        )
    return said


_SUMMARY = (
    "magnitude",
    "moment",
    "peak_slip",
    "variance_reduction",
    "score",
    "score_se",
    "folds",
    "smoothness",
    "sparsity",
)


def _summary(found: xr.Dataset) -> dict[str, Any]:
    numbers: dict[str, Float | Any] = {
        key: found.attrs[key] for key in _SUMMARY if key in found.attrs
    }
    return {
        key: value if np.isfinite(value) else None for key, value in numbers.items()
    }
