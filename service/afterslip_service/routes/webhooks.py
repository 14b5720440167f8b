"""Webhooks: addresses that are notified when campaigns and inversions have ended."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import structlog
from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from afterslip.errors import one_problem
from afterslip_service import clock, webhook_key
from afterslip_service.db import campaigns, webhooks
from afterslip_service.db.session import Connection
from afterslip_service.db.webhooks import Delivery, Webhook
from afterslip_service.engine.access import Principal, Role
from afterslip_service.engine.webhooks import (
    DeliveryState,
    Event,
    digest,
    secret_of,
)
from afterslip_service.errors import ConflictError, MissingError
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
from afterslip_service.reconcile import outbound
from afterslip_service.reconcile.outbound import OutboundError

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=JsonRoute)
log = structlog.get_logger()

# of one user
MOST = 20


class WebhookRequest(BaseModel):
    """A webhook that is asked for."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(
        min_length=1, max_length=2000, description="https://…, which gets a POST"
    )
    events: list[Event] = Field(
        default=list(Event), min_length=1, max_length=20, description="what it reports"
    )
    campaign: str | None = Field(
        None, max_length=40, description="only of this campaign; null: of all your own"
    )


class WebhookResponse(BaseModel):
    """A webhook, without its secret."""

    id: str
    url: str
    owner: str | None
    events: list[Event]
    campaign: str | None
    created_at: datetime

    @classmethod
    def of(cls, webhook: Webhook) -> WebhookResponse:
        """Return a webhook."""
        return cls(**{name: getattr(webhook, name) for name in cls.model_fields})


class NewWebhookResponse(WebhookResponse):
    """A webhook that was just made."""

    secret: str | None = Field(
        None,
        description="signs its messages, shown this once; null when the request is "
        "repeated",
    )


class WebhookPage(BaseModel):
    """A page of webhooks, newest first."""

    items: list[WebhookResponse]
    next: str | None


class DeliveryResponse(BaseModel):
    """A message to a webhook."""

    id: str = Field(description="the same whenever it is sent again")
    event: str = Field(description="what is reported; test: nothing has happened")
    state: DeliveryState
    attempts: int
    created_at: datetime
    sent_at: datetime | None = Field(description="the last time")
    again_at: datetime | None = Field(description="the next time; null: never")
    status: int | None = Field(description="HTTP status of the last answer")
    error: str | None = Field(description="what went wrong the last time")
    payload: dict[str, Any] = Field(description="its body")

    @classmethod
    def of(cls, delivery: Delivery) -> DeliveryResponse:
        """Return a message."""
        waits = delivery.state is DeliveryState.WAITING
        again = delivery.not_before if waits else None
        own = {name: getattr(delivery, name, None) for name in cls.model_fields}
        return cls(**{**own, "again_at": again})


class DeliveryPage(BaseModel):
    """A page of messages, newest first."""

    items: list[DeliveryResponse]
    next: str | None


@router.post(
    "",
    status_code=201,
    response_model=NewWebhookResponse,
    responses=responses(404, 409, 422),
    openapi_extra={"x-role": Role.SUBMITTER.value},
)
def create_webhook(
    service: ServiceDep,
    idempotent: IdempotentDep,
    principal: PrincipalDep,
    request: WebhookRequest,
) -> JSONResponse:
    """Make a webhook for one's own campaigns; its secret is in this answer only.

    Messages are those of Standard Webhooks 1.0, signed by HMAC-SHA256, and are sent
    until they are answered by 2xx, for a day and a half at most.
    """
    try:
        outbound.judge(request.url, service.settings.webhook_networks)
    except OutboundError as error:
        raise one_problem("url", request.url, str(error), "") from None
    key = webhook_key.read(service.settings, make=True)

    def effect(connection: Connection) -> NewWebhookResponse:
        if webhooks.count(connection, principal.user) >= MOST:
            raise ConflictError(f"you have {MOST} webhooks already: delete one first")
        if request.campaign is not None:
            found = campaigns.get(connection, request.campaign)
            if found.owner != principal.user:
                raise MissingError("campaign of yours", request.campaign)
        identity = clock.new_id()
        secret = secret_of(key, identity)
        made = webhooks.create(
            connection,
            identity=identity,
            url=request.url,
            owner=principal.user,
            events=list(dict.fromkeys(request.events)),
            campaign=request.campaign,
            hash=digest(secret),
        )
        log.info("webhook made", webhook=made.id, by=principal.user)
        return NewWebhookResponse(
            **WebhookResponse.of(made).model_dump(), secret=secret
        )

    answer = idempotent.answer(201, effect, forget=("secret",))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.get("", responses=responses(422))
def list_webhooks(
    service: ServiceDep, principal: PrincipalDep, before: CursorDep, limit: Limit = 50
) -> WebhookPage:
    """List one's own webhooks, newest first; admins see everybody's."""
    owner = None if principal.role is Role.ADMIN else principal.user
    with service.database.read() as connection:
        found = webhooks.page(connection, before=before, limit=limit, owner=owner)
    items = [WebhookResponse.of(webhook) for webhook in found]
    return WebhookPage(items=items, next=next_cursor([w.id for w in found], limit))


@router.delete(
    "/{webhook}",
    status_code=204,
    responses=responses(404, 422),
    openapi_extra={"x-role": Role.VIEWER.value},
)
def delete_webhook(service: ServiceDep, principal: PrincipalDep, webhook: str) -> None:
    """Remove a webhook; messages that wait are not sent any more."""
    with service.database.write() as connection:
        found = _own(connection, principal, webhook)
        webhooks.delete(connection, found.id)
    log.info("webhook deleted", webhook=found.id, by=principal.user)


@router.post(
    "/{webhook}/test",
    status_code=202,
    response_model=DeliveryResponse,
    responses=responses(404, 422),
    openapi_extra={"x-role": Role.SUBMITTER.value},
)
def test_webhook(
    idempotent: IdempotentDep, principal: PrincipalDep, webhook: str
) -> JSONResponse:
    """Send a test message; its outcome stands in the log."""

    def effect(connection: Connection) -> DeliveryResponse:
        found = _own(connection, principal, webhook)
        return DeliveryResponse.of(webhooks.queue_test(connection, found.id))

    return idempotent.answer(202, effect)


@router.get("/{webhook}/deliveries", responses=responses(404, 422))
def list_deliveries(
    service: ServiceDep,
    principal: PrincipalDep,
    webhook: str,
    before: CursorDep,
    limit: Limit = 50,
) -> DeliveryPage:
    """List the messages of a webhook, newest first; stored for 30 days."""
    with service.database.read() as connection:
        found = webhooks.log_page(
            connection,
            _own(connection, principal, webhook).id,
            before=before,
            limit=limit,
        )
    items = [DeliveryResponse.of(delivery) for delivery in found]
    return DeliveryPage(items=items, next=next_cursor([d.id for d in found], limit))


def _own(connection: Connection, principal: Principal, identity: str) -> Webhook:
    """Return a webhook of the sender, or anybody's for an admin."""
    found = webhooks.get(connection, identity)
    if principal.role is not Role.ADMIN and found.owner != principal.user:
        # whether there is such a webhook is not the sender's business
        raise MissingError("webhook", identity)
    return found
