"""Attempts of a campaign by time, and where its unit sources lie on the faults."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from pydantic import AwareDatetime, BaseModel, Field

from afterslip_service.db import attempts, campaigns
from afterslip_service.engine.states import AttemptState, JobKind
from afterslip_service.errors import ConflictError
from afterslip_service.http.deps import CursorDep, Limit, ServiceDep, next_cursor
from afterslip_service.http.problems import responses
from afterslip_workers import entry

router = APIRouter(prefix="/v1/campaigns/{campaign}", tags=["groups"])


class AttemptSpan(BaseModel):
    """When a try at the model, a group or an inversion was made, and how it ended."""

    token: str = Field(description="of the attempt")
    kind: JobKind = Field(description="what was tried")
    index: int = Field(description="number of the group or inversion")
    number: int
    state: AttemptState
    worker: str | None = Field(description="null until it has ended")
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error_class: str | None


class AttemptSpanPage(BaseModel):
    """A page of the attempts of a campaign, oldest first."""

    items: list[AttemptSpan]
    next: str | None


class FaultGrid(BaseModel):
    """Unit sources of one fault."""

    name: str
    along_strike: int = Field(description="how many side by side")
    down_dip: int = Field(description="how many above each other")


class Places(BaseModel):
    """Where the unit sources lie, as columns in the order of the store."""

    faults: list[FaultGrid] = Field(
        description="of the spec, in its order; empty where the store tells nothing"
    )
    fault: list[int] = Field(description="position in `faults` of each unit source")
    along_strike: list[int] = Field(description="counted from the fault's start")
    down_dip: list[int] = Field(description="counted from the fault's upper edge")


@router.get("/attempts", responses=responses(404, 422, 503))
def list_attempts(
    service: ServiceDep,
    campaign: str,
    after: CursorDep,
    limit: Limit = 200,
    since: Annotated[
        AwareDatetime | None,
        Query(description="leaves out those that had ended before this time"),
    ] = None,
) -> AttemptSpanPage:
    """List every attempt of a campaign with its times, oldest first."""
    try:
        moment = None if since is None else since.astimezone(UTC)
    except OverflowError as error:
        raise HTTPException(422, "since: is not a time that can be stored") from error
    with service.database.read() as connection:
        campaigns.get(connection, campaign)
        found = attempts.spans(
            connection, campaign, since=moment, after=after, limit=limit
        )
    items = [AttemptSpan(**asdict(span)) for span in found]
    return AttemptSpanPage(
        items=items, next=next_cursor([span.token for span in found], limit)
    )


@router.get("/places", responses=responses(404, 409, 422, 503))
def show_places(service: ServiceDep, campaign: str) -> Places:
    """Say where each unit source lies on its fault, once the model is built."""
    with service.database.read() as connection:
        found = campaigns.get(connection, campaign)
    if found.n_sources is None:
        raise ConflictError(
            f"the model of the campaign {found.name!r} is not built yet"
        )
    columns = entry.places(service.settings.store, campaign)
    if columns is None:
        return Places(faults=[], fault=[], along_strike=[], down_dip=[])
    fault, patch = columns["fault"], columns["patch"]
    named: list[dict[str, Any]] = found.canonical["model"]["faults"]
    grids = []
    for number, item in enumerate(named):
        own = [p for p, f in zip(patch, fault, strict=True) if f == number]
        along, down = (1 + max((p[k] for p in own), default=-1) for k in (0, 1))
        grids.append(FaultGrid(name=item["name"], along_strike=along, down_dip=down))
    return Places(
        faults=grids,
        fault=fault,
        along_strike=[p[0] for p in patch],
        down_dip=[p[1] for p in patch],
    )
