"""Events as they happen."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from afterslip_service.db import campaigns
from afterslip_service.routes.deps import Service, ServiceDep
from afterslip_service.routes.problems import responses

router = APIRouter(prefix="/v1", tags=["events"])

LastEventId = Annotated[
    int | None,
    Header(
        ge=0,
        le=2**62,
        description="number of the last event seen: the stream goes on after it; "
        "0 for everything, without it only what is new",
    ),
]
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """A stream of server-sent events."""

    media_type = "text/event-stream"


@router.get("/events", response_class=EventStream, responses=responses(422))
async def all_events(
    service: ServiceDep, last_event_id: LastEventId = None
) -> EventStream:
    """Follow everything."""
    return EventStream(service.hub.stream(last_event_id), headers=HEADERS)


@router.get(
    "/campaigns/{campaign}/events",
    response_class=EventStream,
    responses=responses(404, 422, 503),
)
async def campaign_events(
    service: ServiceDep, campaign: str, last_event_id: LastEventId = None
) -> EventStream:
    """Follow one campaign."""
    await run_in_threadpool(_must_exist, service, campaign)
    return EventStream(service.hub.stream(last_event_id, campaign), headers=HEADERS)


def _must_exist(service: Service, campaign: str) -> None:
    with service.database.read() as connection:
        campaigns.get(connection, campaign)
