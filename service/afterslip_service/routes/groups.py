"""Groups of a campaign and the attempts at them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path

from afterslip_service.db import attempts, campaigns, jobs
from afterslip_service.engine.states import JobKind
from afterslip_service.errors import MissingError
from afterslip_service.http.deps import CursorDep, Limit, ServiceDep, next_cursor
from afterslip_service.http.problems import responses
from afterslip_service.routes.responses import (
    AttemptResponse,
    ErrorResponse,
    GroupDetail,
    GroupPage,
    GroupResponse,
)

router = APIRouter(prefix="/v1/campaigns/{campaign}/groups", tags=["groups"])

# the database counts groups in four bytes
MOST_GROUPS = 2**31


@router.get("", responses=responses(404, 422, 503))
def list_groups(
    service: ServiceDep, campaign: str, after: CursorDep, limit: Limit = 200
) -> GroupPage:
    """List the groups of a campaign, by number."""
    if after is not None and not (after.isdigit() and int(after) < MOST_GROUPS):
        raise HTTPException(422, "cursor: is not of a list of groups")
    with service.database.read() as connection:
        campaigns.get(connection, campaign)
        found = jobs.of_campaign(
            connection,
            campaign,
            JobKind.GROUP,
            after=-1 if after is None else int(after),
            limit=limit,
        )
        latest = attempts.latest(connection, [job.id for job in found])
    items = [GroupResponse.of(job, latest.get(job.id)) for job in found]
    return GroupPage(items=items, next=next_cursor([j.index for j in found], limit))


@router.get("/{index}", responses=responses(404, 422, 503))
def show_group(
    service: ServiceDep,
    campaign: str,
    index: Annotated[int, Path(ge=0, lt=MOST_GROUPS)],
) -> GroupDetail:
    """Show a group with every attempt at it and their convergence."""
    with service.database.read() as connection:
        campaigns.get(connection, campaign)
        found = jobs.of_campaign(
            connection, campaign, JobKind.GROUP, after=index - 1, limit=1
        )
        if not found or found[0].index != index:
            raise MissingError("group", str(index))
        job = found[0]
        tries = attempts.of_job(connection, job.id)
    return GroupDetail(
        index=job.index,
        state=job.state,
        sources=job.payload.get("sources", []),
        error=ErrorResponse.of(job.error_class, job.error_message),
        attempts=[AttemptResponse.of(attempt) for attempt in tries],
    )
