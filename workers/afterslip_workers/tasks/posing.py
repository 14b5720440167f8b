"""From a request and accepted Green's functions to a problem that can be solved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip.archive import GreensStore
from afterslip.error_class import ErrorClass
from afterslip.frame import Frame
from afterslip.readers.rows import Rows
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.schemas.validation import validate
from afterslip.spec import parse_stored
from afterslip.spec.data import gather
from afterslip.spec.files import Files
from afterslip.spec.inputs import read_dataset
from afterslip_solver.inversion import (
    InversionError,
    InversionProblem,
    InversionSettings,
    Variogram,
    make_regulariser,
)
from afterslip_workers.engines.base import Phase, RuptureModel, SlipModel
from afterslip_workers.engines.models import campaign_facts, campaign_model
from afterslip_workers.engines.registry import find
from afterslip_workers.errors import TaskError
from afterslip_workers.inverting import data as data_of
from afterslip_workers.inverting import predict, rupture
from afterslip_workers.inverting.constraints import constraint_terms
from afterslip_workers.inverting.other_earths import with_changes
from afterslip_workers.inverting.unmoved import refuse_without_any
from afterslip_workers.store import reading
from afterslip_workers.store.backend import StoreBackend


@dataclass(frozen=True, slots=True)
class Posed:
    """An inversion before it is solved.

    Attributes
    ----------
    facts : the campaign's ``model.json``.
    datasets : what the request's data sets ask for, by name.
    rows : the data, with the errors that they are weighed with.
    beside : unknowns beside slip.
    windows : of a rupture, where the request asks for them.
    """

    campaign: Campaign
    request: Inversion
    facts: dict[str, Any]
    model: SlipModel
    datasets: dict[str, Dataset]
    rows: Rows
    variograms: dict[str, Variogram]
    beside: list[data_of.Unknown]
    store: GreensStore
    problem: InversionProblem
    windows: rupture.Windowed | None = None


def pose(
    backend: StoreBackend,
    files: Files,
    identity: str,
    spec: Mapping[str, Any],
    asked: Mapping[str, Any],
    phase: Phase,
    max_elements: int | None = None,
) -> Posed:
    """Read the data and sample the Green's functions.

    Parameters
    ----------
    files : that the spec may name.
    identity : of the campaign.
    asked : the request, and ``extra_datasets`` that are not the campaign's.
    phase : called with what begins.
    max_elements : as in `Engine.build`.

    Raises
    ------
    TaskError
        Where the request does not fit the campaign, or its model is missing.
    """
    asked = dict(asked)
    extra = [validate(Dataset, item) for item in asked.pop("extra_datasets", [])]
    request = validate(Inversion, asked)
    campaign = parse_stored(spec)
    facts = campaign_facts(backend, identity)
    phase("reading data")
    model = _slip_model(backend, files, campaign, facts, phase, max_elements)
    datasets = _datasets(campaign, request, extra)
    rows, variograms = data_of.with_errors(_rows(files, campaign, datasets), datasets)
    beside = data_of.unknowns(rows, datasets)
    data_of.refuse_degenerate_ramps(beside, datasets)
    store = GreensStore(reading.greens(backend, identity))
    phase("sampling Green's functions")
    known = data_of.problem_terms(rows, datasets, beside)
    windows = None
    if request.windows is not None:
        if not isinstance(model, RuptureModel):
            raise rupture.no_rupture()
        growth = model.share, model.rise
        frame = Frame.of(campaign.model.frame)
        windows = rupture.windowed(request.windows, frame, growth, store, rows)
    problem = _problem(campaign, model, request, store, rows, known, windows)
    if request.model_error.campaigns:
        phase("sampling Green's functions of other earths")
        others = request.model_error.campaigns
        problem = with_changes(backend, others, store, rows, problem)
    return Posed(
        campaign=campaign,
        request=request,
        facts=facts,
        model=model,
        datasets=datasets,
        rows=rows,
        variograms=variograms,
        beside=beside,
        store=store,
        problem=problem,
        windows=windows,
    )


def settings_of(request: Inversion, n_station: int) -> InversionSettings:
    """Return how to solve; more folds than stations become as many, of one none.

    Raises
    ------
    ValueError
        The prior cannot be made of its parameters.
    """
    ((prior, parameters),) = request.prior.items()
    folds = min(request.folds, n_station)
    return InversionSettings(
        smoothness=request.smoothness,
        sparsity=request.sparsity,
        choice=request.choice,
        # a single station cannot be held out: a weight that needs no folds has none
        folds=folds if folds > 1 else 0,
        repeats=request.repeats,
        grouping="blocks" if request.blocks else "scattered",
        seed=request.seed,
        regulariser=make_regulariser(prior, parameters),
    )


def _slip_model(
    backend: StoreBackend,
    files: Files,
    campaign: Campaign,
    facts: dict[str, Any],
    phase: Phase,
    max_elements: int | None,
) -> SlipModel:
    engine = find(campaign.physics)
    where = backend, campaign, files
    model = campaign_model(engine, *where, facts, phase, max_elements)
    found = engine.slip_model(campaign, model, facts.get("order"))
    if found is None:
        text = f"Green's functions of the physics {campaign.physics} are not inverted"
        raise TaskError(ErrorClass.BAD_INPUT, text)
    return found


def _datasets(
    campaign: Campaign, request: Inversion, extra: list[Dataset]
) -> dict[str, Dataset]:
    """Return the data sets of a request by name; the campaign's own come first."""
    known = {item.name: item for item in [*extra, *campaign.datasets]}
    missing = [name for name in request.datasets if name not in known]
    if missing:
        raise TaskError(
            ErrorClass.BAD_INPUT, f"there is no data set {', '.join(missing)}"
        )
    return {name: known[name] for name in request.datasets}


def _rows(files: Files, campaign: Campaign, datasets: dict[str, Dataset]) -> Rows:
    """Read the data of a request."""
    return gather(
        [
            read_dataset(dataset, campaign.model, campaign.end, files)
            for dataset in datasets.values()
        ]
    )


def _problem(
    campaign: Campaign,
    model: SlipModel,
    request: Inversion,
    store: GreensStore,
    rows: Rows,
    known: dict[str, Any],
    windows: rupture.Windowed | None,
) -> InversionProblem:
    greens = store.dataset
    component = greens["source_component"].values.astype(np.int64)
    grid = np.column_stack(
        [greens["source_fault"].values, component, greens["source_patch"].values]
    )
    area, rigidity = greens["source_area"].values, greens["source_rigidity"].values
    names = [fault.name for fault in campaign.model.faults]
    grid = grid.astype(np.int64)
    try:
        allowed = constraint_terms(request, names, grid, rigidity * area)
    except InversionError as error:
        raise TaskError(ErrorClass.BAD_INPUT, str(error)) from error
    if windows is None:
        G = predict.design_matrix(store, rows)
    else:
        # slip that is spread evenly over the windows
        G = windows.design.mean(axis=1)
    refuse_without_any(G)
    return InversionProblem(
        G=G,
        grid=grid,
        area=area,
        rigidity=rigidity,
        **allowed,
        spacing=model.spacing,
        open_top=model.open_top,
        **known,
    )
