"""Changes to a campaign whose version is known: ETag and If-Match."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Self

from fastapi import APIRouter, Header, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from afterslip.schemas.values import Title
from afterslip_service.db import campaigns
from afterslip_service.db.campaigns import Campaign
from afterslip_service.errors import ConflictError
from afterslip_service.http.body import JsonRoute
from afterslip_service.http.deps import ServiceDep
from afterslip_service.http.problems import responses
from afterslip_service.routes.campaigns import show
from afterslip_service.routes.responses import CampaignResponse
from afterslip_service.routes.tags import Tag

router = APIRouter(prefix="/v1/campaigns", tags=["campaigns"], route_class=JsonRoute)

HIGHEST = 1000
ETAG = {"headers": {"ETag": {"schema": {"type": "string"}}}}


class CampaignPatch(BaseModel):
    """What may be changed of a campaign; what is not named stays."""

    model_config = ConfigDict(extra="forbid")

    name: Title | None = None
    priority: Annotated[int, Field(ge=-HIGHEST, le=HIGHEST, strict=True)] | None = (
        Field(None, description="higher ones are served first; 0 by default")
    )
    tags: list[Tag] | None = Field(
        None, max_length=20, description="all tags that it has then; [] for none"
    )
    paused: StrictBool | None = Field(
        None, description="true: start no further jobs; false: go on"
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        """Refuse a change of nothing, which is mostly a misspelt key."""
        if not self.model_dump(exclude_none=True):
            raise ValueError("name, priority, tags or paused must be given")
        if self.tags is not None:
            self.tags = sorted(set(self.tags))
        return self


def etag_of(campaign: Campaign) -> str:
    """Return the version of what a PATCH may change.

    Progress is left out: a campaign at work would otherwise be another one with
    every group, and nobody could ever change it.
    """
    content = [campaign.id, campaign.name, campaign.priority, campaign.paused]
    if campaign.tags:
        content.append(list(campaign.tags))
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return f'"{digest[:32]}"'


@router.get("/{campaign}", responses={200: ETAG, **responses(404, 422)})
def show_campaign(
    service: ServiceDep, response: Response, campaign: str
) -> CampaignResponse:
    """Show a campaign; its ETag is what a PATCH must match."""
    with service.database.read() as connection:
        response.headers["ETag"] = etag_of(campaigns.get(connection, campaign))
        return show(connection, campaign)


@router.patch(
    "/{campaign}",
    responses={200: ETAG, **responses(404, 409, 412, 422, 428)},
)
def change_campaign(
    service: ServiceDep,
    response: Response,
    campaign: str,
    patch: CampaignPatch,
    if_match: Annotated[
        str | None,
        Header(max_length=1000, description="ETag of the campaign as it was read"),
    ] = None,
) -> CampaignResponse:
    """Change a campaign that nobody changed meanwhile."""
    if if_match is None:
        raise HTTPException(
            428, "If-Match: is missing; send the ETag that GET gives, or * for any"
        )
    with service.database.write() as connection:
        found = campaigns.get(connection, campaign, lock=True)
        current = etag_of(found)
        if not _matches(if_match, current):
            raise HTTPException(
                412,
                "the campaign was changed since it was read: read it again",
                {"ETag": current},
            )
        if patch.paused is not None and patch.paused is not found.paused:
            if found.cancelling:
                raise ConflictError(
                    f"the campaign {found.name!r} is cancelled: uncancel it first"
                )
            campaigns.set_paused(connection, campaign, patch.paused)
        campaigns.set_fields(
            connection,
            campaign,
            name=patch.name,
            priority=patch.priority,
            tags=patch.tags,
        )
        campaigns.refresh(connection, campaign)
        response.headers["ETag"] = etag_of(campaigns.get(connection, campaign))
        shown = show(connection, campaign)
    service.wake()
    return shown


def _matches(if_match: str, current: str) -> bool:
    """Compare strongly, as RFC 9110 §13.1.1 has it: a weak tag never matches."""
    tags = {tag.strip() for tag in if_match.split(",")}
    return current in tags or "*" in tags
