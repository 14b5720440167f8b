"""What operators do to many groups at once; all of it can be undone."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from afterslip_service.db import bulk, campaigns
from afterslip_service.db.session import Connection
from afterslip_service.engine.states import CampaignState
from afterslip_service.errors import ConflictError
from afterslip_service.http.body import JsonRoute
from afterslip_service.http.deps import IdempotentDep
from afterslip_service.http.problems import responses

router = APIRouter(prefix="/v1/campaigns", tags=["groups"], route_class=JsonRoute)


class Action(StrEnum):
    """What is done to groups."""

    CANCEL = "cancel"
    UNCANCEL = "uncancel"
    RETRY = "retry"
    INVALIDATE = "invalidate"


class Choice(BaseModel):
    """Which groups; all that it applies to unless something is said."""

    model_config = ConfigDict(extra="forbid")

    groups: Annotated[
        list[Annotated[int, Field(ge=0, lt=2**31)]] | None,
        Field(max_length=100_000, description="numbers of groups"),
    ] = None
    error_class: Annotated[
        str | None,
        Field(max_length=40, description="retry: only what failed in this way"),
    ] = None


class Done(BaseModel):
    """What an action has changed; the same again changes nothing."""

    campaign: str
    action: Action
    changed: int = Field(description="groups that were moved")
    state: CampaignState = Field(description="of the campaign, now")


@router.post("/{campaign}/uncancel", response_model=Done, responses=responses(404, 422))
def uncancel_campaign(idempotent: IdempotentDep, campaign: str) -> JSONResponse:
    """Take up a cancelled campaign again; what was accepted still is."""

    def effect(connection: Connection) -> Done:
        campaigns.get(connection, campaign, lock=True)
        campaigns.set_cancelling(connection, campaign, False)
        changed = bulk.uncancel(connection, campaign)
        state = campaigns.refresh(connection, campaign)
        return Done(
            campaign=campaign, action=Action.UNCANCEL, changed=changed, state=state
        )

    return idempotent.answer(200, effect)


def _add(action: Action, summary: str) -> None:
    @router.post(
        f"/{{campaign}}/groups/{action}",
        name=f"{action}_groups",
        response_model=Done,
        responses=responses(404, 409, 422),
        description=summary,
    )
    def act(idempotent: IdempotentDep, campaign: str, choice: Choice) -> JSONResponse:
        return idempotent.answer(200, lambda c: _act(c, campaign, action, choice))


def _act(connection: Connection, campaign: str, action: Action, choice: Choice) -> Done:
    found = campaigns.get(connection, campaign, lock=True)
    if found.cancelling and action is not Action.CANCEL:
        raise ConflictError(
            f"the campaign {found.name!r} is cancelled as a whole: uncancel it first"
        )
    only = None if choice.groups is None else frozenset(choice.groups)
    do: dict[Action, Callable[[], int]] = {
        Action.CANCEL: lambda: bulk.cancel(connection, campaign, only=only),
        Action.UNCANCEL: lambda: bulk.uncancel(connection, campaign, only),
        Action.RETRY: lambda: bulk.retry(
            connection, campaign, only=only, error_class=choice.error_class
        ),
        Action.INVALIDATE: lambda: bulk.invalidate(connection, campaign, only),
    }
    changed = do[action]()
    state = campaigns.refresh(connection, campaign)
    return Done(campaign=campaign, action=action, changed=changed, state=state)


_add(Action.CANCEL, "Cancel groups that wait or have failed; those that run go on.")
_add(Action.UNCANCEL, "Put cancelled groups back in the queue.")
_add(Action.RETRY, "Put failed groups back in the queue, their count at zero.")
_add(
    Action.INVALIDATE,
    "Solve accepted groups again; their results stay until the new ones are accepted.",
)
