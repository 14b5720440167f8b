"""Campaigns."""

from __future__ import annotations

from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Body, Query
from fastapi.responses import JSONResponse

from afterslip_common.observe import telemetry
from afterslip_service.db import bulk, campaigns, inversions, usage
from afterslip_service.db.campaigns import Campaign
from afterslip_service.db.session import Connection
from afterslip_service.engine.states import FINAL_JOBS, CampaignState
from afterslip_service.errors import ConflictError
from afterslip_service.http.body import JsonRoute
from afterslip_service.http.deps import (
    CursorDep,
    IdempotentDep,
    Limit,
    PrincipalDep,
    ServiceDep,
    next_cursor,
)
from afterslip_service.http.problems import responses
from afterslip_service.routes import submission
from afterslip_service.routes.responses import (
    CampaignBrief,
    CampaignPage,
    CampaignResponse,
)
from afterslip_service.routes.tags import Tag

log = structlog.get_logger()
router = APIRouter(prefix="/v1/campaigns", tags=["campaigns"], route_class=JsonRoute)

SPEC = {"$ref": "#/components/schemas/CampaignSpec"}


def show(connection: Connection, identity: str) -> CampaignResponse:
    """Return a campaign as the API shows it."""
    found = campaigns.get(connection, identity)
    tallies = campaigns.tallies(connection, [identity])[identity]
    made = inversions.ids(connection, [identity])[identity]
    used = usage.of_campaign(connection, identity)
    return CampaignResponse.of(found, tallies, made, used)


@router.post(
    "",
    status_code=201,
    response_model=CampaignResponse,
    responses=responses(400, 413, 422, 503),
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": SPEC}}}},
)
def create_campaign(
    service: ServiceDep,
    principal: PrincipalDep,
    idempotent: IdempotentDep,
    spec: Annotated[Any, Body()],
) -> JSONResponse:
    """Check a campaign spec with every file that it names, and set it to work."""
    checked = submission.check_campaign(service, principal, spec)

    def effect(connection: Connection) -> CampaignResponse:
        identity = submission.write_campaign(connection, checked, principal.user)
        log.info("campaign submitted", campaign=identity, user=principal.user)
        telemetry.submitted(identity)
        return show(connection, identity)

    return idempotent.answer(201, effect)


@router.get("", responses=responses(422, 503))
def list_campaigns(
    service: ServiceDep,
    before: CursorDep,
    limit: Limit = 50,
    state: CampaignState | None = None,
    digest: Annotated[
        str | None, Query(description="only campaigns of this very content")
    ] = None,
    tag: Annotated[Tag | None, Query(description="only campaigns with it")] = None,
) -> CampaignPage:
    """List campaigns, newest first."""
    with service.database.read() as connection:
        found = campaigns.page(
            connection,
            before=before,
            limit=limit,
            state=state,
            digest=digest,
            tag=tag,
        )
        ids = [campaign.id for campaign in found]
        tallies = campaigns.tallies(connection, ids)
        made = inversions.ids(connection, ids)
    items = [
        CampaignBrief(**CampaignBrief.fields(c, tallies[c.id], made[c.id]))
        for c in found
    ]
    return CampaignPage(items=items, next=next_cursor(ids, limit))


@router.delete("/{campaign}", status_code=204, responses=responses(404, 422, 503))
def delete_campaign(service: ServiceDep, campaign: str) -> None:
    """Cancel a campaign and hide it; its Green's functions stay in the store."""
    with service.database.write() as connection:
        _cancel(connection, campaigns.get(connection, campaign, lock=True))
        campaigns.set_deleted(connection, campaign)
    service.wake()


def _cancel(connection: Connection, campaign: Campaign) -> None:
    """Cancel what waits at once; what runs is stopped by the dispatcher."""
    campaigns.set_cancelling(connection, campaign.id)
    bulk.cancel_waiting(connection, campaign.id)
    campaigns.refresh(connection, campaign.id)


def _refuse_complete(connection: Connection, campaign: Campaign) -> None:
    """Refuse to cancel what is complete, unless an inversion is still to be made."""
    tallies = campaigns.tallies(connection, [campaign.id])[campaign.id]
    left = {state for counts in tallies.values() for state in counts} - FINAL_JOBS
    if campaign.state is CampaignState.COMPLETE and not left:
        raise ConflictError(
            f"the campaign {campaign.name!r} is complete: nothing of it waits or runs "
            "(delete takes it off the lists)"
        )


def _act(connection: Connection, identity: str, action: str) -> CampaignResponse:
    campaign = campaigns.get(connection, identity, lock=True)
    ended = campaign.state is CampaignState.CANCELLED
    if ended or (campaign.cancelling and action != "cancel"):
        what = f"the campaign {campaign.name!r} is cancelled"
        if action == "cancel":
            raise ConflictError(f"{what} already; uncancel takes it up again")
        raise ConflictError(f"{what}: uncancel it first")
    if action == "cancel":
        _refuse_complete(connection, campaign)
        _cancel(connection, campaign)
    elif action == "retry":
        if not bulk.reset_failed(connection, identity):
            raise ConflictError("nothing has failed in this campaign")
    else:
        campaigns.set_paused(connection, identity, action == "pause")
    campaigns.refresh(connection, identity)
    return show(connection, identity)


def _action(name: str, summary: str) -> None:
    @router.post(
        f"/{{campaign}}/{name}",
        name=f"{name}_campaign",
        response_model=CampaignResponse,
        responses=responses(404, 409, 422, 503),
        description=summary,
    )
    def act(idempotent: IdempotentDep, campaign: str) -> JSONResponse:
        return idempotent.answer(
            200, lambda connection: _act(connection, campaign, name)
        )


_action("cancel", "Cancel what waits and stop what runs; what is accepted stays.")
_action("retry", "Put the jobs that failed back in the queue.")
_action("pause", "Start no further jobs; what runs goes on.")
_action("resume", "Go on after a pause.")
