"""Why a campaign or a group is as it is."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from afterslip.error_class import ErrorClass
from afterslip.errors import SpecError
from afterslip.physics.base import Physics
from afterslip.physics.registry import find
from afterslip_service import clock
from afterslip_service.db import (
    attempts,
    campaigns,
    jobs,
    leases,
    queue_position,
    sources,
)
from afterslip_service.db.campaigns import Campaign
from afterslip_service.db.jobs import Job
from afterslip_service.db.session import Connection
from afterslip_service.db.sources import Source
from afterslip_service.engine import explain
from afterslip_service.engine.explain import ADVICE, Situation
from afterslip_service.engine.states import ACTIVE_JOBS, JobKind, JobState
from afterslip_service.errors import MissingError
from afterslip_service.http.deps import Service, ServiceDep
from afterslip_service.http.problems import responses
from afterslip_service.reconcile.leadership import LEASE

router = APIRouter(prefix="/v1/campaigns", tags=["campaigns"])

MOST_SOURCES = 12


class ReasonResponse(BaseModel):
    """Why something waits."""

    code: str = Field(
        description="paused, priority, limit, no_worker, backoff, other_earths, ..."
    )
    message: str
    until: datetime | None = None


class FailureResponse(BaseModel):
    """Failures of one class."""

    error_class: str
    count: int
    advice: str
    message: str = Field(description="of one of them")


class SourceResponse(BaseModel):
    """Why one source was, or was not, taken from another campaign."""

    position: int = Field(description="place in the store")
    reused: bool
    campaign: str | None = Field(description="where it comes from, or what is nearest")
    differs: list[str] = Field(description="what is different there")
    message: str


class ReuseResponse(BaseModel):
    """What was taken from other campaigns."""

    reused: int
    of: int
    sources: list[SourceResponse]


class Explanation(BaseModel):
    """Why a campaign, or one of its groups, is as it is."""

    campaign: str
    group: int | None
    state: str
    waiting: list[ReasonResponse]
    failures: list[FailureResponse]
    reuse: ReuseResponse
    remaining_s: float | None = Field(description="null where nobody can know yet")


@router.get("/{campaign}/explain", responses=responses(404, 422))
def explain_campaign(
    service: ServiceDep,
    campaign: str,
    group: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
) -> Explanation:
    """Say why it waits, why it failed, and what was reused or not."""
    with service.database.read() as connection:
        found = campaigns.get(connection, campaign)
        counts = campaigns.tallies(connection, [campaign])[campaign]
        job = None if group is None else _group(connection, campaign, group)
        waiting = _waiting(connection, service, found, counts)
        if job is not None:
            waiting = _of_group(job, waiting)
        failed = [job] if job is not None else _failed(connection, campaign)
        positions = None if job is None else job.payload.get("sources", [])
        return Explanation(
            campaign=campaign,
            group=group,
            state=found.state if job is None else job.state,
            waiting=waiting,
            failures=_failures(connection, failed, whole=job is not None),
            reuse=_reuse(connection, found, positions),
            remaining_s=explain.remaining_s(
                found.recent, counts.get(JobKind.GROUP, {})
            ),
        )


def _group(connection: Connection, campaign: str, index: int) -> Job:
    found = jobs.of_campaign(
        connection, campaign, JobKind.GROUP, after=index - 1, limit=1
    )
    if not found or found[0].index != index:
        raise MissingError("group", str(index))
    return found[0]


def _failed(connection: Connection, campaign: str) -> list[Job]:
    failed = frozenset({JobState.FAILED})
    return [
        job
        for kind in JobKind
        for job in jobs.of_campaign(connection, campaign, kind, states=failed)
    ]


def _waiting(
    connection: Connection, service: Service, found: Campaign, counts: dict[Any, Any]
) -> list[ReasonResponse]:
    now = clock.now()
    place = queue_position.of(connection, found.id, now)
    facts = leases.facts(connection, LEASE)

    def count(states: frozenset[JobState]) -> int:
        return sum(counts.get(k, {}).get(s, 0) for k in JobKind for s in states)

    reasons = explain.why_waiting(
        Situation(
            state=found.state,
            error_class=found.error_class,
            error_message=found.error_message,
            cancelling=found.cancelling,
            paused=found.paused,
            built=found.n_sources is not None,
            waiting=count(frozenset({JobState.WAITING})),
            active=count(ACTIVE_JOBS),
            slots=None if facts is None else facts.get("slots"),
            trouble=None if facts is None else facts.get("trouble"),
            busy=place.busy,
            limit=service.settings.user_limit if found.owner else None,
            above=place.above,
            before=place.before,
            wake_at=place.wake_at,
            now=now,
            awaits=place.awaits,
            shares=place.shares,
        )
    )
    return [
        ReasonResponse(code=r.code, message=r.message, until=r.until) for r in reasons
    ]


def _of_group(job: Job, reasons: list[ReasonResponse]) -> list[ReasonResponse]:
    if job.state is not JobState.WAITING:
        return []
    rest = [reason for reason in reasons if reason.code != "backoff"]
    if job.not_before <= clock.now():
        return rest
    text = f"after {job.error_class} it pauses a while: {job.error_message}"
    return [ReasonResponse(code="backoff", message=text, until=job.not_before), *rest]


def _failures(
    connection: Connection, failed: list[Job], *, whole: bool
) -> list[FailureResponse]:
    """Count failures by class: of failed jobs, or of all attempts at one group."""
    counted: list[tuple[str, str]]
    if whole:
        tries = attempts.of_job(connection, failed[0].id)
        counted = [
            (t.error_class, t.error_message or "") for t in tries if t.error_class
        ]
    else:
        counted = [
            (j.error_class or ErrorClass.INTERNAL, j.error_message or "")
            for j in failed
        ]
    counts = Counter(error_class for error_class, _ in counted)
    last = dict(counted)
    return [
        FailureResponse(
            error_class=name,
            count=count,
            advice=ADVICE.get(name, ADVICE[ErrorClass.INTERNAL]),
            message=last[name],
        )
        for name, count in counts.most_common()
    ]


def _reuse(
    connection: Connection, found: Campaign, positions: list[int] | None
) -> ReuseResponse:
    every = sources.of_campaign(connection, found.id, positions)
    reused = [source for source in every if source.origin is not None]
    shown = every if positions is not None else every[:MOST_SOURCES]
    return ReuseResponse(
        reused=len(reused),
        of=len(every),
        sources=[_source(connection, found, source) for source in shown],
    )


def _source(connection: Connection, found: Campaign, source: Source) -> SourceResponse:
    if source.origin is not None:
        return SourceResponse(
            position=source.position,
            reused=True,
            campaign=source.origin,
            differs=[],
            message=f"taken from place {source.origin_position} there",
        )
    near = sources.nearest(connection, source)
    if near is None:
        return SourceResponse(
            position=source.position,
            reused=False,
            campaign=None,
            differs=[],
            message="no earlier campaign has a source like it",
        )
    other, parts = near
    differs = _differences(connection, found, source, other, parts)
    text = f"differs in {', '.join(parts)}" if parts else "is not good enough there"
    if not parts and not differs:
        text = "was stored only after this campaign was planned"
    return SourceResponse(
        position=source.position,
        reused=False,
        campaign=other.campaign_id,
        differs=differs,
        message=text,
    )


def _differences(
    connection: Connection,
    found: Campaign,
    source: Source,
    other: Source,
    parts: list[str],
) -> list[str]:
    """Return the keys of the spec in which another campaign's source differs."""
    try:
        physics = find(found.physics)
    except SpecError:
        # nobody here knows what its keys mean; that it is missing is said elsewhere
        return []
    differs = _details(connection, physics, found, other, parts)
    return differs or physics.worse(other.quality, source.quality)


def _details(
    connection: Connection,
    physics: Physics,
    found: Campaign,
    other: Source,
    parts: list[str],
) -> list[str]:
    """Return which keys of the spec make the parts different."""
    try:
        theirs = campaigns.get(connection, other.campaign_id, deleted=True).canonical
    except MissingError:
        return []
    return [
        path
        for part in parts
        for key in physics.parts[part]
        for path in explain.differences(found.canonical.get(key), theirs.get(key), key)
    ]
