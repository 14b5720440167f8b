"""Who has used how much: worker seconds by campaign and by user."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, Field

from afterslip_service.db import usage
from afterslip_service.http.deps import CursorDep, Limit, ServiceDep, next_cursor

router = APIRouter(prefix="/v1/usage", tags=["usage"])


class UsageResponse(BaseModel):
    """What one campaign or one user has used."""

    who: str = Field(description="the campaign's id, or the user; empty for nobody")
    name: str = Field(description="the campaign's name, or the user")
    attempts: int = Field(description="attempts that began")
    worker_seconds: float = Field(
        description="s of workers in all attempts; GPU-seconds where workers have GPUs"
    )
    lost_seconds: float = Field(
        description="s of these in attempts whose result was not taken"
    )
    solves: int = Field(description="linear solves of accepted attempts")
    iterations: int = Field(description="iterations of accepted attempts")


class UsagePage(BaseModel):
    """Some of it."""

    items: list[UsageResponse]
    next: str | None


@router.get("")
def show_usage(
    service: ServiceDep,
    cursor: CursorDep,
    limit: Limit = 100,
    by: Annotated[
        Literal["campaign", "user"], Query(description="what to sum up")
    ] = "campaign",
    owner: Annotated[
        str | None, Query(max_length=100, description="campaigns of this user only")
    ] = None,
) -> UsagePage:
    """Sum up worker seconds, solves and iterations; the newest campaign first."""
    if by == "user" and (cursor is not None or owner is not None):
        raise HTTPException(422, "cursor, owner: go with by=campaign only")
    with service.database.read() as connection:
        if by == "user":
            found, following = usage.by_user(connection), None
        else:
            found = usage.by_campaign(connection, owner, limit, cursor)
            following = next_cursor([item.who for item in found], limit)
    return UsagePage(items=[_response(item) for item in found], next=following)


def _response(item: usage.Usage) -> UsageResponse:
    return UsageResponse(
        who=item.who,
        name=item.name,
        attempts=item.attempts,
        worker_seconds=item.seconds,
        lost_seconds=item.lost,
        solves=item.solves,
        iterations=item.iterations,
    )
