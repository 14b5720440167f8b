"""Displacements at any point and time, sampled from accepted Green's functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, HTTPException
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from afterslip.errors import ArchiveError, DamagedError, Problem, SpecError
from afterslip.frame import Frame
from afterslip.physics.registry import find
from afterslip.schemas.base import Schema
from afterslip.schemas.validation import validate
from afterslip.schemas.values import Duration, Title, Within
from afterslip.spec import parse_stored
from afterslip_common.terms import YEAR
from afterslip_service.db import campaigns
from afterslip_service.db.campaigns import Campaign
from afterslip_service.errors import ConflictError
from afterslip_service.http.body import JsonRoute
from afterslip_service.http.deps import ServiceDep
from afterslip_service.http.problems import responses
from afterslip_workers import entry

if TYPE_CHECKING:
    from xarray import DataArray

router = APIRouter(
    prefix="/v1/campaigns/{campaign}/sample", tags=["greens"], route_class=JsonRoute
)

Float = NDArray[np.float64]

MAX_VALUES = 10_000_000
COMPONENTS = 3
# as far as a domain reaches
Kilometres = Annotated[float, Within("km", least=-20000, most=20000)]


class SampleResponse(BaseModel):
    """Values of all Green's functions at points of the surface."""

    dims: list[str]
    shape: list[int]
    unit: str = Field(description="of the data, by the physics")
    time_yr: list[float]
    stations: list[str]
    data: list[Any]
    # [source][time][station], unit of the data; null: nothing was estimated
    space_error: list[Any] | None


class Point(Schema):
    """A point of the ground surface."""

    name: Title = Field(description="name of the station")
    lon: Annotated[float, Within("deg", least=-180, most=360)] | None = None
    lat: Annotated[float, Within("deg", least=-90, most=90)] | None = None
    x_km: Kilometres | None = None
    y_km: Kilometres | None = None

    def problems(self) -> Iterator[Problem]:
        """One pair of coordinates, and only one."""
        degrees = (self.lon is not None, self.lat is not None)
        km = (self.x_km is not None, self.y_km is not None)
        if (all(degrees), all(km)) not in {(True, False), (False, True)} or (
            any(degrees) and any(km)
        ):
            yield Problem(
                "", None, "has no place", "give lon and lat, or x_km and y_km"
            )


class SampleRequest(Schema):
    """Points and times."""

    stations: list[Point] = Field(min_length=1, max_length=100_000)
    times: list[Duration] = Field(min_length=1, max_length=10_000)


@router.post(
    "",
    responses=responses(400, 404, 409, 413, 422, 503),
    openapi_extra={
        "x-role": "viewer",
        "requestBody": {
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/SampleRequest"}
                }
            }
        },
    },
)
def sample(
    service: ServiceDep, campaign: str, request: Annotated[dict[str, Any], Body()]
) -> SampleResponse:
    """Sample every Green's function at points and times; nothing is solved."""
    asked = validate(SampleRequest, request)
    with service.database.read() as connection:
        found = campaigns.get(connection, campaign)
    if found.finished_at is None:
        raise ConflictError(
            f"the campaign {found.name!r} is {found.state.value}: its Green's "
            "functions are not complete yet"
        )
    count = (found.n_sources or 0) * len(asked.stations) * len(asked.times)
    if count * COMPONENTS > MAX_VALUES:
        raise SpecError(
            [
                Problem(
                    "stations",
                    len(asked.stations),
                    f"would make {count * COMPONENTS:,} values of {MAX_VALUES:,}",
                    "ask for fewer stations or times at once, or read greens.zarr",
                )
            ]
        )
    x, y = _local(found, asked.stations)
    try:
        sampled = entry.sample(
            service.settings.store, campaign, x, y, [float(t) for t in asked.times]
        )
    except DamagedError:
        raise
    except ArchiveError as error:
        # the request is right, the store cannot answer it
        raise HTTPException(503, str(error)) from error
    data = np.asarray(sampled.values, dtype=np.float64)
    return SampleResponse(
        dims=[str(dim) for dim in sampled.dims],
        shape=list(data.shape),
        unit=find(found.physics).unit,
        time_yr=[float(t) / YEAR for t in asked.times],
        stations=[point.name for point in asked.stations],
        data=data.tolist(),
        space_error=_error(sampled),
    )


def _error(sampled: DataArray) -> list[Any] | None:
    """Return the estimated error of the mesh; None where there is none."""
    if "space_error" not in sampled.coords:
        return None
    error = sampled["space_error"].transpose("source", "time", "station").values
    found: list[Any] | None = error.tolist() if np.isfinite(error).all() else None
    return found


def _local(campaign: Campaign, points: list[Point]) -> tuple[Float, Float]:
    """Return x, y of the points in m."""
    frame = Frame.of(parse_stored(campaign.canonical).model.frame)
    x, y = np.empty(len(points)), np.empty(len(points))
    for index, point in enumerate(points):
        if point.x_km is not None and point.y_km is not None:
            x[index], y[index] = 1e3 * point.x_km, 1e3 * point.y_km
            continue
        if not frame.geographic or point.lon is None or point.lat is None:
            hint = "give x_km and y_km: the campaign's frame is local"
            path = f"stations[{index}].lon"
            raise SpecError([Problem(path, point.lon, "has no meaning here", hint)])
        x[index], y[index] = frame.to_local(point.lon, point.lat)
    return x, y
