"""Data sets that come after the campaign."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body
from fastapi.responses import JSONResponse

from afterslip.errors import Problem, SpecError, one_problem
from afterslip.frame import Frame
from afterslip.schemas.observation import Dataset
from afterslip.schemas.validation import validate
from afterslip.spec.inputs import observations_of
from afterslip_service.db import datasets
from afterslip_service.db.session import Connection
from afterslip_service.http.body import JsonRoute
from afterslip_service.http.deps import (
    CursorDep,
    IdempotentDep,
    Limit,
    PrincipalDep,
    Service,
    ServiceDep,
    next_cursor,
)
from afterslip_service.http.problems import responses
from afterslip_service.routes import limits
from afterslip_service.routes.responses import DatasetPage, DatasetResponse
from afterslip_workers import entry

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=JsonRoute)

REQUEST = {"$ref": "#/components/schemas/DatasetRequest"}


@router.post(
    "",
    status_code=201,
    response_model=DatasetResponse,
    responses=responses(400, 413, 422, 503),
    openapi_extra={
        "requestBody": {"content": {"application/json": {"schema": REQUEST}}}
    },
)
def create_dataset(
    service: ServiceDep,
    principal: PrincipalDep,
    idempotent: IdempotentDep,
    request: Annotated[dict[str, Any], Body()],
) -> JSONResponse:
    """Keep observations: a file that was uploaded, or CSV text in the request."""
    asked = dict(request)
    csv = asked.pop("csv", None)
    if csv is not None:
        if not isinstance(csv, str) or not csv.strip():
            raise SpecError([Problem("csv", None, "must be the text of a CSV file")])
        if "file" in asked:
            raise SpecError([Problem("csv", None, "and file exclude each other")])
        asked["file"] = entry.keep_content(service.settings.store, csv.encode())
    dataset = validate(Dataset, asked)
    limits.check_files(service, dataset)
    count = _count(service, dataset)
    content = dataset.model_dump(mode="json", exclude_none=True)

    def effect(connection: Connection) -> DatasetResponse:
        identity = datasets.create(
            connection,
            name=dataset.name,
            file=str(dataset.file),
            content=content,
            n_observations=count,
            owner=principal.user,
        )
        return DatasetResponse.of(datasets.find(connection, identity))

    return idempotent.answer(201, effect)


def _count(service: Service, dataset: Dataset) -> int:
    """Read the file and return the number of observations in it.

    Which coordinates it must give depends on the campaign that it will be used
    with, so either kind is good here.

    Raises
    ------
    SpecError
        If it cannot be read in either.
    """
    content = service.files.read(str(dataset.file))
    kinds = [Frame("local"), Frame("geographic")]
    if b"x_km" in content.partition(b"\n")[0]:
        kinds.reverse()  # the last one's problems are reported
    failure = SpecError([])
    for frame in kinds:
        try:
            found = observations_of(dataset, content, frame, "file")
        except SpecError as error:
            failure = error
        else:
            return len(found.name)
    head = content.partition(b"\n")[0].lower()
    if b"lon" not in head and b"x_km" not in head:
        raise one_problem(
            "file", None, "has neither the columns lon and lat nor x_km and y_km",
            "degrees where the campaign's frame is geographic, km from its origin "
            "where it is local",
        )  # fmt: skip
    raise failure


@router.get("", responses=responses(422, 503))
def list_datasets(
    service: ServiceDep, before: CursorDep, limit: Limit = 50
) -> DatasetPage:
    """List data sets, newest first."""
    with service.database.read() as connection:
        found = datasets.page(connection, before=before, limit=limit)
    items = [DatasetResponse.of(dataset) for dataset in found]
    return DatasetPage(items=items, next=next_cursor([d.id for d in found], limit))


@router.get("/{dataset}", responses=responses(404, 422, 503))
def show_dataset(
    service: ServiceDep, principal: PrincipalDep, dataset: str
) -> DatasetResponse:
    """Show a data set by its id or name: the newest, one's own before others'."""
    with service.database.read() as connection:
        return DatasetResponse.of(datasets.find(connection, dataset, principal.user))
