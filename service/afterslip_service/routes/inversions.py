"""Inversions and what they leave: result, report, plots."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, HTTPException, Query, Request
from fastapi.responses import FileResponse, JSONResponse, Response

from afterslip_service.db import campaigns, inversions
from afterslip_service.db.session import Connection
from afterslip_service.engine.states import JobState
from afterslip_service.errors import ConflictError
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
from afterslip_service.http.problems import file_of, responses
from afterslip_service.routes import submission
from afterslip_service.routes.responses import (
    InversionPage,
    InversionResponse,
    PlotPage,
)
from afterslip_service.routes.store_files import respond
from afterslip_workers import entry

router = APIRouter(prefix="/v1/inversions", tags=["inversions"], route_class=JsonRoute)

REQUEST = {"$ref": "#/components/schemas/InversionRequest"}


@router.post(
    "",
    status_code=201,
    response_model=InversionResponse,
    responses=responses(400, 404, 409, 413, 422, 503),
    openapi_extra={
        "requestBody": {"content": {"application/json": {"schema": REQUEST}}}
    },
)
def create_inversion(
    service: ServiceDep,
    principal: PrincipalDep,
    idempotent: IdempotentDep,
    request: Annotated[dict[str, Any], Body()],
) -> JSONResponse:
    """Ask for slip from data; it is computed once the campaign is complete."""
    checked = submission.check_inversion(service, principal, request)

    def effect(connection: Connection) -> InversionResponse:
        identity = submission.write_inversion(connection, checked)
        return InversionResponse.of(inversions.get(connection, identity))

    return idempotent.answer(201, effect)


@router.get("", responses=responses(404, 422, 503))
def list_inversions(
    service: ServiceDep,
    before: CursorDep,
    limit: Limit = 50,
    campaign: Annotated[str | None, Query(max_length=40)] = None,
) -> InversionPage:
    """List inversions, newest first."""
    with service.database.read() as connection:
        if campaign is not None:
            campaigns.get(connection, campaign)
        found = inversions.page(
            connection, before=before, limit=limit, campaign=campaign
        )
    items = [InversionResponse.of(inversion) for inversion in found]
    return InversionPage(items=items, next=next_cursor([i.id for i in found], limit))


@router.get("/{inversion}", responses=responses(404, 422, 503))
def show_inversion(service: ServiceDep, inversion: str) -> InversionResponse:
    """Show an inversion."""
    with service.database.read() as connection:
        return InversionResponse.of(inversions.get(connection, inversion))


def _file(
    service: Service,
    request: Request,
    identity: str,
    name: str,
    media: str,
    *,
    headers: dict[str, str] | None = None,
    filename: str | None = None,
) -> Response:
    with service.database.read() as connection:
        inversion = inversions.get(connection, identity)
    if inversion.state is not JobState.ACCEPTED:
        raise ConflictError(
            f"the inversion {inversion.name!r} is {inversion.state.value}: "
            "it has no result yet"
        )
    folder = _folder(inversion.campaign_id, inversion.id)
    store, campaign = service.settings.store, inversion.campaign_id
    found = respond(
        service,
        request,
        folder,
        name,
        digest=lambda: entry.result_digest(store, campaign, inversion.id, name),
        media=media,
        headers=headers,
        filename=filename,
    )
    if found is None:
        raise HTTPException(404, f"the inversion {inversion.name!r} has no {name}")
    return found


def _folder(campaign: str, identity: str) -> str:
    return f"campaigns/{campaign}/inversions/{identity}"


@router.get(
    "/{inversion}/result",
    response_class=FileResponse,
    responses=file_of("application/x-netcdf") | responses(404, 409, 422, 503),
)
def read_result(service: ServiceDep, request: Request, inversion: str) -> Response:
    """Read the result as NetCDF."""
    name, media = "result.nc", "application/x-netcdf"
    return _file(service, request, inversion, name, media, filename=name)


@router.get(
    "/{inversion}/slip",
    response_class=FileResponse,
    responses=file_of("text/csv", type="string") | responses(404, 409, 422, 503),
)
def read_slip(service: ServiceDep, request: Request, inversion: str) -> Response:
    """Read the slip of each source as CSV."""
    name = "slip.csv"
    return _file(service, request, inversion, name, "text/csv", filename=name)


@router.get(
    "/{inversion}/geojson",
    response_class=FileResponse,
    responses=file_of("application/geo+json", type="object")
    | responses(404, 409, 422, 503),
)
def read_geojson(service: ServiceDep, request: Request, inversion: str) -> Response:
    """Read the slip as polygons of GeoJSON, for a GIS."""
    name, media = "slip.geojson", "application/geo+json"
    return _file(service, request, inversion, name, media, filename=name)


@router.get(
    "/{inversion}/fit",
    response_class=FileResponse,
    responses=file_of("text/csv", type="string") | responses(404, 409, 422, 503),
)
def read_fit(service: ServiceDep, request: Request, inversion: str) -> Response:
    """Read each datum, what is predicted for it, and their difference as CSV."""
    name = "data_fit.csv"
    return _file(service, request, inversion, name, "text/csv", filename=name)


@router.get(
    "/{inversion}/report",
    response_class=FileResponse,
    responses=file_of("text/html", type="string") | responses(404, 409, 422, 503),
)
def read_report(service: ServiceDep, request: Request, inversion: str) -> Response:
    """Read the report as a page."""
    # a report is a document: it may bring pictures and styles, never scripts
    policy = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'"
    headers = {"Content-Security-Policy": policy}
    name = "report.html"
    return _file(service, request, inversion, name, "text/html", headers=headers)


@router.get("/{inversion}/plots", responses=responses(404, 422, 503))
def list_plots(
    service: ServiceDep, inversion: str, after: CursorDep, limit: Limit = 200
) -> PlotPage:
    """List the plots; empty until the inversion is accepted."""
    with service.database.read() as connection:
        found = inversions.get(connection, inversion)
    names: list[str] = []
    if found.state is JobState.ACCEPTED:
        # what was accepted, not what is there: a plot that is missing is an error
        files = entry.result_files(service.settings.store, found.campaign_id, found.id)
        names = sorted(name[:-4] for name in files if name.endswith(".png"))
        names = [name for name in names if after is None or name > after][:limit]
    here = f"/v1/inversions/{inversion}/plots"
    items = [{"name": name, "href": f"{here}/{name}.png"} for name in names]
    return PlotPage(items=items, next=next_cursor(names, limit))


@router.get(
    "/{inversion}/plots/{name}.png",
    response_class=FileResponse,
    responses=file_of("image/png") | responses(404, 409, 422, 503),
)
def read_plot(
    service: ServiceDep, request: Request, inversion: str, name: str
) -> Response:
    """Read a plot as PNG."""
    return _file(service, request, inversion, f"{name}.png", "image/png")
