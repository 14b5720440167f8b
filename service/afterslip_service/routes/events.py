"""Events as they happen."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from afterslip_service.db import campaigns
from afterslip_service.engine.access import Principal
from afterslip_service.http.access import still_valid
from afterslip_service.http.deps import PrincipalDep, Service, ServiceDep
from afterslip_service.http.problems import responses

router = APIRouter(prefix="/v1", tags=["events"])

LastEventId = Annotated[
    int | None,
    Header(
        ge=0,
        le=2**62,
        description="number of the last event received: the stream goes on after it; "
        "0 for everything, without it only what is new",
    ),
]
LOOK_EVERY_S = 10.0
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """A stream of server-sent events."""

    media_type = "text/event-stream"


@router.get("/events", response_class=EventStream, responses=responses(422))
async def all_events(
    service: ServiceDep, principal: PrincipalDep, last_event_id: LastEventId = None
) -> EventStream:
    """Follow everything."""
    return await _stream(service, principal, last_event_id, None)


@router.get(
    "/campaigns/{campaign}/events",
    response_class=EventStream,
    responses=responses(404, 422, 503),
)
async def campaign_events(
    service: ServiceDep,
    principal: PrincipalDep,
    campaign: str,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Follow one campaign."""
    await run_in_threadpool(_must_exist, service, campaign)
    return await _stream(service, principal, last_event_id, campaign)


async def _stream(
    service: Service, principal: Principal, last: int | None, campaign: str | None
) -> EventStream:
    """Answer with a stream; what happens once its headers are out is in it."""
    if last is None:
        last = await service.hub.newest()
    stream = service.hub.stream(last, campaign)
    return EventStream(_while_valid(service, principal, stream), headers=HEADERS)


async def _while_valid(
    service: Service, principal: Principal, stream: AsyncIterator[str]
) -> AsyncIterator[str]:
    """Pass a stream on until the token behind it is revoked or expires."""
    look = time.monotonic() + LOOK_EVERY_S
    async for text in stream:
        if time.monotonic() >= look:
            if not await run_in_threadpool(still_valid, service.database, principal):
                return
            look = time.monotonic() + LOOK_EVERY_S
        yield text


def _must_exist(service: Service, campaign: str) -> None:
    with service.database.read() as connection:
        campaigns.get(connection, campaign)
